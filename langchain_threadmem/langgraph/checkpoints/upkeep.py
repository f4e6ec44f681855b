"""The upkeep of checkpoints and their pending writes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.langgraph.checkpoints import queries
from langchain_threadmem.langgraph.checkpoints.redaction import redact
from langchain_threadmem.langgraph.checkpoints.spans import SpanReader
from langchain_threadmem.langgraph.checkpoints.values import KIND, unpack
from langchain_threadmem.maintenance.upkeep import RenewedText, RenewedValue, Upkeep
from langchain_threadmem.storage.statements import Conn


class _Checkpoints(Upkeep):
    subject = "the checkpoints"

    def redact(self, conn: Conn, tree: int, texts: Collection[str]) -> None:
        """Remove the texts of deleted messages from the values of checkpoints."""
        redact(conn, tree, texts)

    def delete_before(self, conn: Conn, tree: int, before: float) -> None:
        """Delete the checkpoints before a time, with the values that only they refer to."""
        old = [
            address
            for address in queries.addresses(conn, tree, None)
            if queries.time_of_id(address.id) < before
        ]
        queries.remove(conn, old)
        queries.delete_unused_blobs(conn, tree)

    def subjects(self, conn: Conn, owner: str) -> list[tuple[int, str]]:
        """The conversations with checkpoints."""
        return [
            (tree, f"checkpoints of thread {name!r}") for tree, name in queries.conversations(conn, owner)
        ]

    def problems(self, conn: Conn, tree: int) -> list[str]:
        """The problems of references from checkpoints and pending writes."""
        problems = [f"value {number} is missing" for number in sorted(queries.missing_blobs(conn, tree))]
        reader, spans = SpanReader(), set()
        for data in queries.of_kind(conn, tree, KIND):
            try:
                value_spans = set(unpack(data).spans())
                reader.gaps(conn, value_spans)
            except (InputError, PersistenceError) as error:
                problems.append(str(error))
            else:
                spans |= value_spans
        gaps = reader.gaps(conn, spans)
        return problems + [f"messages between {first} and {last} are missing" for first, last in gaps]

    def renewed(self, kind: str, data: bytes, text: RenewedText, value: RenewedValue) -> bytes | None:
        """A value with lists of messages: the bodies, and the rest as the serializer wrote it."""
        if kind != KIND:
            return None
        try:
            stored = unpack(data)
        except InputError:
            return data  # It is damaged, which `verify` reports.
        new = stored.with_bodies(lambda _, body: text(body))
        if new.rest is not None:
            new = replace(new, rest=value(*new.rest))
        return data if new == stored else new.pack()


UPKEEP = _Checkpoints()
