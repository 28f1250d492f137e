"""Kinds of trees and ranges that a certificate names: what its rows contradict is refused, what searches show never."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import sfumato as sf
from sfumato.core import registry
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.data.texts.values import texts
from sfumato.data.writers import write_csv
from sfumato.workflow.publishing import cards
from sfumato.workflow.publishing.released_form import released_form
from sfumato.workflow.verifying.stated.transparency import RANGES
from tests.faults.forging import refused, restate
from tests.faults.test_forged_words import Edit, forged

TREES, SHOWN, NOTICE = "levels and hierarchies", "shows something else", "notice about ranges"
STATED = "kinds and levels of trees that are not published"
_RANDOM = np.random.default_rng(5)
N = 80
ROWS = pa.table(
    {
        "born": [datetime.date(1950, 1, 1) + datetime.timedelta(days=int(day)) for day in _RANDOM.integers(0, 9000, N)],
        "age": _RANDOM.integers(20, 60, N),
        "town": _RANDOM.choice(["a", "b", "c"], N),
        "pay": _RANDOM.normal(3000, 500, N).round(2),
        "code": [f"{code:03d}" for code in _RANDOM.integers(0, 30, N)],
        "degree": _RANDOM.choice(["low", "middle", "high"], N),
        "tags": _RANDOM.choice(["x", "x|y", "y"], N),
    }
)
DATES = HierarchySpec(dates=("month", "year", "decade"))
TOWNS = HierarchySpec(tree={"land": ["a", "b"], "sea": ["c"]})


def released(method: Any, **columns: Column) -> sf.Release:
    schema = Schema(dataset="d", unit="record", columns=columns)
    people = sf.read(ROWS.select(list(columns)), schema)
    return sf.protect(people, sf.KAnonymity(4), method, utility=(), risk=())


def quasi(**described: Any) -> Column:
    return Column(role="quasi", **described)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders that nobody changed; tests forge copies."""
    place = tmp_path_factory.mktemp("honest")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cards, "MOST_DISTINCT", 0)
        for method in (sf.LeastLoss(), sf.Mondrian(ranges_everywhere=True), sf.Lattice(suppression=0.2), sf.LocalRecoding()):
            out = place / type(method).__name__
            columns = {"born": quasi(hierarchy=DATES), "age": quasi(type="integer"), "town": quasi(hierarchy=TOWNS)}
            released(method, **columns).save(out, "csv")
            verdict = sf.verify(out)
            assert verdict.verdict == "keeps", verdict.explain()
    return place


def kinds(**changed: str) -> Edit:
    """Other kinds of trees, and the notice that they make."""

    def edit(certificate: dict[str, Any]) -> None:
        stated = certificate["transparency"]["hierarchies"]
        stated.update(changed)
        ranged = [name for name in certificate["transparency"]["quasi_identifiers"] if stated[name] == RANGES]
        first = next((notice for notice in certificate["notices"] if notice.startswith("the ranges of ")), None)
        others = [notice for notice in certificate["notices"] if notice != first]
        words = " were made of the data: where they begin and end can be the values of single records"
        certificate["notices"] = [*others, *([f"the ranges of {', '.join(ranged)}{words}"] if ranged else [])]

    return edit


def notice(change: Callable[[str], str | None]) -> Edit:
    def edit(certificate: dict[str, Any]) -> None:
        changed = [change(each) if each.startswith("the ranges of ") else each for each in certificate["notices"]]
        certificate["notices"] = [each for each in changed if each is not None]

    return edit


FORGED: dict[str, tuple[str, Edit, str]] = {
    "ranges called flat": ("LeastLoss", kinds(age="flat"), SHOWN),
    "ranges called frequencies": ("LeastLoss", kinds(age="frequency"), SHOWN),
    "ranges called a mask": ("LeastLoss", kinds(age="mask"), SHOWN),
    "ranges called dates": ("Mondrian", kinds(born="dates"), SHOWN),
    "dates called ranges": ("LeastLoss", kinds(born=RANGES), SHOWN),
    "a tree called ranges": ("LeastLoss", kinds(town=RANGES), SHOWN),
    "ranges of a search that makes none": ("Lattice", kinds(born=RANGES), TREES),
    "ranges of a search over trees": ("LocalRecoding", kinds(age=RANGES), TREES),
    "no notice": ("LeastLoss", notice(lambda said: None), NOTICE),
    "another column in the notice": ("LeastLoss", notice(lambda said: said.replace("age", "town")), NOTICE),
    "one column more in the notice": ("LeastLoss", notice(lambda said: said.replace("age", "born, age")), NOTICE),
    "other words in the notice": ("LeastLoss", notice(lambda said: said.replace("can be", "are never")), NOTICE),
}


@pytest.mark.parametrize("name", FORGED)
def test_kinds_that_the_rows_contradict_are_refused(name: str, honest: Path, tmp_path: Path) -> None:
    base, edit, reason = FORGED[name]
    public = Path(shutil.copytree(honest / base, tmp_path / "out")) / "public"
    refused(forged(public, edit), reason)


