"""Detail kept: how many of the cells that were known are still shown as they were, and how wide the others became.

Granularity counts a missing value as kept, because nothing was lost. Where most values are missing it is therefore near 1
whatever happens to the rest. Here only known cells count. The width of a cell is its loss: the share of the hierarchy that a
shown value stands for, 1 for a suppressed one (Iyengar, "Transforming data to satisfy privacy constraints", KDD 2002).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from sfumato.core.errors import InputError
from sfumato.core.view import Measure, Score
from sfumato.data.microdata import ReleasedTable
from sfumato.measures.utility.shown import Rows, ShownColumn, records_of, rows_of, shown_columns

KNOWN, KEPT, WIDTH = "known cells", "kept", "mean width"
_SHOWN = 4  # columns that are named in a summary


@dataclass(frozen=True)
class KnownCells:
    """Of one column: how many cells were known, how many of them are shown as they were, and their mean width; and how many cells
    are shown coarser than they were."""

    total: int
    kept: int
    width: float
    coarser: int = 0


@dataclass(frozen=True)
class DetailKept(Measure[Rows | None, ReleasedTable]):
    """Share of the detail of known cells that is left: the mean over quasi-identifiers of 1 − mean width of their known cells.

    Parts, for each quasi-identifier: its known cells in the original, how many of them are shown as they were, and their mean
    width (0: as it was, 1: suppressed). Where missing values were generalised together with known ones, the width is shared among
    both in proportion to their numbers; the two counts are exact.

    >>> DetailKept().key
    'detail_kept'
    """

    key: ClassVar[str] = "detail_kept"
    supposes_truth: ClassVar[bool] = True
    of_groups: ClassVar[bool] = True

    def score(self, original: Rows | None, released: ReleasedTable) -> Score:
        """The mean, and the counts of each column."""
        if original is None and not released.known_cells:
            raise InputError("detail_kept counts the cells that were known: pass the original")
        parts, by_column = {}, {}
        for column in shown_columns(original, released):
            cells = known_cells(column, _known(column.name, original, released), records_of(released))
            if not cells.total:
                continue
            parts[f"{column.name}, {KNOWN}"] = float(cells.total)
            parts[f"{column.name}, {KEPT}"] = float(cells.kept)
            parts[f"{column.name}, {WIDTH}"] = cells.width
            by_column[column.name] = cells
        meaning = "share of the detail of known cells that is left, a suppressed cell counting 0"
        value = sum(1.0 - cells.width for cells in by_column.values()) / len(by_column) if by_column else 1.0
        return Score(self.key, value, "higher", meaning, MappingProxyType(parts), words=_in_words(by_column))


def _known(name: str, original: Rows | None, released: ReleasedTable) -> int:
    """How many records have a value: as a search counted them, which reads no row again."""
    if name in released.known_cells or original is None:
        return released.known_cells.get(name, 0)
    rows = rows_of(original)
    return int(rows.num_rows - rows.column(name).null_count)


def known_cells(column: ShownColumn, total: int, records: int) -> KnownCells:
    """The counts of one column, of which `total` cells of `records` records were known."""
    kept = missing = wide = 0
    lost = 0.0
    for text, count, loss in zip(column.coded.values, column.counts.tolist(), column.losses.tolist(), strict=True):
        if text is None:
            missing += count
        elif loss <= 0.0:
            kept += count
        else:
            wide += count
            lost += count * loss
    suppressed = records - kept - missing - wide
    generalised = wide + suppressed  # of known values and of missing ones
    share = (total - kept) / generalised if generalised else 0.0
    return KnownCells(total, kept, (lost + suppressed) * min(share, 1.0) / total if total else 0.0, wide)


def _in_words(cells: Mapping[str, KnownCells]) -> tuple[str, ...]:
    """What the columns that lost most have kept, in one line, and which to look at: a summary is short."""
    names = sorted(cells, key=lambda name: -cells[name].width)
    coarser = any(each.coarser for each in cells.values())
    columns = [
        f"{name}: {cells[name].kept:,} of {cells[name].total:,} known cells kept"
        + (f", mean width {cells[name].width:.2f}" if coarser else "")
        for name in names[:_SHOWN]
    ]
    rest = names[_SHOWN:]
    if rest and coarser:
        columns.append(f"{len(rest)} more, mean width at most {cells[rest[0]].width:.2f}")
    lines = ["; ".join(columns)] if columns else []
    if not coarser:  # records were left out whatever their columns, so that no column costs anything
        if any(each.width > 0.0 for each in cells.values()):
            lines.append("no value became coarser: the cells that are not kept are those of records that were left out")
        return tuple(lines)
    costly = [name for name in names if cells[name].width > 0.0][:2]
    if len(names) > 1 and costly:
        verb = "cost" if len(costly) > 1 else "costs"
        lines.append(f"{' and '.join(costly)} {verb} most: leave one out or coarsen it yourself, and the others may keep more")
    return tuple(lines)
