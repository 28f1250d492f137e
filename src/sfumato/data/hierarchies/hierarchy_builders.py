"""Hierarchies over the values that occur, from a description: a file, a tree, intervals, cuts, masks, dates, frequency groups.

Each builder takes the description and the values that occur, and returns a tree that covers them. What a builder
learns from the data (the frequencies) is marked `source = "data"`.
"""

from __future__ import annotations

import bisect
import datetime
import difflib
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from sfumato.core.errors import HierarchyError, HierarchyGap, SchemaError, all_at_once
from sfumato.core.texts import counted
from sfumato.data.hierarchies.hierarchy import ROOT, Hierarchy, from_tree, mask_width
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.data.texts.values import as_numbers, text_of

MAX_LISTED_INTEGERS = 100_000


def build(
    name: str,
    column: Column,
    values: Sequence[str | None],
    counts: Sequence[int] | None = None,
    folder: str | Path | None = None,
) -> Hierarchy:
    """The hierarchy of a column over the values that occur in it; missing values become a leaf below the root.

    The values of a set-valued column are whole sets, which are shown or not; what its schema describes are single
    items.
    """
    spec = column.hierarchy if column.hierarchy is not None and column.items is None else HierarchySpec(flat=True)
    domain = _domain(column, values)
    if spec.file is not None:
        tree = Hierarchy.load(_beside(folder, spec.file), separator=spec.separator, verbatim=spec.verbatim)
    elif spec.tree is not None:
        tree = from_tree(spec.tree, name=name)
    elif spec.intervals is not None:
        tree = from_intervals(domain, spec.intervals, origin=spec.origin, name=name)
    elif spec.cuts is not None:
        tree = from_cuts(domain, spec.cut_levels, name=name)
    elif spec.mask is not None:
        tree = from_mask(domain, direction=spec.mask, width=spec.width, alphabet=spec.alphabet)
    elif spec.dates is not None:
        tree = from_dates(domain, spec.dates, name=name)
    elif spec.frequency is not None:
        tree = from_frequencies(values, counts or [1] * len(values), spec.frequency)
    else:
        tree = from_values(domain, order=column.order)
    return cover(tree, values, name=name, missing=spec.missing)


def cover(tree: Hierarchy, values: Sequence[str | None], *, name: str, missing: str = "refuse") -> Hierarchy:
    """Check that every value has a leaf; report all that have none, each with the nearest known value."""
    unknown = [value for value in values if value is not None and value not in tree.index]
    if unknown and missing == "refuse":
        leaves = [leaf for leaf in tree.leaves if leaf is not None]
        shown = []
        for value in unknown[:20]:
            near = difflib.get_close_matches(value, leaves[:20_000], n=1, cutoff=0.0)
            shown.append(f"{value!r} (nearest: {near[0]!r})" if near else repr(value))
        more = f" and {len(unknown) - 20} more" if len(unknown) > 20 else ""
        raise HierarchyGap(
            f"{len(unknown)} value{'s' if len(unknown) > 1 else ''} of column '{name}' missing from its hierarchy "
            f"({counted(len(tree.leaves), 'leaf', 'leaves')}): {', '.join(shown)}{more}. "
            'Add them to the hierarchy or set missing = "root".'
        )
    return tree.with_leaves([*unknown, None] if None in values else unknown)


def tree_over(
    name: str,
    schema: Schema,
    earlier: Mapping[str, Hierarchy],
    values: Sequence[str | None],
    counts: Callable[[], Sequence[int]],
) -> Hierarchy:
    """The hierarchy of a column over its values: the one built before, extended where needed, or a new one."""
    tree = earlier.get(name)
    column = schema.columns[name]
    if tree is None:
        # only a frequency hierarchy looks at how often a value occurs
        return build(name, column, values, counts() if by_frequency(column) else None, schema.folder)
    if any(value not in tree.index for value in values):
        return cover(tree, values, name=name)
    return tree


def learnt_elsewhere(
    name: str, schema: Schema, listed: Sequence[str | None], counts: Sequence[int], values: Sequence[str | None]
) -> Hierarchy:
    """Frequency groups learnt from the values and counts of the population alone, so that whoever has it learns the same, and
    nothing of the data."""
    column = schema.columns[name]
    tree = build(name, column, listed, counts, schema.folder)
    return cover(tree, values, name=name, missing="refuse" if column.hierarchy is None else column.hierarchy.missing)


