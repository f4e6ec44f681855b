"""Registry: what each capability with tables of its own does when messages are removed or checked.

Erasing, forgetting and verification are written for the tree and what is derived from it. A capability that
stores other rows defines an `Upkeep` as the `UPKEEP` of a module, and `MODULES` names the module.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from importlib import import_module

from langchain_threadmem.storage.statements import Conn

MODULES = (
    "langchain_threadmem.langgraph.checkpoints.upkeep",
    "langchain_threadmem.langgraph.items.queries",
)
"""The modules with the upkeep of a capability."""

RenewedText = Callable[[str], str]
"""Encrypts an encrypted text with a new key."""
RenewedValue = Callable[[str, bytes], tuple[str, bytes]]
"""Encrypts bytes of a serializer with a new key, given the name of their format."""


class Upkeep:
    """The removal and the checks of the rows of a capability; each method does nothing by default.

    Attributes:
        subject: The rows, as the subject of a problem of all of them.
        noun: One of the rows, in the singular.
    """

    subject = "the rows of a capability"
    noun = "row"

    def redact(self, conn: Conn, tree: int, texts: Collection[str]) -> None:
        """Remove the texts of deleted messages from the rows of a conversation.

        Args:
            conn: A write transaction that has locked the tree.
        """

    def delete_before(self, conn: Conn, tree: int, before: float) -> None:
        """Delete the rows of a conversation that were written before a time, in seconds since 1970."""

    def prune(self, conn: Conn, owner: str) -> dict[str, int]:
        """Delete rows of an owner that nothing needs; returns the number of rows by table."""
        return {}

    def subjects(self, conn: Conn, owner: str) -> list[tuple[int, str]]:
        """The trees that have rows to check, each with the subject of its problems."""
        return []

    def problems(self, conn: Conn, tree: int) -> list[str]:
        """The problems of the rows of a conversation, one sentence each."""
        return []

    def unreadable(self, conn: Conn, owner: str, *, remove: bool) -> int:
        """The number of an owner's rows that cannot be read: damaged ones, and those of a lost key.

        Args:
            conn: A transaction, which writes if `remove` is true.
            remove: Whether to remove these rows.
        """
        return 0

    def renewed(self, kind: str, data: bytes, text: RenewedText, value: RenewedValue) -> bytes | None:
        """Bytes with encrypted parts, of a format that the capability has defined, with another key.

        Args:
            data: The bytes.
            text: Encrypts a text with the new key.
            value: Encrypts bytes of a serializer, with their format, with the new key.

        Returns:
            `None` if the format is not one of the capability.
        """
        return None


@cache
def registered() -> tuple[Upkeep, ...]:
    """The upkeep of each capability."""
    return tuple(import_module(name).UPKEEP for name in MODULES)


def redact(conn: Conn, tree: int, texts: Collection[str]) -> None:
    """`Upkeep.redact` of each capability."""
    for upkeep in registered():
        upkeep.redact(conn, tree, texts)


def renewed(kind: str, data: bytes, text: RenewedText, value: RenewedValue) -> bytes | None:
    """`Upkeep.renewed` of the capability that has defined the format, if any."""
    for upkeep in registered():
        if (found := upkeep.renewed(kind, data, text, value)) is not None:
            return found
    return None
