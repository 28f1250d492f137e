"""Notices about the rows: whoever changes a number in one, or leaves one out, is found out."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from tests.faults.forging import change

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
