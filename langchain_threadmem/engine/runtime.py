"""The runtime of flows: a database, an owner, an embedding model, and components of the capabilities.

One `Runtime` is shared by all conversations of a `MemorySystem`. It holds resources and derived values only:
closing it loses nothing. It knows no capability: each defines `Component`s, of which a runtime has one each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Literal, TypeVar
from weakref import WeakSet

from langchain_threadmem.common import forking
from langchain_threadmem.common.cache import LruCache, forget_texts
from langchain_threadmem.common.usage import Usage
from langchain_threadmem.common.workers import Gradual
from langchain_threadmem.engine.embedder import Embedder
from langchain_threadmem.engine.flow import Flow, arun, run
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.ids import check_name
from langchain_threadmem.messages.parts import Parts
from langchain_threadmem.storage import encryption_keys
from langchain_threadmem.storage.database import ServerDatabase, unopened
from langchain_threadmem.storage.encryption import Cipher, Seal
from langchain_threadmem.storage.sqlite import SqliteDatabase
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.storage.transaction import on_event_loop

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


V = TypeVar("V")
C = TypeVar("C", bound="Component")
CACHED_TREES = 64


class Component:
    """State of one capability for one owner: a cache, a queue, an index.

    `runtime.get(Kind)` makes the component of a runtime at its first use and returns it from then on.

    Args:
        runtime: The runtime that it belongs to.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        """Drop all values that were derived from removed nodes.

        Args:
            removed: Keys of the nodes, by tree.
        """

    def settle(self) -> Flow[None]:
        """Store values that are only in memory; called before the database closes."""
        yield from ()

    def close(self) -> None:
        """Release what is open, and drop what is cached; called after the database is closed."""

    def survives_fork(self) -> bool:
        """Whether a forked child keeps the component; if not, the child makes a new one."""
        return False


class TreeCache(Component, Generic[V]):
    """A cache of values that are derived from one tree each; the first item of a key is the tree."""

    capacity = CACHED_TREES

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.values = LruCache[tuple[int, *tuple[object, ...]], V](self.capacity)

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        for key in self.values:
            if key[0] in removed:
                self.values.drop(key)

    def close(self) -> None:
        self.values.clear()


class Runtime(forking.Forkable):
    """Resources and components of one owner's memory; made by `Runtime.open`.

    Args:
        database: The database.
        owner: The owner; every query names the owner.
        embedder: The embedding model.
    """

    def __init__(self, database: SqliteDatabase | ServerDatabase, owner: str, embedder: Embedder) -> None:
        self.database = database
        self.owner = owner
        self.embedder = embedder
        self.parts = Parts()
        """Writes and reads parts of messages that JSON does not know; a saver may replace it."""
        self.ahead = Gradual("indexing in the background")
        """The background work of the owner: embedding, filling the index."""
        self.usage = Usage()
        self.embedders = WeakSet([embedder])
        """The embedding models that texts of the owner are passed to; each caches vectors by text."""
        self.gone: set[int] = set()
        """Erased trees: a conversation of an erased tree looks up its new tree."""
        self._components: dict[type[Component], Component] = {}
        self._lock = forking.rlock()
        self.watch()

    def get(self, kind: type[C]) -> C:
        """The component of a kind, made at the first call."""
        component = self._components.get(kind)
        if component is None:
            with self._lock:
                component = self._components.get(kind)
                if component is None:
                    component = self._components[kind] = kind(self)
        assert isinstance(component, kind)
        return component

    def drop(self, removed: Mapping[int, Collection[int]], trees: Iterable[int] = ()) -> None:
        """Drop from memory all values that were derived from removed nodes.

        Args:
            removed: Keys of the nodes, by tree.
            trees: Trees that were erased.
        """
        self.gone.update(trees)
        for component in list(self._components.values()):
            component.drop(removed)
        self._forget_texts()

    def _forget_texts(self) -> None:
        """Empty the caches whose keys are texts, whatever conversation these are from."""
        forget_texts()
        self.ahead.forget_failures()
        for embedder in list(self.embedders):
            embedder.forget()
        if self.database.seal is not None:
            self.database.seal.forget()

    def after_fork(self, *, child: bool) -> None:
        """Let a child make most components anew: another thread may have been changing them."""
        if child:
            self._components = {
                kind: component for kind, component in self._components.items() if component.survives_fork()
            }

    @classmethod
    def open(
        cls,
        url: str | Path | None,
        *,
        owner: str,
        embeddings: Embeddings | Literal[False] | None = None,
        cipher: Cipher | None = None,
        pool_size: int | None = None,
        max_overflow: int | None = None,
        read_only: bool = False,
    ) -> Runtime:
        """Open the database behind a URL; see `MemorySystem` for the arguments.

        On an event loop, which opening would block, the first transaction opens the database.
        """
        check_name("an owner", owner)
        database = unopened(url, pool_size=pool_size, max_overflow=max_overflow, read_only=read_only)
        runtime = cls(database, owner, Embedder(embeddings))
        try:
            if cipher is not None:
                runtime.encrypt(cipher)
            if not on_event_loop():
                database.open()
        except BaseException:
            database.close()
            raise
        return runtime

    def encrypt(self, cipher: Cipher) -> None:
        """Encrypt the owner's data from now on, and refuse data without encryption.

        Raises:
            InputError: The data is encrypted with another key, or `cipher` is no cipher.
            EncryptionError: The stored data was written with another key.
        """
        if not (callable(getattr(cipher, "encrypt", None)) and callable(getattr(cipher, "decrypt", None))):
            raise InputError(
                f"{cipher!r} is no cipher; pass an object with encrypt() and decrypt(), such as "
                "EncryptedSerializer.from_pycryptodome_aes(...).cipher"
            )
        seal = self.database.seal
        if seal is None:
            seal = Seal(cipher, self.owner)

            def admitted(conn: Conn) -> None:
                if encryption_keys.admit(conn, seal):
                    encryption_keys.claim(conn, seal)

            if on_event_loop() and not self.database.opened:
                self.database.first = admitted
            elif self.database.read(lambda conn: encryption_keys.admit(conn, seal)):
                self.database.write(admitted)
            self.database.encrypt(seal)
        else:
            seal.check(cipher)

    @property
    def encrypted(self) -> bool:
        """Whether messages are encrypted; an index on disk must not contain their text then."""
        return self.database.seal is not None

    def close(self) -> None:
        """Store values that are only in memory, close the database and the vector index.

        The call waits for the batch that is being embedded; the next search embeds the rest.
        """
        self.ahead.close()
        try:
            if not self.database.closed:
                run(self._settle(), self)
        finally:
            self.database.close()
            self._release()

    async def aclose(self) -> None:
        """Async `close`."""
        await asyncio.to_thread(self.ahead.close)
        try:
            if not self.database.closed:
                await arun(self._settle(), self)
        finally:
            await self.database.aclose()
            self._release()

    def _settle(self) -> Flow[None]:
        for component in list(self._components.values()):
            yield from component.settle()

    def _release(self) -> None:
        for component in list(self._components.values()):
            component.close()
        self._forget_texts()


@cache
def bare() -> Runtime:
    """The runtime of the process for flows that call a model and use no database."""
    return Runtime.open(None, owner="nobody", embeddings=False)
