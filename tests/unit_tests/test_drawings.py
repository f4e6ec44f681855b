"""Mermaid, text, outline, page and picture: correct, and safe for untrusted messages."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langchain_threadmem.errors import InputError, InvalidGraphStateError, NodeNotFoundError
from langchain_threadmem.formats.exporters.layout import Layout
from langchain_threadmem.formats.exporters.mermaid import to_mermaid
from langchain_threadmem.formats.exporters.page import to_html, to_svg
from langchain_threadmem.formats.exporters.page_words import WORDS
from langchain_threadmem.formats.exporters.text import to_outline, to_text
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.node import ConversationNode, MessageSummary, Placement

DOCS = Path(__file__).parents[2] / "docs"
PICTURES = sorted([*DOCS.glob("*.svg"), *DOCS.glob("images/*.svg")])
HOSTILE = "</style></details><script>alert(1)</script><img src=x onerror=alert(1)>\"'`];\x00\u2028--> end"


@st.composite
def forests(draw: st.DrawFn) -> list[ConversationNode]:
    ids = draw(st.lists(st.integers(1, 99), unique=True, max_size=12))
    kinds: list[type[BaseMessage]] = [HumanMessage, AIMessage, SystemMessage]
    return [
        ConversationNode(
            node_id,
            draw(st.sampled_from(kinds))(draw(st.text(st.characters(), max_size=80) | st.just(HOSTILE))),
            draw(st.sampled_from([None, *ids[:n]])),
            state=draw(st.sampled_from(State)),
        )
        for n, node_id in enumerate(ids)
    ]


def say(
    node_id: int, message: BaseMessage | str, parent: int | None = None, **kwargs: Any
) -> ConversationNode:
    return ConversationNode(
        node_id, HumanMessage(message) if isinstance(message, str) else message, parent, **kwargs
    )


def python_and_csv() -> list[ConversationNode]:
    return [
        say(4, AIMessage("Learn numpy"), 3),
        say(1, "Python?"),
        say(2, AIMessage("Great"), 1),
        say(3, "And ML?", 2),
        say(5, "And CSV?", 2),
        say(6, AIMessage("Use pandas"), 5),
    ]


def thread_of(length: int) -> list[ConversationNode]:
    return [say(n, f"message {n}", n - 1 or None) for n in range(1, length + 1)]


class Page(HTMLParser):
    """The tags and the text of a page; checks that every tag is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.deepest = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "input"):
            self.open.append(tag)
            self.deepest = max(self.deepest, len(self.open))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_mermaid_of_nothing_is_an_empty_graph() -> None:
    assert to_mermaid([]) == "graph TD"


def test_mermaid_has_labels_then_edges_then_styles() -> None:
    nodes = [say(3, SystemMessage("Be brief"), 2), say(2, AIMessage("Hi"), 1), say(1, "Hello")]
    assert to_mermaid(nodes).splitlines() == [
        "graph TD",
        '    1["H1: Hello"]',
        '    2["A2: Hi"]',
        '    3["N3: Be brief"]',
        "    1 --> 2",
        "    2 --> 3",
        "    style 1 fill:#a7c7e7",
        "    style 2 fill:#cdb4f6",
        "    style 3 fill:#e0e0e0",
        "    classDef default color:#26282c",
    ]


def test_mermaid_turns_double_quotes_to_single_and_newlines_to_spaces() -> None:
    assert "1[\"H1: say 'x' y\"]" in to_mermaid([say(1, 'say "x"\ny')])


def test_mermaid_cuts_content_at_sixty_characters_or_as_told() -> None:
    assert f'"H1: {"x" * 60}"' in to_mermaid([say(1, "x" * 61)])
    assert '"H1: xx"' in to_mermaid([say(1, "x" * 61)], max_content_length=2)


@pytest.mark.parametrize("character", list("[]#<>`|{};\\&"))
def test_mermaid_writes_its_own_characters_as_entities(character: str) -> None:
    assert f'1["H1: a#{ord(character)};b"]' in to_mermaid([say(1, f"a{character}b")])


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("$5, $$x$$", "$5, #36;#36;x#36;#36;"),
        ("fa:fa-car", "fa#58;fa-car"),
        ("style:#000", "style#58;#35;000"),
        ("so: it is 10:30", "so: it is 10:30"),
    ],
)
def test_mermaid_takes_no_text_for_a_formula_an_icon_or_a_colour(text: str, drawn: str) -> None:
    assert f'"H1: {drawn}"' in to_mermaid([say(1, text)])


