"""Chats of people: trees of replies of messengers, and chains of messages of WhatsApp and Signal.

A message that answers nothing is a root; in a chat of WhatsApp or Signal each message continues the message
before it. Every message has the name of its speaker; notices of the program are asides.

The fields follow Tyrrrz/DiscordChatExporter and, for Matrix, Element's export (`JSONExporter` of
element-hq/element-web) and the specification of events, the type `chatMessage` of Microsoft Graph 1.0,
RocketChat/Rocket.Chat (exportRoomMessagesToFile.ts), carderne/signal-export (models.py) and readers of Google
Chat's files; those of Telegram, Slack and WhatsApp are not confirmed by a source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import file_of, files_of, parts_of
from langchain_threadmem.formats.importers.chats import Chat, Chats
from langchain_threadmem.formats.importers.content_parts import File, Other, Part
from langchain_threadmem.formats.importers.markup import images_of_html, text_of_html
from langchain_threadmem.formats.importers.program import ChatRecord, Program, all_are
from langchain_threadmem.formats.importers.said import ASSISTANT, SYSTEM, USER, Said, chat_of
from langchain_threadmem.formats.importers.source import Format, Source
from langchain_threadmem.messages.ids import chained_id

_DISCORD = (
    *("Default", "Reply", "0", "19", "ChatInputCommand", "20", "ContextMenuCommand", "23"),
    "ThreadStarterMessage",
)
_REPLIES = ("Reply", "19")


def _of_discord(value: fields.Record) -> Iterator[ChatRecord]:
    channel = value["channel"]
    name = fields.text(channel, "id", "name")
    if name is None:
        raise InputError("the document has no 'id' in 'channel'")
    guild = fields.text(fields.record(value, "guild"), "name")
    metadata = fields.kept(guild=guild, category=fields.text(channel, "category"))
    messages = []
    for one in fields.records(value, "messages", "the channel"):
        kind, author = str(one.get("type") or "Default"), fields.record(one, "author")
        about = {
            "role": ASSISTANT if author.get("isBot") else USER,
            "name": fields.text(author, "nickname", "name"),
            "parent": fields.at(one, "reference", "messageId") if kind in _REPLIES else None,
            "is_notice": kind not in _DISCORD,
            "author": fields.text(author, "name"),
            "pinned": one.get("isPinned"),
            "edited": one.get("timestampEdited"),
            "command": one.get("interaction"),
        }
        messages.append(one | about)
    yield ChatRecord(channel, messages, f"discord-{name}", {"metadata": metadata, "is_part": True})


def _parts_of_discord(message: fields.Record) -> Iterator[Part]:
    forwarded = fields.record(message, "forwardedMessage")
    parts = [*parts_of(message.get("content")), *parts_of(forwarded.get("content"))]
    parts += files_of(forwarded.get("attachments"))
    for embed in message.get("embeds") or ():
        lines = (fields.text(embed, name) for name in ("title", "description", "url"))
        if not parts and (text := "\n".join(line for line in lines if line)):
            parts.append(text)
    yield from parts
    for field, kind in (("attachments", "file"), ("stickers", "image")):
        yield from (
            File(kind, fields.text(one, "fileName", "name"), one, True) for one in message.get(field) or ()
        )


_SHOWN = ("author", "pinned", "edited", "reactions", "command", "forwarded_from", "via_bot")
"""The fields of messages of people that are kept."""
DISCORD = Program(
    "discord",
    "a channel of DiscordChatExporter",
    lambda value: fields.has(value, messages=list, channel=dict) and "guild" in value,
    _parts_of_discord,
    _of_discord,
    parents=("parent",),
    kept=_SHOWN,
    asides=("is_notice",),
)


def _is_telegram(value: Any) -> bool:
    """Whether a JSON document is a chat or an account of Telegram."""
    listed = fields.at(value, "chats", "list")
    return all(
        fields.has(chat, messages=list)
        and chat.keys() >= {"type", "id"}
        and all("date" in one and ("text" in one or "text_entities" in one) for one in chat["messages"][:20])
        for chat in (listed[:20] if isinstance(listed, list) else [value])
    )


def _of_telegram(value: fields.Record) -> Iterator[ChatRecord]:
    listed = fields.values(value, "chats", "list") + fields.values(value, "left_chats", "list")
    for record in listed if "chats" in value else [value]:
        name = f"telegram-{record['id']}"
        messages = []
        for one in fields.records(record, "messages", f"chat {name!r}"):
            is_service = one.get("type") == "service"
            about = {
                "role": SYSTEM if is_service else USER,
                "name": fields.text(one, "from", "actor"),
                "parent": one.get("reply_to_message_id"),
                "is_notice": is_service,
                "timestamp": one.get("date_unixtime"),
                "author": one.get("from_id"),
            }
            messages.append(one | about)
        metadata = fields.kept(kind=fields.text(record, "type"))
        yield ChatRecord(
            record, messages, name, {"prefix": f"{name}-", "metadata": metadata, "is_part": True}
        )


def _parts_of_telegram(message: fields.Record) -> Iterator[Part]:
    text = message.get("text")
    pieces = text if isinstance(text, list) else [text]
    if not any(pieces) and isinstance(message.get("text_entities"), list):
        pieces = message["text_entities"]
    texts = (fields.at(piece, "text") if isinstance(piece, dict) else piece for piece in pieces)
    text = "".join(text for text in texts if isinstance(text, str))
    parts: list[Part] = [text] if text.strip() else []
    for field in ("photo", "file"):
        if path := fields.text(message, field):
            kind = "image" if field == "photo" else str(message.get("media_type") or "file")
            medium = next((one for one in ("image", "audio", "video") if one in kind), "file")
            medium = "audio" if kind == "voice_message" else medium
            name = fields.text(message, "file_name") or path.rpartition("/")[2]
            parts.append(File(medium, name, {"path": path}, is_beside=True))
    if message["is_notice"] and not parts:
        parts.append(str(message.get("action") or "service"))
    yield from parts
    for field in ("poll", "location_information", "contact_information"):
        if message.get(field):
            yield Other({"type": field, "value": message[field]})


TELEGRAM = DISCORD._replace(
    name="telegram",
    contents="result.json of Telegram",
    fits=_is_telegram,
    parts=_parts_of_telegram,
    conversations=_of_telegram,
)


def _of_element(value: fields.Record) -> Iterator[ChatRecord]:
    events = fields.records(value, "messages", "the room")
    name = next((id for one in events if (id := fields.text(one, "room_id"))), value.get("room_name"))
    if name is None:
        raise InputError("the room has neither a 'room_name' nor messages with a 'room_id'")
    edits: dict[Any, fields.Record] = {}
    messages: list[fields.Record] = []
    for event in events:
        relation = fields.record(event, "content", "m.relates_to")
        if relation.get("rel_type") == "m.replace":
            edits[relation.get("event_id")] = fields.record(event, "content", "m.new_content")
            continue
        in_thread = relation.get("event_id") if relation.get("rel_type") == "m.thread" else None
        answered = fields.at(relation, "m.in_reply_to", "event_id")
        sender = fields.text(event, "sender") or ""
        about = {
            "id": event.get("event_id"),
            "name": sender.removeprefix("@").partition(":")[0],
            "parent": answered or in_thread,
            "is_notice": event.get("type") not in _EVENTS,
            "timestamp": event.get("origin_server_ts"),
            "author": sender,
            "content": fields.record(event, "content"),
            "is_answer": answered is not None,
            "type": event.get("type"),
        }
        messages.append(about)
    for one in messages:
        one["edited"] = one["id"] in edits
        one["content"] = edits.get(one["id"]) or one["content"]
        is_answer = one["content"].get("msgtype") == "m.notice"
        one["role"] = SYSTEM if one["is_notice"] else ASSISTANT if is_answer else USER
    metadata = fields.kept(topic=value.get("topic"))
    others = {"title": value.get("room_name"), "metadata": metadata, "is_part": True}
    yield ChatRecord({}, messages, f"element-{name}", others)


_EVENTS = ("m.room.message", "m.sticker")


_QUOTE = re.compile(r"(?:^>.*\n)+\n?")
"""The quoted message at the beginning of an answer."""


def _parts_of_element(message: fields.Record) -> Iterator[Part]:
    content = message["content"]
    kind, body = str(content.get("msgtype") or message["type"]), fields.text(content, "body") or ""
    if message["is_notice"]:
        yield f"{kind}: {body or fields.text(content, 'membership', 'name', 'topic') or ''}".rstrip(": ")
    elif kind in _MEDIA:
        name = fields.text(content, "filename", "body")
        yield File(_MEDIA[kind], name, fields.filled(content, ("url", "info", "file")), is_beside=True)
        if "filename" in content and body != name:
            yield body
    elif body:
        yield _QUOTE.sub("", body, count=1) if message["is_answer"] and body.startswith("> <") else body


_MEDIA = {
    "m.image": "image",
    "m.sticker": "image",
    "m.audio": "audio",
    "m.video": "video",
    "m.file": "file",
}
ELEMENT = DISCORD._replace(
    name="element",
    contents="a room of Matrix that Element exported as JSON",
    fits=lambda value: fields.has(value, messages=list) and {"room_name", "exported_by"} <= value.keys(),
    parts=_parts_of_element,
    conversations=_of_element,
)


_MENTION = re.compile(r"<@([A-Z0-9]+)(?:\|([^>]*))?>")
_CHANNEL = re.compile(r"<#([A-Z0-9]+)\|([^>]*)>")
_LINK = re.compile(r"<((?:https?|mailto):[^|>]+)(?:\|([^>]*))?>")
_SPOKEN = (
    *(None, "", "thread_broadcast", "bot_message", "file_share", "me_message", "reply_broadcast"),
    "file_comment",
)
_NOTICES = re.compile(r"^(channel|group|bot|pinned|unpinned|reminder|huddle|sh_room|tombstone|joiner)_")


def _chats_of_slack(source: Source) -> Chats:
    """A day of a channel; the conversation is the channel, which is the folder of the file."""
    listed = source.beside("../users.json")
    users = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    people = {
        str(one.get("id")): _name(one.get("profile")) or _name(one) or str(one.get("id")) for one in users
    }
    channel = source.folder or source.name
    about: fields.Record = {}
    for name in ("channels", "groups", "mpims", "dms"):
        for one in source.beside(f"../{name}.json") or ():
            about = one if str(one.get("name") or one.get("id")) == channel else about
    said: list[Said] = []
    yield from source.each(lambda message, position: said.append(_of_slack(message, people, position)))
    metadata = {name: fields.text(about.get(name), "value") for name in ("topic", "purpose")}
    yield chat_of(
        "the day",
        f"slack-{fields.text(about, 'id') or channel}",
        [*{one.key: one for one in reversed(said)}.values()][::-1],  # A broadcast reply occurs twice.
        title=channel,
        archived=source.time if about.get("is_archived") else None,
        metadata=fields.kept(**metadata),
        is_part=True,
    )


def _name(person: Any) -> str | None:
    return fields.text(person, "display_name", "real_name", "name")


def _of_slack(message: fields.Record, people: dict[str, str], position: str) -> Said:
    key, thread = str(message["ts"]), fields.text(message, "thread_ts")
    subtype = message.get("subtype")
    user = fields.text(message, "user")
    name = people.get(user or "") or _name(message.get("user_profile")) or fields.text(message, "username")
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
        shown = fields.text(attachment, "text", "fallback")
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
        fields.seconds(key, position),
        None,
        name or user,
        is_notice,
        fields.kept(author=user) | fields.filled(message, ("reactions", "edited", "subtype")),
    )


SLACK = Format(
    "slack",
    "the folder of Slack's export",
    _chats_of_slack,
    lambda value: fields.has(value, ts=str) and value.get("type") == "message",
)


_DATE, _CLOCK = r"\d{1,4}[./-] ?\d{1,2}[./-] ?\d{1,4}\.?(?: г\.)?", r"\d{1,2}[:.]\d{2}(?:[:.]\d{2})?"
_BEFORE, _AFTER = "오전|오후|上午|下午|午前|午後|AM|PM", r"[APap]\.?\s?[Mm]\.?|ص|م|π\.μ\.|μ\.μ\."
_LINE = re.compile(
    rf"^[\u200e\u200f]*\[?(?P<date>{_DATE})[,.،]?\s+(?:klo\s)?(?P<time>(?:{_BEFORE})?\s?{_CLOCK}(?:\s?(?:{_AFTER}))?)"
    r"(?:\]\s*|\s+-\s+)(?P<text>.*)$"
)
_HEAD = 32
"""The number of characters in which a date and a time end."""
_AFTERNOON = re.compile(r"오후|下午|午後|م$|μ\.μ|[Pp]\.?\s?[Mm]")
"""The second half of the day in the languages that write times with 12 hours, as of Babel 2.17."""
_YEAR_FIRST = re.compile(r"\d{4}|\d+\. \d+\. \d\d?\.$")
"""A date that begins with the year: of four digits, or in Korean of two, as in `26. 5. 28.`."""
_OF_US = re.compile(r"[1-9]\d?/[1-9]\d?/\d{2}")
_SPEAKER = re.compile(r"^(?:\u200e)?(?P<name>[^:\n]{1,80}?):\s(?P<text>.*)$", re.DOTALL)


def _chats_of_whatsapp(source: Source) -> Chats:
    """The conversation of a text, in which each message continues the message before it."""
    said: list[Said] = []
    records = [*_records(source.lines())]
    day_first = _is_day_first([(date, time) for date, time, _ in records])
    for date, time, text in records:
        found = _SPEAKER.match(text)
        name, content = (found["name"].strip(), found["text"]) if found else (None, text)
        previous = said[-1].key if said else None
        content = content.replace("\u200e", "").strip()
        key = chained_id("import-", previous, [date, time, text])
        role, when = USER if name else SYSTEM, _when(date, time, day_first)
        said.append(Said(key, previous, role, [content], when, None, name))
    named = re.sub(r"^WhatsApp[ -]Chat (with |mit |con |avec )?(- )?", "", source.name).strip("_ ")
    title = named or source.name
    yield chat_of("the chat", f"whatsapp-{title}", said, title=title)


def _head_of(line: str) -> re.Match[str] | None:
    """The beginning of a message; in Arabic and Hebrew marks of the direction are between the numbers."""
    plain = line.replace("\u202f", " ")
    return _LINE.match(plain) or _LINE.match(plain[:_HEAD].replace("\u200f", "") + plain[_HEAD:])


def _records(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Date, time and text of each message; a line without a time continues the message before it."""
    current: list[str] | None = None
    for line in lines:
        found = _head_of(line)
        if found:
            if current is not None:
                yield current[0], current[1], current[2]
            current = [found["date"], found["time"], found["text"]]
        elif current is not None:
            current[2] += f"\n{line}"
    if current is not None:
        yield current[0], current[1], current[2].rstrip()


