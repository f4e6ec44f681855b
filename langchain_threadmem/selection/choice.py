"""The choice of a parent for a message: features, probabilities and a reason.

`choose` is the pure part of the semantic selector: it takes turn ends and vectors, and returns a `Choice`.
Similarity alone selects badly: in task dialogs most messages ("yes", "for two people") resemble no earlier
message, and two threads on one subject resemble each other. So `features.table.describe` computes a row of
features for each candidate, the networks of `model` score the rows, and the softmax of the scores gives the
probabilities. The networks are trained on interleaved dialogs, first in their true threads, then in the
threads that trained networks choose, because later choices depend on the errors of earlier choices.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from langchain_threadmem.common.arrays import Floats
from langchain_threadmem.common.cache import cache_of_texts
from langchain_threadmem.common.visited import circle
from langchain_threadmem.selection.features.phrases import language_of
from langchain_threadmem.selection.features.structure import LEAST_CHANCE, Table
from langchain_threadmem.selection.features.table import Candidates, check_vectors, describe
from langchain_threadmem.selection.features.words import END_CUE_AT, MESSAGE_CUE_AT, MessageFeatures, Reader
from langchain_threadmem.selection.model import (
    Networks,
    Way,
    compatibility,
    input_of,
    networks,
    reader,
    score,
    softmax,
)
from langchain_threadmem.selection.second_look import reconsidered
from langchain_threadmem.selection.turn_ends import TurnEnd, is_of_agent
from langchain_threadmem.tree.node import Bias, Chances

CHANCES_KEPT = 8
"""The maximum number of candidates of a choice whose probabilities are stored. With five, coverage misses the
turn of 42 of the 539 follow-ups of agents with five matters each, with eight of 35; dev costs the same.
"""
ONE_SUBJECT, STAYS, FEW_TURNS = 0.15, 0.6, 4
"""The prior probability that a conversation has a single subject, the probability that the next message of
another conversation stays with the first subject, and the number of turns that count. The prior applies while
a conversation has one thread; the training conversations all have several subjects.
"""
UNBIASED = Bias()


class Prior(NamedTuple):
    """What is known of the place of a message beside the scores of the networks.

    Attributes:
        last: The factor on the odds of the last turn.
        greeted: Whether the thread of the last turn consists of greetings.
        announced: Whether the message announces another subject than that of the last turn.
        recalls: The earlier turn to which the message goes back, by each turn of its thread.
    """

    last: float = 1.0
    greeted: bool = False
    announced: bool = False
    recalls: Mapping[int, int] = MappingProxyType({})


NO_PRIOR = Prior()
GOES_BACK = 0.5
"""The factor on the probability of the earlier turns of a single thread: in the training dialogs most returns
are to another thread.
"""
LATEST = 4
"""The number of latest turns that determine the language of a message whose words do not determine it."""
AFTER_GREETINGS = 0.01
"""The share of the probability of a new root that stays after a greeting, which the first request continues:
19 of 22 training conversations that open with a greeting continue it, but the networks give a new root a
probability of 0.99.
"""
LEANS, LEANS_OF_AGENT = 50.0, 3.0
"""The factor on the odds of the last turn for a message without a subject of its own, and in the conversation
of an agent. In the training dialogs 758 of 759 such messages continue the last turn, but the networks learned
from conversations in which they return to other threads too. People who wait for several tasks of an agent
answer with such messages to any of them: 67 of 94 continue the last turn. By the first factor 522 of 754
parents in the conversations with tools are right, by the second 532; 5 more of 621 follow-ups are covered.
"""
GOES_ON = 0.5
"""The factor on the odds of the last turn of an agent's conversation whose answer asks nothing: the task is
done, or waits for others. The networks expect 181 of 570 such messages of the agents' conversations to
continue the last turn, and 133 do.
"""
DIGRESSES = 0.15
"""The factor on the odds of the last turn for a message that begins with a digression: of eight in chats that
no fit uses none continues the last turn, of which the networks expect three, and six open a thread.
"""
LEAVES = 1000.0
"""The divisor of the odds of the last thread for a message that announces another subject ("new topic: ...").
Of 23,007 messages of the training conversations five do, and all open a thread. Without it 7 of 100 announced
subjects continue the last thread, and nearly all whose subject is near that of the last thread.
"""
RESTORES = 0.9
"""The share of the probability of a thread that goes to the earlier answer to which the message goes back. Of
39,927 messages of the training conversations six go back to a first answer: three continue it, one the
second, and two, of dialogs without branches, the last. With the other tenth, coverage still shows the last
turn.
"""
QUESTION_ALONE = 200
"""The number of characters below which an answer with a question at its end is no version of anything."""
WORDS_OF_GREETING = 2
"""The maximum number of terms of a greeting, such as "morning"."""
OPEN, OPEN_BY_LEARNING, OPEN_AND_SAYS_NOTHING = 2.0, 3.0, 1000.0
"""The factor on the odds of the last turn if nothing answers it yet; with vectors for which matrices were
learned; and for a message that repeats the question of the turn, is a greeting or has no terms. A person who
stops an answer usually completes or corrects the question, but the training dialogs have no open turns.
If the answer of the last turn is taken away, the second factor places 92 % of the messages of `threads_dev`
that continue the turn and 89 % of those that open a thread; by words the first places 87 % and 84 %.
"""


@dataclass(frozen=True, slots=True)
class Choice:
    """The parent of a message, its probability and a reason.

    Attributes:
        reason: The reason, in a few words for people.
        probabilities: The probability of each candidate, the likeliest first; they sum to 1. A candidate is
            the `id` of a turn end, or `None` for a new root.
        turn_ends: The turn ends that were compared, after their second looks.
    """

    reason: str
    probabilities: Mapping[int | None, float]
    turn_ends: Sequence[TurnEnd] = ()

    @property
    def parent_id(self) -> int | None:
        """`id` of the turn end to continue; `None` for a new root."""
        return next(iter(self.probabilities))

    @property
    def stored_chances(self) -> Chances:
        """The candidates to store as `TurnEnd.chances`."""
        return stored_chances(self.probabilities)


def stored_chances(probabilities: Mapping[int | None, float]) -> Chances:
    """The likeliest candidates, at most `CHANCES_KEPT`, without very unlikely candidates."""
    first = islice(probabilities.items(), CHANCES_KEPT)
    return tuple([(candidate, chance) for candidate, chance in first if chance >= LEAST_CHANCE])


_PREVIOUS = attrgetter("previous")
FIRST = Choice("the first message", {None: 1.0})


def choose(
    turn_ends: Sequence[TurnEnd],
    human_vectors: Floats,
    answer_vectors: Floats,
    message: str,
    vector: Floats | None,
    *,
    reads: Reader | None = None,
    model: str = "",
    bias: Bias = UNBIASED,
) -> Choice:
    """Choose the turn end that a new human message continues, or a new root.

    Args:
        turn_ends: The turn ends, oldest first.
        human_vectors: Unit vectors of their human messages, one row each.
        answer_vectors: Unit vectors of their answers, one row each.
        message: Text of the new human message.
        vector: Unit vector of the message; `None` for a choice by words alone.
        reads: The reader of the texts, which caches their features; by default a new reader for the language
            of the message.
        model: Name of the embedding model. Vectors of the local model have additional features.
        bias: The bias of the owner.

    Returns:
        The likeliest candidate; of equally likely candidates the latest.

    Raises:
        InputError: Rows, lengths or ids do not fit together, or a vector is not finite.

    Cost: 1.5 ms for 100 cached turns (`reads` caches 4,096), about 20 ms for 100 others, 1 ms for each second
    look. The first call reads the data file (20 ms).

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
    reads = reads or reader(language_of_message(turn_ends, message))
    way = input_of(model, None if vector is None else len(vector), neutral=reads.is_neutral)
    check_vectors(len(turn_ends), human_vectors, answer_vectors, vector)
    if way.endswith("words"):
        human_vectors = answer_vectors = np.zeros((len(turn_ends), 0), np.float32)
        vector = None
    vectors = human_vectors, answer_vectors
    agent = is_of_agent(turn_ends)
    revised = reconsidered(turn_ends, *vectors, way, reads, agent)
    candidates = describe(revised, *vectors, message, vector, reads, compatibility(way))
    prior = prior_of(revised, message, reads, way)
    probabilities = weigh(networks(way, agent=agent), candidates, revised, bias, prior)
    # The reason describes the stored tree, not the tree after second looks.
    reason = _reason(turn_ends, candidates, next(iter(probabilities)), message, reads)
    return Choice(reason, probabilities, revised)


