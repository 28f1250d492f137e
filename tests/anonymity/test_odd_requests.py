"""Requests that once protected less than they said: protected values, ambiguous labels, missing units, broken declarations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import HierarchyError, HierarchyGap, InputError, ParameterError, SchemaError, Unsupported
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.schema import HierarchySpec

DISEASES = {"q": list("aaaabbbb"), "s": ["HIV"] * 4 + ["HIV", "flu", "cold", "x"]}


def protect(rows: Mapping[str, list[Any]], promise: Any, method: Any = None, **columns: sf.Column) -> sf.Release:
    described = {"q": sf.Column(role="quasi"), "s": sf.Column(role="sensitive"), **columns}
    return sf.protect(pa.table(dict(rows)), promise, method, schema=sf.Schema(dataset="odd", columns=described))


def test_a_bare_string_is_no_list_of_protected_values() -> None:
    with pytest.raises(ParameterError, match="list of values"):
        sf.AlphaKAnonymity(0.8, 2, "s", "HIV")  # type: ignore[arg-type]


def test_a_protected_value_that_occurs_nowhere_is_refused() -> None:
    with pytest.raises(Unsupported, match="protect nobody"):
        protect(DISEASES, sf.AlphaKAnonymity(0.8, 2, "s", ("hiv",)), sf.Lattice())


@pytest.mark.parametrize(
    ("values", "protected"),
    [(["HIV"] * 4 + ["HIV", "flu", "cold", "x"], "HIV"), ([1] * 4 + [1, 2, 3, 4], 1.0), ([True] * 5 + [False] * 3, True)],
)
def test_protected_values_match_whatever_type_carries_them(values: list[Any], protected: Any) -> None:
    release = protect({"q": list("aaaabbbb"), "s": values}, sf.AlphaKAnonymity(0.8, 2, "s", (protected,)), sf.Lattice())
    assert release.certificate.measured == {"AlphaKAnonymity(s)": 0.625}
    assert set(release.data.column("q").to_pylist()) == {"*"}


def test_a_group_named_like_another_value_is_told_apart_in_the_release() -> None:
    tree = sf.Column(role="quasi", hierarchy=HierarchySpec(tree={"Other": ["a", "b"], "N": ["Other", "c", "d"]}))
    release = protect({"q": ["Other", "Other", "a", "b"], "s": [1] * 4}, sf.KAnonymity(2), q=tree)
    assert release.data.column("q").to_pylist() == ["Other", "Other", "Other (level 1)", "Other (level 1)"]
    assert release.scores["loss"] == pytest.approx(0.125)


def test_a_label_on_two_levels_names_two_groups(tmp_path: Path) -> None:
    """Once a k-map of 9 was certified for a class that matched 4 people."""
    (tmp_path / "h.csv").write_text("a;Other;Z;R\nb;Other;Z;R\nc;B;Other;R\nd;B;Other;R\n", encoding="utf-8")
    column = sf.Column(role="quasi", hierarchy=HierarchySpec(file=str(tmp_path / "h.csv")))
    people = pa.table({"q": list("aabb") + ["c"] * 9, "s": [1] * 13})
    described = sf.Schema(dataset="odd", columns={"q": column, "s": sf.Column(role="sensitive")})
    release = sf.protect(
        pa.table({"q": list("aabb"), "s": [1] * 4}), sf.KMap(3), sf.Lattice(), schema=described, population=people
    )
    assert release.certificate.measured == {"KMap": 4}


def test_a_value_added_below_the_root_does_not_join_a_group_of_its_name() -> None:
    tree = Hierarchy.from_levels([["a", "X", "R"], ["b", "X", "R"], ["c", "Y", "R"]]).with_leaves(["X"])
    assert tree.generalise("X", 1) == "X"
    assert tree.generalise("a", 1) == "X (level 1)"
    assert tree.node_of[1, tree.index["X"]] != tree.node_of[1, tree.index["a"]]
    assert len(set(tree.labels)) == len(tree.labels)


def test_an_empty_cell_above_a_leaf_is_refused() -> None:
    with pytest.raises(HierarchyError, match="empty cell above"):
        Hierarchy.from_levels([["a", None, "R"], ["b", None, "R"], ["c", "X", "R"]])


def test_records_without_a_unit_are_refused_and_counted() -> None:
    rows = {"q": list("aabb"), "s": [1] * 4, "u": [None, None, "x", "y"]}
    with pytest.raises(InputError, match="2 records have no value in the unit column"):
        protect(rows, sf.KAnonymity(2), u=sf.Column(role="unit"))
    with pytest.raises(InputError, match="1 record has no value in the unit column"):
        protect({**rows, "u": [None, "w", "x", "y"]}, sf.KAnonymity(2), u=sf.Column(role="unit"))


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (sf.Column(role="quasi", type="integer", bounds=(0, 90)), "declared bounds"),
        (sf.Column(role="quasi", domain=("1", "2")), "declared domain"),
    ],
)
def test_values_outside_what_was_declared_are_refused_without_showing_them(column: sf.Column, words: str) -> None:
    with pytest.raises(SchemaError, match=words) as caught:
        protect({"q": [1, 2, 95777], "s": [1] * 3}, sf.KAnonymity(2), q=column)
    assert "95777" not in str(caught.value)


def test_gaps_of_several_columns_are_reported_together() -> None:
    known = sf.Column(role="quasi", hierarchy=HierarchySpec(tree={"x": ["a", "b"]}))
    schema = sf.Schema(dataset="odd", columns={"q": known, "p": known})
    with pytest.raises(HierarchyGap, match=r"(?s)'q'.*'p'"):
        sf.protect(pa.table({"q": ["a", "z"], "p": ["y", "b"]}), sf.KAnonymity(1), schema=schema)


def test_the_same_guarantee_with_two_distances_shows_two_numbers() -> None:
    promise = [sf.TCloseness(1.0, "s", "equal"), sf.TCloseness(1.0, "s", "ordered")]
    release = protect({"q": list("aabb"), "s": [1, 2, 3, 4]}, promise, sf.Lattice())
    assert list(release.certificate.measured) == ["TCloseness(s)", "TCloseness(s) #2"]


def test_a_star_in_the_data_does_not_look_like_a_blanked_cell() -> None:
    rows = {"q": ["*", "*", "*", "a", "b", "c"], "s": [1] * 6}
    shown = protect(rows, sf.KAnonymity(3), sf.CellSuppression()).data.column("q").to_pylist()
    assert sorted(shown) == ["*"] * 3 + ["* (level 1)"] * 3


def test_a_group_that_was_the_same_as_the_root_does_not_take_in_what_joins_the_root(tmp_path: Path) -> None:
    """A missing value lies below the root alone: once the group below counted its people too."""
    rows = [["f", "Other", "Other"], ["a", "Other", "Other"], ["e", "Other", "Other"]]
    tree = Hierarchy.from_levels(rows).with_leaves([None])
    group, root = int(tree.node_of[1, 0]), int(tree.node_of[2, 0])
    assert group != root and tree.labels[group] == "Other" and tree.labels[root] == "Other (level 2)"
    assert tree.loss[group] == pytest.approx(2 / 3) and tree.loss[root] == 1.0
    (tmp_path / "h.csv").write_text("".join(f"{';'.join(row)}\n" for row in rows), encoding="utf-8")
    column = sf.Column(role="quasi", hierarchy=HierarchySpec(file=str(tmp_path / "h.csv")))
    schema = sf.Schema(dataset="odd", columns={"q": column})
    people = pa.table({"q": ["f", "a", "e", *[None] * 9]})
    release = sf.protect(pa.table({"q": ["f", "a", "e"]}), sf.KMap(2), sf.Lattice(), schema=schema, population=people)
    assert set(release.data.column("q").to_pylist()) == {"Other"}
    assert release.certificate.measured == {"KMap": 3}
