"""Arguments, output and errors that the commands of `threadmem` share.

A module of commands has a function `register(commands)`, which calls `add_command` for each command and does
not import heavy modules; `main` lists the modules. A command is a function of the parsed arguments that
returns the exit code, or `None` for success.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

from langchain_threadmem.errors import InputError, OlderDatabaseError
from langchain_threadmem.messages.text import listed, one_line

if TYPE_CHECKING:
    from langchain_threadmem.chat_memory import ChatMemory
    from langchain_threadmem.memory_system import MemorySystem

DATABASE = "memory.db"
"""The default database of commands."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print an error in one line, and exit with 2."""
        self.exit(2, f"threadmem: {one_line(message)}; see `{self.prog} --help`\n")


class Command(Parser):
    """The parser of a command; options may stand between its arguments."""

    _mixing = False
    _literal: Sequence[str] = ()
    """The separator `--` and the arguments after it."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._mixing:
            # Python 3.11 calls this method from `parse_known_intermixed_args`: with all arguments, then with
            # those that are no options, from which it removes the separator.
            if "--" in args:
                start = args.index("--")
                args, self._literal = args[:start], args[start:]
            else:
                args = [*args, *self._literal]
            return super().parse_known_args(args, namespace)
        self._mixing, self._literal = True, ()
        try:
            options, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._mixing = False
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options, unknown


Commands: TypeAlias = "argparse._SubParsersAction[Command]"


def add_command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int | None],
    help: str,
    *,
    examples: Sequence[str],
    database: Literal["option", "argument"] | None = "option",
    owner: bool = True,
    json: str = "",
) -> Command:
    """Add a command with the common options.

    Args:
        commands: The commands.
        name: The name of the command.
        run: The command: takes the parsed arguments, returns the exit code or `None`.
        help: The command in one line.
        examples: Calls of the command, without `threadmem`, for its help.
        database: The argument with the database: the option `--db`; `--db` or the first argument; or neither.
        owner: Whether the command has the option `--owner`.
        json: The contents of the JSON document of the option `--json`; empty if the command has no such
            option.
    """
    command = commands.add_parser(
        name,
        help=help,
        description=help[0].upper() + help[1:] + ".",
        epilog="examples:\n" + "\n".join(f"  threadmem {example}" for example in examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=run)
    if database == "argument":
        command.add_argument("database", metavar="DATABASE", nargs="?", help="the same as --db DATABASE")
    shared = command.add_argument_group("common options")
    if database is not None:
        shared.add_argument(
            "--db", metavar="DATABASE", help=f"the database: a file or a URL; default: {DATABASE}"
        )
    if owner:
        shared.add_argument(
            "--owner", metavar="NAME", default="user", help="owner of the memory; default: user"
        )
    if json:
        shared.add_argument("--json", action="store_true", help=f"print a JSON document: {json}")
    return command


def add_conversation(command: Command, help: str) -> None:
    """Add the optional argument CONVERSATION after DATABASE.

    A single argument is a conversation after `--db`, or if it does not look like a database.
    """
    command.add_argument("conversation", metavar="CONVERSATION", nargs="?", help=help)
    command.set_defaults(optional_conversation=True)


def settle(options: argparse.Namespace) -> None:
    """Set `options.db` from `--db`, the argument DATABASE, or the default."""
    argument = getattr(options, "database", None)
    if argument is not None:
        is_single = "optional_conversation" in options and options.conversation is None
        if is_single and (options.db is not None or not _looks_like_database(argument)):
            options.conversation = argument
        elif options.db is None:
            options.db = argument
        else:
            from langchain_threadmem.storage.urls import quoted

            raise InputError(
                f"--db {quoted(options.db)} and {quoted(argument)} both name a database; leave one out"
            )
    if getattr(options, "db", "") is None:
        options.db = DATABASE


def _looks_like_database(name: str) -> bool:
    return "://" in name or Path(name).suffix != "" or os.path.exists(name)


def open_memory(
    options: argparse.Namespace, *, read_only: bool = False, **system_options: Any
) -> MemorySystem:
    """Open the existing memory of `--db` and `--owner`.

    Raises:
        InputError: The database does not exist, or has no memory of the owner.
        OlderDatabaseError: The database has an older schema, and the memory is opened read-only.
    """
    from langchain_threadmem.memory_system import MemorySystem
    from langchain_threadmem.removal import tables
    from langchain_threadmem.storage.database import open_database
    from langchain_threadmem.storage.urls import sqlite_file
    from langchain_threadmem.transfer import rows

    file = sqlite_file(options.db)
    if file is not None and not file.is_file():
        raise InputError(
            f"there is no database file {str(file)!r}; pass another file with --db; `threadmem demo` and "
            "`threadmem import` create a database"
        )
    try:
        database = open_database(options.db, read_only=True)
    except OlderDatabaseError:
        if read_only:
            raise
        database = open_database(options.db)  # Migrates the database.
    with closing(database) as opened:
        if not opened.row_security:  # With row-level security the role cannot see the owners.
            opened.read(
                lambda conn: rows.check_owner_exists(conn, options.owner) if tables.owners(conn) else None
            )
    return MemorySystem(options.db, owner=options.owner, read_only=read_only, **system_options)


def conversation_of(system: MemorySystem, name: str) -> ChatMemory:
    """An existing conversation.

    Raises:
        InputError: The conversation does not exist; the error lists existing conversations.
    """
    names = system.conversations()
    if name not in names:
        raise InputError(
            f"there is no conversation {name!r} of {system.owner!r}; there is {listed(names) or 'none'}"
        )
    return system.conversation(name)


@contextmanager
def progress_bar(description: str, *, in_bytes: bool = False) -> Iterator[Callable[..., None]]:
    """Show a progress bar on stderr, if it is a terminal; yields `update(done, total, description)`."""
    from rich.console import Console
    from rich.progress import DownloadColumn, Progress

    console = Console(stderr=True)
    columns = [*Progress.get_default_columns(), *([DownloadColumn()] if in_bytes else [])]
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(description, total=None)

        def update(done: int, total: int, description: str | None = None) -> None:
            progress.update(task, description=description, completed=done, total=total or None)

        yield update


def print_json(value: Any, **fields: Any) -> None:
    """Print a value as one JSON document: dataclasses as objects, times as ISO 8601.

    Args:
        value: The value.
        **fields: Further fields of the object, before the fields of a dataclass.
    """
    import json

    print(json.dumps({**fields, **_to_json(value)} if fields else value, indent=2, default=_to_json))


def _to_json(value: Any) -> Any:
    from dataclasses import asdict, is_dataclass
    from datetime import datetime

    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return value.isoformat() if isinstance(value, datetime) else str(value)


def print_error(text: str) -> None:
    """Print an error or a warning in one line on stderr."""
    print(f"threadmem: {one_line(text)}", file=sys.stderr)
