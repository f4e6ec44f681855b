"""The time and memory of importing synthetic accounts of five programs, once and again.

An account has conversations of 20 messages: questions with answers of a few sentences, a regenerated answer
in every fourth conversation, and in every tenth a thought and a tool call with its result. Each import runs
in a new interpreter, whose processor time and peak memory, both with the import of the package, are read at
its end.

    python -m benchmarks.accounts [--number 10000] [--only grok]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks._measure import Line, duration, show
from benchmarks.imports import MESSAGES, TOPICS, Imported, imported

NUMBER = 10_000
"""The number of conversations of an account."""
SECONDS, MEGABYTES = 20.0, 150.0
"""The limits of an import of an account."""
BEGIN = 1_700_000_000


class Message(NamedTuple):
    """A message of a synthetic conversation.

    Attributes:
        key: Its id.
        parent: The id of the message before it.
        is_answer: Whether it is an answer.
        text: Its text.
        time: Its time, in seconds since 1970.
        has_steps: Whether a thought and a tool call precede its text.
    """

    key: str
    parent: str | None
    is_answer: bool
    text: str
    time: int
    has_steps: bool


def messages(n: int) -> list[Message]:
    """The messages of the conversation with number `n`."""
    parent: str | None = None
    topics, found = list(TOPICS), []
    for m in range(MESSAGES):
        key = f"{n + 1:08x}-0000-4000-8000-{m:012x}"
        text = TOPICS[topics[(n + m // 4 % 2) % len(topics)]].format(n=n, m=m) * (3 if m % 2 else 1)
        steps = n % 10 == 0 and m == 5
        found.append(Message(key, parent, bool(m % 2), text, BEGIN + 1_000 * n + m, steps))
        if not (n % 4 == 0 and m == MESSAGES - 3):  # The next message is its sibling.
            parent = key
    return found


def iso(time: int) -> str:
    """A time as ISO text."""
    return datetime.fromtimestamp(time, UTC).isoformat()


def chatgpt(n: int) -> dict[str, Any]:
    """A conversation in ChatGPT's format."""
    mapping: dict[str, Any] = {"top": {"id": "top", "parent": None, "children": [], "message": None}}

    def add(one: Message, key: str, parent: str | None, content: dict[str, Any], **fields: Any) -> str:
        message = {
            "id": key,
            "author": {"role": fields.pop("role", "assistant"), "name": None, "metadata": {}},
            "create_time": float(one.time),
            "content": content,
            "weight": 1.0,
            "recipient": "all",
            "metadata": {"model_slug": "synthetic"} if one.is_answer else {},
        }
        mapping[key] = {"id": key, "parent": parent or "top", "children": [], "message": message | fields}
        return key

    for one in messages(n):
        parent = one.parent
        if one.has_steps:
            thoughts = {
                "content_type": "thoughts",
                "thoughts": [{"summary": "Looking", "content": "I look."}],
            }
            parent = add(one, f"{one.key}-t", parent, thoughts)
            code = {"content_type": "code", "text": "1 + 1"}
            parent = add(one, f"{one.key}-c", parent, code, recipient="python")
            output = {"content_type": "execution_output", "text": "2"}
            parent = add(one, f"{one.key}-r", parent, output, role="tool")
        role = "assistant" if one.is_answer else "user"
        add(one, one.key, parent, {"content_type": "text", "parts": [one.text]}, role=role)
    return {
        "conversation_id": f"{n:08x}",
        "title": f"Chat {n}",
        "create_time": float(BEGIN + 1_000 * n),
        "current_node": one.key,
        "mapping": mapping,
    }


def claude(n: int) -> dict[str, Any]:
    """A conversation in Claude's format."""
    said = []
    for one in messages(n):
        content: list[dict[str, Any]] = [{"type": "text", "text": one.text, "citations": []}]
        if one.has_steps:
            content = [
                {"type": "thinking", "thinking": "I look.", "summaries": []},
                {"type": "tool_use", "id": f"toolu_{n}", "name": "look", "input": {"n": 1}},
                {
                    "type": "tool_result",
                    "tool_use_id": f"toolu_{n}",
                    "content": [{"type": "text", "text": "2"}],
                },
                *content,
            ]
        said.append(
            {
                "uuid": one.key,
                "text": one.text,
                "content": content,
                "sender": "assistant" if one.is_answer else "human",
                "created_at": iso(one.time),
                "attachments": [],
                "files": [],
                "parent_message_uuid": one.parent or "00000000-0000-4000-8000-000000000000",
            }
        )
    return {
        "uuid": f"{n:08x}",
        "name": f"Chat {n}",
        "created_at": iso(BEGIN + 1_000 * n),
        "chat_messages": said,
    }


