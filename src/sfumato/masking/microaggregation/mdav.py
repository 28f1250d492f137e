"""MDAV: maximum distance to the average vector, the usual heuristic of multivariate microaggregation.

Clusters of k grow around the record farthest from the centroid, and around the one farthest from that. Domingo-Ferrer, Torra,
"Ordinal, continuous and heterogeneous k-anonymity through microaggregation", Data Mining and Knowledge Discovery 11(2), 2005.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.kernels.microaggregation.live import Space
from sfumato.kernels.microaggregation.partitions import mdav
from sfumato.masking.base import Context
from sfumato.masking.microaggregation.base import Int, Microaggregation


@dataclass(frozen=True)
class Mdav(Microaggregation):
    """Replace each record by the centroid of a cluster of `k` similar ones (the last cluster has up to 2k - 1).

    Against linkage by the masked attributes: when these are all the quasi-identifiers, the result is k-anonymous. Means
    of numbers stay as they are, variances shrink. Nothing is drawn at random. Time O(n²/k) at worst, memory O(n).

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> people = sf.read(pa.table({"age": [20, 22, 24, 60, 62, 64]}), sf.Schema.of(quasi=["age"]))
    >>> sf.Mdav(3).apply(people).result.table.column("age").to_pylist()
    [22, 22, 22, 62, 62, 62]
    """

    def partition(self, space: Space, context: Context) -> Int:
        """Clusters by MDAV."""
        return mdav(space, self.k, context.progress)
