"""The feature table: one row of numbers for each candidate parent of a message.

Candidates are a new root, the ends of the threads, the latest turns even if they have been continued, and
the nearest turns: after a message was put into the wrong thread, the next message of the right thread needs
its parent among the candidates, and an old answer may be answered twice.

A row holds the cues of the message (`heard_...`, the same in all rows), the cues at the end of the
candidate's turn, the similarity of both by meaning and by words, the lead over the best other candidate
(`lead_...`), and the place of the candidate in the tree. Earlier choices count by their probability: a turn
that was placed below an answer with a probability of 0.6 continues the answer by 0.6.

Similarities are measured by their usual level and spread in the conversation, so embeddings whose cosines
all lie between 0.7 and 0.9 work like those that use the whole range. Everything specific to a language is in
`phrases.Phrases`, by which `words.Reader` reads texts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.errors import InputError
from langchain_threadmem.threads.features.cues import END_CUES, MESSAGE_CUES
from langchain_threadmem.threads.features.learned_words import Floats
from langchain_threadmem.threads.features.similarity import (
    Compatibility,
    by_learning,
    by_meaning,
    by_strangeness,
    continued,
    similarities,
)
from langchain_threadmem.threads.features.structure import (
    LATELY,
    PATH,
    PATH_DECAY,
    Places,
    Table,
    by_place,
    habits,
    links,
    paths,
    probabilities,
)
from langchain_threadmem.threads.features.words import (
    FITS,
    MOST_MASS,
    Reader,
    Shared,
    by_ends,
    by_word_vectors,
    by_words,
)
from langchain_threadmem.threads.shortlist import shortlist
from langchain_threadmem.threads.turn_ends import TurnEnd

_BEST = {
    "nearest": "nearest",
    "thread": "thread",
    "compatible": "compatible",
    "same": "same",
    "words": "thread_words",
    "known": "known",
    "values": "thread_values",
    "fit": "fit",
    "follows": "follows",
    "raw": "raw",
    "raw_thread": "raw_thread",
    "rare": "rare_thread",
    "rare_share": "rare_share",
}
"""Columns of the new root that hold the best value of a column of the candidates."""
_LED = (
    "answer",
    "nearest",
    "thread",
    "compatible",
    "same",
    "follows",
    "turn_words",
    "thread_words",
    "only_words",
    "rare_share",
    "strange",
    "raw_best",
    "fit",
)

_CANDIDATE = (
    # similarity of the message to ...
    "answer",  # the answer
    "human",  # the human message before it
    "nearest",  # the nearer of the two
    "thread",  # the last turns of the thread on average, the latest weighing most
    "thread_best",  # the nearest text of the last turns
    "thread_human",  # the nearest human message of the turns before the last
    "opening",  # the message that opened the thread
    "soft_thread",  # the thread as the probabilities of earlier choices have it
    "sibling",  # the nearest human message that continued the turn
    # for vectors of one model only: cosines as they are, ...
    "raw",  # with the nearer of answer and human message
    "raw_thread",  # ... of the last turns of the thread on average
    "raw_best",  # ... the nearest of them
    # ... and learned from dialogs:
    "compatible",  # how well the message follows the turn
    "compatible_before",  # ... the turns before, the best of them
    "same",  # how well it fits the last turns of the thread
    "soft_same",  # ... the thread as the probabilities of earlier choices have it
    "own_fit",  # how well the turn itself followed what it continued
    "child_fit",  # how well what continued it did; the best
    "child_lead",  # how much better the message does
    # rarity of the words that the message shares with ...
    "answer_words",  # the answer
    "turn_words",  # the turn
    "thread_words",  # the last turns of the thread
    "only_words",  # this thread and no other
    "known",  # share of the message's words that the thread knows
    "rare_turn",  # the turn, by the rarity of words in general
    "rare_thread",  # ... the last turns of the thread
    "rare_share",  # what share of the message that is
    "unshared",  # rarity of the words of the message that the thread does not know
    "strange",  # ... as far as it is not near the thread by meaning either
    "values",  # numbers and names shared with the answer
    "thread_values",  # ... with the last turns of the thread
    *("fit_" + name for name in FITS),
    "fit",  # how many of them fit
    *("end_" + name for name in END_CUES),
    "before_farewell",  # the turn before the last wound up
    "closing",  # learned: how much the turn looks like the last of its thread
    # learned word by word: how well ...
    "follows",  # the message follows the answer
    "follows_before",  # ... the turns before, the best of them
    "own_follows",  # the turn itself followed what it continued
    "child_follows",  # what continued it did; the best
    "child_follows_lead",  # ... and how much better the message does
    "closing_words",  # the turn looks like the last of its thread
    # the place in the tree
    "latest",
    "second",  # end of the thread that was active before the latest
    "turns_since",  # logarithm of 1 + turns, and so on
    "threads_since",
    "depth",
    "continued",  # 1 if it has been continued
    "continued_softly",  # by the sum of probabilities
    "children",
    "child_since",  # turns since it was last continued
    "placed",  # probability with which it was placed itself
    "path_placed",  # ... and the turns before it
    *("lead_" + name for name in _LED),
)
_ROOT = (
    "root",
    "root_human",  # highest similarity to a human message
    "root_opening",  # highest similarity to one that opened a thread
    "root_nearest",
    "root_thread",
    "root_compatible",
    "root_same",
    "root_words",
    "root_known",
    "root_values",
    "root_fit",
    "root_follows",
    "root_raw",
    "root_raw_thread",
    "root_rare",
    "root_rare_share",
    "root_unshared",  # least
    "root_strange",  # least
    "root_opener",  # learned: how much the message looks like the first of a thread
    "root_opener_words",
)
_ALL = (
    "opener",
    "opener_words",
    "turns",
    "threads",
    "latest_asks",
    "latest_closed",
    "latest_placed",
    "latest_alone",
    "content",  # rarity of all words of the message
    "familiar",  # how near the message is to those that were learned on
    "stays",  # how often a turn continued the one before, of late
    "opens",  # how often one opened a thread
)
FEATURES = (
    *_CANDIDATE,
    *_ROOT,
    *("all_" + name for name in _ALL),
    *("heard_" + name for name in MESSAGE_CUES),
)
"""The columns of `Candidates.rows`."""
_AT = {name: place for place, name in enumerate(FEATURES)}


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of a choice: positions in time and a row of features for each.

    Attributes:
        positions: Indexes into the turn ends, rising; one row each.
        rows: One column for each of `FEATURES`; the last row is the new root.
        cosines: For each position, the greater cosine of message and turn; NaN without vectors.
        familiar: The similarity of the latest messages to those of the fit; `None` if not known.
    """

    positions: Places
    rows: Table
    cosines: Table
    familiar: float | None = None


