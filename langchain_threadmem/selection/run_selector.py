"""A conversation with its selector: the call of the selector, and the fallback if the selector fails."""

from __future__ import annotations

import logging
import math
import operator
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from langchain_core.messages import BaseMessage

from langchain_threadmem.common.ranges import Range
from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.flow import Flow
from langchain_threadmem.errors import DriverError, PersistenceError, SelectionError
from langchain_threadmem.index.latest_vectors import NewVectors
from langchain_threadmem.messages.ids import storable
from langchain_threadmem.selection.moves.heal import TurnMove, moves
from langchain_threadmem.selection.selectors import AnySelector, LinearNodeSelector, choice_of
from langchain_threadmem.selection.tree_view import OnFailure, TreeView, turns
from langchain_threadmem.selection.turn_ends import TurnEnd, TurnIndex
from langchain_threadmem.tree.append import TIP, Draft, Parent
from langchain_threadmem.tree.conversation import Conversation, tree_of
from langchain_threadmem.tree.node import Chances, Placement
from langchain_threadmem.tree.trees import Head, TreeEpoch

log = logging.getLogger(__package__)
COVER = 0.93
"""The share of the probability that a model is shown. On `threads_dev` 99.6 % of the turns that are continued
are shown then, with 32 % of the words of the history; of the price with a provider's cache it is 69 %."""
COVER_TOKENS = None
"""The maximum number of tokens of turns of other threads that a block quotes; `None` for a share of the
thread."""


@dataclass
class ThreadedConversation(Conversation):
    """A conversation, its node selector and the options of selection; see `ChatMemory` for their meaning."""

    selector: AnySelector = field(default_factory=LinearNodeSelector)
    single_tree: bool = False
    on_selection_failure: OnFailure = "latest"
    cover: float | None = COVER
    cover_tokens: int | None = COVER_TOKENS
    heal: bool = True
    is_linear: bool = field(init=False)
    """Whether every message continues the last message."""

    def __post_init__(self) -> None:
        self.is_linear = isinstance(self.selector, LinearNodeSelector)


class Selected(NamedTuple):
    """The parent of a human message, and the reason.

    Attributes:
        parent: A node id, `None` for a new root, or `TIP`.
        reason: The reason, in a few words for people.
        placement: The placement that is stored with the node; `None` without probabilities.
        usual: The reason in words of this package, which quotes nothing.
        candidates: The number of turn ends that the selector could choose from.
        active: The node in which the active thread of the writer ends, or `TIP`.
        chances: The probabilities of the candidates, if the selector has computed them.
        preferred: The choice of the selector, if it is only suggested; `TIP` if there is none.
        turns: The turns of the conversation; `None` if the selector did not need them.
        moves: The earlier turns to move before the message is stored.
        chosen_in: The epoch of the numbers; see `parent_if_emptied`.
        version: The version of the tree whose messages the placement may quote; `None` without a placement.
        vectors: Vectors of earlier messages to store with the message.
    """

    parent: Parent
    reason: str
    placement: Placement | None = None
    usual: str = ""
    candidates: int = 0
    active: Parent = TIP
    chances: Chances = ()
    preferred: Parent = TIP
    turns: TurnIndex | None = None
    moves: Sequence[TurnMove] = ()
    chosen_in: TreeEpoch | None = None
    version: int | None = None
    vectors: NewVectors | None = None

    def unquoted(self) -> Placement | None:
        """The placement in words of this package, if a message that it may quote was removed meanwhile."""
        return self.placement and replace(self.placement, reason=self.usual, title="")

    def explains(self, drafts: Sequence[Draft]) -> list[Draft]:
        """Drafts of a turn, with the placement on its human message."""
        at = next((i for i, draft in enumerate(drafts) if draft.role == "human"), None)
        return [
            draft._replace(placement=self.placement) if i == at else draft for i, draft in enumerate(drafts)
        ]


def parent_if_emptied(conversation: ThreadedConversation) -> Parent:
    """The parent of a message whose conversation was emptied while its parent was chosen."""
    return TIP if conversation.single_tree else None


class Past(NamedTuple):
    """The messages before a message, as far as its writer has seen them.

    Attributes:
        hidden: Numbers of nodes that the writer has not seen; a message never continues them.
        tip: The node in which the conversation's active thread ends.
        end: The node in which the writer's own list ends, in place of a hidden `tip`.
        before: Number of the first node that is not before the message, for example the message itself, if a
            saver has stored it; `None` if all nodes are before it.
        read_in: The epoch in which the numbers were read.
        open_until: Number of the last node whose turn the message may continue if the turn is open; `None` if
            it may continue any. A later open turn may be that of another run, which has just begun.
        head: The head of the tree, if it was just read.
    """

    hidden: Sequence[Range] = ()
    tip: Parent = TIP
    end: int | None = None
    before: int | None = None
    read_in: TreeEpoch | None = None
    open_until: int | None = None
    head: Head | None = None


EVERYTHING = Past()


