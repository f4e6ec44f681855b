"""ChatGPT's export: `conversations.json`, or `conversations-000.json` and so on, with a tree in `mapping`.

Every branch is imported. Thoughts belong to the answer that they precede. Hidden messages, custom
instructions, messages of weight 0 and messages without content are asides. A chat that was begun by "Branch
in new chat" is a branch of the conversation that it continues. Images, voice and canvases are text with the
name of the file.

The fields follow mohamed-chs/convoviz, Exoridus/chatgpt-export-viewer, Sinity/polylogue and
pionxzh/chatgpt-exporter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import parts_of
from langchain_threadmem.formats.importers.chats import Chat, Chats
from langchain_threadmem.formats.importers.content_parts import (
    File,
    Other,
    Part,
    Reasoning,
    ToolResult,
    ToolUse,
    arguments_of,
)
from langchain_threadmem.formats.importers.said import ASSISTANT, TOOL, USER, Said, chat_of
from langchain_threadmem.formats.importers.source import Format, Source
from langchain_threadmem.messages.records import as_list, as_object

_HIDDEN = ("is_visually_hidden_from_conversation", "is_user_system_message")
_INSTRUCTIONS = ("user_editable_context", "model_editable_context")
"""The types of contents with custom instructions and with memories."""
_TEXTS = (
    *("title", "text", "result", "content", "summary"),
    *("output_str", "model_set_context", "user_profile", "user_instructions"),
)
"""The fields with text in contents without parts."""
_SILENT = ("content_type", "language", "response_format_name", "assets", "tether_id", "domain", "url", "name")
"""Fields of contents that say nothing beside a text."""
_KEPT = (
    *("gizmo_id", "gizmo_type", "conversation_template_id", "is_starred", "pinned_time", "voice"),
    *("is_do_not_remember", "conversation_origin", "memory_scope", "is_study_mode", "async_status"),
)
"""The fields of a conversation that are kept in its metadata."""
_KEPT_OF_MESSAGES = (
    *("canvas", "finish_details", "finished_duration_sec", "reasoning_title", "async_task_id"),
    *("async_task_title", "async_task_type", "is_async_task_result_message", "voice_mode_message"),
    *("aggregate_result", "_cite_metadata", "command"),
)
"""The fields of a message's metadata that are kept."""
_NAMES_OF_FILES = "conversation_asset_file_names.json"
_MARK = re.compile("( ?)\ue200([^\ue201]*)\ue201")
"""A mark of a citation, an entity or a picture, between characters of private use."""
_PRIVATE = re.compile("[\ue200-\ue20f]")
"""The characters of marks; other characters of private use, such as icons, stay."""
_FOOTNOTE = "sources_footnote"
_LISTS = ("items", "sources")
"""The fields of a reference with its sources."""
_QUOTED = re.compile(r"【[^】]*】")
"""An older mark of a citation."""
_ID_IN_POINTER = re.compile(r"file[-_][A-Za-z0-9]+")

NodesByKey = Mapping[str, Mapping[str, Any]]


def _is_chatgpt(value: Any) -> bool:
    root = fields.record(value, "mapping", "root")
    is_of_deepseek = root.get("id") == "root" and root.get("message") is None
    return fields.has(value, mapping=dict) and "inserted_at" not in value and not is_of_deepseek


def _chats(source: Source) -> Chats:
    return source.each(partial(_chat, fields.record(source.beside(_NAMES_OF_FILES))))


def _chat(names: Mapping[str, Any], record: fields.Record, position: str) -> Chat:
    name = fields.text(record, "conversation_id", "id")
    if name is None:
        raise InputError(
            f"{position} has no 'conversation_id' and no 'id'; it is not a conversation of ChatGPT"
        )
    nodes = fields.nodes(record, "mapping", position)
    current, gizmo = fields.text(record, "current_node"), fields.text(record, "gizmo_id")
    is_archived = record.get("is_archived")
    project = {} if gizmo is None else {"project" if gizmo.startswith("g-p-") else "gpt": gizmo}
    pinned = fields.kept(pinned=bool(record.get("pinned_time") or record.get("is_pinned")))
    return chat_of(
        position,
        name,
        _NodesReader(nodes, names, position).said(),
        record,
        tip=_parent(nodes, current) if current in nodes and not nodes[current].get("message") else current,
        model=fields.text(record, "default_model_slug"),
        archived=fields.time(record, position, "update_time", "create_time") if is_archived else None,
        metadata=fields.filled(record, _KEPT) | project | pinned,
        branch_of=_sources(nodes, current, name),
    )


