"""Laying several releases over each other."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import attacks
from sfumato.attacks.several.intersection import as_stated, sensitive_candidates
from sfumato.core.errors import InputError, MissingColumn, Unsupported
from sfumato.core.view import View
from sfumato.data.hierarchies import hierarchy_builders
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.microdata import ReleasedTable
from sfumato.data.schema import Column, Schema
from tests.attacks.published import bare, four_anonymous, six_anonymous
from tests.examples import examples

SCHEMA = Schema.of(quasi=["x", "y"], sensitive=["s"])
LEAVES = 8
TREE = Hierarchy.from_levels([[str(i), f"p{i // 2}", f"h{i // 4}", "*"] for i in range(LEAVES)])

Row = tuple[int, int, str]
ROWS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.sampled_from("uvw")), min_size=1, max_size=14)
LEVELS = st.tuples(st.integers(0, 3), st.integers(0, 3))


def release(rows: list[Row], levels: tuple[int, int]) -> View:
    return local_release(rows, [levels] * len(rows))


def local_release(rows: list[Row], levels: list[tuple[int, int]]) -> View:
    table = pa.table(
        {
            "x": [TREE.generalise(str(row[0]), level[0]) for row, level in zip(rows, levels, strict=True)],
            "y": [TREE.generalise(str(row[1]), level[1]) for row, level in zip(rows, levels, strict=True)],
            "s": [row[2] for row in rows],
        }
    )
    return View(ReleasedTable(table, SCHEMA, {"x": TREE, "y": TREE}, len(rows)), SCHEMA)


def original(rows: list[Row]) -> pa.Table:
    return pa.table({"x": [r[0] for r in rows], "y": [r[1] for r in rows], "s": [r[2] for r in rows]})


def left_by_hand(views: list[View], person: Row) -> Counter[str]:
    """Multiset of sensitive values that can be common to the person's candidates in all releases."""
    left: Counter[str] | None = None
    for view in views:
        shown = view.result.shown
        found = Counter(
            s
            for x, y, s in zip(*(view.result.table.column(c).to_pylist() for c in "xys"), strict=True)
            if str(person[0]) in shown["x"][x].leaves and str(person[1]) in shown["y"][y].leaves
        )
        left = found if left is None else left & found
    assert left is not None
    return left


@given(ROWS, st.lists(LEVELS, min_size=2, max_size=3))
def test_the_owner_sees_what_remains_for_every_person(rows: list[Row], levels: list[tuple[int, int]]) -> None:
    views = [release(rows, level) for level in levels]
    found = attacks.Intersection().run(views[0], attacks.OtherReleases(tuple(views[1:]), original(rows)))
    by_hand = [left_by_hand(views, person) for person in rows]
    assert found.details["worst_remaining_group"] == min(sum(left.values()) for left in by_hand)
    assert found.details["singled_out"] == sum(len(left) == 1 for left in by_hand)
    assert found.success == pytest.approx(sum(len(left) == 1 for left in by_hand) / len(rows))
    assert found.targets == len(rows)
    combined = [
        [(view.result.table.column("x")[i], view.result.table.column("y")[i]) for view in views] for i in range(len(rows))
    ]
    sizes = Counter(map(str, combined))
    assert found.details["worst_joint_group"] == min(sizes.values())


@given(ROWS, st.data())
def test_local_recoding_leaves_every_class_a_person_may_be_in(rows: list[Row], data: st.DataObject) -> None:
    views = [local_release(rows, data.draw(st.lists(LEVELS, min_size=len(rows), max_size=len(rows)))) for _ in range(2)]
    found = attacks.Intersection().run(views[0], attacks.OtherReleases((views[1],), original(rows)))
    by_hand = [left_by_hand(views, person) for person in rows]
    assert found.details["worst_remaining_group"] == min(sum(left.values()) for left in by_hand)
    assert found.details["singled_out"] == sum(len(left) == 1 for left in by_hand)


@given(ROWS, LEVELS, LEVELS)
def test_the_outsider_misses_nothing_the_owner_sees(rows: list[Row], one: tuple[int, int], two: tuple[int, int]) -> None:
    first, second = release(rows, one), release(rows, two)
    outsider = attacks.Intersection().run(first, second)
    owner = attacks.Intersection().run(first, attacks.OtherReleases((second,), original(rows)))
    assert outsider.details["worst_remaining_group"] <= owner.details["worst_remaining_group"]
    assert outsider.details["combinations"] >= owner.details["combinations"]
    assert 0 <= outsider.success <= 1


