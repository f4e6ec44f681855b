"""Second looks: a turn is scored again once its answer is known.

A message is placed before it is answered, and one that was placed wrongly misleads those that follow: errors
come in chains. The answer says what the message only hinted at. So when the next message comes, each turn
whose place was not sure is looked at once more, by its answer this time, among the candidates that were
likely for its message. Later choices go by what is believed of it then; the tree stays as it was chosen, for
that is what people and models were shown.

This helps where answers were not made from the choice, as in a conversation that is brought in from
elsewhere. A model that was shown the wrong thread answers as if it were the right one, so there it does not.
So an answer can cast doubt on a choice, but it never makes one surer; figures are in `docs/experiments.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from langchain_threadmem.threads.features.learned_words import Floats
from langchain_threadmem.threads.features.similarity import Compatibility
from langchain_threadmem.threads.features.structure import LEAST_CHANCE, Table
from langchain_threadmem.threads.features.table import describe
from langchain_threadmem.threads.features.words import Chances, Reader
from langchain_threadmem.threads.model import Networks, Way, score
from langchain_threadmem.threads.shortlist import alone
from langchain_threadmem.threads.turn_ends import TurnEnd

SURE = 0.9
"""A turn that was placed more surely is not looked at again."""
LATE = 32
"""How many of the latest turns are looked at again, and how many of those before each one with it. With 64 no
more choices are right, and a look takes a tenth longer."""
UNLIKELY = 1e-3
"""The chance of a new root that was not among the likely candidates."""
NEAR, CLEAR = 0.2, 0.25
"""Cosines. An answer that is less near to all candidates is about none of them. One that is nearer to one of
them, by so much more than to any other and than that, is clearly about it. With a model whose cosines are all
high neither happens, and every doubtful turn is looked at."""


@dataclass(frozen=True, slots=True)
class SecondLook:
    """What a scorer is given of a turn that has been answered.

    Attributes:
        ids: Of the turn ends that it may have continued, rising, then `None` for a new root.
        chances: How likely they were when only the message was known, what was chosen first.
        rows: For each the columns of `features.FEATURES`, of the answer as if it were a message; then the
            logarithm of that chance, and 1 if it was chosen.
        familiar: As in `features.Candidates`.
    """

    ids: Sequence[int | None]
    chances: Chances
    rows: Table
    familiar: float | None

    def revised(self, held: Networks) -> Chances:
        """The chances with the answer known, the likeliest first; as they were where it casts no doubt."""
        scores = score(held, self.rows, self.familiar)
        weighed: Table = np.exp(scores - scores.max())
        weighed /= weighed.sum()
        chosen, chance = self.chances[0]
        if weighed[self.ids.index(chosen)] > chance:
            return self.chances
        order = np.argsort(-weighed, kind="stable").tolist()
        return tuple((self.ids[row], float(weighed[row])) for row in order if weighed[row] >= LEAST_CHANCE)


def look_again(
    before: Sequence[TurnEnd],
    human_vectors: Floats,
    answer_vectors: Floats,
    turn: TurnEnd,
    vector: Floats | None,
    reader: Reader,
    compatibility: Compatibility | None,
) -> SecondLook | None:
    """Describe where a turn may belong now that its answer is known.

    Args:
        before: The turn ends before it, with what is believed of them.
        human_vectors: Unit vectors of their human messages, one row each.
        answer_vectors: Unit vectors of their answers, one row each.
        turn: The turn, as it was placed.
        vector: Unit vector of its answer; `None` to go by words alone.
        reader: Reads the texts.
        compatibility: What was learned on vectors of the model, if it is the local one.

    Returns:
        `None` where there is nothing to look at: the turn was placed surely, or not by its probabilities, or
        what it may have continued is gone, or its answer is clearly about what was chosen.
    """
    places = {end.id: place for place, end in enumerate(before)}
    among = sorted(places[id_] for id_, _ in turn.chances if id_ is not None and id_ in places)
    ids = [*(before[place].id for place in among), None]
    if not among or turn.previous not in ids or not doubtful(turn):
        return None
    if vector is not None:
        near = np.maximum(human_vectors[among] @ vector, answer_vectors[among] @ vector)
        if _is_clear(near, ids.index(turn.previous)):
            return None
    found = describe(before, human_vectors, answer_vectors, turn.answer, vector, reader, compatibility, among)
    likely = {None: UNLIKELY} | dict(turn.chances)
    chances = np.array([likely[id_] for id_ in ids])
    chosen = np.arange(len(ids)) == ids.index(turn.previous)
    rows = np.column_stack([found.rows, np.log(chances), chosen])
    return SecondLook(ids, tuple(turn.chances), rows, found.familiar)


def _is_clear(near: Floats, chosen: int) -> bool:
    """Whether an answer leaves no doubt of what was chosen, by how near it is to each; last is a new root."""
    if chosen == len(near):
        return bool(near.max() < NEAR)
    return bool(near[chosen] - np.delete(near, chosen).max(initial=NEAR) > CLEAR)


def doubtful(turn: TurnEnd) -> bool:
    """Whether a turn is to be looked at again: it was put where it seemed to belong, but not surely."""
    chances = turn.chances
    return len(chances) > 1 and chances[0][1] <= SURE and chances[0][0] == turn.previous


def reconsidered(
    turn_ends: Sequence[TurnEnd],
    human_vectors: Floats,
    answer_vectors: Floats,
    way: Way,
    reader: Reader,
    compatibility: Compatibility | None,
    held: Networks,
    version: int = 0,
) -> list[TurnEnd]:
    """The turn ends with what is believed of each, as far as its answer casts doubt on its place.

    Only the latest turns are looked at. Cost: a millisecond for each that was not looked at before; 4,096 are
    remembered, each for one version of the tree: what was said before a turn may have been moved since.
    """
    first = max(len(turn_ends) - LATE, 0)
    believed = list(turn_ends[:first])
    there = {None, *(end.id for end in believed)}
    for place, turn in enumerate(turn_ends[first:], first):
        if doubtful(turn):
            kept = tuple(turn.chances)
            key = (way, version, turn.id, turn.answer, kept)
            chances = reader.second_looks.get(key)
            if chances is None:
                late = slice(max(place - LATE, 0), place)
                vector = None if way == "words" else answer_vectors[place]
                vectors = human_vectors[late], answer_vectors[late]
                look = look_again(alone(believed[late]), *vectors, turn, vector, reader, compatibility)
                chances = look.revised(held) if look else kept
                reader.second_looks.put(key, chances)
            # What was believed in may be gone since, or be too old to be among these.
            if chances != kept and chances[0][0] in there:
                turn = replace(turn, previous=chances[0][0], chances=chances)
        believed.append(turn)
        there.add(turn.id)
    return believed
