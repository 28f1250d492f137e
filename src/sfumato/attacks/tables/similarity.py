"""Similarity: the sensitive values of a class differ, but all mean nearly the same.

Three stomach diseases, three low salaries: the classes are diverse and still tell. Values are similar when
they lie below one node of the attribute's hierarchy, or, for numbers without a hierarchy, within a small part
of the range. Li, Li, Venkatasubramanian, "t-closeness: privacy beyond k-anonymity and l-diversity", ICDE
2007.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from sfumato.attacks.adversary import mapped, only
from sfumato.attacks.tables.classes import (
    AttackedAttribute,
    ClassAttack,
    ClassHistogram,
    Ids,
    ReleasedClasses,
    classes_of,
    released_table,
    sensitive_attributes,
    spread,
    worst,
)
from sfumato.attacks.tables.homogeneity import guessed_blindly
from sfumato.core.declared import require
from sfumato.core.errors import Unsupported
from sfumato.core.ranges import Count, Probability
from sfumato.core.texts import percent
from sfumato.core.view import AttackResult, Criterion
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.masked import TableView
from sfumato.data.texts.values import as_numbers, texts
from sfumato.measures.risk.success import share, wilson


@dataclass(frozen=True)
class Similarity(ClassAttack[Mapping[str | None, str]]):
    """The adversary learns to which group of similar values a target's value of `attribute` belongs.

    `level` is the level of the sensitive attribute's hierarchy whose nodes are the groups; the root is no
    group. `knowledge` may be a mapping of values to group names instead. Without either, numbers within
    `spread` of the table's range are similar. Success: the share of people whose group is certain. Blind
    guessing: those of them who are in the most frequent group.
    """

    attribute: AttackedAttribute = None
    level: Annotated[Count, "the level of the hierarchy whose nodes are the groups"] = 1
    spread: Annotated[Probability, "the part of the range within which numbers are similar"] = 0.1

    criterion: ClassVar[Criterion | None] = "inference"
    helped_by: ClassVar[tuple[str, ...]] = ("groups",)

    def fits_attributes(self, view: TableView, *names: str) -> bool:
        """A hierarchy must say which values are alike, or they are numbers."""
        released = released_table(view)
        return super().fits_attributes(view, *names) and all(
            name in released.hierarchies or as_numbers(texts(released.table.column(name).unique())) is not None for name in names
        )

    def knowledge_from(self, entries: Mapping[str, object]) -> Mapping[str | None, str] | None:
        """Which values are alike."""
        only(entries, *self.helped_by)
        groups = mapped(entries, "groups", "values to the name of their group")
        require(all(isinstance(name, str) for name in groups.values()), "knowledge: the names of groups must be texts")
        return {value: str(name) for value, name in groups.items()} if entries else None

    def run(self, view: TableView, knowledge: Mapping[str | None, str] | None = None) -> AttackResult:
        """Attack the released table."""
        classes = classes_of(view)
        return worst((self._attack(name, classes, knowledge) for name in sensitive_attributes(view, self.attribute)), view)

    def _attack(self, name: str, classes: ReleasedClasses, meanings: Mapping[Any, str] | None) -> AttackResult:
        histogram = classes.histogram(name)
        tree = classes.released.hierarchies.get(name)
        if meanings is not None or tree is not None:
            groups = _groups_given(histogram, meanings) if meanings is not None else _groups_below(histogram, tree, self.level)
            exposed, blind = _one_group(histogram, groups)
            kind = "lie in one group of similar values"
        else:
            exposed, blind = self._narrow(name, histogram)
            kind = f"lie within {percent(self.spread)} of the range of the whole table"
        exposed_records, records = int(classes.sizes[exposed].sum()), classes.records
        return AttackResult(
            attack="Similarity",
            success=share(exposed_records, records),
            baseline=share(blind, records),
            interval=wilson(exposed_records, records),
            targets=records,
            finding=(
                f"In {exposed.size:,} of {classes.sizes.size:,} classes all values of '{name}' {kind}: it "
                f"is known "
                f"roughly for {exposed_records:,} of {records:,} records ({percent(share(exposed_records, records))})."
            ),
            details={"attribute": name, "exposed_classes": int(exposed.size), "exposed": exposed_records},
        )

    def _narrow(self, name: str, histogram: ClassHistogram) -> tuple[Ids, int]:
        numbers = as_numbers(histogram.values)
        if numbers is None:
            raise Unsupported(
                f"Similarity needs to know which values of '{name}' are alike: give the column a hierarchy, "
                f"or pass a mapping "
                "of values to groups as knowledge."
            )
        values = np.array(numbers)
        span = float(np.nanmax(values) - np.nanmin(values)) if np.isfinite(values).any() else 0.0
        low = np.full(histogram.classes, np.inf)
        high = np.full(histogram.classes, -np.inf)
        finite = np.isfinite(values[histogram.value])
        np.minimum.at(low, histogram.klass[finite], values[histogram.value[finite]])
        np.maximum.at(high, histogram.klass[finite], values[histogram.value[finite]])
        gaps = np.zeros(histogram.classes, dtype=np.bool_)
        gaps[histogram.klass[~finite]] = True
        exposed = np.flatnonzero((high - low <= self.spread * span) & ~gaps).astype(np.int64)
        return exposed, _in_best_window(histogram, values, exposed, self.spread * span)


def _groups_given(histogram: ClassHistogram, groups: Mapping[Any, str]) -> Ids:
    names: dict[object, int] = {}
    # a value outside the mapping is alike only to itself
    keys = [("group", groups[value]) if value in groups else ("value", value) for value in histogram.values]
    return np.array([names.setdefault(key, len(names)) for key in keys], dtype=np.int64)


def _groups_below(histogram: ClassHistogram, tree: Hierarchy | None, level: int) -> Ids:
    if tree is None:
        raise Unsupported("this attribute has no hierarchy")
    groups = np.empty(len(histogram.values), dtype=np.int64)
    for i, value in enumerate(histogram.values):
        position = tree.index.get(value)
        climbed = min(level, tree.height)
        if position is not None:
            # the root says nothing: stay below it
            while climbed > 0 and tree.leaf_counts[tree.node_of[climbed, position]] == len(tree.leaves):
                climbed -= 1
        groups[i] = -1 - i if position is None else int(tree.node_of[climbed, position])
    return np.unique(groups, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _one_group(histogram: ClassHistogram, groups: Ids) -> tuple[Ids, int]:
    count = int(groups.max()) + 1 if groups.size else 0
    rows = np.repeat(np.arange(histogram.count.size), histogram.count)
    grouped = spread(histogram.klass[rows], groups[histogram.value[rows]], tuple(map(str, range(count))), histogram.classes)
    exposed = np.flatnonzero(grouped.distinct == 1).astype(np.int64)
    return exposed, guessed_blindly(grouped, exposed)


def _in_best_window(histogram: ClassHistogram, values: Any, exposed: Ids, width: float) -> int:
    """How many of the exposed records a blind guesser gets right by naming the fullest window."""
    inside = np.zeros(histogram.classes, dtype=np.bool_)
    inside[exposed] = True
    totals = np.bincount(histogram.value, weights=histogram.count, minlength=len(histogram.values))
    order = np.argsort(values)
    ordered = values[order]
    ordered = ordered[np.isfinite(ordered)]
    if not ordered.size:
        return 0
    running = np.concatenate([[0.0], np.cumsum(totals[order][: ordered.size])])
    ends = np.searchsorted(ordered, ordered + width, side="right")
    start = int(np.argmax(running[ends] - running[: ordered.size]))
    low, high = ordered[start], ordered[start] + width
    shown = values[histogram.value]
    return int(histogram.count[inside[histogram.klass] & (shown >= low) & (shown <= high)].sum())
