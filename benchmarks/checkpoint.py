"""The disk size and the CPU time of a LangGraph chat: turns, a fork, and a list of checkpoints.

The graph is a plain `MessagesState` graph with one node; the peers in the same run are LangGraph's
`SqliteSaver` and `InMemorySaver`. CPU time is the time of the whole process, including the work of the graph
and background saves. `SqliteSaver` writes every list in full, so its bytes per turn are measured over the
last turns only. LangGraph's `DeltaChannel` (beta) reduces these writes: a list on this channel is stored as
the writes to it, and in full every hundred writes. It is measured on `SqliteSaver`, over all turns.

    python -m benchmarks.checkpoint [--full]
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Annotated, Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer
from typing_extensions import TypedDict

from benchmarks._measure import Line, Times, against, command, rounds, within
from benchmarks.append import ANSWER, QUESTION, turns
from langchain_threadmem import MemorySystem, ThreadMemSaver, select_thread_node
from langchain_threadmem.langgraph.node import ThreadedState

MESSAGES = 1000
BYTES_A_TURN = 3 * 1024
BYTES_A_SWITCH = 4.5 * 1024
FORKS = 20
TURNS_A_ROUND = 5
TOPICS = 3


class DeltaState(TypedDict):
    """A state whose messages LangGraph stores as the writes to the list."""

    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]


def chat(saver: BaseCheckpointSaver[Any], state: type = MessagesState) -> Any:
    """A graph whose only node answers."""

    def answer(state: Any) -> dict[str, Any]:
        return {"messages": [AIMessage(ANSWER.format(n=len(state["messages"])))]}

    return StateGraph(state).add_node("model", answer).add_edge(START, "model").compile(checkpointer=saver)


def config_of(thread: str = "t") -> Any:
    return {"configurable": {"thread_id": thread}}


def ask(graph: Any, n: int, config: Any = None) -> Any:
    return graph.invoke({"messages": [HumanMessage(QUESTION.format(n=n))]}, config or config_of())


def size(path: Path) -> int:
    """The size of a database in bytes, its log included."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.stat().st_size


def sqlite_saver(path: Path) -> SqliteSaver:
    return SqliteSaver(sqlite3.connect(path, check_same_thread=False))


def growth(directory: Path, number: int) -> list[Line]:
    """The lines of the bytes per turn of a growing chat, over all and at the end, and of a fork."""
    path, peer_path = directory / "growth.db", directory / "peer.db"
    with MemorySystem(path, embeddings=False) as system:
        graph = chat(ThreadMemSaver(system))
        eighth = number // 8
        ask(graph, 0)
        sizes = [size(path)]
        for part in range(8):
            for n in range(eighth):
                ask(graph, part * eighth + n)
            sizes.append(size(path))
        state = graph.get_state(config_of())
        old = next(iter(graph.get_state_history(config_of(), limit=1, before=state.config)))
        peer = chat(sqlite_saver(peer_path))
        peer.update_state(config_of(), {"messages": state.values["messages"]})
        before = size(peer_path)
        for n in range(FORKS):
            ask(peer, n)
        theirs = (size(peer_path) - before) / FORKS
        start = peer.get_state(config_of()).config
        before = size(peer_path)
        for n in range(FORKS):
            peer.update_state(start, {"messages": [HumanMessage(QUESTION.format(n=n))]})
        their_fork = (size(peer_path) - before) / FORKS
        before = size(path)
        for n in range(FORKS):
            graph.update_state(old.config, {"messages": [HumanMessage(QUESTION.format(n=n))]})
        fork = (size(path) - before) / FORKS
    overall, end = (sizes[-1] - sizes[0]) / (8 * eighth), (sizes[-1] - sizes[-2]) / eighth
    delta, delta_fork = with_delta(directory / "delta.db", 8 * eighth)
    return [
        Line(
            f"checkpoints, bytes per turn over {number} turns",
            f"{overall / 1024:.2f} KB",
            f"{end / 1024:.2f} KB at the end; SqliteSaver at the end {theirs / 1024:.0f} KB; "
            f"DeltaChannel {delta / 1024:.1f} KB",
            f"≤ {BYTES_A_TURN / 1024:g} KB, flat",
            max(overall, end) <= BYTES_A_TURN,
        ),
        Line(
            f"a fork after {number} turns",
            f"{fork / 1024:.2f} KB",
            f"SqliteSaver {their_fork / 1024:.0f} KB; DeltaChannel {delta_fork / 1024:.1f} KB",
            f"≤ {BYTES_A_TURN / 1024:g} KB",
            fork <= BYTES_A_TURN,
        ),
    ]


