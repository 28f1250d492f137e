"""Guarantees that compose: a bound on how much one person can change the law of what is published.

Each is a frozen value with exact rational parameters, its neighbour relation and the unit it protects. Losses add
up; how is the business of `dp.accounting`, and the account is kept by the ledger.
Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data analysis", TCC 2006;
Bun, Steinke, "Concentrated differential privacy", TCC 2016; Mironov, "Rényi differential privacy", CSF 2017.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from sfumato.core import ranges
from sfumato.core.exact import Number, shown
from sfumato.core.guarantees.base import Evidence, Guarantee

#: `add_remove`: one unit added or removed. `replace`: one unit's data changed, the number of units public.
Neighbours = Literal["add_remove", "replace"]
#: The unit where no column names one: each record by itself.
RECORD = "record"

#: What happens to one unit between two neighbours.
_CHANGES = {"add_remove": "added or removed", "replace": "replaced by another, their number public"}
#: The same in the words of earlier versions, which their certificates state.
_FORMER_CHANGES = {**_CHANGES, "add_remove": "more or less"}
_Loss = Annotated[Number, ranges.Number(at_least=0, exact=True)]


_DELTA_ADDED = "δ is added to every bound on a probability: of events that have a chance of δ or less the bound says nothing."
_DELTA_LEFT = "Stated as an ε, the bound depends on the δ that one is ready to add."


@dataclass(frozen=True, kw_only=True)
class LossGuarantee(Guarantee):
    """A bound on the privacy loss, whoever looks and whatever they know except the drawn noise.

    `neighbours` says which pairs of databases are compared, `unit` whose data makes the difference: a record, or
    everything that belongs to one value of the unit column.
    """

    neighbours: Annotated[Neighbours, "which pairs of databases are compared"] = "add_remove"
    unit: Annotated[str, ranges.Text("the name of what is protected", longest=200), "whose data makes the difference"] = RECORD

    protects: ClassVar[str] = "membership and every attribute of one unit"

    @property
    def adversary(self) -> str:
        """Anybody, whatever they know."""
        return "knows everything, including all other records and the algorithm, except the drawn noise"

    @property
    def evidence(self) -> Evidence:
        """Files cannot show it: it rests on how they were made."""
        return "process"

    @property
    def compared(self) -> str:
        """The neighbour relation in words."""
        return f"one {self.unit} {_CHANGES[self.neighbours]}"

    @property
    def formerly_compared(self) -> str:
        """The neighbour relation in the words of earlier versions."""
        return f"one {self.unit} {_FORMER_CHANGES[self.neighbours]}"

    @property
    @abstractmethod
    def _bound(self) -> str:
        """What is bounded, and by how much."""

    def claim(self) -> str:
        return f"{self._bound} if one {self.unit} is {_CHANGES[self.neighbours]}"

    def wordings(self) -> tuple[tuple[str, str], ...]:
        """Promise and neighbour relation in words, as claims state them now and as earlier versions stated them."""
        return (self.claim(), self.compared), (f"{self._bound} with {self.formerly_compared}", self.formerly_compared)

    def about(self, *, neighbours: Neighbours | None = None, unit: str | None = None) -> LossGuarantee:
        """The same numbers stated for another relation or unit; whoever calls this has a reason to.

        Conversions that change the numbers are in `dp.accounting`.
        """
        return replace(
            self,
            neighbours=self.neighbours if neighbours is None else neighbours,
            unit=self.unit if unit is None else unit,
        )


@dataclass(frozen=True)
class PureDP(LossGuarantee):
    """ε-differential privacy: P[M(D) ∈ S] ≤ e^ε · P[M(D') ∈ S] for all neighbours D, D' and events S.

    No event becomes more than e^`epsilon` times as likely by one unit's data. `neighbours` and `unit` say whose.

    >>> PureDP(0.1).epsilon
    Fraction(1, 10)
    """

    epsilon: Annotated[_Loss, "ε: the loss, at the most"]

    @property
    def _bound(self) -> str:
        return f"no event is more than e^{_exponent(self.epsilon)} times as likely"


@dataclass(frozen=True)
class ApproxDP(LossGuarantee):
    """(ε, δ)-differential privacy: P[M(D) ∈ S] ≤ e^ε · P[M(D') ∈ S] + δ for all neighbours D, D' and events S.

    As ε-differential privacy with `epsilon`, where `delta` is added to every probability bound; `neighbours` and `unit` say whose
    data.
    """

    limits: ClassVar[tuple[str, ...]] = (_DELTA_ADDED,)

    epsilon: Annotated[_Loss, "ε: the loss, at the most, before δ is added"]
    delta: Annotated[Number, ranges.Number(at_least=0, at_most=1, exact=True), "δ: what is added to every bound on a probability"]

    @property
    def _bound(self) -> str:
        return f"no event is more than e^{_exponent(self.epsilon)} times as likely, plus {float(self.delta):.3g},"


@dataclass(frozen=True)
class ConcentratedDP(LossGuarantee):
    """ρ-zero-concentrated differential privacy: the Rényi divergence of every order α is at most ρα, where ρ is `rho`.

    `neighbours` and `unit` say whose data makes the difference.
    """

    limits: ClassVar[tuple[str, ...]] = (_DELTA_LEFT,)

    rho: Annotated[_Loss, "ρ: the Rényi divergence of order α, divided by α, at the most"]

    @property
    def _bound(self) -> str:
        return f"the Rényi divergence of every order α is at most {_exponent(self.rho)}·α"


@dataclass(frozen=True)
class RenyiDP(LossGuarantee):
    """(α, ε)-Rényi differential privacy: the Rényi divergence of order α (`order`) is at most ε (`epsilon`).

    `neighbours` and `unit` say whose data makes the difference.
    """

    limits: ClassVar[tuple[str, ...]] = (_DELTA_LEFT,)

    order: Annotated[Number, ranges.Number(above=1, exact=True), "α: the order of the divergence"]
    epsilon: Annotated[_Loss, "ε: the Rényi divergence, at the most"]

    @property
    def _bound(self) -> str:
        return f"the Rényi divergence of order {_exponent(self.order)} is at most {_exponent(self.epsilon)}"


def _exponent(value: Number) -> str:
    return shown(Fraction(value))
