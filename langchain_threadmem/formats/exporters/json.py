"""Conversations as JSON and JSON Lines: writing and reading.

`to_json` writes the role, content, parent and time of each node, which other tools can read, and the
remaining fields of each message, so that `from_json(to_json(nodes)).nodes` equals `nodes`. `to_jsonl` writes
threads as JSON Lines. `parse_conversation` reads messages from the common formats of chat exports.

Documents are untrusted: messages are built from a fixed list of classes (see `messages.codec`) and validated.
No document can import a class; `{"lc": 1, ...}` stays a dictionary.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib import resources
from typing import Any

from langchain_core.messages import BaseMessage

from langchain_threadmem.common.inputs import seconds_of, zoned
from langchain_threadmem.errors import InputError, InvalidGraphStateError, UnsupportedMessageError
from langchain_threadmem.messages.codec import clone, decode, encode, text_of
from langchain_threadmem.messages.records import as_list, as_object, dumps, loads, message_from, reason
from langchain_threadmem.messages.roles import TYPES, role_of
from langchain_threadmem.messages.typed_json import UNTRUSTED, Opaque, WriteOpaque
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree import graph
from langchain_threadmem.tree.node import EPOCH, ConversationNode, MessageSummary, Placement

VERSION = "1.0"
MODES = {"linear": "linear", "graph": "graph", "threaded": "graph"}
"""The name that is written for a mode, by the names that documents may contain."""
_STATES = {state.label: state for state in (State.LIVE, State.SUPERSEDED, State.ASIDE)}
"""The states of nodes in documents; a purged node has no contents to write or to read."""


@dataclass(frozen=True, slots=True)
class JsonConversation:
    """A conversation that `from_json` read.

    Attributes:
        nodes: The nodes, in the order of their ids.
        mode: "linear" or "graph".
        metadata: The metadata of the document, unchanged.
    """

    nodes: list[ConversationNode]
    mode: str
    metadata: dict[str, Any]


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the documents that `to_json` writes.

    Example:
        >>> json_schema()["required"]
        ['version', 'metadata', 'nodes', 'edges']
    """
    text = resources.files(__package__).joinpath("schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def to_json(
    nodes: Sequence[ConversationNode],
    *,
    mode: str = "linear",
    metadata: Mapping[str, Any] | None = None,
    other: WriteOpaque | None = None,
) -> str:
    """Write a conversation as one JSON document that `from_json` reads back exactly.

    Args:
        nodes: All nodes of one conversation, in any order.
        mode: "linear" or "graph".
        metadata: Further metadata of the document, as JSON values.
        other: Writer of message parts that JSON cannot represent; without a writer, such parts are refused.

    Returns:
        JSON text. Times without a time zone are read as UTC. About 50 ms per 1,000 nodes.

    Raises:
        InvalidGraphStateError: The nodes do not form a forest, or a parent is missing.
        UnsupportedMessageError: A message has a value that cannot be written exactly.
        InputError: `mode` is unknown, or `metadata` has a value that JSON cannot represent.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> document = json.loads(to_json([ConversationNode(1, HumanMessage("Hello"))]))
        >>> document["nodes"][0]["role"], document["nodes"][0]["content"]
        ('user', 'Hello')
    """
    nodes = _validated(nodes)
    times = [zoned(node.timestamp) for node in nodes]
    document = {
        "version": VERSION,
        "metadata": {
            **(metadata or {}),
            "created_at": _iso(min(times, default=None)),
            "last_modified": _iso(max(times, default=None)),
            "mode": _mode(mode),
            "total_messages": len(nodes),
        },
        "nodes": [_node_record(node, other) for node in nodes],
        "edges": [{"from": parent, "to": child} for parent, child in _edges(nodes)],
    }
    return dumps(document, "the metadata", indent=2)


def from_json(text: str) -> JsonConversation:
    """Read a document of `to_json`, or of another tool that writes the same format.

    Args:
        text: JSON text. `summary`, `parent_id`, `timestamp`, `edges` and `metadata` may be missing;
            a time without a time zone is read as UTC.

    Returns:
        The nodes in the order of their ids, the mode and the metadata.

    Raises:
        InputError: The text is not such a document, or has a newer version; the error names the node.
        InvalidGraphStateError: The nodes and edges do not form a tree; the error names the ids.

    Example:
        >>> from_json('{"version": "1.0", "nodes": [{"id": 1, "role": "user", "content": "Hi"}]}').mode
        'linear'
    """
    return read_document(loads(text.removeprefix("\ufeff"), "the document"))


