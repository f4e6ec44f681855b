"""Conversations for the program `llm`: rows of the tree of messages in its `logs.db`, with all branches.

A message is identified by a hash of its contents and of the hash of its parent, as `llm` computes it, so
that rows that `llm` has stored itself are not stored twice. Each branch is a thread that was forked from
the first one, and each answer is a turn, which has the time and the model.

The tables and the hash follow simonw/llm (llm/migrations.py and llm/logs.py of 0.36).
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_threadmem.common.inputs import path_of
from langchain_threadmem.errors import PersistenceError
from langchain_threadmem.formats.exporters.chat_apps import About, model_of
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree import graph
from langchain_threadmem.tree.node import ConversationNode

_TABLES = {
    "messages": "hash TEXT PRIMARY KEY, parent_hash TEXT, role TEXT, provider_metadata TEXT",
    "parts": "id INTEGER PRIMARY KEY, message_hash TEXT, position INTEGER, type TEXT, tool_name TEXT, "
    "text TEXT, payload TEXT",
    "threads": "id TEXT PRIMARY KEY, name TEXT, tip_message_hash TEXT, forked_from TEXT, datetime_utc TEXT",
    "turns": "id TEXT PRIMARY KEY, thread_id TEXT, parent_message_hash TEXT, tip_message_hash TEXT, "
    "model TEXT, datetime_utc TEXT",
}
"""The columns of the tables that are written, for a database that `llm` has not made."""
_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
"""The digits of a ULID."""
ColumnValue = str | int | None


def to_llm(nodes: Sequence[ConversationNode], about: About) -> str:
    """Write a conversation as SQL statements that add it to the `logs.db` of `llm`.

    Args:
        nodes: The nodes of the conversation; asides and superseded messages are omitted.
        about: Its name and title.

    Returns:
        SQL of one transaction. Rows that exist stay; the tables are created if they do not exist.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> script = to_llm([ConversationNode(1, HumanMessage("Hello"))], About("c1", "Greeting", 0.0))
        >>> script.splitlines()[0]
        'BEGIN;'
    """
    lines = ["BEGIN;"]
    lines += [f"CREATE TABLE IF NOT EXISTS {name} ({columns});" for name, columns in _TABLES.items()]
    lines += [_statement(table, row) for table, row in _rows(nodes, about)]
    return "\n".join([*lines, "COMMIT;", ""])


def write_database(path: str | Path, scripts: Sequence[str]) -> None:
    """Add conversations to a database, which is created if it does not exist.

    Args:
        path: The database, such as `llm logs path` prints it.
        scripts: The texts of `to_llm`.

    Raises:
        PersistenceError: The database cannot be written.
    """
    target = path_of(path)
    try:
        with closing(sqlite3.connect(target)) as database:
            for script in scripts:
                database.executescript(script)
    except sqlite3.Error as error:
        raise PersistenceError(f"Cannot write {str(target)!r}: {error}") from error


def _statement(table: str, row: dict[str, ColumnValue]) -> str:
    """The statement that adds a row, unless a row with its key exists."""
    values = ", ".join(map(_literal, row.values()))
    if table != "parts":
        return f"INSERT OR IGNORE INTO {table} ({', '.join(row)}) VALUES ({values});"
    # Parts have a number as key: those of a message exist if the message exists.
    where = f"message_hash = {_literal(row['message_hash'])} AND position = {row['position']}"
    return (
        f"INSERT INTO parts ({', '.join(row)}) SELECT {values} "
        f"WHERE NOT EXISTS (SELECT 1 FROM parts WHERE {where});"
    )


def _literal(value: ColumnValue) -> str:
    if isinstance(value, str):
        quoted = value.replace("\0", "\ufffd").replace("'", "''")
        return f"'{quoted}'"
    return "NULL" if value is None else str(value)


def _rows(nodes: Sequence[ConversationNode], about: About) -> Iterator[tuple[str, dict[str, ColumnValue]]]:
    """The rows of a conversation with their tables."""
    live = {node.id: node for node in nodes if node.state is State.LIVE}
    hashes: dict[int, str] = {}
    for node in sorted(live.values(), key=lambda node: node.id):
        parent = hashes.get(node.parent_id or 0)
        parts = _parts(node.message)
        role = _role(node.message)
        hashes[node.id] = _hash({"parent": parent, "message": {"role": role, "parts": parts}})
        yield (
            "messages",
            {"hash": hashes[node.id], "parent_hash": parent, "role": role, "provider_metadata": None},
        )
        for position, part in enumerate(parts):
            yield "parts", _part_row(hashes[node.id], position, part)
    yield from _threads(list(live.values()), hashes, about)


def _threads(
    live: Sequence[ConversationNode], hashes: dict[int, str], about: About
) -> Iterator[tuple[str, dict[str, ColumnValue]]]:
    """A thread for each branch, the first of them the conversation, and a turn for each answer."""
    by_id = {node.id: node for node in live}
    newest = max((node.timestamp.timestamp() for node in live), default=about.created)
    turns: set[int] = set()
    for number, leaf in enumerate(graph.leaves(live), 1):
        thread = about.name if number == 1 else f"{about.name}-{number}"
        # The thread that was used last is the active one.
        is_active = about.active is not None and leaf.id == about.active
        yield (
            "threads",
            {
                "id": thread,
                "name": about.title,
                "tip_message_hash": hashes[leaf.id],
                "forked_from": None if number == 1 else about.name,
                "datetime_utc": _iso(newest if is_active else min(about.created, newest)),
            },
        )
        for node in graph.path(by_id, leaf.id):
            if isinstance(node.message, AIMessage) and node.id not in turns:
                turns.add(node.id)
                yield "turns", _turn(node, thread, hashes)


def _turn(node: ConversationNode, thread: str, hashes: dict[int, str]) -> dict[str, ColumnValue]:
    """The turn of an answer, between the last message of its input and the answer."""
    time = node.timestamp.timestamp()
    return {
        "id": _ulid(time, f"{thread} {node.id}"),
        "thread_id": thread,
        "parent_message_hash": hashes.get(node.parent_id or 0),
        "tip_message_hash": hashes[node.id],
        "model": model_of(node.message),
        "datetime_utc": _iso(time),
    }


def _iso(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat()


def _ulid(time: float, seed: str) -> str:
    """An id that is ordered by time; the same for the same seed."""
    digits = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:10])
    number = (int(time * 1000) % (1 << 48)) << 80 | digits
    return "".join(_LETTERS[number >> 5 * digit & 31] for digit in range(25, -1, -1))


def _role(message: BaseMessage) -> str:
    if isinstance(message, HumanMessage):
        return "user"
    if isinstance(message, ToolMessage):
        return "tool"
    return "system" if isinstance(message, SystemMessage) else "assistant"


def _parts(message: BaseMessage) -> list[dict[str, Any]]:
    """The parts of a message as `llm` writes them."""
    if isinstance(message, ToolMessage):
        result = {"type": "tool_result", "name": message.name or "", "output": text_of(message)}
        return [result | ({"tool_call_id": message.tool_call_id} if message.tool_call_id else {})]
    parts: list[dict[str, Any]] = []
    if thought := message.additional_kwargs.get("reasoning_content"):
        parts.append({"type": "reasoning", "text": str(thought)})
    if text := text_of(message):
        parts.append({"type": "text", "text": text})
    for call in getattr(message, "tool_calls", ()):
        part = {"type": "tool_call", "name": call["name"], "arguments": call["args"]}
        parts.append(part | ({"tool_call_id": call["id"]} if call["id"] else {}))
    return parts


def _part_row(hash: str, position: int, part: dict[str, Any]) -> dict[str, ColumnValue]:
    payload = {name: value for name, value in part.items() if name not in ("type", "text")}
    return {
        "message_hash": hash,
        "position": position,
        "type": part["type"],
        "tool_name": part.get("name"),
        "text": part.get("text"),
        "payload": json.dumps(payload) if payload else None,
    }


def _hash(value: dict[str, Any]) -> str:
    """The hash of a message: BLAKE2b of 16 bytes over JSON with sorted keys, without spaces."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"b2:{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"
