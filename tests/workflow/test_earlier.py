"""Releases in the ledger: entered once, kept for later, and compared with the ones before."""

from __future__ import annotations

import stat
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import HierarchyError
from sfumato.data.schema import Column, HierarchySpec, Schema
from tests.workflow.people import people, release, schema, table

SEARCH = sf.Lattice(suppression=0.05)


def test_a_release_without_a_ledger_says_so() -> None:
    assert release().certificate.ledger == "not entered"


def test_a_release_is_entered_and_its_published_rows_are_kept(tmp_path: Path) -> None:
    made = release(ledger=tmp_path / "ledger.db")
    with sf.Ledger.open(tmp_path / "ledger.db") as book:
        entries = book.releases("clinic")
        assert book.verify(made.certificate.ledger).ok
    assert [entry.hash for entry in entries] == [made.certificate.ledger]
    kept = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "ledger.db.releases").iterdir()}
    assert kept == {f"{entries[0].payload['sha256']}.parquet": 0o600, f"{entries[0].hash}.json": 0o600}


def test_the_ledger_holds_no_record_value(tmp_path: Path) -> None:
    release(ledger=tmp_path / "ledger.db")
    raw = (tmp_path / "ledger.db").read_bytes() + b"".join(p.read_bytes() for p in tmp_path.glob("ledger.db-*"))
    assert b"person 0" not in raw and b"0101" not in raw and b"asthma" not in raw


def test_the_same_release_again_is_the_same_entry(tmp_path: Path) -> None:
    first, second = (release(ledger=tmp_path / "ledger.db") for _ in range(2))
    assert first.certificate.ledger == second.certificate.ledger
    assert second.certificate.composition["earlier_releases"] == 0


def test_an_earlier_release_is_laid_over_the_new_one(tmp_path: Path) -> None:
    release(ledger=tmp_path / "ledger.db")
    second = sf.protect(people(), sf.KAnonymity(4), sf.Lattice(suppression=0.2), ledger=tmp_path / "ledger.db")
    found = second.certificate.composition
    assert found["earlier_releases"] == found["compared"] == 1
    assert found["details"]["people_are"] == "estimated"  # the certificate is public: what an outsider finds
    assert second.details["composition"]["people counted in the original"].startswith("1 earlier release")
    left, alone = (found["details"][name] for name in ("worst_remaining_group", "worst_group_alone"))
    said = (
        f"instead of {alone} in the weakest"
        if left < alone
        else f"the smallest group of one release alone, alike in what counts as known, has {alone} records"
    )
    assert f"as few as {left} records, " in found["finding"] and said in found["finding"]
    assert "1 earlier release of this dataset" in found["finding"]


def test_two_safe_releases_can_single_people_out_together(tmp_path: Path) -> None:
    """Two tables that are each 2-diverse, and whose intersection gives everybody's disease away."""
    rows = pa.table({"a": ["1", "1", "2", "2"] * 2, "b": ["1", "2", "1", "2"] * 2, "disease": ["w", "x", "y", "z"] * 2})
    by_a = sf.Schema.of("pairs", quasi=["a"], sensitive=["disease"], unlisted="drop")
    by_b = sf.Schema.of("pairs", quasi=["b"], sensitive=["disease"], unlisted="drop")
    promise = [sf.KAnonymity(2), sf.DistinctLDiversity(2, "disease")]
    sf.protect(sf.read(rows, by_a), promise, sf.Lattice(), ledger=tmp_path / "l.db")
    second = sf.protect(sf.read(rows, by_b), promise, sf.Lattice(), ledger=tmp_path / "l.db")
    found = second.certificate.composition
    assert found["success"] == 1.0, found
    assert found["details"]["singled_out"] == 8


def test_other_datasets_are_left_alone(tmp_path: Path) -> None:
    release(ledger=tmp_path / "ledger.db")
    other = sf.read(table(), schema().replace(dataset="another clinic"))
    assert (
        sf.protect(other, sf.KAnonymity(5), SEARCH, ledger=tmp_path / "ledger.db").certificate.composition["earlier_releases"]
        == 0
    )


