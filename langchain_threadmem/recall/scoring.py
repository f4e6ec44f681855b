"""Scoring: how well each message of a conversation answers a question.

Chats between people are many short turns, each clear only beside its neighbours; chats with an assistant are
questions with long answers. So there are two sums of weighted parts. In one, messages stand for themselves:
their own words, those of their neighbourhood, who spoke, when, whether the message before asked. In the
other, a question and its answers stand together, scored apart and added, never joined. How much of each
counts follows smoothly from how long the answers are (`assistance`).

Lexical scores are BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond",
2009), divided by the rarity of all terms of the question: 1 is about a message that holds every term once. So
they are on one scale for every question, which did as well as z-scores among the messages of a conversation
(in `training/fit_recall.py`), and does not need all messages to be scored. The weights are in
`recall.weights`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.index.dates import DAY
from langchain_threadmem.index.documents import LEAD
from langchain_threadmem.recall.postings import REACH, Figures, Floats, Postings
from langchain_threadmem.recall.question import Question
from langchain_threadmem.recall.weights import ASSISTANT, PEOPLE

K1 = 1.2
B = 0.5
NEAR = 2
"""Messages before and after one whose meaning counts for it."""
LONG_ANSWER, STEEPNESS = math.log(60), 6.0
"""Answers of 60 terms that count, some 110 words, are as much like an assistant's as like a person's."""
SHORT_ANSWER = 20
"""Among answers of no more terms than this, nothing is like an assistant's."""
LITTLE = 0.02
"""A kind of chat that a conversation is like by no more than this is not asked."""
COSINE = 8.0
"""Cosines times this have about the spread of the other parts."""
DAYS_BEFORE, DAYS_AFTER = 4.0, 12.0
"""How long before and after a named time something may be said about it: people look back more."""


class Parts(NamedTuple):
    """The parts of the score of each message, for the sum and for the reason of a hit.

    Attributes:
        own: Lexical score of the message itself.
        lead: Lexical score of its first words.
        window: Lexical score of its neighbourhood, itself included.
        beside: Lexical score of the messages right around it, itself included.
        person: Whether its speaker is named in the question.
        date: How near it is to a time that is named, 0 to 1.
        cosine: Similarity of meaning, the mean where it is not known; `None` where it never is.
        known: Whether `cosine` is known.
    """

    own: Floats
    lead: Floats
    window: Floats
    beside: Floats
    person: Floats
    date: Floats
    cosine: Floats | None
    known: NDArray[np.bool_]


def parts_of(
    postings: Postings,
    question: Question,
    figures: Figures,
    cosine: Floats | None = None,
    window: Floats | None = None,
) -> Parts:
    """Score a question against every row of a postings.

    Args:
        postings: The messages.
        question: The question.
        figures: Figures over everything that is searched.
        cosine: Similarity of each message; NaN where it is not known.
        window: Lexical scores of the neighbourhoods, if the postings does not hold the neighbours.
    """
    own, lead = _lexical(postings, question, figures)
    live = np.where(postings.rows["live"], own, 0.0)
    if window is None:
        window, beside = postings.around(live, REACH), postings.around(live, NEAR)
    else:
        beside = window
    count = len(postings.rows)
    person = postings.spoken_by(question.named).astype(float) if question.named else np.zeros(count)
    known = np.zeros(count, np.bool_) if cosine is None else ~np.isnan(cosine)
    cosine = np.where(known, cosine, cosine[known].mean()) if cosine is not None and known.any() else None
    times = postings.rows["time"]
    date = nearness(question, times, times)
    return Parts(own, lead, window, np.maximum(beside, own), person, date, cosine, known)


def rarity(documents: int, frequency: int) -> float:
    """Inverse document frequency, never negative."""
    return math.log(1 + (max(documents, frequency) - frequency + 0.5) / (frequency + 0.5))


def _lexical(postings: Postings, question: Question, figures: Figures) -> tuple[Floats, Floats]:
    """BM25 of whole messages and of their leads, as shares of the rarity of all terms of the question."""
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
        found = postings.posting(term)
        if not len(found.rows):
            continue
        at = found.rows
        own[at] += weight * found.counts * (K1 + 1) / (found.counts + length[at])
        lead[at] += weight * found.leads * (K1 + 1) / (found.leads + lead_length[at])
    if total > 0:
        own /= total
        lead /= total
    return own, lead


def nearness(question: Question, started: Floats, ended: Floats) -> Floats:
    """How near some times are to the time that a question names: 1 within it, falling to 0."""
    if question.span is None:
        return np.zeros(len(started))
    early = (question.span.start - ended) / (DAYS_BEFORE * DAY)
    late = (started - question.span.end) / (DAYS_AFTER * DAY)
    near: Floats = np.clip(1 - np.maximum(np.maximum(early, late), 0), 0, 1)
    return near


