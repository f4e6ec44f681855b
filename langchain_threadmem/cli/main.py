"""The `threadmem` command: arguments, subcommands and exit codes.

Wrong arguments and unusable files are reported in one line on stderr with exit code 2. Subcommands import
heavy modules when they run, so that `threadmem --help` is fast.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_threadmem import __version__
from langchain_threadmem.errors import InputError, ThreadMemError
from langchain_threadmem.messages.text import one_line, plural, visible

if TYPE_CHECKING:
    from langchain_threadmem.catalogue.verbs import Archived
    from langchain_threadmem.memory_system import MemorySystem


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: The arguments after `threadmem`; by default those of the process.

    Returns:
        The exit code: 0 for success, 1 if `verify` finds problems, an import differs from its source or the
        index of vectors is incomplete, 2 for unusable input, 130 for an interrupt.
    """
    options = _parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: _print_error(str(message))
            code: int = options.run(options)
            return code
    except ThreadMemError as error:
        _print_error(str(error))
        return 2
    except KeyboardInterrupt:
        _print_error("interrupted")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="threadmem", description="Chat memory in which a conversation is a tree."
    )
    parser.add_argument("--version", action="version", version=f"threadmem {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="sort a conversation into threads and show the result")
    demo.add_argument(
        "file", metavar="FILE", nargs="?", type=Path, help="JSON or JSON Lines; default: a sample"
    )
    demo.add_argument(
        "--index", metavar="N", type=int, default=0, help="position of the conversation in FILE, from 0"
    )
    demo.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("demo-output"), help="output; default: demo-output"
    )
    demo.add_argument(
        "--database", metavar="URL", help="database for the conversation; default: memory.db in DIR"
    )
    demo.set_defaults(run=_demo)

    chats = commands.add_parser(
        "import",
        help="import chats of ChatGPT, Claude, LangChain and others, with their branches",
        epilog="example: threadmem import conversations.json --into memory.db",
    )
    chats.add_argument("file", metavar="FILE", type=Path, help="an export: JSON, JSON Lines, ZIP or SQLite")
    chats.add_argument(
        "--into", metavar="DATABASE", default="memory.db", help="a file or a URL; default: memory.db"
    )
    chats.add_argument("--format", metavar="NAME", help="format of FILE; default: that of its contents")
    chats.add_argument("--skip-bad", action="store_true", help="go on after a line or an item that is bad")
    chats.add_argument("--json", action="store_true", help="print the counts as a JSON object")
    chats.set_defaults(run=_import)

    show = commands.add_parser("show", help="list the conversations of a database, or draw a conversation")
    show.add_argument("database", metavar="DATABASE", help="a file or a URL")
    show.add_argument("conversation", metavar="CONVERSATION", nargs="?", help="the conversation to draw")
    show.add_argument(
        "--doubtful", action="store_true", help="list the messages of CONVERSATION in doubtful places"
    )
    show.set_defaults(run=_show)

    listing = commands.add_parser("list", help="list conversations, or the threads of one, by their last use")
    listing.add_argument("database", metavar="DATABASE", help="a file or a URL")
    listing.add_argument(
        "conversation", metavar="CONVERSATION", nargs="?", help="list the threads of this one"
    )
    listing.add_argument("--limit", metavar="N", type=int, default=50, help="how many; default: 50")
    listing.add_argument("--archived", action="store_true", help="list archived conversations too")
    listing.set_defaults(run=_list)

    sort = commands.add_parser("sort", help="sort an imported conversation into threads")
    sort.add_argument("database", metavar="DATABASE", help="a file or a URL")
    sort.add_argument("conversation", metavar="CONVERSATION", help="the conversation to sort")
    either = sort.add_mutually_exclusive_group()
    either.add_argument("--dry-run", action="store_true", help="list the moves without making them")
    either.add_argument("--undo", action="store_true", help="move the sorted messages back")
    sort.set_defaults(run=_sort)

    verify = commands.add_parser("verify", help="check a database and every message in it")
    verify.add_argument("database", metavar="DATABASE", help="a file or a URL")
    verify.set_defaults(run=_verify)

    stats = commands.add_parser("stats", help="count the data of an owner, and measure the database")
    stats.add_argument("database", metavar="DATABASE", help="a file or a URL")
    stats.add_argument("--json", action="store_true", help="print a JSON object, with sizes in bytes")
    stats.set_defaults(run=_stats)

    importing = commands.add_parser(
        "import-checkpoints", help="copy threads from another LangGraph checkpointer"
    )
    importing.add_argument("source", metavar="FROM", help="a SQLite file or a URL; opened read-only")
    importing.add_argument("target", metavar="TO", help="a file or a URL; made if it does not exist")
    importing.add_argument(
        "--thread", metavar="ID", nargs="+", action="extend", default=[], help="threads to copy; default: all"
    )
    importing.add_argument(
        "--allow", metavar="MODULE:CLASS", action="append", default=[], help="a class that the states contain"
    )
    importing.set_defaults(run=_import_checkpoints)

    convert = commands.add_parser(
        "convert", help="copy a memory into another database, or into a folder of JSON and back"
    )
    convert.add_argument("source", metavar="FROM", help="a database or a folder; opened read-only")
    convert.add_argument("target", metavar="TO", help="a database, or a folder: a name without a suffix")
    convert.add_argument("--everybody", action="store_true", help="copy the memories of all owners")
    convert.set_defaults(run=_convert)

    vectors = commands.add_parser(
        "reindex", help="embed missing messages, fill the index of vectors, and check it"
    )
    vectors.add_argument("database", metavar="DATABASE", help="a file or a URL")
    vectors.add_argument("--vectors", metavar="DIR", help="folder of the index; default: beside the file")
    vectors.set_defaults(run=_reindex)

    secure = commands.add_parser(
        "secure",
        help="restrict a role of PostgreSQL to one owner per transaction, by row-level security",
        epilog="example: threadmem secure postgresql://admin@host/name --role app",
    )
    secure.add_argument("database", metavar="URL", help="the database, with the role that owns the tables")
    secure.add_argument("--role", metavar="NAME", required=True, help="the role of applications")
    secure.add_argument("--off", action="store_true", help="remove the policies and the rights of the role")
    secure.add_argument("--sql", action="store_true", help="print the statements and run none of them")
    secure.set_defaults(run=_secure)

    server = commands.add_parser(
        "mcp",
        help="serve the memory to other programs: a server of the Model Context Protocol over stdio",
        epilog="example: threadmem mcp sqlite:///memory.db --owner ada --write",
    )
    server.add_argument("database", metavar="DATABASE", help="a file or a URL")
    server.add_argument(
        "--write",
        action="store_true",
        help="offer the tools remember and forget too, and make a database that does not exist; "
        "default: open the database read-only",
    )
    server.set_defaults(run=_mcp)

    for command in (demo, chats, show, listing, sort, verify, stats, importing, convert, vectors, server):
        command.add_argument(
            "--owner", metavar="NAME", default="user", help="owner of the memory; default: user"
        )
    return parser


