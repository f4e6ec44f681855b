"""The formats of chats that can be imported, and the choice of the format of a file."""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.formats.importers import datasets, messengers
from langchain_threadmem.formats.importers.apps import (
    assistants,
    chainlit,
    chatgpt,
    claude,
    google,
    lists,
    local,
    servers,
)
from langchain_threadmem.formats.importers.coding import (
    claude_code,
    codex,
    copilot,
    editors,
    gemini_cli,
    llm_logs,
    terminals,
    vscode,
)
from langchain_threadmem.formats.importers.libraries import (
    agents,
    frameworks,
    langgraph_history,
    memories,
    message_lists,
    openai_items,
)
from langchain_threadmem.formats.importers.others import other_database, other_file
from langchain_threadmem.formats.importers.paths import ImportPaths, InputFile, Inputs
from langchain_threadmem.formats.importers.source import Format, Source

_ITEMS = 20
"""The number of items of a file from which its format is detected."""
FORMATS = (
    chatgpt.FORMAT,
    claude.CLAUDE.format,
    assistants.DEEPSEEK.format,
    claude_code.FORMAT,
    servers.OPENWEBUI.format,
    assistants.GROK.format,
    openai_items.FORMAT,
    memories.AGENTS_SDK,
    servers.LIBRECHAT.format,
    codex.FORMAT,
    copilot.FORMAT,
    llm_logs.FORMAT,
    google.AI_STUDIO,
    google.TAKEOUT,
    local.SILLYTAVERN,
    local.LM_STUDIO.format,
    local.CHATBOX.format,
    *datasets.FORMATS,
    assistants.HUGGINGCHAT.format,
    gemini_cli.FORMAT,
    vscode.FORMAT,
    langgraph_history.FORMAT,
    *messengers.FORMATS,
    editors.AIDER,
    chainlit.CHAINLIT.format,
    *(program.format for program in terminals.PROGRAMS),
    *(program.format for program in (*lists.PROGRAMS, editors.CONTINUE, *frameworks.PROGRAMS)),
    *(program.format for program in (editors.CLINE, *agents.PROGRAMS)),
    agents.STRANDS,
    message_lists.LANGCHAIN,
    *memories.FORMATS,
    message_lists.MESSAGES,
    memories.SQL_HISTORY,
)
"""All formats; a file has the first format that fits."""


def check(name: str | None) -> None:
    """Check the name of a format.

    Raises:
        InputError: The name is unknown; the error lists the names.
    """
    if name is not None and name not in [format.name for format in FORMATS]:
        raise InputError(f"unknown format {name!r}; use one of {', '.join(f.name for f in FORMATS)}")


class Recognised(NamedTuple):
    """A file and its format."""

    file: InputFile
    format: Format


class ImportPlan:
    """The files of an import with their formats.

    Args:
        paths: Files, folders and archives.
        name: The name of the format of all files; by default detected.

    Raises:
        InputError: The name of the format is unknown; a given file has none of the formats; a folder or an
            archive has no file with one of the formats.
        PersistenceError: A file cannot be read.

    Attributes:
        inputs: The files.
        files: The recognised files.
        ignored: The paths of files in folders and archives that have none of the formats.
        shared: For each format, the values that its files share.
    """

    def __init__(self, paths: ImportPaths, name: str | None = None) -> None:
        check(name)
        self.inputs = Inputs(paths)
        self.files: list[Recognised] = []
        self.ignored = [*self.inputs.unreadable]
        self.shared: dict[str, dict[str, Any]] = {format.name: {} for format in FORMATS}
        advice: dict[str, None] = {}
        try:
            for file in self.inputs.files:
                found = self._recognise(file, name, advice)
                if found is not None:
                    self.files.append(Recognised(file, found))
            if not self.files and not advice and self.ignored:
                raise _unknown(self.ignored[0])
            if not self.files:
                nothing = f"{str(paths)!r} has no files of chats: JSON, JSON Lines, text, SQLite or ZIP"
                raise InputError("; ".join(islice(advice, 3)) or nothing)
        except BaseException:
            self.close()
            raise

    def open(self, recognised: Recognised) -> Source:
        """Open a recognised file."""
        return Source(recognised.file, self.inputs, self.shared[recognised.format.name])

    def close(self) -> None:
        """Delete temporary files."""
        self.inputs.close()

    def _recognise(self, file: InputFile, name: str | None, advice: dict[str, None]) -> Format | None:
        """The format of a file; `None` for a file of a folder or an archive without a format."""
        try:
            source = Source(file, self.inputs)
        except PersistenceError:
            if file.is_given:
                raise
            self.ignored.append(file.label)
            return None
        try:
            values = _first_values(source, is_strict=file.is_given)
            given = next((format for format in FORMATS if format.name == name), None)
            if given is not None and not given.can_be(source):
                raise InputError(f"{file.label!r} is not {given.contents}")
            found = given or next((format for format in FORMATS if format.fits(source, values)), None)
            if found is not None and found.collect is not None:
                source.shared = self.shared[found.name]
                found.collect(source, values)
        except InputError:
            if file.is_given:
                raise
            found = None
        finally:
            source.close()
        if found is None:
            other = other_database(source.tables) or other_file(file.path.name, source.beginning, values)
            if other is None and file.is_given:
                raise _unknown(file.label)
            if other is not None:
                advice[f"{file.label!r} has {other}"] = None
            elif source.beginning or source.is_database:  # A picture without a suffix is no chat.
                self.ignored.append(file.label)
        return found


def _first_values(source: Source, *, is_strict: bool) -> list[Any]:
    """The values of the first items that can be read, up to the place of a damage."""
    values: list[Any] = []
    if source.is_database or source.beginning.lstrip()[:1] not in ("{", "[", ""):
        return values
    try:
        read = islice(source.items(), _ITEMS)
        values += (item.value for item in read if not isinstance(item.value, InputError))
    except (InputError, PersistenceError) as error:
        if not values and is_strict:
            raise type(error)(f"{source.label}: {error}") from error
    return values


def _unknown(label: str) -> InputError:
    names = ", ".join(format.name for format in FORMATS)
    return InputError(f"{label!r} has none of the formats that can be imported: {names}")
