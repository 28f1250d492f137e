"""What mechanisms share that are calibrated to a sensitivity: where it comes from, and for whom the loss is stated."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.core.errors import ParameterError
from sfumato.core.exact import Number, exact
from sfumato.core.guarantees.loss import Neighbours, PureDP
from sfumato.core.params import require
from sfumato.core.randomness import Randomness, default
from sfumato.dp.mechanisms.base import A, Mechanism, V
from sfumato.dp.sensitivity.base import Sensitivity


@dataclass(frozen=True, kw_only=True)
class Stated(Mechanism[V, A]):
    """The neighbour relation and the unit that the loss is about."""

    neighbours: Neighbours = "add_remove"
    unit: str = "record"

    def _check_epsilon(self, name: str = "epsilon") -> None:
        value = exact(getattr(self, name), name)
        require(value > 0, f"{name} must be above 0; an answer that costs nothing is the mechanism Constant")
        object.__setattr__(self, name, value)

    def _check_bounds(self, lower: str = "lower", upper: str = "upper") -> None:
        low, high = exact(getattr(self, lower), lower), exact(getattr(self, upper), upper)
        require(low < high, f"{lower} must be below {upper}: they are bounds declared by the owner, not taken from the data")
        object.__setattr__(self, lower, low)
        object.__setattr__(self, upper, high)

    def _pure(self, epsilon: Number) -> PureDP:
        return PureDP(epsilon, neighbours=self.neighbours, unit=self.unit)


@dataclass(frozen=True, kw_only=True)
class Calibrated(Mechanism[V, A]):
    """Noise for a sensitivity: a `Sensitivity`, which names its relation and unit, or a number stated for both."""

    neighbours: Neighbours | None = None
    unit: str | None = None

    def _settle(self, norm: str = "l1") -> None:
        """Check the field `sensitivity` and take relation and unit from it."""
        given: Any = self.sensitivity  # type: ignore[attr-defined]
        if isinstance(given, Sensitivity):
            refuse_local(given)
            require(
                self.neighbours in {None, given.neighbours} and self.unit in {None, given.unit},
                "the sensitivity names another neighbour relation or unit than the mechanism; leave the mechanism's out",
            )
            object.__setattr__(self, "neighbours", given.neighbours)
            object.__setattr__(self, "unit", given.unit)
        else:
            object.__setattr__(self, "sensitivity", exact(given, "sensitivity"))
            object.__setattr__(self, "neighbours", self.neighbours or "add_remove")
            object.__setattr__(self, "unit", self.unit or "record")
        require(change_of(self, norm) > 0, "the sensitivity must be above 0; what nobody can change is the mechanism Constant")

    def _pure(self, epsilon: Number) -> PureDP:
        return PureDP(epsilon, neighbours=self.neighbours or "add_remove", unit=self.unit or "record")


def change_of(mechanism: Any, norm: str = "l1") -> Fraction:
    """The stored sensitivity as a number: `l1`, `largest`, or `l2_squared`."""
    given = mechanism.sensitivity
    if isinstance(given, Sensitivity):
        return Fraction(getattr(given, norm))
    return Fraction(given) ** 2 if norm == "l2_squared" else Fraction(given)


def refuse_local(sensitivity: Sensitivity) -> None:
    """Refuse a sensitivity around one data set."""
    if sensitivity.local:
        raise ParameterError(
            "this sensitivity is the one around a single data set, which itself tells about the data: noise calibrated to it"
            " is not private. Use the global sensitivity of the query"
        )


def positive(value: Number, name: str) -> Fraction:
    """An exact number above zero."""
    number = exact(value, name)
    require(number > 0, f"{name} must be above 0")
    return number


def source_of(randomness: Randomness | None) -> Randomness:
    """The given source, or the operating system's."""
    return default() if randomness is None else randomness
