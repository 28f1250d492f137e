"""t-closeness: a class tells hardly more about the sensitive attribute than the whole table does.

Li, Li, Venkatasubramanian, "t-closeness: privacy beyond k-anonymity and l-diversity", ICDE 2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from sfumato.core.guarantees.base import (
    ClassGuarantee,
    Direction,
    Evidence,
    ProtectedValues,
    ReferenceTable,
    SensitiveAttribute,
    stated,
)
from sfumato.core.ranges import Number

#: Shares are counted in records, of people who have several as well.
_AMONG = "in the records of "
Distance = Literal["equal", "ordered", "hierarchical", "variational", "kl"]


#: What closeness to everybody does not hide.
TRUE_OF_ALL = (
    "Closeness bounds how far belief about a sensitive value can move. What is true of everybody in the table can still be "
    "learnt."
)


@dataclass(frozen=True)
class TCloseness(ClassGuarantee):
    """The distribution of `attribute` in every class is within `t` of the reference distribution.

    `distance`: earth mover's with all values equally far (`equal`, the same number as `variational`), with values
    in order (`ordered`: numeric or declared order, normalised by m - 1), along the attribute's hierarchy
    (`hierarchical`), or the Kullback-Leibler divergence from the reference (`kl`, in nats). `reference`: the whole
    `input`, or the `released` rows alone; the two differ when records are suppressed. With
    `protected_values` the equal distance adds up those alone; with another distance a class without any of them is exempt.
    """

    t: Annotated[float, Number(at_least=0), "the distance from the reference distribution, at the most"]
    attribute: SensitiveAttribute
    distance: Annotated[Distance, "how the distance of two distributions is taken"] = "equal"
    reference: ReferenceTable = "input"
    protected_values: ProtectedValues = None
    direction: ClassVar[Direction] = "at_most"
    protects: ClassVar[str] = "attribute disclosure by skewness and, with a ground distance, similarity"
    limits: ClassVar[tuple[str, ...]] = (TRUE_OF_ALL,)

    @property
    def says_nothing(self) -> bool:
        """No distance but a divergence is above 1."""
        return (self.t >= 1 and self.distance != "kl") or self.protects_no_value

    @property
    def threshold(self) -> float:
        return self.t

    @property
    def monotone(self) -> bool:
        return self.protected_values is None

    @property
    def evidence(self) -> Evidence:
        return "output+reference" if self.reference == "input" else "output"

    def claim(self) -> str:
        near = f"within {stated(self.t)} ({self.distance} distance)"
        where = f"in the {'original' if self.reference == 'input' else 'released'} table"
        if self.protected_values is None:
            return f"the distribution of '{self.attribute}' {_AMONG}every class is {near} of its distribution {where}"
        if self.distance in ("equal", "variational"):
            return f"the shares of the protected values of '{self.attribute}' {_AMONG}every class are {near} of those {where}"
        return f"the distribution of '{self.attribute}' {_AMONG}{self.classes} is {near} of its distribution {where}"

    def former_claims(self) -> tuple[str, ...]:
        return (self.claim().replace(_AMONG, "in "),)
