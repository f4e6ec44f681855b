"""The CPU time of methods that take a message, and of lists of conversations and threads.

python -m benchmarks.navigation
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from benchmarks._measure import Line, command, within
from langchain_threadmem import MemorySystem, ThreadMemSaver

CALLS = 60
MESSAGES, CONVERSATIONS = 10_000, 10_000
TURNS = 300
BY_MESSAGE, PAGE = 1e-3, 20e-3


def timed(call: Callable[[], object]) -> float:
    """The median CPU time of calls in seconds, which excludes the time of other processes."""
    times = []
    for _ in range(CALLS):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return median(times)


def by_message(directory: Path) -> list[Line]:
    """The lines for a conversation in which every third turn is a fork of an earlier turn."""
    rng = random.Random(1)
    with MemorySystem(directory / "talk.db", embeddings=False) as system:
        memory = system.conversation("talk")
        for number in range(MESSAGES // 2):
            if number % 3 == 2:
                memory.checkout(2 * rng.randrange(1, number))
            memory.append(f"question {number}", f"answer {number}")
        verbs = memory.siblings, memory.versions, memory.fork_point, memory.switch
        lines = []
        for verb in verbs:
            taken = timed(lambda: verb(rng.randrange(1, MESSAGES)))  # noqa: B023 - called at once
            lines.append(within(f"{verb.__name__} among {MESSAGES:,} messages", taken, most=BY_MESSAGE))
        page = timed(memory.list_threads)
        return [*lines, within(f"list_threads of {MESSAGES:,} messages", page, most=PAGE)]


def by_checkpoint(directory: Path) -> list[Line]:
    """The lines for methods of the checkpointer, in a plain graph."""
    with MemorySystem(directory / "graph.db", embeddings=False) as system:
        saver = ThreadMemSaver(system)
        builder = StateGraph(MessagesState)
        builder.add_node("answer", lambda state: {"messages": AIMessage("Yes.")})
        builder.add_edge(START, "answer")
        graph, config = builder.compile(checkpointer=saver), {"configurable": {"thread_id": "talk"}}
        state: Any = {}
        for number in range(TURNS):
            state = graph.invoke({"messages": [HumanMessage(f"question {number}")]}, config)  # type: ignore[arg-type]
        ids = [message.id for message in state["messages"]]
        verbs: dict[str, Callable[[Any], object]] = {
            "config_of": lambda id: saver.config_of(id, config),  # type: ignore[arg-type]
            "fork": lambda id: saver.fork(config, id),  # type: ignore[arg-type]
        }
        return [
            within(
                f"{name} of a message, after {TURNS} turns",
                timed(lambda: verb(random.choice(ids))),  # noqa: B023 - called at once
                most=BY_MESSAGE,
            )
            for name, verb in verbs.items()
        ]


def listed(directory: Path) -> list[Line]:
    """The lines for a page of an owner's conversations, with one turn each and with two turns each."""
    lines = []
    with MemorySystem(directory / "many.db", embeddings=False) as system:
        for turns in ("one turn", "two turns"):
            for number in range(CONVERSATIONS):
                memory = system.conversation(f"conversation {number}")
                memory.append(f"Tell me about topic {number}, please", "With pleasure.")
            what = f"a page of 50 among {CONVERSATIONS:,} conversations of {turns}"
            lines.append(within(what, timed(system.list_conversations), most=PAGE))
    return lines


def measure(*, full: bool = False) -> list[Line]:
    """The lines of the table."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        return [
            *by_message(directory),
            *by_checkpoint(directory),
            *listed(directory),
        ]


if __name__ == "__main__":
    command(measure, __doc__, full=None)
