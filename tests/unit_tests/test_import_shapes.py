"""Import of shapes that programs write rarely: each record, and the tree that it describes."""

from __future__ import annotations

import html
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from test_import_formats import tree_of

from langchain_threadmem import MemorySystem
from langchain_threadmem.errors import InputError

Record = dict[str, Any]


def at(second: int) -> str:
    return f"2026-01-01T10:00:0{second}Z"


def grok(*texts: str) -> Record:
    """Grok's responses as older exports have them: with ids and without parents."""
    responses = [
        {"response": {"_id": str(n), "sender": "ASSISTANT" if n % 2 else "human", "message": text}}
        for n, text in enumerate(texts)
    ]
    return {"conversations": [{"conversation": {"id": "c", "create_time": at(0)}, "responses": responses}]}


def deepseek(key: str, parent: str, *fragments: tuple[str, str]) -> Record:
    listed = [{"type": kind, "content": content} for kind, content in fragments]
    message = {"files": [], "model": "m", "inserted_at": at(int(key)), "fragments": listed}
    return {"id": key, "parent": parent, "children": [], "message": message if fragments else None}


def item(key: str, role: str, text: str) -> Record:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"id": key, "type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def chatgpt(key: str, parent: str | None, role: str, text: str, **metadata: Any) -> Record:
    content = {"content_type": "text", "parts": [text]}
    message = {"id": key, "author": {"role": role}, "content": content, "metadata": metadata}
    return {"id": key, "parent": parent, "children": [], "message": message}


def oasst(key: str, parent: str | None, text: str, rank: float | None) -> Record:
    fields = {"message_tree_id": "1", "role": "assistant" if parent else "prompter", "rank": rank}
    return {"message_id": key, "parent_id": parent, "text": text, "created_date": at(int(key)), **fields}


def openwebui(key: str, parent: str | None, role: str, text: str, **others: Any) -> Record:
    return {"id": key, "parentId": parent, "role": role, "content": text, **others}


def call_of_openai(id: str, arguments: str, **others: Any) -> Record:
    return {"type": "function_call", "call_id": id, "name": "look", "arguments": arguments, **others}


def result_of_openai(id: str, text: str) -> Record:
    return {"type": "function_call_output", "call_id": id, "output": [{"type": "input_text", "text": text}]}


def call_of_librechat(id: str, text: str) -> Record:
    return {"type": "tool_call", "tool_call": {"id": id, "name": "look", "args": "{}", "output": text}}


def claude_code(key: str, parent: str | None, role: str, content: Any) -> Record:
    message = {"role": role, "content": content, "id": f"m{key}"}
    return {"uuid": key, "parentUuid": parent, "sessionId": "s", "type": role, "message": message}


def queued(key: str, parent: str, text: str, **fields: Any) -> Record:
    attachment = {"type": "queued_command", "prompt": text, **fields}
    return {"uuid": key, "parentUuid": parent, "type": "attachment", "attachment": attachment}


def lines(*records: Record) -> str:
    return "\n".join(map(json.dumps, records))


CODE = {"stdout": "2", "stderr": "", "result": None}
RESULT = '{"river":"Danube"}'
LOOKED_UP = (
    '<details type="tool_calls" done="true" id="c" name="look" arguments="{}" '
    f'result="{html.escape(json.dumps(RESULT))}">\n</details>\nA'
)
FORK = """
1    human Q
2 <1 ai A
3 <1 ai B
active 3
"""
CHAIN = """
1    human Q
2 <1 ai A
3 <2 human Q2
active 3
"""
TURN = """
1    human Q
2 <1 ai A
active 2
"""


def request(*parts: Record) -> Record:
    """A request of Pydantic AI."""
    return {"kind": "request", "parts": [*parts]}


def response(*parts: Record) -> Record:
    return {"kind": "response", "model_name": "m", "parts": [*parts]}


def prompt(text: str) -> Record:
    return {"part_kind": "user-prompt", "content": text, "timestamp": at(0)}


def call(name: str) -> Record:
    return {"part_kind": "tool-call", "tool_name": name, "args": "{}", "tool_call_id": f"id-{name}"}


def returned(name: str, output: str) -> Record:
    return {"part_kind": "tool-return", "tool_name": name, "content": output, "tool_call_id": f"id-{name}"}