@given(ROWS, LEVELS)
def test_a_release_laid_over_itself_leaves_its_own_classes(rows: list[Row], levels: tuple[int, int]) -> None:
    view = release(rows, levels)
    for knowledge in (view, attacks.OtherReleases((view,), original(rows))):
        found = attacks.Intersection().run(view, knowledge)
        assert found.details["worst_remaining_group"] == found.details["worst_group_alone"]
        assert found.details["singled_out"] == pytest.approx(found.details["singled_out_by_one_release_alone"])


@given(ROWS, LEVELS, LEVELS, LEVELS)
def test_another_release_never_helps_the_people_in_it(
    rows: list[Row], one: tuple[int, int], two: tuple[int, int], three: tuple[int, int]
) -> None:
    views = [release(rows, level) for level in (one, two, three)]
    fewer = attacks.Intersection().run(views[0], attacks.OtherReleases((views[1],), original(rows)))
    more = attacks.Intersection().run(views[0], attacks.OtherReleases(tuple(views[1:]), original(rows)))
    assert more.details["worst_remaining_group"] <= fewer.details["worst_remaining_group"]
    assert more.success >= fewer.success


def test_the_result_names_no_value() -> None:
    found = attacks.Intersection().run(six_anonymous(), four_anonymous())
    text = repr(found)
    assert not any(value in text for value in ("AIDS", "Cancer", "<35", "13053"))
    assert "instead of 4 in the weakest release alone" in found.finding


def test_a_shared_plain_column_ties_records_together() -> None:
    columns = {"x": ["*", "*", "*"], "s": ["u", "u", "u"], "visit": ["1", "2", "3"]}
    first = bare(columns, quasi=["x"], sensitive=["s"])
    second = bare({"x": ["*", "*", "*"], "s": ["u", "u", "u"], "visit": ["3", "4", "5"]}, quasi=["x"], sensitive=["s"])
    assert attacks.Intersection().run(first, second).details["worst_remaining_group"] == 1


def test_releases_with_nothing_in_common_are_said_to_be_so() -> None:
    first = bare({"x": ["a"], "s": ["u"]}, quasi=["x"], sensitive=["s"])
    second = bare({"x": ["b"], "s": ["u"]}, quasi=["x"], sensitive=["s"])
    found = attacks.Intersection().run(first, second)
    assert found.targets == 0
    assert "nothing in common" in found.finding


def test_what_is_missing_is_said() -> None:
    view = four_anonymous()
    with pytest.raises(InputError, match="at least one other release"):
        attacks.Intersection().run(view)
    with pytest.raises(MissingColumn, match="lacks quasi-identifiers"):
        attacks.Intersection().run(view, attacks.OtherReleases((view,), pa.table({"age": [1]})))
    with pytest.raises(InputError, match="as it is"):
        attacks.Intersection("age").run(view, view)
    with pytest.raises(InputError, match="described by quasi-identifiers"):
        sensitive_candidates([view], {"shoe": "44"}, "disease")


@pytest.mark.slow
def test_two_hundred_thousand_people_are_laid_over() -> None:
    rng = np.random.default_rng(5)
    n = 200_000
    raw = {name: rng.integers(0, 100, n) for name in ("x", "y")} | {"z": rng.integers(0, 20, n)}
    disease = rng.choice([f"d{i}" for i in range(30)], n)
    tree = Hierarchy.from_levels([[str(i), f"{i // 10}x", "*"] for i in range(100)])
    schema = Schema.of(quasi=["x", "y", "z"], sensitive=["s"])

    def made(levels: dict[str, int]) -> View:
        columns = {name: [tree.generalise(str(v), levels[name]) for v in range(100)] for name in ("x", "y", "z")}
        table = pa.table({name: pa.array(np.array(columns[name])[raw[name]]) for name in raw} | {"s": disease})
        return View(ReleasedTable(table, schema, dict.fromkeys(raw, tree), n), schema)

    first, second = made({"x": 1, "y": 1, "z": 0}), made({"x": 0, "y": 1, "z": 2})
    owner = attacks.Intersection().run(first, attacks.OtherReleases((second,), pa.table(raw)))
    assert owner.targets == n
    assert 0 < owner.details["worst_remaining_group"] < owner.details["worst_group_alone"]


