"""No call blocks an event loop: its thread touches no file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from conftest import StreamCipher, WordEmbeddings
from langgraph.checkpoint.base import empty_checkpoint

import langchain_threadmem
from langchain_threadmem import (
    ChatMemory,
    MemorySystem,
    ThreadMemChatMessageHistory,
    ThreadMemMiddleware,
    ThreadMemRetriever,
    ThreadMemSaver,
    ThreadMemStore,
)
from langchain_threadmem.errors import EncryptionError, InputError, NewerDatabaseError, PersistenceError
from langchain_threadmem.storage import migrations

Main = Callable[[], Coroutine[Any, Any, Any]]
RESPONSES = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


def unblocked(main: Main) -> Any:
    """The result of a coroutine; a call of the package that blocks the loop raises `BlockingError`."""

    async def watched() -> Any:
        with blockbuster_ctx(langchain_threadmem):
            return await main()

    return asyncio.run(asyncio.wait_for(watched(), 120))


async def use(memory: ChatMemory) -> None:
    nodes = await memory.aappend("How do stars burn?", "Hydrogen becomes helium.")
    await memory.aedit(nodes[0].id, "How do suns burn?")
    assert await memory.arecall("suns")
    assert await memory.arecall("suns", scope="owner")
    await memory.aretrieve("suns")
    await memory.asummarize() if memory.summarizer else None
    assert await memory.amessages()
    assert len(await memory.ahistory()) == 3


@pytest.mark.parametrize("form", [ChatMemory, ChatMemory.semantic], ids=["linear", "semantic"])
def test_a_system_that_is_made_on_the_loop_blocks_it_nowhere(
    url: str, owner: str, tmp_path: Path, form: Callable[..., ChatMemory], chroma: None
) -> None:
    async def main() -> None:
        system = MemorySystem(url, owner=owner, embeddings=WordEmbeddings())
        memory = form(system=system, conversation_id="c")
        await use(memory)
        await memory.asave(tmp_path / "c.json")
        assert (await memory.averify()).ok
        assert (await system.averify()).ok
        assert await system.aconversations() == ["c"]
        assert await system.aquery("suns", search_range=(None, None))
        await memory.areset()
        await system.aclose()

    unblocked(main)


def test_the_default_model_is_looked_for_beside_the_loop(url: str, owner: str) -> None:
    async def main() -> None:
        async with MemorySystem(url, owner=owner) as system:
            await use(system.conversation("c"))

    unblocked(main)


def test_integrations_that_are_made_on_the_loop_block_it_nowhere(url: str, owner: str) -> None:
    async def main() -> None:
        async with ThreadMemSaver.from_conn_string(url, owner=owner) as saver:
            await saver.asetup()
            await saver.aput(RESPONSES, empty_checkpoint(), {}, {})
            assert await saver.aget_tuple(RESPONSES)
        async with ThreadMemStore.from_conn_string(url, owner=owner) as store:
            await store.asetup()
            await store.aput(("users",), "ada", {"likes": "figs"})
            assert await store.aget(("users",), "ada")
        assert (
            await ThreadMemRetriever.from_conn_string(url, owner=owner, conversation_id="c").ainvoke("x")
            == []
        )
        history = ThreadMemChatMessageHistory.from_conn_string(url, "c", owner=owner)
        assert await history.aget_messages() == []
        ThreadMemMiddleware.from_conn_string(url, owner=owner)
        await history.memory._conversation.runtime.aclose()

    unblocked(main)


def test_a_system_may_be_opened_before_it_is_used(url: str, owner: str, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"context_depth": 2}')

    async def main() -> None:
        async with await MemorySystem.aopen(
            url, owner=owner, embeddings=False, settings=tmp_path / "settings.json"
        ) as system:
            assert system.conversation("c").context_depth == 2
            assert await system.aconversations() == []

    unblocked(main)


def test_what_is_wrong_with_a_database_is_raised_by_the_first_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        with pytest.raises(InputError, match="three slashes"):
            MemorySystem("sqlite://memory.db")
        system = MemorySystem(tmp_path)
        for _ in range(2):
            with pytest.raises(PersistenceError, match="cannot open"):
                await system.aconversations()
            with pytest.raises(PersistenceError, match="cannot open"):
                await system.conversation("c").aappend("one", "two")
        await system.aclose()
        with pytest.raises(PersistenceError, match="cannot open"):
            await MemorySystem.aopen(tmp_path)

    asyncio.run(main())


def test_a_newer_database_is_refused_by_the_first_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    with monkeypatch.context() as newer:
        newer.setattr(migrations, "MIGRATIONS", (migrations.MIGRATIONS[0]._replace(number=99),))
        MemorySystem(path, embeddings=False).close()

    async def main() -> None:
        with pytest.raises(NewerDatabaseError):
            await MemorySystem(path).aconversations()
        with pytest.raises(NewerDatabaseError):
            MemorySystem(path).conversations()

    asyncio.run(main())
    with pytest.raises(NewerDatabaseError):
        MemorySystem(path)


def test_a_wrong_key_is_refused_by_the_first_call(url: str, owner: str) -> None:
    options: Any = {"owner": owner, "embeddings": False}
    with MemorySystem(url, cipher=StreamCipher(b"right"), **options) as system:
        system.conversation("c").append("a secret", "indeed")

    async def main() -> None:
        async with MemorySystem(url, cipher=StreamCipher(b"wrong"), **options) as wrong:
            for _ in range(2):
                with pytest.raises(EncryptionError, match="another key"):
                    await wrong.conversation("c").aappend("more", "no")
        async with MemorySystem(url, cipher=StreamCipher(b"right"), **options) as right:
            assert len(await right.conversation("c").ahistory()) == 2

    unblocked(main)


def test_a_system_that_was_never_used_is_closed_without_being_opened(tmp_path: Path) -> None:
    async def main() -> None:
        await MemorySystem(tmp_path / "memory.db").aclose()

    asyncio.run(main())
    assert list(tmp_path.iterdir()) == []
