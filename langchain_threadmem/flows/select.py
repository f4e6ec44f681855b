"""Selecting: which answer a new human message continues, or that it starts a new thread."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from langchain_threadmem.core.nodes import TurnEnd
from langchain_threadmem.errors import DriverError, PersistenceError, SelectionError
from langchain_threadmem.flows.conversation import Conversation, tree_of
from langchain_threadmem.flows.index import turns
from langchain_threadmem.flows.selectors import LinearNodeSelector, choice_of
from langchain_threadmem.flows.steps import Flow
from langchain_threadmem.flows.view import TreeView
from langchain_threadmem.storage.queries.growth import TIP, Parent

log = logging.getLogger(__name__)


def select(conversation: Conversation, message: BaseMessage) -> Flow[Parent]:
    """The parent of a human message: a node id, `None` for a new root, or `TIP`.

    A selector that raises, or names no turn end, has failed: the message then goes where
    `on_selection_failure` says, and a warning says so. Storage errors are not failures of a selector.

    Raises:
        SelectionError: It failed and `on_selection_failure` is "raise".
    """
    selector = conversation.selector
    if isinstance(selector, LinearNodeSelector):
        return TIP
    tree = yield from tree_of(conversation)
    ends = (yield from turns(conversation.runtime, tree)).ends()
    view = TreeView(conversation.runtime, tree, ends)
    try:
        parent = yield from choice_of(selector, view, message)
        if parent is not None and all(end.id != parent for end in ends):
            raise SelectionError(
                f"{type(selector).__name__} chose {parent!r}, which is no answer that can be continued"
            )
    except (PersistenceError, DriverError):
        raise
    except Exception as error:
        parent = _fallback(conversation, ends, error)
    if parent is None and conversation.single_tree:
        return TIP
    return parent


def _fallback(conversation: Conversation, ends: Sequence[TurnEnd], error: Exception) -> int | None:
    choice = conversation.on_selection_failure
    if choice == "raise":
        if isinstance(error, SelectionError):
            raise error
        raise SelectionError(
            f"{type(conversation.selector).__name__} failed: {error!r}; "
            "the message was not stored: append it again"
        ) from error
    parent = ends[-1].id if ends and choice == "latest" else None
    log.warning(
        "%s failed (%r); the message %s",
        type(conversation.selector).__name__,
        error,
        "starts a new thread" if parent is None else f"continues the latest answer, node {parent}",
    )
    return parent
