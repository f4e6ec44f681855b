"""Grok's export: `prod-grok-backend.json`, in which each conversation has a list of responses with parents.

The fields follow yetanotherchris/openwebui-importer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers.blocks import files_of
from langchain_threadmem.formats.importers.chats import Chat, chat_of, kept, seconds, text_or_none
from langchain_threadmem.formats.importers.said import (
    ASSISTANT,
    USER,
    File,
    Other,
    Part,
    Reasoning,
    Said,
    entries_of,
)
from langchain_threadmem.formats.importers.source import Format, each_item
from langchain_threadmem.messages.ids import chained_id
from langchain_threadmem.messages.records import as_list, as_object

_USERS = ("human", "user")
_PARENT = "parent_response_id"
_CARD = re.compile(r"\s*<grok:render\b.*?</grok:render>", re.DOTALL)
"""A mark of a card, such as a citation, which the program draws."""
_SOURCES = ("cited_web_search_results", "web_search_results", "xpost_ids", "cited_xposts", "xposts")
_KEPT = ("steps", "error", "query", "query_type", "media_types", "xai_user_id")


def is_item(value: object) -> bool:
    """Whether an item of a JSON file is a conversation of Grok."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("conversation"), dict)
        and isinstance(value.get("responses"), list)
    )


def _chat(record: dict[str, Any], position: str) -> Chat:
    about = record["conversation"]
    name = text_or_none(about.get("conversation_id")) or text_or_none(about.get("id"))
    if name is None:
        raise InputError(f"{position} has no 'conversation_id'; it is not a conversation of Grok")
    said: list[Said] = []
    for item in as_list(record["responses"], f"'responses' of {position}"):
        outer = as_object(item, f"a response of {position}")
        response = outer["response"] if isinstance(outer.get("response"), dict) else outer
        said.append(_said(response, said[-1].key if said else None, position))
    projects = about.get("workspaces") or about.get("project_ids")
    return chat_of(
        position,
        name,
        entries_of(said),
        title=text_or_none(about.get("title")),
        tip=text_or_none(about.get("leaf_response_id")),
        created=seconds(about.get("create_time"), position),
        metadata=kept(
            starred=bool(about.get("starred")),
            temporary=bool(about.get("temporary")),
            model=next((one.model for one in said if one.model), None),
            projects=projects if isinstance(projects, list) else None,
        ),
    )


def _said(response: dict[str, Any], previous: str | None, position: str) -> Said:
    key = text_or_none(response.get("response_id")) or text_or_none(response.get("_id"))
    parent = text_or_none(response.get(_PARENT))
    if key is None or _PARENT not in response:  # Older exports have no parents: a chain.
        parent = parent or previous
    if key is None:
        key = chained_id(
            "import-",
            previous,
            [response.get("sender"), response.get("message"), response.get("create_time")],
        )
    role = USER if str(response.get("sender") or "").lower() in _USERS else ASSISTANT
    metadata = response.get("metadata")
    details = metadata.get("requestModelDetails") if isinstance(metadata, dict) else None
    model = text_or_none(response.get("model"))
    if model is None and isinstance(details, dict):
        model = text_or_none(details.get("modelId"))
    extra = {name: response[name] for name in _KEPT if response.get(name)}
    sources = [one for name in _SOURCES if isinstance(response.get(name), list) for one in response[name]]
    if sources:
        extra["sources"] = sources
    return Said(
        key,
        parent,
        role,
        [*_parts(response)],
        seconds(response.get("create_time"), f"message {key!r} of {position}"),
        model if role == ASSISTANT else None,
        is_aside=bool(response.get("is_control")),
        extra=extra,
    )


def _parts(response: dict[str, Any]) -> Iterator[Part]:
    traces = response.get("agent_thinking_traces")
    for trace in (response.get("thinking_trace"), *(traces if isinstance(traces, list) else ())):
        if isinstance(trace, dict):
            texts = (text_or_none(trace.get(name)) for name in ("thinking_trace", "text", "trace"))
            found = next((text for text in texts if text), None)
            yield Reasoning(found) if found is not None else Other(trace)
        elif isinstance(trace, str) and trace:
            yield Reasoning(trace)
    message = response.get("message")
    if isinstance(message, str) and (text := _CARD.sub("", message)).strip():
        yield text
    for field in ("file_attachments", "image_attachments"):
        yield from files_of(response.get(field))
    for url in response.get("generated_image_urls") or ():
        yield File("image", str(url).rpartition("/")[2], {"url": url})


FORMAT = Format("grok", "prod-grok-backend.json of Grok's export", each_item(_chat), is_item)
