"""A level is contradicted by what it cannot show, and never by what it does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sfumato.data.hierarchies import hierarchy_builders
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.hierarchies.shown_levels import ShownLevel
from sfumato.data.schema import Column, HierarchySpec

DAYS = [str(np.datetime64("1969-12-30") + 97 * i) for i in range(80)]
DECIMALS = ["0.1", "0.3", "0.6", "1e-7", "12345678.9", "-4.25", "7"]
#: Values, and a description of their tree.
TREES: dict[str, tuple[list[str | None], HierarchySpec]] = {
    "intervals": ([str(i) for i in range(-7, 99)], HierarchySpec(intervals=(5, 10, 40))),
    "decimals": ([*DECIMALS, None], HierarchySpec(intervals=(0.1, 0.2, 10))),
    "origin": (DECIMALS, HierarchySpec(intervals=(2.5, 5), origin=0.7)),
    "far origin": ([str(i) for i in range(60)], HierarchySpec(intervals=(5, 10), origin=1e18)),
    "large": ([str(10**17 + 7 * i) for i in range(60)], HierarchySpec(intervals=(0.3, 3000))),
    "mask": (["12345", "12", "999999", "1*", "1****", None], HierarchySpec(mask="right")),
    "left": (["12345", "12", "999999", "1*"], HierarchySpec(mask="left", width=4)),
    "dates": ([*DAYS, None], HierarchySpec(dates=("month", "quarter", "year", "decade", "century"))),
    "weeks": ([*DAYS, "2020-W05", "0566-01-03"], HierarchySpec(dates=("week",))),
    "flat": (["a", "b", "*", None], HierarchySpec(flat=True)),
    "frequency": (["a", "b", "c", "d"], HierarchySpec(frequency=(2,))),
    "tree": (["a", "b", "c", "b2", "new", None], HierarchySpec(tree={"b2": ["a", "b"], "c": {"c": ["c"]}}, missing="root")),
}


@pytest.mark.parametrize("name", TREES)
def test_a_level_can_show_what_it_shows(name: str, tmp_path: Path) -> None:
    values, spec = TREES[name]
    tree = hierarchy_builders.build(name, Column(type="string", hierarchy=spec), values)
    if spec.tree is not None:  # published as a file, without what was added to it
        declared = hierarchy_builders.from_tree(spec.tree, name=name)
        Hierarchy.from_levels(declared.rows()).save(tmp_path / "tree.csv")
        spec = HierarchySpec(file="tree.csv", separator=";", missing="root")
    column = Column(type="string", hierarchy=spec)
    for level in range(tree.height + 1):
        shown = ShownLevel(column, level, tmp_path)
        labels = {tree.generalise(value, level) for value in values} - {None}
        assert shown.exists and [label for label in labels if label and not shown.can_show(label)] == []
    if name != "mask":  # a mask without a width is as long as a value that nobody sees
        assert not ShownLevel(column, tree.height + 1 + (spec.file is not None), tmp_path).exists


@pytest.mark.parametrize("name", ["intervals", "decimals", "origin", "dates"])
def test_a_level_shows_no_group_of_another(name: str) -> None:
    values, spec = TREES[name]
    tree = hierarchy_builders.build(name, Column(hierarchy=spec), values)
    known = [value for value in values if value is not None]
    for stated in range(1, tree.height):
        shown = ShownLevel(Column(hierarchy=spec), stated)
        for level in set(range(tree.height)) - {stated}:
            assert not any(shown.can_show(tree.generalise(value, level) or "") for value in known), (stated, level)


def test_a_mask_shows_as_many_stars_and_a_tree_no_leaf_that_it_generalises(tmp_path: Path) -> None:
    masked = Column(hierarchy=HierarchySpec(mask="right"))
    assert [ShownLevel(masked, level).can_show("12**") for level in (0, 1, 2, 3)] == [True, True, True, False]
    (tmp_path / "t.csv").write_text("a;A;*\nb;b;*\n")
    tree = Column(hierarchy=HierarchySpec(file="t.csv", separator=";"))
    assert [ShownLevel(tree, 1, tmp_path).can_show(text) for text in ("a", "A", "b", "unknown", "*")] == [
        False,
        True,
        True,
        True,
        True,
    ]


LABELS = {
    "intervals": [
        "[20, 25) (level Anna Muster, HIV)",
        "[20, 25) (level 1) Anna",
        "[20, 25) (level 0)",
        "[20, 25) (level 9)",
        "[20, 25) (level 2)",
        "[20, 25) (level 1) (level 2)",
        "* (level Anna)",
        "[2_0, 25)",
        "[20.0, 25)",
        "[٢٠, 25)",
    ],
    "mask": ["Anna Muster**12345", "*1234", "1234", "1234* (level Anna)"],
    "left": ["1234*", "12*34", "*12345"],
    "dates": ["٢٠٢٠-01", "2020-01 (level x)"],
}


@pytest.mark.parametrize(("name", "label"), [(name, label) for name, labels in LABELS.items() for label in labels])
def test_a_label_holds_nothing_else(name: str, label: str) -> None:
    shown = ShownLevel(Column(hierarchy=TREES[name][1]), 1)
    assert not shown.can_show(label)


def test_a_renamed_group_bears_its_level() -> None:
    shown = ShownLevel(Column(hierarchy=TREES["intervals"][1]), 1)
    assert all(map(shown.can_show, ("[20, 25) (level 1)", "[20, 25) (level 1) (level 1)", "* (level 4)")))


@pytest.mark.parametrize("origin", [0, 1e18, 1e300, -1e18])
def test_a_far_origin_does_not_hide_another_width(origin: float) -> None:
    shown = ShownLevel(Column(hierarchy=HierarchySpec(intervals=(5,), origin=origin)), 1)
    assert shown.can_show("[20, 25)") and not any(map(shown.can_show, ("[23, 24)", "[20, 26)", "[21, 26)", "[0, 1e18)")))


def test_weeks_have_four_digits_and_earlier_versions_had_fewer() -> None:
    days = HierarchySpec(dates=("week",))
    tree = hierarchy_builders.build("day", Column(hierarchy=days), ["0566-01-03"])
    assert tree.generalise("0566-01-03", 1) == "0566-W01"
    assert all(map(ShownLevel(Column(hierarchy=days), 1).can_show, ("0566-W01", "566-W01")))


def test_a_level_of_a_tree_does_not_show_finer_groups_alone(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;n1;north;*\nb;n2;north;*\nc;s1;south;*\n")
    tree = Column(hierarchy=HierarchySpec(file="t.csv", separator=";", missing="root"))
    texts = ("a", "north", "new", "*")
    can = {level: [text for text in texts if ShownLevel(tree, level, tmp_path).can_show(text)] for level in (1, 2, 3)}
    assert can == {1: ["north", "new", "*"], 2: ["north", "new", "*"], 3: ["*"]}
    second = ShownLevel(tree, 2, tmp_path)  # a value that is in no group may be called n1
    assert second.can_show_all(["n1", "south"]) and not second.can_show_all(["n1", "s1", "*"]) and not second.can_show_all(["*"])
    assert ShownLevel(tree, 3, tmp_path).can_show("* (level 3)") and not ShownLevel(tree, 3, tmp_path).can_show("a (level 3)")


def test_groups_of_a_frequency_are_ranks() -> None:
    shown = ShownLevel(Column(hierarchy=HierarchySpec(frequency=(2, 4))), 1)
    assert [text for text in ("rank 1–2", "rank 3–4", "rank 2–3", "rank 4–3", "rank 0–1", "a", "*") if shown.can_show(text)] == [
        "rank 1–2",
        "rank 3–4",
        "*",
    ]


@pytest.mark.parametrize(
    ("unit", "text"), [("month", "2020-13"), ("week", "2020-W54"), ("week", "2020-W00"), ("century", "2000–1999")]
)
def test_a_calendar_has_no_such_time(unit: str, text: str) -> None:
    assert not ShownLevel(Column(hierarchy=HierarchySpec(dates=(unit,))), 1).can_show(text)


def test_a_tree_without_a_root_shows_nothing_above_its_groups(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;n1\nb;n1\nc;s1\n")
    tree = Column(hierarchy=HierarchySpec(file="t.csv", separator=";", missing="root"))
    shown = ShownLevel(tree, 2, tmp_path)
    assert shown.exists and shown.can_show("*") and not shown.can_show("n1")


def test_a_renamed_group_is_as_fine_as_the_group(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;n1;north;*\nb;n2;north;*\n")
    tree = Column(hierarchy=HierarchySpec(file="t.csv", separator=";", missing="root"))
    assert ShownLevel(tree, 1, tmp_path).can_show("n1 (level 1)") and not ShownLevel(tree, 2, tmp_path).can_show("n1 (level 1)")
