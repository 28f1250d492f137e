"""The witnesses of a published table, as its folder holds them: ways to fill all blanks that agree with everything that is shown.

They are computed from the published table alone (`audit.witnesses`), which is all that this module is ever handed: nothing in a
witness leads back to a true value, a protection level or a rule.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import VerificationFailed
from sfumato.tables.audit.witnesses import witnesses
from sfumato.tables.published import PublishedTable


def with_witnesses(table: PublishedTable) -> PublishedTable:
    """The table with witnesses for every blank alike; raises `VerificationFailed` where a blank can be computed."""
    if not table.blank.any():
        return table
    answer = witnesses(table.units, table.blank, table.system)
    closed = [int(cell) for cell, (low, high) in zip(answer.cells, answer.ends(), strict=True) if low == high]
    if closed:
        names = "; ".join(table.name_of(cell) for cell in closed[:10])
        raise VerificationFailed(f"anybody can compute {len(closed):,} blanks from the published cells: {names}")
    needed = sorted({*answer.lowest.tolist(), *answer.highest.tolist()})
    fill = tuple(tuple(str(Fraction(int(each), answer.unit)) for each in answer.tables[row]) for row in needed)
    return dataclasses.replace(table, witnesses=fill)


def one_filling(table: PublishedTable) -> NDArray[np.float64]:
    """One way to fill the blanks, in the order of the cells."""
    answer = witnesses(table.units, table.blank, table.system, every=False)
    return np.asarray(answer.tables[0] / answer.unit, dtype=np.float64)
