"""Log-linear risk: how many sample uniques are population uniques, and how many a match in the population gets right.

Cells of the cross-classification of all quasi-identifiers have population counts F, independent Poisson variables with means λ
that a log-linear model smooths over the cells; the sample takes each person with chance π. Of a sample unique, F − 1 is Poisson
with mean a = (1 − π)λ, so that it is a population unique with chance e^−a and matched rightly with chance E[1/F] = (1 − e^−a)/a.
Skinner, Holmes, "Estimating the re-identification risk per record in microdata", Journal of Official Statistics 14(4), 1998;
Skinner, Shlomo, "Assessing identification risk in survey microdata using log-linear models", JASA 103(483), 2008.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError, Unsupported
from sfumato.core.ranges import ColumnNames
from sfumato.core.texts import percent
from sfumato.core.view import Score
from sfumato.data.masked import Compared
from sfumato.data.microdata import Microdata, ReleasedTable
from sfumato.measures.guarantees.classes import CodedColumn, require_columns
from sfumato.measures.parameters import SamplingFraction
from sfumato.measures.published import as_released
from sfumato.measures.risk.success import Z95
from sfumato.measures.risk.uniques.log_linear import Margins, fitted_counts, log_variances, main_effects, two_way, variance_of
from sfumato.measures.risk.uniques.reidentification import FromSample, sampling_weights
from sfumato.measures.utility.shown import quasi_of

Real = NDArray[np.float64]

_MOST_CELLS = 2_000_000
_DOUBTFUL = 2.0
_UNSEEN = "; the interval holds only if that model does, and the check of the model sees only gross misfit"
_NAMES = {"main effects": "main effects", "two-way": "all two-way interactions"}


@dataclass(frozen=True)
class Estimate:
    """A number with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class FittedRisk:
    """What follows from a fitted model for the sample uniques, and the check of the model."""

    population_uniques: Estimate
    correct_matches: Estimate
    check: float

    @property
    def strength(self) -> float:
        """How far the check is from what it is where the model holds."""
        return abs(self.check)


@dataclass(frozen=True)
class LogLinearRisk(FromSample[Microdata | None, Compared]):
    """Expected share of the records that are unique in the sample and that a match in the population gets right.

    A model-based estimate and no promise. It supposes that the release is a sample of the population with the stated fraction
    (`sampling_fraction`) or weights, that every record was drawn independently, and that the counts of the population follow
    the model: `model` is "main effects" (columns are independent), "two-way" (all pairs of columns interact) or "auto"
    (default), which takes the first unless the check speaks against it, because a richer model than needed says less. The
    check is an estimate of the bias that the model's error causes in the number of population uniques, divided by its
    standard deviation where the model holds: beyond ±2 the model is doubtful. It sees gross misfit only: where three columns
    interact, or people have twins, it may stay within ±2 and the interval miss the truth. Parts: the expected number of
    population uniques and of right matches among the sample uniques of the `columns` (default: the quasi-identifiers) with the
    ends of their 95 % intervals, the check, and the same for the model that was not taken. Intervals are wide where margins of
    the table hold hardly more than the unique records themselves. With weights that differ the model is fitted to weighted counts
    (pseudo-maximum likelihood); the check looks at the unweighted ones. The floor is a blind guess for every unique.

    >>> people = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())
    >>> LogLinearRisk(sampling_fraction=0.1, columns=("sex", "age")).score(people, people).better
    'lower'
    """

    sampling_fraction: SamplingFraction = None
    model: Annotated[Literal["auto", "main effects", "two-way"], "the terms that cell counts are made of"] = "auto"
    columns: Annotated[ColumnNames | None, "the columns looked at; the quasi-identifiers where left out"] = None
    key: ClassVar[str] = "log_linear_risk"

    @staticmethod
    def _taken(fits: Mapping[str, FittedRisk]) -> str:
        """The first model that the check does not speak against; without one, the one that it contradicts least."""
        passing = [name for name, fit in fits.items() if fit.strength <= _DOUBTFUL]
        return passing[0] if passing else min(fits, key=lambda name: fits[name].strength)

    def score(self, original: Microdata | None, released: Compared) -> Score:
        """The expected share of right matches."""
        table = as_released(released, original)
        cells = SampleCells.of(table, self.columns if self.columns is not None else quasi_of(table), self.sampling_fraction)
        tried = ("main effects", "two-way") if self.model == "auto" else (self.model,)
        fits = {
            name: cells.fit(main_effects(cells.columns) if name == "main effects" else two_way(cells.columns)) for name in tried
        }
        name = self._taken(fits)
        fit, records = fits[name], cells.records
        parts = {
            "sample uniques": float(cells.uniques.size),
            **_stated(fit, ""),
            **{key: each for other in fits if other != name for key, each in _stated(fits[other], f", {other}").items()},
        }
        most = cells.uniques.size / records
        matches = fit.correct_matches
        doubt = _UNSEEN if fit.strength <= _DOUBTFUL else "; the check speaks against this model, so the interval does not hold"
        return Score(
            self.key,
            matches.value / records,
            "lower",
            f"expected share of records that are unique and matched rightly in the population, if the records are an independent "
            f"sample of {percent(cells.fraction)} of it and its counts follow a log-linear model with {_NAMES[name]}{doubt}",
            MappingProxyType(parts),
            uses_original=False,
            floor=most / max(cells.people, 1.0),
            interval=(matches.low / records, matches.high / records),
        )


def _stated(fit: FittedRisk, which: str) -> dict[str, float]:
    parts: dict[str, float] = {}
    for name, each in (("population uniques", fit.population_uniques), ("correct matches", fit.correct_matches)):
        parts |= {f"{name}{which}": each.value, f"{name}, low{which}": each.low, f"{name}, high{which}": each.high}
    return parts | {f"check of the model{which}": fit.check}


