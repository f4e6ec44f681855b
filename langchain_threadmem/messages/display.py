"""Messages and values for people: labels, contents, escaped HTML, and displays for notebooks."""

from __future__ import annotations

import html
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol

from langchain_core.messages import BaseMessage

from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.roles import role_of
from langchain_threadmem.messages.text import cut, one_line, visible

MAX_LENGTH = 600
"""The number of characters of a text that a notebook shows."""
_ILLEGAL = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HEAD = 'style="text-align:left;white-space:nowrap"'
_CELL = (
    'style="text-align:left;vertical-align:top;white-space:pre-wrap;overflow-wrap:break-word;max-width:40em"'
)


class Printer(Protocol):
    """The pretty printer of IPython."""

    def text(self, text: str) -> None:
        """Write a text."""


class Displayed(ABC):
    """A value that notebooks show as a table with one row, or as a line of text."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        # IPython prefers the `__repr__` of a dataclass to an inherited `_repr_pretty_`.
        cls._repr_pretty_ = Displayed._repr_pretty_  # type: ignore[method-assign]

    @abstractmethod
    def _cells(self) -> Mapping[str, str]:
        """The texts of the row, by column."""

    @abstractmethod
    def _line(self) -> str:
        """The value as a line."""

    def _repr_html_(self) -> str:
        return table([self])

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:
        printer.text(one_line(self._line(), MAX_LENGTH))


def table(rows: Sequence[Displayed], note: str = "") -> str:
    """An HTML table in the colours of the notebook, with a column for each name that has a text.

    Texts are escaped and cut, and MathJax ignores them.

    Args:
        rows: The values.
        note: A sentence below the table.
    """
    cells = [row._cells() for row in rows]
    names = dict.fromkeys(name for row in cells for name, text in row.items() if text)
    lines = ["".join(f"<th {_HEAD}>{escape(name)}</th>" for name in names)]
    lines += [
        "".join(f"<td {_CELL}>{escape(cut(row.get(name, ''), MAX_LENGTH))}</td>" for name in names)
        for row in cells
    ]
    head, *body = [f"<tr>{line}</tr>" for line in lines]
    footer = f"<small>{escape(note)}</small>" if note else ""
    return (
        '<div class="tex2jax_ignore mathjax_ignore">'
        f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>{footer}</div>"
    )


def escape(text: str) -> str:
    """A text for HTML and XML, with control characters as escapes.

    Example:
        >>> escape("<b>")
        '&lt;b&gt;'
    """
    return html.escape(_ILLEGAL.sub("\ufffd", visible(text)))


def content_of(message: BaseMessage) -> str:
    """The text of a message with control characters escaped; other content and tool calls in brackets.

    Example:
        >>> from langchain_core.messages import AIMessage
        >>> content_of(AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Rome"}, "id": "1"}]))
        "[calls weather(city='Rome')]"
    """
    texts = [text_of(message)]
    if isinstance(message.content, list):
        kinds = [block.get("type", "block") for block in message.content if isinstance(block, dict)]
        texts += [f"[{kind}]" for kind in kinds if kind not in ("text", "tool_use", "tool_call")]
    for call in getattr(message, "tool_calls", ()):
        arguments = ", ".join(f"{name}={value!r}" for name, value in call["args"].items())
        texts.append(f"[calls {call['name']}({cut(arguments, 80)})]")
    return visible(" ".join(text for text in texts if text))


def label_of(message: BaseMessage) -> str:
    """The role of a message as a label.

    Example:
        >>> from langchain_core.messages import AIMessage
        >>> label_of(AIMessage("Hi"))
        'Assistant'
    """
    return one_line(role_of(message)).capitalize()
