"""The table of the example: salaries and counts by row M1 to M3 and column P1 to P5."""

from __future__ import annotations

import itertools

from sfumato.tables import Dimension, TableCube

ROWS, COLUMNS = ("M1", "M2", "M3"), ("P1", "P2", "P3", "P4", "P5")
COUNTS = (2, 15, 30, 20, 10, 72, 20, 1, 30, 10, 38, 38, 15, 40, 5)
SALARIES = (360, 450, 720, 400, 360, 1440, 540, 22, 570, 320, 722, 1178, 375, 800, 363)
NAMES = tuple(itertools.product(ROWS, COLUMNS))


def salary_cube() -> TableCube:
    """Salaries with the number of people behind each; of three cells the largest are known as well."""
    return TableCube.from_cells(
        dict(zip(NAMES, SALARIES, strict=True)),
        [Dimension.flat("row", ROWS), Dimension.flat("column", COLUMNS)],
        value="salary",
        counts=dict(zip(NAMES, COUNTS, strict=True)),
        largest={("M1", "P1"): [200, 160], ("M2", "P3"): [22], ("M3", "P5"): [350, 5]},
    )
