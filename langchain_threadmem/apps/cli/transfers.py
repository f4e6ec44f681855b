"""The commands `import`, `import-checkpoints`, `convert` and `backup`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click

from langchain_threadmem.apps.cli.arguments import OWNER, PATH, Access, command, print_json, progress_bar
from langchain_threadmem.messages.text import listed, plural, visible


@command(
    "import",
    examples=[
        "import conversations.json",
        "import export.zip --db memory.db --owner ada",
        "import conversations.json --sort",
    ],
    also="--into",
    json="the counts and the problems",
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=PATH)
@click.option("--format", metavar="NAME", help="The format of FILE.  [default: detected from its contents]")
@click.option("--skip-bad", is_flag=True, help="Skip lines and items that cannot be imported.")
@click.option("--sort", is_flag=True, help="Sort conversations without branches into threads, once each.")
def import_(
    access: Access, files: tuple[Path, ...], format: str | None, skip_bad: bool, sort: bool, as_json: bool
) -> int:
    """Import chats of ChatGPT, Claude, LangChain and others.

    Each FILE is an export: JSON, JSON Lines, text, SQLite, a ZIP archive or a folder. Branches are imported
    too.
    """
    from langchain_threadmem.formats.importers.registry import ImportPlan
    from langchain_threadmem.memory_system import MemorySystem

    ImportPlan(list(files), format).close()  # A file that cannot be imported creates no database.
    with (
        # An import does not embed texts; the sort compares them by meaning.
        MemorySystem(access.db, owner=access.owner or OWNER, embeddings=None if sort else False) as system,
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
            list(files), format, update, skip_bad=skip_bad, sort=sort, on_sort=on_sort
        )
    is_empty = bool(report.skipped and not report.messages)
    if as_json:
        print_json(report)
        return int(is_empty)
    updated = f", {report.updated_messages} changed" if report.updated_messages else ""
    print(
        f"{report.format}: {report.conversations} conversations, {report.new_conversations} of them new; "
        f"{report.messages} messages, {report.new_messages} of them new{updated}; "
        f"{report.skipped or 'no'} bad items skipped"
    )
    if sort:
        returns = report.moved - report.opened
        print(
            f"{plural(report.sorted, 'conversation')} sorted: {plural(report.moved, 'message')} moved, "
            f"{report.opened:,} to a new thread, {returns:,} to an earlier one"
        )
    for problem in report.problems:
        print(f"  {visible(problem)}")
    if report.ignored:
        print(f"{plural(len(report.ignored), 'file')} without chats: {visible(listed(report.ignored))}")
    return int(is_empty)


@command(
    "import-checkpoints",
    examples=[
        "import-checkpoints checkpoints.sqlite memory.db",
        "import-checkpoints postgresql://user@host/name memory.db --thread 1 2",
    ],
    database=None,
    json="the counts and the differences",
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.argument("more", metavar="", nargs=-1)
@click.option("--thread", metavar="ID...", multiple=True, help="Threads to copy.  [default: all]")
@click.option("--allow", metavar="MODULE:CLASS", multiple=True, help="A class that the states contain.")
def import_checkpoints(
    source: str,
    target: str,
    more: tuple[str, ...],
    thread: tuple[str, ...],
    allow: tuple[str, ...],
    owner: str,
    as_json: bool,
) -> int:
    """Copy threads from another LangGraph checkpointer.

    FROM is an SQLite file or a URL, and is opened read-only. TO is a file or a URL, and is created if it does
    not exist.
    """
    if more and not thread:
        raise click.UsageError(f"unexpected arguments {' '.join(more)}", click.get_current_context())
    from langchain_threadmem.apps.transfer import import_checkpoints as importing

    with progress_bar("copy and compare") as update:
        imported = importing.import_checkpoints(
            source,
            target,
            owner=owner,
            threads=[*thread, *more],
            classes=[tuple(name.split(":")) for name in allow],
            progress=update,
        )
    if as_json:
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


@command(
    "convert",
    examples=["convert memory.db postgresql://user@host/name", "convert memory.db folder --everybody"],
    database=None,
    json="the owners and the number of rows of each table",
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--everybody", is_flag=True, help="Copy the memories of all owners.")
def convert(source: str, target: str, everybody: bool, owner: str, as_json: bool) -> None:
    """Copy a memory into another database, or a folder.

    FROM and TO are databases, or folders of JSON: names without a suffix. FROM is opened read-only.
    """
    from langchain_threadmem.apps.transfer import convert as converting

    with progress_bar("convert") as update:
        copied = converting.convert(
            source,
            target,
            owner=None if everybody else owner,
            progress=lambda table, done, total: update(done, total, table),
        )
    if as_json:
        print_json(copied)
        return
    print(
        f"{', '.join(copied.owners)}: {copied.conversations} conversations, {copied.messages} messages, "
        f"{copied.items} items; the copy is the same"
    )


@command(
    "backup",
    examples=["backup monday.db --db memory.db", "backup monday --db postgresql://user@host/name"],
    owner=False,
    json="the copy, its size in bytes, and its problems",
)
@click.argument("target")
def backup(access: Access, target: str, as_json: bool) -> int:
    """Copy a database with the memories of all owners.

    The database may be in use. TARGET is a new file, or a folder of JSON: a name without a suffix.
    """
    from langchain_threadmem.apps.transfer import backup as backing_up
    from langchain_threadmem.maintenance.statistics.verbs import bytes_of
    from langchain_threadmem.storage.urls import sqlite_file, without_password

    with progress_bar("backup") as update:
        problems = backing_up.backup(access.db, target, lambda table, done, total: update(done, total, table))
    file, target = sqlite_file(target), without_password(target)
    size = None if file is None else bytes_of(file)
    if as_json:
        print_json({"ok": not problems, "target": target, "bytes": size, "problems": problems})
        return 1 if problems else 0
    print(f"copied to {target!r}" + ("" if size is None else f": {size:,} bytes"))
    for problem in problems:
        print(f"  {visible(problem)}")
    return 1 if problems else 0
