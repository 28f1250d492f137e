"""Promises about all records together: the average risk of re-identification, and what a model says about a population.

The first is a number of the released rows. The others also rest on a sampling fraction that the owner declares and on a model of
how the table was drawn; nobody can confirm these from the rows (docs/theory/population-models.md). El Emam, "Guide to the
de-identification of personal health information", 2013 (average risk); Dankar, El Emam, Neisa, Roffey, "Estimating the
re-identification risk of clinical data sets", BMC Medical Informatics and Decision Making 12, 2012 (uniqueness by a model);
El Emam, Dankar, "Protecting privacy using k-anonymity", JAMIA 15(5), 2008 (k-map by a model).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

from sfumato.core.binomial import fewest_unlikely, likely_at_most
from sfumato.core.guarantees.base import TOLERANCE, ClassGuarantee, Direction, Evidence, stated
from sfumato.core.ranges import Number, PositiveShare, Share, Whole

#: The model part of a promise, as every sentence has it.
_SAMPLED = "if everybody of the population is in the table independently with the declared chance {fraction}"
#: The owner's word about how the table was drawn.
DeclaredFraction = Annotated[
    PositiveShare, "people of the table per person of the population, as the owner declares it; never learnt from the data"
]
Confidence = Annotated[float, Number(above=0, at_most=0.999_999_999), "how sure the model is"]
MOST_PEOPLE = 100_000
_TOGETHER = "A promise about all records together says nothing about single ones: a class may be one record alone."
_MODEL = "A promise by a model is as good as the model and the sampling fraction that the owner declares."
_RARE = (
    "The model of population uniques understates where many combinations of values are rare in the population: then more people "
    "are unique than it says, however the table was drawn."
)


class WholeTableGuarantee(ClassGuarantee):
    """A promise about all records together, which supposes that each record is another person."""

    one_record_each: ClassVar[bool] = True

    @property
    @abstractmethod
    def sufficient_size(self) -> int:
        """Records of every class that are enough to keep it, whatever the other classes are."""


@dataclass(frozen=True)
class AverageRisk(WholeTableGuarantee):
    """The chance that somebody who links a person with a record of the same class is right is at most `risk`, on average over the
    released records: classes / records ≤ risk.

    Weaker than k-anonymity with k = 1/risk: single classes may be small, down to one record. Each record has to be another
    person.

    >>> AverageRisk(0.1).claim()
    'on average over the records, picking a record of the right class finds the right person with a chance of at most 0.1'
    """

    risk: Annotated[PositiveShare, "classes per record, at the most"]
    direction: ClassVar[Direction] = "at_most"
    protects: ClassVar[str] = "identity disclosure on average"
    limits: ClassVar[tuple[str, ...]] = (_TOGETHER,)

    @property
    def says_nothing(self) -> bool:
        """There are never more classes than records."""
        return self.risk >= 1

    @property
    def threshold(self) -> float:
        return self.risk

    @property
    def sufficient_size(self) -> int:
        return max(math.ceil(1.0 / self.risk - TOLERANCE), 1)

    def claim(self) -> str:
        return (
            "on average over the records, picking a record of the right class finds the right person with a chance of at most "
            f"{stated(self.risk)}"
        )


@dataclass(frozen=True)
class UniquenessByModel(WholeTableGuarantee):
    """At most `share` of the released records belong to somebody who is unique in the population, by a model.

    The model: the table was drawn with the declared `sampling_fraction`, and the people behind each class are negative binomial
    given its records, so that a class of one record is one person of the population with chance `sampling_fraction`,
    independently of others. Measured is the share that the model exceeds with a chance of at most 1 − `confidence`. Independent
    drawing alone is not enough: where many combinations of values are rare in the population, the truth is above it, however the
    table was drawn. Fraction and model are the owner's word: rows cannot confirm this promise.

    >>> UniquenessByModel(0.05, 0.1).measured_of(singles=20, records=100)
    0.04
    """

    share: Annotated[Share, "released records that are unique in the population, at the most"]
    sampling_fraction: DeclaredFraction
    confidence: Confidence = 0.95
    direction: ClassVar[Direction] = "at_most"
    protects: ClassVar[str] = "identity disclosure, adversary without knowledge of participation"
    limits: ClassVar[tuple[str, ...]] = (_TOGETHER, _MODEL, _RARE)

    @property
    def says_nothing(self) -> bool:
        """No share is above 1."""
        return self.share >= 1

    @property
    def threshold(self) -> float:
        return self.share

    @property
    def evidence(self) -> Evidence:
        return "output+model"

    @property
    def adversary(self) -> str:
        return "knows the quasi-identifiers of the people of the population, but not who of them is in the table"

    @property
    def sufficient_size(self) -> int:
        return 2

    def measured_of(self, singles: int, records: int) -> float:
        """The share that the model exceeds with a chance of at most 1 − confidence, rounded to the safe side."""
        if not records or not singles:
            return 0.0
        return likely_at_most(singles, self.sampling_fraction, self.confidence) / records

    def claim(self) -> str:
        return (
            f"{self.former_claims()[0]} and if the people behind each class are negative binomial given its records, as the "
            "model supposes; it understates where many combinations of values are rare in the population"
        )

    def former_claims(self) -> tuple[str, ...]:
        """The claim of earlier certificates, which named the drawing and not the whole model."""
        return (
            f"by a negative binomial model, at most {stated(self.share)} of the records belong to somebody who is unique in the "
            f"population, with {stated(self.confidence)} confidence, "
            f"{_SAMPLED.format(fraction=stated(self.sampling_fraction))}",
        )


@dataclass(frozen=True)
class KMapByModel(ClassGuarantee):
    """A group of fewer than `k` people of the population is published as a class with a chance of at most 1 − `confidence`, by a
    model and for groups that were fixed before the table was drawn.

    The model: everybody of the population is in the table independently with the declared `sampling_fraction`. Then k − 1 people
    give n or more records with P(Bin(k − 1, fraction) ≥ n); every class has at least the least n for which that is at most
    1 − confidence. The fraction is the owner's word: rows cannot confirm this promise.

    >>> KMapByModel(20, 0.1).least_records
    5
    """

    k: Annotated[int, Whole(at_least=1, at_most=MOST_PEOPLE), "people of the population that a class stands for, at the least"]
    sampling_fraction: DeclaredFraction
    confidence: Confidence = 0.95
    one_record_each: ClassVar[bool] = True
    protects: ClassVar[str] = "identity disclosure, adversary without knowledge of participation"
    limits: ClassVar[tuple[str, ...]] = (_MODEL,)

    @property
    def says_nothing(self) -> bool:
        """No group has fewer than one person."""
        return self.k <= 1

    @property
    def least_records(self) -> int:
        """Records that a class must have."""
        return max(fewest_unlikely(self.k - 1, self.sampling_fraction, 1.0 - self.confidence), 1)

    @property
    def threshold(self) -> float:
        return self.least_records

    @property
    def evidence(self) -> Evidence:
        return "output+model"

    @property
    def adversary(self) -> str:
        return "knows the quasi-identifiers of the people of the population, but not who of them is in the table"

    def claim(self) -> str:
        return (
            f"by a binomial model, a group of fewer than {self.k} people of the population that was fixed before the table was "
            f"drawn appears as a class with a chance of at most {stated(round(1.0 - self.confidence, 12))}, "
            f"{_SAMPLED.format(fraction=stated(self.sampling_fraction))}: every class has at least {self.least_records} "
            f"record{'s' * (self.least_records != 1)}"
        )
