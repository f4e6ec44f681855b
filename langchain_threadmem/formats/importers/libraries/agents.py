"""Messages of Pydantic AI, Google's ADK, the Gemini API, Amazon Bedrock and Strands, see `program`.

The fields are those of pydantic-ai 1.107 and 2.68 (`ModelMessagesTypeAdapter`), google-adk 2.13 (`Session`),
google-genai 2.34 (`Content`), Bedrock's Converse (`Message`), and strands-agents 1.62 (`FileSessionManager`,
which writes a file for each message).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import parts_of
from langchain_threadmem.formats.importers.chats import Chats
from langchain_threadmem.formats.importers.parts import Part, ToolResult
from langchain_threadmem.formats.importers.program import ChatRecord, Program, all_are
from langchain_threadmem.formats.importers.said import ASSISTANT, SYSTEM, TOOL, USER, chat_of
from langchain_threadmem.formats.importers.source import Format, Source

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


PROGRAMS = (PYDANTIC_AI, ADK, GEMINI, BEDROCK)
