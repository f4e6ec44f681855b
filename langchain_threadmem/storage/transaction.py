"""The `Database` protocol, and the mark that a transaction is open.

`read` and `write` take a function of one open transaction (`Conn`) and return what it returns;
`aread` and `awrite` are the same for asyncio. Everything that a function does is committed together or
not at all, and results are handed out only after the commit, so no cache can be filled with rows that
were rolled back.

`SqliteDatabase` keeps one connection for writing and a few for reading. Writes begin IMMEDIATE: a
transaction that starts by reading and then writes fails under a second writer, whatever the time-out.
WAL with `synchronous=NORMAL` keeps every acknowledged write
through the death of the process; `?synchronous=FULL` in the URL also through a power cut.

`PostgresDatabase` keeps a pool of psycopg connections. For both, async writes go through one `GroupWriter`,
and async reads through a few threads (`threaded`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar, Token
from pathlib import Path
from typing import Any, Protocol, TypeVar

from langchain_threadmem.errors import DriverError
from langchain_threadmem.storage.threaded import Transaction

T = TypeVar("T")

inside_transaction: ContextVar[bool] = ContextVar("threadmem_inside_transaction", default=False)


class Database(Protocol):
    """Runs functions in transactions, for callers with and without an event loop."""

    dialect: str
    path: Path | None
    """The file, if the database is one."""
    closed: bool

    def read(self, transaction: Transaction[T]) -> T: ...
    def write(self, transaction: Transaction[T]) -> T: ...
    async def aread(self, transaction: Transaction[T]) -> T: ...
    def awrite(self, transaction: Transaction[T]) -> Coroutine[Any, Any, T]: ...
    def scrub(self) -> str: ...
    def close(self) -> None: ...
    async def aclose(self) -> None: ...


def on_event_loop() -> bool:
    """Whether this thread runs an event loop, which nothing may block."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def enter_transaction() -> Token[bool]:
    """Mark that a transaction is open here, until `inside_transaction` is reset with what this returns.

    Raises:
        DriverError: One is open already.
    """
    if inside_transaction.get():
        raise inside()
    return inside_transaction.set(True)


def inside() -> DriverError:
    return DriverError(
        "a transaction was opened inside another one; "
        "return from the Sql function first, then yield the next step"
    )
