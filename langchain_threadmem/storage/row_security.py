"""Row-level security of PostgreSQL: a role that sees the rows of one owner in each transaction.

`secure` creates a policy for each table and lets a role use the tables. A transaction of the role names its
owner in the setting `threadmem.owner`; without the setting the role sees no row. Roles that own the tables,
superusers and roles with BYPASSRLS see all rows.

Under a policy PostgreSQL uses an index only for conditions with LEAKPROOF operators, which exclude `@@`, `>>`
and comparisons with a subquery. Many statements of this package would scan the tables of all owners. `secure`
therefore also creates a view of each table, with the condition of the policy and the rights of the owner of
the tables, in a schema with the name of the role, where the default search path of PostgreSQL begins. A
policy also hides rows from functions that reveal their arguments, and a view does not; but a role that can
call such functions can also name another owner.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.storage import schema
from langchain_threadmem.storage.database import unopened
from langchain_threadmem.storage.statements import Conn, Statement

SETTING = "threadmem.owner"
_POLICY = "threadmem_owner"
_CURRENT_OWNER = f"current_setting('{SETTING}', true)"
_RULES = {
    "owner": f"owner = {_CURRENT_OWNER}",
    "tree": "EXISTS (SELECT FROM {place}.threadmem_tree t WHERE t.id = tree AND t.owner = {current})",
    "namespace": "EXISTS (SELECT FROM {place}.threadmem_namespace n WHERE n.id = namespace "
    "AND n.owner = {current})",
    "item": "EXISTS (SELECT FROM {place}.threadmem_item i JOIN {place}.threadmem_namespace n "
    "ON n.id = i.namespace WHERE i.id = item AND n.owner = {current})",
    "key": "EXISTS (SELECT FROM {place}.threadmem_segment s JOIN {place}.threadmem_tree t ON t.id = s.tree "
    f"WHERE s.id = key >> {schema.POSITION_BITS} AND t.owner = {{current}})",
}
"""The SQL condition that the owner owns a row, by column; the first of these columns in a table is used."""

_TREE = f"'{schema.tree.name}'::regclass"
_SCHEMA = Statement.of(
    sqlite="",
    postgresql="SELECT quote_ident(nspname) FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace "
    f"WHERE pg_class.oid = {_TREE}",
)
_ROLE = Statement.of(
    sqlite="",
    postgresql="SELECT quote_ident(rolname), rolsuper OR rolbypassrls OR pg_has_role(rolname, relowner, "
    f"'USAGE') FROM pg_roles, pg_class WHERE rolname = %s AND pg_class.oid = {_TREE}",
)
_SET_OWNER = Statement.of(sqlite="SELECT ?", postgresql=f"SELECT set_config('{SETTING}', %s, true)")


def secure(url: str, role: str, *, off: bool = False, run: bool = True) -> list[str]:
    """Restrict a PostgreSQL role to the rows of the owner that each transaction names.

    Call it with the role that owns the tables and may create schemas, and again after each upgrade of this
    package; a repeated call changes nothing. Applications then connect as `role`, and `MemorySystem` names
    the owner in each transaction. Missing tables are created.

    Args:
        url: The database, with the role that owns the tables.
        role: An existing role that owns no tables of this package. Its search path begins with a schema of
            its name, as by default.
        off: Remove the policies, for all roles, and the views and rights of this role; its schema stays.
        run: Whether to run the statements; otherwise they are only returned.

    Returns:
        The SQL statements, which run in one transaction.

    Raises:
        InputError: The database is not PostgreSQL, there is no such role, or policies do not restrict it.
        PersistenceError: The role in the URL does not own the tables.

    Example:
        ```python
        secure("postgresql://admin@host/name", "app")
        system = MemorySystem("postgresql://app@host/name", owner="ada")
        ```
    """
    database = unopened(url)
    if database.dialect != "postgresql":
        raise InputError(f"{str(url)!r} is SQLite; row-level security is a feature of PostgreSQL")

    def statements(conn: Conn) -> list[str]:
        role_row = conn.one(_ROLE, role)
        if role_row is None:
            raise InputError(f"there is no role {role!r}; create it (CREATE ROLE ... LOGIN)")
        if role_row[1] and not off:
            raise InputError(
                f"the role {role!r} owns the tables, is a superuser or has BYPASSRLS, so no policy restricts "
                "it; pass another role"
            )
        tables_schema = conn.all(_SCHEMA)[0][0]
        sql = list(_disable(role_row[0], tables_schema) if off else _enable(role_row[0], tables_schema))
        if run:
            conn.script(*sql)
        return sql

    with closing(database):
        return database.write(statements)


def _enable(role: str, tables_schema: str) -> Iterator[str]:
    yield f"CREATE SCHEMA IF NOT EXISTS {role}"
    yield f"GRANT USAGE ON SCHEMA {tables_schema}, {role} TO {role}"
    yield f"GRANT SELECT ON {tables_schema}.{schema.migration.name} TO {role}"
    for name, rule in _rules(tables_schema):
        yield f"ALTER TABLE {tables_schema}.{name} ENABLE ROW LEVEL SECURITY"
        yield f"DROP POLICY IF EXISTS {_POLICY} ON {tables_schema}.{name}"
        yield f"CREATE POLICY {_POLICY} ON {tables_schema}.{name} USING ({rule})"
        yield f"DROP VIEW IF EXISTS {role}.{name}"
        rows = f"SELECT * FROM {tables_schema}.{name} WHERE {rule}"
        yield f"CREATE VIEW {role}.{name} AS {rows} WITH LOCAL CHECK OPTION"
        yield f"GRANT SELECT, INSERT, UPDATE, DELETE ON {tables_schema}.{name}, {role}.{name} TO {role}"
    for name in _sequences():
        yield f"GRANT USAGE ON SEQUENCE {tables_schema}.{name} TO {role}"


def _disable(role: str, tables_schema: str) -> Iterator[str]:
    for name, _ in _rules(tables_schema):
        yield f"DROP VIEW IF EXISTS {role}.{name}"
        yield f"DROP POLICY IF EXISTS {_POLICY} ON {tables_schema}.{name}"
        yield f"ALTER TABLE {tables_schema}.{name} DISABLE ROW LEVEL SECURITY"
        yield f"REVOKE ALL ON {tables_schema}.{name} FROM {role}"
    for name in _sequences():
        yield f"REVOKE ALL ON SEQUENCE {tables_schema}.{name} FROM {role}"
    yield f"REVOKE ALL ON {tables_schema}.{schema.migration.name} FROM {role}"


def _rules(tables_schema: str) -> Iterator[tuple[str, str]]:
    """The tables with rows of owners, and the condition of each for the rows of the current owner."""
    for table in schema.metadata.sorted_tables:
        if table is not schema.migration:
            condition = next(rule for column, rule in _RULES.items() if column in table.columns)
            yield table.name, _rule(condition, tables_schema)
    yield schema.LEXICON, _rule(_RULES["key"], tables_schema)


def _rule(condition: str, tables_schema: str) -> str:
    if condition == _RULES["owner"]:
        return condition
    # PostgreSQL makes a join of a bare EXISTS and begins with the join, so it reads whole tables to find one
    # row. Within COALESCE it looks a row up, or for many rows looks all rows of the owner up at once.
    return f"COALESCE({condition.format(place=tables_schema, current=_CURRENT_OWNER)}, false)"


def _sequences() -> list[str]:
    tables = schema.metadata.sorted_tables
    return [f"{table.name}_id_seq" for table in tables if table.dialect_options["sqlite"]["autoincrement"]]


def set_owner(conn: Conn, owner: str) -> None:
    """Set the owner whose rows the rest of a transaction sees."""
    conn.run(_SET_OWNER, owner)


def check_sees_all_owners(conn: Conn) -> None:
    """Check that policies do not restrict a transaction that concerns all owners."""
    if conn.restricted:
        raise PersistenceError(
            "row-level security restricts this role to the rows of one owner, and this call reads the rows "
            "of all owners; connect as the role that owns the tables"
        )
