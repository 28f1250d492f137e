"""Counts of combinations of columns, and how far a model is from them on a grid of sixteenths, in whole numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.dp.synthesis.coded_columns import Codes
from sfumato.dp.synthesis.junction_tree import Columns, cells

#: Scores count sixteenths of a record, so that they are whole numbers and their sensitivity is exact.
STEP = 16
_FARTHEST = 1e15


def marginal(codes: Codes, columns: Columns, sizes: Sequence[int]) -> NDArray[np.int64]:
    """Records per combination of these columns."""
    return next(table for _, table in marginals(codes, [columns], sizes))


def marginals(codes: Codes, column_sets: Iterable[Columns], sizes: Sequence[int]) -> Iterator[tuple[Columns, NDArray[np.int64]]]:
    """`marginal` of many combinations; neighbours in the list that begin alike share that part of the work."""
    begun: Columns = ()
    places: list[Codes] = []  # the cell of each record by the first one, two, … columns of `begun`
    for columns in column_sets:
        shared = 0
        while shared < min(len(begun), len(columns) - 1) and begun[shared] == columns[shared]:
            shared += 1
        del places[shared:]
        for depth in range(shared, len(columns)):
            own = codes[:, columns[depth]]
            places.append(places[-1] * sizes[columns[depth]] + own if places else own)
        counts = np.bincount(places[-1], minlength=cells(columns, sizes))
        begun = columns[:-1]
        del places[len(begun) :]
        yield columns, counts.reshape([sizes[column] for column in columns]).astype(np.int64)


class Marginals(Protocol):
    """Counts of combinations of columns, wherever the records are."""

    def prepare(self, column_sets: Iterable[Columns]) -> None:
        """Say which combinations may be asked for, so that they are counted together."""

    def marginal(self, columns: Columns) -> NDArray[np.int64]:
        """Records per combination of these columns."""

    def marginals(self, column_sets: Iterable[Columns]) -> Iterator[tuple[Columns, NDArray[np.int64]]]:
        """`marginal` of many combinations."""

    def total(self) -> int:
        """How many records are counted."""


@dataclass(frozen=True, eq=False)
class CodedRecords:
    """Coded records in this process, one row each, counted when they are asked for."""

    codes: Codes
    sizes: tuple[int, ...]

    def prepare(self, column_sets: Iterable[Columns]) -> None:
        """Nothing: each combination is counted by itself."""

    def marginal(self, columns: Columns) -> NDArray[np.int64]:
        """Records per combination of these columns."""
        return marginal(self.codes, columns, self.sizes)

    def marginals(self, column_sets: Iterable[Columns]) -> Iterator[tuple[Columns, NDArray[np.int64]]]:
        """`marginal` of many combinations."""
        return marginals(self.codes, column_sets, self.sizes)

    def total(self) -> int:
        """How many records are counted."""
        return len(self.codes)


def misfit(counts: NDArray[np.int64], model: NDArray[np.float64]) -> int:
    """The sum of absolute differences, in sixteenths.

    The model is rounded to the grid first, so that adding or removing one record moves the sum by exactly `STEP` at most.
    """
    grid = np.rint(np.clip(model * STEP, -_FARTHEST, _FARTHEST)).astype(np.int64)
    return int(np.abs(counts * STEP - grid).sum())


def in_steps(amount: float) -> int:
    """A public number on the same grid."""
    return round(min(max(amount, -_FARTHEST), _FARTHEST) * STEP)
