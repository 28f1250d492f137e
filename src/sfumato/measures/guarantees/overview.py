"""Every number that can be measured on a table without a threshold: what the table already keeps.

Sizes of the classes, k and uniques, and for each sensitive attribute l in its three readings, t in all
distances, α, β and δ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from sfumato.core.errors import HierarchyError, Unsupported
from sfumato.core.guarantees.base import Reference
from sfumato.core.guarantees.t_closeness import Distance
from sfumato.core.plain_data import PlainDict
from sfumato.data.schema import Schema
from sfumato.measures.guarantees.compared import Compared
from sfumato.measures.guarantees.examined import ExaminedTable, largest, smallest
from sfumato.measures.guarantees.k_anonymity import most_frequent, smallest_class
from sfumato.measures.guarantees.l_diversity import distinct_values, effective_values, first_and_tail
from sfumato.measures.guarantees.likeness import beyond_enhanced, class_deltas, class_gains
from sfumato.measures.guarantees.population import against_population
from sfumato.measures.guarantees.reference import ReferenceDistribution
from sfumato.measures.guarantees.t_closeness import class_values
from sfumato.measures.guarantees.thresholds import ratios

_LARGEST_RECURSIVE_L = 10


@dataclass(frozen=True)
class AttributeMeasures:
    """What a table keeps for one sensitive attribute.

    `recursive_c[l]` is the infimum of c for that l; `t` is per distance, without those the attribute
    cannot have (`ordered` without an order); `reference` says which distribution t, β and δ were
    compared with.
    """

    attribute: str
    values: int
    distinct_l: float
    entropy_l: float
    recursive_c: Mapping[int, float]
    alpha: float
    t: Mapping[str, float]
    beta: float
    enhanced_beta: float
    delta: float
    reference: Reference


@dataclass(frozen=True)
class TableMeasures:
    """What a table keeps, whatever was promised.

    With a unit column `units` counts its values and `k` is in units; sizes are in records. `uniques` are the records whose
    class no other unit shares, which without units are the records that are alone in theirs.
    """

    records: int
    classes: int
    units: int | None
    k: float
    uniques: int
    class_size_mean: float
    class_size_median: float
    class_size_largest: int
    k_map: float | None = None  # with a population: the fewest people who match a class
    presence: tuple[float, float] | None = None  # and the smallest and largest chance of being in the table
    attributes: Mapping[str, AttributeMeasures] = field(default_factory=lambda: MappingProxyType({}))

    def to_mapping(self) -> PlainDict:
        """Plain data; infinite numbers as the word, so that it is JSON."""
        return _plain(self)  # type: ignore[no-any-return]


def measure_all(
    table: pa.Table,
    schema: Schema,
    *,
    sensitive: Sequence[str] | None = None,
    original: pa.Table | ReferenceDistribution | None = None,
) -> TableMeasures:
    """Measure everything; `sensitive` defaults to the schema's sensitive attributes that the table has."""
    return overview(ExaminedTable(table, schema, original), sensitive)


def overview(examined: ExaminedTable, sensitive: Sequence[str] | None = None, *, against_people: bool = False) -> TableMeasures:
    """The same for a table that is already under examination; `against_people` compares with its population."""
    classes = examined.classes()
    present = [name for name in examined.schema.sensitive if name in examined.table.column_names]
    sizes = classes.sizes
    fewest, low, high = against_population(examined) if against_people else (None, 0.0, 0.0)
    return TableMeasures(
        records=classes.records,
        classes=len(classes),
        units=sum(value is not None for value in examined.column(examined.unit).values) if examined.unit else None,
        k=smallest_class(classes),
        uniques=int(sizes[classes.units <= 1].sum()),
        class_size_mean=float(sizes.mean()) if sizes.size else 0.0,
        class_size_median=float(np.median(sizes)) if sizes.size else 0.0,
        class_size_largest=int(sizes.max()) if sizes.size else 0,
        k_map=fewest,
        presence=None if fewest is None else (low, high),
        attributes=MappingProxyType({name: _attribute(examined, name) for name in (present if sensitive is None else sensitive)}),
    )


def _attribute(examined: ExaminedTable, name: str) -> AttributeMeasures:
    histogram = examined.histogram(name)
    which = examined.references()[0]
    compared = Compared.against(examined, name, which)
    distinct = smallest(distinct_values(histogram))
    deepest = int(min(max(distinct, 2), _LARGEST_RECURSIVE_L)) if math.isfinite(distinct) else 2
    recursive = {l: largest(ratios(*first_and_tail(histogram, l))) for l in range(2, deepest + 1)}  # noqa: E741
    gains = class_gains(compared)
    return AttributeMeasures(
        attribute=name,
        values=len(histogram.values),
        distinct_l=int(distinct) if math.isfinite(distinct) else distinct,
        entropy_l=smallest(effective_values(histogram)),
        recursive_c=MappingProxyType(recursive),
        alpha=largest(ratios(most_frequent(histogram, None), histogram.sizes)),
        t=MappingProxyType(_distances(examined, name, which)),
        beta=largest(gains),
        enhanced_beta=math.inf if bool(beyond_enhanced(compared).any()) else largest(gains),
        delta=largest(class_deltas(compared)),
        reference=which,
    )


def _distances(examined: ExaminedTable, name: str, which: Reference) -> dict[str, float]:
    distances: dict[str, float] = {}
    described = examined.described(name)
    for distance in get_args(Distance):
        if distance == "variational" or (distance == "hierarchical" and described.hierarchy is None):
            continue  # the same number as `equal`
        try:
            distances[distance] = largest(class_values(examined, name, distance, which))
        except (Unsupported, HierarchyError):
            continue
    distances["variational"] = distances["equal"]
    return distances


def _plain(value: Any) -> Any:
    if isinstance(value, (TableMeasures, AttributeMeasures)):
        return {key: _plain(entry) for key, entry in value.__dict__.items()}
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and math.isinf(value):
        return "infinite"
    return value
