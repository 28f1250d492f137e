"""Optimal univariate microaggregation: each column on its own, with the least squared error that groups of k allow.

Sort the values and cut them by a shortest path into groups of k to 2k - 1. Also known as individual ranking when applied
to several columns. Hansen, Mukherjee, "A polynomial algorithm for optimal univariate microaggregation", IEEE TKDE 15(4),
2003.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.guarantees.k_anonymity import KAnonymity
from sfumato.core.plain_data import Plain
from sfumato.data.microdata import Microdata
from sfumato.data.records import Records, magnitude, mean_of
from sfumato.kernels.microaggregation.live import Space
from sfumato.kernels.microaggregation.univariate import optimal_groups
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask
from sfumato.masking.microaggregation.base import ClusterSize, check_records, described_clusters
from sfumato.masking.microaggregation.clustered_records import means_of_clusters
from sfumato.masking.shown_rows import ShownRows

Int = NDArray[np.int64]
Real = NDArray[np.float64]


@dataclass(frozen=True)
class OptimalUnivariate(Mask):
    """Replace each number by the mean of its group of `k` to 2k - 1 neighbouring values, column by column.

    No other grouping of a single column loses less. Every value is shared by at least k records, but combinations of
    several columns are not: k-anonymity holds only for one quasi-identifier. Means are kept, and values keep their order
    within each stratum (neighbours may become equal). A missing cell counts as its column's mean and is filled with the mean
    of the known values of its group. O(n log n + nk).

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> numbers = sf.read(pa.table({"income": [1, 2, 3, 10, 11, 12]}))
    >>> sf.OptimalUnivariate(3, columns=("income",)).apply(numbers).result.table.column("income").to_pylist()
    [2, 2, 2, 11, 11, 11]
    """

    k: ClusterSize

    #: What does not vary in a stratum is shared by all of it, as by a cluster.
    refuses_constant_stratum: ClassVar[bool] = False
    certain: ClassVar[bool] = True

    def check(self, records: Records, people: Microdata) -> None:
        """Refuse fewer records than a group needs."""
        check_records("OptimalUnivariate", self.k, records)

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Group each column by itself."""
        values: dict[str, Any] = {}
        details: dict[str, Any] = {}
        for done, column in enumerate(records.numbers):
            context.progress("microaggregation", done, len(records.columns))
            present = column.known
            mean = mean_of(column.values[present]) if present.any() else 0.0
            filled = np.where(present, column.values, mean)
            unit = magnitude(filled)
            labels = optimal_partition(filled, self.k)
            values[column.name] = means_of_clusters(column.values, present, labels, int(labels.max()) + 1)[labels]
            clusters = described_clusters(Space.of_numbers((filled / unit)[:, None]), labels)
            details[column.name] = clusters | {"squared_error": min(clusters["squared_error"] * unit * unit, sys.float_info.max)}
        return Change(values, published=self.tells(records.names), details=details)

    def tells(self, names: tuple[str, ...]) -> Plain:
        """How many records a group has at least; each column is grouped by itself."""
        return {"k": self.k, "attribute_groups": [[name] for name in names]}

    def disproved_by(self, shown: ShownRows) -> bool:
        """Where fewer than k rows share a value."""
        names = shown.columns_of(self)
        shared = all(shown.are_shared_by(self.k, (name, *(self.strata or ()))) for name in names)
        return not shared or super().disproved_by(shown)

    def keeps(self) -> tuple[Kept, ...]:
        """Means; the order of values too, unless groups are made stratum by stratum."""
        note = "of columns without missing values"
        order = Kept("order", exactly=True, note=f"{note}; neighbours may become equal")
        return (Kept("mean", exactly=True, note=note), *(() if self.strata else (order,)))

    def claims(self, people: Microdata) -> tuple[ClassGuarantee, ...]:
        """k-anonymity where there is one quasi-identifier only."""
        quasi = people.schema.quasi
        masked = self.columns if self.columns is not None else quasi
        alone = len(quasi) == 1 and set(quasi) <= set(masked)
        return (KAnonymity(self.k),) if alone and not self.strata and people.schema.unit is None else ()


def optimal_partition(values: Real, k: int) -> Int:
    """The group of each value, numbered from the smallest values on."""
    order = np.argsort(values, kind="stable")
    sizes = optimal_groups(np.ascontiguousarray(values[order] / magnitude(values)), k)
    labels = np.empty(values.size, dtype=np.int64)
    labels[order] = np.repeat(np.arange(sizes.size), sizes)
    return labels