def _is_day_first(dates: Sequence[tuple[str, str]]) -> bool:
    """Whether the day stands before the month, in a chat whose dates ascend; not in English of the US."""
    numbers = [tuple(map(int, re.findall(r"\d+", date))) for date, _ in dates if not _YEAR_FIRST.match(date)]
    if any(first > 12 for first, *_ in numbers) or any(second > 12 for _, second, *_ in numbers):
        return not any(second > 12 for _, second, *_ in numbers)
    by_day, by_month = ([(one[2], one[n], one[1 - n]) for one in numbers] for n in (1, 0))
    if (by_day == sorted(by_day)) != (by_month == sorted(by_month)):
        return by_day == sorted(by_day)
    return not all(_OF_US.fullmatch(date) and time[-2:] in ("AM", "PM") for date, time in dates)


def _when(date: str, time: str, day_first: bool) -> float | None:
    year, *others = [int(number) for number in re.findall(r"\d+", date)]
    if not _YEAR_FIRST.match(date):
        *others, year = (year, *others)
        others = others[::-1] if day_first else others
    year += 2000 if year < 100 else 0
    hour, minute, second = [*map(int, re.findall(r"\d+", time)), 0][:3]
    if re.search(f"{_BEFORE}|{_AFTER}", time):
        hour = hour % 12 + 12 * bool(_AFTERNOON.search(time))
    clock = f"{hour:02}:{minute:02}:{second:02}"
    return fields.local_time(f"{year:04}-{others[0]:02}-{others[1]:02} {clock}")


