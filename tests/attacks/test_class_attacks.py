"""Attacks on the classes of one release."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import attacks
from sfumato.attacks.tables.background import posterior
from sfumato.attacks.tables.classes import ClassAttack
from sfumato.core.errors import InputError, MissingColumn, ParameterError, Unsupported
from sfumato.core.registry import every
from sfumato.core.view import Attack, AttackResult, View
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.microdata import ReleasedTable
from sfumato.data.schema import Column, Schema
from sfumato.measures.risk.success import wilson
from tests.attacks.published import SCHEMA, bare, four_anonymous

ON_CLASSES = sorted(name for name, kind in every("attack").items() if issubclass(kind, ClassAttack))
ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyzw")), min_size=1, max_size=25)


def classes_by_hand(rows: list[tuple[str, str]]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for group, value in rows:
        found.setdefault(group, Counter())[value] += 1
    return found


def view_of(rows: list[tuple[str, str]]) -> View:
    return bare({"q": [row[0] for row in rows], "s": [row[1] for row in rows]}, quasi=["q"], sensitive=["s"])


def sound(result: AttackResult) -> None:
    assert 0 <= result.interval[0] <= result.success + 1e-12
    assert result.success - 1e-12 <= result.interval[1] <= 1
    assert 0 <= result.baseline <= 1


@given(ROWS)
def test_homogeneity_counts_the_records_of_classes_with_one_value(rows: list[tuple[str, str]]) -> None:
    found = attacks.Homogeneity().run(view_of(rows))
    by_hand = sum(sum(c.values()) for c in classes_by_hand(rows).values() if len(c) == 1)
    assert found.details["exposed"] == by_hand
    assert found.success == pytest.approx(by_hand / len(rows))
    assert found.baseline <= found.success
    sound(found)


@given(ROWS)
def test_inference_is_right_as_often_as_the_top_value_of_each_class(rows: list[tuple[str, str]]) -> None:
    found = attacks.ProbabilisticInference().run(view_of(rows))
    groups = classes_by_hand(rows).values()
    assert found.success == pytest.approx(sum(max(c.values()) for c in groups) / len(rows))
    assert found.details["max_posterior"] == pytest.approx(max(max(c.values()) / sum(c.values()) for c in groups))
    assert found.baseline == pytest.approx(max(Counter(v for _, v in rows).values()) / len(rows))
    assert found.baseline <= found.success + 1e-12  # knowing the class never hurts
    sound(found)


@given(ROWS)
def test_skewness_is_the_largest_rise_of_a_share(rows: list[tuple[str, str]]) -> None:
    found = attacks.Skewness().run(view_of(rows))
    overall = Counter(value for _, value in rows)
    rises = [
        count / sum(c.values()) - overall[value] / len(rows) for c in classes_by_hand(rows).values() for value, count in c.items()
    ]
    assert found.details["largest_gain"] == pytest.approx(max(rises), abs=1e-12)
    sound(found)


@given(ROWS, st.sampled_from([Fraction(1, 10), Fraction(1, 5), Fraction(1, 2)]))
def test_skewness_counts_the_records_whose_own_value_is_believed_more(rows: list[tuple[str, str]], notable: Fraction) -> None:
    found = attacks.Skewness(notable=float(notable)).run(view_of(rows))
    overall, classes = Counter(value for _, value in rows), classes_by_hand(rows)
    rises = [Fraction(classes[q][s], sum(classes[q].values())) - Fraction(overall[s], len(rows)) for q, s in rows]
    affected = sum(rise >= notable for rise in rises)
    assert found.details["affected"] == affected
    assert found.finding.endswith(
        f"for {affected} of {len(rows)} records, belief in the value that they have rises by {int(notable * 100)} points or more."
    )


@given(ROWS, st.integers(0, 3), st.integers(0, 3))
def test_background_facts_reveal_whoever_has_few_other_values_around(rows: list[tuple[str, str]], out: int, known: int) -> None:
    found = attacks.BackgroundKnowledge(exclusions=out, known_others=known).run(view_of(rows))
    revealed = least = most = 0
    table = Counter(value for _, value in rows)
    for counts in classes_by_hand(rows).values():
        for value, count in counts.items():
            others = sorted((n for v, n in counts.items() if v != value), reverse=True)
            if sum(others[out:]) <= known:
                revealed += count
                blind = [right for each in _most_frequent(counts, value, out) for right in _guesses_right(table, value, each)]
                least, most = least + count * min(blind), most + count * max(blind)
    assert found.details["exposed"] == revealed
    assert least <= round(found.baseline * len(rows)) <= most  # equal numbers leave open which values are ruled out, or guessed
    sound(found)


def _most_frequent(counts: Counter[str], value: str, number: int) -> list[tuple[str, ...]]:
    """The sets of so many other values of a class with the most records."""
    sets = list(combinations([v for v in counts if v != value], min(number, len(counts) - 1)))
    most = max(sum(counts[v] for v in each) for each in sets)
    return [each for each in sets if sum(counts[v] for v in each) == most]


def _guesses_right(table: Counter[str], value: str, excluded: tuple[str, ...]) -> set[bool]:
    """Whether one of the table's most frequent values that are not excluded is this one; both where several are as frequent."""
    left = {v: n for v, n in table.items() if v not in excluded}
    return {v == value for v, n in left.items() if n == max(left.values())}


