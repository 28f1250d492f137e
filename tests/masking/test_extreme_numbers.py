"""Very large and very small numbers: the same masks as for ordinary ones, or one clear error; no warning, and no endless loop."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import SfumatoError, Unsupported
from sfumato.data.records import deviation_of, magnitude, mean_of
from sfumato.kernels.microaggregation.univariate import _optimal_groups_numpy, optimal_groups
from sfumato.masking.base import Mask

BOTH = ("x", "y")
MASKS: dict[str, Mask] = {
    "additive": sf.AdditiveNoise(0.5, columns=BOTH),
    "additive exact": sf.AdditiveNoise(0.5, "exact", columns=BOTH),
    "correlated": sf.CorrelatedNoise(0.5, columns=BOTH),
    "correlated exact": sf.CorrelatedNoise(0.5, moments="exact", columns=BOTH),
    "multiplicative": sf.MultiplicativeNoise(10, columns=BOTH),
    "coding": sf.TopBottomCoding(top=0.8, by="quantile", show="mean", columns=BOTH),
    "univariate": sf.OptimalUnivariate(3, columns=BOTH),
    "mdav": sf.Mdav(3, columns=BOTH),
    "v-mdav": sf.VMdav(3, columns=BOTH),
    "cbfs": sf.Cbfs(3, columns=BOTH),
    "condensation": sf.Condensation(3, columns=BOTH),
    "ranks": sf.Resampling("ranks", columns=BOTH),
    "ipso": sf.Ipso(columns=BOTH),
    "ipso groups": sf.Ipso(groups=2, columns=BOTH),
    "ipso predicted": sf.Ipso(predictors=("y",), columns=("x",)),
    "trees": sf.PartiallySynthetic(predictors=("y",), columns=("x",), smooth=True),
    "linear": sf.PartiallySynthetic(predictors=("y",), columns=("x",), model="linear"),
}


def numbers(scale: float) -> pa.Table:
    random = np.random.default_rng(0)
    return pa.table({name: random.normal(size=60) * scale for name in BOTH})


@pytest.mark.parametrize("power", [-1000, -660, 660, 1000])
@pytest.mark.parametrize("name", MASKS)
def test_a_mask_does_to_numbers_of_any_size_what_it_does_to_others(name: str, power: int) -> None:
    """Powers of two change no digit, so that the masked values differ by just that factor."""
    scale = 2.0**power
    expected = MASKS[name].apply(numbers(1.0), seed=1).result.table
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcome = MASKS[name].apply(numbers(scale), seed=1)
    for column in outcome.result.columns:
        shown = outcome.result.table.column(column).to_numpy() / scale
        assert np.allclose(shown, expected.column(column).to_numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["additive", "additive exact", "correlated", "multiplicative", "ipso", "condensation"])
def test_what_no_number_can_hold_is_refused(name: str) -> None:
    table = pa.table({column: np.random.default_rng(i).choice([-1.7e308, 1.7e308, 1.6e308], 60) for i, column in enumerate(BOTH)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SfumatoError, match="'[xy]'"):
            MASKS[name].apply(table, seed=1)


def test_distances_that_are_not_standardised_are_refused_where_they_overflow() -> None:
    with pytest.raises(Unsupported, match="'x' has numbers so large"):
        sf.Mdav(3, columns=BOTH, standardise=False).apply(numbers(1e200))


@pytest.mark.parametrize("groups", [optimal_groups, _optimal_groups_numpy])
@pytest.mark.parametrize("scale", [1.0, 1e160, 1e300])
def test_a_shortest_path_ends_although_squares_overflow(groups: object, scale: float) -> None:
    values = np.sort(np.random.default_rng(1).normal(size=50)) * scale
    sizes = groups(values, 3)  # type: ignore[operator]
    assert sizes.sum() == 50 and sizes.min() >= 3 and sizes.max() <= 5


def test_magnitudes_are_powers_of_two_next_to_the_largest_value() -> None:
    assert magnitude(np.array([3.0, -9.0, np.nan])) == 8.0 and magnitude(np.array([])) == 1.0 and magnitude(np.zeros(2)) == 1.0
    assert magnitude(np.array([np.nan])) == 1.0 and magnitude(np.array([5e-324])) == 5e-324
    large = np.array([1.5e308, 1.7e308])
    assert mean_of(large) == pytest.approx(1.6e308) and deviation_of(large) == pytest.approx(1e307)