def exchanged(public: Path, column: str, text: str) -> None:
    """One shown text in all its rows replaced by another."""
    schema = pyarrow.csv.read_csv(public / "data.csv").schema
    as_texts = pyarrow.csv.ConvertOptions(column_types={name: pa.string() for name in schema.names}, strings_can_be_null=True)
    table = pyarrow.csv.read_csv(public / "data.csv", convert_options=as_texts)
    shown = [each for each in texts(table.column(column).unique()) if each not in (None, "*")] or ["*"]
    cells = [text if each == shown[0] else each for each in table.column(column).to_pylist()]
    table = table.set_column(table.column_names.index(column), column, pa.array(cells, pa.string()))
    write_csv(released_form(table), public / "data.csv")
    restate(public, "data.csv")


TEXTS = ("[3, 4)", "Ada HIV", "Ada has HIV", "1990-01-01 … 1950-01-01", "[90, 1)", "land … sea", "[a, b)")


@pytest.mark.covering
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    ("base", "column"),
    [(base, column) for base in ("LeastLoss", "Mondrian", "LocalRecoding") for column in ("born", "age")],
)
def test_a_text_that_no_tree_and_no_range_has_is_refused(base: str, column: str, text: str, honest: Path, tmp_path: Path) -> None:
    public = Path(shutil.copytree(honest / base, tmp_path / "out")) / "public"
    exchanged(public, column, text)
    refused(forged(public, lambda certificate: None), SHOWN)


def test_a_text_outside_a_published_tree_rests_on_the_maker(honest: Path, tmp_path: Path) -> None:
    public = Path(shutil.copytree(honest / "LocalRecoding", tmp_path / "out")) / "public"
    assert "values in no group" not in sf.verify(public.parent).explain()
    exchanged(public, "town", "Ada HIV")
    forged(public, lambda certificate: None)
    assert "published trees do not have them: texts of 'town'" in sf.verify(public.parent).explain()


@pytest.mark.parametrize("text", ["Ada … HIV", "a … HIV"])
def test_ranges_of_what_a_published_tree_does_not_have_rest_on_the_maker(text: str, honest: Path, tmp_path: Path) -> None:
    """A tree that was called ranges might hold any text, and nothing was said."""
    public = Path(shutil.copytree(honest / "LeastLoss", tmp_path / "out")) / "public"
    exchanged(public, "town", text)
    forged(public, kinds(town=RANGES))
    assert "published trees do not have them: texts of 'town'" in sf.verify(public.parent).explain()


def test_what_no_level_is_checked_of_rests_on_the_maker(honest: Path, tmp_path: Path) -> None:
    assert STATED in sf.verify(honest / "LocalRecoding").explain()  # a flat tree without a level
    assert STATED not in sf.verify(honest / "Lattice").explain()
    proposed = quasi(hierarchy=HierarchySpec(intervals=(5, 20)), source="data")
    released(sf.Lattice(suppression=0.2), age=proposed).save(tmp_path / "out", "csv")
    assert STATED in sf.verify(tmp_path / "out").explain()  # a level of intervals that nobody can look up


NUMBERS = HierarchySpec(tree={"few": [f"{code:03d}" for code in range(15)], "many": [f"{code:03d}" for code in range(15, 30)]})
DESCRIBED: dict[str, dict[str, Column]] = {
    "dates and ranges": {"born": quasi(hierarchy=DATES), "age": quasi(type="integer")},
    "proposed intervals": {"age": quasi(hierarchy=HierarchySpec(intervals=(5, 20)), source="data"), "town": quasi()},
    "intervals and a tree": {"pay": quasi(hierarchy=HierarchySpec(intervals=(0.1, 500))), "town": quasi(hierarchy=TOWNS)},
    "cuts and a mask": {
        "age": quasi(hierarchy=HierarchySpec(cuts=(30, 45))),
        "code": quasi(hierarchy=HierarchySpec(mask="right")),
    },
    "masked numbers": {"age": quasi(hierarchy=HierarchySpec(mask="left", width=2)), "pay": quasi()},
    "an order and groups": {
        "degree": quasi(order=("low", "middle", "high")),
        "age": quasi(hierarchy=HierarchySpec(frequency=(4,))),
    },
    "numbers in a tree": {"code": quasi(hierarchy=NUMBERS), "tags": quasi(type="string", items="|")},
    "values outside a tree": {
        "town": quasi(hierarchy=HierarchySpec(tree={"land": ["a", "b"]}, missing="root")),
        "born": quasi(hierarchy=HierarchySpec(dates=("year",), ranges=True)),
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("search", sorted(registry.every("search")))
def test_releases_of_every_search_over_every_tree_are_accepted(
    search: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cards, "MOST_DISTINCT", 0)
    method = registry.find("search", search)()
    ranged = False
    for number, columns in enumerate(DESCRIBED.values()):
        release = released(method, **columns)
        ranged |= RANGES in release.certificate.transparency["hierarchies"].values()
        release.save(tmp_path / str(number), "csv")
        verdict = sf.verify(tmp_path / str(number))
        assert verdict.verdict == "keeps", verdict.explain()
    assert ranged is method.makes_ranges