def _is_greeting(message: MessageFeatures) -> bool:
    """Whether a message is a greeting ("Hi!", "Good morning, are you there?") or has no terms."""
    cues = message.cues
    greets = cues[MESSAGE_CUE_AT["greeting"]] and not cues[MESSAGE_CUE_AT["request"]]
    return not message.terms or (bool(greets) and len(message.terms) <= WORDS_OF_GREETING)


def prior_of(turn_ends: Sequence[TurnEnd], message: str, reads: Reader, way: Way) -> Prior:
    """What the form of a message and the last turn tell about its place."""
    last, features = turn_ends[-1], reads.message(message)
    if features.announces:
        return Prior(announced=True)
    if found := recalls(turn_ends, features, reads):
        return Prior(recalls=found)
    agent = is_of_agent(turn_ends)
    odds = (LEANS_OF_AGENT if agent else LEANS) ** features.leaning
    if agent and not (last.is_open or reads.turns([last]).ends[0, END_CUE_AT["asks"]]):
        odds *= GOES_ON
    if features.digresses:
        odds *= DIGRESSES
    if last.is_open:
        says_nothing = message.strip() == last.human.strip() or _is_greeting(features)
        usual = OPEN if compatibility(way) is None else OPEN_BY_LEARNING
        odds *= OPEN_AND_SAYS_NOTHING if says_nothing else usual
    return Prior(odds, _is_greeted(turn_ends, reads))


