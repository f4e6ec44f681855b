"""The command `sort`."""

from __future__ import annotations

import argparse

from langchain_threadmem.cli.arguments import (
    Commands,
    add_command,
    conversation_of,
    open_memory,
    progress_bar,
)
from langchain_threadmem.messages.text import plural


def register(commands: Commands) -> None:
    """Add the commands."""
    sort = add_command(
        commands,
        "sort",
        _sort,
        "sort an imported conversation into threads",
        examples=["sort monday --db memory.db --dry-run", "sort monday --db memory.db"],
        database="argument",
    )
    sort.add_argument("conversation", metavar="CONVERSATION", help="the conversation to sort")
    either = sort.add_mutually_exclusive_group()
    either.add_argument("--dry-run", action="store_true", help="list the moves without making them")
    either.add_argument("--undo", action="store_true", help="move the sorted messages back")


def _sort(options: argparse.Namespace) -> int:
    from rich.console import Console

    from langchain_threadmem.cli import terminal

    with open_memory(options) as system, progress_bar("sort") as update:
        memory = conversation_of(system, options.conversation)
        moves = memory.unsort() if options.undo else memory.sort(dry_run=options.dry_run, progress=update)
        threads = len(memory.threads())
    if moves:
        Console().print(terminal.list_moves(moves))
    verb = "to move" if options.dry_run else "moved"
    print(f"{plural(len(moves), 'message')} {verb}; {plural(threads, 'thread')} now")
    return 0
