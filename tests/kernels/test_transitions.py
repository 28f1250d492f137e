"""Categories drawn from rows of a matrix: exactly the probabilities of the row, never an impossible category."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.kernels.changes.transitions import cumulative, drawn_by_row, kept_or_other

CELLS = 60


@pytest.mark.parametrize("code", range(3))
def test_every_draw_of_a_grid_together_gives_the_row(code: int) -> None:
    counts = np.array([[15, 0, 45], [0, 60, 0], [20, 20, 20]])
    draws = (np.arange(CELLS) + 0.5) / CELLS
    drawn = drawn_by_row(np.full(CELLS, code, dtype=np.int32), draws, cumulative(counts / CELLS))
    assert np.bincount(drawn, minlength=3).tolist() == counts[code].tolist()


@given(st.lists(st.sampled_from([0.0, 0.0, 0.1, 1 / 3, 1.0]), min_size=1, max_size=7), st.sampled_from([0.0, 0.5, 1 - 2.0**-53]))
def test_an_impossible_category_is_never_drawn(weights: list[float], draw: float) -> None:
    row = np.array(weights) if sum(weights) else np.ones(len(weights))
    row = row / row.sum()
    drawn = drawn_by_row(np.zeros(1, dtype=np.int32), np.array([draw]), cumulative(row[None, :]))
    assert row[drawn[0]] > 0


@pytest.mark.parametrize(("stay", "count", "code"), [(0.5, 6, 2), (0.0, 4, 0), (0.25, 4, 3), (0.5, 2, 1)])
def test_a_uniform_law_is_drawn_without_its_matrix(stay: float, count: int, code: int) -> None:
    draws = (np.arange(CELLS) + 0.5) / CELLS
    drawn = kept_or_other(np.full(CELLS, code, dtype=np.int32), draws, stay, count)
    expected = [CELLS * (stay if label == code else (1 - stay) / (count - 1)) for label in range(count)]
    assert np.bincount(drawn, minlength=count).tolist() == expected


def test_the_largest_draw_stays_within_the_categories() -> None:
    codes = np.array([0, 1, 2, -1], dtype=np.int32)
    assert kept_or_other(codes, np.full(4, 1 - 2.0**-53), 0.9, 3).tolist() == [2, 2, 1, -1]
