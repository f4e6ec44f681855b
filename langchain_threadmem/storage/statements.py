"""SQLAlchemy Core statements, compiled once per database and run on its driver.

SQLAlchemy compiles a statement for SQLite and for PostgreSQL; to execute it through SQLAlchemy costs about
25 µs, more than SQLite needs to run it. A `Statement` therefore caches the compiled text and the order of its
parameters, and a `Conn` passes both to the cursor of the driver.

Example:
    >>> from sqlalchemy import bindparam, select
    >>> from langchain_threadmem.storage.schema import tree
    >>> tip = Statement(select(tree.c.tip).where(tree.c.id == bindparam("tree")), "tree")
    >>> tip.sql("sqlite").split()[-3:]
    ['threadmem_tree.id', '=', '?']
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Any, Literal, NamedTuple, Protocol

from sqlalchemy import Select, Table, TableValuedAlias, Text, bindparam, literal_column, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql.psycopg import dialect as psycopg
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import ClauseElement, ColumnElement, Executable
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from langchain_threadmem.errors import InputError
from langchain_threadmem.storage.encryption import Plain, Seal
from langchain_threadmem.storage.partitioning.compiler import PartitionedCompiler, PartitionedDialect, tree_of

DialectName = Literal["sqlite", "postgresql"]
FormName = Literal["sqlite", "postgresql", "partitioned"]
"""The forms of a statement: for each dialect, and for a partitioned database of PostgreSQL."""

_DIALECTS = {
    "sqlite": sqlite.dialect(),
    "postgresql": psycopg(paramstyle="format"),  # type: ignore[no-untyped-call]
    "partitioned": PartitionedDialect(paramstyle="format"),  # type: ignore[no-untyped-call]
}

MOST_TOGETHER = 100
"""The maximum number of rows of a statement that is sent together with others."""
ZERO: ColumnElement[int] = literal_column("0")
ONE: ColumnElement[int] = literal_column("1")
"""Numbers in the text of a statement; SQLAlchemy would send them as parameters."""


class Cursor(Protocol):
    """The methods of a DB-API cursor that this package calls."""

    def execute(self, sql: str, parameters: Any = ..., /) -> Any: ...
    def executemany(self, sql: str, rows: Any, /) -> Any: ...
    def fetchall(self) -> Any: ...


class Statement:
    """A statement with the names of its parameters, in the order of the values.

    Args:
        element: A SQLAlchemy Core statement, or text.
        *names: The names of its `bindparam`s, in the order in which callers pass the values.
    """

    def __init__(self, element: Executable | ClauseElement, *names: str) -> None:
        self._element = element
        self._names = names
        self.forms: dict[str, tuple[str, Callable[[Sequence[Any]], Sequence[Any]] | None]] = {}
        """The results of `form` by name; frequent callers read it directly, to avoid a call."""

    @classmethod
    def of(cls, *, sqlite: str, postgresql: str, partitioned: str | None = None) -> Statement:
        """A statement whose text differs by database, but not the order of its values."""
        statement = cls(text(""), *map(str, range(sqlite.count("?"))))
        texts = {"sqlite": sqlite, "postgresql": postgresql, "partitioned": partitioned or postgresql}
        statement.forms = {form: (sql, None) for form, sql in texts.items()}
        return statement

    def form(self, name: str) -> tuple[str, Callable[[Sequence[Any]], Sequence[Any]] | None]:
        """The text for a database, and a function that orders the values (`None` for the given order)."""
        form = self.forms.get(name)
        if form is None:
            form = self.forms[name] = self._compile(name)
        return form

    def sql(self, form: str) -> str:
        """The text for a database."""
        return self.form(form)[0]

    def _compile(self, form: str) -> tuple[str, Callable[[Sequence[Any]], Sequence[Any]] | None]:
        compiled = self._element.compile(  # type: ignore[union-attr]
            dialect=_DIALECTS[form], compile_kwargs={"render_postcompile": True}
        )
        if not isinstance(compiled, SQLCompiler):
            return str(compiled), None  # A table definition has no parameters.
        constants = dict(compiled.params)
        index = {name: n for n, name in enumerate(self._names)}
        plan = [(index.get(name), constants.get(name)) for name in compiled.positiontup or ()]
        return str(compiled), _order(plan, len(self._names))


def _order(
    plan: Sequence[tuple[int | None, Any]], count: int
) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    """A function that orders values; `None` for the given order.

    Args:
        plan: The position of each value of the result, or `None` and a constant.
    """
    constants = [constant for n, constant in plan if n is None]
    after = itertools.count(count)
    positions = [next(after) if n is None else n for n, _ in plan]
    if positions == list(range(count)):
        return None
    if not positions:
        return lambda values: ()
    # `itemgetter` of one position returns no sequence.
    ordered = (
        itemgetter(*positions) if len(positions) > 1 else itemgetter(slice(positions[0], positions[0] + 1))
    )
    return (lambda values: ordered((*values, *constants))) if constants else ordered


BoundStatement = tuple[Statement, Sequence[Any]]
"""A statement that returns rows, with its values."""


class _Beside(Statement):
    """Queries in one statement; see `beside`."""

    def __init__(self, *queries: Statement) -> None:
        super().__init__(text(""), *(name for query in queries for name in query._names))
        self._queries = queries

    def _compile(self, form: str) -> tuple[str, Callable[[Sequence[Any]], Sequence[Any]] | None]:
        tables, given, ordered = list[str](), list[_Slot](), list[Any]()
        for n, query in enumerate(self._queries):
            sql, order = query.form(form)
            tables.append(f"({sql}) AS part{n}")
            slots = [_Slot(len(given) + m) for m in range(len(query._names))]
            given += slots
            ordered += slots if order is None else order(slots)
        plan = [(value.number, None) if isinstance(value, _Slot) else (None, value) for value in ordered]
        joined = " ON 1 = 1 LEFT JOIN ".join(tables[1:])
        return f"SELECT * FROM {tables[0]} LEFT JOIN {joined} ON 1 = 1", _order(plan, len(given))


class _Slot(NamedTuple):
    """The place of a value among the values of a statement."""

    number: int


@cache
def _beside(*queries: Statement) -> Statement:
    return _Beside(*queries)


def beside(*queries: BoundStatement) -> BoundStatement:
    """One query for several: the rows of the first, with the rows of the others beside them, or nulls.

    All queries but the last return at most a few rows, since the rows are multiplied; the order of the rows
    of a query is not kept.

    Example:
        >>> from langchain_threadmem.storage.schema import tree
        >>> tip = Statement(select(tree.c.tip).where(tree.c.id == bindparam("tree")), "tree")
        >>> statement, values = beside((tip, (1,)), (tip, (2,)))
        >>> statement.sql("sqlite").count("?"), values
        (2, (1, 2))
    """
    statements, values = zip(*queries, strict=True)
    return _beside(*statements), tuple(chain.from_iterable(values))


class Conn:
    """An open transaction: the first argument of every function that runs SQL.

    Results are complete lists of tuples, since transactions are short and the cursor is reused.
    """

    __slots__ = ("_cursor", "_form", "dialect", "plain", "restricted", "seal")

    def __init__(self, cursor: Cursor, form: FormName) -> None:
        self._cursor = cursor
        self._form: FormName = form
        self.dialect: DialectName = "sqlite" if form == "sqlite" else "postgresql"
        self.seal: Seal | None = None
        """Encrypts the data of the owner of the transaction."""
        self.plain: Plain | None = None
        """The owner of the transaction, if it does not encrypt and the owner's data may be encrypted."""
        self.restricted = False
        """Whether row-level security restricts the transaction to the rows of one owner."""

    @property
    def partitioned(self) -> bool:
        """Whether the tables are partitioned by trees."""
        return self._form == "partitioned"

    def run(self, statement: Statement, *values: Any) -> None:
        """Execute a statement that returns no rows."""
        sql, order = statement.forms.get(self._form) or statement.form(self._form)
        try:
            self._cursor.execute(sql, values if order is None else order(values))
        except (UnicodeEncodeError, OverflowError) as error:
            raise refused(error) from error

    def all(self, statement: Statement, *values: Any) -> list[tuple[Any, ...]]:
        """Execute a statement and return all its rows."""
        sql, order = statement.forms.get(self._form) or statement.form(self._form)
        try:
            self._cursor.execute(sql, values if order is None else order(values))
        except (UnicodeEncodeError, OverflowError) as error:
            raise refused(error) from error
        return self._cursor.fetchall()  # type: ignore[no-any-return]

    def one(self, statement: Statement, *values: Any) -> tuple[Any, ...] | None:
        """Execute a statement and return its first row, or `None`."""
        rows = self.all(statement, *values)
        return rows[0] if rows else None

    def each(self, *queries: BoundStatement) -> list[list[tuple[Any, ...]]]:
        """Execute independent statements; on PostgreSQL in one round trip."""
        return [self.all(statement, *values) for statement, values in queries]

    def many(self, statement: Statement, rows: Iterable[Sequence[Any]]) -> None:
        """Execute a statement once for each row of values."""
        sql, order = statement.forms.get(self._form) or statement.form(self._form)
        try:
            self._cursor.executemany(sql, rows if order is None else [order(row) for row in rows])
        except (UnicodeEncodeError, OverflowError) as error:
            raise refused(error) from error

    def later(self, statement: Statement, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement for each row of values before the next statement or the commit.

        PostgreSQL executes different statements as one, so they must not change the same rows; a statement
        that is given again is executed after the first.
        """
        self.many(statement, rows)

    def if_any(
        self, condition: BoundStatement, insertion: Statement, rows: Sequence[Sequence[Any]]
    ) -> list[tuple[Any, ...]]:
        """Insert rows if a query returns a row, which is locked; on PostgreSQL in one statement.

        Args:
            rows: The rows, each with another primary key.

        Returns:
            The row of the query.
        """
        found = self.all(condition[0], *condition[1])
        if found:
            self.many(insertion, rows)
        return found

    def script(self, *statements: str) -> None:
        """Execute statements that are given as text, such as table definitions."""
        for sql in statements:
            self._cursor.execute(sql)


def with_rows(insertion: str, count: int) -> tuple[str, str, str]:
    """The parts of an INSERT of several rows: before `VALUES`, the values, and after them.

    Args:
        insertion: The text of a statement of `insert_of`.

    Example:
        >>> with_rows("INSERT INTO a (b) VALUES (%s) ON CONFLICT DO NOTHING", 2)
        ('INSERT INTO a (b)', 'VALUES (%s), (%s)', ' ON CONFLICT DO NOTHING')
    """
    before, _, rest = insertion.partition(" VALUES ")
    row, conflict, action = rest.partition(" ON CONFLICT ")
    return before, f"VALUES {', '.join([row] * count)}", conflict + action


def refused(error: UnicodeEncodeError | OverflowError) -> InputError:
    """The error for a value that the driver cannot send to the database."""
    if isinstance(error, UnicodeEncodeError):
        return InputError(
            f"{error.object!r:.200} contains half of a surrogate pair, which no database can store"
        )
    return InputError("a number is outside of -2**63 to 2**63 - 1, the integers that a database can store")


def insert_of(
    table: Table, *names: str, replace: bool = False, only: ColumnElement[bool] | None = None
) -> Statement:
    """An INSERT of columns of a table.

    Args:
        *names: The columns; by default all, in the order of the definition.
        replace: Whether to overwrite these columns of a row with the same primary key.
        only: The condition of the rows that may be overwritten; other rows are not changed.
    """
    names = names or tuple(column.name for column in table.columns)
    # ON CONFLICT has the same syntax in both databases, so the construct of one dialect serves both.
    element = postgresql.insert(table).values({name: bindparam(name) for name in names})
    if replace:
        keys = [column.name for column in table.primary_key]
        updated = {name: element.excluded[name] for name in names if name not in keys}
        element = element.on_conflict_do_update(index_elements=keys, set_=updated, where=only)
    return Statement(element, *names)


def within(column: ColumnElement[int], name: str) -> ColumnElement[bool]:
    """The condition `column IN (...)`, with the numbers as one parameter, a JSON list of any length."""
    return within_rows(column, select(number_rows(name).c.value))


def within_rows(column: ColumnElement[int], rows: Select[Any]) -> ColumnElement[bool]:
    """The condition `column IN (SELECT ...)`, for a few rows."""
    return _AmongRows(column, rows.scalar_subquery())


class _AmongRows(FunctionElement[bool]):
    """Whether a column has one of the numbers that a query returns.

    The element has no boolean type, since SQLAlchemy would append `= 1`, and SQLite would then not use an
    index.
    """

    inherit_cache = True


@compiles(_AmongRows, "sqlite")
def _among_rows_sqlite(element: _AmongRows, compiler: SQLCompiler, **options: object) -> str:
    column, rows = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} IN {rows}"


@compiles(_AmongRows, "postgresql")
def _among_rows_postgresql(element: _AmongRows, compiler: SQLCompiler, **options: object) -> str:
    # PostgreSQL uses the index for an array; for a set of rows it cannot estimate their number.
    column, rows = (compiler.process(clause, **options) for clause in element.clauses)
    if isinstance(compiler, PartitionedCompiler) and (
        among := compiler.among(next(iter(element.clauses)), rows)
    ):
        return among
    return f"{column} = ANY (ARRAY{rows})"


def with_partitions(condition: ColumnElement[bool], partitioned: ColumnElement[bool]) -> ColumnElement[bool]:
    """A condition, and a condition with the same rows for partitioned databases."""
    return _WithPartitions(condition, partitioned)


class _WithPartitions(FunctionElement[bool]):
    inherit_cache = True


@compiles(_WithPartitions)
def _with_partitions(element: _WithPartitions, compiler: SQLCompiler, **options: object) -> str:
    condition, partitioned = element.clauses
    chosen = partitioned if isinstance(compiler, PartitionedCompiler) else condition
    return compiler.process(chosen, **options)


def number_rows(name: str) -> TableValuedAlias:
    """The numbers of a parameter, a JSON list, as rows with the column `value`."""
    return _Numbers(bindparam(name, type_=Text())).table_valued("value", name=name)


class _Numbers(FunctionElement[Any]):
    inherit_cache = True


@compiles(_Numbers, "sqlite")
def _numbers_sqlite(element: _Numbers, compiler: SQLCompiler, **options: object) -> str:
    (numbers,) = (compiler.process(clause, **options) for clause in element.clauses)
    return f"json_each({numbers})"


@compiles(_Numbers, "postgresql")
def _numbers_postgresql(element: _Numbers, compiler: SQLCompiler, **options: object) -> str:
    (numbers,) = (compiler.process(clause, **options) for clause in element.clauses)
    return f"(SELECT value::bigint FROM json_array_elements_text(CAST({numbers} AS json)))"


def range_rows(name: str) -> TableValuedAlias:
    """The ranges of a parameter, a JSON list of pairs, as rows of `place`, `first` and `last`."""
    return _Ranges(bindparam(name, type_=Text())).table_valued("place", "first", "last", name=name)


class _Ranges(FunctionElement[Any]):
    inherit_cache = True


@compiles(_Ranges, "sqlite")
def _ranges_sqlite(element: _Ranges, compiler: SQLCompiler, **options: object) -> str:
    (ranges,) = (compiler.process(clause, **options) for clause in element.clauses)
    ends = "json_extract(value, '$[0]') AS first, json_extract(value, '$[1]') AS last"
    return f"(SELECT key AS place, {ends} FROM json_each({ranges}))"


@compiles(_Ranges, "postgresql")
def _ranges_postgresql(element: _Ranges, compiler: SQLCompiler, **options: object) -> str:
    (ranges,) = (compiler.process(clause, **options) for clause in element.clauses)
    ends = "(value->>0)::bigint AS first, (value->>1)::bigint AS last"
    if isinstance(compiler, PartitionedCompiler):
        ends += f", {tree_of('(value->>0)::bigint')} AS tree"
    return (
        f"(SELECT ordinality AS place, {ends} "
        f"FROM json_array_elements(CAST({ranges} AS json)) WITH ORDINALITY AS listed (value, ordinality))"
    )
