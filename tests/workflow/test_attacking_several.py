"""Attacking a release together with earlier ones: refused wherever `protect` would not compare them."""

from __future__ import annotations

import dataclasses
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.attacks.several.comparable import refuse_unread
from sfumato.core.errors import Unsupported
from sfumato.core.view import View
from sfumato.data.microdata import ReleasedTable
from sfumato.data.schema import Column, HierarchySpec, Schema
from tests.workflow.attacked import attack_folder

AGES = [20] * 4 + [99] * 4
GRADES = ("low", "mid", "high", "top")
OTHERWISE = "had another type, or other codes for missing ones"
TREE = HierarchySpec(tree={"all": ["20.0", "99.0"]})
WRITTEN: dict[str, tuple[list[Any], Column]] = {
    "integer": (AGES, Column(role="quasi", type="integer")),
    "in intervals": (AGES, Column(role="quasi", type="integer", hierarchy=HierarchySpec(intervals=(200,)))),
    "99 is none": (AGES, Column(role="quasi", type="integer", missing=("99",))),
    "98 is none": (AGES, Column(role="quasi", type="integer", missing=("98",))),
    "text": ([f"{age}.0" for age in AGES], Column(role="quasi", type="string")),
    "text in a tree": ([f"{age}.0" for age in AGES], Column(role="quasi", type="string", hierarchy=TREE)),
}
KINDS = {name: (column.type, column.missing) for name, (_, column) in WRITTEN.items()}


def made(values: list[Any], column: Column, **options: Any) -> sf.Release:
    described = {"x": column, "w": Column(role="quasi", type="string"), "ill": Column(role="sensitive", type="string")}
    ill = ["flu", "cold", "gout", "ms", "flu", "flu", "gout", "ms"]
    rows = pa.table({"x": values, "w": ["a"] * 6 + ["b"] * 2, "ill": ill})
    method = options.pop("method", sf.Lattice())
    return sf.protect(
        sf.read(rows, Schema(dataset="d", columns=described)), sf.KAnonymity(options.pop("k", 2)), method, **options
    )


def view_of(release: sf.Release) -> View:
    """What a recipient holds: rows, public schema, certificate."""
    schema = Schema.parse(release.certificate.to_mapping()["schema"])
    return View(ReleasedTable(release.data, schema, {}, release.data.num_rows), schema, release.certificate.to_mapping())


def test_what_was_written_otherwise_is_refused_and_nothing_else() -> None:
    views = {name: view_of(made(*written)) for name, written in WRITTEN.items()}
    for one, other in product(views, repeat=2):
        if KINDS[one] == KINDS[other]:
            refuse_unread([views[one], views[other]])
            continue
        with pytest.raises(Unsupported, match=f"'x' {OTHERWISE}"):
            refuse_unread([views[one], views[other]])


def test_an_earlier_version_did_not_say_how_values_were_written() -> None:
    def older(view: View) -> View:
        transparency = {name: told for name, told in view.certificate["transparency"].items() if name != "written_as"}
        return dataclasses.replace(view, certificate={**view.certificate, "transparency": transparency})

    newer = {name: view_of(made(*WRITTEN[name])) for name in ("integer", "99 is none", "98 is none", "text")}
    old = {name: older(view) for name, view in newer.items()}
    for integer in (newer["integer"], old["integer"]):
        refuse_unread([old["integer"], integer])
        for other in ("99 is none", "text"):
            with pytest.raises(Unsupported, match="one of the releases does not say how the values of column 'x' were written"):
                refuse_unread([integer, old[other]])
    with pytest.raises(Unsupported, match=OTHERWISE):  # the two that say it say different things
        refuse_unread([old["integer"], newer["integer"], newer["98 is none"]])


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (Column(role="quasi", type="string", hierarchy=HierarchySpec(frequency=(2, 4))), "were learnt from a table"),
        (Column(role="quasi", type="string", order=GRADES), "a range of column 'x' cannot be read"),
    ],
)
def test_texts_that_nobody_can_read_are_refused(column: Column, why: str) -> None:
    view = view_of(made(["low", "mid", "high", "top"] * 2, column, k=4, method=sf.Mondrian() if column.order else sf.Lattice()))
    with pytest.raises(Unsupported, match=f"{why}.*assume that everything"):
        refuse_unread([view, view])


@pytest.mark.slow
def test_a_saved_release_is_attacked_with_earlier_ones_that_can_be_read(tmp_path: Path) -> None:
    for name in ("integer", "99 is none"):
        made(*WRITTEN[name]).save(tmp_path / name)
    assert sf.verify(tmp_path / "99 is none").holds
    made(*WRITTEN["integer"], k=4).save(tmp_path / "coarser")
    [found] = attack_folder(tmp_path / "integer", earlier=[tmp_path / "coarser"], only=["Intersection"])
    assert "Combined, for people" in found["finding"]
    with pytest.raises(Unsupported, match=OTHERWISE):
        attack_folder(tmp_path / "99 is none", earlier=[tmp_path / "integer"], only=["Intersection"])


def test_a_register_of_some_people_counts_nobody() -> None:
    """Whoever lists every sixth person knows of one in town b, where six are, and of three in towns of twenty."""
    towns = ["a"] * 20 + ["b"] * 6 + ["c"] * 20
    described = {"town": Column(role="quasi", type="string"), "ill": Column(role="sensitive", type="string")}
    people = sf.read(pa.table({"town": towns, "ill": ["flu", "gout"] * 23}), Schema(dataset="d", columns=described))
    fine, coarse = (sf.protect(people, sf.KAnonymity(k), sf.Lattice(suppression=0.3)) for k in (5, 10))
    whole = people.table().select(["town"])
    [alone] = sf.attack(fine, earlier=[coarse], only="Intersection")
    for register in (whole, whole.take(list(range(0, 46, 6))), pa.concat_tables([whole, whole])):
        [found] = sf.attack(fine, earlier=[coarse], register=register, only="Intersection")
        shared = ("differencing_groups", "differencing_people", "smallest_difference", "worst_remaining_group")
        assert [found.details[name] for name in shared] == [alone.details[name] for name in shared] == [0, 0, 0, 20]
        assert found.details["people_are"] == "of the register" and "worst_joint_group" not in found.details
        assert "people of the register" in found.finding and "today" not in found.finding
