"""β-likeness and δ-disclosure privacy: bounds on the relative change of belief in each sensitive value.

Cao, Karras, "Publishing microdata with a robust privacy guarantee", PVLDB 5(11), 2012. Brickell, Shmatikov, "The
cost of privacy: destruction of data-mining utility in anonymized data publishing", KDD 2008.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.core.guarantees.base import ClassGuarantee, Direction, Evidence, Reference, protected_texts, stated
from sfumato.core.params import require


@dataclass(frozen=True)
class BetaLikeness(ClassGuarantee):
    """No value's share in a class exceeds its overall share q by more than the factor 1 + β.

    Basic: (p - q)/q ≤ β for every value with p > q. `enhanced`: (p - q)/q ≤ min(β, -ln q), which also keeps
    frequent values uncertain.
    """

    beta: float
    attribute: str
    enhanced: bool = False
    reference: Reference = "input"
    protected_values: tuple[str, ...] | None = None
    direction: ClassVar[Direction] = "at_most"
    protects: ClassVar[str] = "attribute disclosure, relative to prior belief"

    def __post_init__(self) -> None:
        object.__setattr__(self, "protected_values", protected_texts(self.protected_values))
        require(self.beta > 0, f"BetaLikeness: beta must be above 0, not {self.beta}")
        require(self.reference in ("input", "released"), "BetaLikeness: reference must be 'input' or 'released'")

    @property
    def threshold(self) -> float:
        return self.beta

    @property
    def evidence(self) -> Evidence:
        return "output+reference" if self.reference == "input" else "output"

    def claim(self) -> str:
        which = "a value" if self.protected_values is None else "a protected value"
        less = " and by no more than -ln of that share" if self.enhanced else ""
        most = f"{stated(self.beta)} times its overall share{less}"
        return f"no class raises the share of {which} of '{self.attribute}' by more than {most}"


@dataclass(frozen=True)
class DeltaDisclosure(ClassGuarantee):
    """In every class and for every value |ln(p/q)| < δ; a value missing from a class breaks it (its ratio is 0)."""

    delta: float
    attribute: str
    reference: Reference = "input"
    protected_values: tuple[str, ...] | None = None
    direction: ClassVar[Direction] = "below"
    protects: ClassVar[str] = "attribute disclosure, relative to prior belief"

    def __post_init__(self) -> None:
        object.__setattr__(self, "protected_values", protected_texts(self.protected_values))
        require(self.delta > 0, f"DeltaDisclosure: delta must be above 0, not {self.delta}")
        require(self.reference in ("input", "released"), "DeltaDisclosure: reference must be 'input' or 'released'")

    @property
    def threshold(self) -> float:
        return self.delta

    @property
    def evidence(self) -> Evidence:
        return "output+reference" if self.reference == "input" else "output"

    def claim(self) -> str:
        which = "each value" if self.protected_values is None else "each protected value"
        return f"in every class the share of {which} of '{self.attribute}' changes by less than the factor e^{stated(self.delta)}"
