"""The cells of published tables as an adversary lays them side by side: how many contributors each has, and their total."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.adversary import OutputAttack
from sfumato.core.errors import InputError, Unsupported
from sfumato.core.view import View

K = TypeVar("K")
Real = NDArray[np.float64]
Flags = NDArray[np.bool_]
#: Cells that a result names; it counts the others.
MOST_NAMED = 50


@dataclass(frozen=True, eq=False)
class ShownCells:
    """`names` of the cells, with `counts` of contributors and `totals` of a value; what is blank or was never published is None.

    >>> ShownCells(["M2, P3"], counts=[1], totals=[22]).total.tolist()
    [22.0]
    """

    names: Sequence[str]
    counts: Sequence[float | None] = field(default=(), repr=False)
    totals: Sequence[float | None] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not self.names or isinstance(self.names, str) or not all(isinstance(name, str) for name in self.names):
            raise InputError("the cells of a table have names, one text each")
        for what, entries in (("counts", self.counts), ("totals", self.totals)):
            if len(entries) not in (0, len(self.names)):
                raise InputError(f"{what}: {len(self.names):,} entries are needed, one for each cell, {len(entries):,} are there")
            if not all(entry is None or _is_number(entry) for entry in entries):
                raise InputError(f"{what}: each entry is a finite number, or nothing where the cell is blank")
        if not self.counts and not self.totals:
            raise InputError("neither counts nor totals of the cells are there")

    @property
    def count(self) -> Real:
        """The counts, NaN where there is none."""
        return _array(self.counts, len(self.names))

    @property
    def total(self) -> Real:
        """The totals, NaN where there is none."""
        return _array(self.totals, len(self.names))

    def named(self, cells: Flags) -> list[str]:
        """The names of some cells, as a result lists them."""
        listed = np.flatnonzero(cells).tolist()
        more = [f"… and {len(listed) - MOST_NAMED:,} more"] if len(listed) > MOST_NAMED else []
        return [*(self.names[cell] for cell in listed[:MOST_NAMED]), *more]


class CellAttack(OutputAttack[ShownCells, K]):
    """An adversary who looks at the cells of tables."""

    def fits(self, view: View[object, object]) -> bool:
        """Cells with their counts or totals."""
        return shows_cells(view)

    def published_from(self, published: object) -> ShownCells:
        """`{"cells": […], "counts": […], "totals": […]}`."""
        if not isinstance(published, Mapping) or set(published) - {"cells", "counts", "totals"}:
            raise InputError('published must be an object with "cells" and "counts", "totals" or both')
        entries = {name: published.get(name, []) for name in ("cells", "counts", "totals")}
        if not all(isinstance(each, list) for each in entries.values()):
            raise InputError("cells, counts and totals are lists of one length")
        return ShownCells(entries["cells"], entries["counts"], entries["totals"])


def shows_cells(view: View[object, object]) -> TypeGuard[View[ShownCells, object]]:
    """Whether the view shows cells."""
    return isinstance(view.result, ShownCells)


def broken_words(names: Sequence[str], what: str) -> str:
    """One sentence on the cells that are broken."""
    if not names:
        return f"No cell {what}."
    shown = "; ".join(names[:5]) + ("; …" if len(names) > 5 else "")
    return f"{len(names):,} cell{'s' * (len(names) != 1)} {what}: {shown}."


def _array(entries: Sequence[float | None], size: int) -> Real:
    return np.array([math.nan if each is None else float(each) for each in entries] or [math.nan] * size)


def _is_number(entry: object) -> bool:
    return isinstance(entry, (int, float)) and not isinstance(entry, bool) and abs(entry) < 1e300


def cells_of(view: View[ShownCells, object]) -> ShownCells:
    """The cells that a view shows; another view is refused."""
    if not shows_cells(view):
        raise Unsupported("this attack reads the cells of an aggregate table, and the view shows something else")
    return view.result
