"""The command `export`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from langchain_threadmem.apps.cli.arguments import (
    PATH,
    Access,
    command,
    conversation_of,
    print_json,
    progress_bar,
)
from langchain_threadmem.errors import InputError, ThreadMemError
from langchain_threadmem.messages.text import plural, visible

if TYPE_CHECKING:
    from langchain_threadmem.memory_system import MemorySystem

_FORMAT = "json"
"""The format if neither `--format` nor the suffix of `--out` is a format."""
_DATABASES = (".db", ".sqlite", ".sqlite3")
"""The suffixes of databases, to which the format `llm` adds all conversations."""
_LINES = ".jsonl"
"""The suffix of formats in which one file may contain several conversations."""


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
