"""Chats of people: Discord, Telegram and Slack, which are trees of replies, and WhatsApp.

A message that answers nothing is a root; in a chat of WhatsApp, which is text, each message continues the
message before it. Every message has the name of its speaker; notices of the program are asides.

The fields follow Tyrrrz/DiscordChatExporter; those of the others are not confirmed by a source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers.blocks import file_of, files_of, parts_of
from langchain_threadmem.formats.importers.chats import (
    Chat,
    Chats,
    chat_of,
    kept,
    local_time,
    seconds,
    text_or_none,
)
from langchain_threadmem.formats.importers.json_items import Record, object_in
from langchain_threadmem.formats.importers.said import (
    ASSISTANT,
    SYSTEM,
    USER,
    File,
    Other,
    Part,
    Said,
    entries_of,
)
from langchain_threadmem.formats.importers.source import Format, Source, checked
from langchain_threadmem.messages.ids import chained_id
from langchain_threadmem.messages.records import as_list, as_object

_DISCORD = (
    "Default",
    "Reply",
    "0",
    "19",
    "ChatInputCommand",
    "20",
    "ContextMenuCommand",
    "23",
    "ThreadStarterMessage",
)
_REPLIES = ("Reply", "19")


def _is_discord(value: object) -> bool:
    """Whether a JSON document is a channel of Discord."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("channel"), dict)
        and isinstance(value.get("messages"), list)
        and "guild" in value
    )


def _chats_of_discord(source: Source) -> Chats:
    """The conversation of a channel."""
    return source.each(_channel)


def _channel(record: Record, position: str) -> Chat:
    channel, guild = record["channel"], record.get("guild") or {}
    name = text_or_none(channel.get("id")) or text_or_none(channel.get("name"))
    if name is None:
        raise InputError(f"{position} has no 'id' in 'channel'")
    messages = [
        as_object(one, f"a message of {position}") for one in as_list(record["messages"], "'messages'")
    ]
    return chat_of(
        position,
        f"discord-{name}",
        entries_of([_of_discord(one, position) for one in messages]),
        title=text_or_none(channel.get("name")),
        metadata=kept(guild=text_or_none(guild.get("name")), category=text_or_none(channel.get("category"))),
        is_part=True,
    )


def _of_discord(message: Record, position: str) -> Said:
    author = object_in(message, "author")
    kind = str(message.get("type") or "Default")
    reference = message.get("reference")
    reply = kind in _REPLIES and isinstance(reference, dict)
    parts = parts_of(message.get("content"))
    forwarded = message.get("forwardedMessage")
    if isinstance(forwarded, dict):
        parts += [*parts_of(forwarded.get("content")), *files_of(forwarded.get("attachments"))]
    for embed in message.get("embeds") or ():
        lines = (text_or_none(embed.get(name)) for name in ("title", "description", "url"))
        if not parts and (text := "\n".join(line for line in lines if line)):
            parts.append(text)
    parts += [
        File("file", text_or_none(one.get("fileName")), one, True) for one in message.get("attachments") or ()
    ]
    parts += [
        File("image", text_or_none(one.get("name")), one, True) for one in message.get("stickers") or ()
    ]
    return Said(
        str(message.get("id")),
        str(reference.get("messageId")) if reply and isinstance(reference, dict) else None,
        ASSISTANT if author.get("isBot") else USER,
        parts,
        seconds(message.get("timestamp"), position),
        None,
        text_or_none(author.get("nickname")) or text_or_none(author.get("name")),
        kind not in _DISCORD,
        kept(
            author=text_or_none(author.get("name")),
            pinned=message.get("isPinned"),
            edited=message.get("timestampEdited"),
            reactions=message.get("reactions"),
            command=message.get("interaction"),
        ),
    )


DISCORD = Format("discord", "a channel of DiscordChatExporter", _chats_of_discord, _is_discord)


def _is_telegram(value: object) -> bool:
    """Whether a JSON document is a chat or an account of Telegram."""
    if not isinstance(value, dict):
        return False
    _chats_of_telegram = value.get("chats")
    if isinstance(_chats_of_telegram, dict) and isinstance(_chats_of_telegram.get("list"), list):
        return all(_is_telegram_chat(one) for one in _chats_of_telegram["list"][:20])
    return _is_telegram_chat(value)


