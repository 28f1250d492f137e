"""Measures of how finely a release tells records apart: discernibility, average class size, number of
classes, suppressed records.

Discernibility: Bayardo, Agrawal, "Data privacy through optimal k-anonymization", ICDE 2005.
Average class size: LeFevre, DeWitt, Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sfumato.core.ranges import Count
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared
from sfumato.data.microdata import Microdata, ReleasedTable
from sfumato.measures.guarantees.classes import Classes
from sfumato.measures.published import as_released
from sfumato.measures.utility.shown import quasi_of, records_of


@dataclass(frozen=True)
class Discernibility(Measure[object, ReleasedTable]):
    """Every record is charged the number of records it cannot be distinguished from: its class, or all of them
    when suppressed. In all Σ (class size)² + suppressed · records.
    """

    key: ClassVar[str] = "discernibility"
    of_groups: ClassVar[bool] = True

    def score(self, original: object, released: ReleasedTable) -> Score:
        """Sum of squared class sizes, plus suppressed records times all records."""
        records = records_of(released)
        squares = sum(int(size) ** 2 for size in _classes(released).sizes.tolist())
        value = squares + released.suppressed * records
        return Score(
            self.key,
            float(value),
            "lower",
            "pairs of records that can no longer be distinguished",
            uses_original=False,
        )


@dataclass(frozen=True)
class AverageClassSize(Measure[Microdata | None, Compared]):
    """Released records per class, divided by `k` when given, records/(classes · k): 1 is then the best possible."""

    k: Annotated[Count | None, "the class size that is the best possible"] = None
    key: ClassVar[str] = "average_class_size"
    of_groups: ClassVar[bool] = True
    of_rows_alone: ClassVar[bool] = True

    def score(self, original: Microdata | None, released: Compared) -> Score:
        """Records per class, or that as a multiple of k."""
        table = as_released(released, original)
        classes = _classes(table)
        value = classes.records / len(classes) / (self.k or 1) if len(classes) else 0.0
        meaning = "records per class" if self.k is None else f"records per class as a multiple of k = {self.k}"
        return Score(self.key, value, "lower", meaning, uses_original=False)


@dataclass(frozen=True)
class ClassCount(Measure[Microdata | None, Compared]):
    """Number of classes."""

    key: ClassVar[str] = "class_count"
    of_groups: ClassVar[bool] = True
    of_rows_alone: ClassVar[bool] = True

    def score(self, original: Microdata | None, released: Compared) -> Score:
        """How many different combinations of quasi-identifiers are shown."""
        table = as_released(released, original)
        return Score(
            self.key,
            float(len(_classes(table))),
            "higher",
            "different combinations shown",
            uses_original=False,
        )


@dataclass(frozen=True)
class Suppressed(Measure[object, ReleasedTable]):
    """Share of the original records that are missing from the release."""

    key: ClassVar[str] = "suppressed"
    of_groups: ClassVar[bool] = True

    def score(self, original: object, released: ReleasedTable) -> Score:
        """The share; the count is a part."""
        records = records_of(released)
        share = released.suppressed / records if records else 0.0
        parts = {"records": float(released.suppressed)}
        return Score(
            self.key,
            share,
            "lower",
            "share of records that are not in the release",
            parts,
            uses_original=False,
        )


def _classes(released: ReleasedTable) -> Classes:
    return Classes.of(released.table, quasi_of(released), counts=released.counts)
