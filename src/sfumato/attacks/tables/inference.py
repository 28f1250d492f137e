"""Probabilistic inference: guess the most frequent sensitive value of the target's class.

A class with many distinct values protects little when one of them has nearly all its records.
Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam, "l-diversity: privacy beyond k-anonymity", TKDD 1(1),
2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from sfumato.attacks.tables.classes import (
    AttackedAttribute,
    ClassAttack,
    ReleasedClasses,
    classes_of,
    sensitive_attributes,
    worst,
)
from sfumato.core.ranges import PositiveShare
from sfumato.core.texts import percent
from sfumato.core.view import AttackResult, Criterion
from sfumato.data.masked import TableView
from sfumato.measures.risk.success import share, wilson


@dataclass(frozen=True)
class ProbabilisticInference(ClassAttack[None]):
    """The adversary names the most frequent value of `attribute` in the target's class.

    Success is the share of people for whom that is right; blind guessing names the most frequent value of the
    whole table. `likely` is the posterior from which a value counts as practically known.
    """

    criterion: ClassVar[Criterion | None] = "inference"
    of_groups: ClassVar[bool] = True

    attribute: AttackedAttribute = None
    likely: Annotated[PositiveShare, "the posterior from which a value counts as practically known"] = 0.8

    def run(self, view: TableView, knowledge: None = None) -> AttackResult:
        """Attack the released table; needs no further knowledge."""
        classes = classes_of(view)
        return worst((self._attack(name, classes) for name in sensitive_attributes(view, self.attribute)), view)

    def _attack(self, name: str, classes: ReleasedClasses) -> AttackResult:
        histogram = classes.histogram(name)
        right = histogram.count[histogram.top] if histogram.count.size else np.zeros(0, dtype=np.int64)
        posterior = right / classes.sizes
        likely = int(classes.sizes[posterior >= self.likely].sum())
        correct, records = int(right.sum()), classes.records
        highest = float(posterior.max()) if posterior.size else 0.0
        blind = float(histogram.prior.max()) if histogram.prior.size else 0.0
        return AttackResult(
            attack="ProbabilisticInference",
            success=share(correct, records),
            baseline=blind,
            interval=wilson(correct, records),
            targets=records,
            finding=(
                f"Naming the most frequent value of '{name}' in each class is right for "
                f"{percent(share(correct, records))} "
                f"of the records, without the release for {percent(blind)}; the surest class gives "
                f"{percent(highest)}, and "
                f"{likely:,} of {records:,} records are in classes at {percent(self.likely)} or more."
            ),
            details={
                "attribute": name,
                "max_posterior": highest,
                "likely": self.likely,
                "practically_known": likely,
            },
        )
