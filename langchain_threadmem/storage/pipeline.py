"""Transactions in libpq's pipeline mode: a statement is sent before the result of the last one arrives.

A `Pipeline` calls the functions of libpq in `psycopg.pq`, and adapts values and rows as psycopg's cursors do.
A cursor costs the client four times as much: it is made for each query, and each of its calls waits in a
generator of its own.
"""

from __future__ import annotations

import re
import select
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Any

from langchain_threadmem.storage.statements import (
    MOST_TOGETHER,
    BoundStatement,
    Conn,
    FormName,
    Statement,
    refused,
    with_rows,
)

if TYPE_CHECKING:
    from types import TracebackType

    import psycopg

PREPARE_AFTER = 5
"""A connection prepares a statement at its next execution after so many."""
MOST_PREPARED = 100
"""The maximum number of prepared statements of a connection; the one used longest ago is removed."""
_PLACEHOLDERS = re.compile("%([s%])")
_IDLE, _OFF, _BINARY = 0, 0, 1  # Of `psycopg.pq`, which is imported late: `TransactionStatus` and so on.
_ROWS, _FAILED, _ABORTED = 2, 7, 11  # Of `psycopg.pq.ExecStatus`.


class Pipeline:
    """The statements of a connection, of which one transaction at a time sends some.

    Args:
        connection: The connection, in autocommit mode.

    Attributes:
        connection: The connection.
        used: The time of its last use; infinite for a new connection.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        from psycopg import errors, pq
        from psycopg.adapt import PyFormat, Transformer

        self.connection, self.used = connection, inf
        self._pgconn = connection.pgconn
        self._adapter = Transformer(connection)
        self._errors, self._auto = errors, PyFormat.AUTO
        self._prepared: OrderedDict[tuple[str, Sequence[int]], bytes] = OrderedDict()
        self._executed: dict[tuple[str, Sequence[int]], int] = {}
        self._closes = pq.version() >= 170000  # PgBouncer knows this message, but not `DEALLOCATE`.
        self._numbers = count()
        self._new: list[tuple[str, Sequence[int]]] = []  # what this transaction has prepared
        self._sent = self._received = self._last = 0
        self._rows: dict[int, list[tuple[Any, ...]]] = {}
        self._prepares = self._is_transaction = False
        self._later: list[tuple[str, Sequence[Sequence[Any]]]] = []

    @property
    def is_idle(self) -> bool:
        """Whether a transaction may begin."""
        return self._pgconn.transaction_status == _IDLE and self._pgconn.pipeline_status == _OFF

    def begin(self, *, prepares: bool, is_transaction: bool = True) -> Pipeline:
        """Prepare for a `with` block.

        Args:
            prepares: Whether to prepare frequent statements.
            is_transaction: Whether the statements contain `BEGIN` and `COMMIT`; else each query commits.
        """
        self._prepares, self._is_transaction = prepares, is_transaction
        return self

    def __enter__(self) -> Pipeline:
        self._sent = self._received = 0
        self._later.clear()
        self._pgconn.enter_pipeline_mode()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for all results; after an error, roll back.

        Raises:
            psycopg.Error: A statement has failed.
        """
        if error is not None:
            self._roll_back(error)
            return
        try:
            if self._received < self._sent:
                self._sync()
            self._pgconn.exit_pipeline_mode()
        except BaseException as late:
            self._roll_back(late)
            raise
        self._new.clear()
        self._rows.clear()

    def _roll_back(self, error: BaseException) -> None:
        for statement in self._new:
            self._prepared.pop(statement, None)  # The server may not have prepared it.
        self._new.clear()
        self._rows.clear()
        try:
            if not isinstance(error, Exception):  # An interrupt does not wait for the server.
                self.connection.cancel()
                self.connection.close()
                return
            with suppress(self._errors.Error):
                self._sync()
            self._pgconn.exit_pipeline_mode()
            self.connection.rollback()
        except self._errors.Error:
            self.connection.close()

    def execute(self, sql: str, values: Sequence[Any] | None = None) -> int:
        """Send a statement; returns its number, for `rows`."""
        if self._later:
            self._flush()
        text, params = sql.encode() if values is None else _numbered(sql), None
        types: Sequence[int] = ()
        formats = None
        if values:
            adapter = self._adapter
            try:
                params = adapter.dump_sequence(values, [self._auto] * len(values))
            except (UnicodeEncodeError, OverflowError) as error:
                raise refused(error) from error
            types, formats = adapter.types or (), adapter.formats
        name = self._name_of((sql, types), text) if self._prepares else None
        if name is None:
            self._pgconn.send_query_params(text, params, types, formats, _BINARY)
        else:
            self._pgconn.send_query_prepared(name, params, formats, _BINARY)
        self._last = self._sent
        self._sent += 1
        return self._last

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Send a statement once for each row of values."""
        for row in rows:
            self.execute(sql, row)

    def later(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Send a statement for each row before the next one, in one statement with its neighbours."""
        if any(queued == sql for queued, _ in self._later):
            self._flush()  # It may change a row again, which one statement cannot.
        self._later.append((sql, rows))

    def _flush(self) -> None:
        """Send the statements of `later`: all but the last are common table expressions of the last."""
        queued, self._later = self._later, []
        text = _together(*[(sql, len(rows)) for sql, rows in queued])
        self.execute(text, [value for _, rows in queued for row in rows for value in row])

    def _name_of(self, statement: tuple[str, Sequence[int]], text: bytes) -> bytes | None:
        """The name of a prepared statement, which is prepared after some executions; `None` before."""
        name = self._prepared.get(statement)
        if name is not None:
            self._prepared.move_to_end(statement)
            return name
        executed = self._executed.pop(statement, 0)
        if executed < PREPARE_AFTER:
            if len(self._executed) > MOST_PREPARED * 10:
                self._executed.clear()
            self._executed[statement] = executed + 1
            return None
        if len(self._prepared) >= MOST_PREPARED:
            if not statement[1]:
                return None  # It may be `BEGIN`, which no other statement precedes.
            _, oldest = self._prepared.popitem(last=False)
            if self._closes:
                self._pgconn.send_close_prepared(oldest)
            else:
                self._pgconn.send_query_params(b"DEALLOCATE " + oldest, None)
            self._sent += 1
        name = self._prepared[statement] = b"threadmem_%d" % next(self._numbers)
        self._new.append(statement)
        self._pgconn.send_prepare(name, text, statement[1])
        self._sent += 1
        return name

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows of the last statement."""
        return self.rows(self._last)

    def rows(self, number: int) -> list[tuple[Any, ...]]:
        """The rows of a statement, once; the results of all statements before it arrive, too.

        Raises:
            psycopg.Error: One of these statements has failed.
        """
        if self._received <= number:
            if self._is_transaction:
                self._pgconn.send_flush_request()
                self._receive(number + 1)
            else:
                self._sync()
        return self._rows.pop(number)

    def _sync(self) -> None:
        """End the transaction if no `BEGIN` was sent, and wait for all results."""
        self._pgconn.pipeline_sync()
        self._sent += 1
        self._receive(self._sent)

    def _receive(self, until: int) -> None:
        """Receive the results of the first statements; raise the first error of them."""
        pgconn, errors, failure, is_over = self._pgconn, self._errors, None, False
        pgconn.flush()
        while self._received < until:
            while pgconn.is_busy():
                self._wait()
            result = pgconn.get_result()
            if result is None:  # the end of the results of a statement
                if is_over:
                    raise errors.OperationalError("the connection is lost")
                is_over = True
                continue
            is_over, status = False, result.status
            if status == _ROWS:
                self._adapter.set_pgresult(result)
                self._rows[self._received] = self._adapter.load_rows(0, result.ntuples, tuple)
            elif status == _FAILED:
                failure = failure or errors.error_from_result(result)
            elif status == _ABORTED:
                failure = failure or errors.PipelineAborted("an earlier statement has failed")
            self._received += 1
        if failure is not None:
            raise failure

    def _wait(self) -> None:
        """Wait until the server has sent something, and send what it accepts meanwhile."""
        is_full, socket = self._pgconn.flush() == 1, self._pgconn.socket
        if hasattr(select, "poll"):
            ready = select.poll()
            ready.register(socket, select.POLLIN | select.POLLOUT if is_full else select.POLLIN)
            ready.poll()
        else:  # On Windows, only a call with a timeout can be interrupted.
            while not any(select.select([socket], [socket] if is_full else [], [], 0.1)):
                pass
        self._pgconn.consume_input()


@lru_cache(maxsize=1024)
def _together(*statements: tuple[str, int]) -> str:
    """One statement for several, each with its number of rows."""
    texts = list[str]()
    for sql, count_of_rows in statements:
        is_insertion = sql.startswith("INSERT ")
        texts += ["{} {}{}".format(*with_rows(sql, count_of_rows))] if is_insertion else [sql] * count_of_rows
    parts = ", ".join(f"part{n} AS ({sql})" for n, sql in enumerate(texts[:-1]))
    return f"WITH {parts} {texts[-1]}" if parts else texts[-1]


@lru_cache(maxsize=1024)
def _numbered(sql: str) -> bytes:
    """A statement with the placeholders of the server, `$1` and so on, in place of those of psycopg."""
    numbers = count(1)
    return _PLACEHOLDERS.sub(lambda found: f"${next(numbers)}" if found[1] == "s" else "%", sql).encode()


class PipelinedConn(Conn):
    """An open transaction in a pipeline."""

    __slots__ = ("_pipeline",)

    def __init__(self, pipeline: Pipeline, form: FormName) -> None:
        super().__init__(pipeline, form)
        self._pipeline = pipeline

    def later(self, statement: Statement, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement for each row of values, in one statement with its neighbours."""
        if len(rows) > MOST_TOGETHER:
            self.many(statement, rows)
        elif rows:
            sql, order = statement.forms.get(self._form) or statement.form(self._form)
            self._pipeline.later(sql, rows if order is None else [order(row) for row in rows])

    def if_any(
        self, condition: BoundStatement, insertion: Statement, rows: Sequence[Sequence[Any]]
    ) -> list[tuple[Any, ...]]:
        """Insert rows if a query returns a row, which is locked; the first rows in the same statement."""
        if not rows:
            return self.all(condition[0], *condition[1])
        (sql, order), given = condition[0].form(self._form), condition[1]
        values = [*(given if order is None else order(given))]
        into, order_row = insertion.form(self._form)
        first, rest = rows[:MOST_TOGETHER], rows[MOST_TOGETHER:]
        for row in first:
            values += row if order_row is None else order_row(row)
        before, listed, after = with_rows(into, len(first))
        number = self._pipeline.execute(
            f"WITH found AS ({sql} FOR UPDATE), inserted AS "
            f"({before} SELECT new.* FROM found CROSS JOIN ({listed}) AS new{after}) SELECT * FROM found",
            values,
        )
        found = self._pipeline.rows(number)
        if found and rest:
            self.many(insertion, rest)
        return found

    def each(self, *queries: BoundStatement) -> list[list[tuple[Any, ...]]]:
        """Execute independent statements in one round trip."""
        numbers = []
        for statement, values in queries:
            sql, order = statement.forms.get(self._form) or statement.form(self._form)
            numbers.append(self._pipeline.execute(sql, values if order is None else order(values)))
        return [self._pipeline.rows(number) for number in reversed(numbers)][::-1]
