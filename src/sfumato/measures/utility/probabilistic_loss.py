"""PIL, probabilistic information loss: how unlikely is it that sampling alone would have changed a statistic this much?

For each statistic θ the loss is 2 · P(0 ≤ Z ≤ |θ' − θ| / sd(θ)) with Z standard normal and sd(θ) the asymptotic deviation of
the statistic in a sample of the original's size. Losses are averaged within means, variances, covariances, correlations and
quantiles, then over these families. Mateo-Sanz, Domingo-Ferrer, Sebé, "Probabilistic information loss measures in
confidentiality protection of continuous microdata", Data Mining and Knowledge Discovery 11, 2005; kernel density with the
rule-of-thumb width of Silverman, "Density estimation for statistics and data analysis", Chapman and Hall 1986.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.core.errors import Unsupported
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, compared
from sfumato.data.microdata import Microdata
from sfumato.data.records import Records, in_units, unit_of
from sfumato.measures.parameters import ComparedColumns

Real = NDArray[np.float64]

FAMILIES = ("means", "variances", "covariances", "correlations", "quantiles")
QUANTILES: Real = np.arange(1, 20) / 20.0

#: Rounding: below this share of its terms a variance is 0, and two standardised statistics are equal.
_ROUNDING = 1e-12
#: Values this close, in deviations of the original, do not vary.
_CONSTANT = 1e-20
#: Whatever moved by this many deviations is lost whatever it moved by; fourth powers stay finite.
_FARTHEST = 1e60
#: The normal kernel is below 1e-17 beyond this many widths.
_REACH = 9.0


@dataclass(frozen=True)
class ProbabilisticInformationLoss(Measure[Microdata, Compared]):
    """Mean over five families of statistics of the chance that sampling alone would have moved the statistic less.

    0 says that every statistic is as it was, 1 that all lie far outside what another sample of the same size would give. Only
    numbers count (`columns` restricts them). Rows need not correspond. Missing values are left out statistic by statistic; a
    statistic that the masked table no longer gives (a column that became constant has no correlation) counts 1.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(500), schema=sf.data.sample_schema())
    >>> masked = sf.AdditiveNoise(0.1, columns=("age", "income")).apply(people, seed=1).result
    >>> pil = ProbabilisticInformationLoss()
    >>> 0 == pil.score(people, people).value < pil.score(people, masked).value < 1
    True
    """

    columns: ComparedColumns = None
    key: ClassVar[str] = "pil"
    masked: ClassVar[bool] = True

    def score(self, original: Microdata, released: Compared) -> Score:
        """The loss in [0, 1]; parts for the families and for each column."""
        left, right, _ = compared(original, released, self.columns)
        if not left.numbers:
            raise Unsupported("pil compares numbers and there is no column of numbers; use hellinger or information_loss")
        losses = probabilistic_losses(left, right)
        parts = {**losses.families, **{f"column {name}": loss for name, loss in losses.columns.items()}}
        meaning = "chance that sampling alone would have changed the statistics less than masking did"
        return Score(self.key, losses.value, "lower", meaning, MappingProxyType(parts))


@dataclass(frozen=True)
class ProbabilisticLosses:
    """Mean loss of each family of statistics, of each column (mean over the families it takes part in), and of all."""

    families: dict[str, float]
    columns: dict[str, float]
    value: float


def probabilistic_losses(original: Records, masked: Records) -> ProbabilisticLosses:
    """The losses of all statistics of the columns of numbers."""
    names = [column.name for column in original.numbers]
    all_of: dict[str, list[float]] = {family: [] for family in FAMILIES}
    each: dict[str, dict[str, list[float]]] = {name: {family: [] for family in FAMILIES} for name in names}
    pairs = [_standardised(a.values, b.values) for a, b in zip(original.numbers, masked.numbers, strict=True)]
    for family, positions, loss in _losses(pairs):
        all_of[family].append(loss)
        for position in positions:
            each[names[position]][family].append(loss)
    families = _averages(all_of)
    columns = {name: float(np.mean(list(_averages(losses).values()))) for name, losses in each.items()}
    return ProbabilisticLosses(families, columns, float(np.mean(list(families.values()))))


def probabilistic_loss(difference: ArrayLike, deviation: ArrayLike) -> Real:
    """2 Φ(|difference| / deviation) − 1; where the deviation is 0, 0 for equal values and 1 for different ones.

    >>> float(probabilistic_loss(0.1, 0.1))
    0.6826894921370859
    """
    from scipy.special import erf

    size, spread = np.broadcast_arrays(np.abs(np.asarray(difference, np.float64)), np.asarray(deviation, np.float64))
    steady = spread == 0
    chance = erf(size / np.where(steady, 1.0, spread) * np.sqrt(0.5))
    loss: Real = np.where(steady, (size > 0).astype(np.float64), chance)
    return loss


def central_moment(values: Real, order: int) -> float:
    """μ_r, the mean r-th power of the distance from the mean."""
    return float(np.mean((values - values.mean()) ** order))


def mean_variance(values: Real) -> float:
    """Variance of the mean: μ₂/n."""
    return central_moment(values, 2) / values.size


def central_moment_variance(values: Real, order: int) -> float:
    """Asymptotic variance of the r-th central moment: (μ₂ᵣ − μᵣ² − 2r μᵣ₋₁ μᵣ₊₁ + r² μ₂ μᵣ₋₁²)/n, for r = 2 (μ₄ − μ₂²)/n."""
    r = order
    mu = {k: central_moment(values, k) for k in {2, r - 1, r, r + 1, 2 * r}}
    terms = mu[2 * r], -(mu[r] ** 2), -2 * r * mu[r - 1] * mu[r + 1], r**2 * mu[2] * mu[r - 1] ** 2
    return _rounded(sum(terms), max(map(abs, terms))) / values.size


@dataclass(frozen=True)
class PairMoments:
    """Central moments of two columns over the records where both are known: μ_ab is the mean of (x − x̄)^a (y − ȳ)^b."""

    size: int
    mu11: float
    mu20: float
    mu02: float
    mu22: float
    mu40: float
    mu04: float
    mu31: float
    mu13: float

    @classmethod
    def of(cls, first: Real, second: Real) -> PairMoments | None:
        """None where no record knows both."""
        both = ~(np.isnan(first) | np.isnan(second))
        if not both.all():
            first, second = first[both], second[both]
        if not first.size:
            return None
        x, y = first - first.mean(), second - second.mean()
        xx, yy, xy = x * x, y * y, x * y
        sums = xy.sum(), xx.sum(), yy.sum(), xx @ yy, xx @ xx, yy @ yy, xx @ xy, yy @ xy
        return cls(first.size, *(float(total) / first.size for total in sums))

    @property
    def covariance_variance(self) -> float:
        """Asymptotic variance of the covariance: (μ₂₂ − μ₁₁²)/n."""
        return _rounded(self.mu22 - self.mu11**2, self.mu22) / self.size

    @property
    def correlation(self) -> float | None:
        """None where one of them does not vary."""
        if min(self.mu20, self.mu02) <= _CONSTANT:
            return None
        return self.mu11 / float(np.sqrt(self.mu20 * self.mu02))

    @property
    def correlation_variance(self) -> float:
        """Asymptotic variance of the correlation ρ: with a = x/σ_x and b = y/σ_y,
        (μ₂₂ + ρ²(μ₄₀ + μ₀₄ + 2 μ₂₂)/4 − ρ(μ₃₁ + μ₁₃))/n of a and b; it has no quotient by μ₁₁, which may be 0."""
        rho = self.correlation or 0.0
        x, y = self.mu20, self.mu02
        mu22, mu40, mu04 = self.mu22 / (x * y), self.mu40 / x**2, self.mu04 / y**2
        skewed = self.mu31 / np.sqrt(x**3 * y) + self.mu13 / np.sqrt(x * y**3)
        spread = mu22 + rho**2 * (mu40 + mu04 + 2 * mu22) / 4
        return _rounded(float(spread - rho * skewed), spread) / self.size


def silverman_bandwidth(ordered: Real) -> float:
    """0.9 min(σ, IQR/1.34) n^(−1/5); σ alone where half the values are equal."""
    lower, upper = np.quantile(ordered, [0.25, 0.75])
    width = float(np.std(ordered))
    if upper > lower:
        width = min(width, float(upper - lower) / 1.34)
    return float(0.9 * width * ordered.size**-0.2)


def kernel_density(ordered: Real, points: Real, bandwidth: float) -> Real:
    """Normal kernel density of sorted values at a few points; only values within reach of a point are touched."""
    density = np.empty(points.size)
    starts = np.searchsorted(ordered, points - _REACH * bandwidth, side="left")
    stops = np.searchsorted(ordered, points + _REACH * bandwidth, side="right")
    for i, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        steps = (ordered[start:stop] - points[i]) / bandwidth
        density[i] = np.exp(-0.5 * steps * steps).sum()
    scaled: Real = density / (ordered.size * bandwidth * np.sqrt(2 * np.pi))
    return scaled


def quantile_variances(ordered: Real, levels: Real = QUANTILES) -> Real:
    """Asymptotic variance of each quantile: q(1 − q)/(n f(Q_q)²); 0 for a constant, infinite where the density is 0."""
    bandwidth = silverman_bandwidth(ordered)
    if bandwidth == 0:
        return np.zeros(levels.size)
    density = kernel_density(ordered, np.quantile(ordered, levels), bandwidth)
    with np.errstate(divide="ignore"):
        variances: Real = levels * (1 - levels) / (ordered.size * density**2)
    return variances


def _losses(columns: list[tuple[Real, Real]]) -> Iterator[tuple[str, tuple[int, ...], float]]:
    """Family, columns and loss of every statistic."""
    for i, (values, shown) in enumerate(columns):
        yield from ((family, (i,), loss) for family, loss in _column_losses(_known(values), _known(shown)))
    for i, (values, shown) in enumerate(columns):
        for j in range(i):
            was, now = PairMoments.of(values, columns[j][0]), PairMoments.of(shown, columns[j][1])
            if was is not None:
                yield "covariances", (i, j), 1.0 if now is None else _loss(now.mu11, was.mu11, was.covariance_variance)
                before, after = was.correlation, now.correlation if now is not None else None
                if before is not None:
                    gone = after is None
                    yield "correlations", (i, j), 1.0 if gone else _loss(after or 0.0, before, was.correlation_variance)


def _column_losses(values: Real, shown: Real) -> Iterator[tuple[str, float]]:
    if not shown.size:
        yield from ((family, 1.0) for family in ("means", "variances", "quantiles"))
        return
    yield "means", _loss(float(shown.mean()), float(values.mean()), mean_variance(values))
    yield "variances", _loss(central_moment(shown, 2), central_moment(values, 2), central_moment_variance(values, 2))
    ordered = np.sort(values)
    changed = np.quantile(shown, QUANTILES) - np.quantile(ordered, QUANTILES)
    changed[np.abs(changed) <= _ROUNDING] = 0.0
    losses = probabilistic_loss(changed, np.sqrt(quantile_variances(ordered)))
    yield from (("quantiles", float(loss)) for loss in losses)


def _loss(now: float, was: float, variance: float) -> float:
    difference = now - was
    if abs(difference) <= _ROUNDING * max(1.0, abs(was)):
        return 0.0
    return float(probabilistic_loss(difference, np.sqrt(variance)))


def _standardised(values: Real, shown: Real) -> tuple[Real, Real]:
    """Both sides in units of the original column. The loss does not depend on the units, and sums of fourth powers stay small.
    Moving by a value of the column first makes constants exactly 0."""
    unit = unit_of(values)
    values, shown = in_units(values, unit), np.clip(in_units(shown, unit), -_FARTHEST, _FARTHEST)
    first = values[np.argmax(~np.isnan(values))]
    moved, moved_shown = values - first, shown - first
    largest = float(np.nanmax(np.abs(moved)) or np.nanmax(np.abs(moved_shown), initial=0.0)) or 1.0
    moved, moved_shown = moved / largest, moved_shown / largest
    centre, scale = float(np.nanmean(moved)), float(np.nanstd(moved)) or 1.0
    return (moved - centre) / scale, np.clip((moved_shown - centre) / scale, -_FARTHEST, _FARTHEST)


def _known(values: Real) -> Real:
    return values[~np.isnan(values)]


def _rounded(variance: float, terms: float) -> float:
    """The variance, or 0 where it is not more than the rounding of its terms."""
    return variance if variance > _ROUNDING * terms else 0.0


def _averages(losses: dict[str, list[float]]) -> dict[str, float]:
    return {family: float(np.mean(values)) for family, values in losses.items() if values}
