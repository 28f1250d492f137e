"""Spending policies and the budget as a value."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import BudgetRefused, ParameterError, Unsupported
from sfumato.core.guarantees.loss import ApproxDP, ConcentratedDP, PureDP
from sfumato.dp.accounting.composition import parts_of, sequential
from sfumato.dp.accounting.policies import Budget, GeometricPolicy, UniformPolicy, share
from sfumato.dp.accounting.predicates import equals


@pytest.mark.golden("G-DP-22")
def test_three_questions_under_a_geometric_policy() -> None:
    policy = GeometricPolicy(PureDP(1))
    assert [amount.epsilon for amount in islice(policy, 3)] == [Fraction(1, 2), Fraction(1, 4), Fraction(1, 8)]  # type: ignore[attr-defined]
    assert policy.spent(3) == PureDP("0.875")


@given(st.fractions(min_value=Fraction(1, 100), max_value=10, max_denominator=100), st.integers(1, 300))
def test_a_uniform_policy_spends_exactly_the_total(total: Fraction, questions: int) -> None:
    for budget in (PureDP(total), ConcentratedDP(total), ApproxDP(total, "1e-6")):
        assert sequential(*UniformPolicy(budget, questions)) == budget


@given(st.fractions(min_value=Fraction(1, 100), max_value=Fraction(99, 100), max_denominator=100))
def test_a_geometric_policy_never_exhausts_the_total(fraction: Fraction) -> None:
    amounts = list(GeometricPolicy(ApproxDP(1, "1e-6"), fraction))
    total = parts_of(sequential(*amounts[:20]))
    assert total["epsilon"] < 1 and total["delta"] < Fraction(1, 10**6)
    assert len(amounts) > 20 and all(one.epsilon > other.epsilon for one, other in zip(amounts, amounts[1:], strict=False))  # type: ignore[attr-defined]


def test_shares_are_exact() -> None:
    assert share(ApproxDP(1, "1e-6"), "1/3") == ApproxDP("1/3", Fraction(1, 3 * 10**6))
    with pytest.raises(ParameterError, match="between 0 and 1"):
        share(PureDP(1), 2)


@pytest.mark.parametrize("make", [lambda: UniformPolicy(PureDP(1), 0), lambda: GeometricPolicy(PureDP(1), 1)])
def test_policies_that_cannot_be_followed_are_refused(make: object) -> None:
    with pytest.raises(ParameterError):
        make()  # type: ignore[operator]


def test_a_budget_is_a_value_that_refuses_too_much() -> None:
    budget = Budget(PureDP(1))
    after = budget.spend(PureDP("0.6"))
    assert budget.remaining == PureDP(1) and after.remaining == PureDP("0.4") and after.spent == PureDP("0.6")
    assert after.affords(PureDP("0.4")) and not after.affords(PureDP("0.5"))
    with pytest.raises(BudgetRefused, match="epsilon = 0.4 is left"):
        after.spend(PureDP("0.5"))


def test_questions_about_disjoint_rows_share_a_budget() -> None:
    budget = Budget(PureDP(1)).spend(PureDP(1), equals("hiv", "positive")).spend(PureDP(1), equals("hiv", "negative"))
    assert budget.remaining == PureDP(0)
    assert not budget.affords(PureDP("0.1"), equals("age", 40))


def test_users_share_a_budget_only_by_what_is_constant_per_user() -> None:
    question = (PureDP("0.6", unit="user"), equals("town", "Rome"))
    loose = Budget(PureDP(1, unit="user")).spend(*question)
    assert not loose.affords(PureDP("0.6", unit="user"), equals("town", "Oslo"))
    strict = Budget(PureDP(1, unit="user"), constant=frozenset({"town"})).spend(*question)
    assert strict.affords(PureDP("0.6", unit="user"), equals("town", "Oslo"))


def test_pure_losses_are_paid_from_any_budget_and_others_only_from_their_own() -> None:
    assert Budget(ConcentratedDP(1)).spend(PureDP(1)).remaining == ConcentratedDP("0.5")
    assert Budget(ApproxDP(2, "1e-6")).spend(PureDP(1)).remaining == ApproxDP(1, "1e-6")
    with pytest.raises(Unsupported, match="cannot be paid"):
        Budget(PureDP(1)).affords(ConcentratedDP("0.1"))


@given(st.lists(st.fractions(min_value=0, max_value=1, max_denominator=20), max_size=12))
def test_whatever_is_asked_the_budget_is_never_overspent(costs: list[Fraction]) -> None:
    budget = Budget(PureDP(1))
    for cost in costs:
        try:
            budget = budget.spend(PureDP(cost))
        except BudgetRefused:
            assert Fraction(budget.spent.epsilon) + cost > 1  # type: ignore[attr-defined]
    assert Fraction(budget.spent.epsilon) + Fraction(budget.remaining.epsilon) == 1  # type: ignore[attr-defined]
