"""Transition matrices of PRAM: given by the owner, uniform, or invariant.

The invariant matrix applies a matrix P and then guesses back by Bayes' rule, so that the frequencies π of the column
are its fixed point, π R = π. Gouweleeuw, Kooiman, Willenborg, De Wolf, "Post randomisation for statistical disclosure
control: theory and implementation", Journal of Official Statistics 14(4), 1998.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real as Numeral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.core.ranges import is_finite

Real = NDArray[np.float64]
Row: TypeAlias = "dict[str, float] | tuple[float, ...]"
#: Rows by label, or rows in the order of the labels.
Rows: TypeAlias = "dict[str, Row] | tuple[tuple[float, ...], ...]"

_TOLERANCE = 1e-9


def checked(matrix: Any, column: str) -> Rows:  # whatever a file says
    """The owner's matrix of a column as plain numbers; every row is a distribution, otherwise it is named by its place."""
    what = f"the matrix of column '{column}'"
    require(isinstance(matrix, (Mapping, Sequence)) and not isinstance(matrix, str), f"Pram: {what} is a table or a list of rows")
    require(len(matrix) > 0, f"Pram: {what} has no rows")
    if isinstance(matrix, Mapping):
        listed = {str(label): _row(row, position, what) for position, (label, row) in enumerate(matrix.items(), 1)}
        plain = {len(row) for row in listed.values() if isinstance(row, tuple)}
        require(
            plain <= {len(listed)},
            f"Pram: a row of {what} given as a list has one probability for each of its {len(listed)} labels",
        )
        return listed
    rows = [_row(row, position, what) for position, row in enumerate(matrix, 1)]
    require(
        all(isinstance(row, tuple) and len(row) == len(rows) for row in rows),
        f"Pram: {what} has {len(rows)} rows and must have as many probabilities in each; "
        "give rows by label ({label: {label: probability}}) where outputs differ from inputs",
    )
    return tuple(row for row in rows if isinstance(row, tuple))


def _row(row: Any, position: int, what: str) -> Row:
    where = f"Pram: row {position} of {what}"
    require(isinstance(row, (Mapping, Sequence)) and not isinstance(row, str), f"{where} is a list or a table of probabilities")
    entries = list(row.values()) if isinstance(row, Mapping) else list(row)
    require(all(isinstance(entry, Numeral) and not isinstance(entry, bool) for entry in entries), f"{where} must hold numbers")
    require(all(is_finite(entry) for entry in entries), f"{where} has an entry that is not a finite number")
    require(all(entry >= 0 for entry in entries), f"{where} has a negative entry; probabilities are not negative")
    total = math.fsum(entries)
    require(abs(total - 1) <= _TOLERANCE, f"{where} adds up to {total:.9g} and must add up to 1")
    if isinstance(row, Mapping):
        return {str(label): float(entry) for label, entry in row.items()}
    return tuple(float(entry) for entry in entries)


def from_rows(rows: Mapping[str, Row]) -> tuple[tuple[str, ...], tuple[str, ...], Real]:
    """Inputs, outputs (the inputs first, then what only rows name) and the matrix."""
    inputs = tuple(rows)
    named = (label for row in rows.values() if isinstance(row, dict) for label in row)
    outputs = tuple(dict.fromkeys((*inputs, *named)))
    place = {label: position for position, label in enumerate(outputs)}
    matrix = np.zeros((len(inputs), len(outputs)))
    for position, row in enumerate(rows.values()):
        if isinstance(row, dict):
            for label, entry in row.items():
                matrix[position, place[label]] = entry
        else:
            matrix[position, : len(row)] = row
    return inputs, outputs, matrix


def uniform(stay: float, count: int) -> Real:
    """Each category stays with this probability and otherwise becomes any other, all equally likely."""
    matrix = np.full((count, count), (1.0 - stay) / max(count - 1, 1))
    np.fill_diagonal(matrix, stay if count > 1 else 1.0)
    return matrix


def staying(epsilon: float, count: int) -> float:
    """The probability to stay of randomised response at ε among so many categories: e^ε/(e^ε + c - 1)."""
    return 1.0 / (1.0 + (count - 1) * math.exp(-epsilon))


def epsilon_of(stay: float, count: int) -> float:
    """The ε at which randomised response among so many categories stays with this probability."""
    return math.log(stay * max(count - 1, 1) / (1.0 - stay))


def occurring(frequencies: Real) -> Real:
    """Frequencies in which categories that nobody has count as one record each, all of them as 1 % of the records at most.

    An invariant matrix leads to no category of frequency 0, and its empty columns would list what does not occur.
    """
    absent = frequencies == 0
    weight = min(1.0, float(frequencies.sum()) / (100 * max(int(absent.sum()), 1)))
    return np.where(absent, weight, frequencies).astype(np.float64)


def invariant(matrix: Real, frequencies: Real) -> Real:
    """P followed by the posterior of the input given P's output: the frequencies stay what they are on average."""
    joint = frequencies[:, None] * matrix
    produced = joint.sum(axis=0)
    back = np.eye(matrix.shape[0])  # an output that never occurs is led back to itself
    back[produced > 0] = (joint[:, produced > 0] / produced[produced > 0]).T
    fixed: Real = matrix @ back
    fixed /= fixed.sum(axis=1, keepdims=True)
    return fixed
