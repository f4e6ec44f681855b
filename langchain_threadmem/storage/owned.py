"""A database as one owner uses it: transactions encrypt with the owner's key and name the owner."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from langchain_threadmem.storage import encryption_keys
from langchain_threadmem.storage.encryption import Plain, Seal
from langchain_threadmem.storage.row_security import set_owner
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.storage.transaction import Database, T, Transaction


class OwnedDatabase:
    """The transactions of one owner on a database that many owners share."""

    def __init__(self, database: Database, owner: str, seal: Seal | None = None) -> None:
        self._database = database
        self._owner = owner
        self.dialect = database.dialect
        self.path: Path | None = database.path
        self.seal = seal
        self._plain = Plain(owner)
        self._admitted = False

    def admit(self) -> None:
        """Compare the key with the owner's stored data, and store a proof of the key.

        Raises:
            EncryptionError: The stored data was written with another key.
        """
        seal = self.seal
        if seal is None:
            return
        lacks_proof = self._database.read(self._named(lambda conn: encryption_keys.admit(conn, seal)))
        self._admitted = True
        if lacks_proof:
            self.write(encryption_keys.claim)

    def read(self, transaction: Transaction[T]) -> T:
        """Run a function on one snapshot of the committed data."""
        return self._database.read(self._owned(transaction))

    def write(self, transaction: Transaction[T]) -> T:
        """Run a function in a transaction in the calling thread."""
        return self._database.write(self._owned(transaction))

    def aread(self, transaction: Transaction[T]) -> Coroutine[Any, Any, T]:
        """Async `read`."""
        return self._database.aread(self._owned(transaction))

    def awrite(self, transaction: Transaction[T]) -> Coroutine[Any, Any, T]:
        """Async `write`."""
        return self._database.awrite(self._owned(transaction))

    def scrub(self) -> str:
        """Clear the bytes of deleted data; the reason why bytes may remain, or an empty text."""
        return self._database.scrub()

    def _owned(self, transaction: Transaction[T]) -> Transaction[T]:
        seal = self.seal
        if seal is None:
            plain = self._plain

            def unsealed(conn: Conn) -> T:
                conn.plain = plain
                try:
                    return transaction(conn)
                finally:
                    conn.plain = None

            return self._named(unsealed)

        def owned(conn: Conn) -> T:
            if not self._admitted:
                encryption_keys.admit(conn, seal)
                self._admitted = True
            conn.seal = seal
            try:
                return transaction(conn)
            finally:
                conn.seal = None

        return self._named(owned)

    def _named(self, transaction: Transaction[T]) -> Transaction[T]:
        """The transaction, with the name of the owner where row-level security asks for it."""
        if self._database.row_security is False:
            return transaction

        def named(conn: Conn) -> T:
            if conn.restricted:
                set_owner(conn, self._owner)
            return transaction(conn)

        return named
