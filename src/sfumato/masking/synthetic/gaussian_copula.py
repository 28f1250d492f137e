"""Gaussian copula: synthetic records with the original marginals, tied together by correlated normal numbers.

Every column is a function of one hidden normal number: the value at that quantile, or the category between two thresholds.
The correlations of the hidden numbers are chosen so that the correlations of normal scores come out as in the data. Sklar,
"Fonctions de répartition à n dimensions et leurs marges", 1959; Patki, Wedge, Veeramachaneni, "The synthetic data vault",
DSAA 2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.plain_data import Plain
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, NumberColumn, Records
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept
from sfumato.masking.synthetic.fully_synthetic import FullySynthetic, check_values
from sfumato.masking.transparency import Test

Real = NDArray[np.float64]
Int = NDArray[np.int64]

#: Terms of the Hermite series that links hidden and visible correlations.
_TERMS = 24
#: Neighbouring records averaged into one point of a smoothed quantile function.
_NEIGHBOURS = 5
#: The density of a normal number is zero beyond this, as far as floating-point numbers can tell.
_FAR = 40.0


@dataclass(frozen=True)
class GaussianCopula(FullySynthetic):
    """Draw synthetic records from a Gaussian copula.

    `marginals`: "smoothed" (the default) publishes no value of a record as such: numbers lie between averages of five
    neighbouring values; "empirical" draws from the numbers that occur. Categories are the ones that occur, with their
    frequencies; an unordered one is put into the order in which it agrees best with the main direction of the numbers.
    Whether a cell is missing is a category too, with correlations of its own.

    Dependence beyond correlation of normal scores (a bend, a mixture, two unordered categories) is lost; `SequentialTrees`
    keeps more of it.

    >>> import sfumato as sf
    >>> made = sf.GaussianCopula(size=500).apply(sf.read(sf.data.sample_table(2_000), schema=sf.data.sample_schema()), seed=1)
    >>> len(made.result), made.result.rows is None
    (500, True)
    """

    marginals: Annotated[Literal["smoothed", "empirical"], "whether numbers are smoothed, or those that occur"] = "smoothed"

    def check(self, records: Records, people: Microdata) -> None:
        """Enough values for a quantile function that gives none of them away."""
        needed = _NEIGHBOURS if self.marginals == "smoothed" else 2
        check_values("GaussianCopula", records, needed)

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Fit margins and correlations, draw hidden normal numbers, and read the values off the margins."""
        context.progress("fitting", 0, 2)
        levels = [_levels(column) for column in records.columns]
        _order_categories(records, levels)
        lacking = [i for i, column in enumerate(records.columns) if not column.known.all() and column.known.any()]
        margins = [_Margin.of(level) for level in levels]
        margins += [_Margin.of(records.columns[i].known.astype(np.int64)) for i in lacking]
        root = _root(_hidden_correlations(margins))
        context.progress("drawing", 1, 2)
        size = self.rows_of(context)
        hidden = draws.normal(size, len(margins)) @ root.T
        values: dict[str, NDArray[np.generic]] = {}
        for i, column in enumerate(records.columns):
            present = np.full(size, bool(column.known.any()))
            if i in lacking:
                place = len(levels) + lacking.index(i)
                present = margins[place].drawn(hidden[:, place]) == 1
            values[column.name] = self._read_off(column, levels[i], margins[i], hidden[:, i], present)
        return Change(values, unrelated=True, published={**self.tells(records.names), "rows": size})

    def tells(self, names: tuple[str, ...]) -> Plain:
        """The model, how margins are read off, and how many records were made."""
        return {"model": "Gaussian copula", "marginals": self.marginals, "rows": Test(self.fits)}

    def keeps(self) -> tuple[Kept, ...]:
        """Marginals on average; correlations of normal scores only, hence none of the values themselves is promised."""
        if self.marginals == "empirical":
            return (Kept("mean"), Kept("variance"), Kept("frequencies"))
        return (Kept("mean"), Kept("frequencies", note="of categories"))

    def _read_off(
        self, column: NumberColumn | CategoryColumn, level: Int, margin: _Margin, hidden: Real, present: NDArray[np.bool_]
    ) -> NDArray[np.generic]:
        if isinstance(column, CategoryColumn):
            if not present.any():
                return np.full(hidden.size, -1, dtype=np.int32)
            codes = np.zeros(margin.shares.size, dtype=np.int32)
            codes[level[column.known]] = column.codes[column.known]
            return np.where(present, codes[margin.drawn(hidden)], -1).astype(np.int32)
        if not present.any():
            return np.full(hidden.size, np.nan)
        ordered = np.sort(column.values[column.known])
        drawn = _smoothed(ordered, hidden) if self.marginals == "smoothed" else np.unique(ordered)[margin.drawn(hidden)]
        return np.where(present, drawn, np.nan)


