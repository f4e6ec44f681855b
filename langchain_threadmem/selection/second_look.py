"""Second looks: the scores of a placed turn, computed again with its answer.

A message is placed before its answer exists, and a wrong place misleads later choices. So before the next
message is placed, each turn with an uncertain place is scored again, by its answer, among the likely
candidates of its message. Later choices use the new probabilities. `heal` moves a turn to another place that
has become clearly likelier.

Second looks improve the choices if answers do not depend on the choice, as in imported conversations. A model
that was shown the wrong thread answers as if it were the right thread. So a second look can lower the
probability of a choice but never raises it; `benchmarks/README.md` has figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from langchain_threadmem.common.arrays import Floats
from langchain_threadmem.selection.features.similarity import Compatibility
from langchain_threadmem.selection.features.structure import LEAST_CHANCE, Table, detached
from langchain_threadmem.selection.features.table import describe
from langchain_threadmem.selection.features.words import Reader
from langchain_threadmem.selection.model import Networks, Way, compatibility, networks, score, softmax
from langchain_threadmem.selection.turn_ends import TurnEnd
from langchain_threadmem.tree.node import Chances

SURE = 0.9
"""The probability of a place above which there is no second look."""
LATE = 32
"""The number of latest turns that get second looks, and of earlier turns with which each is compared. With 64
turns the choices do not improve, and a second look is 10 % slower."""
READ_AGAIN = 16
"""The number of turns right before a turn whose change, for example by a move, needs a new second look. A
choice knows them for each of the latest turns, whatever older turns it compares."""
NEAR_TURNS = READ_AGAIN // 2
"""The number of turns right before a turn, and before each of these, among which a predecessor is read."""
UNLIKELY = 1e-3
"""The probability of a new root that was not among the likely candidates."""
NEAR, CLEAR = 0.2, 0.25
"""Limits of cosines. An answer below `NEAR` to all candidates is about none of them; an answer whose cosine
to a candidate exceeds `NEAR` and all other cosines by `CLEAR` is about that candidate. With an embedding
model whose cosines are all high neither case occurs, and every uncertain turn is scored again."""


@dataclass(frozen=True, slots=True)
class SecondLook:
    """The candidates of an answered turn.

    Attributes:
        ids: Ids of the candidates, ascending, then `None` for a new root.
        chances: Their probabilities without the answer, the chosen candidate first.
        rows: For each candidate the columns of `table.FEATURES`, with the answer in the place of the message;
            then the logarithm of its earlier probability, and 1 if it was chosen.
        familiar: As in `table.Candidates`.
    """

    ids: Sequence[int | None]
    chances: Chances
    rows: Table
    familiar: float | None

    def revised(self, ensemble: Networks, *, raises: bool = False) -> Chances:
        """The new probabilities, the likeliest first; unchanged if the probability of the choice would rise.

        Args:
            ensemble: The networks for second looks.
            raises: Whether the probability of the choice may rise: the answer does not depend on the choice.
        """
        weighed = softmax(score(ensemble, self.rows, self.familiar))
        chosen, chance = self.chances[0]
        if weighed[self.ids.index(chosen)] > chance and not raises:
            return self.chances
        return ranked(self.ids, weighed)


def ranked(ids: Sequence[int | None], chances: Table) -> Chances:
    """Candidates with their probabilities, the likeliest first; very unlikely candidates are left out."""
    order = np.argsort(-chances, kind="stable").tolist()
    return tuple([(ids[row], float(chances[row])) for row in order if chances[row] >= LEAST_CHANCE])


def look_again(
    before: Sequence[TurnEnd],
    human_vectors: Floats,
    answer_vectors: Floats,
    turn: TurnEnd,
    vector: Floats | None,
    reader: Reader,
    learned: Compatibility | None,
    sure: float = SURE,
) -> SecondLook | None:
    """The candidates of a turn, described by its answer.

    Args:
        before: The earlier turn ends, after their second looks.
        human_vectors: Unit vectors of their human messages, one row each.
        answer_vectors: Unit vectors of their answers, one row each.
        turn: The turn, as it was placed.
        vector: Unit vector of its answer; `None` for words alone.
        reader: The reader of the texts.
        learned: The learned matrices, for vectors of the local model.
        sure: The probability of the place above which there is no second look.

    Returns:
        `None` if the turn needs no second look: its place is certain or was not chosen by probability, its
        candidates are gone, or its answer is clearly about the chosen candidate.
    """
    places: dict[int | None, int] = {end.id: place for place, end in enumerate(before)}
    among = sorted([places[id_] for id_, _ in turn.chances if id_ in places])
    ids = [*[before[place].id for place in among], None]
    if not among or turn.previous not in ids or not doubtful(turn, sure):
        return None
    if vector is not None:
        near = np.maximum(human_vectors[among] @ vector, answer_vectors[among] @ vector)
        if _is_clear(near, ids.index(turn.previous)):
            return None
    candidates = describe(
        before, human_vectors, answer_vectors, turn.answer_with_calls, vector, reader, learned, among
    )
    likely = {None: UNLIKELY} | dict(turn.chances)
    chances = np.array([likely[id_] for id_ in ids])
    chosen = np.arange(len(ids)) == ids.index(turn.previous)
    rows = np.column_stack([candidates.rows, np.log(chances), chosen])
    return SecondLook(ids, tuple(turn.chances), rows, candidates.familiar)


def _is_clear(near: Floats, chosen: int) -> bool:
    """Whether the similarities of an answer confirm the chosen candidate; the last is a new root."""
    if chosen == len(near):
        return bool(near.max() < NEAR)
    return bool(near[chosen] - np.delete(near, chosen).max(initial=NEAR) > CLEAR)


def doubtful(turn: TurnEnd, sure: float = SURE) -> bool:
    """Whether a turn gets a second look: it has an answer, and its parent is the likeliest, but uncertain."""
    return bool(_doubtful([turn], sure))


def _doubtful(turns: Sequence[TurnEnd], sure: float = SURE) -> list[int]:
    """The positions of the turns that get second looks."""
    found = []
    for place, turn in enumerate(turns):
        chances = turn.chances
        if (
            len(chances) > 1
            and chances[0][1] <= sure
            and chances[0][0] == turn.previous
            and not (turn.settled or turn.is_open)
        ):
            found.append(place)
    return found


def reconsidered(
    turn_ends: Sequence[TurnEnd],
    human_vectors: Floats,
    answer_vectors: Floats,
    way: Way,
    reader: Reader,
    agent: bool = False,
) -> list[TurnEnd]:
    """The turn ends after second looks: uncertain turns with new probabilities and the likeliest parent.

    Only the latest turns get second looks. `agent` says whether the conversation is an agent's, which
    determines the networks. Cost: 1 ms for each second look that the reader has not cached, as after a change
    of one of the `READ_AGAIN` turns before.
    """
    first = max(len(turn_ends) - LATE, 0)
    revised = list(turn_ends[:first])
    known_ids = {None, *[end.id for end in revised]}
    skipped = min(first, READ_AGAIN)
    late_ends = turn_ends[first - skipped :]
    read = [hash((end.id, end.human, end.answer, end.calls, tuple(end.chances))) for end in late_ends]
    # An older predecessor may be unknown to the choice for another message.
    before = [
        end.previous if (end.previous or 0) >= late_ends[max(n - NEAR_TURNS, 0)].id else None
        for n, end in enumerate(late_ends)
    ]

    def second_look(place: int, turn: TurnEnd) -> Chances:
        late = slice(max(place - LATE, 0), place)
        vectors = human_vectors[late], answer_vectors[late]
        vector = None if way.endswith("words") else answer_vectors[place]
        look = look_again(detached(revised[late]), *vectors, turn, vector, reader, compatibility(way))
        return look.revised(networks(way, again=True, agent=agent)) if look else tuple(turn.chances)

    keys = {
        first + n: (
            way,
            agent,
            *read[max(skipped + n - READ_AGAIN, 0) : skipped + n + 1],
            *before[max(skipped + n - NEAR_TURNS, 0) : skipped + n + 1],
        )
        for n in _doubtful(turn_ends[first:])
    }
    known = dict(zip(keys, reader.second_looks.get_each(list(keys.values())), strict=True))
    for place, turn in enumerate(turn_ends[first:], first):
        if (key := keys.get(place)) is not None:
            stored = tuple(turn.chances)
            if (chances := known[place]) is None:
                reader.second_looks.put(key, chances := second_look(place, turn))
            # The likeliest parent may be removed, or older than these turns.
            if chances != stored and chances[0][0] in known_ids:
                turn = turn._replace(previous=chances[0][0], chances=chances)
        revised.append(turn)
        known_ids.add(turn.id)
    return revised