def event(id: int, author: str, invocation: str, part: Record) -> Record:
    """An event of a session of Google's ADK."""
    content = {"role": "user" if author == "user" else "model", "parts": [part]}
    return {"id": str(id), "author": author, "invocationId": invocation, "content": content, "timestamp": id}


SHAPES: dict[str, tuple[str, str, Any, str]] = {
    "VS Code divides an answer at spaces and steps": (
        "vscode",
        "session.json",
        {
            "version": 3,
            "sessionId": "s",
            "requests": [
                {
                    "requestId": "r",
                    "message": {"text": "Q"},
                    "response": [
                        {"value": "See"},
                        {"value": " "},
                        {"kind": "inlineReference", "name": "a.py"},
                        {"value": "\n\n"},
                        {"value": "It is long."},
                        {"kind": "toolInvocationSerialized", "toolId": "read", "toolCallId": "t"},
                        {"value": "Done."},
                    ],
                }
            ],
        },
        """
1    human Q
2 <1 ai See `a.py` / It is long. / Done.
active 2
""",
    ),
    "Telegram divides a text at spaces": (
        "telegram",
        "result.json",
        {
            "name": "G",
            "type": "private_group",
            "id": 5,
            "messages": [
                {
                    "id": 1,
                    "type": "message",
                    "date": at(0),
                    "from": "Ann",
                    "text": "",
                    "text_entities": [
                        {"type": "bold", "text": "See"},
                        {"type": "plain", "text": " "},
                        {"type": "link", "text": "https://x"},
                    ],
                }
            ],
        },
        """
1    Ann: See https://x
active 1
""",
    ),
    "Grok has ids and no parents": ("grok", "prod-grok-backend.json", grok("Q", "A", "Q2"), CHAIN),
    "SillyTavern does not number the swipe": (
        "sillytavern",
        "Bea.jsonl",
        lines(
            {"user_name": "Ann", "character_name": "Bea"},
            {"name": "Bea", "is_user": False, "mes": "A", "swipes": ["A", "B"]},
            {"name": "Ann", "is_user": True, "mes": "Q"},
        ),
        """
1    ai A
2    ai B
3 <1 human Q
active 3
""",
    ),
    "DeepSeek has a node without a message": (
        "deepseek",
        "conversations.json",
        [
            {
                "id": "d",
                "inserted_at": at(0),
                "mapping": {
                    "root": {"id": "root", "parent": None, "children": ["1"], "message": None},
                    "1": deepseek("1", "root", ("REQUEST", "Q")),
                    "2": deepseek("2", "1"),
                    "3": deepseek("3", "2", ("RESPONSE", "A")),
                },
            }
        ],
        TURN,
    ),
    "OpenAI lists items from the newest, which is a question": (
        "openai_items",
        "items.json",
        {
            "object": "list",
            "data": [
                item("msg_3", "user", "Q2"),
                item("msg_2", "assistant", "A"),
                item("msg_1", "user", "Q"),
            ],
            "first_id": "msg_3",
            "last_id": "msg_1",
            "has_more": False,
        },
        CHAIN,
    ),
    "ChatGPT has the report of a research as a message of a tool": (
        "chatgpt",
        "conversations.json",
        [
            {
                "id": "g",
                "current_node": "c",
                "mapping": {
                    "a": chatgpt("a", None, "user", "Q"),
                    "b": chatgpt("b", "a", "assistant", "I begin."),
                    "c": chatgpt("c", "b", "tool", "# Report", is_async_task_result_message=True),
                },
            }
        ],
        """
1    human Q
2 <1 ai I begin.
3 <2 ai # Report
active 3
""",
    ),
    "Open Assistant has ranks as fractions": (
        "oasst",
        "messages.jsonl",
        lines(oasst("1", None, "Q", None), oasst("2", "1", "A", 1.0), oasst("3", "1", "B", 0.0)),
        FORK,
    ),
    "Jan has messages without an object": (
        "jan",
        "messages.jsonl",
        lines(
            {"id": "1", "role": "user", "content": [{"type": "text", "text": {"value": "Q"}}]},
            {"id": "2", "role": "assistant", "content": [{"type": "text", "text": {"value": "A"}}]},
        ),
        TURN,
    ),
    "big-AGI has fragments and no persona": (
        "big_agi",
        "conversations.json",
        {
            "conversations": [
                {
                    "id": "c",
                    "messages": [
                        {"id": "1", "role": "user", "fragments": [{"part": {"pt": "text", "text": "Q"}}]},
                        {
                            "id": "2",
                            "role": "assistant",
                            "fragments": [{"part": {"pt": "text", "text": "A"}}],
                        },
                    ],
                }
            ]
        },
        TURN,
    ),
    "Cherry Studio's blocks name their messages": (
        "cherry",
        "backup.json",
        {
            "indexedDB": {
                "topics": [
                    {
                        "id": "t",
                        "messages": [
                            {"id": "q", "role": "user", "createdAt": at(0)},
                            {"id": "a", "role": "assistant", "askId": "q", "createdAt": at(1)},
                            {
                                "id": "b",
                                "role": "assistant",
                                "askId": "q",
                                "createdAt": at(2),
                                "foldSelected": True,
                            },
                        ],
                    }
                ],
                "message_blocks": [
                    {"id": str(n), "messageId": key, "type": "main_text", "content": key.upper()}
                    for n, key in enumerate("qab")
                ],
            }
        },
        FORK,
    ),
    "Semantic Kernel has the type of contents in the items": (
        "semantic_kernel",
        "history.json",
        {
            "messages": [
                {"role": "user", "items": [{"content_type": "text", "text": "Q"}]},
                {"role": "assistant", "items": [{"content_type": "text", "text": "A"}]},
            ]
        },
        TURN,
    ),
    "Open WebUI has the text of a result in JSON": (
        "openwebui",
        "chat.json",
        {
            "id": "o",
            "chat": {
                "history": {
                    "messages": {
                        "q": {"id": "q", "parentId": None, "role": "user", "content": "Q"},
                        "a": {
                            "id": "a",
                            "parentId": "q",
                            "role": "assistant",
                            "content": LOOKED_UP,
                        },
                    },
                    "currentId": "a",
                }
            },
        },
        f"""
1    human Q
2 <1 ai calls look()
3 <2 tool {RESULT}
4 <3 ai A
active 4
""",
    ),
    "aider has code after a note": (
        "aider",
        ".aider.chat.history.md",
        "# aider chat started at 2026-05-28 10:00:00\n\n#### Q\n\n> a note\n\n```\n#### head\n> quote\n```\n",
        """
1    human Q
2 <1 ~system a note
3 <1 ai ``` / #### head / > quote / ```
active 3
""",
    ),
    "LibreChat has calls made at once, a remark in an answer, quotes and instructions": (
        "librechat",
        "chat.json",
        {
            "conversationId": "lc",
            "endpoint": "agents",
            "options": {"promptPrefix": "Be brief."},
            "messages": [
                {"messageId": "1", "text": "Q", "isCreatedByUser": True, "quotes": ["It will\nrain"]},
                {
                    "messageId": "2",
                    "parentMessageId": "1",
                    "sender": "Planner",
                    "endpoint": "agents",
                    "isCreatedByUser": False,
                    "text": "",
                    "content": [
                        {"type": "text", "text": "I look.", "tool_call_ids": ["a", "b"]},
                        call_of_librechat("a", "rain"),
                        {"type": "activity_label", "activity_label": "looked", "tool_call_ids": ["a", "b"]},
                        call_of_librechat("b", "sun"),
                        {"type": "steer", "steer": "In Rome!"},
                        {"type": "text", "text": "Rain."},
                    ],
                },
                {"messageId": "3", "parentMessageId": "2", "text": "Thanks", "isCreatedByUser": True},
            ],
        },
        """
1    ~system Be brief.
2    human > It will / > rain / Q
3 <2 ai I look. calls look() calls look()
4 <3 tool rain
5 <4 tool sun
6 <5 human In Rome!
7 <6 ai Rain.
8 <7 human Thanks
active 8
""",
    ),
    "Open WebUI has code that was run, a call that failed and several people": (
        "openwebui",
        "chat.json",
        {
            "id": "w",
            "current_message_id": "a",
            "chat": {
                "params": {"system": "Be brief."},
                "history": {
                    "messages": {
                        "q": openwebui("q", None, "user", "Q", user={"id": "1", "name": "Ada"}),
                        "a": openwebui(
                            "a",
                            "q",
                            "assistant",
                            "A",
                            output=[
                                {
                                    "type": "open_webui:code_interpreter",
                                    "id": "x",
                                    "code": "1+1",
                                    "output": CODE,
                                },
                                call_of_openai("c", "{}", status="failed"),
                                {**result_of_openai("c", "no"), "status": "failed"},
                                item("m", "assistant", "A"),
                            ],
                        ),
                        "r": openwebui("r", "a", "user", "R", user={"id": "2", "name": "Bob"}),
                    },
                    "currentId": "r",
                },
            },
        },
        """
1    ~system Be brief.
2    Ada: Q
3 <2 ai calls code_interpreter(code='1+1')
4 <3 tool 2
5 <4 ai calls look()
6 <5 tool no
7 <6 ai A
8 <7 Bob: R
active 7
""",
    ),
    "the AI SDK has calls in a step, one of them denied": (
        "ai_sdk",
        "chat.json",
        [
            {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Q"}]},
            {
                "id": "2",
                "role": "assistant",
                "parts": [
                    {"type": "step-start"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool-look", "toolCallId": "a", "state": "output-available", "output": "rain"},
                    {
                        "type": "tool-remove",
                        "toolCallId": "b",
                        "state": "output-denied",
                        "approval": {"approved": False, "reason": "never"},
                    },
                    {"type": "step-start"},
                    {"type": "dynamic-tool", "toolName": "look", "toolCallId": "c", "output": "sun"},
                    {"type": "step-start"},
                    {"type": "text", "text": "Rain."},
                ],
            },
        ],
        """
1    human Q
2 <1 ai I look. calls look() calls remove()
3 <2 tool rain
4 <3 tool never
5 <4 ai calls look()
6 <5 tool sun
7 <6 ai Rain.
active 7
""",
    ),
    "Claude Code has a prompt that was written while the model worked": (
        "claude_code",
        "session.jsonl",
        lines(
            claude_code("1", None, "user", "Q"),
            claude_code(
                "2", "1", "assistant", [{"type": "tool_use", "id": "c", "name": "look", "input": {}}]
            ),
            claude_code("3", "2", "user", [{"type": "tool_result", "tool_use_id": "c", "content": "rain"}]),
            queued("4", "3", "In Rome!", commandMode="prompt", origin={"kind": "human"}),
            queued("5", "4", "<task-notification>done", commandMode="task-notification"),
            queued("6", "5", "From another session", commandMode="prompt", origin={"kind": "peer"}),
            claude_code("7", "6", "assistant", [{"type": "text", "text": "Rain."}]),
        ),
        """
1    human Q
2 <1 ai calls look()
3 <2 tool rain
4 <3 human In Rome!
5 <4 ai Rain.
active 5
""",
    ),
    "Gemini CLI has thoughts and calls in the content too": (
        "gemini_cli",
        "session.jsonl",
        lines(
            {"sessionId": "g", "projectHash": "ab", "kind": "main"},
            {
                "id": "0",
                "timestamp": at(0),
                "type": "user",
                "content": [{"text": "<session_context> Today is Friday"}],
            },
            {"id": "1", "timestamp": at(1), "type": "user", "content": [{"text": "Q"}]},
            {
                "id": "2",
                "timestamp": at(2),
                "type": "gemini",
                "content": [
                    {"text": "hm", "thought": True},
                    {"text": "I look."},
                    *({"functionCall": {"id": id, "name": "look", "args": {}}} for id in "ab"),
                ],
                "thoughts": [{"description": "hm"}],
                "toolCalls": [
                    {"id": id, "name": "look", "args": {}, "result": text} for id, text in ("a1", "b2")
                ],
            },
            {"id": "3", "timestamp": at(3), "type": "gemini", "content": "Rain."},
        ),
        """
1    ~human <session_context> Today is Friday
2    human Q
3 <2 ai (hm) I look. calls look() calls look()
4 <3 tool 1
5 <4 tool 2
6 <5 ai Rain.
active 6
""",
    ),
    "HuggingChat has steps with tools": (
        "huggingchat",
        "conversations.json",
        [
            {
                "_id": "h",
                "messages": [
                    {"id": "1", "from": "user", "content": "Q"},
                    {
                        "id": "2",
                        "from": "assistant",
                        "content": "A",
                        "updates": [
                            {"type": "status", "status": "started"},
                            {
                                "type": "tool",
                                "subtype": "call",
                                "uuid": "a",
                                "call": {"name": "look", "parameters": {"q": 1}},
                            },
                            {
                                "type": "tool",
                                "subtype": "result",
                                "uuid": "a",
                                "result": {"status": "success", "outputs": [{"text": "rain"}]},
                            },
                            {"type": "finalAnswer", "text": "A"},
                        ],
                    },
                ],
            }
        ],
        """
1    human Q
2 <1 ai calls look(q=1)
3 <2 tool rain
4 <3 ai A
active 4
""",
    ),
    "SillyTavern has a note with the calls of tools": (
        "sillytavern",
        "chat.jsonl",
        lines(
            {"user_name": "Ada", "character_name": "Bot", "chat_metadata": {}},
            {
                "name": "Ada",
                "is_user": True,
                "mes": "Q",
                "extra": {"media": [{"url": "/a.png", "type": "image"}], "files": [{"name": "b.txt"}]},
            },
            {
                "name": "SillyTavern System",
                "is_user": False,
                "is_system": True,
                "mes": "<details>Tool calls: Look, Look</details>",
                "extra": {
                    "tool_invocations": [
                        {"id": id, "name": "look", "parameters": "{}", "result": text}
                        for id, text in (("a", "rain"), ("b", "sun"))
                    ]
                },
            },
            {"name": "Bot", "is_user": False, "is_system": False, "mes": "Rain."},
        ),
        """
1    human Q
2 <1 ai calls look() calls look()
3 <2 tool rain
4 <3 tool sun
5 <4 ai Rain.
active 5
""",
    ),
    "AutoGen has the messages of a run": (
        "autogen",
        "run.json",
        [
            {"type": "TextMessage", "source": "user", "content": "Q"},
            {
                "type": "ToolCallRequestEvent",
                "source": "planner",
                "content": [{"id": id, "name": "look", "arguments": "{}"} for id in "ab"],
            },
            {
                "type": "ToolCallExecutionEvent",
                "source": "planner",
                "content": [{"call_id": id, "name": "look", "content": f"of {id}"} for id in "ab"],
            },
            {"type": "MemoryQueryEvent", "source": "planner", "content": []},
            {"type": "StructuredMessage[Answer]", "source": "planner", "content": {"answer": "rain"}},
        ],
        """
1    human Q
2 <1 ai calls look() calls look()
3 <2 tool of a
4 <3 tool of b
5 <4 ai {"answer": "rain"}
active 5
""",
    ),
    "Pydantic AI keeps an answer that it has rejected": (
        "pydantic_ai",
        "run.json",
        [
            request({"part_kind": "system-prompt", "content": "Be brief."}, prompt("Q")),
            response({"part_kind": "thinking", "content": "hm"}, call("look"), call("see")),
            request(returned("look", "L"), returned("see", "S"), prompt("In words, please")),
            response({"part_kind": "text", "content": "L"}),
            request({"part_kind": "retry-feedback", "content": "Write a sentence."}),
            response({"part_kind": "text", "content": "It is L."}),
        ],
        """
1    ~system Be brief.
2    human Q
3 <2 ai (hm) calls look() calls see()
4 <3 tool L
5 <4 tool S
6 <5 human In words, please
7 <6 ~ai L
8 <6 ~system Write a sentence.
9 <6 ai It is L.
active 9
""",
    ),
    "ADK has rewound an invocation": (
        "adk",
        "session.json",
        {
            "id": "s",
            "appName": "a",
            "events": [
                event(1, "user", "one", {"text": "Q"}),
                event(2, "planner", "one", {"functionCall": {"id": "f", "name": "look", "args": {"q": 1}}}),
                event(3, "planner", "one", {"functionResponse": {"id": "f", "response": {"result": "R"}}}),
                event(4, "planner", "one", {"text": "A"}),
                event(5, "user", "two", {"text": "Old"}),
                event(6, "planner", "two", {"text": "Old A"}),
                {"id": "7", "author": "user", "actions": {"rewindBeforeInvocationId": "two"}},
                event(8, "user", "four", {"text": "New"}),
                event(9, "planner", "four", {"text": "New A", "thought": False}),
            ],
        },
        """
1    human Q
2 <1 ai calls look(q=1)
3 <2 tool R
4 <3 ai A
5 <4 human Old
6 <5 ai Old A
7 <4 human New
8 <7 ai New A
active 8
""",
    ),
    "the Gemini API has calls without ids": (
        "gemini",
        "contents.json",
        {
            "system_instruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "Q"}, {"inline_data": {"mime_type": "image/png"}}]},
                {
                    "role": "model",
                    "parts": [{"text": "hm", "thought": True}, {"function_call": {"name": "look"}}],
                },
                {
                    "role": "user",
                    "parts": [{"function_response": {"name": "look", "response": {"output": "R"}}}],
                },
                {"role": "model", "parts": [{"text": "A"}]},
            ],
        },
        """
1    ~system Be brief.
2    human Q / [image]
3 <2 ai (hm) calls look()
4 <3 tool R
5 <4 ai A
active 5
""",
    ),
    "Bedrock has blocks without types": (
        "bedrock",
        "messages.json",
        {
            "system": [{"text": "Be brief."}],
            "messages": [
                {"role": "user", "content": [{"text": "Q"}, {"document": {"name": "plan", "format": "pdf"}}]},
                {
                    "role": "assistant",
                    "content": [
                        {"reasoningContent": {"reasoningText": {"text": "hm"}}},
                        {"toolUse": {"toolUseId": "t", "name": "look", "input": {"q": 1}}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"toolResult": {"toolUseId": "t", "content": [{"text": "R"}], "status": "error"}},
                        {"text": "Try it again"},
                    ],
                },
                {"role": "assistant", "content": [{"text": "A"}]},
            ],
        },
        """
1    ~system Be brief.
2    human Q / [file: plan]
3 <2 ai (hm) calls look(q=1)
4 <3 tool R
5 <4 human Try it again
6 <5 ai A
active 6
""",
    ),
    "Claude has calls of servers": (
        "claude",
        "conversations.json",
        [
            {
                "uuid": "c",
                "chat_messages": [
                    {"uuid": "1", "sender": "human", "content": [{"type": "text", "text": "Q"}]},
                    {
                        "uuid": "2",
                        "sender": "assistant",
                        "content": [
                            {"type": "mcp_tool_use", "id": "m", "name": "look", "input": {}},
                            {"type": "mcp_tool_result", "tool_use_id": "m", "content": [{"text": "R"}]},
                            {"type": "server_tool_call", "id": "s", "name": "run", "args": {"code": "1"}},
                            {"type": "server_tool_result", "tool_call_id": "s", "output": "1"},
                            {"type": "text", "text": "A"},
                        ],
                    },
                ],
            }
        ],
        """
1    human Q
2 <1 ai calls look()
3 <2 tool R
4 <3 ai calls run(code='1')
5 <4 tool 1
6 <5 ai A
active 6
""",
    ),
}
"""For each shape: its format, the name of its file, its contents, and its tree in the known notation."""


def test_a_memory_of_llamaindex_is_read_from_its_database(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "CREATE TABLE llama_index_memory "
            "(id INTEGER PRIMARY KEY, key TEXT, timestamp BIGINT, role TEXT, status TEXT, data JSON)"
        )
        for number, (role, text) in enumerate([("user", "Q"), ("assistant", "A"), ("user", "R")]):
            data = json.dumps({"role": role, "blocks": [{"block_type": "text", "text": text}]})
            time = 1_780_000_000_000_000_000 + number
            row = number, "chat", time, role, "active" if number else "archived", data
            database.execute("INSERT INTO llama_index_memory VALUES (?, ?, ?, ?, ?, ?)", row)
    with MemorySystem(embeddings=False) as system:
        assert [system.import_file(path).new_messages for _ in range(2)] == [3, 0]
        history = system.conversation("chat").history
        assert [node.message.text for node in history] == ["Q", "A", "R"]
        assert history[0].timestamp.timestamp() == 1_780_000_000


def test_a_session_of_strands_is_read_from_the_files_of_its_messages(tmp_path: Path) -> None:
    contents = [
        ("user", {"text": "Q"}),
        ("assistant", {"toolUse": {"toolUseId": "t", "name": "look", "input": {}}}),
        ("user", {"toolResult": {"toolUseId": "t", "content": [{"text": "R"}]}}),
        *(("assistant" if n % 2 else "user", {"text": str(n)}) for n in range(3, 12)),
    ]
    folder = tmp_path / "session_s" / "agents" / "agent_default" / "messages"
    folder.mkdir(parents=True)
    (folder.parents[2] / "session.json").write_text('{"session_id": "s"}')
    (folder.parent / "agent.json").write_text('{"agent_id": "default"}')
    for n, (role, block) in enumerate(contents):
        message = {"message": {"role": role, "content": [block]}, "message_id": n, "redact_message": None}
        (folder / f"message_{n}.json").write_text(json.dumps(message | {"created_at": at(0)}))
    with MemorySystem(embeddings=False) as system:
        assert [system.import_file(tmp_path).new_messages for _ in range(2)] == [12, 0]
        messages = system.conversation("s").messages
        assert [message.text for message in messages] == ["Q", "", "R", *map(str, range(3, 12))]
        assert messages[2].type == "tool"


@pytest.mark.parametrize("shape", SHAPES)
def test_a_rare_shape_becomes_the_tree_that_it_describes(shape: str, tmp_path: Path) -> None:
    format, name, contents, tree = SHAPES[shape]
    path = tmp_path / name
    path.write_text(contents if isinstance(contents, str) else json.dumps(contents))
    with MemorySystem(embeddings=False) as system:
        report = system.import_file(path)
        [conversation] = system.conversations()
        assert (report.format, tree_of(system, conversation)) == (format, tree)
        assert system.import_file(path).new_messages == 0


def test_answers_beside_a_list_of_messages_are_imported_as_siblings(tmp_path: Path) -> None:
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Name a river."}]
    of_dspy = {
        "uuid": "d",
        "messages": asked,
        "outputs": ["Danube.", {"text": "Rhine."}],
        "model": "openai/m",
    }
    choices = [{"message": {"role": "assistant", "content": one}} for one in ("Danube.", "Rhine.")]
    of_openai = {"id": "o", "messages": asked, "response": {"choices": choices}, "outputs": ["Elbe."]}
    (tmp_path / "requests.jsonl").write_text("\n".join(map(json.dumps, (of_dspy, of_openai))))
    with MemorySystem(embeddings=False) as system:
        assert system.import_file(tmp_path / "requests.jsonl").problems == ()
        for name in ("d", "o"):
            assert (
                tree_of(system, name)
                == """
1    system Be brief.
2 <1 human Name a river.
3 <2 ai Danube.
4 <2 ai Rhine.
active 3
"""
            )


def test_messages_of_ag_ui_keep_calls_thoughts_and_activities(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"q": 1}'}}
    messages = [
        {"id": "1", "role": "user", "content": "Name a river."},
        {"id": "2", "role": "reasoning", "content": "I look."},
        {"id": "3", "role": "assistant", "content": "", "toolCalls": [call]},
        {"id": "4", "role": "tool", "content": "none", "toolCallId": "c", "error": "no map"},
        {"id": "5", "role": "activity", "activityType": "PLAN", "content": {"steps": 1}},
        {"id": "6", "role": "assistant", "content": "Danube."},
        {"id": "7", "role": "reasoning", "content": "More?"},
    ]
    (tmp_path / "chat.json").write_text(json.dumps({"threadId": "x", "messages": messages}))
    with MemorySystem(embeddings=False) as system:
        system.import_file(tmp_path / "chat.json")
        [name] = system.conversations()
        assert (
            tree_of(system, name)
            == """
1    human Name a river.
2 <1 ai (I look.) calls look(q=1)
3 <2 tool none
4 <3 ai Danube.
5 <4 ~ai (More?)
active 4
"""
        )
        _, called, result, answer, _ = (node.message for node in system.conversation(name).history)
        assert (called.id, result.model_dump()["status"], answer.id) == ("3", "error", "6")
        assert answer.additional_kwargs == {"blocks": [messages[4]]}


def test_events_with_a_type_and_data_are_no_messages_of_langchain(tmp_path: Path) -> None:
    event = {"type": "build.started", "data": {"number": 1}}
    (tmp_path / "events.json").write_text(json.dumps([event]))
    with MemorySystem(embeddings=False) as system, pytest.raises(InputError, match="none of the formats"):
        system.import_file(tmp_path / "events.json")
