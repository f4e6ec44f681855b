"""Messages of an export as parts: text, reasoning, calls, results, files; and the messages made of them.

Programs store a message with its tool calls, their results and its text as one record, or as several. A
`Said` is one record. `entries_of` divides the records of a conversation into messages: an answer with tool
calls becomes a message with the calls, a message for each result, and a message with the text that follows.

The content of each message is text, which every provider accepts. Other parts are kept beside it, in
`additional_kwargs`: `reasoning_content`, `files` (references), `blocks` (values of an unknown type) and
`open_calls` (calls without a result, which providers refuse). A message without text is an aside.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.chats import Chat, Entry
from langchain_threadmem.formats.importers.content_parts import (
    File,
    Other,
    Part,
    Reasoning,
    ToolResult,
    ToolUse,
    arguments_of,
    named_id,
    output_text,
    reference,
    tool_name,
)
from langchain_threadmem.messages.ids import chained_id
from langchain_threadmem.storage.schema import State

USER, ASSISTANT, SYSTEM, TOOL = "user", "assistant", "system", "tool"
ROLES = {
    **dict.fromkeys(("user", "human", "you", "usermessage", "prompter", "request"), USER),
    **dict.fromkeys(("assistant", "ai", "bot", "model", "assistantmessage", "chatbot"), ASSISTANT),
    **dict.fromkeys(("gpt", "chatgpt", "bing", "bard", "gemini", "function_call"), ASSISTANT),
    **dict.fromkeys(("system", "developer", "systemmessage"), SYSTEM),
    **dict.fromkeys(("tool", "function", "functionexecutionresultmessage", "observation"), TOOL),
    **dict.fromkeys(("function_response", "function-response"), TOOL),
}
"""The roles by the names that programs have for them, in lower case."""
_TITLES = (
    *("topic", "userTitle", "autoTitle", "chatTitle", "customTitle", "computedTitle", "threadName", "title"),
    "name",
)
_TIMES = (
    *("createdAt", "created_at", "create_time", "created", "inserted_at", "creationDate", "startTime", "ts"),
    *("timestamp", "date", "create_date"),
)
_MODELS = ("model", "modelId", "model_type")
_ENDS = (
    *("current_leaf_message_uuid", "leaf_response_id", "current_message_id", "currentId"),
    "activeMessageId",
)


@dataclass(slots=True)
class Said:
    """A message of an export.

    Attributes:
        key: Its id in the export, unique in the conversation.
        parent: The `key` of the message before it.
        role: "user", "assistant", "system", "tool", or another role.
        parts: Its parts in their order.
        time: Its time, in seconds since 1970.
        model: The name of the model that wrote it.
        name: The name of the person or tool.
        is_aside: Whether it is hidden from people, or was written by the program. System messages are asides.
        extra: Further values for `additional_kwargs`.
        id: The id of the message, if it differs from `key`.
        separator: The text between two texts.
    """

    key: str
    parent: str | None
    role: str
    parts: Sequence[Part]
    time: float | None = None
    model: str | None = None
    name: str | None = None
    is_aside: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    separator: str = "\n\n"


def system_prompt(content: Any) -> list[Said]:
    """The instructions of a conversation as its first record, if there are any.

    Example:
        >>> [(one.role, one.parts) for one in system_prompt("Be brief.")], system_prompt(None)
        ([('system', ['Be brief.'])], [])
    """
    parts = [content] if isinstance(content, str) and content.strip() else content
    if not isinstance(parts, list) or not parts:
        return []
    return [Said(chained_id("import-", None, [SYSTEM, content]), None, SYSTEM, parts)]


def entries_of(said: Sequence[Said]) -> list[Entry]:
    """The messages of the records of a conversation.

    The last message of a record has its key, to which other records refer; the messages before it have the
    key with a number.

    Args:
        said: The records; a result after its call.

    Example:
        >>> answer = [ToolUse("add", {"a": 1}, "c1"), ToolResult("2", "c1"), "It is 2."]
        >>> question = Said("m1", None, "user", ["1 + 1?"])
        >>> entries = entries_of([question, Said("m2", "m1", "assistant", answer)])
        >>> [(entry.key, entry.parent, entry.make().type) for entry in entries]
        [('m1', None, 'human'), ('m2-1', 'm1', 'ai'), ('m2-2', 'm2-1', 'tool'), ('m2', 'm2-2', 'ai')]
    """
    tools = _Tools(said)
    entries: list[Entry] = []
    for number, one in enumerate(said):
        parent, rounds = one.parent, tools.rounds(number, one)
        for index, part in enumerate(rounds, 1):
            is_last = index == len(rounds)
            key = one.key if is_last else f"{one.key}-{index}"
            is_aside = one.is_aside or one.role == SYSTEM or part.is_empty(one.role)
            entries.append(
                Entry(
                    key,
                    parent,
                    partial(part.message, one, is_last),
                    one.time,
                    None if one.id is None else one.id if is_last else f"{one.id}-{index}",
                    State.ASIDE if is_aside else State.LIVE,
                    source=(one.role, *part),
                )
            )
            parent = key
    return entries


def chat_of(
    position: str,
    name: str,
    said: Iterable[Said],
    about: object = None,
    *,
    model: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    prefix: str = "",
    **others: Any,
) -> Chat:
    """A conversation whose messages were read.

    Args:
        position: See `Chat`.
        name: See `Chat`.
        said: The messages.
        about: The record of the conversation: its title, its time, the end of its active thread, metadata.
        model: The model; by default that of the record, else that of the last answer.
        metadata: Further metadata.
        prefix: The beginning of the ids of messages, if their keys are unique in the conversation only.
        **others: Other fields of `Chat`, instead of those of the record.
    """
    found = [*said]
    for one in found if prefix else ():
        one.id = f"{prefix}{one.key}"
    model = model or fields.text(about, *_MODELS)
    of_record = fields.kept(
        model=model or next((one.model for one in reversed(found) if one.model), None),
        folder=fields.text(about, "folderID", "folderId", "folder_id", "workspaceDirectory", "cwd"),
        starred=any(fields.at(about, name) for name in ("starred", "isStarred", "is_starred")),
        pinned=any(fields.at(about, name) for name in ("pinned", "isPinned")),
        tags=fields.at(about, "tags"),
    )
    return Chat(
        position,
        name,
        entries_of(found),
        others.pop("title", None) or fields.text(about, *_TITLES),
        others.pop("tip", None) or fields.id_in(about, *_ENDS),
        others.pop("created", None) or fields.time(about, position, *_TIMES),
        metadata=of_record | dict(metadata or {}),
        **others,
    )


class _Round(NamedTuple):
    """A part of a record that becomes one message: content with the calls after it, or the result of a call.

    Attributes:
        parts: The content.
        calls: The calls by their new ids.
        result: The new id of the call, and the results of the call.
        name: The name of the called tool.
        is_orphan: Whether the result belongs to no call, or repeats the result before it.
    """

    parts: Sequence[Part] = ()
    calls: Mapping[str, ToolUse] = {}
    result: tuple[str, Sequence[ToolResult]] | None = None
    is_orphan: bool = False
    name: str | None = None

    def is_empty(self, role: str) -> bool:
        """Whether the message has nothing that a provider accepts."""
        if self.result is not None:
            return self.is_orphan
        if self.calls:
            return False
        return role == TOOL or not any(
            isinstance(part, File) or (isinstance(part, str) and part.strip()) for part in self.parts
        )

    def message(self, said: Said, is_last: bool) -> BaseMessage:
        """The message; fields of the whole record belong to the last message of the record."""
        if self.result is not None:
            return self._result(said, is_last)
        content, extra = self._content(said.separator)
        if is_last:
            extra |= said.extra
        fields: dict[str, Any] = {"additional_kwargs": extra} if extra else {}
        if said.name and said.role != TOOL:
            fields["name"] = said.name
        if said.role == USER:
            return HumanMessage(content, **fields)
        if said.role == SYSTEM:
            return SystemMessage(content, **fields)
        if said.role == ASSISTANT:
            if said.model:
                fields["response_metadata"] = {"model_name": said.model}
            if self.calls:
                fields["tool_calls"] = [
                    {"name": tool_name(call.name), "args": arguments_of(call.arguments), "id": id}
                    for id, call in self.calls.items()
                ]
            return AIMessage(content, **fields)
        if said.role == TOOL:
            return ToolMessage(content, tool_call_id="", name=said.name, **fields)
        return ChatMessage(content=content, role=said.role, **fields)

    def _content(self, separator: str) -> tuple[str, dict[str, Any]]:
        """The text of the message, and the other parts for `additional_kwargs`."""
        if len(self.parts) == 1 and isinstance(self.parts[0], str):
            return self.parts[0], {}
        has_text = any(isinstance(part, str) and part.strip() for part in self.parts)
        texts = [
            str(part)
            for part in self.parts
            if (isinstance(part, str) and part.strip())
            or (isinstance(part, File) and not (part.is_beside and has_text))
        ]
        thoughts = [part for part in self.parts if isinstance(part, Reasoning)]
        others = {
            "reasoning_content": "\n\n".join(thought.text or thought.summary for thought in thoughts),
            "reasoning_summaries": [
                thought.summary for thought in thoughts if thought.text and thought.summary
            ],
            "files": [reference(part) for part in self.parts if isinstance(part, File)],
            "blocks": [part.value for part in self.parts if isinstance(part, Other)],
            "open_calls": [
                {"name": part.name, "args": arguments_of(part.arguments)}
                for part in self.parts
                if isinstance(part, ToolUse)
            ],
        }
        return separator.join(texts), {name: value for name, value in others.items() if value}

    def _result(self, said: Said, is_last: bool) -> ToolMessage:
        assert self.result is not None
        id, results = self.result
        name = next((result.name for result in results if result.name), self.name)
        return ToolMessage(
            "\n\n".join(filter(None, (output_text(result.output) for result in results))),
            tool_call_id=id,
            name=tool_name(name) if name else None,
            status="error" if any(result.is_error for result in results) else "success",
            additional_kwargs=dict(said.extra) if is_last else {},
        )


_PartPosition = tuple[int, int]
"""The number of a record, and the number of a part of the record."""


class _Tools:
    """The calls and results of a conversation, by their places.

    Attributes:
        ids: The new id of each call that is answered.
        results: The results of each answered call, in order.
        call_of: The call that each result answers.
    """

    def __init__(self, said: Sequence[Said]) -> None:
        self.ids: dict[_PartPosition, str] = {}
        self.results: dict[_PartPosition, list[ToolResult]] = defaultdict(list)
        self.call_of: dict[_PartPosition, _PartPosition] = {}
        self._names: dict[_PartPosition, str] = {}
        self._used: set[str] = set()
        latest: dict[str, _PartPosition] = {}
        unnamed: list[tuple[_PartPosition, ToolUse]] = []
        for number, one in enumerate(said):
            if one.is_aside:
                continue
            for index, part in enumerate(one.parts):
                if isinstance(part, str):
                    continue
                place = (number, index)
                if isinstance(part, ToolUse) and one.role == ASSISTANT:
                    if part.id is None:
                        unnamed.append((place, part))
                    else:
                        latest[part.id] = place
                elif isinstance(part, ToolResult):
                    call = latest.get(part.id) if part.id is not None else _next(unnamed, part)
                    if call is not None:
                        self._answer(call, place, part, said)

    def _answer(
        self, call: _PartPosition, place: _PartPosition, result: ToolResult, said: Sequence[Said]
    ) -> None:
        if call not in self.ids:
            number, index = call
            part, key = said[number].parts[index], said[number].key
            assert isinstance(part, ToolUse)
            id = named_id(part.id or f"{key}-call-{index}") or ""
            if id in self._used:  # Servers number the calls of each answer: call_0.
                id = named_id(f"{key} {index} {part.id}") or ""
            self._used.add(id)
            self.ids[call], self._names[call] = id, part.name
        self.results[call].append(result)
        self.call_of[place] = call

    def rounds(self, number: int, one: Said) -> list[_Round]:
        """The messages of a record."""
        if all(isinstance(part, str | Reasoning | File | Other) for part in one.parts):
            return [_Round(one.parts)]
        rounds: list[_Round] = []
        content: list[Part] = []
        calls: dict[str, ToolUse] = {}
        results: list[_Round] = []
        later: list[Part] = []

        def flush() -> None:
            nonlocal content, calls, results, later
            if content or calls:
                rounds.append(_Round(content, calls))
            rounds.extend(results)
            content, calls, results, later = later, {}, [], []

        for index, part in enumerate(one.parts):
            place = (number, index)
            if place in self.ids and isinstance(part, ToolUse):
                if results and len(results) >= len(calls):
                    flush()
                calls[self.ids[place]] = part
            elif isinstance(part, ToolResult):
                results.append(self._result(place, part))
            elif results and len(results) >= len(calls):
                flush()
                content.append(part)
            else:
                (later if results else content).append(part)
        flush()
        flush()
        return rounds or [_Round()]

    def _result(self, place: _PartPosition, part: ToolResult) -> _Round:
        call = self.call_of.get(place)
        if call is None:
            return _Round(result=(named_id(part.id) or "", [part]), is_orphan=True)
        results = self.results[call]
        if results[0] is part:  # All results of a call are one message, since a call has one result.
            return _Round(result=(self.ids[call], results), name=self._names[call])
        return _Round(result=(self.ids[call], [part]), is_orphan=True)


def _next(unnamed: list[tuple[_PartPosition, ToolUse]], result: ToolResult) -> _PartPosition | None:
    """The first open call without an id for a result without an id; a call of its name, if there is one."""
    named = (n for n, (_, call) in enumerate(unnamed) if result.name in (None, call.name))
    n = next(named, 0 if unnamed else None)
    return None if n is None else unnamed.pop(n)[0]