def spread_by_hand(views: list[View]) -> dict[tuple[int, ...], Fraction]:
    """Each record of the first release goes, with equal chances, to the records of the next one that can be the same."""
    read = [view.result.table.select(list("xys")).to_pylist() for view in views]
    paths = {(place,): Fraction(1) for place in range(len(read[0]))}

    def meets(one: tuple[int, Any], other: tuple[int, Any]) -> bool:
        leaves = [[views[place].result.shown[c][row[c]].leaves for place, row in (one, other)] for c in "xy"]
        return all(a & b for a, b in leaves) and one[1]["s"] == other[1]["s"]

    for release, rows in enumerate(read[1:], 1):
        longer: dict[tuple[int, ...], Fraction] = {}
        for path, weight in paths.items():
            can = [
                place
                for place, row in enumerate(rows)
                if all(meets((earlier, read[earlier][at]), (release, row)) for earlier, at in enumerate(path))
            ]
            longer |= {(*path, place): weight / len(can) for place in can}
        paths = longer
    return paths


@given(ROWS, LEVELS, LEVELS)
@settings(max_examples=examples(25))
def test_without_the_original_records_are_spread_over_those_that_can_be_the_same(
    rows: list[Row], first: tuple[int, int], second: tuple[int, int]
) -> None:
    views = [release(rows, first), release(rows, second)]
    spread = spread_by_hand(views)
    found = attacks.Intersection().run(views[0], attacks.OtherReleases((views[1],)))
    assert found.targets == round(sum(spread.values()))

    def values_left(path: tuple[int, ...]) -> int:
        shown = [
            {
                s
                for x, y, s in zip(*(view.result.table.column(c).to_pylist() for c in "xys"), strict=True)
                if (x, y) == tuple(view.result.table.column(c)[at].as_py() for c in "xy")
            }
            for view, at in zip(views, path, strict=True)
        ]
        return len(set.intersection(*shown))

    certain = sum((weight for path, weight in spread.items() if values_left(path) == 1), Fraction(0))
    assert found.success == pytest.approx(float(certain / sum(spread.values())))


@given(st.integers(0, 10_000), st.lists(LEVELS, min_size=2, max_size=3))
@settings(max_examples=examples(15))
def test_columns_that_tell_records_apart_make_the_estimate_exact(seed: int, levels: list[tuple[int, int]]) -> None:
    """A record that can be one record alone is where it really is."""
    draw = np.random.default_rng(seed)
    rows = [(int(x), int(y), "uvw"[s]) for x, y, s in draw.integers(0, [8, 8, 3], (12, 3))]
    schema = SCHEMA.replace(columns={**SCHEMA.columns, "n": Column()})
    views = []
    for each in levels:
        table = release(rows, each).result.table.append_column("n", pa.array([str(n) for n in range(12)]))
        views.append(View(ReleasedTable(table, schema, {"x": TREE, "y": TREE}, 12), schema))
    others = tuple(views[1:])
    guessed, owner = (attacks.Intersection().run(views[0], attacks.OtherReleases(others, o)) for o in (None, original(rows)))
    assert (guessed.targets, guessed.success) == (12, pytest.approx(owner.success))
    assert guessed.details["singled_out"] == pytest.approx(owner.details["singled_out"])


def without(rows: list[Row], hidden: set[int]) -> list[Row]:
    return [row for place, row in enumerate(rows) if place not in hidden]


def test_subtraction_singles_out_who_is_suppressed_in_one_release() -> None:
    rows: list[Row] = [(0, 0, "u"), (0, 0, "v"), (1, 0, "w"), (4, 4, "u"), (4, 4, "v")]
    fine, coarse = release(without(rows, {2}), (0, 0)), release(rows, (1, 0))
    for knowledge in (attacks.OtherReleases((fine,)), attacks.OtherReleases((fine,), original(rows))):
        found = attacks.Intersection().run(coarse, knowledge)
        assert found.details["differencing_groups"] == found.details["differencing_people"] == 1
        assert found.details["smallest_difference"] == 1
        assert "for people who are in every release" in found.finding
        assert "singles out a group smaller than any class of the release that it is in, 1 person in all" in found.finding


def test_classes_that_do_not_nest_are_said_not_to_be_searched() -> None:
    rows: list[Row] = [(x, y, "u") for x in range(2) for y in range(2)] * 2
    found = attacks.Intersection().run(release(rows, (1, 0)), release(rows, (0, 1)))
    assert found.details["differencing_groups"] == 0
    assert "were not searched" in found.finding


