"""Items of OpenAI's Responses and Conversations: a list of messages, reasoning, calls and their outputs.

The list may be an answer of the API (`{"object": "list", "data": [...]}`), whose newest item may come
first. Items have no times. Reasoning and calls belong to one answer with the message that follows them, up
to an output.

The fields follow openai/openai-python and openai/openai-agents-python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import parts_of
from langchain_threadmem.formats.importers.chats import Bad, Chat, Chats
from langchain_threadmem.formats.importers.content_parts import File, Other, Part, ToolResult, ToolUse, called
from langchain_threadmem.formats.importers.said import ASSISTANT, ROLES, TOOL, USER, Said, chat_of
from langchain_threadmem.formats.importers.source import Format, Source, checked
from langchain_threadmem.messages.ids import chained_id

_CALLS = (
    *("function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call"),
    "apply_patch_call",
)
_OUTPUTS = tuple(f"{name}_output" for name in _CALLS)
_HOSTED = (
    *("mcp_call", "code_interpreter_call", "web_search_call", "file_search_call", "image_generation_call"),
    *("mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "compaction", "tool_search_call"),
)
_CHANGING = ("status", "internal_chat_message_metadata")
"""The fields of an item that may change."""
TYPES = frozenset({"reasoning", *_CALLS, *_OUTPUTS, *_HOSTED})
"""The types of items that only these lists have."""
_BLOCKS = ("input_text", "output_text", "input_image", "input_file")


def is_log(values: Sequence[Any]) -> bool:
    """Whether the items of a JSON file are items of OpenAI, or lists of such items."""
    lists = [found for value in values if (found := _list_in(value)) is not None]
    if len(lists) == len(values):
        return all(_are_items(items) for items in lists if items) and any(lists)
    return _are_items(values)


def _are_items(items: Sequence[Any]) -> bool:
    return all(map(is_possible, items)) and any(map(is_certain, items))


def is_possible(item: Any) -> bool:
    """Whether a value may be an item."""
    kind = fields.at(item, "type")
    return kind in TYPES or (kind in (None, "message") and isinstance(fields.at(item, "role"), str))


def is_certain(item: Any) -> bool:
    """Whether a value is an item, and no message of another format."""
    blocks = fields.values(item, "content")
    return fields.at(item, "type") in TYPES or any(fields.at(block, "type") in _BLOCKS for block in blocks)


def _list_in(value: object) -> list[Any] | None:
    """The items of an answer of the API, of a request, or of a list, oldest first."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict) or "type" in value or "role" in value:
        return None
    if isinstance(value.get("output"), list):
        return [*fields.values(value, "input"), *value["output"]]
    for name in ("data", "items", "input"):
        if isinstance(items := value.get(name), list):
            order = value.get("order")
            is_newest_first = _is_newest_first(items) if order is None else order == "desc"
            return items[::-1] if is_newest_first else items
    return None


def _is_newest_first(items: Sequence[Any]) -> bool:
    """Whether a list begins with its newest item.

    An output follows its call. A list begins with a question and ends with an answer; if both are questions,
    the ids tell, which begin with the time: `msg_67ccd3ac...` is of the second 0x67ccd3ac.
    """
    types = [str(item.get("type")) for item in items if isinstance(item, dict)]
    call = next((n for n, kind in enumerate(types) if kind in _CALLS), None)
    output = next((n for n, kind in enumerate(types) if kind in _OUTPUTS), None)
    if call is not None and output is not None:
        return output < call
    messages = [item for item in items if isinstance(item, dict) and item.get("role") in (USER, ASSISTANT)]
    if not messages:
        return False
    first, last = messages[0], messages[-1]
    if first["role"] != last["role"]:
        return bool(last["role"] == USER)
    ids = [str(one.get("id") or "") for one in (first, last)]
    return len(ids[0]) == len(ids[1]) and ids[0] > ids[1]


def chats(source: Source) -> Chats:
    """The conversations of a file: one, or one for each list."""
    items: list[Any] = []
    for number, item in enumerate(source.items(), 1):
        if isinstance(item.value, InputError):
            yield Bad(str(item.value))
        elif (found := _list_in(item.value)) is None:
            items.append(item.value)
        else:
            record = item.value if isinstance(item.value, dict) else {}
            own = fields.text(record, "conversation_id", "id")
            name = own or (source.name if number == 1 else f"{source.name}-{number}")
            yield from checked(item.where, _chat, found, name, item.where, record)
    if items:
        yield _chat(items, source.name, "the list", {})


