"""OpenDP draws integer noise of the same law.

Two samples, one of each, put into the same cells and compared by chi-square. OpenDP takes a scale as a float and uses
exactly that binary number, so the scales here are binary fractions. Its draws come from the operating system and
cannot be seeded: the false-alarm rate of the whole file is below 10^-7.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

from sfumato.core.randomness import StreamRandomness
from sfumato.kernels.sampling import noise as sampling

pytestmark = pytest.mark.oracle

FALSE_ALARM = 1e-9
COUNT = 30_000


@pytest.fixture(autouse=True, scope="module")
def _contributed_parts() -> None:
    dp.enable_features("contrib")


def theirs(make: Any, scale: float) -> np.ndarray:
    space = dp.vector_domain(dp.atom_domain(T="i64")), (dp.l1_distance if make is dp.m.make_laplace else dp.l2_distance)(T="i64")
    return np.array(make(*space, scale=scale)([0] * COUNT), dtype=np.int64)


def two_sample_p_value(left: np.ndarray, right: np.ndarray) -> float:
    """Chi-square over cells that hold at least 40 of both samples together."""
    both = np.sort(np.concatenate([left, right]))
    ends = np.unique(both[40 :: max(40, both.size // 100)])
    counts = np.array([np.bincount(np.searchsorted(ends, sample), minlength=ends.size + 1) for sample in (left, right)])
    counts = counts[:, counts.sum(axis=0) >= 40]
    return float(stats.chi2_contingency(counts, correction=False).pvalue)


@pytest.mark.parametrize("scale", [0.25, 1.0, 3.375, 100.0, 2.0**30])
def test_laplace_draws_have_the_law_of_opendp(scale: float) -> None:
    ours = sampling.discrete_laplace(Fraction(scale), COUNT, StreamRandomness(f"opendp {scale}"))
    assert two_sample_p_value(ours, theirs(dp.m.make_laplace, scale)) > FALSE_ALARM


@pytest.mark.parametrize("deviation", [0.5, 1.0, 3.375, 100.0, 2.0**30])
def test_gaussian_draws_have_the_law_of_opendp(deviation: float) -> None:
    ours = sampling.discrete_gaussian(Fraction(deviation) ** 2, COUNT, StreamRandomness(f"opendp {deviation}"))
    assert two_sample_p_value(ours, theirs(dp.m.make_gaussian, deviation)) > FALSE_ALARM


def test_another_scale_is_told_apart() -> None:
    """The comparison has teeth: a scale that is a quarter off is refused.

    Chi-square is then 814 ± 55 with 100 degrees of freedom against 209: by chance it is not refused once in 10^25 times.
    """
    ours = sampling.discrete_laplace(Fraction(125), COUNT, StreamRandomness("opendp teeth"))
    assert two_sample_p_value(ours, theirs(dp.m.make_laplace, 100.0)) < FALSE_ALARM
