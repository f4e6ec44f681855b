"""Lists of messages in JSON: a conversation on a line or in an item, or a message on a line or in an item.

The messages have the format of OpenAI (`role`, `content`, `tool_calls`), of AG-UI (`toolCalls`), of Anthropic
(content blocks with `tool_use` and `tool_result`) or of LangChain (`messages_to_dict`, `dumps`). A
conversation without an id is named after the file and its line. The id of a message without an id hashes
the message and its predecessors, so that a later import of a longer list adds the new messages only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import parts_of
from langchain_threadmem.formats.importers.chats import PIECE_SIZE, Bad, Chat, Chats, Entry
from langchain_threadmem.formats.importers.content_parts import (
    THOUGHTS,
    File,
    Other,
    Reasoning,
    arguments_of,
    named_id,
    output_text,
)
from langchain_threadmem.formats.importers.json_items import object_of
from langchain_threadmem.formats.importers.source import Format, Source
from langchain_threadmem.messages.ids import chained_id
from langchain_threadmem.messages.records import as_list, as_object, message_from, unwrapped
from langchain_threadmem.messages.roles import TYPES
from langchain_threadmem.storage.schema import State

_NAMES = ("conversation_id", "session_id", "thread_id", "chat_id", "id", "uuid")
"""The fields with the name of a conversation beside its messages, in the order of preference."""
_NAMES_OF_MESSAGES = _NAMES[:4]
"""The fields of a message with the name of its conversation."""
_CONTENTS = frozenset({"content", "text", "data", "tool_calls"})
_FIRST = 20
"""The number of messages of a list by which its format is recognised."""
_TIMES = ("timestamp", "created_at", "create_time", "created")


def is_item(value: Any) -> bool:
    """Whether an item of a JSON file is a message, or a conversation with messages."""
    if fields.has(value, messages=list):
        return all(map(_is_message, value["messages"][:_FIRST]))
    if isinstance(value, list):
        return bool(value) and all(map(_is_message, value[:_FIRST]))
    return isinstance(value, dict) and _is_message(value) and not _CONTENTS.isdisjoint(value)


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and (isinstance(value.get("role"), str) or str(value.get("type")) in TYPES)


def is_langchain_item(value: Any) -> bool:
    """Whether an item of a JSON file is a message of `messages_to_dict` or `dumps`, or a list of these."""
    value = fields.values(value, "messages") or value
    values: list[Any] = [unwrapped(one) for one in (value[:_FIRST] if isinstance(value, list) else [value])]
    return bool(values) and all(
        fields.has(one, type=str, data=dict)
        # A streamed message is a chunk.
        and (one["type"] in (*TYPES, "remove") or one["type"].endswith("Chunk"))
        for one in values
    )


def chats(source: Source) -> Chats:
    """The conversations of a file."""
    lists: dict[str, List] = {}
    pending = 0
    for item in source.items():
        position, value = item
        try:
            if isinstance(value, list) or (isinstance(value, dict) and "messages" in value):
                yield _conversation(value, f"{source.name}-{_number(position)}", position)
                continue
            name = fields.text(object_of(item), *_NAMES_OF_MESSAGES) or source.name
            messages = lists.setdefault(name, List(name))
            count = len(messages.entries)
            messages.add(value, position)
            pending += len(messages.entries) - count
        except InputError as error:
            yield Bad(str(error))
        if pending >= PIECE_SIZE:
            pending = 0
            for messages in lists.values():
                yield from messages.pieces()
    for messages in lists.values():
        messages.close("the end of the file")
        yield from messages.pieces()


@dataclass
class List:
    """The messages of one conversation, each of which continues the message before it.

    Attributes:
        name: The name of the conversation.
        entries: The entries since the last piece.
    """

    name: str
    entries: list[Entry] = field(default_factory=list)
    _where: str = ""
    _last: str | None = None
    _keys: set[str] = field(default_factory=set)
    _goes_on: bool = False
    _steps: list[fields.Record] = field(default_factory=list)
    _open: list[tuple[str, str]] = field(default_factory=list)

    def add(self, record: Any, position: str, *, later: bool = False) -> None:
        """Add the messages of a record.

        Args:
            record: The record.
            position: The position of the record, for errors.
            later: Whether the messages are built, and checked, when they are written.

        Raises:
            InputError: The record is not a message.
        """
        makers: list[Callable[[], BaseMessage]]
        record = _renamed(as_object(unwrapped(record), position))
        if record.get("role") in _STEPS:
            self._steps.append(record)
            return
        if record.get("role") == "assistant" and self._steps:
            record, self._steps = _with_steps(record, self._steps), []
        self.close(position)
        record = self._with_call_ids(record)
        if later and not any(_is(block, "tool_result") for block in fields.values(record, "content")):
            makers = [partial(_message, record, position)]
        else:
            makers = [partial(_return_message, message) for message in _messages(record, position)]
        own_id = fields.text(record.get("data"), "id") or fields.text(record, "id")
        time = next((fields.seconds(record[name], position) for name in _TIMES if record.get(name)), None)
        self._where = self._where or position
        for number, make in enumerate(makers):
            key = own_id if own_id is not None and number == len(makers) - 1 else None
            if key is None or key in self._keys:
                key = chained_id("import-", self._last, [number, record])
            self._keys.add(key)
            self.entries.append(Entry(key, self._last, make, time, source=record))
            self._last = key

    def _with_call_ids(self, record: fields.Record) -> fields.Record:
        """A message with ids of calls: a result without an id answers the first open call of its name."""
        calls = fields.values(record, "tool_calls")
        if any(fields.has(call, function=dict) and not call.get("id") for call in calls):
            names = [str(fields.at(call, "function", "name")) for call in calls]
            ids = [named_id(f"{self._last} {number} {name}") or "" for number, name in enumerate(names)]
            self._open = [*zip(names, ids, strict=True)]
            return record | {"tool_calls": [{"id": id, **call} for id, call in zip(ids, calls, strict=True)]}
        if record.get("role") == "tool" and self._open and not record.get("tool_call_id"):
            name = fields.text(record, "name", "tool_name")
            found = next((one for one in self._open if one[0] == name), self._open[0])
            self._open.remove(found)
            return record | {"tool_call_id": found[1], "name": found[0]}
        return record

    def close(self, position: str) -> None:
        """Add thoughts and activities that no answer follows, as an aside."""
        if self._steps:
            record, self._steps = _with_steps({"role": "assistant", "content": ""}, self._steps), []
            key = chained_id("import-", self._last, record)
            make = partial(_message, record, position)
            self.entries.append(Entry(key, self._last, make, state=State.ASIDE, source=record))

    def add_answers(self, answers: Iterable[Any], position: str) -> str | None:
        """Add answers that are siblings.

        Returns:
            The key of the first answer, if there is one.
        """
        before, first = self._last, None
        for answer in answers:
            self._last = before
            self.add(answer, f"{position}, the answer")
            first = first or self._last
        return first

    def pieces(self) -> Iterator[Chat]:
        """The entries since the last piece as a chat, if there are any."""
        if self.entries:
            yield Chat(self._where, self.name, self.entries, goes_on=self._goes_on)
            self.entries, self._keys, self._where, self._goes_on = [], set(), "", True


def _conversation(value: Any, name: str, position: str) -> Chat:
    record = {"messages": value} if isinstance(value, list) else value
    messages = List(fields.text(record, *_NAMES) or name)
    if record.get("system"):  # Anthropic's requests have it beside the messages.
        messages.add({"role": "system", "content": record["system"]}, position)
    for number, item in enumerate(as_list(record["messages"], f"'messages' of {position}"), 1):
        messages.add(item, f"{position}, message {number}", later=True)
    tip = messages.add_answers(_answers(record), position)
    messages.close(position)
    if not messages.entries:
        raise InputError(f"{position} has no messages")
    title = fields.text(record, "title", "name")
    return Chat(position, messages.name, messages.entries, title=title, tip=tip)


def _answers(record: fields.Record) -> list[Any]:
    """The different answers beside the messages of a request, in OpenAI's response or DSPy's `history`."""
    choices = fields.values(record, "response", "choices") or fields.values(record, "choices")
    outputs = [one.get("text") if isinstance(one, dict) else one for one in fields.values(record, "outputs")]
    answers = [fields.at(one, "message") for one in choices] or [
        {"role": "assistant", "content": one} for one in outputs if isinstance(one, str)
    ]
    return [answer for number, answer in enumerate(answers) if answer not in answers[:number]]


def _number(position: str) -> str:
    return position.rpartition(" ")[2] if position[-1].isdigit() else "1"


_CAMEL_CASE = {"toolCalls": "tool_calls", "toolCallId": "tool_call_id"}
"""The fields of AG-UI's messages by the names of OpenAI."""
_IMAGES = {"iVBOR": "png", "/9j/": "jpeg", "R0lGOD": "gif", "UklGR": "webp"}
"""The first characters of pictures in base64, which Ollama's messages contain without a type."""
_STEPS = ("reasoning", "activity")
"""The roles of AG-UI's messages that belong to the next answer."""


