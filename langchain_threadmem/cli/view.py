"""The command `view`: the live page of a memory, or the self-contained page of one conversation."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_threadmem.cli.arguments import Commands, add_command, conversation_of, open_memory
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.text import visible

if TYPE_CHECKING:
    from langchain_threadmem.memory_system import MemorySystem


def register(commands: Commands) -> None:
    view = add_command(
        commands,
        "view",
        _view,
        "show conversations, threads and the reasons for their places in the browser, and correct them",
        examples=[
            "view memory.db --owner ada",
            "view memory.db --no-browser --port 8123 --read-only",
            "view memory.db --static monday.html --conversation monday",
        ],
        database="argument",
    )
    view.add_argument(
        "--port", metavar="N", type=int, default=0, help="port on 127.0.0.1; default: a free one"
    )
    view.add_argument("--no-browser", action="store_true", help="print the URL without opening a browser")
    view.add_argument("--read-only", action="store_true", help="show a page without controls for changes")
    view.add_argument(
        "--static",
        metavar="FILE",
        type=Path,
        help="write one conversation as a self-contained page, and exit",
    )
    view.add_argument(
        "--conversation",
        dest="only",
        metavar="NAME",
        help="the conversation for --static; default: the conversation used last",
    )


def _view(options: argparse.Namespace) -> None:
    if options.static is not None:
        _write(options)
        return
    if options.only is not None:
        raise InputError(
            "--conversation is an option of --static FILE; add --static, or leave out --conversation"
        )
    from langchain_threadmem.view.server import check_installed, serve

    check_installed()
    with open_memory(options, read_only=True) as system:
        open_writer = None if options.read_only else lambda: open_memory(options)
        serve(system, open_writer, port=options.port, browser=not options.no_browser, started=_started)


def _started(url: str) -> None:
    print(f"{url}\nThe URL contains the token of the page. Ctrl-C ends the server.", flush=True)


def _write(options: argparse.Namespace) -> None:
    from langchain_threadmem.export import files

    with open_memory(options, read_only=True) as system:
        memory = conversation_of(system, options.only or _used_last(system))
        files.write_text(options.static, memory.export("html"))
    print(visible(f"{memory.conversation_id}: {options.static}"))


def _used_last(system: MemorySystem) -> str:
    conversations = system.list_conversations(limit=1, archived="both")
    if not conversations:
        raise InputError(f"{system.owner!r} has no conversations to write")
    return conversations[0].id
