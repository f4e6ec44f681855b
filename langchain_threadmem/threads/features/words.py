"""Word features: what messages and turns share in words; each turn is read once.

`Reader` keeps what it read of the latest texts, as sets of words and one row of numbers for each turn. The
functions below fill some of the columns of `features.FEATURES` from them, one number for each candidate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.threads.features.cues import ENDED, HEARD, end_cues, message_cues, names, terms
from langchain_threadmem.threads.features.learned_words import Floats, Wording
from langchain_threadmem.threads.features.phrases import Cues
from langchain_threadmem.threads.features.structure import LEAST, Places, Table
from langchain_threadmem.threads.turn_ends import TurnEnd

REMEMBERED = 4096
"""How many turns, and how many messages, a reader keeps what it read of."""
Chances = tuple[tuple[int | None, float], ...]
"""Candidates for the parent of a turn and their probabilities, the likeliest first."""
ENOUGH_WORDS = 8.0
"""Rarity of shared words is counted up to here, about three rare words."""
LONG_MESSAGE, LONG_TURN = 6, 30
"""How many telling words a message and a turn may have before what they share counts for less."""
ENOUGH_VALUES = 3
MOST_MASS = 28.0
"""Words that the message shares with a thread count up to here, four that are not common."""
LAST = np.iinfo(np.intp).max
"""A place after all others."""
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
_ASKED = [ENDS[asked] for asked, _ in FITS.values()]
_GIVEN = [[SAYS[gift] for gift in given] for _, given in FITS.values()]
_HUMAN, _ANSWER, _HUMAN_NAME, _ANSWER_NAME = 1, 2, 4, 8
"""What a word is in a turn: a term of its human message or answer, a number or name in one of them."""


class _Turn(NamedTuple):
    """What one turn tells: the words that its texts hold, what each is there, and numbers in the order of
    `Reader.turns`.
    """

    words: frozenset[str]
    roles: dict[str, int]
    numbers: Floats


@dataclass(frozen=True, slots=True)
class Said:
    """What a message tells.

    Attributes:
        heard: A number for each of `telling.HEARD`.
        terms: Its telling words, in alphabetical order.
        names: Numbers and names in it, in alphabetical order.
        rarity: Of each of its terms.
        words: As `Wording.of_message` gives it.
    """

    heard: tuple[float, ...]
    terms: Sequence[str]
    names: Sequence[str]
    rarity: Table
    words: Floats


@dataclass(frozen=True, slots=True)
class Told:
    """What some turns tell, one row each, and a row of nothing at the end, which is also row -1.

    Attributes:
        turns: The words that they hold.
        ends: (rows, columns) a column for each of `telling.ENDED`.
        size: (rows,) how many telling words both texts have.
        answers: (rows, rank) the answers as `Wording` has them.
        humans: (rows, rank) the human messages.
        closing: (rows,) how much the turn looks like the last of its thread.
    """

    turns: Sequence[_Turn]
    ends: Floats
    size: Floats
    answers: Floats
    humans: Floats
    closing: Floats


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads texts by the words of a language, and by what was learned about words.

    Attributes:
        cues: Words of the language.
        wording: What was learned.
        fits: How well the human message of a turn followed the answer before it, by the two texts.
        second_looks: The probabilities of turns that were scored again, by all that they depend on.
    """

    cues: Cues
    wording: Wording
    fits: LruCache[tuple[str, str], float] = field(default_factory=lambda: LruCache(REMEMBERED))
    second_looks: LruCache[tuple[object, ...], Chances] = field(default_factory=lambda: LruCache(REMEMBERED))
    _messages: LruCache[str, Said] = field(default_factory=lambda: LruCache(REMEMBERED))
    _turns: LruCache[tuple[str, str], _Turn] = field(default_factory=lambda: LruCache(REMEMBERED))

    def message(self, text: str) -> Said:
        """Read a new message: 0.1 ms if it is not among the latest 4,096."""
        return self._messages.setdefault(text, lambda: self._message(text))

    def _message(self, text: str) -> Said:
        # The order of a set of words differs between two runs of Python.
        ordered = sorted(terms(text, self.cues))
        return Said(
            message_cues(text, self.cues),
            ordered,
            sorted(names(text)),
            self.wording.rarities(ordered),
            self.wording.of_message(text),
        )

    def turns(self, turn_ends: Sequence[TurnEnd]) -> Told:
        """Read turns: 0.2 ms for each that was not among the latest 4,096."""
        read = self._turns.several([(turn.human, turn.answer) for turn in turn_ends], self._turn)
        rank, known = self.wording.rank, len(ENDED) + 2
        none = np.zeros(known + 2 * rank, np.float32)
        table = np.concatenate([*(turn.numbers for turn in read), none]).reshape(-1, len(none))
        answers, humans = table[:, known : known + rank], table[:, known + rank :]
        return Told(read, table[:, : known - 2], table[:, known - 2], answers, humans, table[:, known - 1])

    def _turn(self, texts: tuple[str, str]) -> _Turn:
        said, answered = texts
        message, answer = self.message(said), terms(answered, self.cues)
        human, asks, follows = message.terms, message.words, self.wording.of_answer(answered)
        known = [*end_cues(said, answered, self.cues), len(human) + len(answer), asks[-1] + follows[-1]]
        numbers = np.concatenate([np.array(known, np.float32), follows[:-1], asks[:-2]])
        roles: dict[str, int] = dict.fromkeys(human, _HUMAN)
        held = ((answer, _ANSWER), (message.names, _HUMAN_NAME), (names(answered), _ANSWER_NAME))
        for words, role in held:
            for word in words:
                roles[word] = roles.get(word, 0) | role
        return _Turn(frozenset(roles), roles, numbers)


