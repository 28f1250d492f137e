"""Differencing of aggregates: sums, means or counts of overlapping groups, subtracted until one person is left.

The mean of n people and the mean of the same people but one give the one: n·mean - (n-1)·mean'. In general the answers are
linear in the values; whose value follows exactly is decided by elimination over the rationals, and where values are
bounded or answers rounded, linear programmes give the interval that is left. Denning, Denning, Schwartz, "The tracker: a
threat to statistical database security", ACM TODS 4(1), 1979. The same elimination guards against it: `dp.SumAuditor`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeGuard, cast

import numpy as np

from sfumato.attacks.adversary import OutputAttack, mapping
from sfumato.attacks.outputs.numeric_input import Real, vector
from sfumato.attacks.outputs.reconstruction import best_single_guess
from sfumato.core import ranges
from sfumato.core.declared import Declared, build, require
from sfumato.core.errors import InputError, ParameterError, Unsupported
from sfumato.core.exact import Number, exact
from sfumato.core.texts import percent
from sfumato.core.view import AttackResult, View
from sfumato.measures.risk.success import share, wilson

#: Groups of people whom no answer tells apart that are solved for, one by one.
MAX_GROUPS = 2_000

Range: TypeAlias = tuple[float, float]
_ANY: Range = (-math.inf, math.inf)


@dataclass(frozen=True)
class Aggregate(Declared):
    """A published number about a group; its `kind` is a "sum" or "mean" of one attribute, or a "count" of those who have a
    property.

    The truth lies within `error` of the `value` (half a unit of the last digit of a rounded number; 0: exact).
    """

    kind: Annotated[Literal["count", "sum", "mean"], "what the number is"]
    value: Annotated[Number, ranges.Number(exact=True), "the number"] = field(repr=False)
    error: Annotated[Number, ranges.Number(at_least=0, exact=True), "how far the truth may be from it"] = 0

    def total(self, people: int) -> tuple[Fraction, Fraction]:
        """The sum over the group, and how far it may be off."""
        factor = people if self.kind == "mean" else 1
        return Fraction(self.value) * factor, Fraction(self.error) * factor

    def per(self, parts: int) -> Aggregate:
        """The same number per part, so that answers in different units can be compared: a year has 12 months."""
        require(parts >= 1, "Aggregate: parts must be at least 1")
        return Aggregate(self.kind, Fraction(self.value) / parts, Fraction(self.error) / parts)


@dataclass(frozen=True, eq=False)
class Membership(Declared):
    """Who is in which group: `groups[i]` are the people behind answer i. `known` are values the adversary has already, its
    own for instance; each value lies between `lowest` and `highest` where they are given (counts: between 0 and 1).
    `truth`, person to value, is not the adversary's: it says what blind guessing would get."""

    groups: Annotated[Sequence[Collection[Hashable]], "the people behind each answer"] = field(repr=False)
    known: Annotated[Mapping[Hashable, Number], "values that the adversary has already, by person"] = field(
        default_factory=lambda: MappingProxyType({}), repr=False
    )
    lowest: Annotated[float | None, "what no value lies below; 0 for counts where left out"] = None
    highest: Annotated[float | None, "what no value lies above; 1 for counts where left out"] = None
    truth: Annotated[Mapping[Hashable, float] | None, "values by person, to score the attack"] = field(default=None, repr=False)


