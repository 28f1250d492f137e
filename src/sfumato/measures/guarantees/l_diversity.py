"""Measuring l-diversity: distinct values, entropy, recursive (c,l).

Distinct: the fewest values in a class. Entropy: exp of the smallest entropy, a real number of "equally
likely values". Recursive: the infimum of the c for which r1 < c · (r_l + r_(l+1) + …) holds in every
class; it is not attained. Machanavajjhala, Gehrke, Kifer, Venkitasubramaniam, "l-diversity: privacy
beyond k-anonymity", TKDD 1(1), 2007. A class without any protected value is exempt.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sfumato.core.certificate import KNOWN_VALUES
from sfumato.core.declared import require
from sfumato.core.guarantees.base import TOLERANCE
from sfumato.core.guarantees.l_diversity import DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity
from sfumato.measures.guarantees.classes import Integers, ValueCounts
from sfumato.measures.guarantees.examined import (
    ExaminedTable,
    Measurement,
    conclude,
    largest,
    shown_number,
    smallest,
)
from sfumato.measures.guarantees.protected import concerned
from sfumato.measures.guarantees.thresholds import below, ratios, written


def measure_distinct(examined: ExaminedTable, guarantee: DistinctLDiversity) -> Measurement:
    """The fewest different values in a class."""
    histogram = examined.histogram(guarantee.attribute)
    counted = concerned(histogram, guarantee.protected_values)
    values = distinct_values(histogram)
    least = smallest(values[counted])
    value = int(least) if math.isfinite(least) else least
    explanation = (
        f"The poorest class shows {shown_number(value)} different values of '{guarantee.attribute}'; "
        f"{guarantee.l:,} "
        f"are promised. {_exempt(counted)}"
    )
    also = _known_alone(histogram, counted, guarantee.l)
    return conclude(guarantee, examined.classes(), value, counted & (values < guarantee.l), explanation, also=also)


def measure_entropy(examined: ExaminedTable, guarantee: EntropyLDiversity) -> Measurement:
    """exp of the smallest entropy of a class."""
    histogram = examined.histogram(guarantee.attribute)
    counted = concerned(histogram, guarantee.protected_values)
    effective = effective_values(histogram)
    value = smallest(effective[counted])
    # Rounding grows with l, so the slack is relative to it.
    short = effective < guarantee.l * (1.0 - TOLERANCE) - TOLERANCE
    explanation = (
        f"The most predictable class is as uncertain about '{guarantee.attribute}' as "
        f"{shown_number(value)} equally likely "
        f"values; {guarantee.l:.6g} are promised. {_exempt(counted)}"
    )
    also = _known_alone(histogram, counted, 2)
    return conclude(guarantee, examined.classes(), value, counted & short, explanation, also=also)


def measure_recursive(examined: ExaminedTable, guarantee: RecursiveLDiversity) -> Measurement:
    """The infimum of the c that hold for this l."""
    histogram = examined.histogram(guarantee.attribute)
    counted = concerned(histogram, guarantee.protected_values)
    first, tail = first_and_tail(histogram, guarantee.l)
    value = largest(ratios(first, tail)[counted])
    failing = counted & ~below(first, tail, guarantee.c)
    explanation = (
        f"For l = {guarantee.l} the condition on '{guarantee.attribute}' holds for every c above "
        f"{shown_number(value)} and not "
        f"for that number itself; c = {guarantee.c:.6g} is promised. {_exempt(counted)}"
    )
    also = _known_alone(histogram, counted, guarantee.l)
    return conclude(guarantee, examined.classes(), value, failing, explanation, also=also)


def _known_alone(histogram: ValueCounts, counted: NDArray[np.bool_], enough: int) -> dict[str, float]:
    """The fewest different known values of a class in which one is missing, where they are fewer than `enough`."""
    if None not in histogram.values:
        return {}
    missing = histogram.value == histogram.values.index(None)
    different = histogram.per_class((~missing).astype(np.int64))
    some_missing = histogram.per_class(missing.astype(np.int64)) > 0
    few = different[counted & some_missing & (different < enough)]
    return {KNOWN_VALUES: float(few.min())} if few.size else {}


def distinct_values(histogram: ValueCounts) -> Integers:
    """Different values per class."""
    return histogram.per_class(np.ones(histogram.count.size, dtype=np.int64))


def effective_values(histogram: ValueCounts) -> NDArray[np.float64]:
    """exp(entropy) per class; exactly the number of values where all are equally frequent."""
    if not histogram.sizes.size:
        return np.zeros(0)
    counts = histogram.count.astype(np.float64)
    shares = counts / histogram.sizes[histogram.klass]
    effective = np.exp(-histogram.per_class(shares * np.log(shares)))
    even = histogram.largest(histogram.count) == -histogram.largest(-histogram.count)
    return np.where(even, distinct_values(histogram), effective)


def first_and_tail(histogram: ValueCounts, l: int) -> tuple[Integers, Integers]:  # noqa: E741
    """Per class: the count of the most frequent value, and the records of all values from the l-th most
    frequent on.
    """
    order = np.lexsort((-histogram.count, histogram.klass))
    counts = histogram.count[order]
    rank = np.arange(counts.size) - histogram.starts[histogram.klass]
    return histogram.largest(histogram.count), histogram.per_class(np.where(rank >= l - 1, counts, 0))


def entropy(counts: Iterable[int]) -> float:
    """Entropy of counts, in nats; 0 ln 0 = 0."""
    present = [count for count in counts if count > 0]
    total = sum(present)
    return -sum(count / total * math.log(count / total) for count in present) if total else 0.0


def effective_l(counts: Iterable[int]) -> float:
    """exp of the entropy of one class."""
    return math.exp(entropy(counts))


def infimum_c(counts: Iterable[int], l: int) -> float:  # noqa: E741
    """The infimum of the c for which one class is recursive (c,l)-diverse; every c above it works, it
    itself does not.

    >>> infimum_c([3, 2, 1], 2), infimum_c([3, 2, 1], 3), infimum_c([3, 2, 1], 4)
    (1.0, 3.0, inf)
    """
    require(l >= 1, f"l must be at least 1, not {l}")
    ranked = sorted((count for count in counts if count > 0), reverse=True)
    tail = sum(ranked[l - 1 :])
    return ranked[0] / tail if tail else math.inf


def is_recursive(counts: Iterable[int], c: float, l: int) -> bool:  # noqa: E741
    """Whether one class is recursive (c,l)-diverse, strictly."""
    ranked = sorted((count for count in counts if count > 0), reverse=True)
    return bool(ranked) and ranked[0] < written(c) * sum(ranked[l - 1 :])


def largest_l(counts: Iterable[int], c: float) -> int:
    """The largest l for which one class is recursive (c,l)-diverse; 0 when not even l = 1 holds.

    >>> largest_l([3, 2, 1], 2)
    2
    """
    present = [count for count in counts if count > 0]
    return max((l for l in range(1, len(present) + 1) if is_recursive(present, c, l)), default=0)  # noqa: E741


def _exempt(counted: NDArray[np.bool_]) -> str:
    exempt = int(counted.size - counted.sum())
    many = "class without a protected value is" if exempt == 1 else "classes without a protected value are"
    return f"{exempt:,} {many} exempt." if exempt else ""
