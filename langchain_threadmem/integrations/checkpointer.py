"""`ThreadMemSaver`: a LangGraph checkpointer that stores each message once, in the conversation's tree.

A thread of LangGraph is a conversation: `system.conversation(thread_id)` shows what was said in it as a tree,
with its forks, edits and regenerations. Message lists of other channels and of subgraphs have trees of their
own. A turn costs the same number of bytes however long the thread is, and a fork costs next to nothing.

This file is the edge only: configurations become values here, and flows do the work, for callers with and
without an event loop.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langchain_threadmem.checkpoints import load, maintenance, save
from langchain_threadmem.checkpoints.load import History, Snapshot
from langchain_threadmem.checkpoints.save import Archive
from langchain_threadmem.engine.flow import Flow, arun, run
from langchain_threadmem.errors import InputError
from langchain_threadmem.integrations._system import check_owner
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.messages.ids import check_name
from langchain_threadmem.messages.parts import Parts

T = TypeVar("T")
PAGE = 16
"""How many checkpoints `list` reads at once."""


class ThreadMemSaver(BaseCheckpointSaver[int]):
    """A LangGraph checkpointer over a `MemorySystem`; one class for sync and async graphs.

    A channel whose value is a plain list of LangChain messages, each with an id of its own, is stored in the
    conversation's tree; everything else goes through `serde`, and so does a part of a message that JSON does
    not know, such as a tool's artifact of a class of your own.

    The default serializer is that of LangGraph's own savers: it gives back dataclasses, Pydantic models,
    enums and other classes by importing them, with a warning for each. Whoever can write to the database can
    name any class. With the environment variable `LANGGRAPH_STRICT_MSGPACK=true`, or with
    `serde=JsonPlusSerializer(allowed_msgpack_modules=[("module", "Class"), ...])`, nothing else is imported;
    `saver.with_allowlist([("module", "Class")])` then admits more. In a state, a class that is not admitted
    comes back as the data it holds; in a message it is shown as an opaque value, and stays stored as it was.

    With an `EncryptedSerializer` everything is encrypted: what checkpoints hold, and what is said in the
    conversation's tree. The system encrypts with the same cipher from then on, whoever writes to it, as if it
    had been made with `MemorySystem(..., cipher=serde.cipher)`; what is not encrypted is refused.

    Args:
        system: Where it is stored.
        serde: The serializer; by default `JsonPlusSerializer()`, which obeys `LANGGRAPH_STRICT_MSGPACK`; it
            encrypts if the system does. One that is passed here also reads and writes such parts of messages
            for the whole system.

    Raises:
        InputError: `system` is none, or is encrypted in another way than `serde`.
        EncryptionError: The owner's memory was written with another key than that of `serde`.

    Example:
        >>> from langchain_core.messages import AIMessage
        >>> from langgraph.graph import START, MessagesState, StateGraph
        >>> builder = StateGraph(MessagesState)
        >>> builder = builder.add_node("model", lambda state: {"messages": [AIMessage("Hi!")]})
        >>> builder = builder.add_edge(START, "model")
        >>> system = MemorySystem()
        >>> graph = builder.compile(checkpointer=ThreadMemSaver(system))
        >>> state = graph.invoke({"messages": "Hello"}, {"configurable": {"thread_id": "first"}})
        >>> [message.content for message in system.conversation("first").messages]
        ['Hello', 'Hi!']
    """

    def __init__(self, system: MemorySystem, *, serde: SerializerProtocol | None = None) -> None:
        if not isinstance(system, MemorySystem):
            raise InputError(
                f"system is a MemorySystem, not {system!r}; for a URL use ThreadMemSaver.from_conn_string"
            )
        given = serde
        if serde is None:
            serde = JsonPlusSerializer()
            if (seal := system.runtime.database.seal) is not None:
                serde = EncryptedSerializer(seal.cipher, serde)
        super().__init__(serde=serde)
        self.system = system
        assert self._archive  # made once here, so that a serializer which does not fit is refused at once
        self._owns_system = False
        if given is not None:
            system.runtime.parts = self._archive.parts

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> Self:
        """A saver on the same system whose serializer also gives back the classes that are listed.

        Parts of messages of these classes are given back by the whole system from then on.

        Args:
            extra_allowlist: Modules and names of classes.

        Example:
            >>> from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
            >>> strict = JsonPlusSerializer(allowed_msgpack_modules=None)
            >>> saver = ThreadMemSaver(MemorySystem(), serde=strict)
            >>> saver = saver.with_allowlist([("fractions", "Fraction")])
        """
        parts = self.system.runtime.parts
        if isinstance(parts.serde, JsonPlusSerializer):
            self.system.runtime.parts = Parts(parts.serde.with_msgpack_allowlist(extra_allowlist))
        return cast("Self", super().with_allowlist(extra_allowlist))

    @classmethod
    def from_conn_string(
        cls, url: str | Path | None, *, owner: str = "user", serde: SerializerProtocol | None = None
    ) -> Self:
        """A saver on the database behind a URL; use it in `with` or `async with`, which closes the database.

        Args:
            url: As for `MemorySystem`.
            owner: Whose memory it is.
            serde: As for `ThreadMemSaver`.

        Example:
            >>> with ThreadMemSaver.from_conn_string("sqlite://") as saver:
            ...     saver.get_tuple({"configurable": {"thread_id": "first"}}) is None
            True
        """
        saver = cls(MemorySystem(url, owner=owner), serde=serde)
        saver._owns_system = True
        return saver

    def setup(self) -> None:
        """Make sure that the tables are there, which they are once the system was opened; call it as often as
        you like.
        """
        self.system.runtime.database.read(lambda conn: None)

    async def asetup(self) -> None:
        """Async `setup`."""
        await self.system.runtime.database.aread(lambda conn: None)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a configuration names; the thread's latest if it names none."""
        found = self._run(self._get(config))
        return None if found is None else _tuple(found, config)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Async `get_tuple`."""
        found = await self._arun(self._get(config))
        return None if found is None else _tuple(found, config)

    def _get(self, config: RunnableConfig) -> Flow[Snapshot | None]:
        return load.get(self._archive, self._thread(config), _ns(config), get_checkpoint_id(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, the newest first; each is read when it is asked for, some at a time.

        A damaged checkpoint is left out, with a warning in the log that names it.

        Args:
            config: Names a thread, and perhaps a namespace or a checkpoint; `None` for all threads of
                this owner.
            filter: Metadata that a checkpoint must have, compared by `==`.
            before: Names a checkpoint; only older ones are listed.
            limit: How many at most.
        """
        found = self._run(self._addresses(config, before))
        for start, most in _pages(len(found), limit if filter is None else None):
            page = self._run(load.page(self._archive, found[start : start + most], filter, limit))
            limit = None if limit is None else limit - len(page)
            for snapshot in page.readable():
                yield _tuple(snapshot)
            if limit == 0:
                return

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Async `list`."""
        found = await self._arun(self._addresses(config, before))
        for start, most in _pages(len(found), limit if filter is None else None):
            page = await self._arun(load.page(self._archive, found[start : start + most], filter, limit))
            limit = None if limit is None else limit - len(page)
            for snapshot in page.readable():
                yield _tuple(snapshot)
            if limit == 0:
                return

    def _addresses(self, config: RunnableConfig | None, before: RunnableConfig | None) -> Flow[Any]:
        return load.addresses(
            self._archive,
            None if config is None else self._thread(config),
            None if config is None else config["configurable"].get("checkpoint_ns"),
            None if config is None else get_checkpoint_id(config),
            None if before is None else get_checkpoint_id(before),
        )

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint; the same one twice is once.

        Returns:
            The configuration that names it.
        """
        self._run(self._put(config, checkpoint, metadata, new_versions))
        return _config(_thread_given(config), _ns(config), checkpoint["id"])

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Async `put`."""
        await self._arun(self._put(config, checkpoint, metadata, new_versions))
        return _config(_thread_given(config), _ns(config), checkpoint["id"])

    def _put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Flow[None]:
        said = get_checkpoint_metadata(config, metadata)
        above = get_checkpoint_id(config)
        return save.put(
            self._archive, self._thread(config), _ns(config), above, checkpoint, said, new_versions
        )

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store pending writes of a task; the same ones twice are once."""
        self._run(self._put_writes(config, writes, task_id, task_path))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Async `put_writes`."""
        await self._arun(self._put_writes(config, writes, task_id, task_path))

    def _put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task: str, path: str
    ) -> Flow[None]:
        checkpoint = str(config["configurable"]["checkpoint_id"])
        return save.put_writes(
            self._archive, self._thread(config), _ns(config), checkpoint, writes, task, path
        )

    def delete_thread(self, thread_id: str) -> None:
        """Remove a thread for good: its checkpoints and its whole conversation, with words and vectors. Their
        bytes stay in free space of the files until `MemorySystem.scrub`.
        """
        self._run(maintenance.delete_thread(self._archive, _name(thread_id)))

    async def adelete_thread(self, thread_id: str) -> None:
        """Async `delete_thread`."""
        await self._arun(maintenance.delete_thread(self._archive, _name(thread_id)))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Take runs back: their checkpoints go, what they alone said is superseded, what that had superseded
        is live again.
        """
        self._run(maintenance.delete_for_runs(self._archive, run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Async `delete_for_runs`."""
        await self._arun(maintenance.delete_for_runs(self._archive, run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with all its checkpoints and its whole conversation.

        Raises:
            InputError: The target holds something already.
        """
        self._run(maintenance.copy_thread(self._archive, _name(source_thread_id), _name(target_thread_id)))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Async `copy_thread`."""
        await self._arun(
            maintenance.copy_thread(self._archive, _name(source_thread_id), _name(target_thread_id))
        )

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Remove checkpoints of threads.

        Args:
            thread_ids: The threads.
            strategy: "keep_latest" leaves the latest checkpoint of each namespace, with those before it
                that a delta channel is still made of; the conversation stays whole. "delete" does what
                `delete_thread` does.

        Raises:
            InputError: There is no such strategy.
        """
        self._run(maintenance.prune(self._archive, [_name(thread) for thread in thread_ids], strategy))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Async `prune`."""
        await self._arun(maintenance.prune(self._archive, [_name(thread) for thread in thread_ids], strategy))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What was written to channels above a checkpoint, since the nearest stored value of each."""
        return _histories(self._run(self._history(config, channels)))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Async `get_delta_channel_history`."""
        return _histories(await self._arun(self._history(config, channels)))

    def _history(self, config: RunnableConfig, channels: Sequence[str]) -> Flow[dict[str, History]]:
        return load.delta_history(
            self._archive, self._thread(config), _ns(config), get_checkpoint_id(config), channels
        )

    def get_next_version(self, current: Any, channel: None) -> Any:
        """The version after `current`: 1, 2, 3 ...

        Two forks of a thread may both write version 7 of a channel: checkpoints refer to values by number,
        never by version. Threads that came from another saver go on with versions of that saver's kind.
        """
        if isinstance(current, str):
            following = int(current.partition(".")[0]) + 1
            return f"{following:032}.{random.random():016}"
        return 1 if current is None else current + 1

    def _thread(self, config: RunnableConfig) -> str:
        check_owner(config, self.system.owner)
        return _name(_thread_given(config))

    @property
    def _archive(self) -> Archive:
        return Archive(self.system.runtime, self.serde)

    def _run(self, flow: Flow[T]) -> T:
        return run(flow, self.system.runtime)

    async def _arun(self, flow: Flow[T]) -> T:
        return await arun(flow, self.system.runtime)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._owns_system:
            self.system.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        if self._owns_system:
            await self.system.aclose()


def _name(thread: Any) -> str:
    name = str(thread)
    check_name("a thread_id", name)
    return name


def _thread_given(config: RunnableConfig) -> Any:
    try:
        return config["configurable"]["thread_id"]
    except KeyError:
        raise InputError(
            f"the configuration names no thread: {config!r}; pass {{'configurable': {{'thread_id': ...}}}}"
        ) from None


def _ns(config: RunnableConfig) -> str:
    return str(config["configurable"].get("checkpoint_ns") or "")


def _config(thread: Any, ns: str, checkpoint: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": checkpoint}}


def _tuple(snapshot: Snapshot, config: RunnableConfig | None = None) -> CheckpointTuple:
    thread = snapshot.thread if config is None else _thread_given(config)
    if config is None or not get_checkpoint_id(config):
        config = _config(thread, snapshot.ns, snapshot.checkpoint["id"])
    return CheckpointTuple(
        config,
        cast("Checkpoint", snapshot.checkpoint),
        cast("CheckpointMetadata", snapshot.metadata),
        None if snapshot.parent is None else _config(thread, snapshot.ns, snapshot.parent),
        snapshot.writes,
    )


def _pages(count: int, limit: int | None) -> Iterator[tuple[int, int]]:
    """Where pages begin, and how long they are: no longer than what may be asked for."""
    end = count if limit is None else min(count, max(limit, 0))
    for start in range(0, end, PAGE):
        yield start, min(PAGE, end - start)


def _histories(found: dict[str, History]) -> dict[str, DeltaChannelHistory]:
    return {
        channel: {"writes": history.writes, "seed": history.seed[0]}
        if history.seed
        else {"writes": history.writes}
        for channel, history in found.items()
    }
