"""τ-ARGUS a-priori files (.hst): what the owner says of single cells before anything is computed.

One line per cell: its codes, then `u` (sensitive), `p` (must be published), `s` (safe), or `c` with a cost, or `pl` with a lower
and an upper protection level.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from sfumato.core.errors import SourceError, all_at_once
from sfumato.tables.formats.exchange import KEPT, MOST_ROWS, SAFE, UNSAFE, ExchangedTable, text_of_file

_WORDS = {"u": UNSAFE, "p": KEPT, "s": SAFE}


def with_apriori(table: ExchangedTable, file: str | Path, *, separator: str = ",") -> ExchangedTable:
    """The table with what an a-priori file says of its cells."""
    place = Path(file)
    return told_apriori(table, text_of_file(place, "a-priori file"), separator=separator, name=f"a-priori file '{place.name}'")


def told_apriori(table: ExchangedTable, text: str, *, separator: str = ",", name: str = "a-priori file") -> ExchangedTable:
    """The same from a text; all lines that cannot be followed are named at once."""
    status, levels, costs = dict(table.status), dict(table.levels), dict(table.costs)
    faults: list[str] = []
    dimensions = table.cube.dimensions
    width, scale = len(dimensions), 10.0**table.cube.shape.decimals
    for number, row in enumerate(csv.reader(io.StringIO(text, newline=""), delimiter=separator), 1):
        if number > MOST_ROWS:
            raise SourceError(f"{name} has more than {MOST_ROWS:,} lines")
        if not row:
            continue
        codes, word, numbers = (
            [each.strip() for each in row[:width]],
            "".join(row[width : width + 1]).strip().lower(),
            row[width + 1 :],
        )
        if len(codes) < width or any(code not in each.place for code, each in zip(codes, dimensions, strict=True)):
            faults.append(f"line {number} names no cell of the table")
            continue
        cell = table.cube.cell(*codes)
        try:
            if word in _WORDS:
                status[cell] = _WORDS[word]
            elif word == "c":
                costs[cell] = float(numbers[0].replace(",", "."))
            elif word == "pl":
                lower, upper = (float(each.replace(",", ".")) * scale for each in numbers[:2])
                levels[cell] = (round(lower, 6), round(upper, 6))
            else:
                faults.append(f"line {number} says none of u, p, s, c and pl")
        except (ValueError, IndexError):
            faults.append(f"line {number} lacks a number")
    all_at_once(SourceError, name, [*faults[:10], *([f"… and {len(faults) - 10:,} more"] if len(faults) > 10 else [])])
    return replace(table, status=status, levels=levels, costs=costs)


def apriori_text(table: ExchangedTable, cells: Iterable[int], *, separator: str = ",") -> str:
    """What the table says of some cells, as such a file."""
    letters = {mark: letter for letter, mark in _WORDS.items()}
    out = io.StringIO()
    lines = csv.writer(out, delimiter=separator, lineterminator="\n")
    scale = 10.0**table.cube.shape.decimals
    for cell in cells:
        place = table.cube.grid.coordinates[cell].tolist()
        codes = [each.codes[code] for each, code in zip(table.cube.dimensions, place, strict=True)]
        if table.status.get(cell) in letters:
            lines.writerow([*codes, letters[table.status[cell]]])
        if cell in table.costs:
            lines.writerow([*codes, "c", f"{table.costs[cell]:.10g}"])
        if cell in table.levels:
            lower, upper = table.levels[cell]
            lines.writerow([*codes, "pl", f"{lower / scale:.10g}", f"{upper / scale:.10g}"])
    return out.getvalue()
