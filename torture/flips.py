"""Bits of a database file that are turned over: what is read stays the same, or `verify` reports damage."""

from __future__ import annotations

import json
import logging
import random
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph

from langchain_threadmem import (
    ExtractiveSummarizer,
    MemorySystem,
    MessageWindowChatMemory,
    SemanticNodeSelector,
    ThreadMemSaver,
    ThreadMemStore,
    select_thread_node,
)
from langchain_threadmem.errors import ThreadMemError
from langchain_threadmem.storage.schema import metadata, migration
from langchain_threadmem.storage.statements import Conn, Statement
from torture.children import LONGEST, Child, Report
from torture.databases import Place, remove_files
from torture.tally import Tally, rounds

FILES_OF_A_CHILD = 25
EMBEDDINGS = DeterministicFakeEmbedding(size=64)


def every_kind(path: Path) -> list[str]:
    """Write a database with every kind of data; returns the data that is read from it."""
    with MemorySystem(path, embeddings=EMBEDDINGS) as system:
        memory = system.conversation(
            "c",
            node_selector=lambda tree, message: 2 if tree.turn_ends() else None,
            summarizer=ExtractiveSummarizer(),
        )
        for n in range(5):
            memory.append(f"question {n} about a heron", f"answer {n}")
        memory.edit(3, "another question")
        memory.place(7, None)
        corrected = system.conversation("corrected", node_selector=SemanticNodeSelector())
        corrected.append("a robin", "red")
        corrected.place(corrected.append("and a wren?", "brown")[0].id, None)
        system.summarize_session("c")
        _chat(ThreadMemSaver(system)).invoke(_said("a swan"), {"configurable": {"thread_id": "t"}})
        threaded = StateGraph(MessagesState).add_node("select", select_thread_node(system))
        threaded.add_edge(START, "select").compile().invoke(
            _said("a crane"), {"configurable": {"thread_id": "threaded"}}
        )
        store = ThreadMemStore(system, index={"embed": EMBEDDINGS, "dims": 64})
        store.put(("birds",), "grey", {"legs": "two"})
        MessageWindowChatMemory(9, id="w", store=system).add("Hello")
        memory.summarize()
        system.query("question 1 about a heron")
        system.update_conversation("c", title="Herons", metadata={"stars": 3}, archived=True)
        memory.recall("heron")
    with MemorySystem(path, embeddings=EMBEDDINGS) as system:
        assert system.verify().problems == ()
        return everything(system)


def _said(text: str) -> Any:
    return {"messages": [("user", text)]}


def _chat(saver: ThreadMemSaver) -> Any:
    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"about {state['messages'][-1].content}")]}

    return StateGraph(MessagesState).add_node("model", answer).add_edge(START, "model").compile(saver)


def readings(system: MemorySystem) -> list[Callable[[], Any]]:
    """Functions that together read all data of a memory."""
    memory, store = system.conversation("c"), ThreadMemStore(system)
    return [
        *(lambda: memory.history, memory.threads, system.conversations, system.list_conversations),
        lambda: list(ThreadMemSaver(system).list(None)),
        lambda: [item.dict() for item in store.search(("birds",))],
        lambda: [(hit.node.id, round(hit.score, 6)) for hit in memory.recall("heron")],
        lambda: system.runtime.database.read(_rows),
    ]


def _rows(conn: Conn) -> list[Any]:
    tables = [table for table in metadata.tables.values() if table is not migration]
    texts = [f"SELECT {', '.join(table.c.keys())} FROM {table.name}" for table in tables]
    return [conn.all(Statement.of(sqlite=text, postgresql=text)) for text in texts]


def everything(system: MemorySystem) -> list[str]:
    """All data of a memory, and every row."""
    return [repr(read()) for read in readings(system)]


def flips(place: Place, tally: Tally, seconds: float, random_: random.Random) -> None:
    """Turn bits of files over until the time is over; a file counts as a run, read damage as lost."""
    url = place.new()
    path, expected = Path(url.removeprefix("sqlite:///")), Path(f"{url.removeprefix('sqlite:///')}.json")
    _take(Child(lambda report: expected.write_text(json.dumps(every_kind(path))) and None), tally)
    data, known = path.read_bytes(), json.loads(expected.read_text())
    for _ in rounds(seconds):
        bits = [random_.randrange(8 * len(data)) for _ in range(FILES_OF_A_CHILD)]

        def turn(report: Report, bits: list[int] = bits) -> None:
            logging.disable()  # What cannot be read is logged.
            for bit in bits:
                turned = bytearray(data)
                turned[bit // 8] ^= 1 << bit % 8
                remove_files(path, expected)
                path.write_bytes(turned)
                read_turned(path, known, bit, report)

        _take(Child(turn), tally)
    place.drop(url)


def _take(child: Child, tally: Tally) -> None:
    for word, *values in child.end():
        tally.add(*(("runs",) if word == "done" else (values[0], 1, values[1])))


def read_turned(path: Path, known: list[str], bit: int, report: Report) -> None:
    """Open, verify and read a file one bit of which was turned over."""

    def attempt(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except ThreadMemError:
            return None
        except Exception:
            report("problem", "raw errors", f"bit {bit}: {traceback.format_exc()}"[-LONGEST:])
            return None

    system = attempt(lambda: MemorySystem(path, embeddings=EMBEDDINGS))
    if system is not None:
        verification = attempt(system.verify)
        read = [attempt(lambda read=read: repr(read())) for read in readings(system)]
        if verification is not None and verification.ok and read != known:
            report("problem", "lost", f"bit {bit} changes what is read, and verify does not report it")
        attempt(system.close)
    report("done")
