"""The loss of the risk-utility map: statistics and the shape of distributions, in one number with visible components.

Keeping means and covariances keeps four of the five families of statistics of PIL, whatever happens to the distributions: a
mask may publish negative ages and lose nothing. Keeping each distribution keeps nothing of what binds columns together. So the
map also compares relations, quantiles and marginals, asks a tree whether it can tell masked from original records, and counts
values that cannot be. The distance of quantiles is that of Mallows and Wasserstein, the tree's that of Snoke, Raab, Nowok,
Dibben, Slavkovic, "General and specific utility measures for synthetic data", Journal of the Royal Statistical Society A
181(3), 2018.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, compared
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, NumberColumn
from sfumato.data.schema import Schema
from sfumato.measures.parameters import Bins, ComparedColumns
from sfumato.measures.utility.divergence import Hellinger
from sfumato.measures.utility.information_loss import InformationLoss
from sfumato.measures.utility.propensity import PropensityScore
from sfumato.measures.utility.relations import moved_relations

Real = NDArray[np.float64]
AnyColumn: TypeAlias = NumberColumn | CategoryColumn

QUANTILES: Real = np.arange(1, 20) / 20.0
#: What each component weighs; those that a table does not have leave their weight to the others of their group.
WEIGHTS = MappingProxyType(
    {"relations": 0.3, "statistics": 0.2, "tree": 0.2, "quantiles": 0.1, "marginals": 0.1, "out of bounds": 0.1}
)
#: Those that see each column alone. Together they weigh as much as the relations.
_ALONE = ("quantiles", "marginals", "out of bounds")
#: Records of either side that the tree looks at.
_TREE_ROWS = 2_500


@dataclass(frozen=True)
class OverallLoss(Measure[Microdata, Compared]):
    """One number in [0, 1] that sees statistics, relations and shape:

    loss = 0.3 · relations + 0.1 · (quantiles + marginals + out of bounds) + 0.2 · statistics + 0.2 · tree,

    so that losing all relations costs as much as losing all that columns show alone. *relations*: Σ|r − r′| / Σ max(|r|, |r′|)
    over the pairs of columns that belong together beyond chance (`moved_relations`), before or after. *quantiles*: by how much
    the 5 %, 10 %, …, 95 % quantiles of a column of numbers moved, as a share of how far they lie from its median, at most 1.
    *marginals*: the Hellinger distance of each column's distribution (numbers in `bins` ranges). *out of bounds*: the share of
    numbers that the mask made unknown, or put outside the bounds that the schema declares (the original's range where it
    declares none). *statistics* is `information_loss` (PIL for numbers, Hellinger distance for categories and pairs). *tree*:
    how well a decision tree tells masked from original records that it has not seen (1 − mean squared error / variance, on at
    most 2,500 records of each side). What is unknown or out of bounds is lost in every component: c becomes 1 − kept · (1 − c),
    kept the share of known values that are still known and within bounds. A table without numbers has no quantiles and no bounds,
    and marginals weigh 0.3; one column has no relations, and the others share their weight. The `columns` are
    compared; rows need not correspond. Parts: every component, the share kept, and how many values are out of bounds.

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
        numbers = list(zip(left.numbers, right.numbers, strict=True))
        outside = sum(_outside(ours, theirs, original.schema) for ours, theirs in numbers)
        kept = _kept(list(zip(left.columns, right.columns, strict=True)), outside)
        parts = {
            "statistics": InformationLoss(left.names, self.bins).score(original, masked).value,
            "tree": PropensityScore(model="tree", sample=_TREE_ROWS).by_tree(left, right, masked.rows),
            "marginals": Hellinger(left.names, self.bins).score(original, masked).value,
        }
        if len(left.columns) > 1:
            parts["relations"] = moved_relations(left, right)
        if numbers:
            parts["quantiles"] = float(np.mean([moved_quantiles(ours.values, theirs.values) for ours, theirs in numbers]))
        parts = {name: 1.0 - kept * (1.0 - part) for name, part in parts.items()}
        if numbers:
            parts["out of bounds"] = 1.0 - _kept(numbers, outside)
        weights = _weights(parts)
        value = sum(weight * parts[name] for name, weight in weights.items())
        shares = ", ".join(f"{name} {weight:.2g}" for name, weight in weights.items())
        parts["kept"] = kept
        if numbers:
            parts["values out of bounds"] = float(outside)
        meaning = f"loss of statistics, of relations between columns and of the shape of distributions; weights: {shares}"
        return Score(self.key, min(float(value), 1.0), "lower", meaning, MappingProxyType(parts))


def _weights(parts: Mapping[str, float]) -> dict[str, float]:
    """The weight of each component, largest first: those of columns alone weigh 0.3 together, however many they are."""
    alone = [name for name in _ALONE if name in parts]
    whole = sum(WEIGHTS[name] for name in _ALONE)
    weights = {name: whole / len(alone) if name in alone else weight for name, weight in WEIGHTS.items() if name in parts}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def _kept(columns: Sequence[tuple[AnyColumn, AnyColumn]], outside: int) -> float:
    """The share of known values that are still known and within bounds; at most that of the original, column by column."""
    rows = columns[0][1].known.size
    before = sum(float(ours.known.mean()) for ours, _ in columns)
    after = sum(min(float(theirs.known.mean()), float(ours.known.mean())) for ours, theirs in columns)
    return max(after - outside / rows, 0.0) / before


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
