"""Hierarchies: the loss metric on the catalogue's trees, every builder, and every way a hierarchy can be
wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import HierarchyError, HierarchyGap
from sfumato.data.hierarchies import hierarchy_builders as builders
from sfumato.data.hierarchies.hierarchy import Hierarchy, from_tree
from sfumato.data.schema import Column, HierarchySpec

WORKCLASS = {
    "Government": ["State-gov", "Local-gov", "Federal-gov"],
    "Private": [],
    "Self-employed": ["Inc", "Not-inc"],
    "Unemployed": ["Without-pay", "Never-worked"],
}


@pytest.fixture(scope="module")
def workclass() -> Hierarchy:
    return from_tree(WORKCLASS)


@pytest.fixture(scope="module")
def age() -> Hierarchy:
    return builders.from_intervals([str(year) for year in range(30, 40)], (5, 10))


def loss_of(tree: Hierarchy, label: str) -> float:
    return float(tree.loss[tree.labels.index(label)])


@pytest.mark.golden("G-ANO-01")
def test_a_leaf_loses_nothing(workclass: Hierarchy) -> None:
    assert len(workclass.leaves) == 8
    assert loss_of(workclass, "Private") == 0


@pytest.mark.golden("G-ANO-02")
def test_the_root_loses_everything(workclass: Hierarchy) -> None:
    assert loss_of(workclass, "*") == 1


@pytest.mark.golden("G-ANO-03")
def test_three_of_eight_leaves(workclass: Hierarchy) -> None:
    assert loss_of(workclass, "Government") == pytest.approx(2 / 7, abs=1e-12)


@pytest.mark.golden("G-ANO-04")
@pytest.mark.parametrize("label", ["Unemployed", "Self-employed"])
def test_two_of_eight_leaves(workclass: Hierarchy, label: str) -> None:
    assert loss_of(workclass, label) == pytest.approx(1 / 7, abs=1e-12)


@pytest.mark.golden("G-ANO-05")
def test_intervals_of_ten_ages(age: Hierarchy) -> None:
    assert loss_of(age, "[30, 35)") == pytest.approx(4 / 9, abs=1e-12)
    assert loss_of(age, "[30, 40)") == 1


def record_loss(workclass: Hierarchy, age: Hierarchy, work: str, years: str) -> float:
    return 0.6 * loss_of(workclass, work) + 0.4 * loss_of(age, years)


@pytest.mark.golden("G-ANO-06")
def test_weighted_loss_of_a_record(workclass: Hierarchy, age: Hierarchy) -> None:
    assert record_loss(workclass, age, "Government", "[30, 35)") == pytest.approx(0.349206, abs=5e-7)


@pytest.mark.golden("G-ANO-07")
def test_weighted_loss_of_a_record_with_a_kept_cell(workclass: Hierarchy, age: Hierarchy) -> None:
    assert record_loss(workclass, age, "Private", "[30, 40)") == pytest.approx(0.4, abs=1e-12)


@pytest.mark.golden("G-ANO-08")
def test_loss_of_two_records_is_the_sum_of_exact_losses(workclass: Hierarchy, age: Hierarchy) -> None:
    total = record_loss(workclass, age, "Government", "[30, 35)") + record_loss(workclass, age, "Private", "[30, 40)")
    assert total == pytest.approx(0.749206, abs=5e-7)


def test_a_tree_with_one_leaf_loses_nothing() -> None:
    assert builders.from_values(["only"]).loss.tolist() == [0.0, 0.0]


# --- ANO-12: trees ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [";", ","])
def test_a_file_has_one_leaf_per_row_and_one_level_per_column(tmp_path: Path, separator: str) -> None:
    rows = ["01234", "NO", "é ü"]
    file = tmp_path / "tree.csv"
    file.write_text("".join(f"{leaf}{separator}group{separator}*\n" for leaf in rows), encoding="utf-8")
    tree = Hierarchy.load(file)
    assert tree.leaves == tuple(rows)
    assert tree.height == 2
    assert tree.generalise("01234", 1) == "group"


def test_a_file_with_a_byte_order_mark_and_quoted_separators(tmp_path: Path) -> None:
    file = tmp_path / "tree.csv"
    file.write_text('"a, b",x,*\nc,x,*\n', encoding="utf-8-sig")
    assert Hierarchy.load(file).leaves == ("a, b", "c")


def test_saving_and_loading_gives_the_same_tree(tmp_path: Path, workclass: Hierarchy) -> None:
    workclass.save(tmp_path / "w.csv")
    again = Hierarchy.load(tmp_path / "w.csv")
    assert again.rows() == workclass.rows()
    assert again.loss.tolist() == workclass.loss.tolist()


@pytest.mark.data
def test_the_nine_adult_hierarchies_load(data_dir: Path) -> None:
    heights = {file.stem: Hierarchy.load(file).height for file in (data_dir / "adult").glob("adult_hierarchy_*.csv")}
    assert len(heights) == 9
    assert heights["adult_hierarchy_age"] == 4
    levels = 1
    for height in heights.values():
        levels *= height + 1
    assert levels == 12_960


def test_an_unbalanced_tree_repeats_a_node_upward(workclass: Hierarchy) -> None:
    private = workclass.index["Private"]
    assert workclass.node_of[0, private] == workclass.node_of[1, private]
    assert workclass.steps[:, private].tolist() == [0, 0, 1]
    assert workclass.steps[:, workclass.index["Inc"]].tolist() == [0, 1, 2]


def test_three_levels_of_nesting() -> None:
    tree = from_tree({"Europe": {"North": ["NO", "SE"], "South": ["IT"]}, "Asia": ["JP"]})
    assert tree.rows() == [
        ["NO", "North", "Europe", "*"],
        ["SE", "North", "Europe", "*"],
        ["IT", "South", "Europe", "*"],
        ["JP", "JP", "Asia", "*"],
    ]


@pytest.mark.golden("G-ANO-19")
def test_the_common_ancestor_is_never_higher_than_needed() -> None:
    jobs = from_tree({"Professional": ["Engineer", "Lawyer"], "Artist": ["Writer", "Dancer"]})
    ages = builders.from_intervals([str(a) for a in range(30, 40)], (5,))

    def ancestor(tree: Hierarchy, *leaves: str) -> str | None:
        return tree.labels[tree.common_ancestor(tree.index[leaf] for leaf in leaves)]

    assert ancestor(jobs, "Engineer", "Engineer", "Lawyer") == "Professional"
    assert ancestor(jobs, "Writer", "Writer", "Dancer", "Dancer") == "Artist"
    assert ancestor(jobs, "Engineer", "Engineer", "Engineer") == "Engineer"
    assert ancestor(jobs, "Engineer", "Writer") == "*"
    assert ancestor(ages, "30", "30", "30", "30") == "30"
    assert ancestor(ages, "35", "38", "38") == "[35, 40)"


# --- ANO-13: intervals, masks, dates ------------------------------------------------------------------------


def test_intervals_are_half_open_and_nest() -> None:
    tree = builders.from_intervals(["-1", "0", "4", "5", "9.5"], (5, 10))
    assert [tree.generalise(leaf, 1) for leaf in tree.leaves] == [
        "[-5, 0)",
        "[0, 5)",
        "[0, 5)",
        "[5, 10)",
        "[5, 10)",
    ]
    assert tree.generalise("-1", 2) == "[-10, 0)"
    assert tree.ordered


def test_decimal_widths_are_exact() -> None:
    """With floating-point division 0.6 would fall into [0.5, 0.6) and that interval would have two
    parents."""
    tree = builders.from_intervals(["0.55", "0.6", "0.25", "0.3"], (0.1, 0.3))
    assert tree.generalise("0.6", 1) == "[0.6, 0.7)"
    assert tree.generalise("0.3", 1) == "[0.3, 0.4)"
    assert tree.generalise("0.55", 2) == "[0.3, 0.6)"


def test_intervals_from_an_origin() -> None:
    assert builders.from_intervals(["17", "21"], (5,), origin=17).generalise("21", 1) == "[17, 22)"


def test_masking_hides_the_least_significant_digit_first() -> None:
    tree = builders.from_mask(["12345", "12399", "01234"])
    assert [tree.generalise("12345", level) for level in range(6)] == [
        "12345",
        "1234*",
        "123**",
        "12***",
        "1****",
        "*****",
    ]
    assert tree.generalise("01234", 1) == "0123*"
    assert loss_of(tree, "123**") == 0.5


def test_masking_from_the_left() -> None:
    assert builders.from_mask(["1234"], direction="left").generalise("1234", 2) == "**34"


def test_a_full_alphabet_counts_the_values_that_do_not_occur() -> None:
    tree = builders.from_mask(["13053", "13068"], alphabet=10)
    assert tree.sizes[tree.labels.index("130**")] == 100
    assert tree.total == 10**5


def test_masks_of_different_lengths_stay_a_tree() -> None:
    tree = builders.from_mask(["123", "Wolfeschlegelsteinhausen"], width=4)
    assert [tree.generalise("123", level) for level in (1, 2, 4)] == ["123*", "12**", "****"]  # however long the other is
    assert tree.generalise("Wolfeschlegelsteinhausen", 2) == "Wo**"
    assert builders.from_mask(["123", "98765"], direction="left", width=4).generalise("98765", 2) == "**65"
    tree = builders.from_mask(["12345", "123"])
    assert tree.generalise("123", 2) == tree.generalise("12345", 2) == "123**"


def test_dates_generalise_to_units() -> None:
    tree = builders.from_dates(["2024-02-29", "2023-12-31"], ("month", "quarter", "year", "decade", "century"))
    assert tree.rows()[1] == ["2024-02-29", "2024-02", "2024-Q1", "2024", "2020s", "2000–2099", "*"]
    assert tree.leaves == ("2023-12-31", "2024-02-29")


def test_weeks_do_not_nest_in_months() -> None:
    with pytest.raises(HierarchyError, match="weeks do not nest"):
        builders.from_dates(["2024-01-01"], ("week", "month"))


def test_frequency_groups_put_the_most_frequent_first_and_are_learnt_from_data() -> None:
    tree = builders.from_frequencies(["a", "b", "c", "d"], [1, 9, 5, 7], (2,))
    assert tree.generalise("b", 1) == tree.generalise("d", 1) == "rank 1–2"
    assert tree.generalise("c", 1) == tree.generalise("a", 1) == "rank 3–4"
    assert tree.source == "data"


# --- what can be wrong --------------------------------------------------------------------------------------


def test_gaps_are_reported_all_at_once_with_the_nearest_known_value() -> None:
    tree = builders.from_values(["Bachelors", "Masters", "Doctorate"])
    with pytest.raises(HierarchyGap) as caught:
        builders.cover(tree, ["Bachelors", "Batchelors", "Mastres", "Doctorate"], name="education")
    message = str(caught.value)
    assert "2 values of column 'education'" in message
    assert "'Batchelors' (nearest: 'Bachelors')" in message
    assert "'Mastres' (nearest: 'Masters')" in message
    assert caught.value.owner_only


def test_missing_root_takes_unknown_values_right_below_the_root(workclass: Hierarchy) -> None:
    column = Column(role="quasi", hierarchy=HierarchySpec(tree=WORKCLASS, missing="root"))
    tree = builders.build("workclass", column, ["Private", "Pirate", None])
    assert tree.generalise("Pirate", 1) == "Pirate"
    assert tree.generalise("Pirate", tree.height) == "*"
    assert tree.generalise(None, tree.height) == "*"
    assert len(tree.leaves) == 10
    assert tree.loss[tree.labels.index("Government")] == pytest.approx(2 / 9)


def test_a_missing_value_is_a_leaf_of_its_own() -> None:
    tree = builders.build("age", Column(role="quasi", hierarchy=HierarchySpec(intervals=(5,))), ["31", None, "33"])
    assert None in tree.index
    assert tree.generalise(None, 1) is None
    assert tree.generalise(None, 2) == "*"
    assert tree.has_root


def test_duplicates_and_two_parents_are_reported_together() -> None:
    with pytest.raises(HierarchyError) as caught:
        Hierarchy.from_levels([["a", "g", "x"], ["b", "g", "y"], ["a", "h", "x"]], name="tree")
    assert "listed more than once: 'a'" in str(caught.value)
    assert "two parents: 'g'" in str(caught.value)


def test_ragged_rows_are_named() -> None:
    with pytest.raises(HierarchyError, match=r"2 rows do not have 3 levels like the first \(rows 2, 4\)"):
        Hierarchy.from_levels([["a", "g", "*"], ["b", "g"], ["c", "g", "*"], ["d"]])


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (lambda: Hierarchy.from_levels([]), "no leaves"),
        (lambda: from_tree({}), "no leaves"),
        (lambda: builders.from_intervals(["x"], (5,)), "not numbers"),
        (lambda: builders.from_dates(["31.12.2024"], ("year",)), "not an ISO date"),
        (lambda: Hierarchy.load("no such file.csv"), "there is no hierarchy file"),
    ],
)
def test_other_faults_have_one_clear_error(build: object, complaint: str) -> None:
    with pytest.raises(HierarchyError, match=complaint):
        build()  # type: ignore[operator]


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "tree.csv").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(HierarchyError, match="not UTF-8"):
        Hierarchy.load(tmp_path / "tree.csv")


# --- laws ---------------------------------------------------------------------------------------------------

integers = st.lists(st.integers(-500, 500), min_size=1, max_size=30, unique=True).map(lambda xs: [str(x) for x in xs])
codes = st.lists(st.text("0123456789", min_size=1, max_size=5), min_size=1, max_size=20, unique=True)
days = st.lists(st.dates(), min_size=1, max_size=20, unique=True).map(lambda xs: [x.isoformat() for x in xs])
trees = st.one_of(
    st.builds(
        lambda v, w: builders.from_intervals(v, (w, 3 * w, 12 * w)),
        integers,
        st.sampled_from([1, 2, 0.1, 2.5]),
    ),
    st.builds(lambda v, d: builders.from_mask(v, direction=d), codes, st.sampled_from(["left", "right"])),
    st.builds(lambda v: builders.from_dates(v, ("month", "quarter", "year", "decade", "century")), days),
    st.builds(lambda v: builders.from_dates(v, ("week",)), days),
    st.builds(lambda v: builders.from_frequencies(v, [len(x) for x in v], (2, 4)), codes),
    st.builds(builders.from_values, codes),
)


@given(trees)
def test_every_level_coarsens_the_level_below(tree: Hierarchy) -> None:
    for below, above in zip(tree.node_of, tree.node_of[1:], strict=False):
        parent: dict[int, int] = {}
        for node, up in zip(below.tolist(), above.tolist(), strict=True):
            assert parent.setdefault(node, up) == up
    assert tree.has_root


@given(trees)
def test_loss_grows_with_the_level_from_zero_to_one(tree: Hierarchy) -> None:
    losses = tree.loss[tree.node_of]
    assert (losses[0] == 0).all()
    assert (losses[1:] >= losses[:-1]).all()
    assert len(tree.leaves) == 1 or (losses[-1] == 1).all()


@given(trees, st.lists(st.sampled_from(["?", "new", None]), unique=True))
def test_adding_leaves_keeps_the_tree_and_its_leaves(tree: Hierarchy, extra: list[str | None]) -> None:
    more = tree.with_leaves(extra)
    assert set(more.leaves) == {*tree.leaves, *extra}
    assert more.has_root
    for leaf in tree.leaves:
        below = [tree.generalise(leaf, level) for level in range(tree.height)]
        assert [more.generalise(leaf, level) for level in range(tree.height)] == below
