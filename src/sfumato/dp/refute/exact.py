"""Exact verdicts: the ε and δ(ε) of finite channels and of two laws in one dimension, with the event that shows it.

For densities the log ratio is searched between all cuts of both laws, at their ends and far out; atoms are compared
one by one; δ(ε) is the mass of the set where the first law exceeds e^ε times the second.
Dwork, Kenthapadi, McSherry, Mironov, Naor, "Our data, ourselves: privacy via distributed noise generation", EUROCRYPT 2006.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.core.exact import Number, exact
from sfumato.dp.refute.densities import Density
from sfumato.kernels.changes.channel import Channel, Pairs

_TOLERANCE = 1e-9
_GRID = 513
#: How far beyond the last cut a tail is searched, in multiples of the distance between the outermost cuts.
_FAR = (1.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True)
class Witness:
    """An event that separates two neighbours, in words, with its probability on each."""

    event: str = field(repr=False)
    direction: str
    probability: float
    other_probability: float

    @property
    def log_ratio(self) -> float:
        """How much likelier the event is on the one side, as an ε."""
        if self.other_probability == 0:
            return math.inf if self.probability > 0 else 0.0
        return math.log(self.probability / self.other_probability) if self.probability > 0 else -math.inf

    def __str__(self) -> str:
        return f"{self.event}: probability {self.probability:.6g} against {self.other_probability:.6g} ({self.direction})"


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds for the laws that were given, decided by computation rather than by sampling.

    `epsilon` is the smallest ε that holds without δ, `delta` the smallest δ that holds at the claimed ε.
    """

    holds: bool
    claimed_epsilon: float
    claimed_delta: float
    epsilon: float
    delta: float
    witness: Witness | None = None

    def explain(self) -> str:
        """The verdict in one sentence."""
        claim = f"ε = {self.claimed_epsilon:.6g}" + (f", δ = {self.claimed_delta:.3g}" if self.claimed_delta else "")
        if self.holds:
            return f"The claim {claim} holds for these neighbours; the smallest ε is {self.epsilon:.6g}."
        return (
            f"The claim {claim} does not hold: the smallest ε is {self.epsilon:.6g}, and at the claimed ε the smallest δ is "
            f"{self.delta:.6g}. Witness: {self.witness}."
        )


def channel_epsilon(channel: Channel, pairs: Pairs | None = None) -> float:
    """The smallest ε of a finite channel over the given neighbours (all inputs by default)."""
    return channel.epsilon(pairs)


def channel_verdict(channel: Channel, epsilon: Number, delta: Number = 0, pairs: Pairs | None = None) -> Verdict:
    """Decide a claim about a finite channel; exactly where its matrix is exact."""
    listed = None if pairs is None else list(pairs)
    holds = channel.holds(epsilon, delta, listed)
    claimed, allowed = float(exact(epsilon, "epsilon")), float(exact(delta, "delta"))
    witness = None
    if not holds:
        worst = channel.worst_event(epsilon, listed) if allowed else channel.worst(listed)
        shown = ", ".join(str(output) for output in worst.outputs)
        words = f"the output is {shown}" if len(worst.outputs) == 1 else f"the output is one of {shown}"
        witness = Witness(
            words, f"{worst.first} against {worst.second}", float(worst.probability), float(worst.other_probability)
        )
    return Verdict(holds, claimed, allowed, channel.epsilon(listed), channel.delta(epsilon, listed), witness)


def density_epsilon(first: Density, second: Density) -> float:
    """The smallest ε for two neighbours with these laws, both directions; infinite where one shows what the other cannot."""
    return max(_log_ratio(first, second), _log_ratio(second, first))


def density_delta(first: Density, second: Density, epsilon: Number) -> float:
    """The smallest δ at this ε for two neighbours with these laws, both directions."""
    claimed = math.inf if epsilon == math.inf else float(exact(epsilon, "epsilon"))
    return max(_excess(first, second, claimed)[0], _excess(second, first, claimed)[0])


def density_verdict(first: Density, second: Density, epsilon: Number, delta: Number = 0) -> Verdict:
    """Decide a claim about two neighbours whose laws are known, to nine digits."""
    claimed, allowed = float(exact(epsilon, "epsilon")), float(exact(delta, "delta"))
    require(claimed >= 0 and 0 <= allowed <= 1, "epsilon is at least 0 and delta lies between 0 and 1")
    smallest = density_epsilon(first, second)
    ways = [
        (*_excess(one, two, claimed), one, two, words)
        for one, two, words in ((first, second, "first against second"), (second, first, "second against first"))
    ]
    excess, event, one, two, words = max(ways, key=lambda way: way[0])
    holds = smallest <= claimed + _TOLERANCE if allowed == 0 else excess <= allowed + _TOLERANCE
    witness = None if holds else Witness(event.words(), words, event.probability(one), event.probability(two))
    return Verdict(holds, claimed, allowed, smallest, max(excess, 0.0), witness)


@dataclass(frozen=True)
class Event:
    """A set of outputs: open intervals and single values."""

    intervals: tuple[tuple[float, float], ...] = ()
    points: tuple[float, ...] = ()

    def probability(self, law: Density) -> float:
        """How likely the event is under a law."""
        parts = [law.between(low, high) for low, high in self.intervals] + [law.at(point) for point in self.points]
        return min(math.fsum(parts), 1.0)

    def words(self) -> str:
        """The event as a sentence."""
        parts = [f"equal to {point:.6g}" for point in self.points]
        parts += [f"between {low:.6g} and {high:.6g}" for low, high in self.intervals]
        return "the output is " + (" or ".join(parts) if parts else "impossible")