def by_frequency(column: Column) -> bool:
    """Whether a hierarchy is learnt from how often values occur."""
    return column.hierarchy is not None and column.hierarchy.kind == "frequency"


def raise_together(faults: Sequence[HierarchyError | SchemaError]) -> None:
    """One error for all columns."""
    if len(faults) == 1:
        raise faults[0]
    kind = (
        HierarchyGap
        if all(isinstance(fault, HierarchyGap) for fault in faults)
        else type(faults[0])
        if faults
        else HierarchyError
    )
    all_at_once(kind, f"{len(faults)} column{'s' * (len(faults) != 1)}", (str(fault) for fault in faults))


def from_values(values: Sequence[str | None], *, order: Sequence[str] | None = None) -> Hierarchy:
    """The flat hierarchy: every value, or `*`."""
    present = [value for value in values if value is not None]
    if order is not None:
        rank = {value: i for i, value in enumerate(order)}
        present.sort(key=lambda value: rank.get(value, len(rank)))
        return Hierarchy.from_levels([[value, ROOT] for value in present or [ROOT]], ordered=True)
    return Hierarchy.from_levels([[value, ROOT] for value in present or [ROOT]])


def from_intervals(
    values: Sequence[str | None], widths: Sequence[float], *, origin: float = 0.0, name: str = "hierarchy"
) -> Hierarchy:
    """Nested half-open intervals [lo, hi) of growing widths counted from `origin`."""
    present = [value for value in values if value is not None]
    numbers = as_numbers(present)
    if numbers is None:
        raise HierarchyError(f"column '{name}' has values that are not numbers, so it cannot have interval hierarchies")
    rows = []
    start, exact_widths = _exact(repr(origin)), [_exact(repr(width)) for width in widths]
    for value in present:
        # exact arithmetic: with floats 0.6 would fall into [0.5, 0.6) and the levels would not nest
        offset = _exact(value) - start
        steps = [offset // width for width in exact_widths]
        bounds = [(start + step * width, start + (step + 1) * width) for step, width in zip(steps, exact_widths, strict=True)]
        rows.append([value, *(f"[{text_of(float(lo))}, {text_of(float(hi))})" for lo, hi in bounds), ROOT])
    return Hierarchy.from_levels(rows or [[ROOT] * (len(widths) + 2)], name=f"intervals of '{name}'")


def from_cuts(values: Sequence[str | None], levels: Sequence[Sequence[float]], *, name: str = "hierarchy") -> Hierarchy:
    """Half-open intervals [lo, hi) between the cuts of each level; the outermost have no end: `[-inf, 10)` and `[500, inf)`."""
    present = [value for value in values if value is not None]
    numbers = as_numbers(present)
    if numbers is None:
        raise HierarchyError(f"column '{name}' has values that are not numbers, so it cannot have interval hierarchies")
    rows = [
        [value, *(cut_interval(number, cuts) for cuts in levels), ROOT] for value, number in zip(present, numbers, strict=True)
    ]
    return Hierarchy.from_levels(rows or [[ROOT] * (len(levels) + 2)], name=f"intervals of '{name}'")


def cut_interval(number: float, cuts: Sequence[float]) -> str:
    """The interval between two cuts that holds a number, as it is shown.

    >>> cut_interval(10, (10, 50)), cut_interval(9.5, (10, 50)), cut_interval(70, (10, 50))
    ('[10, 50)', '[-inf, 10)', '[50, inf)')
    """
    place = bisect.bisect_right(cuts, number)
    low = str(text_of(float(cuts[place - 1]))) if place else "-inf"
    high = str(text_of(float(cuts[place]))) if place < len(cuts) else "inf"
    return f"[{low}, {high})"


def _exact(number: str) -> int | Fraction:
    exact = int(number) if number.lstrip("-").isdecimal() else Fraction(number)
    return int(exact) if exact.denominator == 1 else exact


def from_mask(
    values: Sequence[str | None], *, direction: str = "right", width: int | None = None, alphabet: int | None = None
) -> Hierarchy:
    """Replace characters by `*` one by one from the right (or left): 12345, 1234*, 123**, …

    A declared `width` counts whatever the data hold: shorter values are padded, and of longer ones only so many characters are
    shown. Without one the longest value sets it, even if its record is suppressed.
    With `alphabet` the domain below a mask is the full one: 130** stands for alphabet² values, present or not.
    """
    present = [value for value in values if value is not None]
    length = mask_width(present, width)
    rows, sizes = [], []
    for value in present:
        padded = value.ljust(length)[:length] if direction == "right" else value.rjust(length)[-length:]
        row: list[str | None] = [value]
        for masked in range(1, length + 1):
            row.append(
                padded[: length - masked].rstrip() + "*" * masked
                if direction == "right"
                else "*" * masked + padded[masked:].lstrip()
            )
        rows.append(row)
        sizes.append([_power(alphabet, masked) if alphabet else 1.0 for masked in range(length + 1)])
    if not rows:
        return from_values([])
    return Hierarchy.from_levels(rows, name="mask", sizes=sizes if alphabet else None)


def _power(base: int, exponent: int) -> float:
    """How many texts of this many characters there are; where that is too large for a number it makes no difference how large."""
    try:
        return float(base) ** exponent
    except OverflowError:
        return sys.float_info.max


_UNITS: dict[str, Callable[[datetime.date], str]] = {
    "week": lambda day: f"{day.isocalendar().year:04d}-W{day.isocalendar().week:02d}",
    "month": lambda day: f"{day.year:04d}-{day.month:02d}",
    "quarter": lambda day: f"{day.year:04d}-Q{(day.month - 1) // 3 + 1}",
    "year": lambda day: f"{day.year:04d}",
    "decade": lambda day: f"{day.year // 10 * 10:04d}s",
    "century": lambda day: f"{day.year // 100 * 100:04d}–{day.year // 100 * 100 + 99:04d}",
}


def from_dates(values: Sequence[str | None], units: Sequence[str], *, name: str = "hierarchy") -> Hierarchy:
    """ISO dates generalised to coarser units; a week does not nest in a month, which is refused."""
    if "week" in units and any(unit in units for unit in ("month", "quarter", "year", "decade", "century")):
        raise HierarchyError(f"column '{name}': weeks do not nest in months or years; use one or the other")
    rows = []
    for value in values:
        if value is None:
            continue
        try:
            day = datetime.date.fromisoformat(value[:10])
        except ValueError:
            raise HierarchyError(
                f"column '{name}' has a value that is not an ISO date, so it cannot have date hierarchies"
            ) from None
        rows.append([value, *(_UNITS[unit](day) for unit in units), ROOT])
    rows.sort(key=lambda row: row[0])
    return Hierarchy.from_levels(rows or [[ROOT] * (len(units) + 2)], name=f"dates of '{name}'", ordered=True)


def from_frequencies(values: Sequence[str | None], counts: Sequence[int], sizes: Sequence[int]) -> Hierarchy:
    """Values ordered by frequency and grouped: the most frequent `sizes[0]` together, and so on, level by level."""
    pairs = sorted(
        ((count, value) for value, count in zip(values, counts, strict=True) if value is not None), key=lambda p: (-p[0], p[1])
    )
    rows = []
    for rank, (_, value) in enumerate(pairs):
        groups = [f"rank {rank // size * size + 1}–{rank // size * size + size}" for size in sizes]
        rows.append([value, *groups, ROOT])
    return Hierarchy.from_levels(rows or [[ROOT] * (len(sizes) + 2)], ordered=False, source="data")


def _domain(column: Column, values: Sequence[str | None]) -> list[str | None]:
    """The values a built hierarchy covers: declared domain or integer bounds where given, and all that occur."""
    listed: dict[str | None, None] = {}
    if column.domain is not None:
        listed.update(dict.fromkeys(column.domain))
    elif column.bounds is not None and column.type == "integer":
        low, high = column.bounds
        if high - low < MAX_LISTED_INTEGERS:  # bounds may be infinite
            listed.update((str(number), None) for number in range(int(low), int(high) + 1))
    listed.update(dict.fromkeys(values))
    return list(listed)


def _beside(folder: str | Path | None, file: str) -> Path:
    return Path(file) if folder is None or Path(file).is_absolute() else Path(folder) / file
