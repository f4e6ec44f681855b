"""A conversation as Mermaid, plain text and an outline.

`page` draws the same as a web page and as a picture; all five are offered here. What a
message says is never trusted: in each format it can be read, and can do nothing.

A conversation of 500 messages drawn as a nested tree is a staircase that nobody can read. So
a message that simply goes on stands below the one before it, and only forks are set in: where
one branch holds more than half of what follows it goes straight on, and the others, each at
most half, are set in before it. `n` messages are thus never set in more than log2(n) deep.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

from langchain_threadmem.errors import InputError
from langchain_threadmem.export.layout import Layout, label_of, said
from langchain_threadmem.messages.roles import TYPES, role_of
from langchain_threadmem.messages.text import one_line, plural
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.node import ConversationNode

_LETTERS = {"user": "H", "assistant": "A"}
_FILLS = {"user": "#a7c7e7", "assistant": "#cdb4f6"}
# Mermaid reads labels as markup of its own and as HTML; an entity code is only ever a character.
_MERMAID = {ord(char): f"#{ord(char)};" for char in "[]{}<>|`;#&\\"} | {ord('"'): "'"}
_INK = "    classDef default color:#26282c"
"""Text on those fills, which a dark theme would make pale."""
_FRAME = 150
"""Characters of a diagram that belong to no message."""
# A formula, an icon (`fa:fa-car`), and a colour (`style:#000`) that costs its entity code the semicolon.
_MERMAID_PAIRS = re.compile(r"\$(?=\$)|(?<=\$)\$|:(?=fa-|\S*#)")


class MermaidOptions(TypedDict, total=False):
    """Options of `to_mermaid`."""

    show_summaries: bool
    max_content_length: int
    role: str | None
    max_text_size: int | None
    max_edges: int | None


def to_mermaid(
    nodes: Sequence[ConversationNode],
    *,
    show_summaries: bool = False,
    max_content_length: int = 60,
    role: str | None = None,
    max_text_size: int | None = 50_000,
    max_edges: int | None = 500,
) -> str:
    """Draw a conversation as a Mermaid flowchart.

    Args:
        nodes: Nodes of one conversation, in any order; one whose parent is missing is a root.
        show_summaries: Show the title of a message's summary, where it has one, not its content.
        max_content_length: How many characters of the content to show.
        role: Show messages of this role only ("user" or "human", "assistant" or "ai", "system",
            "tool", "function"), each below its nearest ancestor that is shown.
        max_text_size: How many characters the diagram has at most; `None` for no limit. GitHub, Jupyter and
            others draw no more than Mermaid's default, 50,000. Of a longer one the newest messages are drawn,
            and a box says how many are not.
        max_edges: How many edges at most, likewise; Mermaid's default is 500.

    Returns:
        `graph TD`, then a line for each node, each edge and each node's style, and the colour of all text,
        which can be read on light and dark pages. Superseded nodes have a dashed border.

    Raises:
        InputError: `role` is unknown or a number negative.
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
    if role is not None and role not in TYPES:
        raise InputError(f"unknown role {role!r}; use one of {', '.join(TYPES)}")
    limits = {
        "max_content_length": max_content_length,
        "max_text_size": max_text_size,
        "max_edges": max_edges,
    }
    for name, limit in limits.items():
        if limit is not None and limit < 0:
            raise InputError(f"{name} is {limit!r}; use 0 or more")
    layout = Layout(nodes)
    shown: dict[int | None, int | None] = {None: None}  # each node's nearest shown ancestor, itself included
    for node in layout.order:
        kept = role is None or TYPES.get(role_of(node.message)) == TYPES[role]
        shown[node.id] = node.id if kept else shown[node.parent_id]
    drawn = []
    for node in layout.nodes:
        if shown[node.id] != node.id:
            continue
        spoken = role_of(node.message)
        text = node.summary.title if show_summaries and node.summary else said(node.message)
        text = _harmless(one_line(text)[:max_content_length])
        label = f'    {node.id}["{_LETTERS.get(spoken, "N")}{node.id}: {text}"]'
        parent = shown[node.parent_id]
        edge = "" if parent is None else f"    {parent} --> {node.id}"
        dashed = ",stroke-dasharray:5 5" if node.state == State.SUPERSEDED else ""
        style = f"    style {node.id} fill:{_FILLS.get(spoken, '#e0e0e0')}{dashed}"
        drawn.append(_Drawn(node.id, parent, label, edge, style))
    cut = _newest(drawn, max_text_size, max_edges)
    there = {one.id for one in drawn[cut:]}
    note = [f'    earlier["{plural(cut, "earlier message")} not shown"]'] if cut else []
    labels, styles = [one.label for one in drawn[cut:]], [one.style for one in drawn[cut:]]
    edges = [one.edge for one in drawn[cut:] if one.parent in there]
    ink = [*(["    style earlier fill:#e0e0e0"] if cut else []), *([_INK] if drawn else [])]
    return "\n".join(["graph TD", *note, *labels, *edges, *styles, *ink])


