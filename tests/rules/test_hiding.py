"""Hiding: the worked example of the heuristic, what every method keeps, and what each is better at."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core import registry
from sfumato.core.errors import Infeasible, InputError
from sfumato.core.randomness import default
from sfumato.measures.guarantees.mined_again import still_derived
from sfumato.rules.hiding.base import Working
from sfumato.rules.hiding.greedy import heaviest_pair, supports_within
from tests.examples import examples
from tests.rules.baskets import SEED_BASKETS, counted, hiding_tasks

BASKETS = sf.data.Transactions.of(SEED_BASKETS)
OF_ITEMSETS = sorted(name for name, kind in registry.every("hiding").items() if not kind.of_rules)


@pytest.mark.golden("G-ARH-01")
def test_the_heuristic_goes_down_to_a_and_c_and_takes_the_second_basket() -> None:
    supports = {"".join(each): BASKETS.support(each) for each in (*combinations("abc", 2), ("a", "b", "c"))}
    assert supports == {"ab": 2, "bc": 2, "ac": 3, "abc": 2}
    codes = BASKETS.itemset("abc")
    assert codes is not None
    working = Working(BASKETS, default(1))
    pair = heaviest_pair(codes, supports_within(working, codes))
    assert [BASKETS.items[code] for code in pair] == ["a", "c"]
    outcome = sf.rules.GreedyHiding().run(BASKETS, sf.Hidden([["a", "b", "c"]], 2), seed=1)
    before, after = list(BASKETS.baskets()), list(outcome.result.baskets())
    assert [place for place in range(3) if before[place] != after[place]] == [1]


@pytest.mark.golden("G-ARH-02")
def test_one_step_hides_the_itemset_and_the_tie_is_decided_by_chance() -> None:
    seen = set()
    for seed in range(20):
        after = sf.rules.GreedyHiding().run(BASKETS, sf.Hidden([["a", "b", "c"]], 2), seed=seed).result
        pairs = {"".join(pair): after.support(pair) for pair in combinations("abc", 2)}
        assert (after.support("abc"), after.support("acd")) == (1, 2)
        assert pairs in ({"ab": 1, "ac": 2, "bc": 2}, {"ab": 2, "ac": 2, "bc": 1})
        seen.add(pairs["ab"])
    assert seen == {1, 2}


@pytest.mark.golden("G-ARH-03")
@pytest.mark.parametrize("name", OF_ITEMSETS)
@settings(max_examples=examples(15))
@given(task=hiding_tasks(), seed=st.integers(0, 9))
def test_what_is_hidden_is_mined_no_more_and_nothing_becomes_frequent(name: str, task: Any, seed: int) -> None:
    baskets, hidden = task
    outcome = registry.find("hiding", name)().run(baskets, hidden, seed=seed)
    before, after = counted(baskets, int(hidden.support)), counted(outcome.result, int(hidden.support))
    assert still_derived(outcome.result.baskets(), hidden).failures == 0
    assert not set(hidden.itemsets) & set(after)
    assert set(after) <= set(before)
    assert all(set(new) <= set(old) for new, old in zip(outcome.result.baskets(), baskets.baskets(), strict=True))
    if not set(hidden.itemsets) & set(before):
        assert outcome.result.same_baskets(baskets)


@settings(max_examples=examples(15))
@given(hiding_tasks())
def test_no_method_loses_fewer_itemsets_than_the_exact_one(task: Any) -> None:
    baskets, hidden = task
    lost = {}
    for name in OF_ITEMSETS:
        outcome = registry.find("hiding", name)().run(baskets, hidden, seed=1)
        lost[name] = sf.rules.side_effects(baskets, outcome.result, hidden).lost_itemsets
        if name == "ExactHiding":
            assert outcome.details["optimal"] and outcome.details["lost"] == lost[name] == outcome.details["least_possible"]
    assert min(lost.values()) == lost["ExactHiding"]


def test_e36_subsets_are_taken_of_the_smaller_set() -> None:
    """Taken of the whole set, as the slides print it, the pair need not lie in the triple that was chosen."""
    baskets = sf.data.Transactions.of([list("abcd"), *[list("abc")] * 3, *[list("bd")] * 5])
    codes = baskets.itemset("abcd")
    assert codes is not None
    supports = supports_within(Working(baskets, default(1)), codes)
    triple = max(combinations(codes, 3), key=lambda part: supports[part])
    as_printed = max(combinations(codes, 2), key=lambda part: supports[part])
    assert set(heaviest_pair(codes, supports)) <= set(triple)
    assert not set(as_printed) <= set(triple)
    assert [baskets.items[code] for code in as_printed] == ["b", "d"]
    literal = max(combinations(codes, len(codes) - 1), key=lambda part: supports[part])
    assert len(literal) == 3, "printed so, the set never becomes smaller than three, and the loop does not end"


def test_removing_an_item_can_make_a_rule_strong_which_is_counted() -> None:
    """Dropping a from {a, c, e} lifts the confidence of a → d from 1/2 to 1."""
    baskets = sf.data.Transactions.of([["a", "d"], ["a", "c", "e"]])
    after = sf.data.Transactions.of([["a", "d"], ["c", "e"]])
    effects = sf.rules.side_effects(baskets, after, sf.Hidden([["a", "c"]], 1, 0.8))
    assert effects.ghost_rules == 1 and effects.ghost_itemsets == 0
    assert (effects.items_removed, effects.items_added, effects.baskets_changed) == (1, 0, 1)
    assert effects.dissimilarity == 1 / 5
    assert (effects.itemsets, effects.lost_itemsets) == (9 - 2, 1)  # {a, e}; {a, c} and {a, c, e} had to go


@st.composite
def rule_tasks(draw: st.DrawFn) -> tuple[sf.data.Transactions, sf.Hidden]:
    baskets = draw(st.lists(st.sets(st.sampled_from("abcd")), min_size=3, max_size=14))
    made = sf.data.Transactions.of([*baskets, list("abcd"), []])
    sides = st.permutations("abcd").flatmap(
        lambda order: st.integers(1, 2).map(lambda cut: (sorted(order[:cut]), sorted(order[cut : cut + 1])))
    )
    rules = draw(st.lists(sides, min_size=1, max_size=3))
    return made, sf.Hidden((), draw(st.integers(1, 3)), draw(st.sampled_from((0.3, 0.5, 0.8, 1.0))), rules)


@pytest.mark.parametrize("by", ["consequent", "antecedent"])
@settings(max_examples=examples(15))
@given(task=rule_tasks())
def test_a_hidden_rule_is_weak_or_rare_or_it_is_said_that_it_cannot_be(by: str, task: Any) -> None:
    baskets, hidden = task
    method = registry.make("hiding", {"name": "ConfidenceReduction", "by": by})
    try:
        after = method.run(baskets, hidden).result
    except Infeasible as refusal:
        assert by == "antecedent" and "SupportReduction always can" in str(refusal)
        return
    supports = {each: after.support(each) for sides in hidden.rules for each in (sides[0], (*sides[0], *sides[1]))}
    for left, right in hidden.rules:
        whole, of_left = supports[(*left, *right)], supports[left]
        assert whole < hidden.support or whole / of_left < (hidden.confidence or 1)
    pairs = list(zip(after.baskets(), baskets.baskets(), strict=True))
    assert all(set(new) <= set(old) if by == "consequent" else set(old) <= set(new) for new, old in pairs)


def test_the_verifier_finds_what_is_not_hidden() -> None:
    hidden = sf.Hidden([["a", "b"], ["b", "d"], ["a", "c", "d"]], 2, 0.9, [(["d"], ["a"]), (["c"], ["d"])])
    found = still_derived(SEED_BASKETS, hidden)
    assert (found.itemsets, found.rules, found.listed) == (2, 1, 5)
    assert sf.rules.side_effects(BASKETS, BASKETS, hidden).hiding_failures == 3


def test_what_cannot_be_hidden_is_said_all_at_once_without_the_list() -> None:
    with pytest.raises(InputError, match="1 of 2 itemsets and rules name an item that no basket has") as refused:
        sf.rules.hide(BASKETS, [["a", "secret"], ["a"]], 2, method="ConfidenceReduction")
    assert "secret" not in str(refused.value) and "lowers the confidence of rules alone" in str(refused.value)
    with pytest.raises(InputError, match="more than 3 variables: ExactHiding is for small data"):
        sf.rules.hide(BASKETS, [["a", "c"]], 2, method=sf.rules.ExactHiding(most_variables=3))


def test_discriminating_rules_are_found_and_hidden() -> None:
    people = [["sex=f", "city=x", "credit=no"]] * 8 + [["sex=f", "city=x", "credit=yes"]] * 2
    people += [["sex=m", "city=x", "credit=no"]] * 3 + [["sex=m", "city=x", "credit=yes"]] * 7
    baskets = sf.data.Transactions.of(people)
    found = sf.rules.discriminating(baskets, ["sex=f", "sex=m"], ["credit=no"], 0.1, 0.6)
    assert [(each.rule.antecedent, each.without) for each in found] == [(("city=x", "sex=f"), 0.55), (("sex=f",), 0.55)]
    assert found[0].extended_lift == pytest.approx(0.8 / 0.55)
    hidden = sf.rules.without_discrimination(found, 0.1, 0.6)
    after = sf.rules.hide(baskets, hidden)
    assert sf.rules.discriminating(after.result, ["sex=f", "sex=m"], ["credit=no"], 0.1, 0.6) == []
    assert after.details["side_effects"].hiding_failures == 0
    with pytest.raises(InputError, match="1 items are among both, 1 are in no basket"):
        sf.rules.discriminating(baskets, ["sex=f"], ["sex=f", "gone"], 0.1, 0.6)


@pytest.mark.data
def test_five_itemsets_of_retail_are_hidden_with_few_losses(data_dir: Path) -> None:
    baskets = sf.data.Transactions.read(data_dir / "baskets" / "retail.dat")
    triples = {itemset: count for itemset, count in sf.rules.mine(baskets, 0.005) if len(itemset) == 3}
    hidden = sf.Hidden(sorted(triples, key=lambda each: -triples[each])[:5], 0.005)
    for method, most in (("SupportReduction", 0.22), ("BorderBased", 0.08)):
        effects = sf.rules.hide(baskets, hidden, method=method).details["side_effects"]
        assert (effects.hiding_failures, effects.ghost_itemsets, effects.itemsets) == (0, 0, 555)
        assert effects.lost_share <= most


def test_methods_are_compared_on_one_map() -> None:
    rows = [[x for j, x in enumerate("abcdefgh") if (i * i * (j + 2) + i * (2 * j + 3) + j * j) % 11 < 5] for i in range(60)]
    baskets, hidden = sf.data.Transactions.of(rows), sf.Hidden([["a", "b"], ["c", "d"], ["e", "f", "g"]], 9)
    comparison = sf.workflow.compare_hiding(baskets, hidden, seed=1)
    lost = {each.method.name: each.effects.lost_itemsets for each in comparison.compared}
    assert lost["ExactHiding"] == min(lost.values()) < max(lost.values())
    assert {each.method.name for each in comparison.compared} == set(OF_ITEMSETS)
    losses = [each.loss for each in comparison.compared]
    assert losses == sorted(losses) and all(0 <= each.risk <= 1 for each in comparison.compared)
    drawn = comparison.map()
    assert drawn.startswith("<svg") and "BorderBased" in drawn
    tight = sf.workflow.compare_hiding(baskets, hidden, [sf.rules.BorderBased(rounds=1), {"name": "SupportReduction"}], seed=1)
    assert {each.label for each in tight.compared} == {"BorderBased(rounds=1)", "SupportReduction"}
    with pytest.raises(InputError, match="more than 1 variables"):
        sf.workflow.compare_hiding(baskets, hidden, [sf.rules.ExactHiding(most_variables=1)])
