"""All quantiles of a column from one private release: a tree of noisy counts between declared bounds.

Cut the declared range into leaves of equal width, count them in a tree, add noise to every node, make the tree
consistent and read off any number of quantiles. See `count_tree`.
Hay, Rastogi, Miklau, Suciu, "Boosting the accuracy of differentially private histograms through consistency",
PVLDB 2010.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, cast

import numpy as np
from numpy.typing import NDArray

from sfumato.core import ranges
from sfumato.core.declared import formerly
from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.core.outcome import Outcome
from sfumato.core.plain_data import Plain
from sfumato.core.progress import Progress, silent
from sfumato.core.randomness import Randomness, default
from sfumato.core.ranges import ColumnName, Each, Whole
from sfumato.data.microdata import Microdata
from sfumato.dp.algorithms.base import RowBounded
from sfumato.dp.algorithms.contributions import BoundedBy, KeptRows, OrderedBy
from sfumato.dp.algorithms.count_tree import BRANCHING, noisy_tree, quantile, rank_deviation, tree_sensitivity
from sfumato.dp.algorithms.declared_values import Axis, check_unit, declared_axis, refuse
from sfumato.dp.algorithms.histogram import PrivateHistogram
from sfumato.dp.algorithms.spending import Epsilon, LossShare, Rho, one_of_them
from sfumato.dp.mechanisms.base import Error
from sfumato.dp.outcomes import private_outcome

if TYPE_CHECKING:
    import pyarrow as pa


@formerly(max_rows="rows")
@dataclass(frozen=True)
class PrivateQuantiles(RowBounded):
    """`quantiles` of one `column` of numbers; however many are asked for, they cost the same.

    An adversary who sees them, and knows everything but the noise, learns almost nothing about whether one unit is in the
    data. A unit (a value of the schema's unit column, else a record) keeps at most `max_rows` rows, by `bounding` and `order`.
    `epsilon` or `rho` is the loss of them all.

    `leaves` is the resolution: values are distinguished down to the declared width divided by it; a column of whole
    numbers with no more values than that gets one leaf per value. The cost of a finer resolution is one more level of
    noise for each factor of `branching`.

    >>> PrivateQuantiles("income", (0.25, 0.5, 0.75), epsilon=1).error().deviation < 30   # in ranks, whatever the table's size
    True
    """

    column: Annotated[ColumnName, "the column of numbers"]
    quantiles: Annotated[
        Sequence[float],
        Each(ranges.Number(at_least=0, at_most=1), at_least=1, what="one or more numbers from 0 to 1", alone=True),
        "the shares of the rows that lie below the answers",
    ] = (0.5,)
    epsilon: Epsilon = None
    rho: Rho = None
    leaves: Annotated[int, Whole(at_least=2, at_most=1 << 22), "how many values are distinguished"] = BRANCHING**3
    branching: Annotated[int, Whole(at_least=2, at_most=1024), "the children of a node of the tree of counts"] = BRANCHING
    max_rows: KeptRows = None
    bounding: BoundedBy = "sample"
    order: OrderedBy = None

    def coherent(self) -> Iterable[str]:
        return one_of_them(self.epsilon, self.rho)

    def loss(self) -> LossGuarantee:
        return self._spending.guarantee()

    def error(self) -> Error:
        """Of a quantile's rank, in rows: at most that far from the rank asked for, besides the resolution."""
        parameter = self._spending.noise_parameter(*tree_sensitivity(self.leaves, self.branching, self.kept_rows))
        deviation = rank_deviation(self.leaves, self.branching, parameter, self._spending.law)
        return Error(deviation, law="gaussian" if self._spending.law == "gaussian" else "other", bound=True)

    def run(self, data: Microdata, *, randomness: Randomness | None = None, progress: Progress = silent) -> Outcome[pa.Table]:
        """An Arrow table with the columns `quantile` and `value`."""
        import pyarrow as pa

        source = randomness or default()
        axis, leaf_counts = self.leaf_counts(data, source)
        progress("adding noise", 0, 0)
        spending = self._spending
        l1, l2_squared = tree_sensitivity(leaf_counts.size, self.branching, self.kept_rows)
        parameter = spending.noise_parameter(l1, l2_squared)
        tree = noisy_tree(leaf_counts, self.branching, parameter, spending.law, source)
        values = [self._value(axis, quantile(tree, q), leaf_counts.size) for q in self.quantiles]
        return private_outcome(
            pa.table({"quantile": pa.array([float(q) for q in self.quantiles]), "value": pa.array(values, pa.float64())}),
            spending.guarantee(unit=data.schema.unit or "record"),
            {"name": self.name, **self.parameters()},
            argument=f"the leaves are declared; all node counts together change by at most {l1} in L1 ({l2_squared} in squared "
            f"L2) and each carries discrete {spending.law} noise with the parameter {parameter}; the rest is computed from them",
            randomness=source,
            dataset=data.schema.dataset,
            rows=tree.total,
            **self.tells(),
        )

    def left_out(self) -> str:
        return "Rows without a number are left out; a number beyond its bounds counts as the nearest bound"

    def tells(self) -> Plain:
        """The standard deviation of a rank."""
        return {"rank_deviation": self.error().deviation}

    def leaf_counts(self, data: Microdata, randomness: Randomness | None = None) -> tuple[Axis, NDArray[np.int64]]:
        """The exact counts of the leaves after bounding: the owner's, not for release."""
        axis = self._axis(data)
        return axis, self._histogram(axis).counts(data, randomness)

    def _axis(self, data: Microdata) -> Axis:
        faults: list[str] = []
        check_unit(data, self.max_rows, faults)
        axis = declared_axis(data, self.column, faults)
        refuse(data, self.name, faults)
        return cast(Axis, axis)

    def _histogram(self, axis: Axis) -> PrivateHistogram:
        values = math.floor(axis.high) - math.ceil(axis.low) + 1
        bins: dict[str, int | Sequence[float]] = {} if axis.whole and 2 <= values <= self.leaves else {self.column: self.leaves}
        return PrivateHistogram(
            (self.column,), self.epsilon, self.rho, bins, self.max_rows, bounding=self.bounding, order=self.order
        )

    @property
    def _spending(self) -> LossShare:
        return LossShare.of(self.epsilon, self.rho)

    def _value(self, axis: Axis, position: float, leaves: int) -> float:
        values = math.floor(axis.high) - math.ceil(axis.low) + 1
        if axis.whole and leaves == values and leaves <= self.leaves:
            return float(math.ceil(axis.low) + min(max(math.ceil(position) - 1, 0), leaves - 1))
        return axis.low + axis.width * position / leaves
