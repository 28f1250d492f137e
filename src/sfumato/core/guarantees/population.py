"""Guarantees relative to a population table: k-map and δ-presence.

Sweeney, "Computational disclosure control", 2001 (k-map); Nergiz, Atzori, Clifton, "Hiding the presence of
individuals from shared databases", SIGMOD 2007 (δ-presence).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from sfumato.core.guarantees.base import ClassGuarantee, Direction, Evidence, stated
from sfumato.core.guarantees.k_anonymity import SHARED_VALUES
from sfumato.core.ranges import Count, Share


@dataclass(frozen=True)
class KMap(ClassGuarantee):
    """Every released class matches at least `k` records of the population (given as `population=`).

    Weaker than k-anonymity: right when the adversary does not know who is in the sample. Give one record for each person of the
    population: records are counted.
    """

    k: Annotated[Count, "records of the population that a class matches, at the least"]
    protects: ClassVar[str] = "identity disclosure, adversary without knowledge of participation"
    limits: ClassVar[tuple[str, ...]] = (SHARED_VALUES,)

    @property
    def says_nothing(self) -> bool:
        """Everybody in the table is one of the population."""
        return self.k <= 1

    @property
    def threshold(self) -> float:
        return self.k

    @property
    def evidence(self) -> Evidence:
        return "output+reference"

    @property
    def needs_population(self) -> bool:
        return True

    @property
    def adversary(self) -> str:
        return "knows the quasi-identifiers of the people of the population, but not who of them is in the table"

    def claim(self) -> str:
        return f"every released class matches at least {self.k} records of the population"

    def former_claims(self) -> tuple[str, ...]:
        return (f"every released class matches at least {self.k} people of the population",)


@dataclass(frozen=True)
class DeltaPresence(ClassGuarantee):
    """For every person of the population the chance of being in the release is between `minimum` and `maximum`.

    The chance is the share of the class's population that is released; classes of the population without a released
    record have chance 0 and break it when `minimum` is above 0. Measured as the largest share. Each record has to be
    another person.
    """

    minimum: Annotated[Share, "the chance of being in the release, at the least"]
    maximum: Annotated[Share, "the chance of being in the release, at the most"]
    direction: ClassVar[Direction] = "at_most"
    one_record_each: ClassVar[bool] = True
    protects: ClassVar[str] = "membership disclosure"

    @property
    def says_nothing(self) -> bool:
        """Every chance lies between 0 and 1."""
        return self.minimum <= 0 and self.maximum >= 1

    def coherent(self) -> Iterable[str]:
        if self.minimum > self.maximum:
            yield f"minimum must not exceed maximum, but {self.minimum} is above {self.maximum}"

    @property
    def threshold(self) -> float:
        return self.maximum

    @property
    def evidence(self) -> Evidence:
        return "output+reference"

    @property
    def needs_population(self) -> bool:
        return True

    @property
    def adversary(self) -> str:
        return "knows the quasi-identifiers of the people of the population and wants to know who of them is in the table"

    def claim(self) -> str:
        between = f"{stated(self.minimum)} and {stated(self.maximum)}"
        return f"the chance that a person of the population is in the release lies between {between}"
