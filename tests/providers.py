"""A checker of prompts: what LangChain's integrations would send, against the rules of the providers.

Each function returns the first rule that a list of messages breaks, in words; nothing for a list that the
provider accepts. No provider is called. The rules of Mistral are those of the validator of mistral-common
1.13; the others are those of the providers' references, as of 2026-11.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_anthropic.chat_models import _format_messages
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_google_genai.chat_models import _parse_chat_history
from langchain_openai.chat_models.base import _construct_responses_api_input, _convert_message_to_dict

_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")


def openai_chat(messages: Sequence[BaseMessage]) -> Iterator[str]:
    sent = [_convert_message_to_dict(message) for message in messages]
    seen: set[str] = set()
    waiting: list[str] = []
    for message in sent:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"a result without its call: {message['tool_call_id']}"
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield f"calls without results: {waiting}"
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        if seen & set(waiting) or len(set(waiting)) < len(waiting):
            yield f"a call id twice: {waiting}"
        seen |= set(waiting)
        if message["role"] == "user" and not message["content"]:
            yield "a user message without content"
        if message["role"] == "assistant" and not (message["content"] or waiting):
            yield "an answer without content"
    if waiting:
        yield f"calls without results: {waiting}"


def openai_responses(messages: Sequence[BaseMessage]) -> Iterator[str]:
    items = _construct_responses_api_input(messages)
    called: list[str] = []
    answered: list[str] = []
    ids = [item["id"] for item in items if item.get("id")]
    if len(set(ids)) < len(ids):
        yield f"an item id twice: {ids}"
    for item, following in zip(items, [*items[1:], {}], strict=True):
        kind = item.get("type")
        if kind == "function_call":
            called.append(item["call_id"])
        elif kind == "function_call_output":
            if item["call_id"] not in called:
                yield f"a result without its call: {item['call_id']}"
            answered.append(item["call_id"])
        elif (
            kind == "reasoning"
            and following.get("role") != "assistant"
            and following.get("type")
            not in (
                "function_call",
                "message",
                "reasoning",
            )
        ):
            yield "a thought without its answer"
    if len(set(called)) < len(called) or len(set(answered)) < len(answered):
        yield f"a call id twice: {called}"
    if set(called) != set(answered):
        yield f"calls without results: {set(called) ^ set(answered)}"


def anthropic(messages: Sequence[BaseMessage]) -> Iterator[str]:
    _, sent = _format_messages(messages, model=None)
    if sent and sent[0]["role"] != "user":
        yield "the first message is not the user's"
    if sent and sent[-1]["role"] != "user":
        yield "the last message is not the user's"
    open_calls: list[str] = []
    seen: set[str] = set()
    for message in sent:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks:
            yield f"a message of the {message['role']} without content"
        if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
            yield "an empty text"
        if any(block["type"] == "thinking" and not block.get("signature") for block in blocks):
            yield "a thought without its signature"
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(results) != sorted(open_calls):
            yield f"calls {open_calls}, results {results}"
        if any(block["type"] != "tool_result" for block in blocks[: len(results)]):
            yield "other content before results"
        open_calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if seen & set(open_calls) or len(set(open_calls)) < len(open_calls):
            yield f"a call id twice: {open_calls}"
        if not all(map(_CALL_ID.fullmatch, open_calls)):
            yield f"a call id with other characters: {open_calls}"
        seen |= set(open_calls)
    if open_calls:
        yield f"calls without results: {open_calls}"


def gemini(messages: Sequence[BaseMessage]) -> Iterator[str]:
    _, contents = _parse_chat_history(messages)
    calls: list[str | None] = []
    before = ""
    for number, content in enumerate(contents):
        parts = content.parts or []
        if number == 0 and content.role != "user":
            yield f"the first turn is that of the {content.role}"
        if not parts:
            yield "a turn without parts"
        made = [part.function_call.id for part in parts if part.function_call]
        responses = [part.function_response.id for part in parts if part.function_response]
        if made and before not in ("user", "response"):
            yield f"a call after the {before}"
        if len(responses) != len(calls):
            yield f"{len(calls)} calls, {len(responses)} responses"
        calls = made
        before = "response" if responses else str(content.role)
    if calls:
        yield f"calls without responses: {calls}"
    texts = [part.text for content in contents for part in content.parts or () if part.text]
    question = next(m for m in reversed(messages) if isinstance(m, HumanMessage))
    if question.text and not any(question.text in text for text in texts):
        yield "the question is not sent"
    system = [m for m in messages if m.type == "system"]
    if system and list(messages[: len(system)]) != system:
        yield "a late system message is not sent"


def mistral(messages: Sequence[BaseMessage]) -> Iterator[str]:
    may_follow = {
        "": {"system", "user"},
        "system": {"system", "user"},
        "user": {"user", "assistant", "system"},
        "assistant": {"user", "system"},
        "call": {"tool"},
        "tool": {"tool", "assistant", "user"},
    }
    before = ""
    calls: set[str] = set()
    for message in map(_convert_message_to_dict, messages):
        role = message["role"]
        if role not in may_follow[before]:
            yield f"the {role} after the {before or 'beginning'}"
        if role == "tool":
            if message["tool_call_id"] not in calls:
                yield f"a result without its call: {message['tool_call_id']}"
            calls.discard(message["tool_call_id"])
        elif calls:
            yield f"calls without results: {calls}"
        before = role
        if role == "assistant":
            calls = {call["id"] for call in message.get("tool_calls") or ()}
            if len(calls) < len(message.get("tool_calls") or ()):
                yield f"a call id twice: {calls}"
            if not (message["content"] or calls):
                yield "an answer without content"
            before = "call" if calls else role
    if before not in ("user", "tool"):
        yield f"the last message is that of the {before}"


PROVIDERS: dict[str, Callable[[Sequence[BaseMessage]], Iterator[str]]] = {
    "OpenAI chat": openai_chat,
    "OpenAI Responses": openai_responses,
    "Anthropic": anthropic,
    "Gemini": gemini,
    "Mistral": mistral,
}


def refusals(messages: Sequence[BaseMessage]) -> dict[str, Any]:
    """The first rule that each provider would refuse a list for; empty for a list that all accept."""
    found = {}
    for name, check in PROVIDERS.items():
        try:
            reason = next(check(messages), None)
        except ValueError as error:  # A converter refuses the list.
            reason = str(error)
        if reason is not None:
            found[name] = reason
    return found
