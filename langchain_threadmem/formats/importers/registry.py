"""The formats of chats that can be imported, and the choice of the format of a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.formats.importers.apps import (
    ai_studio,
    big_agi,
    chatbox,
    chatgpt,
    cherry,
    claude,
    deepseek,
    grok,
    huggingchat,
    jan,
    librechat,
    lm_studio,
    mistral,
    nextchat,
    openwebui,
    takeout,
    typingmind,
)
from langchain_threadmem.formats.importers.chats import Chats
from langchain_threadmem.formats.importers.coding import (
    aider,
    claude_code,
    cline,
    codex,
    continue_dev,
    gemini_cli,
    llm_logs,
    vscode,
)
from langchain_threadmem.formats.importers.datasets import oasst, sharegpt, ultrachat
from langchain_threadmem.formats.importers.groups import discord, sillytavern, slack, telegram, whatsapp_chat
from langchain_threadmem.formats.importers.libraries import (
    agents_sdk,
    ai_sdk,
    autogen,
    haystack,
    langgraph_history,
    llamabot,
    llamaindex,
    memforest,
    message_lists,
    openai_items,
    semantic_kernel,
    sql_history,
)
from langchain_threadmem.formats.importers.others import other_database, other_file
from langchain_threadmem.formats.importers.paths import ImportPaths, InputFile, Inputs
from langchain_threadmem.formats.importers.source import FAULTS, Source

_ITEMS = 20
"""The number of items of a file from which its format is detected."""
_PROGRAMS = (
    nextchat.PROGRAM,
    big_agi.PROGRAM,
    jan.PROGRAM,
    typingmind.PROGRAM,
    continue_dev.PROGRAM,
    cherry.PROGRAM,
    llamaindex.PROGRAM,
    semantic_kernel.PROGRAM,
    autogen.PROGRAM,
    haystack.PROGRAM,
    mistral.PROGRAM,
    ai_sdk.PROGRAM,
    cline.PROGRAM,
)


class Format(NamedTuple):
    """A format.

    A file has the format if all values of its first 20 items that can be read fit. At least one of `is_item`,
    `is_log`, `is_text` and `is_database` is set.

    Attributes:
        name: The name of the format in arguments.
        contents: The contents of the files in a few words.
        chats: Reads the conversations of a file.
        is_item: Whether a JSON item has the format: a conversation, or a message.
        is_log: Whether the values of the first items have the format, if they are of several kinds.
        is_text: Whether the beginning of a text has the format.
        is_database: Whether an SQLite database has the format.
        collect: Keeps values of the first items in `Source.shared` before any file of the import is read.
    """

    name: str
    contents: str
    chats: Callable[[Source], Chats]
    is_item: Callable[[Any], bool] | None = None
    is_log: Callable[[Sequence[Any]], bool] | None = None
    is_text: Callable[[str], bool] | None = None
    is_database: Callable[[Source], bool] | None = None
    collect: Callable[[Source, Sequence[Any]], object] | None = None

    def fits(self, source: Source, values: Sequence[Any]) -> bool:
        """Whether a file has the format, given the values of its first items."""
        try:
            return self._fits(source, values)
        except FAULTS:  # A value may have any type.
            return False

    def _fits(self, source: Source, values: Sequence[Any]) -> bool:
        if source.is_database:
            return self.is_database is not None and self.is_database(source)
        if self.is_text is not None:
            return self.is_text(source.beginning)
        if not values:
            return False
        if self.is_log is not None and self.is_log(values):
            return True
        return self.is_item is not None and all(map(self.is_item, values))

    def can_be(self, source: Source) -> bool:
        """Whether a file is of the type of the format: a database with its tables, JSON, or text."""
        if source.is_database:
            return self.is_database is not None and self.is_database(source)
        if self.is_text is not None and self.is_text(source.beginning):
            return True
        return self.is_item is not None or self.is_log is not None


FORMATS = (
    Format("chatgpt", "conversations.json of ChatGPT's export", chatgpt.chats, chatgpt.is_item),
    Format("claude", "conversations.json of Claude's export", claude.chats, claude.is_item),
    Format("deepseek", "conversations.json of DeepSeek's export", deepseek.chats, deepseek.is_item),
    Format(
        "claude_code",
        "a session of Claude Code",
        claude_code.chats,
        is_log=claude_code.is_log,
        collect=claude_code.collect,
    ),
    Format(
        "openwebui",
        "Open WebUI's export, or its database",
        openwebui.chats,
        openwebui.is_item,
        is_database=openwebui.is_database,
    ),
    Format("grok", "prod-grok-backend.json of Grok's export", grok.chats, grok.is_item),
    Format(
        "openai_items",
        "items of OpenAI's Responses or Conversations",
        openai_items.chats,
        is_log=openai_items.is_log,
    ),
    Format(
        "agents_sdk",
        "a database of sessions of the OpenAI Agents SDK",
        agents_sdk.chats,
        is_database=agents_sdk.is_database,
    ),
    Format("librechat", "a conversation of LibreChat", librechat.chats, librechat.is_item),
    Format("codex", "a session of Codex", codex.chats, is_log=codex.is_log),
    Format("llm", "logs.db of the program llm", llm_logs.chats, is_database=llm_logs.is_database),
    Format(
        "ai_studio", "a prompt of AI Studio", ai_studio.chats, ai_studio.is_item, collect=ai_studio.collect
    ),
    Format("takeout", "MyActivity.json of Google Takeout", takeout.chats, is_log=takeout.is_log),
    Format("sillytavern", "a chat of SillyTavern", sillytavern.chats, is_log=sillytavern.is_log),
    Format("lm_studio", "a conversation of LM Studio", lm_studio.chats, lm_studio.is_item),
    Format("chatbox", "Chatbox's export", chatbox.chats, chatbox.is_item),
    Format("oasst", "trees or messages of Open Assistant", oasst.chats, oasst.is_item),
    Format("sharegpt", "conversations of ShareGPT", sharegpt.chats, sharegpt.is_item),
    Format("ultrachat", "conversations of UltraChat", ultrachat.chats, ultrachat.is_item),
    Format("huggingchat", "conversations.json of HuggingChat", huggingchat.chats, huggingchat.is_item),
    Format("gemini_cli", "a session of Gemini CLI", gemini_cli.chats, is_log=gemini_cli.is_log),
    Format("vscode", "a chat session of VS Code", vscode.chats, is_log=vscode.is_log),
    Format(
        "langgraph", "the history of a LangGraph thread", langgraph_history.chats, langgraph_history.is_item
    ),
    Format("discord", "a channel of DiscordChatExporter", discord.chats, discord.is_item),
    Format("telegram", "result.json of Telegram", telegram.chats, telegram.is_item),
    Format("slack", "the folder of Slack's export", slack.chats, slack.is_item),
    Format("whatsapp_chat", "a chat of WhatsApp as text", whatsapp_chat.chats, is_text=whatsapp_chat.is_text),
    Format("aider", ".aider.chat.history.md", aider.chats, is_text=aider.is_text),
    *(Format(one.name, one.contents, one.chats, one.fits, is_database=one.is_database) for one in _PROGRAMS),
    Format("langchain", "LangChain's messages_to_dict", message_lists.chats, message_lists.is_langchain_item),
    Format(
        "llamabot", "a document with nodes, of llamabot or ChatMemory.save", llamabot.chats, llamabot.is_item
    ),
    Format(
        "memforest",
        "MemForest's database or memory_units.json",
        memforest.chats,
        memforest.is_item,
        is_database=memforest.is_database,
    ),
    Format("messages", "messages of OpenAI or Anthropic", message_lists.chats, message_lists.is_item),
    Format(
        "sql_history",
        "an SQLite database of SQLChatMessageHistory",
        sql_history.chats,
        is_database=sql_history.is_database,
    ),
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
        self.ignored: list[str] = []
        self.shared: dict[str, dict[str, Any]] = {format.name: {} for format in FORMATS}
        advice: dict[str, None] = {}
        self.ignored += self.inputs.unreadable
        try:
            for file in self.inputs.files:
                found = self._recognise(file, name, advice)
                if found is not None:
                    self.files.append(Recognised(file, found))
            if not self.files:
                raise _nothing(paths, self.ignored, advice)
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
            if name is not None:
                found: Format | None = next(format for format in FORMATS if format.name == name)
                assert found is not None  # The name was checked.
                if not found.can_be(source):
                    raise InputError(f"{file.label!r} is not {found.contents}")
            else:
                found = next((format for format in FORMATS if format.fits(source, values)), None)
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


def _nothing(
    paths: ImportPaths, ignored: Sequence[str], advice: Sequence[str] | dict[str, None]
) -> InputError:
    if advice:
        return InputError("; ".join(islice(advice, 3)))
    if not ignored:
        return InputError(f"{str(paths)!r} has no files of chats: JSON, JSON Lines, text, SQLite or ZIP")
    return _unknown(ignored[0])
