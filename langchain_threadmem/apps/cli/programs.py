"""The commands `demo`, `mcp`, `view`, `chat` and `completion`, which run a program, a page or a chat."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from langchain_threadmem.apps.cli.arguments import OWNER, PATH, Access, command, conversation_of, progress_bar
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.text import visible

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from langchain_threadmem.memory_system import MemorySystem

KEY = "OPENAI_API_KEY"
"""The environment variable with the key of the endpoint; many local servers need none."""
VARIABLE = "_THREADMEM_COMPLETE"
"""The environment variable by which the script of a shell asks `threadmem` for completions."""


@command("demo", examples=["demo", "demo chat.jsonl --out demo-output"], database=None)
@click.argument("file", type=PATH, required=False)
@click.option("--index", metavar="N", type=int, default=0, help="Position of the conversation in FILE.")
@click.option("--out", metavar="DIR", type=PATH, default="demo-output", help="The folder of the output.")
@click.option(
    "--db",
    "--database",
    "database",
    metavar="DATABASE",
    help="The database for the conversation: a file or a URL.  [default: memory.db in DIR]",
)
def demo(file: Path | None, index: int, out: Path, database: str | None, owner: str) -> None:
    """Sort a conversation into threads and show the result.

    FILE is JSON or JSON Lines; by default a sample is sorted.
    """
    from langchain_threadmem.apps.cli.demo import demo

    demo(file, index, out, database, owner)


@command(
    "mcp", examples=["mcp --db sqlite:///memory.db --owner ada", "mcp memory.db --write"], database="argument"
)
@click.option(
    "--write",
    is_flag=True,
    help="Also offer the tools remember and forget, and create a database that does not exist; by default, "
    "the database is opened read-only.",
)
def mcp(access: Access, write: bool) -> None:
    """Serve the memory to other programs, by MCP over stdio."""
    from langchain_threadmem.apps.cli import mcp_server
    from langchain_threadmem.memory_system import MemorySystem

    mcp_server.check_installed()
    owner = access.owner or OWNER
    with MemorySystem(access.db, owner=owner) if write else access.open(read_only=True) as system:
        mcp_server.serve(system, write=write)


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


@command(
    "chat",
    examples=[
        "chat memory.db",
        "chat memory.db --url http://localhost:11434/v1 --model llama3.2",
        "chat monday --recall 0",
    ],
    database="argument",
    conversation="optional",
)
@click.option(
    "--url",
    metavar="URL",
    help="An endpoint with OpenAI's interface, such as that of Ollama, LM Studio or vLLM. Its key is in the "
    f"environment variable {KEY}.  [default: no model]",
)
@click.option(
    "--model", "model_name", metavar="NAME", help="The model of --url.  [default: the first of its list]"
)
@click.option(
    "--recall", metavar="N", type=int, default=4, help="The number of messages recalled from other threads."
)
def chat(
    access: Access, conversation: str | None, url: str | None, model_name: str | None, recall: int
) -> None:
    """Ask questions, answered with what the memory knows.

    Each line of the input is a message. It continues a thread of CONVERSATION, by default of a new one, and
    the model is shown this thread and what other conversations say about it. Without --url, the command shows
    this prompt instead, and works on a copy: nothing is stored.
    """
    from langchain_threadmem.apps.cli import chat_session

    if url is None and model_name is not None:
        raise InputError(f"--model {model_name!r} requires --url with the address of its endpoint")
    model = None if url is None else _model(url, model_name)
    with _access(access, is_copy=model is None) as opened, opened.open() as system:
        name = None if conversation is None else conversation_of(system, conversation).conversation_id
        session = chat_session.ChatSession(system, model, name, recall)
        session.run(sys.stdin)


@contextmanager
def _access(access: Access, *, is_copy: bool) -> Iterator[Access]:
    """The database, or a temporary copy of it."""
    if not is_copy:
        yield access
        return
    from tempfile import TemporaryDirectory

    from langchain_threadmem.apps.transfer.convert import backup, convert
    from langchain_threadmem.storage.database import sqlite_file

    with access.open(read_only=True) as system:  # The owner of the database; a missing one is an error.
        owner = system.owner
    with TemporaryDirectory(prefix="threadmem-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder, "copy.db")
        with progress_bar("copy") as update:

            def progress(table: str, done: int, total: int) -> None:
                update(done, total, table)

            if sqlite_file(access.db) is None:  # A server may have the memories of many others.
                convert(access.db, copy, owner=owner, progress=progress)
            else:
                backup(access.db, copy, progress)
        yield replace(access, db=str(copy), owner=owner)


def _model(url: str, name: str | None) -> BaseChatModel:
    """The chat model of an endpoint.

    Raises:
        InputError: The endpoint does not answer, or lists no model.
    """
    import os

    from langchain_openai import ChatOpenAI
    from openai import OpenAI
    from pydantic import SecretStr

    key = os.environ.get(KEY) or "none"
    if name is None:
        with _errors_of(url):
            listed = [model.id for model in OpenAI(base_url=url, api_key=key, max_retries=0).models.list()]
        if not listed:
            raise InputError(f"{url} lists no models; name one with --model")
        name = listed[0]
    model: BaseChatModel = ChatOpenAI(model=name, base_url=url, api_key=SecretStr(key))
    return model


@contextmanager
def _errors_of(url: str) -> Iterator[None]:
    """Report an error of an endpoint as an `InputError`."""
    from openai import OpenAIError

    try:
        yield
    except (OpenAIError, ValueError) as error:  # A ValueError: the answer is not JSON.
        raise InputError(
            f"the endpoint {url} cannot be used: {error}; check the address and {KEY}"
        ) from error


@command(
    "completion",
    examples=[
        "completion bash > ~/.local/share/bash-completion/completions/threadmem",
        "completion zsh > ~/.zfunc/_threadmem",
        "completion fish > ~/.config/fish/completions/threadmem.fish",
    ],
    database=None,
    owner=False,
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script for completion in a shell."""
    from click.shell_completion import get_completion_class

    from langchain_threadmem.apps.cli.main import PROGRAM

    script = get_completion_class(shell)
    assert script is not None
    print(script(PROGRAM, {}, "threadmem", VARIABLE).source())