def describe(
    turn_ends: Sequence[TurnEnd],
    human_vectors: Floats,
    answer_vectors: Floats,
    message: str,
    vector: Floats | None,
    reader: Reader,
    compatibility: Compatibility | None = None,
    among: Sequence[int] | None = None,
) -> Candidates:
    """The candidates for the parent of a message, each with a row of features.

    The arguments and errors are those of `choice.choose`; there must be at least one turn end. With `among`
    the candidates are the turn ends at these positions, rising, at least one, and a new root.

    Example:
        >>> import numpy as np
        >>> from langchain_threadmem.threads.features.phrases import ENGLISH
        >>> from langchain_threadmem.threads.model import reader
        >>> none = np.zeros((1, 0), np.float32)
        >>> turns = [TurnEnd(2, None, "Hello", "Hi!")]
        >>> found = describe(turns, none, none, "How are you?", None, reader(ENGLISH))
        >>> found.rows.shape == (2, len(FEATURES))
        True
    """
    previous, openings, places = links(turn_ends)
    count = len(turn_ends)
    ended = np.ones(count, bool)
    ended[previous[previous >= 0]] = False
    to_human, to_answer, cosines = np.zeros(count), np.zeros(count), np.full(count, np.nan)
    check_vectors(count, human_vectors, answer_vectors, vector)
    if vector is not None:
        cosines, to_human, to_answer = similarities(human_vectors, answer_vectors, vector)
    features, turns = reader.message(message), reader.turns(turn_ends)
    shared = Shared.of(turns, features)
    if among is None:
        nearest = shared.mass(features) if vector is None else np.maximum(to_human, to_answer)
        positions = shortlist(ended, nearest, least=-np.inf if vector is not None else 0.0)
    else:
        positions = np.array(among, np.intp)
    path = paths(previous, positions)
    inside = path >= 0
    decay = np.where(inside, PATH_DECAY ** np.arange(PATH), 0.0)
    weight = decay / decay.sum(1, keepdims=True)
    below, above = continued(previous, positions)
    softly, placed, tracks = probabilities(turn_ends, previous, places)

    columns = by_meaning(to_human, to_answer, openings, previous, path, weight, tracks)
    opener = familiar = 0.0
    usually = None
    if compatibility is not None and vector is not None:
        opener = float(vector @ compatibility.opener)
        familiar = float((compatibility.centers @ vector).max())
        late = (human_vectors[-LATELY:] @ compatibility.centers.T).max(1)
        usually = (float(late.sum()) + familiar) / (len(late) + 1)
        columns |= by_learning(
            compatibility,
            reader.fits,
            cosines,
            turn_ends,
            human_vectors,
            answer_vectors,
            vector,
            below,
            above,
            path,
            weight,
            tracks,
        )
    columns |= by_word_vectors(turns, path, features, below, above)
    columns |= by_words(turns, path, features, shared)
    columns |= by_strangeness(columns["unshared"], columns["thread_best"])
    columns |= by_ends(turns, path, features)
    columns |= by_place(previous, path, ended, softly, placed)
    leaves = ended[positions]
    stays, opens = habits(tracks)
    last = dict(zip(END_CUES, turns.ends[count - 1].tolist(), strict=True))
    root = {
        "root": 1.0,
        "root_opener": opener,
        "root_opener_words": features.words[-2],
        "root_human": to_human.max(),
        "root_opening": to_human[openings].max(),
        "root_unshared": columns["unshared"].min(),
        "root_strange": columns["strange"].min(),
    }
    common = {
        "opener": opener,
        "opener_words": features.words[-2],
        "turns": math.log1p(count),
        "threads": math.log1p(int(leaves.sum())),
        "latest_asks": last["asks"],
        "latest_closed": max(last["farewell"], last["human_farewell"]),
        "latest_placed": placed[-1],
        "latest_alone": float(previous[-1] < 0),
        "content": min(float(features.rarity.sum()), MOST_MASS),
        "familiar": familiar,
        "stays": stays,
        "opens": opens,
    }
    # Among given turns none may be an end: then each is compared with all others.
    rows = _rows(columns, leaves if leaves.any() else ~leaves, root, common, features.cues)
    return Candidates(positions, rows, cosines[positions], usually)


