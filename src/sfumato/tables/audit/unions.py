"""Sums of blank cells that the published table determines, which may be sensitive although no blank is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.system import Flags, LinearSystem

#: Sums of more blanks than this are not listed.
_MOST = 3


class Determined(NamedTuple):
    """An equation whose blanks add up to a number that anybody can compute: the blanks, and their signs in the equation."""

    equation: int
    cells: NDArray[np.int64]
    signs: NDArray[np.int8]


def determined_sums(
    system: LinearSystem, suppressed: Flags, primary: Flags, rounded: Flags, most: int = _MOST
) -> tuple[Determined, ...]:
    """The sums of up to `most` blanks in one equation without rounded cells, of which at least one is sensitive.

    Whether such a sum is itself sensitive is a question for the rule that made the cells sensitive: their contributors belong
    to one union then.
    """
    blank = suppressed[system.cells]
    counts = np.bincount(system.rows[blank], minlength=system.equations)
    sensitive = np.bincount(system.rows[blank & primary[system.cells]], minlength=system.equations)
    vague = np.bincount(system.rows[rounded[system.cells]], minlength=system.equations)
    listed = []
    for equation in np.flatnonzero((counts >= 2) & (counts <= most) & (sensitive > 0) & (vague == 0)).tolist():
        span = slice(int(system.starts[equation]), int(system.starts[equation + 1]))
        kept = blank[span]
        listed.append(Determined(equation, system.cells[span][kept].astype(np.int64), system.signs[span][kept]))
    return tuple(listed)
