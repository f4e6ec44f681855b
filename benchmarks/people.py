"""The errors, the isolation of users and the process memory for many users on one compiled graph.

The first part measures the time of `system.for_owner` and the growth of the process over 10,000 owners, each
of whom stores a turn and recalls it. In the second part, the crowd, users talk to one compiled chat at the
same time on an event loop. A crossing is a state or a recall that contains a text of another user.

    python -m benchmarks.people [--users 200] [--seconds 300] [--url postgresql://...]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import tempfile
import time
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph.state import CompiledStateGraph

from benchmarks._measure import Line, show, within
from langchain_threadmem import MemorySystem, ThreadMemSaver, create_threaded_chat

KNOWN, NEW = 20e-6, 1e-3
OWNERS, FEW_OWNERS = 10_000, 3_000
WARM_UP = 2_000
WARM_SECONDS = 60
"""The shortest run whose memory growth is measured, in seconds: its first quarter fills the caches."""
MOST_GROWTH = 0.1
"""The largest allowed growth of the process after the warm-up, as a share."""
TOPICS = ("bread", "figs", "ferries", "roofs", "bees", "tides")


class Echo(BaseChatModel):
    """A chat model that answers with the newest message."""

    @property
    def _llm_type(self) -> str:
        return "echo"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"re {messages[-1].content}"))])

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(messages)


class Crowd(NamedTuple):
    """The results of users that talk at the same time.

    Attributes:
        turns: The number of turns.
        errors: The errors that runs raised.
        crossings: Texts of other users that a user received.
        sizes: The memory of the process in megabytes, over time.
    """

    turns: int
    errors: list[str]
    crossings: list[str]
    sizes: list[float]


def resident() -> float:
    """The current resident memory of the process, in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def many_owners(directory: Path, owners: int) -> list[Line]:
    """The lines for consecutive owners, each with a turn and a recall."""
    with MemorySystem(directory / "owners.db", embeddings=False) as system:
        new, sizes = [], []
        for number in range(owners):
            begin = time.perf_counter()
            mine = system.for_owner(f"user {number}")
            new.append(time.perf_counter() - begin)
            memory = mine.conversation("talk")
            memory.append(f"The number of user {number} is {number}.", "Noted.")
            assert len(memory.recall("number", scope="owner")) == 1
            if number in (WARM_UP - 1, owners - 1):
                gc.collect()
                sizes.append(resident())
        known = []
        for _ in range(1_000):
            begin = time.perf_counter()
            system.for_owner("user 1")
            known.append(time.perf_counter() - begin)
        return [
            within("for_owner, an owner in memory", median(known), most=KNOWN),
            within("for_owner, a new owner", median(new), most=NEW),
            _growth(f"memory of the process from {WARM_UP:,} to {owners:,} owners", sizes[0], sizes[1]),
        ]


def _growth(what: str, before: float, after: float) -> Line:
    share = after / before - 1
    return Line(
        what, f"{before:.0f} to {after:.0f} MB", f"{share:+.0%}", f"+{MOST_GROWTH:.0%}", share <= MOST_GROWTH
    )


async def crowd(system: MemorySystem, users: int, seconds: float) -> Crowd:
    """Let users talk at the same time; each user changes between four conversations every ten turns."""
    chat: CompiledStateGraph[Any, Any, Any, Any] = create_threaded_chat(
        Echo(), system, checkpointer=ThreadMemSaver(system, owner="user_id"), scope="owner", owner="user_id"
    )
    end, errors, crossings, turns = time.monotonic() + seconds, [], [], count()

    async def talk(user: str) -> None:
        for turn in count():
            if time.monotonic() > end:
                return
            thread = f"talk {turn // 10 % 4}"
            text = f"{user} asks about {TOPICS[turn % len(TOPICS)]}, question {turn}."
            try:
                state = await chat.ainvoke(
                    {"messages": [("user", text)]},
                    {"configurable": {"thread_id": thread, "user_id": user}},
                )
            except Exception as error:
                errors.append(repr(error))
                continue
            next(turns)
            shown = [str(message.content) for message in state["messages"]]
            shown += [hit["text"] for hit in state.get("recalled") or []]
            crossings.extend(said for said in shown if f"{user} asks" not in said)

    async def watch() -> list[float]:
        sizes = []
        while time.monotonic() < end:
            await asyncio.sleep(seconds / 20)
            gc.collect()
            sizes.append(resident())
        return sizes

    *_, sizes = await asyncio.gather(*(talk(f"<user {number}>") for number in range(users)), watch())
    return Crowd(next(turns), errors, crossings, sizes)


def of_crowd(system: MemorySystem, users: int, seconds: float) -> list[Line]:
    what = f"{users} users on one graph for {seconds:.0f} s"
    found = asyncio.run(crowd(system, users, seconds))
    grown = [_growth(f"{what}: memory of the process", found.sizes[len(found.sizes) // 4], found.sizes[-1])]
    return [
        Line(f"{what}: turns", f"{found.turns:,}", f"{found.turns / seconds:.0f} per second"),
        Line(f"{what}: errors", str(len(found.errors)), *found.errors[:1], bar="0", holds=not found.errors),
        Line(
            f"{what}: crossings",
            str(len(found.crossings)),
            *found.crossings[:1],
            bar="0",
            holds=not found.crossings,
        ),
        *(grown if seconds >= WARM_SECONDS else []),
    ]


def measure(
    *, full: bool = False, users: int = 200, seconds: float | None = None, url: str | None = None
) -> list[Line]:
    """The lines of the table."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        lines = many_owners(directory, OWNERS if full else FEW_OWNERS)
        with MemorySystem(url or directory / "crowd.db", embeddings=False) as system:
            return [*lines, *of_crowd(system, users, seconds or (300 if full else 10))]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.people")
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--url", help="a database; by default an SQLite file")
    options = parser.parse_args()
    show(measure(full=True, users=options.users, seconds=options.seconds, url=options.url))


if __name__ == "__main__":
    main()
