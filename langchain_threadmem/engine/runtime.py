"""`Resources` of a database, and the `Runtime` of each owner in it: registries of components.

A `Runtime` is the argument of every flow: it contains the database, the owner and the embedding model. All
runtimes of a database share its `Resources`. Both are independent of the capabilities: a capability defines
`Component`s, with one instance in each runtime, and `SharedComponent`s, with one instance in the resources.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Literal, TypeVar, Unpack
from weakref import WeakSet, WeakValueDictionary

from langchain_threadmem.common import forking
from langchain_threadmem.common.cache import LruCache, forget_texts
from langchain_threadmem.common.inputs import check_no_class
from langchain_threadmem.common.type_variables import V
from langchain_threadmem.common.usage import Usage
from langchain_threadmem.common.workers import Gradual
from langchain_threadmem.engine.embedder import Embedder
from langchain_threadmem.engine.flow import Flow, arun, run
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.ids import name_of
from langchain_threadmem.messages.parts import Parts, Serializer
from langchain_threadmem.storage.database import Opening, unopened
from langchain_threadmem.storage.encryption import Cipher, Seal
from langchain_threadmem.storage.owned import OwnedDatabase
from langchain_threadmem.storage.transaction import Database, on_event_loop

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


C = TypeVar("C", bound="Component | SharedComponent")
LifecycleT = TypeVar("LifecycleT", bound="_Lifecycle")
SharedT = TypeVar("SharedT", bound="SharedComponent")
CACHED_TREES = 256
CACHED_OWNERS = 256
"""The number of owners whose state stays in memory without a reference of a caller."""


class _Lifecycle:
    """The events of a component's life."""

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        """Drop all values that were derived from removed nodes.

        Args:
            removed: Keys of the nodes, by tree.
        """

    @property
    def unsettled(self) -> bool:
        """Whether `settle` has values to store."""
        return False

    def settle(self) -> Flow[None]:
        """Store values that are only in memory; called before the database is closed."""
        yield from ()

    def close(self) -> None:
        """Release resources and empty caches; called after the database is closed."""

    def prepare_for_child(self) -> bool:
        """Prepare the component for a forked child; returns whether the child keeps it or makes a new one."""
        return False


class Component(_Lifecycle):
    """State of one capability for one owner: a cache, a queue, an index.

    The first call of `runtime.get(Kind)` makes the component of a runtime, and later calls return it.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime


class SharedComponent(_Lifecycle):
    """State of one capability for all owners of a database, made at its first use by `runtime.get(Kind)`."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources


class TreeCache(SharedComponent, Generic[V]):
    """A cache of values that are derived from one tree each; the first item of a key is the tree.

    A tree belongs to one owner, so owners share the capacity but no value.
    """

    capacity = CACHED_TREES

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources)
        self.values = LruCache[tuple[int, *tuple[object, ...]], V](self.capacity)

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        for key in self.values:
            if key[0] in removed:
                self.values.drop(key)

    def close(self) -> None:
        self.values.clear()


