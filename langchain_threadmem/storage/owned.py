"""A database as one owner uses it: transactions encrypt with the owner's key and name the owner."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Generic

from langchain_threadmem.common.type_variables import T
from langchain_threadmem.storage import encryption_keys
from langchain_threadmem.storage.encryption import Plain, Seal
from langchain_threadmem.storage.group_commit import run_all
from langchain_threadmem.storage.row_security import set_owner
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.storage.transaction import Database, Transaction


class OwnedDatabase:
    """The transactions of one owner on a database that many owners share."""

    def __init__(self, database: Database, owner: str, seal: Seal | None = None) -> None:
        self._database = database
        self._owner = owner
        self.dialect = database.dialect
        self.path: Path | None = database.path
        self.seal = seal
        self.plain = Plain(owner)
        self._admitted = False

    def admit(self) -> None:
        """Compare the key with the owner's stored data, and store a proof of the key.

        Raises:
            EncryptionError: The stored data was written with another key.
        """
        seal = self.seal
        if seal is None:
            return

        def admit(conn: Conn) -> bool:
            if conn.restricted:
                set_owner(conn, self._owner)
            return encryption_keys.admit(conn, seal)

        lacks_proof = self._database.read(admit)
        self._admitted = True
        if lacks_proof:
            self.write(encryption_keys.claim)

    def read(self, transaction: Transaction[T]) -> T:
        """Run a function on one snapshot of the committed data."""
        return self._database.read(transaction, self)

    def write(self, transaction: Transaction[T]) -> T:
        """Run a function in a transaction in the calling thread."""
        return self._database.write(transaction, self)

    def aread(self, transaction: Transaction[T]) -> Coroutine[Any, Any, T]:
        """Async `read`."""
        return self._database.aread(transaction, self)

    def awrite(self, transaction: Transaction[T]) -> Coroutine[Any, Any, T]:
        """Async `write`."""
        return self._database.awrite(_OwnedWrite(self, transaction))

    def damage(self) -> str | None:
        """The first damage of the rows of the database, as the beginning of a sentence."""
        return self._database.damage()

    def scrub(self, *, rewrite: bool = False) -> str:
        """Clear the bytes of deleted data; the reason why bytes may remain, or an empty text."""
        return self._database.scrub(rewrite=rewrite)

    def own(self, conn: Conn) -> None:
        """Make a transaction that of the owner, by its key and, for row-level security, its name."""
        if conn.restricted:
            set_owner(conn, self._owner)
        seal = self.seal
        if seal is None:
            conn.seal, conn.plain = None, None if self.plain.proven else self.plain
            return
        conn.plain = None
        if not self._admitted:
            encryption_keys.admit(conn, seal)
            self._admitted = True
        encryption_keys.check_finished(seal)
        conn.seal = seal


class _OwnedWrite(Generic[T]):
    """A queued write of an owner."""

    __slots__ = ("_database", "_transaction")

    def __init__(self, database: OwnedDatabase, transaction: Transaction[T]) -> None:
        self._database = database
        self._transaction = transaction

    def __call__(self, conn: Conn) -> T:
        self._database.own(conn)
        return self._transaction(conn)

    @staticmethod
    def together(conn: Conn, writes: Sequence[_OwnedWrite[Any]]) -> list[Any]:
        """Run the writes of each owner as the writes that they contain (`group_commit.run_all`)."""
        results: list[Any] = []
        for database, own in groupby(writes, lambda write: write._database):
            database.own(conn)
            results += run_all(conn, [write._transaction for write in own])
        conn.seal = conn.plain = None
        return results
