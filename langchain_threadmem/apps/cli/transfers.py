"""The commands `import`, `import-checkpoints`, `convert`, `backup` and `export`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from langchain_threadmem.apps.cli.arguments import (
    OWNER,
    PATH,
    Access,
    command,
    conversation_of,
    print_json,
    progress_bar,
)
from langchain_threadmem.errors import InputError, ThreadMemError
from langchain_threadmem.messages.text import listed, plural, visible

if TYPE_CHECKING:
    from langchain_threadmem.memory_system import MemorySystem

_FORMAT = "json"
"""The format if neither `--format` nor the suffix of `--out` is a format."""
_DATABASES = (".db", ".sqlite", ".sqlite3")
"""The suffixes of databases, to which the format `llm` adds all conversations."""
_LINES = ".jsonl"
"""The suffix of formats in which one file may contain several conversations."""


@command(
    "import",
    examples=[
        "import conversations.json",
        "import export.zip --db memory.db --owner ada",
        "import conversations.json --sort",
    ],
    also="--into",
    json="the counts and the problems",
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=PATH)
@click.option("--format", metavar="NAME", help="The format of FILE.  [default: detected from its contents]")
@click.option("--skip-bad", is_flag=True, help="Skip lines and items that cannot be imported.")
@click.option("--sort", is_flag=True, help="Sort conversations without branches into threads, once each.")
def import_(
    access: Access, files: tuple[Path, ...], format: str | None, skip_bad: bool, sort: bool, as_json: bool
) -> int:
    """Import chats of ChatGPT, Claude, LangChain and others.

    Each FILE is an export: JSON, JSON Lines, text, SQLite, a ZIP archive or a folder. Branches are imported
    too.
    """
    from langchain_threadmem.formats.importers.registry import ImportPlan
    from langchain_threadmem.memory_system import MemorySystem

    ImportPlan(list(files), format).close()  # A file that cannot be imported creates no database.
    with (
        # An import does not embed texts; the sort compares them by meaning.
        MemorySystem(access.db, owner=access.owner or OWNER, embeddings=None if sort else False) as system,
        ExitStack() as bars,
    ):
        update = bars.enter_context(progress_bar("import", in_bytes=True))
        sorting: list[Callable[..., None]] = []

        def on_sort(done: int, total: int) -> None:
            if not sorting:  # One bar at a time.
                bars.close()
                sorting.append(bars.enter_context(progress_bar("sort")))
            sorting[0](done, total)

        report = system.import_file(
            list(files), format, update, skip_bad=skip_bad, sort=sort, on_sort=on_sort
        )
    is_empty = bool(report.skipped and not report.messages)
    if as_json:
        print_json(report)
        return int(is_empty)
    updated = f", {report.updated_messages} changed" if report.updated_messages else ""
    print(
        f"{report.format}: {report.conversations} conversations, {report.new_conversations} of them new; "
        f"{report.messages} messages, {report.new_messages} of them new{updated}; "
        f"{report.skipped or 'no'} bad items skipped"
    )
    if sort:
        returns = report.moved - report.opened
        print(
            f"{plural(report.sorted, 'conversation')} sorted: {plural(report.moved, 'message')} moved, "
            f"{report.opened:,} to a new thread, {returns:,} to an earlier one"
        )
    for problem in report.problems:
        print(f"  {visible(problem)}")
    if report.ignored:
        print(f"{plural(len(report.ignored), 'file')} without chats: {visible(listed(report.ignored))}")
    return int(is_empty)


@command(
    "import-checkpoints",
    examples=[
        "import-checkpoints checkpoints.sqlite memory.db",
        "import-checkpoints postgresql://user@host/name memory.db --thread 1 2",
    ],
    database=None,
    json="the counts and the differences",
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.argument("more", metavar="", nargs=-1)
@click.option("--thread", metavar="ID...", multiple=True, help="Threads to copy.  [default: all]")
@click.option("--allow", metavar="MODULE:CLASS", multiple=True, help="A class that the states contain.")
def import_checkpoints(
    source: str,
    target: str,
    more: tuple[str, ...],
    thread: tuple[str, ...],
    allow: tuple[str, ...],
    owner: str,
    as_json: bool,
) -> int:
    """Copy threads from another LangGraph checkpointer.

    FROM is an SQLite file or a URL, and is opened read-only. TO is a file or a URL, and is created if it does
    not exist.
    """
    if more and not thread:
        raise click.UsageError(f"unexpected arguments {' '.join(more)}", click.get_current_context())
    from langchain_threadmem.apps.transfer import import_checkpoints as importing

    with progress_bar("copy and compare") as update:
        imported = importing.import_checkpoints(
            source,
            target,
            owner=owner,
            threads=[*thread, *more],
            classes=[tuple(name.split(":")) for name in allow],
            progress=update,
        )
    if as_json:
        print_json(imported, ok=imported.ok)
        return 0 if imported.ok else 1
    print(
        f"{imported.threads} threads, {imported.checkpoints} checkpoints: {imported.copied} copied, "
        f"{imported.checkpoints - imported.copied} already copied, {imported.writes} pending writes copied, "
        f"{len(imported.differences) or 'no'} differences"
    )
    for difference in imported.differences:
        print(f"  {visible(difference)}")
    return 0 if imported.ok else 1


@command(
    "convert",
    examples=["convert memory.db postgresql://user@host/name", "convert memory.db folder --everybody"],
    database=None,
    json="the owners and the number of rows of each table",
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--everybody", is_flag=True, help="Copy the memories of all owners.")
def convert(source: str, target: str, everybody: bool, owner: str, as_json: bool) -> None:
    """Copy a memory into another database, or a folder.

    FROM and TO are databases, or folders of JSON: names without a suffix. FROM is opened read-only.
    """
    from langchain_threadmem.apps.transfer import convert as converting

    with progress_bar("convert") as update:
        copied = converting.convert(
            source,
            target,
            owner=None if everybody else owner,
            progress=lambda table, done, total: update(done, total, table),
        )
    if as_json:
        print_json(copied)
        return
    print(
        f"{', '.join(copied.owners)}: {copied.conversations} conversations, {copied.messages} messages, "
        f"{copied.items} items; the copy is the same"
    )


@command(
    "backup",
    examples=["backup monday.db --db memory.db", "backup monday --db postgresql://user@host/name"],
    owner=False,
    json="the copy, its size in bytes, and its problems",
)
@click.argument("target")
def backup(access: Access, target: str, as_json: bool) -> int:
    """Copy a database with the memories of all owners.

    The database may be in use. TARGET is a new file, or a folder of JSON: a name without a suffix.
    """
    from langchain_threadmem.apps.transfer import convert as converting
    from langchain_threadmem.maintenance.statistics import bytes_of
    from langchain_threadmem.storage.database import sqlite_file, without_password

    with progress_bar("backup") as update:
        problems = converting.backup(access.db, target, lambda table, done, total: update(done, total, table))
    file, target = sqlite_file(target), without_password(target)
    size = None if file is None else bytes_of(file)
    if as_json:
        print_json({"ok": not problems, "target": target, "bytes": size, "problems": problems})
        return 1 if problems else 0
    print(f"copied to {target!r}" + ("" if size is None else f": {size:,} bytes"))
    for problem in problems:
        print(f"  {visible(problem)}")
    return 1 if problems else 0


@command(
    "export",
    examples=[
        "export monday --db memory.db > monday.json",
        "export monday --out monday.md",
        "export --format html --out pages",
        "export --format fine-tuning --out train.jsonl",
        "export --format llm --out logs.db",
        "export --schema > schema.json",
    ],
    json="the format, the number of conversations and the files",
)
@click.argument("conversation", required=False)
@click.option(
    "--format",
    "name",
    metavar="NAME",
    help="json, jsonl, jsonl-messages, fine-tuning, markdown, text, mermaid, graphml, html, svg, "
    "openwebui, librechat or llm.  "
    "[default: the format of the suffix of --out, else json]",
)
@click.option(
    "--out",
    metavar="PATH",
    type=PATH,
    help="A file, or a folder for a file per conversation.  [default: the standard output]",
)
@click.option(
    "--schema", is_flag=True, help="Print the JSON Schema of the format json, and read no database."
)
def export(
    access: Access, conversation: str | None, name: str | None, out: Path | None, schema: bool, as_json: bool
) -> None:
    """Write a conversation, or all of them, to files.

    The formats are JSON, Markdown, text, pictures, and lines for fine-tuning.
    """
    from langchain_threadmem.formats.exporters import files, formats, json, llm

    if schema:
        print_json(json.json_schema())
        return
    format = _format(name, out)
    formats.check(format)
    suffix = formats.suffix_of(format)
    is_single = conversation is not None
    if out is None and as_json:
        raise InputError("--json lists the written files; pass a file or a folder with --out")
    is_database = out is not None and format == "llm" and out.suffix in _DATABASES
    if out is None and not is_single and suffix != _LINES:
        raise InputError(
            f"the format {format!r} requires a file for each conversation; pass a folder with --out, or one "
            "conversation"
        )
    with access.open(read_only=True) as system, progress_bar("export") as update:
        if conversation is None:
            names = system.conversations()
        else:
            names = [conversation_of(system, conversation).conversation_id]
        texts = _texts(system, names, format)
        if out is None:
            sys.stdout.writelines(texts)
            return
        written: list[Path] = []
        if out is not None and is_database:
            llm.write_database(out, list(texts))
            written.append(out)
        elif not out.is_dir() and (is_single or out.suffix == suffix == _LINES):
            files.write_texts(out, texts)
            written.append(out)
        else:
            files.make_folder(out)
            for file, text in zip(files.file_names(names, suffix), texts, strict=True):
                files.write_text(out / file, text)
                written.append(out / file)
                update(len(written), len(names))
    if as_json:
        print_json({"format": format, "conversations": len(names), "files": [str(file) for file in written]})
    else:
        files_at = f"{plural(len(written), 'file')} at {visible(str(out))}"
        print(f"{plural(len(names), 'conversation')} as {format}: {files_at}")


def _format(name: str | None, out: Path | None) -> str:
    from langchain_threadmem.formats.exporters import formats

    if name is not None:
        return name.replace("-", "_")
    suffix = out.suffix if out is not None and not out.is_dir() else ""
    if not suffix:
        return _FORMAT
    for format, known in formats.SUFFIXES.items():
        if known == suffix.lower():
            return format
    known_suffixes = ", ".join(dict.fromkeys(formats.SUFFIXES.values()))
    raise InputError(
        f"--out {str(out)!r} has the suffix of no format; the suffixes are {known_suffixes}: choose one of "
        "them, or name the format with --format"
    )


def _texts(system: MemorySystem, names: Sequence[str], format: str) -> Iterator[str]:
    """The texts of conversations, each of which ends in a line end or is empty."""
    for name in names:
        try:
            text = system.conversation(name).export(format)
        except ThreadMemError as error:
            raise type(error)(f"conversation {name!r} cannot be exported as {format}: {error}") from error
        yield text if text.endswith("\n") or not text else f"{text}\n"