def _sources(nodes: NodesByKey, current: str | None, name: str) -> list[str]:
    """The conversations that this one continues, the first of them first."""
    end = current if current in nodes else next(reversed([*nodes]), None)
    path = [] if end is None else [end, *fields.ancestors(end, _parent_in(nodes))]
    messages = (fields.record(nodes.get(key), "message", "metadata") for key in reversed(path))
    found = (fields.text(one, "branching_from_conversation_id") for one in messages)
    return [*dict.fromkeys(source for source in found if source not in (None, name))]


def _parent_in(nodes: NodesByKey) -> Callable[[str], str | None]:
    return lambda key: fields.text(nodes.get(key), "parent")


def _parent(nodes: NodesByKey, key: str) -> str | None:
    """The nearest ancestor with a message."""
    above = fields.ancestors(key, _parent_in(nodes))
    return next((name for name in above if name not in nodes or nodes[name].get("message")), None)


class _NodesReader:
    """Reads the messages of a conversation.

    Args:
        nodes: The nodes of `mapping`.
        names: The names of files, by the names of the files of the export.
        position: The position of the conversation, for errors.
    """

    def __init__(self, nodes: NodesByKey, names: Mapping[str, Any], position: str) -> None:
        self._names = names
        self._messages: dict[str, fields.Record] = {}
        for key, node in nodes.items():
            if node.get("message"):
                self._messages[key] = as_object(node["message"], f"'message' of node {key!r} of {position}")
        self._parents = {
            key: fields.text(nodes[key], "parent")
            if nodes[key].get("parent") in self._messages
            else _parent(nodes, key)
            for key in self._messages
        }

    def said(self) -> list[Said]:
        """The messages."""
        calls, thoughts = self._calls(), self._thoughts()
        said, used = [], set()
        for key, message in self._messages.items():
            one = self._one(key, message, calls.get(key))
            if key in thoughts:
                one.parts, one.is_aside = thoughts[key] or one.parts, True
            elif one.role == ASSISTANT:
                while one.parent in thoughts:  # The thoughts before an answer belong to the answer.
                    used.add(one.parent)
                    one.parts = [*thoughts[one.parent], *one.parts]
                    one.parent = self._parents[one.parent]
            said.append(one)
        dropped = {key for key in used if thoughts[key]}
        for one in said:
            while one.parent in dropped:
                one.parent = self._parents[one.parent]
        return [one for one in said if one.key not in dropped]

    def _thoughts(self) -> dict[str, list[Part]]:
        """The parts of messages that are thoughts, or a summary such as "Thought for 4 seconds"."""
        thoughts: dict[str, list[Part]] = {}
        for key, message in self._messages.items():
            content = message.get("content")
            kind = fields.at(content, "content_type")
            if kind == "reasoning_recap":
                thoughts[key] = []
            elif kind == "thoughts" or (
                message.get("channel") == "analysis" and _role(message) == ASSISTANT and not _is_call(message)
            ):
                parts = self._parts(content, message)
                thoughts[key] = [Reasoning(part) if isinstance(part, str) else part for part in parts]
        return thoughts

    def _calls(self) -> dict[str, str]:
        """The key of the call, by the keys of each tool result and of each call.

        A message to a tool is a call only if a result follows it, since providers refuse a call without
        results.
        """
        calls: dict[str, str] = {}
        for key, message in self._messages.items():
            if _role(message) != TOOL:
                continue
            above = (name for name in fields.ancestors(key, self._parents.get) if name in self._messages)
            asking = next((name for name in above if _role(self._messages[name]) != TOOL), None)
            if asking is not None and _is_call(self._messages[asking]):
                calls[key] = calls[asking] = asking
        return calls

    def _one(self, key: str, message: fields.Record, call: str | None) -> Said:
        role, content, metadata = _role(message), message.get("content"), fields.record(message, "metadata")
        kind = fields.at(content, "content_type")
        extra = fields.filled(metadata, _KEPT_OF_MESSAGES) | fields.kept(sources=_found(metadata))
        if kind not in (None, "text", "multimodal_text"):
            extra["content_type"] = kind
        is_hidden = any(metadata.get(name) for name in _HIDDEN) or message.get("weight") == 0
        if is_hidden:
            extra["hidden"] = True
        parts = self._parts(content, message)
        if role == TOOL:
            texts = [str(part) for part in parts if isinstance(part, str | File)]
            output = "\n\n".join(texts)
            parts = [
                ToolResult(
                    output,
                    call,
                    fields.text(fields.record(message, "author"), "name"),
                    kind == "system_error",
                )
            ]
        elif call is not None:
            arguments = "\n\n".join(part for part in parts if isinstance(part, str))
            others = [part for part in parts if not isinstance(part, str)]
            parts = [*others, *_canvas(arguments), ToolUse(str(message.get("recipient")), arguments, call)]
        elif not parts:
            parts = _instructions(metadata)
        return Said(
            key,
            self._parents[key],
            role,
            parts,
            fields.seconds(message.get("create_time"), f"message {key!r}"),
            fields.text(metadata, "model_slug"),
            _speaker(message) if role == USER else None,
            is_hidden or kind in _INSTRUCTIONS,
            extra,
        )

    def _parts(self, content: Any, message: fields.Record) -> list[Part]:
        """The parts of the content of a message."""
        if not isinstance(content, dict):
            return [content] if isinstance(content, str) else []
        if isinstance(content.get("thoughts"), list):
            return [_thought(thought) for thought in content["thoughts"] if isinstance(thought, dict)]
        metadata = fields.record(message, "metadata")
        if "parts" in content:
            parts = [
                part
                for item in as_list(content["parts"] or [], "'parts' of a message")
                for part in self._of_part(item, metadata)
            ]
            parts = _with_links(parts, metadata)
            return [*parts, *self._attachments(parts, metadata)]
        texts = [content[field] for field in _TEXTS if isinstance(content.get(field), str) and content[field]]
        if isinstance(content.get("url"), str) and texts:
            texts.append(content["url"])
        unknown = {name for name in content if content[name] is not None} - {*_SILENT, *_TEXTS}
        parts = _with_links(list(texts), metadata)
        return [*parts, Other(content)] if unknown else parts

    def _of_part(self, item: Any, metadata: fields.Record) -> Iterator[Part]:
        text = item if isinstance(item, str) or item is None else fields.at(item, "text")
        kind = str(fields.at(item, "content_type") or "")
        medium = next(
            (name for name in ("image", "audio", "video") if kind.startswith(f"{name}_asset")), None
        )
        if item is None or isinstance(text, str):
            yield from parts_of(text)
        elif medium is not None:
            yield self._file(medium, item, metadata)
        elif kind.startswith("real_time_user_audio_video"):
            if voice := fields.record(item, "audio_asset_pointer"):
                yield self._file("audio", voice, metadata)
            for frame in fields.values(item, "frames_asset_pointers"):
                frame = frame if isinstance(frame, dict) else {"asset_pointer": frame}
                yield self._file("image", frame, metadata)
        else:
            yield Other(item)

    def _file(self, medium: str, item: fields.Record, metadata: fields.Record) -> File:
        pointer = str(item.get("asset_pointer") or "")
        found = _ID_IN_POINTER.search(pointer.rpartition("://")[2])
        id = found[0] if found else pointer.rpartition("/")[2]
        attached = next((one for one in _attached(metadata) if one.get("id") == id), {})
        name = fields.text(attached, "name") or fields.text(self._names, f"{id}.dat")
        value = {"file_id": pointer, **{key: one for key, one in item.items() if key != "asset_pointer"}}
        return File(medium, name or id or None, value)

    def _attachments(self, parts: Sequence[Part], metadata: fields.Record) -> Iterator[File]:
        """The attachments that are no parts of the content."""
        pointers = " ".join(str(part.value) for part in parts if isinstance(part, File))
        for one in _attached(metadata):
            id = str(one.get("id") or "")
            if not id or id not in pointers:
                name = fields.text(one, "name") or fields.text(self._names, f"{id}.dat")
                yield File("file", name or id or None, {**one, "file_id": id}, is_beside=True)


