"""The loss of a protected table: how many cells are blank and what they were worth, how far the others are from the truth.

Hundepool et al., "Statistical disclosure control", Wiley 2012, chapter 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from sfumato.core.errors import InputError
from sfumato.core.view import Measure, Score
from sfumato.tables.cube import TableCube
from sfumato.tables.published import PublishedTable


@dataclass(frozen=True)
class TableLoss(Measure[TableCube, PublishedTable]):
    """The loss of a table against the cube it was made from: 0 where every value is shown as it is.

    `of` says what is counted: the share of the value in cells that are lost (a blank is lost whole, a changed cell as far as it
    moved, at most whole), or the share of cells that are blank or changed.
    """

    of: Annotated[Literal["value", "cells"], "what is counted"] = "value"

    def score(self, original: TableCube, released: PublishedTable) -> Score:
        """Compare cell by cell."""
        if not np.array_equal(original.grid.keys, released.grid.keys):
            raise InputError("the table was not made from this cube: it has other cells")
        held = original.units > 0
        moved = np.abs(released.units - original.units).astype(np.float64)
        lost = np.where(released.blank, original.units, np.minimum(moved, np.maximum(original.units, 0)))
        blank, value = int(released.blank.sum()), float(original.units.sum())
        parts: Mapping[str, float] = {
            "blank cells": float(blank),
            "value of blank cells": float(original.units[released.blank].sum()) / 10.0**original.shape.decimals,
            "changed cells": float(((moved > 0) & ~released.blank).sum()),
            "mean distance": float(moved[~released.blank].mean() if blank < moved.size else 0.0) / 10.0**original.shape.decimals,
            "totals off": float(np.count_nonzero(released.system.residuals(released.units))) if not blank else 0.0,
        }
        share = lost.sum() / value if self.of == "value" else float((released.blank | (moved > 0))[held].mean())
        return Score("table_loss", float(share), "lower", f"share of the {self.of} that is blank or changed", parts)
