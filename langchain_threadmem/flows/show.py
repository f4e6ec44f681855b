"""Showing and keeping: a conversation as text, as a picture, and as the document that `load` reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_threadmem.core import exchange, page, render
from langchain_threadmem.core import tree as tree_core
from langchain_threadmem.core.exchange import Document
from langchain_threadmem.core.nodes import ConversationNode
from langchain_threadmem.errors import InputError
from langchain_threadmem.flows.conversation import Conversation
from langchain_threadmem.flows.selectors import LinearNodeSelector, SemanticNodeSelector

Nodes = Sequence[ConversationNode]


def mermaid(history: Nodes, **options: Any) -> str:
    """The living tree as a Mermaid diagram."""
    return render.to_mermaid(tree_core.living(history), **options)


_FORMATS: dict[str, Callable[[Nodes], str]] = {
    "jsonl": exchange.to_jsonl,
    "jsonl_messages": exchange.to_jsonl_messages,
    "text": render.to_text,
    "plain_text": render.to_text,
    "mermaid": render.to_mermaid,
}


def export(conversation: Conversation, history: Nodes, format: str, tip: ConversationNode | None) -> str:
    """A conversation in one of the formats of `ChatMemory.export`.

    Raises:
        InputError: The format is unknown.
    """
    if format == "json":
        return _document(conversation, history, tip)
    active = tip.id if tip else None
    if format == "html":
        return page.to_html(history, title=conversation.name, active=active)
    if format == "svg":
        return page.to_svg(tree_core.living(history), active=active)
    if format not in _FORMATS:
        known = ", ".join(sorted([*_FORMATS, "json", "html", "svg"]))
        raise InputError(f"Unsupported export format: {format} (use one of {known})")
    return _FORMATS[format](tree_core.living(history))


def _document(conversation: Conversation, history: Nodes, tip: ConversationNode | None) -> str:
    linear = isinstance(conversation.selector, LinearNodeSelector)
    return exchange.to_json(
        history,
        mode="linear" if linear else "graph",
        created_at=min((node.timestamp for node in history), default=None),
        metadata={
            "conversation_id": conversation.name,
            "context_depth": conversation.context_depth,
            "tip": tip.id if tip else None,
        },
        other=conversation.runtime.parts.write,
    )


def load(text: str) -> tuple[Document, int | None, dict[str, Any]]:
    """A saved document, its tip, and the options of `ChatMemory` that it implies.

    Raises:
        InputError: It is no such document.
        InvalidGraphStateError: Its nodes do not form a tree.
    """
    document = exchange.from_json(text)
    known = {node.id for node in document.nodes}
    tip, depth = document.metadata.get("tip"), document.metadata.get("context_depth")
    if tip is not None and not (isinstance(tip, int) and tip in known):
        raise InputError(
            f"the saved tip {tip!r} is no node of the document; remove it, or name one of its nodes"
        )
    selector = LinearNodeSelector() if document.mode == "linear" else SemanticNodeSelector()
    options: dict[str, Any] = {"node_selector": selector}
    if isinstance(depth, int):
        options["context_depth"] = depth
    return document, tip, options


def mime_bundle(history: Nodes, tip: ConversationNode | None) -> dict[str, str]:
    """A picture of the tree for Jupyter, and an outline where there are no pictures."""
    living = tree_core.living(history)
    return {
        "text/html": page.to_svg(living, active=tip.id if tip else None),
        "text/plain": render.to_outline(living) or "(empty memory)",
    }
