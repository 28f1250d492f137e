"""Values drawn from the leaf of a decision tree: a synthetic cell takes the value of a random record like it.

The tree splits records by other columns until a leaf would have too few of them; whoever falls into a leaf draws one of its
records as donor. Reiter, "Using CART to generate partially synthetic public use microdata", Journal of Official Statistics
21, 2005. Categories are put in the order of the target they predict (Fisher 1958; by the first principal component for more
than two classes: Coppersmith, Hong, Hosking, "Partitioning nominal attributes in decision trees", 1999).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.ranges import Because, Whole
from sfumato.data.records import CategoryColumn, NumberColumn, magnitude
from sfumato.kernels.sampling.draws import Draws

Real = NDArray[np.float64]
Int = NDArray[np.int64]
Column = NumberColumn | CategoryColumn

#: How many records a leaf has at the least.
LeafSize = Annotated[
    int, Because(Whole(at_least=2), "a leaf of one record would give it back as it is"), "the records of a leaf, at the least"
]

#: A category with more values than this, or than half the records, is split by their order instead of by classes.
_MANY_CLASSES = 100


@dataclass(frozen=True)
class Trees:
    """How trees are grown and drawn from: the fewest records of a leaf, the most splits in a row, smoothing of numbers."""

    min_leaf: int
    max_depth: int | None
    smoothed: bool

    def drawn(self, target: Column, original: Sequence[Column], synthetic: Sequence[Column], size: int, draws: Draws) -> Column:
        """A new column of `size` cells: the target's values given the columns made so far, as in the known records.

        A missing category is a value of its own; whether a number is missing is drawn first.
        """
        if isinstance(target, CategoryColumn):
            leaves = self._leaves(target, original, synthetic, size, draws.seed())
            return replace(target, codes=target.codes[leaves.donors(draws)])
        values = np.full(size, np.nan)
        present = np.full(size, bool(target.known.any()))
        if present.any() and not target.known.all():
            marks = CategoryColumn(target.name, target.known.astype(np.int32), ("", ""), False, target.arrow)
            leaves = self._leaves(marks, original, synthetic, size, draws.seed())
            present = target.known[leaves.donors(draws)]
        rows, places = np.flatnonzero(target.known), np.flatnonzero(present)
        if places.size:
            mine, theirs = target.take(rows), [column.take(places) for column in synthetic]
            leaves = self._leaves(mine, [column.take(rows) for column in original], theirs, places.size, draws.seed())
            donors = leaves.donors(draws)
            values[places] = leaves.smoothed(mine.values, donors, draws) if self.smoothed else mine.values[donors]
        return replace(target, values=values)

    def _leaves(
        self, target: Column, original: Sequence[Column], synthetic: Sequence[Column], size: int, seed: int
    ) -> DonorLeaves:
        rows = target.known.size
        if not original or rows < 2 * self.min_leaf:
            return DonorLeaves(np.zeros(rows, dtype=np.int64), np.zeros(size, dtype=np.int64))
        classes = _classes(target)
        features = [_feature(a, b, target, classes) for a, b in zip(original, synthetic, strict=True)]
        table = np.stack([feature for feature, _ in features], axis=1).astype(np.float32)
        tree = self._tree(classes is not None, seed)
        numbers = _numbers(target)
        tree.fit(table, classes if classes is not None else numbers / magnitude(numbers))
        theirs = np.stack([feature for _, feature in features], axis=1).astype(np.float32)
        return DonorLeaves(np.asarray(tree.apply(table), dtype=np.int64), np.asarray(tree.apply(theirs), dtype=np.int64))

    def _tree(self, classifies: bool, seed: int) -> Any:
        from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

        kind = DecisionTreeClassifier if classifies else DecisionTreeRegressor
        return kind(min_samples_leaf=self.min_leaf, max_depth=self.max_depth, random_state=seed)


@dataclass(frozen=True, eq=False)
class DonorLeaves:
    """The leaf of each known record and of each record that is made."""

    original: Int
    synthetic: Int

    def donors(self, draws: Draws) -> Int:
        """For each record that is made a random known record of its leaf."""
        order = np.argsort(self.original, kind="stable")
        names, starts, counts = np.unique(self.original[order], return_index=True, return_counts=True)
        leaf = np.searchsorted(names, self.synthetic)
        donors: Int = order[starts[leaf] + draws.below(counts[leaf])]
        return donors

    def smoothed(self, values: Real, donors: Int, draws: Draws) -> Real:
        """Donors' numbers with a bit of normal noise, drawn towards the leaf's mean so that its variance stays; within the
        range of the column, by reflection (the smoothed bootstrap of Silverman and Young, 1987)."""
        unit = magnitude(values)
        values = values / unit
        counts = np.bincount(self.original)
        filled = np.maximum(counts, 1)
        means = np.bincount(self.original, weights=values) / filled
        spreads = np.sqrt(np.bincount(self.original, weights=(values - means[self.original]) ** 2) / filled)
        width = 0.9 * filled**-0.2
        noise = width[self.synthetic] * spreads[self.synthetic] * draws.normal(donors.size)
        mean = means[self.synthetic]
        drawn = mean + (values[donors] - mean + noise) / np.sqrt(1.0 + width[self.synthetic] ** 2)
        low, high = values.min(), values.max()
        drawn = np.where(drawn < low, 2 * low - drawn, drawn)
        return np.clip(np.where(drawn > high, 2 * high - drawn, drawn), low, high) * unit


def _classes(target: Column) -> Int | None:
    """Classes to tell apart, missing as one of them; None for numbers, and for categories of too many values."""
    if isinstance(target, NumberColumn):
        return None
    classes = np.unique(target.codes, return_inverse=True)[1].reshape(-1)
    count = int(classes.max(initial=0)) + 1
    return classes.astype(np.int64) if count <= min(_MANY_CLASSES, max(classes.size // 2, 2)) else None


def _numbers(column: Column) -> Real:
    return column.values if isinstance(column, NumberColumn) else column.codes.astype(np.float64)


def _feature(original: Column, synthetic: Column, target: Column, classes: Int | None) -> tuple[Int, Int]:
    """A predictor as whole numbers: trees look at the order of values only, and single precision holds these exactly.

    Missing numbers come before all others, so that one split sets them apart; a category follows the target.
    """
    if isinstance(original, CategoryColumn) and isinstance(synthetic, CategoryColumn) and not original.ordered:
        place = _by_target(original, target, classes)
        return place[original.codes], place[synthetic.codes]
    values = np.unique(_numbers(original)[original.known])
    return _places(values, original), _places(values, synthetic)


def _places(values: Real, column: Column) -> Int:
    """Twice the place among the known values, odd at one of them and even between two, -1 where missing."""
    cells = _numbers(column)
    place = np.searchsorted(values, cells, side="left") + np.searchsorted(values, cells, side="right")
    return np.where(column.known, place, -1).astype(np.int64)


def _by_target(column: CategoryColumn, target: Column, classes: Int | None) -> Int:
    """The place of each category (the missing one last, at -1) in the order of what it says about the target."""
    width = len(column.labels) + 1
    codes = np.where(column.codes < 0, width - 1, column.codes).astype(np.int64)
    counts = np.bincount(codes, minlength=width).astype(np.float64)
    if classes is None:
        score = np.bincount(codes, weights=_numbers(target), minlength=width) / np.maximum(counts, 1.0)
    else:
        number = int(classes.max()) + 1
        shares = (
            np.bincount(codes * number + classes, minlength=width * number).reshape(width, number)
            / np.maximum(counts, 1.0)[:, None]
        )
        centred = (shares - np.average(shares, axis=0, weights=counts)) * np.sqrt(counts)[:, None]
        score = shares @ np.linalg.svd(centred, full_matrices=False)[2][0]
    place = np.empty(width, dtype=np.int64)
    place[np.argsort(score, kind="stable")] = np.arange(width)
    return place