class _Drawn(NamedTuple):
    """A message in a Mermaid diagram: its number, that of the message above it, and its lines."""

    id: int
    parent: int | None
    label: str
    edge: str
    style: str


def _newest(drawn: Sequence[_Drawn], max_text_size: int | None, max_edges: int | None) -> int:
    """How many messages to leave out, so that the rest is within the limits."""
    room = math.inf if max_text_size is None else max_text_size - _FRAME
    edges = math.inf if max_edges is None else max_edges
    for left, one in zip(range(len(drawn), 0, -1), reversed(drawn), strict=True):
        # Mermaid counts as JavaScript does: a character outside of the first 65,536 is two.
        room -= sum(len(line.encode("utf-16-le", "surrogatepass")) // 2 + 1 for line in one[2:])
        edges -= one.parent is not None
        if room < 0 or edges < 0:
            return left
    return 0


def to_text(nodes: Sequence[ConversationNode]) -> str:
    """Write a conversation as a plain transcript, in the order in which it was said.

    Args:
        nodes: Nodes of one conversation, in any order.

    Returns:
        A paragraph for each message. Its further lines are indented, so that no message can look
        like another speaker's.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> nodes = [ConversationNode(1, HumanMessage("Hello")), ConversationNode(2, AIMessage("Hi"), 1)]
        >>> print(to_text(nodes))
        User: Hello
        Assistant: Hi
    """
    return "\n".join(
        f"{label_of(node.message)}: " + "\n  ".join(said(node.message).splitlines())
        for node in sorted(nodes, key=lambda node: node.id)
    )


def to_outline(nodes: Sequence[ConversationNode], *, width: int = 60) -> str:
    """Draw a conversation as a tree of lines, for a terminal.

    Args:
        nodes: Nodes of one conversation, in any order; one whose parent is missing is a root.
        width: How many characters of each message to show.

    Returns:
        One line for each node. Linear in the number of nodes.

    Raises:
        InvalidGraphStateError: The nodes do not form a forest.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> said = [(HumanMessage("Hello"), None), (AIMessage("Hi"), 1), (HumanMessage("Csv?"), 2)]
        >>> said += [(HumanMessage("Tea?"), 2)]
        >>> print(to_outline([ConversationNode(n, *node) for n, node in enumerate(said, 1)]))
        ● 1 User: Hello
        │ 2 Assistant: Hi
        ├─● 3 User: Csv?
        └─● 4 User: Tea?
    """
    layout = Layout(nodes)
    lines: list[str] = []

    def draw(node: ConversationNode | None, margin: str, hook: str = "") -> None:
        mark = f"{hook}● "
        while node is not None:
            note = "" if node.state == State.LIVE else f" ({State(node.state).name.lower()})"
            words = one_line(said(node.message), width)
            lines.append(
                f"{margin[: len(margin) - len(hook)]}{mark}{node.id} {label_of(node.message)}: {words}{note}"
            )
            aside, node = layout.fork(node)
            for branch in aside:
                last = node is None and branch is aside[-1]
                draw(branch, margin + ("  " if last else "│ "), "└─" if last else "├─")
            mark, hook = "│ ", ""

    for root in layout.roots:
        draw(root, "")
    return "\n".join(lines)


def _harmless(text: str) -> str:
    escaped = text.translate(_MERMAID)
    return _MERMAID_PAIRS.sub(lambda found: f"#{ord(found[0])};", escaped)