def deepseek(n: int) -> dict[str, Any]:
    """A conversation in DeepSeek's format."""
    found = messages(n)
    number = {one.key: str(m) for m, one in enumerate(found, 1)}
    mapping: dict[str, Any] = {"root": {"id": "root", "parent": None, "children": [], "message": None}}
    for one in found:
        fragments = [{"type": "RESPONSE" if one.is_answer else "REQUEST", "content": one.text}]
        if one.has_steps:
            fragments.insert(0, {"type": "THINK", "content": "I look."})
        message = {
            "files": [],
            "model": "deepseek-chat",
            "inserted_at": iso(one.time),
            "fragments": fragments,
        }
        key, parent = number[one.key], number[one.parent] if one.parent else "root"
        mapping[key] = {"id": key, "parent": parent, "children": [], "message": message}
    return {"id": f"{n:08x}", "title": f"Chat {n}", "inserted_at": iso(BEGIN + 1_000 * n), "mapping": mapping}


def openwebui(n: int) -> dict[str, Any]:
    """A chat in Open WebUI's format."""
    said = {}
    for one in messages(n):
        text = one.text
        if one.has_steps:
            text = (
                '<details type="reasoning" done="true"><summary>Thought</summary>\n> I look.\n</details>\n'
                f'<details type="tool_calls" done="true" id="call_{n}" name="look" arguments="" result="2">'
                f"\n<summary>Tool Executed</summary>\n</details>\n{text}"
            )
        said[one.key] = {
            "id": one.key,
            "parentId": one.parent,
            "childrenIds": [],
            "role": "assistant" if one.is_answer else "user",
            "content": text,
            "timestamp": one.time,
            **({"model": "qwen3", "done": True} if one.is_answer else {}),
        }
    history = {"messages": said, "currentId": one.key}
    return {
        "id": f"{n:08x}",
        "title": f"Chat {n}",
        "chat": {"title": f"Chat {n}", "models": ["qwen3"], "history": history, "messages": [*said.values()]},
        "created_at": BEGIN + 1_000 * n,
        "archived": False,
    }


def grok(n: int) -> dict[str, Any]:
    """A conversation in Grok's format."""
    responses = [
        {
            "response": {
                "response_id": one.key,
                "parent_response_id": one.parent,
                "message": one.text,
                "sender": "ASSISTANT" if one.is_answer else "human",
                "create_time": {"$date": {"$numberLong": str(one.time * 1_000)}},
                "thinking_trace": "I look." if one.has_steps else None,
                "model": "grok-4",
            }
        }
        for one in messages(n)
    ]
    about = {"id": f"{n:08x}", "title": f"Chat {n}", "create_time": iso(BEGIN + 1_000 * n)}
    return {"conversation": about, "responses": responses}


ACCOUNTS: dict[str, tuple[Callable[[int], dict[str, Any]], str, str]] = {
    "chatgpt": (chatgpt, "[", "]"),
    "claude": (claude, "[", "]"),
    "deepseek": (deepseek, "[", "]"),
    "openwebui": (openwebui, "[", "]"),
    "grok": (grok, '{"conversations": [', '], "projects": []}'),
}
"""For each program: a conversation, and what stands before and after its conversations."""


def write(path: Path, program: str, number: int) -> None:
    """Write an account of a program, on one line as the programs do."""
    conversation, before, after = ACCOUNTS[program]
    with path.open("w", encoding="utf-8") as file:
        file.write(before)
        for n in range(number):
            file.write(", " if n else "")
            json.dump(conversation(n), file)
        file.write(after)


def measure(number: int = NUMBER, only: str | None = None) -> Iterator[Line]:
    """The lines of the table."""
    is_whole = number == NUMBER
    for program in ACCOUNTS:
        if only not in (None, program):
            continue
        with tempfile.TemporaryDirectory() as folder:
            path, database = Path(folder, "account.json"), Path(folder, "memory.db")
            write(path, program, number)
            size = path.stat().st_size >> 20
            first = imported(database, path)
            yield _line(
                f"{program}: {number:,} conversations, {first.messages:,} messages, {size} MB",
                first,
                is_whole,
            )
            again = imported(database, path)
            yield _line(f"{program}: again, {again.messages} new messages", again, is_whole)


def _line(what: str, found: Imported, is_whole: bool) -> Line:
    holds = found.processor <= SECONDS and found.megabytes <= MEGABYTES
    return Line(
        what,
        duration(found.seconds),
        f"{duration(found.processor)} CPU, {found.megabytes:.0f} MB of memory",
        f"≤ {SECONDS:.0f} s, ≤ {MEGABYTES:.0f} MB" if is_whole else "",
        holds if is_whole else None,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--number", type=int, default=NUMBER, help="conversations of each account")
    parser.add_argument("--only", choices=ACCOUNTS, help="one program")
    options = parser.parse_args()
    show(list(measure(options.number, options.only)))


if __name__ == "__main__":
    main()
