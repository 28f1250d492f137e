"""The counts of every class beside the counts of a reference: what all comparing guarantees start from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.core.guarantees.base import Reference
from sfumato.measures.guarantees.classes import Integers, ValueCounts
from sfumato.measures.guarantees.examined import ExaminedTable
from sfumato.measures.guarantees.protected import concerned, protected_mask


@dataclass(frozen=True, eq=False)
class Compared:
    """`values` are those of the table and of the reference; `expected[v]` counts value v among the
    `total` of the reference.
    """

    histogram: ValueCounts = field(repr=False)
    values: tuple[str | None, ...] = field(repr=False)
    expected: Integers = field(repr=False)
    total: int
    protected: tuple[str, ...] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        histogram: ValueCounts,
        reference: Mapping[str | None, int],
        protected: tuple[str, ...] | None = None,
    ) -> Compared:
        """Line up a histogram and a reference."""
        values = tuple(dict.fromkeys([*histogram.values, *reference]))
        expected = np.array([reference.get(value, 0) for value in values], dtype=np.int64)
        return cls(histogram, values, expected, int(expected.sum()), protected)

    @classmethod
    def against(
        cls,
        examined: ExaminedTable,
        attribute: str,
        which: Reference,
        protected: tuple[str, ...] | None = None,
    ) -> Compared:
        """The classes of a table beside its original or its own overall distribution."""
        return cls.of(examined.histogram(attribute), examined.reference(attribute, which), protected)

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Which values are protected."""
        return protected_mask(self.values, self.protected)

    @property
    def concerned(self) -> NDArray[np.bool_]:
        """Which classes contain a protected value."""
        return concerned(self.histogram, self.protected)

    @property
    def class_size(self) -> Integers:
        """For each pair the size of its class."""
        return self.histogram.sizes[self.histogram.klass]

    @property
    def largest_class(self) -> int:
        """The size of the largest class."""
        return int(self.histogram.sizes.max()) if self.histogram.sizes.size else 0
