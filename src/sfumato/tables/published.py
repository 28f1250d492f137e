"""A protected table as everybody has it: codes, sums, values of the cells that are shown, and blanks for the others.

Nothing in it was computed from a cell that is blank: it can be printed, written and given away.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError
from sfumato.core.plain_data import Plain
from sfumato.core.texts import counted
from sfumato.tables.dimension import Dimension
from sfumato.tables.grid import Shown, TableGrid
from sfumato.tables.system import LinearSystem

#: What stands in place of a value that is not shown.
BLANK = "x"


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """`units[cell]` is the value in units of the last digit, 0 where `blank[cell]`. `method` names how it was protected.

    `additive` is false where cells were changed one by one, so that parts need not add up to their totals. `witnesses` fill all
    blanks in ways that agree with the table, in units of the last digit, as whole numbers or fractions.
    """

    grid: TableGrid
    value: str | None
    decimals: int
    units: NDArray[np.int64] = field(repr=False)
    blank: NDArray[np.bool_] = field(repr=False)
    dataset: str = "unnamed"
    method: Mapping[str, object] = field(default_factory=dict)
    additive: bool = True
    witnesses: tuple[tuple[str, ...], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if np.any(self.units[self.blank] != 0):
            raise InputError("a blank cell of a published table must hold no value")

    def __repr__(self) -> str:
        return f"PublishedTable({counted(self.grid.size, 'cell')}, {int(self.blank.sum()):,} blank)"

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions, in the order of the coordinates."""
        return self.grid.dimensions

    @property
    def system(self) -> LinearSystem:
        """The equations between all cells."""
        return self.grid.system

    def name_of(self, cell: int) -> str:
        """The coordinates of a cell in words."""
        return self.grid.name_of(cell)

    @cached_property
    def texts(self) -> list[str]:
        """What each cell shows: its value with the digits of the table, or nothing."""
        return [
            "" if blank else written(unit, self.decimals) for unit, blank in zip(self.units.tolist(), self.blank, strict=True)
        ]

    def rows(self) -> Iterator[tuple[str, ...]]:
        """One line per cell: its codes, what it shows, and the mark of a blank."""
        names = [dimension.codes for dimension in self.dimensions]
        for cell, codes in enumerate(self.grid.coordinates.tolist()):
            shown = (listed[code] for listed, code in zip(names, codes, strict=True))
            yield (*shown, self.texts[cell], BLANK if self.blank[cell] else "")

    @property
    def columns(self) -> tuple[str, ...]:
        """The heads of `rows`."""
        return (*(each.name for each in self.dimensions), self.value or "count", "flag")

    def to_html(self, marks: Sequence[str] | None = None) -> str:
        """The table as a page: one grid for each combination of codes beyond the last two dimensions.

        `marks`, one text per cell, are the owner's: why a cell is blank.
        """
        return "".join(_pages(self, marks))

    def structure(self) -> dict[str, object]:
        """Codes, sums and tables as plain data: with the values that are shown, everything that the equations are made of."""
        return {
            "value": self.value,
            "decimals": self.decimals,
            "dataset": self.dataset,
            "additive": self.additive,
            "dimensions": [
                {"name": each.name, "codes": list(each.codes), "sums": [[t, list(p)] for t, p in each.sums], "total": each.total}
                for each in self.dimensions
            ],
            "tables": [[list(codes) for codes in table] for table in self.grid.tables],
        }


def grid_of(structure: Plain) -> TableGrid:
    """The grid that `structure` describes."""
    dimensions = [
        Dimension(each["name"], tuple(each["codes"]), tuple((t, tuple(p)) for t, p in each["sums"]), each["total"])
        for each in structure["dimensions"]
    ]
    tables: list[Shown] = [tuple(tuple(codes) for codes in table) for table in structure["tables"]]
    for table in tables:
        shown = zip(dimensions, table, strict=True)
        if not all(codes and all(type(code) is int and 0 <= code < len(each.codes) for code in codes) for each, codes in shown):
            raise InputError("a table shows codes that its dimensions do not have")
    return TableGrid.of(dimensions, tables)


def written(units: int, decimals: int) -> str:
    """Whole units of the last digit as a decimal number, exactly."""
    if not decimals:
        return str(units)
    sign, digits = ("-" if units < 0 else ""), str(abs(units)).rjust(decimals + 1, "0")
    return f"{sign}{digits[:-decimals]}.{digits[-decimals:]}"


def _pages(table: PublishedTable, marks: Sequence[str] | None) -> Iterator[str]:
    first = max(len(table.dimensions) - 2, 0)
    coordinates = table.grid.coordinates
    cells = {tuple(codes): cell for cell, codes in enumerate(coordinates.tolist())}
    for outer in dict.fromkeys(tuple(codes[:first]) for codes in coordinates.tolist()):
        named = zip(table.dimensions, outer, strict=False)
        title = ", ".join(f"{each.name}: {each.codes[code]}" for each, code in named) or "Table"
        shown = [codes[first:] for codes in cells if codes[:first] == outer]
        rows = list(dict.fromkeys(codes[0] for codes in shown))
        across = list(dict.fromkeys(codes[1] for codes in shown)) if len(table.dimensions) > 1 else [None]
        down, beside = table.dimensions[first], table.dimensions[-1]
        yield f"<h2>{html.escape(title)}</h2><table><thead><tr><th>{html.escape(down.name)}</th>"
        heads = [table.value or "count" if code is None else beside.codes[code] for code in across]
        yield "".join(f"<th>{html.escape(head)}</th>" for head in heads) + "</tr></thead><tbody>"
        for row in rows:
            indent = f' style="padding-left:{1 + down.depth[row]}em"'
            yield f"<tr><th{indent}>{html.escape(down.codes[row])}</th>"
            for code in across:
                cell = cells.get((*outer, row) if code is None else (*outer, row, code))
                yield _shown(table, cell, marks)
            yield "</tr>"
        yield "</tbody></table>\n"


def _shown(table: PublishedTable, cell: int | None, marks: Sequence[str] | None) -> str:
    if cell is None:
        return "<td></td>"
    mark = f" <small>{html.escape(marks[cell])}</small>" if marks is not None and marks[cell] else ""
    if table.blank[cell]:
        return f'<td class="blank">{BLANK}{mark}</td>'
    return f"<td>{table.texts[cell]}{mark}</td>"
