"""V-MDAV: MDAV with clusters of variable size, which follow the data where they lie in clumps.

A cluster of k takes in a neighbour that lies nearer to it than `gamma` times its distance to the records still free. Solanas,
Martínez-Ballesté, "V-MDAV: a multivariate microaggregation with variable group size", COMPSTAT 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from sfumato.core.ranges import Number
from sfumato.kernels.microaggregation.live import Space
from sfumato.kernels.microaggregation.partitions import v_mdav
from sfumato.masking.base import Context
from sfumato.masking.microaggregation.base import Int, Microaggregation


@dataclass(frozen=True)
class VMdav(Microaggregation):
    """Replace each record by the centroid of a cluster of `k` to 2k - 1 similar ones.

    `gamma` says how readily a cluster grows: 0 never, 0.2 suits scattered data, 1.1 clumped data. The same k-anonymity as
    `Mdav`, means of numbers are kept, and where the data are clumped less is lost.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> people = sf.read(pa.table({"age": [20, 21, 22, 23, 60, 61, 62]}), sf.Schema.of(quasi=["age"]))
    >>> sf.VMdav(3, gamma=1.1).apply(people).result.table.column("age").to_pylist()
    [22, 22, 22, 22, 61, 61, 61]
    """

    gamma: Annotated[float, Number(at_least=0), "how readily a cluster grows beyond k"] = 0.2

    def partition(self, space: Space, context: Context) -> Int:
        """Clusters by V-MDAV."""
        return v_mdav(space, self.k, self.gamma, context.progress)
