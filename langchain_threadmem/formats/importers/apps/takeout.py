"""Google Takeout: `MyActivity.json` of the Gemini apps, with a question and its answer in each entry.

The entries have no conversation. Entries that follow each other within half an hour are one; an entry
without a question, such as a used feature, is an aside of it. The question follows a word in the language
of the person.

The fields, and the words before questions, follow open-source readers that were written from real exports.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from html.parser import HTMLParser
from typing import Any

from langchain_threadmem.formats.importers.chats import (
    Chat,
    Chats,
    chat_of,
    kept,
    seconds,
    text_or_none,
)
from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.said import ASSISTANT, SYSTEM, USER, File, Other, Said, entries_of
from langchain_threadmem.formats.importers.source import Format, Source
from langchain_threadmem.messages.ids import chained_id

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
"""What the program writes after a question with files."""
_BLOCKS = {
    "p",
    "div",
    "li",
    "ul",
    "ol",
    "table",
    "tr",
    "pre",
    "blockquote",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
}


def is_log(values: Sequence[Any]) -> bool:
    """Whether the items of a JSON file are an activity that has entries of the Gemini apps."""
    return bool(values) and all(map(_is_entry, values)) and any(map(_is_of_gemini, values))


def _is_entry(value: object) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("header"), str)
        and isinstance(value.get("title"), str)
        and "time" in value
        and ("products" in value or "activityControls" in value)
    )


def _is_of_gemini(value: Record) -> bool:
    return any("gemini" in str(one).lower() or "bard" in str(one).lower() for one in _named(value))


def _named(value: Record) -> Iterator[Any]:
    yield value["header"]
    for field in ("products", "activityControls"):
        yield from value[field] if isinstance(value.get(field), list) else ()


def chats(source: Source) -> Chats:
    """The conversations of an activity."""
    entries: list[tuple[float, str, Record]] = []

    def read(value: Record, position: str) -> None:
        if not _is_entry(value) or _is_of_gemini(value):
            entries.append((seconds(value.get("time"), position) or 0.0, position, value))

    yield from source.each(read)
    entries.sort(key=lambda entry: entry[0])
    for group in _sessions(entries):
        yield _chat(group)


def _sessions(entries: Iterable[tuple[float, str, Record]]) -> Iterator[list[tuple[float, str, Record]]]:
    """Entries without a longer pause, oldest first; a link to a conversation joins them too."""
    group: list[tuple[float, str, Record]] = []
    for entry in entries:
        if group and entry[0] - group[-1][0] > _PAUSE:
            yield group
            group = []
        group.append(entry)
    if group:
        yield group


def _chat(entries: Sequence[tuple[float, str, Record]]) -> Chat:
    said: list[Said] = []
    previous: str | None = None
    for time, _, entry in entries:
        answer, title = text_of_html(_answer(entry)), str(entry["title"])
        key = chained_id("import-", None, [title, entry.get("time")])
        asked = _question(title, has_answer=bool(answer))
        if asked is None:
            said.append(Said(key, previous, SYSTEM, [title], time))
            continue
        files = [
            File("file", text_or_none(one), one, is_beside=True) for one in entry.get("attachedFiles") or ()
        ]
        said.append(Said(f"{key}-question", previous, USER, [asked, *files], time))
        previous = f"{key}-question"
        if answer:
            image = text_or_none(entry.get("imageFile"))
            generated = [File("image", image, {"file": image})] if image else []
            subtitles = entry.get("subtitles") or ()
            links = [Other(one) for one in subtitles if isinstance(one, dict) and one.get("url")]
            said.append(Said(key, previous, ASSISTANT, [answer, *generated, *links], time))
            previous = key
    first = entries[0][2]
    return chat_of(
        entries[0][1],
        chained_id("gemini-", None, [first.get("title"), first.get("time")])[: len("gemini-") + 16],
        entries_of(said),
        created=entries[0][0],
        metadata=kept(url=text_or_none(first.get("titleUrl"))),
    )


def _answer(entry: Record) -> str:
    items = entry.get("safeHtmlItem")
    if isinstance(items, dict):
        items = [items]
    texts = (
        [one.get("html") if isinstance(one, dict) else one for one in items]
        if isinstance(items, list)
        else []
    )
    return "\n".join(text for text in texts if isinstance(text, str))


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


class _MarkdownText(HTMLParser):
    """Reads HTML as text with the marks of Markdown."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text: list[str] = []
        self._link: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS or tag == "br":
            self.text.append("\n" if tag in ("br", "li", "tr") else "\n\n")
        if tag == "li":
            self.text.append("- ")
        if tag == "a":
            self._link = dict(attrs).get("href")

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._link:
            self.text.append(f" ({self._link})")
            self._link = None
        if tag in _BLOCKS:
            self.text.append("\n")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def text_of_html(source: str) -> str:
    r"""The text of HTML.

    Example:
        >>> text_of_html("<p>The <b>Danube</b>.</p><ul><li>long</li></ul>")
        'The Danube.\n\n- long'
    """
    parser = _MarkdownText()
    parser.feed(source)
    parser.close()
    return re.sub(r"\n{3,}", "\n\n", "".join(parser.text)).strip()


FORMAT = Format("takeout", "MyActivity.json of Google Takeout", chats, is_log=is_log)
