"""Messages and values for people: labels, contents, escaped HTML, and displays for notebooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from langchain_core.messages import BaseMessage

from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.rendering import MarkupNode, parts_of, plain, to_html
from langchain_threadmem.messages.roles import role_of
from langchain_threadmem.messages.text import cut, escape, one_line, visible

MAX_LENGTH = 600
"""The number of characters of a text that a notebook shows."""
_HEAD = 'style="text-align:left;white-space:nowrap"'
_CELL = (
    'style="text-align:left;vertical-align:top;white-space:pre-wrap;overflow-wrap:break-word;max-width:40em"'
)
_RENDERED = _CELL.replace("white-space:pre-wrap", "white-space:normal")

Cell = str | Sequence[MarkupNode]
"""The content of a cell of a table: a text, or rendered parts."""


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
    def _cells(self) -> Mapping[str, Cell]:
        """The contents of the row, by column."""

    @abstractmethod
    def _line(self) -> str:
        """The value as a line."""

    def _repr_html_(self) -> str:
        return table([self])

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:
        printer.text(one_line(self._line(), MAX_LENGTH))


def table(rows: Sequence[Displayed], note: str = "") -> str:
    """An HTML table in the colours of the notebook, with a column for each name that has a content.

    Texts are escaped and cut, parts are rendered, and MathJax ignores both.
    """
    cells = [row._cells() for row in rows]
    names = dict.fromkeys(name for row in cells for name, text in row.items() if text)
    lines = ["".join(f"<th {_HEAD}>{escape(name)}</th>" for name in names)]
    lines += ["".join(_cell(row.get(name, "")) for name in names) for row in cells]
    head, *body = [f"<tr>{line}</tr>" for line in lines]
    footer = f"<small>{escape(note)}</small>" if note else ""
    return (
        '<div class="tex2jax_ignore mathjax_ignore">'
        f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>{footer}</div>"
    )


def _cell(content: Cell) -> str:
    if isinstance(content, str):
        return f"<td {_CELL}>{escape(cut(content, MAX_LENGTH))}</td>"
    return f"<td {_RENDERED}>{to_html(content, styled=True)}</td>"


def content_of(message: BaseMessage) -> str:
    """The text of a message with control characters escaped; other content and tool calls in brackets.

    Example:
        >>> from langchain_core.messages import AIMessage
        >>> content_of(AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Rome"}, "id": "1"}]))
        "[calls weather(city='Rome')]"
    """
    return visible(" ".join(filter(None, [text_of(message), *_notes(message)])))


def body_of(message: BaseMessage, longest: int | None = None) -> list[MarkupNode]:
    """`content_of` as elements: the text of an answer is rendered as Markdown, other texts are not changed.

    Args:
        longest: The number of characters after which the text is cut; `None` for the whole text.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> body_of(AIMessage("*Rye*")), body_of(HumanMessage("*Rye*"))
        ([['p', {}, ['em', {}, 'Rye']]], [['p', {'class': 'plain'}, '*Rye*']])
    """
    if role_of(message) == "assistant":
        text, notes = text_of(message), " ".join(map(visible, _notes(message)))
        parts = parts_of(text if longest is None else cut(text, longest))
        return [*parts, ["p", {"class": "plain"}, notes]] if notes else parts
    content = content_of(message) if longest is None else cut(content_of(message), longest)
    return [["p", {"class": "plain"}, content]] if content else []


def preview_of(message: BaseMessage, width: int) -> str:
    r"""`content_of` on one line, cut to `width` characters; an answer without the marks of Markdown.

    Example:
        >>> from langchain_core.messages import AIMessage
        >>> preview_of(AIMessage("## Bread\n\n- *rye*"), 60)
        'Bread • rye'
    """
    if role_of(message) != "assistant":
        return one_line(content_of(message), width)
    text = plain(text_of(message)[: 4 * width])
    return one_line(" ".join(filter(None, [text, *_notes(message)])), width)


def _notes(message: BaseMessage) -> Iterator[str]:
    """The kinds of content that is no text, and the tool calls, in brackets."""
    if isinstance(message.content, list):
        kinds = [block.get("type", "block") for block in message.content if isinstance(block, dict)]
        yield from (f"[{kind}]" for kind in kinds if kind not in ("text", "tool_use", "tool_call"))
    for call in getattr(message, "tool_calls", ()):
        arguments = ", ".join(f"{name}={value!r}" for name, value in call["args"].items())
        yield f"[calls {call['name']}({cut(arguments, 80)})]"


def label_of(message: BaseMessage) -> str:
    """The role of a message as a label.

    Example:
        >>> from langchain_core.messages import AIMessage
        >>> label_of(AIMessage("Hi"))
        'Assistant'
    """
    return one_line(role_of(message)).capitalize()
