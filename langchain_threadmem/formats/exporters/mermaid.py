"""Conversations as Mermaid diagrams, within the limits of Mermaid's renderers.

Messages are untrusted: Mermaid's markup is escaped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple, TypedDict, Unpack

from langchain_threadmem.common.inputs import is_whole
from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.exporters.layout import Layout
from langchain_threadmem.messages.display import content_of
from langchain_threadmem.messages.roles import TYPES, role_of
from langchain_threadmem.messages.text import one_line, plural
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.node import ConversationNode

_LETTERS = {"user": "H", "assistant": "A"}
_FILLS = {"user": "#a7c7e7", "assistant": "#cdb4f6"}
# Mermaid reads labels as its own markup and as HTML; an entity code is always a character.
_MERMAID = {ord(char): f"#{ord(char)};" for char in "[]{}<>|`;#&\\"} | {ord('"'): "'"}
_INK = "    classDef default color:#26282c"
"""The colour of all text; without this line, dark themes draw pale text on the light fills."""
_FRAME = 150
"""An upper bound of the characters of a diagram that belong to no message."""
# A formula; an icon (`fa:fa-car`); a colour (`style:#000`), which takes the semicolon of its entity code.
_MERMAID_PAIRS = re.compile(r"\$(?=\$)|(?<=\$)\$|:(?=fa-|\S*#)")


class MermaidOptions(TypedDict, total=False):
    """Options of `to_mermaid`.

    Attributes:
        show_summaries: Show the title of a message's summary, if it has one, in place of the content.
        max_content_length: Characters of the content to show; by default 60.
        role: Show messages of this role only ("user" or "human", "assistant" or "ai", "system",
            "tool", "function"), each below its nearest shown ancestor.
        max_text_size: Maximum number of characters of a diagram; `None` for no limit. The default is
            Mermaid's, 50,000, beyond which GitHub and Jupyter draw nothing.
        max_edges: Maximum number of edges of a diagram; `None` for no limit. The default is Mermaid's, 500.
    """

    show_summaries: bool
    max_content_length: int
    role: str | None
    max_text_size: int | None
    max_edges: int | None


def to_mermaid(nodes: Sequence[ConversationNode], **options: Unpack[MermaidOptions]) -> str:
    """Draw a conversation as a Mermaid flowchart.

    Args:
        nodes: Nodes of one conversation, in any order; a node whose parent is missing becomes a root.
        **options: See `MermaidOptions`. If the diagram would exceed a limit, it shows the newest messages and
            the number of the others.

    Returns:
        `graph TD`, then a line for each node, each edge and the style of each node, and a text colour that
        is readable on light and dark pages. Superseded nodes have a dashed border.

    Raises:
        InputError: `role` is unknown, or a number is negative.
        InvalidGraphStateError: The nodes do not form a forest.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> nodes = [ConversationNode(1, HumanMessage("Hello")), ConversationNode(2, AIMessage("Hi"), 1)]
        >>> print(to_mermaid(nodes))
        graph TD
            1["H1: Hello"]
            2["A2: Hi"]
            1 --> 2
            style 1 fill:#a7c7e7
            style 2 fill:#cdb4f6
            classDef default color:#26282c
    """
    drawn, hidden = _drawn(nodes, **options)
    visible_nodes = drawn[hidden:]
    ids = {message.id for message in visible_nodes}
    lines = ["graph TD"]
    lines += [f'    earlier["{plural(hidden, "earlier message")} not shown"]'] if hidden else []
    lines += [message.label for message in visible_nodes]
    lines += [message.edge for message in visible_nodes if message.parent in ids]
    lines += [message.style for message in visible_nodes]
    lines += ["    style earlier fill:#e0e0e0"] if hidden else []
    return "\n".join([*lines, *([_INK] if drawn else [])])


def _drawn(
    nodes: Sequence[ConversationNode],
    *,
    show_summaries: bool = False,
    max_content_length: int = 60,
    role: str | None = None,
    max_text_size: int | None = 50_000,
    max_edges: int | None = 500,
) -> tuple[list[_Drawn], int]:
    """The messages with the role, by id, and the number of the oldest that exceed the limits."""
    if role is not None and not (isinstance(role, str) and role in TYPES):
        raise InputError(f"unknown role {role!r}; use one of {', '.join(TYPES)}")
    numbers = {
        "max_content_length": max_content_length,
        "max_text_size": max_text_size,
        "max_edges": max_edges,
    }
    for name, limit in numbers.items():
        if limit is not None and not is_whole(limit, 0):
            raise InputError(f"{name} is {limit!r}; use an integer of 0 or more")
    layout = Layout(nodes)
    # By node id: the id of the nearest shown node among the node and its ancestors.
    shown: dict[int | None, int | None] = {None: None}
    drawn = []
    for node in layout.order:
        matches = role is None or TYPES.get(role_of(node.message)) == TYPES[role]
        parent = shown[node.parent_id]
        shown[node.id] = node.id if matches else parent
        if not matches:
            continue
        speaker = role_of(node.message)
        text = node.summary.title if show_summaries and node.summary else content_of(node.message)
        text = _escape(one_line(text)[:max_content_length])
        label = f'    {node.id}["{_LETTERS.get(speaker, "N")}{node.id}: {text}"]'
        edge = "" if parent is None else f"    {parent} --> {node.id}"
        dashed = ",stroke-dasharray:5 5" if node.state == State.SUPERSEDED else ""
        style = f"    style {node.id} fill:{_FILLS.get(speaker, '#e0e0e0')}{dashed}"
        drawn.append(_Drawn(node.id, parent, label, edge, style))
    drawn.sort(key=attrgetter("id"))
    room = math.inf if max_text_size is None else max_text_size - _FRAME
    edges = math.inf if max_edges is None else max_edges
    for number, message in zip(range(len(drawn), 0, -1), reversed(drawn), strict=True):
        # Mermaid counts UTF-16 code units, the characters of JavaScript.
        room -= sum(len(line.encode("utf-16-le", "surrogatepass")) // 2 + 1 for line in message[2:])
        edges -= message.parent is not None
        if room < 0 or edges < 0:
            return drawn, number
    return drawn, 0


class _Drawn(NamedTuple):
    """A message of a Mermaid diagram: its id, the id of its shown parent, and its lines of source."""

    id: int
    parent: int | None
    label: str
    edge: str
    style: str


def _escape(text: str) -> str:
    return _MERMAID_PAIRS.sub(lambda match: f"#{ord(match[0])};", text.translate(_MERMAID))
