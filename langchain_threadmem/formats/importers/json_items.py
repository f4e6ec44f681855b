"""The items of a JSON file, read one after the other: elements of an array, or lines.

A file of any size is read in bounded memory: one item, and about a megabyte of text, are in memory.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.records import as_object

CHUNK = 1 << 20
MAX_LENGTH = 1 << 28
"""The length of the longest item in characters or bytes."""
_FIRST_LINE = 1 << 20
"""The number of bytes of a line that are read to decide whether the line is a JSON document."""
WRAPPERS = ("conversations", "chats")
"""The names of a list of conversations in a document, whose items are read one after the other."""
_TOKEN = 16
"""The maximum length of JSON tokens except strings: an earlier error is not due to a cut text."""
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class Item(NamedTuple):
    """An item of a file.

    Attributes:
        where: Its position, for errors: "line 3", "item 3" or "the document".
        value: Its value; for a line that is not JSON, an `InputError`.
    """

    where: str
    value: Any


def items_of(stream: BinaryIO) -> Iterator[Item]:
    r"""The elements of a JSON array, the lines of JSON Lines, or a single document.

    Args:
        stream: The file, open at its beginning.

    Raises:
        InputError: The file is empty or not UTF-8 text, an array is damaged, or an item is too long.

    Example:
        >>> import io
        >>> [item.where for item in items_of(io.BytesIO(b'[{"a": 1}, {"a": 2}]'))]
        ['item 1', 'item 2']
        >>> [item.value for item in items_of(io.BytesIO(b'{"a": 1}\n{"a": 2}'))]
        [{'a': 1}, {'a': 2}]
    """
    return _lines(stream) if _is_lines(stream) else _elements(_TextWindow(stream))


def object_of(item: Item) -> dict[str, Any]:
    """The value of an item as a JSON object.

    Raises:
        InputError: The item is not JSON, or not an object.
    """
    if isinstance(item.value, InputError):
        raise item.value
    return as_object(item.value, item.where)


def _is_lines(stream: BinaryIO) -> bool:
    """Whether the first line is a JSON document, or is damaged, and another line follows.

    A document that is written on several lines has a first line of a few characters, which is not complete.
    """
    first = _next_line(stream)
    # A long line that begins with a bracket is an export on one line.
    second = b"" if first[:1] == b"[" and len(first) >= _FIRST_LINE else _next_line(stream)
    stream.seek(0)
    if not second:
        return False
    if first[:1] == b"{":
        return second[:1] == b"{" or _is_json(first)
    return first[:1] != b"[" or (second[:1] == b"[" and first.endswith(b"]"))


def _next_line(stream: BinaryIO) -> bytes:
    """The beginning of the next line that is not empty, without spaces before it."""
    while line := stream.readline(_FIRST_LINE):
        rest = line
        while len(rest) == _FIRST_LINE and not rest.endswith(b"\n") and not line.startswith(b"["):
            rest = stream.readline(_FIRST_LINE)
        if text := line.removeprefix(codecs.BOM_UTF8).lstrip():
            return text if len(line) == _FIRST_LINE else text.rstrip()
    return b""


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _lines(stream: BinaryIO) -> Iterator[Item]:
    number = 0
    while line := stream.readline(MAX_LENGTH):
        number += 1
        position = f"line {number}"
        if len(line) == MAX_LENGTH:
            raise InputError(f"{position} is longer than {MAX_LENGTH:,} bytes; split the file")
        line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        if line.strip():
            yield Item(position, _parsed(line, position))


def _parsed(line: bytes, position: str) -> Any:
    try:
        return json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        return InputError(f"{position} is not JSON: {error}")


def _elements(text: _TextWindow) -> Iterator[Item]:
    first = text.next_character()
    if not first:
        raise InputError("the file is empty")
    if first == "[":
        yield from _array(text)
    elif first == "{":
        yield from _object(text)
    else:
        yield Item("the document", text.value("the document"))
    if text.next_character():
        raise InputError("the document is followed by text; write one JSON document, or one per line")


def _array(text: _TextWindow) -> Iterator[Item]:
    """The elements of an array; the text is read up to its end."""
    text.at += 1
    number = 0
    if text.next_character() == "]":
        text.at += 1
        return
    while True:
        number += 1
        position = f"item {number}"
        yield Item(position, text.value(position))
        following = text.next_character()
        text.at += 1
        if following == "]":
            return
        if following != ",":
            character = repr(following) if following else "the end of the file"
            raise InputError(
                f"after {position} there is {character} instead of ',' or ']'; the file is damaged"
            )


def _object(text: _TextWindow) -> Iterator[Item]:
    """A document, or the items of its list of conversations.

    The values beside the list are omitted: the list may be longer than what fits into memory.
    """
    document: dict[str, Any] = {}
    is_wrapper = False
    text.at += 1
    following = text.next_character()
    while following != "}":
        name = text.value("the document")
        if not isinstance(name, str) or text.next_character() != ":":
            raise InputError("the document is not JSON: a name and ':' are expected; the file is damaged")
        text.at += 1
        if name in WRAPPERS and text.next_character() == "[":
            items = _array(text)
            values = []
            for item in items:
                # The conversation of a data set has a list of this name too.
                if is_wrapper or not (isinstance(item.value, dict) and "from" in item.value):
                    is_wrapper = True
                    yield item
                else:
                    values.append(item.value)
            document[name] = values
        else:
            document[name] = text.value("the document")
        following = text.next_character()
        if following not in (",", "}"):
            character = repr(following) if following else "the end of the file"
            raise InputError(
                f"after {name!r} there is {character} instead of ',' or '}}'; the file is damaged"
            )
        if following == ",":
            text.at += 1
            text.next_character()
    text.at += 1
    if not is_wrapper:
        yield Item("the document", document)


class _TextWindow:
    """The text of a stream, of which a part beginning at `at` is in memory."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._ended = False
        self.at = 0

    def next_character(self) -> str:
        """The next character that is not a space; empty at the end."""
        while True:
            match = _SPACE.match(self._text, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self._text) or self._ended:
                return self._text[self.at : self.at + 1]
            self._more(CHUNK)

    def value(self, position: str) -> Any:
        """The next JSON value."""
        self.next_character()
        size = CHUNK
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self.at)
            except json.JSONDecodeError as error:
                cut = error.pos >= len(self._text) - _TOKEN or error.msg.startswith("Unterminated string")
                if self._ended and cut:
                    raise InputError(f"the file ends in {position}; get the complete file") from error
                if not cut:
                    raise InputError(
                        f"{position} is not JSON: {error.msg}; the rest of the file cannot be read"
                    ) from error
            except RecursionError as error:
                raise InputError(f"{position} is nested too deeply") from error
            except ValueError as error:
                raise InputError(f"{position} has a number that is too long: {error}") from error
            else:
                if end < len(self._text) or self._ended:  # A number may continue in the next chunk.
                    self.at = end
                    return value
            if len(self._text) - self.at > MAX_LENGTH:
                raise InputError(f"{position} is longer than {MAX_LENGTH:,} characters; split the file")
            self._more(size)
            size *= 2  # Otherwise the time for an item would grow with the square of its length.

    def _more(self, size: int) -> None:
        data = self._stream.read(size)
        self._ended = not data
        try:
            text = self._decoder.decode(data, self._ended)
        except UnicodeDecodeError as error:
            raise InputError(f"the file is not UTF-8 text ({error.reason})") from error
        self._text = self._text[self.at :] + text
        self.at = 0
