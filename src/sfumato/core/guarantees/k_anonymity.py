"""k-anonymity: nobody can be distinguished from fewer than k - 1 others by the quasi-identifiers.

Samarati, Sweeney, "Protecting privacy when disclosing information", 1998; Sweeney, IJUFKS 10(5), 2002.
k^m-anonymity: Terrovitis, Mamoulis, Kalnis, "Privacy-preserving anonymization of set-valued data", PVLDB 1(1),
2008. (α,k)-anonymity: Wong, Li, Fu, Wang, "(α,k)-anonymity", KDD 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sfumato.core.guarantees.base import ClassGuarantee, Direction, Knowledge, ProtectedValues, SensitiveAttribute, stated
from sfumato.core.ranges import Count, Instance, PositiveShare

#: What the size of classes does not hide.
SHARED_VALUES = (
    "k-anonymity hides which record is whose. It does not hide a sensitive value that all records of a class share, nor one that "
    "most of them share."
)


@dataclass(frozen=True)
class KAnonymity(ClassGuarantee):
    """Every class has at least `k` records (different units where the schema names a unit column).

    Protects against identity disclosure by an adversary who knows the quasi-identifiers (or those in `knowledge`)
    of a person in the table. It does not hide a sensitive value that a whole class shares. With
    `Knowledge(items=m)` a set-valued quasi-identifier is known in part: whoever knows the other quasi-identifiers
    and 1 to m items of each set still finds at least `k` records or none (k-anonymity and k^m-anonymity in one
    class).

    >>> KAnonymity(5).claim()
    'every combination of quasi-identifiers is shared by at least 5 records'
    >>> KAnonymity(5, Knowledge(items=2)).claim()
    'every combination of quasi-identifiers and up to 2 items of each set is shared by no record or at least 5'
    """

    k: Annotated[Count, "records in a class, at the least"]
    knowledge: Annotated[
        Knowledge | None, Instance(Knowledge), "what the adversary knows; the values of all quasi-identifiers where left out"
    ] = None
    protects: ClassVar[str] = "identity disclosure"
    limits: ClassVar[tuple[str, ...]] = (SHARED_VALUES,)

    @property
    def says_nothing(self) -> bool:
        """Every record is in a class of one."""
        return self.k <= 1

    @property
    def threshold(self) -> float:
        return self.k

    @property
    def items(self) -> int:
        """How many items of each set the adversary is assumed to know; 0 stands for the whole set."""
        return self.knowledge.items if self.knowledge is not None else 0

    @property
    def adversary(self) -> str:
        if self.knowledge is None or self.knowledge == Knowledge():
            return super().adversary
        attributes = self.knowledge.attributes
        knowledge = "the quasi-identifiers" if attributes is None else ", ".join(attributes)
        part = f", of a set-valued one up to {self.items} items," if self.items else ""
        return f"knows {knowledge} of a person{part} and that the person is in the table, and nothing else"

    def claim(self) -> str:
        attributes = self.knowledge.attributes if self.knowledge is not None else None
        knowledge = "quasi-identifiers" if attributes is None else " and ".join(f"'{name}'" for name in attributes)
        if self.items:
            knowledge = f"{knowledge} and up to {self.items} items of each set"
            return f"every combination of {knowledge} is shared by no record or at least {self.k}"
        return f"every combination of {knowledge} is shared by at least {self.k} records"


@dataclass(frozen=True)
class AlphaKAnonymity(ClassGuarantee):
    """Every class has at least `k` records and no protected value of `attribute` makes up more than `alpha` of it.

    `protected_values=None` protects every value; an empty tuple protects none, leaving k-anonymity.
    """

    alpha: Annotated[PositiveShare, "the share of a protected value in a class, at the most"]
    k: Annotated[Count, "records in a class, at the least"]
    attribute: SensitiveAttribute
    protected_values: ProtectedValues = None
    direction: ClassVar[Direction] = "at_most"
    protects: ClassVar[str] = "identity and attribute disclosure"
    limits: ClassVar[tuple[str, ...]] = (SHARED_VALUES,)

    @property
    def says_nothing(self) -> bool:
        """Every record is in a class of one, and no share is above 1."""
        return self.k <= 1 and self._bounds_no_share

    @property
    def about(self) -> str | None:
        return None if self._bounds_no_share else self.attribute

    @property
    def _bounds_no_share(self) -> bool:
        return self.alpha >= 1 or self.protects_no_value

    @property
    def threshold(self) -> float:
        return self.alpha

    def claim(self) -> str:
        which = "a protected value" if self.protected_values is not None else "one value"
        return (
            f"every class has at least {self.k} records and {which} of '{self.attribute}' has at most {stated(self.alpha)} of it"
        )
