"""The choice: from features to probabilities, a parent and a reason.

The pure part of the semantic selector: it takes turn ends and vectors, and returns a `Choice`. Similarity
alone selects badly: in task dialogs most messages ("yes", "for two people") resemble nothing, and two threads
on one subject resemble each other. So `features.table.describe` gives each candidate a row of features, the
networks of `model` score the rows, and the softmax of the scores gives the probabilities. The networks were
fitted on interleaved dialogs, first in their true threads, then in the threads that fitted networks chose,
because in use a selector meets its own errors.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from langchain_threadmem.threads.features.learned_words import Floats
from langchain_threadmem.threads.features.structure import LEAST_CHANCE, Table
from langchain_threadmem.threads.features.table import Candidates, check_vectors, describe
from langchain_threadmem.threads.features.words import MESSAGE_CUE_AT, Reader
from langchain_threadmem.threads.model import Networks, compatibility, networks, reader, score, way_to_go
from langchain_threadmem.threads.second_look import reconsidered
from langchain_threadmem.threads.turn_ends import TurnEnd

CHANCES_KEPT = 5
"""The most candidates of a choice whose probabilities are stored."""
ONE_SUBJECT, STAYS, FEW_TURNS = 0.15, 0.6, 4
"""The conversations of the fit have several subjects, and many conversations have one. While a conversation
has one thread, it is assumed to have one subject with a probability of 0.15, and otherwise to stay with its
first subject from one message to the next with a probability of 0.6. Turns after the fourth do not count.
"""
GOES_BACK = 0.5
"""The factor for going back to an earlier turn of the only thread: the dialogs of the fit mostly go back to
another thread.
"""


@dataclass(frozen=True, slots=True)
class Choice:
    """The parent of a message, its probability and a reason.

    Attributes:
        parent_id: `id` of the turn end to continue; `None` for a new root.
        probability: The probability of the parent, 0 to 1.
        reason: The reason, in a few words for people.
        probabilities: The probability of each candidate, the likeliest first; they sum to 1.
    """

    parent_id: int | None
    probability: float
    reason: str
    probabilities: Mapping[int | None, float]

    @property
    def kept(self) -> tuple[tuple[int | None, float], ...]:
        """The candidates that are stored as `TurnEnd.chances`: at most five, none very unlikely."""
        first = list(self.probabilities.items())[:CHANCES_KEPT]
        return tuple((candidate, chance) for candidate, chance in first if chance >= LEAST_CHANCE)


FIRST = Choice(None, 1.0, "the first message", MappingProxyType({None: 1.0}))


def choose(
    turn_ends: Sequence[TurnEnd],
    human_vectors: Floats,
    answer_vectors: Floats,
    message: str,
    vector: Floats | None,
    *,
    reads: Reader | None = None,
    model: str = "",
    version: int = 0,
) -> Choice:
    """Choose the turn end that a new human message continues, or a new root.

    Args:
        turn_ends: The turn ends, oldest first.
        human_vectors: Unit vectors of their human messages, one row each.
        answer_vectors: Unit vectors of their answers, one row each.
        message: Text of the new human message.
        vector: Unit vector of the message; `None` for a choice by words alone.
        reads: Reads the texts, and keeps what it has read for later calls; by default a new one for English.
        model: Name of the embedding model. Vectors of the local model have more features.
        version: Version of the tree; second looks are cached for one version.

    Returns:
        The likeliest candidate; of equally likely ones the later turn.

    Raises:
        InputError: Rows, lengths or ids do not fit together, or a vector is not finite.

    Cost: 1.5 ms for 100 turns that `reads` has cached (it caches 4,096), some 20 ms for 100 others, 1 ms for
    each second look. The first call reads the data file (20 ms).

    Example:
        >>> import numpy as np
        >>> none = np.zeros((2, 0), np.float32)
        >>> turns = [
        ...     TurnEnd(2, None, "How do I read a CSV file in pandas?", "Use pandas.read_csv."),
        ...     TurnEnd(4, None, "Which wine goes with salmon?", "A dry Riesling."),
        ... ]
        >>> choice = choose(turns, none, none, "And if the CSV file has no header?", None)
        >>> choice.parent_id, choice.reason
        (2, "returns to 'How do I read a CSV file in pandas?'")
    """
    if not turn_ends:
        return FIRST
    way = way_to_go(model, None if vector is None else len(vector))
    learned = compatibility() if way == "local" else None
    check_vectors(len(turn_ends), human_vectors, answer_vectors, vector)
    given, reads, again = (human_vectors, answer_vectors), reads or reader(), networks(way, again=True)
    revised = reconsidered(turn_ends, *given, way, reads, learned, again, version)
    found = describe(revised, *given, message, vector, reads, learned)
    chances = weigh(networks(way), found, revised)
    ranked = likeliest(chances)
    ids: list[int | None] = [turn_ends[position].id for position in found.positions.tolist()]
    ids.append(None)
    return Choice(
        ids[ranked[0]],
        float(chances[ranked[0]]),
        # The reason describes the stored tree, not the tree after second looks.
        _reason(turn_ends, found, ranked[0], message, reads),
        MappingProxyType({ids[row]: float(chances[row]) for row in ranked}),
    )


def weigh(held: Networks, found: Candidates, turn_ends: Sequence[TurnEnd]) -> Table:
    """The probability of each candidate, in the order of its rows."""
    scores = score(held, found.rows, found.familiar)
    if sum(end.previous is None for end in turn_ends) == 1:
        scores[-1] += math.log(_has_more(len(turn_ends)))
        scores[:-2] += math.log(GOES_BACK)  # The last turn is always a candidate, and comes before the root.
    chances: Table = np.exp(scores - scores.max())
    chances /= chances.sum()
    return chances


def _has_more(turns: int) -> float:
    """The probability that a conversation has more than the subject of its first turns, by Bayes' rule."""
    stayed = (1.0 - ONE_SUBJECT) * STAYS ** min(turns, FEW_TURNS)
    return stayed / (stayed + ONE_SUBJECT)


def likeliest(chances: Table) -> list[int]:
    """The rows, the likeliest first; of equally likely ones a new root, then the later turn."""
    # Rows rise with time and the root is last: a stable sort of the reversed rows puts the later one first.
    order = np.argsort(-chances[::-1], kind="stable")
    return [len(chances) - 1 - int(place) for place in order]


def _reason(turn_ends: Sequence[TurnEnd], found: Candidates, row: int, message: str, reads: Reader) -> str:
    if row == len(found.positions):
        cues = reads.message(message).cues
        opens = next((cue for cue in ("greeting", "request") if cues[MESSAGE_CUE_AT[cue]]), "")
        return f"new topic: opens with a {opens}" if opens else "new topic: nothing fits well enough"
    position = int(found.positions[row])
    if position == len(turn_ends) - 1:
        return "continues the last thread"
    opening, by_id = turn_ends[position], {end.id: end for end in turn_ends}
    while opening.previous is not None:
        opening = by_id[opening.previous]
    title = (
        opening.summary.title if opening.summary else textwrap.shorten(opening.human, 40, placeholder=" ...")
    )
    cosine = float(found.cosines[row])
    measured = "" if math.isnan(cosine) else f" (similarity {cosine:.2f})"
    continued = any(end.previous == turn_ends[position].id for end in turn_ends)
    return f"{'branches off inside' if continued else 'returns to'} {title!r}{measured}"
