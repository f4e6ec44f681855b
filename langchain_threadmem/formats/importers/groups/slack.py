"""Channels of Slack, which are trees of replies.

A message that answers nothing is a root. Every message has the name of its speaker; notices of the program
are asides. The fields are those of its exports, and are not confirmed by a source.
"""

from __future__ import annotations

import re
from typing import Any

from langchain_threadmem.formats.importers.blocks import file_of
from langchain_threadmem.formats.importers.chats import Bad, Chats, chat_of, kept, seconds, text_or_none
from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.said import ASSISTANT, USER, Other, Part, Said, entries_of
from langchain_threadmem.formats.importers.source import FAULTS, Source, problem_of

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


def is_item(value: object) -> bool:
    """Whether an item of a JSON file is a message of Slack."""
    return isinstance(value, dict) and value.get("type") == "message" and isinstance(value.get("ts"), str)


def chats(source: Source) -> Chats:
    """A day of a channel; the conversation is the channel, which is the folder of the file."""
    people = _names(source.beside("../users.json"))
    channels = _channels(source)
    said: list[Said] = []
    for item in source.objects():
        if isinstance(item, Bad):
            yield item
            continue
        position, message = item
        try:
            said.append(_of_slack(message, people, position))
        except FAULTS as error:
            yield Bad(problem_of(error, position))
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
        profile = user.get("profile") if isinstance(user.get("profile"), dict) else {}
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
    profile = message.get("user_profile")
    profile = profile if isinstance(profile, dict) else {}
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