def _chat(items: Sequence[Any], name: str, position: str, record: fields.Record) -> Chat:
    return chat_of(position, name, said_of(items), record, title=fields.text(record.get("metadata"), "title"))


def said_of(
    items: Iterable[Any],
    times: Callable[[int], float | None] = lambda number: None,
    models: Callable[[int], str | None] = lambda number: None,
    parent: str | None = None,
) -> list[Said]:
    """The messages of a list of items, each of which continues the message before it.

    Args:
        items: The items.
        times: The time of the item with a number.
        models: The model of the item with a number.
        parent: The key of the message that the first message continues.
    """
    said: list[Said] = []
    group: list[tuple[int, fields.Record]] = []

    def close(role: str = ASSISTANT) -> None:
        if not group:
            return
        before = said[-1].key if said else parent
        last, records = group[-1][0], [record for _, record in group]
        key = fields.text(records[-1], "id")
        if key is None or any(one.key == key for one in said):
            contents = [{name: one[name] for name in one if name not in _CHANGING} for one in records]
            key = chained_id("import-", before, contents)
        parts = [part for record in records for part in parts_of_item(record)]
        said.append(Said(key, before, role, parts, times(last), models(last) if role == ASSISTANT else None))
        group.clear()

    for number, item in enumerate(items):
        if not isinstance(item, dict):
            raise InputError(f"item {number + 1} is {item!r:.80}, not a JSON object")
        role = role_of_item(item)
        if role != ASSISTANT:
            close()
            group.append((number, item))
            close(role)
            continue
        if _is_message(item) and any(_is_message(one) for _, one in group):
            close()
        group.append((number, item))
    close()
    return said


def _is_message(item: fields.Record) -> bool:
    return item.get("type") in (None, "message")


def role_of_item(item: fields.Record) -> str:
    """The role of the message of an item.

    Raises:
        InputError: The item is no item of OpenAI.
    """
    kind = fields.text(item, "type")
    if kind in _OUTPUTS:
        return TOOL
    if kind in TYPES:
        return ASSISTANT
    role = ROLES.get(str(item.get("role")))
    if role is None and kind in (None, "message"):
        raise InputError(
            f"an item has the role {item.get('role')!r}; use user, assistant, system or developer"
        )
    return role or ASSISTANT  # A new type of item.


def parts_of_items(items: Iterable[Any]) -> list[Part]:
    """The parts of the items of one answer, with its calls and outputs."""
    return [part for item in items if isinstance(item, dict) for part in parts_of_item(item)]


def parts_of_item(item: fields.Record) -> list[Part]:
    """The parts of an item."""
    return [*_parts(item)]


def _parts(item: fields.Record) -> Iterator[Part]:
    kind, id = fields.text(item, "type"), fields.text(item, "call_id", "id")
    output = item.get("output") or item.get("error")
    if _is_message(item):
        yield from parts_of(item.get("content"))
        blocks = fields.values(item, "content")
        if notes := [note for block in blocks for note in fields.values(block, "annotations")]:
            yield Other({"type": "annotations", "annotations": notes})
    elif kind in _CALLS:
        names = ("arguments", "input", "action", "operation")
        arguments = next((item[name] for name in names if item.get(name) is not None), None)
        yield ToolUse(fields.text(item, "name") or str(kind).removesuffix("_call"), arguments, id)
    elif kind in _OUTPUTS:
        is_error = item.get("status") == "failed"
        yield ToolResult(item.get("output"), id, fields.text(item, "name"), is_error)
    elif kind == "reasoning":
        yield from parts_of(item)
    elif kind == "mcp_call":
        is_error = item.get("error") is not None
        yield from called(fields.text(item, "name"), item.get("arguments"), id, output, is_error)
    elif kind in ("code_interpreter_call", "open_webui:code_interpreter"):
        outputs = [fields.at(one, "logs") or one for one in fields.values(item, "outputs")]
        # The items of Open WebUI have one output.
        yield from called("code_interpreter", {"code": item.get("code")}, id, outputs or output)
    elif kind == "image_generation_call":
        yield File("image", id, {name: value for name, value in item.items() if name != "result"})
    else:
        if kind not in TYPES and isinstance(item.get("content"), str | list):
            yield from parts_of(item["content"])
        yield Other(item)


FORMAT = Format("openai_items", "items of OpenAI's Responses or Conversations", chats, is_log=is_log)
