"""Word features: the words that messages and turns share, and their cues.

`Reader` computes the features of single texts and caches them. The functions fill columns of
`table.FEATURES`, one number for each candidate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.common import forking
from langchain_threadmem.common.arrays import Floats
from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.selection.features.cues import (
    END_CUES,
    MESSAGE_CUES,
    DescribedAnswer,
    announces,
    end_cues,
    leaning,
    message_cues,
    names,
    recalled,
    restores,
    terms,
)
from langchain_threadmem.selection.features.phrases import Phrases
from langchain_threadmem.selection.features.similarity import WordVectors
from langchain_threadmem.selection.features.structure import (
    Table,
    ThreadEnds,
    best_before,
    children,
    fitted,
)
from langchain_threadmem.selection.turn_ends import TurnEnd
from langchain_threadmem.tree.node import Chances

REMEMBERED = 4096
"""The number of turns, and of messages, that a reader caches."""
ENOUGH_WORDS = 8.0
"""The maximum rarity of shared words in a feature, about three rare words."""
LONG_MESSAGE, LONG_TURN = 6, 30
"""The number of terms of a message, and of a turn, above which shared terms count less."""
ENOUGH_VALUES = 3
MOST_MASS = 28.0
"""The maximum rarity, by the word in general, of words shared with a thread: four rare words."""
LAST = np.iinfo(np.intp).max
"""A position after all others."""
END_CUE_AT = {name: place for place, name in enumerate(END_CUES)}
MESSAGE_CUE_AT = {name: place for place, name in enumerate(MESSAGE_CUES)}
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
"""The end cue of an answer that asks a question, and the message cues of a fitting reply."""
_ASKED = [END_CUE_AT[asked] for asked, _ in FITS.values()]
_GIVEN = np.array(
    [[MESSAGE_CUE_AT[name] for name in (*given, *given[-1:] * 4)[:4]] for _, given in FITS.values()]
)
_HUMAN, _ANSWER, _HUMAN_NAME, _ANSWER_NAME = 1, 2, 4, 8
"""The roles of a word in a turn, as bits: a term, or a name or number, of the human message or the answer."""


_SIGNATURE = 32
"""The size of the signature of a turn, in numbers of 64 bits, in which each of its words sets a bit. The
signatures tell which turns may share a word with a message; the words of the others need not be looked up."""
_BITS = 64 * _SIGNATURE
Signatures: TypeAlias = NDArray[np.uint64]


def _signature(words: Iterable[str]) -> Signatures:
    bits = 0
    for word in words:
        bits |= 1 << hash(word) % _BITS
    return np.frombuffer(bits.to_bytes(_BITS // 8, "little"), np.uint64)


class _TurnRoles(NamedTuple):
    """The features of one turn: the roles of each of its words, and its row in `Reader.turns`."""

    roles: dict[str, int]
    numbers: Floats


class _Turns:
    """A cache of the features of turns, in the rows of one array."""

    def __init__(self) -> None:
        self._lock = forking.lock()
        self._clear(np.zeros((0, 0), np.float32))

    def _clear(self, table: Floats) -> None:
        self._rows: dict[tuple[str, str], int] = {}
        self._roles: list[dict[str, int]] = []
        self._table = table
        self._signatures = np.zeros((len(table), _SIGNATURE), np.uint64)

    def of(
        self, texts: Sequence[tuple[str, str]], make: Callable[[tuple[str, str]], _TurnRoles]
    ) -> tuple[list[dict[str, int]], Signatures, Floats]:
        """The words of turns, their signatures, and their numbers, one row each, and a last, empty row.

        Args:
            texts: The human message and the answer of each turn.
            make: Computes the features of a turn.
        """
        with self._lock:
            rows = list(map(self._rows.get, texts, repeat(-1)))
            if -1 in rows:
                if len(self._roles) + rows.count(-1) > REMEMBERED:
                    self._clear(self._table)
                    rows = [-1] * len(rows)
                rows = [
                    self._add(pair, make) if row < 0 else row for pair, row in zip(texts, rows, strict=True)
                ]
            roles = list(map(self._roles.__getitem__, rows))
            return roles, self._signatures.take(rows, 0), self._table.take([*rows, -1], 0)

    def _add(self, pair: tuple[str, str], make: Callable[[tuple[str, str]], _TurnRoles]) -> int:
        row = self._rows.get(pair)
        if row is None:
            roles, numbers = make(pair)
            row = self._rows[pair] = len(self._roles)
            if row + 1 >= len(self._table):  # The last row stays empty.
                size = max(2 * len(self._table), 128)
                table, signatures = self._table[:row], self._signatures[:row]
                self._table = np.zeros((size, len(numbers)), np.float32)
                self._signatures = np.zeros((size, _SIGNATURE), np.uint64)
                if row:
                    self._table[:row], self._signatures[:row] = table, signatures
            self._table[row], self._signatures[row] = numbers, _signature(roles)
            self._roles.append(roles)
        return row


@dataclass(frozen=True, eq=False)
class MessageFeatures:
    """The features of a message. Its cues are computed at their first use: most messages need none.

    Attributes:
        text: The message.
        phrases: The phrases of its language.
        terms: Its terms, in alphabetical order.
        names: Its numbers and names, in alphabetical order.
        rarity: The rarity of each term.
        words: The result of `WordVectors.of_message`.
    """

    text: str
    phrases: Phrases
    terms: Sequence[str]
    names: Sequence[str]
    rarity: Table
    words: Floats

    @cached_property
    def cues(self) -> tuple[float, ...]:
        """A number for each of `cues.MESSAGE_CUES`."""
        return message_cues(self.text, self.phrases)

    @cached_property
    def gifts(self) -> Table:
        """For each of `FITS`, whether the message is a fitting reply."""
        gifts: Table = np.array(self.cues)[_GIVEN].max(1)
        return gifts

    @cached_property
    def leaning(self) -> float:
        """The result of `cues.leaning`."""
        return leaning(self.text, self.phrases)

    @cached_property
    def announces(self) -> bool:
        """The result of `cues.announces`."""
        return announces(self.text, self.phrases)

    @cached_property
    def digresses(self) -> bool:
        """Whether the message begins with a digression ("by the way")."""
        return self.phrases.digressing.match(self.text.lower()) is not None

    @cached_property
    def restores(self) -> str:
        """The result of `cues.restores`."""
        return restores(self.text, self.phrases)

    @cached_property
    def recalled(self) -> DescribedAnswer | None:
        """The result of `cues.recalled`."""
        return recalled(self.text, self.phrases)


@dataclass(frozen=True, slots=True)
class TurnFeatures:
    """The features of turns, one row each, and a last, empty row, which index -1 reads.

    Attributes:
        texts: The human message and the answer of each turn.
        roles: The words of each turn, with their roles.
        signatures: The signatures of these words.
        ends: (rows, cues) a column for each of `cues.END_CUES`.
        size: (rows,) the number of terms in both texts.
        answers: (rows, rank) the word vectors of the answers.
        humans: (rows, rank) the word vectors of the human messages.
        closing: (rows,) the learned weight of the turn as the last of its thread.
    """

    texts: Sequence[tuple[str, str]]
    roles: Sequence[Mapping[str, int]]
    signatures: Signatures
    ends: Floats
    size: Floats
    answers: Floats
    humans: Floats
    closing: Floats

    def containing(self, terms: Set[str]) -> list[int]:
        """For each turn the number of the terms that it contains."""
        return [sum(roles.get(term, 0) & (_HUMAN | _ANSWER) > 0 for term in terms) for roles in self.roles]


@dataclass(frozen=True, eq=False)
class Reader:
    """Computes and caches the features of texts in one language.

    Attributes:
        phrases: The phrases of the language.
        word_vectors: The learned word vectors; `NO_WORDS` for a language without learned words.
        fits: How well a human message follows the answer before it, by the texts of answer and message.
        second_looks: The probabilities of turns after their second looks, by all input of a second look.
    """

    phrases: Phrases
    word_vectors: WordVectors
    fits: dict[tuple[str, str], float] = field(default_factory=dict)
    second_looks: LruCache[tuple[object, ...], Chances] = field(default_factory=lambda: LruCache(REMEMBERED))
    _messages: LruCache[str, MessageFeatures] = field(default_factory=lambda: LruCache(REMEMBERED))
    _turns: _Turns = field(default_factory=lambda: _Turns())

    @cached_property
    def is_neutral(self) -> bool:
        """Whether the features are without learned words."""
        return not self.word_vectors.vocabulary

    def message(self, text: str) -> MessageFeatures:
        """The features of a message; 0.1 ms if they are not cached."""
        return self._messages.setdefault(text, lambda: self._message(text))

    def _message(self, text: str) -> MessageFeatures:
        phrases = self.phrases
        ordered = sorted(terms(text, phrases))  # The order of a set of strings differs between processes.
        return MessageFeatures(
            text,
            phrases,
            ordered,
            sorted(names(text, phrases)),
            self.word_vectors.rarities(ordered),
            self.word_vectors.of_message(text),
        )

    def turns(self, turn_ends: Sequence[TurnEnd]) -> TurnFeatures:
        """The features of turns; 0.2 ms for each that is not cached."""
        texts = [(turn.human, turn.answer_with_calls if turn.calls else turn.answer) for turn in turn_ends]
        roles, signatures, table = self._turns.of(texts, self._turn)
        rank, scalars = self.word_vectors.rank, len(END_CUES) + 2
        answers, humans = table[:, scalars : scalars + rank], table[:, scalars + rank :]
        return TurnFeatures(
            texts,
            roles,
            signatures,
            table[:, : scalars - 2],
            table[:, scalars - 2],
            answers,
            humans,
            table[:, scalars - 1],
        )

    def _turn(self, texts: tuple[str, str]) -> _TurnRoles:
        human_text, answer_text = texts
        phrases = self.phrases
        message, answer = self.message(human_text), terms(answer_text, phrases)
        human, asks, follows = message.terms, message.words, self.word_vectors.of_answer(answer_text)
        cues = [*end_cues(human_text, answer_text, phrases), len(human) + len(answer), asks[-1] + follows[-1]]
        numbers = np.concatenate([np.array(cues, np.float32), follows[:-1], asks[:-2]])
        roles: dict[str, int] = dict.fromkeys(human, _HUMAN)
        by_role = (
            (answer, _ANSWER),
            (message.names, _HUMAN_NAME),
            (names(answer_text, phrases), _ANSWER_NAME),
        )
        for words, role in by_role:
            for word in words:
                roles[word] = roles.get(word, 0) | role
        return _TurnRoles(roles, numbers)


@dataclass(frozen=True, slots=True)
class Shared:
    """The words that turns share with a message, one row for each turn, and a last, empty row.

    Attributes:
        answers: (rows, terms) whether the answer contains the term of the message.
        turns: (rows, terms) whether the turn contains the term.
        values: (rows, names) whether the answer contains the number or name of the message.
        either: (rows, names) whether the turn contains the number or name.
    """

    answers: NDArray[np.bool_]
    turns: NDArray[np.bool_]
    values: NDArray[np.bool_]
    either: NDArray[np.bool_]

    @classmethod
    def of(cls, turns: TurnFeatures, message: MessageFeatures) -> Shared:
        """Compare turns with a message."""
        columns = {word: place for place, word in enumerate({*message.terms, *message.names})}
        roles = np.zeros((len(turns.ends), len(columns)), np.uint8)
        for row in np.flatnonzero((turns.signatures & _signature(columns)).any(1)).tolist():
            words = turns.roles[row]
            for word in columns.keys() & words.keys():
                roles[row, columns[word]] = words[word]
        terms = roles[:, list(map(columns.__getitem__, message.terms))]
        names = roles[:, list(map(columns.__getitem__, message.names))]
        return cls(
            terms & _ANSWER > 0,
            terms & (_HUMAN | _ANSWER) > 0,
            names & _ANSWER_NAME > 0,
            names & (_HUMAN_NAME | _ANSWER_NAME) > 0,
        )

    def mass(self, message: MessageFeatures) -> Table:
        """The total rarity of the words that each turn shares with the message."""
        return self.turns[:-1] @ message.rarity


ENDS_AND_FITS = (*("end_" + name for name in END_CUES), *("fit_" + name for name in FITS))
"""The columns of the first table that `by_ends` returns."""


def by_ends(
    turns: TurnFeatures, paths: ThreadEnds, message: MessageFeatures
) -> tuple[Table, dict[str, Table | Floats]]:
    """The end cues of the turns, and whether the message is a fitting reply.

    Returns:
        A row for each of `ENDS_AND_FITS`, and further columns.
    """
    ends = turns.ends[paths.last]
    fits = ends[:, _ASKED] * message.gifts
    before = turns.ends[paths.turns[:, 1], END_CUE_AT["human_farewell"]]
    return np.concatenate([ends, fits], 1).T, {"fit": fits.sum(1), "before_farewell": before}


def by_word_vectors(
    turns: TurnFeatures, paths: ThreadEnds, message: MessageFeatures
) -> dict[str, Table | Floats]:
    """How well the message follows the turns, by learned word vectors."""
    follows, last = (turns.answers @ message.words[:-2])[paths.turns], paths.last
    fits = (turns.answers[paths.above] * turns.humans[paths.below]).sum(1)
    own, best = fitted(len(turns.ends), paths, fits)
    return {
        "follows": follows[:, 0],
        "follows_before": best_before(follows, paths.inside),
        "own_follows": own[last],
        **children("child_follows", "child_follows_lead", follows[:, 0], best[last]),
        "closing_words": turns.closing[last],
    }


_SHARED_WORDS = ("answer_words", "turn_words", "thread_words", "only_words")


def by_words(
    turns: TurnFeatures, paths: ThreadEnds, message: MessageFeatures, shared: Shared
) -> dict[str, Table | Floats]:
    """The rarity of the words, and the number of values, that a turn and its thread share with the message.

    Long texts share words by chance, so their shared words count for less.
    """
    path, inside, last = paths.turns, paths.inside, paths.last
    threads: NDArray[np.bool_] = np.logical_or.reduce(shared.turns[path], axis=1)
    # Branches of a thread share their oldest turns: a word that only these branches contain counts for each.
    oldest = np.where(inside, path, LAST).min(1)[:, None]
    only: NDArray[np.bool_] = np.where(threads, oldest, -1).max(0) == np.where(threads, oldest, LAST).min(0)
    is_compared = np.zeros(len(turns.roles) + 1, bool)
    is_compared[path] = True
    compared = np.flatnonzero(is_compared[:-1])
    rarity = np.log((len(compared) + 1) / (shared.turns[compared].sum(0) + 0.5))
    size = turns.size[path]
    own = math.sqrt(min(1.0, LONG_MESSAGE / max(len(message.terms), 1)))
    turn = np.sqrt(LONG_TURN / np.maximum(size[:, 0], LONG_TURN)) * own
    usual = LONG_TURN * inside.sum(1)
    thread = np.sqrt(usual / np.maximum(size.sum(1), usual))
    mass, masses = float(message.rarity.sum()), (threads @ message.rarity) * thread

    in_turn = shared.turns[last]
    # One row for each of the first four columns.
    scores = np.minimum(
        np.array([shared.answers[last], in_turn, threads, threads & only]) @ rarity, ENOUGH_WORDS
    )
    scores *= np.array([turn, turn, thread, thread])
    scores[2:] *= own
    return {
        **dict(zip(_SHARED_WORDS, scores, strict=True)),
        "known": threads.sum(1) / max(len(message.terms), 1) * thread,
        "rare_turn": np.minimum(in_turn @ message.rarity, MOST_MASS) * turn,
        "rare_thread": np.minimum(masses, MOST_MASS) * own,
        "rare_share": masses / (mass + 1.0),
        "unshared": np.minimum(mass - masses, MOST_MASS),
        "values": np.minimum(shared.values[last].sum(1), ENOUGH_VALUES) * turn,
        "thread_values": np.minimum(shared.either[path].any(1).sum(1), ENOUGH_VALUES) * thread * own,
    }
