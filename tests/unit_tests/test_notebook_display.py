"""Displays in notebooks: messages, hits, lists of conversations and threads, summaries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from IPython.lib.pretty import pretty
from langchain_core.messages import AIMessage, HumanMessage

from langchain_threadmem import ConversationNode, MemorySystem, MemoryUnit, MessageSummary, Recollection
from langchain_threadmem.long_term.lists.verbs import ConversationInfo, Page, ThreadInfo
from langchain_threadmem.messages.display import Displayed
from langchain_threadmem.recall.results import Hits, Why
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.node import Placement

Wrap = Callable[..., Any]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>\x1b[31m \u202e $x$"


def values(text: str) -> list[Displayed]:
    """A value of each class that notebooks display, with a text in each field."""
    summary = MessageSummary(title=text, summary=text)
    node = ConversationNode(7, HumanMessage(text), 6, summary, NOON, placement=Placement(text))
    return [
        node,
        Recollection(node, 0.5, (node,), Why(terms=(text,)), text),
        ConversationInfo(text, text, text, 2, NOON, NOON, {}, NOON, text),
        ThreadInfo(7, 1, text, text, 2, NOON, NOON, True, summary),
        MemoryUnit("id", text, text, NOON, NOON, 1, text, title=text, children_ids=("a",), stale=True),
    ]


KINDS = [type(value).__name__ for value in values("")]


@pytest.mark.parametrize("number", range(len(KINDS)), ids=KINDS)
def test_a_display_shows_hostile_text_and_runs_none_of_it(number: int) -> None:
    value = values(HOSTILE)[number]
    for shown in (value._repr_html_(), pretty([value])):
        assert not {"\x1b", "\u202e"} & set(shown)
        assert "\\x1b[31m" in shown
    assert "<script" not in value._repr_html_()
    assert "&lt;script&gt;alert(1)" in value._repr_html_()
    assert 'class="tex2jax_ignore mathjax_ignore"' in value._repr_html_()


@pytest.mark.parametrize("number", range(len(KINDS)), ids=KINDS)
def test_a_display_cuts_long_text(number: int) -> None:
    value = values("x" * 100_000)[number]
    assert len(value._repr_html_()) < 6_000
    assert len(pretty(value)) <= 600


def test_a_node_is_shown_with_its_place_summary_and_state() -> None:
    call = {"name": "weather", "args": {"city": "Rome"}, "id": "1"}
    node = ConversationNode(3, AIMessage("", tool_calls=[call]), 2, state=State.SUPERSEDED)
    for text in ("<td", ">Assistant<", "[calls weather(city=&#x27;Rome&#x27;)]", ">superseded<", ">below<"):
        assert text in node._repr_html_()
    assert ">summary<" not in node._repr_html_()
    assert pretty([node]) == "[3 Assistant: [calls weather(city='Rome')]]"


def test_an_answer_is_rendered_with_styles_of_its_own() -> None:
    shown = ConversationNode(1, AIMessage("**Rye**\n\n```python\nx = 1\n```"))._repr_html_()
    assert "<strong>Rye</strong>" in shown
    assert '<span style="color:#c0631c">1</span>' in shown
    assert "class=" not in shown.replace('class="tex2jax_ignore mathjax_ignore"', "")


def test_a_page_is_shown_as_a_table_that_names_its_cursor() -> None:
    infos = [ConversationInfo(name, "Rye bread", "Hi", 1_000, NOON, NOON) for name in ("a", "b")]
    shown = Page(infos, "9 9")._repr_html_()
    assert shown.count("<tr>") == 3
    assert ">1,000<" in shown
    assert "More: cursor=&#x27;9 9&#x27;" in shown
    assert "More" not in Page(infos, None)._repr_html_()
    assert "nothing to list" in Page([], None)._repr_html_()
    assert pretty(infos[0]) == "a: Rye bread (1,000 messages, last use 2026-03-01 12:00)"


def test_a_summary_is_shown_with_its_title_time_and_size() -> None:
    unit = MemoryUnit(
        "a", "They bake.", "ai-summary", NOON, NOON, 1, "talk", title="Bread", children_ids=("x", "y")
    )
    for text in (">Bread<", ">They bake.<", ">2 units<", ">2026-03-01 12:00<", ">talk<"):
        assert text in unit._repr_html_()
    assert pretty(unit) == "ai-summary: Bread: They bake."


def test_hits_are_a_list_with_scores_and_reasons(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system.conversation("talk"))
    verb.append("How do I feed rye?", "With water.")
    hits = verb.recall("rye")
    assert isinstance(hits, Hits)
    assert hits == list(hits)
    shown = hits._repr_html_()
    for text in (">score<", ">talk<", ">How do I feed rye?<", ">why<", "shares rye"):
        assert text in shown
    assert "no hits" in verb.recall("")._repr_html_()


def test_lists_of_conversations_and_threads_are_displayed(system: MemorySystem, verbs: Wrap) -> None:
    verbs(memory := system.conversation("talk")).append("How do I feed rye?", "With water.")
    assert ">How do I feed rye?<" in system.list_conversations()._repr_html_()
    assert ">yes<" in memory.list_threads()._repr_html_()