def test_ruling_a_value_out_needs_no_release() -> None:
    """One class shows what the whole table shows: with one of two values ruled out, everybody knows the other."""
    found = attacks.BackgroundKnowledge().run(view_of([("a", "yes")] * 20 + [("a", "no")] * 80))
    assert (found.success, found.baseline) == (1.0, 1.0)
    facts = attacks.Facts({"q": "a"}, excluded=("no",))
    one = attacks.BackgroundKnowledge().run(view_of([("a", "yes")] * 20 + [("a", "no")] * 80), facts)
    assert (one.success, one.baseline) == (1.0, 1.0)


@given(ROWS)
def test_without_facts_background_knowledge_is_homogeneity(rows: list[tuple[str, str]]) -> None:
    view = view_of(rows)
    assert attacks.BackgroundKnowledge(exclusions=0).run(view).success == attacks.Homogeneity().run(view).success


def test_one_percent_becomes_one_half() -> None:
    """The classic example of skewness: a rare value fills half of a class that is perfectly 2-diverse."""
    rows = [("a", "yes"), ("a", "no")] * 5 + [("b", "no")] * 490
    found = attacks.Skewness().run(view_of(rows))
    assert (found.success, found.baseline) == (pytest.approx(0.5), pytest.approx(0.01))
    assert found.targets == 10
    declared = attacks.Skewness().run(view_of(rows), {"yes": 0.3, "no": 0.7})
    assert declared.baseline in (0.3, 0.7)


def test_facts_about_one_person() -> None:
    view = four_anonymous()
    facts = attacks.Facts({"age": "28", "zip": "13001"}, excluded=("Heart",), others={"Viral": 1})
    belief = posterior(view, facts, "disease")
    assert belief == pytest.approx({"AIDS": 0.5, "Viral": 0.5})
    found = attacks.BackgroundKnowledge().run(view, facts)
    assert found.details["remaining_values"] == 2
    certain = attacks.Facts({"age": "28"}, excluded=("Heart",), others={"Viral": 2})
    assert attacks.BackgroundKnowledge().run(view, certain).success == 1.0


@pytest.mark.parametrize("facts", [{"others": {"Viral": 9}}, {"excluded": ("AIDS", "Heart", "Viral")}])
def test_facts_that_contradict_the_release_are_refused_without_values(facts: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="contradict") as caught:
        attacks.BackgroundKnowledge().run(four_anonymous(), attacks.Facts({"age": "28"}, **facts))
    assert "Viral" not in str(caught.value) and "AIDS" not in str(caught.value)


def stomach_view() -> View:
    tree = Hierarchy.from_levels(
        [
            ["ulcer", "stomach", "*"],
            ["gastritis", "stomach", "*"],
            ["flu", "lungs", "*"],
            ["pneumonia", "lungs", "*"],
        ]
    )
    table = pa.table({"q": list("aabbcc"), "s": ["ulcer", "gastritis", "flu", "ulcer", "flu", "flu"]})
    schema = Schema(columns={"q": Column(role="quasi"), "s": Column(role="sensitive")})
    return View(ReleasedTable(table, schema, {"s": tree}, 6), schema)