@dataclass(frozen=True, eq=False)
class SampleCells:
    """The sample as a table of counts: its cells, their weighted counts, and where the sample uniques lie (flat) with their
    chances of having been drawn."""

    counts: Real
    weighted: Real
    uniques: NDArray[np.int64]
    drawn: Real
    spread: float  # how much larger differing weights make variances (Kish)

    @classmethod
    def of(cls, released: ReleasedTable, names: tuple[str, ...], sampling_fraction: float | None) -> SampleCells:
        """Count the cells of the columns."""
        table = released.table
        require_columns(table, names)
        rows = table.num_rows
        if not rows:
            raise InputError("log-linear risk: there are no released records whose risk could be estimated")
        weights = sampling_weights(released, sampling_fraction, "log_linear_risk")
        weights = np.maximum(weights, 1.0)  # nobody stands for less than oneself
        coded = [CodedColumn.of(table.column(name)) for name in names]
        shape = tuple(len(each.values) for each in coded)
        if prod(shape) > _MOST_CELLS:
            raise Unsupported(
                f"log-linear risk: the columns have {prod(shape):,} combinations of values (limit {_MOST_CELLS:,}): choose "
                "columns=, or generalise those with most values"
            )
        key = np.ravel_multi_index([each.codes for each in coded], shape)
        counts = np.bincount(key, minlength=prod(shape)).astype(np.float64)
        weighted = np.bincount(key, weights, minlength=prod(shape)).astype(np.float64)
        alone = np.flatnonzero(counts == 1.0)
        spread = rows * float((weights**2).sum()) / float(weights.sum()) ** 2
        return cls(counts.reshape(shape), weighted.reshape(shape), alone, 1.0 / weighted[alone], spread)

    @property
    def columns(self) -> int:
        """How many columns the table has."""
        return int(self.counts.ndim)

    @property
    def records(self) -> float:
        """Records of the sample."""
        return float(self.counts.sum())

    @property
    def people(self) -> float:
        """People of the population."""
        return float(self.weighted.sum())

    @property
    def fraction(self) -> float:
        """Records per person."""
        return self.records / self.people

    def fit(self, margins: Margins) -> FittedRisk:
        """Fit a model and take the risks of the sample uniques from it.

        A unique record draws the fit of its own cell upwards, by v(½ − μ) on the scale of logarithms where the fit has the
        variance v, and the variance itself shifts the mean of a curved function. Taking both away to second order still
        understates the risk where a margin holds hardly more than the record itself (v near 1); the mean without the record,
        λ(1 − v), overstates it. The estimate goes from the first to halfway between the two as v goes to 1, and they are the
        ends to which the interval adds its error."""
        expected = fitted_counts(self.counts, margins)
        people = expected / self.fraction if self.spread <= 1.0 + 1e-9 else fitted_counts(self.weighted, margins)
        means = people.ravel()[self.uniques]
        shown = means * self.fraction
        noise = np.minimum(log_variances(people * self.fraction, margins, self.uniques) * self.spread, 1.0)
        others = (1.0 - self.drawn) * means
        alone, right = np.exp(-others), _mean_of_inverse(others)
        # each chance with its first and second derivative by the logarithm of the mean, and as it is without the record
        chances = (
            (alone, -others * alone, others * (others - 1.0) * alone, np.exp(-others * (1.0 - noise))),
            (right, alone - right, right - (1.0 + others) * alone, _mean_of_inverse(others * (1.0 - noise))),
        )
        estimates = []
        for chance, slope, bend, without in chances:
            least = np.clip(chance - noise * (slope * (0.5 - shown) + 0.5 * bend), 0.0, without)
            likely = least + 0.5 * noise**2 * (without - least)
            gradient = np.zeros(self.counts.size)
            gradient[self.uniques] = slope
            of_fit = self.spread * variance_of(gradient.reshape(self.counts.shape), people * self.fraction, margins)
            half = Z95 * float(np.sqrt((likely * (1.0 - likely)).sum() + of_fit))
            low, high = max(float(least.sum()) - half, 0.0), min(float(without.sum()) + half, float(self.uniques.size))
            estimates.append(Estimate(float(likely.sum()), low, high))
        return FittedRisk(estimates[0], estimates[1], _check(self.counts.ravel(), expected.ravel(), self.fraction))


def _mean_of_inverse(others: Real) -> Real:
    """E[1/F] where F − 1 is Poisson: (1 − e^−a)/a."""
    safe = np.where(others > 1e-12, others, 1.0)
    return np.where(others > 1e-12, -np.expm1(-safe) / safe, 1.0)


def _check(counts: Real, expected: Real, fraction: float) -> float:
    """The bias of the expected number of population uniques that the model's error λ − λ̂ causes, to second order, over its
    standard deviation where the model holds.

    With g(λ) = πλ e^−πλ the chance of a sample unique and h(λ) = e^−(1−π)λ, the bias is Σ g(λ)(h(λ̂) − h(λ)). Of a Poisson
    count f with mean μ = πλ, (f − μ̂)/π and ((f − μ̂)² − f)/π² estimate λ − λ̂ and its square; their variances are μ/π² and
    2μ²/π⁴, and they are uncorrelated."""
    mean = expected / fraction
    unseen = np.exp(-mean) * (1.0 - fraction)
    linear = unseen * mean
    squared = unseen * ((1.0 - expected) - 0.5 * (1.0 - fraction) * mean) / fraction
    off = counts - expected
    bias = float((linear * off + squared * (off**2 - counts)).sum())
    variance = float((linear**2 * expected + 2.0 * squared**2 * expected**2).sum())
    return bias / float(np.sqrt(variance)) if variance > 0.0 else 0.0
