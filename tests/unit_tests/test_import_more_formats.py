"""Import of files of messengers, apps and libraries, as the named versions write them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from langchain_threadmem import MemorySystem
from langchain_threadmem.errors import InputError
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.node import ConversationNode

Tree = list[tuple[int | None, str, str | None, str]]


def imported(system: MemorySystem, folder: Path, value: Any, name: str = "export.json") -> str:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = value if name.endswith(".jsonl") or name == "data.json" else [value]
    file.write_text("\n".join(map(json.dumps, lines)))
    return system.import_file(file).format


def tree(system: MemorySystem, name: str) -> Tree:
    """Parent, role, name and text of each message that is no aside."""
    return [
        (node.parent_id, node.message.type, node.message.name, str(node.message.content))
        for node in history(system, name)
        if node.state == State.LIVE
    ]


def history(system: MemorySystem, name: str) -> list[ConversationNode]:
    return list(system.conversation(name).history)


def test_calls_and_results_of_the_ai_sdk_are_calls_and_results(system: MemorySystem, tmp_path: Path) -> None:
    # ModelMessage of ai 5 and 6; CoreMessage of ai 4 has `args` and `result`.
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "weather"}
    result = {"type": "tool-result", "toolCallId": "c1", "toolName": "weather"}
    for arguments, output in (
        ({"input": {"city": "Rome"}}, {"output": {"type": "json", "value": {"t": 20}}}),
        ({"args": {"city": "Rome"}}, {"result": {"t": 20}}),
    ):
        messages = [
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call | arguments]},
            {"role": "tool", "content": [result | output]},
            {"role": "assistant", "content": "20 degrees."},
        ]
        name = f"{next(iter(arguments))}.json"
        assert imported(system, tmp_path, messages, name) == "messages"
        _, asked, told, _ = history(system, name.removesuffix(".json"))
        assert asked.message.tool_calls[0]["args"] == {"city": "Rome"}  # type: ignore[attr-defined]
        assert (told.message.tool_call_id, told.message.content) == ("c1", '{"t": 20}')  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ({"type": "text", "value": "20"}, "20"),
        ({"type": "error-text", "value": "no network"}, "no network"),
        ({"type": "execution-denied", "reason": "not now"}, "not now"),
        ({"type": "content", "value": [{"type": "text", "text": "20"}]}, "20"),
    ],
)
def test_results_of_the_ai_sdk_are_text(
    system: MemorySystem, tmp_path: Path, output: dict[str, Any], text: str
) -> None:
    part = {"type": "tool-result", "toolCallId": "c1", "toolName": "weather", "output": output}
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "weather", "input": {}}
    messages = [{"role": "assistant", "content": [call]}, {"role": "tool", "content": [part]}]
    imported(system, tmp_path, messages)
    told = history(system, "export")[-1].message
    failed = output["type"] in ("error-text", "execution-denied")
    assert (told.content, told.status) == (text, "error" if failed else "success")  # type: ignore[attr-defined]


def test_results_without_ids_answer_the_calls_of_their_names(system: MemorySystem, tmp_path: Path) -> None:
    # `Message` of ollama 0.6.3 has `tool_name`, the chat templates of transformers have `name`.
    for field in ("tool_name", "name"):
        calls = [
            {"type": "function", "function": {"name": name, "arguments": {}}} for name in ("sun", "rain")
        ]
        messages = [
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", field: "rain", "content": "none"},
            {"role": "tool", field: "sun", "content": "8 hours"},
            {"role": "assistant", "content": "Sunny."},
        ]
        imported(system, tmp_path, messages, f"{field}.json")
        _, asked, rain, sun, _ = (node.message for node in history(system, field))
        ids = {call["id"]: call["name"] for call in asked.tool_calls}  # type: ignore[attr-defined]
        assert [ids[one.tool_call_id] for one in (rain, sun)] == ["rain", "sun"]  # type: ignore[attr-defined]


def test_pictures_and_thoughts_of_ollama_are_kept(system: MemorySystem, tmp_path: Path) -> None:
    # `Message` of ollama 0.6.3 has `images`, of base64 or of paths, and `thinking`.
    messages = [
        {"role": "user", "content": "What is this?", "images": ["/9j/4AAQ", "photos/cat.png"]},
        {"role": "assistant", "content": "A cat.", "thinking": "Whiskers."},
        {"role": "user", "content": "", "images": ["iVBORw0KGgo="]},
    ]
    imported(system, tmp_path, messages)
    first, answer, last = (node.message for node in history(system, "export"))
    assert first.content == [
        "What is this?",
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,/9j/4AAQ"}},
        {"type": "text", "text": "[image: photos/cat.png]"},
    ]
    assert answer.additional_kwargs["reasoning_content"] == "Whiskers."
    assert last.content == [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]


def test_the_transcript_of_speech_is_text(system: MemorySystem, tmp_path: Path) -> None:
    # Items of OpenAI's Realtime API (openai 3.52.0, types/realtime).
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_audio", "transcript": "Hi"}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_audio", "transcript": "Hello"}],
        },
    ]
    imported(system, tmp_path, items)
    assert [node.message.text for node in history(system, "export")] == ["Hi", "Hello"]


# MastraDBMessage of mastra-ai/mastra 2e08f74 (agent/message-list/state/types.ts).
MASTRA = [
    {
        "id": "m1",
        "role": "user",
        "createdAt": "2026-05-28T10:00:00.000Z",
        "threadId": "t1",
        "resourceId": "ada",
        "content": {"format": 2, "parts": [{"type": "text", "text": "Weather?"}], "content": "Weather?"},
    },
    {
        "id": "m2",
        "role": "assistant",
        "createdAt": "2026-05-28T10:00:01.000Z",
        "threadId": "t1",
        "resourceId": "ada",
        "content": {
            "format": 2,
            "parts": [
                {"type": "step-start"},
                {
                    "type": "tool-invocation",
                    "toolInvocation": {
                        "state": "result",
                        "toolCallId": "c1",
                        "toolName": "weather",
                        "args": {"city": "Rome"},
                        "result": {"t": 20},
                    },
                },
                {"type": "text", "text": "20 degrees."},
            ],
        },
    },
]


def check_mastra(system: MemorySystem) -> None:
    assert tree(system, "t1") == [
        (None, "human", None, "Weather?"),
        (1, "ai", None, ""),
        (2, "tool", "weather", '{"t": 20}'),
        (3, "ai", None, "20 degrees."),
    ]
    assert history(system, "t1")[0].timestamp.isoformat() == "2026-05-28T10:00:00+00:00"


@pytest.mark.parametrize("value", [MASTRA, {"messages": MASTRA, "total": 2, "page": 0}])
def test_messages_of_mastra_have_the_parts_of_their_content(
    system: MemorySystem, tmp_path: Path, value: Any
) -> None:
    assert imported(system, tmp_path, value) == "ai_sdk"
    check_mastra(system)


def test_the_database_of_mastra_is_imported(system: MemorySystem, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "mastra.db") as database:
        columns = (
            "id TEXT, thread_id TEXT, content TEXT, role TEXT, type TEXT, createdAt TEXT, resourceId TEXT"
        )
        database.execute(f"CREATE TABLE mastra_messages ({columns})")
        for one in MASTRA:
            row = (one["id"], "t1", json.dumps(one["content"]), one["role"], "v2", one["createdAt"], "ada")
            database.execute("INSERT INTO mastra_messages VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    database.close()
    assert system.import_file(tmp_path / "mastra.db").format == "ai_sdk"
    check_mastra(system)


def test_the_database_of_mastra_has_titles_thoughts_and_texts_like_json(
    system: MemorySystem, tmp_path: Path
) -> None:
    # The tables of LibSQLStore; `MastraMessageV1` is a text or a list, and a thought is in `details` alone.
    thought = {"type": "reasoning", "reasoning": "", "details": [{"type": "text", "text": "A greeting."}]}
    spoken = {"format": 2, "parts": [thought, {"type": "text", "text": "Hello"}]}
    contents = ["{name}, hi", json.dumps(spoken), '{"a": 1}', json.dumps([{"type": "text", "text": "Yes"}])]
    with sqlite3.connect(tmp_path / "mastra.db") as database:
        database.execute("CREATE TABLE mastra_threads (id TEXT, title TEXT)")
        database.execute("INSERT INTO mastra_threads VALUES ('t1', 'Greetings')")
        columns = "id TEXT, thread_id TEXT, content TEXT, role TEXT, createdAt TEXT"
        database.execute(f"CREATE TABLE mastra_messages ({columns})")
        for number, content in enumerate(contents):
            row = (f"m{number}", "t1", content, ("user", "assistant")[number % 2], f"2026-05-28T10:0{number}")
            database.execute("INSERT INTO mastra_messages VALUES (?, ?, ?, ?, ?)", row)
    database.close()
    system.import_file(tmp_path / "mastra.db")
    assert [said for *_, said in tree(system, "t1")] == ["{name}, hi", "Hello", '{"a": 1}', "Yes"]
    assert history(system, "t1")[1].message.additional_kwargs["reasoning_content"] == "A greeting."
    assert [info.title for info in system.list_conversations()] == ["Greetings"]


def test_content_that_is_an_object_is_refused_with_the_next_step(
    system: MemorySystem, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"item 1 has the content .*; use text or a list of blocks"):
        imported(system, tmp_path, [{"role": "user", "content": {"kind": "rich", "value": "Hello"}}])


# rasa 3.6.20 (rasa/shared/core/events.py): `as_dict` of each event.
RASA = [
    {"event": "action", "timestamp": 1.0, "name": "action_session_start", "policy": None, "confidence": 1.0},
    {"event": "session_started", "timestamp": 2.0},
    {"event": "user", "timestamp": 1780000001.0, "text": "Hi", "message_id": "u1", "input_channel": "rest"},
    {"event": "bot", "timestamp": 1780000002.0, "text": "Hello", "data": {"buttons": None}, "metadata": {}},
    {"event": "user", "timestamp": 1780000003.0, "text": "Bok a table", "message_id": "u2"},
    {"event": "bot", "timestamp": 1780000004.0, "text": "Sorry?", "data": {}},
    {"event": "rewind", "timestamp": 1780000005.0},
    {"event": "user", "timestamp": 1780000006.0, "text": "Book a table", "message_id": "u3"},
    {
        "event": "bot",
        "timestamp": 1780000007.0,
        "text": "For how many?",
        "data": {"buttons": [{"title": "2", "payload": "/two"}], "image": None},
    },
]


def check_rasa(system: MemorySystem) -> None:
    assert tree(system, "ada") == [
        (None, "human", None, "Hi"),
        (1, "ai", None, "Hello"),
        (2, "human", None, "Bok a table"),
        (3, "ai", None, "Sorry?"),
        (2, "human", None, "Book a table"),
        (5, "ai", None, "For how many?"),
    ]
    last = history(system, "ada")[-1]
    assert last.message.additional_kwargs["blocks"][0]["buttons"][0]["title"] == "2"
    assert system.conversation("ada").tip == last


def test_a_tracker_of_rasa_has_a_branch_after_a_rewind(system: MemorySystem, tmp_path: Path) -> None:
    assert imported(system, tmp_path, {"sender_id": "ada", "slots": {}, "events": RASA}) == "rasa"
    check_rasa(system)


def test_the_tracker_store_of_rasa_is_imported(system: MemorySystem, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "rasa.db") as database:
        columns = (
            "sender_id TEXT, type_name TEXT, timestamp REAL, intent_name TEXT, action_name TEXT, data TEXT"
        )
        database.execute(f"CREATE TABLE events (id INTEGER PRIMARY KEY, {columns})")
        rows = [("ada", one["event"], one["timestamp"], None, None, json.dumps(one)) for one in RASA]
        database.executemany("INSERT INTO events VALUES (NULL, ?, ?, ?, ?, ?, ?)", rows)
    database.close()
    assert system.import_file(tmp_path / "rasa.db").format == "rasa"
    check_rasa(system)


def test_an_agent_of_letta_speaks_by_a_tool_and_thinks_in_text(system: MemorySystem, tmp_path: Path) -> None:
    # letta 0.11.7 (letta/schemas/agent_file.py, letta/system.py).
    def text(value: object) -> list[dict[str, str]]:
        return [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]

    def call(id: str, name: str, **arguments: object) -> dict[str, Any]:
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {"id": id, "type": "function", "function": function}

    messages = [
        {"id": "message-0", "role": "system", "content": text("You are Letta.")},
        {"id": "message-1", "role": "user", "content": text({"type": "login", "last_login": "Never"})},
        {"id": "message-2", "role": "user", "content": text({"type": "user_message", "message": "I am Ada"})},
        {
            "id": "message-3",
            "role": "assistant",
            "content": text("She tells me her name."),
            "tool_calls": [call("c1", "core_memory_append", content="Ada", request_heartbeat=True)],
        },
        {
            "id": "message-4",
            "role": "tool",
            "tool_call_id": "c1",
            "name": "core_memory_append",
            "content": text({"status": "OK", "message": "None", "time": "now"}),
        },
        {"id": "message-5", "role": "user", "content": text({"type": "heartbeat", "reason": "requested"})},
        {
            "id": "message-6",
            "role": "assistant",
            "content": text("I greet her."),
            "tool_calls": [call("c2", "send_message", message="Hello Ada!")],
        },
        {
            "id": "message-7",
            "role": "tool",
            "tool_call_id": "c2",
            "content": text({"status": "OK", "message": "None"}),
        },
    ]
    for number, one in enumerate(messages):
        one |= {"created_at": f"2026-05-28T10:00:{number:02}Z", "model": "gpt-4o-mini", "agent_id": "agent-0"}
    agent = {"id": "agent-0", "name": "Companion", "agent_type": "memgpt_v2_agent", "messages": messages}
    assert imported(system, tmp_path, {"agents": [agent], "groups": [], "blocks": []}, "c.af") == "letta"
    assert [(role, said) for _, role, _, said in tree(system, "letta-Companion")] == [
        ("human", "I am Ada"),
        ("ai", ""),
        ("tool", "None"),
        ("ai", "Hello Ada!"),
    ]
    spoken = next(one for one in history(system, "letta-Companion") if one.message.content == "Hello Ada!")
    assert spoken.message.additional_kwargs["reasoning_content"] == "I greet her."


def test_replies_of_teams_follow_their_messages(system: MemorySystem, tmp_path: Path) -> None:
    # Microsoft Graph v1.0, resource type chatMessage; the newest message comes first.
    def message(id: str, text: str, **others: Any) -> dict[str, Any]:
        return {
            "id": id,
            "replyToId": None,
            "messageType": "message",
            "createdDateTime": f"2026-05-28T10:00:0{id}.000Z",
            "lastEditedDateTime": None,
            "deletedDateTime": None,
            "chatId": None,
            "from": {"application": None, "user": {"id": "u1", "displayName": "Ada"}},
            "body": {"contentType": "html", "content": text},
            "channelIdentity": {"teamId": "t", "channelId": "19:a@thread.tacv2"},
            "attachments": [],
            **others,
        }

    bot = {"user": None, "application": {"id": "b1", "displayName": "Helper"}}
    event = {"contentType": "html", "content": "<systemEventMessage/>"}
    detail = {"@odata.type": "#microsoft.graph.membersAddedEventMessageDetail"}
    reference = {"id": "1", "contentType": "messageReference", "content": "{}"}
    value = [
        message("5", '<attachment id="1"></attachment><p>I come</p>', attachments=[reference]),
        message("4", "", messageType="systemEventMessage", body=event, eventDetail=detail, **{"from": None}),
        message("3", "<p>Other</p>"),
        message("2", "<p>At <b>noon</b></p>", replyToId="1", **{"from": bot}),
        message("1", '<div><at id="0">Bob</at>, lunch? <emoji alt="🙂"></emoji></div>'),
    ]
    assert imported(system, tmp_path, {"@odata.context": "x", "value": value}) == "teams"
    assert tree(system, "teams-19:a@thread.tacv2") == [
        (None, "human", "Ada", "Bob, lunch? 🙂"),
        (1, "ai", "Helper", "At noon"),
        (None, "human", "Ada", "Other"),
        (1, "human", "Ada", "I come"),
    ]


def test_pictures_and_subjects_of_teams_are_kept(system: MemorySystem, tmp_path: Path) -> None:
    # Microsoft Graph v1.0: pasted pictures are images of the body, the title of a post is its subject.
    picture = '<div><img src="https://graph.microsoft.com/1/$value" alt="{}" itemid="1"></div>'
    message = {
        "messageType": "message",
        "chatId": "19:x",
        "from": {"user": {"id": "u1", "displayName": "Ada"}},
        "attachments": [],
    }
    texts = [(None, picture.format("map")), ("Lunch", "<p>At noon</p>" + picture.format("image"))]
    value = [
        {
            "id": str(second),
            "createdDateTime": f"2026-05-28T10:00:0{second}Z",
            "subject": subject,
            "body": {"contentType": "html", "content": text},
            **message,
        }
        for second, (subject, text) in enumerate(texts)
    ]
    imported(system, tmp_path, {"value": value})
    assert [said for *_, said in tree(system, "teams-19:x")] == [
        "[image: map]",
        "Lunch\n\nAt noon\n\n[image: image]",
    ]
    [file] = history(system, "teams-19:x")[0].message.additional_kwargs["files"]
    assert file["src"] == "https://graph.microsoft.com/1/$value"


def test_messages_of_rocket_chat_are_imported_from_the_api_and_from_a_download(
    system: MemorySystem, tmp_path: Path
) -> None:
    # RocketChat/Rocket.Chat 08c336a: channels.history, newest first; lines of exportRoomMessagesToFile.ts.
    ada, bob = ({"_id": name, "username": name, "name": name.title()} for name in ("ada", "bob"))
    messages = [
        {"_id": "m3", "rid": "r1", "msg": "bob", "ts": "2026-05-28T10:00:03.000Z", "u": bob, "t": "uj"},
        {"_id": "m2", "rid": "r1", "msg": "Noon", "ts": "2026-05-28T10:00:02.000Z", "u": bob, "tmid": "m1"},
        {"_id": "m1", "rid": "r1", "msg": "Lunch?", "ts": "2026-05-28T10:00:01.000Z", "u": ada},
    ]
    assert imported(system, tmp_path, {"messages": messages, "success": True}) == "rocket_chat"
    assert tree(system, "rocket-r1") == [(None, "human", "Ada", "Lunch?"), (1, "human", "Bob", "Noon")]
    lines = [
        {"msg": "Lunch?", "username": "ada", "ts": "2026-05-28T10:00:01.000Z"},
        {"msg": "User joined", "username": "User_1", "ts": "2026-05-28T10:00:02.000Z", "type": "uj"},
        {"msg": "", "username": "ada", "ts": "2026-05-28T10:00:03.000Z", "attachments": [{"title": "a.png"}]},
    ]
    assert imported(system, tmp_path, lines, "general.jsonl") == "rocket_chat"
    assert [said for *_, said in tree(system, "general")] == ["Lunch?", "[file: a.png]"]


def test_a_chat_of_signal_export_is_a_chain_named_after_its_folder(
    system: MemorySystem, tmp_path: Path
) -> None:
    # carderne/signal-export 1143c22 (sigexport/models.py): a JSON line for each message in <chat>/data.json.
    def line(second: int, sender: str, body: str, **others: Any) -> dict[str, Any]:
        given = {"date": f"2026-05-28T10:00:0{second}", "sender": sender, "body": body, "quote": ""}
        return given | {"sticker": None, "reactions": [], "attachments": []} | others

    lines = [
        line(1, "Me", "Lunch?"),
        line(2, "Bob", "At noon", quote="\n>\n> Lunch?\n>\n", reactions=[["Me", "👍"]]),
        line(3, "Bob", "", attachments=[{"name": "map.png", "path": "media/map.png"}]),
    ]
    assert imported(system, tmp_path, lines, "Bob/data.json") == "signal"
    assert tree(system, "signal-Bob") == [
        (None, "human", "Me", "Lunch?"),
        (1, "human", "Bob", "At noon"),
        (2, "human", "Bob", "[file: map.png]"),
    ]
    assert history(system, "signal-Bob")[1].timestamp.isoformat() == "2026-05-28T10:00:02+00:00"


def test_a_later_export_of_signal_has_other_reactions(system: MemorySystem, tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"date": f"2026-05-28T10:00:0{second}", "sender": "Bob", "body": body, "reactions": []}
        | {"quote": "", "sticker": None, "attachments": []}
        for second, body in enumerate(["Lunch?", "Noon?", "Noon?"])
    ]
    imported(system, tmp_path, lines[:2], "Bob/data.json")
    lines[0]["reactions"] = [["Me", "👍"]]
    imported(system, tmp_path, lines, "Bob/data.json")
    assert [info.id for info in system.list_conversations()] == ["signal-Bob"]
    assert [said for *_, said in tree(system, "signal-Bob")] == ["Lunch?", "Noon?", "Noon?"]


def test_deleted_messages_of_google_chat_are_asides(system: MemorySystem, tmp_path: Path) -> None:
    # As reported in mrwoof/google-chat-takeout-reader, issue 2: a deleted message has no creator.
    date = "Thursday, May 28, 2026 at 10:00:01\u202fAM UTC"
    deleted = {"message_state": "DELETED", "deleted_date": date, "topic_id": "a", "message_id": "s/a/1"}
    said = {"creator": {"name": "Ada"}, "created_date": date, "text": "Hi", "topic_id": "a"}
    value = {"messages": [deleted, said | {"message_id": "s/a/2"}]}
    assert imported(system, tmp_path, value, "DM a/messages.json") == "google_chat"
    assert [said for *_, said in tree(system, "google-chat-DM a")] == ["Hi"]


def test_a_topic_of_google_chat_is_a_message_with_its_answers(system: MemorySystem, tmp_path: Path) -> None:
    # Google Takeout, Google Chat/Groups/<group>/messages.json.
    def message(topic: str, id: str, who: str, text: str, kind: str = "Human") -> dict[str, Any]:
        return {
            "creator": {"name": who, "email": f"{who}@example.com", "user_type": kind},
            "created_date": f"Thursday, May 28, 2026 at 10:00:0{id}\u202fAM UTC",
            "text": text,
            "topic_id": topic,
            "message_id": f"s/{topic}/{id}",
        }

    value = [message("a", "1", "Ada", "Lunch?"), message("b", "2", "Bob", "News")]
    value.append(message("a", "3", "Helper", "At noon", "Bot"))
    folder = tmp_path / "Space AAA"
    folder.mkdir()
    (folder / "group_info.json").write_text('{"name": "Lunch", "members": []}')
    assert imported(system, folder, {"messages": value}, "messages.json") == "google_chat"
    assert tree(system, "google-chat-Space AAA") == [
        (None, "human", "Ada", "Lunch?"),
        (None, "human", "Bob", "News"),
        (1, "ai", "Helper", "At noon"),
    ]
    assert history(system, "google-chat-Space AAA")[2].timestamp.isoformat() == "2026-05-28T10:00:03+00:00"
    assert [info.title for info in system.list_conversations()] == ["Lunch"]


def test_answers_of_lobechat_to_one_question_are_siblings(system: MemorySystem, tmp_path: Path) -> None:
    # lobehub/lobe-chat 021721b and 0ce02d7 (dataExporter/index.ts, schemas/message.ts).
    def message(number: int, role: str, content: str, parent: str | None, **others: Any) -> dict[str, Any]:
        given = {
            "id": f"msg_{number}",
            "role": role,
            "content": content,
            "parentId": parent,
            "topicId": "tpc_1",
        }
        time = f"2026-05-28T10:00:{number:02}.000Z"
        return given | {"sessionId": "ssn_1", "threadId": None, "createdAt": time, "tools": None} | others

    tool = {
        "id": "c1",
        "apiName": "look",
        "identifier": "search",
        "arguments": '{"q": "river"}',
        "type": "builtin",
    }
    messages = [
        message(1, "user", "Name a river.", None),
        message(2, "assistant", "", "msg_1", tools=[tool], model="gpt-5", reasoning={"content": "I look."}),
        message(3, "tool", "Danube", "msg_2"),
        message(4, "assistant", "The Danube.", "msg_3", model="gpt-5"),
        message(5, "assistant", "The Rhine.", "msg_1", model="gpt-5"),
        message(6, "user", "How long?", "msg_4"),
        message(7, "user", "Spell it.", None, threadId="thd_1"),
    ]
    data = {
        "sessions": [{"id": "ssn_1", "title": "Geography"}],
        "topics": [{"id": "tpc_1", "title": "Rivers", "favorite": True, "createdAt": "2026-05-28T10:00:00Z"}],
        "threads": [{"id": "thd_1", "topicId": "tpc_1", "sourceMessageId": "msg_4"}],
        "messages": messages,
        "messagePlugins": [{"id": "msg_3", "toolCallId": "c1", "apiName": "look", "identifier": "search"}],
    }
    assert imported(system, tmp_path, {"data": data, "mode": "pglite", "schemaHash": "x"}) == "lobechat"
    assert tree(system, "tpc_1") == [
        (None, "human", None, "Name a river."),
        (1, "ai", None, ""),
        (2, "tool", "look", "Danube"),
        (3, "ai", None, "The Danube."),
        (1, "ai", None, "The Rhine."),
        (4, "human", None, "How long?"),
        (4, "human", None, "Spell it."),
    ]
    [info] = system.list_conversations(metadata={"starred": True})
    assert (info.title, history(system, "tpc_1")[1].message.tool_calls[0]["args"]) == (  # type: ignore[attr-defined]
        "Rivers",
        {"q": "river"},
    )


@pytest.mark.parametrize(
    ("line", "time"),
    [
        # The short forms of dates and times of CLDR, as Babel 2.17 writes them.
        ("5/6/26, 10:00\u202fAM - Ada: Hi", "2026-05-06T10:00:00"),  # en_US
        ("05/06/26, 1:00 pm - Ada: Hi", "2026-06-05T13:00:00"),  # en_IN
        ("2026. 5. 28. 오후 1:00 - Ada: Hi", "2026-05-28T13:00:00"),  # ko
        ("26. 5. 28. PM 1:00 - Ada: Hi", "2026-05-28T13:00:00"),
        ("2026/5/28 下午1:00 - Ada: Hi", "2026-05-28T13:00:00"),  # zh
        ("28\u200f/5\u200f/2026، 1:00 م - Ada: Hi", "2026-05-28T13:00:00"),  # ar
        ("28/5/26, 1:00 μ.μ. - Ada: Hi", "2026-05-28T13:00:00"),  # el
        ("28.5.2026 klo 13.00 - Ada: Hi", "2026-05-28T13:00:00"),  # fi
        ("2026. 05. 28. 13:00 - Ada: Hi", "2026-05-28T13:00:00"),  # hu
        ("28/5/26, 1:00\u202fp.\u00a0m. - Ada: Hi", "2026-05-28T13:00:00"),  # es_MX
        ("28. 05. 2026. 13:00 - Ada: Hi", "2026-05-28T13:00:00"),  # hr
        ("5. 6. 2026. 13:00 - Ada: Hi", "2026-06-05T13:00:00"),  # sr
        ("28.5.26. 13:00 - Ada: Hi", "2026-05-28T13:00:00"),  # bs_Cyrl
        ("28.05.26\u202fг., 13:00 - Ada: Hi", "2026-05-28T13:00:00"),  # bg
        ("[28.5.2026 г., 13:00:00] Ada: Hi", "2026-05-28T13:00:00"),  # mk
    ],
)
def test_a_chat_of_whatsapp_has_the_times_of_its_language(
    system: MemorySystem, tmp_path: Path, line: str, time: str
) -> None:
    (tmp_path / "chat.txt").write_text(line)
    assert system.import_file(tmp_path / "chat.txt").format == "whatsapp_chat"
    [node] = history(system, "whatsapp-chat")
    assert (node.message.name, node.timestamp.isoformat()) == ("Ada", f"{time}+00:00")


def test_dates_of_whatsapp_that_can_be_read_in_two_ways_ascend(system: MemorySystem, tmp_path: Path) -> None:
    (tmp_path / "chat.txt").write_text("4/7/2026, 10:00 - Ada: Hi\n5/6/2026, 10:00 - Bob: Hello")
    system.import_file(tmp_path / "chat.txt")
    assert [str(node.timestamp.date()) for node in history(system, "whatsapp-chat")] == [
        "2026-04-07",
        "2026-05-06",
    ]


def test_an_export_of_anything_llm_has_a_conversation_for_each_workspace(
    system: MemorySystem, tmp_path: Path
) -> None:
    # Mintplex-Labs/anything-llm 013fc1e (server/utils/helpers/chat/convertTo.js, "json").
    value = [
        {"id": 1, "prompt": "Hi", "response": "Hello", "sent_at": "2026-05-28T10:00:01Z", "attachments": []},
        {
            "id": 2,
            "prompt": "Figs?",
            "response": "Soft",
            "sent_at": "2026-05-28T10:00:02Z",
            "attachments": [],
        },
    ]
    value = [one | {"workspace": "Home", "username": "ada", "rating": "--"} for one in value]
    assert imported(system, tmp_path, value) == "anything_llm"
    assert [said for *_, said in tree(system, "anythingllm-Home-ada")] == ["Hi", "Hello", "Figs?", "Soft"]
