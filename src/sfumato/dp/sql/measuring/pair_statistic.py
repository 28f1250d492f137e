"""Correlation, covariance and the line of least squares of two columns, from noisy sums of centred values and products.

With n rows where both are known, means m and variances v: cov = Σ(a - m_a)(b - m_b) / n, correlation = cov / √(v_a v_b), slope of
b on a = cov / v_a. All sums are taken around the middles of the bounds, as those of AVG and VARIANCE are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sfumato.dp.sql.measuring.statistic import FEWEST, Floats, Statistic

#: How much surer intervals are than their confidence says, because their argument is not exact: docs/theory/margins.md.
_TAILS = 0.8


@dataclass(frozen=True)
class PairStatistic(Statistic):
    """A statistic of two columns: `one` explains `other`, and `product` is the sum of products around both middles.

    `one` and `other` are variances of their columns over the same rows. Where a variance is not above 0 after noise, what is
    divided by it is missing.
    """

    one: Statistic = Statistic("var_pop")
    other: Statistic = Statistic("var_pop")
    product: Statistic = Statistic("avg")

    @property
    def parts(self) -> tuple[str, ...]:
        """The measurements it is computed from."""
        columns = zip((self.one, self.other), self.aggregate.squared, strict=True)
        squares = [each.squares for each, squared in columns if squared]
        listed = (self.count, self.one.total, self.other.total, self.product.total, *squares)
        return tuple(dict.fromkeys(part for part in listed if part is not None))

    def value(self, noisy: Mapping[str, Floats]) -> Floats:
        """The statistic per group."""
        return self._computed(noisy, self.one._around(noisy), self.other._around(noisy))

    def possible(self, noisy: Mapping[str, Floats]) -> Floats:
        """The statistic per group and possible noise, the first of which is none.

        Products and squares are measured halfway between the possible means and those that are shown, as those of a variance are.
        """
        one, other = self.one._around(noisy), self.other._around(noisy)
        return self._computed(noisy, one, other, one - one[:, :1], other - other[:, :1])

    def _computed(
        self, noisy: Mapping[str, Floats], one: Floats, other: Floats, moved: Floats | float = 0.0, beside: Floats | float = 0.0
    ) -> Floats:
        rows = np.maximum(noisy[self.count or ""], FEWEST)
        together = noisy[self.product.total or ""] * float(self.product.step) / rows + float(self.product.centre)
        together = together - one * other + moved * beside / 2
        largest = np.sqrt(self.one._widest * self.other._widest)
        if not any(self.aggregate.squared):
            covariance = np.clip(together, -largest, largest)
            return covariance * rows / np.maximum(rows - 1.0, FEWEST) if self.aggregate.sample else covariance
        spread = np.minimum(self.one._squares(noisy) - one**2 + moved**2 / 2, self.one._widest)
        with np.errstate(all="ignore"):
            if all(self.aggregate.squared):
                beside_it = np.minimum(self.other._squares(noisy) - other**2 + beside**2 / 2, self.other._widest)
                product = np.where((spread > 0) & (beside_it > 0), spread * beside_it, np.nan)
                return np.clip(together / np.sqrt(product), -1.0, 1.0)
            slope = np.where(spread > 0, together / np.where(spread > 0, spread, 1.0), np.nan)
        if not self.aggregate.at_zero:
            return slope
        return other + float(self.other.centre) - slope * (one + float(self.one.centre))

    @property
    def tails(self) -> float:
        """The share of the tails that its intervals leave out."""
        return _TAILS

    @property
    def ends(self) -> tuple[float, float] | None:
        """What the statistic can be at all, whatever the rows; None where nothing bounds it."""
        if all(self.aggregate.squared):
            return -1.0, 1.0
        if not any(self.aggregate.squared):
            share = self.fewest / (self.fewest - 1.0) if self.aggregate.sample else 1.0
            largest = float(np.sqrt(self.one._widest * self.other._widest)) * share
            return -largest, largest
        return None
