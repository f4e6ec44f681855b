"""Two users on the Agent Server: `pytest examples/agent_server/test_server.py` starts it on a free port."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from langgraph_sdk.errors import AuthenticationError, ConflictError, NotFoundError

FOLDER = Path(__file__).parent
SECONDS_TO_START = 120


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = folder / "langgraph.json"
    config.write_text((FOLDER / "langgraph.json").read_text())
    for source in FOLDER.glob("*.py"):
        (folder / source.name).write_text(source.read_text())
    command = [str(Path(sys.executable).with_name("langgraph")), "dev", "--no-browser", "--no-reload"]
    log = folder / "server.log"
    with log.open("w") as output:
        server = subprocess.Popen(
            [*command, "--port", str(port), "--config", str(config)],
            cwd=folder,
            env=os.environ
            | {"LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGSMITH_TRACING": "false", "LOG_JSON": "true"},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        address = f"http://127.0.0.1:{port}"
        _wait(server, address, log)
        yield address
    finally:
        server.terminate()
        server.wait(30)
    assert _failures(log) == []


def _failures(log: Path) -> list[str]:
    """The tracebacks of a log that pass through the package; the server also logs errors of its own.

    On a busy machine the server logs an error, for example, because it has loaded a module in more than ten
    seconds.
    """
    entries = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    assert entries  # The server writes each entry as JSON.
    tracebacks = [str(entry.get("exception") or "") for entry in entries]
    return [traceback for traceback in tracebacks if "langchain_threadmem" in traceback]


def _wait(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end and server.poll() is None:
        try:
            if httpx.get(f"{url}/ok").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.5)
    pytest.fail(f"the server did not start:\n{log.read_text()}")


def client_of(url: str, user: str) -> SyncLangGraphClient:
    return get_sync_client(url=url, api_key=None, headers={"Authorization": f"Bearer token-of-{user}"})


@pytest.fixture
def ada(url: str) -> Iterator[SyncLangGraphClient]:
    with client_of(url, "ada") as client:
        yield client


@pytest.fixture
def bob(url: str) -> Iterator[SyncLangGraphClient]:
    with client_of(url, "bob") as client:
        yield client


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def ask(client: SyncLangGraphClient, thread: str, text: str, **options: Any) -> Any:
    return client.runs.wait(thread, "chat", input=said(text), **options)


def texts(values: Any) -> list[str]:
    return [message["content"] for message in values.get("messages", [])]


def thread_with(client: SyncLangGraphClient, *questions: str) -> str:
    thread = client.threads.create()["thread_id"]
    for question in questions:
        ask(client, thread, question)
    return thread


def test_a_run_continues_its_thread(ada: SyncLangGraphClient) -> None:
    thread = thread_with(ada, "One", "Two")
    assert texts(ada.threads.get_state(thread)["values"]) == ["One", "Noted.", "Two", "Noted."]


def test_a_run_streams_its_answer(ada: SyncLangGraphClient) -> None:
    thread = ada.threads.create()["thread_id"]
    parts = list(ada.runs.stream(thread, "chat", input=said("One"), stream_mode=["messages", "values"]))
    assert "messages/partial" in {part.event for part in parts}
    assert texts([part for part in parts if part.event == "values"][-1].data) == ["One", "Noted."]


def test_the_history_has_each_checkpoint(ada: SyncLangGraphClient) -> None:
    thread = thread_with(ada, "One", "Two")
    lengths = [len(texts(state["values"])) for state in ada.threads.get_history(thread)]
    assert lengths == [4, 3, 3, 2, 2, 1, 1, 0]


def test_a_run_from_an_older_checkpoint_is_a_fork(ada: SyncLangGraphClient) -> None:
    thread = thread_with(ada, "One", "Two")
    after_one = next(
        state for state in ada.threads.get_history(thread) if texts(state["values"]) == ["One", "Noted."]
    )
    ask(ada, thread, "Three", checkpoint_id=after_one["checkpoint"]["checkpoint_id"])
    assert texts(ada.threads.get_state(thread)["values"]) == ["One", "Noted.", "Three", "Noted."]
    ends = [
        texts(state["values"]) for state in ada.threads.get_history(thread, limit=50) if not state["next"]
    ]
    assert ["One", "Noted.", "Two", "Noted."] in ends


def test_a_state_can_be_updated(ada: SyncLangGraphClient) -> None:
    thread = thread_with(ada, "One")
    ada.threads.update_state(thread, said("Two"), as_node="answer")
    assert texts(ada.threads.get_state(thread)["values"]) == ["One", "Noted.", "Two"]


def test_a_copied_thread_continues_on_its_own(ada: SyncLangGraphClient) -> None:
    thread = thread_with(ada, "One")
    threads: Any = ada.threads  # The SDK declares that `copy` returns `None`.
    copy = threads.copy(thread)["thread_id"]
    ask(ada, copy, "Two")
    assert texts(ada.threads.get_state(copy)["values"]) == ["One", "Noted.", "Two", "Noted."]
    assert texts(ada.threads.get_state(thread)["values"]) == ["One", "Noted."]


@pytest.mark.parametrize("verb", ["delete", "prune"])
def test_a_removed_thread_is_recalled_no_more(ada: SyncLangGraphClient, verb: str) -> None:
    word = f"zebra{verb}"
    thread = thread_with(ada, f"My {word}")
    assert f"My {word}" in ask(ada, thread_with(ada), word)["recalled"]
    if verb == "delete":
        ada.threads.delete(thread)
    else:
        assert ada.threads.prune([thread], strategy="delete") == {"pruned_count": 1}
    with pytest.raises(NotFoundError):
        ada.threads.get(thread)
    assert f"My {word}" not in ask(ada, thread_with(ada), word)["recalled"]


def test_a_run_without_a_thread_leaves_no_message(ada: SyncLangGraphClient) -> None:
    word = "okapi"
    assert texts(ada.runs.wait(None, "chat", input=said(f"My {word}"))) == [f"My {word}", "Noted."]
    other = thread_with(ada, "One")  # The server has one worker, which deletes the thread of the run first.
    assert f"My {word}" not in ask(ada, other, word)["recalled"]


def test_a_rolled_back_run_leaves_no_message(ada: SyncLangGraphClient) -> None:
    thread = thread_with(ada, "One")
    word = "giraffe"
    parts = ada.runs.stream(thread, "chat", input=said(word), stream_mode="messages")
    run = next(part.data["run_id"] for part in parts if part.event == "metadata")
    next(part for part in parts if part.event == "messages/partial")
    ada.runs.cancel(thread, run, action="rollback", wait=True)
    assert texts(ask(ada, thread, "Two")) == ["One", "Noted.", "Two", "Noted."]
    assert word not in ask(ada, thread_with(ada), f"Where is the {word}?")["recalled"]


def test_no_user_sees_the_threads_of_another(ada: SyncLangGraphClient, bob: SyncLangGraphClient) -> None:
    thread = thread_with(ada, "The vault opens with heron")
    assert bob.threads.search(limit=1000) == []
    for call in (bob.threads.get_state, bob.threads.get_history, bob.threads.delete):
        with pytest.raises(NotFoundError):
            call(thread)
    with pytest.raises((NotFoundError, ConflictError)):  # The in-memory server finds no thread to copy.
        bob.threads.copy(thread)
    with pytest.raises(NotFoundError):
        bob.threads.prune([thread], strategy="delete")
    assert texts(ada.threads.get_state(thread)["values"])[0] == "The vault opens with heron"


def test_no_user_recalls_the_messages_of_another(ada: SyncLangGraphClient, bob: SyncLangGraphClient) -> None:
    thread_with(ada, "The vault opens with heron")
    question = "What opens the vault?"
    assert "The vault opens with heron" in ask(ada, thread_with(ada), question)["recalled"]
    recalled = ask(bob, thread_with(bob), question)["recalled"]
    assert set(recalled) <= {question}  # The question itself, if its checkpoint is stored before the recall.


def test_no_user_reads_the_items_of_another(ada: SyncLangGraphClient, bob: SyncLangGraphClient) -> None:
    thread_with(ada, "One")
    thread_with(bob, "Two")
    ada.store.put_item(["facts"], key="vault", value={"text": "heron"})
    assert [item["value"] for item in ada.store.search_items(["facts"])["items"]] == [{"text": "heron"}]
    assert bob.store.search_items(["facts"])["items"] == []
    assert ada.store.get_item(["questions"], key="last")["value"] == {"text": "One"}
    assert bob.store.get_item(["questions"], key="last")["value"] == {"text": "Two"}


def test_a_request_without_a_user_is_refused(url: str) -> None:
    with client_of(url, "eve") as eve, pytest.raises(AuthenticationError):
        eve.threads.create()
