"""`ThreadMemSaver`: a LangGraph checkpointer that stores each message once, in a tree.

A thread of LangGraph is a conversation: `system.conversation(thread_id)` is its tree, with forks, edits and
regenerations. Message lists of other channels and of subgraphs have separate trees. The stored size of a turn
is independent of the length of the thread, and a fork copies no messages.

The methods of this module translate configurations; the flows are in `checkpoints`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langchain_threadmem.common.inputs import check_one_of
from langchain_threadmem.engine.flow import Flow, Sql, arun, averb, run, verb
from langchain_threadmem.engine.owners import RUNTIME, OwnerOfRun, Run, in_agent_server
from langchain_threadmem.errors import InputError, OwnerRequiredError
from langchain_threadmem.langgraph import checkpoints
from langchain_threadmem.langgraph._system import (
    REPLACED,
    Lineage,
    SystemIntegration,
    owners_found,
    thread_name,
)
from langchain_threadmem.langgraph.checkpoints.values import conversation_in
from langchain_threadmem.messages.ids import name_of

if TYPE_CHECKING:
    from langchain_threadmem.langgraph.checkpoints.load import LoadedCheckpoint
    from langchain_threadmem.langgraph.checkpoints.queries import Address
    from langchain_threadmem.langgraph.checkpoints.save import Archive
    from langchain_threadmem.memory_system import MemorySystem
    from langchain_threadmem.storage.statements import Conn

    NamedAddresses = list[tuple[str, Address]]
    """Addresses of checkpoints, each with the name of its conversation."""
ADDRESS = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")
"""Fields of `configurable` by which LangGraph finds checkpoints."""
LONGEST_NS = 1500
"""The maximum number of UTF-8 bytes of a checkpoint's namespace, which shares an index with its thread."""
PAGE = 16
"""Number of checkpoints that `list` reads at once."""


