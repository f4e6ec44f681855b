"""The learned part of choosing a thread: plain numbers in one data file, and what to do with them.

`choosing.npz` lies beside this module and holds arrays only (no pickle): for each of three ways to
go (vectors of the model that the numbers were fitted on, vectors of any model, words alone) a few
small networks over the columns of `features.FEATURES`, and what was learned on the vectors of the
local embedding model. `benchmarks/fit_choosing.py` makes it; `about` in it says from what.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import as_file, files
from typing import Any, Final, Literal

import numpy as np

from langchain_threadmem.core.candidates import Table
from langchain_threadmem.core.evidence import Compatibility, Floats
from langchain_threadmem.core.features import FEATURES
from langchain_threadmem.core.wording import Wording

Way = Literal["local", "vectors", "words"]
"""What there is to go by: vectors of the model that was fitted on, of any model, or none."""
WAYS: Final[tuple[Way, ...]] = ("local", "vectors", "words")
FITTED_ON = "all-minilm-l6-v2"
"""Part of the names of the embedding model that compatibility was learned on, in lower case."""
FILE = "choosing.npz"
COMPATIBILITY = ("answer", "human", "message", "thread", "topic", "opener", "closing")
"""The arrays of `Compatibility`, in its order."""
UNHEARD_OF = 2.0
"""What speaks for a new root if a message is about something that no thread is about."""
NEAR = 1.0
"""A similarity, in usual spreads, from which on a message may be about the same thing."""
LEANING = ("short", "reply", "agreement", "refusal", "reference", "connective", "return")
"""Cues of a message that leans on what was said before."""
WIDEST = 4.0
"""A column counts up to this many of its usual spreads, so that no odd value outvotes all others."""


@dataclass(frozen=True, slots=True)
class Networks:
    """A few networks of one hidden layer and a direct path, whose scores are averaged.

    Attributes:
        mean: Of each column of `FEATURES`, over what was fitted on.
        scale: One by the spread of each column; zero for a column that is not used.
        inner: Weights of the hidden layer, of shape (networks, columns, hidden).
        bias: Of the hidden units, (networks, hidden).
        outer: Weights of the hidden units, (networks, hidden).
        direct: Weights of the columns themselves, (networks, columns).
    """

    mean: Floats
    scale: Floats
    inner: Floats
    bias: Floats
    outer: Floats
    direct: Floats

    def scores(self, rows: Table) -> Table:
        """The score of each row by each network, (networks, rows); the softmax over rows is a choice.

        Example:
            >>> networks("words").scores(np.zeros((2, len(FEATURES)))).shape[1]
            2
        """
        seen = ((rows - self.mean) * self.scale).clip(-WIDEST, WIDEST).astype(np.float32)
        hidden = np.maximum(seen @ self.inner + self.bias[:, None, :], 0.0)
        found: Table = ((hidden @ self.outer[:, :, None])[..., 0] + self.direct @ seen.T).astype(float)
        return found


def score(held: Networks, rows: Table) -> Table:
    """The score of each candidate; the softmax of the scores is a choice.

    The mean over the networks, and a guard: most of the dialogs that they were fitted on are of few subjects,
    and people who had a task opened them with a greeting or a request. Elsewhere a message often opens a
    thread by its subject alone: it points at nothing, replies to nothing, shares no word with any thread and
    is near none. `UNHEARD_OF` speaks for a new root then; it was set on dialogs that nothing was fitted on.
    """
    scores: Table = held.scores(rows).mean(0)
    root = dict(zip(FEATURES, rows[-1].tolist(), strict=True))
    leans = any(root["heard_" + name] for name in LEANING)
    if not leans and root["root_known"] == 0.0 and root["root_nearest"] < NEAR:
        scores[-1] += UNHEARD_OF
    return scores


@cache
def _stored() -> Mapping[str, Any]:
    with as_file(files(__package__).joinpath(FILE)) as path, np.load(path, allow_pickle=False) as held:
        found = {name: held[name] for name in held.files}
    assert found["features"].tolist() == list(FEATURES), "choosing.npz is of other columns; fit it again"
    return found


@cache
def networks(way: Way) -> Networks:
    """The networks for one way to go; the file is read at the first call."""
    held = _stored()
    return Networks(*(held[f"{way}_{field.name}"].astype(np.float32) for field in fields(Networks)))


@cache
def compatibility() -> Compatibility:
    """What was learned on vectors of the local model."""
    held = _stored()
    return Compatibility(*(held[name].astype(np.float32) for name in COMPATIBILITY))


@cache
def wording() -> Wording:
    """What was learned about words."""
    held = _stored()
    names = ("answer", "message", "opener", "closing")
    words = tuple(held["words"].item().split(" "))
    return Wording(words, *(held[f"word_{name}"].astype(np.float32) for name in names))


def way_to_go(model: str, dimensions: int | None) -> Way:
    """What vectors of a model allow.

    Args:
        model: Name of the embedding model; empty if it is not known.
        dimensions: Of its vectors; `None` if there are none.

    Example:
        >>> way_to_go("sentence-transformers/all-MiniLM-L6-v2", 384), way_to_go("another", 384)
        ('local', 'vectors')
    """
    if dimensions is None:
        return "words"
    fitted = FITTED_ON in model.lower() and dimensions == len(compatibility().opener)
    return "local" if fitted else "vectors"


def about() -> Mapping[str, Any]:
    """What the file says of itself: sources, sizes, when it was fitted with which options.

    Example:
        >>> "sources" in about()
        True
    """
    found: Mapping[str, Any] = json.loads(_stored()["about"].item())
    return found
