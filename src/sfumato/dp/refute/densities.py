"""Laws of real outputs in one dimension: densities on intervals, and values that have probability of their own.

Clamping a law piles its tails up at the ends; drawing again until the value is inside divides by what is inside.
Dwork, Roth, "The algorithmic foundations of differential privacy", Foundations and Trends 9, 2014.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import Declared, require
from sfumato.core.ranges import Made

Curve: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Mass: TypeAlias = Callable[[float, float], float]

_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Piece(Declared):
    """An open interval from `low` to `high` on which the density is positive and smooth except at its `kinks`.

    `log_density` takes an array; `mass(a, b)` is the probability between two points of the interval, integrated
    numerically where it is not given.
    """

    low: Annotated[float, "where the piece begins"]
    high: Annotated[float, "where the piece ends"]
    log_density: Annotated[Curve, "the logarithm of the density, of an array"] = field(repr=False)
    mass: Annotated[Mass | None, "the probability between two points of the piece"] = field(default=None, repr=False)
    kinks: Annotated[tuple[float, ...], "where the density is not smooth"] = ()

    def coherent(self) -> Iterable[str]:
        if not self.low < self.high:
            yield "a piece of a density has its low end below its high end"

    def between(self, low: float, high: float) -> float:
        """The probability of the part of this piece between two points."""
        low, high = max(low, self.low), min(high, self.high)
        if low >= high:
            return 0.0
        return self.mass(low, high) if self.mass is not None else self._integral(low, high)

    def _integral(self, low: float, high: float) -> float:
        from scipy.integrate import quad

        cuts = sorted({low, high, *(kink for kink in self.kinks if low < kink < high)})
        curve = self.log_density
        parts = [
            quad(lambda x: math.exp(float(curve(np.array([x]))[0])), one, two, epsabs=1e-13, epsrel=1e-12, limit=200)[0]
            for one, two in zip(cuts, cuts[1:], strict=False)
        ]
        return math.fsum(parts)


def _in_order(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    return tuple(sorted(pieces, key=lambda piece: piece.low))


def _possible(atoms: Iterable[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    return tuple(sorted((point, mass) for point, mass in atoms if mass > 0))


@dataclass(frozen=True, eq=False)
class Density(Declared):
    """The law of one real output: `pieces` with a density and `atoms`, values with a probability of their own.

    >>> clamped = Density.laplace(0, 1).clamped(0, 10)
    >>> clamped.at(0)
    0.5
    """

    pieces: Annotated[tuple[Piece, ...], Made(_in_order, "pieces of a density"), "intervals with a density"] = ()
    atoms: Annotated[
        tuple[tuple[float, float], ...],
        Made(_possible, "values, each with its probability"),
        "values with a probability of their own",
    ] = ()

    def coherent(self) -> Iterable[str]:
        if any(one.high > two.low for one, two in pairwise(self.pieces)):
            yield "pieces of a density do not overlap"
        if len({point for point, _ in self.atoms}) < len(self.atoms):
            yield "an atom is given once"
        total = self.between(-math.inf, math.inf) + math.fsum(mass for _, mass in self.atoms)
        if not abs(total - 1) <= _TOLERANCE:
            yield "a law has probability 1 altogether"

    @classmethod
    def laplace(cls, centre: float, scale: float) -> Density:
        """exp(-|x - centre| / scale) / (2 · scale)."""
        require(scale > 0, "the scale must be above 0")

        def tail(distance: float) -> float:
            return math.exp(-distance / scale) / 2

        def mass(low: float, high: float) -> float:
            if low >= centre:
                return tail(low - centre) - tail(high - centre)
            if high <= centre:
                return tail(centre - high) - tail(centre - low)
            return 1 - tail(centre - low) - tail(high - centre)

        def curve(x: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(-np.abs(x - centre) / scale - math.log(2 * scale))

        return cls((Piece(-math.inf, math.inf, curve, mass, (centre,)),))

    @classmethod
    def gaussian(cls, centre: float, deviation: float) -> Density:
        """The normal law."""
        require(deviation > 0, "the deviation must be above 0")
        root = deviation * math.sqrt(2)

        def mass(low: float, high: float) -> float:
            low, high = (low - centre) / root, (high - centre) / root
            if low >= 0:
                return (math.erfc(low) - math.erfc(high)) / 2
            if high <= 0:
                return (math.erfc(-high) - math.erfc(-low)) / 2
            return 1 - (math.erfc(-low) + math.erfc(high)) / 2

        def curve(x: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(-(((x - centre) / root) ** 2) - math.log(root * math.sqrt(math.pi)))

        return cls((Piece(-math.inf, math.inf, curve, mass, (centre,)),))

    @classmethod
    def uniform(cls, low: float, high: float) -> Density:
        """The same density everywhere between two points."""
        require(low < high, "low lies below high")
        width = high - low

        def curve(x: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.full(np.shape(x), -math.log(width))

        return cls((Piece(low, high, curve, lambda start, end: (end - start) / width),))

    @classmethod
    def constant(cls, value: float) -> Density:
        """Always this value."""
        return cls((), ((value, 1.0),))

    @classmethod
    def from_function(cls, density: Curve, low: float, high: float, kinks: Sequence[float] = ()) -> Density:
        """A density written as a function of an array, positive between two points; kinks are where it is not smooth."""

        def curve(x: NDArray[np.float64]) -> NDArray[np.float64]:
            with np.errstate(divide="ignore"):
                return np.log(density(x))

        return cls((Piece(low, high, curve, None, tuple(kinks)),))

    @classmethod
    def mixture(cls, parts: Iterable[tuple[float, Density]]) -> Density:
        """Laws on disjoint pieces put together with these weights."""
        pieces: list[Piece] = []
        atoms: dict[float, float] = {}
        for weight, law in parts:
            pieces += [_scaled(piece, piece.low, piece.high, weight) for piece in law.pieces]
            for point, mass in law.atoms:
                atoms[point] = atoms.get(point, 0.0) + weight * mass
        return cls(tuple(pieces), tuple(atoms.items()))

    def clamped(self, low: float, high: float) -> Density:
        """Every value outside moved to the nearest end: post-processing, which costs nothing."""
        require(low < high, "low lies below high")
        inner = tuple(_scaled(piece, low, high, 1.0) for piece in self.pieces if piece.low < high and piece.high > low)
        atoms = {point: mass for point, mass in self.atoms if low < point < high}
        atoms[low] = self.between(-math.inf, low) + math.fsum(mass for point, mass in self.atoms if point <= low)
        atoms[high] = self.between(high, math.inf) + math.fsum(mass for point, mass in self.atoms if point >= high)
        return Density(inner, tuple(atoms.items()))

    def restricted(self, low: float, high: float) -> Density:
        """Drawn again until the value is inside: the law divided by what it has inside, which depends on its centre."""
        require(low < high, "low lies below high")
        inside = self.between(low, high) + math.fsum(mass for point, mass in self.atoms if low <= point <= high)
        require(inside > 0, "the law has nothing between these points")
        pieces = tuple(_scaled(piece, low, high, 1 / inside) for piece in self.pieces if piece.low < high and piece.high > low)
        return Density(pieces, tuple((point, mass / inside) for point, mass in self.atoms if low <= point <= high))

    def at(self, point: float) -> float:
        """The probability of exactly this value."""
        return next((mass for atom, mass in self.atoms if atom == point), 0.0)

    def between(self, low: float, high: float) -> float:
        """The probability that the density has between two points; atoms are not counted."""
        return math.fsum(piece.between(low, high) for piece in self.pieces)

    def probability(self, low: float, high: float) -> float:
        """The probability of the closed interval, atoms counted."""
        return self.between(low, high) + math.fsum(mass for point, mass in self.atoms if low <= point <= high)

    def log_density(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The logarithm of the density, minus infinity where there is none."""
        values = np.full(np.shape(x), -np.inf)
        for piece in self.pieces:
            inside = (x > piece.low) & (x < piece.high)
            values[inside] = piece.log_density(x[inside])
        return values

    @property
    def cuts(self) -> tuple[float, ...]:
        """Where the law changes its form: ends and kinks of its pieces."""
        ends = {end for piece in self.pieces for end in (piece.low, piece.high, *piece.kinks)}
        return tuple(sorted(ends))


def _scaled(piece: Piece, low: float, high: float, factor: float) -> Piece:
    """The part of a piece between two points, its probability multiplied."""
    shift = math.log(factor)
    low, high = max(low, piece.low), min(high, piece.high)

    def curve(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return piece.log_density(x) + shift

    return Piece(
        low, high, curve, lambda a, b: factor * piece.between(a, b), tuple(kink for kink in piece.kinks if low < kink < high)
    )
