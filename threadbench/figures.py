"""Figures with confidence intervals, as tables in Markdown and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from threadbench.data import LANGUAGES, SINGLE, Conversation
from threadbench.protocol import COUNTS, Counts

SAMPLES = 2000
Floats = NDArray[np.float64]
SHARES = {
    "parent": ("right", "messages"),
    "continued": ("continued_right", "continued"),
    "returns": ("returns_right", "returns"),
    "branches": ("branches_right", "branches"),
    "roots, precision": ("roots_right", "opened"),
    "roots, recall": ("roots_right", "roots"),
    "covered": ("covered", "follow_ups"),
    "shown": ("shown", "history"),
    "whole": ("whole", "conversations"),
    "price, cached words at 0.1": ("price_10", "full_price_10"),
    "price, cached words at 0.5": ("price_50", "full_price_50"),
}
"""Each figure is the share of one count in another, in percent."""


class Figure(NamedTuple):
    """A figure in percent with its 95 % interval; the values are `None` if the count is 0.

    Attributes:
        value: The figure.
        low: The lower end of the interval.
        high: The upper end.
        of: The count of which the figure is a share.
    """

    value: float | None
    low: float | None
    high: float | None
    of: int

    def __str__(self) -> str:
        return "" if self.value is None else f"{self.value:.1f} ({self.low:.0f}-{self.high:.0f})"


class Result:
    """The counts of a contestant.

    The intervals are those of a bootstrap: units (a unit is a conversation with its translations) are drawn
    with replacement within each group.

    Args:
        conversations: The conversations that were played.
        counts: The counts of each conversation.
    """

    def __init__(self, conversations: Sequence[Conversation], counts: Sequence[Counts]) -> None:
        self._conversations = conversations
        self._counts = np.array([astuple(one) for one in counts], float)
        self.groups = list(dict.fromkeys(one["group"] for one in conversations))

    def _drawn(self, groups: Iterable[str], language: str | None = None) -> tuple[Floats, Floats]:
        """The counts of each group, and those of each sample: [group, count], [sample, group, count]."""
        rng = np.random.default_rng(7)
        totals, samples = [], []
        for group in groups:
            chosen = [
                (one["unit"], counts)
                for one, counts in zip(self._conversations, self._counts, strict=True)
                if one["group"] == group and language in (None, one["language"])
            ]
            units = {unit: np.zeros(len(COUNTS)) for unit, _ in chosen}
            for unit, counts in chosen:
                units[unit] += counts
            rows = np.array(list(units.values()))
            times = rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), SAMPLES)
            totals.append(rows.sum(0))
            samples.append(times @ rows)
        return np.array(totals), np.stack(samples, axis=1)

    def figure(self, name: str, groups: Sequence[str], *, language: str | None = None) -> Figure:
        """A figure, as the mean over those of the given groups whose count is not 0."""
        part, whole = (COUNTS.index(count) for count in SHARES[name])
        totals, samples = self._drawn(groups, language)
        counted = totals[:, whole] > 0
        if not counted.any():
            return Figure(None, None, None, 0)
        totals, samples = totals[counted], samples[:, counted]
        value = float(100 * (totals[:, part] / totals[:, whole]).mean())
        # The figure of a sample is undefined if the count of a group is 0.
        valid = samples[(samples[:, :, whole] > 0).all(1)]
        low, high = np.percentile(100 * (valid[:, :, part] / valid[:, :, whole]).mean(1), [2.5, 97.5])
        return Figure(value, float(low), float(high), int(totals[:, whole].sum()))

    @property
    def several(self) -> list[str]:
        """The groups of conversations about several topics."""
        return [group for group in self.groups if group != SINGLE]

    def as_json(self) -> dict[str, Any]:
        """All figures, by group and language."""

        def figures(groups: Sequence[str], language: str | None = None) -> dict[str, Any]:
            return {name: self.figure(name, groups, language=language)._asdict() for name in SHARES}

        found: dict[str, Any] = {group: figures([group]) for group in self.groups}
        if len(self.several) > 1:
            found["macro"] = figures(self.several)
        if LANGUAGES in self.groups:
            found["by language"] = {code: figures([LANGUAGES], code) for code in self.languages}
        return found

    @property
    def languages(self) -> list[str]:
        """The languages of the translated conversations."""
        several = self._conversations
        return list(dict.fromkeys(one["language"] for one in several if one["group"] == LANGUAGES))


def tables(results: Mapping[str, Result]) -> str:
    """The tables: parent accuracy by group, kinds of messages, and languages."""
    first = next(iter(results.values()))
    several, found = first.several, []
    if several:
        columns = {"macro": several} if len(several) > 1 else {}
        columns |= {group: [group] for group in several}
        rows = {
            name: [str(result.figure("parent", groups)) for groups in columns.values()]
            for name, result in results.items()
        }
        found.append(table("right parents", list(columns), rows))
        kinds = [name for name in SHARES if name not in ("parent", "whole")]
        rows = {
            name: [str(result.figure(kind, several)) for kind in kinds] for name, result in results.items()
        }
        found.append(table("by kind of message", kinds, rows))
    if SINGLE in first.groups:
        rows = {
            name: [str(result.figure(kind, [SINGLE])) for kind in ("whole", "parent")]
            for name, result in results.items()
        }
        found.append(table("single dialogs", ["not divided", "right parents"], rows))
    codes = first.languages
    if len(codes) > 1:
        rows = {
            name: [f"{result.figure('parent', [LANGUAGES], language=code).value:.1f}" for code in codes]
            for name, result in results.items()
        }
        found.append(table("right parents by language", codes, rows))
    return "\n\n".join(found)


def table(title: str, heads: Sequence[str], rows: Mapping[str, Sequence[str]]) -> str:
    """A table in Markdown, aligned.

    Example:
        >>> print(table("right", ["all"], {"last": ["50.0"]}))
        | right | all  |
        |-------|------|
        | last  | 50.0 |
    """
    lines = [[title, *heads], *([name, *cells] for name, cells in rows.items())]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text)
