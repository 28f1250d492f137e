"""Releases in the ledger: entered once, kept for later, and compared with the ones before."""

from __future__ import annotations

import stat
from pathlib import Path

import sfumato as sf
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
    assert found["details"]["worst_remaining_group"] <= found["details"]["worst_group_alone"] or "as before" in found["finding"]
    assert "1 earlier release of this dataset" in found["finding"]


def test_two_safe_releases_can_single_people_out_together(tmp_path: Path) -> None:
    """Two tables that are each 2-diverse, and whose intersection gives everybody's disease away."""
    import pyarrow as pa

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
