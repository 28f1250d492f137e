"""Invented values of a column, drawn from what its owner declared about it and from no record.

They illustrate what a release does to a column. What was learnt from the data gives none: a domain that was read from the records
is made of their values.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from pathlib import Path

from sfumato.core.errors import SfumatoError
from sfumato.data.hierarchies.hierarchy import ROOT, Hierarchy, from_tree
from sfumato.data.schema import Column

#: A value that is longer illustrates nothing.
LONGEST = 60
_GOLDEN = (math.sqrt(5) - 1) / 2
_FIRST_DAY = datetime.date(1984, 5, 17)
_WIDEST_CODE = 12
_SHARE = 0.4

#: The value at a place: another place, another value, as a rule.
Values = Callable[[int], str]


def invented_values(column: Column, folder: str | None) -> Values | None:
    """The values that may be invented for a column; None where nothing was declared about it that gives some. `folder` is where
    its hierarchy file is looked up."""
    if column.source != "declared" or column.items is not None:
        return None
    for listed in (column.domain, column.order, _leaves(column, folder)):
        if listed:
            return _one_of([value for value in listed if value != ROOT and 0 < len(value) <= LONGEST])
    if column.role in ("identifier", "unit"):
        return None
    if column.bounds is not None and column.stored_type in (None, "integer", "number"):
        return _between(*column.bounds, whole=column.type != "number" and all(end.is_integer() for end in column.bounds))
    if column.type == "boolean":
        return lambda place: "true" if place % 2 else "false"
    if column.type == "date":
        return lambda place: (_FIRST_DAY + datetime.timedelta(days=37 * place)).isoformat()
    width = column.hierarchy.width if column.hierarchy is not None and column.hierarchy.mask else None
    if width and width <= _WIDEST_CODE:
        return lambda place: f"{(48216 + 7919 * place) % 10**width:0{width}d}"
    return None


def _leaves(column: Column, folder: str | None) -> tuple[str, ...]:
    """The values that a declared tree has at its bottom."""
    spec = column.hierarchy
    if spec is None or (spec.tree is None and spec.file is None) or spec.leaves == "data":
        return ()
    try:
        tree = from_tree(spec.tree) if spec.tree is not None else _load(spec.file or "", spec.separator, folder)
    except SfumatoError:
        return ()
    return tuple(leaf for leaf in tree.leaves if leaf is not None)


def _load(file: str, separator: str | None, folder: str | None) -> Hierarchy:
    path = Path(file)
    return Hierarchy.load(path if folder is None else Path(folder) / path, separator=separator)


def _one_of(values: list[str]) -> Values | None:
    return (lambda place: values[int(_share(place) * len(values))]) if values else None


def _between(low: float, high: float, *, whole: bool) -> Values | None:
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    if whole:
        return lambda place: str(int(low) + int(_share(place) * (int(high) - int(low) + 1)))
    step = 10.0 ** (math.floor(math.log10(high - low)) - 2) if high > low else 1.0
    decimals = max(-math.floor(math.log10(step)), 0)
    return lambda place: f"{min(max(round((low + _share(place) * (high - low)) / step) * step, low), high):.{decimals}f}"


def _share(place: int) -> float:
    """Between 0 and 1, spread evenly over the places."""
    return (_SHARE + _GOLDEN * place) % 1.0
