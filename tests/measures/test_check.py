"""Checking any table, from any source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import InputError, MissingColumn, ParameterError
from sfumato.measures.guarantees.reference import ReferenceDistribution
from sfumato.workflow.check import TableCheck
from tests.measures.tables import (
    HOSPITAL_SCHEMA,
    classes_table,
    generalised_hospital,
    grouped_schema,
    hospital,
)

GUARANTEES = [sf.KAnonymity(4), sf.DistinctLDiversity(2, "disease")]


def test_a_check_says_what_holds_and_what_fails() -> None:
    found = sf.check(generalised_hospital(), HOSPITAL_SCHEMA, GUARANTEES)
    assert isinstance(found, TableCheck)
    assert not found.holds
    assert found.measured == {"KAnonymity": 4, "DistinctLDiversity(disease)": 1}
    text = found.explain()
    assert "KAnonymity holds." in text
    assert "DistinctLDiversity(disease) does NOT hold." in text
    assert "1 of 3 classes (4 of 12 records)" in text
    assert "1 of size 4" in text


def test_a_single_guarantee_needs_no_list() -> None:
    assert sf.check(generalised_hospital(), HOSPITAL_SCHEMA, sf.KAnonymity(4)).holds
    with pytest.raises(ParameterError, match="int"):
        sf.check(generalised_hospital(), HOSPITAL_SCHEMA, [5])  # type: ignore[list-item]


def test_without_guarantees_everything_is_measured() -> None:
    found = sf.check(generalised_hospital(), HOSPITAL_SCHEMA)
    assert found.holds
    assert found.measures.k == 4
    assert found.measures.attributes["disease"].alpha == 1


def test_explanations_and_json_carry_no_record_value() -> None:
    canary = "canary-5d1e"
    rows = hospital()
    rows = rows.set_column(0, "zip", pa.array([canary] + rows["zip"].to_pylist()[1:]))
    rows = rows.set_column(3, "disease", pa.array([canary] + rows["disease"].to_pylist()[1:]))
    found = sf.check(rows, HOSPITAL_SCHEMA, GUARANTEES)
    for text in (found.explain(), json.dumps(found.to_mapping(), allow_nan=False), repr(found)):
        assert canary not in text


def test_the_mapping_is_json_even_with_infinite_numbers() -> None:
    asked = [sf.RecursiveLDiversity(2, 2, "disease"), sf.DeltaDisclosure(1, "disease")]
    found = sf.check(generalised_hospital(), HOSPITAL_SCHEMA, asked)
    plain = json.loads(json.dumps(found.to_mapping(), allow_nan=False))
    assert plain["guarantees"][0]["measured"] == "infinite"
    assert plain["measures"]["attributes"]["disease"]["delta"] == "infinite"
    assert plain["guarantees"][0]["parameters"] == {"c": 2, "l": 2, "attribute": "disease"}


def test_failing_classes_are_shown_to_the_owner_smallest_first() -> None:
    released = classes_table([{"a": 3}, {"a": 1}, {"a": 2}, {"a": 5}])
    found = sf.check(released, grouped_schema(), [sf.KAnonymity(4)])
    shown = found.failing(sf.KAnonymity(4), limit=2)
    assert shown.to_pydict() == {"group": ["class 1", "class 2"], "class": [1, 2], "records": [1, 2]}
    assert found.failing("KAnonymity", limit=None).num_rows == 3
    with pytest.raises(ParameterError, match="not checked"):
        found.failing("KMap")


def test_names_of_the_failing_table_do_not_collide() -> None:
    rows = pa.table({"class": ["x", "y"], "records": ["1", "2"]})
    found = sf.check(rows, sf.Schema.of(quasi=["class", "records"]), [sf.KAnonymity(2)])
    assert found.failing("KAnonymity").column_names == ["class", "records", "class_", "records_"]


def test_rows_of_stars_are_a_class_unless_dropped() -> None:
    rows = classes_table([{"a": 2, "b": 2}, {"a": 1}])
    groups = [("*" if group == "class 1" else group) for group in rows["group"].to_pylist()]
    rows = rows.set_column(0, "group", pa.array(groups))
    as_class = sf.check(rows, grouped_schema(), [sf.KAnonymity(4)])
    assert not as_class.holds
    assert any("1 row with '*' in every quasi-identifier was measured" in notice for notice in as_class.notices)
    dropped = sf.check(rows, grouped_schema(), [sf.KAnonymity(4)], suppressed="drop")
    assert dropped.holds
    assert dropped.measures.records == 4
    assert any("left out" in notice for notice in dropped.notices)
    with pytest.raises(ParameterError):
        sf.check(rows, grouped_schema(), suppressed="hide")  # type: ignore[arg-type]


def test_without_the_original_the_released_rows_are_the_reference_and_a_notice_says_so() -> None:
    released = classes_table([{"a": 5, "b": 5}])
    asked = [sf.TCloseness(0.1, "disease")]
    alone = sf.check(released, grouped_schema(), asked)
    assert alone.holds and "was not given" in alone.notices[0]
    original = classes_table([{"a": 5, "b": 5}, {"a": 10}])
    for given in (original, ReferenceDistribution.of(original, ["disease"])):
        compared = sf.check(released, grouped_schema(), asked, original=given)
        assert not compared.holds and not compared.notices
        assert compared.measured["TCloseness(disease)"] == pytest.approx(0.25)


def test_a_population_is_passed_on() -> None:
    released = pa.table({"age": ["20", "20"]})
    population = pa.table({"age": ["20"] * 7})
    schema = sf.Schema.of(quasi=["age"])
    assert sf.check(released, schema, [sf.KMap(7)], population=population).holds


def test_the_schema_may_be_a_mapping_or_a_file(tmp_path: Path) -> None:
    mapping: dict[str, Any] = {
        "dataset": "hospital",
        "columns": {"zip": {"role": "quasi"}, "age": {"role": "quasi"}, "disease": {"role": "sensitive"}},
    }
    assert sf.check(generalised_hospital(), mapping).measures.k == 4
    file = tmp_path / "schema.toml"
    file.write_text(HOSPITAL_SCHEMA.to_toml(), encoding="utf-8")
    assert sf.check(generalised_hospital(), file).measures.k == 4
    with pytest.raises(InputError, match="schema"):
        sf.check(generalised_hospital())


def test_a_missing_quasi_identifier_is_named() -> None:
    with pytest.raises(MissingColumn, match="zip"):
        sf.check(generalised_hospital().drop(["zip"]), HOSPITAL_SCHEMA)


def test_frames_and_files_give_the_same_numbers(tmp_path: Path) -> None:
    rows = generalised_hospital()
    expected = sf.check(rows, HOSPITAL_SCHEMA, GUARANTEES).to_mapping()
    csv = tmp_path / "release.csv"
    rows.to_pandas().to_csv(csv, index=False)
    frame: pd.DataFrame = rows.to_pandas()
    polars_frame = pl.from_arrow(rows)
    for given in (frame, polars_frame, csv, str(csv)):
        assert sf.check(given, HOSPITAL_SCHEMA, GUARANTEES).to_mapping() == expected


def test_a_release_without_its_identifiers_is_checked_with_the_same_schema(tmp_path: Path) -> None:
    schema = HOSPITAL_SCHEMA.replace(columns={"name": sf.Column(role="identifier"), **HOSPITAL_SCHEMA.columns})
    csv = tmp_path / "release.csv"
    generalised_hospital().to_pandas().to_csv(csv, index=False)
    assert sf.check(csv, schema, [sf.KAnonymity(4)]).holds


def test_a_reference_distribution_survives_json() -> None:
    original = pa.table({"s": ["a", None, "a", "1"], "t": [1, 2, 2, None]})
    counts = ReferenceDistribution.of(original, ["s", "t"])
    again = ReferenceDistribution.from_mapping(json.loads(json.dumps(counts.to_mapping())))
    assert again == counts
    assert again.attribute("s") == {"a": 2, None: 1, "1": 1}
    with pytest.raises(InputError):
        ReferenceDistribution.from_mapping({"counts": 3})
    with pytest.raises(InputError):
        ReferenceDistribution.from_mapping({"records": 1, "counts": {"s": [["a", -1]]}})


def test_with_a_unit_every_count_is_named() -> None:
    rows = pa.table({"p": [f"p{i // 20}" for i in range(80)] + ["q"] * 4, "z": ["a"] * 40 + ["b"] * 40 + ["c"] * 4})
    schema = sf.Schema.parse({"dataset": "d", "columns": {"p": {"role": "unit"}, "z": {"role": "quasi"}}})
    told = sf.check(rows, schema).explain()
    assert "84 records of 5 units in 3 classes. Every class has records of 1 unit or more." in told
    assert "The median class has 40 records, the largest 40. 4 records are in a class that no other unit shares." in told
    assert "alone in their class" not in told and "records in classes of one unit" in told
    alone = sf.check(pa.table({"p": ["a", "b"], "z": ["x", "y"]}), schema).explain()
    assert "The median class has 1 record, the largest 1." in alone
    failing = sf.check(rows, schema, [sf.KAnonymity(2)]).explain()
    assert "Failing classes by size in records: 1 of size 4." in failing


def test_guessed_roles_have_the_unit_too(tmp_path: Path) -> None:
    lines = [f"P{row % 60:03d},{row % 60 // 2}" for row in range(240)]
    (tmp_path / "t.csv").write_text("patient_id,age\n" + "\n".join(lines))
    checked = sf.check(tmp_path / "t.csv")
    assert checked.measures.k == sf.inspect(tmp_path / "t.csv").k == 2
    assert "unit patient_id" in checked.notices[0]
