"""The `threadmem` command.

What was typed wrongly, and a file that cannot be used, is one line on stderr and exit code 2. Nothing heavy
is imported before a command needs it, so `threadmem --help` answers at once.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_threadmem import __version__
from langchain_threadmem.errors import InputError, ThreadMemError
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.messages.text import one_line, visible

if TYPE_CHECKING:
    from langchain_threadmem.memory_system import MemorySystem


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: What was typed after `threadmem`; by default the arguments of the process.

    Returns:
        The exit code: 0 if all went well, 1 if `verify` found problems or an import differs from its source,
        2 if the input cannot be used, 130 if it was interrupted.
    """
    options = _parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: _say(str(message))
            code: int = options.run(options)
            return code
    except ThreadMemError as error:
        _say(str(error))
        return 2
    except KeyboardInterrupt:
        _say("interrupted")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="threadmem", description="Chat memory in which a conversation is a tree."
    )
    parser.add_argument("--version", action="version", version=f"threadmem {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="sort a conversation into threads and show what comes out")
    demo.add_argument(
        "file", metavar="FILE", nargs="?", type=Path, help="JSON or JSON Lines; default: a sample"
    )
    demo.add_argument("--index", metavar="N", type=int, default=0, help="which conversation of FILE, from 0")
    demo.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("demo-output"), help="default: demo-output"
    )
    demo.add_argument("--database", metavar="URL", help="where to store it; default: memory.db in DIR")
    demo.set_defaults(run=_demo)

    show = commands.add_parser("show", help="list the conversations of a database, or draw one of them")
    show.add_argument("database", metavar="DATABASE", help="a file or a URL")
    show.add_argument("conversation", metavar="CONVERSATION", nargs="?", help="the one to draw")
    show.set_defaults(run=_show)

    verify = commands.add_parser("verify", help="check a database and every message in it")
    verify.add_argument("database", metavar="DATABASE", help="a file or a URL")
    verify.set_defaults(run=_verify)

    moving = commands.add_parser(
        "import-checkpoints", help="copy threads from another LangGraph checkpointer"
    )
    moving.add_argument("source", metavar="FROM", help="a SQLite file or a URL; it is only read")
    moving.add_argument("target", metavar="TO", help="a file or a URL; made if it is not there")
    moving.add_argument(
        "--thread", metavar="ID", nargs="+", action="extend", default=[], help="which threads; default: all"
    )
    moving.add_argument(
        "--allow", metavar="MODULE:CLASS", action="append", default=[], help="a class of yours in the states"
    )
    moving.set_defaults(run=_import)

    convert = commands.add_parser(
        "convert", help="copy a memory into another database, or into a folder of JSON and back"
    )
    convert.add_argument("source", metavar="FROM", help="a database or a folder; it is only read")
    convert.add_argument("target", metavar="TO", help="a database, or a folder: a name without a suffix")
    convert.add_argument("--everybody", action="store_true", help="the memory of all owners")
    convert.set_defaults(run=_convert)

    vectors = commands.add_parser("reindex", help="fill the index of vectors from the database, and compare")
    vectors.add_argument("database", metavar="DATABASE", help="a file or a URL")
    vectors.add_argument("--vectors", metavar="DIR", help="where the index is; default: beside the file")
    vectors.set_defaults(run=_reindex)

    for command in (demo, show, verify, moving, convert, vectors):
        command.add_argument("--owner", metavar="NAME", default="user", help="whose memory; default: user")
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
        if options.conversation is None:
            memories = [system.conversation(name) for name in names]
            console.print(
                terminal.list_conversations({memory.conversation_id: memory.history for memory in memories})
            )
            return 0
        if options.conversation not in names:
            known = ", ".join(map(repr, names[:5])) + (" ..." if len(names) > 5 else "")
            raise InputError(
                f"there is no conversation {options.conversation!r} of {options.owner!r}; "
                f"there is {known or 'none'}"
            )
        history = system.conversation(options.conversation).history
    console.print(terminal.draw_tree(history, reasons=True))
    console.print(terminal.list_threads(history))
    return 0


def _verify(options: argparse.Namespace) -> int:
    with _existing(options.database, options.owner, read_only=True) as system:
        found = system.verify()
    print(f"{found.conversations} conversations, {found.nodes} nodes: {len(found.problems) or 'no'} problems")
    for problem in found.problems:
        print(f"  {visible(problem)}")
    return 0 if found.ok else 1


def _convert(options: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.progress import Progress

    from langchain_threadmem.transfer.convert import convert

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("convert", total=None)
        done = convert(
            options.source,
            options.target,
            owner=None if options.everybody else options.owner,
            progress=lambda what, done, total: progress.update(
                task, description=what, completed=done, total=total or None
            ),
        )
    print(
        f"{', '.join(done.owners)}: {done.conversations} conversations, {done.messages} messages, "
        f"{done.items} items; the copy is the same"
    )
    return 0


def _reindex(options: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.progress import Progress

    from langchain_threadmem.index import vectors as embeddings
    from langchain_threadmem.index.catch_up import needs_index

    console = Console(stderr=True)
    with (
        _existing(options.database, options.owner, vectors=options.vectors) as system,
        Progress(console=console, transient=True, disable=not console.is_terminal) as progress,
    ):
        task = progress.add_task("embed", total=None)
        system.flush(lambda done, total: progress.update(task, completed=done, total=total))
        held = system.reindex()
        expected = system.runtime.database.read(
            lambda conn: embeddings.count(conn, system.owner, system.runtime.get(Indexes).model)
        )
        needed = needs_index(system.runtime, expected)
    print(
        f"{held} vectors in the index, {expected} in the database"
        + ("" if needed else ": so few are searched without an index, and there is nothing to fill")
    )
    return 0 if held == expected or not needed else 1


def _import(options: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.progress import Progress

    from langchain_threadmem.transfer.import_checkpoints import import_checkpoints

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("copy and compare", total=None)
        done = import_checkpoints(
            options.source,
            options.target,
            owner=options.owner,
            threads=options.thread,
            classes=[tuple(name.split(":")) for name in options.allow],
            progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    print(
        f"{done.threads} threads, {done.checkpoints} checkpoints: {done.copied} copied, "
        f"{done.checkpoints - done.copied} there before, {done.writes} pending writes copied, "
        f"{len(done.differences) or 'no'} differences"
    )
    for difference in done.differences:
        print(f"  {visible(difference)}")
    return 0 if done.ok else 1


def _existing(database: str, owner: str, **options: Any) -> MemorySystem:
    """Open a memory that is there: unlike `MemorySystem`, this makes none."""
    from langchain_threadmem.memory_system import MemorySystem
    from langchain_threadmem.storage.database import open_database
    from langchain_threadmem.storage.urls import sqlite_file
    from langchain_threadmem.transfer import rows as memory_rows

    file = sqlite_file(database)
    if file is not None and not file.is_file():
        raise InputError(f"there is no database file {str(file)!r}; `threadmem demo` makes one")
    with closing(open_database(database, read_only=True)) as found:
        found.read(lambda conn: memory_rows.check_owner(conn, owner) if memory_rows.owners(conn) else None)
    return MemorySystem(database, owner=owner, **options)


def _say(text: str) -> None:
    print(f"threadmem: {one_line(text)}", file=sys.stderr)