def with_delta(path: Path, number: int) -> tuple[float, float]:
    """The bytes per turn and per fork of the same chat on `SqliteSaver` with a `DeltaChannel`."""
    graph = chat(sqlite_saver(path), DeltaState)
    ask(graph, 0)
    before = size(path)
    for n in range(number):
        ask(graph, n)
    turn = (size(path) - before) / number
    start = graph.get_state(config_of()).config
    before = size(path)
    for n in range(FORKS):
        graph.update_state(start, {"messages": [HumanMessage(QUESTION.format(n=n))]})
    return turn, (size(path) - before) / FORKS


def switching(directory: Path, number: int) -> Line:
    """The line of the bytes per turn where each turn continues a different thread than the turn before."""

    def select(tree: Any, message: BaseMessage) -> int | None:
        topic = message.text.split()[-1]
        return next((end.id for end in reversed(tree.turn_ends()) if end.human.endswith(topic)), None)

    def answer(state: ThreadedState) -> dict[str, Any]:
        return {"messages": [AIMessage(ANSWER.format(n=len(state["messages"])))]}

    path = directory / "switching.db"
    with MemorySystem(path, embeddings=False) as system:
        builder = StateGraph(ThreadedState).add_node("select", select_thread_node(system, select))
        builder.add_node("model", answer).add_edge(START, "select").add_edge("select", "model")
        graph = builder.compile(checkpointer=ThreadMemSaver(system))
        sizes = []
        for n in range(number):
            if n in (number // 2, 3 * number // 4):
                sizes.append(size(path))
            question = HumanMessage(f"{QUESTION.format(n=n)} topic-{n % TOPICS}")
            state = graph.invoke({"messages": [question]}, config_of())
        sizes.append(size(path))
        threads = system.conversation("t").threads()
    assert len(threads) == TOPICS, f"{len(threads)} threads instead of {TOPICS}"
    assert len(state["messages"]) == 2 * len(
        [n for n in range(number) if n % TOPICS == (number - 1) % TOPICS]
    )
    overall, end = (sizes[2] - sizes[0]) / (number / 2), (sizes[2] - sizes[1]) / (number / 4)
    return Line(
        f"checkpoints, bytes per turn, {number} turns that switch the thread",
        f"{overall / 1024:.2f} KB",
        f"{end / 1024:.2f} KB in the last quarter; {TOPICS} threads",
        f"≤ {BYTES_A_SWITCH / 1024:g} KB",
        max(overall, end) <= BYTES_A_SWITCH,
    )


def cpu(call: Callable[[], object], repeats: int) -> float:
    begin = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - begin) / repeats


def speed(directory: Path, repeats: int) -> list[Line]:
    """The lines of the CPU time of a turn and the time of `list(limit=10)` in a thread of 1,000 messages."""
    said: list[BaseMessage] = [
        message.model_copy(update={"id": f"{n}-{message.type}"})
        for n, turn in enumerate(turns(MESSAGES // 2))
        for message in turn
    ]
    with MemorySystem(directory / "speed.db", embeddings=False) as system:
        saver = ThreadMemSaver(system)
        mine = chat(saver)
        mine.update_state(config_of(), {"messages": said})
        for n in range(5):
            ask(mine, n)
        lists = rounds({"langchain_threadmem": lambda: list(saver.list(config_of(), limit=10))}, 9)
        graphs = {
            "langchain_threadmem": mine,
            "InMemorySaver": chat(InMemorySaver()),
            "SqliteSaver": chat(sqlite_saver(directory / "speed_peer.db")),
            "DeltaChannel": chat(sqlite_saver(directory / "speed_delta.db"), DeltaState),
        }
        for graph in list(graphs.values())[1:]:
            graph.update_state(config_of(), {"messages": said})
            for n in range(5):
                ask(graph, n)
        times: Times = {name: [] for name in graphs}
        for _ in range(repeats):
            for name, graph in graphs.items():
                # Several turns at a time, so that the cost of a turn includes occasional garbage collection.
                times[name].append(cpu(lambda graph=graph: ask(graph, 1), TURNS_A_ROUND))  # type: ignore[misc]
    return [
        against(
            f"CPU of a graph turn at {MESSAGES:,} messages",
            times,
            "langchain_threadmem",
            "InMemorySaver",
            most=0.75,
        ),
        *(
            against(f"CPU of a graph turn at {MESSAGES:,} messages", times, "langchain_threadmem", peer)
            for peer in ("SqliteSaver", "DeltaChannel")
        ),
        within(f"list(limit=10) at {MESSAGES:,} messages", median(lists["langchain_threadmem"]), most=0.03),
    ]


def measure(*, full: bool = False) -> list[Line]:
    """The lines of the table."""
    number, repeats = (800, 21) if full else (200, 11)
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        return [*growth(home, number), switching(home, number), *speed(home, repeats)]


if __name__ == "__main__":
    command(measure, __doc__, full="800 turns, and more rounds")