@dataclass(frozen=True, slots=True)
class Shared:
    """What turns share with a message, one row each, and a row of nothing at the end.

    Attributes:
        answers: (rows, terms) which terms of the message each answer holds.
        turns: (rows, terms) ... each turn.
        values: (rows, names) which of its numbers and names each answer holds.
        either: (rows, names) ... each turn.
    """

    answers: NDArray[np.bool_]
    turns: NDArray[np.bool_]
    values: NDArray[np.bool_]
    either: NDArray[np.bool_]

    @classmethod
    def of(cls, told: Told, said: Said) -> Shared:
        """Compare turns with a message."""
        columns = {word: place for place, word in enumerate({*said.terms, *said.names})}
        every = frozenset(columns)
        roles = np.zeros((len(told.ends), len(columns)), np.uint8)
        for row, turn in enumerate(told.turns):
            for word in every & turn.words:
                roles[row, columns[word]] = turn.roles[word]
        terms = roles[:, [columns[word] for word in said.terms]]
        names = roles[:, [columns[name] for name in said.names]]
        return cls(
            terms & _ANSWER > 0,
            terms & (_HUMAN | _ANSWER) > 0,
            names & _ANSWER_NAME > 0,
            names & (_HUMAN_NAME | _ANSWER_NAME) > 0,
        )

    def mass(self, said: Said) -> Table:
        """For each turn the rarity of the words that it shares with the message."""
        return self.turns[:-1] @ said.rarity


def by_ends(told: Told, path: Places, said: Said) -> dict[str, Table | Floats]:
    """How the turns ended, and whether the message gives what they asked for.

    Args:
        told: All turns.
        path: For each candidate the rows of the last turns of its thread, its own first, -1 where it is
            shorter.
        said: The message.
    """
    ends = told.ends[path[:, 0]]
    gifts = [max([said.heard[gift] for gift in given]) for given in _GIVEN]
    fits = ends[:, _ASKED] * np.array(gifts)
    return {
        **{"end_" + name: ends[:, place] for name, place in ENDS.items()},
        **{"fit_" + name: fits[:, place] for place, name in enumerate(FITS)},
        "fit": fits.sum(1),
        "before_farewell": told.ends[path[:, 1], ENDS["human_farewell"]],
    }


