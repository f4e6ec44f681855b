"""PostgreSQL databases, with psycopg and a pool of connections.

A transaction is a pipeline: a statement without rows is sent together with the next query or the COMMIT, so a
transaction takes one round trip per query. The first statement of a write locks the row of its tree
(`SELECT ... FOR UPDATE`), so writes to one conversation wait for each other, and writes to different
conversations do not.

Nothing outlives a transaction on its connection except prepared statements: locks, settings and the owner of
row-level security belong to the transaction. A pooler such as PgBouncer, which gives each transaction any
connection to the server, therefore serves all calls if no statement is prepared. The first statement finds
out whether a pooler answers: the server's process is then not the process that the connection names.

Pgpool-II keeps the process of a session, but sends the queries of a transaction to a replica until a
statement is no query. If the server does not have the address that the connection names, each transaction
therefore begins with a `SET`.
"""

from __future__ import annotations

import threading
import time
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy.dialects.postgresql.psycopg import dialect as psycopg_dialect
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError

from langchain_threadmem.common import forking
from langchain_threadmem.common.type_variables import T
from langchain_threadmem.errors import InputError, PersistenceError, StorageBusyError
from langchain_threadmem.storage import schema
from langchain_threadmem.storage.group_commit import Threaded
from langchain_threadmem.storage.migrations import LOCK, check, is_newest, migrate
from langchain_threadmem.storage.pipeline import Pipeline, PipelinedConn
from langchain_threadmem.storage.statements import Conn, FormName
from langchain_threadmem.storage.transaction import LastWrite, Transaction, inside_transaction, nested

if TYPE_CHECKING:
    import psycopg

    from langchain_threadmem.storage.owned import OwnedDatabase

POOL_SIZE, MAX_OVERFLOW = 5, 10
WRITER_THREADS = 4
POOL_SECONDS = 30.0
"""The timeout for a free connection, counted from the end of the last transaction."""
IDLE_SECONDS = 1.0
"""A connection that was idle for longer is tested before its use, and so is each one after one broke."""
DEADLOCK_ATTEMPTS = 5
"""The maximum number of attempts at a write; of two writes in a deadlock the server rolls back one."""
READ = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
"""The beginning of a read. The level is always named: a role or a database may have another default."""
LATEST = "BEGIN ISOLATION LEVEL READ COMMITTED"
"""The beginning of a write: after a wait for the row of its tree it sees what the other write has changed."""
IS_PARTITIONED = (
    "EXISTS (SELECT FROM pg_attribute WHERE attname = 'tree' AND attrelid = "
    f"to_regclass('{schema.document.name}'))"
)
_STATE = (
    "SELECT pg_backend_pid(), set_config('jit', 'off', pg_backend_pid() <> {process}), "
    "set_config('default_transaction_isolation', 'read committed', pg_backend_pid() <> {process}), "
    f"(SELECT max(number) FROM {schema.migration.name}), relkind = 'v' OR row_security_active(oid), "
    f"{IS_PARTITIONED}, coalesce(host(inet_server_addr()), ''), current_setting('port')::int "
    f"FROM pg_class WHERE oid = '{schema.tree.name}'::regclass"
)
"""The server's process, the number of the newest migration, whether there are policies and partitions, and
the server's address.

`process` is the process that the connection names. PostgreSQL compiles a statement of which it expects many
rows, in 0.1 s, and it expects too many of a list of ranges of keys: the messages of a conversation among
600,000 took 0.2 s instead of 8 ms. A write of one statement, which is sent without `BEGIN`, reads what others
have committed meanwhile. A connection of a pooler is shared with other programs, which keep their
settings.
"""
_NEXT_STEPS = {
    "3F000": "create a schema of the search path (CREATE SCHEMA), or name one that exists: "
    "ALTER ROLE app SET search_path = ...",
    "22P05": "create the database with the encoding UTF8, which has all characters",
    "25006": "the server follows another one, or default_transaction_read_only is on; write to the primary, "
    "or pass read_only=True",
    "42501": "the role that owns the tables, and may create some in the schema, creates them and lets "
    "other roles use them: `threadmem secure`",
}
"""What to do about errors of the server, by their SQLSTATE."""
_NO_SERVER = "query_wait_timeout"
"""The error of PgBouncer if a transaction waited too long for a connection to the server."""


