"""Aggregates of overlapping groups, subtracted until one person is left."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import sfumato as sf
from sfumato import attacks
from sfumato.attacks.outputs.aggregate_differencing import Aggregate, AggregateDifferencing, Membership, difference, values_left
from sfumato.core.errors import InputError, ParameterError, Unsupported
from sfumato.core.view import View
from tests.examples import examples

D10 = [1000, 2000, 3000, 2000, 1000, 6000, 2000, 10000, 2000, 4000]


@pytest.mark.golden("G-ATK-04")
def test_two_means_give_the_one_salary() -> None:
    with_the_rich = [*D10, 100_000]
    assert difference(11, Fraction(sum(with_the_rich), 11), 10, 3300) == 100_000
    assert float(difference(11, "12090.909", 10, 3300)) == pytest.approx(100_000, abs=0.01)
    answers = (Aggregate("mean", Fraction(sum(D10), 10)), Aggregate("mean", Fraction(sum(with_the_rich), 11)))
    groups = [range(10), range(11)]
    found = attacks.AggregateDifferencing().run(View(answers, None), Membership(groups))
    assert found.success == pytest.approx(1 / 11)
    assert (found.baseline, found.targets, found.details["pinned_down"]) == (0.0, 11, 1)
    assert values_left(answers, Membership(groups))[10] == (100_000, 100_000)
    assert "100" not in found.finding.replace("100 %", "")


@pytest.mark.golden("G-ATK-05")
def test_a_yearly_mean_per_month() -> None:
    assert round(float(Aggregate("mean", 38_878).per(12).value), 2) == 3239.83
    assert float(Aggregate("mean", 38_878, error=6).per(12).error) == 0.5


def test_a_rounded_answer_pins_down_to_its_rounding() -> None:
    answers = (Aggregate("mean", 3300), Aggregate("mean", "12090.909", error="0.0005"))
    low, high = values_left(answers, Membership([range(10), range(11)]))[10]
    assert low <= 100_000 <= high
    assert high - low == pytest.approx(0.011, rel=1e-3)
    assert AggregateDifferencing().run(View(answers, None), Membership([range(10), range(11)])).success == 0
    assert AggregateDifferencing(tolerance=0.01).run(View(answers, None), Membership([range(10), range(11)])).success > 0


def test_own_value_and_bounds_narrow_what_is_left() -> None:
    answers = (Aggregate("sum", 30),)
    assert values_left(answers, Membership([["me", "you"]], known={"me": 10}))["you"] == (20, 20)
    open_ended = values_left(answers, Membership([["me", "you"]]))["you"]
    assert open_ended == (-math.inf, math.inf)
    assert values_left(answers, Membership([["me", "you"]], lowest=0, highest=25))["you"] == pytest.approx((5, 25))
    assert values_left(answers, Membership([["me", "you"]], lowest=0))["you"] == pytest.approx((0, 30))


def test_a_count_of_nobody_or_everybody_tells_about_each() -> None:
    for value in (0, 3):
        found = AggregateDifferencing().run(View((Aggregate("count", value),), None), Membership(["abc"]))
        assert (found.success, found.baseline) == (1.0, 0.5)
    assert AggregateDifferencing().run(View((Aggregate("count", 1),), None), Membership(["abc"])).success == 0
    told = Membership(["abc"], truth={"a": 0, "b": 0, "c": 0})
    assert AggregateDifferencing().run(View((Aggregate("count", 0),), None), told).baseline == 1.0


def test_many_people_in_two_groups_are_two_unknowns() -> None:
    people = range(100_000)
    answers = (Aggregate("sum", 10**5), Aggregate("sum", 10**5 - 7))
    found = AggregateDifferencing().run(View(answers, None), Membership([people, people[:-1]], lowest=0))
    assert found.details["pinned_down"] == 1


values = st.lists(st.integers(0, 4), min_size=5, max_size=5)
memberships = st.lists(st.sets(st.integers(0, 4), min_size=1), min_size=1, max_size=5)


@settings(max_examples=examples(15))
@given(values, memberships)
def test_without_bounds_those_are_found_whose_value_the_auditor_would_protect(truth: list[int], groups: list[set[int]]) -> None:
    answers = [Aggregate("mean", Fraction(sum(truth[p] for p in group), len(group))) for group in groups]
    left = values_left(answers, Membership(groups))
    told = {person for person, (low, high) in left.items() if low == high}
    rank = np.linalg.matrix_rank
    matrix = np.array([[float(p in group) for p in range(5)] for group in groups])
    spanned = {p for p in range(5) if rank(np.vstack([matrix, np.eye(5)[p]])) == rank(matrix)}
    assert told == spanned
    assert all(left[p] == (truth[p], truth[p]) for p in told)
    assert sf.dp.audit([sorted(group) for group in groups]).allowed == (not told)


@settings(max_examples=examples(15))
@given(values, memberships, st.sampled_from([0, 1]))
def test_with_bounds_the_ranges_are_those_of_one_unknown_per_person(truth: list[int], groups: list[set[int]], error: int) -> None:
    answers = [Aggregate("sum", sum(truth[p] for p in group), error=error) for group in groups]
    left = values_left(answers, Membership(groups, lowest=0, highest=4))
    matrix = np.array([[float(p in group) for p in range(5)] for group in groups])
    totals = matrix @ truth
    for person, (low, high) in left.items():
        ends = []
        for sign in (1, -1):
            cost = sign * np.eye(5)[int(str(person))]
            limits = np.concatenate([totals + error, error - totals])
            ends.append(sign * linprog(cost, np.vstack([matrix, -matrix]), limits, bounds=(0, 4)).fun)
        assert (low, high) == pytest.approx(tuple(ends), abs=1e-6)
        assert low - 1e-6 <= truth[int(str(person))] <= high + 1e-6


def test_what_cannot_be_attacked_is_said() -> None:
    view = View((Aggregate("sum", 1),), None)
    with pytest.raises(InputError, match="Membership"):
        AggregateDifferencing().run(view)
    with pytest.raises(InputError, match="sequence of Aggregate"):
        AggregateDifferencing().run(View((1, 2), None), Membership(["a", "b"]))
    for groups in (["a", "b"], [""]):
        with pytest.raises(InputError, match="needs its group"):
            AggregateDifferencing().run(view, Membership(groups))
    with pytest.raises(Unsupported, match="attack them apart"):
        AggregateDifferencing().run(View((Aggregate("sum", 1), Aggregate("count", 1)), None), Membership(["ab", "a"]))
    with pytest.raises(InputError, match="contradict"):
        values_left((Aggregate("count", 5),), Membership(["ab"]))
    with pytest.raises(InputError, match="contradict"):
        values_left((Aggregate("sum", 5), Aggregate("mean", 3)), Membership(["ab", "ab"]))
    with pytest.raises(ParameterError, match="lowest"):
        values_left((Aggregate("sum", 5),), Membership(["ab"], lowest=2, highest=1))
    for wrong in (lambda: Aggregate("median", 1), lambda: Aggregate("sum", 1, error=-1), lambda: AggregateDifferencing(-1)):  # type: ignore[arg-type]
        with pytest.raises(ParameterError):
            wrong()
    with pytest.raises(ParameterError, match="part of the first"):
        difference(3, 1, 3, 1)
    with pytest.raises(ParameterError, match="parts"):
        Aggregate("sum", 1).per(0)


def test_nobody_is_left_to_attack_when_all_are_known() -> None:
    found = AggregateDifferencing().run(View((Aggregate("sum", 3),), None), Membership(["ab"], known={"a": 1, "b": 2}))
    assert (found.targets, found.success, found.interval) == (0, 0.0, (0.0, 1.0))


def test_no_refusal_repeats_a_value() -> None:
    answers = View((Aggregate("sum", 3), Aggregate("sum", 1)), None)
    secret: Any = {1: "canary-7391", 2: "x"}
    with pytest.raises(InputError) as refused:
        AggregateDifferencing().run(answers, Membership([[1, 2], [1]], truth=secret))
    assert "canary" not in str(refused.value) and refused.value.__suppress_context__


def test_what_is_no_sequence_is_refused() -> None:
    with pytest.raises(InputError, match="sequence of Aggregate"):
        AggregateDifferencing().run(View(5, None), Membership([[1]]))
    unlisted: list[Any] = [[(person for person in "ab")], [3], (group for group in ("ab",))]
    for groups in unlisted:
        with pytest.raises(InputError, match="lists or sets of people"):
            AggregateDifferencing().run(View((Aggregate("sum", 3),), None), Membership(groups))
    with pytest.raises(InputError, match="from person to value"):
        AggregateDifferencing().run(View((Aggregate("sum", 3),), None), Membership(["a"], truth=[3]))  # type: ignore[arg-type]
    rows = np.array([[1, 2], [1, 3]])
    assert set(values_left((Aggregate("sum", 3), Aggregate("sum", 4)), Membership(rows))) == {1, 2, 3}  # type: ignore[arg-type]
