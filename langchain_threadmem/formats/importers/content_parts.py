"""Parts of messages: text, reasoning, calls, results and files, with values that all providers accept."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""The call ids that all providers accept."""
_NOT_NAME = re.compile(r"[^A-Za-z0-9_-]")
"""The characters that providers refuse in the name of a tool."""
_LONGEST_NAME = 64
THOUGHTS = ("reasoning_content", "reasoning", "thinking", "thinking_content")
"""The fields of an answer with its thoughts, such as those of DeepSeek, OpenRouter and Ollama."""


class Reasoning(NamedTuple):
    """A thought of a model, and a summary of it, if the program has both."""

    text: str
    summary: str = ""


class ToolUse(NamedTuple):
    """A tool call; without an id it is answered by the next result with its name."""

    name: str
    arguments: Any = None
    id: str | None = None


class ToolResult(NamedTuple):
    """The result of a tool call."""

    output: Any
    id: str | None = None
    name: str | None = None
    is_error: bool = False


class File(NamedTuple):
    """A reference to a file.

    Attributes:
        kind: "image", "audio", "video" or "file".
        name: Its name.
        value: The reference as the program has it.
        is_beside: Whether the program lists it beside the text. Otherwise the text names it.
    """

    kind: str
    name: str | None
    value: Any = None
    is_beside: bool = False

    def __str__(self) -> str:
        return f"[{self.kind}: {self.name}]" if self.name else f"[{self.kind}]"


class Other(NamedTuple):
    """A block of an unknown type, which is kept as it is."""

    value: Any


Part = str | Reasoning | ToolUse | ToolResult | File | Other


def at_once(parts: Iterable[Part]) -> list[Part]:
    """Parts whose calls were made at once: all calls come before the results.

    Example:
        >>> parts = at_once([ToolUse("a"), ToolResult("1"), ToolUse("b"), ToolResult("2")])
        >>> [type(part).__name__ for part in parts]
        ['ToolUse', 'ToolUse', 'ToolResult', 'ToolResult']
    """
    found = [*parts]
    results = [part for part in found if isinstance(part, ToolResult)]
    return [part for part in found if not isinstance(part, ToolResult)] + results


def called(
    name: str | None, arguments: Any, id: str | None, output: Any, is_error: bool = False
) -> Iterator[ToolUse | ToolResult]:
    """A call of a tool, and its result unless the output is `None`.

    Example:
        >>> [*called("add", {"a": 1}, "c1", None)], len([*called("add", {"a": 1}, "c1", "2")])
        ([ToolUse(name='add', arguments={'a': 1}, id='c1')], 2)
    """
    name = name or "tool"
    yield ToolUse(name, arguments, id)
    if output is not None:
        yield ToolResult(output, id, name, is_error)


def named_id(id: str | None) -> str | None:
    """An id of a call that all providers accept; a hash of an id that some would refuse.

    Example:
        >>> named_id("call_1"), named_id("a.b")
        ('call_1', 'call_2e7336dc8eba87ef472df568')
    """
    if id is None or _ID.fullmatch(id):
        return id
    return f"call_{hashlib.sha256(id.encode(errors='replace')).hexdigest()[:24]}"


def arguments_of(value: Any) -> dict[str, Any]:
    """The arguments of a call: an object, JSON text of an object, or another value as `input`.

    Example:
        >>> arguments_of('{"a": 1}'), arguments_of("print(1)"), arguments_of(None)
        ({'a': 1}, {'input': 'print(1)'}, {})
    """
    if isinstance(value, str):
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):  # Most tools take text, such as code or a query.
            parsed = None
        value = parsed if isinstance(parsed, dict) else {"input": value} if value else {}
    if value is None:
        return {}
    return value if isinstance(value, dict) else {"input": value}


def output_text(output: Any) -> str:
    r"""The text of a result: of text, of blocks with text, or of another value as JSON.

    Example:
        >>> output_text([{"type": "text", "text": "Rain"}, {"title": "Tram", "url": "x", "text": "It opens"}])
        'Rain\n\nTram\nx\nIt opens'
    """
    if output is None:
        return ""
    if isinstance(output, str):
        return output
    if isinstance(output, list):
        return "\n\n".join(filter(None, map(output_text, output)))
    if isinstance(output, dict) and isinstance(output.get("text"), str):
        lines = (output.get(name) for name in ("title", "url", "text"))
        return "\n".join(line for line in lines if isinstance(line, str) and line)
    if isinstance(output, dict) and ("stdout" in output or "stderr" in output):
        lines = (output.get(name) for name in ("stdout", "stderr", "result"))
        return "\n".join(line for line in lines if isinstance(line, str) and line)
    if isinstance(output, dict) and output.get("type") in ("image", "file", "input_image", "input_file"):
        return str(File(str(output["type"]).removeprefix("input_"), _name_in(output)))
    return json.dumps(output, ensure_ascii=False, default=str)


def _name_in(value: Mapping[str, Any]) -> str | None:
    names = (value.get(name) for name in ("filename", "file_name", "name", "file_id", "id"))
    return next((name for name in names if isinstance(name, str) and name), None)


def tool_name(name: str) -> str:
    """The name of a tool with the characters and the length that all providers accept.

    Example:
        >>> tool_name("canmore.create_textdoc")
        'canmore_create_textdoc'
    """
    return _NOT_NAME.sub("_", name)[:_LONGEST_NAME] or "tool"


_LONGEST_VALUE = 4_096
"""The longest text in a reference; a longer text is the contents of the file."""


def reference(file: File) -> dict[str, Any]:
    value = (
        file.value if isinstance(file.value, dict) else {} if file.value is None else {"value": file.value}
    )
    return {"kind": file.kind, **({"name": file.name} if file.name else {}), **_without_contents(value)}


def _without_contents(value: Any) -> Any:
    """A value without the contents of a file: long texts and data in URLs."""
    if isinstance(value, dict):
        return {
            name: _without_contents(one)
            for name, one in value.items()
            if not (isinstance(one, str) and _is_data(one))
        }
    return value


def _is_data(text: str) -> bool:
    return len(text) > _LONGEST_VALUE or text.startswith("data:")
