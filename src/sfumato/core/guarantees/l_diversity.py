"""l-diversity: within every class the sensitive attribute stays uncertain.

Three readings of "well represented": distinct values, entropy, and recursive (c,l). Machanavajjhala, Gehrke, Kifer,
Venkitasubramaniam, "l-diversity: privacy beyond k-anonymity", ICDE 2006, TKDD 1(1) 2007.

With `protected_values` a class without any of them is exempt: that nobody in it has the protected value is no
secret. The exemption makes the entropy and the recursive reading non-monotone, because an exempt class may swamp a
diverse one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sfumato.core.guarantees.base import ClassGuarantee, Direction, ProtectedValues, SensitiveAttribute, ordinal, stated
from sfumato.core.ranges import Count, Number, Positive

_MEANINGS = (
    "l-diversity keeps sensitive values uncertain. Values that differ in name but mean nearly the same still tell, and so does a "
    "class whose mixture differs much from everybody's."
)
_MISSING = (
    "A missing value counts as a value of its own. Where that makes a difference, the fewest different known values of a class "
    "are stated beside."
)


@dataclass(frozen=True)
class DistinctLDiversity(ClassGuarantee):
    """Every class has at least `l` different values of `attribute`; implies that it has at least l records.

    Where `protected_values` are named, classes without any of them are exempt.
    """

    l: Annotated[Count, "different values in a class, at the least"]  # noqa: E741
    attribute: SensitiveAttribute
    protected_values: ProtectedValues = None
    protects: ClassVar[str] = "attribute disclosure"
    limits: ClassVar[tuple[str, ...]] = (_MEANINGS, _MISSING)

    @property
    def says_nothing(self) -> bool:
        """Every class shows one value."""
        return self.l <= 1 or self.protects_no_value

    @property
    def threshold(self) -> float:
        return self.l

    def claim(self) -> str:
        return f"{self.classes} shows at least {self.l} different values of '{self.attribute}'"


@dataclass(frozen=True)
class EntropyLDiversity(ClassGuarantee):
    """In every class the entropy of `attribute` is at least ln `l`; measured as the effective l, exp(entropy).

    Where `protected_values` are named, classes without any of them are exempt.
    """

    l: Annotated[float, Number(at_least=1), "equally likely values that a class is at least as uncertain as"]  # noqa: E741
    attribute: SensitiveAttribute
    protected_values: ProtectedValues = None
    protects: ClassVar[str] = "attribute disclosure by probabilistic inference"
    limits: ClassVar[tuple[str, ...]] = (_MEANINGS, _MISSING)

    @property
    def says_nothing(self) -> bool:
        """No class is less uncertain than one value."""
        return self.l <= 1 or self.protects_no_value

    @property
    def threshold(self) -> float:
        return self.l

    @property
    def monotone(self) -> bool:
        return self.protected_values is None

    def claim(self) -> str:
        return f"among the records of {self.classes} '{self.attribute}' is as uncertain as {stated(self.l)} equally likely values"

    def former_claims(self) -> tuple[str, ...]:
        return (self.claim().replace("among the records of", "in", 1),)


@dataclass(frozen=True)
class RecursiveLDiversity(ClassGuarantee):
    """Recursive (`c`,`l`): with the counts of `attribute` in a class sorted r1 ≥ r2 ≥ …, r1 < c · (r_l + r_(l+1) + …), strictly.

    Measured as the infimum of the c that hold for this l (not attained); infinite when a class has fewer than l
    values. Where `protected_values` are named, classes without any of them are exempt.
    """

    c: Annotated[Positive, "how many times the records of the rarer values the most frequent value stays below"]
    l: Annotated[Count, "from which value on, by frequency, the rarer values begin"]  # noqa: E741
    attribute: SensitiveAttribute
    protected_values: ProtectedValues = None
    direction: ClassVar[Direction] = "below"
    protects: ClassVar[str] = "attribute disclosure by probabilistic inference and exclusion"
    limits: ClassVar[tuple[str, ...]] = (_MEANINGS, _MISSING)

    @property
    def says_nothing(self) -> bool:
        """The most frequent value stays below more than all records."""
        return (self.l <= 1 and self.c > 1) or self.protects_no_value

    @property
    def threshold(self) -> float:
        return self.c

    @property
    def monotone(self) -> bool:
        return self.protected_values is None

    def claim(self) -> str:
        return (
            f"in {self.classes} the most frequent value of '{self.attribute}' has fewer than {stated(self.c)} times the records "
            f"of all values from the {ordinal(self.l)} most frequent on"
        )

    def former_claims(self) -> tuple[str, ...]:
        return (self.claim().replace(f"the {ordinal(self.l)} most", f"the {self.l}. most"),)
