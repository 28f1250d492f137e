"""Parameters that many measures have, declared once."""

from __future__ import annotations

from typing import Annotated

from sfumato.core.ranges import ColumnNames, PositiveShare, Seed, Whole

#: The columns of a measure that compares the masked table with the original.
ComparedColumns = Annotated[
    ColumnNames | None, "the columns compared; the quasi-identifiers and whatever was masked where left out"
]
#: The size of the sample that a table is.
SamplingFraction = Annotated[
    PositiveShare | None, "records of the release per person of the population; the survey weights where left out"
]
#: Ranges that a column of numbers is cut into.
Bins = Annotated[int, Whole(at_least=2), "ranges that a column of numbers is cut into"]
#: The same, or several grids.
BinsOrGrids = Annotated[Bins | None, "ranges that a column of numbers is cut into; the best of four grids where left out"]
#: The seed of the draws of a measure.
DrawSeed = Annotated[Seed, "another seed, other draws"]
