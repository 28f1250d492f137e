"""The earth mover's distance over any ground distance, against POT (Python Optimal Transport)."""

from __future__ import annotations

import numpy as np
import ot
import pytest

from sfumato.core.errors import ParameterError
from sfumato.measures.guarantees.distances import emd_general

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("seed", range(12))
def test_the_cheapest_transport_is_that_of_pot(seed: int) -> None:
    """Any ground distances, metric or not, on scales from 1e-6 to 1e6, with values that one side lacks."""
    draw = np.random.default_rng(seed)
    size = int(draw.integers(2, 60))
    p, q = (draw.integers(0, 9, size).astype(np.float64) for _ in range(2))
    p[0] += 1
    q[-1] += 1
    ground = draw.random((size, size)) * 10.0 ** draw.integers(-6, 7)
    expected = float(ot.emd2(p / p.sum(), q / q.sum(), ground))
    assert emd_general(p / p.sum(), q / q.sum(), ground) == pytest.approx(expected, rel=1e-8, abs=1e-8 * ground.max())


def test_points_on_a_line_cost_what_their_distance_says() -> None:
    assert emd_general((1.0, 0.0, 0.0), (0.0, 0.0, 1.0), [[0, 2, 5], [2, 0, 3], [5, 3, 0]]) == pytest.approx(5)
    assert emd_general((0.5, 0.5), (0.5, 0.5), [[0, 1], [1, 0]]) == pytest.approx(0, abs=1e-12)
    assert emd_general((1.0,), (1.0,), [[3]]) == pytest.approx(3)
    assert emd_general((0.5, 0.5), (0.2, 0.8), [[0, 0], [0, 0]]) == 0


def test_a_ground_distance_without_an_end_is_refused() -> None:
    with pytest.raises(ParameterError, match="finite"):
        emd_general((0.5, 0.5), (0.5, 0.5), [[0, np.inf], [1, 0]])
