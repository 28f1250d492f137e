"""Risk from the sampling alone: nothing is supposed about the population but that everybody was drawn with the same chance.

With n_j classes of j sample records and sampling fraction π, q = 1 − π: the people of the population who share the class of a
sample unique number n₁ + 2(q/π)n₂ on average, so that a unique match is right with chance θ = n₁/(n₁ + 2(q/π)n₂). The sample
uniques that are population uniques number Σ (−q/π)^(j−1) j n_j on average (Goodman), a sum whose terms grow with (q/π)^j: it
serves from π = ½ on. Below, bounds that hold for every population follow from pairs and triples. Skinner, Elliot, "A measure of
disclosure risk for microdata", JRSS B 64(4), 2002; Goodman, "On the estimation of the number of classes in a population",
Annals of Mathematical Statistics 20(4), 1949.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError, Unsupported
from sfumato.core.texts import percent
from sfumato.core.view import Score
from sfumato.data.masked import Compared
from sfumato.data.microdata import Microdata, ReleasedTable
from sfumato.measures.parameters import SamplingFraction
from sfumato.measures.published import as_released
from sfumato.measures.risk.success import Z95
from sfumato.measures.risk.uniques.reidentification import FromSample, classes_of, sampling_weights

Estimate = tuple[float, float, float]


@dataclass(frozen=True)
class SamplingRisk(FromSample[Microdata | None, Compared]):
    """Chance that a match is right when somebody of the population matches a record that is unique in the sample.

    No model of the population: it is supposed only that everybody was drawn independently with the same chance, the
    `sampling_fraction` or the inverse of survey weights that are all equal. Parts: the sample uniques, and the ends of a 95 %
    interval for the number of them that are population uniques (with an estimate from a fraction of one half on; without a
    model a smaller sample says little about that). The interval of the value follows from that of the people who share the
    classes of sample uniques. The floor is a blind guess among the population. Without a sample unique nothing can be matched
    uniquely: the chance is 0.

    >>> people = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())
    >>> SamplingRisk(sampling_fraction=0.1).score(people, people).better
    'lower'
    """

    sampling_fraction: SamplingFraction = None
    key: ClassVar[str] = "sampling_risk"

    def score(self, original: Microdata | None, released: Compared) -> Score:
        """The chance that a unique match is right."""
        table = as_released(released, original)
        classes = classes_of(table)
        if not classes.records:
            raise InputError("sampling risk: there are no released records")
        fraction = self.sampling_fraction if self.sampling_fraction is not None else _equal_fraction(table, self.key)
        uniques = int((classes.sizes == 1).sum())
        value, low, high = right_match(classes.sizes, fraction)
        both, fewest, most = population_uniques(classes.sizes, fraction)
        parts = {
            "sample uniques": float(uniques),
            **({} if both is None else {"population uniques": both}),
            "population uniques, low": fewest,
            "population uniques, high": most,
        }
        return Score(
            self.key,
            value,
            "lower",
            "chance that a unique match with somebody of the population is right, if the records are an independent sample of "
            f"{percent(fraction)} of it",
            MappingProxyType(parts),
            uses_original=False,
            floor=min(fraction / classes.records, 1.0),
            interval=(low, high),
        )


def right_match(sizes: NDArray[np.int64], fraction: float) -> Estimate:
    """θ with its 95 % interval, from that of the people who share the classes of sample uniques."""
    counts = _classes_by_size(sizes)
    alone = float(counts[1])
    if not alone:
        return 0.0, 0.0, 0.0
    others, half = _others(counts, fraction)
    return alone / (alone + others), alone / (alone + others + half), alone / (alone + max(others - half, 0.0))


def population_uniques(sizes: NDArray[np.int64], fraction: float) -> tuple[float | None, float, float]:
    """The sample uniques that are population uniques: an unbiased estimate, from a fraction of one half on, and a 95 % interval.

    Bounds hold for every population: with x = F − 1 others in the class of a sample unique, at most Σ x uniques have others, and
    at least (Σ x)²/Σ x². Of a class with F people the terms of the unbiased sum have the mean of the indicator of F = f =
    1, and the squared error is the square of the term unless F = f = 1: so Σ a_j² n_j − Σ a_j n_j estimates the squared error
    of the sum without bias. Whichever interval is narrower counts."""
    counts = _classes_by_size(sizes)
    alone = float(counts[1])
    others, half = _others(counts, fraction)
    fewest, most = max(alone - others - half, 0.0), alone
    square = _squares(counts, fraction)
    if square > 0.0:
        most = max(alone - max(others - half, 0.0) ** 2 / square, 0.0)
    if fraction < 0.5:
        return None, min(fewest, most), most
    present = np.arange(counts.size, dtype=np.float64)
    terms = present * (-(1.0 - fraction) / fraction) ** np.maximum(present - 1.0, 0.0)
    total = float(terms @ counts)
    reach = Z95 * float(np.sqrt(max(float(terms**2 @ counts) - total, 0.0))) if counts[2:].any() else half
    low, high = min(max(total - reach, 0.0), alone), max(min(total + reach, alone), 0.0)
    return min(max(total, 0.0), alone), *((low, high) if high - low < most - fewest else (fewest, most))


def _classes_by_size(sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """How many classes have 0, 1, 2 … records, up to 5 at the least."""
    return np.bincount(sizes, minlength=6).astype(np.float64)


def _others(counts: NDArray[np.float64], fraction: float) -> tuple[float, float]:
    """The others in the classes of sample uniques, Σ x, and half the width of their 95 % interval.

    c·n₂ with c = 2q/π estimates them, with the squared error c(c + 1)n₂ + 6(q/π)²n₃ on average. Where no pair was seen, as many
    are possible as would be missed with a chance of 5 %."""
    odds = (1.0 - fraction) / fraction
    if not counts[2]:
        return 0.0, 3.0 * 2.0 * odds
    square = 2.0 * odds * (2.0 * odds + 1.0) * counts[2] + 6.0 * odds**2 * counts[3]
    return 2.0 * odds * float(counts[2]), Z95 * float(np.sqrt(square))


def _squares(counts: NDArray[np.float64], fraction: float) -> float:
    """The upper end of the 95 % interval of Σ x²: x^(r) falling factors are (r + 1)! (q/π)^r n_(r+1) on average."""
    odds = (1.0 - fraction) / fraction
    of = [factorial(r + 1) * odds**r * float(counts[r + 1]) for r in range(5)]
    second, fourth = of[2] + of[1], of[4] + 6.0 * of[3] + 7.0 * of[2] + of[1]
    error = (2.0 * odds) ** 2 * float(counts[2]) + (6.0 * odds**2) ** 2 * float(counts[3]) + fourth
    return second + Z95 * float(np.sqrt(error))


def _equal_fraction(released: ReleasedTable, measure: str) -> float:
    weights = sampling_weights(released, None, measure)
    if float(weights.max()) > float(weights.min()) * (1.0 + 1e-6):
        raise Unsupported(
            "sampling risk supposes that everybody was drawn with the same chance, and the survey weights differ: use "
            "individual_risk or log_linear_risk"
        )
    return min(1.0 / float(weights[0]), 1.0)
