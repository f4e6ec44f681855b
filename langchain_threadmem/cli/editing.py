"""The commands `sort`, `place` and `summarize`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from langchain_threadmem.cli.arguments import (
    Commands,
    add_command,
    conversation_of,
    open_memory,
    print_error,
    print_json,
    progress_bar,
)
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.text import listed, one_line, plural, visible

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from langchain_threadmem.chat_memory import ChatMemory
    from langchain_threadmem.threads.moves.sort import Move
    from langchain_threadmem.units.unit import MemoryUnit


def register(commands: Commands) -> None:
    sort = add_command(
        commands,
        "sort",
        _sort,
        "sort an imported conversation into threads",
        examples=["sort monday --db memory.db --dry-run", "sort monday --db memory.db"],
        database="argument",
        json="the moves and the number of threads",
    )
    sort.add_argument("conversation", metavar="CONVERSATION", help="the conversation to sort")
    mode = sort.add_mutually_exclusive_group()
    mode.add_argument("--dry-run", action="store_true", help="list the moves without making them")
    mode.add_argument("--undo", action="store_true", help="move the sorted messages back")

    place = add_command(
        commands,
        "place",
        _place,
        "move a message, and all messages below it, to another place",
        examples=[
            "place monday 7 --parent 4 --db memory.db",
            "place monday 7 --thread 12",
            "place monday 7 --new",
        ],
        json="the new number and the parent of the message, and the number of threads",
    )
    place.add_argument("conversation", metavar="CONVERSATION", help="the conversation of the message")
    place.add_argument(
        "node", metavar="MESSAGE", type=int, help="number of the message, as `threadmem show` prints it"
    )
    target = place.add_mutually_exclusive_group(required=True)
    target.add_argument("--parent", metavar="N", type=int, help="the message continues message N")
    target.add_argument(
        "--thread",
        metavar="N",
        type=int,
        help="the message continues thread N, as `threadmem list CONVERSATION` prints it",
    )
    target.add_argument("--new", action="store_true", help="the message begins a new thread")

    summarize = add_command(
        commands,
        "summarize",
        _summarize,
        "write the summary of a conversation, of a thread, or of the whole memory",
        examples=[
            "summarize monday --db memory.db",
            "summarize monday --thread 12",
            "summarize --model openai:gpt-4o-mini",
        ],
        json="the summary",
    )
    summarize.add_argument(
        "conversation",
        metavar="CONVERSATION",
        nargs="?",
        help="the conversation; default: all conversations and the long-term memory",
    )
    summarize.add_argument(
        "--thread", metavar="N", type=int, help="summarize one thread of CONVERSATION, by its number"
    )
    summarize.add_argument(
        "--model",
        metavar="PROVIDER:MODEL",
        help="a chat model that writes the summaries; default: sentences of the messages, without a model",
    )


def _sort(options: argparse.Namespace) -> None:
    with open_memory(options) as system, progress_bar("sort") as update:
        memory = conversation_of(system, options.conversation)
        moves = memory.unsort() if options.undo else memory.sort(dry_run=options.dry_run, progress=update)
        threads = len(memory.threads())
    if options.json:
        print_json({"moves": list(map(_move, moves)), "moved": not options.dry_run, "threads": threads})
        return
    if moves:
        from langchain_threadmem.cli import rich_output

        rich_output.write(rich_output.list_moves(moves))
    verb = "to move" if options.dry_run else "moved"
    print(f"{plural(len(moves), 'message')} {verb}; {plural(threads, 'thread')} now")


def _move(move: Move) -> dict[str, Any]:
    from langchain_threadmem.messages.codec import text_of

    return {
        "id": move.node_id,
        "text": text_of(move.message),
        "old_parent": move.old_parent_id,
        "parent": move.parent_id,
        "probability": move.probability,
        "reason": move.reason,
    }


def _place(options: argparse.Namespace) -> None:
    with open_memory(options, embeddings=False) as system:
        memory = conversation_of(system, options.conversation)
        parent = options.parent
        if options.thread is not None:
            parent = _end_of_thread(memory, options.thread)
        node = memory.place(options.node, parent)
        threads = len(memory.threads())
    if options.json:
        print_json(
            {"conversation": options.conversation, "message": options.node, "id": node.id}
            | {"parent": node.parent_id, "threads": threads}
        )
        return
    position = "begins a thread" if node.parent_id is None else f"continues message {node.parent_id}"
    if node.id == options.node:
        print(f"message {node.id} stays: it {position}")
    else:
        print(
            f"message {options.node} is now message {node.id}: it {position}; {plural(threads, 'thread')} now"
        )


def _end_of_thread(memory: ChatMemory, thread: int) -> int:
    """The last message of a thread, whose number is the number of the thread."""
    ends = [path[-1].id for path in memory.threads()]
    if thread not in ends:
        raise InputError(
            f"there is no thread {thread} in {memory.conversation_id!r}; there is {listed(ends, 10)}"
        )
    return thread


def _summarize(options: argparse.Namespace) -> int:
    if options.thread is not None and options.conversation is None:
        raise InputError(f"--thread {options.thread} requires a conversation; pass its name")
    model = None if options.model is None else _chat_model(options.model)
    with open_memory(options, embeddings=False, model=model) as system, progress_bar("summarize") as update:
        if options.conversation is None:
            summary = system.summarize_long_term_memory(progress=update)
        else:
            memory = conversation_of(system, options.conversation)
            if options.thread is None:
                summary = system.summarize_session(options.conversation, progress=update)
            else:
                end = _end_of_thread(memory, options.thread)
                summary = system.summarize_thread(end, session=options.conversation, progress=update)
    if summary is None:
        print_error("no summary was written: there is nothing to summarize, or the model failed")
        return 1
    if options.json:
        print_json(_unit(summary))
    else:
        text = visible(summary.content)
        print(f"{one_line(summary.title)}\n{text}" if summary.title else text)
    return 0


def _unit(summary: MemoryUnit) -> dict[str, Any]:
    return {
        "id": summary.id,
        "title": summary.title,
        "text": summary.content,
        "rank": summary.rank,
        "conversation": summary.group_id,
        "started": summary.creation_time,
        "ended": summary.end_time,
        "covers": list(summary.children_ids),
    }


def _chat_model(name: str) -> BaseChatModel:
    """The chat model of a name such as `openai:gpt-4o-mini`."""
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise InputError(
            f"--model {name!r} requires the package langchain; install it with "
            'pip install "langchain-threadmem[agents]"'
        ) from error
    try:
        model: BaseChatModel = init_chat_model(name)
    except Exception as error:  # Each provider has its own errors: a missing package, a missing key.
        raise InputError(
            f"--model {name!r} cannot be used: {error}; write PROVIDER:MODEL, such as openai:gpt-4o-mini, "
            "and set the key of the provider"
        ) from error
    return model
