"""The commands `verify`, `repair`, `reindex` and `secure`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from langchain_threadmem.cli.arguments import Access, check_one, command, print_json, progress_bar
from langchain_threadmem.messages.text import visible

if TYPE_CHECKING:
    from langchain_threadmem.verify import Verification


@command(
    "verify",
    examples=["verify", "verify --db memory.db --owner ada --json"],
    database="argument",
    json="the numbers of conversations and messages, and the problems",
)
def verify(access: Access, as_json: bool) -> int:
    """Check a database and every message in it."""
    with access.open(read_only=True) as system:
        verification = system.verify()
    if as_json:
        print_json(verification, ok=verification.ok)
    else:
        _print_verification(verification)
    return 0 if verification.ok else 1


def _print_verification(verification: Verification) -> None:
    problems = f"{len(verification.problems) or 'no'} problems"
    print(f"{verification.conversations} conversations, {verification.nodes} nodes: {problems}")
    for problem in verification.problems:
        print(f"  {visible(problem)}")


@command(
    "repair",
    examples=["repair --db memory.db", "repair --db memory.db --backup before-repair.db"],
    json="the backup, the repairs, and the problems that are left",
)
@click.option(
    "--backup",
    metavar="TARGET",
    help="The copy before the repair.  [default: a file beside the database]",
)
@click.option("--no-backup", is_flag=True, help="Do not copy the database first.")
def repair(access: Access, backup: str | None, no_backup: bool, as_json: bool) -> int:
    """Repair what can be derived from messages again.

    Of the problems that `verify` finds, those of indexes, words and vectors are repaired.
    """
    check_one(backup=backup is not None, no_backup=no_backup)
    from langchain_threadmem import repair as repairing
    from langchain_threadmem.engine.flow import run
    from langchain_threadmem.storage.urls import without_password
    from langchain_threadmem.transfer import backup as backing_up

    with access.open(read_only=True) as system:
        verification = system.verify()
    copy, repairs = None, []
    if not verification.ok:
        if not no_backup:
            target = backup or _copy_of(access.db)
            backing_up.backup(access.db, target)
            copy = without_password(target)
        with access.open() as system:
            repairs = run(repairing.repair(system.runtime), system.runtime)
            verification = system.verify()
    if as_json:
        print_json(
            {"ok": verification.ok, "backup": copy, "repairs": repairs, "problems": verification.problems}
        )
        return 0 if verification.ok else 1
    if copy is not None:
        print(f"the database before the repair is in {copy!r}")
    for text in repairs:
        print(text)
    if not verification.ok:
        print("these problems cannot be repaired from the messages; a backup or a copy may have the data")
    elif not repairs:
        print("nothing to repair")
    _print_verification(verification)
    return 0 if verification.ok else 1


def _copy_of(database: str) -> str:
    """An unused name for a copy: a file beside an SQLite database, or a folder for a server."""
    from datetime import datetime

    from langchain_threadmem.storage.urls import sqlite_file

    file, time = sqlite_file(database), datetime.now().strftime("%Y%m%d-%H%M%S")
    return f"threadmem-{time}" if file is None else str(file.with_name(f"{file.name}.{time}.bak"))


@command(
    "reindex",
    examples=["reindex --db memory.db", "reindex --db memory.db --vectors http://host:8000"],
    database="argument",
    json="the numbers of vectors in the index and in the database",
)
@click.option(
    "--vectors",
    "place",
    metavar="DIR",
    help="The folder or the server of the index.  [default: a folder beside the file]",
)
def reindex(access: Access, place: str | None, as_json: bool) -> int:
    """Embed missing messages, and fill the index of vectors."""
    from langchain_threadmem.index import vectors
    from langchain_threadmem.index.indexes import Indexes
    from langchain_threadmem.index.owner_index import needs_index

    with access.open(vectors=place) as system, progress_bar("embed") as update:
        system.flush(update)
        indexed = system.reindex()
        stored = system.runtime.database.read(
            lambda conn: vectors.count(conn, system.owner, system.runtime.get(Indexes).model)
        )
        needed = needs_index(system.runtime, stored)
    if as_json:
        print_json({"indexed": indexed, "stored": stored, "needed": needed})
    else:
        print(
            f"{indexed} vectors in the index, {stored} in the database"
            + ("" if needed else "; so few vectors are searched without an index")
        )
    return 0 if indexed == stored or not needed else 1


@command(
    "secure",
    examples=["secure postgresql://admin@host/name --role app"],
    database="argument",
    owner=False,
)
@click.option("--role", metavar="NAME", required=True, help="The role of applications.")
@click.option("--off", is_flag=True, help="Remove the policies and the rights of the role.")
@click.option("--sql", is_flag=True, help="Print the statements without running them.")
def secure(access: Access, role: str, off: bool, sql: bool) -> None:
    """Restrict a role of PostgreSQL to one owner at a time.

    Row-level security shows the role the rows of one owner in each transaction.
    """
    from langchain_threadmem.storage import row_security

    statements = row_security.secure(access.db, role, off=off, run=not sql)
    if sql:
        print(*(f"{statement};" for statement in statements), sep="\n")
    elif off:
        print(f"row-level security is off, and {role!r} has no rights on the tables")
    else:
        print(f"row-level security is on: {role!r} sees the rows of one owner in each transaction")
