"""Programs whose conversations are plain lists of messages: what distinguishes them, and what they share.

A `Program` tells how a document is recognised, where its conversations and messages are, and how a message
is read. Everything else is the same for all: names, titles, times, models, calls with their results, files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers.blocks import files_of, parts_of
from langchain_threadmem.formats.importers.chats import (
    Bad,
    Chat,
    Chats,
    chat_of,
    kept,
    local_time,
    seconds,
    text_or_none,
)
from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.said import (
    ASSISTANT,
    SYSTEM,
    TOOL,
    USER,
    Part,
    Reasoning,
    Said,
    ToolResult,
    entries_of,
)
from langchain_threadmem.formats.importers.source import FAULTS, Format, Source, problem_of
from langchain_threadmem.messages.ids import chained_id

_ROLES = {
    **dict.fromkeys(("user", "human", "you", "usermessage"), USER),
    **dict.fromkeys(("assistant", "ai", "bot", "model", "assistantmessage", "chatbot"), ASSISTANT),
    **dict.fromkeys(("system", "developer", "systemmessage"), SYSTEM),
    **dict.fromkeys(("tool", "function", "functionexecutionresultmessage"), TOOL),
}
_KEYS = ("id", "uuid", "messageId", "_id")
_NAMES = ("id", "chatID", "sessionId", "chatId", "conversationId")
_TITLES = ("topic", "userTitle", "autoTitle", "chatTitle", "title", "name")
_TIMES = ("createdAt", "created_at", "created", "ts", "timestamp", "date")
_MODELS = ("model", "originLLM", "modelId", "modelName")
_MODELS_OF_CHATS = ("model", "modelId")
ReadParts = Callable[[Record], Iterable[Part]]


class ChatRecord(NamedTuple):
    """A conversation of a document.

    Attributes:
        record: The values of the conversation.
        messages: Its messages.
        name: Its name, if the record has none.
    """

    record: Record
    messages: Sequence[Any]
    name: str | None = None


class Program(NamedTuple):
    """A program.

    Attributes:
        name: The name of the format.
        contents: The contents of its files in a few words.
        fits: Whether a JSON value is a document, conversation or message of the program.
        conversations: The conversations of a document.
        parts: Reads the parts of a message.
        is_message: Whether the items of a file may be messages of one conversation.
        said: Reads the messages of a conversation that has siblings.
        is_database: Whether an SQLite database is one of the program.
        rows: The conversations of a database.
    """

    name: str
    contents: str
    fits: Callable[[Any], bool]
    conversations: Callable[[Record], Iterable[ChatRecord]]
    parts: ReadParts
    is_message: Callable[[Any], bool] = lambda value: False
    said: Callable[[ChatRecord, ReadParts, str], list[Said]] | None = None
    is_database: Callable[[Source], bool] | None = None
    rows: Callable[[Source], Iterable[ChatRecord]] | None = None

    @property
    def format(self) -> Format:
        """The format of the files."""
        return Format(self.name, self.contents, self.chats, self.fits, is_database=self.is_database)

    def chats(self, source: Source) -> Chats:
        """The conversations of a file."""
        if source.is_database and self.rows is not None:
            for conversation in self.rows(source):
                yield from self._chats(conversation, source, f"conversation {conversation.name!r}")
            return
        messages: list[Any] = []
        for item in source.items():
            value = item.value
            if isinstance(value, InputError):
                yield Bad(str(value))
            elif self.is_message(value):
                messages.append(value)
            elif isinstance(value, list):
                yield from self._chats(ChatRecord({}, value), source, item.where)
            elif isinstance(value, dict):
                try:
                    found = [*self.conversations(value)]
                except FAULTS as error:
                    yield Bad(problem_of(error, item.where))
                    continue
                for number, conversation in enumerate(found, 1):
                    where = item.where if len(found) == 1 else f"conversation {number} of {item.where}"
                    yield from self._chats(conversation, source, where)
            else:
                yield Bad(f"{item.where} is {value!r:.80}, not a conversation")
        if messages:
            for conversation in self.conversations({**_of_folder(source), "messages": messages}):
                yield from self._chats(conversation, source, "the list of messages")

    def _chats(self, conversation: ChatRecord, source: Source, position: str) -> Chats:
        try:
            yield self._chat(conversation, source, position)
        except FAULTS as error:
            yield Bad(problem_of(error, position))

    def _chat(self, conversation: ChatRecord, source: Source, position: str) -> Chat:
        record = conversation.record
        name = conversation.name or first(record, _NAMES) or source.name
        read = self.said or _chain
        said = read(conversation, self.parts, position)
        time = next((record[field] for field in _TIMES if record.get(field)), None)
        return chat_of(
            position,
            name,
            entries_of(said),
            title=first(record, _TITLES),
            created=seconds(time, position),
            metadata=kept(
                model=first(record, _MODELS_OF_CHATS) or next((one.model for one in said if one.model), None),
                folder=first(record, ("folderID", "folderId", "workspaceDirectory")),
                starred=bool(record.get("starred") or record.get("isStarred")),
                pinned=bool(record.get("pinned") or record.get("isPinned")),
                tags=record.get("tags"),
            ),
        )


def _of_folder(source: Source) -> Record:
    """The record of a conversation whose messages are in a file of their own."""
    thread = source.beside("thread.json")
    return (
        {**thread, "created": thread.get("created_at") or thread.get("created")}
        if isinstance(thread, dict)
        else {}
    )


def first(record: Mapping[str, Any], names: Iterable[str]) -> str | None:
    return next((text for name in names if (text := text_or_none(record.get(name)))), None)


def _chain(conversation: ChatRecord, read: ReadParts, position: str) -> list[Said]:
    """The messages of a list, each of which continues the message before it."""
    said: list[Said] = []
    thoughts: list[Part] = []
    for number, item in enumerate(conversation.messages, 1):
        if not isinstance(item, dict):
            raise InputError(f"{position} has the message {item!r:.80}, which is no JSON object")
        if str(_role_in(item)).lower() == "thinking":
            thoughts += [Reasoning(part) if isinstance(part, str) else part for part in read(item)]
            continue
        one = said_of(item, said[-1].key if said else None, read, f"{position}, message {number}")
        if any(before.key == one.key for before in said):
            one.key = chained_id("import-", one.parent, item)
        if one.role == ASSISTANT and thoughts:
            one.parts, thoughts = [*thoughts, *one.parts], []
        said.append(one)
    return said


def said_of(message: Record, previous: str | None, read: ReadParts, position: str) -> Said:
    """A message that continues another message.

    Raises:
        InputError: The message has no role.
    """
    value = _role_in(message)
    role = _ROLES.get(str(value).lower(), None if value is None else str(value))
    if role is None:
        raise InputError(f"{position} has no role")
    parts = [*read(message)]
    if any(isinstance(part, ToolResult) for part in parts) and role != ASSISTANT:
        role = TOOL if all(isinstance(part, ToolResult) for part in parts) else role
    name = text_or_none(message.get("name")) or text_or_none(message.get("source"))
    return Said(
        first(message, _KEYS) or chained_id("import-", previous, message),
        previous,
        role,
        parts,
        _time(message, position),
        first(message, _MODELS) if role == ASSISTANT else None,
        name if name is not None and name.lower() not in _ROLES else None,
        extra=kept(error=message.get("isError") or message.get("error"), starred=message.get("starred")),
    )


def _role_in(message: Record) -> Any:
    role = next((message[name] for name in ("role", "_role", "Role", "from") if message.get(name)), None)
    if isinstance(role, dict):
        role = role.get("Label") or role.get("label") or role.get("value")
    if role is None:
        kind = str(message.get("type") or "")
        role = kind if kind.lower() in _ROLES else message.get("sender")
    return role


def _time(message: Record, position: str) -> float | None:
    metadata = message.get("metadata")
    records = (message, metadata) if isinstance(metadata, dict) else (message,)
    value = next((one[name] for one in records for name in _TIMES if one.get(name)), None)
    time = seconds(value, position)
    return local_time(value) if time is None and isinstance(value, str) else time


def standard_parts(message: Record) -> Iterator[Part]:
    """The parts of a message with the fields of OpenAI, and of programs that follow them."""
    for name in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(message.get(name), str) and message[name].strip():
            yield Reasoning(message[name])
    is_result = str(_role_in(message)).lower() in ("tool", "function")
    id = first(message, ("tool_call_id", "toolCallId"))
    if is_result and id is not None:
        content = message.get("content")
        yield ToolResult(
            content if content is not None else message.get("text"), id, text_or_none(message.get("name"))
        )
    else:
        content = message.get("content")
        yield from parts_of(content if content not in (None, "") else message.get("text"))
    for name in ("tool_calls", "toolCalls"):
        for call in message.get(name) or ():
            yield from parts_of({**call, "type": "tool_call"})
    for name in ("files", "attachments", "experimental_attachments"):
        yield from files_of(message.get(name))


def itself(value: Record) -> Iterator[ChatRecord]:
    yield ChatRecord(value, value.get("messages") or [])
