"""Background knowledge: values that a target surely does not have, and the values of others, shrink a class.

Knowing that heart disease is rare in one country, or what two colleagues in the same class suffer from,
leaves fewer values. Machanavajjhala et al., TKDD 1(1), 2007; Martin, Kifer, Machanavajjhala, Gehrke, Halpern,
"Worst-case background knowledge for privacy-preserving data publishing", ICDE 2007.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.adversary import mapped, only, target_in, text
from sfumato.attacks.tables.candidates import target_classes
from sfumato.attacks.tables.classes import (
    AttackedAttribute,
    ClassAttack,
    ClassHistogram,
    Ids,
    ReleasedClasses,
    classes_of,
    sensitive_attributes,
    worst,
)
from sfumato.core.declared import Declared, require
from sfumato.core.errors import InputError
from sfumato.core.ranges import Whole
from sfumato.core.texts import percent
from sfumato.core.view import AttackResult, Criterion
from sfumato.data.masked import TableView
from sfumato.measures.risk.success import share, wilson


@dataclass(frozen=True)
class Facts(Declared):
    """What is known about one person: raw quasi-identifiers (`target`), values the person cannot have
    (`excluded`), and how
    many others of the same class are known to have which value (`others`)."""

    target: Annotated[Mapping[str, str | None], "raw quasi-identifiers of the person"] = field(repr=False)
    excluded: Annotated[tuple[str | None, ...], "values that the person cannot have"] = field(default=(), repr=False)
    others: Annotated[Mapping[str | None, int], "how many others of the class are known to have a value"] = field(
        default_factory=lambda: MappingProxyType({}), repr=False
    )


@dataclass(frozen=True)
class BackgroundKnowledge(ClassAttack[Facts]):
    """An adversary who can rule out `exclusions` values for a target and knows the values of `known_others`
    people in its class.

    Success: the share of people whose value of `attribute` is certain once the most helpful such facts are known (both 0:
    homogeneity). Blind guessing: those of them who have the table's most frequent value besides the ruled out ones, which needs
    no classes. With `Facts` as knowledge one person is attacked; success is then the posterior of the likeliest value that is
    left, and blind guessing its share in the table without the excluded values.
    """

    criterion: ClassVar[Criterion | None] = "inference"
    of_groups: ClassVar[bool] = True

    attribute: AttackedAttribute = None
    exclusions: Annotated[int, Whole(at_least=0), "values that the adversary can rule out"] = 1
    known_others: Annotated[int, Whole(at_least=0), "people of the class whose values the adversary knows"] = 0

    helped_by: ClassVar[tuple[str, ...]] = ("target", "excluded", "others")

    def knowledge_from(self, entries: Mapping[str, object]) -> Facts | None:
        """Quasi-identifiers of one person, values the person cannot have, and how many others of the class have which."""
        only(entries, *self.helped_by)
        target = target_in(entries)
        require(bool(target) or not entries, "knowledge: target must say who is attacked, by a quasi-identifier at least")
        excluded: Any = entries.get("excluded", [])
        require(isinstance(excluded, list), "knowledge: excluded must be a list of values that the target cannot have")
        others = mapped(entries, "others", "values to numbers of people")
        counted = all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 1 << 53 for n in others.values())
        require(counted, "knowledge: others must say of how many people each value is known: whole numbers")
        ruled_out = tuple(text(value, "excluded") for value in excluded)
        return Facts(target, ruled_out, {value: int(number) for value, number in others.items()}) if entries else None

    def run(self, view: TableView, knowledge: Facts | None = None) -> AttackResult:
        """Attack everybody with worst-case facts, or one person with the given ones."""
        classes = classes_of(view)
        names = sensitive_attributes(view, self.attribute)
        if knowledge is None:
            return worst((self._everybody(name, classes) for name in names), view)
        return worst((_one_person(name, classes, posterior(view, knowledge, name), knowledge.excluded) for name in names), view)

    def _everybody(self, name: str, classes: ReleasedClasses) -> AttackResult:
        histogram = classes.histogram(name)
        certain = _certain_pairs(histogram, classes, self.exclusions, self.known_others)
        exposed, records = int(histogram.count[certain].sum()), classes.records
        blind = int(histogram.count[certain & _guessed_pairs(histogram, self.exclusions)].sum())
        return AttackResult(
            attack="BackgroundKnowledge",
            success=share(exposed, records),
            baseline=share(blind, records),
            interval=wilson(exposed, records),
            targets=records,
            finding=(
                f"Somebody who can rule out {self.exclusions} value{'s' * (self.exclusions != 1)} and knows "
                f"{self.known_others} other{'s' * (self.known_others != 1)} of a class learns '{name}' for certain about "
                f"{exposed:,} of {records:,} records "
                f"({percent(share(exposed, records))})."
            ),
            details={
                "attribute": name,
                "exclusions": self.exclusions,
                "known_others": self.known_others,
                "exposed": exposed,
                "fewest_values_in_a_class": int(histogram.distinct.min()) if histogram.distinct.size else 0,
            },
        )


def posterior(view: TableView, facts: Facts, attribute: str) -> dict[str | None, float]:
    """What the adversary believes about the target's value, given the facts: value to probability, most
    likely first."""
    classes = classes_of(view)
    histogram = classes.histogram(attribute)
    inside = np.zeros(histogram.classes, dtype=np.bool_)
    inside[target_classes(classes, facts.target)] = True
    left: dict[str | None, float] = {}
    for code, count in zip(histogram.value[inside[histogram.klass]], histogram.count[inside[histogram.klass]], strict=True):
        value = histogram.values[int(code)]
        left[value] = left.get(value, 0.0) + float(count)
    for value, amount in facts.others.items():
        if amount > left.get(value, 0.0):
            raise InputError("the facts contradict the release: more others are known to have a value than the class shows")
        left[value] -= amount
    for value in facts.excluded:
        left.pop(value, None)
    total = sum(left.values())
    if not total:
        raise InputError("the facts contradict the release: no value is left for the target")
    ordered = sorted(((v, c) for v, c in left.items() if c > 0), key=lambda pair: (-pair[1], str(pair[0])))
    return {value: count / total for value, count in ordered}


def _one_person(
    name: str, classes: ReleasedClasses, belief: Mapping[str | None, float], excluded: tuple[str | None, ...]
) -> AttackResult:
    histogram = classes.histogram(name)
    best, top = next(iter(belief.items()))
    possible = sum(float(part) for value, part in zip(histogram.values, histogram.prior, strict=True) if value not in excluded)
    prior = share(float(histogram.prior[histogram.values.index(best)]), possible)
    return AttackResult(
        attack="BackgroundKnowledge",
        success=top,
        baseline=prior,
        interval=wilson(top, 1),
        targets=1,
        finding=(
            f"With these facts {len(belief):,} value{'s remain' if len(belief) != 1 else ' remains'} of '{name}' for the "
            f"target; the likeliest "
            f"has probability {percent(top)} instead of {percent(prior)}."
        ),
        details={"attribute": name, "remaining_values": len(belief), "max_posterior": top},
    )


def _certain_pairs(histogram: ClassHistogram, classes: ReleasedClasses, exclusions: int, others: int) -> NDArray[np.bool_]:
    """For each pair (class, value): do the most helpful facts leave only this value to a person who has it?

    Of the other values of the class the most frequent ones are excluded; the records of the rest must be
    known one by one.
    """
    if not histogram.count.size:
        return np.zeros(0, dtype=np.bool_)
    start, stop = _excluded_pairs(histogram, exclusions)
    running = np.concatenate([[0], np.cumsum(histogram.count)])
    size = classes.sizes[histogram.klass]
    itself = np.arange(histogram.count.size) < stop
    excluded = running[stop] - running[start] - np.where(itself, histogram.count, 0)
    certain: NDArray[np.bool_] = size - histogram.count - excluded <= others
    return certain


def _excluded_pairs(histogram: ClassHistogram, exclusions: int) -> tuple[Ids, Ids]:
    """For each pair (class, value) where the pairs of the values that are excluded begin and end, itself among them or not: the
    first `exclusions` of the class other than this one, as pairs are sorted by frequency."""
    start = histogram.starts[histogram.klass]
    rank = np.arange(histogram.count.size) - start
    reach = np.where(rank < exclusions, exclusions + 1, exclusions)
    return start, np.minimum(start + reach, histogram.starts[histogram.klass + 1])


def _guessed_pairs(histogram: ClassHistogram, exclusions: int) -> NDArray[np.bool_]:
    """For each pair (class, value): is the value the most frequent one of the table besides those that are excluded for it?"""
    start, stop = _excluded_pairs(histogram, exclusions)
    place = np.empty(histogram.prior.size, dtype=np.int64)  # of each value, in the order of guesses
    place[np.argsort(-histogram.prior, kind="stable")] = np.arange(place.size)
    own = place[histogram.value]
    more_frequent = np.zeros(own.size, dtype=np.int64)
    for offset in range(int((stop - start).max(initial=0))):
        other = np.minimum(start + offset, stop - 1)
        more_frequent += (start + offset < stop) & (place[histogram.value[other]] < own)
    guessed: NDArray[np.bool_] = more_frequent == own
    return guessed