@dataclass(frozen=True)
class AggregateDifferencing(OutputAttack[Sequence[Aggregate], Membership]):
    """The adversary knows who is in each group and combines the published aggregates.

    The view's result is a sequence of `Aggregate`s of one attribute, `knowledge` a `Membership`. Success: the share of
    people (those not known before) whose value is pinned down to within `tolerance` on either side; 0 means exactly.
    Blind guessing: as many of those same people as one guess for all gets (without the truth: as a uniform guess between
    the bounds would).

    >>> answers = (Aggregate("mean", "3300"), Aggregate("mean", "12090.909", error="0.0005"))
    >>> groups = [range(10), range(11)]
    >>> AggregateDifferencing(tolerance=0.01).run(View(answers, None), Membership(groups)).details["pinned_down"]
    1
    """

    tolerance: Annotated[float, ranges.Number(at_least=0), "how close, on either side, counts as pinned down"] = 0.0

    needs: ClassVar[tuple[str, ...]] = ("groups",)
    knows: ClassVar[type[Any]] = Membership

    def fits(self, view: View[object, object]) -> bool:
        """Aggregates of one attribute."""
        return _are_aggregates(view.result) and len({answer.kind == "count" for answer in view.result}) == 1

    def published_from(self, published: object) -> Sequence[Aggregate]:
        """The aggregates."""
        if not isinstance(published, list):
            raise InputError('published must be a list of aggregates, such as {"kind": "mean", "value": 12.5}')
        return [build(Aggregate, mapping(entry, "an aggregate")) for entry in published]

    def knowledge_from(self, entries: Mapping[str, object]) -> Membership:
        """People are texts here, because the keys of a JSON object are."""
        groups = entries.get("groups")
        if not isinstance(groups, list) or not all(isinstance(group, list) for group in groups):
            raise ParameterError("Membership: groups must be a list of lists of people")
        return build(Membership, {**entries, "groups": [[str(person) for person in group] for group in groups]})

    def run(self, view: View[Sequence[Aggregate], object], knowledge: Membership | None = None) -> AttackResult:
        """Find everybody whose value the answers pin down."""
        knowledge = _fitting(view.result, knowledge)
        ranges = values_left(view.result, knowledge)
        pinned = [person for person, (low, high) in ranges.items() if _close(low, high, self.tolerance)]
        rate = share(len(pinned), len(ranges))
        blind = rate * self._guess(view.result, knowledge, pinned)
        return AttackResult(
            attack="AggregateDifferencing",
            success=rate,
            baseline=blind,
            interval=wilson(len(pinned), len(ranges)),
            targets=len(ranges),
            finding=(
                f"{len(view.result):,} aggregates together pin down the value of {len(pinned):,} of {len(ranges):,} people "
                f"({percent(rate)}); of these a guess is right for {percent(share(blind, rate))}."
            ),
            details={
                "answers": len(view.result),
                "pinned_down": len(pinned),
                "bounded": sum(math.isfinite(high - low) for low, high in ranges.values()),
                "tolerance": self.tolerance,
            },
        )

    def _guess(self, answers: Sequence[Aggregate], knowledge: Membership, pinned: Sequence[Hashable]) -> float:
        """How many of those people a blind guess gets: one number for all of them; of one person alone that would be the truth,
        which nobody guesses blindly."""
        values = [] if knowledge.truth is None else [knowledge.truth[person] for person in pinned if person in knowledge.truth]
        if len(values) > 1:
            return best_single_guess(vector(values, "the truth"), self.tolerance)
        low, high = _bounds(answers, knowledge)
        if all(answer.kind == "count" for answer in answers):
            return 0.5
        return min(1.0, 2 * self.tolerance / (high - low)) if high > low else 1.0


def difference(people: int, mean: Number, fewer: int, mean_of_fewer: Number) -> Fraction:
    """The total of those by whom two groups differ, one containing the other: n·mean - n'·mean'."""
    require(people > fewer >= 1, "difference: the second group must be part of the first")
    return people * exact(mean, "mean") - fewer * exact(mean_of_fewer, "mean_of_fewer")


def values_left(answers: Sequence[Aggregate], knowledge: Membership) -> dict[Hashable, Range]:
    """For everybody in a group the least and the greatest value that all answers allow."""
    knowledge = _fitting(answers, knowledge)
    low, high = _bounds(answers, knowledge)
    groups = _indistinguishable(knowledge)
    if len(groups) > MAX_GROUPS:
        raise Unsupported(f"aggregate differencing: the answers tell more than {MAX_GROUPS:,} groups of people apart")
    if not groups:  # everybody is known already
        return {}
    memberships = list(groups)
    sizes = [len(groups[membership]) for membership in memberships]
    programme = _Programme(memberships, sizes, answers, knowledge, (low, high))
    totals = _exact_totals(memberships, answers, knowledge)
    if math.isfinite(low) or math.isfinite(high) or any(answer.error for answer in answers):
        totals = {place: programme.narrowed(place, totals.get(place, _ANY)) for place in range(len(memberships))}
    left: dict[Hashable, Range] = {}
    for place, (membership, size) in enumerate(zip(memberships, sizes, strict=True)):
        least, most = totals.get(place, _ANY)
        # The others of the group take as much, or as little, as they may.
        rest = size - 1
        narrow = (max(low, least - rest * high) if rest else least, min(high, most - rest * low) if rest else most)
        left.update(dict.fromkeys(groups[membership], narrow))
    return left


def _exact_totals(memberships: Sequence[frozenset[int]], answers: Sequence[Aggregate], knowledge: Membership) -> dict[int, Range]:
    """Totals of groups of people that follow by linear combination of the answers; with errors, their range."""
    from sfumato.dp.refute.auditing import audit

    queries = [[place for place, m in enumerate(memberships) if number in m] for number in range(len(answers))]
    answered = [number for number, query in enumerate(queries) if query]
    totals = [_unknown_part(answers[number], knowledge, number) for number in answered]
    ranges: dict[int, Range] = {}
    for disclosure in audit([queries[number] for number in answered]).disclosures if answered else ():
        value = sum((factor * totals[i][0] for i, factor in disclosure.combination), Fraction(0))
        error = sum((abs(factor) * totals[i][1] for i, factor in disclosure.combination), Fraction(0))
        ranges[cast(int, disclosure.person)] = (float(value - error), float(value + error))
    return ranges


