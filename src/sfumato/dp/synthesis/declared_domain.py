"""The domain of a synthetic table: which columns it has and which values they may take, from the schema alone.

Nothing is learnt from the rows. Columns without a declaration are refused, all at once, before a row is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.core.errors import SchemaError, all_at_once
from sfumato.core.randomness import Randomness
from sfumato.data.schema import Column, Schema, Type
from sfumato.data.texts.column_types import as_typed, convert
from sfumato.data.texts.values import CodedText, texts
from sfumato.dp.declaring import CURE
from sfumato.dp.synthesis.coded_columns import Codes, DomainColumn, ListedValues, Ranges, compared

_LARGEST = float(1 << 48)  # whole bounds up to here are exact in every product of codes and widths


@dataclass(frozen=True)
class Domain:
    """The coded columns, in the order of the schema."""

    columns: tuple[DomainColumn, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the synthetic table."""
        return tuple(column.name for column in self.columns)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many codes each column has."""
        return tuple(column.size for column in self.columns)

    def encode(self, table: pa.Table) -> Codes:
        """One row of codes per record; -1 marks a value for which the record is not counted."""
        encoded = [column.encode(table.column(column.name)) for column in self.columns]
        return np.stack(encoded).T if encoded else np.zeros((table.num_rows, 0), dtype=np.int64)

    def decode(self, codes: Codes, source: Randomness) -> pa.Table:
        """The records that the codes describe, in the schema's types."""
        return pa.table({column.name: column.decode(codes[:, place], source) for place, column in enumerate(self.columns)})


def declared_domain(schema: Schema, present: Sequence[str], *, bins: int, missing: Iterable[str] = (), who: str) -> Domain:
    """The domain of the columns in `present` (the data's names), without identifiers and units.

    A column may be missing when the schema lists codes for it (`missing`) or it is named here.
    """
    named = set(missing)
    faults = [
        f"missing names a column '{name}' that the schema does not describe" for name in sorted(named - set(schema.columns))
    ]
    unlisted = [name for name in present if name not in schema.columns]
    if unlisted and schema.unlisted != "drop":
        faults.extend(
            f"column '{name}' is not in the schema. Describe it, or drop it with unlisted = \"drop\"" for name in unlisted
        )
    columns = []
    for name, column in schema.columns.items():
        if column.role in ("identifier", "unit"):
            continue
        if name not in present:
            faults.append(f"column '{name}' is in the schema but not in the data")
            continue
        coded = _coded(name, column, bins, bool(column.missing) or name in named)
        if isinstance(coded, str):
            faults.append(coded)
        else:
            columns.append(coded)
    if not columns and not faults:
        faults.append("there is no column to synthesise: all are identifiers or units")
    all_at_once(SchemaError, f"{who} on '{schema.dataset}'", faults)
    return Domain(tuple(columns))


def _coded(name: str, column: Column, bins: int, missing: bool) -> DomainColumn | str:
    """The coded column, or what is wrong with its declaration."""
    if column.items is not None:
        return f"column '{name}' holds sets of items, which have no marginals here. Leave it out of the schema"
    values = column.domain or column.order
    if column.source != "declared" and (values or column.bounds is not None):
        return f"what column '{name}' may contain was learnt from the data, which would reveal something about them. {CURE}"
    if values:
        return _listed(name, column.stored_type, values, missing)
    if column.type == "boolean":
        return _listed(name, "boolean", ("false", "true"), missing)
    if column.bounds is None:
        return f"column '{name}' has no declared domain. Add domain = [values] or bounds = [low, high]"
    return _ranges(name, column, bins, missing)


def _listed(name: str, kind: Type | None, values: Sequence[str], missing: bool) -> DomainColumn | str:
    if len(set(values)) < len(values):
        return f"the domain of column '{name}' names a value twice"
    plain = pa.array(list(values), pa.string())
    if kind is None:
        canonical = as_typed(plain)
        kind = canonical[1] if canonical is not None else "string"
        if kind == "datetime":  # written in several ways, so that reading them needs the declaration
            return f"column '{name}' lists moments but no type. Add type = \"datetime\""
    typed = convert(name, CodedText(np.arange(len(values), dtype=np.int32), plain), kind)
    if typed.fault is not None or typed.array.null_count:
        return f"the domain of column '{name}' has values that are no {kind}"
    if len({compared(str(text)) for text in texts(typed.array)}) < len(values):
        return f"the domain of column '{name}' names a value twice"
    return ListedValues(name, kind, missing, typed.array)


def _ranges(name: str, column: Column, bins: int, missing: bool) -> DomainColumn | str:
    assert column.bounds is not None  # noqa: S101  (for the type checker)
    low, high = column.bounds
    if column.type not in ("integer", "number"):
        if column.type in ("date", "datetime"):
            return f"column '{name}' holds dates; list the days (or months) it may contain as its domain"
        return f'column \'{name}\' has bounds but no type. Add type = "integer" or type = "number"'
    if not (math.isfinite(low) and math.isfinite(high)) or max(abs(low), abs(high)) > _LARGEST:
        return f"the bounds of column '{name}' must be finite and at most 2^48 in size"
    if column.type == "integer":
        low, high = math.ceil(low), math.floor(high)
        if low > high:
            return f"there is no whole number between the bounds of column '{name}'"
    return Ranges(name, column.type, missing, float(low), float(high), 1 if low == high else bins)
