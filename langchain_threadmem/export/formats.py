"""Verbs: exporting a conversation in any format, and loading a saved one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Unpack

from langchain_threadmem.engine.flow import Flow
from langchain_threadmem.errors import InputError
from langchain_threadmem.export import json_document, page, text
from langchain_threadmem.export.json_document import Document
from langchain_threadmem.export.text import MermaidOptions
from langchain_threadmem.threads.conversation import ThreadedConversation
from langchain_threadmem.threads.selectors import LinearNodeSelector, SemanticNodeSelector
from langchain_threadmem.tree import graph, read
from langchain_threadmem.tree.node import ConversationNode

Nodes = Sequence[ConversationNode]


def mermaid(history: Nodes, **options: Unpack[MermaidOptions]) -> str:
    """The living tree as a Mermaid diagram."""
    return text.to_mermaid(graph.living(history), **options)


_FORMATS: dict[str, Callable[[Nodes], str]] = {
    "jsonl": json_document.to_jsonl,
    "jsonl_messages": json_document.to_jsonl_messages,
    "text": text.to_text,
    "plain_text": text.to_text,
    "mermaid": text.to_mermaid,
}


def export(conversation: ThreadedConversation, format: str) -> Flow[str]:
    """A conversation in one of the formats of `ChatMemory.export`.

    Raises:
        InputError: The format is unknown.
    """
    history, tip = yield from read.whole(conversation)
    if format == "json":
        return _document(conversation, history, tip)
    active = tip.id if tip else None
    if format == "html":
        return page.to_html(history, title=conversation.name, active=active)
    if format == "svg":
        return page.to_svg(graph.living(history), active=active)
    if format not in _FORMATS:
        known = ", ".join(sorted([*_FORMATS, "json", "html", "svg"]))
        raise InputError(f"Unsupported export format: {format} (use one of {known})")
    return _FORMATS[format](graph.living(history))


def _document(conversation: ThreadedConversation, history: Nodes, tip: ConversationNode | None) -> str:
    return json_document.to_json(
        history,
        mode="linear" if conversation.is_linear else "graph",
        created_at=min((node.timestamp for node in history), default=None),
        metadata={
            "conversation_id": conversation.name,
            "context_depth": conversation.context_depth,
            "tip": tip.id if tip else None,
        },
        other=conversation.runtime.parts.write,
    )


class Saved(NamedTuple):
    """A saved conversation.

    Attributes:
        document: The document.
        tip: Number of the tip, if the document names one.
        selector: The selector for a conversation of this shape.
        context_depth: The context depth, if the document names one.
    """

    document: Document
    tip: int | None
    selector: LinearNodeSelector | SemanticNodeSelector
    context_depth: int | None


def load(text: str) -> Saved:
    """Read a saved conversation.

    Raises:
        InputError: It is no such document.
        InvalidGraphStateError: Its nodes do not form a tree.
    """
    document = json_document.from_json(text)
    known = {node.id for node in document.nodes}
    tip, depth = document.metadata.get("tip"), document.metadata.get("context_depth")
    if tip is not None and not (isinstance(tip, int) and tip in known):
        raise InputError(
            f"the saved tip {tip!r} is no node of the document; remove it, or name one of its nodes"
        )
    selector = LinearNodeSelector() if document.mode == "linear" else SemanticNodeSelector()
    return Saved(document, tip, selector, depth if isinstance(depth, int) else None)


def mime_bundle(conversation: ThreadedConversation) -> Flow[dict[str, str]]:
    """A picture of the tree for Jupyter, and an outline where there are no pictures."""
    history, tip = yield from read.whole(conversation)
    living = graph.living(history)
    return {
        "text/html": page.to_svg(living, active=tip.id if tip else None),
        "text/plain": text.to_outline(living) or "(empty memory)",
    }
