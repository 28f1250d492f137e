"""The forecast of what the cells of a table take is not exceeded by what a search takes."""

from __future__ import annotations

import os

import pytest

from benchmarks.cells import VALUES, measured
from sfumato.workflow.publishing.forecast import BYTES_PER_CELL, BYTES_PER_VALUE


@pytest.mark.slow
@pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="the largest resident set cannot be counted anew here"
)
@pytest.mark.parametrize(
    ("method", "rows", "sensitive"),
    [("Lattice", 150_000, False), ("Lattice", 150_000, True), ("LeastLoss", 150_000, False), ("Mondrian", 50_000, False)],
)
def test_a_search_takes_no_more_than_the_forecast_says(method: str, rows: int, sensitive: bool) -> None:
    run = measured(method, rows, sensitive=sensitive)
    assert run["cells"] > 0.9 * rows
    assert run["bytes"] <= BYTES_PER_CELL + BYTES_PER_VALUE * VALUES * sensitive
