"""The `Database` protocol, and a check against nested transactions.

`read` and `write` run a function of an open transaction (`Conn`) and return its result; `aread` and `awrite`
do the same for asyncio. The changes of a function are committed together or not at all. Results are returned
after the commit, so that no cache contains rows that were rolled back.

`SqliteDatabase` has one connection for writing and several for reading. Write transactions begin with BEGIN
IMMEDIATE: a transaction that reads first and then writes would fail beside a second writer, whatever the
timeout. WAL with `synchronous=NORMAL` preserves committed writes if the process dies; `?synchronous=FULL` in
the URL preserves them in a power failure too.

`PostgresDatabase` has a pool of psycopg connections. In both, async writes go through one `GroupWriter`, and
async reads through a thread pool (`group_commit`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol

from langchain_threadmem.common.type_variables import T
from langchain_threadmem.errors import DriverError

if TYPE_CHECKING:
    from langchain_threadmem.storage.owned import OwnedDatabase
    from langchain_threadmem.storage.statements import Conn

Transaction = Callable[["Conn"], T]
"""A function of an open transaction."""


class LastWrite(Generic[T]):
    """A function of a transaction that writes by its last statement alone, so it needs no lock before.

    PostgreSQL runs its statements without `BEGIN` and `COMMIT`: in a transaction each of them would read the
    newest committed data, too.
    """

    __slots__ = ("_run",)

    def __init__(self, run: Transaction[T]) -> None:
        self._run = run

    def __call__(self, conn: Conn) -> T:
        return self._run(conn)


inside_transaction: ContextVar[bool] = ContextVar("threadmem_inside_transaction", default=False)


class Database(Protocol):
    """Runs functions in transactions, sync and async; a transaction may be that of an owner."""

    dialect: str
    path: Path | None
    """The file of an SQLite database on disk."""
    read_only: bool
    closed: bool

    @property
    def opened(self) -> bool:
        """Whether the database was opened; it then exists and has the newest tables."""

    @property
    def row_security(self) -> bool | None:
        """Whether row-level security restricts transactions to one owner; `None` if that is not known yet."""

    def open(self) -> None: ...
    def read(self, transaction: Transaction[T], owner: OwnedDatabase | None = None) -> T: ...
    def write(self, transaction: Transaction[T], owner: OwnedDatabase | None = None) -> T: ...
    async def aread(self, transaction: Transaction[T], owner: OwnedDatabase | None = None) -> T: ...
    def awrite(self, transaction: Transaction[T]) -> Coroutine[Any, Any, T]: ...
    def damage(self) -> str | None: ...
    def scrub(self, *, rewrite: bool = False) -> str: ...
    def close(self) -> None: ...
    async def aclose(self) -> None: ...


def on_event_loop() -> bool:
    """Whether this thread runs an event loop, which must not be blocked."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def nested() -> DriverError:
    """The error for a transaction that is opened inside another one."""
    return DriverError(
        "a transaction was opened inside another one; "
        "return from the Sql function first, then yield the next step"
    )
