"""Condensation: groups of similar records are kept as counts, sums and sums of products, and records are drawn anew from these.

In each group, numbers are drawn along the eigenvectors of its covariance, uniform with the eigenvalues as variances.
Aggarwal, Yu, "A condensation approach to privacy preserving data mining", EDBT 2004.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.core.plain_data import PlainDict
from sfumato.core.ranges import Count
from sfumato.data.microdata import Microdata
from sfumato.data.records import Records, magnitudes
from sfumato.kernels.microaggregation.partitions import mdav
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask
from sfumato.masking.microaggregation.base import check_records, described_clusters
from sfumato.masking.microaggregation.clustered_records import ClusteredRecords, means_of_clusters
from sfumato.masking.shown_rows import ShownRows

Int = NDArray[np.int64]
Real = NDArray[np.float64]

UNPROTECTED = "k = 1: every group is one record, which is reproduced as it is; this release protects nobody"


@dataclass(frozen=True)
class Condensation(Mask):
    """Draw each record anew from the mean and covariance of a group of `k` similar ones (by MDAV on standardised numbers).

    Only counts, sums and sums of products of at least k records are used, so that no single value is published. On average
    means and covariances are kept, overall and within groups; the shape within a group is not. With `k = 1` groups are
    single records, which come out as they went in: allowed, for comparison, and said in the published notice. A missing cell
    counts as the mean of its group's known values, and is drawn like any other.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> numbers = sf.read(pa.table({"a": [1.0, 2.0, 3.0, 10.0], "b": [2.0, 4.0, 6.0, 20.0]}))
    >>> sf.Condensation(1, columns=("a", "b")).apply(numbers, seed=1).result.table.column("b").to_pylist()
    [2.0, 4.0, 6.0, 20.0]
    """

    k: Annotated[Count, "the records of a group"]

    def check(self, records: Records, people: Microdata) -> None:
        """Refuse fewer records than a group needs."""
        check_records("Condensation", self.k, records)

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Group the records and draw as many as each group had."""
        clustered = ClusteredRecords(records, context.people)
        labels = np.arange(records.size) if self.k == 1 else mdav(clustered.space, self.k, context.progress)
        count = int(labels.max()) + 1
        filled = np.stack([_filled(column.values, column.known, labels, count) for column in records.numbers], axis=1)
        units = magnitudes(filled)
        with np.errstate(over="ignore"):  # what no number can hold is refused when the table is put together
            drawn = drawn_from_groups(filled / units, labels, count, draws) * units
        values = {column.name: drawn[:, position] for position, column in enumerate(records.numbers)}
        published = self.tells(records.names)
        return Change(values, published=published, details=described_clusters(clustered.space, labels) | published)

    def tells(self, names: tuple[str, ...]) -> PlainDict:
        """How many records a group has at least, and that groups of one protect nobody."""
        return {"k": self.k, **({"notice": UNPROTECTED} if self.k == 1 else {})}

    def disproved_by(self, shown: ShownRows) -> bool:
        """Where a stratum has fewer than k rows; what a group held is not shown."""
        return not shown.are_shared_by(self.k, self.strata or ()) or super().disproved_by(shown)

    def keeps(self) -> tuple[Kept, ...]:
        """Means and covariances, on average."""
        note = "of columns without missing values"
        return (Kept("mean", note=note), Kept("variance", note=note), Kept("covariance", note=note))


def drawn_from_groups(values: Real, labels: Int, count: int, draws: Draws) -> Real:
    """One record for each, from the mean and covariance of its group."""
    size, attributes = values.shape
    require(size > 0, "Condensation: there is nothing to draw from")
    means = np.stack([means_of_clusters(column, np.ones(size, np.bool_), labels, count) for column in values.T], axis=1)
    off = values - means[labels]
    sizes = np.bincount(labels, minlength=count)
    products = np.empty((count, attributes, attributes))
    for a in range(attributes):
        for b in range(a + 1):
            products[:, a, b] = products[:, b, a] = np.bincount(labels, off[:, a] * off[:, b], minlength=count) / sizes
    variances, directions = np.linalg.eigh(products)
    widths = np.sqrt(12.0 * np.maximum(variances, 0.0))
    along = (draws.uniform(size, attributes) - 0.5) * widths[labels]
    drawn: Real = means[labels] + np.einsum("nab,nb->na", directions[labels], along)
    return drawn


def _filled(values: Real, present: NDArray[np.bool_], labels: Int, count: int) -> Real:
    return np.where(present, values, means_of_clusters(values, present, labels, count)[labels])