def test_mermaid_shows_summaries_when_asked() -> None:
    nodes = [say(1, "Long", summary=MessageSummary(title="Short", summary=".")), say(2, "Unsummarised", 1)]
    drawn = to_mermaid(nodes, show_summaries=True)
    assert '1["H1: Short"]' in drawn
    assert '2["H2: Unsummarised"]' in drawn
    assert '1["H1: Long"]' in to_mermaid(nodes)


@pytest.mark.parametrize("role", ["human", "user"])
def test_mermaid_of_one_role_links_to_the_nearest_shown_ancestor(role: str) -> None:
    drawn = to_mermaid(python_and_csv(), role=role).splitlines()
    assert [line.strip() for line in drawn if "-->" in line] == ["1 --> 3", "1 --> 5"]
    assert sum('["' in line for line in drawn) == 3


def test_mermaid_dashes_superseded_nodes() -> None:
    drawn = to_mermaid([say(1, "old", state=State.SUPERSEDED), say(2, "new")])
    assert "style 1 fill:#a7c7e7,stroke-dasharray:5 5" in drawn
    assert "    style 2 fill:#a7c7e7" in drawn.splitlines()


def test_mermaid_refuses_an_unknown_role_and_a_negative_length() -> None:
    with pytest.raises(InputError, match="'robot'"):
        to_mermaid([], role="robot")
    with pytest.raises(InputError, match="-1"):
        to_mermaid([], max_content_length=-1)
    with pytest.raises(InputError, match="max_edges is -1"):
        to_mermaid([], max_edges=-1)


@settings(max_examples=100)
@given(forests(), st.sampled_from([None, "human", "ai"]))
def test_mermaid_has_one_label_and_one_style_for_each_node(
    nodes: list[ConversationNode], role: str | None
) -> None:
    drawn = to_mermaid(nodes, role=role).splitlines()
    count = sum(role in (None, node.message.type) for node in nodes)
    labels = [line for line in drawn if line.endswith('"]')]
    assert len(labels) == sum(line.startswith("    style ") for line in drawn) == count
    assert all(line.count('"') == 2 for line in labels)
    assert len(drawn) == 1 + bool(count) + 2 * count + sum(" --> " in line for line in drawn)


def test_a_long_mermaid_diagram_shows_the_newest_messages_and_says_how_many_it_leaves_out() -> None:
    nodes = [say(n, f"message {n} " + "🍞" * 60, n - 1 or None) for n in range(1, 2001)]
    drawn = to_mermaid(nodes)
    assert 45_000 < len(drawn.encode("utf-16-le")) // 2 <= 50_000
    labels = [line for line in drawn.splitlines() if line.endswith('"]')]
    assert labels[0] == f'    earlier["{2001 - len(labels):,} earlier messages not shown"]'
    assert labels[-1].startswith('    2000["H2000: message 2000')


def test_a_mermaid_diagram_has_no_more_edges_than_mermaid_draws() -> None:
    thread = [say(n, "x", n - 1 or None) for n in range(1, 502)]
    assert to_mermaid(thread).count(" --> ") == 500
    drawn = to_mermaid([*thread, say(502, "x", 501)])
    assert drawn.count(" --> ") <= 500
    assert "earlier messages not shown" in drawn


@settings(max_examples=60)
@given(forests(), st.integers(0, 900), st.integers(0, 5))
def test_a_cut_mermaid_diagram_links_nothing_that_it_leaves_out(
    nodes: list[ConversationNode], size: int, most: int
) -> None:
    drawn = to_mermaid(nodes, max_text_size=size, max_edges=most).splitlines()
    edges = [line.split(" --> ") for line in drawn if " --> " in line]
    labels = {line.split("[")[0].strip() for line in drawn if line.endswith('"]')}
    assert {end.strip() for edge in edges for end in edge} <= labels
    assert len(edges) <= most
    assert len("\n".join(drawn).encode("utf-16-le")) // 2 <= max(size, 150)