def _demo(options: argparse.Namespace) -> int:
    from langchain_threadmem.cli.demo import demo

    demo(options.file, options.index, options.out, options.database, options.owner)
    return 0


def _show(options: argparse.Namespace) -> int:
    from rich.console import Console

    from langchain_threadmem.cli import terminal

    console = Console()
    with _existing(options.database, options.owner, read_only=True) as system:
        names = system.conversations()
        if options.conversation is None and options.doubtful:
            raise InputError(
                "--doubtful lists messages of one conversation; pass its name after the database"
            )
        if options.conversation is None:
            memories = [system.conversation(name) for name in names]
            console.print(
                terminal.list_conversations({memory.conversation_id: memory.history for memory in memories})
            )
            return 0
        _check_conversation(options.conversation, names, options.owner)
        memory = system.conversation(options.conversation)
        if options.doubtful:
            console.print(terminal.list_doubts(memory.doubtful()))
            return 0
        history = memory.history
    console.print(terminal.draw_tree(history, reasons=True))
    console.print(terminal.list_threads(history))
    return 0


def _list(options: argparse.Namespace) -> int:
    from rich.console import Console

    from langchain_threadmem.cli import terminal

    with _existing(options.database, options.owner, read_only=True) as system:
        if options.conversation is not None:
            _check_conversation(options.conversation, system.conversations(), options.owner)
            table = terminal.list_infos(
                system.conversation(options.conversation).list_threads(limit=options.limit)
            )
        else:
            archived: Archived = "both" if options.archived else False
            table = terminal.list_infos(system.list_conversations(limit=options.limit, archived=archived))
    Console().print(table)
    return 0


