"""Homogeneity: a class whose records all share one sensitive value gives it away without any record being
found.

Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam, "l-diversity: privacy beyond k-anonymity", TKDD 1(1),
2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfumato.attacks.tables.classes import (
    AttackedAttribute,
    ClassAttack,
    ClassHistogram,
    Ids,
    classes_of,
    sensitive_attributes,
    worst,
)
from sfumato.core.texts import percent
from sfumato.core.view import AttackResult, Criterion
from sfumato.data.masked import TableView
from sfumato.measures.risk.success import share, wilson


@dataclass(frozen=True)
class Homogeneity(ClassAttack[None]):
    """The adversary knows a target's quasi-identifiers and that the target is in the table.

    Success: the share of people whose sensitive value is certain because their class shows only one. Blind
    guessing: the share of all people who are among these *and* have the value that is most frequent in the
    whole table. `attribute=None` attacks every sensitive attribute and reports the one that leaks most.
    """

    criterion: ClassVar[Criterion | None] = "inference"
    of_groups: ClassVar[bool] = True

    attribute: AttackedAttribute = None

    def run(self, view: TableView, knowledge: None = None) -> AttackResult:
        """Attack the released table; needs no further knowledge."""
        classes = classes_of(view)
        names = sensitive_attributes(view, self.attribute)
        return worst((self._attack(name, classes.histogram(name), classes.sizes) for name in names), view)

    def _attack(self, name: str, histogram: ClassHistogram, sizes: Ids) -> AttackResult:
        uniform = np.flatnonzero(histogram.distinct == 1)
        exposed = int(sizes[uniform].sum())
        records = int(sizes.sum())
        rate = share(exposed, records)
        also = histogram.single_known
        missing = f" {also.size:,} more show a single value beside missing ones." if also.size else ""
        return AttackResult(
            attack="Homogeneity",
            success=rate,
            baseline=share(guessed_blindly(histogram, uniform), records),
            interval=wilson(exposed, records),
            targets=records,
            finding=(
                f"{uniform.size:,} of {sizes.size:,} classes show a single value of '{name}': it is certain "
                f"for "
                f"{exposed:,} of {records:,} records ({percent(rate)}).{missing}"
            ),
            details={
                "attribute": name,
                "classes": int(sizes.size),
                "exposed_classes": int(uniform.size),
                "exposed": exposed,
                "single_known_classes": int(also.size),
            },
        )


def guessed_blindly(histogram: ClassHistogram, chosen: Ids) -> int:
    """Records of these classes that have the most frequent value of the whole table."""
    if not histogram.value.size:
        return 0
    common = int(np.argmax(histogram.prior))
    inside = np.zeros(histogram.classes, dtype=np.bool_)
    inside[chosen] = True
    return int(histogram.count[(histogram.value == common) & inside[histogram.klass]].sum())
