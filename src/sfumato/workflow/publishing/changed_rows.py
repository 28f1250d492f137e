"""What was asked of a method, and what it made of the rows: in the form and order of a release, before it is a draft."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sfumato.core.guarantees.base import ClassGuarantee, Guarantee
from sfumato.core.progress import Progress, silent
from sfumato.data.hierarchy import Hierarchy
from sfumato.data.microdata import Microdata
from sfumato.data.released import ShownValue
from sfumato.data.schema import Schema
from sfumato.workflow.publishing.claims import References, UnitCounts, counts_units, measure_all, refuse_violations
from sfumato.workflow.publishing.columns import ColumnPlan

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from sfumato.core.randomness import Randomness
    from sfumato.data.masked import Masked
    from sfumato.data.microdata import Microdata
    from sfumato.wire.keys import OwnerKey


@dataclass(frozen=True, eq=False)
class ReleaseRequest:
    """What was asked for, checked as far as it can be before the long work."""

    people: Microdata
    population: Microdata | None
    population_public: bool
    guarantees: tuple[ClassGuarantee, ...]
    plan: ColumnPlan
    key: OwnerKey = field(repr=False)
    randomness: Randomness = field(repr=False)
    progress: Progress = field(default=silent, repr=False)

    @property
    def by_frequency(self) -> list[str]:
        """Quasi-identifiers whose hierarchy is learnt from how often values occur."""
        schema = self.plan.schema
        specs = {name: schema.columns[name].hierarchy for name in schema.quasi}
        return [name for name, spec in specs.items() if spec is not None and spec.frequency is not None]


@dataclass(frozen=True, eq=False)
class Changed:
    """Rows that a search recoded or a mask changed, what is promised about them, and what is said about the work."""

    table: pa.Table = field(repr=False)
    owners: Schema = field(repr=False)
    guarantees: tuple[Guarantee, ...]
    method: Mapping[str, Any]
    transparency: Mapping[str, Any]
    details: Mapping[str, Any] = field(repr=False)
    records: int
    columns: tuple[str, ...] = ()  # those that show other values than the records behind them had
    units: UnitCounts | None = None
    notices: tuple[str, ...] = ()
    later_notices: tuple[str, ...] = ()
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    ranges: Mapping[str, Mapping[str, ShownValue]] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    masked: Masked | None = field(default=None, repr=False)
    rows_behind: NDArray[np.int64] | None = field(default=None, repr=False)
    in_source_order: bool = False
    loss: float | None = None
    loss_per_attribute: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    known_cells: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), repr=False)


def units_behind(rows: pa.Table, people: Microdata, unit: str, guarantees: Sequence[Guarantee]) -> UnitCounts:
    """Measure what counts different people before the column that names them is dropped; outsiders cannot
    repeat this.
    """
    described = people.schema.replace(
        columns={name: column for name, column in people.schema.columns.items() if name in rows.column_names}
    )
    counting = [guarantee for guarantee in guarantees if isinstance(guarantee, ClassGuarantee) and counts_units(guarantee)]
    measured = measure_all(rows, described, counting, References(people))
    refuse_violations(list(zip(counting, measured, strict=True)), "the recoded table")
    return UnitCounts(unit, MappingProxyType(dict(zip(counting, measured, strict=True))))


def fingerprint(data: Microdata | None, key: OwnerKey) -> str | None:
    """The keyed fingerprint of all rows, read a batch at a time; their order does not matter."""
    from sfumato.wire.fingerprint import Fingerprint

    if data is None:
        return None
    running = Fingerprint(data.relation.schema().names, key)
    for batch in data.relation.batches():
        running.add(batch)
    return running.finish()


def replace_names(rows: pa.Table, columns: Sequence[str], key: OwnerKey) -> pa.Table:
    """The same rows with keyed pseudonyms in these columns."""
    from sfumato.anonymity.pseudonyms import Pseudonyms

    for name in columns:
        position = rows.column_names.index(name)
        # The scope is the column's name: tables that name people by the same column can be joined by their
        # pseudonyms.
        rows = rows.set_column(position, name, Pseudonyms(key, scope=name).apply(rows.column(name)))
    return rows
