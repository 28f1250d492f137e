"""Sensitivity: how much one unit can change the value of a query, in L1, L2 and the largest coordinate."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.exact import exact
from sfumato.core.guarantees.loss import Neighbours
from sfumato.core.params import require


@dataclass(frozen=True)
class Sensitivity:
    """The largest change of a query between neighbouring databases, exact.

    `l1` bounds the sum of absolute changes over coordinates, `l2_squared` the sum of squares, `largest` one coordinate.
    `local` marks a sensitivity around one data set, which must not be used to calibrate noise: it tells about the data.
    `why` is the argument in one sentence.
    """

    l1: Fraction
    l2_squared: Fraction
    largest: Fraction
    neighbours: Neighbours
    unit: str = "record"
    why: str = ""
    local: bool = False

    def __post_init__(self) -> None:
        for name in ("l1", "l2_squared", "largest"):
            object.__setattr__(self, name, exact(getattr(self, name), name))
        require(self.l1 >= 0 and self.l2_squared >= 0 and self.largest >= 0, "a sensitivity must not be negative")

    @classmethod
    def of(
        cls, change: Fraction | int, neighbours: Neighbours, *, coordinates: int = 1, unit: str = "record", why: str = ""
    ) -> Sensitivity:
        """At most `coordinates` coordinates change, each by at most `change`."""
        change = Fraction(change)
        return cls(change * coordinates, change**2 * coordinates, change, neighbours, unit, why)
