"""The example of a chat in the browser, in Chromium, with a scripted model and a scripted selector."""

from __future__ import annotations

import asyncio
import itertools
import re
import shutil
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk

from langchain_threadmem import ChatMemory, MemorySystem
from langchain_threadmem.selection.selectors import FlowSelector
from langchain_threadmem.selection.tree_view import TreeView

pytest.importorskip("uvicorn")
playwright = pytest.importorskip("playwright.sync_api")
playwright.expect.set_options(timeout=30_000)  # A page with 5,000 messages takes seconds on a busy machine.
httpx = pytest.importorskip("httpx")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
EXAMPLE = Path(__file__).parents[2] / "examples" / "chat"
MARKDOWN = "**So:**\n\n|a|b|\n|-|-|\n|1|2|\n\n```python\nx = 1\n```\n\n<img src=x onerror=alert(1)>"
names = (f"user {number}" for number in itertools.count())


class ByFirstWord(FlowSelector):
    """Continues the newest turn that begins with the same word; "perhaps" may be a new topic."""

    def choose(self, tree: TreeView, message: BaseMessage) -> Any:
        yield from ()
        ends, topic = tree.turn_ends(), message.text.split()[0]
        if topic == "perhaps" and ends:
            last = max(end.id for end in ends)
            tree.reason, tree.chances = "perhaps", ((last, 0.5), (None, 0.5))
            return last
        return max((end.id for end in ends if end.human.split()[0] == topic), default=None)


class Script(GenericFakeChatModel):
    """Answers "answer <number>", or with a table; fails once if "broken"; answers "slowly" without an end."""

    messages: Iterator[Any] = iter(())
    numbers: Any = itertools.count(1)
    failures: Any = iter([True])

    async def _astream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> AsyncIterator[Any]:
        if "table" in messages[-1].text:
            yield ChatGenerationChunk(message=AIMessageChunk(content=MARKDOWN))
            return
        if "broken" in messages[-1].text and next(self.failures, False):
            raise ConnectionError("the model is away")
        yield ChatGenerationChunk(message=AIMessageChunk(content=f"answer {next(self.numbers)}"))
        while "slowly" in messages[-1].text:
            await asyncio.sleep(0.05)
            yield ChatGenerationChunk(message=AIMessageChunk(content=" and"))


