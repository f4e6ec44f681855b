"""The checkpointer and the store of the server, which `langgraph.json` names."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from server_memory import system

from langchain_threadmem import ThreadMemSaver, ThreadMemStore

store = ThreadMemStore(system)


@asynccontextmanager
async def saver() -> AsyncIterator[ThreadMemSaver]:
    """The checkpointer; the server enters the context at its start and leaves it at its end."""
    async with system:
        yield ThreadMemSaver(system)
