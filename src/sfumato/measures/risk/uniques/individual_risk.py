"""Individual risk: the chance that a sample record is re-identified in the population it was drawn from.

A combination of quasi-identifiers with f sample records stands for F people of the population, unknown to the intruder as
to us. Given f, F is taken as negative binomial with success rate p = f/(sum of the sampling weights), and the risk is E[1/F | f].
Benedetti, Franconi, "Statistical and technological solutions for controlled data dissemination", NTTS 1998; Franconi,
Polettini, "Individual risk estimation in μ-Argus: a review", Privacy in Statistical Databases 2004.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError
from sfumato.core.ranges import PositiveShare
from sfumato.core.view import Score
from sfumato.data.masked import Compared
from sfumato.data.microdata import Microdata, ReleasedTable
from sfumato.measures.parameters import SamplingFraction
from sfumato.measures.published import as_released
from sfumato.measures.risk.success import Z95
from sfumato.measures.risk.uniques.population_uniqueness import individual_risk
from sfumato.measures.risk.uniques.reidentification import FromSample, classes_of, sampling_weights, survey_weights

Real = NDArray[np.float64]


@dataclass(frozen=True)
class IndividualRisk(FromSample[Microdata | None, Compared]):
    """Expected share of records re-identified by somebody who looks all of them up in the population.

    Uses the survey weights of the release (a column with role "weight"), or `sampling_fraction` (records per person of the
    population). E[1/F | f] is p/(1 − p)·ln(1/p) for f = 1, p/(1 − p) − (p/(1 − p))²·ln(1/p) for f = 2, and a hypergeometric
    function in general. Against an intruder who knows the quasi-identifiers of the population, not who was sampled. Parts: the
    largest risk, the expected number of re-identifications, and the share of records above `threshold`. The floor is a blind
    guess among the population. The interval holds the share that is found in 95 % of populations that the model draws.

    >>> people = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())
    >>> IndividualRisk(sampling_fraction=0.1).score(people, people).better
    'lower'
    """

    sampling_fraction: SamplingFraction = None
    threshold: Annotated[PositiveShare, "the risk above which records are counted"] = 0.1
    key: ClassVar[str] = "individual_risk"

    def score(self, original: Microdata | None, released: Compared) -> Score:
        """The mean risk of the records."""
        risk = record_risks(as_released(released, original), self.sampling_fraction)
        parts = {
            "largest": float(risk.max(initial=0.0)),
            "expected re-identifications": float(risk.sum()),
            f"share above {self.threshold:g}": float(np.mean(risk > self.threshold + 1e-12)),
        }
        meaning = (
            "expected share of records re-identified in the population they were sampled from, if the people behind a class are "
            "negative binomial given its records and the stated weights or fraction"
        )
        return Score(
            self.key,
            float(risk.mean()),
            "lower",
            meaning,
            MappingProxyType(parts),
            uses_original=False,
            floor=1.0 / people_of(as_released(released, original), self.sampling_fraction),
            interval=outcome_interval(risk),
        )

    def per_record(self, original: Microdata | None, released: Compared) -> Real:
        """The risk of every released record."""
        return record_risks(as_released(released, original), self.sampling_fraction)


def outcome_interval(risk: Real) -> tuple[float, float]:
    """Where the share of records that are found lies with 95 %, each found independently with its own chance."""
    mean = float(risk.mean())
    half = Z95 * float(np.sqrt(np.sum(risk * (1.0 - risk)))) / risk.size
    return max(mean - half, 0.0), min(mean + half, 1.0)


def people_of(released: ReleasedTable, sampling_fraction: float | None = None) -> float:
    """People of the population, by the weights or the fraction."""
    weights = None if sampling_fraction is not None else survey_weights(released)
    people = released.table.num_rows / (sampling_fraction or 1.0) if weights is None else float(weights.sum())
    return max(people, 1.0)


def record_risks(released: ReleasedTable, sampling_fraction: float | None = None) -> Real:
    """E[1/F | f] of every released record."""
    classes = classes_of(released)
    if not classes.records:
        raise InputError("there are no released records whose risk could be estimated")
    weights = sampling_weights(released, sampling_fraction, "individual_risk")
    people = np.bincount(classes.of_row, weights=weights, minlength=len(classes))
    sampled = np.minimum(classes.sizes / np.maximum(people, classes.sizes), 1.0)
    return np.asarray(individual_risk(classes.sizes, sampled)[classes.of_row])
