"""How far below and above a shown number what the bounded data says may lie, at any confidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.dp.sql.noise import errors_in_sum_margin

#: The confidences at which an answer keeps its reaches; those between are read off a curve through them.
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)

#: A distance at each of the levels, then the one that holds for certain (by declared bounds); None where it may be anything, and
#: instead of the whole where it may be at all of them.
Curve = tuple[float | None, ...] | None


@dataclass(frozen=True)
class Reach:
    """The distances from a shown number to the low and to the high end of its interval."""

    below: Curve
    above: Curve

    def margin(self, confidence: float) -> float | None:
        """The distance to the farther end; None where one end is not known."""
        below, above = distance_at(self.below, confidence), distance_at(self.above, confidence)
        return None if below is None or above is None else max(below, above)

    def standard_error(self, law: str) -> float | None:
        """The deviation of the noise that would have this margin."""
        known = self.margin(0.95)
        return None if known is None else known / errors_in_sum_margin(law, 0.95)

    def margins(self) -> Sequence[float]:
        """The margins at the levels; not a number where there is none."""
        found = [self.margin(level) for level in LEVELS]
        return [math.nan if margin is None else margin for margin in found]

    def seen_through(self, direction: int) -> Reach:
        """The reach of what rises with the number (1), falls with it (-1), or may do either (0), by no more than it does."""
        if direction == 1:
            return self
        if direction == -1:
            return Reach(self.above, self.below)
        farther = _farther(self.below, self.above)
        return Reach(farther, farther)


def distance_at(curve: Curve, confidence: float) -> float | None:
    """The distance of a curve at any confidence: straight in the logarithm of what is left over, which Laplace noise is exactly.

    Above the last level nothing is guessed: the distance is the one that holds for certain, or there is none.

    >>> distance_at((0.7, 1.6, 2.3, 3.0, 3.9, 4.6, 5.3, 6.9, 50.0), 0.95)
    3.0
    >>> distance_at((0.7, 1.6, 2.3, 3.0, 3.9, 4.6, 5.3, 6.9, 50.0), 0.9999)
    50.0
    """
    if curve is None:
        return None
    places = [0.0, *(-math.log(1 - level) for level in LEVELS)]
    distances = [0.0, *(math.inf if distance is None else distance for distance in curve[: len(LEVELS)])]
    wanted = -math.log(1 - confidence)
    above = next((number for number, place in enumerate(places) if wanted <= place * (1 + 1e-12)), None)
    if above is None:
        return curve[len(LEVELS)] if len(curve) > len(LEVELS) else None
    if not math.isfinite(distances[above]):
        return None
    share = (wanted - places[above - 1]) / (places[above] - places[above - 1])
    return distances[above - 1] + share * (distances[above] - distances[above - 1]) if share != 1.0 else distances[above]


def _farther(one: Curve, other: Curve) -> Curve:
    if one is None or other is None:
        return None
    return tuple(None if a is None or b is None else max(a, b) for a, b in zip(one, other, strict=True))
