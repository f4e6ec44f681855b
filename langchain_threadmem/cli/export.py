"""The command `export`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_threadmem.cli.arguments import (
    Commands,
    add_command,
    conversation_of,
    open_memory,
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


def register(commands: Commands) -> None:
    export = add_command(
        commands,
        "export",
        _export,
        "write a conversation, or all of them, as JSON, Markdown, lines for fine-tuning and others",
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
    export.add_argument(
        "conversation", metavar="CONVERSATION", nargs="?", help="the conversation; default: all"
    )
    export.add_argument(
        "--format",
        metavar="NAME",
        help="json, jsonl, jsonl-messages, fine-tuning, markdown, text, mermaid, graphml, html, svg, "
        "openwebui, librechat or llm; default: the format of the suffix of --out, else json",
    )
    export.add_argument(
        "--out",
        metavar="PATH",
        type=Path,
        help="a file, or a folder for a file per conversation; default: the standard output",
    )
    export.add_argument(
        "--schema", action="store_true", help="print the JSON Schema of the format json, and read no database"
    )


def _export(options: argparse.Namespace) -> None:
    from langchain_threadmem.export import files, formats, json, llm

    if options.schema:
        print_json(json.json_schema())
        return
    format, out = _format(options.format, options.out), options.out
    formats.check(format)
    suffix = formats.suffix_of(format)
    is_single = options.conversation is not None
    if out is None and options.json:
        raise InputError("--json lists the written files; pass a file or a folder with --out")
    is_database = out is not None and format == "llm" and out.suffix in _DATABASES
    if out is None and not is_single and suffix != _LINES:
        raise InputError(
            f"the format {format!r} requires a file for each conversation; pass a folder with --out, or one "
            "conversation"
        )
    with open_memory(options, read_only=True) as system, progress_bar("export") as update:
        if is_single:
            conversation_of(system, options.conversation)
        names = [options.conversation] if is_single else system.conversations()
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
    if options.json:
        print_json({"format": format, "conversations": len(names), "files": [str(file) for file in written]})
    else:
        files_at = f"{plural(len(written), 'file')} at {visible(str(out))}"
        print(f"{plural(len(names), 'conversation')} as {format}: {files_at}")


def _format(name: str | None, out: Path | None) -> str:
    from langchain_threadmem.export import formats

    if name is not None:
        return name.replace("-", "_")
    suffix = out.suffix if out is not None else ""
    return next(
        (format for format, known_suffix in formats.SUFFIXES.items() if known_suffix == suffix), _FORMAT
    )


def _texts(system: MemorySystem, names: Sequence[str], format: str) -> Iterator[str]:
    """The texts of conversations, each of which ends in a line end or is empty."""
    for name in names:
        try:
            text = system.conversation(name).export(format)
        except ThreadMemError as error:
            raise type(error)(f"conversation {name!r} cannot be exported as {format}: {error}") from error
        yield text if text.endswith("\n") or not text else f"{text}\n"