class _Layout(NamedTuple):
    """Positions of columns, among the columns that are computed and in `FEATURES`.

    Attributes:
        columns: In `FEATURES`, of each computed column.
        led: Among the computed columns, of those whose leads are computed.
        leads: In `FEATURES`, of these leads.
        of_best: Among the computed columns, of those whose best value the new root has.
        best: In `FEATURES`, of these best values.
    """

    columns: Places
    led: Places
    leads: Places
    of_best: Places
    best: Places


@cache
def _layout(names: tuple[str, ...]) -> _Layout:
    """The positions of computed columns, by their names."""
    at = {name: place for place, name in enumerate(names)}
    led = [name for name in _LED if name in at]
    best = {name: at[source] for name, source in _BEST.items() if source in at}
    places = (
        [_AT[name] for name in at],
        [at[name] for name in led],
        [_AT["lead_" + name] for name in led],
        list(best.values()),
        [_AT["root_" + name] for name in best],
    )
    return _Layout(*(np.array(one, np.intp) for one in places))


def _rows(
    columns: Mapping[str, Table | Floats],
    rivals: NDArray[np.bool_],
    root: Mapping[str, float],
    common: Mapping[str, float],
    cues: Sequence[float],
) -> Table:
    """The rows of the candidates and of a new root.

    Args:
        columns: The features of the candidates, by the names in `_CANDIDATE`.
        rivals: The candidates that others are compared with.
        root: The features of the new root, by the names in `_ROOT`; the best of the candidates are added.
        common: The features of all rows, by the names in `_ALL`.
        cues: The cues of the message.
    """
    table, layout = np.array(list(columns.values())), _layout(tuple(columns))
    # Built column by column, each in one piece of memory.
    rows = np.zeros((len(FEATURES), len(rivals) + 1))
    rows[layout.columns, :-1] = table
    rows[layout.leads, :-1] = _leads(table[layout.led], rivals)
    rows[layout.best, -1] = table[layout.of_best].max(1)
    for name, value in root.items():
        rows[_AT[name], -1] = value
    rows[_AT["all_" + _ALL[0]] :] = np.array([*(common[name] for name in _ALL), *cues])[:, None]
    return rows.T


def check_vectors(count: int, humans: Floats, answers: Floats, vector: Floats | None) -> None:
    """Refuse vectors that are not of one model, one of each for every turn end.

    Raises:
        InputError: The shapes do not fit together, or the vector is not finite.
    """
    if vector is None:
        return
    expected = (count, *vector.shape)
    if vector.ndim != 1 or humans.shape != expected or answers.shape != expected:
        raise InputError(
            f"{count!r} turn ends and a vector of shape {vector.shape!r} need matrices of shape "
            f"{expected!r}, not {humans.shape!r} and {answers.shape!r}; embed all with one model, "
            "or pass no vector"
        )
    if not np.isfinite(vector).all():
        raise InputError(f"the vector of a message is not finite: {vector!r}; pass None to go by words alone")


def _leads(table: Table, leaves: NDArray[np.bool_]) -> Table:
    """The lead of each candidate over the best other end of a thread, row by row.

    The lead of the only end of a thread is 0.
    """
    ends, rows = np.flatnonzero(leaves), np.arange(len(table))
    held = table[:, ends]
    first = held.argmax(1)
    best = held[rows, first]
    ahead: Table = table - best[:, None]
    held[rows, first] = -np.inf
    second = held.max(1) if len(ends) > 1 else best
    ahead[rows, ends[first]] = best - second
    return ahead