class ThreadMemSaver(SystemIntegration, BaseCheckpointSaver[int]):
    """A LangGraph checkpointer over a `MemorySystem`; one class for sync and async graphs.

    A channel whose value is a plain list of LangChain messages with ids is stored in the conversation's tree.
    All other values are stored through `serde`, and so are parts of messages without a form in JSON, such as
    a tool's artifact of a user's class.

    LangGraph's `DeltaChannel`, which deepagents uses for `messages`, passes only its writes to a
    checkpointer. Its messages are in the tree if `ThreadMemMiddleware` stores them; `config_of` and `fork` do
    not find them.

    The default serializer is the serializer of LangGraph's savers: it restores dataclasses, Pydantic models,
    enums and other classes by importing them, with a warning for each. Anyone who can write to the database
    can name any class. With the environment variable `LANGGRAPH_STRICT_MSGPACK=true`, or with
    `serde=JsonPlusSerializer(allowed_msgpack_modules=[("module", "Class"), ...])`, only allowed classes are
    imported; `saver.with_allowlist([("module", "Class")])` allows more. In a state, an object of another
    class is restored as its data; in a message it is restored as an opaque value and stays stored unchanged.

    With an `EncryptedSerializer` checkpoints and the messages of trees are encrypted. From then on the system
    uses the same cipher, as with `MemorySystem(..., cipher=serde.cipher)`, and refuses data without
    encryption.

    Args:
        system: The system that stores the checkpoints.
        serde: The serializer; by default `JsonPlusSerializer()`, which obeys `LANGGRAPH_STRICT_MSGPACK`, with
            encryption if the system has a cipher. A serializer that is passed here also reads and writes
            parts of messages for the whole system.
        owner: The owner of a run, for a graph with many users: the name of a field of the run's context or
            `configurable` (`owner="user_id"`), or a function of the run. By default the system's owner, also
            for runs that name other persons, as with LangGraph's savers.

    Raises:
        InputError: `system` is not a `MemorySystem`, or its encryption differs from that of `serde`.
        EncryptionError: The owner's memory was written with another key than that of `serde`.

    Example:
        >>> from langchain_core.messages import AIMessage
        >>> from langgraph.graph import START, MessagesState, StateGraph
        >>> from langchain_threadmem import MemorySystem
        >>> builder = StateGraph(MessagesState)
        >>> builder = builder.add_node("model", lambda state: {"messages": [AIMessage("Hi!")]})
        >>> builder = builder.add_edge(START, "model")
        >>> system = MemorySystem()
        >>> graph = builder.compile(checkpointer=ThreadMemSaver(system))
        >>> state = graph.invoke({"messages": "Hello"}, {"configurable": {"thread_id": "first"}})
        >>> [message.content for message in system.conversation("first").messages]
        ['Hello', 'Hi!']
    """

    def __init__(
        self,
        system: MemorySystem,
        *,
        serde: SerializerProtocol | None = None,
        owner: OwnerOfRun | None = None,
    ) -> None:
        SystemIntegration.__init__(self, system, owner)
        resources, custom = system.resources, serde is not None
        if serde is None:
            serde = JsonPlusSerializer()
            if resources.seal is not None:
                serde = EncryptedSerializer(resources.seal.cipher, serde)
        BaseCheckpointSaver.__init__(self, serde=serde)
        checkpoints.save.check_serializer(resources, serde)
        if system.owner_of_run is None:
            _ = self._archive  # Compares the key with the stored data of the owner.
        if custom:
            resources.restore_parts(serde)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> Self:
        """A saver on the same system whose serializer also restores the given classes.

        The whole system restores parts of messages of these classes from then on.

        Args:
            extra_allowlist: Modules and names of classes.

        Example:
            >>> from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
            >>> from langchain_threadmem import MemorySystem
            >>> strict = JsonPlusSerializer(allowed_msgpack_modules=None)
            >>> saver = ThreadMemSaver(MemorySystem(), serde=strict)
            >>> saver = saver.with_allowlist([("fractions", "Fraction")])
        """
        resources = self.system.resources
        parts = resources.parts
        if isinstance(parts.serde, JsonPlusSerializer):
            resources.restore_parts(parts.serde.with_msgpack_allowlist(extra_allowlist))
        return cast("Self", super().with_allowlist(extra_allowlist))

    @classmethod
    def from_conn_string(
        cls, url: str | Path | None, *, owner: str = "user", serde: SerializerProtocol | None = None
    ) -> Self:
        """A saver on the database of a URL; `with` or `async with` closes the database.

        Args:
            url: As for `MemorySystem`.
            owner: The owner of the memory.
            serde: As for `ThreadMemSaver`.

        Example:
            >>> with ThreadMemSaver.from_conn_string("sqlite://") as saver:
            ...     saver.get_tuple({"configurable": {"thread_id": "first"}}) is None
            True
        """
        return cls._on(url, owner, lambda system: cls(system, serde=serde))

    @verb
    def get_tuple(self, config: RunnableConfig) -> Flow[CheckpointTuple | None]:
        """The checkpoint that a configuration names, by default the latest of the thread.

        Args:
            config: Names the thread and, if they are given, the namespace and the checkpoint.

        Returns:
            The checkpoint; `None` if it does not exist.

        Raises:
            PersistenceError: The checkpoint is damaged.
            EncryptionError: The checkpoint is encrypted with another key.
        """
        thread, checkpoint = _thread(config), _checkpoint_id(config)
        snapshot = yield from checkpoints.load.get(self._archive, thread, _ns(config), checkpoint)
        if snapshot is None:
            return None
        checkpoint_tuple = _tuple(snapshot, config)
        return checkpoint_tuple._replace(config=config) if checkpoint else checkpoint_tuple

    aget_tuple = averb(get_tuple)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, the newest first, read page by page.

        A damaged checkpoint is omitted; a warning in the log names it.

        Args:
            config: A thread, with or without a namespace or a checkpoint; `None` for all threads of this
                owner.
            filter: Metadata that a checkpoint must have, compared by `==`.
            before: A checkpoint; only older checkpoints are listed.
            limit: Maximum number of checkpoints.
        """
        saver = self._for_listing(config)
        most = limit if filter is None else None
        addresses = run(saver._addresses(config, before, most), saver._runtime)
        for part in _pages(addresses, most):
            page = run(checkpoints.load.page(saver._archive, part, filter, limit), saver._runtime)
            limit = None if limit is None else limit - len(page)
            for snapshot in page.readable():
                yield _tuple(snapshot, config)
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
        saver = self._for_listing(config)
        most = limit if filter is None else None
        addresses = await arun(saver._addresses(config, before, most), saver._runtime)
        for part in _pages(addresses, most):
            page = await arun(checkpoints.load.page(saver._archive, part, filter, limit), saver._runtime)
            limit = None if limit is None else limit - len(page)
            for snapshot in page.readable():
                yield _tuple(snapshot, config)
            if limit == 0:
                return

    def _for_listing(self, config: RunnableConfig | None) -> Self:
        """The saver for a listing, which without a configuration reads all threads."""
        saver = self._for_call(config)
        if config is None:
            saver.system._check_run(None)
        return saver

    def _addresses(
        self, config: RunnableConfig | None, before: RunnableConfig | None, limit: int | None
    ) -> Flow[NamedAddresses]:
        return checkpoints.load.addresses(
            self._archive,
            None if config is None else _thread(config),
            None if config is None else config["configurable"].get("checkpoint_ns"),
            None if config is None else _checkpoint_id(config),
            None if before is None else _checkpoint_id(before),
            limit,
        )

    @verb
    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Flow[RunnableConfig]:
        """Store a checkpoint, or replace the checkpoint with the same id.

        Args:
            config: Names the thread, the namespace and the parent checkpoint.
            checkpoint: The checkpoint.
            metadata: The metadata.
            new_versions: The channels whose values have changed, with their versions.

        Returns:
            The configuration that names the checkpoint, with the other fields of `configurable`, such as the
            owner.
        """
        ns, parent = _ns(config), _checkpoint_id(config)
        all_metadata = get_checkpoint_metadata(config, metadata)
        yield from checkpoints.save.put(
            self._archive, _thread(config), ns, parent, checkpoint, all_metadata, new_versions
        )
        # A run from a fork may have no node that stores turns: the stored list shows that it has answered.
        replaced = config["configurable"].get(REPLACED)
        messages = conversation_in(checkpoint["channel_values"])
        if replaced and not ns:
            from langchain_threadmem.langgraph.routing.store_messages import store_branch
            from langchain_threadmem.tree.lists.encoded import is_message_list

            if is_message_list(messages):
                memory = self.system.conversation(_thread(config))
                yield from store_branch(memory._conversation, messages, Lineage("", True, replaced))
        return _config(_given_thread(config), ns, checkpoint["id"], config)

    aput = averb(put)

    @verb
    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> Flow[None]:
        """Store pending writes of a task; a stored write is replaced only in LangGraph's special channels.

        Args:
            config: Names the checkpoint.
            writes: Channels and values.
            task_id: The task.
            task_path: The path of the task.
        """
        checkpoint = str(config["configurable"]["checkpoint_id"])
        return checkpoints.save.put_writes(
            self._archive, _thread(config), _ns(config), checkpoint, writes, task_id, task_path
        )

    aput_writes = averb(put_writes)

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread: its checkpoints and its whole conversation, with words and vectors.

        Some of their bytes stay in the files until `MemorySystem.scrub`.

        LangGraph's Agent Server deletes the thread of a run without a thread for no user: the owner is then
        that of the stored thread.

        Args:
            thread_id: The thread.

        Raises:
            OwnerRequiredError: The server deletes a thread for no user, and several owners have a thread of
                this name.
        """
        for saver, thread in self._with_owners([thread_id]):
            saver._delete_thread(thread)

    async def adelete_thread(self, thread_id: str) -> None:
        """Async `delete_thread`."""
        for saver, thread in await asyncio.to_thread(self._with_owners, [thread_id]):
            await saver._adelete_thread(thread)

    @verb
    def _delete_thread(self, thread: str) -> Flow[None]:
        """Delete a thread of one owner."""
        return checkpoints.maintenance.delete_thread(self._runtime, thread)

    _adelete_thread = averb(_delete_thread)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs, and undo the changes of these runs to the conversation.

        Messages that only these runs have stored are superseded, and summaries that may quote them are
        deleted; messages that the runs have superseded become live again.

        A saver for the owners of runs may be called outside of a run, as LangGraph's Agent Server does when
        it rolls back a run: the owners are then those of the stored checkpoints.

        Args:
            run_ids: The ids of the runs.
        """
        if self._lacks_owner():
            for owner in self._owners_of(run_ids):
                self._on_system(self.system.for_owner(owner))._delete_for_runs(run_ids)
        else:
            self._delete_for_runs(run_ids)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Async `delete_for_runs`."""
        if self._lacks_owner():
            for owner in await asyncio.to_thread(self._owners_of, run_ids):
                await self._on_system(self.system.for_owner(owner))._adelete_for_runs(run_ids)
        else:
            await self._adelete_for_runs(run_ids)

    @verb
    def _delete_for_runs(self, run_ids: Sequence[str]) -> Flow[None]:
        """Delete the checkpoints that the runs of one owner have stored."""
        return checkpoints.maintenance.delete_for_runs(self._archive, run_ids)

    _adelete_for_runs = averb(_delete_for_runs)

    def _lacks_owner(self) -> bool:
        """Whether the call is for the owner of a run, and outside of a run."""
        # The Agent Server sets a configuration of its runtime alone around all that it does.
        if not self._serves_runs or Run().configurable.keys() - {RUNTIME}:
            return False
        try:
            self._for_call()
        except OwnerRequiredError:
            return True
        return False

    def _owners_of(self, run_ids: Sequence[str]) -> Collection[str]:
        """The owners of the checkpoints of runs."""
        resources, runs = self.system.resources, [*map(str, run_ids)]

        def owners(conn: Conn) -> set[str]:
            return {owner for run in runs for owner in checkpoints.queries.owners_of_run(conn, run)}

        return owners_found(resources, lambda: resources.database.read(owners))

    def _with_owners(self, thread_ids: Iterable[str]) -> Sequence[tuple[Self, str]]:
        """The names of threads, each with the saver for its owner.

        If an Agent Server names no user, threads that nobody has are left out.

        Raises:
            OwnerRequiredError: The server names no user, and several owners have a thread of the same name.
        """
        threads = [*dict.fromkeys(map(thread_name, thread_ids))]
        if not (in_agent_server() and self._lacks_owner()):
            return [(self, thread) for thread in threads]
        resources, found = self.system.resources, list[tuple[Self, str]]()
        for thread in threads:
            query = partial(checkpoints.queries.owners_of_thread, thread=thread)
            owners = owners_found(resources, partial(resources.database.read, query))
            # With row-level security these are all owners in use.
            savers = [self._on_system(self.system.for_owner(owner)) for owner in owners]
            having = [saver for saver in savers if saver._has(thread)]
            if len(having) > 1:
                raise OwnerRequiredError(
                    f"several owners have a thread {thread!r}, and the call names none of them; use "
                    "ThreadMemSaver(system.for_owner(name))"
                )
            found += [(saver, thread) for saver in having]
        return found

    def _has(self, thread: str) -> bool:
        owner = self._runtime.owner
        query = partial(checkpoints.queries.conversations, owner=owner, conversation=thread)
        return bool(run(Sql(query), self._runtime))

    @verb
    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> Flow[None]:
        """Copy a thread with all its checkpoints and its whole conversation.

        Args:
            source_thread_id: The thread.
            target_thread_id: The new thread.

        Raises:
            InputError: The target is not empty.
        """
        return checkpoints.maintenance.copy_thread(
            self._archive, thread_name(source_thread_id), thread_name(target_thread_id)
        )

    acopy_thread = averb(copy_thread)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Remove checkpoints of threads, also for no user of an Agent Server, as `delete_thread`.

        Args:
            thread_ids: The threads.
            strategy: "keep_latest" keeps the latest checkpoint of each namespace, and earlier checkpoints
                that the value of a delta channel requires; the conversation is unchanged. "delete" does the
                same as `delete_thread`.

        Raises:
            InputError: The strategy is unknown.
            OwnerRequiredError: As for `delete_thread`.
        """
        check_one_of("strategy", strategy, ("keep_latest", "delete"))
        for saver, thread in self._with_owners(thread_ids):
            saver._delete_thread(thread) if strategy == "delete" else saver._keep_latest(thread)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Async `prune`."""
        check_one_of("strategy", strategy, ("keep_latest", "delete"))
        for saver, thread in await asyncio.to_thread(self._with_owners, thread_ids):
            await (saver._adelete_thread(thread) if strategy == "delete" else saver._akeep_latest(thread))

    @verb
    def _keep_latest(self, thread: str) -> Flow[None]:
        """Remove the earlier checkpoints of a thread of one owner."""
        return checkpoints.maintenance.keep_latest(self._archive, thread)

    _akeep_latest = averb(_keep_latest)

    @verb
    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Flow[Mapping[str, DeltaChannelHistory]]:
        """The writes to channels before a checkpoint, since the latest stored value of each channel."""
        thread, checkpoint = _thread(config), _checkpoint_id(config)
        return checkpoints.load.delta_history(self._archive, thread, _ns(config), checkpoint, channels)

    aget_delta_channel_history = averb(get_delta_channel_history)

    @verb
    def config_of(self, message_id: str, config: RunnableConfig | None = None) -> Flow[RunnableConfig]:
        """The configuration of the first checkpoint whose state contains a message.

        Takes about a millisecond for any length of the thread, since no state history is read.

        Args:
            message_id: The `id` of the message.
            config: Names the thread, and the namespace of a subgraph; `None` for any thread of the owner.

        Returns:
            A configuration for `graph.get_state` or `graph.invoke`.

        Raises:
            NodeNotFoundError: No checkpoint contains the message.

        Example:
            >>> from langchain_core.messages import AIMessage
            >>> from langgraph.graph import START, MessagesState, StateGraph
            >>> from langchain_threadmem import MemorySystem
            >>> saver = ThreadMemSaver(MemorySystem(embeddings=False))
            >>> answer = lambda state: {"messages": AIMessage("Hi!", id="a1")}
            >>> graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
            >>> graph = graph.compile(checkpointer=saver)
            >>> thread = {"configurable": {"thread_id": "1"}}
            >>> state = graph.invoke({"messages": [("user", "Hello")]}, thread)
            >>> config = saver.config_of("a1", thread)
            >>> [message.content for message in graph.get_state(config).values["messages"]]
            ['Hello', 'Hi!']
        """
        _check_message(message_id)
        if config is None:
            self.system._check_run(None)
        thread = None if config is None else _thread(config)
        ns = "" if config is None else _ns(config)
        name, id_ = yield from checkpoints.find.first_with(self._archive, message_id, thread, ns)
        return _config(name, ns, id_, config)

    aconfig_of = averb(config_of)

    @verb
    def fork(self, config: RunnableConfig, message_id: str) -> Flow[RunnableConfig]:
        """The configuration with which a graph is invoked to replace a message.

        The configuration names the checkpoint right before the message. An invocation with a new human
        message is an edit; an invocation with `None` runs the graph again from this checkpoint and
        regenerates the answer. Afterwards `select_thread_node` and `ThreadMemMiddleware` no longer continue
        or recall the old message and the turns below it; turns of other threads stay.

        Args:
            config: Names the thread.
            message_id: The `id` of the message to replace.

        Raises:
            NodeNotFoundError: No checkpoint of the thread contains the message.
            InputError: The first checkpoint of the thread contains the message.

        Example:
            >>> from langchain_core.messages import AIMessage
            >>> from langgraph.graph import START, MessagesState, StateGraph
            >>> from langchain_threadmem import MemorySystem
            >>> saver = ThreadMemSaver(MemorySystem(embeddings=False))
            >>> answer = lambda state: {"messages": AIMessage("re " + state["messages"][-1].content)}
            >>> graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
            >>> graph = graph.compile(checkpointer=saver)
            >>> thread = {"configurable": {"thread_id": "1"}}
            >>> state = graph.invoke({"messages": [("user", "Hello")]}, thread)
            >>> config = saver.fork(thread, state["messages"][0].id)
            >>> edited = graph.invoke({"messages": [("user", "Good day")]}, config)
            >>> [message.content for message in edited["messages"]]
            ['Good day', 're Good day']
        """
        _check_message(message_id)
        ns = _ns(config)
        _, id_ = yield from checkpoints.find.before(self._archive, message_id, _thread(config), ns)
        forked = _config(_given_thread(config), ns, id_, config)
        forked["configurable"][REPLACED] = message_id
        return forked

    afork = averb(fork)

    def get_next_version(self, current: Any, channel: None) -> Any:
        """The version after `current`: 1, 2, 3 ...

        Two forks of a thread may write the same version of a channel, since checkpoints refer to values by
        number. Threads that were imported from another saver keep the format of its versions.
        """
        if isinstance(current, str):
            following = int(current.partition(".")[0]) + 1
            return f"{following:032}.{random.random():016}"
        return 1 if current is None else current + 1

    @property
    def _archive(self) -> Archive:
        return checkpoints.save.Archive(self.system.runtime, self.serde)


