"""The commands `verify`, `repair`, `reindex` and `secure`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from langchain_threadmem.cli.arguments import Commands, add_command, open_memory, print_json, progress_bar
from langchain_threadmem.messages.text import visible

if TYPE_CHECKING:
    from langchain_threadmem.verify import Verification


def register(commands: Commands) -> None:
    add_command(
        commands,
        "verify",
        _verify,
        "check a database and every message in it",
        examples=["verify", "verify --db memory.db --owner ada --json"],
        database="argument",
        json="the numbers of conversations and messages, and the problems",
    )

    repair = add_command(
        commands,
        "repair",
        _repair,
        "repair the problems that verify finds in data derived from messages: indexes, words, vectors",
        examples=["repair --db memory.db", "repair --db memory.db --backup before-repair.db"],
        json="the backup, the repairs, and the problems that are left",
    )
    backup = repair.add_mutually_exclusive_group()
    backup.add_argument(
        "--backup", metavar="TARGET", help="the copy before the repair; default: a file beside the database"
    )
    backup.add_argument("--no-backup", action="store_true", help="do not copy the database first")

    vectors = add_command(
        commands,
        "reindex",
        _reindex,
        "embed missing messages, fill the index of vectors, and check it",
        examples=["reindex --db memory.db", "reindex --db memory.db --vectors http://host:8000"],
        database="argument",
        json="the numbers of vectors in the index and in the database",
    )
    vectors.add_argument(
        "--vectors", metavar="DIR", help="folder or server of the index; default: a folder beside the file"
    )

    secure = add_command(
        commands,
        "secure",
        _secure,
        "restrict a role of PostgreSQL to one owner per transaction, by row-level security",
        examples=["secure postgresql://admin@host/name --role app"],
        database="argument",
        owner=False,
    )
    secure.add_argument("--role", metavar="NAME", required=True, help="the role of applications")
    secure.add_argument("--off", action="store_true", help="remove the policies and the rights of the role")
    secure.add_argument("--sql", action="store_true", help="print the statements without running them")


def _verify(options: argparse.Namespace) -> int:
    with open_memory(options, read_only=True) as system:
        verification = system.verify()
    if options.json:
        print_json(verification, ok=verification.ok)
    else:
        _print_verification(verification)
    return 0 if verification.ok else 1


def _print_verification(verification: Verification) -> None:
    problems = f"{len(verification.problems) or 'no'} problems"
    print(f"{verification.conversations} conversations, {verification.nodes} nodes: {problems}")
    for problem in verification.problems:
        print(f"  {visible(problem)}")


def _repair(options: argparse.Namespace) -> int:
    from langchain_threadmem.engine.flow import run
    from langchain_threadmem.repair import repair
    from langchain_threadmem.storage.urls import without_password
    from langchain_threadmem.transfer.backup import backup

    with open_memory(options, read_only=True) as system:
        verification = system.verify()
    copy, repairs = None, []
    if not verification.ok:
        if not options.no_backup:
            target = options.backup or _copy_of(options.db)
            backup(options.db, target)
            copy = without_password(target)
        with open_memory(options) as system:
            repairs = run(repair(system.runtime), system.runtime)
            verification = system.verify()
    if options.json:
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


def _reindex(options: argparse.Namespace) -> int:
    from langchain_threadmem.index import vectors
    from langchain_threadmem.index.indexes import Indexes
    from langchain_threadmem.index.owner_index import needs_index

    with open_memory(options, vectors=options.vectors) as system, progress_bar("embed") as update:
        system.flush(update)
        indexed = system.reindex()
        stored = system.runtime.database.read(
            lambda conn: vectors.count(conn, system.owner, system.runtime.get(Indexes).model)
        )
        needed = needs_index(system.runtime, stored)
    if options.json:
        print_json({"indexed": indexed, "stored": stored, "needed": needed})
    else:
        print(
            f"{indexed} vectors in the index, {stored} in the database"
            + ("" if needed else "; so few vectors are searched without an index")
        )
    return 0 if indexed == stored or not needed else 1


def _secure(options: argparse.Namespace) -> None:
    from langchain_threadmem.storage.row_security import secure

    statements = secure(options.db, options.role, off=options.off, run=not options.sql)
    if options.sql:
        print(*(f"{statement};" for statement in statements), sep="\n")
    elif options.off:
        print(f"row-level security is off, and {options.role!r} has no rights on the tables")
    else:
        print(f"row-level security is on: {options.role!r} sees the rows of one owner in each transaction")
