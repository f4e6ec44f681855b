"""Channels of Discord, which are trees of replies.

A message that answers nothing is a root. Every message has the name of its speaker; notices of the program
are asides. The fields follow Tyrrrz/DiscordChatExporter.
"""

from __future__ import annotations

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers.blocks import files_of, parts_of
from langchain_threadmem.formats.importers.chats import Chat, Chats, chat_of, kept, seconds, text_or_none
from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.said import ASSISTANT, USER, File, Said, entries_of
from langchain_threadmem.formats.importers.source import Source, chats_of_items
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


def is_item(value: object) -> bool:
    """Whether a JSON document is a channel of Discord."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("channel"), dict)
        and isinstance(value.get("messages"), list)
        and "guild" in value
    )


def chats(source: Source) -> Chats:
    """The conversation of a channel."""
    return chats_of_items(source, _channel)


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
    author = message.get("author")
    author = author if isinstance(author, dict) else {}
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
