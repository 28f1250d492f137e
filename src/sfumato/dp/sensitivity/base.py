"""Sensitivity: how much one unit can change the value of a query, in L1, L2 and the largest coordinate."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from sfumato.core.declared import Declared
from sfumato.core.guarantees.loss import Neighbours
from sfumato.core.ranges import Number
from sfumato.dp.ranges import UNIT

_NOT_NEGATIVE = Number(at_least=0, exact=True)


@dataclass(frozen=True)
class Sensitivity(Declared):
    """The largest change of a query between neighbouring databases, exact.

    `l1` bounds the sum of absolute changes over coordinates, `l2_squared` the sum of squares, `largest` one coordinate.
    `neighbours` and `unit` say between which databases, and whose data makes the difference. `local` marks a sensitivity
    around one data set, which must not be used to calibrate noise: it tells about the data. `why` is the argument in one
    sentence.
    """

    l1: Annotated[Fraction, _NOT_NEGATIVE, "the largest sum of absolute changes"]
    l2_squared: Annotated[Fraction, _NOT_NEGATIVE, "the largest sum of squared changes"]
    largest: Annotated[Fraction, _NOT_NEGATIVE, "the largest change of one coordinate"]
    neighbours: Annotated[Neighbours, "which databases are neighbours"]
    unit: Annotated[str, UNIT, "whose data makes the difference"] = "record"
    why: Annotated[str, "the argument in one sentence"] = ""
    local: Annotated[bool, "whether it holds around one data set only"] = False

    @classmethod
    def of(
        cls, change: Fraction | int, neighbours: Neighbours, *, coordinates: int = 1, unit: str = "record", why: str = ""
    ) -> Sensitivity:
        """At most `coordinates` coordinates change, each by at most `change`."""
        change = Fraction(change)
        return cls(change * coordinates, change**2 * coordinates, change, neighbours, unit, why)
