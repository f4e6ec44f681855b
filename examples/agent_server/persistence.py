"""The checkpointer and the store of the server, which `langgraph.json` names."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from server_memory import system

from langchain_threadmem import ThreadMemSaver, ThreadMemStore

store = ThreadMemStore(system)


@asynccontextmanager
async def saver() -> AsyncIterator[ThreadMemSaver]:
    """The checkpointer of all event loops of the server, which closes the system at its end."""
    async with system:
        yield ThreadMemSaver(system)
