"""Arguments, output and errors that the commands of `threadmem` share.

The decorator `command` makes a command of a function: its docstring is the help, and it returns the exit
code, or `None` for success. Modules of commands import no heavy modules; `main` lists the commands.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from langchain_threadmem.errors import InputError, OlderDatabaseError
from langchain_threadmem.messages.text import listed, one_line, visible

if TYPE_CHECKING:
    from langchain_threadmem.chat_memory import ChatMemory
    from langchain_threadmem.engine.chat_model import Model
    from langchain_threadmem.memory_system import MemorySystem

DATABASE = "memory.db"
"""The default database of commands."""
PATH = click.Path(path_type=Path)
"""The type of paths, which commands check when they use them."""


OWNER = "user"
"""The owner of commands, unless another one is named or the only one of the database."""


@dataclass(frozen=True)
class Access:
    """The database and the owners that a command works on.

    Attributes:
        db: A file or a URL.
        owner: The owner of the memory; `None` if none was named.
        everybody: Whether the command works on the memories of all owners.
    """

    db: str
    owner: str | None = None
    everybody: bool = False

    def open(
        self,
        *,
        read_only: bool = False,
        embeddings: Literal[False] | None = None,
        vectors: str | None = None,
        model: Model | None = None,
    ) -> MemorySystem:
        """Open the existing memory of the owner, by default of the only one or `OWNER`; see `MemorySystem`.

        Raises:
            InputError: The database does not exist, or has no memory of the owner.
            OlderDatabaseError: The database has an older schema, and the memory is opened read-only.
        """
        from langchain_threadmem.memory_system import MemorySystem

        existing = self.owners(migrate=not read_only)
        owner = self.owner or (existing[0] if len(existing) == 1 else OWNER)
        if existing and owner not in existing:
            raise InputError(f"there is no memory of {owner!r}; there is {listed(existing)}")
        return MemorySystem(
            self.db, owner=owner, read_only=read_only, embeddings=embeddings, vectors=vectors, model=model
        )

    def owners(self, *, migrate: bool = False) -> list[str]:
        """The owners in the database; none if row-level security hides them.

        Args:
            migrate: Whether an older database is migrated.

        Raises:
            InputError: The database does not exist.
            OlderDatabaseError: The database has an older schema, and is not to be migrated.
            PersistenceError: The command works on all owners, and row-level security hides them.
        """
        from langchain_threadmem.maintenance.removal import tables
        from langchain_threadmem.storage.database import open_database, sqlite_file

        file = sqlite_file(self.db)
        if file is not None and not file.is_file():
            raise InputError(
                f"there is no database file {str(file)!r}; pass another file with --db; `threadmem demo` and "
                "`threadmem import` create a database"
            )
        try:
            database = open_database(self.db, read_only=True)
        except OlderDatabaseError:
            if not migrate:
                raise
            database = open_database(self.db)  # Migrates the database.
        with closing(database) as opened:
            return opened.read(tables.owners) if self.everybody or not opened.row_security else []

    def each(self) -> list[Access]:
        """The access to the memory of each owner that a command works on.

        Raises:
            InputError: The database has several owners, and none was named.
        """
        if self.everybody and self.owner is not None:
            raise InputError(f"--everybody includes {self.owner!r}; leave out --owner or --everybody")
        existing = [] if self.owner is not None else self.owners(migrate=True)
        if self.everybody:
            return [replace(self, owner=owner) for owner in existing]
        if len(existing) > 1:
            from langchain_threadmem.storage.database import quoted

            raise InputError(
                f"{quoted(self.db)} has the memories of {listed(existing)}; choose one with --owner NAME, or "
                "all with --everybody"
            )
        return [self]


def command(
    name: str,
    *,
    examples: Sequence[str],
    database: Literal["option", "argument"] | None = "option",
    conversation: Literal["optional", "required"] | None = None,
    also: str = "",
    owner: bool = True,
    everybody: bool = False,
    json: str = "",
) -> Callable[[Callable[..., int | None]], click.Command]:
    """Make a command with the common options of a function; its docstring is the help.

    Args:
        examples: Calls of the command, without `threadmem`, for its help.
        database: The argument with the database, which the function takes as `access`: the option `--db`;
            `--db` or the first argument; or neither.
        conversation: Whether the argument CONVERSATION follows DATABASE. A single argument is a conversation
            after `--db`, if CONVERSATION is required, or if it does not look like a database.
        also: Another name of the option `--db`.
        owner: Whether the command has the option `--owner`, a part of `access` if there is a database.
        everybody: Whether the command has the option `--everybody`, a part of `access`.
        json: The contents of the JSON document of the option `--json`, which the function takes as
            `as_json`; empty if the command has no such option.
    """
    arguments: list[click.Parameter] = []
    options: list[click.Parameter] = []
    if database == "argument":
        arguments.append(click.Argument(["database"], metavar="[DATABASE]", required=False))
    if conversation is not None:
        metavar = "CONVERSATION" if conversation == "required" else "[CONVERSATION]"
        arguments.append(click.Argument(["conversation"], metavar=metavar, required=False))
    if database is not None:
        options.append(
            click.Option(
                ["--db", *also.split(), "db"],
                metavar="DATABASE",
                help=f"The database: a file or a URL.  [default: {DATABASE}]",
            )
        )
    if owner:
        options.append(
            click.Option(
                ["--owner"],
                metavar="NAME",
                default=OWNER if database is None else None,
                help="The owner of the memory."
                + ("" if database is None else f"  [default: the only owner, else {OWNER}]"),
            )
        )
    if everybody:
        options.append(
            click.Option(["--everybody"], is_flag=True, help="Work on the memories of all owners.")
        )
    if json:
        options.append(
            click.Option(["--json", "as_json"], is_flag=True, help=f"Print a JSON document: {json}.")
        )

    def decorate(function: Callable[..., int | None]) -> click.Command:
        def run(**given: Any) -> int | None:
            if database is not None:
                _resolve_database(given, conversation)
                access = Access(given.pop("db"), given.pop("owner", None), given.pop("everybody", False))
                given["access"] = access
            return function(**given)

        run.__dict__.update(function.__dict__)  # The other options of the command.
        epilog = "\b\nexamples:\n" + "\n".join(f"  threadmem {example}" for example in examples)
        made = click.command(
            name, help=function.__doc__, epilog=epilog, context_settings={"show_default": True}
        )(run)
        made.params = [*arguments, *made.params, *options]
        return made

    return decorate


def _resolve_database(given: dict[str, Any], conversation: Literal["optional", "required"] | None) -> None:
    """Set `db` from `--db`, the argument DATABASE, or the default; see `command`."""
    argument = given.pop("database", None)
    is_required = conversation == "required"
    is_single = argument is not None and conversation is not None and given["conversation"] is None
    if is_single and (is_required or given["db"] is not None or not _looks_like_database(argument)):
        given["conversation"], argument = argument, None
    if is_required and given["conversation"] is None:
        raise click.UsageError("missing argument CONVERSATION", click.get_current_context())
    if argument is not None and given["db"] is not None:
        from langchain_threadmem.storage.database import quoted

        raise InputError(
            f"--db {quoted(given['db'])} and {quoted(argument)} both name a database; leave one out"
        )
    given["db"] = given["db"] or argument or DATABASE


def _looks_like_database(name: str) -> bool:
    return "://" in name or Path(name).suffix != "" or os.path.exists(name)


def check_one(*, required: bool = False, **given: bool) -> None:
    """Check that at most one of several options is given, or exactly one."""
    count = sum(given.values())
    if count > 1 or required > count:
        names = " ".join(f"--{name.replace('_', '-')}" for name in given)
        raise click.UsageError(
            f"{'one' if required else 'at most one'} of the options {names} can be given",
            click.get_current_context(),
        )


def conversation_of(system: MemorySystem, name: str, *, exact: bool = False) -> ChatMemory:
    """An existing conversation, by its id, by the beginning of its id, or by its title.

    Args:
        exact: Whether only the id is a name, for commands that delete.

    Raises:
        InputError: The conversation does not exist, or several have the name; the error lists conversations.
    """
    names = system.conversations()
    found = [name] if name in names else []
    if not exact:
        found = found or [each for each in names if each.startswith(name)] or _titled(system, name)
    if len(found) == 1:
        return system.conversation(found[0])
    if found:
        raise InputError(f"{name!r} names {listed(found, 5)}; write more of the id")
    raise InputError(
        f"there is no conversation {name!r} of {system.owner!r}; there is {listed(names) or 'none'}"
    )


def _titled(system: MemorySystem, title: str) -> list[str]:
    """The conversations with a title."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = system.list_conversations(limit=1000, cursor=cursor, archived="both")
        found += [each.id for each in page if each.title.casefold() == title.casefold()]
        if (cursor := page.cursor) is None:
            return found


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
        **fields: Further fields of the object, before the fields of a dataclass.
    """
    import json

    print(json.dumps({**fields, **_to_json(value)} if fields else value, indent=2, default=_to_json))


def print_documents(access: Access, documents: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the document of one owner, or with `--everybody` an array of documents with their owners."""
    named = [{"owner": owner, **document} for owner, document in documents.items()]
    print_json(named if access.everybody else next(iter(documents.values())))


def _to_json(value: Any) -> Any:
    from dataclasses import asdict, is_dataclass
    from datetime import datetime

    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return value.isoformat() if isinstance(value, datetime) else str(value)


def print_error(text: str) -> None:
    """Print an error or a warning in one line on stderr."""
    print(f"threadmem: {one_line(text)}", file=sys.stderr)


def confirmed(question: str, yes: bool, instead: str = "") -> bool:
    """Whether the user agrees, by `--yes` or in the terminal; without both, the error names what to pass."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise InputError(f"{question} The input is not a terminal; pass {instead}--yes to agree")
    print(f"{visible(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    agreed = sys.stdin.readline().strip().lower() in ("y", "yes")
    if not agreed:
        print_error("nothing was removed")
    return agreed