LINE = re.compile(
    r"""graph\ TD
    |\ {4}(\d+|earlier|part\d+n\d+)\["[^"\[\]{}<>|`;&\\\n]*(\#\d+;[^"\[\]{}<>|`;&\\\n]*)*"\]
    |\ {4}(\d+\ -->|part\d+n\d+\ -\.->)\ \d+
    |\ {4}style\ (\d+|earlier|part\d+n\d+)\ fill:\#[0-9a-f]{6}(,stroke-dasharray:5\ 5)?
    |\ {4}classDef\ default\ color:\#[0-9a-f]{6}""",
    re.X,
)
"""The lines that Mermaid 11 was seen to draw as they are, whatever the messages say."""


@settings(max_examples=60)
@given(forests(), st.integers(500, 1_500))
def test_every_line_of_a_mermaid_diagram_has_a_form_that_mermaid_draws(
    nodes: list[ConversationNode], size: int
) -> None:
    diagrams = [
        to_mermaid(nodes),
        to_mermaid(nodes, max_text_size=size),
        to_mermaid(nodes, max_edges=2),
    ]
    for line in "\n".join(diagrams).split("\n"):
        assert LINE.fullmatch(line), line


def test_a_mermaid_diagram_without_limits_shows_everything() -> None:
    nodes = [say(n, "x" * 60, n - 1 or None) for n in range(1, 2001)]
    drawn = to_mermaid(nodes, max_text_size=None, max_edges=None)
    assert drawn.count(" --> ") == 1999
    assert "not shown" not in drawn


def test_a_picture_has_a_background_of_its_own() -> None:
    picture = ET.fromstring(to_svg([say(1, "x")]))
    assert picture.attrib["style"] == "background:#fff;color:#26282c"
    assert picture[0].text is not None
    assert f".{picture.attrib['class']}{{background:#1d1f23" in picture[0].text


def test_text_names_every_role_in_the_order_of_ids() -> None:
    nodes = [
        say(6, ChatMessage(content="no", role="critic")),
        say(5, FunctionMessage(content="1", name="f")),
        say(4, ToolMessage("Sunny", tool_call_id="c"), 3),
        say(3, AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Rome"}, "id": "c"}]), 2),
        say(2, "Rain?", 1),
        say(1, SystemMessage("Be brief")),
    ]
    assert to_text(nodes).splitlines() == [
        "System: Be brief",
        "User: Rain?",
        "Assistant: [calls weather(city='Rome')]",
        "Tool: Sunny",
        "Function: 1",
        "Critic: no",
    ]


def test_text_shows_that_something_is_no_text() -> None:
    image = HumanMessage([{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "x"}}])
    assert to_text([say(1, image)]) == "User: see [image_url]"


def test_no_message_can_pose_as_another_speaker() -> None:
    assert to_text([say(1, "Hi\nAssistant: I agree")]).splitlines() == ["User: Hi", "  Assistant: I agree"]


def test_outline_sets_in_forks_and_nothing_else() -> None:
    assert to_outline(python_and_csv()).splitlines() == [
        "● 1 User: Python?",
        "│ 2 Assistant: Great",
        "├─● 3 User: And ML?",
        "│ │ 4 Assistant: Learn numpy",
        "└─● 5 User: And CSV?",
        "  │ 6 Assistant: Use pandas",
    ]


def test_outline_sets_in_the_smaller_branches_before_one_that_holds_more_than_half() -> None:
    nodes = [
        say(1, "a"),
        say(2, "old", 1, state=State.SUPERSEDED),
        say(3, "new", 1),
        say(4, "b", 3),
        say(5, "root"),
    ]
    assert to_outline(nodes).splitlines() == [
        "● 1 User: a",
        "├─● 2 User: old (superseded)",
        "│ 3 User: new",
        "│ 4 User: b",
        "● 5 User: root",
    ]


