"""The free space of an SQLite file: no text of erased rows is in any page, also after pages were split."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from langchain_threadmem import MemorySystem
from langchain_threadmem.errors import PersistenceError
from langchain_threadmem.index import lexicon
from langchain_threadmem.langgraph.store import ThreadMemStore
from langchain_threadmem.storage.free_space import FreeSpace
from langchain_threadmem.storage.migrations import CAN_OVERWRITE
from langchain_threadmem.storage.schema import LEXICON

SCHEMAS = Path(__file__).parents[1] / "data" / "schemas"
Wrap = Callable[[Any], Any]
SECRET = b"heron's code"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def system(path: Path) -> Iterator[MemorySystem]:
    with MemorySystem(path, owner="ada", embeddings=False) as opened:
        for number in range(30):
            opened.conversation(f"c{number}").append(f"What is {number}?", f"A number, {number}.")
        yield opened


def raw(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.iterdir() if file.name.startswith(path.name))


def hide(path: Path, text: bytes = SECRET) -> None:
    """Write a text into the unallocated space of a page, where SQLite may leave the copy of a moved row."""
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    connection.close()
    content = bytearray(path.read_bytes())
    for start in range(size, len(content), size):
        begin = start + 8 + 2 * int.from_bytes(content[start + 3 : start + 5])
        end = start + int.from_bytes(content[start + 5 : start + 7])
        if content[start] in (10, 13) and end - begin > 2 * len(text):
            middle = (begin + end) // 2
            content[middle : middle + len(text)] = text
            path.write_bytes(content)
            return
    raise AssertionError("no page has unallocated space")


def test_the_copy_of_a_row_in_a_page_of_the_file_is_cleared(
    system: MemorySystem, path: Path, verbs: Wrap
) -> None:
    hide(path)
    assert SECRET in raw(path)
    assert verbs(system).erase(conversation="c3").scrubbed
    assert SECRET not in raw(path)
    assert system.verify().ok


@pytest.mark.parametrize("length", [2, 3, 7, 8, 9])
@pytest.mark.parametrize("position", range(9))
def test_two_bytes_of_text_are_found_anywhere_in_unallocated_space(
    tmp_path: Path, length: int, position: int
) -> None:
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA page_size=512")
        connection.execute("CREATE TABLE t (a)")
        connection.executemany("INSERT INTO t VALUES (?)", [("kept text",)] * 7)
    connection.close()
    space = FreeSpace(path)
    assert not space.holds_text(None, only_log=False)
    content = bytearray(path.read_bytes())
    begin, end = 512 + 8 + 2 * 7, 512 + int.from_bytes(content[512 + 5 : 512 + 7])
    for at in (begin + position, end - length - position):
        hidden = bytearray(content)
        hidden[at : at + length] = b"x" * length
        path.write_bytes(hidden)
        assert space.holds_text(None, only_log=False)
    for hidden_text in ("né", "日本"):
        hidden = bytearray(content)
        hidden[begin + position : begin + position + len(hidden_text.encode())] = hidden_text.encode()
        path.write_bytes(hidden)
        assert space.holds_text(None, only_log=False)
    # A pointer to a cell that SQLite has moved is no text, nor are the length and the key of a row.
    for numbers in (b"\x01\xb2\x01\xa0", b"q\x90\x80\x80\x0d\x08\x00\x81", b"\x80\x80\x80\x80"):
        hidden = bytearray(content)
        hidden[begin : begin + len(numbers)] = numbers
        path.write_bytes(hidden)
        assert not space.holds_text(None, only_log=False)
    space.close()


def test_stale_keys_of_an_interior_page_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA page_size=512")
        connection.execute("PRAGMA secure_delete=ON")
        connection.execute("CREATE TABLE t (a)")
        connection.executemany("INSERT INTO t VALUES (?)", [("kept text",)] * 99)
    connection.close()
    space = FreeSpace(path)
    content = bytearray(path.read_bytes())
    [page] = [start for start in range(512, len(content), 512) if content[start] == 5]
    begin = page + 12 + 2 * int.from_bytes(content[page + 3 : page + 5])
    for stale, is_text in [(b"\x00\x00Z[\xc8\x80\x80\x08", False), (b"a secret", True)]:
        hidden = bytearray(content)
        hidden[begin : begin + 8] = stale
        path.write_bytes(hidden)
        assert space.holds_text(None, only_log=False) == is_text
    space.close()


def test_what_another_connection_has_written_since_is_searched_too(system: MemorySystem, path: Path) -> None:
    assert system.erase(conversation="c1").scrubbed
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE other (a)").connection.commit()
    other.close()
    hide(path)
    assert system.erase(conversation="c2").scrubbed
    assert SECRET not in raw(path)


def test_the_first_erasure_clears_what_earlier_versions_left_in_a_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(SCHEMAS / "8" / "sqlite.zip") as archive:
        archive.extract("memory.db", tmp_path)
    path = tmp_path / "memory.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA secure_delete=OFF")
        connection.execute("CREATE TABLE other (a)")
        connection.execute("INSERT INTO other VALUES (?)", (SECRET.decode() * 999,))
        connection.execute("DELETE FROM other")
    connection.close()
    assert SECRET in raw(path)
    with MemorySystem(path, embeddings=False) as system:
        assert SECRET in raw(path)
        assert system.erase(conversation="none").scrubbed
        assert SECRET not in raw(path)


def test_scrubbing_returns_free_space_to_the_disk(system: MemorySystem, path: Path, verbs: Wrap) -> None:
    system.conversation("large").append("bread " * 50_000, "Yes.")
    assert system.erase(conversation="large").scrubbed
    before = path.stat().st_size
    assert verbs(system).scrub().ok
    assert path.stat().st_size < before


@pytest.mark.parametrize("seed", range(3))
def test_no_word_of_an_erased_conversation_is_in_an_old_file(path: Path, seed: int) -> None:
    """Conversations grow at the same time; messages of all sizes are edited, moved and erased."""
    chance = random.Random(seed)
    erased: list[bytes] = []
    with MemorySystem(path, owner="ada", embeddings=False) as system:
        store = ThreadMemStore(system)
        names = [f"talk {number}" for number in range(12)]
        for step in range(160):
            name = chance.choice(names)
            word = f"w{names.index(name)}x{seed}z"
            memory = system.conversation(name)
            text = f"{word} " * chance.choice([1, 1, 3, 20, 150, 700])
            history = [node for node in memory.history if node.state.label == "live"]
            kind = chance.random() if history else 0.0
            if kind < 0.5:
                memory.append(f"{step} {text}", f"Noted: {text}")
            elif kind < 0.7:
                memory.edit(chance.choice(history).id, f"{step} {text}")
            elif kind < 0.8:
                memory.place(
                    chance.choice([n for n in history if n.message.type == "human"] or history).id, None
                )
            elif kind < 0.85:
                store.put(("notes",), str(step % 5), {"text": "kept " * chance.randrange(900)})
            elif kind < 0.9:
                system.query("noted", k_limit=1)
            else:
                assert system.erase(conversation=name).scrubbed
                content = raw(path)
                assert word.encode() not in content
                assert b"Noted" in content or len({*erased}) > 5
                erased.append(word.encode())
                names[names.index(name)] = f"talk {step} again"
        assert len(erased) > 3
        assert system.verify().ok


def test_closing_leaves_no_file_open(path: Path) -> None:
    def opened() -> int:
        return len(os.listdir("/dev/fd"))

    if not os.path.isdir("/dev/fd"):
        pytest.skip("this system does not list open files")
    MemorySystem(path, embeddings=False).close()
    before = opened()
    with MemorySystem(path, embeddings=False) as system:
        system.conversation("c").append("heron", "noted")
        assert system.erase(conversation="c").scrubbed
    assert opened() == before


@pytest.mark.skipif(sys.platform == "win32", reason="locks belong to a descriptor there")
def test_locks_of_other_connections_in_the_process_stay(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE t (a)")
    connection.execute("BEGIN IMMEDIATE")
    space = FreeSpace(path)
    assert not space.holds_text(None, only_log=False)
    space.close()
    attempt = f"import sqlite3; sqlite3.connect({str(path)!r}, timeout=0).execute('BEGIN IMMEDIATE')"
    found = subprocess.run([sys.executable, "-c", attempt], capture_output=True, text=True, check=False)
    assert "database is locked" in found.stderr
    connection.close()


@pytest.mark.skipif(not CAN_OVERWRITE, reason="SQLite before 3.42 rewrites the index of words")
@pytest.mark.parametrize("most", [1000, 1])
def test_words_are_overwritten_once_an_erasure_has_rewritten_the_index(
    system: MemorySystem, path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    for number in range(3):
        system.conversation(f"secret {number}").append(f"The heron{number} flies.", "It does.")
    assert system.query("heron1")
    assert system.erase(conversation="secret 0").ok
    monkeypatch.setattr(lexicon, "MOST_OVERWRITTEN", most)
    rewritten: list[str] = []
    system.runtime.database._database._cursor.connection.set_trace_callback(  # type: ignore[attr-defined]
        lambda sql: rewritten.append(sql) if "'optimize'" in sql else None
    )
    for number in (1, 2):
        assert system.erase(conversation=f"secret {number}").ok
        assert b"heron%d" % number not in raw(path)
    assert len(rewritten) == (0 if most > 1 else 2)
    assert system.verify().ok
    assert not system.query("heron1")
    assert system.query("number")


@pytest.mark.skipif(CAN_OVERWRITE, reason="SQLite 3.42 and newer read every index of words")
def test_an_index_of_words_of_a_newer_sqlite_is_made_again(system: MemorySystem, path: Path) -> None:
    found = [unit.id for thread in system.query("number") for unit in thread]
    system.close()
    with sqlite3.connect(path) as connection:
        config = f"{LEXICON}_config"
        connection.execute(f"UPDATE {config} SET v = 5 WHERE k = 'version'")
        connection.execute(f"INSERT INTO {config} VALUES ('secure-delete', 1)")
    connection.close()
    with (
        MemorySystem(path, owner="ada", embeddings=False, read_only=True) as reader,
        pytest.raises(PersistenceError, match=r"newer SQLite than .* with write access"),
    ):
        reader.query("number")
    with MemorySystem(path, owner="ada", embeddings=False) as opened:
        assert [unit.id for thread in opened.query("number") for unit in thread] == found
        assert opened.verify().ok
