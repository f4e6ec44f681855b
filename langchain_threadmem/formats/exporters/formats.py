"""Verbs that export a conversation in every format, and that load a saved conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.exporters import json, mermaid, page, text
from langchain_threadmem.formats.exporters.chat_apps import About, to_librechat, to_openwebui
from langchain_threadmem.formats.exporters.fine_tuning import to_fine_tuning
from langchain_threadmem.formats.exporters.graphml import to_graphml
from langchain_threadmem.formats.exporters.llm import to_llm
from langchain_threadmem.formats.exporters.markdown import to_markdown
from langchain_threadmem.long_term.lists.queries import profile_of
from langchain_threadmem.long_term.lists.verbs import title_of_conversation
from langchain_threadmem.selection.run_selector import ThreadedConversation
from langchain_threadmem.selection.selectors import LinearNodeSelector, SemanticNodeSelector
from langchain_threadmem.tree import graph, read
from langchain_threadmem.tree.node import ConversationNode

Nodes = Sequence[ConversationNode]
_FORMATS: dict[str, Callable[[Nodes], str]] = {
    "jsonl": json.to_jsonl,
    "jsonl_messages": json.to_jsonl_messages,
    "fine_tuning": to_fine_tuning,
    "text": text.to_text,
    "plain_text": text.to_text,
    "mermaid": mermaid.to_mermaid,
}
"""The functions of the formats that need only the live nodes and their ancestors."""
_PROGRAMS: dict[str, tuple[Callable[[Nodes, About], str], str]] = {
    "openwebui": (to_openwebui, ".json"),
    "librechat": (to_librechat, ".json"),
    "llm": (to_llm, ".sql"),
}
"""The functions of the formats of other programs, and the suffixes of their files."""
SUFFIXES = {
    "json": ".json",
    "jsonl": ".jsonl",
    "jsonl_messages": ".jsonl",
    "fine_tuning": ".jsonl",
    "markdown": ".md",
    "text": ".txt",
    "mermaid": ".mmd",
    "graphml": ".graphml",
    "html": ".html",
    "svg": ".svg",
}
"""The suffixes of files, by format of this package."""


def suffix_of(format: str) -> str:
    """The suffix of the files of a format."""
    if format in _PROGRAMS:
        return _PROGRAMS[format][1]
    return SUFFIXES.get(format, ".txt")  # "plain_text" is another name of "text".


def check(format: str) -> None:
    """Check that a format exists.

    Raises:
        InputError: The format is unknown; the error lists the formats.
    """
    known = {*_FORMATS, *SUFFIXES, *_PROGRAMS}
    if not isinstance(format, str) or format not in known:
        formats = ", ".join(sorted(known))
        raise InputError(f"Unsupported export format: {format} (use one of {formats})")


def export(conversation: ThreadedConversation, format: str) -> Flow[str]:
    """Write a conversation in a format of `ChatMemory.export`.

    Raises:
        InputError: The format is unknown.
    """
    check(format)
    history, tip, _ = yield from read.full_history(conversation)
    active = tip.id if tip else None
    match format:
        case "json":
            tree = conversation.tree
            profile = yield from Sql(lambda conn: profile_of(conn, tree))
            return _document(conversation, history, tip, profile.title)
        case "graphml":
            return to_graphml(history)
        case "svg":
            return _picture(history, tip)
        case "html":
            title = yield from title_of_conversation(conversation)
            return page.to_html(history, title=title, active=active)
        case "markdown":
            title = yield from title_of_conversation(conversation)
            return to_markdown(graph.living(history), title=title)
    if format in _PROGRAMS:
        about = yield from _about(conversation, history, active)
        write, _ = _PROGRAMS[format]
        return write(history, about)
    return _FORMATS[format](graph.living(history))


def _about(conversation: ThreadedConversation, history: Nodes, active: int | None) -> Flow[About]:
    tree, title = conversation.tree, (yield from title_of_conversation(conversation))
    profile = yield from Sql(lambda conn: profile_of(conn, tree))
    created = min((node.timestamp.timestamp() for node in history), default=0.0)
    archived = profile.archived is not None
    return About(conversation.name, title, created, active, archived, profile.metadata)


def _document(
    conversation: ThreadedConversation, history: Nodes, tip: ConversationNode | None, title: str | None
) -> str:
    # A conversation that is opened without its selector may have threads, too.
    has_threads = sum(node.parent_id is None for node in graph.living(history)) > 1
    return json.to_json(
        history,
        mode="linear" if conversation.is_linear and not has_threads else "graph",
        metadata={
            "conversation_id": conversation.name,
            **({"title": title} if title else {}),
            "context_depth": conversation.context_depth,
            "tip": tip.id if tip else None,
        },
        other=conversation.runtime.parts.write,
    )


class SavedConversation(NamedTuple):
    """A saved conversation.

    Attributes:
        document: The document.
        tip: Id of the tip, if the document has one.
        selector: A selector for the mode of the document.
        context_depth: The context depth, if the document has one.
    """

    document: json.JsonConversation
    tip: int | None
    selector: LinearNodeSelector | SemanticNodeSelector
    context_depth: int | None


def load(text: str) -> SavedConversation:
    """Read a saved conversation.

    Raises:
        InputError: The text is not a saved conversation.
        InvalidGraphStateError: The nodes do not form a tree.
    """
    document = json.from_json(text)
    tip, depth = document.metadata.get("tip"), document.metadata.get("context_depth")
    if tip is not None and not (isinstance(tip, int) and tip in {node.id for node in document.nodes}):
        raise InputError(
            f"the saved tip {tip!r} is not a node of the document; remove it, or use the id of a node"
        )
    selector = LinearNodeSelector() if document.mode == "linear" else SemanticNodeSelector()
    return SavedConversation(document, tip, selector, depth if isinstance(depth, int) else None)


def mime_bundle(conversation: ThreadedConversation) -> Flow[dict[str, str]]:
    """The tree for Jupyter: a picture as HTML, and an outline as plain text."""
    history, tip, _ = yield from read.full_history(conversation)
    living = graph.living(history)
    # The classes prevent MathJax from reading text between dollar signs as formulas.
    return {
        "text/html": f'<div class="tex2jax_ignore mathjax_ignore">{_picture(history, tip)}</div>',
        "text/plain": text.to_outline(living) or "(empty memory)",
    }


def _picture(history: Nodes, tip: ConversationNode | None) -> str:
    living = graph.living(history)
    # The tip is not drawn after a switch to a superseded version.
    return page.to_svg(living, active=tip.id if tip and tip in living else None, history=history)