def _sort(options: argparse.Namespace) -> int:
    from rich.console import Console

    from langchain_threadmem.cli import terminal

    with (
        _existing(options.database, options.owner) as system,
        _progress("sort") as update,
    ):
        _check_conversation(options.conversation, system.conversations(), options.owner)
        memory = system.conversation(options.conversation)
        moves = memory.unsort() if options.undo else memory.sort(dry_run=options.dry_run, progress=update)
        threads = len(memory.threads())
    if moves:
        Console().print(terminal.list_moves(moves))
    verb = "to move" if options.dry_run else "moved"
    print(f"{plural(len(moves), 'message')} {verb}; {plural(threads, 'thread')} now")
    return 0


def _check_conversation(name: str, names: Sequence[str], owner: str) -> None:
    if name not in names:
        existing = ", ".join(map(repr, names[:5])) + (" ..." if len(names) > 5 else "")
        raise InputError(f"there is no conversation {name!r} of {owner!r}; there is {existing or 'none'}")


def _verify(options: argparse.Namespace) -> int:
    with _existing(options.database, options.owner, read_only=True) as system:
        verification = system.verify()
    problems = f"{len(verification.problems) or 'no'} problems"
    print(f"{verification.conversations} conversations, {verification.nodes} nodes: {problems}")
    for problem in verification.problems:
        print(f"  {visible(problem)}")
    return 0 if verification.ok else 1


def _stats(options: argparse.Namespace) -> int:
    from rich.console import Console

    from langchain_threadmem.cli import terminal

    with _existing(options.database, options.owner, read_only=True) as system:
        statistics = system.stats()
    if options.json:
        print(json.dumps(asdict(statistics), indent=2))
    else:
        Console().print(terminal.show_statistics(statistics))
    return 0


@contextmanager
def _progress(description: str, *, in_bytes: bool = False) -> Iterator[Callable[..., None]]:
    """Show a progress bar on stderr, if it is a terminal; yields `update(done, total, description)`."""
    from rich.console import Console
    from rich.progress import DownloadColumn, Progress

    console = Console(stderr=True)
    columns = [*Progress.get_default_columns(), *([DownloadColumn()] if in_bytes else [])]
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(description, total=None)

        def update(done: int, total: int, description: str | None = None) -> None:
            progress.update(task, description=description, completed=done, total=total or None)

        yield update


def _convert(options: argparse.Namespace) -> int:
    from langchain_threadmem.transfer.convert import convert

    with _progress("convert") as update:
        copied = convert(
            options.source,
            options.target,
            owner=None if options.everybody else options.owner,
            progress=lambda table, done, total: update(done, total, table),
        )
    print(
        f"{', '.join(copied.owners)}: {copied.conversations} conversations, {copied.messages} messages, "
        f"{copied.items} items; the copy is the same"
    )
    return 0


