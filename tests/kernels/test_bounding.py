"""Rows by unit: shares divide the units, whatever their number, and a unit's rows stay together in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.kernels.classes.bounding import bounded_sums, rows_by_unit

ROWS, UNITS = 40_000, 3_000  # more rows than one part holds
KEY = np.uint64(77)


def given(wide: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(4)
    low = draw.integers(0, UNITS, ROWS).astype(np.uint64) * np.uint64(2_654_435_761)
    high = draw.integers(0, 2, ROWS).astype(np.uint64) if wide else np.zeros(0, np.uint64)
    return low, high, draw.integers(0, 40, ROWS).astype(np.int32)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("shares", [1, 2, 3, 4])
@pytest.mark.parametrize("by", [rows_by_unit, rows_by_unit.twin], ids=["compiled", "twin"])
def test_shares_divide_the_units(wide: bool, shares: int, by: Callable[..., Any]) -> None:
    low, high, leaf = given(wide)
    identity = list(zip(low.tolist(), (high if wide else low).tolist(), strict=True))
    rows_of: dict[Any, list[int]] = {}
    for row, unit in enumerate(identity):
        rows_of.setdefault(unit, []).append(row)
    seen = set()
    for share in range(shares):
        order, leaves, starts, seeds = by(low, high, leaf, KEY, share, shares)
        assert seeds.size == starts.size - 1 and starts[0] == 0 and starts[-1] == order.size
        assert (leaves == leaf[order]).all()
        for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            rows = order[begin:end].tolist()
            unit = identity[rows[0]]
            assert rows == rows_of[unit] and unit not in seen
            seen.add(unit)
    assert seen == set(rows_of)


@pytest.mark.parametrize("shares", [2, 3, 4])
def test_sums_do_not_depend_on_the_shares(shares: int) -> None:
    low, high, leaf = given(wide=False)
    values = np.random.default_rng(5).integers(-(2**62), 2**62, (ROWS, 1))
    flags = (values % 3 == 0).astype(np.uint8)
    rest: Any = (np.array([3, 4], np.uint64), np.arange(40, dtype=np.int32) // 2, 2, 5, values, flags)

    def summed(count: int) -> list[np.ndarray]:
        parts = [bounded_sums(*rows_by_unit(low, high, leaf, KEY, share, count), *rest) for share in range(count)]
        return [np.sum(part, axis=0) for part in zip(*parts, strict=True)]

    for whole, divided in zip(summed(1), summed(shares), strict=True):
        assert (whole == divided).all()
