"""The live page in Chromium, served by the command to one process while this process writes."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_threadmem import ConversationNode, MemorySystem
from langchain_threadmem.engine.flow import run
from langchain_threadmem.tree import revise

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
SIZES = (20, 200, 5000)
IMPORTS = Path(__file__).parents[1] / "data" / "imports"
TOPICS = ("bread", "csv", "figs", "taxes")
ANSWER = "**So:**\n\n```python\nx = 1  # one\n```\n\n|a|b|\n|-|-|\n|1|2|\n\n[link](javascript:alert(1)) "
"""The beginning of an answer; its link is not of the web."""
START = datetime(2026, 1, 1, tzinfo=UTC)


def nodes_of(number: int) -> list[ConversationNode]:
    """Turns of four threads in turn; the texts are markup."""
    ends: dict[str, int] = {}
    nodes = []
    for turn in range(number // 2):
        topic, said = TOPICS[turn % len(TOPICS)], START + timedelta(minutes=turn)
        asked = HumanMessage(f"<b>{topic}</b>: question {turn}?", id=f"h{turn}")
        answered = AIMessage(f"{ANSWER}{topic}: <img src=x onerror=alert(1)> {turn}", id=f"a{turn}")
        nodes.append(ConversationNode(2 * turn + 1, asked, ends.get(topic), timestamp=said))
        nodes.append(ConversationNode(2 * turn + 2, answered, 2 * turn + 1, timestamp=said))
        ends[topic] = 2 * turn + 2
    return nodes


class Served(NamedTuple):
    """A running server, the URL that it has printed, and the memory that it serves."""

    url: str
    system: MemorySystem


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    file = tmp_path_factory.mktemp("view") / "memory.db"
    with MemorySystem(file, embeddings=False) as system:
        for size in SIZES:
            memory = system.conversation(f"of {size}")
            run(revise.restore(memory._conversation, nodes_of(size), None), system.runtime)
        server = subprocess.Popen(
            [sys.executable, "-m", "langchain_threadmem", "view", str(file), "--no-browser"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert server.stdout is not None
        try:
            yield Served(server.stdout.readline().strip(), system)
        finally:
            server.send_signal(signal.SIGINT)
            _, errors = server.communicate(timeout=30)
        assert (server.returncode, errors) == (0, "")


class Tab:
    """A tab of a browser that records requests, and errors of the page."""

    def __init__(self, browser: Any, served: Served, size: int, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": 1300, "height": 800}, **options)
        self.context.set_default_timeout(10_000)
        self.page = self.context.new_page()
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: self.problems.append(dialog.message))
        self.page.on("console", lambda line: self.problems.append(line.text))
        self.page.on("request", self._request)
        self._origin = served.url.split("?")[0]
        self.page.goto(f"{served.url}#conversation=of {size}")
        self.page.locator(f"#row-{size}").wait_for()

    def _request(self, request: Any) -> None:
        if not request.url.startswith(self._origin):
            self.problems.append(request.url)

    def selects(self, node: int) -> None:
        playwright.expect(self.page.locator(".row[aria-selected=true]")).to_have_id(f"row-{node}")

    def close(self) -> None:
        self.context.close()
        assert self.problems == []


@pytest.mark.parametrize("size", [20, 5000])
def test_the_page_shows_moves_and_follows_messages(served: Served, browser: Any, size: int) -> None:
    tab = Tab(browser, served, size)
    page, memory = tab.page, served.system.conversation(f"of {size}")
    assert "token" not in page.url
    page.locator(".row .text", has_text="question").first.wait_for()
    assert page.locator("#counts").inner_text() == f"{size:,} messages in 4 threads"
    assert page.locator(".row").count() < 60

    # Up, to the parent, to its answer, to the first and the last message.
    tab.selects(size)
    for key, row in (("ArrowUp", size - 1), ("ArrowLeft", size - 8), ("ArrowRight", size - 1)):
        page.keyboard.press(key)
        tab.selects(row)
    page.keyboard.press("Home")
    tab.selects(1)
    assert page.locator("#map").get_attribute("aria-activedescendant") == "row-1"
    page.keyboard.press("End")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.locator("#panel .message").wait_for()
    assert page.locator("#panel .message").inner_text().startswith("<b>")

    # The newest question is moved to a new thread, and back.
    page.keyboard.press("Escape")
    page.keyboard.press("m")
    page.locator("dialog[open] .choice").first.wait_for()
    page.keyboard.type("new thread")
    page.keyboard.press("Enter")
    page.locator("#status button").wait_for()
    assert len(memory.roots()) == 5
    page.locator("#status button").click()
    page.locator(f"#row-{size + 2}").wait_for()
    assert len(memory.roots()) == 4

    # This process writes, and the page of the other process shows it.
    node = memory.append("Is it live?", "Yes.")[0]
    page.locator(f"#row-{node.id}", has_text="Is it live?").wait_for(timeout=10_000)
    tab.close()


def test_an_answer_is_rendered_and_runs_nothing(served: Served, browser: Any) -> None:
    tab = Tab(browser, served, 20)
    tab.page.keyboard.press("Home")
    tab.page.locator("#row-2").click()
    answer = tab.page.locator("#panel .message", has_text="So:")
    answer.wait_for()
    assert answer.locator("strong").inner_text() == "So:"
    assert answer.locator("td").all_inner_texts() == ["1", "2"]
    assert answer.locator("pre .number").inner_text() == "1"
    assert answer.locator("img, script, a").count() == 0
    assert "<img src=x" in answer.inner_text()
    tab.close()


def test_words_have_a_sentence_and_the_text_beside_the_panel_is_readable(
    served: Served, browser: Any
) -> None:
    tab = Tab(browser, served, 20)
    page = tab.page
    page.set_viewport_size({"width": 1280, "height": 800})
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.locator("#panel .message").wait_for()
    widths = page.locator(".row .text").evaluate_all("all => all.map(e => e.getBoundingClientRect().width)")
    assert min(widths) >= 300
    assert page.locator("#panel .facts .word", has_text="active").get_attribute("title") == (
        "The next message continues here."
    )
    assert page.locator("#threads .word", has_text="active").get_attribute("title")
    tab.close()


def test_a_thread_keeps_its_colour_and_branches_have_names(served: Served, browser: Any) -> None:
    memory = served.system.conversation("kitchen", node_selector=_by_place)
    for text in ("Bake bread 0", "Plant figs 0", "Which flour 2", "Which salt 2", "Which oven 2"):
        memory.append(text, "Yes.")
    tab = Tab(browser, served, 20)
    page = tab.page
    page.locator("#conversations .item", has_text="Bake bread").click()
    page.locator("#threads .item", has_text="Which salt 2").wait_for()
    page.locator("#row-9", has_text="Which oven 2").wait_for()
    colors = {
        id: page.locator(f"#row-{id}").evaluate("e => e.style.getPropertyValue('--hue')") for id in (1, 3, 7)
    }
    assert len(set(colors.values())) == 3
    names = page.locator("#threads .item b > span:not(.word)").all_inner_texts()
    assert len(set(names)) == len(names)
    assert {"Which salt 2", "Which oven 2"} <= set(names)
    assert page.locator("#threads .word", has_text="branch of Bake bread").count() == 2
    moved = memory.place(7, 4)
    page.locator(f"#row-{moved.id}").wait_for()
    after = {
        id: page.locator(f"#row-{id}").evaluate("e => e.style.getPropertyValue('--hue')") for id in (1, 3)
    }
    assert after == {id: colors[id] for id in after}
    tab.close()


def test_notes_of_programs_are_hidden_and_named(served: Served, browser: Any) -> None:
    served.system.import_file(IMPORTS / "chatgpt" / "one-c-usercontext.json")
    tab = Tab(browser, served, 20)
    page = tab.page
    page.goto(f"{served.url}#conversation=c-usercontext")
    page.locator("#row-5").wait_for()
    hidden = page.locator("label", has_text="3 hidden messages")
    assert "notes of programs" in hidden.get_attribute("title")
    hidden.click()
    note = page.locator("#row-2", has_text="keeps bees")
    note.wait_for()
    assert note.locator(".word").all_inner_texts() == ["aside"]
    assert "note of a program" in note.locator(".word").get_attribute("title")
    assert note.locator(".topic").count() == 0
    assert note.locator(".text").evaluate("e => getComputedStyle(e).textDecorationLine") == "none"
    note.click()
    text = page.locator("#panel .message", has_text="keeps bees")
    assert text.evaluate("e => getComputedStyle(e).textDecorationLine") == "none"
    tab.close()


def _by_place(tree: Any, message: Any) -> int | None:
    return int(message.content.split()[-1]) or None


def test_a_message_is_dropped_on_another_message(served: Served, browser: Any) -> None:
    tab = Tab(browser, served, 200)
    tab.page.keyboard.press("Home")
    tab.page.locator("#row-7").drag_to(tab.page.locator("#row-2"))
    tab.page.locator("#status button").wait_for()
    moved = next(node for node in served.system.conversation("of 200").history if node.id == 7)
    assert served.system.conversation("of 200").thread(moved.superseded_by or 0)[-2].id == 2
    tab.close()


def test_threads_are_renamed_and_searched_and_summaries_unfold(served: Served, browser: Any) -> None:
    served.system.summarize_session("of 20")
    tab = Tab(browser, served, 20)
    page = tab.page
    page.locator("#threads .item").nth(1).press("F2")
    page.locator("dialog[open] input").fill("<i>My</i> thread")
    page.keyboard.press("Enter")
    page.locator("#threads", has_text="<i>My</i> thread").wait_for()
    page.locator("#map").focus()
    page.keyboard.press("/")
    page.keyboard.type("figs")
    page.keyboard.press("Enter")
    page.locator(".hit", has_text="why: shares figs").first.wait_for()
    assert page.locator(".hit .below").first.inner_text().startswith("Assistant So: x = 1 # one")
    page.locator("#summaries").click()
    page.locator(".card button[aria-expanded=false]").first.click()
    page.locator(".card .hit, .card .card").first.wait_for()
    tab.close()


@pytest.mark.parametrize(("scheme", "size"), [("light", 20), ("dark", 20), ("light", 5000)])
def test_a_narrow_page_has_no_sideways_scroll(served: Served, browser: Any, scheme: str, size: int) -> None:
    tab = Tab(browser, served, size, color_scheme=scheme)
    page = tab.page
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.locator("#menu").click()
    page.locator("#threads .item").nth(1).click()
    page.keyboard.press("Enter")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(23, 24, 27)"
    assert dark == (scheme == "dark")
    tab.close()
