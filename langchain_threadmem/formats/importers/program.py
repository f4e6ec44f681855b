"""Programs whose conversations are lists of messages: what distinguishes them, and what they share.

A `Program` tells how a document is recognised, where its conversations and messages are, and how the parts of
a message are read. Everything else is the same for all: ids, parents, roles, names, titles, times and models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import files_of, parts_of
from langchain_threadmem.formats.importers.chats import Bad, Chat, Chats
from langchain_threadmem.formats.importers.content_parts import THOUGHTS, Part, Reasoning, ToolResult
from langchain_threadmem.formats.importers.said import ASSISTANT, ROLES, TOOL, Said, chat_of, system_prompt
from langchain_threadmem.formats.importers.source import FAULTS, Format, Source, checked, problem_of
from langchain_threadmem.messages.ids import chained_id
from langchain_threadmem.messages.records import as_object

_KEYS = ("id", "uuid", "messageId", "_id", "message_id", "response_id")
_NAMES = ("id", "chatID", "sessionId", "chatId", "conversationId", "uuid")
_TIMES = (
    *("createdAt", "created_at", "created", "ts", "timestamp", "date", "create_time", "inserted_at"),
    "created_date",
)
_MODELS = ("model", "originLLM", "modelId", "modelName", "model_name")
_LIST = "the list of messages"
ReadParts = Callable[[fields.Record], Iterable[Part]]


class ChatRecord(NamedTuple):
    """A conversation of a document.

    Attributes:
        record: The values of the conversation.
        messages: Its messages.
        name: Its name, if the record has none.
        others: Other arguments of `chat_of`.
        system: The instructions before its messages.
    """

    record: fields.Record
    messages: Iterable[Any]
    name: str | None = None
    others: Mapping[str, Any] = {}
    system: Any = None


def itself(value: fields.Record) -> Iterator[ChatRecord]:
    yield ChatRecord(value, value.get("messages") or [])


def ready(message: fields.Record) -> Iterable[Part]:
    """The parts of a message that `Program.conversations` has read."""
    found: Iterable[Part] = message["parts"]
    return found


def all_are(value: Any, is_message: Callable[[Any], bool], name: str = "messages") -> bool:
    """Whether a value is a message, a list of messages, or an object with such a list in a field."""
    listed = fields.at(value, name) if isinstance(value, dict) else value
    return all(map(is_message, listed)) and bool(listed) if isinstance(listed, list) else is_message(value)


def standard_parts(message: fields.Record) -> Iterator[Part]:
    """The parts of a message with the fields of OpenAI, and of programs that follow them."""
    for name in THOUGHTS:
        if isinstance(message.get(name), str) and message[name].strip():
            yield Reasoning(message[name])
    content = message.get("content")
    id = fields.text(message, "tool_call_id", "toolCallId")
    if id is not None and ROLES.get(str(_role_in(message)).lower()) == TOOL:
        output = message.get("text") if content is None else content
        yield ToolResult(output, id, fields.text(message, "name"))
    else:
        yield from parts_of(message.get("text") if content in (None, "") else content)
    for call in (one for name in ("tool_calls", "toolCalls") for one in message.get(name) or ()):
        yield from parts_of({**call, "type": "tool_call"})
    for name in ("files", "attachments", "experimental_attachments"):
        yield from files_of(message.get(name))


class Program(NamedTuple):
    """A program.

    Attributes:
        name: The name of the format.
        contents: The contents of its files in a few words.
        fits: Whether a JSON value is a document, conversation or message of the program.
        parts: Reads the parts of a message.
        conversations: The conversations of a document.
        is_message: Whether the items of a file may be messages of one conversation.
        names: The fields of which a conversation must have one as its name; by default a conversation without
            a name has that of the file.
        parents: The fields with the key of the parent; a message without one continues the message before it.
        kept: The fields of a message that are kept beside its content.
        asides: The fields of messages that are asides.
        is_database: Whether an SQLite database is one of the program.
        rows: The values of a database, for `conversations`.
    """

    name: str
    contents: str
    fits: Callable[[Any], bool]
    parts: ReadParts = standard_parts
    conversations: Callable[[fields.Record], Iterable[ChatRecord]] = itself
    is_message: Callable[[Any], bool] = lambda value: False
    names: Sequence[str] = ()
    parents: Sequence[str] = ()
    kept: Sequence[str] = ()
    asides: Sequence[str] = ()
    is_database: Callable[[Source], bool] | None = None
    rows: Callable[[Source], Iterable[fields.Record]] | None = None

    @property
    def format(self) -> Format:
        """The format of the files."""
        return Format(self.name, self.contents, self.chats, self.fits, is_database=self.is_database)

    def chats(self, source: Source) -> Chats:
        """The conversations of a file."""
        if source.is_database and self.rows is not None:
            for number, value in enumerate(self.rows(source), 1):
                yield from self._all(value, source, f"conversation {number}")
            return
        messages: list[Any] = []
        for item in source.items():
            value = item.value
            if isinstance(value, InputError):
                yield Bad(str(value))
            elif self.is_message(value):
                messages.append(value)
            elif isinstance(value, list):
                yield from self._all({"messages": value}, source, item.where)
            elif isinstance(value, dict):
                yield from self._all(value, source, item.where)
            else:
                yield Bad(f"{item.where} is {value!r:.80}, not a conversation")
        if messages:
            yield from self._all({**_of_folder(source), "messages": messages}, source, _LIST)

    def _all(self, value: fields.Record, source: Source, position: str) -> Chats:
        try:
            found = [*self.conversations(value)]
        except FAULTS as error:
            yield Bad(problem_of(error, position))
            return
        for number, conversation in enumerate(found, 1):
            where = position if len(found) == 1 else f"conversation {number} of {position}"
            yield from checked(where, self._chat, conversation, source, where)

    def _chat(self, conversation: ChatRecord, source: Source, position: str) -> Chat:
        record = conversation.record
        name = conversation.name or fields.id_in(record, *(self.names or _NAMES))
        if name is None and self.names:
            raise InputError(f"{position} has no {self.names[0]!r}; it is not a conversation of {self.name}")
        said = system_prompt(conversation.system) + self.linked(conversation.messages, position)
        if name is None:  # The messages of a file, or the only conversation of a file, have its name.
            is_one = source.read == 1 or position == _LIST
            name = source.name.removesuffix(".conversation")
            name = name if is_one else f"{name}-{source.read}"
        return chat_of(position, name, said, record, **conversation.others)

    def linked(self, messages: Iterable[Any], position: str) -> list[Said]:
        """The messages, each of which continues its parent, or the message before it."""
        said: list[Said] = []
        keys: set[str] = set()
        thoughts: list[Part] = []
        for number, item in enumerate(messages, 1):
            where = f"{position}, message {number}"
            message = as_object(item, where)
            if str(_role_in(message)).lower() == "thinking":
                thoughts += [Reasoning(one) if isinstance(one, str) else one for one in self.parts(message)]
                continue
            one = self.message(message, said[-1].key if said else None, where)
            if one.key in keys and not self.parents:
                one.key = chained_id("import-", one.parent, message)
            if one.role == ASSISTANT and thoughts:
                one.parts, thoughts = [*thoughts, *one.parts], []
            keys.add(one.key)
            said.append(one)
        return said

    def message(self, message: fields.Record, previous: str | None, position: str) -> Said:
        """A message that continues its parent, or else another message.

        Raises:
            InputError: The message has no role.
        """
        value = _role_in(message)
        if value is None:
            raise InputError(f"{position} has no role")
        role = ROLES.get(str(value).lower(), str(value))
        parts = [*self.parts(message)]
        if role != ASSISTANT and parts and all(isinstance(part, ToolResult) for part in parts):
            role = TOOL
        name = fields.text(message, "name", "source")
        key = fields.id_in(message, *_KEYS)
        field = next((one for one in self.parents if one in message), None)
        parent = fields.id_in(message, field) if field else previous
        time = fields.time(message, position, *_TIMES)
        return Said(
            key or chained_id("import-", previous, message),
            parent or previous if key is None else parent,
            role,
            parts,
            fields.time(message.get("metadata"), position, *_TIMES) if time is None else time,
            fields.text(message, *_MODELS) if role == ASSISTANT else None,
            name if name is not None and name.lower() not in ROLES else None,
            any(message.get(one) for one in self.asides),
            fields.kept(error=message.get("isError") or message.get("error"), starred=message.get("starred"))
            | fields.filled(message, self.kept),
        )


def _of_folder(source: Source) -> fields.Record:
    """The record of a conversation whose messages are in a file of their own."""
    thread = source.beside("thread.json")
    return (
        {**thread, "created": thread.get("created_at") or thread.get("created")}
        if isinstance(thread, dict)
        else {}
    )


def _role_in(message: fields.Record) -> Any:
    role = next((message[name] for name in ("role", "_role", "Role", "from") if message.get(name)), None)
    if isinstance(role, dict):
        role = role.get("Label") or role.get("label") or role.get("value")
    if role is None:
        kind = str(message.get("type") or "")
        role = kind if kind.lower() in ROLES else message.get("sender")
    return role
