"""Rows that stay in their engine and rows of this process: the same promises can be made, verified and measured of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.errors import Unsupported
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.data.schema import Column
from sfumato.workflow.publishing.released_form import released_form
from tests.workflow.people import DISEASES, schema, table

SEARCH = sf.Lattice(suppression=0.05)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    pq.write_table(table(2_000), tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


def both(source: Path, out: Path, promises: list[ClassGuarantee], **named: Any) -> tuple[sf.Release, sf.Release]:
    """The release of this process, and the one that the engine wrote to `out`."""
    described = named.pop("described", schema())
    here = sf.protect(sf.read(source, described), promises, SEARCH, **named)
    there = sf.protect(sf.read(source, described, engine="duckdb"), promises, SEARCH, destination=out, **named)
    return here, there


def rows_in(folder: Path) -> pa.Table:
    return pa.concat_tables([pq.read_table(part) for part in sorted((folder / "public" / "data").iterdir())])


PROTECTED: dict[str, ClassGuarantee] = {
    "entropy": sf.EntropyLDiversity(1.2, "disease", protected_values=("asthma",)),
    "beta": sf.BetaLikeness(4, "disease", protected_values=("asthma",)),
    "beta of released rows": sf.BetaLikeness(4, "disease", reference="released", protected_values=("asthma",)),
    "closeness": sf.TCloseness(0.6, "disease", protected_values=("asthma",)),
    "nobody": sf.DeltaDisclosure(3, "disease", protected_values=("none of these",)),
}


@pytest.mark.parametrize("promise", PROTECTED)
def test_promises_about_protected_values_are_verified_as_those_of_memory(source: Path, tmp_path: Path, promise: str) -> None:
    diseases = Column(role="sensitive", type="string", domain=(*DISEASES, "none of these"))
    here, _ = both(source, tmp_path / "out", [sf.KAnonymity(3), PROTECTED[promise]], described=schema(disease=diseases))
    here.save(tmp_path / "saved")
    for original in (None, source):
        verdicts = [sf.verify(tmp_path / folder, original=original) for folder in ("saved", "out")]
        claims = [[(each.check, each.passed, each.text) for each in verdict.findings if each.claim] for verdict in verdicts]
        assert claims[0] == claims[1] and verdicts[0].holds == verdicts[1].holds and verdicts[1].accepted


def test_what_an_adversary_does_not_know_is_measured_as_in_memory(source: Path, tmp_path: Path) -> None:
    promise = sf.KAnonymity(5, knowledge=sf.Knowledge(attributes=("age", "sex")))
    here, there = both(source, tmp_path / "out", [promise])
    assert released_form(rows_in(tmp_path / "out")).equals(released_form(here.data))
    assert dict(there.scores) == pytest.approx(dict(here.scores))
    assert there.certificate.measured == here.certificate.measured
    assert sf.verify(tmp_path / "out").holds


def _with(source: Path, **columns: pa.Array) -> Path:
    rows = pq.read_table(source)
    for name, values in columns.items():
        rows = rows.append_column(name, values)
    pq.write_table(rows, source)
    return source


@pytest.mark.parametrize("role", ["plain", "quasi"])
@pytest.mark.parametrize("engine", ["stored", "recoded"])
def test_numbers_of_32_bits_are_the_same_in_both_releases(source: Path, tmp_path: Path, role: Any, engine: str) -> None:
    dose = pa.array([0.1, 2.5, 1e-20, None] * 500, pa.float32())
    described = schema(dose=Column(role=role, type="number"))
    people = sf.read(_with(source, dose=dose), described)
    assert people.table().column("dose").to_pylist()[:4] == [0.1, 2.5, 1e-20, None]
    here = sf.protect(people, [sf.KAnonymity(3)], SEARCH)
    away = sf.read(source, described, engine="duckdb")
    if engine == "recoded":
        assert sf.protect(away, [sf.KAnonymity(3)], SEARCH).data.equals(here.data)
        return
    sf.protect(away, [sf.KAnonymity(3)], SEARCH, destination=tmp_path / "out")
    assert released_form(rows_in(tmp_path / "out")).equals(released_form(here.data)) and sf.verify(tmp_path / "out").holds


def test_times_and_bytes_are_refused_before_the_work(source: Path, tmp_path: Path) -> None:
    import datetime

    noon = pa.array([datetime.time(12, i % 60) for i in range(2_000)], pa.time64("us"))
    photo = pa.array([bytes([i % 5]) for i in range(2_000)])
    described = schema(noon=Column(role="plain"), photo=Column(role="sensitive"))
    away = sf.read(_with(source, noon=noon, photo=photo), described, engine="duckdb")
    with pytest.raises(Unsupported, match=r"times or bytes \(noon, photo\)"):
        sf.protect(away, [sf.KAnonymity(3)], SEARCH, destination=tmp_path / "out")
    assert not (tmp_path / "out").exists()
