"""The server of the live page: refused requests, contents and changes."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import WordEmbeddings
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, ToolMessage
from starlette.testclient import TestClient

from langchain_threadmem import MemorySystem
from langchain_threadmem.apps.cli.main import main
from langchain_threadmem.apps.view.contents import Contents
from langchain_threadmem.apps.view.routes import FILES, WritableSystem, app_of

TOKEN, ORIGIN = "secret", "http://127.0.0.1:8000"
MARKUP = "<script>alert(1)</script> & \x1b[31mred"


@pytest.fixture
def system(url: str, owner: str) -> Iterator[MemorySystem]:
    """A memory with two threads, written by another process than the server's."""
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings()) as found:
        talk = found.conversation("talk", node_selector=_by_topic)
        talk.append(HumanMessage("bread: Why is it flat?"), AIMessage("It did not ferment."))
        talk.append(HumanMessage(f"csv: {MARKUP}"), AIMessage("Use the csv module."))
        talk.append(HumanMessage("bread: How warm?"), AIMessage("25 degrees."))
        yield found


def _by_topic(tree: Any, message: Any) -> int | None:
    topic = message.content.split()[0]
    ends = [end.id for end in tree.turn_ends() if end.human.startswith(topic)]
    tree.reason = "the same topic" if ends else "another topic"
    tree.chances = ((ends[-1] if ends else None, 0.6), (None, 0.3))
    return ends[-1] if ends else None