class Served(NamedTuple):
    url: str
    system: MemorySystem


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The app on a free port."""
    import uvicorn

    sys.path.insert(0, str(EXAMPLE))
    try:
        from app import create_app  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(EXAMPLE))
    system = MemorySystem(tmp_path_factory.mktemp("chat") / "chat.db", embeddings=False)
    config = uvicorn.Config(create_app(system, Script(), selector=ByFirstWord()), port=0, log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield Served(f"http://127.0.0.1:{port}", system)
    server.should_exit = True
    thread.join()
    for module in ("app", "chats", "demo_model"):
        sys.modules.pop(module, None)


class Page:
    """The page of a user with a conversation."""

    def __init__(self, browser: Any, served: Served, user: str) -> None:
        self.page = browser.new_context(base_url=served.url).new_page()
        self.page.set_default_timeout(10_000)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto("/")
        self.page.get_by_label("Your name").fill(user)
        self.page.get_by_role("button", name="Sign in").click()
        self.text = self.page.get_by_label("Message", exact=True)
        self.messages = self.page.locator("#messages > li")
        self.threads = self.page.locator("#thread-list .name")
        playwright.expect(self.text).to_be_focused()

    def say(self, text: str) -> None:
        """Send a message and wait for the end of the answer."""
        self.text.fill(text)
        self.text.press("Enter")
        self.is_answered(text)

    def is_answered(self, text: str) -> None:
        self.shows(-2, text)
        playwright.expect(self.page.get_by_role("button", name="Send")).to_be_visible()

    def click(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).last.click()

    def shows(self, at: int, text: str) -> None:
        playwright.expect(self.messages.nth(at).locator(".text")).to_have_text(text)


@pytest.fixture(params=[200])
def memory(request: pytest.FixtureRequest, served: Served) -> ChatMemory:
    """A conversation with messages in the threads "tea" and "bread", the latter with one turn."""
    system = served.system.for_owner(next(names))
    memory = system.conversation("talk", node_selector=ByFirstWord())
    turns = range(request.param // 2 - 1)
    memory.extend(message for n in turns for message in (("user", f"tea {n}"), ("ai", f"tea answer {n}")))
    memory.append("bread", "bread answer")
    return memory


@pytest.fixture
def chat(browser: Any, served: Served, memory: ChatMemory) -> Iterator[Page]:
    """The page of the user of the memory."""
    page = Page(browser, served, memory._conversation.runtime.owner)
    page.shows(-1, "bread answer")
    yield page
    page.page.context.close()
    assert page.errors == []


def humans(memory: ChatMemory) -> list[list[str]]:
    """The last human message of each thread."""
    return [
        [node.message.text for node in thread if node.message.type == "human"][-1:]
        for thread in memory.threads()
    ]


@needs_chromium
@pytest.mark.parametrize("memory", [20, 5_000], indirect=True)
def test_a_new_topic_opens_a_thread_beside_the_chat(chat: Page) -> None:
    playwright.expect(chat.threads).to_have_text(["Bread", "Tea 0"])
    chat.say("figs or dates?")
    playwright.expect(chat.threads).to_have_text(["Figs or dates?", "Bread", "Tea 0"])
    playwright.expect(chat.messages).to_have_count(2)
    chat.say("tea again")
    playwright.expect(chat.page.locator("#thread-list [aria-current] .name")).to_have_text("Tea 0")
    chat.click("Move to “Figs or dates?”")
    chat.shows(0, "figs or dates?")
    chat.is_answered("tea again")
    playwright.expect(chat.messages).to_have_count(4)


@needs_chromium
def test_a_regenerated_answer_is_a_version_and_a_version_can_be_continued(chat: Page) -> None:
    chat.click("Regenerate")
    versions = chat.page.locator(".versions")
    playwright.expect(versions).to_have_text("‹2/2›")
    chat.click("Previous version")
    playwright.expect(versions).to_have_text("‹1/2›")
    chat.shows(-1, "bread answer")
    chat.say("bread again")
    playwright.expect(versions).to_have_text("‹1/2›")
    chat.shows(1, "bread answer")


@needs_chromium
def test_an_edited_message_is_a_version_with_an_answer_of_its_own(chat: Page) -> None:
    chat.page.locator(".thread", has_text="Tea").click()
    playwright.expect(chat.messages.last).to_contain_text("tea answer")
    chat.click("Edit")
    chat.page.get_by_label("Edited message").fill("tea with <b>milk</b>")
    chat.click("Save and answer")
    chat.is_answered("tea with <b>milk</b>")
    playwright.expect(chat.page.locator(".human .versions")).to_have_text("‹2/2›")
    chat.click("Previous version")
    playwright.expect(chat.messages.last.locator(".text")).to_contain_text("tea answer")
    playwright.expect(chat.threads).to_have_count(2)


@needs_chromium
@pytest.mark.parametrize("memory", [20], indirect=True)
def test_an_answer_is_rendered_and_runs_nothing(chat: Page) -> None:
    chat.text.fill("bread as a table")
    chat.text.press("Enter")
    answer = chat.messages.last.locator(".text")
    playwright.expect(answer.locator("td")).to_have_text(["1", "2"])
    playwright.expect(answer.locator("strong")).to_have_text("So:")
    playwright.expect(answer.locator("pre .number")).to_have_text("1")
    playwright.expect(answer.locator("img")).to_have_count(0)
    playwright.expect(answer).to_contain_text("<img src=x")


@needs_chromium
@pytest.mark.parametrize("memory", [20], indirect=True)
def test_branches_of_a_thread_have_names_of_their_own(chat: Page, memory: ChatMemory) -> None:
    chat.say("bread again")
    memory.switch(memory.roots()[-1].id)
    memory.append("bread branch", "another end")
    memory.place(memory.history[-2].id, memory.roots()[-1].id + 1)
    chat.page.reload()
    playwright.expect(chat.threads).to_have_count(3)
    names = chat.threads.all_inner_texts()
    assert len(set(names)) == 3


@needs_chromium
@pytest.mark.parametrize("memory", [20], indirect=True)
def test_a_long_title_ends_with_dots_within_the_list(chat: Page) -> None:
    chat.click("New chat")
    chat.say("bread that is baked in a very long time")
    inside = "e => e.getBoundingClientRect().right <= e.closest('ul').getBoundingClientRect().right"
    title = chat.page.locator(".conversation[aria-current]")
    playwright.expect(title).to_contain_text("Bread that is")
    assert title.evaluate("e => e.scrollWidth > e.clientWidth")
    assert title.evaluate(inside)


@needs_chromium
@pytest.mark.parametrize("memory", [20], indirect=True)
def test_a_message_sent_before_its_conversation_is_shown_stays(chat: Page) -> None:
    chat.page.evaluate(
        """() => {
          const fetched = window.fetch;
          const later = (response) => new Promise((done) => setTimeout(done, 500, response));
          window.fetch = (path, options) => fetched(path, options).then(options?.method ? (r) => r : later);
        }"""
    )
    chat.click("New chat")
    chat.text.fill("figs in a new chat")
    chat.text.press("Enter")
    playwright.expect(chat.page.locator(".conversation[aria-current]")).to_have_text("Figs in a new chat")
    chat.is_answered("figs in a new chat")
    playwright.expect(chat.messages).to_have_count(2)


@needs_chromium
def test_a_suggestion_moves_a_message(chat: Page) -> None:
    chat.say("perhaps figs")
    playwright.expect(chat.messages).to_have_count(4)
    playwright.expect(chat.page.locator(".suggestion")).to_contain_text("Another topic?")
    chat.click("New thread")
    playwright.expect(chat.messages).to_have_count(2)
    playwright.expect(chat.threads).to_have_text(["Perhaps figs", "Bread", "Tea 0"])
    playwright.expect(chat.page.locator(".suggestion")).to_have_count(0)


@needs_chromium
def test_a_stopped_answer_keeps_its_text(chat: Page, memory: ChatMemory) -> None:
    chat.text.fill("bread slowly")
    chat.text.press("Enter")
    playwright.expect(chat.messages.last).to_contain_text("and and")
    chat.click("Stop")
    chat.is_answered("bread slowly")
    playwright.expect(chat.messages.last).to_contain_text("and and")
    assert memory.messages[-1].text.endswith("and and")
    chat.say("bread once more")
    playwright.expect(chat.messages).to_have_count(6)


@needs_chromium
@pytest.mark.parametrize("memory", [20], indirect=True)
def test_a_message_without_an_answer_can_be_answered(chat: Page) -> None:
    chat.text.fill("bread is broken")
    chat.text.press("Enter")
    playwright.expect(chat.page.get_by_role("status")).to_have_text("The model failed.")
    chat.click("Answer")
    chat.is_answered("bread is broken")
    chat.say("bread again")
    playwright.expect(chat.messages).to_have_count(6)


@needs_chromium
@pytest.mark.parametrize("memory", [20, 5_000], indirect=True)
def test_all_messages_of_a_long_thread_can_be_shown(chat: Page, memory: ChatMemory) -> None:
    chat.page.locator(".thread", has_text="Tea").click()
    count = len(memory.history) - 2
    playwright.expect(chat.messages).to_have_count(min(count, 100))
    if count > 100:
        chat.click(f"Show {count - 100} earlier messages")
    chat.shows(0, "tea 0")
    playwright.expect(chat.messages).to_have_count(count)


@needs_chromium
@pytest.mark.parametrize("memory", [20, 5_000], indirect=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_page_has_no_sideways_scroll(chat: Page, scheme: str) -> None:
    page = chat.page
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 390, "height": 800})
    page.get_by_role("button", name=re.compile("Threads")).click()
    page.locator(".thread", has_text="Tea").click()
    playwright.expect(chat.messages.last).to_contain_text("tea answer")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    ground = {"light": "rgb(255, 255, 255)", "dark": "rgb(23, 24, 27)"}[scheme]
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == ground


@needs_chromium
def test_two_users_do_not_see_each_other(browser: Any, served: Served) -> None:
    ada, bob = (Page(browser, served, next(names)) for _ in range(2))
    ada.say("heron opens the vault")
    conversations = bob.page.locator("#conversation-list button")
    bob.page.goto(ada.page.url)  # The address of ada's conversation.
    playwright.expect(bob.text).to_be_focused()
    playwright.expect(bob.page.get_by_text("heron")).to_have_count(0)
    bob.say("heron is what?")
    playwright.expect(bob.messages).to_have_count(2)
    playwright.expect(conversations).to_have_text(["Heron is what?"])
    ada.page.reload()
    playwright.expect(ada.messages).to_have_count(2)
    ada.shows(0, "heron opens the vault")


def test_requests_without_a_signed_cookie_or_from_another_site_are_refused(served: Served) -> None:
    with httpx.Client(base_url=served.url) as client:
        assert client.post("/api/sign_in", json={"name": "ada"}).status_code == 403
        own, foreign = {"Origin": served.url}, {"Origin": "http://example.org"}
        assert client.post("/api/sign_in", json={"name": "ada"}, headers=foreign).status_code == 403
        assert client.get("/api/conversations").status_code == 401
        assert client.get("/api/conversations", headers={"Cookie": "user=ada.0123"}).status_code == 401
        assert client.post("/api/sign_in", json={"name": "ada"}, headers=own).json() == {"user": "ada"}
        assert client.get("/api/conversations").json() == {"user": "ada", "conversations": []}
        missing = client.post("/api/conversations/talk/switch", json={"node": 7}, headers=own)
        assert (missing.status_code, "7" in missing.text) == (400, True)
        assert client.get("/", headers={"Host": "example.org"}).status_code == 400
