"""Lineage: which turns of a conversation a run of a graph may continue.

A run begins at a checkpoint. What other runs have said since that checkpoint is a branch that this run never
saw: its turns stay in the conversation, and this run and those after it do not continue them. So for each
turn that a run has begun it is kept which others it did not see, as ranges of turns in the order in which
they were begun.

A node belongs to the turn with whose human message it began, else to the newest that was begun before it, as
what was appended by other means. So what is appended between two runs is seen by the later one, and by
whoever asks that question once more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

Span = tuple[int, int]
"""The first and the last number of a range."""
ENDLESS = 1 << 62


class Begun(NamedTuple):
    """A turn that a run has begun.

    Attributes:
        turn: Its number: 1, 2, 3 ... in the order in which a conversation's turns were begun.
        node: Number of the node with which it began.
        thread: The LangGraph thread of the run.
    """

    turn: int
    node: int
    thread: str


def joined(spans: Iterable[Span]) -> list[Span]:
    """Ranges in order, those that touch made one.

    Example:
        >>> joined([(5, 6), (1, 2), (3, 4), (9, 9)])
        [(1, 6), (9, 9)]
    """
    found: list[Span] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def within(spans: Sequence[Span], number: int) -> bool:
    """Whether a number is in one of some ranges, which are in order and apart from each other.

    Example:
        >>> within([(1, 2), (5, 6)], 5), within([(1, 2), (5, 6)], 3)
        (True, False)
    """
    index = bisect_right(spans, (number, ENDLESS)) - 1
    return index >= 0 and spans[index][1] >= number


def belonging(begun: Sequence[Begun], turns: Sequence[Span], thread: str) -> list[Span]:
    """The numbers of the nodes that belong to some turns.

    Args:
        begun: Turns in the order of their nodes.
        turns: Ranges of turns.
        thread: Whose turns in them count: threads that share a conversation have checkpoints of their own.

    Example:
        >>> begun = [Begun(1, 1, ""), Begun(2, 5, ""), Begun(3, 7, "other"), Begun(4, 9, "")]
        >>> belonging(begun, [(2, 3)], "")
        [(5, 6)]
    """
    ends = [*(one.node - 1 for one in begun[1:]), ENDLESS]
    return joined(
        (one.node, end)
        for one, end in zip(begun, ends, strict=False)
        if one.thread == thread and within(turns, one.turn)
    )