def _check_message(message_id: str) -> None:
    if not isinstance(message_id, str):
        raise InputError(f"message_id={message_id!r} is not text; pass the id of a message")


def _given_thread(config: RunnableConfig) -> Any:
    try:
        return config["configurable"]["thread_id"]
    except KeyError:
        raise InputError(
            f"the configuration names no thread: {config!r}; pass {{'configurable': {{'thread_id': ...}}}}"
        ) from None


def _thread(config: RunnableConfig) -> str:
    return thread_name(_given_thread(config))


def _checkpoint_id(config: RunnableConfig) -> str | None:
    return config["configurable"].get("checkpoint_id") or None


def _ns(config: RunnableConfig) -> str:
    ns = config["configurable"].get("checkpoint_ns")
    return name_of("a checkpoint_ns", ns, most=LONGEST_NS) if ns else ""


def _config(thread: Any, ns: str, checkpoint: str, given: RunnableConfig | None) -> RunnableConfig:
    """The configuration of a checkpoint, with the fields that a caller or `fork` has added."""
    fields = {} if given is None else given["configurable"]
    own = {
        key: value
        for key, value in fields.items()
        if key not in ADDRESS and (key == REPLACED or not key.startswith("__"))
    }
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": checkpoint, **own}}


def _tuple(snapshot: LoadedCheckpoint, given: RunnableConfig | None) -> CheckpointTuple:
    thread = snapshot.conversation if given is None else _given_thread(given)
    return CheckpointTuple(
        _config(thread, snapshot.ns, snapshot.checkpoint["id"], given),
        cast("Checkpoint", snapshot.checkpoint),
        cast("CheckpointMetadata", snapshot.metadata),
        None if snapshot.parent is None else _config(thread, snapshot.ns, snapshot.parent, given),
        snapshot.writes,
    )


def _pages(addresses: NamedAddresses, limit: int | None) -> Iterator[NamedAddresses]:
    """Addresses in pages, up to a limit."""
    chosen = addresses if limit is None else addresses[: max(limit, 0)]
    for start in range(0, len(chosen), PAGE):
        yield chosen[start : start + PAGE]
