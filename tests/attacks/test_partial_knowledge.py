"""A few known items of a set."""

from __future__ import annotations

from itertools import combinations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import attacks
from sfumato.attacks.tables.partial_knowledge import KnownSet, PartialKnowledge, candidates
from sfumato.core.errors import InputError, MissingColumn, ParameterError, Unsupported
from sfumato.core.view import View
from sfumato.data.schema import Column, Schema
from tests.examples import examples

SCHEMA = Schema(
    dataset="baskets", columns={"city": Column(role="quasi"), "basket": Column(type="string", role="quasi", items="|")}
)


def baskets(rows: list[set[str]], cities: list[str] | None = None) -> View:
    texts = ["|".join(sorted(row)) for row in rows]
    return View(pa.table({"city": cities or ["x"] * len(rows), "basket": pa.array(texts, pa.string())}), SCHEMA)


FOUR = [{"a1", "b1", "b2"}, {"a2", "b1"}, {"a2", "b1", "b2"}, {"a1", "a2", "b2"}]
GENERAL = [{"A", "b1", "b2"}, {"A", "b1"}, {"A", "b1", "b2"}, {"A", "b2"}]


@pytest.mark.golden("G-SET-02")
def test_two_items_single_out_who_is_alone_with_them() -> None:
    found = attacks.PartialKnowledge(items=2).run(baskets(FOUR))
    assert found.details["fewest_candidates"] == 1
    assert found.details["below_k"] == 2  # {a1, b1} and {a1, a2} have support 1
    assert found.success == pytest.approx((1 + 1 / 2 + 1 / 2 + 1) / 4)
    assert found.baseline == 0.25


@pytest.mark.golden("G-SET-03")
def test_after_generalising_two_items_leave_two_records() -> None:
    found = PartialKnowledge(items=2).run(baskets(GENERAL))
    assert (found.details["fewest_candidates"], found.details["below_k"]) == (2, 0)


@pytest.mark.golden("G-SET-06")
def test_a_short_set_is_known_by_fewer_items() -> None:
    found = PartialKnowledge(items=2).run(baskets([{"x", "y"}, {"x", "y"}, {"z"}]))
    assert found.details["below_k"] == 1
    assert found.success == pytest.approx((1 / 2 + 1 / 2 + 1) / 3)


def test_one_person_is_looked_up() -> None:
    view = baskets(FOUR, ["x", "x", "y", "y"])
    assert candidates(view, KnownSet(frozenset({"b1"})), "basket").tolist() == [0, 1, 2]
    assert candidates(view, KnownSet(frozenset({"b1"}), {"city": "x"}), "basket").tolist() == [0, 1]
    assert PartialKnowledge().run(view, KnownSet(frozenset({"a1", "b1"}))).success == 1.0
    nobody = PartialKnowledge().run(view, KnownSet(frozenset({"beer"})))
    assert (nobody.success, nobody.details["candidates"]) == (0.0, 0)


sets = st.lists(st.tuples(st.sampled_from("xy"), st.sets(st.sampled_from("abcd"), max_size=4)), min_size=1, max_size=8)


@settings(max_examples=examples(20))
@given(sets, st.integers(0, 3))
def test_candidates_are_those_of_trying_all_choices(rows: list[tuple[str, set[str]]], most: int) -> None:
    view = baskets([row for _, row in rows], [city for city, _ in rows])
    worst, average = 0.0, 0.0
    for city, row in rows:
        options = [set(c) for size in range(min(most, len(row)) + 1) for c in combinations(sorted(row), size)]
        shared = [(len(o), sum(other == city and o <= held for other, held in rows)) for o in options]
        worst += 1 / min(n for _, n in shared)
        longest = [1 / n for size, n in shared if size == min(most, len(row))]
        average += sum(longest) / len(longest)
    found = PartialKnowledge(most).run(view)
    assert found.success == pytest.approx(worst / len(rows))
    assert PartialKnowledge(most, choice="average").run(view).success == pytest.approx(average / len(rows))
    assert PartialKnowledge(most + 1).run(view).success >= found.success - 1e-12


def test_what_cannot_be_attacked_is_said() -> None:
    view = baskets(FOUR)
    with pytest.raises(InputError, match="KnownSet"):
        PartialKnowledge().run(view, {"a1"})
    with pytest.raises(Unsupported, match="holds no sets"):
        PartialKnowledge(column="city").run(view)
    with pytest.raises(MissingColumn):
        PartialKnowledge(column="basin").run(view)
    with pytest.raises(Unsupported, match="0 set-valued columns"):
        PartialKnowledge().run(View(view.result, Schema.of(quasi=["city", "basket"])))
    with pytest.raises(Unsupported, match="assume fewer"):
        PartialKnowledge(items=20).run(baskets([{f"i{n}" for n in range(60)}]))
    assert PartialKnowledge().run(baskets([])).targets == 0
    for wrong in ({"items": -1}, {"choice": "best"}, {"k": 0}):
        with pytest.raises(ParameterError):
            PartialKnowledge(**wrong)  # type: ignore[arg-type]
