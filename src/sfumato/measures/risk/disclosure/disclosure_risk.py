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
from numpy.typing import NDArray

from sfumato.core.ranges import Each, Number
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, aligned, as_masked
from sfumato.data.microdata import Microdata
from sfumato.measures.parameters import BinsOrGrids, ComparedColumns
from sfumato.measures.risk.disclosure.interval_disclosure import IntervalVersion, disclosed_interval, disclosed_intervals
from sfumato.measures.risk.linkage.distance_linkage import linkage_credit
from sfumato.measures.risk.linkage.linked import blind_pick, owners_of, with_assumption, with_classes
from sfumato.measures.risk.linkage.probabilistic_linkage import probabilistic_links
from sfumato.measures.risk.linkage.spaces import LinkageDistance
from sfumato.measures.risk.success import mean_interval

Real = NDArray[np.float64]
Linkage = Literal["both", "largest", "only", "largest only"]


@dataclass(frozen=True)
class DisclosureRisk(Measure[Microdata, Compared]):
    """DR in [0, 1]: w1 · interval disclosure + w2 · distance-based linkage + w3 · probabilistic linkage, with `weights` w.

    `linkage="both"` is the weighted mean; `"largest"` puts the weight of both linkages on the better of the two, because an
    intruder would choose it; `"only"` and `"largest only"` leave intervals out.
    Without numbers there are no intervals and the score rests on linkage
    alone (part "intervals counted" is 0). The distance is Gower's as soon as there are categories. Against an
    intruder who holds the original values of the `columns` compared. `version` as in `IntervalDisclosure`, `bins` as in
    `ProbabilisticLinkage`, `distance` as in `DistanceLinkage`. Parts: the three components, and the floor of each; the floor is
    put together as the score is. Where distances find more people than agreement weights, the meaning says so.

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
        links = probabilistic_links(left, right, self.bins, owner)
        nearest, weightiest = (
            with_classes(each, masked, left.names) for each in (linkage_credit(left, right, self.distance, owner), links.credit)
        )
        by_distance, by_weight = float(nearest.mean()), float(weightiest.mean())
        intervals = disclosed_intervals(left, right, self.version)
        counted = bool(intervals.by_column) and self.linkage != "only"
        way: Linkage = self._way(counted)
        floors = intervals.floor, blind_pick(right.size, owner), links.floor
        value = min(combined_risk(intervals.value, by_distance, by_weight, self.weights, way), 1.0)
        linked = _linked(nearest, weightiest, self.weights, way)
        parts = {
            "interval disclosure": intervals.value,
            "distance linkage": by_distance,
            "probabilistic linkage": by_weight,
            "intervals counted": float(counted),
            "interval disclosure by chance": floors[0],
            "distance linkage by chance": floors[1],
            "probabilistic linkage by chance": floors[2],
            **links.parts,
        }
        return Score(
            self.key,
            value,
            "lower",
            with_assumption(self._meaning(counted, by_weight < by_distance), released),
            MappingProxyType(parts),
            floor=min(combined_risk(*floors, self.weights, way), 1.0),
            interval=disclosed_interval(left, right, self.version, owner, value, self.weights[0], linked)
            if way in ("both", "largest")
            else mean_interval(linked, owner),
            linked_shares=((by_distance, floors[1]), (by_weight, floors[2])),
        )

    def _way(self, counted: bool) -> Linkage:
        """Without intervals the score rests on linkage alone."""
        if counted:
            return self.linkage
        return "largest only" if self.linkage in ("largest", "largest only") else "only"

    def _meaning(self, counted: bool, nearer: bool) -> str:
        largest = self.linkage in ("largest", "largest only")
        linkage = "the better of two record linkages" if largest else "record linkage by distance and by agreement"
        meaning = f"disclosure risk: {'intervals around masked values, and ' if counted else ''}{linkage}"
        if nearer:
            meaning += "; distances find more people than agreement weights" + (", and count" if largest else "")
        return meaning


def _linked(nearest: Real, weightiest: Real, weights: tuple[float, float, float], linkage: Linkage) -> Real:
    """What linking each record adds to the score."""
    _, second, third = weights
    larger = nearest if nearest.sum() >= weightiest.sum() else weightiest
    if linkage == "largest only":
        return larger
    if linkage == "largest":
        return (second + third) * larger
    if linkage == "only":
        rest = second + third
        return (second * nearest + third * weightiest) / rest if rest else (nearest + weightiest) / 2.0
    return second * nearest + third * weightiest


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
    if linkage == "largest only":
        return max(distance, probabilistic)
    if linkage == "largest":
        return first * interval + (second + third) * max(distance, probabilistic)
    if linkage == "only":
        rest = second + third
        return (second * distance + third * probabilistic) / rest if rest else (distance + probabilistic) / 2.0
    return first * interval + second * distance + third * probabilistic


def overall_score(information_loss: float, disclosure_risk: float) -> float:
    """The mean of loss and risk, by which methods are ranked; the smaller the better."""
    return 0.5 * information_loss + 0.5 * disclosure_risk
