"""The distribution a class is compared with: counts of each sensitive value in the original table.

Kept apart from the rows, so that a release can be checked again by somebody who has the counts and not
the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from sfumato.core.errors import InputError, MissingColumn
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.measures.guarantees.classes import CodedColumn, require_columns, tally
from sfumato.measures.guarantees.grouped import GroupedTable


@dataclass(frozen=True)
class ReferenceDistribution:
    """Counts per attribute and value; a missing value is None."""

    counts: Mapping[str, Mapping[str | None, int]] = field(repr=False)
    records: int

    @classmethod
    def of(cls, table: pa.Table | GroupedTable, attributes: Iterable[str]) -> ReferenceDistribution:
        """Count the values of these columns."""
        names = list(dict.fromkeys(attributes))
        rows, per_row = (table.table, table.counts) if isinstance(table, GroupedTable) else (table, None)
        require_columns(rows, names)
        counts: dict[str, Mapping[str | None, int]] = {}
        for name in names:
            coded = CodedColumn.of(rows.column(name))
            totals = tally(coded.codes, len(coded.values), per_row).tolist()
            counts[name] = {value: total for value, total in zip(coded.values, totals, strict=True) if total}
        return cls(counts, rows.num_rows if per_row is None else int(per_row.sum()))

    def attribute(self, name: str) -> Mapping[str | None, int]:
        """The counts of one attribute."""
        if name not in self.counts:
            raise MissingColumn(
                f"the reference distribution has no attribute '{name}'; it has {', '.join(self.counts) or 'none'}"
            )
        return self.counts[name]

    def to_mapping(self) -> PlainDict:
        """Plain data, ready for JSON: values as pairs, because a missing value cannot be a key there."""
        return {
            "records": self.records,
            "counts": {name: [[value, count] for value, count in values.items()] for name, values in self.counts.items()},
        }

    @classmethod
    def from_mapping(cls, entries: Plain) -> ReferenceDistribution:
        """Read back what `to_mapping` wrote."""
        try:
            counts = {
                str(name): {None if value is None else str(value): int(count) for value, count in pairs}
                for name, pairs in entries["counts"].items()
            }
            records = int(entries["records"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise InputError(
                "this is not a reference distribution: it needs 'records' and, per attribute, pairs of value and count"
            ) from None
        if records < 0 or any(count < 0 for values in counts.values() for count in values.values()):
            raise InputError("a reference distribution has no negative counts")
        return cls(counts, records)
