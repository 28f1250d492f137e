"""The risk score DR: interval disclosure and linkage in one number, and the overall score with information loss.

DR = ½ interval disclosure + ¼ distance-based linkage + ¼ probabilistic linkage. Domingo-Ferrer, Torra, "A quantitative
comparison of disclosure control methods for microdata", in: Confidentiality, disclosure and data access, North-Holland 2001.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

from sfumato.core.params import require
from sfumato.core.view import Measure, Score
from sfumato.data.masked import aligned, as_masked
from sfumato.data.microdata import Microdata
from sfumato.measures.risk.distance_linkage import linkage_credit
from sfumato.measures.risk.interval_disclosure import Version, disclosed_intervals
from sfumato.measures.risk.linked import owners_of, with_assumption, with_classes
from sfumato.measures.risk.probabilistic_linkage import probabilistic_credit
from sfumato.measures.risk.spaces import DISTANCES, Distance

Linkage = Literal["both", "largest", "only"]


@dataclass(frozen=True)
class DisclosureRisk(Measure):
    """DR in [0, 1]: `weights` for interval disclosure, distance-based and probabilistic linkage.

    `linkage="both"` is the weighted mean; `"largest"` puts the weight of both linkages on the better of the two, because an
    intruder would choose it; `"only"` leaves intervals out. Without numbers there are no intervals and the score rests on linkage
    alone (part "intervals counted" is 0). The distance is Gower's as soon as there are categories. Against an
    intruder who holds the original values of the columns compared. Parts: the three components.

    >>> people = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())
    >>> DisclosureRisk(columns=("age", "income")).score(people, people).parts["interval disclosure"]
    1.0
    """

    weights: tuple[float, float, float] = (0.5, 0.25, 0.25)
    linkage: Linkage = "both"
    distance: Distance = "auto"
    version: Version = "rank"
    bins: int | None = None
    columns: tuple[str, ...] | None = None
    key: ClassVar[str] = "disclosure_risk"
    masked: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check(self.weights, self.linkage)
        require(self.distance in DISTANCES, f"DisclosureRisk: distance must be one of {', '.join(DISTANCES)}")
        require(self.version in ("rank", "deviation"), "DisclosureRisk: version must be 'rank' or 'deviation'")
        require(self.bins is None or self.bins >= 2, f"DisclosureRisk: bins must be at least 2, not {self.bins}")

    def score(self, original: Microdata, released: Any) -> Score:
        """The combined risk."""
        masked = as_masked(released, original)
        left, right = aligned(original, masked, self.columns)
        owner = owners_of(masked)
        nearest = linkage_credit(left, right, self.distance, owner)
        weightiest = probabilistic_credit(left, right, self.bins, owner)[0]
        by_distance, by_weight = (float(with_classes(each, masked, left.names).mean()) for each in (nearest, weightiest))
        intervals = disclosed_intervals(left, right, self.version)
        counted = bool(intervals) and self.linkage != "only"
        inside = float(np.mean(list(intervals.values()))) if intervals else 0.0
        value = combined_risk(inside, by_distance, by_weight, self.weights, self.linkage if counted else "only")
        parts = {
            "interval disclosure": inside,
            "distance linkage": by_distance,
            "probabilistic linkage": by_weight,
            "intervals counted": float(counted),
        }
        meaning = with_assumption("disclosure risk: half intervals around masked values, half record linkage", released)
        return Score(self.key, min(value, 1.0), "lower", meaning, MappingProxyType(parts))


def combined_risk(
    interval: float,
    distance: float,
    probabilistic: float,
    weights: tuple[float, float, float] = (0.5, 0.25, 0.25),
    linkage: Linkage = "both",
) -> float:
    """DR of its three components, in whatever unit they are given (rates or percentages)."""
    _check(weights, linkage)
    first, second, third = weights
    if linkage == "largest":
        return first * interval + (second + third) * max(distance, probabilistic)
    if linkage == "only":
        rest = second + third
        return (second * distance + third * probabilistic) / rest if rest else (distance + probabilistic) / 2.0
    return first * interval + second * distance + third * probabilistic


def overall_score(information_loss: float, disclosure_risk: float) -> float:
    """The mean of loss and risk, by which methods are ranked; the smaller the better."""
    return 0.5 * information_loss + 0.5 * disclosure_risk


def _check(weights: tuple[float, ...], linkage: str) -> None:
    require(
        len(weights) == 3 and all(weight >= 0 for weight in weights) and abs(sum(weights) - 1.0) <= 1e-9,
        "DisclosureRisk: weights (intervals, distance-based, probabilistic linkage) are at least 0 and sum to 1",
    )
    require(linkage in ("both", "largest", "only"), "DisclosureRisk: linkage must be 'both', 'largest' or 'only'")
