"""Measuring promises about all records together: the average risk, and what a model says about the population.

The average risk is the number of classes divided by the number of records. What a model says is computed here with SciPy's
binomial distribution from the class sizes and the fraction that the promise declares; the rows say nothing about that fraction.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.guarantees.risk import AverageRisk, KMapByModel, UniquenessByModel
from sfumato.measures.guarantees.examined import ExaminedTable, Measurement, conclude, shown_number, smallest
from sfumato.measures.guarantees.thresholds import at_most


def measure_average_risk(examined: ExaminedTable, guarantee: AverageRisk) -> Measurement:
    """Classes per record; where that is too many, the classes that are smaller than the promised average fail."""
    classes = examined.classes()
    records = int(classes.sizes.sum())
    value = len(classes) / records if records else 0.0
    kept = not records or bool(at_most(np.array([len(classes)]), np.array([records]), guarantee.risk)[0])
    small = ~at_most(np.ones(len(classes), dtype=np.int64), classes.sizes, guarantee.risk)
    explanation = (
        f"{len(classes):,} classes of {records:,} records: the average risk is {value:.6g}, "
        f"at most {guarantee.risk:.6g} is promised."
    )
    return conclude(guarantee, classes, value, np.zeros_like(small) if kept else small, explanation)


def measure_uniqueness_by_model(examined: ExaminedTable, guarantee: UniquenessByModel) -> Measurement:
    """The share of population uniques that the model exceeds with a chance of at most 1 − confidence."""
    from scipy.stats import binom

    classes = examined.classes()
    records, alone = int(classes.sizes.sum()), classes.sizes == 1
    singles = int(alone.sum())
    most = int(binom.ppf(guarantee.confidence, singles, guarantee.sampling_fraction)) if singles else 0
    value = most / records if records else 0.0
    explanation = (
        f"{singles:,} of {records:,} records are alone in their class; with the declared sampling fraction "
        f"{guarantee.sampling_fraction:.6g} the model expects {singles * guarantee.sampling_fraction:.6g} of them to be unique "
        f"in the population, and at most {most:,} with {guarantee.confidence:.6g} confidence: a share of {value:.6g}; at most "
        f"{guarantee.share:.6g} is promised."
    )
    failing = np.zeros_like(alone) if guarantee.kept_by(value) else alone
    return conclude(guarantee, classes, value, failing, explanation, also={"alone in their class": singles})


def measure_k_map_by_model(examined: ExaminedTable, guarantee: KMapByModel) -> Measurement:
    """The smallest class, and the chance that a group that is too small comes to the promised size."""
    from scipy.stats import binom

    classes = examined.classes()
    fewest = int(classes.sizes.min()) if len(classes) else smallest(classes.sizes)
    chance = float(binom.sf(guarantee.least_records - 1, guarantee.k - 1, guarantee.sampling_fraction))
    explanation = (
        f"The smallest class has {shown_number(fewest)} records; {guarantee.least_records:,} are promised, which "
        f"{guarantee.k - 1:,} people of the population give with a chance of {chance:.6g} under the declared sampling fraction."
    )
    too_small = (classes.sizes < guarantee.least_records) | (chance > 1.0 - guarantee.confidence + 1e-9)
    return conclude(guarantee, classes, fewest, too_small, explanation)
