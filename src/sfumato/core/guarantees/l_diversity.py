"""l-diversity: within every class the sensitive attribute stays uncertain.

Three readings of "well represented": distinct values, entropy, and recursive (c,l). Machanavajjhala, Gehrke, Kifer,
Venkitasubramaniam, "l-diversity: privacy beyond k-anonymity", ICDE 2006, TKDD 1(1) 2007.

With `protected_values` a class without any of them is exempt: that nobody in it has the protected value is no
secret. The exemption makes the entropy and the recursive reading non-monotone, because an exempt class may swamp a
diverse one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.core.guarantees.base import ClassGuarantee, Direction, protected_texts, stated
from sfumato.core.params import require


@dataclass(frozen=True)
class DistinctLDiversity(ClassGuarantee):
    """Every class has at least `l` different values of `attribute`; implies that it has at least l records."""

    l: int  # noqa: E741
    attribute: str
    protected_values: tuple[str, ...] | None = None
    protects: ClassVar[str] = "attribute disclosure"

    def __post_init__(self) -> None:
        object.__setattr__(self, "protected_values", protected_texts(self.protected_values))
        require(
            isinstance(self.l, int) and self.l >= 1, f"DistinctLDiversity: l must be a whole number of at least 1, not {self.l}"
        )

    @property
    def threshold(self) -> float:
        return self.l

    def claim(self) -> str:
        return f"{self.classes} shows at least {self.l} different values of '{self.attribute}'"


@dataclass(frozen=True)
class EntropyLDiversity(ClassGuarantee):
    """In every class the entropy of `attribute` is at least ln l; measured as the effective l, exp(entropy)."""

    l: float  # noqa: E741
    attribute: str
    protected_values: tuple[str, ...] | None = None
    protects: ClassVar[str] = "attribute disclosure by probabilistic inference"

    def __post_init__(self) -> None:
        object.__setattr__(self, "protected_values", protected_texts(self.protected_values))
        require(self.l >= 1, f"EntropyLDiversity: l must be at least 1, not {self.l}")

    @property
    def threshold(self) -> float:
        return self.l

    @property
    def monotone(self) -> bool:
        return self.protected_values is None

    def claim(self) -> str:
        return f"in {self.classes} '{self.attribute}' is as uncertain as {stated(self.l)} equally likely values"


@dataclass(frozen=True)
class RecursiveLDiversity(ClassGuarantee):
    """Recursive (c,l): with the counts of a class sorted r1 ≥ r2 ≥ …, r1 < c · (r_l + r_(l+1) + …), strictly.

    Measured as the infimum of the c that hold for this l (not attained); infinite when a class has fewer than l
    values.
    """

    c: float
    l: int  # noqa: E741
    attribute: str
    protected_values: tuple[str, ...] | None = None
    direction: ClassVar[Direction] = "below"
    protects: ClassVar[str] = "attribute disclosure by probabilistic inference and exclusion"

    def __post_init__(self) -> None:
        object.__setattr__(self, "protected_values", protected_texts(self.protected_values))
        require(self.c > 0, f"RecursiveLDiversity: c must be above 0, not {self.c}")
        require(
            isinstance(self.l, int) and self.l >= 1, f"RecursiveLDiversity: l must be a whole number of at least 1, not {self.l}"
        )

    @property
    def threshold(self) -> float:
        return self.c

    @property
    def monotone(self) -> bool:
        return self.protected_values is None

    def claim(self) -> str:
        return (
            f"in {self.classes} the most frequent value of '{self.attribute}' has fewer than {stated(self.c)} times the records "
            f"of all values from the {self.l}. most frequent on"
        )
