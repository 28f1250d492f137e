"""A level is contradicted by what it cannot show, and never by what it does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sfumato.data import hierarchy_builders
from sfumato.data.hierarchy import Hierarchy
from sfumato.data.schema import Column, HierarchySpec
from sfumato.data.shown_levels import ShownLevel

DAYS = [str(np.datetime64("1969-12-30") + 97 * i) for i in range(80)]
DECIMALS = ["0.1", "0.3", "0.6", "1e-7", "12345678.9", "-4.25", "7"]
#: Values, and a description of their tree.
TREES: dict[str, tuple[list[str | None], HierarchySpec]] = {
    "intervals": ([str(i) for i in range(-7, 99)], HierarchySpec(intervals=(5, 10, 40))),
    "decimals": ([*DECIMALS, None], HierarchySpec(intervals=(0.1, 0.2, 10))),
    "origin": (DECIMALS, HierarchySpec(intervals=(2.5, 5), origin=0.7)),
    "mask": (["12345", "12", "999999", "1*", "1****", None], HierarchySpec(mask="right")),
    "left": (["12345", "12", "999999", "1*"], HierarchySpec(mask="left", width=4)),
    "dates": ([*DAYS, None], HierarchySpec(dates=("month", "quarter", "year", "decade", "century"))),
    "weeks": ([*DAYS, "2020-W05"], HierarchySpec(dates=("week",))),
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
