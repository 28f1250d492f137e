"""Population uniqueness: how many records that are unique in the sample are unique in the population?

With survey weights, the individual risk of Benedetti and Franconi: a class of f sample records with
estimated population F̂ (the sum of weights) has population frequency F | f negative binomial with p =
f/F̂, and risk E[1/F | f]. With the sampling fraction alone, the data intrusion simulation score of
Skinner and Elliot: the chance that a match on a sample unique is right. Benedetti, Franconi,
"Statistical and technological solutions for controlled data dissemination", NTTS 1998; Skinner, Elliot,
"A measure of disclosure risk for microdata", JRSS B 64(4), 2002.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.view import Score
from sfumato.data.masked import Compared
from sfumato.data.microdata import Microdata
from sfumato.measures.parameters import SamplingFraction
from sfumato.measures.published import as_released
from sfumato.measures.risk.success import Z95
from sfumato.measures.risk.uniques.reidentification import FromSample, classes_of, sampling_weights


@dataclass(frozen=True)
class PopulationUniqueness(FromSample[Microdata | None, Compared]):
    """Estimated share of released records that are unique in the population.

    Uses the survey weights of the release, or `sampling_fraction` (records of the release per person of
    the population). Parts: the largest and mean individual risk, the expected number of population
    uniques, and the data intrusion simulation score.
    """

    sampling_fraction: SamplingFraction = None
    key: ClassVar[str] = "population_uniqueness"

    def score(self, original: Microdata | None, released: Compared) -> Score:
        """The estimate under the negative binomial model."""
        table = as_released(released, original)
        classes = classes_of(table)
        records = classes.records
        weights = sampling_weights(table, self.sampling_fraction, self.key)
        people = np.bincount(classes.of_row, weights=weights, minlength=len(classes))
        sampled = np.minimum(classes.sizes / np.maximum(people, classes.sizes), 1.0)
        risk = individual_risk(classes.sizes, sampled)
        # of a sample unique, the chance that nobody else in the population is in its class
        expected = float(sampled[classes.sizes == 1].sum())
        fraction = records / float(weights.sum()) if records else 1.0
        parts = {
            "population uniques": expected,
            "individual risk, largest": float(risk.max()) if risk.size else 0.0,
            "individual risk, mean": float((risk * classes.sizes).sum() / records) if records else 0.0,
            "right match given a unique match": intrusion_simulation(classes.sizes, min(fraction, 1.0)),
        }
        return Score(
            measure=self.key,
            value=expected / records if records else 0.0,
            better="lower",
            meaning="estimated share of records that belong to the only such person of the population, if the people behind a "
            "class are negative binomial given its records and the stated weights or fraction",
            parts=MappingProxyType(parts),
            uses_original=False,
            floor=1.0 / max(float(weights.sum()), 1.0),
            interval=_outcomes(sampled[classes.sizes == 1], records),
        )


def _outcomes(chances: NDArray[np.float64], records: int) -> tuple[float, float]:
    """Where the share of population uniques lies with 95 %, each sample unique being one independently."""
    expected, half = float(chances.sum()), Z95 * float(np.sqrt(np.sum(chances * (1.0 - chances))))
    return max(expected - half, 0.0) / max(records, 1), min((expected + half) / max(records, 1), 1.0)


def individual_risk(sizes: NDArray[np.int64], sampled: NDArray[np.float64]) -> NDArray[np.float64]:
    """E[1/F | f] where F - f is negative binomial with f successes of chance p: (p^f / f) · ₂F₁(f, f; f
    + 1; 1 - p).

    Written after Euler's transformation as (p/f) · ₂F₁(1, 1; f + 1; 1 - p), whose terms stay small for
    large f.
    """
    from scipy.special import hyp2f1

    f = sizes.astype(np.float64)
    p = np.clip(sampled, 1e-12, 1.0)
    return np.asarray(np.clip(p / f * hyp2f1(1.0, 1.0, f + 1.0, 1.0 - p), 0.0, 1.0), dtype=np.float64)


def intrusion_simulation(sizes: NDArray[np.int64], fraction: float) -> float:
    """Chance that a unique match between a person and the sample is right: π·n1 / (π·n1 + 2(1 - π)·n2)."""
    alone, pairs = int((sizes == 1).sum()), int((sizes == 2).sum())
    denominator = fraction * alone + 2.0 * (1.0 - fraction) * pairs
    return fraction * alone / denominator if denominator else 0.0