def _attached(metadata: fields.Record) -> list[fields.Record]:
    return [one for one in fields.values(metadata, "attachments") if isinstance(one, dict)]


def _thought(thought: fields.Record) -> Reasoning:
    chunks = "".join(chunk for chunk in fields.values(thought, "chunks") if isinstance(chunk, str))
    return Reasoning(fields.text(thought, "content") or chunks, fields.text(thought, "summary") or "")


def _role(message: fields.Record) -> str:
    """The role of the author; the report of a research is an answer, whoever delivers it."""
    role = fields.record(message, "author").get("role")
    if not isinstance(role, str) or not role:
        author = message.get("author")
        raise InputError(f"message {message.get('id')!r} has the author {author!r:.80}, without a role")
    is_report = role == TOOL and fields.record(message, "metadata").get("is_async_task_result_message")
    return ASSISTANT if is_report else role


def _speaker(message: fields.Record) -> str | None:
    """The name of a person in a group chat."""
    author = fields.record(message, "author")
    real = fields.at(author, "metadata", "real_author")
    return fields.text(author, "name") or fields.text(real, "name") or fields.text_or_none(real)


def _is_call(message: fields.Record) -> bool:
    return _role(message) == ASSISTANT and message.get("recipient") not in (None, "", "all")


def _instructions(metadata: fields.Record) -> list[Part]:
    """Custom instructions whose text is in the metadata only."""
    data = fields.record(metadata, "user_context_message_data")
    return [text for text in data.values() if isinstance(text, str) and text]


