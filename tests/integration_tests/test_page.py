"""The HTML page in Chromium: no request, no error, folds, search, keyboard, map, dark, narrow."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_threadmem.formats.exporters.page import to_html
from langchain_threadmem.tree.node import ConversationNode, Placement, State

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs the program chromium")
SIZES = (20, 200, 5_000)
LONG, TABLE = "many words " * 12, "|a|b|\n|-|-|\n|1|2|"


def conversation(size: int) -> list[ConversationNode]:
    """Threads of at most 40 messages, in turn; the third answer of each thread was regenerated."""
    nodes: list[ConversationNode] = []
    tips: list[list[int]] = [[] for _ in range(max(2, size // 40))]
    while len(nodes) < size:
        topic = len(nodes) // 2 % len(tips)
        thread, number = tips[topic], len(nodes) + 1
        parent = thread[-1] if thread else None
        why = Placement("shares topic", ((parent, 0.6), (number, 0.4))) if parent else None
        text = f"Question {number} about topic{topic} <b>" + "and more " * (100 * (number == 3))
        nodes.append(ConversationNode(number, HumanMessage(text), parent, placement=why))
        code = f"```python\nx = {number}  # {LONG}\n```"
        answer = f"**Answer** {number + 1}: `topic{topic}`\n\n{code}\n\n{TABLE}"
        nodes.append(ConversationNode(number + 1, AIMessage(answer), number))
        thread.append(number + 1)
    nodes[3] = ConversationNode(4, AIMessage("Worse answer"), 3, state=State.SUPERSEDED, superseded_by=4)
    return nodes[:size]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder = tmp_path_factory.mktemp("pages")
    for size in SIZES:
        nodes = conversation(size)
        (folder / f"{size}.html").write_text(
            to_html(nodes, title="Talk", active=nodes[-1].id), encoding="utf-8"
        )
    return {size: folder / f"{size}.html" for size in SIZES}


class Opened:
    """A page in Chromium; `trouble` are its requests to anything else, and its errors."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.trouble: list[str] = []
        self.context = browser.new_context(viewport={"width": 1200, "height": 700}, offline=True)
        self.page = self.context.new_page()
        self.page.emulate_media(**options)
        self.page.on("console", lambda message: self.trouble.append(message.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("request", lambda request: self.trouble.append(request.url))
        self.page.goto(path.as_uri())
        assert self.trouble.pop(0) == path.as_uri()

    def focused(self) -> str:
        """The id, or else the text, of the element with the focus."""
        found: str = self.page.evaluate("document.activeElement.id || document.activeElement.textContent")
        return found

    def sees(self, node: int) -> bool:
        """Whether the beginning of a message is in view, below the bar."""
        box = self.page.locator(f"#n{node}").bounding_box()
        return box is not None and 40 <= box["y"] < self.page.viewport_size["height"]


@pytest.fixture(params=[200, 5_000])
def opened(request: pytest.FixtureRequest, browser: Any, pages: dict[int, Path]) -> Iterator[Opened]:
    found = Opened(browser, pages[request.param])
    yield found
    found.context.close()
    assert found.trouble == []


@pytest.fixture
def small(browser: Any, pages: dict[int, Path]) -> Iterator[Opened]:
    found = Opened(browser, pages[20])
    yield found
    found.context.close()
    assert found.trouble == []


def test_a_thread_of_the_list_opens_at_its_first_message(opened: Opened) -> None:
    link = opened.page.locator("#threads a").last
    first = int(link.get_attribute("href")[2:])
    link.click()
    opened.page.locator(f"#n{first}:focus").wait_for()
    assert opened.sees(first)
    assert link.get_attribute("aria-current") == "true"


def test_a_click_on_the_map_goes_to_the_message(opened: Opened) -> None:
    # As in page.js: a row of 12 to 22 pixels for each message.
    height = opened.page.locator("canvas").bounding_box()["height"]
    pitch = max(12, min(22, (height - 24) / opened.page.locator("article").count()))
    opened.page.locator("canvas").click(position={"x": 20, "y": 14 + 5 * pitch})
    opened.page.locator("#n6:focus").wait_for()
    assert opened.sees(6)


def test_the_search_finds_messages_and_enter_goes_to_the_newest(opened: Opened) -> None:
    opened.page.keyboard.press("/")
    assert opened.focused() == "search"
    # The page searches 80 ms after the last input: `fill` is one input, so no hits of a part are shown.
    opened.page.locator("#search").fill("QUESTION 19 about <b>")
    opened.page.locator("#hits a").first.wait_for()
    assert "Question 19" in opened.page.locator("#hits a").last.inner_text()
    assert " found" in opened.page.locator("#status").inner_text()
    newest = opened.page.locator("#hits a").first.get_attribute("href")[1:]
    opened.page.keyboard.press("Enter")
    opened.page.locator(f"#{newest}:focus").wait_for()
    assert opened.sees(int(newest[1:]))


def test_an_answer_is_rendered_with_a_table_and_coloured_code(small: Opened) -> None:
    answer = small.page.locator("#n2 .text")
    assert answer.locator("strong").inner_text() == "Answer"
    assert answer.locator("td").all_inner_texts() == ["1", "2"]
    colors = answer.locator("pre .number, pre code").evaluate_all(
        "all => all.map(e => getComputedStyle(e).color)"
    )
    assert len(set(colors)) == 2


def test_a_question_that_was_found_is_shown_with_its_answer(small: Opened) -> None:
    small.page.locator("#search").fill("question 19")
    small.page.locator("#hits small").first.wait_for()
    assert small.page.locator("#hits small").first.inner_text().startswith("Assistant: Answer 20: topic1")


def test_a_long_single_thread_opens_with_its_messages(browser: Any, tmp_path: Path) -> None:
    nodes = [ConversationNode(n, HumanMessage(f"Message {n}"), n - 1 or None) for n in range(1, 5_001)]
    (tmp_path / "one.html").write_text(to_html(nodes, active=5_000), encoding="utf-8")
    found = Opened(browser, tmp_path / "one.html")
    assert found.sees(1)
    assert found.page.locator("#n5 small", has_text="active").count() == 0
    assert "continues here" in found.page.locator("#n5000 small", has_text="active").get_attribute("title")
    found.context.close()
    assert found.trouble == []


def test_a_note_of_a_program_is_named_and_no_thread_of_messages(browser: Any, tmp_path: Path) -> None:
    nodes = [
        ConversationNode(1, HumanMessage("Keep bees."), state=State.ASIDE),
        ConversationNode(2, HumanMessage("When do I feed them?")),
    ]
    (tmp_path / "note.html").write_text(to_html(nodes, active=2), encoding="utf-8")
    found = Opened(browser, tmp_path / "note.html")
    word = found.page.locator(".branch > summary small").first
    assert (word.inner_text(), word.get_attribute("title")[:19]) == ("aside", "A note of a program")
    found.context.close()


def test_a_code_line_is_not_cut(small: Opened) -> None:
    small.page.set_viewport_size({"width": 390, "height": 700})
    pre = small.page.locator("#n2 pre")
    assert pre.evaluate("e => e.scrollWidth <= e.clientWidth")


def test_a_long_conversation_is_closed_at_first_and_opened_by_one_button(opened: Opened) -> None:
    page, branch = opened.page, opened.page.locator(".branch").first
    is_open = page.locator("article").count() <= 200
    assert branch.evaluate("fold => fold.open") is is_open
    playwright.expect(page.locator("#n1")).to_be_visible(visible=is_open)
    page.locator("#folds").click()
    playwright.expect(page.locator("#n1")).to_be_visible(visible=not is_open)


def test_arrow_keys_move_between_messages_and_open_branches(small: Opened) -> None:
    small.page.locator(".branch > summary").first.focus()
    small.page.keyboard.press("ArrowDown")
    assert small.focused() == "n1"
    small.page.keyboard.press("ArrowDown")
    small.page.keyboard.press("ArrowUp")
    assert small.focused() == "n1"
    small.page.keyboard.press("ArrowLeft")
    small.page.keyboard.press("ArrowLeft")
    playwright.expect(small.page.locator("#n1")).to_be_hidden()
    small.page.keyboard.press("ArrowDown")
    assert "opic1" in small.focused()
    small.page.keyboard.press("ArrowUp")
    small.page.keyboard.press("Enter")
    playwright.expect(small.page.locator("#n1")).to_be_visible()


def test_enter_unfolds_a_long_message(small: Opened) -> None:
    small.page.goto(small.page.url + "#n3")
    small.page.locator("#n3:focus").wait_for()
    playwright.expect(small.page.locator("#n3 .text")).to_be_hidden()
    small.page.keyboard.press("Enter")
    playwright.expect(small.page.locator("#n3 .text")).to_be_visible()


def test_arrow_keys_move_in_the_list_of_threads(small: Opened) -> None:
    small.page.keyboard.press("/")
    small.page.keyboard.press("ArrowDown")
    newest = small.focused()
    small.page.keyboard.press("ArrowDown")
    assert small.focused() != newest
    small.page.keyboard.press("ArrowUp")
    small.page.keyboard.press("ArrowUp")
    assert small.focused() == "search"


def test_only_the_selected_thread_is_shown(small: Opened) -> None:
    small.page.locator("#threads a[href='#n1']").click()
    small.page.locator("#only").check()
    playwright.expect(small.page.locator("#n1")).to_be_visible()
    playwright.expect(small.page.locator("#n3")).to_be_hidden()
    # A message outside the thread selects its own thread.
    small.page.locator("#threads a[href='#n3']").click()
    playwright.expect(small.page.locator("#n3")).to_be_visible()
    playwright.expect(small.page.locator("#n1")).to_be_hidden()


def test_a_screen_reader_is_told_landmarks_headings_and_what_is_open(small: Opened) -> None:
    session = small.context.new_cdp_session(small.page)
    found = session.send("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in found if not node["ignored"]]
    assert {"banner", "search", "navigation", "main", "complementary"} <= set(roles)
    assert roles.count("article") == 20
    headings = [node["name"]["value"] for node in found if node["role"]["value"] == "heading"]
    assert {"Talk", "Threads by last use", "Question 1 about topic0", "User", "Assistant"} <= set(headings)
    expanded = [
        [value["value"]["value"] for value in node["properties"] if value["name"] == "expanded"]
        for node in found
        if node.get("role", {}).get("value") == "DisclosureTriangle"
    ]
    # A long message below the window is not described yet.
    assert expanded.count([True]) == 3


def test_the_page_is_dark_where_the_system_is_dark(browser: Any, pages: dict[int, Path]) -> None:
    colors = []
    for scheme in ("light", "dark"):
        found = Opened(browser, pages[20], color_scheme=scheme)
        colors.append(found.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        shot = found.page.screenshot()
        colors.append(shot)
        found.context.close()
    assert colors[0] == "rgb(247, 247, 245)"
    assert colors[2] == "rgb(23, 24, 27)"
    assert colors[1] != colors[3]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_page_does_not_scroll_sideways(opened: Opened, scheme: str) -> None:
    page = opened.page
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 360, "height": 700})
    page.reload()
    opened.trouble.remove(page.url)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    playwright.expect(page.locator("#threads")).to_be_hidden()
    page.locator("#list > summary").click()
    playwright.expect(page.locator("#threads a").first).to_be_visible()


def test_without_scripts_the_page_shows_all_messages(browser: Any, pages: dict[int, Path]) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages[5_000].as_uri() + "#n4990")
    playwright.expect(page.locator("#n4990")).to_be_visible()
    playwright.expect(page.locator("#search")).to_be_hidden()
    context.close()
