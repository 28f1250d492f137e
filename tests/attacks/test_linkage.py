"""Joining a release with a register."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import attacks
from sfumato.core.errors import InputError, MissingColumn
from sfumato.core.view import View
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.microdata import ReleasedTable, ShownValue
from sfumato.data.schema import Column, Schema
from tests.attacks.published import bare, four_anonymous

AGES = Hierarchy.from_levels([[str(a), f"{a // 5 * 5}-{a // 5 * 5 + 4}", f"{a // 10}*", "*"] for a in range(20, 40)])
CITIES = Hierarchy.from_levels([["Ulm", "south", "*"], ["Bonn", "west", "*"], ["Köln", "west", "*"]])
SCHEMA = Schema.of(quasi=["age", "city"], sensitive=["s"])


def published(rows: list[tuple[str, str]]) -> View:
    table = pa.table(
        {
            "age": pa.array([row[0] for row in rows], pa.string()),
            "city": pa.array([row[1] for row in rows], pa.string()),
            "s": ["x"] * len(rows),
        }
    )
    return View(ReleasedTable(table, SCHEMA, {"age": AGES, "city": CITIES}, len(rows)), SCHEMA)


@st.composite
def raw_and_shown(draw: st.DrawFn) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    people = draw(st.lists(st.tuples(st.integers(20, 39), st.sampled_from(CITIES.leaves)), min_size=1, max_size=15))
    shown = [
        (
            AGES.generalise(str(age), draw(st.integers(0, AGES.height))),
            CITIES.generalise(city, draw(st.integers(0, CITIES.height))),
        )
        for age, city in people
    ]
    return [(str(age), city) for age, city in people], shown  # type: ignore[misc, return-value]


@given(raw_and_shown())
def test_a_person_matches_exactly_the_records_that_may_be_theirs(
    case: tuple[list[tuple[str, str]], list[tuple[str, str]]],
) -> None:
    raw, shown = case
    view = published(shown)
    meaning = view.result.shown
    matches = [sum(age in meaning["age"][a].leaves and city in meaning["city"][c].leaves for a, c in shown) for age, city in raw]
    register = pa.table({"age": [int(age) for age, _ in raw], "city": [city for _, city in raw]})
    found = attacks.Linkage().run(view, register)
    assert found.details["expected_correct"] == pytest.approx(sum(1 / n for n in matches))
    assert found.details["identified"] == sum(n == 1 for n in matches)
    assert found.details["smallest_candidate_group"] == min(matches)
    assert found.details["without_match"] == 0  # everybody generalised matches at least the own record
    assert found.baseline == pytest.approx(1 / len(shown))
    assert found.interval[0] <= found.success <= found.interval[1]


def test_raw_records_are_identified_and_general_ones_are_not() -> None:
    register = attacks.Register(
        pa.table({"name": ["A", "B", "C"], "years": [21, 22, 35], "town": ["Ulm", "Bonn", "Köln"]}),
        columns={"age": "years", "city": "town"},
    )
    raw = attacks.Linkage().run(published([("21", "Ulm"), ("22", "Bonn"), ("35", "Köln")]), register)
    assert (raw.success, raw.details["identified"]) == (1.0, 3)
    general = attacks.Linkage().run(published([("2*", "*"), ("2*", "*"), ("3*", "west")]), register)
    assert general.details["identified"] == 1
    assert general.success == pytest.approx((0.5 + 0.5 + 1) / 3)


def test_people_who_did_not_take_part_have_no_match() -> None:
    found = attacks.Linkage().run(published([("21", "Ulm")]), pa.table({"age": [21, 30, 99], "city": ["Ulm", "Ulm", "Oslo"]}))
    assert found.details["without_match"] == 2
    assert found.details["identified"] == 1


def test_the_four_anonymous_table_leaves_four_candidates() -> None:
    found = attacks.Linkage().run(four_anonymous(), pa.table({"zip": ["13053", "13068"], "age": [28, 36]}))
    assert found.details["identified"] == 0
    assert found.details["smallest_candidate_group"] == 4
    assert (found.success, found.baseline) == (pytest.approx(0.25), pytest.approx(1 / 12))


def test_ranges_made_by_partitioning_match_the_numbers_inside() -> None:
    schema = Schema.of(quasi=["age"])
    ranges = {
        "age": {
            "[20, 30)": ShownValue(0.5, 10, frozenset(), bounds=(20.0, 30.0)),
            "[25, 40)": ShownValue(0.5, 15, frozenset(), bounds=(25.0, 40.0)),
        }
    }
    table = pa.table({"age": ["[20, 30)", "[20, 30)", "[25, 40)"]})
    tree = Hierarchy.from_levels([[str(a), "*"] for a in range(20, 40)])
    view = View(ReleasedTable(table, schema, {"age": tree}, 3, ranges), schema)
    found = attacks.Linkage().run(view, pa.table({"age": [20, 27, 30, 40]}))
    assert found.details["expected_correct"] == pytest.approx(1 / 2 + 1 / 3 + 1)
    assert found.details["without_match"] == 1


def test_a_bare_table_matches_by_equality_and_a_star_matches_all() -> None:
    view = bare({"a": ["1", "*", None]}, quasi=["a"])
    found = attacks.Linkage().run(view, pa.table({"a": [1, 2]}))
    assert found.details["expected_correct"] == pytest.approx(1 / 2 + 1)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(MissingColumn, match="shares no quasi-identifier"):
        attacks.Linkage().run(four_anonymous(), pa.table({"other": [1]}))
    with pytest.raises(MissingColumn, match=r"case count\). On the command line: give its columns the names .* release, 'age'\."):
        attacks.Linkage().run(four_anonymous(), pa.table({"AGE": [1]}))
    with pytest.raises(MissingColumn, match="'years'"):
        attacks.Linkage().run(four_anonymous(), attacks.Register(pa.table({"x": [1]}), {"age": "years"}))
    with pytest.raises(InputError, match="register"):
        attacks.Linkage().run(four_anonymous())


def test_pseudonyms_can_be_followed() -> None:
    view = bare({"who": list("aabbc"), "place": list("xyxzx")}, quasi=["place"])
    found = attacks.PseudonymTracking(pseudonym="who").run(view)
    # a: x shared by three, y alone; b: x, z alone; c: x only
    assert found.details["expected_correct"] == pytest.approx((1 / 3 + 1) / 2 + (1 / 3 + 1) / 2 + 1 / 3)
    assert found.details["with_a_unique_record"] == 2
    assert found.baseline == pytest.approx(1 / 3)
    with pytest.raises(InputError, match="no pseudonyms"):
        attacks.PseudonymTracking().run(view)


@given(st.lists(st.tuples(st.sampled_from("pqrst"), st.integers(20, 39), st.integers(0, 3)), min_size=1, max_size=15))
def test_people_with_records_in_several_classes_are_counted_once(visits: list[tuple[str, int, int]]) -> None:
    schema = Schema(dataset="d", columns={"who": Column(role="unit", pseudonym=True), "age": Column(role="quasi")})
    shown = [AGES.generalise(str(age), level) for _, age, level in visits]
    table = pa.table({"who": [who for who, _, _ in visits], "age": pa.array(shown, pa.string())})
    view = View(ReleasedTable(table, schema, {"age": AGES}, len(visits)), schema)
    found = attacks.Linkage().run(view, pa.table({"age": [str(age) for age in range(20, 40)]}))
    people = {who for who, _, _ in visits}
    assert found.baseline == 1 / len(people)
    covering = [
        {who for (who, _, level), text in zip(visits, shown, strict=True) if AGES.generalise(str(age), level) == text}
        for age in range(20, 40)
    ]
    assert found.details["expected_correct"] == pytest.approx(sum(1 / len(matching) for matching in covering if matching))
    assert found.details["identified"] == sum(len(matching) == 1 for matching in covering)
