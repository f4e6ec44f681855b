"""SQLAlchemy Core statements, compiled once per database and run on its driver.

SQLAlchemy gives one text for SQLite and PostgreSQL; executing through it costs some 25 µs a
statement, which is more than SQLite needs for the work. So a `Statement` keeps the compiled
text and the order of its parameters, and a `Conn` hands both to the driver's cursor.

Example:
    >>> from sqlalchemy import bindparam, select
    >>> from langchain_threadmem.storage.schema import tree
    >>> tip = Statement(select(tree.c.tip).where(tree.c.id == bindparam("tree")), "tree")
    >>> tip.sql("sqlite").split()[-3:]
    ['threadmem_tree.id', '=', '?']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Protocol

from sqlalchemy import Table, Text, bindparam, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql.psycopg import dialect as psycopg
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import ClauseElement, ColumnElement, Executable
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from langchain_threadmem.errors import InputError
from langchain_threadmem.storage.encryption import Seal

DialectName = Literal["sqlite", "postgresql"]

_DIALECTS = {
    "sqlite": sqlite.dialect(),
    "postgresql": psycopg(paramstyle="format"),  # type: ignore[no-untyped-call]
}


class Cursor(Protocol):
    """What is used of a DB-API cursor, plain or adapted to asyncio by SQLAlchemy."""

    def execute(self, sql: str, parameters: Any = ..., /) -> Any: ...
    def executemany(self, sql: str, rows: Any, /) -> Any: ...
    def fetchall(self) -> Any: ...


class Statement:
    """A statement and the names of its parameters, in the order they are passed.

    Args:
        element: A SQLAlchemy Core statement, or text.
        names: Names of its `bindparam`s in the order in which callers give the values.
    """

    def __init__(self, element: Executable | ClauseElement, *names: str) -> None:
        self._element = element
        self._names = names
        self.forms: dict[str, tuple[str, Callable[[Sequence[Any]], Sequence[Any]] | None]] = {}
        """What `form` has given, for those who cannot wait for a call."""

    @classmethod
    def of(cls, *, sqlite: str, postgresql: str) -> Statement:
        """A statement written out for each database, where they have no common text."""
        statement = cls(text(""))
        statement.forms = {"sqlite": (sqlite, None), "postgresql": (postgresql, None)}
        return statement

    def form(self, dialect: str) -> tuple[str, Callable[[Sequence[Any]], Sequence[Any]] | None]:
        """The text for a database, and how to order the values for it (`None`: as given)."""
        form = self.forms.get(dialect)
        if form is None:
            form = self.forms[dialect] = self._compile(dialect)
        return form

    def sql(self, dialect: str) -> str:
        """The text for a database."""
        return self.form(dialect)[0]

    def _compile(self, dialect: str) -> tuple[str, Callable[[Sequence[Any]], Sequence[Any]] | None]:
        compiled = self._element.compile(  # type: ignore[union-attr]
            dialect=_DIALECTS[dialect], compile_kwargs={"render_postcompile": True}
        )
        if not isinstance(compiled, SQLCompiler):
            return str(compiled), None  # A table definition: no parameters.
        wanted = list(compiled.positiontup or ())
        if wanted == list(self._names):
            return str(compiled), None
        constants = dict(compiled.params)
        index = {name: n for n, name in enumerate(self._names)}
        plan = [(index.get(name), constants.get(name)) for name in wanted]

        def order(values: Sequence[Any]) -> Sequence[Any]:
            return [constant if n is None else values[n] for n, constant in plan]

        return str(compiled), order


Asked = tuple[Statement, Sequence[Any]]
"""A statement that returns rows, and its values."""


class Conn:
    """An open transaction: the first argument of every function that runs SQL.

    Results are lists of tuples, read whole: a transaction is short, and a cursor is reused.
    """

    __slots__ = ("_cursor", "_writing", "dialect", "restricted", "seal")

    def __init__(self, cursor: Cursor, dialect: DialectName, writing: Cursor | None = None) -> None:
        self._cursor = cursor
        self._writing = cursor if writing is None else writing  # for statements that return nothing
        self.dialect: DialectName = dialect
        self.seal: Seal | None = None
        """Encrypts the data of the owner whose transaction it is."""
        self.restricted = False
        """Whether row-level security restricts it to the rows of one owner."""

    def run(self, statement: Statement, *values: Any) -> None:
        """Execute a statement that returns nothing."""
        sql, order = statement.forms.get(self.dialect) or statement.form(self.dialect)
        try:
            self._writing.execute(sql, values if order is None else order(values))
        except (UnicodeEncodeError, OverflowError) as error:
            raise refused(error) from error

    def all(self, statement: Statement, *values: Any) -> list[tuple[Any, ...]]:
        """Execute a statement and return all its rows."""
        sql, order = statement.forms.get(self.dialect) or statement.form(self.dialect)
        try:
            self._cursor.execute(sql, values if order is None else order(values))
        except (UnicodeEncodeError, OverflowError) as error:
            raise refused(error) from error
        return self._cursor.fetchall()  # type: ignore[no-any-return]

    def one(self, statement: Statement, *values: Any) -> tuple[Any, ...] | None:
        """Execute a statement and return its first row, or `None`."""
        rows = self.all(statement, *values)
        return rows[0] if rows else None

    def each(self, *asked: Asked) -> list[list[tuple[Any, ...]]]:
        """Execute statements, none of which needs another's rows; on PostgreSQL in one round trip."""
        return [self.all(statement, *values) for statement, values in asked]

    def many(self, statement: Statement, rows: Iterable[Sequence[Any]]) -> None:
        """Execute a statement once for each row of values."""
        sql, order = statement.forms.get(self.dialect) or statement.form(self.dialect)
        try:
            self._writing.executemany(sql, rows if order is None else [order(row) for row in rows])
        except (UnicodeEncodeError, OverflowError) as error:
            raise refused(error) from error

    def script(self, *statements: str) -> None:
        """Execute statements given as text: table definitions and little else."""
        for sql in statements:
            self._writing.execute(sql)


