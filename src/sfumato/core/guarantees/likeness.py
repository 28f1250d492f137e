"""β-likeness and δ-disclosure privacy: bounds on the relative change of belief in each sensitive value.

Cao, Karras, "Publishing microdata with a robust privacy guarantee", PVLDB 5(11), 2012. Brickell, Shmatikov, "The
cost of privacy: destruction of data-mining utility in anonymized data publishing", KDD 2008.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sfumato.core.guarantees.base import (
    ClassGuarantee,
    Direction,
    Evidence,
    ProtectedValues,
    ReferenceTable,
    SensitiveAttribute,
    stated,
)
from sfumato.core.guarantees.t_closeness import TRUE_OF_ALL
from sfumato.core.ranges import Positive


def _share_in(reference: str) -> str:
    return f"its share in the {'original' if reference == 'input' else 'released'} table"


@dataclass(frozen=True)
class BetaLikeness(ClassGuarantee):
    """No value's share p of `attribute` in a class exceeds its overall share q by more than the factor 1 + `beta`.

    Basic: (p - q)/q ≤ β for every value with p > q. `enhanced`: (p - q)/q ≤ min(β, -ln q), which also keeps
    frequent values uncertain. `reference` is where q is taken from: the whole `input`, or the `released` rows alone. With
    `protected_values` the bound is on those values only.
    """

    beta: Annotated[Positive, "how far a share in a class may exceed the overall share, in units of the latter"]
    attribute: SensitiveAttribute
    enhanced: Annotated[bool, "frequent values stay uncertain as well"] = False
    reference: ReferenceTable = "input"
    protected_values: ProtectedValues = None
    direction: ClassVar[Direction] = "at_most"
    protects: ClassVar[str] = "attribute disclosure, relative to prior belief"
    limits: ClassVar[tuple[str, ...]] = (TRUE_OF_ALL,)

    @property
    def threshold(self) -> float:
        return self.beta

    @property
    def evidence(self) -> Evidence:
        return "output+reference" if self.reference == "input" else "output"

    def claim(self) -> str:
        which = "a value" if self.protected_values is None else "a protected value"
        less = " and by no more than -ln of that share" if self.enhanced else ""
        most = f"{stated(self.beta)} times {_share_in(self.reference)}{less}"
        return f"no class raises the share of {which} of '{self.attribute}' among its records by more than {most}"

    def former_claims(self) -> tuple[str, ...]:
        formerly = self.claim().replace(" among its records", "", 1)
        return formerly, formerly.replace(_share_in(self.reference), "its overall share")


@dataclass(frozen=True)
class DeltaDisclosure(ClassGuarantee):
    """In every class |ln(p/q)| < `delta` for every value of `attribute`, where p is its share there and q its overall share.

    A value missing from a class breaks it (its ratio is 0). `reference` is where q is taken from: the whole `input`, or the
    `released` rows alone. With `protected_values` the bound is on those values only.
    """

    delta: Annotated[Positive, "what the logarithm of the ratio of the two shares stays below"]
    attribute: SensitiveAttribute
    reference: ReferenceTable = "input"
    protected_values: ProtectedValues = None
    direction: ClassVar[Direction] = "below"
    protects: ClassVar[str] = "attribute disclosure, relative to prior belief"
    limits: ClassVar[tuple[str, ...]] = (TRUE_OF_ALL,)

    @property
    def threshold(self) -> float:
        return self.delta

    @property
    def evidence(self) -> Evidence:
        return "output+reference" if self.reference == "input" else "output"

    def claim(self) -> str:
        which = "each value" if self.protected_values is None else "each protected value"
        of = f"among the records of every class the share of {which} of '{self.attribute}'"
        return f"{of} differs from {_share_in(self.reference)} by less than the factor e^{stated(self.delta)}"

    def former_claims(self) -> tuple[str, ...]:
        formerly = self.claim().replace("among the records of every", "in every", 1)
        return formerly, formerly.replace(f"differs from {_share_in(self.reference)}", "changes")
