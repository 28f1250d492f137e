"""Household risk: the chance that at least one member of a household is re-identified, and all others with it.

Whoever finds one member has found the household, so every member carries 1 − Π(1 − risk of each member). Franconi, Polettini,
"Individual risk estimation in μ-Argus: a review", Privacy in Statistical Databases 2004.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import MissingColumn
from sfumato.core.ranges import ColumnName, PositiveShare
from sfumato.core.view import Described, Score
from sfumato.data.masked import Compared
from sfumato.data.microdata import Microdata
from sfumato.measures.guarantees.classes import CodedColumn
from sfumato.measures.parameters import SamplingFraction
from sfumato.measures.published import as_released
from sfumato.measures.risk.success import Z95
from sfumato.measures.risk.uniques.individual_risk import people_of, record_risks
from sfumato.measures.risk.uniques.reidentification import FromSample

Real = NDArray[np.float64]


@dataclass(frozen=True)
class HouseholdRisk(FromSample[Microdata | None, Compared]):
    """Mean over records of the risk of their household; a household is the records that share a value of `household`.

    A record whose household is missing is a household of its own. The risks of the members come from the survey weights or
    `sampling_fraction`, as in `IndividualRisk`, and are taken as independent. Parts: the largest risk, the expected number of
    households found, the share of records above `threshold`, and the mean risk of single records for comparison. The floor is a
    blind guess for every member; the interval is that of the share found, under the model.

    >>> HouseholdRisk("household").threshold
    0.1
    """

    household: Annotated[ColumnName, "the column that says who lives together"]
    sampling_fraction: SamplingFraction = None
    threshold: Annotated[PositiveShare, "the risk above which records are counted"] = 0.1
    key: ClassVar[str] = "household_risk"

    def lacks(self, published: Described) -> str | None:
        """The column of households, or what every estimate from a sample lacks."""
        if self.household not in published.columns:
            return f"{self.key} is about the column '{self.household[:60]}', which is not published"
        return super().lacks(published)

    def score(self, original: Microdata | None, released: Compared) -> Score:
        """The mean household risk of the records."""
        table = as_released(released, original)
        if self.household not in table.table.column_names:
            raise MissingColumn(f"household risk: column '{self.household}' is not in the released table")
        single = record_risks(table, self.sampling_fraction)
        coded = CodedColumn.of(table.table.column(self.household))
        missing = np.array([value is None for value in coded.values], dtype=np.bool_)[coded.codes]
        households = np.where(missing, len(coded.values) + np.arange(coded.codes.size), coded.codes)
        by_household, member_of = np.unique(households, return_inverse=True)
        risks = joint_risks(single, member_of.reshape(-1), by_household.size)
        of_record = risks[member_of.reshape(-1)]
        parts = {
            "largest": float(risks.max()),
            "households": float(by_household.size),
            "expected households found": float(risks.sum()),
            "individual risk, mean": float(single.mean()),
            f"share above {self.threshold:g}": float(np.mean(of_record > self.threshold + 1e-12)),
        }
        meaning = "expected share of records whose household is found through at least one member"
        sizes = np.bincount(member_of.reshape(-1), minlength=by_household.size)
        people = people_of(table, self.sampling_fraction)
        blind = -np.expm1(sizes * np.log1p(-1.0 / people)) if people > 1.0 else np.ones(sizes.size)
        return Score(
            self.key,
            float(of_record.mean()),
            "lower",
            meaning,
            MappingProxyType(parts),
            uses_original=False,
            floor=float(blind[member_of.reshape(-1)].mean()),
            interval=_found(risks, sizes),
        )


def _found(risks: Real, sizes: NDArray[np.int64]) -> tuple[float, float]:
    """Where the share of records in households that are found lies with 95 %, each household found independently."""
    share, weights = float(risks @ sizes) / float(sizes.sum()), sizes / float(sizes.sum())
    half = Z95 * float(np.sqrt(np.sum(weights**2 * risks * (1.0 - risks))))
    return max(share - half, 0.0), min(share + half, 1.0)


def joint_risks(single: Real, household_of: NDArray[np.int64], households: int) -> Real:
    """1 − Π(1 − risk) over the members of each household, added up as logarithms so that small risks are not lost."""
    certain = np.bincount(household_of, weights=(single >= 1.0).astype(np.float64), minlength=households) > 0
    logs = np.log1p(-np.where(single >= 1.0, 0.0, single))
    return np.where(certain, 1.0, -np.expm1(np.bincount(household_of, weights=logs, minlength=households)))
