"""Choosing which earlier turn a new human message continues, or that it opens a new thread.

The pure part of the semantic thread selector: turn ends and vectors in, a `Choice` out; no
model is asked and nothing is embedded here. The nearest text alone is a poor guide: in task
dialogs most messages ("yes", "for two people") resemble nothing, and two threads on one
subject resemble each other. So `describe` gives every candidate a row of plain numbers, and
`WEIGHTS` has one weight for each; the softmax of the scores is the answer. Whatever scores
the same rows can stand in for the weights.

Candidates are a new root, the ends of the threads, and the latest turns even where they have
been continued already: when a message was put into the wrong thread, the next message of the
right one must still be able to go where it belongs.

Similarities are measured in units of the conversation: their usual level and spread in it. So
embeddings whose cosines all lie between 0.7 and 0.9 work like those that use the whole range.
Whatever belongs to one language is in `cues.Cues`.
"""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.core.cues import ENGLISH, Cues, end_cues, message_cues, terms
from langchain_threadmem.core.nodes import TurnEnd
from langchain_threadmem.errors import InputError

Floats: TypeAlias = NDArray[np.float32]
Table: TypeAlias = NDArray[np.float64]

PATH = 6
"""How many turns of a thread, counted from its end, speak for it."""
PATH_DECAY = 0.7
RECENT_TURNS = 24
"""How many of the latest turns are candidates even where they have been continued."""
RECENT_THREADS = 24
SIMILAR_THREADS = 16
CALIBRATION_TURNS = 32
"""How many of the latest turns tell what similarity is usual."""
PRIOR_PAIRS = 8.0
"""The first guess of what is usual weighs as much as this many pairs of texts."""
ENOUGH_WORDS = 8.0
"""Rarity of shared words is counted up to here, about three rare words."""

# Two weights a column: where there are vectors, and on words alone. They maximise the likelihood
# of the true parents in interleaved dialogs (chat, tasks, support), first over the true trees,
# then also over trees that such weights had grown; `benchmarks/fit_choosing.py` prints them. None
# exceeds 4, lest one cue outvote all the others.
# fmt: off
WEIGHTS: Mapping[str, tuple[float, float]] = MappingProxyType({
    # a turn end: similarity of the message to ...
    "answer": (0.6, 0.0),               # its answer
    "nearest": (0.09, 0.0),             # its human message or its answer, whichever is nearer
    "nearest_length": (0.21, 0.0),      # ... times log(1 + words of the message) - 2: short ones tell little
    "thread": (1.05, 0.0),              # the last turns of its thread on average, the latest weighing most
    # rarity of the words that the message shares with ...
    "turn_words": (0.13, 0.59),         # the turn
    "thread_words": (0.15, 0.32),       # the last turns of its thread
    # where and how the turn ended
    "threads_since": (-1.47, -1.58),    # log(1 + number of threads that ended later)
    "continued": (-2.84, -2.48),        # it has been continued already
    "asks": (0.51, 1.08),               # with a question
    "asks_question": (-1.35, -1.73),    # ... and the message asks one too
    "asks_quantity": (-1.74, -1.74),    # with a question for a number or a time
    "quantity_amount": (2.64, 3.06),    # ... and the message gives one
    "farewell": (-0.93, -0.93),         # its answer wound up
    "farewell_human": (-1.37, -1.42),   # its human message wound up
    # the latest turn, if the message ...
    "latest_short": (2.67, 3.15),       # has three words or fewer
    "latest_length": (-0.74, -0.68),    # log(1 + words) - 2
    "latest_reference": (0.57, 0.55),   # points back
    "latest_reply": (0.86, 0.75),       # begins like a reply
    # the new root
    "root": (-0.42, -0.36),             # always 1
    "root_human": (-0.3, 0.0),          # highest similarity to a human message
    "root_opening": (0.85, 0.0),        # highest similarity to one that opened a thread
    "root_words": (-0.35, -0.23),       # highest rarity of words shared with a thread
    "root_length": (0.98, 1.05),        # log(1 + words) - 2
    "root_reference": (-1.42, -1.28),   # the message points back
    "root_reply": (-3.72, -3.74),       # begins like a reply
    "root_connective": (-3.94, -3.88),  # carries on
    "root_request": (1.06, 1.1),        # opens a task or a subject
    "root_greeting": (4.0, 4.0),        # greets
})
# fmt: on


