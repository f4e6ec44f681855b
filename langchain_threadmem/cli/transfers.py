"""The commands `import`, `import-checkpoints`, `convert` and `backup`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from langchain_threadmem.cli.arguments import Commands, add_command, print_json, progress_bar
from langchain_threadmem.messages.text import listed, plural, visible


def register(commands: Commands) -> None:
    chats = add_command(
        commands,
        "import",
        _import,
        "import chats of ChatGPT, Claude, LangChain and others, with their branches",
        examples=[
            "import conversations.json",
            "import export.zip --db memory.db --owner ada",
            "import conversations.json --sort",
        ],
        json="the counts and the problems",
    )
    chats.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        type=Path,
        help="an export: JSON, JSON Lines, text, SQLite, a ZIP archive or a folder",
    )
    chats.add_argument("--into", dest="db", metavar="DATABASE", help="the same as --db DATABASE")
    chats.add_argument("--format", metavar="NAME", help="format of FILE; default: detected from its contents")
    chats.add_argument("--skip-bad", action="store_true", help="skip lines and items that cannot be imported")
    chats.add_argument(
        "--sort", action="store_true", help="sort conversations without branches into threads, once each"
    )

    importing = add_command(
        commands,
        "import-checkpoints",
        _import_checkpoints,
        "copy threads from another LangGraph checkpointer",
        examples=[
            "import-checkpoints checkpoints.sqlite memory.db",
            "import-checkpoints postgresql://user@host/name memory.db --thread 1 2",
        ],
        database=None,
        json="the counts and the differences",
    )
    importing.add_argument("source", metavar="FROM", help="an SQLite file or a URL; opened read-only")
    importing.add_argument("target", metavar="TO", help="a file or a URL; created if it does not exist")
    importing.add_argument(
        "--thread", metavar="ID", nargs="+", action="extend", default=[], help="threads to copy; default: all"
    )
    importing.add_argument(
        "--allow", metavar="MODULE:CLASS", action="append", default=[], help="a class that the states contain"
    )

    convert = add_command(
        commands,
        "convert",
        _convert,
        "copy a memory into another database, or into a folder of JSON and back",
        examples=["convert memory.db postgresql://user@host/name", "convert memory.db folder --everybody"],
        database=None,
        json="the owners and the number of rows of each table",
    )
    convert.add_argument("source", metavar="FROM", help="a database or a folder; opened read-only")
    convert.add_argument("target", metavar="TO", help="a database, or a folder: a name without a suffix")
    convert.add_argument("--everybody", action="store_true", help="copy the memories of all owners")

    backup = add_command(
        commands,
        "backup",
        _backup,
        "copy a database with the memories of all owners, while it is in use",
        examples=["backup monday.db --db memory.db", "backup monday --db postgresql://user@host/name"],
        owner=False,
        json="the copy, its size in bytes, and its problems",
    )
    backup.add_argument(
        "target", metavar="TARGET", help="a new file, or a folder of JSON: a name without a suffix"
    )


def _import(options: argparse.Namespace) -> None:
    from langchain_threadmem.importers.registry import Plan
    from langchain_threadmem.memory_system import MemorySystem

    Plan(options.files, options.format).close()  # A file that cannot be imported creates no database.
    with (
        # An import does not embed texts; the sort compares them by meaning.
        MemorySystem(options.db, owner=options.owner, embeddings=None if options.sort else False) as system,
        ExitStack() as bars,
    ):
        update = bars.enter_context(progress_bar("import", in_bytes=True))
        sorting: list[Callable[..., None]] = []

        def on_sort(done: int, total: int) -> None:
            if not sorting:  # One bar at a time.
                bars.close()
                sorting.append(bars.enter_context(progress_bar("sort")))
            sorting[0](done, total)

        report = system.import_file(
            options.files,
            options.format,
            update,
            skip_bad=options.skip_bad,
            sort=options.sort,
            on_sort=on_sort,
        )
    if options.json:
        print_json(report)
        return
    print(
        f"{report.format}: {report.conversations} conversations, {report.new_conversations} of them new; "
        f"{report.messages} messages, {report.new_messages} of them new; "
        f"{report.skipped or 'no'} bad items skipped"
    )
    if options.sort:
        returns = report.moved - report.opened
        print(
            f"{plural(report.sorted, 'conversation')} sorted: {plural(report.moved, 'message')} moved, "
            f"{report.opened:,} to a new thread, {returns:,} to an earlier one"
        )
    for problem in report.problems:
        print(f"  {visible(problem)}")
    if report.ignored:
        print(f"{plural(len(report.ignored), 'file')} without chats: {visible(listed(report.ignored))}")


def _import_checkpoints(options: argparse.Namespace) -> int:
    from langchain_threadmem.transfer.import_checkpoints import import_checkpoints

    with progress_bar("copy and compare") as update:
        imported = import_checkpoints(
            options.source,
            options.target,
            owner=options.owner,
            threads=options.thread,
            classes=[tuple(name.split(":")) for name in options.allow],
            progress=update,
        )
    if options.json:
        print_json(imported, ok=imported.ok)
        return 0 if imported.ok else 1
    print(
        f"{imported.threads} threads, {imported.checkpoints} checkpoints: {imported.copied} copied, "
        f"{imported.checkpoints - imported.copied} already copied, {imported.writes} pending writes copied, "
        f"{len(imported.differences) or 'no'} differences"
    )
    for difference in imported.differences:
        print(f"  {visible(difference)}")
    return 0 if imported.ok else 1


def _convert(options: argparse.Namespace) -> None:
    from langchain_threadmem.transfer.convert import convert

    with progress_bar("convert") as update:
        copied = convert(
            options.source,
            options.target,
            owner=None if options.everybody else options.owner,
            progress=lambda table, done, total: update(done, total, table),
        )
    if options.json:
        print_json(copied)
        return
    print(
        f"{', '.join(copied.owners)}: {copied.conversations} conversations, {copied.messages} messages, "
        f"{copied.items} items; the copy is the same"
    )


def _backup(options: argparse.Namespace) -> int:
    from langchain_threadmem.statistics.verbs import bytes_of
    from langchain_threadmem.storage.urls import sqlite_file, without_password
    from langchain_threadmem.transfer.backup import backup

    with progress_bar("backup") as update:
        problems = backup(options.db, options.target, lambda table, done, total: update(done, total, table))
    target, file = without_password(options.target), sqlite_file(options.target)
    size = None if file is None else bytes_of(file)
    if options.json:
        print_json({"ok": not problems, "target": target, "bytes": size, "problems": problems})
        return 1 if problems else 0
    print(f"copied to {target!r}" + ("" if size is None else f": {size:,} bytes"))
    for problem in problems:
        print(f"  {visible(problem)}")
    return 1 if problems else 0
