"""LangGraph: the history of a thread (`/threads/<id>/history` of a server), or the state of a thread.

Each checkpoint has the messages at its time. A checkpoint with another parent is a branch: the tree is the
union of the lists. The fields follow langchain-ai/langgraph (ThreadState of the SDK, and StateSnapshot of
`get_state_history` in Python and JavaScript, which has a config in place of the checkpoint).
"""

from __future__ import annotations

from langchain_core.messages import BaseMessage

from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.chats import Chat, Chats, Entry
from langchain_threadmem.formats.importers.source import Format, Source, checked
from langchain_threadmem.messages.ids import chained_id
from langchain_threadmem.messages.records import as_list, as_object, message_from, unwrapped
from langchain_threadmem.storage.schema import State


def is_item(value: object) -> bool:
    """Whether an item of a JSON file is a state of a thread."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("values"), dict | list)
        and ("checkpoint" in value or "checkpoint_id" in value or "thread_id" in _checkpoint(value))
    )


def _checkpoint(state: fields.Record) -> fields.Record:
    """The names of the thread, the namespace and the checkpoint of a state."""
    return fields.record(state, "checkpoint") or fields.record(state, "config", "configurable")


def chats(source: Source) -> Chats:
    """The conversations of a history: one for each thread, without the namespaces of subgraphs."""
    threads: dict[str, list[tuple[str, fields.Record]]] = {}

    def read(state: fields.Record, position: str) -> None:
        about = _checkpoint(state)
        if not about.get("checkpoint_ns"):
            threads.setdefault(fields.text(about, "thread_id") or source.name, []).append((position, state))

    yield from source.each(read)
    for name, states in threads.items():
        thread = _CheckpointThread()
        for position, state in sorted(states, key=lambda one: (_time(one[1]), _step(one[1]))):
            yield from checked(position, thread.read, state, position)
        yield Chat(states[0][0], name, [*thread.entries.values()], tip=thread.last)


def _time(state: fields.Record) -> str:
    return fields.text(state, "created_at", "createdAt") or ""


def _step(state: fields.Record) -> int:
    step = fields.at(state, "metadata", "step")
    return step if isinstance(step, int) else 0


class _CheckpointThread:
    """The union of the lists of messages of the checkpoints.

    Attributes:
        entries: The messages by their keys.
        last: The end of the newest list.
    """

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.last: str | None = None

    def read(self, state: fields.Record, position: str) -> None:
        """Add the messages of a checkpoint, oldest checkpoint first."""
        time, previous = fields.seconds(_time(state), position), None
        values = state["values"]
        messages = values.get("messages") if isinstance(values, dict) else values
        for item in as_list(messages or [], f"'messages' of {position}"):
            record = as_object(unwrapped(item), f"a message of {position}")
            if record.get("type") == "remove":
                continue
            message = message_from(record, position)
            id = message.id or chained_id("import-", previous, record)
            key = id
            known = self.entries.get(id)
            if known is not None and (known.parent != previous or known.make() != message):
                # The message has another place, or other content, in another branch.
                key = chained_id("import-", previous, [id, message.type, message.text])
            if key not in self.entries:
                self.entries[key] = _entry(key, previous, message, time)
            previous = key
        self.last = previous


def _entry(key: str, parent: str | None, message: BaseMessage, time: float | None) -> Entry:
    state = State.ASIDE if message.type == "system" else State.LIVE
    return Entry(key, parent, lambda: message, time, state=state)


FORMAT = Format("langgraph", "the history of a LangGraph thread", chats, is_item)