def recalls(turn_ends: Sequence[TurnEnd], message: MessageFeatures, reads: Reader) -> dict[int, int]:
    """The earlier turn to which a message goes back, by each turn of its thread; empty for others.

    It is the turn before the last, the first turn that contains the most of the terms of the message's
    description ("your dinner ideas"), or the first turn of the thread that is no greeting and no question.
    """
    described = message.recalled
    if not (message.restores or described):
        return {}
    last, opening = turn_ends[-1], _openings(turn_ends)
    if message.restores == "befores":
        return {end.id: end.id for end in turn_ends} | {last.id: last.previous or last.id}
    first: dict[int | None, int] = {}
    if described and not message.restores:
        counts = reads.turns(turn_ends).containing(described.terms)
        for end, count in zip(turn_ends, counts, strict=True):
            # A word of the message that opened a thread names its subject ("back to the bread").
            is_subject = count == 1 and described.terms.intersection(reads.message(end.human).terms)
            if 0 < count == max(counts) and opening[end.id] not in first:
                first[opening[end.id]] = 0 if is_subject and end.previous is None else end.id
        first = {top: id_ for top, id_ in first.items() if id_}
    if message.restores or (described and described.is_first and not first):
        for end in turn_ends:
            if _is_version(end, reads):
                first.setdefault(opening[end.id], end.id)
        first = {top: first.get(top, top) for top in opening.values() if top is not None}
    return {end.id: first[top] for end in turn_ends if (top := opening[end.id]) in first}


def _is_version(turn: TurnEnd, reads: Reader) -> bool:
    """Whether the answer of a turn gives something, rather than greets or asks."""
    asks = len(turn.answer) < QUESTION_ALONE and reads.turns([turn]).ends[0][END_CUE_AT["asks"]]
    return not (asks or _is_greeting(reads.message(turn.human)))


def _is_greeted(turn_ends: Sequence[TurnEnd], reads: Reader) -> bool:
    """Whether the thread of the last turn consists of greetings."""
    above: int | None = turn_ends[-1].id
    for turn in reversed(turn_ends):
        if turn.id == above:
            if not _is_greeting(reads.message(turn.human)):
                return False
            above = turn.previous
    return above is None


def language_of_message(turn_ends: Sequence[TurnEnd], message: str) -> str:
    """The language of a message, by its words, or by the latest turns if its words do not determine it.

    Example:
        >>> language_of_message([TurnEnd(2, None, "Wie lange backt das Brot?", "Etwa eine Stunde.")], "Ok.")
        'de'
    """
    return language_of(message, [text for end in turn_ends[-LATEST:] for text in (end.human, end.answer)])


