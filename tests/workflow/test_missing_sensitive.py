"""A missing value counts as a value of a sensitive column; readers are told where it makes a difference."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.certificate import KNOWN_VALUES
from sfumato.data.schema import Column, Schema

SCHEMA = Schema(
    dataset="na",
    unit="record",
    columns={"age": Column(role="quasi", type="integer"), "diag": Column(role="sensitive", type="string")},
)


def published(values: list[str | None], *promises: object) -> sf.Release:
    table = pa.table({"age": [30] * len(values) + [40] * len(values), "diag": values * 2})
    return sf.protect(sf.read(table, SCHEMA), [sf.KAnonymity(2), *promises], sf.Lattice())


PROMISES = [
    sf.DistinctLDiversity(2, "diag"),
    sf.EntropyLDiversity(1.5, "diag"),
    sf.RecursiveLDiversity(3, 2, "diag"),
]


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: type(promise).__name__)
def test_certificate_verifier_and_owner_are_told_that_known_values_are_fewer(promise: object, tmp_path: Path) -> None:
    release = published(["hiv", "hiv", None, None, None], promise)
    claim = release.certificate.claims[-1]
    assert claim.holds and claim.also_measured[KNOWN_VALUES] == 1
    assert any("only 1 different known value" in notice for notice in release.certificate.notices)
    release.save(tmp_path / "na")
    found = sf.verify(tmp_path / "na")
    assert found.holds
    assert any("only 1 different known value" in finding.text for finding in found.findings)


def test_nothing_is_said_where_known_values_are_enough() -> None:
    release = published(["hiv", "flu", None, "flu"], *PROMISES)
    assert all(KNOWN_VALUES not in claim.also_measured for claim in release.certificate.claims)
    assert not any("missing value" in notice for notice in release.certificate.notices)


def test_homogeneity_counts_classes_that_show_one_value_beside_missing_ones() -> None:
    [found] = sf.attack(published(["hiv", None, "hiv"]), only="Homogeneity")
    assert "0 of 2 classes show a single value" in found.finding
    assert "2 more show a single value beside missing ones" in found.finding
    [found] = sf.attack(published(["hiv", None, "flu"]), only="Homogeneity")
    assert "more show" not in found.finding


def test_records_alone_in_columns_that_no_promise_covers_are_counted_together() -> None:
    rows = 60
    columns = {"age": Column(role="quasi", type="integer"), **{name: Column(role="plain") for name in "xyz"}}
    shown = {"x": [i % 4 for i in range(rows)], "y": [i % 3 for i in range(rows)], "z": [i % 5 for i in range(rows)]}

    def notices(*names: str) -> tuple[str, ...]:
        table = pa.table({"age": [30] * rows, **{name: shown[name] for name in names}})
        schema = Schema(dataset="wide", unit="record", columns={name: columns[name] for name in ("age", *names)})
        return sf.protect(sf.read(table, schema), sf.KAnonymity(5)).certificate.notices

    assert any("60 of 60 records (100 %) are alone in what the 3 columns" in notice for notice in notices("x", "y", "z"))
    assert not any("are alone in what" in notice for notice in notices("x", "y"))


@pytest.mark.parametrize("stored", [False, True])
def test_a_notice_about_a_column_counts_the_records_that_are_alone_with_their_value(stored: bool, tmp_path: Path) -> None:
    """98 of 100 records share 49 values: more than half as many values as records, and nearly nobody is found by one."""
    columns = {"age": Column(role="quasi", type="integer"), "code": Column(role="sensitive", type="integer")}
    described = Schema(dataset="codes", unit="record", columns=columns)
    options = {"destination": tmp_path / "out"} if stored else {}

    def notices(codes: list[int | None]) -> list[str]:
        pq.write_table(pa.table({"age": [30] * len(codes), "code": codes}), tmp_path / "codes.parquet")
        people = sf.read(tmp_path / "codes.parquet", described, engine="duckdb" if stored else "memory")
        promises = [sf.KAnonymity(5), sf.DistinctLDiversity(2, "code")]
        made = sf.protect(people, promises, sf.Lattice(), **options)  # type: ignore[arg-type]
        return [notice for notice in made.certificate.notices if "finds the record" in notice]

    assert not notices([i // 2 for i in range(98)] + [98, 99])
    options = {"destination": tmp_path / "second"} if stored else {}
    [said] = notices([i // 2 for i in range(80)] + list(range(100, 119)) + [None])
    assert said.startswith("19 of 100 records (19 %) are alone with their value of column 'code', which is published as it is")
