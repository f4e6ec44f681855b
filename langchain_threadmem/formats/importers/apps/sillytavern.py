"""SillyTavern: a chat as JSON Lines, with a header and messages whose swipes are alternatives.

A chat that branches from another file begins with its messages: these have the same ids, and it becomes a
branch of that conversation. Times have no zone. In a group chat every character has a name.

The fields follow SillyTavern/SillyTavern.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from langchain_threadmem.formats.importers.blocks import files_of
from langchain_threadmem.formats.importers.chats import (
    Chats,
    chat_of,
    kept,
    local_time,
    seconds,
    text_or_none,
)
from langchain_threadmem.formats.importers.json_items import Record, list_in
from langchain_threadmem.formats.importers.said import (
    ASSISTANT,
    USER,
    Part,
    Reasoning,
    Said,
    ToolResult,
    ToolUse,
    at_once,
    entries_of,
)
from langchain_threadmem.formats.importers.source import Format, Source
from langchain_threadmem.messages.ids import chained_id

_HEADER = ("user_name", "character_name", "chat_metadata")


def is_log(values: Sequence[Any]) -> bool:
    """Whether the lines of a file are those of a chat."""
    if not values or not all(isinstance(value, dict) for value in values):
        return False
    has_header = any(name in values[0] for name in _HEADER) and "mes" not in values[0]
    messages = values[1:] if has_header else values
    return (has_header or bool(messages)) and all("mes" in value and "is_user" in value for value in messages)


def chats(source: Source) -> Chats:
    """The conversation of a file."""
    header: Record = {}
    said: list[Said] = []
    previous: str | None = None
    has_names: set[str] = set()

    def read(value: Record, position: str) -> None:
        nonlocal header, previous
        if "mes" not in value:
            header = value
            return
        texts = _texts(value)
        shown = _shown(value, texts)
        texts[shown] = str(value.get("mes") or texts[shown])
        swipes = _swipes(value, texts, shown, previous, position)
        has_names.update(one.name for one in swipes if one.name and one.role == ASSISTANT)
        said.extend(swipes)
        previous = swipes[shown].key

    yield from source.each(read)
    if len(has_names) < 2:  # A name says who speaks in a group only.
        for one in said:
            one.name = None
    metadata = header.get("chat_metadata")
    source_of = text_or_none(metadata.get("main_chat")) if isinstance(metadata, dict) else None
    yield chat_of(
        "the chat",
        source.name,
        entries_of(said),
        tip=previous,
        created=_time(header.get("create_date"), "the header"),
        metadata=kept(
            character=text_or_none(header.get("character_name")),
            user=text_or_none(header.get("user_name")),
            model=next((one.model for one in reversed(said) if one.model), None),
        ),
        branch_of=[source_of] if source_of and source_of != source.name else [],
    )


def _texts(value: Record) -> list[str]:
    """The texts of a message and of its alternatives."""
    texts = value.get("swipes")
    return (
        [str(text) for text in texts] if isinstance(texts, list) and texts else [str(value.get("mes") or "")]
    )


def _shown(value: Record, texts: Sequence[str]) -> int:
    """The number of the alternative that is shown: that of the file, else the one with the text of `mes`."""
    number = value.get("swipe_id")
    if isinstance(number, int) and 0 <= number < len(texts):
        return number
    return texts.index(value["mes"]) if value["mes"] in texts else len(texts) - 1


def _swipes(
    value: Record, texts: Sequence[str], shown: int, previous: str | None, position: str
) -> list[Said]:
    """The message and its alternatives."""
    infos = list_in(value, "swipe_info")
    swipes: list[Said] = []
    for number, text in enumerate(texts):
        info = infos[number] if number < len(infos) and isinstance(infos[number], dict) else {}
        is_shown = number == shown
        extra = value.get("extra") if is_shown else info.get("extra")
        extra = extra if isinstance(extra, dict) else {}
        parts: list[Part] = [Reasoning(extra["reasoning"])] if isinstance(extra.get("reasoning"), str) else []
        files = [extra[name] for name in ("file", "image") if extra.get(name)]
        listed = (extra[name] for name in ("files", "media") if isinstance(extra.get(name), list))
        parts += [text, *files_of([*files, *chain.from_iterable(listed)])]
        role = USER if value.get("is_user") else ASSISTANT
        key = chained_id("import-", previous, [role, value.get("name"), text])
        if any(one.key == key for one in swipes):
            key = chained_id("import-", previous, [role, value.get("name"), text, number])
        calls = at_once(_calls(extra))
        is_hidden = bool(value.get("is_system")) and not calls
        swipes.append(
            Said(
                key,
                previous,
                role,
                calls or parts,
                _time((value if is_shown else info).get("send_date") or value.get("send_date"), position),
                text_or_none(extra.get("model")) if role == ASSISTANT else None,
                None if calls else text_or_none(value.get("name")),
                is_hidden,
                {"hidden": True} if is_hidden else {},
            )
        )
    return swipes


def _calls(extra: Record) -> Iterator[Part]:
    """The calls of a message that the program has written about them; such a message is for the model."""
    for call in list_in(extra, "tool_invocations"):
        id, name = text_or_none(call.get("id")), str(call.get("name"))
        yield ToolUse(name, call.get("parameters"), id)
        failed = call.get("error") is not None
        yield ToolResult(call.get("error") if failed else call.get("result"), id, name, failed)


def _time(value: Any, position: str) -> float | None:
    time = seconds(value, position)
    return local_time(value) if time is None and isinstance(value, str) else time


FORMAT = Format("sillytavern", "a chat of SillyTavern", chats, is_log=is_log)
