"""The cascade: the messages that a chat model is asked about, and the weight of its answers.

A model is asked about the messages for which its answer is expected to raise the probability of the choice
most. By Bayes' rule an answer is weighted by the model's reliability: an unreliable model changes only
uncertain choices.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from langchain_threadmem.selection.choice import Choice
from langchain_threadmem.selection.features.structure import Table

RELIABILITY, ANSWERS = 0.85, 20.0
"""The prior of a model's reliability, and its weight as a number of answers."""
ANSWERS_KEPT, STEPS = 500, 10
"""The number of latest answers from which the reliability is estimated, and of steps of an estimate."""
AT_RANDOM = 0.5
"""The share of a model's errors that are distributed evenly over the candidates; the rest follow the odds."""
REMEMBERED = 1000
"""The number of latest choices from which the quantiles of the gain are estimated."""
HEAD_START = 20
"""A number of messages added to the count of choices, so that the share also allows early questions."""
CATCH_UP = 30
"""The number of choices over which an unused share is distributed, and an overdrawn share is saved again."""
DOUBT = 1e-3
"""The weight of the uncertainty beside the gain: an answer that cannot change the choice still improves the
estimate of the reliability."""
USUAL = (0.5, 0.36, 0.23, 0.13, 0.08, 0.04, 0.025, 0.017, 0.009, 0.004, 0.002, 0.001)
"""Quantiles of the gain of choices in interleaved dialogs, at even steps."""


class Reliability:
    """The estimated probability that a model's answer is right.

    The estimate has the maximum likelihood for the odds of the candidates in the latest answers.

    Args:
        prior: The probability before any answer; it counts as 20 answers.

    Attributes:
        value: The estimate, 0 to 1.
    """

    def __init__(self, prior: float = RELIABILITY) -> None:
        self.value = self._prior = prior
        self._answers = deque[tuple[float, float]](maxlen=ANSWERS_KEPT)

    def add(self, if_right: float, if_wrong: float) -> None:
        """Add an answer, by its probabilities if the model is right and if it is wrong."""
        self._answers.append((if_right, if_wrong))
        right, wrong = np.array(self._answers).T
        for _ in range(STEPS):
            share = self.value * right / (self.value * right + (1.0 - self.value) * wrong)
            self.value = float((self._prior * ANSWERS + share.sum()) / (ANSWERS + len(share)))


@dataclass
class Share:
    """The share of choices that a model is asked about, controlled by a moving threshold of the gain.

    Attributes:
        most: The share, 0 to 1.
        choices: The number of choices.
        asked: The number of choices that the model was asked about.
    """

    most: float
    choices: int = 0
    asked: int = 0
    _gains: deque[float] = field(default_factory=lambda: deque(USUAL, maxlen=REMEMBERED))

    def takes(self, gain: float) -> bool:
        """Whether the model is asked about the next choice, by its gain; counts the choice."""
        self.choices += 1
        if self.most == 1.0:
            self.asked += 1
            return True
        behind = self.most * self.choices - self.asked
        share = min(max(self.most + behind / CATCH_UP, 0.0), 1.0)
        self._gains.append(gain)
        least = float(np.quantile(self._gains, 1.0 - share))
        takes = gain >= least and self.asked + 1 <= self.most * (self.choices + HEAD_START)
        self.asked += takes
        return takes


class ModelQuestion:
    """A choice that a model can be asked about: candidates, their odds, and the effect of each answer.

    Args:
        choice: The choice by the odds.
        shown: The candidates that the model can choose from.
        reliability: The probability that the model is right.
    """

    def __init__(self, choice: Choice, shown: Sequence[int | None], reliability: float) -> None:
        self.candidates = list(choice.probabilities)
        self.shown = list(shown)
        odds: Table = np.array(list(choice.probabilities.values()))
        self._before = float(odds.max())
        places = {candidate: place for place, candidate in enumerate(self.candidates)}
        at = np.array([places[candidate] for candidate in self.shown])
        # The probability of each answer (rows) if a candidate (columns) is right and the model is wrong.
        rest = np.maximum(odds[at].sum() - np.where(np.isin(np.arange(len(odds)), at), odds, 0.0), 1e-9)
        wrong = AT_RANDOM / max(len(at) - 1, 1) + (1.0 - AT_RANDOM) * odds[at][:, None] / rest
        rows = np.arange(len(at))
        wrong[rows, at] = 0.0
        self._wrong: Table = wrong * odds
        self._right: Table = odds[at]
        self._joint: Table = (1.0 - reliability) * self._wrong
        """For each answer (rows) and candidate (columns) the probability of both."""
        self._joint[rows, at] = reliability * self._right

    @property
    def gain(self) -> float:
        """The expected rise of the probability of the choice, 0 to 1, plus its weighted uncertainty."""
        rise = float(self._joint.max(1).sum()) - self._before
        return max(rise, 0.0) + DOUBT * (1.0 - self._before)

    def evidence(self, answer: int | None) -> tuple[float, float]:
        """The probability of an answer if the model is right, and if it is wrong."""
        row = self.shown.index(answer)
        return float(self._right[row]), float(self._wrong[row].sum())

    def answered(self, answer: int | None) -> Choice:
        """The choice after an answer, without a reason."""
        row = self._joint[self.shown.index(answer)]
        chances = row / row.sum()
        order = np.argsort(-chances, kind="stable").tolist()
        after = {self.candidates[place]: float(chances[place]) for place in order}
        return Choice("", after)
