"""k-anonymity: nobody can be told from fewer than k - 1 others by the quasi-identifiers.

Samarati, Sweeney, "Protecting privacy when disclosing information", 1998; Sweeney, IJUFKS 10(5), 2002.
(α,k)-anonymity: Wong, Li, Fu, Wang, "(α,k)-anonymity", KDD 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.core.guarantees.base import ClassGuarantee, Direction, Knowledge
from sfumato.core.params import require


@dataclass(frozen=True)
class KAnonymity(ClassGuarantee):
    """Every class has at least `k` records (different units where the schema names a unit column).

    Protects against identity disclosure by an adversary who knows the quasi-identifiers (or those in `knowledge`) of a
    person in the table. It does not hide a sensitive value that a whole class shares.

    >>> KAnonymity(5).claim()
    'every combination of quasi-identifiers is shared by at least 5 records'
    """

    k: int
    knowledge: Knowledge | None = None
    protects: ClassVar[str] = "identity disclosure"

    def __post_init__(self) -> None:
        require(isinstance(self.k, int) and not isinstance(self.k, bool), "KAnonymity: k must be a whole number")
        require(self.k >= 1, f"KAnonymity: k must be at least 1, not {self.k}")

    @property
    def threshold(self) -> float:
        return self.k

    @property
    def adversary(self) -> str:
        if self.knowledge is None or self.knowledge.attributes is None:
            return super().adversary
        return f"knows {', '.join(self.knowledge.attributes)} of a person and that the person is in the table, and nothing else"

    def claim(self) -> str:
        return f"every combination of quasi-identifiers is shared by at least {self.k} records"


@dataclass(frozen=True)
class AlphaKAnonymity(ClassGuarantee):
    """Every class has at least `k` records and no protected value of `attribute` makes up more than `alpha` of it.

    `protected_values=None` protects every value; an empty tuple protects none, leaving k-anonymity.
    """

    alpha: float
    k: int
    attribute: str
    protected_values: tuple[str, ...] | None = None
    direction: ClassVar[Direction] = "at_most"
    protects: ClassVar[str] = "identity and attribute disclosure"

    def __post_init__(self) -> None:
        require(0 < self.alpha <= 1, f"AlphaKAnonymity: alpha must be above 0 and at most 1, not {self.alpha}")
        require(isinstance(self.k, int) and self.k >= 1, f"AlphaKAnonymity: k must be at least 1, not {self.k}")

    @property
    def threshold(self) -> float:
        return self.alpha

    def claim(self) -> str:
        which = "a protected value" if self.protected_values is not None else "one value"
        return f"every class has at least {self.k} records and {which} of '{self.attribute}' has at most {self.alpha:.4g} of it"
