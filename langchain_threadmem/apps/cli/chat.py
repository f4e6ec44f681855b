"""The command `chat`: a chat in the terminal, or the prompts that a model would get."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from langchain_threadmem.apps.cli.arguments import Access, command, conversation_of, progress_bar
from langchain_threadmem.errors import InputError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

KEY = "OPENAI_API_KEY"
"""The environment variable with the key of the endpoint; many local servers need none."""


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

    from langchain_threadmem.apps.transfer.backup import backup
    from langchain_threadmem.apps.transfer.convert import convert
    from langchain_threadmem.storage.urls import sqlite_file

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