def _renamed(record: fields.Record) -> fields.Record:
    """A message with OpenAI's names of fields and roles."""
    renamed = {_CAMEL_CASE.get(name, name): value for name, value in record.items()}
    if isinstance(content := record.get("content"), list):
        renamed["content"] = [_of_anthropic(block) for block in content]
    elif images := [one for one in fields.values(record, "images") if isinstance(one, str)]:
        renamed["content"] = [*([content] if content else []), *map(_image, images)]
    if thoughts := fields.text(record, *THOUGHTS):
        renamed.setdefault("reasoning_content", thoughts)
    if record.get("role") == "developer":  # The name of the role in newer messages of OpenAI.
        renamed["role"] = "system"
    if record.get("role") == "tool" and record.get("error"):
        renamed["status"] = "error"
    return renamed


def _image(image: str) -> fields.Record:
    """A picture of Ollama's messages, in base64 or the path of a file, as a block."""
    kind = next((kind for start, kind in _IMAGES.items() if image.startswith(start)), None)
    if kind is None:
        return {"type": "image", "path": image}
    return {"type": "image", "source": {"data": image, "media_type": f"image/{kind}"}}


def _of_anthropic(block: Any) -> Any:
    """A call or a result of the AI SDK's model messages as a block of Anthropic; another block as it is."""
    if _is(block, "tool-call"):
        arguments = arguments_of(block.get("input", block.get("args")))
        id, name = block.get("toolCallId"), block.get("toolName")
        return {"type": "tool_use", "id": id, "name": name, "input": arguments}
    if not _is(block, "tool-result"):
        return block
    output = block.get("output", block.get("result"))
    kind = str(fields.at(output, "type"))
    is_error = kind in ("error-text", "error-json", "execution-denied") or bool(block.get("isError"))
    if fields.has(output, type=str) and {"value", "reason"} & output.keys():  # Since version 5.
        output = output.get("value", output.get("reason"))
    result = {"tool_use_id": block.get("toolCallId"), "content": output_text(output), "is_error": is_error}
    return {"type": "tool_result", **result}


