"""Conversations as plain text and outlines."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_threadmem.formats.exporters.layout import Layout, line_of
from langchain_threadmem.messages.display import content_of, label_of
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.node import ConversationNode

_OUTLINE_WIDTH = 60
"""The number of characters of a message that an outline shows."""


def to_text(nodes: Sequence[ConversationNode]) -> str:
    """Write a conversation as a plain transcript, in the order of ids.

    Args:
        nodes: Nodes of one conversation, in any order.

    Returns:
        A paragraph for each message. All lines after the first are indented, so that the content of a message
        cannot imitate another speaker.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> nodes = [ConversationNode(1, HumanMessage("Hello")), ConversationNode(2, AIMessage("Hi"), 1)]
        >>> print(to_text(nodes))
        User: Hello
        Assistant: Hi
    """
    return "\n".join(
        f"{label_of(node.message)}: " + "\n  ".join(content_of(node.message).splitlines())
        for node in sorted(nodes, key=lambda node: node.id)
    )


def to_outline(nodes: Sequence[ConversationNode]) -> str:
    """Draw a conversation as a tree of lines, for a terminal.

    Args:
        nodes: Nodes of one conversation, in any order; a node whose parent is missing becomes a root.

    Returns:
        One line for each node. The cost is linear in the number of nodes.

    Raises:
        InvalidGraphStateError: The nodes do not form a forest.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> tree = [(HumanMessage("Hello"), None), (AIMessage("Hi"), 1), (HumanMessage("Csv?"), 2)]
        >>> tree += [(HumanMessage("Tea?"), 2)]
        >>> print(to_outline([ConversationNode(n, *node) for n, node in enumerate(tree, 1)]))
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
            note = "" if node.state == State.LIVE else f" ({node.state.label})"
            lines.append(f"{margin[: len(margin) - len(hook)]}{mark}{line_of(node, _OUTLINE_WIDTH)}{note}")
            branches, node = layout.fork(node)
            for branch in branches:
                last = node is None and branch is branches[-1]
                draw(branch, margin + ("  " if last else "│ "), "└─" if last else "├─")
            mark, hook = "│ ", ""

    for root in layout.roots:
        draw(root, "")
    return "\n".join(lines)
