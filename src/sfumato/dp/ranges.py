"""What the parameters of mechanisms and algorithms may be: amounts of loss, bounds that the owner declares, numbers that rise.

Numbers are exact, so that 0.1 is a tenth. Where a recipe has to give back what it was given, they are checked as exact
numbers and kept as they were written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any

from sfumato.core.exact import Number as Written
from sfumato.core.ranges import Because, Count, Each, Number, Text, Value
from sfumato.core.texts import python_number, text_of


@dataclass(frozen=True)
class AsWritten(Number):
    """Exact numbers that are kept as they were written: those of numpy as Python's, those of `decimal` as texts."""

    exact: bool = True

    def settled(self, value: object) -> object:
        super().settled(value)
        return str(value) if isinstance(value, Decimal) else python_number(value)


@dataclass(frozen=True)
class AsText(Value):
    """Values in the text form that columns are compared in."""

    def settled(self, value: object) -> str:
        return str(text_of(super().settled(value)))


@dataclass(frozen=True)
class Floating(Number):
    """Finite numbers, kept as floating-point ones."""

    def settled(self, value: object) -> float:
        return float(super().settled(value))


@dataclass(frozen=True)
class Rising(Each):
    """Several numbers, each above the one before it."""

    def settled(self, value: object) -> tuple[Any, ...]:  # numbers
        entries = super().settled(value)
        if any(one >= two for one, two in pairwise(entries)):
            raise self.refuse(value)
        return entries


EXACT = Number(exact=True)
POSITIVE = Number(above=0, exact=True)
#: A part of a whole, neither nothing nor all of it.
PART = Number(above=0, below=1, exact=True)
#: Two numbers, low and high.
INTERVAL = Rising(EXACT, at_least=2, at_most=2, what="two numbers, the first below the second")

#: Whose data makes the difference.
UNIT = Text("the name of what is protected", longest=200)

#: A loss that noise is calibrated to.
Epsilon = Annotated[
    Written, Because(POSITIVE, "an answer that costs nothing is the mechanism Constant"), "the loss ε that an answer costs"
]
#: An end of the values that the owner declares.
Bound = Annotated[Written, EXACT]
#: A grid that answers are rounded to.
Step = Annotated[Written | None, POSITIVE, "the grid that values are rounded to"]
#: The number of records as everybody may guess it.
PublicSize = Annotated[Count | None, "a public guess of the number of records, for stating the error alone"]


def apart(lower: Written, upper: Written) -> Iterator[str]:
    """What is wrong with bounds that leave nothing between them."""
    if not lower < upper:  # type: ignore[operator]
        yield "lower must be below upper: they are bounds declared by the owner, not taken from the data"