def people_parts(postings: Postings, question: Question, parts: Parts) -> dict[str, Floats]:
    """The parts of a message in a chat between people; see `recall.weights.PEOPLE`."""
    rows = postings.rows
    before = rows["parent"]
    above = np.where(before >= 0, before, 0)
    follows = (before >= 0).astype(float)
    found = {
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
        found["meaning"] = COSINE * parts.cosine
        found["meaning around"] = COSINE * postings.around(parts.cosine - 0.1, NEAR) / (NEAR + 1)
        apart = parts.cosine - parts.cosine.mean()
        found["reply meaning"] = COSINE * follows * (apart * rows["asks"])[above]
    return found


def turn_parts(postings: Postings, question: Question, parts: Parts) -> dict[str, Floats]:
    """The parts of a turn in a chat with an assistant, at each message; see `recall.weights.ASSISTANT`."""
    rows = postings.rows
    turn = rows["turn"]
    answers = ~rows["human"] & rows["live"] & rows["recallable"]
    size = np.log1p(rows["length"])
    found = {
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
        found["human meaning"] = COSINE * parts.cosine[turn]
        found["answer meaning"] = COSINE * _of_answers(parts.cosine, turn, answers)
        found["meaning around"] = COSINE * _meaning_of_turns_around(postings, parts.cosine)[turn]
    return found


def _meaning_of_turns_around(postings: Postings, cosine: Floats) -> Floats:
    """How near the questions of the `NEAR` turns before and after come, beside all others: at each question.

    Turns about one subject follow each other and are all near. As a rule the answer is in one of them, and in
    one of another day: so this counts against a turn.
    """
    human = postings.rows["human"]
    apart = np.where(human, cosine - cosine[human].mean(), 0.0) if human.any() else np.zeros(len(human))
    # As a rule a turn is two messages, so its neighbours' questions are every other one.
    around: Floats = (postings.around(apart, 2 * NEAR + 1) - apart) / NEAR
    return around


def _of_answers(values: Floats, turn: NDArray[np.int32], answers: NDArray[np.bool_]) -> Floats:
    """The best value among the answers of each turn, at each message of the turn; 0 without an answer."""
    best = np.zeros(len(values))
    np.maximum.at(best, turn[answers], values[answers])
    return best[turn]


def _if(asked: bool, values: NDArray[np.float32]) -> NDArray[np.float32]:
    return values if asked else np.zeros_like(values)


def assistance(postings: Postings) -> Floats:
    """How much the talk around each message is like one with an assistant, 0 to 1: by the length of its
    answers. So a conversation may be of both kinds, part by part.
    """
    return postings.once("assistance", lambda: _assistance(postings))


def _assistance(postings: Postings) -> Floats:
    rows = postings.rows
    answers = (~rows["human"] & rows["recallable"]).astype(float)
    if not (rows["length"] * answers > SHORT_ANSWER).any():
        return np.zeros(len(rows))
    count = postings.around(answers, REACH)
    size = postings.around(np.log1p(rows["length"]) * answers, REACH) / np.maximum(count, 1e-9)
    share: Floats = np.where(count > 0, 1 / (1 + np.exp(STEEPNESS * (LONG_ANSWER - size))), 0.0)
    return share


def scores(postings: Postings, question: Question, parts: Parts) -> Floats:
    """The score of each message: odds, on a logarithmic scale, of being the message asked for."""
    share = assistance(postings)
    alone = parts.cosine is None
    total = np.zeros(len(postings.rows))
    if (share < 1 - LITTLE).any():
        total += (1 - share) * weighed(people_parts(postings, question, parts), PEOPLE, alone)
    if (share > LITTLE).any():
        turns = weighed(turn_parts(postings, question, parts), ASSISTANT, alone)
        total += share * (turns + _within_turn(postings, question, parts))
    return total


def parts_alone(postings: Postings, question: Question) -> Parts:
    """Score a question against texts that nothing stands beside, by their words."""
    return parts_of(postings, question, postings.figures(question.terms), window=np.zeros(len(postings.rows)))


def alone(parts: Parts, share: float = 0.0) -> Floats:
    """The score of texts that nothing stands beside, on the scale of `scores`.

    Such texts are summaries, and texts whose neighbours are not at hand. Among messages of people each is its
    own neighbourhood, in a chat with an assistant a turn without an answer. With summaries by
    `ExtractiveSummarizer` added to the conversations of `benchmarks/recall.py`, R@10 stays in chats between
    people and falls by 0.7 of 77 in chats with an assistant; one or two of a hundred hits are summaries.

    Args:
        parts: The parts of the score of each text.
        share: How much the messages that they are compared with are like a chat with an assistant.
    """
    words = parts.cosine is None
    people = {"own": parts.own, "window": parts.own, "date": parts.date}
    turns = {"human own": parts.own, "human lead": parts.lead, "date": parts.date}
    if parts.cosine is not None:
        people["meaning"] = turns["human meaning"] = COSINE * parts.cosine
        people["meaning around"] = COSINE * (parts.cosine - 0.1)
    total: Floats = (1 - share) * weighed(people, PEOPLE, words) + share * weighed(turns, ASSISTANT, words)
    return total


OWN_IN_TURN = 0.5
ROLE_IN_TURN = 0.3


def _within_turn(postings: Postings, question: Question, parts: Parts) -> Floats:
    """Which message of a turn comes first: the one that says more of it; asked about "you", the answer."""
    human = postings.rows["human"]
    meant = human if not question.about_other else ~human
    total: Floats = OWN_IN_TURN * parts.own + ROLE_IN_TURN * meant
    return total


def weighed(found: Mapping[str, Floats], weights: Mapping[str, tuple[float, float]], alone: bool) -> Floats:
    """The weighted sum of parts.

    Args:
        found: Values of each part.
        weights: For each part its weight with embeddings, and by words alone.
        alone: Whether there are words alone.
    """
    total: Floats = sum((weights[name][alone] * values for name, values in found.items()), np.zeros(1))
    return total
