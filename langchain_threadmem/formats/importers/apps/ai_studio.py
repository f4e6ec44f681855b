"""Google AI Studio: a file of Google Drive without a suffix, with the chunks of a prompt.

Neighbouring chunks of one role are one message. A branch is a file of its own that repeats the beginning:
its messages have the same ids, and it becomes a branch of the conversation that it continues.

The fields follow Sinity/polylogue (gemini v2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from langchain_threadmem.formats.importers.blocks import file_of, parts_of
from langchain_threadmem.formats.importers.chats import Chat, Chats, chat_of, kept, seconds, text_or_none
from langchain_threadmem.formats.importers.said import (
    ASSISTANT,
    USER,
    File,
    Other,
    Part,
    Reasoning,
    Said,
    entries_of,
    system_prompt,
)
from langchain_threadmem.formats.importers.source import Format, Source
from langchain_threadmem.messages.ids import chained_id
from langchain_threadmem.messages.records import as_list, as_object

_ROLES = {"user": USER, "model": ASSISTANT}
_FILES = {
    "driveDocument": "file",
    "driveImage": "image",
    "driveAudio": "audio",
    "driveVideo": "video",
    "inlineFile": "file",
    "inlineImage": "image",
    "inlineAudio": "audio",
    "youtubeVideo": "video",
}
_NAMES = "names"
"""The value that the files of an import share: the conversation of each first message of a conversation."""
Chunk = dict[str, Any]


def is_item(value: object) -> bool:
    """Whether a JSON document is a prompt of AI Studio."""
    return isinstance(value, dict) and isinstance(value.get("chunkedPrompt"), dict)


def collect(source: Source, values: Sequence[Any]) -> None:
    """Keep the conversation of each beginning that is no branch of another file."""
    names: dict[str, str] = source.shared.setdefault(_NAMES, {})
    for value in values:
        if not _sources(value):
            for one in _said(value, "the document"):
                names.setdefault(one.key, source.name)


def chats(source: Source) -> Chats:
    """The conversation of a file."""
    names: dict[str, str] = source.shared.get(_NAMES, {})

    def chat(record: dict[str, Any], position: str) -> Chat:
        return _chat(record, position, source.name, names)

    return source.each(chat)


def _chat(record: dict[str, Any], position: str, name: str, names: dict[str, str]) -> Chat:
    said = _said(record, position)
    settings = record.get("runSettings")
    model = text_or_none(settings.get("model")) if isinstance(settings, dict) else None
    for one in said:
        one.model = model if one.role == ASSISTANT else None
    branch_of: dict[str, None] = {}
    if sources := _sources(record):
        # The names of files change, so the file with the same beginning is the source.
        shared = (names[one.key] for one in reversed(said) if one.key in names and names[one.key] != name)
        branch_of |= dict.fromkeys(shared) | dict.fromkeys(source for source in sources if source != name)
    return chat_of(
        position,
        name,
        entries_of(said),
        title=name,
        metadata=kept(model=model),
        branch_of=[*branch_of],
    )


def _chunks(record: dict[str, Any], position: str) -> list[Chunk]:
    prompt = as_object(record["chunkedPrompt"], f"'chunkedPrompt' of {position}")
    chunks = as_list(prompt.get("chunks") or [], f"'chunks' of {position}")
    return [as_object(chunk, f"a chunk of {position}") for chunk in chunks]


def _sources(record: dict[str, Any]) -> list[str]:
    """The names of the files that this one continues."""
    parents = [chunk.get("branchParent") for chunk in (*_chunks(record, "the document"), record)]
    names = (text_or_none(one.get("displayName")) for one in parents if isinstance(one, dict))
    return [*dict.fromkeys(name or "" for name in names)]


def _said(record: dict[str, Any], position: str) -> list[Said]:
    instruction = record.get("systemInstruction")
    if isinstance(instruction, dict):
        instruction = instruction.get("parts") or instruction.get("text")
    said = system_prompt(parts_of(instruction))
    previous: str | None = None
    for role, of_role in groupby(
        _chunks(record, position), lambda chunk: str(chunk.get("role") or "user").lower()
    ):
        chunks = [*of_role]
        parts = [part for chunk in chunks for part in _parts(chunk)]
        key = chained_id("import-", previous, [role, [str(part) for part in parts]])
        times = (seconds(chunk.get("createTime"), position) for chunk in chunks)
        errors = [chunk["errorMessage"] for chunk in chunks if chunk.get("errorMessage")]
        said.append(
            Said(
                key,
                previous,
                _ROLES.get(role, role),
                parts,
                next((time for time in times if time is not None), None),
                extra={"error": errors[0]} if errors else {},
                separator="\n\n",
            )
        )
        previous = key
    return said


def _parts(chunk: Chunk) -> Iterator[Part]:
    """The parts of a chunk; `parts` repeats its text in pieces."""
    for field, medium in _FILES.items():
        value = chunk.get(field)
        if isinstance(value, dict):
            found = file_of(value)
            yield File(medium, found.name, value)
    for field in ("executableCode", "codeExecutionResult"):
        if chunk.get(field) is not None:
            yield from parts_of({field: chunk[field]})
    text = chunk.get("text")
    if not isinstance(text, str) and isinstance(chunk.get("parts"), list):
        pieces = [one for one in chunk["parts"] if isinstance(one, dict)]
        thought = "".join(str(one.get("text") or "") for one in pieces if one.get("thought"))
        text = "".join(str(one.get("text") or "") for one in pieces if not one.get("thought"))
        if thought:
            yield Reasoning(thought)
    if isinstance(text, str) and text.strip():
        yield Reasoning(text) if chunk.get("isThought") else text
    if isinstance(chunk.get("grounding"), dict):
        yield Other({"type": "grounding", **chunk["grounding"]})


FORMAT = Format("ai_studio", "a prompt of AI Studio", chats, is_item, collect=collect)
