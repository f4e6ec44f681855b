"""The data file of the selector's weights: writing it, reading it, combining several."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from langchain_threadmem.threads import model
from langchain_threadmem.threads.features.learned_words import WordVectors
from langchain_threadmem.threads.features.similarity import Compatibility
from langchain_threadmem.threads.features.table import FEATURES
from langchain_threadmem.threads.model import COMPATIBILITY, WAYS, Networks
from training.course import Fitted
from training.learn import mean, mean_word_vectors

SHIPPED = Path(model.__file__).with_name(model.FILE)
WORDING = ("answer", "message", "opener", "closing")
"""The arrays of `WordVectors`, in its order."""


def write(path: Path, fitted: Sequence[Fitted], about: Mapping[str, Any]) -> None:
    """Write the weights of all three ways to go.

    Args:
        path: The file, which is replaced.
        fitted: One fit for each way.
        about: What the file says of its making.
    """
    word_vectors = fitted[0].word_vectors
    arrays: dict[str, np.ndarray] = {
        "features": np.array(FEATURES),
        "about": np.array(json.dumps(about, sort_keys=True)),
        "words": np.array(" ".join(word_vectors.vocabulary)),
        "terms": np.array(" ".join(word_vectors.common)),
        "term_rarity": word_vectors.rarity.astype(np.float16),
    }
    arrays |= {f"word_{name}": getattr(word_vectors, name).astype(np.float16) for name in WORDING}
    for fit in fitted:
        for field in fields(Networks):
            arrays[f"{fit.way}_{field.name}"] = getattr(fit.networks, field.name).astype(np.float32)
            arrays[f"{fit.way}_again_{field.name}"] = getattr(fit.again, field.name).astype(np.float32)
        if fit.learned is not None:
            # Half precision changes no choice and halves the file.
            arrays |= {name: getattr(fit.learned, name).astype(np.float16) for name in COMPATIBILITY}
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]
    print(f"\n{path}: {path.stat().st_size / 1024:.0f} KB")


def read(path: Path = SHIPPED) -> tuple[list[Fitted], dict[str, Any]]:
    """The weights in a file, one fit for each way to go, and what the file says of its making."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}

    def numbers(name: str) -> np.ndarray:
        return arrays[name].astype(np.float32)

    def networks(prefix: str) -> Networks:
        return Networks(*(numbers(f"{prefix}_{field.name}") for field in fields(Networks)))

    words, terms = (tuple(arrays[name].item().split(" ")) for name in ("words", "terms"))
    learned_words = {name: numbers(f"word_{name}") for name in WORDING}
    word_vectors = WordVectors(words, **learned_words, common=terms, rarity=numbers("term_rarity"))
    learned = Compatibility(*map(numbers, COMPATIBILITY))
    fitted = [
        Fitted(
            way, networks(way), networks(f"{way}_again"), word_vectors, learned if way == "local" else None
        )
        for way in WAYS
    ]
    return fitted, json.loads(arrays["about"].item())


def combine(fits: Sequence[Fitted]) -> Fitted:
    """Several fits of one way to go as one: all their networks, and the means of the learned tables.

    The columns of later fits are brought to the mean and the scale of the first.
    """
    learned = [fit.learned for fit in fits if fit.learned is not None]
    return Fitted(
        fits[0].way,
        _side_by_side([fit.networks for fit in fits]),
        _side_by_side([fit.again for fit in fits]),
        mean_word_vectors([fit.word_vectors for fit in fits]),
        mean(learned) if learned else None,
    )


def _side_by_side(several: Sequence[Networks]) -> Networks:
    first = several[0]

    def moved(networks: Networks) -> Networks:
        used = first.scale > 0
        ratio = np.divide(networks.scale, first.scale, out=np.zeros_like(first.scale), where=used)
        shift = (first.mean - networks.mean) * networks.scale
        return replace(
            networks,
            inner=networks.inner * ratio[:, None],
            bias=networks.bias + shift @ networks.inner,
            direct=networks.direct * ratio,
        )

    all_moved = [first, *map(moved, several[1:])]
    names = ("inner", "bias", "outer", "direct", "at_home")
    joined = (np.concatenate([getattr(networks, name) for networks in all_moved]) for name in names)
    return Networks(first.mean, first.scale, *joined)
