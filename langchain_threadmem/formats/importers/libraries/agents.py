"""Messages of Pydantic AI, ADK, the Gemini API, Bedrock, Strands, Rasa and Letta, see `program`.

The fields are those of pydantic-ai 1.107 and 2.68 (`ModelMessagesTypeAdapter`), google-adk 2.13 (`Session`),
google-genai 2.34 (`Content`), Bedrock's Converse (`Message`), strands-agents 1.62 (`FileSessionManager`,
which writes a file for each message), rasa 3.6.20 (`Tracker` and `SQLTrackerStore`) and letta 0.11.7
(`AgentFileSchema`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import parts_of
from langchain_threadmem.formats.importers.chats import Chats
from langchain_threadmem.formats.importers.content_parts import (
    Other,
    Part,
    Reasoning,
    ToolResult,
    ToolUse,
    arguments_of,
)
from langchain_threadmem.formats.importers.program import ChatRecord, Program, all_are
from langchain_threadmem.formats.importers.said import ASSISTANT, SYSTEM, TOOL, USER, chat_of
from langchain_threadmem.formats.importers.source import Format, Source
from langchain_threadmem.messages.ids import chained_id
from langchain_threadmem.messages.records import as_object, loads

_RETRIES = ("retry-prompt", "retry-feedback")
"""The kinds of parts in which the program asks for another answer."""


def _is_pydantic_ai(value: Any) -> bool:
    kinds = [fields.at(part, "part_kind") for part in fields.values(value, "parts")]
    return fields.at(value, "kind") in ("request", "response") and bool(kinds) and all(kinds)


def _of_pydantic_ai(value: fields.Record) -> Iterator[ChatRecord]:
    """The messages of a history; an answer that the program has rejected is an aside."""
    messages: list[fields.Record] = []
    for one in fields.records(value, "messages", "the history"):
        if one.get("kind") == "response":
            messages.append({**one, "role": ASSISTANT, "model": one.get("model_name")})
            continue
        for role, of_role in groupby(fields.records(one, "parts", "a request"), _role):
            parts = [*of_role]
            if messages and role == SYSTEM and parts[0]["part_kind"] in _RETRIES:
                messages[-1]["is_aside"] = True
            messages.append({"role": role, "parts": parts, "timestamp": parts[0].get("timestamp")})
    yield ChatRecord(value, messages)


def _role(part: fields.Record) -> str:
    """The role of a part of a request: of the program, unless it is a prompt or belongs to a call."""
    kind = part["part_kind"]
    return USER if kind in ("user-prompt", "speech") else TOOL if part.get("tool_name") else SYSTEM


def _parts_of_pydantic_ai(message: fields.Record) -> Iterator[Part]:
    for part in message["parts"]:
        kind = str(part["part_kind"])
        if kind in ("tool-return", "builtin-tool-return") or (kind in _RETRIES and part.get("tool_name")):
            name, id = fields.text(part, "tool_name"), fields.text(part, "tool_call_id")
            is_error = kind in _RETRIES or part.get("outcome", "success") != "success"
            yield ToolResult(part.get("content"), id, name, is_error)
        elif kind in ("system-prompt", "user-prompt", "speech", *_RETRIES):
            yield from parts_of(part.get("transcript", part.get("content")))
        else:
            yield from parts_of({**part, "type": kind.removeprefix("builtin-")})


PYDANTIC_AI = Program(
    "pydantic_ai",
    "Pydantic AI's history of messages",
    lambda value: all_are(value, _is_pydantic_ai),
    _parts_of_pydantic_ai,
    _of_pydantic_ai,
    _is_pydantic_ai,
    asides=("is_aside",),
)


def _of_adk(value: fields.Record) -> Iterator[ChatRecord]:
    """The events of a session; what follows a rewind continues what precedes the invocation that it names."""
    messages: list[fields.Record] = []
    before: dict[Any, str | None] = {}
    last: str | None = None
    for event in fields.records(value, "events", "the session"):
        invocation = event.get("invocationId", event.get("invocation_id"))
        before.setdefault(invocation, last)
        actions = fields.record(event, "actions")
        rewound = actions.get("rewindBeforeInvocationId", actions.get("rewind_before_invocation_id"))
        last = before.get(rewound, last) if rewound else last
        if not event.get("partial") and fields.values(event, "content", "parts"):
            role = USER if event.get("author") == USER else ASSISTANT
            model = event.get("modelVersion", event.get("model_version"))
            messages.append({**event, "role": role, "parent": last, "model": model})
            last = fields.id_in(event, "id")
    yield ChatRecord(value, messages, others={"tip": last})


ADK = Program(
    "adk",
    "a session of Google's ADK",
    lambda value: fields.has(value, events=list) and bool({"appName", "app_name"} & value.keys()),
    lambda event: parts_of(event["content"]["parts"]),
    _of_adk,
    parents=("parent",),
    kept=("author",),
)


def _is_gemini(value: Any) -> bool:
    is_content = fields.has(value, parts=list) and fields.at(value, "role") in (USER, "model", "function")
    return is_content and not any("type" in part for part in value["parts"])


def _of_gemini(value: fields.Record) -> Iterator[ChatRecord]:
    system = value.get("systemInstruction", value.get("system_instruction"))
    instructions = parts_of(fields.at(system, "parts") or system)
    yield ChatRecord(value, value.get("contents") or value.get("messages") or [], system=instructions)


GEMINI = Program(
    "gemini",
    "contents of the Gemini API",
    lambda value: all_are(value, _is_gemini, "contents"),
    lambda message: parts_of(message["parts"]),
    _of_gemini,
    _is_gemini,
)


_BLOCKS = {"text", "toolUse", "toolResult", "reasoningContent", "image", "document", "video", "cachePoint"}


def _is_bedrock(value: Any) -> bool:
    blocks, role = fields.values(value, "content"), fields.at(value, "role")
    are_blocks = all(isinstance(block, dict) and len(block) == 1 and _BLOCKS & {*block} for block in blocks)
    return bool(blocks) and are_blocks and role in (USER, ASSISTANT)


def _of_bedrock(value: fields.Record) -> Iterator[ChatRecord]:
    yield ChatRecord(value, value.get("messages") or [], system=parts_of(value.get("system")))


BEDROCK = Program(
    "bedrock",
    "messages of Bedrock's Converse",
    lambda value: all_are(value, _is_bedrock),
    lambda message: parts_of(message["content"]),
    _of_bedrock,
    _is_bedrock,
)


def _chats_of_strands(source: Source) -> Chats:
    """The conversation of an agent in a session: the messages of all files of its folder."""
    folders: set[str] = source.shared.setdefault("folders", set())
    folder = source.label.removesuffix(source.file_name)
    if folder in folders:
        return
    folders.add(folder)
    messages: list[fields.Record] = []
    while value := source.beside(f"message_{len(messages)}.json"):
        messages.append(
            (value.get("redact_message") or value["message"]) | {"created_at": value.get("created_at")}
        )
    session, agent = source.beside("../../../session.json"), source.beside("../agent.json")
    name, id = fields.text(session, "session_id") or source.folder, fields.text(agent, "agent_id")
    name = name if id in (None, "default") else f"{name}-{id}"
    yield chat_of("the session", name, BEDROCK.linked(messages, "the session"), session)


STRANDS = Format(
    "strands",
    "the folder of a session of Strands",
    _chats_of_strands,
    lambda value: fields.has(value, message=dict) and {"message_id", "redact_message"} <= value.keys(),
)


def _is_rasa(value: Any) -> bool:
    names = {"sender_id", "name"}
    return (
        fields.has(value, events=list)
        and bool(names & value.keys())
        and all("event" in one for one in value["events"])
    )


def _of_rasa(value: fields.Record) -> Iterator[ChatRecord]:
    """What was said in a conversation; what follows a rewind continues what precedes the last question."""
    messages: list[fields.Record] = []
    before: list[str | None] = []
    last: str | None = None
    for event in fields.records(value, "events", "the tracker"):
        kind = event["event"]
        if kind == "rewind" and before:
            last = before.pop()
        elif kind in ("user", "bot"):
            before += [last] if kind == "user" else []
            key = fields.text(event, "message_id") or chained_id("import-", last, event)
            messages.append({**event, "id": key, "role": kind, "parent": last})
            last = key
    yield ChatRecord({}, messages, fields.text(value, "sender_id", "name"), {"tip": last})


def _parts_of_rasa(event: fields.Record) -> Iterator[Part]:
    yield from parts_of(event.get("text"))
    data = fields.record(event, "data")
    if kept := fields.filled(data, data):
        yield Other({"type": "data", **kept})


def _rows_of_rasa(source: Source) -> Iterator[fields.Record]:
    """The conversations of an SQL tracker store."""
    rows = source.records("events", ("sender_id", "data"), "ORDER BY sender_id, timestamp, id")
    for sender, of_sender in groupby(rows, key=lambda row: row["sender_id"]):
        events = [loads(row["data"], f"an event of {sender!r}") for row in of_sender]
        yield {"sender_id": sender, "events": events}


RASA = Program(
    "rasa",
    "a tracker of Rasa, or the database of its tracker store",
    _is_rasa,
    _parts_of_rasa,
    _of_rasa,
    parents=("parent",),
    is_database=lambda source: source.has(events={"sender_id", "type_name", "timestamp", "data"}),
    rows=_rows_of_rasa,
)


def _is_letta(value: Any) -> bool:
    agents = fields.values(value, "agents")
    return bool(agents) and all(fields.has(one, agent_type=str, messages=list) for one in agents)


def _of_letta(value: fields.Record) -> Iterator[ChatRecord]:
    """The messages of each agent, whose ids are numbers in the file."""
    for agent in fields.records(value, "agents", "the file"):
        messages = []
        for one in fields.records(agent, "messages", "an agent"):
            packed = _packed(one.get("content")) if one.get("role") in (USER, TOOL) else {}
            is_event = one.get("role") == USER and packed.get("type", "user_message") != "user_message"
            is_approval = one.get("role") == "approval"
            role = ASSISTANT if is_approval and one.get("tool_calls") else one.get("role")
            about = {"id": None, "role": role, "packed": packed, "is_aside": is_event or role == "approval"}
            # A thought is the text of the agents that answer by a tool.
            has_thoughts = str(agent["agent_type"]).startswith("memgpt")
            messages.append(one | about | {"has_thoughts": has_thoughts})
        name = f"letta-{fields.text(agent, 'name') or fields.text(agent, 'id')}"
        yield ChatRecord({"title": agent.get("name"), "tags": agent.get("tags")}, messages, name)


def _packed(content: Any) -> fields.Record:
    """The object in the text of a message."""
    text = next((fields.text(block, "text") for block in content or () if isinstance(block, dict)), None)
    try:
        return as_object(loads(text or content, "the content"), "the content")
    except (InputError, TypeError):
        return {}


def _parts_of_letta(message: fields.Record) -> Iterator[Part]:
    packed, said = message["packed"], "message" in message["packed"]
    if message["role"] == TOOL:
        output = packed["message"] if said else message.get("content")
        is_error = packed.get("status") == "Failed"
        yield ToolResult(output, fields.text(message, "tool_call_id"), fields.text(message, "name"), is_error)
        return
    for part in [str(packed["message"])] if said else parts_of(message.get("content")):
        is_thought = message["role"] == ASSISTANT and message["has_thoughts"] and isinstance(part, str)
        yield Reasoning(str(part)) if is_thought else part
    for part in parts_of([{**call, "type": "tool_call"} for call in message.get("tool_calls") or ()]):
        is_spoken = isinstance(part, ToolUse) and part.name == "send_message"
        spoken = (
            arguments_of(part.arguments).get("message") if isinstance(part, ToolUse) and is_spoken else None
        )
        yield str(spoken) if spoken else part


LETTA = Program(
    "letta",
    "an agent file of Letta",
    _is_letta,
    _parts_of_letta,
    _of_letta,
    asides=("is_aside",),
)
PROGRAMS = (PYDANTIC_AI, ADK, GEMINI, BEDROCK, RASA, LETTA)
