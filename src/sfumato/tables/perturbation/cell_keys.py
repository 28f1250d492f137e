"""Cell keys: each cell of counts is changed by a table of perturbations, looked up by its value and a key of its own.

The key of a cell follows from the keys of the finest cells that it is made of, under a secret of the owner: equal cells of all
tables get the same noise, so that asking again tells nothing more. The table is the one of most entropy with mean 0 and a given
variance. Thompson, Broadfoot, Elazar, "Methodology for the automatic confidentialisation of statistical outputs", UNECE 2013;
Giessing, "Computational issues in the design of transition probabilities", PSD 2016.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import ParameterError, Unsupported
from sfumato.core.randomness import Randomness
from sfumato.core.ranges import Number, Positive, Text, Whole
from sfumato.tables.cube import TableCube
from sfumato.tables.perturbation.base import TableMethod

_WORD = 2**64
_ROUNDS = 60


@dataclass(frozen=True)
class CellKeys(TableMethod):
    """Each count moves by at most `reach`, with mean 0 and `variance`, and never becomes 1 to `hidden`; 0 stays 0.

    `secret`: text of the owner by which keys are made, the same for all tables of the same data; without it each run has its own.
    `stay`: with which probability a count above `hidden` is left alone; by default as the entropy has it.
    """

    reach: Annotated[int, Whole(at_least=1, at_most=50), "how far a count may move"] = 5
    variance: Annotated[Positive, "the variance of the change"] = 3.0
    hidden: Annotated[int, Whole(at_least=0, at_most=20), "counts from 1 to this never appear"] = 2
    stay: Annotated[float | None, Number(at_least=0, below=1), "the probability that a count is left alone"] = None
    secret: Annotated[str | None, Text("a text"), "the owner's secret from which keys are made"] = field(default=None, repr=False)

    def changed(self, cube: TableCube, source: Randomness) -> NDArray[np.int64]:
        """Look up the change of every cell."""
        if cube.shape.value is not None:
            raise Unsupported("cell keys change counts; this cube holds sums. Round it, adjust it, or leave cells blank.")
        secret = source.bytes(32) if self.secret is None else self.secret.encode()
        keys = cell_keys(cube, secret)
        law = perturbations(self.reach, self.variance, self.hidden, self.stay)
        most = len(law) - 1
        units = cube.units.copy()
        for cell, count in enumerate(cube.units.tolist()):
            chances = law[min(count, most)]
            units[cell] = count + int(np.searchsorted(np.cumsum(chances), keys[cell] / _WORD, side="right")) - self.reach
        return np.asarray(np.maximum(units, 0))


def cell_keys(cube: TableCube, secret: bytes) -> list[int]:
    """The key of every cell: the sum, modulo 2^64, of the keys of the finest cells below it."""
    coordinates = cube.grid.coordinates.tolist()
    covered = [dimension.covered for dimension in cube.dimensions]
    below = [[each[code] for each, code in zip(covered, place, strict=True)] for place in coordinates]
    finest = [cell for cell, leaves in enumerate(below) if cube.units[cell] and all(len(each) == 1 for each in leaves)]
    places = np.array([coordinates[cell] for cell in finest], dtype=np.int64).reshape(-1, len(cube.dimensions))
    words = np.array([_word(secret, cube, coordinates[cell]) for cell in finest], dtype=np.uint64)
    sums = []
    for leaves in below:
        inside = np.ones(len(finest), dtype=np.bool_)
        for axis, each in enumerate(leaves):
            inside &= np.isin(places[:, axis], list(each))
        sums.append(int(words[inside].sum(dtype=np.uint64)))
    return sums


def _word(secret: bytes, cube: TableCube, place: list[int]) -> int:
    names = "\x1f".join(f"{each.name}={each.codes[code]}" for each, code in zip(cube.dimensions, place, strict=True))
    return int.from_bytes(hmac.new(secret, names.encode(), hashlib.sha256).digest()[:8], "big")


@lru_cache(maxsize=16)
def perturbations(reach: int, variance: float, hidden: int, stay: float | None = None) -> tuple[tuple[float, ...], ...]:
    """For each count the probabilities of the changes −reach … reach: the law of most entropy with mean 0 and the variance, among
    changes that give neither less than 0 nor 1 to `hidden`. The last law is for all larger counts.

    >>> [round(p, 3) for p in perturbations(5, 3.0, 2)[1]]
    [0.0, 0.0, 0.0, 0.0, 0.734, 0.0, 0.0, 0.137, 0.073, 0.037, 0.019]
    """
    changes = np.arange(-reach, reach + 1)
    laws = [tuple(float(each == 0) for each in changes)]
    for count in range(1, reach + hidden + 2):
        after = count + changes
        allowed = (after == 0) | (after > hidden)
        laws.append(tuple(_law(changes, allowed, variance, stay if count > hidden else None, count).tolist()))
    return tuple(laws)


def _law(
    changes: NDArray[np.int64], allowed: NDArray[np.bool_], variance: float, stay: float | None, count: int
) -> NDArray[np.float64]:
    """p(v) ∝ exp(a v + b v²) on the allowed changes, by Newton steps in a within a bisection of b."""
    held = 0.0 if stay is None else stay
    free = allowed & ((changes != 0) | (stay is None))
    v = changes[free].astype(np.float64)
    if not (v.min() < 0 < v.max()):
        raise ParameterError(f"a count of {count} cannot move both ways within the reach. Raise reach= or lower hidden=.")
    wanted = variance / (1.0 - held)

    def at(b: float) -> tuple[NDArray[np.float64], float]:
        a_low, a_high = -200.0, 200.0
        for _ in range(_ROUNDS):
            a = (a_low + a_high) / 2
            weights = a * v + b * v * v
            p = np.exp(weights - weights.max())
            p /= p.sum()
            a_low, a_high = (a, a_high) if p @ v < 0 else (a_low, a)
        return p, float(p @ (v * v))

    b_low, b_high = -30.0, 30.0
    least, most = at(b_low)[1], at(b_high)[1]
    if not least - 1e-6 <= wanted <= most + 1e-6:
        raise ParameterError(
            f"a count of {count} can move with a variance between {least * (1 - held):.3g} and {most * (1 - held):.3g} only, "
            f"not {variance:g}. Change variance=, reach= or hidden=."
        )
    for _ in range(_ROUNDS):
        b = (b_low + b_high) / 2
        b_low, b_high = (b, b_high) if at(b)[1] < wanted else (b_low, b)
    law = np.zeros(changes.size)
    law[free] = at((b_low + b_high) / 2)[0] * (1.0 - held)
    law[changes == 0] += held
    return law