def test_an_earlier_release_whose_rows_are_gone_is_reported(tmp_path: Path) -> None:
    release(ledger=tmp_path / "ledger.db")
    for path in (tmp_path / "ledger.db.releases").iterdir():
        path.unlink()
    found = sf.protect(people(), sf.KAnonymity(4), SEARCH, ledger=tmp_path / "ledger.db").certificate.composition
    assert found["compared"] == 0 and len(found["not_available"]) == 1
    assert "unknown" in found["finding"]


def test_an_open_ledger_stays_open(tmp_path: Path) -> None:
    with sf.Ledger.open(tmp_path / "ledger.db") as book:
        release(ledger=book)
        assert len(book.releases("clinic")) == 1


def test_a_release_of_an_earlier_version_is_not_compared(tmp_path: Path) -> None:
    """Its ledger has the rows and not how they are read; a file that was tampered with says as little."""
    release(ledger=tmp_path / "ledger.db")
    [reading] = (tmp_path / "ledger.db.releases").glob("*.json")
    for content in (None, b"", b"[]", b'{"format": "sfumato-reading-1"}', b'{"format": "sfumato-reading-1", "columns": 5}'):
        reading.unlink(missing_ok=True)
        if content is not None:
            reading.write_bytes(content)
        found = sf.protect(people(), sf.KAnonymity(4), SEARCH, ledger=tmp_path / "ledger.db").certificate.composition
        assert found["compared"] == 0 and len(found["not_compared"]) == 1
        assert "how its texts are to be read was not kept; assume that everything" in found["finding"]


def test_a_hierarchy_file_that_changed_is_read_as_it_was(tmp_path: Path) -> None:
    """Ages were even or odd, and are now young or old: people of one group are in both groups of the other release."""
    ages = [str(age) for age in range(8)] * 2
    rows = pa.table({"age": ages, "s": ["u", "v"] * 8})
    column = Column(role="quasi", type="string", hierarchy=HierarchySpec(file="age.csv"))
    described = Schema(dataset="d", columns={"age": column, "s": Column(role="sensitive", type="string")}, folder=str(tmp_path))
    for name in ("first", "second"):
        groups = {"first": lambda n: f"g{n % 2}", "second": lambda n: f"g{n // 4}"}[name]
        (tmp_path / "age.csv").write_text("".join(f"{n};{groups(n)};*\n" for n in range(8)), encoding="utf-8")
        made = sf.protect(sf.read(rows, described), sf.KAnonymity(3), sf.Lattice(), ledger=tmp_path / "l.db")
        assert set(made.data.column("age").to_pylist()) == {"g0", "g1"}
    # one person in two shares both groups, and with them one value of s: 0, 2, … have u, the others v
    assert made.certificate.composition["details"]["combinations"] == 4


def test_a_hierarchy_file_that_is_gone_leaves_nothing_in_the_ledger(tmp_path: Path) -> None:
    (tmp_path / "age.csv").write_text("".join(f"{n};*\n" for n in range(4)), encoding="utf-8")
    column = Column(role="quasi", type="string", hierarchy=HierarchySpec(file="age.csv"))
    data = sf.read(pa.table({"age": ["0", "1"] * 4}), Schema(dataset="d", columns={"age": column}, folder=str(tmp_path)))

    def gone(step: str, done: int, of: int) -> None:
        if step == "verifying":
            (tmp_path / "age.csv").unlink(missing_ok=True)

    with pytest.raises(HierarchyError, match="cannot read hierarchy file 'age.csv' again"):
        sf.protect(data, sf.KAnonymity(2), sf.Lattice(), ledger=tmp_path / "l.db", progress=gone)
    with sf.Ledger.open(tmp_path / "l.db") as book:
        assert book.releases("d") == []
