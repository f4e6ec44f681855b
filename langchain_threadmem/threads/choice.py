"""The choice: from features to probabilities, a parent and a reason.

The pure part of the semantic thread selector: turn ends and vectors in, a `Choice` out; no
model is asked and nothing is embedded here. The nearest text alone is a poor guide: in task
dialogs most messages ("yes", "for two people") resemble nothing, and two threads on one
subject resemble each other. So `features.describe` gives every candidate a row of plain numbers,
the small networks of `network` score the rows, and the softmax of the scores is the answer.
They were fitted on interleaved dialogs, first as they truly run, then as such networks sort them:
in use a selector has to live with its own mistakes.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from langchain_threadmem.threads.features.learned_words import Floats
from langchain_threadmem.threads.features.structure import LEAST_CHANCE, Table
from langchain_threadmem.threads.features.table import Candidates, check_vectors, describe
from langchain_threadmem.threads.features.words import SAYS, Reader
from langchain_threadmem.threads.model import Networks, compatibility, networks, reader, score, way_to_go
from langchain_threadmem.threads.second_look import reconsidered
from langchain_threadmem.threads.turn_ends import TurnEnd

CHANCES_KEPT = 5
"""How many candidates of a choice later choices look at, at most."""
ONE_SUBJECT, STAYS, FEW_TURNS = 0.15, 0.6, 4
"""Most conversations that were learned from go on to other subjects, and many never do. So while there is one
thread alone, 15 of 100 more are taken to have but one subject, and the others to stay with their first from
one message to the next in 60 of 100: the longer it goes on, the likelier it is the only one. After four turns
no more is concluded, since people do get to something else in the end.
"""
GOES_BACK = 0.5
"""What was learned of going back is mostly of going back to another thread. Inside the only one there is that
is taken to be half as likely.
"""


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

    @property
    def kept(self) -> tuple[tuple[int | None, float], ...]:
        """The candidates that were likely at all: what is kept as `TurnEnd.chances` of the turn."""
        first = list(self.probabilities.items())[:CHANCES_KEPT]
        return tuple((candidate, chance) for candidate, chance in first if chance >= LEAST_CHANCE)


FIRST = Choice(None, 1.0, "the first message", MappingProxyType({None: 1.0}))


def choose(
    turn_ends: Sequence[TurnEnd],
    human_vectors: Floats,
    answer_vectors: Floats,
    message: str,
    vector: Floats | None,
    *,
    reads: Reader | None = None,
    model: str = "",
    version: int = 0,
) -> Choice:
    """Choose the turn end that a new human message continues, or a new root.

    Args:
        turn_ends: Turn ends of the whole conversation, oldest first.
        human_vectors: Unit vectors of their human messages, one row each.
        answer_vectors: Unit vectors of their answers, one row each.
        message: Text of the new human message.
        vector: Unit vector of the message; `None` to go by words alone.
        reads: Reads the texts, and keeps what it has read for later calls; by default a new one for English.
        model: Name of the model that the vectors are of. More was learned on the local one's.
        version: Of the tree: what is remembered of turns holds until it changes.

    Returns:
        The likeliest candidate; equal ones are settled in favour of the later turn.

    Raises:
        InputError: Rows, lengths or ids do not fit together, or a vector is not finite.

    Cost: 1.5 ms for 100 turns whose words have been read before (4,096 turns are remembered), some 20 ms if
    none have. A turn that is looked at again (`hindsight`) takes one more, once.
    The data file is read at the first call (20 ms).

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
        return FIRST
    way = way_to_go(model, None if vector is None else len(vector))
    learned = compatibility() if way == "local" else None
    check_vectors(len(turn_ends), human_vectors, answer_vectors, vector)
    given, reads, again = (human_vectors, answer_vectors), reads or reader(), networks(way, again=True)
    believed = reconsidered(turn_ends, *given, way, reads, learned, again, version)
    found = describe(believed, *given, message, vector, reads, learned)
    chances = weigh(networks(way), found, believed)
    ranked = likeliest(chances)
    ids: list[int | None] = [turn_ends[position].id for position in found.positions.tolist()]
    ids.append(None)
    return Choice(
        ids[ranked[0]],
        float(chances[ranked[0]]),
        # In words of the tree as it is, whatever is believed of it.
        _reason(turn_ends, found, ranked[0], message, reads),
        MappingProxyType({ids[row]: float(chances[row]) for row in ranked}),
    )


def weigh(held: Networks, found: Candidates, turn_ends: Sequence[TurnEnd]) -> Table:
    """The probability of each candidate, in the order of its rows."""
    scores = score(held, found.rows, found.familiar)
    if sum(end.previous is None for end in turn_ends) == 1:
        scores[-1] += math.log(_has_more(len(turn_ends)))
        scores[:-2] += math.log(GOES_BACK)  # The last turn is always a candidate, and comes before the root.
    chances: Table = np.exp(scores - scores.max())
    chances /= chances.sum()
    return chances


def _has_more(turns: int) -> float:
    """How likely a conversation has more than the one subject of its first turns, by Bayes' rule."""
    stayed = (1.0 - ONE_SUBJECT) * STAYS ** min(turns, FEW_TURNS)
    return stayed / (stayed + ONE_SUBJECT)


def likeliest(chances: Table) -> list[int]:
    """The rows, the likeliest first; of equal ones the later turn, and a new root before any turn."""
    # Rows rise with time and the root comes last: read backwards, the first best is the latest.
    order = np.argsort(-chances[::-1], kind="stable")
    return [len(chances) - 1 - int(place) for place in order]


def _reason(turn_ends: Sequence[TurnEnd], found: Candidates, row: int, message: str, reads: Reader) -> str:
    if row == len(found.positions):
        heard = reads.message(message).heard
        opens = "greeting" if heard[SAYS["greeting"]] else "request" if heard[SAYS["request"]] else ""
        return f"new topic: opens with a {opens}" if opens else "new topic: nothing fits well enough"
    position = int(found.positions[row])
    if position == len(turn_ends) - 1:
        return "continues the last thread"
    opening, by_id = turn_ends[position], {end.id: end for end in turn_ends}
    while opening.previous is not None:
        opening = by_id[opening.previous]
    title = (
        opening.summary.title if opening.summary else textwrap.shorten(opening.human, 40, placeholder=" ...")
    )
    cosine = float(found.cosines[row])
    measured = "" if math.isnan(cosine) else f" (similarity {cosine:.2f})"
    continued = any(end.previous == turn_ends[position].id for end in turn_ends)
    return f"{'branches off inside' if continued else 'returns to'} {title!r}{measured}"