def _described(selected: Selected) -> telemetry.Attributes:
    """The attributes of a selection."""
    chances: dict[object, float] = dict(selected.placement.chances) if selected.placement else {}
    chance = chances.get(selected.parent)
    return {
        "threadmem.selection.candidates": selected.candidates,
        "threadmem.selection.new_thread": selected.parent is None,
        "threadmem.selection.reason": lambda: selected.reason,
        **({"threadmem.selection.moves": len(selected.moves)} if selected.moves else {}),
        **({} if chance is None else {"threadmem.selection.probability": chance}),
    }


@telemetry.observed("select_thread", telemetry.of_conversation, _described)
def select(
    conversation: ThreadedConversation, message: BaseMessage, past: Past = EVERYTHING, suggest: bool = False
) -> Flow[Selected]:
    """The parent of a human message, with the reason.

    Args:
        conversation: The conversation, with its selector.
        message: The message.
        past: The messages that the message may continue; by default all.
        suggest: Whether the message continues the active thread, and the selector's choice is `preferred`.

    A selector fails if it raises or returns no turn end; `on_selection_failure` then determines the place of
    the message, and a warning is logged. Storage errors are not failures of a selector.

    Raises:
        SelectionError: The selector failed and `on_selection_failure` is "raise".
    """
    selector, hidden = conversation.selector, past.hidden
    if conversation.is_linear and not hidden:
        return Selected(past.tip, "continues the active thread", active=past.tip, chosen_in=past.read_in)
    tree = yield from tree_of(conversation)
    index = yield from _turns(conversation, tree, past)
    is_unseen = isinstance(past.tip, int) and hidden and index.belongs(past.tip, hidden)
    active = past.end if is_unseen else past.tip
    chosen_in = past.read_in or (tree, index.epoch)
    selected = Selected(
        active, "continues the active thread", active=active, turns=index, chosen_in=chosen_in
    )
    if conversation.is_linear:
        return selected
    on_failure, name = conversation.on_selection_failure, conversation.name
    view = TreeView(conversation.runtime, tree, index, on_failure, name, hidden, past.before, past.open_until)
    try:
        parent = yield from choice_of(selector, view, message)
        if parent is not None:
            parent = _end_of(view, parent, selector)
        view.reason, view.chances = _stated(view, selector)
    except (PersistenceError, DriverError):
        raise
    except Exception as error:
        parent = _fallback(conversation, view.newest_ends(1), error)
        view.reason, view.chances, view.failed = f"the selector failed: {error}", (), True
    selected = selected._replace(
        candidates=view.turns.count(view.before),
        chances=view.chances,
        version=index.version,
        vectors=view.vectors,
    )
    if conversation.heal and view.revised and not (suggest or view.failed):
        selected = selected._replace(moves=moves(index, view.revised, conversation.single_tree))
    if parent is None and conversation.single_tree:
        return selected._replace(reason="continues the active thread, the only one there may be")
    title = view.title if parent is None else ""
    usual = "starts a new thread" if parent is None else f"continues node {parent}"
    reason = view.reason or (usual if view.chances else "")
    placement = Placement(reason, view.chances, title) if reason or title else None
    if suggest:
        # The probabilities let `coverage` show the turns that the message may continue.
        stays = Placement(selected.reason, view.chances) if view.chances else None
        stays_usual = selected._replace(preferred=parent, placement=stays, usual=selected.reason)
        return selected if view.failed else stays_usual
    return selected._replace(parent=parent, reason=view.reason or usual, placement=placement, usual=usual)


def _turns(conversation: ThreadedConversation, tree: int, past: Past) -> Flow[TurnIndex]:
    """The turns of a conversation that its selector needs."""
    runtime, newest = conversation.runtime, getattr(conversation.selector, "newest_turns", None)
    if past.hidden or newest is None:
        return (yield from turns(runtime, tree, head=past.head))
    index = yield from turns(runtime, tree, newest, past.head)
    if index.since and past.before is not None and len(index.ends(past.before, newest)) < newest:
        return (yield from turns(runtime, tree))
    return index


def _end_of(view: TreeView, chosen: int, selector: AnySelector) -> int:
    end = view.end(chosen) if isinstance(chosen, Hashable) else None
    if end is not None:
        return end.id  # A selector may return a NumPy integer, which no database accepts.
    raise SelectionError(f"{type(selector).__name__} chose {chosen!r}, which is not the id of a turn end")


def _stated(view: TreeView, selector: AnySelector) -> tuple[str, Chances]:
    """The reason and the probabilities that a selector has set, as values that can be stored."""
    name = type(selector).__name__
    if not isinstance(view.reason, str | None):
        raise SelectionError(f"{name} set the reason {view.reason!r:.200}, which is not text")
    try:
        chances = tuple(
            [
                (None if candidate is None else operator.index(candidate), float(chance))
                for candidate, chance in view.chances or ()
            ]
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise SelectionError(
            f"{name} set the chances {view.chances!r:.200}; set pairs of an id or None and a probability"
        ) from error
    for candidate, chance in chances:
        if not (math.isfinite(chance) and chance >= 0 and (candidate is None or abs(candidate) < 1 << 63)):
            raise SelectionError(
                f"{name} gave the candidate {candidate!r} the probability {chance!r}; set an id or None and "
                "a finite number of at least 0"
            )
    return storable(view.reason or ""), chances


def _fallback(conversation: ThreadedConversation, ends: Sequence[TurnEnd], error: Exception) -> int | None:
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
