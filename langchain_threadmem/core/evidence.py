"""What speaks for each candidate: meaning, words, how its turn ended, where it stands.

Each function fills some of the columns of `features.FEATURES`, one number for each candidate. `path` has a
row for each: the places of the last turns of its thread, its own first, -1 where the thread is shorter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.core.cache import LruCache
from langchain_threadmem.core.candidates import Places, Table, Tracks, along
from langchain_threadmem.core.cues import Cues
from langchain_threadmem.core.nodes import TurnEnd
from langchain_threadmem.core.telling import ENDED, HEARD, end_cues, message_cues, names, terms
from langchain_threadmem.core.wording import REMEMBERED, Wording
from langchain_threadmem.errors import InputError

Floats: TypeAlias = NDArray[np.float32]

CALIBRATION_TURNS = 32
"""How many of the latest turns tell what similarity is usual."""
PRIOR_PAIRS = 8.0
"""The first guess of what is usual weighs as much as this many pairs of texts."""
ENOUGH_WORDS = 8.0
"""Rarity of shared words is counted up to here, about three rare words."""

LONG_MESSAGE, LONG_TURN = 6, 30
"""How many telling words a message and a turn may have before what they share counts for less."""
ENOUGH_VALUES = 3
MOST_CHILDREN = 3.0
STRANGE = 2.0
"""A similarity, in usual spreads, from which on a text is not far from another at all."""
MOST_MASS = 28.0
"""Words that the message shares with a thread count up to here, four that are not common."""
LEAST = -9.0
"""Less than any similarity or compatibility."""
ENDS = {name: place for place, name in enumerate(ENDED)}
SAYS = {name: place for place, name in enumerate(HEARD)}
FITS = {
    "closed": ("asks_closed", ("agreement", "refusal")),
    "choice": ("asks_choice", ("alternative", "capital")),
    "number": ("asks_number", ("number",)),
    "time": ("asks_time", ("moment",)),
    "place": ("asks_place", ("place", "capital")),
    "name": ("asks_name", ("name", "capital")),
    "confirm": ("confirm", ("agreement", "refusal", "change")),
    "offer": ("offer", ("farewell", "refusal", "thanks", "request")),
    "close": ("farewell", ("farewell", "thanks")),
    "done": ("done", ("thanks", "question")),
}
"""What an answer asks for, and what in a message would give it."""


@dataclass(frozen=True, eq=False)
class Compatibility:
    """Learned on the vectors of one embedding model: what follows what, and what belongs together.

    Attributes:
        answer: Of shape (dimensions, dimensions); an answer times this times a message, and the same with
            `human` for the human message of the turn, tell how well the message follows that turn.
        human: The same shape.
        thread: The same shape; both texts of a turn times this times a message tell whether the message
            belongs to the thread of that turn.
        opener: Of shape (dimensions,): how much a message looks like the first of a thread.
        closing: Of shape (2, dimensions), for answer and human message: how much a turn looks like the last.
        centers: Of shape (any, dimensions): messages that were learned on lie around these.
    """

    answer: Floats
    human: Floats
    thread: Floats
    opener: Floats
    closing: Floats
    centers: Floats
    _held: LruCache[tuple[str, str], float] = field(default_factory=lambda: LruCache(REMEMBERED))

    def fits(
        self, turn_ends: Sequence[TurnEnd], humans: Floats, answers: Floats, pairs: Sequence[tuple[int, int]]
    ) -> list[float]:
        """How well earlier turns followed those that they continue.

        Each is worked out once: a text has one vector.

        Args:
            turn_ends: The turns.
            humans: Vectors of their human messages.
            answers: Vectors of their answers.
            pairs: Places of a turn and of the one it continues.
        """
        names = [(turn_ends[above].answer, turn_ends[place].human) for place, above in pairs]
        found = [self._held.get(name) for name in names]
        new = [i for i, held in enumerate(found) if held is None]
        if new:
            places, above = np.array([pairs[i] for i in new]).T
            keys = answers[above] @ self.answer + humans[above] @ self.human
            for i, fit in zip(new, (keys * humans[places]).sum(1).tolist(), strict=True):
                found[i] = fit
                self._held.put(names[i], fit)
        return [held for held in found if held is not None]


def similarities(humans: Floats, answers: Floats, vector: Floats) -> tuple[Table, Table, Table]:
    """Greater cosine with each turn, then those with its message and its answer in usual spreads."""
    to_human = (humans @ vector).astype(float)
    to_answer = (answers @ vector).astype(float)
    late_humans, late_answers = humans[-CALIBRATION_TURNS:], answers[-CALIBRATION_TURNS:]
    elsewhere = ~np.eye(len(late_humans), dtype=bool)
    seen = np.concatenate(
        [
            to_human,
            to_answer,
            (late_humans @ late_humans.T)[elsewhere],
            (late_answers @ late_humans.T)[elsewhere],
        ]
    )
    if not np.isfinite(seen).all():
        raise InputError("a vector of an earlier turn is not finite; embed it again, or pass no vector")
    # The first guess: unrelated texts lie about twice as far apart as a message and its answer.
    apart = float((1.0 - (late_humans * late_answers).sum(1)).mean())
    apart = max(apart, float((1.0 - seen).mean()) / 4, 1e-6)
    weight = len(seen) + PRIOR_PAIRS
    usual = (seen.sum() + PRIOR_PAIRS * (1.0 - 2.0 * apart)) / weight
    spread = math.sqrt((((seen - usual) ** 2).sum() + PRIOR_PAIRS * (0.4 * apart) ** 2) / weight)
    return np.maximum(to_human, to_answer), (to_human - usual) / spread, (to_answer - usual) / spread


def by_meaning(
    to_human: Table,
    to_answer: Table,
    openings: Places,
    previous: Places,
    path: Places,
    weight: Table,
    tracks: Tracks,
) -> dict[str, Table]:
    """How near the message is to the turn, to the turns before it in its thread, and to what continued it."""
    nearest, both = np.maximum(to_human, to_answer), (to_human + to_answer) / 2
    inside, positions = path >= 0, path[:, 0]
    return {
        "answer": to_answer[positions],
        "human": to_human[positions],
        "nearest": nearest[positions],
        "thread": (both[path] * weight).sum(1),
        "thread_best": np.where(inside, nearest[path], LEAST).max(1),
        "thread_human": _best_before(to_human, path),
        "opening": to_human[openings[positions]],
        "soft_thread": along(both, tracks)[positions],
        "sibling": _best_after(to_human, previous)[positions],
    }


def by_learning(
    learned: Compatibility,
    cosines: Table,
    turn_ends: Sequence[TurnEnd],
    humans: Floats,
    answers: Floats,
    vector: Floats,
    previous: Places,
    path: Places,
    weight: Table,
    tracks: Tracks,
) -> dict[str, Table]:
    """What the vectors tell by what was learned about the model that made them."""
    positions = path[:, 0]
    topic = learned.thread @ vector
    belongs = answers @ topic + humans @ topic
    follows = answers @ (learned.answer @ vector) + humans @ (learned.human @ vector)
    pairs = _continued(previous, positions)
    own, best = _fits(len(humans), pairs, learned.fits(turn_ends, humans, answers, pairs))
    continued = best[positions] > LEAST
    return {
        "raw": cosines[positions],
        "raw_thread": (cosines[path] * weight).sum(1),
        "raw_best": np.where(path >= 0, cosines[path], -1.0).max(1),
        "same": (belongs[path] * weight).sum(1),
        "soft_same": along(belongs.astype(float), tracks)[positions],
        "compatible": follows[positions].astype(float),
        "compatible_before": _best_before(follows, path),
        "own_fit": own[positions],
        "child_fit": np.where(continued, best[positions], 0.0),
        "child_lead": np.where(continued, follows[positions] - best[positions], 0.0),
        "closing": (answers[positions] @ learned.closing[0] + humans[positions] @ learned.closing[1]).astype(
            float
        ),
    }


def by_wording(
    wording: Wording, turn_ends: Sequence[TurnEnd], previous: Places, path: Places, message: str
) -> dict[str, Table]:
    """What the words tell by what was learned about what follows what."""
    positions = path[:, 0]
    pairs = _continued(previous, positions)
    below, above = np.array(pairs, np.intp).reshape(-1, 2).T
    # Each text once: threads that are looked at have much in common.
    answered = np.unique(np.concatenate([path[path >= 0], above]))
    asked = np.unique(np.concatenate([positions, below]))
    answers = np.array([wording.of_answer(turn_ends[i].answer) for i in answered.tolist()])
    humans = np.array([wording.of_message(turn_ends[i].human) for i in asked.tolist()])
    follows = np.zeros(len(turn_ends))
    follows[answered] = answers[:, :-1] @ wording.of_message(message)[:-2]
    keys, queries = answers[np.searchsorted(answered, above)], humans[np.searchsorted(asked, below)]
    own, best = _fits(len(turn_ends), pairs, (keys[:, :-1] * queries[:, :-2]).sum(1).tolist())
    continued = best[positions] > LEAST
    closing = (
        answers[np.searchsorted(answered, positions), -1] + humans[np.searchsorted(asked, positions), -1]
    )
    return {
        "follows": follows[positions],
        "follows_before": _best_before(follows, path),
        "own_follows": own[positions],
        "child_follows": np.where(continued, best[positions], 0.0),
        "child_follows_lead": np.where(continued, follows[positions] - best[positions], 0.0),
        "closing_words": closing.astype(float),
    }


def _continued(previous: Places, positions: Places) -> list[tuple[int, int]]:
    """Turns that are candidates or continue one, each with what it continues."""
    candidate = np.zeros(len(previous), bool)
    candidate[positions] = True
    turns = np.flatnonzero((previous >= 0) & (candidate | candidate[previous]))
    return list(zip(turns.tolist(), previous[turns].tolist(), strict=True))


def _fits(count: int, pairs: Sequence[tuple[int, int]], fits: Sequence[float]) -> tuple[Table, Table]:
    """For each turn how well it followed what it continues, and the best of those that continued it."""
    own, best = [0.0] * count, [LEAST] * count
    for (place, above), fit in zip(pairs, fits, strict=True):
        own[place] = fit
        best[above] = max(best[above], fit)
    return np.array(own), np.array(best)


def by_words(
    wording: Wording, turn_ends: Sequence[TurnEnd], path: Places, message: str, cues: Cues
) -> dict[str, Table]:
    """Rarity of the words, and the number of values, that a turn and its thread share with the message.

    Long texts share words by chance, so what they share counts for less.
    """
    inside = path >= 0
    looked = np.unique(path[inside])
    at = np.searchsorted(looked, path)  # one row below all others is empty, for what is not inside
    at[~inside] = len(looked)
    turns = [turn_ends[i] for i in looked.tolist()]
    asked, carried = terms(message, cues), names(message)
    said = [(terms(turn.answer, cues), terms(turn.human, cues)) for turn in turns]
    answers = _shared(asked, [answer for answer, _ in said])
    shared = answers | _shared(asked, [human for _, human in said])
    values = _shared(carried, [names(turn.answer) for turn in turns])
    either = values | _shared(carried, [names(turn.human) for turn in turns])
    threads = np.logical_or.reduce(shared[at], axis=1)
    # Threads that fork share their oldest turns: a word that only they hold is still theirs alone.
    oldest = np.where(inside, path, len(turn_ends)).min(1)[:, None]
    only = np.where(threads, oldest, -1).max(0) == np.where(threads, oldest, len(turn_ends)).min(0)
    rarity = np.log((len(turns) + 1) / (shared.sum(0) + 0.5))
    telling = wording.rarities(sorted(asked))
    size = np.array([len(answer) + len(human) for answer, human in said] + [0])[at]
    own = math.sqrt(min(1.0, LONG_MESSAGE / max(len(asked), 1)))
    turn = (LONG_TURN / np.maximum(size[:, 0], LONG_TURN)) ** 0.5
    usual = LONG_TURN * inside.sum(1)
    thread = (usual / np.maximum(size.sum(1), usual)) ** 0.5

    def score(found: NDArray[np.bool_]) -> Table:
        scored: Table = np.minimum(found @ rarity, ENOUGH_WORDS)
        return scored

    last, mass, masses = at[:, 0], float(telling.sum()), (threads @ telling) * thread
    return {
        "answer_words": score(answers[last]) * turn * own,
        "turn_words": score(shared[last]) * turn * own,
        "thread_words": score(threads) * thread * own,
        "only_words": score(threads & only) * thread * own,
        "known": threads.sum(1) / max(len(asked), 1) * thread,
        "rare_turn": np.minimum(shared[last] @ telling, MOST_MASS) * turn * own,
        "rare_thread": masses.clip(max=MOST_MASS) * own,
        "rare_share": masses / (mass + 1.0),
        "unshared": (mass - masses).clip(max=MOST_MASS),
        "values": np.minimum(values[last].sum(1), ENOUGH_VALUES) * turn * own,
        "thread_values": np.minimum(either[at].any(1).sum(1), ENOUGH_VALUES) * thread * own,
    }


def _shared(wanted: frozenset[str], texts: Sequence[frozenset[str]]) -> NDArray[np.bool_]:
    """Which of some words each text holds, in the order of the words; a last row holds none."""
    found = np.zeros((len(texts) + 1, len(wanted)), bool)
    ordered = sorted(wanted)  # The order of a set of words differs between two runs of Python.
    for row, text in enumerate(texts):
        if not wanted.isdisjoint(text):
            found[row] = [word in text for word in ordered]
    return found


def by_strangeness(unshared: Table, nearest: Table) -> dict[str, Table]:
    """How much a message says that the thread says nothing of, in words and in meaning.

    "Yes" is near nothing and continues what was said last; a long message that is near nothing does not.
    """
    far = ((STRANGE - nearest) / (2 * STRANGE)).clip(0.0, 1.0)
    return {"strange": unshared * far}


def by_ends(turn_ends: Sequence[TurnEnd], path: Places, message: str, cues: Cues) -> dict[str, Table]:
    """How the turns ended, and whether the message gives what they asked for."""
    heard = message_cues(message, cues)
    ends = [end_cues(turn_ends[i].human, turn_ends[i].answer, cues) for i in path[:, 0].tolist()]
    before = [
        end_cues(turn_ends[i].human, turn_ends[i].answer, cues)[ENDS["human_farewell"]] if i >= 0 else 0.0
        for i in path[:, 1].tolist()
    ]
    said = np.array(ends)
    found = {"end_" + name: said[:, place] for name, place in ENDS.items()}
    fits = {
        "fit_" + name: said[:, ENDS[asked]] * max(heard[SAYS[gift]] for gift in given)
        for name, (asked, given) in FITS.items()
    }
    total: Table = np.sum(list(fits.values()), axis=0)
    return found | fits | {"fit": total, "before_farewell": np.array(before)}


def by_place(
    previous: Places, path: Places, ended: NDArray[np.bool_], softly: Table, placed: Table
) -> dict[str, Table]:
    """Where the candidates stand in the tree, in time, and how sure that is."""
    count, positions, inside = len(previous), path[:, 0], path >= 0
    followers = np.flatnonzero(previous >= 0)
    threads_since = ended[::-1].cumsum()[::-1] - ended
    children = np.bincount(previous[followers], minlength=count)
    newest = np.full(count, count)
    newest[previous[followers]] = followers
    return {
        "latest": (positions == count - 1).astype(float),
        "second": (ended[positions] & (threads_since[positions] == 1)).astype(float),
        "turns_since": np.log1p(count - 1 - positions),
        "threads_since": np.log1p(threads_since[positions]),
        "depth": np.log1p(inside.sum(1) - 1),
        "continued": 1.0 - ended[positions],
        "continued_softly": np.minimum(softly[positions], MOST_CHILDREN),
        "children": np.minimum(children[positions], MOST_CHILDREN),
        "child_since": np.log1p(count - newest[positions]),
        "placed": placed[positions],
        "path_placed": np.where(inside, placed[path], 1.0).prod(1),
    }


def _best_after(values: Table, previous: Places) -> Table:
    """The greatest value among the turns that continued each; 0 where there are none."""
    best = np.full(len(previous), LEAST)
    followers = np.flatnonzero(previous >= 0)
    np.maximum.at(best, previous[followers], values[followers])
    return np.where(best > LEAST, best, 0.0)


def _best_before(values: Table | Floats, path: Places) -> Table:
    """The greatest value among the turns before the last of each thread; 0 where there are none."""
    inside = path[:, 1:] >= 0
    best = np.where(inside, values[path[:, 1:]], LEAST).max(1)
    return np.where(inside[:, 0], best, 0.0)
