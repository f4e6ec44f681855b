"""Verbs that find the checkpoint of a message."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from langchain_threadmem.checkpoints import queries as checkpoint_queries
from langchain_threadmem.checkpoints.known_lists import START
from langchain_threadmem.checkpoints.queries import CheckpointRow, unpack_id
from langchain_threadmem.checkpoints.save import Archive, expand
from langchain_threadmem.checkpoints.spans import Reader
from langchain_threadmem.checkpoints.values import KIND, unpack
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.errors import InputError, NodeNotFoundError
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes, trees

NEAR = 32
"""How many checkpoints around the time of a message are looked at before all are."""
Address = tuple[str, str]
"""The thread and the id of a checkpoint."""


def first_with(archive: Archive, message: str, thread: str | None, ns: str) -> Flow[Address]:
    """The first checkpoint whose state holds a message.

    Checkpoints lie in the order of their times, so those around the time of the message are looked at first.

    Args:
        archive: The checkpoints.
        message: The id of the message.
        thread: The thread; `None` for the first thread of the owner with such a message.
        ns: The namespace of the checkpoint.

    Raises:
        NodeNotFoundError: No checkpoint holds the message.
    """
    name, row = yield from Sql(lambda conn: _first(archive, conn, message, thread, ns))
    return name, unpack_id(row.id)


def before(archive: Archive, message: str, thread: str, ns: str) -> Flow[Address]:
    """The checkpoint right before the first one whose state holds a message.

    Raises:
        NodeNotFoundError: No checkpoint holds the message.
        InputError: The first checkpoint of the thread holds it.
    """
    name, row = yield from Sql(lambda conn: _first(archive, conn, message, thread, ns))
    if row.parent is None:
        raise InputError(
            f"the first checkpoint of thread {name!r} holds message {message!r} already: there is no state "
            "before it; begin another thread"
        )
    return name, unpack_id(row.parent)


def _first(
    archive: Archive, conn: Conn, message: str, thread: str | None, ns: str
) -> tuple[str, CheckpointRow]:
    owner = archive.runtime.owner
    if thread is None:
        named = checkpoint_queries.threads(conn, owner)
    else:
        tree = trees.find(conn, owner, thread)
        named = [] if tree is None else [(tree, thread)]
    for tree, name in named:
        places = nodes.versions(conn, tree, message)
        if not places:
            continue
        holder = _Holder(archive, conn, {place.key for place in places})
        made = min(place.created for place in places)
        for row in _candidates(conn, tree, ns, made):
            if holder.holds(row):
                return name, _earliest(conn, holder, row)
    where = "of the owner" if thread is None else f"of thread {thread!r}"
    raise NodeNotFoundError(
        f"no checkpoint {where} holds a message with the id {message!r}; pass the id of a message in a "
        "graph's state"
    )


def _candidates(conn: Conn, tree: int, ns: str, made: float) -> Iterator[CheckpointRow]:
    """The checkpoints from the time of a message on, those right before it, then all of the namespace."""
    yield from checkpoint_queries.around(conn, tree, ns, made, NEAR)
    for address in sorted(checkpoint_queries.addresses(conn, tree, ns)):
        row = checkpoint_queries.get(conn, *address)
        if row is not None:
            yield row


def _earliest(conn: Conn, holder: _Holder, row: CheckpointRow) -> CheckpointRow:
    """The first of the checkpoints that lead to one and hold the message too."""
    while row.parent is not None:
        above = checkpoint_queries.get(conn, row.tree, row.ns, row.parent)
        if above is None or not holder.holds(above):
            break
        row = above
    return row


class _Holder:
    """Whether checkpoints hold a message, which is stored at some keys."""

    def __init__(self, archive: Archive, conn: Conn, keys: Collection[int]) -> None:
        self._archive, self._conn, self._keys, self._reader = archive, conn, keys, Reader()

    def holds(self, row: CheckpointRow) -> bool:
        state, _ = expand(self._archive.load(row.kind, row.data))
        # The input of a run is no part of the state yet.
        refs = [ref for name, ref in zip(state["channel_versions"], row.refs, strict=True) if name != START]
        [blobs] = self._conn.each(checkpoint_queries.asking_blobs(row.tree, refs))
        spans = [
            run
            for kind, data in checkpoint_queries.as_blobs(blobs).values()
            if kind == KIND
            for run in unpack(data).runs()
        ]
        return self._reader.holds(self._conn, spans, self._keys)
