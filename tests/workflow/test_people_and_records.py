"""Whom a statement is about: a record without a name is nobody, a number of people that repeats is no record each."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import GuaranteeNotMet, InputError, VerificationFailed
from sfumato.core.guarantees.base import Knowledge
from sfumato.workflow.publishing.cards import stated_card
from sfumato.workflow.verdicts import check_verdict, release_verdict

UNIT = {"pid": {"role": "unit"}, "zip": {"role": "quasi"}, "diag": {"role": "sensitive"}}


def nameless() -> pa.Table:
    """In each place seven rows of one person and one of nobody knows whom."""
    return pa.table(
        {
            "pid": [*["A"] * 7, None, *["B"] * 7, None],
            "zip": [10] * 8 + [20] * 8,
            "diag": [f"d{place % 3}" for place in range(16)],
        }
    )


def test_a_record_without_a_unit_is_not_one_more_person() -> None:
    checked = sf.check(nameless(), {"columns": UNIT}, [sf.KAnonymity(2)])
    assert not checked.holds and checked.measured["KAnonymity"] == 1
    columns = {**UNIT, "zip": {"role": "quasi", "type": "integer"}}
    with pytest.raises(VerificationFailed):
        sf.mask(sf.read(nameless(), {"columns": columns}), sf.Mdav(k=8), [sf.KAnonymity(2)])


def test_pseudonyms_of_nobody_count_nobody(tmp_path: Path) -> None:
    columns = {
        "pid": {"role": "unit", "pseudonym": True},
        "zip": {"role": "quasi", "type": "integer"},
        "diag": {"role": "sensitive"},
    }
    rows = pa.table({"pid": ["A", "B", "C", "D", None, None], "zip": [1, 2, 3, 4, 5, 6], "diag": list("xyzxyz")})
    release = sf.mask(sf.read(rows, {"columns": columns}), sf.Mdav(k=6), [sf.KAnonymity(2)])
    assert release.certificate.measured["KAnonymity"] == 4
    release.save(tmp_path / "out")
    assert sf.verify(tmp_path / "out").accepted


def test_the_word_that_each_record_is_a_person_is_held_to_numbers_of_people() -> None:
    rows = pa.table({"patient_id": [f"P{place // 10}" for place in range(300)], "zip": [place // 10 for place in range(300)]})
    described = {"unit": "record", "columns": {"patient_id": {"role": "identifier"}, "zip": {"role": "quasi"}}}
    with pytest.raises(InputError, match="'patient_id', which numbers people, has 30 different values in 300 rows"):
        sf.protect(sf.read(rows, described), k=5)
    visits = rows.rename_columns(["visit_id", "zip"])
    columns = {"visit_id": {"role": "identifier"}, "zip": {"role": "quasi"}}
    assert sf.protect(sf.read(visits, {"unit": "record", "columns": columns}), k=5).certificate.holds


def test_no_value_is_invented_for_a_column_that_names_people(tmp_path: Path) -> None:
    """A declared list of names may be the list of those who are in the table."""
    columns = {**UNIT, "pid": {"role": "unit", "domain": ["Anna Real", "Bert Wirklich"]}}
    rows = pa.table({"pid": ["Anna Real", "Bert Wirklich"] * 4, "zip": ["1"] * 8, "diag": ["x", "y"] * 4})
    sf.protect(sf.read(rows, {"columns": columns}), [sf.KAnonymity(2), sf.DistinctLDiversity(2, "diag")]).save(tmp_path / "out")
    for file in (tmp_path / "out" / "public").iterdir():
        assert b"Anna" not in file.read_bytes(), file.name


def test_a_name_with_a_question_in_it_stays_whole_on_the_card() -> None:
    name = "How often? (per year). Drop it"
    rows = pa.table({"age": [20 + place % 5 for place in range(100)], name: [place / 7 for place in range(100)]})
    release = sf.protect(sf.read(rows, {"columns": {"age": {"role": "quasi"}, name: {"role": "plain"}}}), k=5)
    card = release.card("public").replace("&#x27;", "'")
    assert f"100 of 100 records (100 %) are alone with their value of column '{name}', which is published" in card
    assert "Should it be" not in card


def test_a_quasi_identifier_outside_of_every_promise_is_counted() -> None:
    rows = pa.table({"age": [20 + place % 2 for place in range(60)], "town": [f"T{place}" for place in range(60)]})
    people = sf.read(rows, {"columns": {"age": {"role": "quasi"}, "town": {"role": "quasi"}}})
    narrow = sf.KAnonymity(5, Knowledge(attributes=("age",)))
    notices = sf.protect(people, [narrow]).certificate.notices
    assert any(each.startswith("60 of 60 records (100 %) are alone with their value of column 'town'") for each in notices)


def test_the_invented_row_shows_no_more_than_some_record_does() -> None:
    """Ten places far apart: codes of five digits are cut to one or less, and the example is as short."""
    codes = [f"{place}{place * 7 % 10}{place * 3 % 10}11" for place in range(10) for _ in range(4)]
    columns = {"zip": {"role": "quasi", "hierarchy": {"mask": "right", "width": 5}}, "x": {"role": "plain"}}
    people = sf.read(pa.table({"zip": codes, "x": ["a"] * 40}), {"unit": "record", "columns": columns})
    release = sf.protect(people, [sf.KAnonymity(15)], sf.LocalRecoding())
    before, after = stated_card(release)["example"]["zip"]
    shown = max(len(text.rstrip("*")) for text in release.data.column("zip").unique().to_pylist())
    assert shown < 4 and len(before) == 5 and len(after.rstrip("*")) == shown


def test_check_says_what_no_promise_supposes_known() -> None:
    rows = pa.table({"a": [place % 20 for place in range(400)], "b": [place // 20 for place in range(400)]})
    checked = sf.check(rows, {"columns": {"a": {"role": "quasi"}, "b": {"role": "quasi"}}}, [sf.KAnonymity(5, Knowledge(("a",)))])
    assert checked.holds and any("column 'b' may be known to others" in each for each in check_verdict(checked).warnings)


def test_quasi_identifiers_that_a_mask_leaves_alone_are_named_once(tmp_path: Path) -> None:
    """In the order of the schema, whatever the order in the certificate."""
    rows = pa.table({"q": list(range(40)), "r": list("ab") * 20, "o": list("uvwx") * 10, "s": ["x"] * 40})
    columns = {"q": {"role": "quasi", "type": "integer"}, "r": {"role": "quasi"}, "o": {"role": "quasi"}, "s": {"role": "plain"}}
    people = sf.read(rows, {"unit": "record", "columns": columns})
    sf.mask(people, sf.Rounding(base=5, columns=("q",))).save(tmp_path / "out")
    found = sf.verify(tmp_path / "out")
    assert not [each for each in found.findings if each.check == "notices"], found.explain()


def test_a_role_that_the_schema_writes_is_not_proposed_again() -> None:
    rows = pa.table({"age": [20 + place % 40 for place in range(200)], "spend": [place * 1.5 for place in range(200)]})
    columns = {"age": {"role": "quasi"}, "spend": {"role": "plain", "type": "number"}}
    profile = sf.inspect(sf.read(rows, {"columns": columns}))
    assert profile.column("spend").role == "plain" and profile.column("age").role == "quasi"


def test_a_schema_in_another_order_than_its_table_is_verified(tmp_path: Path) -> None:
    """Two columns that show ranges of the data: their notice names them in one order, whoever writes it."""
    rows = pa.table({"a": [place * 7 % 61 for place in range(100)], "b": [place * 11 % 61 for place in range(100)]})
    integer = {"role": "quasi", "type": "integer"}
    people = sf.read(rows, {"unit": "record", "columns": {"b": integer, "a": integer}})
    release = sf.protect(people, k=3)
    assert any("the ranges of b, a were made of the data" in each for each in release.certificate.notices)
    release.save(tmp_path / "out")
    assert sf.verify(tmp_path / "out").accepted


def test_a_number_of_people_that_repeats_is_warned_about_where_no_unit_is_declared() -> None:
    rows = pa.table({"patient_id": [f"P{place // 5}" for place in range(300)], "zip": [place // 5 for place in range(300)]})
    people = sf.read(rows, {"columns": {"patient_id": {"role": "identifier"}, "zip": {"role": "quasi"}}})
    with pytest.warns(sf.SfumatoWarning, match="'patient_id', which numbers people, has 60 different values in 300 rows"):
        release = sf.protect(people, k=5)
    assert release_verdict(release).word == "warning" and not any("60" in each for each in release.certificate.notices)
    with pytest.raises(GuaranteeNotMet, match="a class may be one person"):
        sf.protect(people, k=5, strict=True)


def test_python_warns_of_a_sensitive_column_without_a_promise() -> None:
    rows = pa.table({"age": [20 + place % 4 for place in range(40)], "ill": ["flu", "cold"] * 20})
    with pytest.warns(sf.SfumatoWarning, match="nothing is promised about 'ill'"):
        sf.protect(sf.read(rows, {"unit": "record", "columns": {"age": {"role": "quasi"}, "ill": {"role": "sensitive"}}}), k=5)