@dataclass(frozen=True, eq=False)
class _Margin:
    """A column as intervals of a hidden normal number: the level of each record (-1 unknown), and of each level its share,
    its upper threshold and its score, the mean of the hidden number within it."""

    level: Int
    shares: Real
    upper: Real
    scores: Real

    @classmethod
    def of(cls, level: Int) -> _Margin:
        from scipy.special import ndtri

        present = level[level >= 0]
        if not present.size:
            return cls(level, np.ones(1), np.full(1, _FAR), np.zeros(1))
        shares = np.bincount(present) / present.size
        upper = np.clip(ndtri(np.clip(np.cumsum(shares), 0.0, 1.0)), -_FAR, _FAR)
        upper[-1] = _FAR
        density = _density(np.concatenate([[-_FAR], upper]))
        return cls(level, shares, upper, -np.diff(density) / shares)

    def drawn(self, hidden: Real) -> Int:
        """The level that each hidden number falls into."""
        return np.searchsorted(self.upper[:-1], hidden, side="right").astype(np.int64)

    def hermite(self) -> Real:
        """Coefficients of the score as a function of the hidden number, in normalised Hermite polynomials 1, 2, …"""
        edges = np.concatenate([[-_FAR], self.upper])
        before, current = np.zeros_like(edges), _density(edges)
        coefficients = np.empty(_TERMS)
        for k in range(1, _TERMS + 1):  # the integral of h_k φ up to t is -h_{k-1}(t) φ(t) / √k
            coefficients[k - 1] = -(self.scores @ np.diff(current)) / np.sqrt(k)
            before, current = current, (edges * current - np.sqrt(k - 1) * before) / np.sqrt(k)
        return coefficients


def _levels(column: NumberColumn | CategoryColumn) -> Int:
    """Each record's value by its place among the values that occur; -1 where it is missing."""
    level = np.full(column.known.size, -1, dtype=np.int64)
    values = column.values if isinstance(column, NumberColumn) else column.codes
    level[column.known] = np.unique(values[column.known], return_inverse=True)[1].reshape(-1)
    return level


def _order_categories(records: Records, levels: list[Int]) -> None:
    """Put the levels of unordered categories into the order of their means along the main direction of the other columns."""
    loose = [i for i, column in enumerate(records.columns) if column.kind == "category"]
    firm = [_scores(_Margin.of(levels[i])) for i in range(len(levels)) if i not in loose]
    if not firm or not loose:
        return
    table = np.nan_to_num(np.stack(firm, axis=1))
    direction = np.linalg.eigh(table.T @ table)[1][:, -1]
    along = table @ direction
    for i in loose:
        present = levels[i] >= 0
        counts = np.bincount(levels[i][present])
        means = np.bincount(levels[i][present], weights=along[present]) / counts
        place = np.empty(counts.size, dtype=np.int64)
        place[np.argsort(means, kind="stable")] = np.arange(counts.size)
        levels[i][present] = place[levels[i][present]]


def _scores(margin: _Margin) -> Real:
    return np.where(margin.level >= 0, margin.scores[margin.level], np.nan)


def _hidden_correlations(margins: list[_Margin]) -> Real:
    """Correlations of the hidden numbers that give the scores the correlations they have among records where both are known.

    The covariance of two scores is Σ a_k b_k ρ^k (Mehler) and rises with ρ, so that bisection finds ρ.
    """
    table = np.stack([_scores(margin) for margin in margins], axis=1)
    present = (~np.isnan(table)).astype(np.float64)
    filled = np.nan_to_num(table)
    counts = np.maximum(present.T @ present, 1.0)
    means = filled.T @ present / counts
    spreads = np.maximum((filled**2).T @ present / counts - means**2, 0.0)
    together = filled.T @ filled / counts - means * means.T
    scale = np.sqrt(spreads * spreads.T)
    correlations = np.divide(together, scale, out=np.zeros_like(together), where=scale > 1e-12)
    sizes = np.array([np.sqrt(margin.shares @ margin.scores**2) for margin in margins])
    targets = np.clip(correlations, -1.0, 1.0) * np.outer(sizes, sizes)
    coefficients = np.stack([margin.hermite() for margin in margins])
    products = coefficients[:, None, :] * coefficients[None, :, :]
    low, high = np.full_like(targets, -1.0), np.full_like(targets, 1.0)
    for _ in range(50):
        middle = (low + high) / 2
        value = np.zeros_like(middle)
        for k in range(_TERMS - 1, -1, -1):
            value = (value + products[:, :, k]) * middle
        below = value < targets
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    hidden: Real = np.where(np.abs(targets) > 1e-12, (low + high) / 2, 0.0)
    np.fill_diagonal(hidden, 1.0)
    return (hidden + hidden.T) / 2


def _root(correlations: Real) -> Real:
    """A root of the correlation matrix: pairs of correlations need not fit together, so negative eigenvalues are set to
    zero and rows are scaled back to length 1."""
    values, vectors = np.linalg.eigh(correlations)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    scaled: Real = root / np.linalg.norm(root, axis=1, keepdims=True)
    return scaled


def _smoothed(ordered: Real, hidden: Real) -> Real:
    """The quantile function through averages of neighbouring values, drawn with straight lines."""
    from scipy.special import ndtr

    parts = np.array_split(ordered, max(1, ordered.size // _NEIGHBOURS))
    ends = np.cumsum([part.size for part in parts]) / ordered.size
    middles = ends - np.array([part.size for part in parts]) / (2 * ordered.size)
    drawn: Real = np.interp(ndtr(hidden), middles, np.array([part.mean() for part in parts]))
    return drawn


def _density(values: Real) -> Real:
    density: Real = np.exp(-0.5 * values**2) / np.sqrt(2 * np.pi)
    return density
