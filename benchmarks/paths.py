"""The length of the path of one call: Python calls, files and lines of the package, compared with a budget.

The calls are counted with `sys.setprofile` during one call of each method, after earlier calls have filled
the caches. A call of a generator counts each time that it resumes. The lines are the executable lines of the
functions that are entered, whether or not they run. The counts do not depend on the speed of the machine, so
a change that makes a path longer is seen here before it is measured in microseconds.

    python -m benchmarks.paths
    python -m benchmarks.paths --files
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6

import langchain_threadmem
from benchmarks._measure import Line, show
from benchmarks.statements import SUBJECTS, WordVectors
from langchain_threadmem import MemorySystem, SemanticNodeSelector, ThreadMemSaver, select_thread_node

PACKAGE = str(Path(langchain_threadmem.__file__).parent)
TURNS, WARM = 40, 6
"""The turns of the conversation, and the calls before the counted call."""
BUDGETS = {
    "append, linear": (13, 38),
    "append, semantic": (42, 475),
    "select_thread_node": (67, 1100),
    "put": (27, 197),
    "recall": (33, 490),
    "query": (41, 980),
    "erase": (35, 267),
}
"""The highest allowed numbers of files and of calls of each method."""


@dataclass
class CallPath:
    """The functions of the package that a call enters."""

    calls: Counter[CodeType] = field(default_factory=Counter)

    @property
    def files(self) -> Counter[str]:
        """The number of calls in each file."""
        by_file: Counter[str] = Counter()
        for code, number in self.calls.items():
            by_file[str(Path(code.co_filename).relative_to(PACKAGE))] += number
        return by_file

    @property
    def lines(self) -> int:
        """The executable lines of the functions."""
        return sum(len({line for _, _, line in code.co_lines() if line}) for code in self.calls)


@contextmanager
def counted() -> Iterator[CallPath]:
    """Count the calls of functions of the package in this thread."""
    path = CallPath()

    def see(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            path.calls[frame.f_code] += 1

    sys.setprofile(see)
    try:
        yield path
    finally:
        sys.setprofile(None)


def texts() -> Iterator[str]:
    """Questions on several subjects in turn."""
    for number in count():
        subject = SUBJECTS[number % len(SUBJECTS)]
        yield f"What about {subject} number {number}, and how does {subject} go on?"


def filled(system: MemorySystem, name: str) -> Iterator[str]:
    """Fill a conversation, and return further questions."""
    asked = texts()
    memory = system.conversation(name, node_selector=SemanticNodeSelector())
    for _ in range(TURNS):
        question = next(asked)
        memory.append(question, f"An answer to: {question}")
    return asked


def node_call(system: MemorySystem) -> Callable[[], object]:
    """A call of the node that selects threads, with the list of a run that has answered the turn before."""
    asked, numbers = filled(system, "node"), count()
    node = select_thread_node(system)
    state: dict[str, Any] = {"messages": []}

    def call() -> object:
        number = next(numbers)
        state["messages"].append(HumanMessage(next(asked), id=f"h{number}"))
        update = node.invoke(state, {"configurable": {"thread_id": "node"}})
        state.update(update)
        shown = [message for message in state["messages"] if message.type != "remove"]
        state["messages"] = [*shown, AIMessage(f"Answer {number}", id=f"a{number}")]
        return update

    return call


def put_call(system: MemorySystem) -> Callable[[], object]:
    """A call of `put` with a list that has grown by a message."""
    saver, numbers = ThreadMemSaver(system), count(1)
    messages: list[BaseMessage] = []
    parent: dict[str, Any] = {"configurable": {"thread_id": "put", "checkpoint_ns": ""}}

    def call() -> object:
        nonlocal parent
        number = next(numbers)
        messages.append((HumanMessage if number % 2 else AIMessage)(f"Message {number}", id=f"m{number}"))
        checkpoint = empty_checkpoint() | {
            "id": str(uuid6()),
            "channel_versions": {"messages": number},
            "channel_values": {"messages": list(messages)},
        }
        parent = saver.put(parent, checkpoint, {"step": number}, {"messages": number})
        return parent

    for _ in range(TURNS):
        call()
    return call


def calls_of(system: MemorySystem) -> dict[str, Callable[[], object]]:
    """The measured calls, by name."""
    linear, semantic = system.conversation("linear"), filled(system, "semantic")
    memory = system.conversation("semantic", node_selector=SemanticNodeSelector())
    erased = count()

    def erase() -> object:
        name = f"erased {next(erased)}"
        system.conversation(name).append("A question", "An answer")
        return name

    return {
        "append, linear": lambda: linear.append("A question", "An answer"),
        "append, semantic": lambda: memory.append(next(semantic), "An answer"),
        "select_thread_node": node_call(system),
        "put": put_call(system),
        "recall": lambda: memory.recall("bread number 12"),
        "query": lambda: system.query("bread number 12"),
        "erase": erase,
    }


def paths() -> dict[str, CallPath]:
    """The path of each call."""
    found = {}
    with MemorySystem(embeddings=WordVectors()) as system:
        for name, call in calls_of(system).items():
            for _ in range(WARM):
                given = call()
                if name == "erase":
                    system.erase(conversation=str(given))
            system.flush()
            if name == "erase":
                given = call()
                with counted() as path:
                    system.erase(conversation=str(given))
            else:
                with counted() as path:
                    call()
            found[name] = path
    return found


def measure(found: dict[str, CallPath]) -> list[Line]:
    """The lines of the table."""
    lines = []
    for name, path in found.items():
        files, calls = len(path.files), path.calls.total()
        most_files, most_calls = BUDGETS[name]
        lines.append(
            Line(
                name,
                f"{calls} calls, {files} files, {path.lines} lines",
                "",
                f"≤ {most_calls} calls, {most_files} files",
                files <= most_files and calls <= most_calls,
            )
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", action="store_true", help="also print the calls in each file")
    options = parser.parse_args()
    found = paths()
    show(measure(found))
    if options.files:
        for name, path in found.items():
            print(f"\n{name}")
            for file, number in path.files.most_common():
                print(f"{number:6} {file}")


if __name__ == "__main__":
    main()
