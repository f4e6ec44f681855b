"""Scores of units for forgetting: the least important unit has the lowest score.

A scorer is any function that returns one number for each candidate. Units with equal scores, and all units
without a scorer, keep the order of `maintenance.removal.forgettable`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from langchain_threadmem.common.inputs import is_share
from langchain_threadmem.errors import InputError
from langchain_threadmem.maintenance.removal.forgettable import ForgettableUnit

if TYPE_CHECKING:
    import networkx as nx


Scorer = Callable[[Sequence[ForgettableUnit]], Sequence[float]]
"""The importance of each candidate."""


def count_to_forget(candidates: int, percentage: float) -> int:
    """The number of units that one pass forgets: the share, rounded down, but at least one unit.

    Raises:
        InputError: The share is not from 0 to 1.

    Example:
        >>> count_to_forget(25, 0.1), count_to_forget(3, 0.1), count_to_forget(25, 0)
        (2, 1, 0)
    """
    if not is_share(percentage):
        raise InputError(f"the share to forget must be a number from 0 to 1, not {percentage!r}")
    return min(candidates, max(1, int(candidates * percentage))) if percentage else 0


def decay(half_life: float = 50.0) -> Scorer:
    """Importance that halves every `half_life` rounds since the last visit, and grows with each visit.

    Args:
        half_life: The half-life in rounds; a round is a query. More than 0.

    Raises:
        InputError: `half_life` is not above 0.

    Example:
        >>> unit = ForgettableUnit(1, None, None, 0, visits=3, last_visit=50, created=0.0, round=100)
        >>> decay(50)([unit, unit._replace(last_visit=100), unit._replace(visits=0)])
        [2.0, 4.0, 0.5]
    """
    if not half_life > 0:
        raise InputError(f"half_life={half_life!r} must be above 0; pass a number of rounds")
    return lambda candidates: [
        (1 + unit.visits) * 0.5 ** ((unit.round - unit.last_visit) / half_life) for unit in candidates
    ]


def centrality(measure: Callable[[nx.Graph[int]], dict[int, float]] | None = None) -> Scorer:
    """Importance by the links of a unit to its answers, to the message that it answers, and to its summary.

    Args:
        measure: A centrality measure of NetworkX; by default `degree_centrality`, whose cost is linear. The
            cost of most other measures is higher.

    Example:
        >>> first = ForgettableUnit(1, None, None, 0, visits=0, last_visit=0, created=0.0, round=0)
        >>> answers = [first._replace(key=key, previous=1) for key in (2, 3)]
        >>> centrality()([first, *answers])
        [1.0, 0.5, 0.5]
    """

    def score(candidates: Sequence[ForgettableUnit]) -> list[float]:
        import networkx as nx

        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(unit.key for unit in candidates)
        for unit in candidates:
            graph.add_edges_from(
                (unit.key, neighbour) for neighbour in (unit.parent, unit.previous) if neighbour is not None
            )
        scores = (measure or nx.degree_centrality)(graph)
        return [scores[unit.key] for unit in candidates]

    return score


def least_important(candidates: Sequence[ForgettableUnit], scorer: Scorer, count: int) -> list[int]:
    """The keys of the candidates with the lowest scores.

    Raises:
        InputError: The scorer did not return one number for each candidate.

    Example:
        >>> unit = ForgettableUnit(1, None, None, 0, visits=0, last_visit=0, created=0.0, round=0)
        >>> least_important([unit, unit._replace(key=2)], lambda units: [2.0, 1.0], 1)
        [2]
    """
    scores = list(scorer(candidates))
    if len(scores) != len(candidates) or any(score != score for score in scores):
        raise InputError(
            f"the scorer returned {len(scores)} scores for {len(candidates)} units, or a score that is not a "
            "number; return one number for each unit"
        )
    order = sorted(range(len(candidates)), key=scores.__getitem__)
    return [candidates[n].key for n in order[:count]]
