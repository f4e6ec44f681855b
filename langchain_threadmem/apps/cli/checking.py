"""The commands `verify`, `repair`, `reindex`, `secure` and `partition`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from langchain_threadmem.apps.cli.arguments import (
    Access,
    check_one,
    command,
    confirmed,
    print_documents,
    print_json,
    progress_bar,
)
from langchain_threadmem.messages.text import plural, visible

if TYPE_CHECKING:
    from langchain_threadmem.maintenance.verify import Verification
    from langchain_threadmem.memory_system import MemorySystem


@command(
    "verify",
    examples=["verify", "verify --db memory.db --owner ada --json", "verify memory.db --everybody"],
    database="argument",
    everybody=True,
    json="the numbers of conversations and messages, and the problems",
)
def verify(access: Access, as_json: bool) -> int:
    """Check a database and every message in it."""
    found = _verified(access)
    if as_json:
        print_documents(access, {owner: {"ok": one.ok, **asdict(one)} for owner, one in found.items()})
    else:
        for owner, one in found.items():
            _print_owner(access, owner)
            _print_verification(one)
    return 0 if all(one.ok for one in found.values()) else 1


def _verified(access: Access) -> dict[str, Verification]:
    """The results of `verify` by owner."""
    found = {}
    for one in access.each():
        with one.open(read_only=True) as system:
            found[system.owner] = system.verify()
    return found


def _print_owner(access: Access, owner: str) -> None:
    if access.everybody:
        print(f"{visible(owner)}:")


def _print_verification(verification: Verification) -> None:
    problems = f"{len(verification.problems) or 'no'} problems"
    print(f"{verification.conversations} conversations, {verification.nodes} nodes: {problems}")
    for problem in verification.problems:
        print(f"  {visible(problem)}")


@command(
    "repair",
    examples=[
        "repair --db memory.db",
        "repair --db memory.db --backup before-repair.db",
        "repair --remove-unreadable --yes",
    ],
    everybody=True,
    json="the backup, the repairs, and the problems that are left",
)
@click.option(
    "--backup",
    metavar="TARGET",
    help="The copy before the repair.  [default: a file beside the database]",
)
@click.option("--no-backup", is_flag=True, help="Do not copy the database first.")
@click.option(
    "--remove-unreadable",
    is_flag=True,
    help="Also remove messages, store items and checkpoints that cannot be read.",
)
@click.option("--yes", is_flag=True, help="Do not ask before --remove-unreadable.")
def repair(
    access: Access,
    backup: str | None,
    no_backup: bool,
    remove_unreadable: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Repair what can be derived from messages again.

    Of the problems that `verify` finds, those of indexes, words and vectors are repaired.
    """
    check_one(backup=backup is not None, no_backup=no_backup)
    from langchain_threadmem.apps.transfer import convert as converting
    from langchain_threadmem.engine.flow import run
    from langchain_threadmem.maintenance import repair as repairing
    from langchain_threadmem.storage.database import without_password

    found = _verified(access)
    copy, repairs = None, dict[str, list[str]]()
    repaired = [owner for owner, one in found.items() if remove_unreadable or not one.ok]
    if repaired and not no_backup:
        target = backup or _copy_of(access.db)
        converting.backup(access.db, target)
        copy = without_password(target)
    for owner in repaired:
        with Access(access.db, owner).open() as system:
            repairs[owner] = run(repairing.repair(system.runtime), system.runtime)
            if remove_unreadable:
                repairs[owner] += _without_unreadable(system, yes)
            found[owner] = system.verify()
    if as_json:
        documents = {
            owner: {"ok": one.ok, "backup": copy, "repairs": repairs.get(owner, []), "problems": one.problems}
            for owner, one in found.items()
        }
        print_documents(access, documents)
    else:
        if copy is not None:
            print(f"the database before the repair is in {copy!r}")
        for owner, one in found.items():
            _print_owner(access, owner)
            _print_repair(one, repairs.get(owner, []))
    return 0 if all(one.ok for one in found.values()) else 1