class Page:
    """A browser with the token of the page."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def read(self, name: str, **values: Any) -> Any:
        answer = self.client.get(f"/api/{name}", params=values)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def change(self, name: str, **values: Any) -> Any:
        answer = self.client.post(f"/api/{name}", json=values, headers={"Origin": ORIGIN})
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
def client(url: str, owner: str, system: MemorySystem) -> Iterator[TestClient]:
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), read_only=True) as reader:
        writer = WritableSystem(lambda: MemorySystem(url, owner=owner, embeddings=WordEmbeddings()))
        with TestClient(app_of(Contents(reader), writer, TOKEN, 8000), base_url=ORIGIN) as found:
            yield found
        writer.close()


@pytest.fixture
def page(client: TestClient) -> Page:
    assert client.get("/", params={"token": TOKEN}).status_code == 200
    return Page(client)


REQUESTS: dict[str, Callable[[TestClient], Any]] = {
    "no token": lambda client: client.get("/"),
    "a wrong token": lambda client: client.get("/?token=secre"),
    "no cookie": lambda client: client.get("/api/conversations"),
    "a file without a cookie": lambda client: client.get("/static/page.js"),
    "the token elsewhere": lambda client: client.get(f"/api/conversations?token={TOKEN}"),
    "a wrong cookie": lambda client: client.get("/", headers={"Cookie": "threadmem_8000=secre"}),
    "a cookie of another port": lambda client: client.get("/", headers={"Cookie": "threadmem_9=secret"}),
    "another host": lambda client: client.get(f"/?token={TOKEN}", headers={"Host": "evil.example:8000"}),
}


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_a_request_without_the_token_or_for_another_host_is_refused(
    client: TestClient, request_: Any
) -> None:
    answer = request_(client)
    assert answer.status_code == 403
    assert TOKEN not in answer.text + str(answer.headers)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://127.0.0.1:8001"])
def test_a_change_from_another_origin_is_refused(page: Page, origin: str | None) -> None:
    headers = {} if origin is None else {"Origin": origin}
    given = {"conversation": "talk", "id": 1, "title": "Hijacked"}
    assert page.client.post("/api/rename_thread", json=given, headers=headers).status_code == 403


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_the_page_loads_nothing_from_elsewhere_and_has_no_inline_script(page: Page) -> None:
    answer = page.client.get("/")
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert set(re.findall(r'(?:src|href)="(?!#)([^"]*)"', answer.text)) == {
        "/static/icon.svg",
        "/static/page.css",
        "/static/page.js",
    }
    for file in FILES.iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text, file.name
        assert not re.search(r"innerHTML|insertAdjacentHTML|\beval\b|document\.write", text), file.name
    assert page.client.get("/static/../guard.py").status_code == 404
    assert page.client.get("/static/%2e%2e/guard.py").status_code == 404


def test_the_tree_has_a_lane_for_each_thread_and_a_reason_for_each_place(page: Page) -> None:
    tree = page.read("tree", conversation="talk")
    assert (tree["ids"], tree["parents"]) == ([1, 2, 3, 4, 5, 6], [0, 1, 0, 3, 2, 5])
    assert len({tree["lanes"][strand] for strand in tree["strands"]}) == 2
    assert [(thread["messages"], thread["active"]) for thread in tree["threads"]] == [(4, True), (2, False)]
    node = page.read("node", conversation="talk", id=5)
    assert (node["reason"], node["probability"], node["doubtful"]) == ("the same topic", 0.6, True)
    assert node["chances"][0] == {"id": 2, "chance": 0.6, "line": "Assistant: It did not ferment."}
    assert [item["id"] for item in page.read("doubtful", conversation="talk")["items"]] == [5]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_texts_are_data_and_control_characters_are_shown(page: Page) -> None:
    node = page.read("node", conversation="talk", id=3)
    assert node["text"] == "csv: <script>alert(1)</script> & \\x1b[31mred"
    answer = page.client.get("/api/lines", params={"conversation": "talk", "ids": "3,99"})
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert [line["id"] for line in answer.json()["lines"]] == [3]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_search_shows_why_a_message_was_found(page: Page) -> None:
    hits = page.read("recall", conversation="talk", query="csv module")["items"]
    assert {hit["id"] for hit in hits[:2]} == {3, 4}
    assert "shares" in hits[0]["why"]
    everywhere = page.read("recall", conversation="talk", query="csv module", everywhere="1")["items"]
    assert everywhere[0]["conversation"] == "talk"


def test_a_question_that_was_found_is_shown_with_its_answer(page: Page, system: MemorySystem) -> None:
    call = {"name": "oven", "args": {}, "id": "1", "type": "tool_call"}
    system.conversation("oven").append(
        "oven: How hot?",
        AIMessage("", tool_calls=[call]),
        ToolMessage("230", tool_call_id="1"),
        "**230** degrees.",
    )
    system.conversation("open").append("oven: Is it clean?")
    hits = page.read("recall", conversation="talk", query="oven", everywhere="1")["items"]
    below = {hit["line"]: hit["below"] for hit in hits}
    assert below["oven: How hot?"]["text"] == "230 degrees."
    assert below["oven: Is it clean?"] is None
    [warm] = [
        hit for hit in page.read("recall", conversation="talk", query="warm")["items"] if hit["id"] == 5
    ]
    assert (warm["below"]["id"], warm["below"]["text"]) == (6, "25 degrees.")


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_an_answer_is_a_tree_of_elements_and_a_thread_keeps_its_colour(
    page: Page, system: MemorySystem
) -> None:
    system.conversation("talk").regenerate(6, "**25** <b>degrees</b>.")
    tree = page.read("tree", conversation="talk")
    colors = dict(zip(tree["ids"], tree["colors"], strict=True))
    assert (colors[1], colors[3]) == (0, 1)
    assert page.read("node", conversation="talk", id=7)["parts"] == [
        ["p", {}, ["strong", {}, "25"], " <b>degrees</b>."]
    ]
    moved = page.change("place", conversation="talk", id=1, parent=4)["id"]
    tree = page.read("tree", conversation="talk")
    colors = dict(zip(tree["ids"], tree["colors"], strict=True))
    assert (colors[moved], colors[3], colors[4]) == (1, 1, 1)
    assert set(page.read("words")) >= {"active", "doubtful", "replaced", "aside"}


def test_a_message_moves_to_another_thread_and_back(page: Page, system: MemorySystem) -> None:
    moved = page.change("place", conversation="talk", id=5, parent=4)
    assert [node.id for node in system.conversation("talk").thread(6)] == [3, 4, moved["id"], 6]
    assert page.read("node", conversation="talk", id=moved["id"])["reason"] == "moved by hand"
    assert page.read("tree", conversation="talk")["hidden"] == 1
    page.change("place", conversation="talk", id=moved["id"], parent=moved["before"])
    assert [node.message.content for node in system.conversation("talk").thread(6)][1:3] == [
        "It did not ferment.",
        "bread: How warm?",
    ]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_titles_versions_and_the_active_thread_are_changed(page: Page, system: MemorySystem) -> None:
    page.change("rename_thread", conversation="talk", id=4, title="Tables")
    assert page.read("tree", conversation="talk")["threads"][1]["title"] == "Tables"
    page.change("rename", conversation="talk", title="Kitchen")
    page.change("archive", conversation="talk", archived=True)
    assert page.read("conversations")["items"] == []
    [found] = page.read("conversations", archived="1")["items"]
    assert (found["title"], found["archived"]) == ("Kitchen", True)
    new = page.change("revise", conversation="talk", id=6, text="26 degrees.")["id"]
    versions = page.read("node", conversation="talk", id=new)["versions"]
    assert [(version["line"], version["state"]) for version in versions] == [
        ("25 degrees.", "superseded"),
        ("26 degrees.", "live"),
    ]
    page.change("switch", conversation="talk", id=3)
    assert system.conversation("talk").tip.id == 4


def test_summaries_unfold_to_their_messages(page: Page, system: MemorySystem) -> None:
    assert page.read("summary", conversation="talk") == {"items": []}
    system.summarize_long_term_memory()
    session, whole = page.read("summary", conversation="talk")["items"]
    assert (session["rank"], whole["rank"]) == (1, 2)
    below = page.read("unfold", id=session["id"], group=session["group"], rank=1)["items"]
    assert [unit["node"] for unit in below] == [1, 2, 3, 4, 5, 6]


def test_messages_of_another_process_are_shown(page: Page, system: MemorySystem) -> None:
    before = page.read("version", conversation="talk")
    assert page.read("version", conversation="talk") == before
    page.read("tree", conversation="talk")
    system.conversation("talk").append("Is it live?", "Yes.")
    after = page.read("version", conversation="talk")
    assert (after["tree"] != before["tree"], after["list"] != before["list"]) == (True, True)
    assert page.read("tree", conversation="talk")["ids"] == [1, 2, 3, 4, 5, 6, 7, 8]
    system.conversation("talk").edit(7, "Is it still live?")
    assert page.read("tree", conversation="talk")["ids"] == [1, 2, 3, 4, 5, 6, 9]
    system.conversation("talk").reset()
    assert page.read("tree", conversation="talk")["ids"] == []


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_looking_writes_nothing(page: Page, tmp_path: Path) -> None:
    before = {file: file.read_bytes() for file in tmp_path.iterdir() if not file.name.endswith("-shm")}
    for name in ("conversations", "tree", "node", "doubtful", "recall", "summary", "version"):
        page.read(name, conversation="talk", id=5, query="bread")
    page.read("conversations", query="bread")
    page.read("recall", conversation="talk", query="bread", everywhere="1")
    after = {file: file.read_bytes() for file in tmp_path.iterdir() if not file.name.endswith("-shm")}
    assert after == before


WRONG = {
    "an unknown conversation": ("tree", {"conversation": "nowhere"}, 404, "no conversation"),
    "an unknown conversation for a verb": ("doubtful", {"conversation": "nowhere"}, 404, "no conversation"),
    "an unknown node": ("node", {"conversation": "talk", "id": 99}, 404, "no node 99"),
    "a node that is text": ("node", {"conversation": "talk", "id": "x"}, 400, "not a number"),
    "numbers that are text": (
        "lines",
        {"conversation": "talk", "ids": "1,x"},
        400,
        "not a list of node numbers",
    ),
    "numbers of many digits": (
        "lines",
        {"conversation": "talk", "ids": "9" * 5000},
        400,
        "not a list of node",
    ),
    "no conversation": ("tree", {}, 400, "conversation=None is not text"),
    "a node of many digits": ("node", {"conversation": "talk", "id": "9" * 5000}, 400, "not a number"),
    "a bad cursor": ("conversations", {"cursor": "x"}, 400, "is not a cursor"),
}


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("name", "values", "status", "error"), WRONG.values(), ids=WRONG)
def test_wrong_requests_have_an_error(page: Page, name: str, values: Any, status: int, error: str) -> None:
    answer = page.client.get(f"/api/{name}", params=values)
    assert answer.status_code == status
    assert error in answer.json()["error"]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_role_with_half_a_character_is_shown_as_an_escape(page: Page, system: MemorySystem) -> None:
    system.conversation("odd").append("Hello", ChatMessage("Hi!", role="a\ud800"))
    system.summarize_session("odd")
    unfolded = page.read("unfold", id="odd", group="odd", rank=1)["items"]
    assert unfolded[-1]["role"] == "a\\ud800"


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_wrong_changes_have_an_error_and_change_nothing(page: Page, system: MemorySystem) -> None:
    def error(content: bytes, name: str = "place") -> str:
        answer = page.client.post(f"/api/{name}", content=content, headers={"Origin": ORIGIN})
        assert answer.status_code == 400
        return str(answer.json()["error"])

    before = system.conversation("talk").history
    assert "not JSON" in error(b"{")
    assert "not JSON" in error(b"[" * 100_000)
    assert "not a JSON object" in error(b"[]")
    assert "longer than" in error(b" " * 1_000_001)
    assert "descends" in error(b'{"conversation": "talk", "id": 1, "parent": 6}')
    assert "empty" in error(b'{"conversation": "talk", "id": 1, "text": " "}', "revise")
    nowhere = {"conversation": "nowhere", "id": 1, "parent": None}
    assert page.client.post("/api/place", json=nowhere, headers={"Origin": ORIGIN}).status_code == 404
    assert system.conversation("talk").history == before


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_read_only_page_changes_nothing(url: str, owner: str, system: MemorySystem) -> None:
    with (
        MemorySystem(url, owner=owner, embeddings=False, read_only=True) as reader,
        TestClient(app_of(Contents(reader), WritableSystem(None), TOKEN, 8000), base_url=ORIGIN) as client,
    ):
        client.get("/", params={"token": TOKEN})
        assert client.get("/api/about").json() == {"owner": owner, "writes": False}
        given = {"conversation": "talk", "id": 5, "parent": 4}
        answer = client.post("/api/place", json=given, headers={"Origin": ORIGIN})
        assert (answer.status_code, "--read-only" in answer.json()["error"]) == (400, True)


def test_the_static_page_is_the_conversation_that_was_used_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, database = tmp_path / "page.html", tmp_path / "memory.db"
    with MemorySystem(database, embeddings=False) as system:
        for name in ("first", "last"):
            system.conversation(name).append(f"Is it {name}?", "Yes.")
    assert main(["view", str(database), "--static", str(file)]) == 0
    assert capsys.readouterr().out == f"last: {file}\n"
    assert "Is it last?" in file.read_text(encoding="utf-8")
    assert main(["view", str(database), "--static", str(file), "--conversation", "none"]) == 2
    assert "there is 'first', 'last'" in capsys.readouterr().err


def test_a_missing_package_and_a_port_in_use_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "memory.db"
    with MemorySystem(database, embeddings=False) as system, socket.socket() as taken:
        system.conversation("talk").append("Hello", "Hi!")
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["view", str(database), "--no-browser", "--port", str(port)]) == 2
        assert f"--port {port} cannot be used" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["view", str(database)]) == 2
    assert 'pip install "langchain-threadmem[view]"' in capsys.readouterr().err
