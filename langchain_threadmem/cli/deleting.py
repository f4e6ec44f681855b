"""The commands `forget` and `erase`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from langchain_threadmem.cli.arguments import (
    Commands,
    add_command,
    conversation_of,
    open_memory,
    print_error,
    print_json,
)
from langchain_threadmem.common.inputs import time_of
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.text import plural, visible

if TYPE_CHECKING:
    from langchain_threadmem.memory_system import MemorySystem
    from langchain_threadmem.removal.erase import Receipt


def register(commands: Commands) -> None:
    forget = add_command(
        commands,
        "forget",
        _forget,
        "remove a message, or the least important messages, from memory; history keeps them",
        examples=[
            "forget --share 0.1 --db memory.db",
            "forget --conversation monday --message 7",
            "forget --share 0.1 --max-units 20000 --purge --yes",
        ],
        json="the number of forgotten units, the number left, and whether they were purged",
    )
    forget.add_argument("--conversation", metavar="NAME", help="the conversation of --message")
    forget.add_argument("--message", metavar="N", type=int, help="forget this message of --conversation")
    forget.add_argument(
        "--share", metavar="X", type=float, help="share of the units to forget, from 0 to 1; default: 0.1"
    )
    forget.add_argument("--max-units", metavar="N", type=int, help="only if the memory has more units")
    forget.add_argument(
        "--purge", action="store_true", help="also remove them from history and from the files, permanently"
    )
    forget.add_argument("--yes", action="store_true", help="do not ask before --purge")

    erase = add_command(
        commands,
        "erase",
        _erase,
        "erase a conversation, old messages, or all data of an owner, for good, and print a receipt",
        examples=[
            "erase monday --db memory.db --owner ada",
            "erase --before 2026-01-01 --owner ada",
            "erase --everything --owner ada --yes --json",
        ],
        json="the receipt",
    )
    erase.add_argument("conversation", metavar="CONVERSATION", nargs="?", help="the conversation to erase")
    erase.add_argument(
        "--before",
        metavar="TIME",
        help="erase messages before this time: 2026-01-31, 2026-01-31T18:00+01:00; without a zone: UTC",
    )
    erase.add_argument("--everything", action="store_true", help="erase all data of the owner")
    erase.add_argument("--yes", action="store_true", help="do not ask before erasing")


def _forget(options: argparse.Namespace) -> int:
    if (options.message is None) != (options.conversation is None):
        raise InputError("--message requires --conversation; pass both or neither")
    if options.message is not None and (options.share is not None or options.max_units is not None):
        raise InputError("--share and --max-units cannot be combined with --message; leave out one of them")
    with open_memory(options) as system:
        if options.message is not None:
            conversation_of(system, options.conversation)
        subject = "the least important units" if options.message is None else f"message {options.message}"
        if options.purge and not _confirmed(options, f"Remove {subject} of {options.owner!r} for good?"):
            return 1
        forgotten, left = (
            _forget_share(options, system) if options.message is None else _forget_message(options, system)
        )
        unscrubbed: Sequence[str] = system.scrub().unscrubbed if options.purge and forgotten else ()
    if options.json:
        print_json({"units": forgotten, "left": left, "purged": options.purge, "unscrubbed": unscrubbed})
    else:
        verb = "removed for good" if options.purge else "forgotten"
        print(f"{plural(forgotten, 'unit')} {verb}, {left} left")
        _print_unscrubbed(unscrubbed)
    return 0


def _forget_share(options: argparse.Namespace, system: MemorySystem) -> tuple[int, int]:
    result = system.forget(options.share, max_units=options.max_units, purge=options.purge)
    return result.units, result.left


def _forget_message(options: argparse.Namespace, system: MemorySystem) -> tuple[int, int]:
    from langchain_threadmem.engine.flow import run
    from langchain_threadmem.removal import forgettable
    from langchain_threadmem.removal.forget import forget_message

    conversation = system.conversation(options.conversation)._conversation
    run(forget_message(conversation, options.message, purge=options.purge), system.runtime)
    return 1, system.runtime.database.read(lambda conn: forgettable.size(conn, system.owner))


def _erase(options: argparse.Namespace) -> int:
    if options.everything == (options.conversation is not None or options.before is not None):
        raise InputError(
            "name the data to erase: a conversation, --before TIME or both, or --everything alone"
        )
    before = time_of(options.before)
    if before is None and options.before is not None:
        raise InputError(f"--before {options.before!r} is not a time; write 2026-01-31 or 2026-01-31T18:00")
    with open_memory(options) as system:
        if options.conversation is not None and not _has_trees(system, options.conversation):
            conversation_of(system, options.conversation)  # Raises an error that lists conversations.
        if not _confirmed(options, f"{_described(options)}, for good?"):
            return 1
        receipt = system.erase(conversation=options.conversation, before=before)
    if options.json:
        from dataclasses import asdict

        record = asdict(receipt) | {"tables": receipt.rows, "ok": receipt.ok, "scrubbed": receipt.scrubbed}
        del record["trees"]
        print_json(record)
    else:
        _print_receipt(receipt, options.db)
    return 0 if receipt.ok else 1


def _described(options: argparse.Namespace) -> str:
    from langchain_threadmem.storage.urls import quoted

    subject = "all data" if options.conversation is None else f"conversation {options.conversation!r}"
    if options.before is not None:
        subject = f"{'all messages' if options.conversation is None else subject} before {options.before}"
    return f"Erase {subject} of {options.owner!r} from {quoted(options.db)}"


def _has_trees(system: MemorySystem, conversation: str) -> bool:
    """Whether a conversation has data, such as checkpoints without messages."""
    from langchain_threadmem.removal import tables

    return bool(system.runtime.database.read(lambda conn: tables.trees_of(conn, system.owner, conversation)))


def _print_receipt(receipt: Receipt, database: str) -> None:
    from langchain_threadmem.storage.urls import quoted

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


def _confirmed(options: argparse.Namespace, question: str) -> bool:
    """Whether the user agrees, by `--yes` or in the terminal."""
    if options.yes:
        return True
    if not sys.stdin.isatty():
        raise InputError(f"{question} The input is not a terminal; pass --yes to agree")
    print(f"{visible(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    agreed = sys.stdin.readline().strip().lower() in ("y", "yes")
    if not agreed:
        print_error("nothing was removed")
    return agreed
