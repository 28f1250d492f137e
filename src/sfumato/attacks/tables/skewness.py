"""Skewness: a class in which a value is far more frequent than overall changes what is believed about its
people.

A share of 1 % in the population that is 50 % in a class tells much, although both values are well represented
there. Li, Li, Venkatasubramanian, "t-closeness: privacy beyond k-anonymity and l-diversity", ICDE 2007.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.adversary import mapped, only
from sfumato.attacks.tables.classes import (
    AttackedAttribute,
    ClassAttack,
    ClassHistogram,
    ReleasedClasses,
    classes_of,
    sensitive_attributes,
    worst,
)
from sfumato.core.declared import require
from sfumato.core.ranges import Number
from sfumato.core.texts import percent
from sfumato.core.view import AttackResult, Criterion
from sfumato.data.masked import TableView
from sfumato.measures.risk.success import share, wilson

#: Shares that somebody wrote down may add up to a little more than 1.
_ROUNDING = 1e-6
#: So that a gain of exactly `notable` counts, whatever floating-point numbers make of the difference.
_TINY = 1e-12


@dataclass(frozen=True)
class Skewness(ClassAttack[Mapping[str | None, float]]):
    """The adversary compares the share of a value of `attribute` in the target's class with its share overall.

    Success is the belief in the value whose share rises most, in the class where it does; blind guessing is
    the belief without the release. A record is counted as affected where the belief in its own value gains `notable` or more.
    `knowledge` may be a mapping of values to prior shares; without it the released table is its own prior.
    """

    criterion: ClassVar[Criterion | None] = "inference"
    of_groups: ClassVar[bool] = True

    attribute: AttackedAttribute = None
    notable: Annotated[float, Number(), "the gain of belief in its own value from which a record is counted"] = 0.2

    helped_by: ClassVar[tuple[str, ...]] = ("prior",)

    def knowledge_from(self, entries: Mapping[str, object]) -> Mapping[str | None, float] | None:
        """How frequent values are, known from elsewhere."""
        only(entries, *self.helped_by)
        prior = mapped(entries, "prior", "values to their shares")
        shares = all(isinstance(n, (int, float)) and not isinstance(n, bool) and 0 <= n <= 1 for n in prior.values())
        require(shares, "knowledge: the shares in prior must be numbers from 0 to 1")
        require(sum(prior.values()) <= 1 + _ROUNDING, "knowledge: the shares in prior sum to more than 1")
        return {value: float(n) for value, n in prior.items()} if entries else None

    def run(self, view: TableView, knowledge: Mapping[str | None, float] | None = None) -> AttackResult:
        """Attack the released table."""
        classes = classes_of(view)
        return worst((self._attack(name, classes, knowledge) for name in sensitive_attributes(view, self.attribute)), view)

    def _attack(self, name: str, classes: ReleasedClasses, known_prior: Mapping[Any, float] | None) -> AttackResult:
        histogram = classes.histogram(name)
        prior = histogram.prior if known_prior is None else _given(known_prior, histogram)
        if not histogram.count.size:
            return AttackResult("Skewness", 0.0, 0.0, (0.0, 1.0), 0, "There are no records.", {"attribute": name})
        size = classes.sizes[histogram.klass]
        posterior = histogram.count / size
        gain = posterior - prior[histogram.value]
        peak = int(np.argmax(gain))
        affected = int(histogram.count[gain >= self.notable - _TINY].sum())
        before, after = float(prior[histogram.value[peak]]), float(posterior[peak])
        rises = f"rises from {percent(before)} to" if percent(before) != percent(after) else "stays at about"
        return AttackResult(
            attack="Skewness",
            success=after,
            baseline=before,
            interval=wilson(float(histogram.count[peak]), int(size[peak])),
            targets=int(size[peak]),
            finding=(
                f"In the most telling class of {int(size[peak]):,} record{'s' * int(size[peak] != 1)}, belief in one value of "
                f"'{name}' {rises} {percent(after)}; for {affected:,} of {classes.records:,} records, belief in the value "
                f"that they have rises by {self.notable * 100:.0f} points or more."
            ),
            details={
                "attribute": name,
                "largest_gain": float(gain[peak]),
                "largest_ratio": _largest_ratio(posterior, prior[histogram.value]),
                "mean_gain": share(float((histogram.count * gain).sum()), classes.records),
                "affected": affected,
            },
        )


def _largest_ratio(posterior: NDArray[np.float64], prior: NDArray[np.float64]) -> float:
    possible = prior > 0
    return float((posterior[possible] / prior[possible]).max()) if possible.any() else 0.0


def _given(prior: Mapping[Any, float], histogram: ClassHistogram) -> NDArray[np.float64]:
    return np.array([float(prior.get(value, 0.0)) for value in histogram.values])
