"""The plain verifier: measure a guarantee on the rows of a table, whoever produced them, one by one or grouped.

It looks at the table and the roles of its columns and at nothing a search knows, so that what reaches a
guarantee never certifies it. `MEASURES` says which function measures which guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from sfumato.core.errors import Unsupported
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.guarantees.k_anonymity import AlphaKAnonymity, KAnonymity
from sfumato.core.guarantees.l_diversity import DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity
from sfumato.core.guarantees.likeness import BetaLikeness, DeltaDisclosure
from sfumato.core.guarantees.population import DeltaPresence, KMap
from sfumato.core.guarantees.risk import AverageRisk, KMapByModel, UniquenessByModel
from sfumato.core.guarantees.t_closeness import TCloseness
from sfumato.data.schema import Schema
from sfumato.measures.guarantees.examined import ExaminedTable, Measurement
from sfumato.measures.guarantees.grouped import GroupedTable
from sfumato.measures.guarantees.k_anonymity import measure_alpha_k_anonymity, measure_k_anonymity
from sfumato.measures.guarantees.l_diversity import measure_distinct, measure_entropy, measure_recursive
from sfumato.measures.guarantees.likeness import measure_beta_likeness, measure_delta_disclosure
from sfumato.measures.guarantees.population import measure_delta_presence, measure_k_map
from sfumato.measures.guarantees.reference import ReferenceDistribution
from sfumato.measures.guarantees.t_closeness import measure_t_closeness
from sfumato.measures.guarantees.whole_table import (
    measure_average_risk,
    measure_k_map_by_model,
    measure_uniqueness_by_model,
)

MEASURES: dict[type[ClassGuarantee], Callable[[ExaminedTable, Any], Measurement]] = {
    AlphaKAnonymity: measure_alpha_k_anonymity,
    BetaLikeness: measure_beta_likeness,
    DeltaDisclosure: measure_delta_disclosure,
    DeltaPresence: measure_delta_presence,
    DistinctLDiversity: measure_distinct,
    EntropyLDiversity: measure_entropy,
    KAnonymity: measure_k_anonymity,
    KMap: measure_k_map,
    RecursiveLDiversity: measure_recursive,
    TCloseness: measure_t_closeness,
    AverageRisk: measure_average_risk,
    KMapByModel: measure_k_map_by_model,
    UniquenessByModel: measure_uniqueness_by_model,
}


def measure(
    table: pa.Table,
    schema: Schema,
    guarantee: ClassGuarantee,
    *,
    original: pa.Table | GroupedTable | ReferenceDistribution | None = None,
    population: pa.Table | GroupedTable | None = None,
) -> Measurement:
    """Measure one guarantee; `original` and `population` are what some guarantees compare with."""
    return measure_each(table, schema, [guarantee], original=original, population=population)[0]


def measure_each(
    table: pa.Table,
    schema: Schema,
    guarantees: Iterable[ClassGuarantee],
    *,
    original: pa.Table | GroupedTable | ReferenceDistribution | None = None,
    population: pa.Table | GroupedTable | None = None,
) -> tuple[Measurement, ...]:
    """Measure several guarantees, grouping and counting once."""
    examined = ExaminedTable(table, schema, original, population)
    return tuple(measure_examined(examined, guarantee) for guarantee in guarantees)


def measure_grouped(
    groups: GroupedTable,
    schema: Schema,
    guarantees: Iterable[ClassGuarantee],
    *,
    original: pa.Table | GroupedTable | ReferenceDistribution | None = None,
    population: pa.Table | GroupedTable | None = None,
) -> tuple[Measurement, ...]:
    """The same for rows that were grouped elsewhere: what `measure_each` measures on the rows that the groups stand for.

    The groups need the quasi-identifiers and the sensitive attributes that the guarantees are about, and what an adversary is
    said to know instead of them (`Knowledge.attributes`).

    >>> import numpy as np, pyarrow as pa
    >>> from sfumato import KAnonymity, Schema
    >>> groups = GroupedTable(pa.table({"age": ["20-29", "30-39"]}), np.array([4_000_000, 7]))
    >>> measure_grouped(groups, Schema.of(quasi=["age"]), [KAnonymity(5)])[0].value
    7
    """
    examined = ExaminedTable.grouped(groups, schema, original, population)
    return tuple(measure_examined(examined, guarantee) for guarantee in guarantees)


def measure_examined(examined: ExaminedTable, guarantee: ClassGuarantee) -> Measurement:
    """Measure a guarantee on a table that is already under examination."""
    measuring = MEASURES.get(type(guarantee))
    if measuring is None:
        raise Unsupported(f"there is no verifier for {guarantee.name}; it cannot be certified for a table")
    return measuring(examined, guarantee)
