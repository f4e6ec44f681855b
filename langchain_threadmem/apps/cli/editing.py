"""The commands `sort`, `place` and `summarize`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from langchain_threadmem.apps.cli.arguments import (
    Access,
    check_one,
    command,
    conversation_of,
    print_error,
    print_json,
    progress_bar,
)
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.text import listed, one_line, plural, visible

if TYPE_CHECKING:
    from langchain_threadmem.chat_memory import ChatMemory
    from langchain_threadmem.index.units.unit import MemoryUnit
    from langchain_threadmem.selection.moves.sort import Move


@command(
    "sort",
    examples=["sort monday --db memory.db --dry-run", "sort monday --db memory.db"],
    database="argument",
    conversation="required",
    json="the moves and the number of threads",
)
@click.option("--dry-run", is_flag=True, help="List the moves without making them.")
@click.option("--undo", is_flag=True, help="Move the sorted messages back.")
def sort(access: Access, conversation: str, dry_run: bool, undo: bool, as_json: bool) -> None:
    """Sort an imported conversation into threads."""
    check_one(dry_run=dry_run, undo=undo)
    with access.open() as system, progress_bar("sort") as update:
        memory = conversation_of(system, conversation)
        moves = memory.unsort() if undo else memory.sort(dry_run=dry_run, progress=update)
        threads = len(memory.threads())
    if as_json:
        print_json({"moves": list(map(_move, moves)), "moved": not dry_run, "threads": threads})
        return
    if moves:
        from langchain_threadmem.apps.cli import rich_output

        rich_output.write(rich_output.list_moves(moves))
    verb = "to move" if dry_run else "moved"
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


@command(
    "place",
    examples=[
        "place monday 7 --parent 4 --db memory.db",
        "place monday 7 --thread 12",
        "place monday 7 --new",
    ],
    json="the new number and the parent of the message, and the number of threads",
)
@click.argument("conversation")
@click.argument("message", type=int)
@click.option("--parent", metavar="N", type=int, help="The message continues message N.")
@click.option(
    "--thread",
    metavar="N",
    type=int,
    help="The message continues thread N, as `threadmem list CONVERSATION` prints it.",
)
@click.option("--new", is_flag=True, help="The message begins a new thread.")
def place(
    access: Access,
    conversation: str,
    message: int,
    parent: int | None,
    thread: int | None,
    new: bool,
    as_json: bool,
) -> None:
    """Move a message, and those below it, to another place.

    MESSAGE is the number of the message, as `threadmem show` prints it.
    """
    check_one(required=True, parent=parent is not None, thread=thread is not None, new=new)
    with access.open(embeddings=False) as system:
        memory = conversation_of(system, conversation)
        if thread is not None:
            parent = _end_of_thread(memory, thread)
        node = memory.place(message, parent)
        threads = len(memory.threads())
    if as_json:
        print_json(
            {"conversation": memory.conversation_id, "message": message, "id": node.id}
            | {"parent": node.parent_id, "threads": threads}
        )
        return
    position = "begins a thread" if node.parent_id is None else f"continues message {node.parent_id}"
    if node.id == message:
        print(f"message {node.id} stays: it {position}")
    else:
        print(f"message {message} is now message {node.id}: it {position}; {plural(threads, 'thread')} now")


def _end_of_thread(memory: ChatMemory, thread: int) -> int:
    """The last message of a thread, whose number is the number of the thread."""
    ends = [path[-1].id for path in memory.threads()]
    if thread not in ends:
        raise InputError(
            f"there is no thread {thread} in {memory.conversation_id!r}; there is {listed(ends, 10)}"
        )
    return thread


@command(
    "summarize",
    examples=[
        "summarize monday --db memory.db",
        "summarize monday --thread 12",
        "summarize --model openai:gpt-4o-mini",
    ],
    json="the summary",
)
@click.argument("conversation", required=False)
@click.option("--thread", metavar="N", type=int, help="Summarize one thread of CONVERSATION, by its number.")
@click.option(
    "--model",
    "model_name",
    metavar="PROVIDER:MODEL",
    help="A chat model that writes the summaries.  [default: sentences of the messages, without a model]",
)
def summarize(
    access: Access, conversation: str | None, thread: int | None, model_name: str | None, as_json: bool
) -> int:
    """Write the summary of a conversation or of all.

    Without CONVERSATION all conversations are summarized, and then the long-term memory.
    """
    if thread is not None and conversation is None:
        raise InputError(f"--thread {thread} requires a conversation; pass its name")
    from langchain_threadmem.engine.chat_model import chat_model

    model = None if model_name is None else chat_model(model_name)
    with access.open(embeddings=False, model=model) as system, progress_bar("summarize") as update:
        if conversation is None:
            summary = system.summarize_long_term_memory(progress=update)
        else:
            memory = conversation_of(system, conversation)
            if thread is None:
                summary = system.summarize_session(memory.conversation_id, progress=update)
            else:
                end = _end_of_thread(memory, thread)
                summary = system.summarize_thread(end, session=memory.conversation_id, progress=update)
    if summary is None:
        print_error("no summary was written: there is nothing to summarize, or the model failed")
        return 1
    if as_json:
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