def _is_telegram_chat(value: object) -> bool:
    if not isinstance(value, dict) or "type" not in value or "id" not in value:
        return False
    messages = value.get("messages")
    return isinstance(messages, list) and all(
        isinstance(one, dict) and "date" in one and ("text" in one or "text_entities" in one)
        for one in messages[:20]
    )


def _chats_of_telegram(source: Source) -> Chats:
    """The conversations of an export."""

    def read(value: Record, position: str) -> Chats:
        listed = value["chats"]["list"] if isinstance(value.get("chats"), dict) else [value]
        left = value.get("left_chats")
        listed = [*listed, *(left.get("list") or [] if isinstance(left, dict) else [])]
        for number, record in enumerate(listed, 1):
            where = position if len(listed) == 1 else f"chat {number} of {position}"
            yield from checked(where, _telegram_chat, record, where)

    return source.each(read)


def _telegram_chat(value: Any, position: str) -> Chat:
    record = as_object(value, position)
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


TELEGRAM = Format("telegram", "result.json of Telegram", _chats_of_telegram, _is_telegram)


_MENTION = re.compile(r"<@([A-Z0-9]+)(?:\|([^>]*))?>")
_CHANNEL = re.compile(r"<#([A-Z0-9]+)\|([^>]*)>")
_LINK = re.compile(r"<((?:https?|mailto):[^|>]+)(?:\|([^>]*))?>")
_SPOKEN = (
    None,
    "",
    "thread_broadcast",
    "bot_message",
    "file_share",
    "me_message",
    "reply_broadcast",
    "file_comment",
)
_NOTICES = re.compile(r"^(channel|group|bot|pinned|unpinned|reminder|huddle|sh_room|tombstone|joiner)_")


def _is_slack(value: object) -> bool:
    """Whether an item of a JSON file is a message of Slack."""
    return isinstance(value, dict) and value.get("type") == "message" and isinstance(value.get("ts"), str)


def _chats_of_slack(source: Source) -> Chats:
    """A day of a channel; the conversation is the channel, which is the folder of the file."""
    people = _names(source.beside("../users.json"))
    channels = _channels(source)
    said: list[Said] = []
    yield from source.each(lambda message, position: said.append(_of_slack(message, people, position)))
    channel = source.folder or source.name
    about = channels.get(channel, {})
    yield chat_of(
        "the day",
        f"slack-{text_or_none(about.get('id')) or channel}",
        entries_of(
            [*{one.key: one for one in reversed(said)}.values()][::-1]
        ),  # A broadcast reply occurs twice.
        title=channel,
        archived=source.time if about.get("is_archived") else None,
        metadata=kept(topic=_value(about.get("topic")), purpose=_value(about.get("purpose"))),
        is_part=True,
    )


def _names(users: Any) -> dict[str, str]:
    """The names of people by their ids."""
    names = {}
    for user in users if isinstance(users, list) else ():
        profile = object_in(user, "profile")
        options = (
            profile.get("display_name"),
            profile.get("real_name"),
            user.get("real_name"),
            user.get("name"),
        )
        names[str(user.get("id"))] = next(
            (text for one in options if (text := text_or_none(one))), str(user.get("id"))
        )
    return names


def _channels(source: Source) -> dict[str, Record]:
    found: dict[str, Record] = {}
    for name in ("channels", "groups", "mpims", "dms"):
        listed = source.beside(f"../{name}.json")
        for one in listed if isinstance(listed, list) else ():
            found[str(one.get("name") or one.get("id"))] = one
    return found


def _value(value: Any) -> str | None:
    return text_or_none(value.get("value")) if isinstance(value, dict) else None


def _of_slack(message: Record, people: dict[str, str], position: str) -> Said:
    key, thread = str(message["ts"]), text_or_none(message.get("thread_ts"))
    subtype = message.get("subtype")
    profile = object_in(message, "user_profile")
    user = text_or_none(message.get("user"))
    names = (
        people.get(user or ""),
        profile.get("display_name"),
        profile.get("real_name"),
        message.get("username"),
        user,
    )
    name = next((text for one in names if (text := text_or_none(one))), None)
    text = str(message.get("text") or "")
    for pattern, replaced in (
        (_MENTION, lambda found: f"@{people.get(found[1], found[2] or found[1])}"),
        (_CHANNEL, lambda found: f"#{found[2]}"),
        (_LINK, lambda found: f"[{found[2]}]({found[1]})" if found[2] else found[1]),
    ):
        text = pattern.sub(replaced, text)
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    parts: list[Part] = [text] if text.strip() else []
    for attachment in message.get("attachments") or ():
        shown = text_or_none(attachment.get("text")) or text_or_none(attachment.get("fallback"))
        if not parts and shown:
            parts.append(shown)
        elif shown:
            parts.append(Other(attachment))
    files = message.get("files") or ([message["file"]] if isinstance(message.get("file"), dict) else [])
    parts += [file_of(one, is_beside=True) for one in files if isinstance(one, dict)]
    is_notice = subtype not in _SPOKEN and (bool(_NOTICES.match(str(subtype))) or not user)
    return Said(
        key,
        thread if thread != key else None,
        ASSISTANT if subtype == "bot_message" or message.get("bot_id") else USER,
        parts,
        seconds(key, position),
        None,
        name,
        is_notice,
        kept(reactions=message.get("reactions"), edited=message.get("edited"), subtype=subtype, author=user),
    )


