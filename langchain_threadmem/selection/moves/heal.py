"""Moves of placed turns: a turn whose answer makes another place clearly likelier goes to that place.

A message is placed before its answer exists. When the next message is selected, the answers of uncertain
turns are known (`second_look`), and a turn that clearly belongs elsewhere is moved there, in the transaction
that stores the message. A message that a person has placed has no probabilities and is never moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from langchain_threadmem.messages.codec import UNREADABLE, decode_stored
from langchain_threadmem.selection.features.structure import NEWEST
from langchain_threadmem.selection.titles import title_of
from langchain_threadmem.selection.turn_ends import TurnEnd, TurnIndex, is_of_agent
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes, revise, trees
from langchain_threadmem.tree import placements as stored_placements
from langchain_threadmem.tree.node import MOVED, Chances, Placement
from langchain_threadmem.tree.nodes import NodeRow

LIKELIER, LIKELIER_OF_AGENT = 8.0, 3.0
"""The minimum ratio of the probability of the new place of a turn to that of the present place, and in the
conversation of an agent, whose calls name the subject of a turn. There the first ratio corrects 95 of 1,413
turns and spoils 5, the second corrects 134 and spoils 16 (`docs/experiments.md`).
"""
NEW_TOPIC = f"{MOVED}: the answer is about another topic"


class TurnMove(NamedTuple):
    """A turn that is to be moved.

    Attributes:
        turn: The turn in its present place.
        placement: The new place, the first of its probabilities, and the reason.
        title: Title of the thread to which the turn is moved.
    """

    turn: TurnEnd
    placement: Placement
    title: str

    @property
    def parent(self) -> int | None:
        """The turn end that it is to continue; `None` for a new root."""
        return self.placement.chances[0][0]


class Moved(NamedTuple):
    """A turn that was moved, with the former and the new node of its human message."""

    move: TurnMove
    former: NodeRow
    new: NodeRow


def moves(index: TurnIndex, revised: Mapping[int, Chances], single_tree: bool = False) -> list[TurnMove]:
    """The turns to move.

    Args:
        index: The turns of the conversation.
        revised: New probabilities of turns, the likeliest place first, by their ends.
        single_tree: Whether no turn may become a root.
    """
    found = []
    likelier = LIKELIER_OF_AGENT if is_of_agent(index.ends(most=NEWEST)) else LIKELIER
    for turn, chances in zip(index.ends_at(revised), revised.values(), strict=True):
        parent, chance = chances[0]
        if turn is None or not turn.chances or parent == turn.previous or (parent is None and single_tree):
            continue
        if chance < likelier * dict(chances).get(turn.previous, 0.0):
            continue
        opening = turn if parent is None else index.opening(parent)
        title = title_of(opening.human) if opening else ""
        reason = NEW_TOPIC if parent is None else f"{MOVED}: the answer is about {title!r}"
        found.append(TurnMove(turn, Placement(reason, tuple(chances)), title))
    return found


def move(conn: Conn, tree: int, wanted: Sequence[TurnMove], chosen_in: trees.TreeEpoch | None) -> list[Moved]:
    """Move turns in a write transaction, unless the tree was emptied since the moves were chosen.

    A turn stays if a person or another writer has changed its place, its answer or its new parent, and if it
    is in a thread to which a person has gone back.
    """
    if not wanted:
        return []
    trees.lock(conn, tree)
    head = trees.head(conn, tree)
    if not trees.keeps_numbers((tree, head.epoch), chosen_in):
        return []
    chosen = nodes.spans(conn, head.tip) if head.pinned and head.tip is not None else []
    moved = []
    for planned in wanted:
        turn, parent = planned.turn, planned.parent
        row = None if turn.human_id is None else nodes.by_seq(conn, tree, turn.human_id)
        if row is None or nodes.contain(chosen, row.key) or not _is_as_selected(conn, tree, row, turn):
            continue
        if parent is not None and not _can_be_above(conn, nodes.by_seq(conn, tree, parent), row):
            continue
        new, _ = revise.place_turn(conn, tree, row.seq, parent, planned.placement)
        moved.append(Moved(planned, row, new))
    return moved


def _can_be_above(conn: Conn, under: NodeRow | None, row: NodeRow) -> bool:
    """Whether a node is live and not below another node."""
    if under is None or under.state != State.LIVE:
        return False
    return not nodes.contain(nodes.spans(conn, under.key), row.key)


def _is_as_selected(conn: Conn, tree: int, row: NodeRow, turn: TurnEnd) -> bool:
    """Whether a human message is where a selector has put it, with its first answer."""
    placement = stored_placements.by_key(conn, row.key)
    if row.state != State.LIVE or placement is None or tuple(placement.chances) != tuple(turn.chances):
        return False
    if UNREADABLE in decode_stored([(row.message, row.body, row.role)])[0].response_metadata:
        return False  # It cannot be written again.
    return all(answer.state == State.LIVE for answer in nodes.answers(conn, tree, row.key, row.seq))