def _reindex(options: argparse.Namespace) -> int:
    from langchain_threadmem.index import vectors
    from langchain_threadmem.index.catch_up import needs_index
    from langchain_threadmem.index.indexes import Indexes

    with (
        _existing(options.database, options.owner, vectors=options.vectors) as system,
        _progress("embed") as update,
    ):
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


def _import(options: argparse.Namespace) -> int:
    from langchain_threadmem.importers import registry
    from langchain_threadmem.importers.source import Source
    from langchain_threadmem.memory_system import MemorySystem

    registry.check(options.format)
    Source(options.file).close()  # No database is made for a file that cannot be read.
    with (
        MemorySystem(options.into, owner=options.owner, embeddings=False) as system,
        _progress("import", in_bytes=True) as update,
    ):
        report = system.import_file(options.file, options.format, update, skip_bad=options.skip_bad)
    if options.json:
        print(json.dumps(asdict(report), indent=2))
        return 0
    print(
        f"{report.format}: {report.conversations} conversations, {report.new_conversations} of them new; "
        f"{report.messages} messages, {report.new_messages} of them new; "
        f"{report.skipped or 'no'} bad items skipped"
    )
    for problem in report.problems:
        print(f"  {visible(problem)}")
    return 0


def _import_checkpoints(options: argparse.Namespace) -> int:
    from langchain_threadmem.transfer.import_checkpoints import import_checkpoints

    with _progress("copy and compare") as update:
        imported = import_checkpoints(
            options.source,
            options.target,
            owner=options.owner,
            threads=options.thread,
            classes=[tuple(name.split(":")) for name in options.allow],
            progress=update,
        )
    print(
        f"{imported.threads} threads, {imported.checkpoints} checkpoints: {imported.copied} copied, "
        f"{imported.checkpoints - imported.copied} there before, {imported.writes} pending writes copied, "
        f"{len(imported.differences) or 'no'} differences"
    )
    for difference in imported.differences:
        print(f"  {visible(difference)}")
    return 0 if imported.ok else 1


def _secure(options: argparse.Namespace) -> int:
    from langchain_threadmem.storage.row_security import secure

    statements = secure(options.database, options.role, off=options.off, run=not options.sql)
    if options.sql:
        print(*(f"{statement};" for statement in statements), sep="\n")
    elif options.off:
        print(f"row-level security is off, and {options.role!r} has no rights on the tables")
    else:
        print(f"row-level security is on: {options.role!r} sees the rows of one owner in each transaction")
    return 0


def _mcp(options: argparse.Namespace) -> int:
    from langchain_threadmem.cli import mcp_server
    from langchain_threadmem.memory_system import MemorySystem

    mcp_server.check_installed()
    opened = (
        MemorySystem(options.database, owner=options.owner)
        if options.write
        else _existing(options.database, options.owner, read_only=True)
    )
    with opened as system:
        mcp_server.serve(system, write=options.write)
    return 0


def _existing(
    database: str, owner: str, *, vectors: str | Path | None = None, read_only: bool = False
) -> MemorySystem:
    """Open the memory of a database that exists."""
    from langchain_threadmem.memory_system import MemorySystem
    from langchain_threadmem.removal import tables
    from langchain_threadmem.storage.database import open_database
    from langchain_threadmem.storage.urls import sqlite_file
    from langchain_threadmem.transfer import rows

    file = sqlite_file(database)
    if file is not None and not file.is_file():
        raise InputError(f"there is no database file {str(file)!r}; `threadmem demo` makes one")
    with closing(open_database(database, read_only=True)) as opened:
        if not opened.row_security:  # The role may not see which owners there are.
            opened.read(lambda conn: rows.check_owner(conn, owner) if tables.owners(conn) else None)
    return MemorySystem(database, owner=owner, vectors=vectors, read_only=read_only)


def _print_error(text: str) -> None:
    print(f"threadmem: {one_line(text)}", file=sys.stderr)
