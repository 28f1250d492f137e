"""Masks within strata, and with missing values: nothing stays as it is without a word, and what is said to be kept is kept."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import Unsupported
from sfumato.masking.base import Mask

COLUMNS = ("a", "b")
GIVEN: dict[str, Any] = {"columns": COLUMNS, "strata": ("s",), "whole": False}


def table(missing: float = 0.0, count: int = 240) -> pa.Table:
    """Two strata that overlap, with other means, spreads and correlations."""
    random = np.random.default_rng(5)
    half = np.arange(count) % 2
    a = random.normal(size=count) * (1 + 3 * half) + half
    b = 5 * random.normal(size=count) + np.where(half, 2 * a, -a) + 20 * half
    gone = random.random((2, count)) < missing
    return pa.table({"a": pa.array(a, mask=gone[0]), "b": pa.array(b, mask=gone[1]), "s": np.array(["x", "y"])[half]})


#: Masks of numbers, in all the ways that say something else about what they keep.
MASKS: dict[str, Mask] = {
    "additive": sf.AdditiveNoise(0.3, "exact", **GIVEN),
    "additive rescaled": sf.AdditiveNoise(0.3, "exact", True, **GIVEN),
    "correlated": sf.CorrelatedNoise(0.3, moments="exact", **GIVEN),
    "correlated rescaled": sf.CorrelatedNoise(0.3, True, "exact", **GIVEN),
    "coded by value": sf.TopBottomCoding(top=1.0, bottom=-1.0, **GIVEN),
    "coded by value, means": sf.TopBottomCoding(top=1.0, bottom=-1.0, show="mean", **GIVEN),
    "coded by quantile": sf.TopBottomCoding(top=0.9, bottom=0.1, by="quantile", **GIVEN),
    "coded by quantile, means": sf.TopBottomCoding(top=0.9, bottom=0.1, by="quantile", show="mean", **GIVEN),
    "rounding": sf.Rounding(0.5, **GIVEN),
    "univariate": sf.OptimalUnivariate(4, **GIVEN),
    "mdav": sf.Mdav(4, **GIVEN),
    "v-mdav": sf.VMdav(4, **GIVEN),
    "cbfs": sf.Cbfs(4, **GIVEN),
    "ranks": sf.Resampling("ranks", **GIVEN),
    "ipso A": sf.Ipso("A", predictors=("c",), **GIVEN),
    "ipso B": sf.Ipso("B", **GIVEN),
    "ipso C": sf.Ipso("C", **GIVEN),
    "ipso groups": sf.Ipso("C", groups=2, **GIVEN),
}


def numbers(shown: pa.Table) -> Any:
    return np.column_stack([shown.column(name).to_numpy(zero_copy_only=False) for name in COLUMNS])


def check(what: str, before: Any, after: Any) -> None:
    """The statement for the whole table, over the cells given."""
    if what == "mean":
        assert np.allclose(np.nanmean(before, axis=0), np.nanmean(after, axis=0), rtol=1e-9)
    elif what == "variance":
        assert np.allclose(np.nanvar(before, axis=0), np.nanvar(after, axis=0), rtol=1e-9)
    elif what == "covariance":
        assert np.allclose(np.cov(before.T), np.cov(after.T), rtol=1e-9)
    elif what == "correlation":
        assert np.allclose(np.corrcoef(before.T), np.corrcoef(after.T), rtol=1e-9)
    elif what == "order":
        for left, right in zip(before.T, after.T, strict=True):
            known = ~np.isnan(left)
            assert np.all(np.diff(right[known][np.argsort(left[known], kind="stable")]) >= -1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.15])
@pytest.mark.parametrize("name", MASKS)
def test_what_a_mask_with_strata_says_is_kept_exactly_is_kept_of_the_whole_table(name: str, missing: float) -> None:
    """A statement "without missing values" is held to by the records (and, for masks that fill cells, the tables) without."""
    data = table(missing).append_column("c", pa.array(np.random.default_rng(8).normal(size=240)))
    before, after = numbers(data), numbers(MASKS[name].apply(data, seed=3).result.table)
    complete = ~np.isnan(before).any(axis=1)
    for kept in MASKS[name].keeps():
        if not kept.exactly or kept.what == "regression":
            continue
        if "columns" in kept.note and missing:
            continue
        if "records without missing values" in kept.note:
            check(kept.what, before[complete], after[complete])
        else:
            check(kept.what, before, after)


def test_correlations_of_strata_with_inflated_covariances_are_not_those_of_the_table() -> None:
    """Why `CorrelatedNoise` does not say so: what differs between strata is not inflated."""
    data = table()
    after = numbers(sf.CorrelatedNoise(3.0, moments="exact", **GIVEN).apply(data, seed=3).result.table)
    assert abs(np.corrcoef(numbers(data).T)[0, 1] - np.corrcoef(after.T)[0, 1]) > 0.01
    said = [kept.what for kept in sf.CorrelatedNoise(3.0, columns=COLUMNS).keeps()]
    assert said == ["mean", "correlation"] and [kept.what for kept in sf.CorrelatedNoise(3.0, **GIVEN).keeps()] == ["mean"]


@pytest.mark.parametrize("name", ["univariate", "coded by quantile", "coded by value, means", "ranks"])
def test_order_is_promised_without_strata_only(name: str) -> None:
    assert "order" in [kept.what for kept in dataclasses.replace(MASKS[name], strata=None).keeps()]
    assert "order" not in [kept.what for kept in MASKS[name].keeps()]


STILL = {
    "additive": sf.AdditiveNoise(0.5, **GIVEN),
    "correlated": sf.CorrelatedNoise(0.5, **GIVEN),
    "condensation": sf.Condensation(3, **GIVEN),
    "resampling": sf.Resampling(**GIVEN),
    "ranks": sf.Resampling("ranks", **GIVEN),
    "ipso": sf.Ipso(**GIVEN),
    "partially synthetic": sf.PartiallySynthetic(predictors=("c",), **GIVEN),
}


@pytest.mark.parametrize("name", STILL)
def test_a_column_that_would_stay_as_it_is_in_a_stratum_is_refused(name: str) -> None:
    data = table().append_column("c", pa.array(np.random.default_rng(8).normal(size=240)))
    still = np.where(np.arange(240) % 2, 7261.5, data.column("a").to_numpy())
    with pytest.raises(Unsupported, match=r"'a' does not vary within 1 of 2 strata, .* merge strata") as refusal:
        STILL[name].apply(data.set_column(0, "a", pa.array(still)), seed=1)
    assert "7261" not in str(refusal.value)


@pytest.mark.parametrize("name", ["mdav", "univariate", "coded by value"])
def test_a_constant_stratum_is_harmless_where_its_value_is_shared_or_changed_all_the_same(name: str) -> None:
    data = table()
    still = np.where(np.arange(240) % 2, 5.5, data.column("a").to_numpy())
    shown = MASKS[name].apply(data.set_column(0, "a", pa.array(still)), seed=1).result.table.column("a").to_numpy()
    assert set(shown[1::2]) == {1.0 if name == "coded by value" else 5.5}


def test_multiplied_and_rounded_constants_of_a_stratum_change() -> None:
    data = table()
    constant = data.set_column(0, "a", pa.array(np.where(np.arange(240) % 2, 7.3, data.column("a").to_numpy())))
    for mask in (sf.MultiplicativeNoise(40, **GIVEN), sf.Rounding(0.5, **GIVEN)):
        assert not (mask.apply(constant, seed=1).result.table.column("a").to_numpy()[1::2] == 7.3).any()
