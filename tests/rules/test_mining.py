"""Mining: three ways of counting agree; closed and maximal itemsets and rules follow from their definitions."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import InputError, ParameterError
from sfumato.measures.guarantees.mined_again import baskets_of_items, mined
from tests.examples import examples
from tests.rules.baskets import counted, transactions


@settings(max_examples=examples(20))
@given(transactions(), st.integers(1, 5))
def test_the_fast_miner_the_plain_one_and_a_count_find_the_same(baskets: sf.data.Transactions, minimum: int) -> None:
    expected = counted(baskets, minimum)
    assert sf.rules.mine(baskets, minimum).by_name() == expected
    assert mined(baskets_of_items(baskets.baskets())[0], minimum) == expected


@settings(max_examples=examples(10))
@given(transactions(), st.integers(1, 4))
def test_closed_and_maximal_itemsets_are_what_they_are_called(baskets: sf.data.Transactions, minimum: int) -> None:
    every = counted(baskets, minimum)
    larger = {each: [other for other in every if set(each) < set(other)] for each in every}
    closed = {each for each in every if all(every[other] < every[each] for other in larger[each])}
    assert set(sf.rules.mine(baskets, minimum, kind="closed").by_name()) == closed
    assert set(sf.rules.mine(baskets, minimum, kind="maximal").by_name()) == {each for each in every if not larger[each]}


@settings(max_examples=examples(10))
@given(transactions(), st.integers(1, 4), st.sampled_from((0.2, 0.5, 2 / 3, 1.0)), st.integers(1, 3))
def test_rules_are_all_that_are_strong(baskets: sf.data.Transactions, minimum: int, confidence: float, most: int) -> None:
    every = counted(baskets, minimum)
    expected = {
        (left, tuple(item for item in whole if item not in left)): every[whole] / every[left]
        for whole in every
        for left in every
        if set(left) < set(whole) and len(whole) - len(left) <= most and every[whole] / every[left] >= confidence
    }
    made = sf.rules.rules(baskets, minimum, confidence, longest_consequent=most)
    assert {rule.sides: rule.confidence for rule in made} == expected
    for rule in made:
        assert rule.lift == pytest.approx(rule.confidence / (every[rule.consequent] / len(baskets)))


def test_a_share_is_rounded_up_exactly() -> None:
    baskets = sf.data.Transactions.of([["a"]] * 3 + [["b"]] * 7)
    assert sf.rules.mine(baskets, 0.3).by_name() == {("a",): 3, ("b",): 7}
    assert sf.rules.mine(baskets, 0.31).by_name() == {("b",): 7}


def test_too_many_itemsets_and_wrong_parameters_are_refused_in_words() -> None:
    baskets = sf.data.Transactions.of([list("abcdef")] * 2)
    with pytest.raises(InputError, match="more than 60 itemsets are frequent: raise the support"):
        sf.rules.mine(baskets, 2, most=60)
    assert len(sf.rules.mine(baskets, 2, most=63)) == 63
    with pytest.raises(ParameterError, match="support must be a number of baskets of at least 1, or a share"):
        sf.rules.mine(baskets, 0)
    with pytest.raises(InputError, match="rules take the frequent itemsets"):
        sf.rules.mine(baskets, 2, kind="closed").rules(0.5)


@pytest.mark.data
def test_retail_has_580_itemsets_of_which_579_have_at_most_four_items(data_dir: Path) -> None:
    baskets = sf.data.Transactions.read(data_dir / "baskets" / "retail.dat")
    assert (len(baskets), len(baskets.items), baskets.codes.size) == (88_162, 16_470, 908_576)
    itemsets = sf.rules.mine(baskets, 0.005)
    assert (itemsets.minimum, len(itemsets), len(sf.rules.mine(baskets, 0.005, longest=4))) == (441, 580, 579)
    frequent = [item for (item, *more), _ in itemsets if not more]
    lists, _ = baskets_of_items(baskets.baskets(), frequent)
    assert mined(lists, 2_000) == sf.rules.mine(baskets, 2_000).by_name()
