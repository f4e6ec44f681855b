"""Uses every part of the package that could call a network. `test_offline.py` traces it.

The one argument is a folder, in which the program writes its files.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel

from langchain_threadmem import (
    ExtractiveSummarizer,
    MemorySystem,
    MultilingualEmbeddings,
    SemanticNodeSelector,
    ThreadMemMiddleware,
    ThreadMemSaver,
    ThreadMemStore,
    TokenWindow,
    create_threaded_chat,
)
from langchain_threadmem.apps.cli.main import main

BREAD, CSV = "My sourdough bread comes out flat. Why?", "How do I read a CSV file in Python?"


def memory_and_chroma(folder: Path) -> None:
    """Append, recall, summarise and query, with the local embeddings and embedded Chroma."""
    with MemorySystem(folder / "memory.db", owner="ada", vectors=folder / "vectors") as system:
        for name in ("monday", "tuesday"):
            memory = system.conversation(
                name,
                node_selector=SemanticNodeSelector(),
                summarizer=ExtractiveSummarizer(),
                window=TokenWindow(2000),
            )
            memory.append(BREAD, "The dough probably did not ferment long enough.")
            memory.append(CSV, "Use the csv module.")
            memory.recall("Why is my loaf so dense?")
            memory.retrieve("loaf", n_results=2)
            memory.summarize()
            system.summarize_session(name)
        system.summarize_long_term_memory()
        system.query("Why is my loaf so dense?")
        asyncio.run(system.aquery("Why is my loaf so dense?"))
        memory.recall("Why is my loaf so dense?", scope="owner")
        system.reindex()
        memory.export("html")
    with MemorySystem(embeddings=MultilingualEmbeddings()) as system:
        memory = system.conversation("bread", node_selector=SemanticNodeSelector())
        memory.append(BREAD, "Lass ihn gehen.")
        memory.recall("Brot", scope="owner")


def graphs(folder: Path) -> None:
    """Run a chat, an agent and a store of LangGraph."""
    with MemorySystem(folder / "graphs.db", owner="ada") as system:
        model = FakeListChatModel(responses=["Let it rise."])
        store = ThreadMemStore(system, index={"dims": 384})
        agent = create_agent(
            model, middleware=[ThreadMemMiddleware(system)], checkpointer=ThreadMemSaver(system), store=store
        )
        for number, app in enumerate((create_threaded_chat(model, system), agent)):
            app.invoke({"messages": [("user", BREAD)]}, {"configurable": {"thread_id": str(number)}})
        store.put(("facts",), "bread", {"text": BREAD})
        store.search(("facts",), query="loaf")


def page(folder: Path) -> None:
    """Serve the page of `threadmem view`, and read it."""
    command = [sys.executable, "-m", "langchain_threadmem", "view", str(folder / "memory.db")]
    command += ["--owner", "ada", "--no-browser"]
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            with opener.open(server.stdout.readline().strip()) as answer:
                assert answer.status == 200
        finally:
            server.send_signal(signal.SIGINT)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    assert main(["demo"]) == 0
    memory_and_chroma(target)
    graphs(target)
    page(target)
    print("all parts ran")
