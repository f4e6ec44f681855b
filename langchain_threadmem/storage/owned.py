"""A database as one owner uses it: each transaction encrypts with the owner's key and names the owner."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from langchain_threadmem.storage import encryption_keys
from langchain_threadmem.storage.encryption import Seal
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.storage.threaded import Transaction
from langchain_threadmem.storage.transaction import Database, T


class OwnedDatabase:
    """The transactions of one owner on a database that many owners share.

    Args:
        database: The shared database.
        seal: Encrypts the owner's data.
    """

    def __init__(self, database: Database, seal: Seal) -> None:
        self._database = database
        self.dialect = database.dialect
        self.path: Path | None = database.path
        self.seal = seal
        self._admitted = False

    @property
    def closed(self) -> bool:
        """Whether the shared database is closed."""
        return self._database.closed

    def admit(self) -> None:
        """Compare the key with the owner's stored data, and store a proof of the key.

        Raises:
            EncryptionError: The stored data was written with another key.
        """
        if self._database.read(lambda conn: encryption_keys.admit(conn, self.seal)):
            self._database.write(lambda conn: encryption_keys.claim(conn, self.seal))
        self._admitted = True

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
        def owned(conn: Conn) -> T:
            if not self._admitted:
                encryption_keys.admit(conn, self.seal)
                self._admitted = True
            conn.seal = self.seal
            try:
                return transaction(conn)
            finally:
                conn.seal = None

        return owned
