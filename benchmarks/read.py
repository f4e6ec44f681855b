"""The time to read a thread of 1,000 messages, and its last 20 messages.

The peers are raw `sqlite3` and `SQLChatMessageHistory`; all contestants return message objects. The raw
baseline reads the rows of one table and converts them with LangChain. The thread is read once without forks,
and once with a fork at every fiftieth message, where it changes its segment.

    python -m benchmarks.read [--full]
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict

from benchmarks._measure import Line, beside, command, rounds, within
from benchmarks.append import peer, turns
from langchain_threadmem import ChatMemory, MemorySystem

MESSAGES = 1000
LAST = 20
FORK_EVERY = 50
AT_A_TIME = 5


class Raw:
    """One table of messages in LangChain's own format."""

    def __init__(self, path: Path, messages: list[BaseMessage]) -> None:
        self._database = sqlite3.connect(path)
        self._database.execute("CREATE TABLE message (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
        rows = [(json.dumps(message_to_dict(message)),) for message in messages]
        self._database.executemany("INSERT INTO message (body) VALUES (?)", rows)
        self._database.commit()

    def read(self, last: int = MESSAGES) -> list[BaseMessage]:
        rows = self._database.execute("SELECT body FROM message ORDER BY id DESC LIMIT ?", (last,)).fetchall()
        return messages_from_dict([json.loads(body) for (body,) in reversed(rows)])


def forked(memory: ChatMemory, messages: list[BaseMessage]) -> None:
    """Store a thread of many segments: each fork has two branches that no message continues."""
    for start in range(0, len(messages), FORK_EVERY):
        tip = memory.extend(messages[start : start + FORK_EVERY])[-1]
        memory.extend([("user", "aside"), ("assistant", "aside")])
        memory.checkout(tip.id)
        memory.extend([("user", "other"), ("assistant", "other")])
        memory.checkout(tip.id)


def repeated(call: Callable[[], object], times: int) -> Callable[[], None]:
    def calls() -> None:
        for _ in range(times):
            call()

    return calls


def measure(*, full: bool = False) -> list[Line]:
    """The lines of the table."""
    repeats = 31 if full else 11
    messages: list[BaseMessage] = [message for turn in turns(MESSAGES // 2) for message in turn]
    with (
        tempfile.TemporaryDirectory() as name,
        MemorySystem(f"sqlite:///{name}/ours.db", embeddings=False) as system,
    ):
        directory = Path(name)
        memory, tree = system.conversation("straight"), system.conversation("forked")
        memory.extend(messages)
        forked(tree, messages)
        raw = Raw(directory / "raw.db", messages)
        history = peer(directory)
        history.add_messages(messages)
        assert (
            [m.content for m in tree.messages]
            == [m.content for m in messages]
            == [m.content for m in memory.messages]
        )

        whole = rounds(
            {
                "langchain_threadmem": repeated(lambda: memory.messages, AT_A_TIME),
                "langchain_threadmem forked": repeated(lambda: tree.messages, AT_A_TIME),
                "raw sqlite3 + messages_from_dict": repeated(raw.read, AT_A_TIME),
                "SQLChatMessageHistory": repeated(lambda: history.messages, AT_A_TIME),
            },
            repeats,
            AT_A_TIME,
        )
        calls = 50
        last = rounds(
            {
                "langchain_threadmem": repeated(lambda: memory.retrieve("x", n_results=LAST), calls),
                "raw sqlite3 + messages_from_dict": repeated(lambda: raw.read(LAST), calls),
            },
            repeats,
            calls,
        )
    forks = whole.pop("langchain_threadmem forked")
    others = beside(whole, "langchain_threadmem")
    return [
        within(f"read {MESSAGES} messages", median(whole["langchain_threadmem"]), most=4e-3, beside=others),
        within(f"read {MESSAGES} messages, {MESSAGES // FORK_EVERY} forks", median(forks), most=4e-3),
        within(
            f"read the last {LAST}",
            median(last["langchain_threadmem"]),
            most=0.15e-3,
            beside=beside(last, "langchain_threadmem"),
        ),
    ]


if __name__ == "__main__":
    command(measure, __doc__, full="more rounds")
