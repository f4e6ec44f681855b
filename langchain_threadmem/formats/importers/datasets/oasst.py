"""Trees of Open Assistant.

The fields follow LAION-AI/Open-Assistant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_threadmem.common.inputs import is_number
from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers.blocks import parts_of
from langchain_threadmem.formats.importers.chats import Bad, Chat, Chats, chat_of, kept, seconds, text_or_none
from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.said import ASSISTANT, USER, Said, entries_of
from langchain_threadmem.formats.importers.source import FAULTS, Source, problem_of
from langchain_threadmem.messages.records import as_object

_OASST = {"prompter": USER, "assistant": ASSISTANT}
_KEPT = ("lang", "rank", "quality", "synthetic", "review_result", "deleted", "labels", "emojis")


def is_item(value: object) -> bool:
    """Whether an item is a tree, or a message of a tree, of Open Assistant."""
    if not isinstance(value, dict) or "message_tree_id" not in value:
        return False
    return isinstance(value.get("prompt"), dict) or ("message_id" in value and "role" in value)


def chats(source: Source) -> Chats:
    """The conversations: one for each tree."""
    rows: dict[str, list[Record]] = {}
    for item in source.objects():
        if isinstance(item, Bad):
            yield item
            continue
        position, value = item
        try:
            if isinstance(value.get("prompt"), dict):
                messages = [*_flat(value["prompt"])]
                yield _tree(str(value["message_tree_id"]), messages, position)
            else:
                rows.setdefault(str(value["message_tree_id"]), []).append(value)
        except FAULTS as error:
            yield Bad(problem_of(error, position))
    for name, messages in rows.items():
        try:
            yield _tree(name, messages, f"tree {name!r}")
        except FAULTS as error:
            yield Bad(problem_of(error, f"tree {name!r}"))


def _flat(message: Record) -> Iterable[Record]:
    waiting: list[tuple[str | None, Any]] = [(None, message)]
    while waiting:
        parent, value = waiting.pop()
        one = as_object(value, "a reply")
        yield {**one, "parent_id": one.get("parent_id") or parent}
        replies = one.get("replies")
        waiting += [(text_or_none(one.get("message_id")), reply) for reply in reversed(replies or [])]


def _tree(name: str, messages: Sequence[Record], position: str) -> Chat:
    said: list[Said] = []
    for message in messages:
        key = text_or_none(message.get("message_id"))
        if key is None:
            raise InputError(f"{position} has a message without 'message_id'")
        role = _OASST.get(str(message.get("role")), str(message.get("role")))
        said.append(
            Said(
                key,
                text_or_none(message.get("parent_id")),
                role,
                parts_of(message.get("text")),
                seconds(message.get("created_date"), position),
                text_or_none(message.get("model_name")) if role == ASSISTANT else None,
                is_aside=bool(message.get("deleted")),
                extra={name: message[name] for name in _KEPT if message.get(name) not in (None, False)},
            )
        )
    ranks = {one.key: message.get("rank") for one, message in zip(said, messages, strict=True)}
    return chat_of(
        position,
        name,
        entries_of(said),
        tip=_best(said, ranks),
        metadata=kept(lang=text_or_none(messages[0].get("lang")) if messages else None),
    )


def _best(said: Sequence[Said], ranks: dict[str, Any]) -> str | None:
    """The end of the thread with the best reply at each step: rank 0, else the first."""
    keys = {one.key for one in said}
    replies: dict[str | None, list[Said]] = {}
    for one in said:
        if not one.is_aside:
            replies.setdefault(one.parent if one.parent in keys else None, []).append(one)
    end: str | None = None
    while found := replies.pop(end, None):
        rank = {one.key: ranks[one.key] for one in found}
        end = min(found, key=lambda one: rank[one.key] if is_number(rank[one.key]) else len(rank)).key
    return end