@given(ROWS, LEVELS, LEVELS, st.sets(st.integers(0, 13)))
def test_nested_releases_show_outsiders_the_differences_that_the_owner_counts(
    rows: list[Row], inner: tuple[int, int], more: tuple[int, int], hidden: set[int]
) -> None:
    """A class of the finer release is kept or suppressed as a whole, as searches do it."""
    outer = (max(inner[0], more[0]), max(inner[1], more[1]))
    cells = [(TREE.generalise(str(x), inner[0]), TREE.generalise(str(y), inner[1])) for x, y, _ in rows]
    gone = {cells[place] for place in hidden if place < len(rows)}
    kept = [row for row, cell in zip(rows, cells, strict=True) if cell not in gone]
    if not kept:
        return
    views = release(rows, outer), release(kept, inner)
    outside = attacks.Intersection().run(views[0], views[1]).details
    inside = attacks.Intersection().run(views[0], attacks.OtherReleases((views[1],), original(rows))).details
    for name in ("differencing_groups", "differencing_people", "smallest_difference"):
        assert outside[name] == inside[name]


def test_masked_and_noisy_releases_are_refused() -> None:
    view = four_anonymous()
    for certificate in ({"transparency": {"masked_columns": ["age"]}}, {"claims": [{"evidence": "process"}]}):
        for views in ((view, replace(view, certificate=certificate)), (replace(view, certificate=certificate), view)):
            with pytest.raises(Unsupported, match="assume that everything"):
                attacks.Intersection().run(views[0], views[1])


def test_a_release_without_rows_has_nothing_in_common_with_others() -> None:
    full = bare({"x": ["a", "b"], "s": ["u", "v"]}, quasi=["x"], sensitive=["s"])
    empty = View(full.result.slice(0, 0), full.schema)
    third = bare({"x": ["b"], "s": ["v"]}, quasi=["x"], sensitive=["s"])
    for views in ([full, empty], [empty, full], [full, empty, third], [full, third, empty], [empty, empty]):
        found = attacks.Intersection().run(views[0], views[1:])
        assert found.targets == 0 and "does not show that nobody is in all of them" in found.finding


def test_ordered_ranges_stand_for_the_values_between_their_ends() -> None:
    tree = hierarchy_builders.from_values(["low", "mid", "high"], order=("low", "mid", "high"))
    schema = Schema.of(quasi=["x"], sensitive=["s"])
    views = [
        View(ReleasedTable(pa.table({"x": [label] * 2, "s": ["u", "v"]}), schema, {"x": tree}, 2), schema)
        for label in ("low … mid", "mid … high", "high")
    ]
    assert attacks.Intersection().run(views[0], views[1]).details["worst_remaining_group"] == 2
    assert attacks.Intersection().run(views[0], views[2]).targets == 0


def test_a_column_that_is_plain_elsewhere_is_looked_up_too() -> None:
    """Whoever knows x finds the record in the second release, which shows x as it is."""
    first = bare({"x": ["*"] * 4, "s": ["u", "v", "u", "w"]}, quasi=["x"], sensitive=["s"])
    second = bare({"x": ["1", "2", "3", "4"], "s": ["u", "v", "u", "w"]}, quasi=[], sensitive=["s"])
    assert attacks.Intersection().run(first, second).details["worst_remaining_group"] == 1


def test_pseudonyms_of_some_releases_alone_are_not_laid_over() -> None:
    told = {"transparency": {"pseudonymised_columns": ["id"]}}
    views = [
        replace(bare({"x": ["*"] * 2, "id": ids}, quasi=["x"], sensitive=[]), certificate=told)
        for ids in (["p", "q"], ["q", "r"], ["y", "z"])
    ]
    assert attacks.Intersection().run(views[0], views[1]).details["worst_remaining_group"] == 1
    assert attacks.Intersection().run(views[0], views[2]).details["worst_remaining_group"] == 2
    with pytest.raises(Unsupported, match="the same in some of the releases"):
        attacks.Intersection().run(views[0], views[1:])


def test_a_value_is_looked_for_among_records_that_all_columns_tie_together() -> None:
    """By s alone both values are possible; with the visit only one record is."""
    first = bare({"x": ["a"] * 2, "s": ["u", "v"], "visit": ["1", "2"]}, quasi=["x"], sensitive=["s"])
    second = bare({"x": ["a"] * 2, "s": ["u", "v"], "visit": ["1", "3"]}, quasi=["x"], sensitive=["s"])
    assert attacks.Intersection().run(first, second).success == 1.0


