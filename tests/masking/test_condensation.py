"""Condensation: records drawn from counts, sums and sums of products of groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import ParameterError, Unsupported
from sfumato.core.randomness import default
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.microaggregation.condensation import drawn_from_groups


def table(count: int = 60, seed: int = 4) -> tuple[sf.Microdata, np.ndarray]:
    values = np.random.default_rng(seed).normal(size=(count, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 2.0]])
    return sf.read(pa.table({name: values[:, i] for i, name in enumerate("abc")})), values


def drawn(outcome: Any) -> np.ndarray:
    return np.stack([column.to_numpy() for column in outcome.result.table.columns], axis=1)


@pytest.mark.golden("G-MSK-08")
def test_groups_of_one_reproduce_every_record_and_say_so() -> None:
    data, values = table()
    outcome = sf.Condensation(1, columns=tuple("abc")).apply(data, seed=1)
    assert np.array_equal(drawn(outcome), values)
    assert "protects nobody" in outcome.result.transparency["notice"]
    assert "protects nobody" in outcome.details["notice"]


@pytest.mark.golden("G-MSK-08")
def test_one_group_of_all_has_their_mean_and_covariance_on_average() -> None:
    """60 records drawn 400 times: the mean of 24,000 draws has a standard error of σ/155; 7 of them are a false alarm with
    probability below 1e-10 for each of 9 numbers."""
    data, values = table()
    mask = sf.Condensation(60, columns=tuple("abc"))
    found = np.concatenate([drawn(mask.apply(data, seed=f"condensed {seed}")) for seed in range(400)])
    spread = values.std(axis=0)
    assert np.all(np.abs(found.mean(axis=0) - values.mean(axis=0)) < 7 * spread / np.sqrt(len(found)))
    covariance = np.cov(values.T, bias=True)
    products = np.outer(spread, spread)
    assert np.all(np.abs(np.cov(found.T) - covariance) < 7 * 1.2 * products / np.sqrt(len(found)))


def test_a_record_lies_within_the_box_along_the_eigenvectors_of_its_group() -> None:
    values = np.random.default_rng(8).normal(size=(40, 2))
    labels = np.repeat(np.arange(4), 10)
    found = drawn_from_groups(values, labels, 4, Draws(default("box")))
    for group in range(4):
        own = values[labels == group]
        variances, directions = np.linalg.eigh(np.cov(own.T, bias=True))
        along = (found[labels == group] - own.mean(axis=0)) @ directions
        assert np.all(np.abs(along) <= np.sqrt(3 * variances) + 1e-9)


def test_groups_that_lie_on_a_line_are_drawn_on_that_line() -> None:
    x = np.arange(30.0)
    data = sf.read(pa.table({"a": x, "b": 2 * x + 1}))
    found = drawn(sf.Condensation(5, columns=("a", "b")).apply(data, seed=2))
    assert np.allclose(found[:, 1], 2 * found[:, 0] + 1)
    assert not np.array_equal(found[:, 0], x)


def test_missing_cells_are_drawn_too() -> None:
    data = sf.read(pa.table({"a": [1.0, 2.0, None, 10.0, 11.0, 12.0], "b": [1.0, 2.0, 3.0, None, None, None]}))
    result = sf.Condensation(3, columns=("a", "b")).apply(data, seed=3).result.table
    assert result.column("a").null_count == result.column("b").null_count == 0
    assert np.isfinite(result.column("b").to_numpy()).all()


def test_what_cannot_be_condensed_is_refused() -> None:
    data, _ = table(5)
    with pytest.raises(ParameterError, match="k = 6"):
        sf.Condensation(6, columns=("a",)).apply(data)
    with pytest.raises(ParameterError, match="at least 1"):
        sf.Condensation(0)
    with pytest.raises(Unsupported, match="'town'"):
        sf.Condensation(2, columns=("town",)).apply(sf.read(pa.table({"town": ["x", "y"]})))
