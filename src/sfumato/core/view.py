"""What an adversary or a measure sees of a release, and the two protocols that look at it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from sfumato.core.declared import Declared

#: The unit of a release, as its certificate tells it, where no column names the units.
ONE_RECORD = "one record"

#: The two sides that a measure compares.
Original = TypeVar("Original", contravariant=True)
Released = TypeVar("Released", contravariant=True)


@dataclass(frozen=True)
class View:
    """A published result with what its certificate says: everything an outsider has.

    `result` is an Arrow table for a table release; `schema` gives the roles of its columns; `certificate` is the
    public part.
    """

    result: Any
    schema: Any
    certificate: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    name: str = "release"


@dataclass(frozen=True)
class AttackResult:
    """How far an attack got, beside what blind guessing gets.

    `success` and `baseline` are rates in [0, 1]; `interval` is a 95 % interval of the success rate; `targets` is
    how many people were attacked, or records where nobody can tell whose they are; `finding` says in one sentence what it
    means; `details` holds counts, never record values.
    """

    attack: str
    success: float
    baseline: float
    interval: tuple[float, float]
    targets: int
    finding: str
    details: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


class Attack(Declared, ABC):
    """An adversary: `run` looks at a view with some knowledge and reports success beside blind guessing."""

    @abstractmethod
    def run(self, view: View, knowledge: Any = None) -> AttackResult:
        """Attack the view; `knowledge` is what this adversary has besides it (each attack says which)."""


@dataclass(frozen=True)
class Score:
    """A measured number with the reading direction and, where it helps, its parts (per attribute, per class size)."""

    measure: str
    value: float
    better: str  # "lower" or "higher"
    meaning: str
    parts: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    uses_original: bool = True


class Measure(Declared, ABC, Generic[Original, Released]):
    """How useful or how safe: `score(original, released)`.

    A measure of `masked` tables takes a `Masked`, which knows the record behind each row, or a table whose rows stand in
    the order of the original; others take a `ReleasedTable`.
    """

    masked: ClassVar[bool] = False

    @abstractmethod
    def score(self, original: Original, released: Released) -> Score:
        """Measure the released table, against the original where the measure needs it."""


#: A measure out of several kinds; which table it takes is told by `masked`.
AnyMeasure: TypeAlias = Measure[Any, Any]
