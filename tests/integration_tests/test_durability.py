"""Durability of acknowledged writes: after kill -9, with two processes, with many threads and tasks."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_threadmem import MemorySystem

APPEND_FOR_EVER = """
import sys
from langchain_core.messages import AIMessage, HumanMessage
from langchain_threadmem import MemorySystem
memory = MemorySystem(sys.argv[1], owner=sys.argv[2], embeddings=False).conversation("c")
for n in range(10**9):
    memory.append(HumanMessage("q" * 300, id=f"q{n}"), AIMessage("a" * 300, id=f"a{n}"))
    print(n, flush=True)
"""

AWAIT_FOR_EVER = """
import asyncio, sys
from langchain_core.messages import AIMessage, HumanMessage
from langchain_threadmem import MemorySystem
memory = MemorySystem(sys.argv[1], owner=sys.argv[2], embeddings=False).conversation("c")
async def talk(task):
    for n in range(task, 10**9, 8):
        await memory.aappend(HumanMessage("q" * 300, id=f"q{n}"), AIMessage("a" * 300, id=f"a{n}"))
        print(n, flush=True)
async def main():
    await asyncio.gather(*(talk(task) for task in range(8)))
asyncio.run(main())
"""

APPEND_SOME = """
import sys
from langchain_threadmem import MemorySystem
with MemorySystem(sys.argv[1], owner=sys.argv[2], embeddings=False) as system:
    memory = system.conversation("c")
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(int(sys.argv[4])):
        memory.append(f"q{sys.argv[3]}-{n}", f"a{sys.argv[3]}-{n}")
"""


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def turn(n: int) -> tuple[HumanMessage, AIMessage]:
    return HumanMessage("q" * 300, id=f"q{n}"), AIMessage("a" * 300, id=f"a{n}")


@pytest.mark.parametrize("script", [APPEND_FOR_EVER, AWAIT_FOR_EVER], ids=["sync", "async"])
def test_every_acknowledged_turn_survives_kill_9(url: str, owner: str, script: str) -> None:
    child = start(script, url, owner)
    assert child.stdout is not None
    seen = [int(child.stdout.readline()) for _ in range(150)]
    os.kill(child.pid, signal.SIGKILL)
    rest, _ = child.communicate(timeout=120)
    # The last line may be torn: what it says was acknowledged, but which turn it was is not known.
    seen += [int(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")]
    assert child.returncode == -signal.SIGKILL

    with MemorySystem(url, owner=owner, embeddings=False) as system:
        memory = system.conversation("c")
        history = memory.history
        parents = {node.message.id: node.parent_id for node in history}
        ids = {node.message.id: node.id for node in history}
        assert [n for n in seen if f"a{n}" not in ids] == []
        assert all(parents[f"a{n}"] == ids[f"q{n}"] for n in seen)  # no half of a turn
        assert memory.verify().problems == ()
        assert len(history) % 2 == 0
        memory.append(*turn(10**9))
        assert len(memory.history) == len(history) + 2


def test_a_retry_after_kill_9_stores_nothing_twice(url: str, owner: str) -> None:
    child = start(APPEND_FOR_EVER, url, owner)
    assert child.stdout is not None
    last = [int(child.stdout.readline()) for _ in range(20)][-1]
    os.kill(child.pid, signal.SIGKILL)
    child.communicate(timeout=120)
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        memory = system.conversation("c")
        stored = len(memory.history)
        for n in range(last + 1):
            memory.append(*turn(n))
        assert len(memory.history) == stored


def test_two_processes_lose_nothing_and_raise_nothing(url: str, owner: str) -> None:
    count = 200
    children = [start(APPEND_SOME, url, owner, str(n), str(count)) for n in range(2)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    errors = [""] * 2

    def finish(n: int) -> None:
        errors[n] = children[n].communicate("go\n", timeout=300)[1]

    threads = [threading.Thread(target=finish, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [child.returncode for child in children] == [0, 0], errors
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        memory = system.conversation("c")
        said = [node.message.content for node in memory.history]
        assert sorted(said) == sorted(f"{who}{n}-{k}" for who in "qa" for n in range(2) for k in range(count))
        assert memory.verify().problems == ()
        assert len(memory.threads()) == 1  # each turn follows what was there when it was written


def test_eight_threads_on_one_memory_lose_nothing(system: MemorySystem) -> None:
    memory, errors = system.conversation("c"), []

    def talk(n: int) -> None:
        try:
            for k in range(25):
                memory.append(f"q{n}.{k}", f"a{n}.{k}")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=talk, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(memory.history) == 400
    assert len(memory.roots()) == len(memory.threads()) == 1
    assert memory.verify().problems == ()


def test_many_tasks_on_one_memory_lose_nothing(system: MemorySystem) -> None:
    memory = system.conversation("c")

    async def main() -> list[Any]:
        turns = [memory.aappend(f"q{n}", f"a{n}") for n in range(100)]
        reads = [memory.amessages() for _ in range(20)]
        found = await asyncio.wait_for(asyncio.gather(*turns, *reads, return_exceptions=True), 300)
        await memory.aclose()
        return found

    assert [error for error in asyncio.run(main()) if isinstance(error, Exception)] == []
    with MemorySystem(*_where(system), owner=system.owner, embeddings=False) as again:
        found = again.conversation("c")
        assert len(found.history) == 200
        assert len(found.threads()) == 1
        assert found.verify().problems == ()


def _where(system: MemorySystem) -> tuple[Any]:
    database: Any = system.resources.database
    return (
        database.path or database._url.set(drivername="postgresql").render_as_string(hide_password=False),
    )


def test_a_torn_wal_loses_only_what_it_tore(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    child = start(APPEND_FOR_EVER, str(path), "user")
    assert child.stdout is not None
    for _ in range(50):
        child.stdout.readline()
    os.kill(child.pid, signal.SIGKILL)
    child.communicate(timeout=120)
    wal = path.with_name(path.name + "-wal")
    wal.write_bytes(wal.read_bytes()[:-2000])  # what a power cut does to the end of it
    with MemorySystem(path, embeddings=False) as system:
        memory = system.conversation("c")
        assert memory.verify().problems == ()
        ids = [node.message.id for node in memory.history]
        assert ids == [f"{who}{n}" for n in range(len(ids) // 2) for who in "qa"]
        assert len(ids) >= 90
