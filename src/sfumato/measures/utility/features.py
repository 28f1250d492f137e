"""Records as points: numbers standardised, categories as indicators, so that models and clusterings can read mixed data.

The encoding is fitted once and applied to both sides. A missing number is put at the mean, a missing category at no
indicator; labels beyond the most frequent ones share the place of a missing one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.data.records import CategoryColumn, Records, in_units, unit_of

Real = NDArray[np.float64]

MOST_LABELS = 50
#: Nothing lies further away than this many deviations: squares stay finite, also in the single precision of decision trees.
FARTHEST = 1e18


@dataclass(frozen=True)
class Encoding:
    """How columns become features: unit, centre and scale of each number, the listed codes of each category, and which columns
    of numbers have an indicator of a missing value."""

    units: tuple[float, ...]
    centres: Real
    scales: Real
    listed: tuple[NDArray[np.int32], ...]
    marked: NDArray[np.bool_]

    @classmethod
    def of(cls, *sides: Records, mark_missing: bool = False) -> Encoding:
        """Fitted to the records of all sides together."""
        numbers = [np.concatenate([c.values for c in columns]) for columns in zip(*(s.numbers for s in sides), strict=True)]
        units = tuple(unit_of(values) for values in numbers)
        scaled = (in_units(values, unit) for values, unit in zip(numbers, units, strict=True))
        centres = np.array([_centre_and_scale(values) for values in scaled]).reshape(-1, 2)
        marked = np.array([mark_missing and bool(np.isnan(values).any()) for values in numbers], dtype=bool)
        categories = zip(*(side.categories for side in sides), strict=True)
        return cls(units, centres[:, 0], centres[:, 1], tuple(_most_frequent(columns) for columns in categories), marked)

    def points(self, records: Records) -> Real:
        """One row per record. Two records that differ in a category are as far apart as two whose numbers differ by one
        deviation."""
        numbers = records.matrix()
        missing = np.isnan(numbers)
        for place, unit in enumerate(self.units):
            numbers[:, place] = in_units(numbers[:, place], unit)
        with np.errstate(over="ignore"):  # what is infinitely far away is put at the farthest place
            scaled = np.clip((numbers - self.centres) / self.scales, -FARTHEST, FARTHEST)
        parts = [np.where(missing, 0.0, scaled), missing[:, self.marked].astype(np.float64)]
        for column, listed in zip(records.categories, self.listed, strict=True):
            parts.append((column.codes[:, None] == listed[None, :]) * np.sqrt(0.5))
        return np.hstack(parts)


def _centre_and_scale(values: Real) -> tuple[float, float]:
    """Mean and deviation of the known values; a constant is only moved."""
    present = values[~np.isnan(values)]
    if not present.size:
        return 0.0, 1.0
    moved = present - present[0]
    deviation = float(np.std(moved))
    return float(present[0] + moved.mean()), deviation if deviation > 0 else 1.0


def _most_frequent(columns: tuple[CategoryColumn, ...]) -> NDArray[np.int32]:
    counts = np.zeros(len(columns[0].labels), dtype=np.int64)
    for column in columns:
        counts += np.bincount(column.codes[column.known], minlength=counts.size)
    order = np.argsort(-counts, kind="stable")[:MOST_LABELS]
    return np.sort(order[counts[order] > 0]).astype(np.int32)
