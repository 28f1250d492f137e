"""What the owner declared about a column against what is in it: bounds and domains are promises that later rooms build on."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.core.errors import SchemaError
from sfumato.data.schema import Column
from sfumato.data.values import as_numbers


def refuse_undeclared(name: str, column: Column, values: Sequence[str | None]) -> None:
    """Refuse values outside declared bounds or a declared domain; they are counted, not shown."""
    if column.source != "declared":
        return
    present = [value for value in values if value is not None]
    if column.domain is not None:
        outside = len(set(present) - set(column.domain))
        if outside:
            raise SchemaError(
                f"column '{name}' has {outside:,} different value{'s' if outside > 1 else ''} outside its declared domain of "
                f"{len(column.domain):,}. Correct the data or the domain."
            )
    if column.bounds is not None and (numbers := as_numbers(present)) is not None:
        low, high = column.bounds
        outside = sum(not low <= number <= high for number in numbers)
        if outside:
            raise SchemaError(
                f"column '{name}' has {outside:,} different value{'s' if outside > 1 else ''} outside its declared bounds "
                f"[{low:g}, {high:g}]. Correct the data or the bounds."
            )