def _with_steps(answer: fields.Record, steps: Sequence[fields.Record]) -> fields.Record:
    """An answer with the thoughts and activities before it."""
    thoughts = [str(one.get("content") or "") for one in steps if one["role"] == "reasoning"]
    others = {
        "reasoning_content": "\n\n".join(filter(None, thoughts)),
        "blocks": [one for one in steps if one["role"] == "activity"],
    }
    extra = {name: value for name, value in others.items() if value}
    return {**answer, "additional_kwargs": fields.record(answer, "additional_kwargs") | extra}


def _is(block: Any, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind


def _return_message(message: BaseMessage) -> BaseMessage:
    return message


def _message(record: fields.Record, position: str) -> BaseMessage:
    return _messages(record, position)[-1]


def _messages(record: fields.Record, position: str) -> list[BaseMessage]:
    """The messages of a record: one for each tool result of Anthropic, and one for the other content."""
    content = record.get("content")
    if not isinstance(content, list):
        return [message_from(record, position)]
    results = [block for block in content if _is(block, "tool_result")]
    others: list[Any] = [block for block in content if not _is(block, "tool_result")]
    calls = [
        {"name": block.get("name"), "args": block.get("input") or {}, "id": block.get("id")}
        for block in others
        if _is(block, "tool_use")
    ]
    messages = []
    for block in results:
        output = block.get("content") or ""
        result = {
            "role": "tool",
            "content": _portable(output)[0] if isinstance(output, list) else output,
            "tool_call_id": block.get("tool_use_id"),
            "status": "error" if block.get("is_error") else "success",
        }
        messages.append(message_from(result, position))
    # Messages of LangChain, which have a type, keep their content.
    others, extra = _portable(others) if "role" in record else (others, {})
    if others or not results:
        others_of: fields.Record = {"tool_calls": calls} if calls and not record.get("tool_calls") else {}
        if extra:
            others_of["additional_kwargs"] = fields.record(record, "additional_kwargs") | extra
        messages.append(message_from({**record, "content": others or "", **others_of}, position))
    return messages


def _portable(content: list[Any]) -> tuple[list[Any], fields.Record]:
    """The blocks that every provider accepts, and the others for `additional_kwargs`.

    Texts and pictures are blocks of all providers. A thought, a file and a block of a tool of one provider
    are refused by the other providers.
    """
    portable: list[Any] = []
    thoughts: list[str] = []
    files: list[Any] = []
    blocks: list[Any] = []
    for block in content:
        picture = _picture(block)
        if picture is not None or not isinstance(block, dict) or block.get("type") == "text":
            portable.append(block if picture is None else picture)
            continue
        for part in [] if _is(block, "tool_use") else parts_of(block):
            if isinstance(part, str) or (isinstance(part, File) and not part.is_beside):
                portable.append({"type": "text", "text": str(part)})
            if isinstance(part, Reasoning):
                thoughts.append(part.text or part.summary)
            elif isinstance(part, File):
                files.append({"kind": part.kind, "name": part.name})
            elif not isinstance(part, str):
                blocks.append(part.value if isinstance(part, Other) else block)
    others = {"reasoning_content": "\n\n".join(thoughts), "files": files, "blocks": blocks}
    return portable, {name: value for name, value in others.items() if value}


def _picture(block: Any) -> fields.Record | None:
    """A picture as a block that LangChain converts for each provider."""
    if not isinstance(block, dict) or block.get("type") not in ("image_url", "image"):
        return None
    if block["type"] == "image_url":
        return block
    inner = block.get("source")
    source = inner if isinstance(inner, dict) else block  # Of Anthropic, or of LangChain.
    data, url = source.get("data") or source.get("base64"), source.get("url")
    if isinstance(data, str):
        url = f"data:{source.get('media_type') or source.get('mime_type') or 'image/png'};base64,{data}"
    return {"type": "image_url", "image_url": {"url": url}} if isinstance(url, str) else None


LANGCHAIN = Format("langchain", "LangChain's messages_to_dict and dumps", chats, is_langchain_item)
MESSAGES = Format("messages", "messages of OpenAI or Anthropic", chats, is_item)
