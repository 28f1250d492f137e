"""The totals of classes, and a check on them.

Totals are one row of integers per class: records, units, people of the population, then the histograms of the
sensitive attributes side by side. A check returns 0 for a class that keeps the promise; a positive number is a
lower bound on the records that any finer partition of the class must suppress; `NO_BOUND` marks a failing class
about whose parts nothing is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported
from sfumato.data.class_table import ClassTable, SensitiveAttribute
from sfumato.data.relation import WHOLE

Int = NDArray[np.int64]
NO_BOUND = -1


@dataclass(frozen=True)
class Layout:
    """Where the columns of the totals are: records are column 0; `units` may be the same column; `population` may be
    absent (-1).

    People with several rows do not add up over tuples, so the column of units holds what adds up and never says too much:
    what the units of a tuple give to it (`Relation.group`), or `enough` where it has k different units by itself. A class
    whose column reaches `enough` has k different units, see docs/theory/class-bounds.md.
    """

    units: int
    population: int
    starts: dict[str, int]
    widths: dict[str, int]
    columns: int


class Check(Protocol):
    """Needed suppressions per class; `shares` replaces the reference distribution where the guarantee follows the
    released rows."""

    def __call__(self, totals: Int) -> Int: ...


def layout_of(table: ClassTable, sensitive: tuple[str, ...], *, count_units: bool = True) -> Layout:
    """The layout for the sensitive attributes that the guarantees name."""
    column = 1
    units = 0
    if count_units and table.units is not table.counts:
        units, column = column, column + 1
    population = -1
    if table.population.any():
        population, column = column, column + 1
    starts, widths = {}, {}
    for name in sensitive:
        attribute = table.sensitive[table.sensitive_index(name)]
        starts[name], widths[name] = column, len(attribute.values)
        column += len(attribute.values)
    return Layout(units, population, starts, widths, column)


def enough_of(k: int, layout: Layout) -> int:
    """What the column of units holds at least where a class has k of them: more than k - 1 units could give to it."""
    return (k - 1) * WHOLE + 1 if layout.units else k


def cautious_units(table: ClassTable, enough: int) -> Int:
    """What each tuple adds to the column of units."""
    if table.shares is None:
        return table.units
    return np.where(table.units * WHOLE >= enough, enough, table.shares)


def totals_of(table: ClassTable, layout: Layout, enough: int) -> Int:
    """The totals of the distinct tuples: the finest classes."""
    totals = np.zeros((table.tuples, layout.columns), dtype=np.int64)
    totals[:, 0] = table.counts
    if layout.units:
        totals[:, layout.units] = cautious_units(table, enough)
    if layout.population > 0:
        totals[:, layout.population] = table.population
    if layout.starts:
        histogram = table.histogram
        for name, start in layout.starts.items():
            offset = table.offsets[table.sensitive_index(name)]
            totals[:, start : start + layout.widths[name]] = histogram[:, offset : offset + layout.widths[name]]
    return totals


def input_shares(table: ClassTable, attribute: SensitiveAttribute) -> NDArray[np.float64]:
    """The distribution of a sensitive attribute over all records of the input."""
    index = table.sensitive_index(attribute.name)
    counts = np.bincount(table.sensitive_codes[index], weights=table.cell_counts, minlength=len(attribute.values))
    return np.asarray(counts / max(counts.sum(), 1.0))


def protected_mask(attribute: SensitiveAttribute, protected: tuple[str, ...] | None) -> NDArray[np.bool_] | None:
    """Which values are protected; None when all are."""
    if protected is None:
        return None
    wanted = set(protected)
    unknown = sorted(wanted - {*attribute.values, *attribute.hierarchy.leaves})
    if unknown:
        raise Unsupported(
            f"{len(unknown)} of the protected values of '{attribute.name}' occur neither in the table nor in the column's "
            f"hierarchy or domain, so they would protect nobody: {', '.join(map(repr, unknown[:5]))}. Check their spelling."
        )
    return np.array([value in wanted for value in attribute.values], dtype=np.bool_)
