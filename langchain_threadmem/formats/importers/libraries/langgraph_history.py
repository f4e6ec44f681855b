"""LangGraph: the history of a thread (`/threads/<id>/history` of a server), or the state of a thread.

Each checkpoint has the messages at its time. A checkpoint with another parent is a branch: the tree is the
union of the lists. The fields follow langchain-ai/langgraph (ThreadState of the SDK, and StateSnapshot of
`get_state_history` in Python and JavaScript, which has a config in place of the checkpoint).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage

from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.chats import Chat, Chats, Entry
from langchain_threadmem.formats.importers.source import Format, Source, checked
from langchain_threadmem.messages.ids import chained_id
from langchain_threadmem.messages.records import as_list, as_object, message_from, unwrapped
from langchain_threadmem.storage.schema import State


def _is_state(value: Any) -> bool:
    return fields.has(value, values=(dict, list)) and (
        "checkpoint" in value or "checkpoint_id" in value or "thread_id" in _checkpoint(value)
    )


def _checkpoint(state: fields.Record) -> fields.Record:
    """The names of the thread, the namespace and the checkpoint of a state."""
    return fields.record(state, "checkpoint") or fields.record(state, "config", "configurable")


def _chats(source: Source) -> Chats:
    """The conversations of a history: one for each thread, without the namespaces of subgraphs."""
    threads: dict[str, list[tuple[str, fields.Record]]] = {}

    def read(state: fields.Record, position: str) -> None:
        about = _checkpoint(state)
        if not about.get("checkpoint_ns"):
            threads.setdefault(fields.text(about, "thread_id") or source.name, []).append((position, state))

    yield from source.each(read)
    for name, states in threads.items():
        entries: dict[str, Entry] = {}
        ends: list[str | None] = []
        for position, state in sorted(states, key=lambda one: _age(one[1])):
            yield from checked(position, _read, entries, ends, state, position)
        yield Chat(states[0][0], name, [*entries.values()], tip=ends[-1] if ends else None)


def _age(state: fields.Record) -> tuple[str, int]:
    step = fields.at(state, "metadata", "step")
    return fields.text(state, "created_at", "createdAt") or "", step if isinstance(step, int) else 0


def _read(entries: dict[str, Entry], ends: list[str | None], state: fields.Record, position: str) -> None:
    """Add the messages of a checkpoint to those of older ones, by their keys, and the last key to `ends`."""
    time, previous = fields.seconds(_age(state)[0], position), None
    values = state["values"]
    messages = values.get("messages") if isinstance(values, dict) else values
    for item in as_list(messages or [], f"'messages' of {position}"):
        record = as_object(unwrapped(item), f"a message of {position}")
        if record.get("type") == "remove":
            continue
        message = message_from(record, position)
        key = id = message.id or chained_id("import-", previous, record)
        known = entries.get(id)
        if known is not None and (known.parent != previous or known.make() != message):
            # The message has another place, or other content, in another branch.
            key = chained_id("import-", previous, [id, message.type, message.text])
        shown = State.ASIDE if message.type == "system" else State.LIVE
        entries.setdefault(key, Entry(key, previous, partial(_itself, message), time, state=shown))
        previous = key
    ends.append(previous)


def _itself(message: BaseMessage) -> BaseMessage:
    return message


FORMAT = Format("langgraph", "the history of a LangGraph thread", _chats, _is_state)
