"""The loss of the risk-utility map: statistics and the shape of distributions, in one number with visible components.

Keeping means and covariances keeps four of the five families of statistics of PIL, whatever happens to the distributions: a mask
may publish negative ages and lose nothing. So the map also compares quantiles and marginals, asks a tree whether it can tell
masked from original records, and counts values that cannot be. The distance of quantiles is that of Mallows and Wasserstein,
the tree's that of Snoke, Raab, Nowok, Dibben, Slavkovic, "General and specific utility measures for synthetic data", Journal of
the Royal Statistical Society A 181(3), 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, compared
from sfumato.data.microdata import Microdata
from sfumato.data.records import NumberColumn
from sfumato.data.schema import Schema
from sfumato.measures.parameters import Bins, ComparedColumns
from sfumato.measures.utility.divergence import Hellinger
from sfumato.measures.utility.information_loss import InformationLoss
from sfumato.measures.utility.propensity import PropensityScore

Real = NDArray[np.float64]

QUANTILES: Real = np.arange(1, 20) / 20.0
#: What each component weighs; those that a table does not have leave their weight to the others.
WEIGHTS = MappingProxyType({"statistics": 0.2, "quantiles": 0.2, "marginals": 0.2, "tree": 0.2, "out of bounds": 0.2})
#: Records of either side that the tree looks at.
_TREE_ROWS = 2_500


@dataclass(frozen=True)
class OverallLoss(Measure[Microdata, Compared]):
    """One number in [0, 1] that sees statistics and shape: the weighted mean of five components, 0.2 each.

    *statistics* is `information_loss` (PIL for numbers, Hellinger distance for categories and pairs). *quantiles*: by how much
    the 5 %, 10 %, …, 95 % quantiles of a column of numbers moved, as a share of how far they lie from its median, at most 1.
    *marginals*: the Hellinger distance of each column's distribution (numbers in `bins` ranges). *tree*: how well a decision tree
    tells masked from original records (pMSE as a share of its largest value, on at most 2,500 records of each side). *out of
    bounds*: the share of masked numbers outside the bounds that the schema declares, or outside the original's range where it
    declares none. A table without numbers has no quantiles and no bounds; the others share their weight. The `columns` are
    compared; rows need not correspond. Parts: every component, and how many values are out of bounds.

    >>> people = sf.read(sf.data.sample_table(500), schema=sf.data.sample_schema())
    >>> OverallLoss(columns=("age", "income", "sex")).score(people, people).value
    0.0
    """

    columns: ComparedColumns = None
    bins: Bins = 10
    key: ClassVar[str] = "overall_loss"
    masked: ClassVar[bool] = True

    def score(self, original: Microdata, released: Compared) -> Score:
        """The weighted mean; its components as parts."""
        left, right, masked = compared(original, released, self.columns)
        parts = {
            "statistics": InformationLoss(left.names, self.bins).score(original, masked).value,
            "marginals": Hellinger(left.names, self.bins).score(original, masked).value,
            "tree": PropensityScore(model="tree", sample=_TREE_ROWS).by_tree(left, right),
        }
        numbers = list(zip(left.numbers, right.numbers, strict=True))
        if numbers:
            parts["quantiles"] = float(np.mean([moved_quantiles(ours.values, theirs.values) for ours, theirs in numbers]))
            outside = sum(_outside(ours, theirs, original.schema) for ours, theirs in numbers)
            parts["out of bounds"] = outside / max(sum(int(theirs.known.sum()) for _, theirs in numbers), 1)
        weight = sum(WEIGHTS[name] for name in parts)
        value = sum(WEIGHTS[name] * part for name, part in parts.items()) / weight
        shares = ", ".join(f"{name} {WEIGHTS[name] / weight:.2g}" for name in parts)
        if numbers:
            parts["values out of bounds"] = float(outside)
        meaning = f"loss of statistics and of the shape of distributions; weights: {shares}"
        return Score(self.key, min(float(value), 1.0), "lower", meaning, MappingProxyType(parts))


def moved_quantiles(original: Real, masked: Real) -> float:
    """The mean movement of the quantiles, as a share of their mean distance from the original's median; 1 where it is more, or
    where nothing is known any more."""
    ours, theirs = original[~np.isnan(original)], masked[~np.isnan(masked)]
    if not theirs.size:
        return 1.0
    unit = float(np.abs(ours).max()) or 1.0  # no difference overflows
    before, after = np.quantile(ours / unit, QUANTILES), np.quantile(theirs / unit, QUANTILES)
    moved = float(np.mean(np.abs(after - before)))
    spread = float(np.mean(np.abs(before - before[QUANTILES.size // 2])))
    if moved == 0.0:
        return 0.0
    return min(moved / spread, 1.0) if spread > 0.0 else 1.0


def _outside(ours: NumberColumn, theirs: NumberColumn, schema: Schema) -> int:
    """How many masked values cannot be."""
    column = schema.columns.get(ours.name)
    present = ours.values[ours.known]
    declared = None if column is None else column.bounds
    low, high = declared if declared is not None else (float(present.min()), float(present.max()))
    shown = theirs.values[theirs.known]
    slack = 1e-9 * max(abs(low), abs(high))
    return int(np.count_nonzero((shown < low - slack) | (shown > high + slack)))
