"""Statistics of a query from noisy measurements: sums, means within their bounds, variances.

All of it is post-processing. Means and variances are held inside what the declared bounds allow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.dp.sql.operators.aggregates import AGGREGATES, QueryAggregate

Floats = NDArray[np.float64]

#: Below this many rows (after noise) a mean says nothing; the division is held here.
FEWEST = 1.0


@dataclass(frozen=True)
class Statistic:
    """One aggregate of the query, computed from measurements by name.

    `centre` is what values were measured around, `square_centre` the same for their squares; results of means stay
    inside [low, high]. A `positive` sum is one of values that are not below 0.
    """

    function: str
    count: str | None = None
    total: str | None = None
    squares: str | None = None
    tree: str | None = None
    step: Fraction = Fraction(1)
    square_step: Fraction = Fraction(1)
    centre: Fraction = Fraction(0)
    square_centre: Fraction = Fraction(0)
    low: Fraction | None = None
    high: Fraction | None = None
    rank: Fraction | None = None
    whole: bool = False
    positive: bool = False

    @property
    def aggregate(self) -> QueryAggregate:
        """The row of the function."""
        return AGGREGATES[self.function]

    @property
    def parts(self) -> tuple[str, ...]:
        """The measurements it is computed from."""
        return tuple(part for part in (self.count, self.total, self.squares, self.tree) if part is not None)

    @property
    def linear(self) -> bool:
        """True for one measurement as it is: counts, and sums that are measured by themselves."""
        return self.total is None and self.tree is None or self.aggregate.measures == "sum" and self.count is None

    @property
    def steady(self) -> bool:
        """True when the error is the same whatever the data."""
        return self.linear or self.aggregate.measures == "sum"

    def value(self, noisy: Mapping[str, Floats]) -> Floats:
        """The statistic per group."""
        if self.total is None:
            return noisy[self.count or ""]
        if self.aggregate.measures == "sum":
            total = noisy[self.total] * float(self.step)
            return total if self.count is None else total + noisy[self.count] * float(self.centre)
        if self.squares is None:
            return self._inside(self._around(noisy) + float(self.centre))
        return self._spread(noisy, np.minimum(self._squares(noisy) - self._around(noisy) ** 2, self._widest))

    def cells(self, noisy: Mapping[str, Floats], drawn: Mapping[str, Sequence[int]]) -> list[int] | list[float | None]:
        """The statistic per group as it is shown: whole numbers as they were `drawn`, however large, and others where they have a
        value."""
        if not (self.steady and self.whole):
            return [None if number != number else number for number in self.value(noisy).tolist()]
        if self.linear:
            return list(drawn[self.parts[0]])
        totals, counts = drawn[self.total or ""], drawn[self.count or ""]
        return [total + int(self.centre) * count for total, count in zip(totals, counts, strict=True)]

    def possible(self, noisy: Mapping[str, Floats]) -> Floats:
        """The statistic per group and possible noise, the first of which is none: what it may be without the noise.

        A variance is measured halfway between the possible mean and the one that is shown, and one of a sample may be above the
        largest of so many rows, see docs/theory/margins.md.
        """
        if self.squares is None:
            return self.value(noisy)
        around = self._around(noisy)
        shown = around[:, :1]
        if self.low is not None and self.high is not None:
            shown = np.clip(shown, float(self.low - self.centre), float(self.high - self.centre))
        spread = self._spread(noisy, self._squares(noisy) - around**2 + (around - shown) ** 2 / 2)
        spread[:, 0] = self.value({name: column[:, 0] for name, column in noisy.items() if name in self.parts})
        return np.minimum(spread, self.largest(self.fewest))

    def _rows(self, noisy: Mapping[str, Floats]) -> Floats:
        return np.maximum(noisy[self.count or ""], FEWEST)

    def _around(self, noisy: Mapping[str, Floats]) -> Floats:
        """The mean less the centre."""
        return noisy[self.total or ""] * float(self.step) / self._rows(noisy)

    def _squares(self, noisy: Mapping[str, Floats]) -> Floats:
        """The mean of the squares of values less the centre."""
        return noisy[self.squares or ""] * float(self.square_step) / self._rows(noisy) + float(self.square_centre)

    def _spread(self, noisy: Mapping[str, Floats], variance: Floats) -> Floats:
        """The kind of variance or deviation that is asked for."""
        spread = np.maximum(variance, 0.0)
        if self.aggregate.sample:
            rows = self._rows(noisy)
            spread = spread * rows / np.maximum(rows - 1.0, FEWEST)
        return np.sqrt(spread) if self.aggregate.root else spread

    @property
    def tails(self) -> float:
        """The share of the tails that its intervals leave out: those of variances are not exact, and by so much surer enough."""
        return 1.0 if self.squares is None else 0.9

    @property
    def ends(self) -> tuple[float, float] | None:
        """What the statistic can be at all, whatever the rows; None where nothing bounds it."""
        if self.low is None or self.high is None or self.aggregate.measures != "moments":
            return None
        if self.squares is None:
            return float(self.low), float(self.high)
        return 0.0, float(self.largest(self.fewest))

    @property
    def certain(self) -> tuple[float, float]:
        """Between which ends the statistic lies by the question and the declared bounds alone."""
        if self.tree is not None and self.low is not None and self.high is not None:
            return float(self.low), float(self.high)
        if self.ends is not None:
            return self.ends
        return 0.0 if self.positive or self.aggregate.measures in ("rows", "units") else -math.inf, math.inf

    def largest(self, rows: Floats | float) -> Floats | float:
        """The largest variance or deviation of so many rows: half of them at either bound."""
        share = rows / (rows - 1.0) if self.aggregate.sample else 1.0
        largest = self._widest * share
        return np.sqrt(largest) if self.aggregate.root else largest

    @property
    def fewest(self) -> float:
        """With fewer rows than this the statistic has no value, and an answer can say nothing about it."""
        return 2.0 if self.aggregate.sample else 1.0

    @property
    def _widest(self) -> float:
        return float(self.high - self.low) ** 2 / 4 if self.low is not None and self.high is not None else math.inf

    def _inside(self, value: Floats) -> Floats:
        if self.low is None or self.high is None:
            return value
        return np.clip(value, float(self.low), float(self.high))
