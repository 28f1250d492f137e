"""Guarantees that compose: a bound on how much one person can change the law of what is published.

Each is a frozen value with exact rational parameters, its neighbour relation and the unit it protects. Losses add
up; how is the business of `dp.accounting`, and the account is kept by the ledger.
Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data analysis", TCC 2006;
Bun, Steinke, "Concentrated differential privacy", TCC 2016; Mironov, "Rényi differential privacy", CSF 2017.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

from sfumato.core.exact import Number, exact, shown
from sfumato.core.guarantees.base import Evidence
from sfumato.core.params import require

#: `add_remove`: one unit more or less. `replace`: one unit's data changed, the number of units public.
Neighbours = Literal["add_remove", "replace"]
#: The unit where no column names one: each record by itself.
RECORD = "record"

_NEIGHBOURS = {"add_remove": "one {unit} more or less", "replace": "one {unit} replaced by another, their number public"}


@dataclass(frozen=True, kw_only=True)
class LossGuarantee(ABC):
    """A bound on the privacy loss, whoever looks and whatever they know except the drawn noise.

    `neighbours` says which pairs of databases are compared, `unit` whose data makes the difference: a record, or
    everything that belongs to one value of the unit column.
    """

    neighbours: Neighbours = "add_remove"
    unit: str = RECORD

    protects: ClassVar[str] = "membership and every attribute of one unit"
    adversary: ClassVar[str] = "knows everything, including all other records and the algorithm, except the drawn noise"
    evidence: ClassVar[Evidence] = "process"

    def __post_init__(self) -> None:
        require(self.neighbours in _NEIGHBOURS, f"neighbours is one of {', '.join(_NEIGHBOURS)}")
        require(isinstance(self.unit, str) and 0 < len(self.unit) <= 200, "unit is the name of what is protected")

    @property
    def name(self) -> str:
        """The public name of the guarantee."""
        return type(self).__name__

    @property
    def key(self) -> str:
        """How certificates name it."""
        return self.name

    @property
    def compared(self) -> str:
        """The neighbour relation in words."""
        return _NEIGHBOURS[self.neighbours].format(unit=self.unit)

    @abstractmethod
    def claim(self) -> str:
        """The promise in plain words."""

    def about(self, *, neighbours: Neighbours | None = None, unit: str | None = None) -> LossGuarantee:
        """The same numbers stated for another relation or unit; whoever calls this has a reason to.

        Conversions that change the numbers are in `dp.accounting`.
        """
        return replace(self, neighbours=neighbours or self.neighbours, unit=unit or self.unit)

    def _store(self, field: str, *, most: int | None = None) -> None:
        value = exact(getattr(self, field), field)
        require(value >= 0, f"{field} must not be negative")
        require(most is None or value <= most, f"{field} must not exceed {most}")
        object.__setattr__(self, field, value)


@dataclass(frozen=True)
class PureDP(LossGuarantee):
    """ε-differential privacy: no event becomes more than e^ε times as likely by one unit's data.

    >>> PureDP(0.1).epsilon
    Fraction(1, 10)
    """

    epsilon: Number

    def __post_init__(self) -> None:
        super().__post_init__()
        self._store("epsilon")

    def claim(self) -> str:
        return f"no event is more than e^{_exponent(self.epsilon)} times as likely with {self.compared}"


@dataclass(frozen=True)
class ApproxDP(LossGuarantee):
    """(ε, δ)-differential privacy: as ε-differential privacy, except for a probability δ."""

    epsilon: Number
    delta: Number

    def __post_init__(self) -> None:
        super().__post_init__()
        self._store("epsilon")
        self._store("delta", most=1)

    def claim(self) -> str:
        factor = f"e^{_exponent(self.epsilon)}"
        return f"no event is more than {factor} times as likely, plus {float(self.delta):.3g}, with {self.compared}"


@dataclass(frozen=True)
class ConcentratedDP(LossGuarantee):
    """ρ-zero-concentrated differential privacy: the Rényi divergence of every order α is at most ρα."""

    rho: Number

    def __post_init__(self) -> None:
        super().__post_init__()
        self._store("rho")

    def claim(self) -> str:
        return f"the Rényi divergence of every order α is at most {_exponent(self.rho)}·α with {self.compared}"


@dataclass(frozen=True)
class RenyiDP(LossGuarantee):
    """(α, ε)-Rényi differential privacy: the Rényi divergence of order α is at most ε."""

    order: Number
    epsilon: Number

    def __post_init__(self) -> None:
        super().__post_init__()
        self._store("order")
        self._store("epsilon")
        require(self.order > 1, "order must be above 1")  # type: ignore[operator]

    def claim(self) -> str:
        return f"the Rényi divergence of order {_exponent(self.order)} is at most {_exponent(self.epsilon)} with {self.compared}"


def _exponent(value: Number) -> str:
    return shown(Fraction(value))