WHATSAPP = Format(
    "whatsapp_chat",
    "a chat of WhatsApp as text",
    _chats_of_whatsapp,
    is_text=lambda text: bool(_head_of(text.lstrip().partition("\n")[0].strip())),
)


def _is_teams(value: Any) -> bool:
    return fields.has(value, body=dict, messageType=str) and "createdDateTime" in value


def _of_teams(value: fields.Record) -> Iterator[ChatRecord]:
    """The messages of each chat or channel, which Graph returns newest first."""
    listed = fields.records(value, "value" if "value" in value else "messages", "the answer")
    chats: dict[str, list[fields.Record]] = {}
    listed += [reply for one in listed for reply in fields.values(one, "replies")]
    for one in listed:
        sender = fields.record(one, "from")
        is_notice = one["messageType"] != "message"
        is_bot = bool(sender.get("application"))
        person = fields.record(sender, "application" if is_bot else "user")
        quoted = [file.get("id") for file in one.get("attachments") or () if _is_quote(file)]
        about = {
            "role": SYSTEM if is_notice else ASSISTANT if is_bot else USER,
            "name": fields.text(person, "displayName"),
            "parent": one.get("replyToId") or next(iter(quoted), None),
            "is_notice": is_notice,
            "timestamp": one["createdDateTime"],
            "author": fields.text(person, "id"),
            "edited": one.get("lastEditedDateTime"),
        }
        name = fields.text(one, "chatId") or fields.text(one.get("channelIdentity"), "channelId") or "chat"
        chats.setdefault(name, []).append(one | about)
    for name, messages in chats.items():
        messages.sort(key=lambda one: str(one["timestamp"]))
        name = f"teams-{name}"
        yield ChatRecord({}, messages, name, {"prefix": f"{name}-", "is_part": True})