def read_document(value: object) -> JsonConversation:
    """Read a parsed document; see `from_json`."""
    document = as_object(value, "the document")
    version = document.get("version", VERSION)
    if str(version).partition(".")[0] != VERSION.partition(".")[0]:
        raise InputError(f"cannot read version {version!r} of the document, only 1.x; upgrade this package")
    metadata = as_object(document.get("metadata") or {}, "'metadata'")
    records = as_list(document.get("nodes"), "'nodes'")
    nodes = _validated(_read_node(record, n) for n, record in enumerate(records, 1))
    if document.get("edges") is not None:
        edges = [as_object(edge, "an edge") for edge in as_list(document["edges"], "'edges'")]
        mismatched = {(str(edge.get("from")), str(edge.get("to"))) for edge in edges}
        mismatched ^= {(str(parent), str(child)) for parent, child in _edges(nodes)}
        if mismatched:
            shown = ", ".join(f"{parent} to {child}" for parent, child in sorted(mismatched))
            raise _corrupted(f"edges that disagree with 'parent_id': {shown}")
    return JsonConversation(nodes, _mode(metadata.get("mode", "linear")), metadata)


def to_jsonl(nodes: Sequence[ConversationNode]) -> str:
    """Write each thread as one line `{"messages": [...]}`, the format of OpenAI fine-tuning.

    Args:
        nodes: Nodes of one conversation, in any order.

    Returns:
        One line per thread, root to leaf, in the order of the leaves' ids. Messages that several threads
        share are repeated in each thread.

    Raises:
        InvalidGraphStateError: The nodes do not form a forest.
        UnsupportedMessageError: A message has no OpenAI format; the error names the node.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> to_jsonl([ConversationNode(1, HumanMessage("Hello"))])
        '{"messages": [{"role": "user", "content": "Hello"}]}'
    """
    # Its converters of all providers take 20 ms to import.
    from langchain_core.messages import convert_to_openai_messages

    graph.validate(nodes)
    lines: dict[int, str] = {}
    for node in nodes:
        try:
            lines[node.id] = dumps(convert_to_openai_messages([node.message]), f"node {node.id}")[1:-1]
        except (ValueError, KeyError, TypeError) as error:
            raise UnsupportedMessageError(
                f"node {node.id} has no OpenAI format ({error!r}); export it with to_json"
            ) from error
    threads = (", ".join(lines[node.id] for node in thread) for thread in graph.threads(nodes))
    return "\n".join(f'{{"messages": [{thread}]}}' for thread in threads)


def to_jsonl_messages(nodes: Sequence[ConversationNode]) -> str:
    """Write each message as one line `{"role": ..., "content": ...}`, in the order of ids.

    Args:
        nodes: Nodes of one conversation, in any order.

    Returns:
        One line per node of any state. Tool calls and names are omitted.

    Raises:
        InputError: A content block has a value that JSON cannot represent; the error names the node.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> to_jsonl_messages([ConversationNode(1, HumanMessage("Hello"))])
        '{"role": "user", "content": "Hello"}'
    """
    return "\n".join(
        dumps({"role": role_of(node.message), "content": node.message.content}, f"node {node.id}")
        for node in sorted(nodes, key=lambda node: node.id)
    )