def refused(error: UnicodeEncodeError | OverflowError) -> InputError:
    """A value that a driver cannot hand to its database."""
    if isinstance(error, UnicodeEncodeError):
        return InputError(f"{error.object!r:.200} holds half of a surrogate pair, which no database keeps")
    return InputError("a number is outside of -2**63 to 2**63 - 1, which is what a database keeps")


def insert_of(table: Table, *, replace: bool = False, only: ColumnElement[bool] | None = None) -> Statement:
    """An INSERT of all columns of a table, in the order of its definition.

    Args:
        table: The table.
        replace: Overwrite the row with the same primary key, if there is one.
        only: The rows that may be overwritten; another row stays as it is.
    """
    names = [column.name for column in table.columns]
    # Both databases write ON CONFLICT alike, so one dialect's construct serves the other too.
    element = postgresql.insert(table).values({name: bindparam(name) for name in names})
    if replace:
        keys = [column.name for column in table.primary_key]
        rest = {name: element.excluded[name] for name in names if name not in keys}
        element = element.on_conflict_do_update(index_elements=keys, set_=rest, where=only)
    return Statement(element, *names)


def within(column: ColumnElement[int], name: str) -> ColumnElement[bool]:
    """`column IN (...)`, where the numbers are one parameter: a JSON list.

    One compiled text serves any number of values, with no limit on how many.
    """
    return _Among(column, bindparam(name, type_=Text()))


class _Among(FunctionElement[bool]):
    """Whether a column has one of the numbers of a JSON list.

    The element has no type on purpose: SQLAlchemy writes `... = 1` behind a and SQLite then searches no
    index.
    """

    inherit_cache = True


@compiles(_Among, "sqlite")
def _among_sqlite(element: _Among, compiler: SQLCompiler, **options: Any) -> str:
    column, numbers = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({numbers}))"


@compiles(_Among, "postgresql")
def _among_postgresql(element: _Among, compiler: SQLCompiler, **options: Any) -> str:
    # An array is looked up in an index; of a set of rows it is not known how few they are.
    column, numbers = (compiler.process(clause, **options) for clause in element.clauses)
    return (
        f"{column} = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(CAST({numbers} AS json))))"
    )
