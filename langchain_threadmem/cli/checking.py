"""The commands `verify`, `reindex` and `secure`."""

from __future__ import annotations

import argparse

from langchain_threadmem.cli.arguments import Commands, add_command, open_memory, progress_bar
from langchain_threadmem.messages.text import visible


def register(commands: Commands) -> None:
    """Add the commands."""
    add_command(
        commands,
        "verify",
        _verify,
        "check a database and every message in it",
        examples=["verify", "verify --db memory.db --owner ada"],
        database="argument",
    )

    vectors = add_command(
        commands,
        "reindex",
        _reindex,
        "embed missing messages, fill the index of vectors, and check it",
        examples=["reindex --db memory.db", "reindex --db memory.db --vectors http://host:8000"],
        database="argument",
    )
    vectors.add_argument("--vectors", metavar="DIR", help="folder of the index; default: beside the file")

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
    secure.add_argument("--sql", action="store_true", help="print the statements and run none of them")


def _verify(options: argparse.Namespace) -> int:
    with open_memory(options, read_only=True) as system:
        verification = system.verify()
    problems = f"{len(verification.problems) or 'no'} problems"
    print(f"{verification.conversations} conversations, {verification.nodes} nodes: {problems}")
    for problem in verification.problems:
        print(f"  {visible(problem)}")
    return 0 if verification.ok else 1


def _reindex(options: argparse.Namespace) -> int:
    from langchain_threadmem.index import vectors
    from langchain_threadmem.index.catch_up import needs_index
    from langchain_threadmem.index.indexes import Indexes

    with open_memory(options, vectors=options.vectors) as system, progress_bar("embed") as update:
        system.flush(update)
        indexed = system.reindex()
        stored = system.runtime.database.read(
            lambda conn: vectors.count(conn, system.owner, system.runtime.get(Indexes).model)
        )
        needed = needs_index(system.runtime, stored)
    print(
        f"{indexed} vectors in the index, {stored} in the database"
        + ("" if needed else ": so few are searched without an index, and there is nothing to fill")
    )
    return 0 if indexed == stored or not needed else 1


def _secure(options: argparse.Namespace) -> int:
    from langchain_threadmem.storage.row_security import secure

    statements = secure(options.db, options.role, off=options.off, run=not options.sql)
    if options.sql:
        print(*(f"{statement};" for statement in statements), sep="\n")
    elif options.off:
        print(f"row-level security is off, and {options.role!r} has no rights on the tables")
    else:
        print(f"row-level security is on: {options.role!r} sees the rows of one owner in each transaction")
    return 0