def parse_conversation(text: str, *, index: int = 0) -> list[BaseMessage]:
    """Read one conversation from any common format of chat exports.

    Args:
        text: Messages, or conversations `{"messages": [...]}`, as a JSON list or as JSON Lines. A message is
            `{"type": "human", "data": {...}}`, or has fields for its role (`role` or `type`) and its content
            (`content` or `text`).
        index: Position of the conversation, from 0, if the text has several.

    Returns:
        The messages in order. Ids are kept if they are text.

    Raises:
        InputError: The text is not JSON, a role is unknown, a message is empty, there are no messages, or
            there is no conversation at `index`; the error names the line or the element.

    Example:
        >>> parse_conversation('[{"role": "user", "content": "Hello"}]')[0].text
        'Hello'
    """
    text = text.removeprefix("\ufeff")
    if text.lstrip().startswith("["):
        records = [(f"element {n}", item) for n, item in enumerate(loads(text, "the text"), 1)]
    else:
        lines = [(f"line {n}", line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
        records = [(position, loads(line, position)) for position, line in lines]
    conversations = [(at, item) for at, item in records if isinstance(item, dict) and "messages" in item]
    if not 0 <= index < max(len(conversations), 1):
        count = max(len(conversations), 1)
        raise InputError(f"there is no conversation {index!r}; choose from 0 to {count - 1}")
    if conversations:
        position, conversation = conversations[index]
        items = as_list(conversation["messages"], f"'messages' of {position}")
        records = [(f"{position}, message {n}", item) for n, item in enumerate(items, 1)]
    if not records:
        raise InputError("there are no messages; pass at least one message")
    messages = [message_from(item, position) for position, item in records]
    for message, (position, _) in zip(messages, records, strict=True):
        blank = message.content.strip() == "" if isinstance(message.content, str) else not message.content
        if blank and not getattr(message, "tool_calls", None):
            raise InputError(f"{position} has empty content; add text, or remove the message")
    return messages


def _node_record(node: ConversationNode, other: WriteOpaque | None) -> dict[str, Any]:
    record: dict[str, Any] = {
        "id": node.id,
        "role": role_of(node.message),
        "content": text_of(node.message),
        "timestamp": _iso(zoned(node.timestamp)),
        "summary": node.summary.model_dump() if node.summary else None,
        "parent_id": node.parent_id,
    }
    if node.message.id is not None:
        record["message_id"] = node.message.id
    body = json.loads(encode(node.message, other))
    if isinstance(node.message.content, str):
        del body["data"]["content"]
    if body["data"] or TYPES.get(record["role"]) != body["type"]:
        record["message"] = body
    if node.state != State.LIVE:
        record["state"] = node.state.label
    if node.superseded_by is not None:
        record["superseded_by"] = node.superseded_by
    if (placement := node.placement) is not None:
        record["placement"] = {
            "reason": placement.reason,
            **({"chances": placement.chances} if placement.chances else {}),
            **({"title": placement.title} if placement.title else {}),
        }
    return record


def _read_node(value: object, n: int) -> ConversationNode:
    record = as_object(value, f"node number {n}")
    links: dict[str, Any] = {name: record.get(name) for name in ("id", "parent_id", "superseded_by")}
    where = f"node {links['id']!r}"
    for name, link in links.items():
        if not (type(link) is int and link > 0) and not (link is None and name != "id"):
            raise _corrupted(f"node number {n} has the {name} {link!r}, which is not a positive number")
    state = record.get("state", State.LIVE.label)
    if not isinstance(state, str) or state not in _STATES:
        raise InputError(f"{where} has the state {state!r}; use {', '.join(_STATES)}")
    summary, time = record.get("summary"), record.get("timestamp")
    try:
        timestamp = EPOCH if time is None else zoned(datetime.fromisoformat(time))
        seconds_of(timestamp)
        parsed = None if summary is None else MessageSummary.model_validate(summary)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where} has a bad timestamp or summary: {reason(error)}") from error
    message = _node_message(record, where)
    return ConversationNode(
        links["id"],
        message,
        links["parent_id"],
        parsed,
        timestamp,
        _STATES[state],
        links["superseded_by"],
        _placement(record.get("placement"), where),
    )


def _placement(value: object, position: str) -> Placement | None:
    if value is None:
        return None
    record = as_object(value, f"'placement' of {position}")
    reason, title = record.get("reason"), record.get("title", "")
    chances = as_list(record.get("chances") or [], f"'chances' of {position}")
    if not (isinstance(reason, str) and isinstance(title, str) and all(map(_is_chance, chances))):
        raise InputError(
            f"{position} has a bad placement {value!r:.80}; give it a 'reason', and 'chances': pairs of a "
            "node id or null and a probability"
        )
    return Placement(reason, tuple((candidate, float(chance)) for candidate, chance in chances), title)


def _is_chance(pair: object) -> bool:
    match pair:
        case [None | int(), float() | int()] if not any(isinstance(each, bool) for each in pair):
            return True
    return False


def _node_message(record: dict[str, Any], position: str) -> BaseMessage:
    message_id = record.get("message_id")
    if not isinstance(message_id, str | None):
        raise InputError(f"{position} has the message_id {message_id!r}; use text, or omit the field")
    if record.get("message") is None:
        return message_from({**record, "type": None, "data": None, "id": message_id}, position)
    body = as_object(record["message"], f"'message' of {position}")
    data = {"content": record.get("content"), **as_object(body.get("data"), f"'data' of {position}")}
    body = {**body, "data": {name: value for name, value in data.items() if name not in ("id", "type")}}
    try:
        message = clone(decode([("", json.dumps(body))], other=_untrusted)[0], id=message_id)
        # The result is not used, since a validator may change the values of the message.
        type(message).model_validate(dict(message))
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise InputError(f"{position} has a 'message' that cannot be read: {reason(error)}") from error
    role, recorded_role = role_of(message), record.get("role")
    if recorded_role != role and TYPES.get(str(recorded_role)) != TYPES.get(role, ""):
        raise InputError(
            f"{position} has the role {recorded_role!r} but a message of role {role!r}; use one role in both"
        )
    return message


def _untrusted(opaque: Opaque) -> Opaque:
    return (
        opaque if opaque.format.startswith(UNTRUSTED) else replace(opaque, format=UNTRUSTED + opaque.format)
    )


def _validated(nodes: Iterable[ConversationNode]) -> list[ConversationNode]:
    """Check that nodes form a forest, and sort them by id."""
    ordered = sorted(nodes, key=lambda node: node.id)
    try:
        graph.validate(ordered)
    except InvalidGraphStateError as error:
        raise _corrupted(str(error)) from error
    return ordered


def _edges(nodes: Iterable[ConversationNode]) -> Iterator[tuple[int, int]]:
    return ((node.parent_id, node.id) for node in nodes if node.parent_id is not None)


def _corrupted(problem: str) -> InvalidGraphStateError:
    return InvalidGraphStateError(
        "Conversation graph has become corrupted. "
        "This can happen if the same message was processed multiple times. "
        f"Use memory.reset() to clear the conversation and start fresh. Found: {problem}"
    )


def _mode(mode: object) -> str:
    if not isinstance(mode, str) or mode not in MODES:
        raise InputError(f"unknown mode {mode!r}; use 'linear' or 'graph'")
    return MODES[mode]


def _iso(time: datetime | None) -> str | None:
    text = None if time is None else zoned(time).isoformat()
    return text[:-6] + "Z" if text and text.endswith("+00:00") else text
