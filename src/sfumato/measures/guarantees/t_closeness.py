"""Measuring t-closeness: the largest distance of a class from the reference distribution.

All distances of the guarantee, against the original and against the released rows. The rational
distances (equal, ordered, hierarchical) are decided exactly; the Kullback-Leibler divergence in floating
point. Li, Li, Venkatasubramanian, "t-closeness: privacy beyond k-anonymity and l-diversity", ICDE 2007.

With `protected_values` the equal distance adds up the protected values alone; the other distances have
no meaning for single values, so there a class without a protected value is exempt and the others are
compared as a whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.guarantees.base import TOLERANCE, Reference
from sfumato.core.guarantees.t_closeness import Distance, TCloseness
from sfumato.measures.guarantees import class_distances
from sfumato.measures.guarantees.compared import Compared
from sfumato.measures.guarantees.examined import ExaminedTable, Measurement, conclude, largest, shown_number
from sfumato.measures.guarantees.thresholds import at_most, ratios

Failing = NDArray[np.bool_]


def measure_t_closeness(examined: ExaminedTable, guarantee: TCloseness) -> Measurement:
    """t of the table for the guarantee's distance and reference; both references beside it where both
    are known.
    """
    distances = {which: _largest(examined, guarantee, which) for which in {guarantee.reference, *examined.references()}}
    value, failing = distances[guarantee.reference]
    rows = "original" if guarantee.reference == "input" else "released"
    explanation = (
        f"The class that differs most has distance {shown_number(value)} ({guarantee.distance}) from "
        f"the {rows} distribution of "
        f"'{guarantee.attribute}'; at most {guarantee.t:.6g} is promised."
    )
    also = {f"reference {which}": distances[which][0] for which in sorted(distances)}
    return conclude(guarantee, examined.classes(), value, failing, explanation, also=also)


def class_values(
    examined: ExaminedTable,
    attribute: str,
    distance: Distance,
    which: Reference,
    protected: tuple[str, ...] | None = None,
) -> NDArray[np.float64]:
    """The distance of every class as a floating-point number; exempt classes have 0."""
    compared = Compared.against(examined, attribute, which, protected)
    if distance == "kl":
        return np.where(compared.concerned, divergences(compared), 0.0)
    numerator, denominator = _fractions(examined, compared, attribute, distance)
    return np.where(_counted(compared, distance), ratios(numerator, denominator), 0.0)


def divergences(compared: Compared) -> NDArray[np.float64]:
    """Kullback-Leibler divergence of every class from the reference, in nats."""
    histogram = compared.histogram
    share = histogram.count / compared.class_size
    with np.errstate(divide="ignore"):
        logs = np.log(share) - np.log(compared.expected[histogram.value] / max(compared.total, 1))
    return np.maximum(np.asarray(histogram.per_class(share * logs), dtype=np.float64), 0.0)


def _largest(examined: ExaminedTable, guarantee: TCloseness, which: Reference) -> tuple[float, Failing]:
    compared = Compared.against(examined, guarantee.attribute, which, guarantee.protected_values)
    counted = _counted(compared, guarantee.distance)
    if guarantee.distance == "kl":
        distances = divergences(compared)
        return largest(distances[counted]), counted & (distances > guarantee.t + TOLERANCE)
    numerator, denominator = _fractions(examined, compared, guarantee.attribute, guarantee.distance)
    within = at_most(numerator, denominator, guarantee.t)
    return largest(ratios(numerator, denominator)[counted]), counted & ~within


def _counted(compared: Compared, distance: Distance) -> Failing:
    if distance in ("equal", "variational"):
        return np.ones(compared.histogram.sizes.size, dtype=np.bool_)
    return compared.concerned


def _fractions(examined: ExaminedTable, compared: Compared, attribute: str, distance: Distance) -> class_distances.Fractions:
    column, folder = examined.described(attribute), examined.schema.folder
    if distance in ("equal", "variational"):
        return class_distances.equal(compared)
    if distance == "ordered":
        ranks = class_distances.value_ranks(compared.values, column, attribute)
        return class_distances.ordered(compared, ranks)
    tree = class_distances.attribute_tree(compared.values, compared.expected, column, attribute, folder)
    return class_distances.hierarchical(compared, tree)