def by_wording(
    told: Told, path: Places, said: Said, below: Places, above: Places
) -> dict[str, Table | Floats]:
    """What the words tell by what was learned about what follows what.

    Args:
        told: All turns.
        path: As for `by_ends`.
        said: The message.
        below: Rows of turns that are candidates or continue one, ...
        above: ... and of what each continues.
    """
    follows, last = (told.answers @ said.words[:-2])[path], path[:, 0]
    own, best = fitted(len(told.ends), below, above, (told.answers[above] * told.humans[below]).sum(1))
    return {
        "follows": follows[:, 0],
        "follows_before": best_before(follows, path >= 0),
        "own_follows": own[last],
        **children("child_follows", "child_follows_lead", follows[:, 0], best[last]),
        "closing_words": told.closing[last],
    }


def fitted(count: int, below: Places, above: Places, fits: Floats) -> tuple[Floats, Floats]:
    """For each turn how well it followed what it continues, and the best of those that continued it."""
    own, best = np.zeros(count, np.float32), np.full(count, LEAST, np.float32)
    own[below] = fits
    np.maximum.at(best, above, fits)
    return own, best


def children(fit: str, lead: str, follows: Floats, best: Floats) -> dict[str, Floats]:
    """Two columns: how well what continued a turn did, at best, and how much better the message does.

    Both are 0 where none did.
    """
    continued = best > LEAST
    return {fit: np.where(continued, best, 0.0), lead: np.where(continued, follows - best, 0.0)}


def best_before(values: Table | Floats, inside: NDArray[np.bool_]) -> Table | Floats:
    """The greatest value among the turns before the last of each thread; 0 where there are none."""
    best = np.where(inside[:, 1:], values[:, 1:], LEAST).max(1)
    return np.where(inside[:, 1], best, 0.0)


def by_words(told: Told, path: Places, said: Said, shared: Shared) -> dict[str, Table | Floats]:
    """Rarity of the words, and the number of values, that a turn and its thread share with the message.

    Long texts share words by chance, so what they share counts for less.

    Args:
        told: All turns.
        path: As for `by_ends`.
        said: The message.
        shared: What they share with it.
    """
    inside, last = path >= 0, path[:, 0]
    threads: NDArray[np.bool_] = np.logical_or.reduce(shared.turns[path], axis=1)
    # Threads that fork share their oldest turns: a word that only they hold is still theirs alone.
    oldest = np.where(inside, path, LAST).min(1)[:, None]
    only: NDArray[np.bool_] = np.where(threads, oldest, -1).max(0) == np.where(threads, oldest, LAST).min(0)
    seen = np.zeros(len(told.turns) + 1, bool)
    seen[path] = True
    looked = np.flatnonzero(seen[:-1])
    rarity = np.log((len(looked) + 1) / (shared.turns[looked].sum(0) + 0.5))
    size = told.size[path]
    own = math.sqrt(min(1.0, LONG_MESSAGE / max(len(said.terms), 1)))
    turn = np.sqrt(LONG_TURN / np.maximum(size[:, 0], LONG_TURN)) * own
    usual = LONG_TURN * inside.sum(1)
    thread = np.sqrt(usual / np.maximum(size.sum(1), usual))
    mass, masses = float(said.rarity.sum()), (threads @ said.rarity) * thread

    def score(found: NDArray[np.bool_], by: Table = rarity, most: float = ENOUGH_WORDS) -> Table:
        return np.asarray(np.minimum(found @ by, most))

    return {
        "answer_words": score(shared.answers[last]) * turn,
        "turn_words": score(shared.turns[last]) * turn,
        "thread_words": score(threads) * thread * own,
        "only_words": score(threads & only) * thread * own,
        "known": threads.sum(1) / max(len(said.terms), 1) * thread,
        "rare_turn": score(shared.turns[last], said.rarity, MOST_MASS) * turn,
        "rare_thread": np.minimum(masses, MOST_MASS) * own,
        "rare_share": masses / (mass + 1.0),
        "unshared": np.minimum(mass - masses, MOST_MASS),
        "values": np.minimum(shared.values[last].sum(1), ENOUGH_VALUES) * turn,
        "thread_values": np.minimum(shared.either[path].any(1).sum(1), ENOUGH_VALUES) * thread * own,
    }
