"""Verbs that find the checkpoint of a message."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from langchain_threadmem.common.visited import Visited
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.errors import InputError, NodeNotFoundError
from langchain_threadmem.langgraph.checkpoints import queries as checkpoint_queries
from langchain_threadmem.langgraph.checkpoints.queries import CheckpointRow, unpack_id
from langchain_threadmem.langgraph.checkpoints.save import Archive, blobs_of
from langchain_threadmem.langgraph.checkpoints.spans import SpanReader
from langchain_threadmem.langgraph.checkpoints.values import START, spans_of
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes

NEAR = 32
"""The number of checkpoints before, and after, the time of a message that are searched first."""
CheckpointName = tuple[str, str]
"""Conversation and id of a checkpoint."""


def first_with(archive: Archive, message: str, conversation: str | None, ns: str) -> Flow[CheckpointName]:
    """The first checkpoint whose state contains a message.

    Checkpoints from the time of the message are searched first.

    Args:
        archive: The checkpoints.
        message: The id of the message.
        conversation: The conversation; `None` for the first conversation of the owner with the message.
        ns: The namespace of the checkpoint.

    Raises:
        NodeNotFoundError: No checkpoint contains the message.
    """
    name, row = yield from Sql(lambda conn: _first(archive, conn, message, conversation, ns))
    return name, unpack_id(row.id)


def before(archive: Archive, message: str, conversation: str, ns: str) -> Flow[CheckpointName]:
    """The parent of the first checkpoint whose state contains a message.

    Raises:
        NodeNotFoundError: No checkpoint contains the message.
        InputError: The first checkpoint of the conversation contains the message.
    """
    name, row = yield from Sql(lambda conn: _first(archive, conn, message, conversation, ns))
    if row.parent is None:
        raise InputError(
            f"the first checkpoint of thread {name!r} contains message {message!r}, so there is no earlier "
            "state; begin another thread"
        )
    return name, unpack_id(row.parent)


def _first(
    archive: Archive, conn: Conn, message: str, conversation: str | None, ns: str
) -> tuple[str, CheckpointRow]:
    for tree, name in checkpoint_queries.conversations(conn, archive.runtime.owner, conversation):
        versions = nodes.places(conn, tree, message)
        if not versions:
            continue
        search = _MessageSearch(archive, conn, {version.key for version in versions})
        created = min(version.created for version in versions)
        for row in _candidates(conn, tree, ns, created):
            if search.matches(row):
                return name, _earliest(conn, search, row)
    where = "of the owner" if conversation is None else f"of thread {conversation!r}"
    raise NodeNotFoundError(
        f"no checkpoint {where} contains a message with the id {message!r}; pass the id of a message in the "
        "state of the graph"
    )


def _candidates(conn: Conn, tree: int, ns: str, created: float) -> Iterator[CheckpointRow]:
    """The checkpoints after and before the time of a message, then all of the namespace."""
    yield from checkpoint_queries.around(conn, tree, ns, created, NEAR)
    for address in sorted(checkpoint_queries.addresses(conn, tree, ns)):
        row = checkpoint_queries.get(conn, *address)
        if row is not None:
            yield row


def _earliest(conn: Conn, search: _MessageSearch, row: CheckpointRow) -> CheckpointRow:
    """The earliest checkpoint that contains the message, among a checkpoint and its ancestors."""
    visited = Visited()
    while row.parent is not None:
        visited.add(row.id)
        parent = checkpoint_queries.get(conn, row.tree, row.ns, row.parent)
        if parent is None or not search.matches(parent):
            break
        row = parent
    return row


class _MessageSearch:
    """Checks whether checkpoints contain a message, by the keys of the versions of the message."""

    def __init__(self, archive: Archive, conn: Conn, keys: Collection[int]) -> None:
        self._archive, self._conn, self._keys, self._reader = archive, conn, keys, SpanReader()

    def matches(self, row: CheckpointRow) -> bool:
        state, _ = self._archive.state(row)
        # The input of a run is not yet part of the state.
        refs = [ref for name, ref in blobs_of(state, row).items() if name != START]
        [blobs] = self._conn.each(checkpoint_queries.blobs_query(row.tree, refs))
        spans = [span for value in checkpoint_queries.as_blobs(blobs).values() for span in spans_of(*value)]
        return self._reader.contains(self._conn, spans, self._keys)