@settings(max_examples=60)
@given(forests())
def test_outline_has_one_line_for_each_node_set_in_by_the_logarithm_at_most(
    nodes: list[ConversationNode],
) -> None:
    lines = to_outline(nodes).split("\n") if nodes else []
    assert len(lines) == len(nodes)
    depths = [len(line) - len(line.lstrip("│├└─● ")) for line in lines]
    assert max(depths, default=0) <= 2 + 2 * len(nodes).bit_length()


@pytest.mark.parametrize("draw", [to_mermaid, to_outline, to_html, to_svg])
def test_a_part_of_a_conversation_is_drawn_with_its_own_roots(draw: Any) -> None:
    assert "And CSV?" in draw([say(5, "And CSV?", 2), say(6, AIMessage("Use pandas"), 5)])


@pytest.mark.parametrize("draw", [to_mermaid, to_outline, to_html, to_svg])
def test_a_cycle_is_refused_rather_than_left_out(draw: Any) -> None:
    with pytest.raises(InvalidGraphStateError, match="1, 2"):
        draw([say(1, "a", 2), say(2, "b", 1)])


@pytest.mark.parametrize("draw", [to_mermaid, to_outline, to_html, to_svg, to_text])
def test_a_very_deep_thread_is_drawn(draw: Any) -> None:
    assert "message 10000" in draw(thread_of(10_000))


@settings(max_examples=60)
@given(forests())
def test_page_is_well_formed_and_shows_each_message_once(nodes: list[ConversationNode]) -> None:
    page = Page(to_html(nodes, title=HOSTILE))
    ids = [attributes["id"] for tag, attributes in page.tags if tag == "article"]
    assert sorted(map(str, ids)) == sorted(f"n{node.id}" for node in nodes)
    assert page.open == []


def test_page_shows_hostile_text_and_runs_none_of_it() -> None:
    hostile = ChatMessage(content=HOSTILE, role='"><script>')
    summary = MessageSummary(title=HOSTILE, summary=HOSTILE)
    page = Page(to_html([say(1, hostile, summary=summary), say(2, HOSTILE * 20, 1)], title=HOSTILE))
    tags = [tag for tag, _ in page.tags]
    assert "img" not in tags
    assert tags.count("script") == tags.count("style") == 1
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert "<script>alert(1)</script>" in page.text


def test_page_loads_nothing() -> None:
    page = Page(to_html(python_and_csv()))
    loading = {"link", "img", "iframe", "object", "embed", "base", "form"}
    assert not loading & {tag for tag, _ in page.tags}
    assert not [attributes for _, attributes in page.tags if "src" in attributes]
    assert all(str(attributes["href"]).startswith("#") for tag, attributes in page.tags if tag == "a")
    [policy] = [attributes["content"] for _, attributes in page.tags if "http-equiv" in attributes]
    assert "default-src 'none'" in str(policy)
    assert "unsafe" not in str(policy)
    assert "url(" not in page.text
    assert "@import" not in page.text


def test_page_draws_a_thread_that_never_forks_flat() -> None:
    assert Page(to_html(thread_of(500))).deepest == Page(to_html(thread_of(80))).deepest


def test_page_stays_shallow_when_every_answer_was_regenerated() -> None:
    nodes = [say(1, "start")]
    for n in range(2, 1000, 2):
        nodes += [say(n, "old", max(n - 1, 1), state=State.SUPERSEDED), say(n + 1, "new", max(n - 1, 1))]
    assert Page(to_html(nodes)).deepest <= Page(to_html(thread_of(2))).deepest + 1


def links_of(page: str) -> list[dict[str, str | None]]:
    """The links of the list of threads."""
    return [attributes for tag, attributes in Page(page).tags if tag == "a" and "data-tip" in attributes]


def test_page_lists_threads_by_last_use_with_title_and_length() -> None:
    nodes = [replace(node, timestamp=datetime(2024, 1, 9 - node.id, tzinfo=UTC)) for node in python_and_csv()]
    page = to_html(nodes)
    assert [(link["href"], link["data-tip"]) for link in links_of(page)] == [("#n1", "4"), ("#n5", "6")]
    assert "<b>Python?</b><span class=count>4</span>" in page
    assert "<b>And CSV?</b><span class=count>4</span>" in page
    assert "6 messages in 2 threads" in page