def _is_quote(file: fields.Record) -> bool:
    return file.get("contentType") in ("messageReference", "forwardedMessageReference")


def _parts_of_teams(message: fields.Record) -> Iterator[Part]:
    body, files = message["body"], message.get("attachments") or ()
    text = str(body.get("content") or "")
    yield from parts_of(message.get("subject"))
    if body.get("contentType") == "html":
        yield from parts_of(text_of_html(text))
        yield from (File("image", one.get("alt"), one) for one in images_of_html(text))
    else:
        yield from parts_of(text)
    yield from files_of([file for file in files if not _is_quote(file)])
    if message["is_notice"] and message.get("eventDetail"):
        yield str(fields.record(message, "eventDetail").get("@odata.type") or "").rpartition(".")[2]


TEAMS = DISCORD._replace(
    name="teams",
    contents="messages of Microsoft Teams, as Graph returns them",
    fits=lambda value: all_are(value, _is_teams, "value"),
    parts=_parts_of_teams,
    conversations=_of_teams,
    is_message=_is_teams,
)


def _is_rocket_chat(value: Any) -> bool:
    return fields.has(value, msg=str) and "ts" in value and (fields.has(value, u=dict) or "username" in value)


def _of_rocket_chat(value: fields.Record) -> Iterator[ChatRecord]:
    """The messages of a room: of its API, newest first, or of the data that a person downloads."""
    messages = []
    for one in fields.records(value, "messages", "the room"):
        kind = one.get("t") or one.get("type")
        about = {
            "role": SYSTEM if kind else USER,
            "name": fields.text(one.get("u"), "name", "username") or fields.text(one, "username"),
            "parent": one.get("tmid"),
            "is_notice": bool(kind),
            "author": fields.text(one.get("u"), "username"),
            "edited": one.get("editedAt"),
        }
        messages.append(one | about)
    messages.sort(key=lambda one: str(one["ts"]))
    name = next((fields.text(one, "rid") for one in messages), None)
    yield ChatRecord({}, messages, f"rocket-{name}" if name else None, {"is_part": True})