class _Programme:
    """The totals of groups of people that fit all answers and bounds, as a linear programme."""

    def __init__(
        self,
        memberships: Sequence[frozenset[int]],
        sizes: Sequence[int],
        answers: Sequence[Aggregate],
        knowledge: Membership,
        bounds: Range,
    ) -> None:
        from scipy.sparse import csr_array, vstack

        answered = [number for number in range(len(answers)) if any(number in m for m in memberships)]
        rows = csr_array(np.array([[float(number in m) for m in memberships] for number in answered]))
        parts = [_unknown_part(answers[number], knowledge, number) for number in answered]
        totals = np.array([float(total) for total, _ in parts])
        # A billionth of slack: an answer that was rounded to a float must not make the programme infeasible.
        slack = np.array([float(error) for _, error in parts]) + 1e-9 * np.maximum(1.0, np.abs(totals))
        self._rows = vstack([rows, -rows], format="csr")
        self._limits = np.concatenate([totals + slack, slack - totals])
        self._bounds = [tuple(None if math.isinf(end) else size * end for end in bounds) for size in sizes]
        self._least(np.zeros(len(memberships)))  # refuses answers that contradict each other

    def narrowed(self, place: int, outer: Range) -> Range:
        """The least and greatest total of one group of people, within what is known of it already."""
        if outer[0] == outer[1]:
            return outer
        cost = np.zeros(len(self._bounds))
        cost[place] = 1.0
        return max(self._least(cost), outer[0]), min(-self._least(-cost), outer[1])

    def _least(self, cost: Real) -> float:
        from scipy.optimize import linprog

        solved = linprog(cost, A_ub=self._rows, b_ub=self._limits, bounds=self._bounds, method="highs")
        if solved.status == 2:
            raise InputError("the aggregates contradict each other or the bounds: no values fit them")
        return float(solved.fun) if solved.status == 0 else -math.inf


def _indistinguishable(knowledge: Membership) -> dict[frozenset[int], list[Hashable]]:
    """People in the same groups throughout: no answer tells them apart, so they are solved for together."""
    memberships: dict[Hashable, set[int]] = {}
    for number, group in enumerate(knowledge.groups):
        for person in group:
            if person not in knowledge.known:
                memberships.setdefault(person, set()).add(number)
    groups: dict[frozenset[int], list[Hashable]] = {}
    for person, membership in memberships.items():
        groups.setdefault(frozenset(membership), []).append(person)
    return groups


def _unknown_part(answer: Aggregate, knowledge: Membership, number: int) -> tuple[Fraction, Fraction]:
    """The sum over those of the group whose value is not known, and how far it may be off."""
    group = set(knowledge.groups[number])
    total, error = answer.total(len(group))
    return total - sum((exact(value, "known") for who, value in knowledge.known.items() if who in group), Fraction(0)), error


def _bounds(answers: Sequence[Aggregate], knowledge: Membership) -> Range:
    counts = all(answer.kind == "count" for answer in answers)
    low = knowledge.lowest if knowledge.lowest is not None else 0.0 if counts else -math.inf
    high = knowledge.highest if knowledge.highest is not None else 1.0 if counts else math.inf
    require(low < high, "Membership: lowest must lie below highest")
    return float(low), float(high)


def _close(low: float, high: float, tolerance: float) -> bool:
    if math.isinf(low) or math.isinf(high):
        return False
    # The same margin as the linear programmes: a billionth of the value.
    return high - low <= 2 * tolerance + 4e-9 * max(1.0, abs(low), abs(high))


def _are_aggregates(answers: object) -> TypeGuard[Sequence[Aggregate]]:
    return isinstance(answers, Sequence) and bool(answers) and all(isinstance(answer, Aggregate) for answer in answers)


def _fitting(answers: Sequence[Aggregate], knowledge: Membership | None) -> Membership:
    if not isinstance(knowledge, Membership):
        raise InputError("aggregate differencing needs a Membership as knowledge: who is in which group")
    if not _are_aggregates(answers):
        raise InputError("aggregate differencing reads a view whose result is a sequence of Aggregate answers")
    rows = isinstance(knowledge.groups, Sequence | np.ndarray)
    listed = rows and all(isinstance(group, Collection) for group in knowledge.groups)
    if not listed or (knowledge.truth is not None and not isinstance(knowledge.truth, Mapping)):
        raise InputError("Membership: groups are a sequence of lists or sets of people, and the truth goes from person to value")
    if len(answers) != len(knowledge.groups) or not all(len(group) for group in knowledge.groups):
        raise InputError(f"each of the {len(answers)} answers needs its group of people, {len(knowledge.groups)} are given")
    if any(answer.kind == "count" for answer in answers) and any(answer.kind != "count" for answer in answers):
        raise Unsupported("aggregate differencing: counts and sums are about different attributes; attack them apart")
    return knowledge
