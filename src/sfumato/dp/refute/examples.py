"""Small functions to try the tester on: some are private, most only look it.

`sfumato refute sfumato.dp.refute.examples:func2` shows what a refutation looks like. None of them is meant for use.
Dwork, Roth, "The algorithmic foundations of differential privacy", Foundations and Trends 9, 2014.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.core.randomness import StreamRandomness, below, words
from sfumato.kernels.sampling.noise import discrete_laplace_one

Row = tuple[str, bool]

_SOURCE = StreamRandomness()
_GRID = 100

PATIENTS: tuple[Row, ...] = (("Ada", True), ("Ben", False), ("Cem", True), ("Dora", True))

#: The pair on which each function is tried unless the command line gives another.
NEIGHBOURS = {
    "func1": (PATIENTS, PATIENTS[:-1]),
    "func2": (PATIENTS, PATIENTS[:-1]),
    "func3": (PATIENTS, PATIENTS[:-1]),
    "func4": (PATIENTS, PATIENTS[:-1]),
    "uniform_noise": (PATIENTS, PATIENTS[:-1]),
    "forced_yes": (True, False),
    "naive_bounded_laplace": (0, 1),
    "clamping_down_mean": ((1.0,), (1.0, 0.0)),
    "clamping_down_means": ((1.0,), (1.0, 0.0)),
    "float_laplace": (0.0, 1.0),
}


def func1(rows: Sequence[Row]) -> int:
    """A constant: private for every ε, and useless."""
    return 999


def func2(rows: Sequence[Row]) -> int:
    """The number of infected plus ten: a shift hides nothing."""
    return _infected(rows) + 10


def func3(rows: Sequence[Row]) -> tuple[int, Row]:
    """A noisy number, and beside it one of the records."""
    return func4(rows), rows[-1]


def func4(rows: Sequence[Row]) -> int:
    """The number of infected plus discrete Laplace noise of scale 1: private with ε = 1."""
    return _infected(rows) + discrete_laplace_one(Fraction(1), _SOURCE)


def uniform_noise(rows: Sequence[Row]) -> float:
    """The number of infected plus noise between 0 and 5: the ends tell the neighbours apart."""
    return _infected(rows) + below(_SOURCE, 5 * 1000) / 1000


def forced_yes(answer: bool) -> str:
    """Randomised response in which who has to say yes always does: a no is the truth."""
    return "yes" if answer or below(_SOURCE, 2) else "no"


def naive_bounded_laplace(value: int) -> float:
    """Laplace noise of scale 1 drawn again until the result lies in [0, 10]: the normaliser depends on the value."""
    while True:
        drawn = value * _GRID + discrete_laplace_one(Fraction(_GRID), _SOURCE)
        if 0 <= drawn <= 10 * _GRID:
            return drawn / _GRID


def clamping_down_mean(values: Sequence[float]) -> float:
    """The clamping-down mean on [0, 1] with ε = 1, used where a record may come or go: dividing by n leaks n."""
    noisy = (math.fsum(values) + _float_laplace(1)[0]) / len(values)
    return float(round(min(max(noisy, 0.0), 1.0), 3))


def clamping_down_means(values: Sequence[float], count: int) -> NDArray[np.float64]:
    """Many draws of `clamping_down_mean` at once (`--vectorised`)."""
    noisy = (math.fsum(values) + _float_laplace(count)) / len(values)
    return np.asarray(np.round(np.clip(noisy, 0, 1), 3), dtype=np.float64)


def float_laplace(value: float) -> float:
    """Laplace noise of scale 1 in floating point: the law looks right, the lowest bits do not."""
    return float(value + _float_laplace(1)[0])


def _infected(rows: Sequence[Row]) -> int:
    return sum(infected for _, infected in rows)


def _float_laplace(count: int) -> NDArray[np.float64]:
    drawn = words(_SOURCE, count)
    uniform = ((drawn >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return np.where(drawn & np.uint64(1), 1.0, -1.0) * -np.log(uniform)