def cells(label_x: str, label_y: str) -> frozenset[tuple[int, int]]:
    """The raw values that a class may stand for."""

    def leaves(label: str) -> list[int]:
        return [i for i in range(LEAVES) if label in {TREE.generalise(str(i), level) for level in range(4)}]

    return frozenset((x, y) for x in leaves(label_x) for y in leaves(label_y))


def subtracted_by_hand(inner: View, outer: View) -> list[int]:
    """What is left of each class that consists of whole classes of the other release, from the definition."""
    parts, wholes = (
        Counter(zip(view.result.table["x"].to_pylist(), view.result.table["y"].to_pylist(), strict=True))
        for view in (inner, outer)
    )
    left = []
    for whole, size in wholes.items():
        met = [part for part in parts if cells(*part) & cells(*whole)]
        alone = [part for part in met if sum(bool(cells(*part) & cells(*other)) for other in wholes) == 1]
        if met and len(alone) == len(met) and all(cells(*part) <= cells(*whole) for part in met):
            left.append(size - sum(parts[part] for part in met))
    return left


@settings(max_examples=examples(40))
@given(ROWS, st.lists(LEVELS, min_size=28, max_size=28), st.sets(st.integers(0, 13)), st.sets(st.integers(0, 13)))
def test_no_difference_is_said_to_be_searched_that_was_not(
    rows: list[Row], levels: list[tuple[int, int]], hidden: set[int], also: set[int]
) -> None:
    kept = [[place for place in range(len(rows)) if place not in gone] for gone in (hidden, also)]
    if not all(kept):
        return
    views = [
        local_release([rows[place] for place in places], [levels[14 * number + place] for place in places])
        for number, places in enumerate(kept)
    ]
    found = attacks.Intersection().run(views[0], views[1])
    if not found.targets:
        return
    sizes = [Counter(zip(v.result.table["x"].to_pylist(), v.result.table["y"].to_pylist(), strict=True)) for v in views]
    smallest = [min(each.values()) for each in sizes]
    by_hand = [subtracted_by_hand(views[1 - outer], views[outer]) for outer in (0, 1)]
    small = [
        abs(each) for outer in (0, 1) for each in by_hand[outer] if 0 < abs(each) < smallest[outer if each > 0 else 1 - outer]
    ]
    assert found.details["differencing_groups"] == len(small) and found.details["differencing_people"] == sum(small)
    searched, classes = sum(map(len, by_hand)), sum(map(len, sizes))
    said = f"{searched} of the {classes} classes of the releases are known to consist of whole classes of another"
    assert (said in found.finding) is (bool(searched) and not small)
    assert ("not searched" in found.finding) is (not small)


def test_who_is_missing_from_the_coarser_release_is_singled_out_too() -> None:
    rows: list[Row] = [(0, 0, "u")] * 3 + [(1, 0, "v")] * 3
    found = attacks.Intersection().run(release(rows[:4], (1, 0)), release(rows, (0, 0)))
    assert found.details["differencing_groups"] == 1 and found.details["smallest_difference"] == 2


@given(ROWS, st.lists(LEVELS, min_size=2, max_size=3))
@settings(max_examples=examples(25))
def test_what_is_estimated_has_one_digit_and_no_interval(rows: list[Row], levels: list[tuple[int, int]]) -> None:
    """What one release alone gives away is counted by hand in its classes."""
    views = [release(rows, each) for each in levels]
    found = attacks.Intersection().run(views[0], attacks.OtherReleases(tuple(views[1:])))
    told = as_stated(found)
    assert found.interval == (0.0, 1.0)
    for number in (told.targets, told.success, told.baseline, told.details["singled_out"]):
        assert float(f"{number:.1g}") == number or 0.95 <= number < 1
    assert told.success == pytest.approx(found.success, rel=0.5) and (told.success == 1) == (found.success == 1)
    by_hand = []
    for view in views:
        shown = Counter[tuple[str, str]]()
        values: dict[tuple[str, str], set[str]] = {}
        for row in view.result.table.to_pylist():
            shown[row["x"], row["y"]] += 1
            values.setdefault((row["x"], row["y"]), set()).add(row["s"])
        by_hand.append(sum(size for key, size in shown.items() if len(values[key]) == 1))
    assert told.details["singled_out_by_one_release_alone"] == max(by_hand)
    owner = attacks.Intersection().run(views[0], attacks.OtherReleases(tuple(views[1:]), original(rows)))
    assert as_stated(owner) is owner and owner.interval != (0.0, 1.0)
