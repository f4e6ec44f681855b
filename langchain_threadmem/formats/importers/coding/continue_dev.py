"""Sessions of Continue.

The fields follow continuedev/continue.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.program import ChatRecord, Program, standard_parts


def _is_continue(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("sessionId"), str)
        and isinstance(value.get("history"), list)
        and all(isinstance(one, dict) and isinstance(one.get("message"), dict) for one in value["history"])
    )


def _of_continue(value: Record) -> Iterator[ChatRecord]:
    messages: list[Record] = []
    for one in value["history"]:
        message = {**one["message"]}
        states = [state for state in one.get("toolCallStates") or () if isinstance(state, dict)]
        message.setdefault(
            "reasoning",
            (one.get("reasoning") or {}).get("text") if isinstance(one.get("reasoning"), dict) else None,
        )
        messages.append(message)
        answered = {entry["message"].get("toolCallId") for entry in value["history"]}
        for state in states:
            id = state.get("toolCallId")
            if state.get("output") is not None and id not in answered:
                texts = [item.get("content") for item in state["output"] if isinstance(item, dict)]
                messages.append(
                    {"role": "tool", "toolCallId": id, "content": [text for text in texts if text]}
                )
    yield ChatRecord(value, messages)


PROGRAM = Program("continue", "a session of Continue", _is_continue, _of_continue, standard_parts)
