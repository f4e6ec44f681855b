"""Google: prompts of AI Studio, and `MyActivity.json` of the Gemini apps from Takeout.

A prompt is a file of Google Drive without a suffix. Neighbouring chunks of one role are one message. A branch
is a file of its own that repeats the beginning: its messages have the same ids, and it becomes a branch of
the conversation that it continues.

An activity has a question and its answer in each entry, and no conversations. Entries that follow each other
within half an hour are one; an entry without a question, such as a used feature, is an aside of it. The
question follows a word in the language of the person.

The fields follow Sinity/polylogue (gemini v2), and open-source readers that were written from real exports.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import file_of, parts_of
from langchain_threadmem.formats.importers.chats import Chat, Chats
from langchain_threadmem.formats.importers.content_parts import File, Other, Part, Reasoning
from langchain_threadmem.formats.importers.markup import text_of_html
from langchain_threadmem.formats.importers.said import (
    ASSISTANT,
    ROLES,
    SYSTEM,
    USER,
    Said,
    chat_of,
    system_prompt,
)
from langchain_threadmem.formats.importers.source import Format, Source, checked
from langchain_threadmem.messages.ids import chained_id
from langchain_threadmem.messages.records import as_object

_FILES = {
    **{"driveDocument": "file", "driveImage": "image", "driveAudio": "audio", "driveVideo": "video"},
    **{"inlineFile": "file", "inlineImage": "image", "inlineAudio": "audio", "youtubeVideo": "video"},
}
_NAMES = "names"
"""The value that the files of an import share: the conversation of each first message of a conversation."""


def _collect(source: Source, values: Sequence[Any]) -> None:
    """Keep the conversation of each beginning that is no branch of another file."""
    names: dict[str, str] = source.shared.setdefault(_NAMES, {})
    for value in values:
        if not _sources(value):
            for one in _said_of_ai_studio(value, "the document"):
                names.setdefault(one.key, source.name)


def _chats_of_ai_studio(source: Source) -> Chats:
    names: dict[str, str] = source.shared.get(_NAMES, {})

    def chat(record: fields.Record, position: str) -> Chat:
        said, name = _said_of_ai_studio(record, position), source.name
        model = fields.text(record.get("runSettings"), "model")
        for one in said:
            one.model = model if one.role == ASSISTANT else None
        sources = _sources(record)
        # The names of files change, so the file with the same beginning is the source.
        shared = [names[one.key] for one in reversed(said) if one.key in names] if sources else []
        branch_of = [one for one in dict.fromkeys([*shared, *sources]) if one != name]
        return chat_of(position, name, said, title=name, model=model, branch_of=branch_of)

    return source.each(chat)


def _chunks(record: fields.Record, position: str) -> list[fields.Record]:
    prompt = as_object(record["chunkedPrompt"], f"'chunkedPrompt' of {position}")
    return fields.records(prompt, "chunks", position) if prompt.get("chunks") else []


def _sources(record: fields.Record) -> list[str]:
    """The names of the files that this one continues."""
    parents = (chunk.get("branchParent") for chunk in (*_chunks(record, "the document"), record))
    return [*dict.fromkeys(fields.text(one, "displayName") or "" for one in parents if isinstance(one, dict))]


def _said_of_ai_studio(record: fields.Record, position: str) -> list[Said]:
    given = record.get("systemInstruction")
    said = system_prompt(parts_of(fields.at(given, "parts") or fields.at(given, "text") or given))
    previous: str | None = None
    for role, of_role in groupby(
        _chunks(record, position), lambda chunk: str(chunk.get("role") or USER).lower()
    ):
        chunks = [*of_role]
        parts = [part for chunk in chunks for part in _parts(chunk)]
        key = chained_id("import-", previous, [role, [str(part) for part in parts]])
        times = (fields.time(chunk, position, "createTime") for chunk in chunks)
        time = next((time for time in times if time is not None), None)
        error = next((chunk["errorMessage"] for chunk in chunks if chunk.get("errorMessage")), None)
        said.append(Said(key, previous, ROLES.get(role, role), parts, time, extra=fields.kept(error=error)))
        previous = key
    return said


def _parts(chunk: fields.Record) -> Iterator[Part]:
    """The parts of a chunk; `parts` repeats its text in pieces."""
    for field, medium in _FILES.items():
        if isinstance(value := chunk.get(field), dict):
            yield File(medium, file_of(value).name, value)
    for field in ("executableCode", "codeExecutionResult"):
        if chunk.get(field) is not None:
            yield from parts_of({field: chunk[field]})
    text = chunk.get("text")
    if not isinstance(text, str):
        pieces = [one for one in fields.values(chunk, "parts") if isinstance(one, dict)]
        thought = "".join(str(one.get("text") or "") for one in pieces if one.get("thought"))
        text = "".join(str(one.get("text") or "") for one in pieces if not one.get("thought"))
        if thought:
            yield Reasoning(thought)
    if text.strip():
        yield Reasoning(text) if chunk.get("isThought") else text
    if isinstance(chunk.get("grounding"), dict):
        yield Other({"type": "grounding", **chunk["grounding"]})


AI_STUDIO = Format(
    "ai_studio",
    "a prompt of AI Studio",
    _chats_of_ai_studio,
    lambda value: fields.has(value, chunkedPrompt=dict),
    collect=_collect,
)


_PAUSE = 1_800.0
"""The seconds after which an entry begins a new conversation."""
_ASKED = (
    *("Prompted with:", "Asked Gemini:", "Asked Bard:", "Prompted", "Asked", "Said", "Branched", "Answered"),
    *("Eingegebener Prompt:", "Eingegeben:", "Gefragt:", "Prompt saisi :", "Requête :", "Instrucción:"),
    *("Indicación:", "Comando:", "Prompt inserito:", "入力:"),
)
"""The words before a question in some languages."""
_NOT_ASKED = (
    *("Created", "Used", "Added", "Gave", "Selected", "Shared", "Deleted", "Viewed", "Visited", "Searched"),
    *("Edited", "Pinned", "Renamed", "Exported", "Updated"),
)
"""The first words of entries that are no question: a canvas, feedback, a used feature."""
_ATTACHED = re.compile(r"\s*Attached \d+ files?\.?\s*$")
"""The text of the program after a question with files."""


def _is_entry(value: Any) -> bool:
    return (
        fields.has(value, header=str, title=str)
        and "time" in value
        and ("products" in value or "activityControls" in value)
    )


def _is_of_gemini(value: fields.Record) -> bool:
    named = [value["header"], *fields.values(value, "products"), *fields.values(value, "activityControls")]
    return any(name in str(one).lower() for one in named for name in ("gemini", "bard"))


def _chats_of_takeout(source: Source) -> Chats:
    """The conversations of an activity: entries without a longer pause, oldest first."""
    entries: list[tuple[float, str, fields.Record]] = []

    def read(value: fields.Record, position: str) -> None:
        if not _is_entry(value) or _is_of_gemini(value):
            entries.append((fields.seconds(value.get("time"), position) or 0.0, position, value))

    yield from source.each(read)
    group: list[tuple[float, str, fields.Record]] = []
    for entry in sorted(entries, key=lambda entry: entry[0]):
        if group and entry[0] - group[-1][0] > _PAUSE:
            yield from checked(group[0][1], _chat_of_takeout, group)
            group = []
        group.append(entry)
    if group:
        yield from checked(group[0][1], _chat_of_takeout, group)


def _chat_of_takeout(entries: Sequence[tuple[float, str, fields.Record]]) -> Chat:
    said: list[Said] = []
    previous: str | None = None
    for time, _, entry in entries:
        items = entry.get("safeHtmlItem")
        texts = (fields.at(one, "html") or one for one in (items if isinstance(items, list) else [items]))
        answer = text_of_html("\n".join(text for text in texts if isinstance(text, str)))
        title = str(entry["title"])
        key = chained_id("import-", None, [title, entry.get("time")])
        asked = _question(title, has_answer=bool(answer))
        if asked is None:
            said.append(Said(key, previous, SYSTEM, [title], time))
            continue
        attached = [fields.text_or_none(one) for one in entry.get("attachedFiles") or ()]
        files = [File("file", name, name, is_beside=True) for name in attached]
        said.append(Said(f"{key}-question", previous, USER, [asked, *files], time))
        previous = f"{key}-question"
        if answer:
            image = fields.text(entry, "imageFile")
            generated = [File("image", image, {"file": image})] if image else []
            subtitles = entry.get("subtitles") or ()
            links = [Other(one) for one in subtitles if isinstance(one, dict) and one.get("url")]
            said.append(Said(key, previous, ASSISTANT, [answer, *generated, *links], time))
            previous = key
    time, position, first = entries[0]
    name = chained_id("gemini-", None, [first.get("title"), first.get("time")])[: len("gemini-") + 16]
    metadata = fields.kept(url=fields.text(first, "titleUrl"))
    return chat_of(position, name, said, created=time, metadata=metadata)


def _question(title: str, *, has_answer: bool) -> str | None:
    """The question in a title; `None` for an entry that is no question.

    In other languages the words before a question are unknown: a title with an answer is a question.
    """
    plain = html.unescape(title).replace("\xa0", " ").strip()
    if plain.split(" ", 1)[0] in _NOT_ASKED:
        return None
    prefix = next((one for one in _ASKED if plain.startswith(one)), None)
    if prefix is None:
        return plain if has_answer else None
    return _ATTACHED.sub("", plain.removeprefix(prefix)).strip()


TAKEOUT = Format(
    "takeout",
    "MyActivity.json of Google Takeout",
    _chats_of_takeout,
    is_log=lambda values: bool(values) and all(map(_is_entry, values)) and any(map(_is_of_gemini, values)),
)
