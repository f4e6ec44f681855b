"""The places of the turns of a whole conversation, chosen with every answer known.

A selector in use places a message before its answer exists. In an imported conversation all answers exist,
and none of them depends on a choice that is made now. So each turn is placed by its message and its answer
together: the networks of `choice` weigh the candidates of the message, the networks of `second_look` weigh
them again by the answer, and later turns see the result.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from langchain_threadmem.common.arrays import Floats
from langchain_threadmem.common.visited import Visited
from langchain_threadmem.selection.choice import UNBIASED, prior_of, stored_chances, weigh
from langchain_threadmem.selection.features.structure import NEWEST, compared_turns
from langchain_threadmem.selection.features.table import describe
from langchain_threadmem.selection.features.words import Reader
from langchain_threadmem.selection.model import compatibility, input_of, networks, softmax
from langchain_threadmem.selection.second_look import UNLIKELY, look_again, ranked
from langchain_threadmem.selection.turn_ends import TurnEnd, TurnIndex, is_of_agent
from langchain_threadmem.tree.node import Bias, Chances

SURE = 0.98
"""The probability of a place above which its answer is not looked at."""
NEAREST = 24
"""The number of older turns that resemble a message, among which are candidates."""
TITLE = 40
BY_MESSAGE, BY_ANSWER = 0.4, 0.6
"""The weights of the logarithms of the probabilities by the message and by the answer: the networks for
second looks, which are fitted to doubt a choice, count the message too little."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a conversation.

    Attributes:
        end: The turn as a turn end. Its id is the number of the turn in the order of time, from 1; `previous`
            is the number of the turn that it continues now.
        fixed: Whether the turn stays where it is.
    """

    end: TurnEnd
    fixed: bool = False


class Sorter:
    """Places the turns of a conversation one after the other.

    Args:
        turns: The turns in the order of time; the number of a turn is its position and 1.
        humans: Unit vectors of their human messages, one row each; without columns for words alone.
        answers: Unit vectors of their answers, one row each.
        model: Name of the embedding model.
        reads: The reader of the texts, for the language of the conversation.
        bias: The bias of the owner.

    Example:
        >>> from langchain_threadmem.selection.model import reader
        >>> none = np.zeros((3, 0), np.float32)
        >>> turns = [
        ...     Turn(TurnEnd(1, None, "How do I read a CSV file in pandas?", "Use pandas.read_csv.")),
        ...     Turn(TurnEnd(2, 1, "Which wine goes with salmon?", "A dry Riesling.")),
        ...     Turn(TurnEnd(3, 2, "And if the CSV file has no header?", "Then pass header=None.")),
        ... ]
        >>> sorter = Sorter(turns, none, none, "", reader())
        >>> sorter.advance(3)
        >>> sorter.parents
        [None, None, 1]
    """

    def __init__(
        self,
        turns: Sequence[Turn],
        humans: Floats,
        answers: Floats,
        model: str,
        reads: Reader,
        bias: Bias = UNBIASED,
    ) -> None:
        self.turns = turns
        self.parents: list[int | None] = []
        """The number of the turn that each placed turn continues; `None` opens a thread."""
        self.chances: list[Chances] = []
        """The candidates of each placed turn and their probabilities; empty for a fixed turn."""
        self._way = input_of(model, humans.shape[1] or None, neutral=reads.is_neutral)
        self._has_vectors = not self._way.endswith("words")
        self._humans, self._answers = (
            rows if self._has_vectors else rows[:, :0] for rows in (humans, answers)
        )
        self._reads, self._bias, self._learned = reads, bias, compatibility(self._way)
        self._ends: list[TurnEnd] = []
        self._index = TurnIndex()
        self._above = {turn.end.id: turn.end.previous for turn in turns if turn.fixed}
        self._is_crossed = any((above or 0) > number for number, above in self._above.items())

    def advance(self, count: int) -> None:
        """Place the next turns. Cost: about 5 ms each."""
        for turn in self.turns[len(self.parents) : len(self.parents) + count]:
            self._place(turn)

    def _place(self, turn: Turn) -> None:
        number = turn.end.id
        chances: Chances = ()
        if turn.fixed:
            parent = turn.end.previous
        else:
            chances = self._weighed(turn) if self._ends else ((None, 1.0),)
            chances = tuple(pair for pair in chances if not self._leads_to(pair[0], number))
            parent = chances[0][0] if chances else None
        self.parents.append(parent)
        self.chances.append(chances)
        self._above[number] = parent
        known = parent is None or any(end.id == parent for end in self._index.upwards(parent))
        end = turn.end._replace(previous=parent if known else None, chances=chances)
        self._ends.append(end)
        self._index.put(end)

    def _leads_to(self, candidate: int | None, number: int) -> bool:
        """Whether a turn is above a candidate, since a person has placed a turn below a later turn."""
        visited = Visited()
        while self._is_crossed and candidate is not None and candidate != number:
            visited.add(candidate)
            candidate = self._above.get(candidate)
        return self._is_crossed and candidate is not None

    def _weighed(self, turn: Turn) -> Chances:
        """The candidates of a turn by its message and its answer, the likeliest first."""
        place = turn.end.id - 1
        vector = self._humans[place] if self._has_vectors else None
        compared = compared_turns(self._ends, self._index, self._similar(place))
        at = [end.id - 1 for end in compared]
        vectors = self._humans[at], self._answers[at]
        found = describe(compared, *vectors, turn.end.human, vector, self._reads, self._learned)
        prior = prior_of(compared, turn.end.human, self._reads, self._way)
        agent = is_of_agent(compared)
        weighed = weigh(networks(self._way, agent=agent), found, compared, self._bias, prior)
        chances = stored_chances(weighed)
        if turn.end.is_open:
            return chances
        placed = turn.end._replace(previous=chances[0][0], chances=chances)
        vector = self._answers[place] if self._has_vectors else None
        look = look_again(compared, *vectors, placed, vector, self._reads, self._learned, SURE)
        if look is None:
            return chances
        revised = dict(look.revised(networks(self._way, again=True, agent=agent), raises=True))
        both = [BY_MESSAGE * math.log(p) + BY_ANSWER * math.log(revised.get(c, UNLIKELY)) for c, p in chances]
        return ranked([candidate for candidate, _ in chances], softmax(np.array(both)))

    def _similar(self, place: int) -> list[int]:
        """The numbers of the older turns that are nearest to a message, the nearest first."""
        if len(self._ends) <= NEWEST or not self._has_vectors:
            return []
        older, vector = slice(self._ends[-NEWEST].id - 1), self._humans[place]
        near = np.maximum(self._humans[older] @ vector, self._answers[older] @ vector)
        numbers: list[int] = (np.argsort(-near, kind="stable")[:NEAREST] + 1).tolist()
        return numbers

    def reason(self, number: int) -> str:
        """The reason for the place of a turn, in a few words for people."""
        parent = self.parents[number - 1]
        if parent is None:
            return "opens a thread"
        if parent == number - 1:
            return "continues the turn before it"
        opening = parent
        visited = Visited()
        while (above := self._above.get(opening)) is not None:
            visited.add(opening)
            opening = above
        title = textwrap.shorten(self.turns[opening - 1].end.human, TITLE, placeholder=" ...")
        return f"returns to {title!r}"
