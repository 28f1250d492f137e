"""Membership in aggregates: somebody's record lies nearer to the published means than to those of everybody.

With many attributes the small pull of one record on each mean adds up. Three statistics: the distance of Homer et al.,
"Resolving individuals contributing trace amounts of DNA to highly complex mixtures", PLoS Genetics 4(8), 2008; the inner
product of Dwork, Smith, Steinke, Ullman, Vadhan, "Robust traceability from trace amounts", FOCS 2015; the likelihood ratio
of Sankararaman, Obozinski, Jordan, Halperin, "Genomic privacy and limits of individual detection in a pool", Nature
Genetics 41, 2009.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from sfumato.attacks.adversary import OutputAttack
from sfumato.attacks.outputs.detection import Detection
from sfumato.attacks.outputs.numeric_input import Numbers, Real, are_numbers, matrix, vector
from sfumato.core.declared import Declared
from sfumato.core.errors import InputError
from sfumato.core.ranges import Probability
from sfumato.core.texts import percent
from sfumato.core.view import AttackResult, View
from sfumato.measures.risk.success import share


@dataclass(frozen=True, eq=False)
class ReferencePeople(Declared):
    """Records of people who are not behind the aggregates but are like those who are (`reference`), and the records of
    the targets. Whether a target is a member is not the adversary's: `members` and `others` are apart to score the attack.
    Rows are people, columns the attributes of the published means; a missing cell (NaN) says nothing."""

    reference: Annotated[Any, "records of people who are not behind the aggregates"] = field(repr=False)
    members: Annotated[Any, "records of targets who are behind the aggregates"] = field(repr=False)
    others: Annotated[Any, "records of targets who are not"] = field(repr=False)


@dataclass(frozen=True)
class MembershipInAggregates(OutputAttack[Numbers, ReferencePeople]):
    """The adversary has a target's record, a reference population and the published means.

    The view's result holds one mean per attribute (a frequency where the attribute is 0 or 1), `knowledge` is
    `ReferencePeople`. A target is called a member when its `statistic` ("distance", "inner product", or "likelihood"
    for attributes of 0 and 1) exceeds that of all but a share `false_positives` of the reference people. Success: the
    balanced accuracy over the given members and others. Blind guessing: 1/2.

    >>> rng = np.random.default_rng(1)
    >>> inside, around, outside = (rng.integers(0, 2, (people, 500)) for people in (20, 200, 20))
    >>> found = MembershipInAggregates().run(View(inside.mean(axis=0), None), ReferencePeople(around, inside, outside))
    >>> found.success > 0.9
    True
    """

    statistic: Annotated[Literal["distance", "inner product", "likelihood"], "what a target is judged by"] = "inner product"
    false_positives: Annotated[Probability, "the share of the reference people called members"] = 0.05

    needs: ClassVar[tuple[str, ...]] = ("reference", "members", "others")
    knows: ClassVar[type[Any]] = ReferencePeople

    def fits(self, view: View[object, object]) -> bool:
        """One mean per attribute."""
        return are_numbers(view.result)

    def run(self, view: View[Numbers, object], knowledge: ReferencePeople | None = None) -> AttackResult:
        """Test every target, members and others."""
        if not isinstance(knowledge, ReferencePeople):
            raise InputError("membership in aggregates needs ReferencePeople as knowledge")
        null = self.reference_scores(view.result, knowledge)
        scores = [self.scores(view.result, knowledge.reference, people) for people in (knowledge.members, knowledge.others)]
        threshold = float(np.quantile(null, 1 - self.false_positives, method="higher"))
        detection = Detection(scores[0], scores[1], threshold)
        hits, alarms = share(detection.found, scores[0].size), share(detection.false_alarms, scores[1].size)
        attributes = int(np.size(view.result))
        return AttackResult(
            attack="MembershipInAggregates",
            success=detection.balanced_accuracy,
            baseline=0.5,
            interval=detection.interval,
            targets=int(scores[0].size + scores[1].size),
            finding=(
                f"From {attributes:,} published means {percent(hits)} of the members are recognised, and {percent(alarms)} of "
                f"the others mistaken for members: right in {percent(detection.balanced_accuracy)} of cases, a coin in 50 %."
            ),
            details={
                "statistic": self.statistic,
                "attributes": attributes,
                "reference_people": int(null.size),
                "stated_false_positive_rate": self.false_positives,
                "true_positive_rate": hits,
                "false_positive_rate": alarms,
                "area_under_the_curve": detection.area,
                "advantage_in_hindsight": detection.advantage_in_hindsight,
                "members_below_p_001": int((p_values(scores[0], null) < 0.01).sum()),
            },
        )

    def scores(self, means: object, reference: object, targets: object) -> Real:
        """The statistic of each target; the greater, the more like a member."""
        published = vector(means, "the published means")
        around = matrix(reference, "the reference people", published.size, missing=True)
        return self._statistic(matrix(targets, "the targets", published.size, missing=True), published, _means(around))

    def reference_scores(self, means: object, knowledge: ReferencePeople) -> Real:
        """The statistic of each reference person, measured against the other reference people only."""
        published = vector(means, "the published means")
        people = matrix(knowledge.reference, "the reference people", published.size, missing=True)
        if len(people) < 2:
            raise InputError("the reference people: at least two are needed")
        present = ~np.isnan(people)
        values, counts = np.where(present, people, 0.0), present.sum(axis=0)
        around = _means(people)
        left_out = (values.sum(axis=0) - values) / np.maximum(counts - present, 1)
        return self._statistic(people, published, np.where(present & (counts > 1), left_out, around))

    def _statistic(self, people: Real, published: Real, around: Real) -> Real:
        if self.statistic == "distance":
            parts = np.abs(people - around) - np.abs(people - published)
        elif self.statistic == "inner product":
            parts = (people - around) * (published - around)
        else:
            if ((people != 0) & (people != 1) & ~np.isnan(people)).any():
                raise InputError("the likelihood ratio is for attributes of 0 and 1; use the distance or the inner product")
            # Away from 0 and 1, where a single surprise would decide everything.
            inside, outside = (np.clip(rate, 1e-3, 1 - 1e-3) for rate in (published, around))
            parts = np.where(people == 1, np.log(inside / outside), np.log((1 - inside) / (1 - outside)))
            parts = np.where(np.isnan(people), np.nan, parts)
        summed: Real = np.where(np.isnan(parts), 0.0, parts).sum(axis=1)
        return summed


def p_values(scores: Real, null: Real) -> Real:
    """For each score the chance that a person who is not a member would reach it, by rank among the reference people."""
    reached = null.size - np.searchsorted(np.sort(null), scores, side="left")
    values: Real = (1 + reached) / (1 + null.size)
    return values


def _means(people: Real) -> Real:
    present = ~np.isnan(people)
    if not present.any(axis=0).all():
        raise InputError("the reference people: an attribute is missing for everybody")
    means: Real = np.where(present, people, 0.0).sum(axis=0) / present.sum(axis=0)
    return means
