"""Verbs that write much, the databases they begin with, and what is read from these afterwards."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage, HumanMessage

from langchain_threadmem import MemorySystem, ThreadMemSaver, ThreadMemStore
from langchain_threadmem.apps.transfer.convert import backup, convert
from langchain_threadmem.engine.flow import run
from langchain_threadmem.errors import InputError, UnitNotFoundError
from langchain_threadmem.maintenance import repair as repairing
from langchain_threadmem.storage.partitioning.partition import partition
from langchain_threadmem.storage.statements import Statement
from langchain_threadmem.tree.node import MessageSummary
from torture.flips import EMBEDDINGS
from torture.work import BUILDER, config_of

OWNER = "ada"
KEPT, GONE, OLDER = "kept", "gone", "older"
"""Conversations that no verb removes, that some remove, and of which some remove the oldest messages."""
ERASED = "zqheron7"
"""A word of the conversation `gone` and of the oldest messages of `older`."""
YEAR = datetime(2021, 1, 1, tzinfo=UTC)
SCHEMAS = Path(__file__).parents[1] / "tests" / "data" / "schemas"
AGAIN = 0.3
"""The share of kills after which the verb is killed again."""


class Quoting:
    """A summarizer that quotes what it summarises."""

    def summarize(self, message: BaseMessage) -> MessageSummary:
        return MessageSummary(title=message.text[:60], summary=message.text[:500])


@dataclass
class Scene:
    """A database, and where copies and files are made.

    Attributes:
        url: The database.
        other: An empty database for a copy, or the same.
        folder: The folder.
        is_shared: Whether other processes append meanwhile, which may begin an erased conversation again.
    """

    url: str
    other: str
    folder: Path
    is_shared: bool = False

    def opened(self, url: str | None = None) -> MemorySystem:
        return MemorySystem(
            url or self.url,
            owner=OWNER,
            embeddings=EMBEDDINGS,
            summarizer=Quoting(),
            settings={"max_group_size": 3},
        )

    def read(self, *, derived: bool = False) -> Reading:
        """What all databases contain, by their names; with `derived`, what is written from messages too."""
        places = {"the database": self.url}
        places |= {path.name: f"sqlite:///{path}" for path in sorted(self.folder.glob("*.db"))}
        if self.other != self.url:
            places["the other"] = self.other
        found = {}
        for place, url in places.items():
            with self.opened(url) as system:
                problems = tuple(system.verify().problems)
                histories = {name: history_of(system, name) for name in sorted(system.conversations())}
                others = derived_of(system, list(histories)) if derived else []
                found[place] = Contents(histories, problems, others)
        return found


class Contents(NamedTuple):
    """What a database contains."""

    histories: dict[str, list[Any]]
    problems: tuple[str, ...]
    derived: list[Any]


Reading = dict[str, Contents]


def history_of(system: MemorySystem, name: str) -> list[Any]:
    return [
        (node.id, node.parent_id, node.message.id, node.message.text, node.superseded_by)
        for node in system.conversation(name).history
    ]


def derived_of(system: MemorySystem, names: list[str]) -> list[Any]:
    """Summaries, titles, checkpoints, items, and what recall finds."""
    found: list[Any] = [[(item.id, item.title, item.metadata) for item in system.list_conversations()]]
    for name in (*names, OWNER):
        with suppress(UnitNotFoundError):
            found.append((name, system.unit(name).content))
    for name in names:
        memory = system.conversation(name)
        found.append([node.summary and node.summary.title for node in memory.history])
        found.append([saved.checkpoint["id"] for saved in ThreadMemSaver(system).list(config_of(name))])
        found.append([hit.node.id for hit in memory.recall(f"question {ERASED} kestrel", n_results=50)])
    found.append([item.value for item in ThreadMemStore(system).search(("birds",))])
    return found


# What is in the database before the verb


def fill(scene: Scene) -> None:
    """Every kind of data, with the erased word in what is written from messages too."""
    unindexed(scene)
    with scene.opened() as system:
        system.conversation(KEPT).recall("question", scope="owner")
        system.flush()
        for name in (KEPT, GONE, OLDER):
            system.conversation(name, summarizer=Quoting()).summarize()
        system.summarize_long_term_memory()


def unindexed(scene: Scene) -> None:
    """Messages, and nothing that is written from them."""
    with scene.opened() as system:
        graph = BUILDER.compile(ThreadMemSaver(system))
        for name, word in ((KEPT, "kestrel"), (GONE, ERASED)):
            for turn in range(2):
                said = HumanMessage(f"{word} {turn}", id=f"q-{word}{turn}")
                graph.invoke({"messages": [said]}, config_of(name))
            memory = system.conversation(name)
            for n in range(4):
                memory.append(f"Question {n} about the {word}.", f"Answer {n} about the {word}.")
            memory.edit(5, f"Another question about the {word}.")
            memory.place(9, None)
            system.update_conversation(name, title="About birds", metadata={"stars": 3})
        turns = [(f"Question {n}, {ERASED}.", f"Answer {n}, {ERASED}.") for n in range(3)]
        memory = system.conversation(OLDER)
        memory.extend(sum(turns, ()), timestamps=[YEAR.replace(year=2020)] * 6)
        memory.append("A later question.", "A later answer.")
        ThreadMemStore(system).put(("birds",), "kestrel", {"legs": 2})


def damaged(scene: Scene) -> None:
    """With a link to an erased message; on SQLite, whose rows have checksums, wrong words and vectors."""
    fill(scene)
    hanging = "UPDATE threadmem_node SET parent = 4 WHERE seq = 7 AND tree IN (SELECT id FROM threadmem_tree"
    link = f"{hanging} WHERE conversation = '{OLDER}' AND scope = '')"
    with scene.opened() as system:
        system.erase(before=YEAR)
        system.conversation(KEPT).recall("question", scope="owner")
        system.runtime.database.write(lambda conn: conn.run(Statement.of(sqlite=link, postgresql=link)))
    if scene.url.startswith("sqlite"):
        connection = sqlite3.connect(
            scene.url.removeprefix("sqlite:///")
        )  # without the triggers of checksums
        connection.executescript(
            "UPDATE threadmem_document SET terms = 'wrong'; UPDATE threadmem_embedding SET vector = x'00'"
        )
        connection.close()


def earlier(scene: Scene) -> None:
    """The file of the first schema that is kept in `tests/data/schemas`."""
    version = min(path for path in SCHEMAS.iterdir() if path.name.isdigit())
    if scene.url.startswith("sqlite"):
        with zipfile.ZipFile(version / "sqlite.zip") as archive:
            Path(scene.url.removeprefix("sqlite:///")).write_bytes(archive.read("memory.db"))
        return
    import psycopg

    with psycopg.connect(scene.url) as connection:
        connection.execute((version / "postgresql.sql").read_text())


# The verbs


def import_file(scene: Scene) -> None:
    with scene.opened() as system:
        system.import_file(_chats(scene.folder))


def sort(scene: Scene) -> None:
    with scene.opened() as system:
        system.import_file(_chats(scene.folder), sort=True)


def _chats(folder: Path) -> Path:
    """A file of conversations, some with branches."""
    path = folder / "conversations.json"
    path.write_text(json.dumps([_chat(n) for n in range(CHATS)]))
    return path


CHATS = 8


def _chat(number: int) -> dict[str, Any]:
    mapping: dict[str, Any] = {"top": {"id": "top", "parent": None, "children": [], "message": None}}
    topics = ("bread", "wine", "trains")
    for n in range(6):
        id = f"m{number}-{n}"
        role, topic = ("user", "assistant")[n % 2], topics[n // 2 * number % 3]
        message = {
            "id": id,
            "author": {"role": role},
            "create_time": 1_700_000_000.0 + n,
            "content": {"content_type": "text", "parts": [f"{role} {n} of {number} on {topic}"]},
            "recipient": "all",
            "metadata": {},
        }
        parent = "top" if n == 0 else f"m{number}-{1 if number % 2 and n == 4 else n - 1}"
        mapping[id] = {"id": id, "parent": parent, "children": [], "message": message}
    return {
        "conversation_id": f"chat-{number}",
        "title": f"Chat {number}",
        "create_time": 1_700_000_000.0,
        "current_node": f"m{number}-5",
        "mapping": mapping,
    }


def catch_up(scene: Scene) -> None:
    """The words and vectors of messages."""
    with scene.opened() as system:
        system.conversation(KEPT).recall("question", scope="owner")
        system.flush()


def summarize(scene: Scene) -> None:
    with scene.opened() as system:
        for name in (KEPT, GONE):
            system.conversation(name, summarizer=Quoting()).summarize()
        system.summarize_session(KEPT, by="thread")
        system.summarize_long_term_memory()


def repair(scene: Scene) -> None:
    with scene.opened() as system:
        run(repairing.repair(system.runtime), system.runtime)


def migrate(scene: Scene) -> None:
    scene.opened().close()


def partition_tables(scene: Scene) -> None:
    with suppress(InputError):  # It is partitioned already, by a process that was killed then.
        partition(scene.url, 2)


def copy(scene: Scene) -> None:
    """Into a folder, from there into another database, and directly into a file."""
    folder = scene.folder / "copy"
    for source, target in ((scene.url, folder), (folder, scene.other), (scene.url, scene.folder / "copy.db")):
        with suppress(InputError):  # The copy is there already.
            convert(source, target, owner=None)


def backup_and_restore(scene: Scene) -> None:
    first, second = scene.folder / "backup.db", scene.folder / "restored.db"
    for source, target in ((scene.url, first), (first, second)):
        with suppress(InputError):
            backup(source, target)


def erase(scene: Scene) -> None:
    with scene.opened() as system:
        for name in (GONE, OLDER):
            receipt = system.erase(conversation=name)
            assert receipt.ok or scene.is_shared, receipt.left


def erase_older(scene: Scene) -> None:
    with scene.opened() as system:
        system.erase(conversation=GONE)
        receipt = system.erase(before=YEAR)
        assert receipt.ok or scene.is_shared, receipt.left


def forget(scene: Scene) -> None:
    """Single messages."""
    with scene.opened() as system:
        for name in (GONE, OLDER):
            memory = system.conversation(name)
            while found := [n.id for n in memory.history if ERASED in n.message.text and n.state == 0]:
                memory.forget(found[0])
        system.scrub()


def purge(scene: Scene) -> None:
    """All units."""
    with scene.opened() as system:
        system.forget(1.0, purge=True)
        system.scrub()


def reset(scene: Scene) -> None:
    with scene.opened() as system:
        system.conversation(GONE).reset()
        ThreadMemSaver(system).delete_thread(OLDER)
        system.scrub()


def remove(scene: Scene) -> None:
    with scene.opened() as system:
        for name in (GONE, OLDER):
            if name in system.sessions():
                system.remove_session(name)
        system.scrub()


class Verb(NamedTuple):
    """A verb.

    Attributes:
        run: Runs it to its end, also after kills.
        fill: Fills the database before.
        parts: Whether a conversation may be changed in parts.
        erases: Whether `ERASED` is nowhere afterwards.
        database: The only database that has it, if it is not for both.
    """

    run: Callable[[Scene], None]
    fill: Callable[[Scene], None] = fill
    parts: bool = False
    erases: bool = False
    database: str = ""


VERBS = {
    "import": Verb(import_file),
    "sort": Verb(sort, parts=True),
    "catch up": Verb(catch_up, unindexed),
    "summarize": Verb(summarize, unindexed),
    "repair": Verb(repair, damaged),
    "migrate": Verb(migrate, earlier),
    "partition": Verb(partition_tables, database="postgresql"),
    "copy": Verb(copy),
    "backup": Verb(backup_and_restore),
    "erase": Verb(erase, erases=True),
    "erase older": Verb(erase_older, erases=True),
    "forget": Verb(forget, parts=True, erases=True),
    "purge": Verb(purge, erases=True),
    "reset": Verb(reset, erases=True),
    "remove": Verb(remove, erases=True),
}


def where_erased(scene: Scene) -> list[str]:
    """The files, or the tables of PostgreSQL, that contain the erased word."""
    if not scene.url.startswith("sqlite"):
        import psycopg

        with psycopg.connect(scene.url) as connection:
            tables = [row[0] for row in connection.execute(_TABLES)]
            holding = f"SELECT FROM \"{{}}\" t WHERE t::text ~ '{ERASED}|{ERASED.encode().hex()}' LIMIT 1"
            return [table for table in tables if connection.execute(holding.format(table)).fetchall()]
    path = Path(scene.url.removeprefix("sqlite:///"))
    return [file.name for file in path.parent.glob(f"{path.name}*") if ERASED.encode() in file.read_bytes()]


_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
