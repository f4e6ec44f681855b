"""The command `view`: the live page of a memory, or the self-contained page of one conversation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from langchain_threadmem.apps.cli.arguments import PATH, Access, command, conversation_of
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.text import visible

if TYPE_CHECKING:
    from langchain_threadmem.memory_system import MemorySystem


@command(
    "view",
    examples=[
        "view memory.db --owner ada",
        "view memory.db --no-browser --port 8123 --read-only",
        "view memory.db --static monday.html --conversation monday",
    ],
    database="argument",
)
@click.option("--port", metavar="N", type=int, default=0, help="The port on 127.0.0.1; 0 is a free one.")
@click.option("--no-browser", is_flag=True, help="Print the URL without opening a browser.")
@click.option("--read-only", is_flag=True, help="Show a page without controls for changes.")
@click.option(
    "--static", metavar="FILE", type=PATH, help="Write one conversation as a self-contained page, and exit."
)
@click.option(
    "--conversation",
    metavar="NAME",
    help="The conversation for --static.  [default: the conversation used last]",
)
def view(
    access: Access,
    port: int,
    no_browser: bool,
    read_only: bool,
    static: Path | None,
    conversation: str | None,
) -> None:
    """Show and correct conversations in the browser.

    The page shows conversations, threads and the reasons for the places of messages.
    """
    if static is not None:
        _write(access, static, conversation)
        return
    if conversation is not None:
        raise InputError(
            "--conversation is an option of --static FILE; add --static, or leave out --conversation"
        )
    from langchain_threadmem.apps.view.server import check_installed, serve

    check_installed()
    with access.open(read_only=True) as system:
        open_writer = None if read_only else replace(access, owner=system.owner).open
        serve(system, open_writer, port=port, browser=not no_browser, started=_started)


def _started(url: str) -> None:
    print(f"{url}\nThe URL contains the token of the page. Ctrl-C ends the server.", flush=True)


def _write(access: Access, file: Path, conversation: str | None) -> None:
    from langchain_threadmem.formats.exporters import files

    with access.open(read_only=True) as system:
        memory = conversation_of(system, conversation or _used_last(system))
        files.write_text(file, memory.export("html"))
    print(visible(f"{memory.conversation_id}: {file}"))


def _used_last(system: MemorySystem) -> str:
    conversations = system.list_conversations(limit=1, archived="both")
    if not conversations:
        raise InputError(f"{system.owner!r} has no conversations to write")
    return conversations[0].id
