"""The turns that a choice compares, whose number does not grow with the conversation."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from operator import attrgetter

from langchain_threadmem.threads.features.structure import PATH
from langchain_threadmem.threads.turn_ends import TurnEnd, TurnIndex

NEWEST = 64
"""The number of latest turns that a choice compares. 128 turns do not improve the choices, and returns to old
threads are recognised less often (`docs/experiments.md`)."""
NEAR_TURNS, NEAR_THREADS = 6, 4
"""The number of older turns, and of ends of threads, that are compared because they resemble the message.
Twice these numbers recognise about as many returns."""
_id = attrgetter("id")


def compared_turns(turn_ends: Sequence[TurnEnd], index: TurnIndex, near: Sequence[int]) -> list[TurnEnd]:
    """The turn ends that a choice compares, oldest first.

    Args:
        turn_ends: Turn ends of the whole conversation, oldest first.
        index: The index of the conversation; it may contain newer turns.
        near: Ids of nodes before the newest turns, those nearest to the message first.

    Returns:
        The newest turns, about 20 older turns that resemble the message, and the first turns of their
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
        (64, [6, 8, 874])
    """
    newest = turn_ends[-NEWEST:]
    if not near or len(turn_ends) <= NEWEST:
        return detached(newest)
    by_id = {end.id: end for end in newest}
    turns = dict.fromkeys(bisect_left(turn_ends, id_, key=_id) for id_ in near)
    similar = [turn_ends[place] for place in islice(turns, NEAR_TURNS)]
    leaves = dict.fromkeys(index.leaf(end.id) for end in similar)
    for leaf in islice(leaves, NEAR_THREADS):
        similar += islice(index.upwards(leaf), PATH)
    by_id |= {end.id: end for end in similar}
    openings = [index.opening(id_) for id_ in by_id]
    by_id |= {end.id: end for end in openings if end is not None}
    # Turns after the newest are newer than `turn_ends`.
    compared = {id_: end for id_, end in sorted(by_id.items()) if id_ <= newest[-1].id}
    linked = []
    for end in compared.values():
        above = next((up.id for up in index.upwards(end.previous) if up.id in compared), None)
        linked.append(end if end.previous == above else replace(end, previous=above))
    return linked


def detached(turn_ends: Sequence[TurnEnd]) -> list[TurnEnd]:
    """The turn ends as a conversation of their own: a turn that continues any other turn becomes a root."""
    ids = {None, *(end.id for end in turn_ends)}
    return [end if end.previous in ids else replace(end, previous=None) for end in turn_ends]