def _parts_of_rocket_chat(message: fields.Record) -> Iterator[Part]:
    yield from parts_of(message["msg"])
    for one in message.get("attachments") or ():
        kind = next((kind for kind in ("image", "audio", "video") if one.get(f"{kind}_url")), "file")
        if not one.get("message_link"):  # A quoted message.
            yield File(kind, fields.text(one, "title", "fileName"), one, is_beside=True)


ROCKET_CHAT = DISCORD._replace(
    name="rocket_chat",
    contents="messages of Rocket.Chat",
    fits=lambda value: all_are(value, _is_rocket_chat),
    parts=_parts_of_rocket_chat,
    conversations=_of_rocket_chat,
    is_message=_is_rocket_chat,
)


def _parts_of_signal(message: fields.Record) -> Iterator[Part]:
    yield from parts_of(message.get("body"))
    if sticker := fields.record(message, "sticker"):
        yield File("image", fields.text(sticker, "emoji") or "sticker", sticker)
    yield from files_of(message.get("attachments"))


_SIGNAL = Program("signal", "data.json of signal-export", lambda value: False, _parts_of_signal, kept=_SHOWN)


def _chats_of_signal(source: Source) -> Chats:
    """The chat of a folder, in which each message continues the message before it."""
    listed: list[fields.Record] = []
    yield from source.each(lambda message, position: listed.append(message))
    messages: list[fields.Record] = []
    key: str | None = None
    for one in listed:
        # The file has no ids, and a later export has other reactions.
        key = chained_id("import-", key, [one["date"], one["sender"], one["body"]])
        role = SYSTEM if one.get("call") else USER
        messages.append({**one, "id": key, "role": role, "name": one["sender"]})
    said = _SIGNAL.linked(messages, "the chat")
    yield chat_of("the chat", f"signal-{source.folder}", said, title=source.folder)


