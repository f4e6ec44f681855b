"""Forked processes: parent and child both continue, and neither damages data of the other."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from langchain_threadmem import MemorySystem, ThreadMemRetriever, ThreadMemSaver
from langchain_threadmem.errors import InputError
from langchain_threadmem.langchain.langchain4j import MessageWindowChatMemory

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks on Windows")
TESTS = Path(__file__).parents[1]
BEGIN = """
import asyncio, os, signal, sqlite3, sys, threading, time, traceback
sys.path.insert(0, sys.argv[2])
from conftest import WordEmbeddings
from langchain_threadmem import ChatMemory, LocalEmbeddings, MemorySystem
from langchain_threadmem.errors import PersistenceError
from langchain_threadmem.index import owner_index as index
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.engine.flow import Sql
from langchain_threadmem.engine.flow import run

def forked(work):
    pid = os.fork()
    if pid:
        return pid
    signal.alarm(60)
    try:
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)

def ended(pid):
    assert os.waitpid(pid, 0)[1] == 0, "the child failed"

def opened(url=sys.argv[1], **options):
    return MemorySystem(url, **{"owner": sys.argv[3], "embeddings": WordEmbeddings(), **options})

def use(system, name):
    memory = system.conversation(name)
    memory.append("How do stars burn?", "Hydrogen becomes helium.")
    async def more():
        await memory.aappend("How is bread baked?", "With flour and patience.")
        return await memory.arecall("bread")
    assert "bread" in asyncio.run(more())[0].node.message.content
    memory.append("Is rye bread baked too?", "It is.")
    assert memory.recall("stars", scope="owner")
    while system.runtime.ahead.busy(memory._conversation.tree):
        time.sleep(0.01)
    assert len(memory.history) % 6 == 0
"""


def script(url: str, owner: str, text: str) -> str:
    """The output of a script that runs in a new process."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BEGIN + text, url, str(TESTS), owner],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_parent_and_child_both_go_on(url: str, owner: str) -> None:
    script(
        url,
        owner,
        """
system = opened()
use(system, "before")
pids = [forked(lambda n=n: use(system, f"child {n}")) for n in range(2)]
use(system, "parent")
use(system, "before")
for pid in pids:
    ended(pid)
assert system.verify().ok
assert len(system.conversations()) == 4
system.close()
""",
    )


def test_what_a_child_wrote_outlives_its_parent(url: str, owner: str) -> None:
    script(
        url,
        owner,
        """
system = opened()
use(system, "before")
there, go = os.pipe()
def work():
    memory = system.conversation("child")
    memory.append("one", "two")
    os.read(there, 1)
    memory.append("three", "four")
    os._exit(0)
pid = forked(work)
time.sleep(0.5)
system.close()
with opened() as other:  # and what is written to the file meanwhile is there too
    other.conversation("other").append("five", "six")
os.write(go, b"x")
ended(pid)
""",
    )
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        assert len(system.conversation("child").history) == 4
        assert len(system.conversation("other").history) == 2
        assert system.verify().ok


def test_a_fork_beside_busy_threads_hangs_nobody(url: str, owner: str) -> None:
    script(
        url,
        owner,
        """
system = opened()
use(system, "before")
done = threading.Event()
def busy(name):
    memory = system.conversation(name)
    async def both():
        while not done.is_set():
            await memory.aappend("stars", "helium")
            await memory.arecall("stars")
    asyncio.run(both()) if name == "async" else None
    while not done.is_set():
        memory.append("stars", "helium")
        memory.recall("stars")
threads = [threading.Thread(target=busy, args=(name,)) for name in ("sync", "async")]
for thread in threads:
    thread.start()
for n in range(6):
    time.sleep(0.02 * n)
    ended(forked(lambda: use(system, f"child {n}")))
done.set()
for thread in threads:
    thread.join()
use(system, "after")
assert system.verify().ok
system.close()
""",
    )


def test_a_database_in_memory_is_copied_into_the_child(owner: str) -> None:
    script(
        "sqlite://",
        owner,
        """
system = opened()
use(system, "before")
def work():
    use(system, "before")
    assert len(system.conversation("before").history) == 12
ended(forked(work))
assert len(system.conversation("before").history) == 6
""",
    )


def test_a_child_that_is_forked_amid_a_transaction_says_so(tmp_path: Path, owner: str) -> None:
    script(
        str(tmp_path / "memory.db"),
        owner,
        """
system = opened()
use(system, "before")
def work():
    pid = os.fork()
    if pid == 0:
        def elsewhere():
            try:
                system.conversations()
            except PersistenceError as error:
                os._exit(0 if "forked during a transaction" in str(error) else 2)
            os._exit(3)
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    return pid
ended(run(Sql(lambda conn: work(), write=True), system.runtime))
use(system, "before")
assert system.verify().ok
""",
    )


def test_a_child_does_not_hold_the_directory_of_its_parents_vectors(tmp_path: Path, owner: str) -> None:
    script(
        str(tmp_path / "memory.db"),
        owner,
        """
index.EXACT_BELOW = 0
system = opened()
use(system, "before")
assert system.runtime.get(Indexes).index() is not None
def work():
    use(system, "child")
    assert system.runtime.get(Indexes).index() is None
    with opened() as other:
        assert other.runtime.get(Indexes).index() is None
ended(forked(work))
use(system, "parent")
assert system.runtime.get(Indexes).index() is not None
assert system.verify().ok
system.close()
""",
    )


def test_a_child_embeds_with_a_model_of_its_own(tmp_path: Path, owner: str) -> None:
    if not _has_local_model():
        pytest.skip("the files of the local model are not installed")
    script(
        str(tmp_path / "memory.db"),
        owner,
        """
system = opened(embeddings=LocalEmbeddings(threads=2))
use(system, "before")
pid = forked(lambda: use(system, "child"))
use(system, "parent")
ended(pid)
system.close()
""",
    )


def _has_local_model() -> bool:
    from langchain_threadmem import LocalEmbeddings

    return LocalEmbeddings.available()


def test_a_child_may_end_as_any_process_does(url: str, owner: str) -> None:
    script(
        url,
        owner,
        """
index.EXACT_BELOW = 0
system = opened()
use(system, "before")
if pid := os.fork():
    ended(pid)
    use(system, "parent")
    system.close()
else:
    signal.alarm(60)
    use(system, "child")
    sys.exit(0)
""",
    )


def test_an_open_memory_is_neither_pickled_nor_copied(system: MemorySystem) -> None:
    memory = system.conversation("figs")
    windows = MessageWindowChatMemory(2), MessageWindowChatMemory(2, store=system)
    for one in (system, memory, ThreadMemSaver(system), ThreadMemRetriever(memory=memory), windows[1]):
        for copied in (pickle.dumps, copy.deepcopy):
            with pytest.raises(InputError, match="pass its URL"):
                copied(one)
    windows[0].add("Hello")
    for other in (copy.deepcopy(windows[0]), pickle.loads(pickle.dumps(windows[0]))):
        other.add("Bye")
        assert len(other.messages) == 2
    assert len(windows[0].messages) == 1