def test_a_system_message_alone_is_no_thread_of_a_page() -> None:
    page = to_html([say(1, SystemMessage("Be brief")), say(2, "Hello")])
    assert [link["data-tip"] for link in links_of(page)] == ["2"]
    assert "1 message in 1 thread<" in page


def test_page_names_a_thread_by_its_given_title_or_by_the_summary_of_its_first_message() -> None:
    given = say(1, "Hello", placement=Placement("starts a new thread", title="Rye bread"))
    summarized = say(2, "Hi", summary=MessageSummary(title="Tea", summary="."))
    page = to_html([given, summarized])
    assert "<h2>Rye bread</h2>" in page
    assert "<h2>Tea</h2>" in page


def test_page_names_the_threads_that_were_considered() -> None:
    placement = Placement("shares csv", ((2, 0.75), (9, 0.2), (None, 0.05)))
    page = to_html(
        [say(1, "How do I read csv?"), say(2, AIMessage("So"), 1), say(3, "x", 2, placement=placement)]
    )
    assert (
        'shares csv; <a href="#n2">How do I read csv?</a> (2) 75 %, message 9 20 %, new thread 5 %</div>'
        in page
    )


def test_page_closes_the_branches_of_several_roots_with_more_than_200_messages() -> None:
    other = [say(1_001, "other"), say(1_002, "other", 1_001)]
    assert '<details class="branch root" open>' in to_html([*thread_of(198), *other])
    assert '<details class="branch root">' in to_html([*thread_of(199), *other])
    assert '<details class="branch root" open>' in to_html(thread_of(300)), "a single thread is open"


def test_page_renders_answers_and_explains_its_words() -> None:
    nodes = [
        say(1, "**Why?**"),
        say(2, AIMessage("**So.**\n\n```python\nx = 1\n```"), 1),
        say(3, AIMessage("Because."), 1, state=State.SUPERSEDED, superseded_by=2),
        say(4, AIMessage("A summary."), 1, state=State.ASIDE),
    ]
    page = to_html(nodes, active=2)
    assert '<p class="plain">**Why?**</p>' in page
    assert "<p><strong>So.</strong></p>" in page
    assert '<span class="number">1</span>' in page
    for word in ("active", "aside", "replaced"):
        assert f'title="{WORDS[word]}"' in page


def test_page_names_the_branches_of_a_root() -> None:
    page = to_html(
        [say(1, "Bake bread?"), say(2, AIMessage("Yes."), 1), say(3, "Salt?", 2), say(4, "Rye?", 2)]
    )
    assert "<b>Bake bread?</b>" in page
    assert "<b>Rye?</b>" in page
    assert "branch of Bake bread?</small>" in page


def test_a_lane_is_used_again_when_its_thread_has_ended() -> None:
    assert lanes_of([None, None, 1, 2, None]) == [0, 1, 0, 1, 0]
    assert lanes_of([None, 1, 1, 2, 3]) == [0, 0, 1, 0, 1]


def lanes_of(parents: list[int | None]) -> list[int]:
    layout = Layout([say(n, "x", parent) for n, parent in enumerate(parents, 1)])
    lanes = layout.lanes()
    return [lanes[layout.strand_of[n]] for n in range(1, len(parents) + 1)]


@settings(max_examples=60)
@given(forests())
def test_two_threads_in_one_lane_do_not_overlap(nodes: list[ConversationNode]) -> None:
    layout = Layout(nodes)
    taken: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for strand, lane in enumerate(layout.lanes()):
        ids = [node.id for node in nodes if layout.strand_of[node.id] == strand]
        taken[lane].append((min(ids), max(ids)))
    for spans in taken.values():
        assert all(one[1] < other[0] for one, other in pairwise(sorted(spans)))


def test_page_marks_the_active_node_and_its_thread() -> None:
    page = to_html(python_and_csv(), active=6)
    assert [link["data-tip"] for link in links_of(page) if link.get("aria-current")] == ["6"]
    assert '<article id="n6" class="assistant here">' in page