class Resources(forking.Forkable):
    """The database, the embedding model and the components that all owners of a database share."""

    def __init__(self, database: Database, embedder: Embedder) -> None:
        self.database = database
        self.embedder = embedder
        self.parts = Parts()
        """Writes and reads parts of messages that JSON cannot represent."""
        self.seal: Seal | None = None
        """The encryption of new runtimes."""
        self.changed_seals: dict[str, Seal] = {}
        """The encryption of owners whose key was changed."""
        self.ahead = Gradual("indexing in the background")
        """The background work: embedding, filling indexes."""
        self.embedders = WeakSet([embedder])
        """The embedding models in use; each caches vectors by text."""
        self.erased_trees: set[int] = set()
        """Erased trees: a conversation of an erased tree looks up its new tree."""
        self._components: dict[type[SharedComponent], SharedComponent] = {}
        self._recent = _RecentOwners(self)
        self._runtimes: WeakValueDictionary[str, Runtime] = WeakValueDictionary()
        self._lock = forking.rlock()
        self.watch()

    def restore_parts(self, serde: Serializer) -> None:
        """Write and read parts of messages that JSON cannot represent with a serializer."""
        self.parts = Parts(serde)

    @classmethod
    def open(
        cls,
        url: str | Path | None,
        *,
        embeddings: Embeddings | Literal[False] | None = None,
        cipher: Cipher | None = None,
        **opening: Unpack[Opening],
    ) -> Resources:
        """Open the database behind a URL; see `MemorySystem` for the arguments.

        On an event loop the database is opened by the first transaction, so that the loop is not blocked.
        """
        database = unopened(url, **opening)
        resources = cls(database, Embedder(embeddings))
        try:
            if cipher is not None:
                resources.encrypt(cipher)
            if not on_event_loop():
                database.open()
        except BaseException:
            database.close()
            raise
        return resources

    def encrypt(self, cipher: Cipher) -> Seal:
        """The encryption with a cipher, which all new runtimes use.

        Raises:
            InputError: `cipher` is not a cipher, or its key differs from the key of the resources.
        """
        check_cipher(cipher)
        if self.seal is None:
            self.seal = Seal(cipher)
        elif not any(cipher is seal.cipher for seal in self.changed_seals.values()):
            self.seal.check(cipher)
        return self.seal

    def runtime(self, owner: str) -> Runtime:
        """The runtime of an owner, made at the first call; takes microseconds.

        The runtimes of the `CACHED_OWNERS` owners used last stay in memory. The runtime of another owner
        lives as long as a caller refers to it.

        Raises:
            InputError: The name of the owner cannot be used.
        """
        owner = name_of("an owner", owner)
        runtime = self._recent.get(owner)
        if runtime is not None:
            return runtime
        with self._lock:
            runtime = self._runtimes.get(owner)
            if runtime is None:
                runtime = self._runtimes[owner] = Runtime(self, owner)
            self._recent.put(owner, runtime)
            return runtime

    def get(self, kind: type[SharedT]) -> SharedT:
        """The component of a kind, made at the first call."""
        with self._lock:
            component = self._components.get(kind)
            if component is None:
                component = self._components[kind] = kind(self)
            assert isinstance(component, kind)
            return component

    def drop(self, removed: Mapping[int, Collection[int]], trees: Iterable[int]) -> None:
        """Drop values of removed nodes from the shared components; see `Runtime.drop`."""
        self.erased_trees.update(trees)
        for component in list(self._components.values()):
            component.drop(removed)
        self._forget_texts()

    def _forget_texts(self) -> None:
        """Empty the caches whose keys are texts, for all conversations."""
        forget_texts()
        self.ahead.forget_failures()
        for embedder in list(self.embedders):
            embedder.forget()
        if self.seal is not None:
            self.seal.forget()

    def after_fork(self, *, child: bool) -> None:
        """Drop most components in a child, because another thread may have been changing them."""
        if child:
            self._components = _kept_by_child(self._components)

    def close(self) -> None:
        """Store values that are only in memory, close the database and the vector indexes.

        The call waits for the batch that is being embedded; the next search embeds the rest.
        """
        self.ahead.close()
        try:
            if not self.database.closed:
                for runtime in self._all():
                    run(runtime.settle(), runtime)
        finally:
            self.database.close()
            self._release()

    async def aclose(self) -> None:
        """Async `close`."""
        await asyncio.to_thread(self.ahead.close)
        try:
            if not self.database.closed:
                for runtime in self._all():
                    await arun(runtime.settle(), runtime)
        finally:
            await self.database.aclose()
            self._release()

    def owners_in_use(self) -> list[str]:
        """The owners used last in this process, and those whose runtime a caller refers to."""
        return [runtime.owner for runtime in self._all()]

    def _all(self) -> list[Runtime]:
        with self._lock:
            return list(self._runtimes.values())

    def _release(self) -> None:
        for runtime in self._all():
            runtime.release()
        for component in list(self._components.values()):
            component.close()
        self._forget_texts()


def check_cipher(cipher: object) -> None:
    """Refuse an object that is not a cipher."""
    check_no_class("cipher", cipher)
    if not (callable(getattr(cipher, "encrypt", None)) and callable(getattr(cipher, "decrypt", None))):
        raise InputError(
            f"{cipher!r} is not a cipher; pass an object with encrypt() and decrypt(), such as "
            "EncryptedSerializer.from_pycryptodome_aes(...).cipher"
        )


class _RecentOwners(LruCache[str, "Runtime"]):
    """The runtimes of the owners used last; a dropped runtime stores its values."""

    def __init__(self, resources: Resources) -> None:
        super().__init__(CACHED_OWNERS)
        self._resources = resources

    def _dropped(self, key: str, value: Runtime) -> None:
        def store() -> bool:
            run(value.settle(), value)
            return False

        if value.unsettled:
            self._resources.ahead.start(("storing", key), store)