@dataclass(frozen=True, slots=True)
class Choice:
    """Where a message belongs, how sure that is, and why.

    Attributes:
        parent_id: `id` of the turn end to continue; `None` for a new root.
        probability: Of this choice among all candidates, 0 to 1.
        reason: A few words for a person.
        probabilities: Of every candidate, the likeliest first; they sum to 1.
    """

    parent_id: int | None
    probability: float
    reason: str
    probabilities: Mapping[int | None, float]


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a scorer is given: positions in time and a row of numbers for each.

    Attributes:
        positions: Indexes into the turn ends, rising; one row each.
        rows: One column per key of `WEIGHTS`; the last row is the new root.
        openings: For each position, the index of the turn that opened its thread.
        continued: For each position, whether that turn has been continued already.
        cosines: For each position, the greater cosine of message and turn; NaN without vectors.
    """

    positions: NDArray[np.intp]
    rows: Table
    openings: NDArray[np.intp]
    continued: NDArray[np.bool_]
    cosines: Table


def choose(
    turn_ends: Sequence[TurnEnd],
    human_vectors: Floats,
    answer_vectors: Floats,
    message: str,
    vector: Floats | None,
    *,
    cues: Cues = ENGLISH,
) -> Choice:
    """Choose the turn end that a new human message continues, or a new root.

    Args:
        turn_ends: Turn ends of the whole conversation, oldest first.
        human_vectors: Unit vectors of their human messages, one row each.
        answer_vectors: Unit vectors of their answers, one row each.
        message: Text of the new human message.
        vector: Unit vector of the message; `None` to go by words alone.
        cues: Words of the conversation's language.

    Returns:
        The likeliest candidate; equal ones are settled in favour of the later turn.

    Raises:
        InputError: Rows, lengths or ids do not fit together, or a vector is not finite.

    Cost: 1 ms at 2,000 turns if the words of the candidates have been read before (a cache of 2,048
    texts), 3 ms if some have not, 9 ms if none have.

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
        return Choice(None, 1.0, "the first message", MappingProxyType({None: 1.0}))
    found = describe(turn_ends, human_vectors, answer_vectors, message, vector, cues=cues)
    weights = np.array([pair[vector is None] for pair in WEIGHTS.values()])
    scores = found.rows @ weights
    chances = np.exp(scores - scores.max())
    chances /= chances.sum()
    # Rows rise with time and the root comes last: read backwards, the first best is the latest.
    order = np.argsort(-chances[::-1], kind="stable")
    ranked = [len(chances) - 1 - int(place) for place in order]
    ids: list[int | None] = [turn_ends[position].id for position in found.positions.tolist()]
    ids.append(None)
    return Choice(
        ids[ranked[0]],
        float(chances[ranked[0]]),
        _reason(turn_ends, found, ranked[0], message, cues),
        MappingProxyType({ids[row]: float(chances[row]) for row in ranked}),
    )


def describe(
    turn_ends: Sequence[TurnEnd],
    human_vectors: Floats,
    answer_vectors: Floats,
    message: str,
    vector: Floats | None,
    *,
    cues: Cues = ENGLISH,
) -> Candidates:
    """Candidates for the parent of a message, each with a row of numbers for a scorer.

    The arguments and errors are those of `choose`; there must be at least one turn end.

    Example:
        >>> import numpy as np
        >>> none = np.zeros((1, 0), np.float32)
        >>> found = describe([TurnEnd(2, None, "Hello", "Hi!")], none, none, "How are you?", None)
        >>> found.rows.shape == (2, len(WEIGHTS))
        True
    """
    previous, openings = _links(turn_ends)
    count = len(turn_ends)
    ended = np.ones(count, bool)
    ended[previous[previous >= 0]] = False
    to_human, to_answer, cosines = np.zeros(count), np.zeros(count), np.full(count, np.nan)
    if vector is not None:
        _check_vectors(count, human_vectors, answer_vectors, vector)
        cosines, to_human, to_answer = _similarities(human_vectors, answer_vectors, vector)
    nearest = np.maximum(to_human, to_answer)
    positions = _shortlist(ended, nearest, similar=vector is not None)
    path = _paths(previous, positions)
    decay = np.where(path >= 0, PATH_DECAY ** np.arange(PATH), 0.0)
    both = (to_human + to_answer) / 2
    turn_words, thread_words = _shared_words(turn_ends, path, message, cues)
    heard = message_cues(message, cues)
    said = np.array([end_cues(turn_ends[i].human, turn_ends[i].answer, cues) for i in positions.tolist()])
    asks, quantity, farewell, farewell_human = said.T
    latest = positions == count - 1
    threads_since = ended[::-1].cumsum()[::-1] - ended

    columns: dict[str, Table | float] = {
        "answer": to_answer[positions],
        "nearest": nearest[positions],
        "nearest_length": nearest[positions] * heard["length"],
        "thread": (both[path] * decay).sum(1) / decay.sum(1),
        "turn_words": turn_words,
        "thread_words": thread_words,
        "threads_since": np.log1p(threads_since[positions]),
        "continued": 1.0 - ended[positions],
        "asks": asks,
        "asks_question": asks * heard["question"],
        "asks_quantity": quantity,
        "quantity_amount": quantity * heard["amount"],
        "farewell": farewell,
        "farewell_human": farewell_human,
    }
    for name in ("short", "length", "reference", "reply"):
        columns["latest_" + name] = latest * heard[name]
    root: dict[str, float] = {
        "root": 1.0,
        "root_human": float(to_human.max()),
        "root_opening": float(to_human[openings].max()),
        "root_words": float(thread_words.max()),
    }
    for name in ("length", "reference", "reply", "connective", "request", "greeting"):
        root["root_" + name] = heard[name]
    rows = np.zeros((len(positions) + 1, len(WEIGHTS)))
    for place, name in enumerate(WEIGHTS):
        if name in root:
            rows[-1, place] = root[name]
        else:
            rows[:-1, place] = columns[name]
    return Candidates(positions, rows, openings[positions], ~ended[positions], cosines[positions])


