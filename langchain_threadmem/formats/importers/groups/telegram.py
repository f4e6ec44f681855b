"""Chats of Telegram, which are trees of replies.

A message that answers nothing is a root. Every message has the name of its speaker; notices of the program
are asides. The fields are those of its exports, and are not confirmed by a source.
"""

from __future__ import annotations

from langchain_threadmem.formats.importers.chats import Bad, Chat, Chats, chat_of, kept, seconds, text_or_none
from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.said import SYSTEM, USER, File, Other, Part, Said, entries_of
from langchain_threadmem.formats.importers.source import FAULTS, Source, problem_of
from langchain_threadmem.messages.records import as_list, as_object


def is_item(value: object) -> bool:
    """Whether a JSON document is a chat or an account of Telegram."""
    if not isinstance(value, dict):
        return False
    chats = value.get("chats")
    if isinstance(chats, dict) and isinstance(chats.get("list"), list):
        return all(_is_telegram_chat(one) for one in chats["list"][:20])
    return _is_telegram_chat(value)


def _is_telegram_chat(value: object) -> bool:
    if not isinstance(value, dict) or "type" not in value or "id" not in value:
        return False
    messages = value.get("messages")
    return isinstance(messages, list) and all(
        isinstance(one, dict) and "date" in one and ("text" in one or "text_entities" in one)
        for one in messages[:20]
    )


def chats(source: Source) -> Chats:
    """The conversations of an export."""
    for item in source.objects():
        if isinstance(item, Bad):
            yield item
            continue
        position, value = item
        listed = value["chats"]["list"] if isinstance(value.get("chats"), dict) else [value]
        left = value.get("left_chats")
        listed = [*listed, *(left.get("list") or [] if isinstance(left, dict) else [])]
        for number, record in enumerate(listed, 1):
            where = position if len(listed) == 1 else f"chat {number} of {position}"
            try:
                yield _telegram_chat(as_object(record, where), where)
            except FAULTS as error:
                yield Bad(problem_of(error, where))


def _telegram_chat(record: Record, position: str) -> Chat:
    messages = [
        as_object(one, f"a message of {position}") for one in as_list(record.get("messages"), "'messages'")
    ]
    name = f"telegram-{record['id']}"
    return chat_of(
        position,
        name,
        entries_of([_of_telegram(one, name, position) for one in messages]),
        title=text_or_none(record.get("name")),
        metadata=kept(kind=text_or_none(record.get("type"))),
        is_part=True,
    )


def _of_telegram(message: Record, name: str, position: str) -> Said:
    reply = message.get("reply_to_message_id")
    is_service = message.get("type") == "service"
    parts: list[Part] = [text] if (text := _telegram_text(message)).strip() else []
    for field in ("photo", "file"):
        if isinstance(path := message.get(field), str) and path:
            kind = "image" if field == "photo" else str(message.get("media_type") or "file")
            medium = next((one for one in ("image", "audio", "video") if one in kind), "file")
            medium = "audio" if kind == "voice_message" else medium
            name_of_file = text_or_none(message.get("file_name")) or path.rpartition("/")[2]
            parts.append(File(medium, name_of_file, {"path": path}, is_beside=True))
    if is_service and not parts:
        parts.append(str(message.get("action") or "service"))
    fields = ("poll", "location_information", "contact_information")
    parts += [Other({"type": field, "value": message[field]}) for field in fields if message.get(field)]
    key = str(message.get("id"))
    return Said(
        key,
        None if reply is None else str(reply),
        SYSTEM if is_service else USER,
        parts,
        seconds(message.get("date_unixtime") or message.get("date"), position),
        None,
        text_or_none(message.get("from")) or text_or_none(message.get("actor")),
        is_service,
        kept(
            forwarded_from=message.get("forwarded_from"),
            edited=message.get("edited"),
            author=message.get("from_id"),
            via_bot=message.get("via_bot"),
            reactions=message.get("reactions"),
        ),
        f"{name}-{key}",
    )


def _telegram_text(message: Record) -> str:
    text = message.get("text")
    pieces = text if isinstance(text, list) else [text]
    if not any(pieces) and isinstance(message.get("text_entities"), list):
        pieces = message["text_entities"]
    texts = (piece.get("text") if isinstance(piece, dict) else piece for piece in pieces)
    return "".join(text for text in texts if isinstance(text, str))
