"""Resampling: the perfect mask, the bootstrap, and averages over sorted samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import sfumato as sf
from sfumato.core.errors import ParameterError, Unsupported
from tests.conformance.masks import CATEGORIES, NUMBERS, people


def linked(original: Any, masked: Any) -> int:
    """How many records are nearest, in standardised numbers, to the row that stands for them: brute force."""
    spread = original.std(axis=0)
    found = 0
    for i, record in enumerate(original):
        found += int(np.argmin((((masked - record) / spread) ** 2).sum(axis=1))) == i
    return found


def numbers(table: pa.Table) -> Any:
    return np.column_stack([table.column(name).to_numpy() for name in NUMBERS])


def test_independent_resampling_is_the_perfect_mask() -> None:
    """Linkage finds what blind guessing finds, within the binomial interval of 1/n (1e-6); the identity finds everybody."""
    data = people(200)
    original = numbers(data.table())
    found = sum(linked(original, numbers(sf.Resampling(columns=NUMBERS).apply(data, seed=s).result.table)) for s in range(25))
    low, high = stats.binom.ppf([5e-7, 1 - 5e-7], 25 * 200, 1 / 200)
    assert low <= found <= high
    assert linked(original, original) == 200


def test_independent_resampling_keeps_values_and_their_frequencies_and_no_dependence() -> None:
    data = people(2_000, missing=0.1)
    masked = sf.Resampling(columns=(*NUMBERS, *CATEGORIES)).apply(data, seed=1).result.table
    for name in (*NUMBERS, *CATEGORIES):
        before, after = data.table().column(name), masked.column(name)
        assert set(after.to_pylist()) <= set(before.to_pylist())
        share = before.null_count / 2_000
        assert abs(after.null_count / 2_000 - share) <= 5 * np.sqrt(share / 2_000)
    height, weight = (np.array(masked.column(name).to_pylist(), dtype=float) for name in ("height", "weight"))
    known = ~np.isnan(height) & ~np.isnan(weight)
    assert abs(np.corrcoef(height[known], weight[known])[0, 1]) < 5 / np.sqrt(known.sum())


def test_whole_records_come_back_as_they_are_and_say_so() -> None:
    data = people()
    result = sf.Resampling("joint", columns=NUMBERS).apply(data, seed=1).result
    assert result.rows is not None and len(result) == 400
    assert result.table.equals(data.table().take(pa.array(result.rows)))
    assert 0.55 < len(set(result.rows.tolist())) / 400 < 0.71  # 1 - 1/e of them are drawn
    assert result.transparency["model"] == "records resampled"


@pytest.mark.parametrize("samples", [1, 5])
def test_averages_of_sorted_samples_go_out_by_rank(samples: int) -> None:
    data = people(missing=0.1)
    masked = sf.Resampling("ranks", samples, columns=(*NUMBERS, "school")).apply(data, seed=1).result.table
    for name in NUMBERS:
        before, after = data.table().column(name).to_numpy(), masked.column(name).to_numpy()
        assert np.array_equal(np.isnan(before), np.isnan(after))
        known = ~np.isnan(before)
        assert np.all(np.diff(after[known][np.argsort(before[known])]) >= 0)
        assert abs(after[known].mean() - before[known].mean()) < 5 * before[known].std() / np.sqrt(samples * known.sum())
        assert set(after[known].tolist()) <= set(before[known].tolist()) if samples == 1 else True
    assert masked.column("school").null_count == data.table().column("school").null_count


def test_more_samples_come_closer_to_the_records() -> None:
    data = people()
    away = []
    for samples in (1, 100):
        masked = sf.Resampling("ranks", samples, columns=NUMBERS).apply(data, seed=1).result.table
        away.append(np.abs(numbers(masked) - numbers(data.table())).mean(axis=0))
    assert np.all(away[1] < away[0] / 3)


def test_strata_are_resampled_within() -> None:
    table = pa.table({"v": list(range(40)), "s": ["a"] * 20 + ["b"] * 20})
    for how in ("independent", "ranks", "joint"):
        masked = sf.Resampling(how, columns=("v",), strata=("s",)).apply(table, seed=1).result.table
        pairs = zip(masked.column("v").to_pylist(), masked.column("s").to_pylist(), strict=True)
        assert all((value < 20) == (stratum == "a") for value, stratum in pairs)


class TestRefusals:
    @pytest.mark.parametrize("parameters", [{"how": "bootstrap"}, {"samples": 0}, {"samples": True}])
    def test_parameters_out_of_range(self, parameters: dict[str, Any]) -> None:
        with pytest.raises(ParameterError, match="Resampling"):
            sf.Resampling(**parameters)

    def test_ranks_of_categories_without_an_order(self) -> None:
        with pytest.raises(Unsupported, match="'town'"):
            sf.Resampling("ranks", columns=("height", "town")).apply(people())

    def test_one_record_in_a_stratum(self) -> None:
        table = pa.table({"v": list(range(21)), "s": ["a"] * 20 + ["b"]})
        with pytest.raises(Unsupported, match="does not vary within 1 of 2 strata"):
            sf.Resampling(columns=("v",), strata=("s",)).apply(table)
        with pytest.raises(Unsupported, match="one value only"):
            sf.Resampling(columns=("v",)).apply(table.slice(0, 1))
