"""The fitted networks: loading and evaluating them.

`model.npz` lies beside this module and holds arrays only (no pickle): for each of three ways to
go (vectors of the model that the numbers were fitted on, vectors of any model, words alone) a few
small networks over the columns of `features.FEATURES`, and what was learned on the vectors of the
local embedding model (all-MiniLM-L6-v2, Apache 2.0), whose embeddings of single words are also where
`Wording` began. `training/fit_selection.py` makes it; `about` in it says from what.

What is learned is what the dialogs of the fit are like, and others are not. So half of the networks were
fitted to do without that knowledge, and `score` listens to them where a conversation is not a familiar one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import as_file, files
from typing import Any, Final, Literal

import numpy as np

from langchain_threadmem.threads.features.learned_words import Floats, Wording
from langchain_threadmem.threads.features.phrases import ENGLISH, Cues
from langchain_threadmem.threads.features.similarity import Compatibility
from langchain_threadmem.threads.features.structure import Table
from langchain_threadmem.threads.features.table import FEATURES
from langchain_threadmem.threads.features.words import Reader

Way = Literal["local", "vectors", "words"]
"""What there is to go by: vectors of the model that was fitted on, of any model, or none."""
WAYS: Final[tuple[Way, ...]] = ("local", "vectors", "words")
FITTED_ON = "all-minilm-l6-v2"
"""Part of the names of the embedding model that compatibility was learned on, in lower case."""
FILE = "model.npz"
COMPATIBILITY = ("answer", "human", "thread", "opener", "closing", "centers")
"""The arrays of `Compatibility`, in its order."""
STRANGER, KNOWN = 0.45, 0.57
"""`Candidates.familiar` of dialogs of makes that were not fitted on is below, of those that were above."""
MOST_AT_HOME = 0.75
"""What the networks that are at home there count for at most."""
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
        at_home: Of each network, 1 if it is one for dialogs like those that were fitted on, 0 if for others.
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

    Some networks know what dialogs of the makes that were fitted on are like, some had to do without that
    knowledge. Which of them are listened to, and how much, depends on how familiar the conversation is.

    Args:
        held: The networks.
        rows: `Candidates.rows`.
        familiar: `Candidates.familiar`; `None` if it is not known: then all count the same.
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
    """The networks for one way to go, or those for a second look (`hindsight`).

    The file is read at the first call.
    """
    held, name = _stored(), f"{way}_again" if again else way
    return Networks(*(held[f"{name}_{field.name}"].astype(np.float32) for field in fields(Networks)))


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
    words, common = (tuple(held[name].item().split(" ")) for name in ("words", "terms"))
    learned = {name: held[f"word_{name}"].astype(np.float32) for name in names}
    return Wording(words, **learned, common=common, rarity=held["term_rarity"].astype(np.float32))


def reader(cues: Cues = ENGLISH) -> Reader:
    """A reader of texts by the words of a language, and by what was learned about words."""
    return Reader(cues, wording())


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
