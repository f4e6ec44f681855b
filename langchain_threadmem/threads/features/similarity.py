"""Similarity features: embeddings of the message compared with those of turns and threads.

The functions fill columns of `table.FEATURES`, one number for each candidate. `path` has a row for each
candidate: the positions of the last turns of its thread, its own first, -1 where the thread is shorter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.errors import InputError
from langchain_threadmem.threads.features.learned_words import Floats
from langchain_threadmem.threads.features.structure import LEAST, Places, Table, Tracks, along, best_after
from langchain_threadmem.threads.features.words import best_before, children, fitted
from langchain_threadmem.threads.turn_ends import TurnEnd

CALIBRATION_TURNS = 32
"""The number of latest turns from which the usual similarity is estimated."""
PRIOR_PAIRS = 8.0
"""The weight of the prior of the usual similarity, as a number of pairs of texts."""
STRANGE = 2.0
"""The similarity, in usual spreads, from which on two texts are near."""


@dataclass(frozen=True, eq=False)
class Compatibility:
    """Matrices learned on the vectors of one embedding model: how well messages follow turns.

    Attributes:
        answer: (dimensions, dimensions) an answer times this times a message, and the same with `human` for
            the human message of the turn, measure how well the message follows the turn.
        human: The same shape.
        thread: The same shape; both texts of a turn times this times a message measure whether the message
            belongs to the thread of the turn.
        opener: (dimensions,) how much a message looks like the first of a thread.
        closing: (2, dimensions) for answer and human message: how much a turn looks like the last.
        centers: (any, dimensions) cluster centres of the messages of the fit.
    """

    answer: Floats
    human: Floats
    thread: Floats
    opener: Floats
    closing: Floats
    centers: Floats

    def fits(
        self,
        known: LruCache[tuple[str, str], float],
        turn_ends: Sequence[TurnEnd],
        humans: Floats,
        answers: Floats,
        below: Places,
        above: Places,
    ) -> Floats:
        """How well earlier turns follow the turns that they continue.

        Args:
            known: Results of earlier calls, by an answer and the message after it: a text has one vector.
            turn_ends: The turns.
            humans: Vectors of their human messages.
            answers: Vectors of their answers.
            below: Positions of turns.
            above: Positions of the turns that these continue.
        """

        def fit(before: int, after: int) -> float:
            key = answers[before] @ self.answer + humans[before] @ self.human
            return float(key @ humans[after])

        found = [
            known.setdefault((turn_ends[before].answer, turn_ends[after].human), partial(fit, before, after))
            for before, after in zip(above.tolist(), below.tolist(), strict=True)
        ]
        return np.array(found, np.float32)


def similarities(humans: Floats, answers: Floats, vector: Floats) -> tuple[Table, Table, Table]:
    """The greater cosine with each turn, then those with its message and its answer in usual spreads."""
    to_human, to_answer = (humans @ vector).astype(float), (answers @ vector).astype(float)
    late_humans, late_answers = humans[-CALIBRATION_TURNS:], answers[-CALIBRATION_TURNS:]
    among, across = late_humans @ late_humans.T, late_answers @ late_humans.T
    own_pairs = across.diagonal()  # answers with their own messages, which are nearer than others
    seen = np.concatenate([to_human, to_answer, among.ravel(), across.ravel()])
    own = np.concatenate([among.diagonal(), own_pairs]).astype(float)
    total, count = float(seen.sum() - own.sum()), len(seen) - len(own)
    if not math.isfinite(total):
        raise InputError("a vector of an earlier turn is not finite; embed it again, or pass no vector")
    # The prior: unrelated texts lie about twice as far apart as a message and its answer.
    apart = max(1.0 - float(own_pairs.sum()) / len(own_pairs), (1.0 - total / count) / 4, 1e-6)
    weight = count + PRIOR_PAIRS
    usual = (total + PRIOR_PAIRS * (1.0 - 2.0 * apart)) / weight
    around = float(((seen - usual) ** 2).sum() - ((own - usual) ** 2).sum())
    spread = math.sqrt((around + PRIOR_PAIRS * (0.4 * apart) ** 2) / weight)
    return np.maximum(to_human, to_answer), (to_human - usual) / spread, (to_answer - usual) / spread


def by_meaning(
    to_human: Table,
    to_answer: Table,
    openings: Places,
    previous: Places,
    path: Places,
    weight: Table,
    tracks: Tracks,
) -> dict[str, Table | Floats]:
    """The similarity of the message to the turn, to those before it in its thread and to those after it."""
    nearest, both = np.maximum(to_human, to_answer), (to_human + to_answer) / 2
    inside, positions = path >= 0, path[:, 0]
    return {
        "answer": to_answer[positions],
        "human": to_human[positions],
        "nearest": nearest[positions],
        "thread": (both[path] * weight).sum(1),
        "thread_best": np.where(inside, nearest[path], LEAST).max(1),
        "thread_human": best_before(to_human[path], inside),
        "opening": to_human[openings[positions]],
        "soft_thread": along(both, tracks)[positions],
        "sibling": best_after(to_human, previous)[positions],
    }


def by_learning(
    learned: Compatibility,
    known: LruCache[tuple[str, str], float],
    cosines: Table,
    turn_ends: Sequence[TurnEnd],
    humans: Floats,
    answers: Floats,
    vector: Floats,
    below: Places,
    above: Places,
    path: Places,
    weight: Table,
    tracks: Tracks,
) -> dict[str, Table | Floats]:
    """Features of vectors of the local model, for which matrices were learned."""
    positions, inside, near = path[:, 0], path >= 0, cosines[path]
    topic = learned.thread @ vector
    belongs = answers @ topic + humans @ topic
    follows = (answers @ (learned.answer @ vector) + humans @ (learned.human @ vector))[path]
    fits = learned.fits(known, turn_ends, humans, answers, below, above)
    own, best = fitted(len(humans), below, above, fits)
    return {
        "raw": near[:, 0],
        "raw_thread": (near * weight).sum(1),
        "raw_best": np.where(inside, near, -1.0).max(1),
        "same": (belongs[path] * weight).sum(1),
        "soft_same": along(belongs, tracks)[positions],
        "compatible": follows[:, 0],
        "compatible_before": best_before(follows, inside),
        "own_fit": own[positions],
        **children("child_fit", "child_lead", follows[:, 0], best[positions]),
        "closing": answers[positions] @ learned.closing[0] + humans[positions] @ learned.closing[1],
    }


def continued(previous: Places, positions: Places) -> tuple[Places, Places]:
    """Positions of turns that are candidates or continue one, and of the turns that these continue."""
    candidate = np.zeros(len(previous) + 1, bool)  # The last one stands for the parent of roots.
    candidate[positions] = True
    below = np.flatnonzero((previous >= 0) & (candidate[:-1] | candidate[previous]))
    return below, previous[below]


def by_strangeness(unshared: Table | Floats, nearest: Table | Floats) -> dict[str, Table | Floats]:
    """How much of a message is new to the thread, in words and in meaning.

    "Yes" is near nothing and continues the last turn; a long message that is near nothing does not.
    """
    far = np.clip((STRANGE - nearest) / (2 * STRANGE), 0.0, 1.0)
    return {"strange": unshared * far}
