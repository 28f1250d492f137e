"""What mechanisms share that are calibrated to a sensitivity: where it comes from, and for whom the loss is stated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from sfumato.core.exact import Number
from sfumato.core.guarantees.loss import Neighbours, PureDP
from sfumato.core.randomness import Randomness, default
from sfumato.core.ranges import Because, Either, Instance
from sfumato.dp.mechanisms.base import A, Mechanism, V
from sfumato.dp.ranges import POSITIVE, UNIT
from sfumato.dp.sensitivity.base import Sensitivity

_CONSTANT = "what nobody can change is the mechanism Constant"

#: What noise is calibrated to.
Change = Annotated[
    Sensitivity | Number,
    Because(Either((Instance(Sensitivity), POSITIVE)), _CONSTANT),
    "the largest change of the value by one unit",
]


@dataclass(frozen=True, kw_only=True)
class Stated(Mechanism[V, A]):
    """The neighbour relation and the unit that the loss is about.

    `neighbours` says which databases the loss compares: one unit added or removed, or one replaced; `unit` is whose data makes
    the difference.
    """

    neighbours: Annotated[Neighbours, "which databases are neighbours"] = "add_remove"
    unit: Annotated[str, UNIT, "whose data makes the difference"] = "record"

    def _pure(self, epsilon: Number) -> PureDP:
        return PureDP(epsilon, neighbours=self.neighbours, unit=self.unit)


@dataclass(frozen=True, kw_only=True)
class Calibrated(Mechanism[V, A]):
    """Noise for a `sensitivity`: a `Sensitivity`, which names its relation and unit, or a number stated for both.

    `neighbours` and `unit` are those of the loss; they follow from a `Sensitivity`, and a number is about one record added
    or removed unless they say otherwise.
    """

    neighbours: Annotated[Neighbours | None, "which databases are neighbours; the sensitivity says it too"] = None
    unit: Annotated[str | None, UNIT, "whose data makes the difference; the sensitivity says it too"] = None

    #: What of a sensitivity the noise is for.
    norm: ClassVar[Literal["l1", "l2_squared", "largest"]] = "l1"

    def __post_init__(self) -> None:
        stated = self._stated
        for name, usual in (("neighbours", "add_remove"), ("unit", "record")):
            if getattr(self, name) is None:
                object.__setattr__(self, name, usual if stated is None else getattr(stated, name))
        super().__post_init__()

    def coherent(self) -> Iterable[str]:
        stated = self._stated
        if stated is not None and stated.local:
            yield (
                "this sensitivity is the one around a single data set, which itself tells about the data: noise calibrated to it"
                " is not private. Use the global sensitivity of the query"
            )
        if stated is not None and (self.neighbours, self.unit) != (stated.neighbours, stated.unit):
            yield "the sensitivity names another neighbour relation or unit than the mechanism; leave the mechanism's out"
        if change_of(self, self.norm) == 0:
            yield f"the sensitivity must be above 0; {_CONSTANT}"

    @property
    def _stated(self) -> Sensitivity | None:
        sensitivity: Any = self.sensitivity  # type: ignore[attr-defined]
        return sensitivity if isinstance(sensitivity, Sensitivity) else None

    def _pure(self, epsilon: Number) -> PureDP:
        return PureDP(epsilon, neighbours=self.neighbours or "add_remove", unit=self.unit or "record")


def change_of(mechanism: Any, norm: str = "l1") -> Fraction:  # a mechanism that has a sensitivity
    """The stored sensitivity as a number: `l1`, `largest`, or `l2_squared`."""
    sensitivity = mechanism.sensitivity
    if isinstance(sensitivity, Sensitivity):
        return Fraction(getattr(sensitivity, norm))
    return Fraction(sensitivity) ** 2 if norm == "l2_squared" else Fraction(sensitivity)


def source_of(randomness: Randomness | None) -> Randomness:
    """The given source, or the operating system's."""
    return default() if randomness is None else randomness
