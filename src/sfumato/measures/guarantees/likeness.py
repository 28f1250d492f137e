"""Measuring β-likeness and δ-disclosure privacy: the largest relative change of belief in one value.

Both compare p, the share of a value in a class, with q, its share in the reference, value by value; with
`protected_values` only those are compared. Enhanced β-likeness also bounds the gain by -ln q whatever β
is: a table that breaks this bound keeps it for no β, and its measured β is infinite. Cao, Karras, PVLDB
5(11), 2012; Brickell, Shmatikov, KDD 2008.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.core.guarantees.base import TOLERANCE, Reference
from sfumato.core.guarantees.likeness import BetaLikeness, DeltaDisclosure
from sfumato.measures.guarantees.compared import Compared
from sfumato.measures.guarantees.examined import ExaminedTable, Measurement, conclude, largest, shown_number
from sfumato.measures.guarantees.thresholds import at_most, ratios, whole

Failing = NDArray[np.bool_]


def measure_beta_likeness(examined: ExaminedTable, guarantee: BetaLikeness) -> Measurement:
    """The largest relative gain of a value; infinite when the enhanced bound cannot be kept."""
    betas = {which: _beta(examined, guarantee, which) for which in {guarantee.reference, *examined.references()}}
    value, failing = betas[guarantee.reference]
    kind = "enhanced " if guarantee.enhanced else ""
    explanation = (
        f"The largest relative gain of a value of '{guarantee.attribute}' in a class is "
        f"{shown_number(value)} times its overall "
        f"share; at most {guarantee.beta:.6g} is promised ({kind}β-likeness)."
    )
    also = {f"reference {which}": betas[which][0] for which in sorted(betas)}
    return conclude(guarantee, examined.classes(), value, failing, explanation, also=also)


def measure_delta_disclosure(examined: ExaminedTable, guarantee: DeltaDisclosure) -> Measurement:
    """The largest |ln(p/q)|; infinite when a class lacks a value of the reference."""
    disclosures = {}
    for which in {guarantee.reference, *examined.references()}:
        compared = Compared.against(examined, guarantee.attribute, which, guarantee.protected_values)
        disclosures[which] = class_deltas(compared)
    deltas = disclosures[guarantee.reference]
    value = largest(deltas)
    explanation = (
        f"The largest |ln(p/q)| of a value of '{guarantee.attribute}' in a class is "
        f"{shown_number(value)}; less than "
        f"{guarantee.delta:.6g} is promised. A value that a class lacks makes it infinite."
    )
    also = {f"reference {which}": largest(disclosures[which]) for which in sorted(disclosures)}
    return conclude(guarantee, examined.classes(), value, deltas >= guarantee.delta, explanation, also=also)


def class_gains(compared: Compared) -> NDArray[np.float64]:
    """Per class the largest (p - q)/q of a protected value, at least 0."""
    gains = np.where(compared.mask[compared.histogram.value], ratios(*_gains(compared)), 0.0)
    return np.maximum(np.asarray(compared.histogram.largest(gains), dtype=np.float64), 0.0)


def beyond_enhanced(compared: Compared) -> Failing:
    """Per class whether some protected value gains more than -ln q, so that no β is small enough."""
    histogram = compared.histogram
    with np.errstate(divide="ignore"):
        limit = -np.log(compared.expected / max(compared.total, 1))
    over = ratios(*_gains(compared)) > limit[histogram.value] + TOLERANCE
    # a value that the reference lacks has an infinite gain and an infinite limit: basic β refuses it already
    over &= compared.mask[histogram.value]
    return histogram.largest(over.astype(np.int8)).astype(np.bool_)


def class_deltas(compared: Compared) -> NDArray[np.float64]:
    """Per class the largest |ln(p/q)| over the protected values of the reference."""
    histogram = compared.histogram
    chosen = compared.mask
    with np.errstate(divide="ignore"):
        logs = np.log(histogram.count / compared.class_size) - np.log(compared.expected[histogram.value] / max(compared.total, 1))
    deltas = histogram.largest(np.where(chosen[histogram.value], np.abs(logs), 0.0))
    expected = chosen & (compared.expected > 0)
    present = histogram.per_class(expected[histogram.value].astype(np.int64))
    return np.where(present < int(expected.sum()), math.inf, deltas)


def _beta(examined: ExaminedTable, guarantee: BetaLikeness, which: Reference) -> tuple[float, Failing]:
    compared = Compared.against(examined, guarantee.attribute, which, guarantee.protected_values)
    histogram = compared.histogram
    kept = at_most(*_gains(compared), guarantee.beta) | ~compared.mask[histogram.value]
    failing = histogram.largest((~kept).astype(np.int8)).astype(np.bool_)
    value = largest(class_gains(compared))
    if guarantee.enhanced:
        beyond = beyond_enhanced(compared)
        failing, value = failing | beyond, math.inf if bool(beyond.any()) else value
    return value, failing


def _gains(compared: Compared) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(p - q)/q of every pair as a fraction of whole numbers."""
    histogram = compared.histogram
    bound = 2 * compared.largest_class * max(compared.total, 1)
    before = whole(compared.expected, bound)[histogram.value] * whole(compared.class_size, bound)
    return whole(histogram.count, bound) * compared.total - before, before