SLACK = Format("slack", "the folder of Slack's export", _chats_of_slack, _is_slack)


_LINE = re.compile(
    r"^\u200e?\[?(?P<date>\d{1,4}[./-]\d{1,2}[./-]\d{1,4})[,.]?\s+(?P<time>\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:\s?[APap]\.?\s?[Mm]\.?)?)"
    r"(?:\]\s*|\s+-\s+)(?P<text>.*)$"
)
_SPEAKER = re.compile(r"^(?:\u200e)?(?P<name>[^:\n]{1,80}?):\s(?P<text>.*)$", re.DOTALL)


def _is_text_of_whatsapp(text: str) -> bool:
    """Whether a text is a chat of WhatsApp: the first line is a message with a time."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return bool(_LINE.match(first.strip()))


def _chats_of_whatsapp(source: Source) -> Chats:
    """The conversation of a text, in which each message continues the message before it."""
    said: list[Said] = []
    records = [*_records(source.lines())]
    day_first = _is_day_first(date for date, _, _ in records)
    for date, time, text in records:
        found = _SPEAKER.match(text)
        name, content = (found["name"].strip(), found["text"]) if found else (None, text)
        previous = said[-1].key if said else None
        content = content.replace("\u200e", "").strip()
        key = chained_id("import-", previous, [date, time, text])
        said.append(
            Said(key, previous, USER if name else SYSTEM, [content], _when(date, time, day_first), None, name)
        )
    title = (
        re.sub(r"^WhatsApp[ -]Chat (with |mit |con |avec )?(- )?", "", source.name).strip("_ ") or source.name
    )
    yield chat_of("the chat", f"whatsapp-{title}", entries_of(said), title=title)


def _records(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Date, time and text of each message; a line without a time continues the message before it."""
    current: list[str] | None = None
    for line in lines:
        found = _LINE.match(line.replace("\u202f", " "))
        if found:
            if current is not None:
                yield current[0], current[1], current[2]
            current = [found["date"], found["time"], found["text"]]
        elif current is not None:
            current[2] += f"\n{line}"
    if current is not None:
        yield current[0], current[1], current[2].rstrip()


def _is_day_first(dates: Iterable[str]) -> bool:
    """Whether the day stands before the month: unless a second number is above 12."""
    seconds_of_dates = [int(re.split(r"[./-]", date)[1]) for date in dates]
    return not any(number > 12 for number in seconds_of_dates)


def _when(date: str, time: str, day_first: bool) -> float | None:
    numbers = [int(number) for number in re.split(r"[./-]", date)]
    if numbers[0] > 31:
        year, month, day = numbers
    else:
        day, month, year = numbers if day_first else (numbers[1], numbers[0], numbers[2])
    year += 2000 if year < 100 else 0
    plain = re.sub(r"\.(?=[mM]|$|\s)", "", time.replace(".", ":", 2) if time[1:3].count(".") else time)
    hour = re.match(r"(\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?\s?([APap])?", plain)
    if hour is None:
        return None
    hours = int(hour[1]) % 12 + (12 if hour[4] in ("p", "P") else 0) if hour[4] else int(hour[1])
    return local_time(f"{year:04}-{month:02}-{day:02} {hours:02}:{hour[2]}:{hour[3] or '00'}")


WHATSAPP = Format(
    "whatsapp_chat", "a chat of WhatsApp as text", _chats_of_whatsapp, is_text=_is_text_of_whatsapp
)


FORMATS = (DISCORD, TELEGRAM, SLACK, WHATSAPP)
