"""The commands `list`, `show` and `stats`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from langchain_threadmem.cli.arguments import Commands, add_command, conversation_of, open_memory, print_json
from langchain_threadmem.errors import InputError

if TYPE_CHECKING:
    from langchain_threadmem.catalogue.verbs import Archived


def register(commands: Commands) -> None:
    """Add the commands."""
    listing = add_command(
        commands,
        "list",
        _list,
        "list conversations, or the threads of one, by their last use",
        examples=["list", "list --db memory.db --limit 10", "list monday --db memory.db"],
        database="argument",
    )
    listing.add_argument(
        "conversation", metavar="CONVERSATION", nargs="?", help="list the threads of this one"
    )
    listing.add_argument("--limit", metavar="N", type=int, default=50, help="how many; default: 50")
    listing.add_argument("--archived", action="store_true", help="list archived conversations too")

    show = add_command(
        commands,
        "show",
        _show,
        "list the conversations of a database, or draw a conversation",
        examples=["show memory.db", "show monday --db memory.db", "show monday --db memory.db --doubtful"],
        database="argument",
    )
    show.add_argument("conversation", metavar="CONVERSATION", nargs="?", help="the conversation to draw")
    show.add_argument(
        "--doubtful", action="store_true", help="list the messages of CONVERSATION in doubtful places"
    )

    add_command(
        commands,
        "stats",
        _stats,
        "count the data of an owner, and measure the database",
        examples=["stats", "stats --db memory.db --json"],
        database="argument",
        json="the counts, and sizes in bytes",
    )


def _list(options: argparse.Namespace) -> int:
    from rich.console import Console

    from langchain_threadmem.cli import terminal

    with open_memory(options, read_only=True) as system:
        if options.conversation is not None:
            memory = conversation_of(system, options.conversation)
            table = terminal.list_infos(memory.list_threads(limit=options.limit))
        else:
            archived: Archived = "both" if options.archived else False
            table = terminal.list_infos(system.list_conversations(limit=options.limit, archived=archived))
    Console().print(table)
    return 0


def _show(options: argparse.Namespace) -> int:
    from rich.console import Console

    from langchain_threadmem.cli import terminal

    console = Console()
    with open_memory(options, read_only=True) as system:
        if options.conversation is None and options.doubtful:
            raise InputError(
                "--doubtful lists messages of one conversation; pass its name after the database"
            )
        if options.conversation is None:
            memories = [system.conversation(name) for name in system.conversations()]
            console.print(
                terminal.list_conversations({memory.conversation_id: memory.history for memory in memories})
            )
            return 0
        memory = conversation_of(system, options.conversation)
        if options.doubtful:
            console.print(terminal.list_doubts(memory.doubtful()))
            return 0
        history = memory.history
    console.print(terminal.draw_tree(history, reasons=True))
    console.print(terminal.list_threads(history))
    return 0


def _stats(options: argparse.Namespace) -> int:
    from rich.console import Console

    from langchain_threadmem.cli import terminal

    with open_memory(options, read_only=True) as system:
        statistics = system.stats()
    if options.json:
        print_json(statistics)
    else:
        Console().print(terminal.show_statistics(statistics))
    return 0
