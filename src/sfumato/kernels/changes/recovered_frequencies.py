"""The frequencies behind those that a transition matrix has mixed, o = Pᵀπ: solved, or the most likely ones.

PRAM and randomised response mix frequencies by a known matrix; whoever knows it takes the effect out again. Van den Hout, van der
Heijden, "Randomized response, statistical disclosure control and misclassification: a review", International Statistical
Review 70(2), 2002.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.core.errors import Unsupported

Real = NDArray[np.float64]

#: A matrix whose smallest singular value is below this share of its largest is taken for one without an inverse.
_SINGULAR = 1e-10
#: Rounds of expectation maximisation, and the change of a frequency below which it has settled.
_ROUNDS, _SETTLED = 20_000, 1e-13


def recovered_frequencies(observed: Real, matrix: Real, *, nonnegative: bool = True) -> Real:
    """The frequencies π behind observed ones o = Pᵀπ, for a matrix P with a row for each true category.

    Solving gives an unbiased estimate that may be negative for rare categories; with `nonnegative` such a solution is replaced
    by the most likely frequencies (by expectation maximisation).

    Refused: a matrix whose rows are not probabilities, and one that leads different frequencies to the same observed ones (fewer
    columns than rows, or nearly dependent rows).

    >>> recovered_frequencies(np.array([0.6, 0.4]), np.array([[0.9, 0.1], [0.1, 0.9]])).round(3).tolist()
    [0.625, 0.375]
    """
    rows, columns = matrix.shape
    require(observed.shape == (columns,), "there must be one observed frequency for each column of the matrix")
    stochastic = bool(np.all(matrix >= 0) and np.allclose(matrix.sum(axis=1), 1.0, atol=1e-6))
    require(stochastic, "each row of the matrix must hold probabilities that add up to 1")
    roots = np.linalg.svd(matrix, compute_uv=False)
    if columns < rows or roots[-1] < _SINGULAR * roots[0]:
        raise Unsupported("the matrix cannot be inverted: different frequencies lead to the same observed ones")
    solution = np.linalg.lstsq(matrix.T, observed, rcond=None)[0]
    solved: Real = np.asarray(solution / solution.sum(), dtype=np.float64)
    if not nonnegative or np.all(solved >= 0):
        return solved
    return likeliest_frequencies(observed, matrix)


def likeliest_frequencies(observed: Real, matrix: Real, rounds: int = _ROUNDS, settled: float = _SETTLED) -> Real:
    """The frequencies that make the observed ones most likely, whatever the matrix: by expectation maximisation from equal ones,
    for so many rounds or until none moves by `settled`."""
    likely = np.full(matrix.shape[0], 1.0 / matrix.shape[0])
    for _ in range(rounds):
        expected = likely @ matrix
        weight = np.divide(observed, expected, out=np.zeros_like(observed), where=expected > 0)
        better = likely * (matrix @ weight)
        better = better / max(float(better.sum()), 1e-300)
        moved = float(np.abs(better - likely).max())
        likely = better
        if moved < settled:
            break
    return likely
