"""Files of the selector's weights are written and read, and networks put side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy", reason="of the dependency group `training`")

from training import weights


def test_a_file_of_weights_is_read_as_it_was_written(tmp_path: Path) -> None:
    fits, about = weights.read()
    weights.write(tmp_path / "model.npz", fits, about)
    again, about_again = weights.read(tmp_path / "model.npz")
    assert about_again == about
    rows = np.random.default_rng(0).normal(size=(5, len(fits[0].networks.mean)))
    for fit, read in zip(fits, again, strict=True):
        np.testing.assert_array_equal(fit.networks.scores(rows), read.networks.scores(rows))
        assert fit.word_vectors.vocabulary == read.word_vectors.vocabulary
        assert (fit.of_agents is None) == (read.of_agents is None)
    assert again[0].of_agents is not None


def test_networks_side_by_side_choose_as_each_of_them() -> None:
    """Though the columns of the second have another mean and scale."""
    fits = weights.read()[0]
    first, second, _ = (fit.networks for fit in fits)
    spread = np.divide(0.1, first.scale, out=np.zeros_like(first.scale), where=first.scale > 0)
    rows = first.mean + spread * np.random.default_rng(0).normal(size=(5, len(first.mean)))
    expected = np.concatenate([first.scores(rows), second.scores(rows)])
    scores = weights.together(fits[0], fits[1]).networks.scores(rows)
    # A choice depends on differences between candidates alone.
    np.testing.assert_allclose(scores - scores[:, :1], expected - expected[:, :1], atol=1e-3)


def test_a_mixed_fit_has_half_of_the_networks_of_each_and_the_earlier_ones_for_agents() -> None:
    new = weights.read()[0][0]
    assert new.of_agents is not None
    earlier = replace(new, networks=new.of_agents[0], again=new.of_agents[1], of_agents=None)
    mixed = weights.mixed(new, earlier)
    home = new.networks.at_home > 0.5
    assert len(mixed.networks.bias) == len(home)
    assert len(mixed.again.bias) == len(new.again.bias)
    np.testing.assert_array_equal(mixed.networks.inner[:6], new.networks.inner[home])
    np.testing.assert_array_equal(mixed.networks.inner[6:9], new.networks.inner[~home][:3])
    assert mixed.of_agents == new.of_agents
    assert mixed.learned is new.learned