def test_page_strikes_what_was_superseded_and_says_by_what() -> None:
    page = to_html([say(1, "old", state=State.SUPERSEDED, superseded_by=2), say(2, "new")])
    assert '<article id="n1" class="user replaced">' in page
    assert "replaced by 2" in page


def test_page_folds_long_messages_and_keeps_all_of_them() -> None:
    text = "word " * 400
    assert "2,000 characters" in to_html([say(1, text)])
    assert text in to_html([say(1, text)])


def test_page_shows_when_a_message_was_said() -> None:
    assert ">2024-01-15 10:30</time>" in to_html(
        [say(1, "x", timestamp=datetime(2024, 1, 15, 10, 30, tzinfo=UTC))]
    )
    assert "<time" not in to_html([say(1, "x")])


@settings(max_examples=60)
@given(forests())
def test_picture_is_well_formed_and_has_one_row_for_each_node(nodes: list[ConversationNode]) -> None:
    picture = ET.fromstring(to_svg(nodes))
    names = [element.tag.rpartition("}")[2] for element in picture.iter()]
    assert names.count("circle") == names.count("title") == len(nodes)
    assert set(names) <= {"svg", "style", "g", "path", "circle", "text", "title"}


def test_drawings_hold_no_character_that_xml_forbids() -> None:
    nodes = [say(1, "a\x00b\x1bc\ufffed\uffff", summary=MessageSummary(title="\x01", summary=""))]
    assert ET.fromstring(to_svg(nodes)) is not None
    assert not {"\x00", "\x01", "\x1b", "\ufffe", "\uffff"} & set(to_html(nodes, title="\x00"))


def test_picture_gives_each_thread_a_column_and_each_message_a_row() -> None:
    circles = [e for e in ET.fromstring(to_svg(python_and_csv())).iter() if e.tag.endswith("circle")]
    assert [circle.get("cx") for circle in circles] == ["14", "14", "14", "14", "30", "30"]
    assert [circle.get("cy") for circle in circles] == ["18", "42", "66", "90", "114", "138"]


def test_picture_colours_by_thread() -> None:
    circles = [e for e in ET.fromstring(to_svg(python_and_csv())).iter() if e.tag.endswith("circle")]
    colors = [circle.get("stroke") for circle in circles]
    assert len(set(colors[:4])) == len(set(colors[4:])) == 1
    assert colors[0] != colors[4]


def test_picture_of_a_long_conversation_shows_the_newest_and_counts_the_rest() -> None:
    picture = to_svg(thread_of(1_234))
    assert picture.count("<circle") == 200
    assert "1,034 earlier messages not shown" in picture
    assert "message 1234" in picture
    assert "not shown" not in to_svg(thread_of(200))


def test_picture_rings_the_active_node() -> None:
    assert to_svg(python_and_csv(), active=6).count('r="9"') == 1


@pytest.mark.parametrize("draw", [to_html, to_svg])
def test_an_active_node_that_is_not_there_is_refused(draw: Any) -> None:
    with pytest.raises(NodeNotFoundError, match="9"):
        draw(thread_of(2), active=9)


@pytest.mark.parametrize("draw", [to_mermaid, to_html, to_svg, to_outline, to_text])
def test_half_a_character_does_not_keep_a_drawing_from_a_file(draw: Any) -> None:
    summary = MessageSummary(title="so\ud83d", summary="")
    assert b"so" in draw([say(1, "so\ud83d", summary=summary), say(2, "and so\udc00 on", 1)]).encode()


@pytest.mark.parametrize("draw", [to_html, to_svg, to_outline, to_text])
def test_nothing_can_be_drawn(draw: Any) -> None:
    assert isinstance(draw([]), str)


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_each_colour_of_a_picture_of_the_docs_has_one_for_dark_pages(path: Path) -> None:
    picture = path.read_text(encoding="utf-8")
    _, found, dark = picture.partition("prefers-color-scheme:dark")
    assert found
    plain = [tag for tag in re.findall("<[^>]*>", picture) if "class=" not in tag]
    colors = {color for tag in plain for color in re.findall('(?:fill|stroke)="(#[0-9a-f]{6})"', tag)}
    assert {color for color in colors if f'"{color}"]' not in dark.partition("</style>")[0]} == set()
