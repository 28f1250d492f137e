"""Releases whose rows are elsewhere, beside others: compared, attacked and verified, or said not to be."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.cli.main import run
from sfumato.core.errors import InputError, Unsupported
from sfumato.data.schema import Column
from tests.workflow.people import schema, table

LATTICE = sf.Lattice(suppression=0.05)
ROWS = 800


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two recodings of one table, each in this process and stored; `visits` is published by all of them and grouped by none."""
    place = tmp_path_factory.mktemp("place")
    pq.write_table(table(ROWS), place / "people.parquet")
    (place / "schema.toml").write_text(schema().to_toml())
    here = sf.read(place / "people.parquet", schema())
    there = sf.read(place / "people.parquet", schema(), engine="duckdb")
    promises = [sf.KAnonymity(5), sf.DistinctLDiversity(2, "disease")]
    for name, search in (("one", LATTICE), ("two", sf.LocalRecoding())):
        sf.protect(here, promises, search).save(place / f"here-{name}")
        sf.protect(there, promises, search, destination=place / f"there-{name}")
    sf.protect(there, promises, LATTICE, destination=place / "rows.duckdb", table_name="people").save(place / "in-table")
    return place


@pytest.mark.parametrize(
    ("release", "earlier"), [("there-one", "there-two"), ("there-one", "here-two"), ("here-one", "there-two")]
)
def test_stored_rows_that_other_columns_tie_together_are_not_compared(place: Path, release: str, earlier: str) -> None:
    """An attack said 6 records where the same rows in this process left 1."""
    assert sf.attack(place / "here-one", earlier=[place / "here-two"], only="Intersection")
    with pytest.raises(Unsupported, match="tied together by 'visits'"):
        sf.attack(place / release, earlier=[place / earlier], only="Intersection")


@pytest.mark.parametrize("stored_first", [True, False])
def test_another_kind_of_fingerprint_is_not_another_table(tmp_path: Path, stored_first: bool) -> None:
    described = schema().replace(columns={n: c for n, c in schema().columns.items() if n != "visits"})
    pq.write_table(table(ROWS).drop_columns(["visits"]), tmp_path / "people.parquet")
    promises, ledger = [sf.KAnonymity(5), sf.DistinctLDiversity(2, "disease")], tmp_path / "ledger.db"
    for stored, search in ((stored_first, LATTICE), (not stored_first, sf.LocalRecoding())):
        people = sf.read(tmp_path / "people.parquet", described, engine="duckdb" if stored else "memory")
        options = {"destination": tmp_path / "out"} if stored else {}
        release = sf.protect(people, promises, search, ledger=ledger, **options)  # type: ignore[arg-type]
    finding = release.certificate.composition["finding"]
    assert release.certificate.composition["compared"] == 1
    assert "was another one then" not in finding and "cannot be told" in finding


def test_a_table_without_the_released_values_is_not_the_original(tmp_path: Path) -> None:
    """With no number in the certificate to compare with, any table was believed to be the original."""
    people = sf.read(table(ROWS), schema())
    promises = [sf.KAnonymity(5), sf.TCloseness(0.5, "disease")]
    release = sf.protect(people, promises, LATTICE)
    assert release.certificate.claims[1].measured is None
    release.save(tmp_path / "out")
    verified = sf.verify(tmp_path / "out", original=people)
    assert verified.holds and "against the table that was passed as the original" in verified.explain()
    subset = sf.verify(tmp_path / "out", original=sf.read(table(ROWS).slice(0, 80), schema()))
    assert not subset.accepted and "it is another table" in subset.explain()


def test_rows_that_nobody_looks_at_are_not_named(place: Path) -> None:
    with pytest.raises(InputError, match=r"leave data= \(--data\) out"):
        sf.verify(place / "here-one", data=place / "rows.duckdb", table="people")
    with pytest.raises(InputError, match="give both"):
        sf.verify(place / "there-one", table="people")


def test_a_release_in_a_table_is_attacked_where_its_rows_are(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["attack", str(place / "in-table")]) == 2 and "--data-table" in capsys.readouterr().err
    rows = ["--data", str(place / "rows.duckdb"), "--data-table", "people"]
    assert run(["attack", str(place / "in-table"), "-a", "Homogeneity", *rows]) == 0
    said = capsys.readouterr().out
    assert run(["attack", str(place / "here-one"), "-a", "Homogeneity"]) == 0
    assert capsys.readouterr().out == said


def test_the_recipe_of_a_stored_release_runs_as_it_lies(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["protect", str(place / "people.parquet"), "--schema", str(place / "schema.toml"), "--k", "5", "--no-ledger"]
    assert run([*command, "--destination", "out", "--memory", "2GB"]) == 0
    assert run(["protect", "out/owner/recipe.toml", "-o", "again"]) == 0, capsys.readouterr().err


def test_columns_that_an_attack_counted_are_not_said_to_be_uncounted(tmp_path: Path) -> None:
    rows = pa.table({"age": [20 + i % 8 * 5 for i in range(400)], "code": [i % 3 for i in range(400)], "p": list(range(400))})
    pq.write_table(rows, tmp_path / "people.parquet")
    columns = {"age": Column(role="quasi"), "code": Column(role="sensitive"), "p": Column()}
    people = sf.read(tmp_path / "people.parquet", sf.Schema(dataset="d", unit="record", columns=columns), engine="duckdb")
    release = sf.protect(people, sf.KAnonymity(5), LATTICE, attacks=["Homogeneity"], destination=tmp_path / "out")
    notice = next(each for each in release.certificate.notices if "were not counted" in each)
    assert "'p'" in notice and "'code'" not in notice


def test_a_ledger_says_kept_of_a_promise_without_a_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people = sf.read(table(ROWS), schema())
    sf.protect(people, [sf.KAnonymity(5), sf.TCloseness(0.5, "disease")], LATTICE, ledger=tmp_path / "l.db")
    assert run(["ledger", "releases", "--ledger", str(tmp_path / "l.db")]) == 0
    said = capsys.readouterr().out
    assert "TCloseness(disease) kept" in said and "None" not in said
