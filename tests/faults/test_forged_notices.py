"""Notices about the rows: whoever changes a number in one, or leaves one out, is found out."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from tests.faults.forging import change, claim

ROWS = pa.table(
    {
        "town": ["here", "there"] * 40,
        "job": [f"job {place // 2 % 31}" for place in range(80)],
        "cost": [f"cost {place if place < 60 else 60}" for place in range(80)],
        "ill": [None if place % 3 else f"illness {place % 5}" for place in range(80)],
    }
)
COLUMNS = {"town": {"role": "quasi"}, "job": {"role": "plain"}, "cost": {"role": "plain"}, "ill": {"role": "sensitive"}}


@pytest.fixture
def public(tmp_path: Path) -> Path:
    people = sf.read(ROWS, {"dataset": "noticed", "unit": "record", "columns": COLUMNS})
    sf.protect(people, [sf.KAnonymity(5), sf.DistinctLDiversity(2, "ill")], sf.Lattice()).save(tmp_path / "out")
    return tmp_path / "out" / "public"


def said(public: Path, old: str, new: str) -> None:
    def edit(certificate: dict[str, object]) -> None:
        notices = certificate["notices"]
        assert isinstance(notices, list) and any(old in each for each in notices), notices
        certificate["notices"] = [each.replace(old, new) for each in notices if new or old not in each]

    change(public, edit)


def test_the_notices_of_a_release_are_those_that_its_rows_give(public: Path) -> None:
    found = sf.verify(public)
    assert found.accepted and not any(finding.check == "notices" and finding.passed is None for finding in found.findings)
    assert sum("are alone" in each for each in found.certificate.notices) == 2  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("60 of 80 records (75 %) are alone with their value", "4 of 80 records (5 %) are alone with their value"),
        ("value of column 'cost'", "value of column 'job'"),
        ("value of column 'cost'", "value of column 'nowhere'"),
        ("show together", "show in a pair"),
        ("('job', 'cost', 'ill')", "('job', 'cost')"),
    ],
)
def test_a_notice_with_another_number_or_column_is_refused(public: Path, old: str, new: str) -> None:
    said(public, old, new)
    assert "says something else of the rows" in sf.verify(public).explain()


def test_a_notice_that_is_left_out_is_told(public: Path) -> None:
    said(public, "value of column 'cost'", "")
    assert "not said by the maker: 60 of 80 records" in sf.verify(public).explain()


def test_the_former_sentence_is_held_to_the_rows(public: Path) -> None:
    former = "column 'cost' is published as it is and has 61 different values in 80 records: whoever knows one finds the record."
    advice = " Should it be a quasi-identifier?"

    def edit(certificate: dict[str, object]) -> None:
        certificate["notices"] = [former + advice]

    change(public, edit)
    assert "says something else of the rows" not in sf.verify(public).explain()
    said(public, "61 different", "62 different")
    assert "says something else of the rows" in sf.verify(public).explain()


@pytest.fixture(params=["mask", "parts"])
def other_kinds(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A mask, and rows that an engine wrote: both tell of a column in which everybody is alone, or that nobody counted it."""
    rows = ROWS.append_column("age", pa.array([20 + place % 8 for place in range(80)]))
    columns = {**COLUMNS, "age": {"role": "quasi", "type": "integer"}}
    if request.param == "mask":
        people = sf.read(rows, {"dataset": "noticed", "columns": {**columns, "town": {"role": "plain"}}})
        sf.mask(people, sf.Mdav(k=5, columns=("age",))).save(tmp_path / "out")
        return tmp_path / "out" / "public"
    pq.write_table(rows, tmp_path / "rows.parquet")
    people = sf.read(tmp_path / "rows.parquet", {"dataset": "noticed", "unit": "record", "columns": columns}, engine="duckdb")
    promises = [sf.KAnonymity(5), sf.DistinctLDiversity(2, "ill")]
    sf.protect(people, promises, sf.Lattice(), destination=tmp_path / "out")
    return tmp_path / "out" / "public"


def test_notices_of_masks_and_of_parts_are_held_to_the_rows(other_kinds: Path) -> None:
    def about_rows(found: sf.Verification) -> list[str]:
        return [finding.text for finding in found.findings if finding.check == "notices"]

    honest = sf.verify(other_kinds)
    assert honest.accepted and not about_rows(honest), honest.explain()
    notices = honest.certificate.notices  # type: ignore[union-attr]
    counted = next(each for each in notices if "'cost'" in each)

    def without(certificate: dict[str, object]) -> None:
        certificate["notices"] = []

    def otherwise(certificate: dict[str, object]) -> None:
        certificate["notices"] = [counted.replace("60 of 80 records (75 %)", "4 of 80 records (5 %)").replace("'job', ", "")]

    change(other_kinds, without)
    assert f"not said by the maker: {counted}" in about_rows(sf.verify(other_kinds))
    change(other_kinds, otherwise)
    assert "says something else of the rows" in sf.verify(other_kinds).explain()


def test_what_follows_from_the_certificate_cannot_be_left_out(tmp_path: Path) -> None:
    """That missing values count as different ones, and that pseudonyms stand there."""
    ill = pa.array([None, "a", "b", "a", "b"] * 8)
    rows = pa.table({"name": [f"N{place}" for place in range(40)], "town": ["here", "there"] * 20, "ill": ill})
    columns = {
        "name": {"role": "identifier", "pseudonym": True},
        "town": {"role": "quasi"},
        "ill": {"role": "sensitive"},
    }
    people = sf.read(rows, {"dataset": "d", "unit": "record", "columns": columns})
    sf.protect(people, [sf.KAnonymity(5), sf.DistinctLDiversity(3, "ill")], sf.Lattice()).save(tmp_path / "out")
    public = tmp_path / "out" / "public"

    def edit(certificate: dict[str, object]) -> None:
        certificate["notices"] = []

    change(public, edit)
    told = [finding.text for finding in sf.verify(public).findings if finding.check == "notices"]
    assert len(told) == 2 and "a missing value of 'ill' counts" in told[0] and "seudonym" in told[1]


@pytest.mark.parametrize("columns", [5, None, [["a"]], {"town": 7}], ids=str)
def test_a_schema_of_another_kind_is_refused_and_ends_nothing(public: Path, columns: object) -> None:
    def edit(certificate: dict[str, object]) -> None:
        certificate["schema"]["columns"] = columns  # type: ignore[index]

    change(public, edit)
    assert sf.verify(public).verdict == "does not keep"


def test_a_claim_without_its_column_is_refused_beside_a_notice_about_it(public: Path) -> None:
    def edit(certificate: dict[str, object]) -> None:
        claim(certificate, 1).update(parameters={}, also_measured={"different known values": 1})
        certificate["notices"] = ["a missing value of 'ill' counts as a value of its own"]

    change(public, edit)
    assert sf.verify(public).verdict == "does not keep"