def _segments(first: Density, second: Density) -> Iterator[tuple[float, float]]:
    """Open intervals on which both laws are smooth, or absent."""
    cuts = sorted({*first.cuts, *second.cuts})
    yield from zip(cuts, cuts[1:], strict=False)


def _reach(first: Density, second: Density) -> float:
    finite = [cut for cut in (*first.cuts, *second.cuts) if math.isfinite(cut)]
    return max(max(finite) - min(finite), 1e-9 * max(map(abs, finite)), 1e-300) if finite else 1.0


def _points(low: float, high: float, reach: float) -> NDArray[np.float64]:
    """Points strictly inside the interval, dense near its ends."""
    steps = (1 - np.cos(np.pi * np.linspace(0, 1, _GRID)[1:-1])) / 2
    if math.isfinite(low) and math.isfinite(high):
        ends = np.array([1e-12, 1e-9, 1e-6])
        inside = low + (high - low) * np.sort(np.concatenate((steps, ends, 1 - ends)))
        return inside[(inside > low) & (inside < high)]
    out = np.sort(np.concatenate([reach * far * steps for far in _FAR] + [np.array([1e-12, 1e-9, 1e-6]) * reach]))
    if math.isfinite(low):
        point = low + out
    elif math.isfinite(high):
        point = np.sort(high - out)
    else:
        point = np.concatenate((-out[::-1], out))
    return np.unique(point[(point > low) & (point < high)])


def _log_ratio(first: Density, second: Density) -> float:
    """The supremum of log(first/second)."""
    best = -math.inf
    for point, mass in first.atoms:
        other = second.at(point)
        if other == 0:
            return math.inf
        best = max(best, math.log(mass / other))
    reach = _reach(first, second)
    for low, high in _segments(first, second):
        inside = _points(low, high, reach)
        one, two = first.log_density(inside), second.log_density(inside)
        if not np.isfinite(one).any():
            continue
        if not np.isfinite(two[np.isfinite(one)]).all():
            return math.inf
        kept = np.isfinite(one)
        values, places = (one - two)[kept], inside[kept]
        if _grows(first, second, low, high, reach, float(values.max())):
            return math.inf
        best = max(best, float(values.max()), _refined(first, second, places, int(values.argmax())))
    return best


def _grows(first: Density, second: Density, low: float, high: float, reach: float, so_far: float) -> bool:
    """Whether the ratio keeps growing in a tail, as it does between two normal laws."""
    for end, sign in ((low, -1.0), (high, 1.0)):
        if math.isfinite(end):
            continue
        far = sign * reach * np.array([1e4, 1e5, 1e6])
        with np.errstate(over="ignore", invalid="ignore"):
            values = first.log_density(far) - second.log_density(far)
        if np.isfinite(values).all() and values[2] > values[1] + 1 > values[0] + 2 and values[2] > so_far + 1:
            return True
    return False


def _refined(first: Density, second: Density, places: NDArray[np.float64], at: int) -> float:
    """The maximum between the neighbours of the best point of the grid."""
    from scipy.optimize import minimize_scalar

    low, high = places[max(at - 1, 0)], places[min(at + 1, len(places) - 1)]
    if not low < high:
        return -math.inf

    def downwards(x: float) -> float:
        one = np.array([x])
        return float(second.log_density(one)[0] - first.log_density(one)[0])

    minimum = minimize_scalar(
        downwards, bounds=(low, high), method="bounded", options={"xatol": 1e-12 * max(abs(low), abs(high))}
    )
    return -float(minimum.fun)


def _excess(first: Density, second: Density, epsilon: float) -> tuple[float, Event]:
    """The mass by which the first law exceeds e^ε times the second, and the set where it does."""
    growth = math.exp(epsilon) if epsilon < 700 else math.inf
    points = tuple(point for point, mass in first.atoms if second.at(point) == 0 or mass > growth * second.at(point))
    intervals: list[tuple[float, float]] = []
    reach = _reach(first, second)
    for low, high in _segments(first, second):
        intervals += _where(first, second, epsilon, low, high, _points(low, high, reach))
    event = Event(tuple(_merged(intervals)), points)
    parts = [first.between(*ends) - _times(growth, second.between(*ends)) for ends in intervals]
    parts += [first.at(point) - _times(growth, second.at(point)) for point in points]
    return math.fsum(parts), event


def _times(growth: float, mass: float) -> float:
    return 0.0 if mass == 0 else growth * mass


def _where(
    first: Density, second: Density, epsilon: float, low: float, high: float, inside: NDArray[np.float64]
) -> list[tuple[float, float]]:
    """The parts of an interval in which log first - log second exceeds ε."""
    from scipy.optimize import brentq

    one, two = first.log_density(inside), second.log_density(inside)
    if not np.isfinite(one).any():
        return []
    if not np.isfinite(two).any():
        return [(low, high)]

    def excess(x: float) -> float:
        place = np.array([x])
        return float(first.log_density(place)[0] - second.log_density(place)[0]) - epsilon

    above = one - two - epsilon > 0
    flips = np.flatnonzero(above[1:] != above[:-1])
    near = 1e-14 * max(float(np.abs(inside).max()), 1e-300)
    cuts = [low, *(float(brentq(excess, inside[i], inside[i + 1], xtol=near, rtol=1e-14)) for i in flips), high]
    state, kept = bool(above[0]), []
    for start, end in zip(cuts, cuts[1:], strict=False):
        if state and start < end:
            kept.append((start, end))
        state = not state
    return kept


def _merged(intervals: list[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for low, high in intervals:
        if merged and merged[-1][1] == low:
            merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return merged