def weigh(
    ensemble: Networks,
    candidates: Candidates,
    turn_ends: Sequence[TurnEnd],
    bias: Bias = UNBIASED,
    prior: Prior = NO_PRIOR,
) -> Mapping[int | None, float]:
    """The probability of each candidate, the likeliest first.

    Of equally likely candidates a new root comes first, then the latest turn.
    """
    scores = score(ensemble, candidates.rows, candidates.familiar)
    scores[-2] += math.log(prior.last)  # The last turn is always a candidate, and comes before the root.
    if prior.greeted:  # What would open a thread continues the greeting.
        scores[-2] = np.logaddexp(scores[-2], scores[-1] + math.log1p(-AFTER_GREETINGS))
        scores[-1] += math.log(AFTER_GREETINGS)
    if prior.announced:
        openings = _openings(turn_ends)
        last = openings[turn_ends[-1].id]
        scores[:-1] -= [math.log(LEAVES) * (openings[id_] == last) for id_ in candidates.ids[:-1]]
    elif prior.recalls:
        scores = _recalled(scores, candidates.ids, prior.recalls, turn_ends[-1].id)
    if bias.corrections:
        scores[-1] += bias.new_thread
        scores[:-2] += bias.going_back
    if list(map(_PREVIOUS, turn_ends)).count(None) == 1:
        scores[-1] += math.log(_has_more(len(turn_ends)))
        scores[:-2] += math.log(GOES_BACK)
    chances = softmax(scores)
    # Rows rise with time and the root is last: a stable sort of the reversed rows puts the later one first.
    order = len(chances) - 1 - np.argsort(-chances[::-1], kind="stable")
    return {candidates.ids[row]: float(chances[row]) for row in order.tolist()}


def _openings(turn_ends: Sequence[TurnEnd]) -> dict[int | None, int | None]:
    """The id of the first turn of the thread of each turn."""
    opening: dict[int | None, int | None] = {}
    for end in turn_ends:
        opening[end.id] = end.id if end.previous is None else opening.get(end.previous, end.id)
    return opening


def _recalled(scores: Table, ids: Sequence[int | None], recalls: Mapping[int, int], last: int) -> Table:
    """The scores of candidates for a message that goes back to an earlier turn.

    A share of the probability of each turn goes to the turn that is recalled in its thread; that of the new
    root, since such a message opens no thread, and of threads without such a turn goes to that of the last
    thread, or else to the likeliest.
    """
    rows: dict[int | None, int] = {id_: row for row, id_ in enumerate(ids) if id_ is not None}
    chances, gathered = softmax(scores), np.zeros(len(ids) + 1)  # The last number is that of the others.
    to = np.array([rows.get(recalls.get(id_ or 0), len(ids)) for id_ in ids])
    moved = RESTORES * chances
    chances -= moved
    np.add.at(gathered, to, moved)
    others, gathered = gathered[-1], gathered[:-1]
    gathered[rows.get(recalls.get(last), gathered.argmax())] += others
    chances += gathered
    with np.errstate(divide="ignore"):
        return np.log(chances)


def _has_more(turns: int) -> float:
    """The probability, by Bayes' rule, that a conversation of one thread has more than one subject."""
    stayed = (1.0 - ONE_SUBJECT) * STAYS ** min(turns, FEW_TURNS)
    return stayed / (stayed + ONE_SUBJECT)


def _reason(
    turn_ends: Sequence[TurnEnd], candidates: Candidates, chosen: int | None, message: str, reads: Reader
) -> str:
    if chosen is None:
        if reads.message(message).announces:
            return "new topic: announced as one"
        cues = reads.message(message).cues
        opens = next((cue for cue in ("greeting", "request") if cues[MESSAGE_CUE_AT[cue]]), "")
        return f"new topic: opens with a {opens}" if opens else "new topic: nothing fits well enough"
    row = candidates.ids.index(chosen)
    position = int(candidates.positions[row])
    if position == len(turn_ends) - 1:
        return "continues the last thread"
    turn = opening = turn_ends[position]
    by_id = {end.id: end for end in turn_ends}
    for _ in turn_ends:  # No path has more turns.
        if opening.previous is None:
            break
        opening = by_id[opening.previous]
    else:
        raise circle(opening.id)
    title = opening.summary.title if opening.summary else _short(opening)
    place = repr(title) if turn is opening else f"{_short(turn)!r} in {title!r}"
    cosine = float(candidates.cosines[row])
    measured = "" if math.isnan(cosine) else f" (similarity {cosine:.2f})"
    continued = turn.id in map(_PREVIOUS, turn_ends)
    return f"{'branches off after' if continued else 'returns to'} {place}{measured}"


def _short(turn: TurnEnd) -> str:
    return _shortened(turn.human)


@cache_of_texts(256)
def _shortened(text: str) -> str:
    return textwrap.shorten(text, 40, placeholder=" ...")
