"""The fitted networks: loading and evaluating them.

`model.npz` beside this module holds arrays only (no pickle): for each of three inputs (vectors of the local
model, vectors of any model, words alone) a few small networks over the columns of `features.table.FEATURES`;
matrices learned on the vectors of the local model (all-MiniLM-L6-v2, Apache 2.0); and word vectors.
`training/fit_selection.py` makes the file, and its array `about` names the sources.

The learned matrices describe the dialogs of the fit better than others. So half of the networks were fitted
without them, and `score` gives these networks more weight in an unfamiliar conversation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import as_file, files
from typing import Any, Final, Literal

import numpy as np

from langchain_threadmem.threads.features.learned_words import Floats, WordVectors
from langchain_threadmem.threads.features.phrases import ENGLISH, Phrases
from langchain_threadmem.threads.features.similarity import Compatibility
from langchain_threadmem.threads.features.structure import Table
from langchain_threadmem.threads.features.table import FEATURES
from langchain_threadmem.threads.features.words import Reader

Way = Literal["local", "vectors", "words"]
"""The input of the networks: vectors of the local model, vectors of any model, or words alone."""
WAYS: Final[tuple[Way, ...]] = ("local", "vectors", "words")
FITTED_ON = "all-minilm-l6-v2"
"""A part of the name of the embedding model of the fit, in lower case."""
FILE = "model.npz"
COMPATIBILITY = ("answer", "human", "thread", "opener", "closing", "centers")
"""The arrays of `Compatibility`, in its order."""
STRANGER, KNOWN = 0.45, 0.57
"""`Candidates.familiar` is below the first in dialogs unlike those of the fit, above the second in others."""
MOST_AT_HOME = 0.75
"""The most weight of the networks that use the learned matrices."""
WIDEST = 4.0
"""The most usual spreads by which a column counts, so that no outlier outweighs all others."""


@dataclass(frozen=True, slots=True)
class Networks:
    """A few networks of one hidden layer and a direct path, whose scores are averaged.

    Attributes:
        mean: The mean of each column of `FEATURES` in the fit.
        scale: One by the spread of each column; zero for an unused column.
        inner: Weights of the hidden layer, of shape (networks, columns, hidden).
        bias: Of the hidden units, (networks, hidden).
        outer: Weights of the hidden units, (networks, hidden).
        direct: Weights of the columns themselves, (networks, columns).
        at_home: Of each network, 1 if it uses the learned matrices, 0 if not.
    """

    mean: Floats
    scale: Floats
    inner: Floats
    bias: Floats
    outer: Floats
    direct: Floats
    at_home: Floats

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


def score(held: Networks, rows: Table, familiar: float | None = None) -> Table:
    """The score of each candidate; the softmax of the scores is a choice.

    The weight of the networks that use the learned matrices rises with the familiarity of the conversation.

    Args:
        held: The networks.
        rows: `Candidates.rows`.
        familiar: `Candidates.familiar`; `None` for equal weights.
    """
    home = held.at_home > 0.5
    share = 0.5
    if familiar is not None:
        share = MOST_AT_HOME * min(max((familiar - STRANGER) / (KNOWN - STRANGER), 0.0), 1.0)
    if home.all() or not home.any():
        weights = np.full(len(home), 1.0 / len(home))
    else:
        weights = np.where(home, share / home.sum(), (1.0 - share) / (~home).sum())
    found: Table = weights @ held.scores(rows)
    return found


@cache
def _stored() -> Mapping[str, Any]:
    with as_file(files(__package__).joinpath(FILE)) as path, np.load(path, allow_pickle=False) as held:
        found = {name: held[name] for name in held.files}
    assert found["features"].tolist() == list(FEATURES), "model.npz is of other columns; fit it again"
    return found


@cache
def networks(way: Way, *, again: bool = False) -> Networks:
    """The networks for one input, or those for second looks.

    The file is read at the first call.
    """
    held, name = _stored(), f"{way}_again" if again else way
    return Networks(*(held[f"{name}_{field.name}"].astype(np.float32) for field in fields(Networks)))


@cache
def compatibility() -> Compatibility:
    """The matrices learned on vectors of the local model."""
    held = _stored()
    return Compatibility(*(held[name].astype(np.float32) for name in COMPATIBILITY))


@cache
def word_vectors() -> WordVectors:
    """The learned word vectors."""
    held = _stored()
    names = ("answer", "message", "opener", "closing")
    words, common = (tuple(held[name].item().split(" ")) for name in ("words", "terms"))
    learned = {name: held[f"word_{name}"].astype(np.float32) for name in names}
    return WordVectors(words, **learned, common=common, rarity=held["term_rarity"].astype(np.float32))


def reader(phrases: Phrases = ENGLISH) -> Reader:
    """A new reader of texts, without cached features."""
    return Reader(phrases, word_vectors())


def way_to_go(model: str, dimensions: int | None) -> Way:
    """The input that vectors of a model allow.

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
    """The description in the file: sources, sizes, options and time of the fit.

    Example:
        >>> "sources" in about()
        True
    """
    found: Mapping[str, Any] = json.loads(_stored()["about"].item())
    return found