def _canvas(arguments: str) -> list[Part]:
    """The text of a canvas that a call creates or changes, below the name of the canvas."""
    document = arguments_of(arguments)
    texts = [document.get("content")]
    texts += [one.get("replacement") for one in document.get("updates") or () if isinstance(one, dict)]
    name = fields.text(document, "name")
    written = [text for text in texts if isinstance(text, str) and text.strip()]
    return [str(File("canvas", name)), *written] if written else []


def _found(metadata: fields.Record) -> list[fields.Record]:
    """The titles and addresses of the sources of an answer."""
    references = fields.values(metadata, "content_references")
    items = [item for one in references for name in _LISTS for item in fields.values(one, name)]
    items += [fields.at(one, "metadata") for one in fields.values(metadata, "citations")]
    listed = [item for item in items if fields.has(item, url=str)]
    return [*{one["url"]: {"title": fields.text(one, "title"), "url": one["url"]} for one in listed}.values()]


def _with_links(parts: list[Part], metadata: fields.Record) -> list[Part]:
    """The parts with links in the place of the marks of citations and references.

    The indexes count the characters of the joined text.
    """
    if not any(isinstance(part, str) for part in parts):
        return parts
    replacements = [*_of_references(metadata), *_of_citations(metadata)]
    texts = [part for part in parts if isinstance(part, str)]
    if not replacements and not any(map(_PRIVATE.search, texts)):
        return parts
    joined = "".join(texts)
    starts = [sum(map(len, texts[:n])) for n in range(len(texts))]
    for start, end, old, new in sorted(replacements, key=lambda one: -one[0]):
        if old and joined[start:end] != old:
            start = joined.find(old)
            end = start + len(old)
        if 0 <= start < end <= len(joined) and (old or _QUOTED.fullmatch(joined[start:end])):
            n = max(n for n in range(len(texts)) if starts[n] <= start)
            at = start - starts[n]
            space = " " if new and at and not texts[n][at - 1].isspace() and not new.startswith(" ") else ""
            texts[n] = f"{texts[n][:at]}{space}{new}{texts[n][at + end - start :]}"
            joined = "".join(texts)
    readable = iter([_PRIVATE.sub("", _MARK.sub(_readable, text)) for text in texts])
    return [next(readable) if isinstance(part, str) else part for part in parts]


def _of_references(metadata: fields.Record) -> Iterator[tuple[int, int, str, str]]:
    """Start, end, old and new text of the references of a message."""
    for one in fields.values(metadata, "content_references"):
        old = one.get("matched_text") if isinstance(one, dict) else None
        if not isinstance(old, str) or not old.strip() or one.get("type") == _FOOTNOTE:
            continue
        start, end = _range(one, "start_idx", "end_idx")
        new = fields.text(one, "alt") or _links(one) or fields.text(one, "name") or ""
        if new or _PRIVATE.search(old):
            yield start, end, old, new


def _range(value: fields.Record, *names: str) -> Iterator[int]:
    """The indexes in fields; -1 without them."""
    return (value[name] if isinstance(value.get(name), int) else -1 for name in names)


def _links(reference: fields.Record) -> str:
    items = [item for name in _LISTS for item in fields.values(reference, name)]
    links = [_link(item) for item in items if fields.has(item, url=str)]
    urls = [url for url in reference.get("safe_urls") or () if isinstance(url, str)]
    return ", ".join(dict.fromkeys(links or urls))


def _link(item: fields.Record) -> str:
    title = fields.text(item, "title", "attribution")
    return f"[{title}]({item['url']})" if title else str(item["url"])


def _of_citations(metadata: fields.Record) -> Iterator[tuple[int, int, str, str]]:
    for one in fields.values(metadata, "citations"):
        if fields.has(one, metadata=dict):
            start, end = _range(one, "start_ix", "end_ix")
            cited = one["metadata"]
            has_link = fields.has(cited, url=str)
            yield start, end, "", _link(cited) if has_link else fields.text(cited, "title") or ""


def _readable(mark: re.Match[str]) -> str:
    """The name in a mark of an entity; other marks are left out, with the space before them."""
    kind, _, value = mark[2].partition("\ue202")
    if kind != "entity":
        return ""
    try:
        names = json.loads(value)
    except ValueError:
        return ""
    return f"{mark[1]}{names[1]}" if isinstance(names, list) and len(names) > 1 else ""


FORMAT = Format("chatgpt", "conversations.json of ChatGPT's export", _chats, _is_chatgpt)
