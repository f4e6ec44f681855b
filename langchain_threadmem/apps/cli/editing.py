"""The commands `sort`, `place`, `summarize`, `forget` and `erase`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from langchain_threadmem.apps.cli.arguments import (
    Access,
    check_one,
    command,
    confirmed,
    conversation_of,
    print_error,
    print_json,
    progress_bar,
)
from langchain_threadmem.common.inputs import time_of
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.text import listed, one_line, plural, visible

if TYPE_CHECKING:
    from langchain_threadmem.chat_memory import ChatMemory
    from langchain_threadmem.index.units.unit import MemoryUnit
    from langchain_threadmem.maintenance.removal.erase import Receipt
    from langchain_threadmem.memory_system import MemorySystem
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


@command(
    "forget",
    examples=[
        "forget --share 0.1 --db memory.db",
        "forget --conversation monday --message 7",
        "forget --share 0.1 --max-units 20000 --purge --yes",
    ],
    json="the number of forgotten units, the number left, and whether they were purged",
)
@click.option("--conversation", metavar="NAME", help="The conversation of --message.")
@click.option("--message", metavar="N", type=int, help="Forget this message of --conversation.")
@click.option(
    "--share",
    metavar="X",
    type=float,
    help="The share of the units to forget, from 0 to 1.  [default: 0.1]",
)
@click.option("--max-units", metavar="N", type=int, help="Forget only if the memory has more units.")
@click.option("--purge", is_flag=True, help="Also remove them from history and from the files, permanently.")
@click.option("--yes", is_flag=True, help="Do not ask, before --purge or if nothing else is given.")
def forget(
    access: Access,
    conversation: str | None,
    message: int | None,
    share: float | None,
    max_units: int | None,
    purge: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Remove messages from memory; history keeps them.

    One message is removed, or the least important messages and summaries. Without --message, --share and
    --max-units the command asks first.
    """
    if (message is None) != (conversation is None):
        raise InputError("--message requires --conversation; pass both or neither")
    if message is not None and (share is not None or max_units is not None):
        raise InputError("--share and --max-units cannot be combined with --message; leave out one of them")
    is_named = message is not None or share is not None or max_units is not None
    with access.open() as system:
        if conversation is not None:
            conversation = conversation_of(system, conversation, exact=purge).conversation_id
        part = f"{100 * (system.settings.forget_percentage if share is None else share):g} %"
        subject = f"{part} of the memory" if message is None else f"message {message}"
        if purge and not confirmed(f"Remove {subject} of {system.owner!r} for good?", yes):
            return 1
        choose = "--share, --max-units or --message, or "
        if not (purge or is_named or confirmed(f"Forget {subject} of {system.owner!r}?", yes, choose)):
            return 1
        if conversation is None or message is None:
            result = system.forget(share, max_units=max_units, purge=purge)
            forgotten, left = result.units, result.left
        else:
            forgotten, left = 1, _forget_message(system, conversation, message, purge)
        unscrubbed: Sequence[str] = system.scrub().unscrubbed if purge and forgotten else ()
    if as_json:
        print_json({"units": forgotten, "left": left, "purged": purge, "unscrubbed": unscrubbed})
    else:
        verb = "removed for good" if purge else "forgotten"
        print(f"{plural(forgotten, 'unit')} {verb}, {left} left")
        _print_unscrubbed(unscrubbed)
    return 0


def _forget_message(system: MemorySystem, conversation: str, message: int, purge: bool) -> int:
    from langchain_threadmem.engine.flow import run
    from langchain_threadmem.maintenance.removal import forgettable
    from langchain_threadmem.maintenance.removal.forget import forget_message

    run(forget_message(system.conversation(conversation)._conversation, message, purge=purge), system.runtime)
    return system.runtime.database.read(lambda conn: forgettable.size(conn, system.owner))


@command(
    "erase",
    examples=[
        "erase monday --db memory.db --owner ada",
        "erase --before 2026-01-01 --owner ada",
        "erase --everything --owner ada --yes --json",
    ],
    json="the receipt",
)
@click.argument("conversation", required=False)
@click.option(
    "--before",
    metavar="TIME",
    help="Erase messages before this time: 2026-01-31, 2026-01-31T18:00+01:00; without a zone: UTC.",
)
@click.option("--everything", is_flag=True, help="Erase all data of the owner.")
@click.option("--yes", is_flag=True, help="Do not ask before erasing.")
def erase(
    access: Access, conversation: str | None, before: str | None, everything: bool, yes: bool, as_json: bool
) -> int:
    """Erase a conversation, old messages, or all data.

    The data is erased for good, and a receipt is printed.
    """
    if everything == (conversation is not None or before is not None):
        raise InputError(
            "name the data to erase: a conversation, --before TIME or both, or --everything alone"
        )
    time = time_of(before)
    if time is None and before is not None:
        raise InputError(f"--before {before!r} is not a time; write 2026-01-31 or 2026-01-31T18:00")
    with access.open() as system:
        if conversation is not None and not _has_trees(system, conversation):
            conversation_of(system, conversation, exact=True)  # Raises an error that lists conversations.
        question = _described(access.db, system.owner, conversation, before)
        if not confirmed(f"{question}, for good?", yes):
            return 1
        receipt = system.erase(conversation=conversation, before=time)
    if as_json:
        from dataclasses import asdict

        record = asdict(receipt) | {"tables": receipt.rows, "ok": receipt.ok, "scrubbed": receipt.scrubbed}
        del record["trees"]
        print_json(record)
    else:
        _print_receipt(receipt, access.db)
    return 0 if receipt.ok else 1


def _described(database: str, owner: str, conversation: str | None, before: str | None) -> str:
    from langchain_threadmem.storage.database import quoted

    subject = "all data" if conversation is None else f"conversation {conversation!r}"
    if before is not None:
        subject = f"{'all messages' if conversation is None else subject} before {before}"
    return f"Erase {subject} of {owner!r} from {quoted(database)}"


def _has_trees(system: MemorySystem, conversation: str) -> bool:
    """Whether a conversation has data, such as checkpoints without messages."""
    from langchain_threadmem.maintenance.removal import tables

    return bool(system.runtime.database.read(lambda conn: tables.trees_of(conn, system.owner, conversation)))


def _print_receipt(receipt: Receipt, database: str) -> None:
    from langchain_threadmem.storage.database import quoted

    subject = "all data" if receipt.conversation is None else f"conversation {receipt.conversation!r}"
    before = "" if receipt.before is None else f" before {receipt.before.isoformat()}"
    print(f"erased {subject}{before} of {receipt.owner!r} from {quoted(database)}:")
    for name, count in receipt.tables:
        print(f"  {count:>7} {name}")
    print(f"  {receipt.vectors:>7} vectors in the index outside of the database")
    _print_unscrubbed(receipt.unscrubbed)
    for remainder in receipt.left:
        print(f"left: {visible(remainder)}")
    if receipt.ok:
        print("checked: nothing is left")


def _print_unscrubbed(reasons: Sequence[str]) -> None:
    for reason in reasons:
        print(f"bytes may be left in {visible(reason)}")
