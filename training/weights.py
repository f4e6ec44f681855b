"""Functions that write and read the file of the selector's weights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from langchain_threadmem.selection import model
from langchain_threadmem.selection.features.similarity import NO_WORDS, Compatibility, WordVectors
from langchain_threadmem.selection.features.table import FEATURES
from langchain_threadmem.selection.model import (
    LEARNED_WORDS,
    Networks,
    Way,
    compatibility_in,
    networks_in,
    read_arrays,
    word_vectors_in,
)
from training.course import Fitted

SHIPPED = Path(model.__file__).with_name(model.FILE)
WAYS: tuple[Way, ...] = ("local", "vectors", "words")
NEUTRAL: tuple[Way, ...] = ("multilingual", "neutral_vectors", "neutral_words")
"""The inputs of texts in English, and of texts in other languages."""


def write(
    path: Path, fitted: Sequence[Fitted], about: Mapping[str, Any], neutral: Sequence[Fitted] = ()
) -> None:
    """Write weights.

    Args:
        path: The file, which is replaced.
        fitted: One fit for each of `WAYS`.
        about: The metadata about the fit.
        neutral: One fit for each of `NEUTRAL`.
    """
    word_vectors = fitted[0].word_vectors
    arrays: dict[str, np.ndarray] = {
        "features": np.array(FEATURES),
        "about": np.array(json.dumps(about, sort_keys=True)),
        "words": np.array(" ".join(word_vectors.vocabulary)),
        "terms": np.array(" ".join(word_vectors.common)),
        "term_rarity": word_vectors.rarity.astype(np.float16),
    }
    arrays |= {f"word_{name}": getattr(word_vectors, name).astype(np.float16) for name in LEARNED_WORDS}
    arrays |= _arrays([*fitted, *neutral])
    _save(path, arrays)


def write_neutral(path: Path, fitted: Sequence[Fitted]) -> None:
    """Write a fit of the networks for other languages, which `fit_selection combine` adds to the others."""
    _save(path, _arrays(fitted))


def _arrays(fitted: Sequence[Fitted]) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    for fit in fitted:
        sets = {"": (fit.networks, fit.again)} | ({"agent_": fit.of_agents} if fit.of_agents else {})
        for prefix, (networks, again) in sets.items():
            for field in fields(Networks):
                name = f"{fit.way}_{prefix}{{}}{field.name}"
                arrays[name.format("")] = getattr(networks, field.name).astype(np.float32)
                arrays[name.format("again_")] = getattr(again, field.name).astype(np.float32)
        if fit.learned is not None:
            # Half precision changes no choice and halves the file.
            for field in fields(Compatibility):
                arrays[f"{fit.way}_{field.name}"] = getattr(fit.learned, field.name).astype(np.float16)
    return arrays


def _save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]
    print(f"\n{path}: {path.stat().st_size / 1024:.0f} KB")


def read_neutral(path: Path = SHIPPED) -> list[Fitted]:
    """The fits for other languages in a file, one for each of `NEUTRAL`."""
    arrays = read_arrays(path)
    return [_fitted(arrays, way, NO_WORDS) for way in NEUTRAL]


def read(path: Path = SHIPPED) -> tuple[list[Fitted], dict[str, Any]]:
    """The weights in a file, one fit for each of `WAYS`, and the metadata about the fit."""
    arrays = read_arrays(path)
    word_vectors = word_vectors_in(arrays)
    return [_fitted(arrays, way, word_vectors) for way in WAYS], json.loads(arrays["about"].item())


def _fitted(arrays: Mapping[str, np.ndarray], way: Way, word_vectors: WordVectors) -> Fitted:
    def pair(prefix: str) -> tuple[Networks, Networks]:
        return networks_in(arrays, prefix), networks_in(arrays, f"{prefix}again_")

    of_agents = pair(f"{way}_agent_") if f"{way}_agent_mean" in arrays else None
    return Fitted(way, *pair(f"{way}_"), word_vectors, compatibility_in(arrays, way), of_agents)


def together(first: Fitted, second: Fitted) -> Fitted:
    """The networks of two inputs as one set with equal weights, for the first input."""
    networks, again = (
        _side_by_side([getattr(first, name), getattr(second, name)]) for name in ("networks", "again")
    )
    equal = np.zeros_like(networks.at_home)
    return replace(first, networks=replace(networks, at_home=equal), again=again)


def mixed(new: Fitted, earlier: Fitted) -> Fitted:
    """Half of the networks of two fits for one input; those of the earlier fit for agents' conversations.

    The networks that use the learned similarities are those of the new fit, and so are the similarities.
    """

    def half(one: Networks) -> Networks:
        return _some(one, np.arange(len(one.bias) // 2))

    def others(one: Networks) -> Networks:
        return _some(one, np.flatnonzero(one.at_home <= 0.5))

    at_home = _some(new.networks, np.flatnonzero(new.networks.at_home > 0.5))
    networks = [at_home, half(others(new.networks)), half(others(earlier.networks))]
    again = _side_by_side([half(new.again), half(earlier.again)])
    of_agents = earlier.networks, earlier.again
    return replace(new, networks=_side_by_side(networks), again=again, of_agents=of_agents)


def _some(networks: Networks, chosen: np.ndarray) -> Networks:
    return replace(networks, **{name: getattr(networks, name)[chosen] for name in _EACH})


_EACH = ("inner", "bias", "outer", "direct", "at_home")
"""The arrays of `Networks` with a row for each network."""


def _side_by_side(several: Sequence[Networks]) -> Networks:
    """All networks as one set; later networks are adapted to the mean and the scale of the first."""
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
    joined = (np.concatenate([getattr(networks, name) for networks in all_moved]) for name in _EACH)
    return Networks(first.mean, first.scale, *joined)
