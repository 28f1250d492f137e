"""Laws as tables: exact moments, how far from the law they are, and categories with the probabilities asked for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import norm

from sfumato.core.errors import Unsupported
from sfumato.kernels.sampling.cells import CELLS, PARTS, alias_cells, normal_cells, quantile_cells


def test_the_normal_law_has_mean_0_and_variance_1_and_tails_as_stated() -> None:
    cells = normal_cells()
    mean, variance = cells.moments()
    assert abs(mean) < 1e-14 and abs(variance - 1) < 1e-13
    low, high = cells.ends
    assert -5.6 < low < -5.5 and 5.5 < high < 5.6 and abs(low + high) < 1e-9
    assert cells.chance.sum() == pytest.approx(1, abs=1e-15) and cells.first.size == CELLS - 2 + 2 * PARTS


def test_the_normal_law_is_as_near_as_the_theory_says() -> None:
    """docs/theory/keyed-draws.md: distribution functions differ by less than 1.1·10⁻⁵, the total variation is below 3·10⁻⁴."""
    cells = normal_cells()
    points = np.linspace(-7, 7, 200_001)
    assert np.abs(cells.share_below(points) - ndtr(points)).max() < 1.1e-5
    edges = np.sort(np.append(cells.left, cells.ends[1]))
    fine = np.unique(np.concatenate([np.linspace(a, b, 5) for a, b in zip(edges[:-1], edges[1:], strict=True)]))
    masses = np.diff(cells.share_below(fine)), np.diff(ndtr(fine))
    assert np.abs(masses[0] - masses[1]).sum() / 2 + ndtr(cells.ends[0]) < 3e-4


def test_a_law_with_too_much_variance_in_its_tails_is_refused() -> None:
    with pytest.raises(Unsupported, match="tails"):
        quantile_cells(lambda share: np.exp(4 * norm.ppf(share)), float(np.exp(8)), float((np.exp(16) - 1) * np.exp(16)))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=17).filter(lambda weights: sum(weights) > 1e-6), st.integers(4, 60))
def test_aliases_have_the_probabilities_asked_for(weights: list[float], bits: int) -> None:
    probabilities = [float(weight) / sum(weights) for weight in weights]
    cells = alias_cells(probabilities, bits)
    shares = [Fraction(0)] * len(cells)
    for cell in cells:
        assert 0 <= cell.threshold <= 1 << bits
        shares[cell.own] += Fraction(cell.threshold, len(cells) << bits)
        shares[cell.other] += Fraction((1 << bits) - cell.threshold, len(cells) << bits)
    assert sum(shares) == 1
    total = sum(map(Fraction, probabilities))
    for share, wanted in zip(shares, [*probabilities, *[0.0] * (len(cells) - len(weights))], strict=True):
        assert abs(share - Fraction(wanted) / total) <= Fraction(len(weights), 1 << bits)
