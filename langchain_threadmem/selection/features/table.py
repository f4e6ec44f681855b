"""The feature table: one row of numbers for each candidate parent of a message.

Candidates are a new root, the ends of the threads, the latest turns even if another turn continues them, and
the nearest turns. Inner turns are candidates because an old answer may be answered twice, and because a
message that was placed in the wrong thread replaces the end of that thread.

A row contains the cues of the message (`heard_...`, the same in all rows), the cues at the end of the
candidate's turn, the similarity of both by meaning and by words, the lead over the best other candidate
(`lead_...`), and the place of the candidate in the tree. Earlier choices count by their probability: a turn
that was placed below an answer with a probability of 0.6 continues the answer by 0.6.

Similarities are standardized by their mean and spread in the conversation, so embeddings whose cosines all
lie between 0.7 and 0.9 work like embeddings whose cosines use the whole range. `phrases.Phrases` contains all
data of a language.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.common.arrays import Floats
from langchain_threadmem.errors import InputError
from langchain_threadmem.selection.features.cues import END_CUES, MESSAGE_CUES
from langchain_threadmem.selection.features.similarity import (
    Compatibility,
    by_learning,
    by_meaning,
    by_strangeness,
    similarities,
)
from langchain_threadmem.selection.features.structure import (
    LATELY,
    Places,
    Table,
    ThreadEnds,
    Tree,
    by_place,
    habits,
    shortlist,
)
from langchain_threadmem.selection.features.words import (
    ENDS_AND_FITS,
    FITS,
    MOST_MASS,
    Reader,
    Shared,
    by_ends,
    by_word_vectors,
    by_words,
)
from langchain_threadmem.selection.turn_ends import TurnEnd

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
"""Columns of the new root, and the columns of the candidates whose greatest value they contain."""
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
    # Standardized similarity of the message to:
    "answer",  # the answer
    "human",  # the human message of the turn
    "nearest",  # the nearer of both
    "thread",  # the weighted mean of the last turns of the thread
    "thread_best",  # the nearest text of the last turns
    "thread_human",  # the nearest human message of the turns before the last
    "opening",  # the message that opened the thread
    "soft_thread",  # all threads that may lead to the turn, by the probabilities of earlier choices
    "sibling",  # the nearest human message that continues the turn
    # For vectors of the local model, cosine of the message with:
    "raw",  # the nearer of answer and human message
    "raw_thread",  # the weighted mean of the last turns of the thread
    "raw_best",  # the nearest text of the last turns
    # For vectors of the local model, learned from dialogs:
    "compatible",  # how well the message follows the turn
    "compatible_before",  # how well it follows an earlier turn of the thread; the best
    "same",  # how well it belongs to the last turns of the thread
    "soft_same",  # how well it belongs to all threads that may lead to the turn
    "own_fit",  # how well the turn follows its predecessor
    "child_fit",  # how well another turn follows the turn; the best
    "child_lead",  # "compatible" less "child_fit"
    # Rarity in the conversation of the words that the message shares with:
    "answer_words",  # the answer
    "turn_words",  # the turn
    "thread_words",  # the last turns of the thread
    "only_words",  # this thread and no other
    "known",  # share of the message's words that the thread contains
    # Rarity in general of the words that the message shares with:
    "rare_turn",  # the turn
    "rare_thread",  # the last turns of the thread
    "rare_share",  # the same, as a share of the message
    "unshared",  # rarity of the message's words that the thread does not contain
    "strange",  # "unshared", reduced by the similarity of message and thread
    "values",  # count of numbers and names shared with the answer
    "thread_values",  # count of numbers and names shared with the last turns of the thread
    *("fit_" + name for name in FITS),
    "fit",  # sum of these
    *("end_" + name for name in END_CUES),
    "before_farewell",  # the human message of the turn before is a farewell
    "closing",  # learned: how much the turn looks like the last of its thread
    # By learned word vectors:
    "follows",  # how well the message follows the answer
    "follows_before",  # how well it follows an earlier answer of the thread; the best
    "own_follows",  # how well the turn follows its predecessor
    "child_follows",  # how well another turn follows the turn; the best
    "child_follows_lead",  # "follows" less "child_follows"
    "closing_words",  # how much the turn looks like the last of its thread
    # Place in the tree; counts as log(1 + count):
    "latest",
    "second",  # end of the thread that was active before the latest
    "turns_since",
    "threads_since",
    "depth",
    "continued",  # 1 if a turn continues it
    "continued_softly",  # expected number of turns that continue it
    "children",
    "child_since",  # turns since the latest turn that continues it
    "placed",  # probability of its place
    "path_placed",  # probability of the places of the last turns of the thread
    *("lead_" + name for name in _LED),
)
_ROOT = (
    "root",
    "root_human",  # highest similarity to a human message
    "root_opening",  # highest similarity to a message that opened a thread
    *("root_" + name for name in _BEST),
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
    "familiar",  # similarity of the message to the training messages
    "stays",  # share of the latest turns that continue the turn before
    "opens",  # share of the latest turns that open a thread
)
FEATURES = (
    *_CANDIDATE,
    *_ROOT,
    *("all_" + name for name in _ALL),
    *("heard_" + name for name in MESSAGE_CUES),
)
"""The columns of `Candidates.rows`."""
_AT = {name: place for place, name in enumerate(FEATURES)}
_ENDS = [_AT[name] for name in ENDS_AND_FITS]
_OF_ALL = slice(_AT["all_" + _ALL[0]], None)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of a choice and their features.

    Attributes:
        positions: Indexes into the turn ends, ascending; one row each.
        ids: Ids of these turn ends, then `None` for a new root.
        rows: One column for each of `FEATURES`; the last row is the new root.
        cosines: For each position, the cosine of the message with the nearer text of the turn; NaN without
            vectors.
        familiar: The similarity of the latest messages to the training messages; `None` without vectors of
            the local model.
    """

    positions: Places
    ids: Sequence[int | None]
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

    Arguments and errors are those of `choice.choose`; at least one turn end is needed. With `among` the
    candidates are a new root and the turn ends at these positions, ascending, at least one.

    Example:
        >>> import numpy as np
        >>> from langchain_threadmem.selection.features.phrases import phrases_in
        >>> from langchain_threadmem.selection.model import reader
        >>> none = np.zeros((1, 0), np.float32)
        >>> turns = [TurnEnd(2, None, "Hello", "Hi!")]
        >>> candidates = describe(turns, none, none, "How are you?", None, reader())
        >>> candidates.rows.shape == (2, len(FEATURES))
        True
    """
    tree, count = Tree.of(turn_ends), len(turn_ends)
    to_human, to_answer, cosines = np.zeros(count), np.zeros(count), np.full(count, np.nan)
    check_vectors(count, human_vectors, answer_vectors, vector)
    if vector is not None:
        cosines, to_human, to_answer = similarities(human_vectors, answer_vectors, vector)
    features, turns = reader.message(message), reader.turns(turn_ends)
    shared = Shared.of(turns, features)
    if among is None:
        nearest = shared.mass(features) if vector is None else np.maximum(to_human, to_answer)
        positions = shortlist(tree.ended, nearest, least=-np.inf if vector is not None else 0.0)
        if features.restores:  # The message may continue an older turn of the last thread.
            positions = np.union1d(positions, [tree.openings[-1], max(tree.previous[-1], 0)])
        if features.recalled:
            positions = np.union1d(positions, np.flatnonzero(turns.containing(features.recalled.terms)))
    else:
        positions = np.array(among, np.intp)
    paths = ThreadEnds.of(tree.previous, positions)
    # Without vectors, and without learned words, these columns are zero.
    columns: dict[str, Table | Floats] = {"thread_best": np.zeros(len(positions))}
    if vector is not None:
        columns |= by_meaning(to_human, to_answer, tree, paths)
    opener = familiar = 0.0
    familiarity = None
    if compatibility is not None and vector is not None:
        opener = float(vector @ compatibility.opener)
        familiar = float((compatibility.centers @ vector).max())
        late = (human_vectors[-LATELY:] @ compatibility.centers.T).max(1)
        familiarity = (float(late.sum()) + familiar) / (len(late) + 1)
        columns |= by_learning(
            compatibility,
            reader.fits,
            cosines,
            turns.texts,
            human_vectors,
            answer_vectors,
            vector,
            tree,
            paths,
        )
    if not reader.is_neutral:
        columns |= by_word_vectors(turns, paths, features)
    columns |= by_words(turns, paths, features, shared)
    columns |= by_strangeness(columns["unshared"], columns["thread_best"])
    ends, columns_of_ends = by_ends(turns, paths, features)
    columns |= columns_of_ends | by_place(tree, paths)
    leaves = tree.ended[positions]
    stays, opens = habits(tree.tracks)
    last = dict(zip(END_CUES, turns.ends[count - 1].tolist(), strict=True))
    root = {
        "root": 1.0,
        "root_opener": opener,
        "root_opener_words": features.words[-2],
        "root_human": to_human.max(),
        "root_opening": to_human[tree.openings].max(),
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
        "latest_placed": tree.placed[-1],
        "latest_alone": float(tree.previous[-1] < 0),
        "content": min(float(features.rarity.sum()), MOST_MASS),
        "familiar": familiar,
        "stays": stays,
        "opens": opens,
    }
    # If `among` contains no end of a thread, each candidate is compared with all others.
    rows = _rows(columns, ends, leaves if leaves.any() else ~leaves, root, common, features.cues)
    ids = [*[turn_ends[position].id for position in positions.tolist()], None]
    return Candidates(positions, ids, rows, cosines[positions], familiarity)


class _ColumnLayout(NamedTuple):
    """Positions of columns in the table of computed columns and in `FEATURES`.

    Attributes:
        columns: The positions in `FEATURES` of the computed columns.
        led: The computed columns that have a lead.
        leads: The positions in `FEATURES` of these leads.
        of_best: The computed columns whose greatest value is a column of the new root.
        best: The positions in `FEATURES` of these greatest values.
    """

    columns: Places
    led: Places
    leads: Places
    of_best: Places
    best: Places


@cache
def _layout(names: tuple[str, ...]) -> _ColumnLayout:
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
    return _ColumnLayout(*(np.array(positions, np.intp) for positions in places))


def _rows(
    columns: Mapping[str, Table | Floats],
    ends: Table,
    rivals: NDArray[np.bool_],
    root: Mapping[str, float],
    common: Mapping[str, float],
    cues: Sequence[float],
) -> Table:
    """The rows of the candidates and of a new root.

    Args:
        columns: The features of the candidates, by the names in `_CANDIDATE`, without those of `ends`.
        ends: A row for each of `ENDS_AND_FITS`.
        rivals: The candidates over which leads are computed.
        root: The features of the new root, by the names in `_ROOT`, without those of `_BEST`.
        common: The features of all rows, by the names in `_ALL`.
        cues: The cues of the message.
    """
    table, layout = np.array(list(columns.values())), _layout(tuple(columns))
    # Built transposed, since each column is then contiguous in memory.
    rows = np.zeros((len(FEATURES), len(rivals) + 1))
    rows[layout.columns, :-1] = table
    rows[_ENDS, :-1] = ends
    rows[layout.leads, :-1] = _leads(table[layout.led], rivals)
    rows[layout.best, -1] = table[layout.of_best].max(1)
    for name, value in root.items():
        rows[_AT[name], -1] = value
    rows[_OF_ALL] = np.array([*[common[name] for name in _ALL], *cues])[:, None]
    return rows.T


def check_vectors(count: int, humans: Floats, answers: Floats, vector: Floats | None) -> None:
    """Refuse vectors of different models, or not one row for each turn end.

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
        raise InputError(f"the vector of a message is not finite: {vector!r}; pass None to use words alone")


def _leads(table: Table, rivals: NDArray[np.bool_]) -> Table:
    """The lead of each candidate over the best other rival, row by row; the lead of a single rival is 0."""
    ends, rows = np.flatnonzero(rivals), np.arange(len(table))
    scores = table[:, ends]
    first = scores.argmax(1)
    best = scores[rows, first]
    ahead: Table = table - best[:, None]
    scores[rows, first] = -np.inf
    second = scores.max(1) if len(ends) > 1 else best
    ahead[rows, ends[first]] = best - second
    return ahead
