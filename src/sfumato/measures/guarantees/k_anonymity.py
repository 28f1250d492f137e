"""Measuring k-anonymity and (α,k)-anonymity.

k is the size of the smallest class, in different units where the schema names a unit column; where an
adversary knows sets in part, it is the fewest records of a class that share some items; α is the largest
share that a protected value has in a class. Sweeney, "k-anonymity: a model for protecting privacy", IJUFKS
10(5), 2002; Terrovitis, Mamoulis, Kalnis, "Privacy-preserving anonymization of set-valued data", PVLDB
1(1), 2008; Wong, Li, Fu, Wang, "(α,k)-anonymity", KDD 2006.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.core.guarantees.k_anonymity import AlphaKAnonymity, KAnonymity
from sfumato.measures.guarantees.classes import Classes, Integers, ValueCounts
from sfumato.measures.guarantees.examined import (
    ExaminedTable,
    Measurement,
    conclude,
    largest,
    shown_number,
    smallest,
)
from sfumato.measures.guarantees.known_items import fewest_sharing
from sfumato.measures.guarantees.protected import protected_mask
from sfumato.measures.guarantees.thresholds import at_most, ratios


def measure_k_anonymity(examined: ExaminedTable, guarantee: KAnonymity) -> Measurement:
    """k of the table, under the knowledge the guarantee assumes."""
    attributes = guarantee.knowledge.attributes if guarantee.knowledge is not None else None
    columns = examined.schema.quasi if attributes is None else attributes
    sets = [name for name in columns if examined.described(name).items is not None]
    if guarantee.items and sets:
        return _measure_with_items(examined, guarantee, columns, sets)
    classes = examined.classes(attributes)
    k = smallest_class(classes)
    explanation = f"The smallest class has {shown_number(k)} {_counted(examined)}; {guarantee.k:,} are promised."
    return conclude(guarantee, classes, k, classes.units < guarantee.k, explanation)


def _measure_with_items(
    examined: ExaminedTable, guarantee: KAnonymity, attributes: Sequence[str], sets: Sequence[str]
) -> Measurement:
    """k under knowledge of all other columns and some items of each set."""
    classes = examined.classes([name for name in attributes if name not in sets])
    fewest = fewest_sharing(examined, classes, sets, guarantee.items)
    k = smallest(fewest)
    explanation = (
        f"The rarest combination of quasi-identifiers and up to {guarantee.items} items of each set is shared by "
        f"{shown_number(k)} {_counted(examined)}; {guarantee.k:,} are promised. "
        f"Without any item the smallest class has {shown_number(smallest_class(classes))}."
    )
    also = {"smallest class without items": smallest_class(classes)}
    return conclude(guarantee, classes, k, fewest < guarantee.k, explanation, also=also)


def measure_alpha_k_anonymity(examined: ExaminedTable, guarantee: AlphaKAnonymity) -> Measurement:
    """The largest share of a protected value in a class, and k beside it."""
    classes = examined.classes()
    histogram = examined.histogram(guarantee.attribute)
    most = most_frequent(histogram, guarantee.protected_values)
    k = smallest_class(classes)
    alpha = largest(ratios(most, histogram.sizes))
    too_frequent = ~at_most(most, histogram.sizes, guarantee.alpha)
    explanation = (
        f"The largest share of {_which(guarantee.protected_values)} of '{guarantee.attribute}' in a "
        f"class is {alpha:.6g}, "
        f"at most {guarantee.alpha:.6g} is promised; the smallest class has {shown_number(k)} "
        f"{_counted(examined)}, "
        f"{guarantee.k:,} are promised."
    )
    return conclude(guarantee, classes, alpha, too_frequent | (classes.units < guarantee.k), explanation, also={"k": k})


def smallest_class(classes: Classes) -> float:
    """The k of a table; infinite when it has no records."""
    return int(classes.units.min()) if len(classes) else smallest(classes.units)


def most_frequent(histogram: ValueCounts, protected: tuple[str, ...] | None) -> Integers:
    """Per class, the records of its most frequent protected value."""
    mask = protected_mask(histogram.values, protected)
    return histogram.largest(np.where(mask[histogram.value], histogram.count, 0))


def _counted(examined: ExaminedTable) -> str:
    return "different units" if examined.counts_units else "records"


def _which(protected: tuple[str, ...] | None) -> str:
    return "one value" if protected is None else "a protected value"