class Runtime(forking.Forkable):
    """Resources and components of one owner's memory; made by `Runtime.open` or `Resources.runtime`.

    Args:
        resources: The resources that all owners of the database share.
        owner: The owner; every query names the owner.
    """

    def __init__(self, resources: Resources, owner: str) -> None:
        self.resources = resources
        self.owner = owner
        self.database = self._owned(resources.seal)
        """The database, with the encryption and the row security of the owner."""
        self.embedder = resources.embedder
        self.embedders = resources.embedders
        self.ahead = resources.ahead
        self.embeds_ahead = False
        """Whether new messages are embedded in the background, as after the first search of vectors."""
        self.erased_trees = resources.erased_trees
        self.usage = Usage()
        self._components: dict[type[_Lifecycle], _Lifecycle] = {}
        self._lock = forking.rlock()
        self.watch()

    def get(self, kind: type[C]) -> C:
        """The component of a kind, made at the first call."""
        component = self._components.get(kind)
        if component is None:
            with self._lock:
                component = self._components.get(kind)
                if component is None:
                    new = self.resources.get(kind) if issubclass(kind, SharedComponent) else kind(self)
                    component = self._components[kind] = new
        assert isinstance(component, kind)
        return component

    @property
    def parts(self) -> Parts:
        """Writes and reads parts of messages that JSON cannot represent."""
        return self.resources.parts

    def drop(self, removed: Mapping[int, Collection[int]], trees: Iterable[int] = ()) -> None:
        """Drop from memory all values that were derived from removed nodes.

        Args:
            removed: Keys of the nodes, by tree.
            trees: Trees that were erased.
        """
        for component in self._own_components():
            component.drop(removed)
        self.resources.drop(removed, trees)

    def _own_components(self) -> list[Component]:
        return [part for part in list(self._components.values()) if isinstance(part, Component)]

    def after_fork(self, *, child: bool) -> None:
        """Drop most components in a child, because another thread may have been changing them."""
        if child:
            components = {
                kind: part for kind, part in self._components.items() if isinstance(part, Component)
            }
            self._components = _kept_by_child(components)

    @classmethod
    def open(
        cls,
        url: str | Path | None,
        *,
        owner: str,
        embeddings: Embeddings | Literal[False] | None = None,
        cipher: Cipher | None = None,
    ) -> Runtime:
        """Open the database behind a URL for one owner; see `MemorySystem` for the arguments.

        On an event loop, which opening would block, the first transaction opens the database.
        """
        resources = Resources.open(url, embeddings=embeddings, cipher=cipher)
        try:
            runtime = resources.runtime(owner)
            runtime.admit()
        except BaseException:
            resources.database.close()
            raise
        return runtime

    def encrypt(self, cipher: Cipher) -> None:
        """Encrypt the owner's data, and refuse data without encryption.

        Raises:
            InputError: The data is encrypted with another key, or `cipher` is not a cipher.
            EncryptionError: The stored data was written with another key.
        """
        if self.seal is not None:
            self.seal.check(cipher)
            return
        self.database = self._owned(self.resources.encrypt(cipher))
        self.admit()

    def change_key(self, cipher: Cipher) -> Seal:
        """Encrypt with another cipher from now on; data of the present cipher stays readable.

        Raises:
            InputError: The memory is not encrypted, `cipher` is not a cipher, or has the present key.
        """
        check_cipher(cipher)
        if self.seal is None:
            raise InputError(
                f"the memory of {self.owner!r} is not encrypted, so it has no key to change; open it with "
                "its present cipher: MemorySystem(..., cipher=...)"
            )
        if cipher is not self.seal.cipher or self.seal.previous is None:  # Else an attempt is repeated.
            self.seal.change(cipher)
        self.resources.changed_seals[self.owner] = self.seal
        return self.seal

    def admit(self) -> None:
        """Compare the key of an encrypted memory with the stored data.

        On an event loop a database that is not open is compared at the first transaction.

        Raises:
            EncryptionError: The stored data was written with another key.
        """
        if self.resources.database.opened or not on_event_loop():
            self.database.admit()

    def _owned(self, seal: Seal | None) -> OwnedDatabase:
        own_seal = self.resources.changed_seals.get(self.owner)
        if own_seal is None and seal is not None:
            own_seal = seal.for_owner(self.owner)
        return OwnedDatabase(self.resources.database, self.owner, own_seal)

    @property
    def seal(self) -> Seal | None:
        """The encryption of the owner's data."""
        return self.database.seal

    @property
    def encrypted(self) -> bool:
        """Whether messages are encrypted; indexes on disk contain no encrypted text."""
        return self.seal is not None

    @property
    def read_only(self) -> bool:
        """Whether nothing is written to the database, so that its indexes cannot be updated."""
        return self.resources.database.read_only

    @property
    def indexes_words(self) -> bool:
        """Whether new messages can be added to the lexicon, which has no text of an encrypted memory."""
        return not (self.encrypted or self.read_only)

    def close(self) -> None:
        """Close the resources, including the runtimes of all owners."""
        self.resources.close()

    async def aclose(self) -> None:
        """Async `close`."""
        await self.resources.aclose()

    @property
    def unsettled(self) -> bool:
        """Whether `settle` has values to store."""
        return any(component.unsettled for component in self._own_components())

    def settle(self) -> Flow[None]:
        """Store values that are only in memory."""
        for component in self._own_components():
            yield from component.settle()

    def release(self) -> None:
        """Close the components of the owner."""
        for component in self._own_components():
            component.close()


def _kept_by_child(components: Mapping[type[LifecycleT], LifecycleT]) -> dict[type[LifecycleT], LifecycleT]:
    return {kind: component for kind, component in components.items() if component.prepare_for_child()}


@cache
def bare() -> Runtime:
    """The runtime of the process for flows that call a model and use no database."""
    return Runtime.open(None, owner="nobody", embeddings=False)
