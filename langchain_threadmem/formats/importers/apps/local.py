"""Apps on the own computer: LM Studio, Chatbox and SillyTavern, with versions of messages.

One version of a message is shown, and the following messages continue the version that is shown. The messages
of LM Studio and SillyTavern have no ids. Chatbox's export of all data has an object for each session, its
earlier topics and its forks.

A log of SillyTavern that branches from another one begins with its messages: these have the same ids, and it
becomes a branch of that conversation. Times have no zone. In a group chat every character has a name.

The fields follow YorkieDev/lmstudio-chat-converter, byteowlz/hstry, chatboxai/chatbox and
SillyTavern/SillyTavern.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import files_of, parts_of
from langchain_threadmem.formats.importers.chats import Chats
from langchain_threadmem.formats.importers.content_parts import Other, Part, Reasoning, at_once, called
from langchain_threadmem.formats.importers.program import ChatRecord, Program
from langchain_threadmem.formats.importers.said import ASSISTANT, USER, Said, chat_of
from langchain_threadmem.formats.importers.source import Format, Source
from langchain_threadmem.messages.ids import chained_id


def _is_lm_studio(value: Any) -> bool:
    messages = fields.at(value, "messages")
    if not messages:
        return messages == [] and "systemPrompt" in value and "createdAt" in value
    return all(fields.has(one, versions=list) for one in messages)


def _of_lm_studio(record: fields.Record) -> Iterator[ChatRecord]:
    previous: str | None = None
    messages: list[fields.Record] = []
    for message in fields.records(record, "messages", "the conversation"):
        shown, start = message.get("currentlySelected"), len(messages)
        for version in fields.records(message, "versions", "a message"):
            key = chained_id("import-", previous, [version.get(one) for one in ("role", "content", "steps")])
            if any(one["id"] == key for one in messages[start:]):
                key = chained_id("import-", key, len(messages) - start)
            infos = (fields.text(step.get("genInfo"), "identifier") for step in version.get("steps") or ())
            sender = fields.text(version.get("senderInfo"), "senderName")
            model = next(filter(None, infos), sender)
            messages.append({**version, "id": key, "parent": previous, "model": model})
        keys = [one["id"] for one in messages[start:]]
        if keys:
            previous = keys[shown if isinstance(shown, int) and 0 <= shown < len(keys) else -1]
    others = {"title": fields.text(record, "name"), "tip": previous}
    about = {name: value for name, value in record.items() if name != "id"}
    yield ChatRecord(about, messages, others=others, system=record.get("systemPrompt"))


def _parts(version: fields.Record) -> Iterator[Part]:
    yield from parts_of(version.get("content"))
    for step in version.get("steps") or ():
        kind = fields.at(step, "type")
        if kind == "contentBlock":
            is_thought = fields.at(step, "style", "type") == "thinking"
            for part in parts_of(step.get("content")):
                yield Reasoning(part) if is_thought and isinstance(part, str) else part
        elif kind not in ("debugInfoBlock", "toolStatus"):
            yield Other(step)


LM_STUDIO = Program(
    "lm_studio", "a conversation of LM Studio", _is_lm_studio, _parts, _of_lm_studio, parents=("parent",)
)


_LIST = "chat-sessions-list"


def _is_chatbox(value: Any) -> bool:
    """Whether a JSON document is an export of Chatbox; the first versions wrote the sessions as a list."""
    sessions = fields.at(value, "chat-sessions")
    is_old = isinstance(sessions, list) and all("messages" in one for one in sessions)
    return isinstance(value, dict) and (_LIST in value or is_old or any(map(_is_session, value)))


def _is_session(name: str) -> bool:
    return name.startswith("session:")


def _of_chatbox(value: fields.Record) -> Iterator[ChatRecord]:
    """A session, and each of its earlier topics."""
    about = {fields.at(one, "id"): one for one in fields.values(value, _LIST)}
    for session in [
        *(value[name] for name in value if _is_session(name)),
        *fields.values(value, "chat-sessions"),
    ]:
        name, forks = fields.text(session, "id"), fields.record(session, "messageForksHash")
        if name is None:
            raise InputError("a session has no 'id'")
        for topic in fields.values(session, "threads"):
            if messages := _flat(fields.values(topic, "messages"), None, forks):
                topic_name = f"{name}-{fields.text(topic, 'id') or 'topic'}"
                others = {"metadata": {"topic_of": name}, "tip": _end(topic)}
                yield ChatRecord(topic, messages, topic_name, others)
        starred = session.get("starred") or fields.at(about.get(name), "starred")
        messages = _flat(session.get("messages") or [], None, forks)
        yield ChatRecord({**session, "starred": starred}, messages, name, {"tip": _end(session)})


def _end(session: fields.Record) -> str | None:
    return next((fields.text(one, "id") for one in reversed(fields.values(session, "messages"))), None)


def _flat(messages: list[Any], previous: str | None, forks: fields.Record) -> list[fields.Record]:
    """Messages with their parents, and the messages of the forks after them."""
    flat: dict[str | None, fields.Record] = {}
    for message in messages:
        key = fields.text(message, "id")
        if key is None:
            raise InputError("a message has no 'id'")
        flat.setdefault(key, {**message, "parent": previous, "provider": message.get("aiProvider")})
        previous = key
        for fork in fields.values(forks, key, "lists"):
            for one in _flat(fork.get("messages") or [], key, forks):
                flat.setdefault(one["id"], one)
    return [*flat.values()]


def _parts_of_message(message: fields.Record) -> Iterator[Part]:
    parts = fields.values(message, "contentParts")
    if not parts:
        yield from parts_of({"type": "reasoning", "text": message.get("reasoningContent")})
    yield from parts_of([one for one in parts if fields.at(one, "type") != "info"] or message.get("content"))
    for name in ("files", "pictures", "links"):
        yield from files_of(message.get(name))


CHATBOX = Program(
    "chatbox",
    "Chatbox's export",
    _is_chatbox,
    _parts_of_message,
    _of_chatbox,
    parents=("parent",),
    kept=("provider",),
    asides=("isSummary",),
)


_HEADER = ("user_name", "character_name", "chat_metadata")


def _is_log_of_sillytavern(values: Sequence[Any]) -> bool:
    has_header = any(name in values[0] for name in _HEADER) and "mes" not in values[0]
    messages = values[1:] if has_header else values
    return (has_header or bool(messages)) and all("mes" in value and "is_user" in value for value in messages)


def _chats_of_sillytavern(source: Source) -> Chats:
    header: fields.Record = {}
    said: list[Said] = []
    previous: str | None = None

    def read(value: fields.Record, position: str) -> None:
        nonlocal header, previous
        if "mes" not in value:
            header = value
            return
        texts = [str(text) for text in fields.values(value, "swipes")] or [str(value.get("mes") or "")]
        shown = _shown(value, texts)
        texts[shown] = str(value.get("mes") or texts[shown])
        swipes = _swipes(value, texts, shown, previous, position)
        said.extend(swipes)
        previous = swipes[shown].key

    yield from source.each(read)
    if len({one.name for one in said if one.name and one.role == ASSISTANT}) < 2:
        for one in said:
            one.name = None  # A name says who speaks in a group only.
    source_of = fields.text(header.get("chat_metadata"), "main_chat")
    metadata = fields.kept(
        character=fields.text(header, "character_name"), user=fields.text(header, "user_name")
    )
    yield chat_of(
        "the chat",
        source.name,
        said,
        header,
        tip=previous,
        metadata=metadata,
        branch_of=[source_of] if source_of and source_of != source.name else [],
    )


def _shown(value: fields.Record, texts: Sequence[str]) -> int:
    """The number of the alternative that is shown: that of the file, else the one with the text of `mes`."""
    number = value.get("swipe_id")
    if isinstance(number, int) and 0 <= number < len(texts):
        return number
    return texts.index(value["mes"]) if value["mes"] in texts else len(texts) - 1


def _swipes(
    value: fields.Record, texts: Sequence[str], shown: int, previous: str | None, position: str
) -> list[Said]:
    """The message and its alternatives."""
    infos = fields.values(value, "swipe_info")
    swipes: list[Said] = []
    for number, text in enumerate(texts):
        about = value if number == shown else infos[number] if number < len(infos) else {}
        extra = fields.record(about, "extra")
        parts: list[Part] = [Reasoning(extra["reasoning"])] if isinstance(extra.get("reasoning"), str) else []
        files = [extra[name] for name in ("file", "image") if extra.get(name)]
        files += [*fields.values(extra, "files"), *fields.values(extra, "media")]
        parts += [text, *files_of(files)]
        role = USER if value.get("is_user") else ASSISTANT
        key = chained_id("import-", previous, [role, value.get("name"), text])
        if any(one.key == key for one in swipes):
            key = chained_id("import-", previous, [role, value.get("name"), text, number])
        calls = at_once(_calls(extra))
        is_hidden = bool(value.get("is_system")) and not calls
        swipes.append(
            Said(
                key,
                previous,
                role,
                calls or parts,
                fields.time({"shown": value.get("send_date"), **about}, position, "send_date", "shown"),
                fields.text(extra, "model") if role == ASSISTANT else None,
                None if calls else fields.text(value, "name"),
                is_hidden,
                {"hidden": True} if is_hidden else {},
            )
        )
    return swipes


def _calls(extra: fields.Record) -> Iterator[Part]:
    """The calls of a message that the program has written about them; such a message is for the model."""
    for call in fields.values(extra, "tool_invocations"):
        failed = call.get("error") is not None
        output = call.get("error") if failed else call.get("result") or ""
        yield from called(
            str(call.get("name")), call.get("parameters"), fields.text(call, "id"), output, failed
        )


SILLYTAVERN = Format(
    "sillytavern", "a chat of SillyTavern", _chats_of_sillytavern, is_log=_is_log_of_sillytavern
)