def _without_unreadable(system: MemorySystem, yes: bool) -> list[str]:
    """Remove what cannot be read if the user agrees; returns a sentence about it."""
    from langchain_threadmem.engine.flow import run
    from langchain_threadmem.maintenance.repair import count_unreadable
    from langchain_threadmem.maintenance.repair import remove_unreadable as remove

    counts = run(count_unreadable(system.runtime), system.runtime)
    lost = ", ".join(plural(count, noun) for noun, count in counts.items())
    if not lost or not confirmed(f"Remove {lost} of {system.owner!r} that cannot be read, for good?", yes):
        return []
    run(remove(system.runtime), system.runtime)
    return [f"{lost} removed that could not be read"]


def _print_repair(verification: Verification, repairs: Sequence[str]) -> None:
    for text in repairs:
        print(text)
    if not verification.ok:
        print("these problems cannot be repaired from the messages; a backup or a copy may have the data")
        if any("cannot be read" in problem for problem in verification.problems):
            print("`threadmem repair --remove-unreadable` removes the messages that cannot be read")
    elif not repairs:
        print("nothing to repair")
    _print_verification(verification)


def _copy_of(database: str) -> str:
    """An unused name for a copy: a file beside an SQLite database, or a folder for a server."""
    from datetime import datetime

    from langchain_threadmem.storage.database import sqlite_file

    file, time = sqlite_file(database), datetime.now().strftime("%Y%m%d-%H%M%S")
    return f"threadmem-{time}" if file is None else str(file.with_name(f"{file.name}.{time}.bak"))


@command(
    "reindex",
    examples=["reindex --db memory.db", "reindex --db memory.db --vectors http://host:8000"],
    database="argument",
    everybody=True,
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
    documents = {}
    for one in access.each():
        with one.open(vectors=place) as system, progress_bar("embed") as update:
            system.flush(update)
            documents[system.owner] = {"indexed": system.reindex()} | _stored(system)
    if as_json:
        print_documents(access, documents)
    else:
        for owner, numbers in documents.items():
            _print_owner(access, owner)
            print(
                f"{numbers['indexed']} vectors in the index, {numbers['stored']} in the database"
                + ("" if numbers["needed"] else "; so few vectors are searched without an index")
            )
    is_filled = (not each["needed"] or each["indexed"] == each["stored"] for each in documents.values())
    return 0 if all(is_filled) else 1


def _stored(system: MemorySystem) -> dict[str, int]:
    """The number of stored vectors, and whether they need an index."""
    from langchain_threadmem.index import vectors
    from langchain_threadmem.index.indexes import Indexes
    from langchain_threadmem.index.owner_index import needs_index

    model = system.runtime.get(Indexes).model
    stored = system.runtime.database.read(lambda conn: vectors.count(conn, system.owner, model))
    return {"stored": stored, "needed": needs_index(system.runtime, stored)}


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


@command(
    "partition",
    examples=["partition postgresql://admin@host/name", "partition postgresql://admin@host/name --number 16"],
    database="argument",
    owner=False,
    json="the number of rows of each partitioned table",
)
@click.option(
    "--number", metavar="N", type=int, default=8, show_default=True, help="The partitions of each table."
)
def partition(access: Access, number: int, as_json: bool) -> None:
    """Partition the tables of PostgreSQL that grow with messages.

    PostgreSQL partitions them by the hash of the conversation. All rows are copied in one transaction, in
    which other processes wait.
    """
    from langchain_threadmem.storage.partitioning.partition import partition

    tables = partition(access.db, number)
    if as_json:
        print_json({table.name: table.rows for table in tables})
        return
    rows = sum(table.rows for table in tables)
    print(f"{plural(len(tables), 'table')} with {plural(rows, 'row')} in {number} partitions each")