def _links(turn_ends: Sequence[TurnEnd]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """For each turn end, where the one it continued stands (-1: none) and where its thread opened."""
    places: dict[int, int] = {}
    previous: list[int] = []
    openings: list[int] = []
    latest = 0
    for place, turn in enumerate(turn_ends):
        if turn.id <= latest:
            raise InputError(
                f"turn ends come oldest first, but {turn.id!r} follows {latest!r}; sort them by id"
            )
        latest = turn.id
        if turn.previous is None:
            before, opening = -1, place
        elif turn.previous in places:
            before = places[turn.previous]
            opening = openings[before]
        else:
            raise InputError(
                f"turn end {turn.id!r} continues {turn.previous!r}, which is not among the earlier ones; "
                "pass the turn ends of the whole conversation"
            )
        places[turn.id] = place
        previous.append(before)
        openings.append(opening)
    return np.array(previous, np.intp), np.array(openings, np.intp)


def _check_vectors(count: int, humans: Floats, answers: Floats, vector: Floats) -> None:
    expected = (count, *vector.shape)
    if vector.ndim != 1 or humans.shape != expected or answers.shape != expected:
        raise InputError(
            f"{count!r} turn ends and a vector of shape {vector.shape!r} need matrices of shape "
            f"{expected!r}, not {humans.shape!r} and {answers.shape!r}; embed all with one model, "
            "or pass no vector"
        )
    if not np.isfinite(vector).all():
        raise InputError(
            f"the vector of the message is not finite: {vector!r}; pass None to go by words alone"
        )


def _similarities(humans: Floats, answers: Floats, vector: Floats) -> tuple[Table, Table, Table]:
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


def _shortlist(ended: NDArray[np.bool_], nearest: Table, *, similar: bool) -> NDArray[np.intp]:
    """Positions of the candidates, rising: a number that does not grow with the conversation."""
    chosen = np.zeros(len(ended), bool)
    chosen[-RECENT_TURNS:] = True
    ends = np.flatnonzero(ended)
    chosen[ends[-RECENT_THREADS:]] = True
    if similar:
        chosen[ends[np.argsort(-nearest[ends], kind="stable")[:SIMILAR_THREADS]]] = True
    return np.flatnonzero(chosen)


def _paths(previous: NDArray[np.intp], positions: NDArray[np.intp]) -> NDArray[np.intp]:
    """Find the last turns of each thread, its end first, -1 where it is shorter."""
    path = np.full((len(positions), PATH), -1, np.intp)
    path[:, 0] = positions
    for step in range(1, PATH):
        before = path[:, step - 1]
        path[:, step] = np.where(before >= 0, previous[before], -1)
    return path


def _shared_words(
    turn_ends: Sequence[TurnEnd], path: NDArray[np.intp], message: str, cues: Cues
) -> tuple[Table, Table]:
    """Add up the rarity of the words that a turn, and its thread, share with the message."""
    asked = terms(message, cues)
    turns = {i: turn_ends[i] for i in set(path.ravel().tolist()) if i >= 0}
    shared = {i: asked & (terms(turn.human, cues) | terms(turn.answer, cues)) for i, turn in turns.items()}
    seen = Counter(term for found in shared.values() for term in found)
    # Summed in one order only: the order of a set of words differs between two runs of Python.
    rarity = {term: math.log((len(turns) + 1) / (seen[term] + 0.5)) for term in sorted(seen)}

    def score(found: frozenset[str]) -> float:
        return min(sum(value for term, value in rarity.items() if term in found), ENOUGH_WORDS)

    nothing: frozenset[str] = frozenset()
    threads = [nothing.union(*(shared[i] for i in row if i >= 0)) for row in path.tolist()]
    return np.array([score(shared[i]) for i in path[:, 0].tolist()]), np.array(
        [score(found) for found in threads]
    )


def _reason(turn_ends: Sequence[TurnEnd], found: Candidates, row: int, message: str, cues: Cues) -> str:
    if row == len(found.positions):
        heard = message_cues(message, cues)
        opens = "greeting" if heard["greeting"] else "request" if heard["request"] else ""
        return f"new topic: opens with a {opens}" if opens else "new topic: nothing fits well enough"
    position = int(found.positions[row])
    if position == len(turn_ends) - 1:
        return "continues the last thread"
    opening = turn_ends[int(found.openings[row])]
    title = (
        opening.summary.title if opening.summary else textwrap.shorten(opening.human, 40, placeholder=" ...")
    )
    cosine = float(found.cosines[row])
    measured = "" if math.isnan(cosine) else f" (similarity {cosine:.2f})"
    return f"{'branches off inside' if found.continued[row] else 'returns to'} {title!r}{measured}"
