"""The laws of adding losses up."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import ParameterError, Unsupported
from sfumato.core.guarantees.loss import ApproxDP, ConcentratedDP, LossGuarantee, PureDP, RenyiDP
from sfumato.dp.accounting.composition import between, for_unit, group, parallel, parts_of, post_processed, repeated, sequential
from sfumato.dp.accounting.conversion import as_approx
from sfumato.dp.accounting.zcdp import epsilon_for
from tests.dp.accounting.precise import gaussian_delta, real

amounts = st.fractions(min_value=0, max_value=5, max_denominator=1000)
chances = st.fractions(min_value=0, max_value=Fraction(1, 10), max_denominator=10**6)
pure = st.builds(PureDP, amounts)
approx = st.builds(ApproxDP, amounts, chances)
zcdp = st.builds(ConcentratedDP, amounts)
renyi = st.builds(RenyiDP, st.just(Fraction(8)), amounts)
one_kind = st.sampled_from([pure, approx, zcdp, renyi]).flatmap(lambda kind: st.lists(kind, min_size=3, max_size=6))
mixed = st.lists(st.one_of(pure, zcdp, renyi), min_size=2, max_size=5)


def at_most(one: LossGuarantee, other: LossGuarantee) -> bool:
    mine, theirs = parts_of(one), parts_of(other)
    return mine.keys() == theirs.keys() and all(mine[name] <= theirs[name] for name in mine)


@given(one_kind)
def test_losses_of_one_kind_add_up_in_any_order_and_grouping(losses: list[LossGuarantee]) -> None:
    whole = sequential(*losses)
    assert whole == sequential(*reversed(losses)) == sequential(sequential(*losses[:2]), *losses[2:])


@given(mixed)
def test_mixed_losses_add_up_in_any_order_and_no_grouping_says_less(losses: list[LossGuarantee]) -> None:
    whole = sequential(*losses)
    assert whole == sequential(*reversed(losses))
    nested = sequential(sequential(*losses[:2]), *losses[2:])
    if type(nested) is type(whole):
        assert at_most(whole, nested)


@given(one_kind, st.data())
def test_one_more_answer_never_costs_less(losses: list[LossGuarantee], data: st.DataObject) -> None:
    kept = data.draw(st.lists(st.sampled_from(losses), min_size=1, max_size=3))
    assert at_most(sequential(*kept), sequential(*kept, losses[0]))
    assert at_most(parallel(*losses), sequential(*losses))


def test_the_mean_five_times_costs_five_times_as_much() -> None:
    assert repeated(PureDP("0.1"), 5) == sequential(*[PureDP("0.1")] * 5) == PureDP("0.5")


def test_disjoint_parts_cost_the_largest_loss() -> None:
    assert parallel(PureDP("0.1"), PureDP("0.3"), PureDP("0.2")) == PureDP("0.3")
    assert parallel(ApproxDP(1, "1e-9"), ApproxDP("0.5", "1e-6")) == ApproxDP(1, "1e-6")
    assert parallel(ConcentratedDP("0.1"), PureDP(1)) == ConcentratedDP("0.5")


def test_where_a_record_is_replaced_two_parts_change() -> None:
    """The old record may lie in one part and the new one in another: the two largest losses add up."""
    losses = [PureDP(amount, neighbours="replace") for amount in ("0.1", "0.3", "0.2")]
    assert parallel(*losses) == PureDP("0.5", neighbours="replace")
    assert parallel(losses[0]) == losses[0]


def test_a_unit_in_several_parts_pays_for_each() -> None:
    losses = [PureDP(1, unit="user"), PureDP(2, unit="user"), PureDP(3, unit="user")]
    assert parallel(*losses, parts=2) == PureDP(5, unit="user")


@given(st.one_of(pure, approx, zcdp, renyi))
def test_a_group_of_one_and_post_processing_change_nothing(loss: LossGuarantee) -> None:
    assert group(loss, 1) == loss == post_processed(loss) == sequential(loss) == parallel(loss)


def test_groups() -> None:
    assert group(PureDP("0.5"), 4) == PureDP(2)
    assert group(ConcentratedDP("0.1"), 3) == ConcentratedDP("0.9")
    assert group(ApproxDP(0, "1e-6"), 3) == ApproxDP(0, "3e-6")
    assert group(ApproxDP(1, 0), 3) == ApproxDP(3, 0)
    assert group(RenyiDP(32, 1), 4) == RenyiDP(8, 9)
    with pytest.raises(Unsupported, match="higher order"):
        group(RenyiDP(4, 1), 4)


@given(st.fractions(min_value=Fraction(1, 1000), max_value=5, max_denominator=1000), st.integers(2, 20))
def test_the_delta_of_a_group_is_rounded_up(epsilon: Fraction, size: int) -> None:
    found = group(ApproxDP(epsilon, "1e-30"), size)
    grown = real(epsilon)
    truth = mpmath.mpf("1e-30") * (mpmath.exp(size * grown) - 1) / (mpmath.exp(grown) - 1)
    assert real(Fraction(found.delta)) >= min(truth, 1)  # type: ignore[attr-defined]
    assert real(Fraction(found.delta)) <= truth * (1 + mpmath.mpf("1e-9"))  # type: ignore[attr-defined]


def test_a_group_too_large_for_any_promise_has_delta_one() -> None:
    assert group(ApproxDP(10, "1e-9"), 1000).delta == 1  # type: ignore[attr-defined]


@given(st.fractions(min_value=Fraction(1, 4), max_value=20, max_denominator=20), st.integers(2, 6), st.sampled_from([1, 2]))
def test_group_delta_holds_for_gaussian_noise(sigma: Fraction, size: int, epsilon: int) -> None:
    """A group of k moves a sum by k: the exact δ at kε is never above what `group` states."""
    from sfumato.dp.accounting.gaussian import gaussian_delta as one

    stated = group(ApproxDP(epsilon, one(epsilon, sigma)), size)
    assert gaussian_delta(Fraction(epsilon * size), sigma, Fraction(size)) <= real(Fraction(stated.delta))  # type: ignore[attr-defined]


def test_add_remove_holds_for_replacement_at_twice_the_price() -> None:
    assert between(PureDP(1), "replace") == PureDP(2, neighbours="replace")
    assert between(ConcentratedDP("0.1"), "replace") == ConcentratedDP("0.4", neighbours="replace")
    stated = between(ApproxDP(1, "1e-6"), "replace")
    assert stated.epsilon == 2  # type: ignore[attr-defined]
    assert float(stated.delta) == pytest.approx(3.718281828459e-6, rel=1e-11)  # type: ignore[attr-defined]
    assert between(PureDP(1), "add_remove") == PureDP(1)


def test_replacement_says_nothing_about_one_more_or_less() -> None:
    with pytest.raises(Unsupported, match="number of units is public"):
        between(PureDP(1, neighbours="replace"), "add_remove")


def test_a_user_with_many_records_is_a_group() -> None:
    assert for_unit(PureDP("0.1"), "user", 5) == PureDP("0.5", unit="user")
    with pytest.raises(Unsupported, match="add_remove"):
        for_unit(PureDP("0.1", neighbours="replace"), "user", 5)


def test_concentrated_losses_meet_approximate_ones_with_a_delta() -> None:
    total = sequential(ApproxDP(1, "1e-6"), ConcentratedDP("0.1"), ConcentratedDP("0.2"), PureDP("0.5"), delta="1e-7")
    assert total == ApproxDP(Fraction(3, 2) + epsilon_for("0.3", "1e-7"), "1.1e-6")
    with pytest.raises(Unsupported, match="name one"):
        sequential(ApproxDP(1, "1e-6"), ConcentratedDP("0.1"))


def test_delta_never_exceeds_one() -> None:
    assert sequential(ApproxDP(1, "0.7"), ApproxDP(1, "0.7")) == ApproxDP(2, 1)


def test_losses_about_different_things_are_not_added() -> None:
    with pytest.raises(ParameterError, match="neighbour relations"):
        sequential(PureDP(1), PureDP(1, neighbours="replace"))
    with pytest.raises(ParameterError, match="different units"):
        parallel(PureDP(1), PureDP(1, unit="user"))
    with pytest.raises(ParameterError, match="no loss"):
        sequential()


@given(st.lists(st.fractions(min_value=Fraction(1, 100), max_value=2, max_denominator=100), min_size=1, max_size=6))
def test_composed_gaussians_really_keep_the_total(rhos: list[Fraction]) -> None:
    """Gaussian answers of ρ each are one Gaussian of the summed ρ: its exact δ is below what the total states."""
    total = as_approx(sequential(*map(ConcentratedDP, rhos)), "1e-6")
    ratio = mpmath.sqrt(2 * real(sum(rhos, Fraction(0))))
    sigma = Fraction(int(mpmath.floor(mpmath.mpf(10) ** 30 / ratio)), 10**30)  # rounded down: more loss, not less
    assert gaussian_delta(Fraction(total.epsilon), sigma, Fraction(1)) <= mpmath.mpf("1e-6")
