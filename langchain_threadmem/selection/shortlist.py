"""The turns that a choice compares, whose number does not grow with the conversation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from langchain_threadmem.selection.turn_ends import TurnEnd, TurnIndex

NEWEST = 48
"""The number of latest turns that a choice compares. More turns do not improve the choices, and returns to
old threads are recognised less often (`docs/experiments.md`)."""
NEAR_TURNS, OLD_PATH = 3, 3
"""The number of older turns that are compared because they resemble the message, and of turns at the ends of
their threads. Twice these numbers recognise about as many returns."""


def compared_turns(turn_ends: Sequence[TurnEnd], index: TurnIndex, near: Sequence[int]) -> list[TurnEnd]:
    """The turn ends that a choice compares, oldest first.

    Args:
        turn_ends: At least the newest turn ends of the conversation, oldest first.
        index: The index of the conversation; it may contain newer turns.
        near: Ids of nodes before the newest turns, those nearest to the message first.

    Returns:
        The newest turns, about ten older turns that resemble the message, and the first turns of their
        threads. `previous` of each turn is its nearest ancestor among these turns, or `None`.

    Cost: 0.2 ms, and 0.2 ms for each thousand turns between two of the returned turns.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> from langchain_threadmem.tree.node import ConversationNode
        >>> index = TurnIndex()
        >>> for n in range(1, 1000, 2):
        ...     asked = ConversationNode(n, HumanMessage("Hi"))
        ...     index.add([asked, ConversationNode(n + 1, AIMessage("Hi!"), n)])
        >>> ends = index.ends()
        >>> len(compared_turns(ends, index, [])), [end.id for end in compared_turns(ends, index, [8, 5])[:3]]
        (48, [6, 8, 906])
    """
    newest = turn_ends[-NEWEST:]
    if not near or len(turn_ends) <= NEWEST:
        return detached(newest)
    by_id = {end.id: end for end in newest}
    turns = {end.id: end for id_ in near if (end := index.end_from(id_)) is not None}
    similar = list(islice(turns.values(), NEAR_TURNS))
    leaves = dict.fromkeys(index.leaf(end.id) for end in similar)
    for leaf in leaves:
        similar += islice(index.upwards(leaf), OLD_PATH)
    by_id |= {end.id: end for end in similar}
    # The opening of a turn is that of the turn before it.
    tops = [end.id for end in by_id.values() if end.previous is not None and end.previous not in by_id]
    by_id |= {end.id: end for end in map(index.opening, tops) if end is not None}
    # Turns after the newest are newer than `turn_ends`.
    compared = {id_: end for id_, end in sorted(by_id.items()) if id_ <= newest[-1].id}
    linked = []
    for end in compared.values():
        if end.previous is not None and end.previous not in compared:
            end = end._replace(previous=index.nearest_among(end.previous, compared))
        linked.append(end)
    return linked


def detached(turn_ends: Sequence[TurnEnd]) -> list[TurnEnd]:
    """The turn ends as a conversation of their own: a turn that continues any other turn becomes a root."""
    ids = {None, *[end.id for end in turn_ends]}
    return [end if end.previous in ids else end._replace(previous=None) for end in turn_ends]