class _DatabaseState(NamedTuple):
    """What a database says when it is opened."""

    version: int | None
    restricted: bool
    partitioned: bool


class PostgresDatabase(Threaded, forking.Forkable):
    """A PostgreSQL database with one connection pool for sync and async.

    The first transaction imports psycopg, which would block an event loop, and creates or migrates the
    tables. A forked child must not use a connection of its parent, so it has a new pool.

    Args:
        url: A SQLAlchemy URL.
        pool_size: The number of connections that stay open.
        max_overflow: The maximum number of additional connections.
        prepared_statements: Whether connections prepare frequent statements; by default unless a pooler is
            found.
        read_only: Whether to allow reads only.
    """

    dialect = "postgresql"
    path: Path | None = None

    def __init__(
        self,
        url: URL,
        pool_size: int = POOL_SIZE,
        max_overflow: int = MAX_OVERFLOW,
        *,
        prepared_statements: bool | None = None,
        read_only: bool = False,
    ) -> None:
        super().__init__(WRITER_THREADS)
        self._url = url
        self._prepares = prepared_statements
        self._is_direct = False  # whether the server itself answers, and no pooler or balancer of reads
        self.read_only = read_only
        self._sizes = pool_size, pool_size + max_overflow
        self._free: list[Pipeline] = []  # The connection that was used last has prepared statements.
        self._ended_count = 0  # the number of ended transactions
        self._broken = -inf  # the time at which a connection was last found broken
        self._callers = 0  # the number of threads that have or open a connection
        self._returned = threading.Condition(forking.lock())
        self._opening = forking.lock()
        self.row_security: bool | None = None
        self._form: FormName = "postgresql"
        self.watch()

    @property
    def opened(self) -> bool:
        """Whether the database was opened; it then exists and has the newest tables."""
        return self.row_security is not None

    def open(self) -> None:
        """Connect, and create or migrate the tables."""
        if not self.opened:
            with self._opening:
                if not self.opened:
                    self.row_security = self._set_up()

    def _set_up(self) -> bool:
        """Create or migrate the tables; returns whether row-level security restricts transactions."""
        try:
            import psycopg  # noqa: F401 # The first import takes long.
        except ImportError as error:
            raise PersistenceError(
                f"{self._name} requires the driver psycopg, which is not installed ({error}); "
                'install it with pip install "langchain-threadmem[postgres]"'
            ) from error
        try:
            state = self._state()
            if state is None or not is_newest(state.version):  # A role may be unable to create the tables.
                self._write(self._create)
                state = self._state()
            assert state is not None  # The tables exist now.
            return state.restricted
        except BaseException:
            self._close_free()
            raise

    def _create(self, conn: Conn) -> None:
        if self.read_only:
            check(conn, self._name)
        else:
            # A migration, or the wait for that of another process, may take longer than a call.
            conn.script("SET LOCAL statement_timeout = 0", f"SELECT pg_advisory_xact_lock({LOCK})")
            migrate(conn, time.time())

    def _state(self) -> _DatabaseState | None:
        """The state of the tables; `None` if there are none. The first call looks for a pooler."""
        import psycopg

        try:
            pipeline = self._checked_out()
            try:
                connection = pipeline.connection
                info = connection.info
                named, address = info.backend_pid, (info.hostaddr, info.port)
                process, _, _, *state, host, port = connection.execute(
                    _STATE.format(process=named)
                ).fetchall()[0]
            except psycopg.errors.UndefinedTable:
                return None
            finally:
                self._return(pipeline)
        except psycopg.Error as error:
            raise self._typed(error) from error
        is_session = process == named
        self._is_direct = is_session and (host, port) == address
        if self._prepares is None:
            self._prepares = is_session
        found = _DatabaseState(*state)
        self._form = "partitioned" if found.partitioned else "postgresql"
        return found

    def after_fork(self, *, child: bool) -> None:
        """In a child, drop threads and connections without closing the connections of the parent."""
        if child:
            self._pool, self._group = None, None
            self._free = []  # psycopg closes no connection of another process
            self._returned, self._callers = threading.Condition(forking.lock()), 0

    def write(self, transaction: Transaction[T], owner: OwnedDatabase | None = None) -> T:
        """Run a function in a transaction in the calling thread, again after a deadlock or a partitioning.

        A group commit locks conversations in the order of its writes, so writes of several conversations
        may wait for each other.
        """
        self.open()
        return self._write(transaction, owner)

    def _write(self, transaction: Transaction[T], owner: OwnedDatabase | None = None) -> T:
        import psycopg

        begin = f"{LATEST}, READ ONLY" if self.read_only else LATEST
        for _ in range(DEADLOCK_ATTEMPTS - 1):
            try:
                return self._transact(begin, transaction, owner)
            except PersistenceError as error:
                is_deadlock = isinstance(error.__cause__, psycopg.errors.DeadlockDetected)
                if not is_deadlock and not self._is_changed(error):
                    raise
        return self._transact(begin, transaction, owner)

    def _is_changed(self, error: PersistenceError) -> bool:
        """Whether a write failed since the tables were partitioned after this process had opened them."""
        import psycopg

        lacks_tree = (psycopg.errors.NotNullViolation, psycopg.errors.InvalidColumnReference)
        if self._form == "partitioned" or not isinstance(error.__cause__, lacks_tree):
            return False
        state = self._state()
        return state is not None and state.partitioned

    def read(self, transaction: Transaction[T], owner: OwnedDatabase | None = None) -> T:
        """Run a function on one snapshot of the committed data."""
        self.open()
        return self._transact(READ, transaction, owner)

    def _transact(self, begin: str, transaction: Transaction[T], owner: OwnedDatabase | None = None) -> T:
        import psycopg

        if inside_transaction.get():
            raise nested()
        outside = inside_transaction.set(True)
        try:
            pipeline = self._checked_out()
            try:
                # Row-level security names the owner in a transaction, and a pooler is no session.
                is_session = self._is_direct and not (self.row_security or self.read_only)
                # Encryption may store a proof of the key before the last statement.
                is_plain = owner is None or owner.seal is None
                is_last = is_session and is_plain and isinstance(transaction, LastWrite)
                with pipeline.begin(prepares=bool(self._prepares), is_transaction=not is_last):
                    conn = PipelinedConn(pipeline, self._form)
                    conn.restricted = bool(self.row_security)
                    if not is_last:
                        pipeline.execute(begin)
                        if not self._is_direct:
                            pipeline.execute("SET LOCAL jit = off")
                    if owner is not None:
                        owner.own(conn)
                    result = transaction(conn)
                    if not is_last:
                        conn.script("COMMIT")
            finally:
                self._return(pipeline)
            return result
        except psycopg.Error as error:
            raise self._typed(error) from error
        finally:
            inside_transaction.reset(outside)

    def _typed(self, error: psycopg.Error) -> InputError | PersistenceError:
        """The error of this package for an error of the driver."""
        from psycopg import errors

        if isinstance(error, errors.ProgramLimitExceeded):
            return InputError(f"{self._name}: a name or an id is too long for an index ({error}); shorten it")
        if isinstance(error, errors.ProtocolViolation) and _NO_SERVER in str(error):
            return StorageBusyError(
                f"{self._name}: the pooler found no free connection to the server ({error}), so nothing was "
                "written; try again, or allow the pooler more connections"
            )
        if isinstance(error, errors.LockNotAvailable):
            return StorageBusyError(
                f"{self._name}: another transaction had a lock for longer than the server's lock_timeout "
                f"({error}), so nothing was written; try again"
            )
        step = _NEXT_STEPS.get(error.sqlstate or "")
        return PersistenceError(f"{self._name}: {error}" + (f"; {step}" if step else ""))

    def damage(self) -> str | None:
        """No damage: the server checks its own pages."""
        return None

    def scrub(self, *, rewrite: bool = False) -> str:
        """The reason why deleted data may remain in the files of the server."""
        return f"{self._name}: the server keeps deleted data in its files until it runs VACUUM"

    def close(self) -> None:
        """Complete the queued writes and close all connections; a second call does nothing.

        A connection that another thread uses is closed after its transaction.
        """
        self._finish()
        self.closed = True
        self._close_free()

    def _close_free(self) -> None:
        with self._returned:
            free, self._free = self._free, []
            self._ended_count += 1
            self._returned.notify_all()
        for pipeline in free:
            pipeline.connection.close()

    @property
    def _name(self) -> str:
        return repr(self._url.render_as_string(hide_password=True))

    def _return(self, pipeline: Pipeline) -> None:
        """Return a connection after a transaction; a connection that is not idle is closed."""
        pipeline.used = time.monotonic()
        if not pipeline.is_idle:
            self._broken = pipeline.used
            pipeline.connection.close()
        self._end(pipeline)

    def _end(self, pipeline: Pipeline | None = None) -> None:
        """End the use of a connection, and let a caller that waits for one try again."""
        with self._returned:
            is_kept = not self.closed and len(self._free) < self._sizes[0]
            if pipeline is not None and is_kept and not pipeline.connection.closed:
                self._free.append(pipeline)
                pipeline = None
            self._callers -= 1
            self._ended_count += 1
            self._returned.notify()
        if pipeline is not None:
            pipeline.connection.close()

    def _connect(self) -> psycopg.Connection[Any]:
        import psycopg
        from psycopg.conninfo import make_conninfo

        try:
            dialect = psycopg_dialect()  # type: ignore[no-untyped-call]
            arguments, options = dialect.create_connect_args(self._url)  # type: ignore[no-untyped-call]
            # The encoding of a database, which psycopg uses otherwise, may be SQL_ASCII: no text.
            server = make_conninfo(*arguments, **options | {"client_encoding": "UTF8"})
        except (ArgumentError, ValueError, psycopg.ProgrammingError) as error:
            raise InputError(
                f"{self._name}: {str(error).strip()}; a URL has the options of libpq, and pool_size, "
                "max_overflow, prepared_statements and replica"
            ) from error
        connection: psycopg.Connection[Any] = psycopg.connect(server, autocommit=True, prepare_threshold=None)
        if self._is_direct:
            connection.execute("SET jit = off; SET default_transaction_isolation = 'read committed'")
        return connection

    def _checked_out(self) -> Pipeline:
        import psycopg

        while True:
            pipeline = self._pooled()
            if pipeline.used > max(time.monotonic() - IDLE_SECONDS, self._broken):
                return pipeline
            try:
                pipeline.connection.execute("")
                return pipeline
            except psycopg.Error:
                pipeline.connection.close()
                self._end()

    def _pooled(self) -> Pipeline:
        """A free connection, or a new one, whose use `_end` ends.

        The server or a pooler may allow fewer connections than the pool. A caller that gets no connection
        waits until another caller ends; if there is none, the server refuses it.
        """
        import psycopg

        while not self.closed:
            with self._returned:
                ended, refusal = self._ended_count, None
                is_allowed = bool(self._free) or self._callers < self._sizes[1]
                self._callers += is_allowed
                if self._free:
                    return self._free.pop()
            try:
                if is_allowed:
                    return Pipeline(self._connect())
            except psycopg.OperationalError as error:
                refusal = error
            except BaseException:
                self._end()
                raise
            with self._returned:
                self._callers -= is_allowed
                if refusal is not None and self._callers <= 0 and self._ended_count == ended:
                    self._ended_count += 1
                    self._returned.notify()
                    raise refusal
                if not self._returned.wait_for(lambda: self._ended_count != ended, POOL_SECONDS):  # noqa: B023
                    raise StorageBusyError(
                        f"{self._name}: no connection was free for {POOL_SECONDS:.0f} s, so nothing was "
                        "written; try again, or allow more connections with pool_size"
                    ) from refusal
        raise self._closed()
