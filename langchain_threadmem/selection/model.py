"""The trained networks that score candidates: loading and evaluation.

`model.npz` beside this module contains arrays only (no pickle): for each input (vectors of the local model,
vectors of any model, words alone, and the latter two for languages other than English) a few small networks
over the columns of `features.table.FEATURES`; matrices learned on vectors of the local model
(all-MiniLM-L6-v2, Apache 2.0); and word vectors. `training/` makes the file; the array `about` names the
sources.

The learned matrices fit the training dialogs better than other dialogs. So half of the networks are trained
without them, and `score` gives these networks more weight in an unfamiliar conversation. An agent's
conversation changes the subject more often than others, and has networks of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Literal

import numpy as np

from langchain_threadmem.common.arrays import Floats
from langchain_threadmem.selection.features.phrases import phrases_in
from langchain_threadmem.selection.features.similarity import NO_WORDS, Compatibility, WordVectors
from langchain_threadmem.selection.features.structure import Table
from langchain_threadmem.selection.features.table import FEATURES
from langchain_threadmem.selection.features.words import Reader

Way = Literal["local", "vectors", "words", "multilingual", "neutral_vectors", "neutral_words"]
"""The input of the networks: vectors of the local model, vectors of any model, or words alone; then for
languages other than English, without features that were learned from English words: vectors of the
multilingual model, vectors of any model, or words alone.
"""
LOCAL, MULTILINGUAL = "all-minilm-l6-v2", "universal-sentence-encoder"
"""Parts of the names of the embedding models used in training, in lower case."""
FILE = "model.npz"
LEARNED_WORDS = ("answer", "message", "opener", "closing")
"""The fields of `WordVectors` that are arrays with a row or a number for each word."""
UNFAMILIAR, FAMILIAR = 0.45, 0.57
"""`Candidates.familiar` is below the first value for conversations unlike the training dialogs, and above the
second value for others."""
MOST_AT_HOME = 0.75
"""The maximum weight of the networks that use the learned matrices."""
WIDEST = 4.0
"""The limit of a column in standard deviations, which bounds the weight of outliers."""


@dataclass(frozen=True, slots=True)
class Networks:
    """An ensemble of networks with one hidden layer and a skip connection.

    Attributes:
        mean: (columns,) the mean of each column of `FEATURES` in the training data.
        scale: (columns,) the reciprocal of the spread of each column; zero for an unused column.
        inner: (networks, columns, hidden) weights of the hidden layer.
        bias: (networks, hidden) biases of the hidden layer.
        outer: (networks, hidden) weights from the hidden layer to the score.
        direct: (networks, columns) weights from the columns to the score.
        at_home: (networks,) 1 for a network that uses the learned matrices, 0 for others.
    """

    mean: Floats
    scale: Floats
    inner: Floats
    bias: Floats
    outer: Floats
    direct: Floats
    at_home: Floats

    def scores(self, rows: Table) -> Table:
        """The score of each row by each network, (networks, rows).

        Example:
            >>> networks("words").scores(np.zeros((2, len(FEATURES)))).shape[1]
            2
        """
        inputs = ((rows - self.mean) * self.scale).clip(-WIDEST, WIDEST).astype(np.float32)
        hidden = np.maximum(inputs @ self.inner + self.bias[:, None, :], 0.0)
        scores: Table = ((hidden @ self.outer[:, :, None])[..., 0] + self.direct @ inputs.T).astype(float)
        return scores


def score(ensemble: Networks, rows: Table, familiar: float | None = None) -> Table:
    """The score of each candidate; `softmax` of the scores gives the probabilities.

    The weight of the networks that use the learned matrices rises with the familiarity of the conversation.

    Args:
        ensemble: The networks.
        rows: `Candidates.rows`.
        familiar: `Candidates.familiar`; `None` for equal weights.
    """
    home = ensemble.at_home > 0.5
    share = 0.5
    if familiar is not None:
        share = MOST_AT_HOME * min(max((familiar - UNFAMILIAR) / (FAMILIAR - UNFAMILIAR), 0.0), 1.0)
    if home.all() or not home.any():
        weights = np.full(len(home), 1.0 / len(home))
    else:
        weights = np.where(home, share / home.sum(), (1.0 - share) / (~home).sum())
    scores: Table = weights @ ensemble.scores(rows)
    return scores


def softmax(scores: Table) -> Table:
    """The probabilities of candidates, by their scores."""
    weights: Table = np.exp(scores - scores.max())
    weights /= weights.sum()
    return weights


def read_arrays(file: Traversable) -> Mapping[str, Any]:
    """The arrays of a file by their names."""
    with file.open("rb") as opened, np.load(opened, allow_pickle=False) as archive:
        return dict(archive)


def networks_in(arrays: Mapping[str, Any], prefix: str = "") -> Networks:
    """The networks in the arrays of a file whose names begin with a prefix."""
    return Networks(*(arrays[prefix + field.name].astype(np.float32) for field in fields(Networks)))


def compatibility_in(arrays: Mapping[str, Any], way: Way) -> Compatibility | None:
    """The matrices for one input in the arrays of a file; `None` if there are none."""
    names = [f"{way}_{field.name}" for field in fields(Compatibility)]
    return Compatibility(*(arrays[name].astype(np.float32) for name in names)) if names[0] in arrays else None


def word_vectors_in(arrays: Mapping[str, Any]) -> WordVectors:
    """The word vectors in the arrays of a file."""
    words, common = (tuple(arrays[name].item().split(" ")) for name in ("words", "terms"))
    learned = {name: arrays[f"word_{name}"].astype(np.float32) for name in LEARNED_WORDS}
    return WordVectors(words, **learned, common=common, rarity=arrays["term_rarity"].astype(np.float32))


@cache
def _arrays() -> Mapping[str, Any]:
    arrays = read_arrays(files(__package__).joinpath(FILE))
    assert arrays["features"].tolist() == list(FEATURES), "model.npz has other columns; run `make fit`"
    return arrays


@cache
def networks(way: Way, *, again: bool = False, agent: bool = False) -> Networks:
    """The networks for one input; the first call reads the file.

    Args:
        way: The input.
        again: Whether the networks are for second looks.
        agent: Whether the conversation is an agent's; inputs without networks for it have the usual ones.
    """
    arrays, prefix = _arrays(), f"{way}_agent_"
    if not agent or f"{prefix}mean" not in arrays:
        prefix = f"{way}_"
    return networks_in(arrays, f"{prefix}again_" if again else prefix)


@cache
def compatibility(way: Way = "local") -> Compatibility | None:
    """The matrices learned on vectors of the local or of the multilingual model; `None` for other inputs."""
    return compatibility_in(_arrays(), way)


@cache
def word_vectors() -> WordVectors:
    """The learned word vectors."""
    return word_vectors_in(_arrays())


def reader(language: str = "en") -> Reader:
    """A new reader of texts in a language, without cached features."""
    return Reader(phrases_in(language), word_vectors() if language == "en" else NO_WORDS)


def input_of(model: str, dimensions: int | None, *, neutral: bool = False) -> Way:
    """The richest input that an embedding model allows.

    Args:
        model: Name of the embedding model; empty if unknown.
        dimensions: Dimensions of the vectors; `None` without vectors.
        neutral: Whether the texts are in another language than English, which the local model does not
            support.

    Example:
        >>> input_of("sentence-transformers/all-MiniLM-L6-v2", 384), input_of("another", 384)
        ('local', 'vectors')
    """

    def is_model(name: str, way: Way) -> bool:
        learned = compatibility(way)
        return name in model.lower() and learned is not None and dimensions == len(learned.opener)

    if dimensions is None:
        return "neutral_words" if neutral else "words"
    is_local = is_model(LOCAL, "local")
    if not neutral:
        return "local" if is_local else "vectors"
    if is_local:
        return "neutral_words"
    return "multilingual" if is_model(MULTILINGUAL, "multilingual") else "neutral_vectors"
