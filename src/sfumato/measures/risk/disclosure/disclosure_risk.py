"""The risk score DR: interval disclosure and linkage in one number, and the overall score with information loss.

DR = ½ interval disclosure + ¼ distance-based linkage + ¼ probabilistic linkage. Domingo-Ferrer, Torra, "A quantitative
comparison of disclosure control methods for microdata", in: Confidentiality, disclosure and data access, North-Holland 2001.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

import numpy as np

from sfumato.core.ranges import Each, Number
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, aligned, as_masked
from sfumato.data.microdata import Microdata
from sfumato.measures.parameters import BinsOrGrids, ComparedColumns
from sfumato.measures.risk.disclosure.interval_disclosure import IntervalVersion, disclosed_intervals
from sfumato.measures.risk.linkage.distance_linkage import linkage_credit
from sfumato.measures.risk.linkage.linked import owners_of, with_assumption, with_classes
from sfumato.measures.risk.linkage.probabilistic_linkage import probabilistic_credit
from sfumato.measures.risk.linkage.spaces import LinkageDistance

Linkage = Literal["both", "largest", "only"]


@dataclass(frozen=True)
class DisclosureRisk(Measure[Microdata, Compared]):
    """DR in [0, 1]: w1 · interval disclosure + w2 · distance-based linkage + w3 · probabilistic linkage, with `weights` w.

    `linkage="both"` is the weighted mean; `"largest"` puts the weight of both linkages on the better of the two, because an
    intruder would choose it; `"only"` leaves intervals out. Without numbers there are no intervals and the score rests on linkage
    alone (part "intervals counted" is 0). The distance is Gower's as soon as there are categories. Against an
    intruder who holds the original values of the `columns` compared. `version` as in `IntervalDisclosure`, `bins` as in
    `ProbabilisticLinkage`, `distance` as in `DistanceLinkage`. Parts: the three components.

    >>> people = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())
    >>> DisclosureRisk(columns=("age", "income")).score(people, people).parts["interval disclosure"]
    1.0
    """

    weights: Annotated[
        tuple[float, float, float],
        Each(Number(at_least=0), at_least=3, at_most=3, what="three numbers of at least 0 that sum to 1"),
        "the weights of intervals, distance-based linkage and probabilistic linkage",
    ] = (0.5, 0.25, 0.25)
    linkage: Annotated[Linkage, "how the two linkages are put together"] = "both"
    distance: LinkageDistance = "auto"
    version: IntervalVersion = "rank"
    bins: BinsOrGrids = None
    columns: ComparedColumns = None
    key: ClassVar[str] = "disclosure_risk"
    masked: ClassVar[bool] = True

    def coherent(self) -> Iterable[str]:
        if abs(sum(self.weights) - 1.0) > 1e-9:
            yield "weights (of intervals, distance-based and probabilistic linkage) must sum to 1"

    def score(self, original: Microdata, released: Compared) -> Score:
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
    DisclosureRisk(weights, linkage)  # refuses what is no weight or no way to put linkages together
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
