"""Scoring: the log odds that each message of a conversation answers a question.

A chat between people consists of many short turns, which depend on their neighbours; a chat with an assistant
consists of questions with long answers. So a score is one of two weighted sums, or a mixture of both. The sum
for people scores a message by its own words, the words of its neighbourhood, its speaker, its time, and
whether the message before is a question. The sum for assistants scores a whole turn: a question and its
answers are scored separately and added. The share of each sum follows from the length of the answers
(`assistance`).

Lexical scores are BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond",
2009), divided by the rarity of all terms of the question, so that a message with every term once scores about
1. This scale is the same for every question. It gave the same recall as z-scores among the messages of a
conversation (`training/fit_recall.py`), which need the scores of all messages. The weights are in
`recall.weights`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime, TreeCache
from langchain_threadmem.index.documents import LEAD, DocumentRow
from langchain_threadmem.recall.postings import REACH, Doubles, Figures, Postings, records_of
from langchain_threadmem.recall.question import DAY, Question
from langchain_threadmem.recall.weights import ASSISTANT, PEOPLE
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.summaries.queries import Extent
from langchain_threadmem.tree import trees

K1 = 1.2
B = 0.5
NEAR = 2
"""The number of messages before and after a message whose meaning is part of its score."""
LONG_ANSWER, STEEPNESS = math.log(60), 6.0
"""The logarithm of the length at which an answer is as typical of an assistant as of a person (60 terms,
about 110 words), and the steepness of the logistic curve."""
SHORT_ANSWER = 20
"""The length in terms up to which an answer is typical of a person."""
LITTLE = 0.02
"""The share up to which a sum is not computed."""
COSINE = 8.0
"""The factor by which the spread of cosines becomes about that of the other parts."""
DAYS_BEFORE, DAYS_AFTER = 4.0, 12.0
"""The numbers of days before and after a time within which messages may be about this time; most messages are
about the past."""


class ScoreParts(NamedTuple):
    """The parts of the score of each message, from which the score and the reason are computed.

    Attributes:
        own: Lexical score of the message.
        lead: Lexical score of its first words.
        window: Lexical score of its neighbourhood, including the message.
        beside: Lexical score of the nearest `NEAR` messages, including the message.
        person: Whether the question names its speaker.
        date: The nearness to the time that the question names, 0 to 1.
        cosine: Cosine with the question; the mean for messages without a vector; `None` without vectors.
        has_vector: Whether the message has a vector.
    """

    own: Doubles
    lead: Doubles
    window: Doubles
    beside: Doubles
    person: Doubles
    date: Doubles
    cosine: Doubles | None
    has_vector: NDArray[np.bool_]


def parts_of(
    postings: Postings,
    question: Question,
    figures: Figures,
    cosine: Doubles | None = None,
    window: Doubles | None = None,
) -> ScoreParts:
    """The parts of the score of every row of the postings.

    Args:
        cosine: Cosine of each message; NaN for messages without a vector.
        window: Lexical scores of the neighbourhoods, if the postings do not contain the neighbours.
    """
    own, lead = _lexical(postings, question, figures)
    live = np.where(postings.rows["live"], own, 0.0)
    if window is None:
        window, beside = postings.around(live, REACH), postings.around(live, NEAR)
    else:
        beside = window
    count = len(postings.rows)
    person = postings.spoken_by(question.named).astype(float) if question.named else np.zeros(count)
    has_vector = np.zeros(count, np.bool_) if cosine is None else ~np.isnan(cosine)
    cosine = (
        np.where(has_vector, cosine, cosine[has_vector].mean())
        if cosine is not None and has_vector.any()
        else None
    )
    times = postings.rows["time"]
    date = nearness(question, times, times)
    return ScoreParts(own, lead, window, np.maximum(beside, own), person, date, cosine, has_vector)


def rarity(documents: int, frequency: int) -> float:
    """Inverse document frequency, never negative."""
    return math.log(1 + (max(documents, frequency) - frequency + 0.5) / (frequency + 0.5))


def _lexical(postings: Postings, question: Question, figures: Figures) -> tuple[Doubles, Doubles]:
    """BM25 of whole messages and of their first words, divided by the rarity of all terms."""
    rows = postings.rows
    count = len(rows)
    own, lead = np.zeros(count), np.zeros(count)
    total = 0.0
    average = np.where(rows["human"], figures.human, figures.answer)
    length = K1 * (1 - B + B * rows["length"] / np.maximum(average, 1.0))
    lead_length = K1 * (1 - B + B * rows["lead"] / np.minimum(np.maximum(average, 1.0), LEAD / 2))
    for term in question.terms:
        weight = rarity(figures.documents, figures.frequency.get(term, 0))
        total += weight
        posting = postings.posting(term)
        if not len(posting.rows):
            continue
        at = posting.rows
        own[at] += weight * posting.counts * (K1 + 1) / (posting.counts + length[at])
        lead[at] += weight * posting.leads * (K1 + 1) / (posting.leads + lead_length[at])
    if total > 0:
        own /= total
        lead /= total
    return own, lead


def nearness(question: Question, started: Doubles, ended: Doubles) -> Doubles:
    """The nearness of periods to the time that a question names: 1 if they overlap, falling to 0."""
    if question.span is None:
        return np.zeros(len(started))
    early = (question.span.start - ended) / (DAYS_BEFORE * DAY)
    late = (started - question.span.end) / (DAYS_AFTER * DAY)
    near: Doubles = np.clip(1 - np.maximum(np.maximum(early, late), 0), 0, 1)
    return near


def people_parts(postings: Postings, question: Question, parts: ScoreParts) -> dict[str, Doubles]:
    """The parts of the sum for people, by the names in `recall.weights.PEOPLE`."""
    rows = postings.rows
    before = rows["parent"]
    above = np.where(before >= 0, before, 0)
    follows = (before >= 0).astype(float)
    values = {
        "own": parts.own,
        "window": parts.window,
        "person": parts.person,
        "self": parts.person * np.minimum(rows["selfs"], 4) / 4,
        "reply": follows * (parts.own * rows["asks"])[above],
        "when": _if(question.when, np.minimum(rows["times"], 2) / 2),
        "amount": _if(question.amount, np.minimum(rows["numbers"], 1)),
        "date": parts.date,
        "times": np.minimum(rows["times"], 2) / 2,
        "asks": rows["asks"],
    }
    if parts.cosine is not None:
        values["meaning"] = COSINE * parts.cosine
        values["meaning around"] = COSINE * postings.around(parts.cosine - 0.1, NEAR) / (NEAR + 1)
        centred = parts.cosine - parts.cosine.mean()
        values["reply meaning"] = COSINE * follows * (centred * rows["asks"])[above]
    return values


def turn_parts(postings: Postings, question: Question, parts: ScoreParts) -> dict[str, Doubles]:
    """The parts of the sum for assistants, by the names in `recall.weights.ASSISTANT`.

    Each message has the parts of its turn.
    """
    rows = postings.rows
    turn = rows["turn"]
    answers = ~rows["human"] & rows["live"] & rows["recallable"]
    size = np.log1p(rows["length"])
    values = {
        "human own": parts.own[turn],
        "human lead": parts.lead[turn],
        "answer own": _of_answers(parts.own, turn, answers),
        "answer lead": _of_answers(parts.lead, turn, answers),
        "window": parts.window[turn],
        "numbers": np.minimum(rows["numbers"], 4)[turn] / 4,
        "length": (size - size.mean() if len(size) else size)[turn],
        "self": np.minimum(rows["selfs"], 4)[turn] / 4,
        "when": _if(question.when, (np.minimum(rows["times"], 2) / 2)[turn]),
        "date": parts.date[turn],
    }
    if parts.cosine is not None:
        values["human meaning"] = COSINE * parts.cosine[turn]
        values["answer meaning"] = COSINE * _of_answers(parts.cosine, turn, answers)
        values["meaning around"] = COSINE * _meaning_of_turns_around(postings, parts.cosine)[turn]
    return values


def _meaning_of_turns_around(postings: Postings, cosine: Doubles) -> Doubles:
    """For each question, the mean similarity of the `NEAR` turns before and after it, less that of all turns.

    Adjacent turns on a subject are all similar to the query, but usually only one of them answers the query,
    or a turn of another day does. So the weight of this part is negative.
    """
    human = postings.rows["human"]
    centred = np.where(human, cosine - cosine[human].mean(), 0.0) if human.any() else np.zeros(len(human))
    # Most turns have two messages, so the next question is two messages away.
    around: Doubles = (postings.around(centred, 2 * NEAR + 1) - centred) / NEAR
    return around


def _of_answers(values: Doubles, turn: NDArray[np.int32], answers: NDArray[np.bool_]) -> Doubles:
    """For each message, the greatest value among the answers of its turn; 0 without an answer."""
    best = np.zeros(len(values))
    np.maximum.at(best, turn[answers], values[answers])
    return best[turn]


def _if(condition: bool, values: NDArray[np.float32]) -> NDArray[np.float32]:
    return values if condition else np.zeros_like(values)


def assistance(postings: Postings) -> Doubles:
    """The degree to which the messages around each message resemble a chat with an assistant, 0 to 1.

    The measure is the length of the answers. The degree may differ between parts of a conversation.
    """
    return postings.once("assistance", lambda: _assistance(postings))


def _assistance(postings: Postings) -> Doubles:
    rows = postings.rows
    answers = (~rows["human"] & rows["recallable"]).astype(float)
    if not (rows["length"] * answers > SHORT_ANSWER).any():
        return np.zeros(len(rows))
    count = postings.around(answers, REACH)
    size = postings.around(np.log1p(rows["length"]) * answers, REACH) / np.maximum(count, 1e-9)
    share: Doubles = np.where(count > 0, 1 / (1 + np.exp(STEEPNESS * (LONG_ANSWER - size))), 0.0)
    return share


def scores(postings: Postings, question: Question, parts: ScoreParts) -> Doubles:
    """The score of each message: the log odds that it answers the question."""
    share = assistance(postings)
    alone = parts.cosine is None
    total = np.zeros(len(postings.rows))
    if (share < 1 - LITTLE).any():
        total += (1 - share) * weighed(people_parts(postings, question, parts), PEOPLE, alone)
    if (share > LITTLE).any():
        turns = weighed(turn_parts(postings, question, parts), ASSISTANT, alone)
        total += share * (turns + _within_turn(postings, question, parts))
    return total


def discounted(scores: Doubles, postings: Postings, now: float, half_life: timedelta | None) -> Doubles:
    """Scores discounted by age: scores are log odds, so log 2 is subtracted for each half-life."""
    if half_life is None:
        return scores
    age = np.maximum(now - postings.rows["time"], 0.0)
    discounted: Doubles = scores - np.log(2) * age / half_life.total_seconds()
    return discounted


def parts_alone(postings: Postings, question: Question) -> ScoreParts:
    """The parts of the score of texts without neighbours and vectors."""
    return parts_of(postings, question, postings.figures(question.terms), window=np.zeros(len(postings.rows)))


def alone(parts: ScoreParts, share: float = 0.0) -> Doubles:
    """The score of texts without neighbours, such as summaries, on the scale of `scores`.

    In the sum for people a text is its own neighbourhood; in the sum for assistants it is a turn without an
    answer. With summaries by `ExtractiveSummarizer` in the conversations of `benchmarks/recall.py`, R@10 is
    unchanged in chats between people and falls by 0.7 from 77 in chats with an assistant; 1 to 2 % of the
    hits are summaries.

    Args:
        parts: The parts of the score of each text.
        share: The mean of `assistance` of the searched messages, 0 to 1.
    """
    words = parts.cosine is None
    people = {"own": parts.own, "window": parts.own, "date": parts.date}
    turns = {"human own": parts.own, "human lead": parts.lead, "date": parts.date}
    if parts.cosine is not None:
        people["meaning"] = turns["human meaning"] = COSINE * parts.cosine
        people["meaning around"] = COSINE * (parts.cosine - 0.1)
    total: Doubles = (1 - share) * weighed(people, PEOPLE, words) + share * weighed(turns, ASSISTANT, words)
    return total


OWN_IN_TURN = 0.5
ROLE_IN_TURN = 0.3


def _within_turn(postings: Postings, question: Question, parts: ScoreParts) -> Doubles:
    """The part of the score that orders the messages of a turn, by their own words and by role.

    The human message comes first, or the answer if the question asks about "you".
    """
    human = postings.rows["human"]
    preferred = human if not question.about_other else ~human
    total: Doubles = OWN_IN_TURN * parts.own + ROLE_IN_TURN * preferred
    return total


def weighed(parts: Mapping[str, Doubles], weights: Mapping[str, tuple[float, float]], alone: bool) -> Doubles:
    """The weighted sum of parts.

    Args:
        parts: The values of each part.
        weights: The weights of each part with embeddings, and without embeddings.
        alone: Whether to use the weights without embeddings.
    """
    total: Doubles = sum([weights[name][alone] * values for name, values in parts.items()], np.zeros(1))
    return total


class SummaryIndex:
    """The texts and extents of summaries; the time of a row is the time of the last covered message.

    A summary is scored without neighbours (`alone`). Its length is compared with the length of messages, so a
    shared word counts less in a long summary than in the message that it quotes. A summary ranks above
    messages if it contains words of several messages.

    Args:
        records: The texts of the summaries; texts without an extent are omitted.
        extents: The messages that each summary covers.
        version: Version of the tree at which the texts and extents were read.

    Attributes:
        postings: The texts.
        rank: (n,) the rank of each summary.
        started: (n,) the time of the first message that each summary covers.
        messages: (n,) the number of messages that each summary covers.
        whole: Whether `records` contains the text of each extent.
    """

    def __init__(self, records: Iterable[DocumentRow], extents: Iterable[Extent], version: int = -1) -> None:
        of = {extent.key: extent for extent in extents}
        rows = sorted((record for record in records if record.key in of), key=lambda record: record.key)
        self.postings = Postings()
        self.postings.add(
            # Summaries of several trees may have equal numbers, so they get new numbers, without parents.
            record._replace(seq=n, parent=None, document=record.document._replace(time=of[record.key].ended))
            for n, record in enumerate(rows, 1)
        )
        chosen = [of[record.key] for record in rows]
        self.rank = np.array([extent.rank for extent in chosen], np.int64)
        self.started = np.array([extent.started for extent in chosen])
        self.messages = np.array([extent.messages for extent in chosen], np.int64)
        self.whole = len(rows) == len(of)
        self.version = version

    def parts(self, question: Question, figures: Figures, cosine: Doubles | None) -> ScoreParts:
        """The parts of the score of each summary.

        Args:
            figures: Statistics of the messages that are searched as well.
            cosine: Cosine of each summary; NaN for summaries without a vector.
        """
        beside = np.zeros(len(self.postings.rows))
        parts = parts_of(self.postings, question, figures, cosine, beside)
        if cosine is not None and parts.cosine is None:
            parts = parts._replace(cosine=beside)  # The messages are scored with the weights for embeddings.
        return parts._replace(date=nearness(question, self.started, self.postings.rows["time"]))


class SummaryIndexCache(TreeCache[SummaryIndex]):
    """The summaries of conversations as scored texts, by tree and epoch."""

    capacity = 16


def summary_index_of(runtime: Runtime, tree: int) -> Flow[SummaryIndex]:
    """The summaries in a tree of summaries; all are read again when one changes, because they are few."""
    cache = runtime.get(SummaryIndexCache).values

    def read(conn: Conn) -> tuple[int, SummaryIndex]:
        head = trees.head(conn, tree)
        cached = cache.get((tree, head.epoch))
        if cached is not None and cached.version == head.version:
            return head.epoch, cached
        records = records_of(conn, runtime, tree, 0)
        return head.epoch, SummaryIndex(records, summary_queries.extents(conn, tree), head.version)

    epoch, index = yield from Sql(read)
    if index.whole:
        cache.put((tree, epoch), index)
    return index
