"""The command `chat`: prompts without a model, answers of an endpoint, and errors."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import WordEmbeddings

from langchain_threadmem import MemorySystem
from langchain_threadmem.apps.cli.main import main

Ask = Callable[..., str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.fixture
def system(url: str, owner: str) -> Iterator[MemorySystem]:
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings()) as found:
        kitchen = found.conversation("kitchen")
        kitchen.append("How long does rye dough rise?", "Four hours, **warm**.")
        kitchen.append("And the crust?", "Steam it.")
        yield found


@pytest.fixture
def ask(
    url: str,
    owner: str,
    system: MemorySystem,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Ask:
    """Sends lines to the command, and returns its output, or its error."""

    def call(lines: str, *arguments: str, code: int = 0) -> str:
        monkeypatch.setattr("sys.stdin", Input(lines))
        assert main(["chat", *arguments, "--db", url, "--owner", owner]) == code
        said = capsys.readouterr()
        return said.err if code else said.out

    return call


class Input(io.StringIO):
    """The input of the command."""


class Endpoint(BaseHTTPRequestHandler):
    """An endpoint with OpenAI's interface that streams "It rises."; the model "broken" fails."""

    prompts: list[Any]

    def do_GET(self) -> None:
        self._send(
            "application/json", json.dumps({"object": "list", "data": [{"id": "first", "object": "model"}]})
        )

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.prompts.append(body)
        if body["model"] == "broken":
            self.send_error(400)
            return
        deltas = [{"role": "assistant", "content": ""}, {"content": "It "}, {"content": "rises."}]
        events = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        lines = [f"data: {json.dumps({**head, **event})}\n\n" for event in events]
        self._send("text/event-stream", "".join([*lines, "data: [DONE]\n\n"]))

    def _send(self, kind: str, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def endpoint() -> Iterator[tuple[str, list[Any]]]:
    handler = type("Recording", (Endpoint,), {"prompts": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1", handler.prompts  # type: ignore[attr-defined]
    server.shutdown()
    thread.join()
    server.server_close()


def test_without_a_model_the_prompt_and_the_recall_are_shown_and_nothing_is_stored(
    ask: Ask, system: MemorySystem
) -> None:
    before = system.conversation("kitchen").history
    out = ask("How long does the rye dough rise?\n\nAnd in the cold?\n")
    assert "recalls message 1 of “How long does rye dough rise?” (shares" in out
    assert "→ Four hours, **warm**." in out
    assert out.count("The prompt: ") == 2
    assert out.count("User: How long does the rye dough rise?") == 2
    assert "User: And in the cold?" in out
    assert system.conversations() == ["kitchen"]
    assert system.conversation("kitchen").history == before


def test_a_conversation_is_continued_in_its_thread(ask: Ask, system: MemorySystem) -> None:
    out = ask("And the crust of the rye dough?\n", "kitchen", "--recall", "0")
    assert "continues “How long does rye dough rise?” after message 4" in out
    assert "recalls" not in out
    assert "Assistant: Steam it.\nUser: And the crust of the rye dough?" in out
    assert len(system.conversation("kitchen").history) == 4


def test_an_endpoint_answers_with_what_was_recalled(
    ask: Ask, system: MemorySystem, endpoint: tuple[str, list[Any]]
) -> None:
    url, prompts = endpoint
    out = ask("How long does the rye dough rise?\n", "--url", url)
    assert "It rises.\n" in out
    [prompt] = prompts
    assert prompt["model"] == "first"
    assert "Four hours" in prompt["messages"][0]["content"]
    assert prompt["messages"][-1] == {"role": "user", "content": "How long does the rye dough rise?"}
    [name] = [name for name in system.conversations() if name != "kitchen"]
    assert [node.message.text for node in system.conversation(name).history] == [
        "How long does the rye dough rise?",
        "It rises.",
    ]


def test_an_endpoint_that_fails_is_named_and_the_message_is_stored(
    ask: Ask, system: MemorySystem, endpoint: tuple[str, list[Any]]
) -> None:
    error = ask("Is it done?\n", "kitchen", "--url", endpoint[0], "--model", "broken", code=2)
    assert "the model failed" in error
    assert "stored without an answer" in error
    assert system.conversation("kitchen").history[-1].message.text == "Is it done?"


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_wrong_arguments_of_a_chat_are_named(ask: Ask) -> None:
    assert "requires --url" in ask("", "--model", "x", code=2)
    assert "http://127.0.0.1:9/v1 cannot be used" in ask("", "--url", "http://127.0.0.1:9/v1", code=2)
    assert "there is 'kitchen'" in ask("", "nowhere", code=2)
    assert "recall" in ask("Hello\n", "--recall", "-1", code=2)


def test_a_database_that_does_not_exist_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat", str(tmp_path / "none.db")]) == 2
    assert "none.db" in capsys.readouterr().err
    assert not (tmp_path / "none.db").exists()


def test_a_terminal_has_a_prompt_and_ends_with_the_input(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, system: MemorySystem
) -> None:
    monkeypatch.setattr(Input, "isatty", lambda self: True)
    lines = iter(["How long does the rye dough rise?"])

    def read(prompt: str = "") -> str:
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", read)
    out = ask("")
    assert "nothing is stored" in out
    assert "The prompt: " in out