def test_different_diseases_of_one_organ_are_similar() -> None:
    found = attacks.Similarity().run(stomach_view())
    assert found.details["exposed_classes"] == 2
    assert found.success == pytest.approx(4 / 6)
    # the root is no group: climbing above it changes nothing
    assert attacks.Similarity(level=9).run(stomach_view()).success == found.success
    alike = attacks.Similarity().run(stomach_view(), {"flu": "bad", "ulcer": "bad", "gastritis": "bad"})
    assert alike.success == 1.0


def test_numbers_close_together_are_similar() -> None:
    view = bare({"q": list("aabb"), "s": [1000, 1050, 1000, 9000]}, quasi=["q"], sensitive=["s"])
    found = attacks.Similarity().run(view)
    assert found.details["exposed_classes"] == 1
    assert found.baseline <= found.success == pytest.approx(0.5)
    with pytest.raises(Unsupported, match="hierarchy"):
        attacks.Similarity().run(view_of([("a", "x"), ("b", "y")]))


def test_several_sensitive_attributes_report_the_worst() -> None:
    view = bare({"q": list("aabb"), "s": list("xyxy"), "t": list("uuvv")}, quasi=["q"], sensitive=["s", "t"])
    found = attacks.Homogeneity().run(view)
    assert found.details["attribute"] == "t"
    assert found.details["success_by_attribute"] == {"s": 0.0, "t": 1.0}
    assert attacks.Homogeneity("s").run(view).success == 0.0


@pytest.mark.parametrize("name", ON_CLASSES)
def test_attacks_say_what_they_miss(name: str) -> None:
    attack: Attack = getattr(attacks, name)()
    with pytest.raises(Unsupported, match="no sensitive attribute"):
        attack.run(bare({"q": ["a"]}, quasi=["q"]))
    with pytest.raises(MissingColumn, match="'gone'"):
        getattr(attacks, name)(attribute="gone").run(four_anonymous())
    with pytest.raises(InputError, match="released table"):
        attack.run(View([1, 2], SCHEMA))


@pytest.mark.parametrize("name", ON_CLASSES)
@pytest.mark.parametrize("values", [[], [None], [None, None], ["CANARY-7", "CANARY-8"], ["CANARY"] * 3])
def test_odd_tables_are_attacked_without_naming_a_value(name: str, values: list[str | None]) -> None:
    table = pa.table({"q": pa.array(["g"] * len(values), pa.string()), "s": pa.array(values, pa.string())})
    schema = Schema.of(quasi=["q"], sensitive=["s"])
    knowledge = dict.fromkeys(values, "group") if name == "Similarity" else None
    found = getattr(attacks, name)().run(View(table, schema), knowledge)
    sound(found)
    assert "CANARY" not in found.finding + repr(found.details) + repr(found)


def test_a_table_without_quasi_identifiers_is_one_class() -> None:
    found = attacks.ProbabilisticInference().run(bare({"s": list("xxy")}, quasi=[], sensitive=["s"]))
    assert found.success == found.baseline == pytest.approx(2 / 3)


def test_parameters_are_checked() -> None:
    for wrong in (
        lambda: attacks.ProbabilisticInference(likely=0),
        lambda: attacks.BackgroundKnowledge(exclusions=-1),
        lambda: attacks.Similarity(level=0),
        lambda: attacks.Similarity(spread=1.5),
    ):
        with pytest.raises(ParameterError):
            wrong()


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (10, 10), (3, 10), (0, 1), (2.5, 7)])
def test_wilson_agrees_with_the_other_implementation(hits: float, trials: int) -> None:
    low, high = wilson(hits, trials)
    assert low <= hits / trials <= high
    if hits == int(hits):
        from scipy.stats import binomtest

        oracle = binomtest(int(hits), trials).proportion_ci(0.95, method="wilson")
        assert (low, high) == pytest.approx((oracle.low, oracle.high), abs=1e-9)


def test_nothing_is_known_without_trials() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


def test_every_name_of_the_table_loads() -> None:
    for name in attacks.__all__:
        assert getattr(attacks, name).__name__ == name
    with pytest.raises(AttributeError):
        _ = attacks.Nothing


def test_a_class_like_the_table_is_not_said_to_raise_belief() -> None:
    finding = attacks.Skewness().run(view_of([("a", "yes"), ("a", "no")] * 5)).finding
    assert "belief in one value of 's' stays at about 50 %" in finding
