"""Row-level security of PostgreSQL: a role that sees the rows of one owner per transaction.

`secure` creates a policy for each table and grants a role the use of the tables. A transaction of the role
names its owner in the setting `threadmem.owner`; without the setting the role sees no row. Roles that own the
tables, superusers and roles with BYPASSRLS see all rows.

A row without an owner belongs to the row that it refers to: a policy asks whether that row can be seen, which
the policy of its table decides. A search for words reads the inverted index through a function that has the
rights of the tables' owner, since PostgreSQL uses no index for `@@` below a policy (the operator is not
LEAKPROOF); the function adds the word of the transaction's owner to each query.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from sqlalchemy import Table

from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.storage import schema
from langchain_threadmem.storage.database import unopened
from langchain_threadmem.storage.statements import Conn, Statement

SETTING = "threadmem.owner"
WORDS_FUNCTION = "threadmem_words_of_owner"
"""The function that searches the inverted index for the owner of a transaction."""
_POLICY = "threadmem_owner"
_OWNER = f"current_setting('{SETTING}', true)"
_SEGMENT = f"EXISTS (SELECT FROM {schema.segment.name} s WHERE s.id = key >> {schema.POSITION_BITS})"
_RULES = {
    "owner": f"owner = {_OWNER}",
    "tree": f"EXISTS (SELECT FROM {schema.tree.name} t WHERE t.id = tree)",
    "namespace": f"EXISTS (SELECT FROM {schema.namespace.name} n WHERE n.id = namespace)",
    "item": f"EXISTS (SELECT FROM {schema.item.name} i WHERE i.id = item)",
    "key": _SEGMENT,
}
"""By column: whether a row can be seen. The first column that a table has decides."""
_FUNCTION = f"""\
CREATE OR REPLACE FUNCTION {WORDS_FUNCTION}(query text, most bigint) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = %s, pg_temp AS $function$
DECLARE
  mine text := '''§o' || left(encode(sha256(convert_to({_OWNER}, 'UTF8')), 'hex'), 24) || '''';
  found text;
BEGIN
  EXECUTE 'SELECT string_agg(key::text, '','') FROM (SELECT key FROM {schema.LEXICON} '
    'WHERE words @@ ($1::tsquery && $2::tsquery) ORDER BY key DESC LIMIT $3) AS newest'
    INTO found USING query, mine, most;
  RETURN found;
END
$function$"""

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
_IS_ACTIVE = Statement.of(
    sqlite="SELECT 0", postgresql=f"SELECT row_security_active('{schema.tree.name}')::int"
)
_SET_OWNER = Statement.of(sqlite="SELECT ?", postgresql=f"SELECT set_config('{SETTING}', %s, true)")


def secure(url: str, role: str, *, off: bool = False, run: bool = True) -> list[str]:
    """Restrict a PostgreSQL role to the rows of the owner that each transaction names.

    Run it as the role that owns the tables, after the first use of the database and after each upgrade of
    this package; a second call changes nothing. Applications then connect as `role`, and `MemorySystem` names
    the owner in each transaction. The tables are created if they are missing.

    Args:
        url: The database, with a role that owns the tables or may create them.
        role: An existing role that owns no tables of this package.
        off: Remove the policies, for all roles, and the rights of this role.
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
        found = conn.one(_ROLE, role)
        if found is None:
            raise InputError(f"there is no role {role!r}; create it (CREATE ROLE ... LOGIN)")
        if found[1] and not off:
            raise InputError(
                f"the role {role!r} owns the tables, is a superuser or has BYPASSRLS, so no policy restricts "
                "it; pass another role"
            )
        listed = list(_off(found[0]) if off else _on(found[0], conn.all(_SCHEMA)[0][0]))
        if run:
            conn.script(*listed)
        return listed

    with closing(database):
        return database.write(statements)


def _on(role: str, place: str) -> Iterator[str]:
    yield f"GRANT USAGE ON SCHEMA {place} TO {role}"
    yield f"GRANT SELECT ON {schema.migration.name} TO {role}"
    for name, rule in _rules():
        yield f"GRANT SELECT, INSERT, UPDATE, DELETE ON {name} TO {role}"
        yield f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY"
        yield f"DROP POLICY IF EXISTS {_POLICY} ON {name}"
        yield f"CREATE POLICY {_POLICY} ON {name} USING ({rule})"
    for name in _sequences():
        yield f"GRANT USAGE ON SEQUENCE {name} TO {role}"
    yield _FUNCTION % place
    yield f"REVOKE ALL ON FUNCTION {WORDS_FUNCTION}(text, bigint) FROM PUBLIC"
    yield f"GRANT EXECUTE ON FUNCTION {WORDS_FUNCTION}(text, bigint) TO {role}"


def _off(role: str) -> Iterator[str]:
    yield f"REVOKE ALL ON {schema.migration.name} FROM {role}"
    for name, _ in _rules():
        yield f"REVOKE ALL ON {name} FROM {role}"
        yield f"DROP POLICY IF EXISTS {_POLICY} ON {name}"
        yield f"ALTER TABLE {name} DISABLE ROW LEVEL SECURITY"
    for name in _sequences():
        yield f"REVOKE ALL ON SEQUENCE {name} FROM {role}"
    yield f"DROP FUNCTION IF EXISTS {WORDS_FUNCTION}(text, bigint)"


def _rules() -> Iterator[tuple[str, str]]:
    """Each table with rows of owners, and its rule."""
    for table in schema.metadata.sorted_tables:
        if table is not schema.migration:
            yield table.name, _rule(table)
    yield schema.LEXICON, _SEGMENT


def _rule(table: Table) -> str:
    return next(rule for column, rule in _RULES.items() if column in table.columns)


def _sequences() -> list[str]:
    tables = schema.metadata.sorted_tables
    return [f"{table.name}_id_seq" for table in tables if table.dialect_options["sqlite"]["autoincrement"]]


def is_active(conn: Conn) -> bool:
    """Whether policies restrict the role of a transaction."""
    return bool(conn.all(_IS_ACTIVE)[0][0])


def set_owner(conn: Conn, owner: str) -> None:
    """Let the rest of a transaction see the rows of an owner."""
    conn.run(_SET_OWNER, owner)


def check_sees_all_owners(conn: Conn) -> None:
    """Check that policies do not restrict a transaction that concerns all owners.

    Raises:
        PersistenceError: The role sees the rows of one owner.
    """
    if conn.restricted:
        raise PersistenceError(
            "row-level security shows this role one owner at a time, and this call needs the rows of all "
            "owners; connect as the role that owns the tables"
        )
