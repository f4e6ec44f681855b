"""Similarity features: embeddings of the message compared with embeddings of turns and threads.

The functions fill columns of `table.FEATURES`, one number for each candidate.

`WordVectors` measures how well a message follows an answer, by learned vectors of words. A number follows
"for how many?", a yes follows "is that right?". Each of several thousand common words has two short vectors:
one for the end of an answer and one for the beginning of a message. The dot product of the sums of these
vectors measures the fit. Words outside of the vocabulary, such as words of another language, are ignored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.common.arrays import Floats
from langchain_threadmem.errors import InputError
from langchain_threadmem.selection.features.structure import (
    LEAST,
    Table,
    ThreadEnds,
    Tree,
    along,
    best_after,
    best_before,
    children,
    fitted,
)

CALIBRATION_TURNS = 32
"""The number of latest turns from which the mean similarity is estimated."""
PRIOR_PAIRS = 8.0
"""The weight of the prior of the mean similarity, as a number of pairs of texts."""
CACHED_FITS = 16_384
"""The number of cached fits of a message to the turn before it."""
STRANGE = 2.0
"""The similarity, in standard deviations, above which two texts are near."""
MESSAGE_START = 300
"""The number of characters at the beginning of a message that are read."""
ANSWER_END = 160
"""The number of characters at the end of an answer that are read."""
NUMBER = "<number>"
RAREST = 7.0
"""The rarity of a term outside of `WordVectors.common`, for a frequency of about one dialog in a thousand."""

_TOKEN = re.compile(r"\d+|[^\W\d_]+(?:'[^\W\d_]+)*|\?")


@dataclass(frozen=True, eq=False)
class Compatibility:
    """Matrices learned on the vectors of one embedding model: how well messages follow turns.

    A turn of human message `h` and answer `a` is followed well by a message `m` where
    `a @ answer @ m + h @ human @ m` is high.

    Attributes:
        answer: (dimensions, dimensions)
        human: (dimensions, dimensions)
        thread: (dimensions, dimensions) `(a + h) @ thread @ m` measures whether the message belongs to the
            thread of the turn.
        opener: (dimensions,) weights of a message as the first of a thread.
        closing: (2, dimensions) weights of an answer, and of a human message, as the last of a thread.
        centers: (clusters, dimensions) cluster centres of the training messages.
    """

    answer: Floats
    human: Floats
    thread: Floats
    opener: Floats
    closing: Floats
    centers: Floats

    def fits(
        self,
        cache: dict[tuple[str, str], float],
        texts: Sequence[tuple[str, str]],
        humans: Floats,
        answers: Floats,
        paths: ThreadEnds,
    ) -> Floats:
        """The fit of the turns `paths.below` to the turns `paths.above`.

        Args:
            cache: Results of earlier calls, by the text of the answer and of the next message.
            texts: The human message and the answer of each turn.
            humans: Vectors of their human messages.
            answers: Vectors of their answers.
            paths: The ends of the threads of the candidates.
        """
        above, below = paths.above.tolist(), paths.below.tolist()
        pairs = [(texts[before][1], texts[after][0]) for before, after in zip(above, below, strict=True)]
        fits = [cache.get(pair) for pair in pairs]
        for place, fit in enumerate(fits):
            if fit is None:
                before = above[place]
                key = answers[before] @ self.answer + humans[before] @ self.human
                fits[place] = cache[pairs[place]] = float(key @ humans[below[place]])
        if len(cache) > CACHED_FITS:
            cache.clear()
        return np.array(fits, np.float32)


def similarities(humans: Floats, answers: Floats, vector: Floats) -> tuple[Table, Table, Table]:
    """The message's cosine with the nearer text of each turn, then its cosines with the human messages and
    with the answers, standardized by the similarities in the conversation.
    """
    to_human, to_answer = humans @ vector, answers @ vector
    late_humans, late_answers = humans[-CALIBRATION_TURNS:], answers[-CALIBRATION_TURNS:]
    among, across = late_humans @ late_humans.T, late_answers @ late_humans.T
    own, own_pairs = among.diagonal(), across.diagonal()  # Own pairs are nearer than others.
    total = squares = 0.0
    for part in (to_human, to_answer, among, across):
        total += float(part.sum())
        squares += float(np.vdot(part, part))
    total -= float(own.sum() + own_pairs.sum())
    squares -= float(own @ own + own_pairs @ own_pairs)
    count = 2 * (len(to_human) + len(own) * (len(own) - 1))
    if not math.isfinite(total):
        raise InputError("a vector of an earlier turn is not finite; embed the turn again, or pass no vector")
    # The prior: unrelated texts are about twice as far apart as a message and its answer.
    apart = max(1.0 - float(own_pairs.sum()) / len(own_pairs), (1.0 - total / count) / 4, 1e-6)
    weight = count + PRIOR_PAIRS
    usual = (total + PRIOR_PAIRS * (1.0 - 2.0 * apart)) / weight
    around = max(squares - 2.0 * usual * total + count * usual**2, 0.0)
    spread = math.sqrt((around + PRIOR_PAIRS * (0.4 * apart) ** 2) / weight)
    both = np.array([to_human, to_answer], float)
    to_human, to_answer = (both - usual) / spread
    return both.max(0), to_human, to_answer


def by_meaning(to_human: Table, to_answer: Table, tree: Tree, paths: ThreadEnds) -> dict[str, Table | Floats]:
    """The similarity of the message to the turn, to its ancestors and to the turns that continue it."""
    nearest, both = np.maximum(to_human, to_answer), (to_human + to_answer) / 2
    inside, positions, path = paths.inside, paths.last, paths.turns
    return {
        "answer": to_answer[positions],
        "human": to_human[positions],
        "nearest": nearest[positions],
        "thread": (both[path] * paths.weight).sum(1),
        "thread_best": np.where(inside, nearest[path], LEAST).max(1),
        "thread_human": best_before(to_human[path], inside),
        "opening": to_human[tree.openings[positions]],
        "soft_thread": along(both, tree.tracks)[positions],
        "sibling": best_after(to_human, tree.previous)[positions],
    }


def by_learning(
    learned: Compatibility,
    cache: dict[tuple[str, str], float],
    cosines: Table,
    texts: Sequence[tuple[str, str]],
    humans: Floats,
    answers: Floats,
    vector: Floats,
    tree: Tree,
    paths: ThreadEnds,
) -> dict[str, Table | Floats]:
    """Features of vectors of the local model, by learned matrices and by plain cosines."""
    positions, inside, path, weight = paths.last, paths.inside, paths.turns, paths.weight
    near = cosines[path]
    topic = learned.thread @ vector
    belongs = answers @ topic + humans @ topic
    follows = (answers @ (learned.answer @ vector) + humans @ (learned.human @ vector))[path]
    own, best = fitted(len(humans), paths, learned.fits(cache, texts, humans, answers, paths))
    return {
        "raw": near[:, 0],
        "raw_thread": (near * weight).sum(1),
        "raw_best": np.where(inside, near, -1.0).max(1),
        "same": (belongs[path] * weight).sum(1),
        "soft_same": along(belongs, tree.tracks)[positions],
        "compatible": follows[:, 0],
        "compatible_before": best_before(follows, inside),
        "own_fit": own[positions],
        **children("child_fit", "child_lead", follows[:, 0], best[positions]),
        "closing": answers[positions] @ learned.closing[0] + humans[positions] @ learned.closing[1],
    }


def by_strangeness(unshared: Table | Floats, nearest: Table | Floats) -> dict[str, Table | Floats]:
    """The share of a message that is new to the thread, in words and in meaning.

    A long message that resembles no turn opens a thread; a short message such as "yes" does not.
    """
    far = np.clip((STRANGE - nearest) / (2 * STRANGE), 0.0, 1.0)
    return {"strange": unshared * far}


def message_words(text: str) -> set[str]:
    """The words of a message for `WordVectors`; every number is the same word.

    Example:
        >>> sorted(message_words("At 7, for two?"))
        ['<number>', '?', 'at', 'for', 'two']
    """
    return _words(text[:MESSAGE_START])


def answer_words(text: str) -> set[str]:
    """The words of an answer for `WordVectors`."""
    return _words(text[-ANSWER_END:])


def _words(text: str) -> set[str]:
    tokens = _TOKEN.findall(text.lower().replace("\u2019", "'"))
    return {NUMBER if word.isdigit() else word for word in tokens}


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Learned vectors and numbers of the words of a vocabulary.

    Attributes:
        vocabulary: The words, in the order of the rows.
        answer: (words, rank) the vector of a word at the end of an answer.
        message: (words, rank) the vector of a word at the beginning of a message.
        opener: (words,) the weight of a word for the first message of a thread.
        closing: (2, words) the weight of a word, in the answer and in the human message, for the last turn of
            a thread.
        common: Common terms (`cues.terms`), in the order of `rarity`.
        rarity: The negative logarithm of the share of dialogs that contain each term.
    """

    vocabulary: tuple[str, ...]
    answer: Floats
    message: Floats
    opener: Floats
    closing: Floats
    common: tuple[str, ...] = ()
    rarity: Floats = field(default_factory=lambda: np.zeros(0, np.float32))

    @cached_property
    def rank(self) -> int:
        """The number of dimensions of a vector."""
        return int(self.answer.shape[1])

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """The row of each word."""
        return {word: row for row, word in enumerate(self.vocabulary)}

    @cached_property
    def _rarities(self) -> Mapping[str, float]:
        return dict(zip(self.common, self.rarity.tolist(), strict=True))

    def rarities(self, terms: Iterable[str]) -> NDArray[np.float64]:
        """The rarity of each term."""
        return np.array([self._rarities.get(term, RAREST) for term in terms], np.float64)

    def shares(self, words: Iterable[str]) -> tuple[list[int], float]:
        """The rows of the words of the vocabulary, and the weight of each row."""
        all_rows = self.rows
        rows = sorted([all_rows[word] for word in words if word in all_rows])
        return rows, (len(rows) + 1) ** -0.5

    def of_message(self, text: str) -> Floats:
        """The vector of a message, then its weight as an opening and its weight as the end of a thread."""
        return self._sum(self._of_messages, message_words(text))

    def of_answer(self, text: str) -> Floats:
        """The vector of an answer, then its weight as the end of a thread."""
        return self._sum(self._of_answers, answer_words(text))

    @cached_property
    def _of_messages(self) -> Floats:
        return np.column_stack([self.message, self.opener, self.closing[1]])

    @cached_property
    def _of_answers(self) -> Floats:
        return np.column_stack([self.answer, self.closing[0]])

    def _sum(self, table: Floats, words: Iterable[str]) -> Floats:
        rows, share = self.shares(words)
        vector: Floats = table[rows].sum(0) * np.float32(share)
        return vector


NO_WORDS = WordVectors(
    (), *(np.zeros((0, 1), np.float32),) * 2, np.zeros(0, np.float32), np.zeros((2, 0), np.float32)
)
"""An empty vocabulary, for languages without learned words; every term has the rarity of an unknown term."""
