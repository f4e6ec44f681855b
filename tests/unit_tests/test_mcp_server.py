"""`threadmem mcp`: the server in a process of its own, called by the client of the SDK."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from langchain_threadmem import MemorySystem
from langchain_threadmem.apps.cli.main import main

pytest.importorskip("mcp")

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

READING = ["search", "list_threads", "read_thread"]
FACT = ("remember", {"fact": "Ada has a visa."})


def served(url: str, owner: str, calls: list[tuple[str, dict[str, Any]]], *options: str) -> Any:
    """The names of the tools of a server, and the text and the failure of each call."""
    command = ["-m", "langchain_threadmem", "mcp", url, "--owner", owner, *options]
    server = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))

    async def talk() -> Any:
        async with Client(server) as client:
            tools = (await client.list_tools()).tools
            found = [await client.call_tool(name, arguments) for name, arguments in calls]
        return [tool.name for tool in tools], [(one.content[0].text, one.is_error) for one in found]  # type: ignore[union-attr]

    return asyncio.run(talk())


@pytest.fixture
def stored(url: str, owner: str) -> str:
    """The URL of a memory of two owners."""
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        system.conversation("travel").append("The visa for Japan?", "It takes two weeks.")
        system.conversation("new").recall("visa", scope="owner")  # Indexes the messages.
        system.for_owner(f"{owner}-bob").conversation("secret").append("The visa of Bob", "Noted.")
    return url


def test_a_client_searches_lists_and_reads_the_memory_of_one_owner_and_does_not_write(
    stored: str, owner: str
) -> None:
    named = {"conversation": "travel", "message": 1}
    calls = [("search", {"query": "visa"}), ("list_threads", {}), ("read_thread", named)]
    tools, [*results, (refused, failed)] = served(stored, owner, [*calls, FACT])
    assert tools == READING
    assert failed
    assert "--write" in refused
    assert not any(failed for _, failed in results)
    assert all('conversation="travel"' in text and "Bob" not in text for text, _ in results)
    assert "It takes two weeks." in results[2][0]


def test_a_client_writes_if_the_server_allows_it(stored: str, owner: str) -> None:
    forget = ("forget", {"conversation": "travel", "message": 2})
    tools, results = served(stored, owner, [FACT, forget], "--write")
    assert tools == [*READING, "remember", "forget"]
    assert [failed for _, failed in results] == [False, False]
    with MemorySystem(stored, owner=owner, embeddings=False) as system:
        assert [node.message.content for node in system.conversation("facts").history] == ["Ada has a visa."]
        assert [node.message.content for node in system.conversation("travel").history] == [
            "The visa for Japan?"
        ]


def test_a_client_gets_an_error_that_its_model_can_correct(stored: str, owner: str) -> None:
    named = {"conversation": "travel", "message": 99}
    results = served(stored, owner, [("read_thread", named), ("read_thread", {}), ("nonsense", {})])[1]
    assert all(failed for _, failed in results)
    assert [text in found for text, (found, _) in zip(["99", "message", "nonsense"], results, strict=True)]


def test_reading_writes_nothing_to_the_file(tmp_path: Path, owner: str) -> None:
    file = tmp_path / "memory.db"
    with MemorySystem(file, owner=owner, embeddings=False) as system:
        system.conversation("travel").append("The visa for Japan?", "It takes two weeks.")
    before = file.read_bytes()
    named = {"conversation": "travel", "message": 1}
    calls = [
        ("search", {"query": "visa"}),
        ("list_threads", {"conversation": "travel"}),
        ("read_thread", named),
    ]
    results = served(str(file), owner, [*calls, ("read_thread", {**named, "conversation": "new"})])[1]
    assert [failed for _, failed in results] == [False, False, False, True]
    assert "The visa for Japan?" in results[0][0]
    assert file.read_bytes() == before


@pytest.mark.parametrize("missing", ["database", "owner", "mcp.server", "mcp_types"])
def test_a_server_that_cannot_start_names_the_reason(
    tmp_path: Path, missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "memory.db"
    if missing != "database":
        with MemorySystem(file, owner="ada", embeddings=False) as system:
            system.conversation("travel").append("The visa for Japan?", "It takes two weeks.")
    if missing.startswith("mcp"):  # Version 1 has no `mcp_types`.
        monkeypatch.setitem(sys.modules, missing, None)
    assert main(["mcp", str(file), "--owner", "bob" if missing == "owner" else "ada"]) == 2
    reasons = {"database": "no database file", "owner": "'bob'"}
    printed = capsys.readouterr()
    assert reasons.get(missing, "langchain-threadmem[mcp]") in printed.err
    assert printed.out == ""