SIGNAL = Format(
    _SIGNAL.name,
    _SIGNAL.contents,
    _chats_of_signal,
    lambda value: fields.has(value, sender=str, body=str, date=str, reactions=list, attachments=list),
)


def _parts_of_google_chat(message: fields.Record) -> Iterator[Part]:
    yield from parts_of(message.get("text"))
    for one in fields.values(message, "attached_files"):
        yield File("file", fields.text(one, "original_name", "export_name"), one, is_beside=True)


_GOOGLE_CHAT = Program(
    "google_chat",
    "messages.json of Google Chat, from Takeout",
    lambda value: False,
    _parts_of_google_chat,
    parents=("parent",),
    kept=_SHOWN,
)


def _chats_of_google_chat(source: Source) -> Chats:
    """The conversation of a folder; a message answers the first message of its topic."""

    def read(value: fields.Record, position: str) -> Chat:
        firsts: dict[str | None, str | None] = {}
        messages = []
        for one in fields.records(value, "messages", position):
            topic, key = fields.text(one, "topic_id"), fields.text(one, "message_id")
            creator = fields.record(one, "creator")
            first = firsts.setdefault(topic, key)
            about = {
                "id": key,
                "role": ASSISTANT if creator.get("user_type") == "Bot" else USER,
                "name": fields.text(creator, "name"),
                "parent": first if first != key else None,
                "author": fields.text(creator, "email"),
                "timestamp": one.get("created_date"),
            }
            messages.append(one | about)
        said = _GOOGLE_CHAT.linked(messages, position)
        title = fields.text(source.beside("group_info.json"), "name") or source.folder
        return chat_of(position, f"google-chat-{source.folder}", said, title=title, is_part=True)

    return source.each(read)


def _is_google_chat(value: Any) -> bool:
    messages = fields.values(value, "messages")
    names = {"creator", "message_state"}  # A deleted message has a state only.
    return bool(messages) and all(fields.has(one, message_id=str) and names & one.keys() for one in messages)


GOOGLE_CHAT = Format(_GOOGLE_CHAT.name, _GOOGLE_CHAT.contents, _chats_of_google_chat, _is_google_chat)


FORMATS = (
    *(DISCORD.format, TELEGRAM.format, SLACK, ELEMENT.format, WHATSAPP),
    *(TEAMS.format, ROCKET_CHAT.format, SIGNAL, GOOGLE_CHAT),
)
