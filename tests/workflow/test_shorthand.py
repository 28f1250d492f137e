"""`protect` in one line: k, columns by role, guarantees and methods as texts, with the checks of the long way."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

import sfumato as sf
from sfumato.core.errors import InputError, MissingColumn, ParameterError, RecipeError, Unsupported
from tests.workflow.people import people, table

ROLES = {"quasi": ["age", "zip", "sex"], "sensitive": ["disease"], "identifier": ["name"], "plain": ["visits"]}


def test_a_frame_is_protected_in_one_line() -> None:
    release = sf.protect(table(300), k=5, **ROLES)
    assert release.certificate.measured["KAnonymity"] >= 5
    assert release.data.column_names == ["age", "zip", "sex", "visits", "disease"]
    assert {name: column.role for name, column in release.schema.columns.items()} == {
        "age": "quasi", "zip": "quasi", "sex": "quasi", "visits": "plain", "disease": "sensitive",
    }  # fmt: skip
    assert release.schema.declared_unit is None


def test_a_file_and_a_pandas_frame_are_protected_alike(tmp_path: Path) -> None:
    pa.csv.write_csv(table(200), tmp_path / "people.csv")
    from_file = sf.protect(tmp_path / "people.csv", k=5, **ROLES)
    from_frame = sf.protect(pa.csv.read_csv(tmp_path / "people.csv").to_pandas(), k=5, **ROLES)
    assert from_file.certificate.dataset == "people"
    assert from_file.scores["loss"] == pytest.approx(from_frame.scores["loss"])


def test_the_short_way_asks_for_the_same_as_the_long_way() -> None:
    texts = ["KAnonymity(k=5)", 'DistinctLDiversity(l=2, attribute="disease")']
    short = sf.protect(people(300), texts, "Lattice(suppression=0.05)")
    long = sf.protect(people(300), [sf.KAnonymity(5), sf.DistinctLDiversity(2, "disease")], sf.Lattice(suppression=0.05))
    assert short.guarantees == long.guarantees and short.certificate.method == long.certificate.method
    assert short.data == long.data
    assert sf.protect(people(300), "KAnonymity(k=5)", sf.Lattice(suppression=0.05)).guarantees == (sf.KAnonymity(5),)
    assert sf.protect(people(300), k=5, method="Lattice").guarantees == (sf.KAnonymity(5),)
    assert sf.mask(people(100), "Mdav(k=5)").certificate.method["k"] == 5


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"guarantees": "KAnonimity(k=5)"}, RecipeError, "Did you mean 'KAnonymity'"),
        ({"guarantees": ["KAnonymity(k=5"]}, ParameterError, "is not closed"),
        ({"guarantees": "KAnonymity(5)"}, ParameterError, "parameters of KAnonymity are called k"),
        ({"guarantees": "Lattice"}, ParameterError, "Lattice is a method and no guarantee"),
        ({"guarantees": [5]}, ParameterError, "int is not a guarantee"),
        ({"guarantees": [sf.PureDP(1)]}, ParameterError, "promise about noise"),
        ({"k": 0}, ParameterError, "k"),
        ({"k": 5, "guarantees": sf.KAnonymity(5)}, ParameterError, "Keep one of the two"),
        ({"k": 5, "method": "KAnonymity(k=5)"}, ParameterError, "KAnonymity is a guarantee and no method"),
        ({"k": 5, "method": "Latice"}, RecipeError, "Did you mean 'Lattice'"),
        ({"k": 5, "method": 7}, ParameterError, "int is not a method"),
        ({}, ParameterError, "no guarantee was asked for"),
        ({"k": 5, "quasi": ["age"]}, ParameterError, "sf.read opened has a schema"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(arguments: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as raised:
        sf.protect(people(50), **arguments)  # type: ignore[arg-type]
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"schema": people(50).schema}, ParameterError, "leave schema= out"),
        ({"quasi": ["agee", "zip", "sex"]}, MissingColumn, "no column 'agee' (did you mean 'age'?)"),
        ({"sensitive": ["disease", "age"]}, ParameterError, "column 'age' is named in quasi= and sensitive="),
        ({"plain": ()}, ParameterError, "1 column has no role: 'visits'"),
        ({"quasi": (), "plain": ["age", "zip", "sex", "visits"]}, ParameterError, "no column is named in quasi="),
        ({"quasi": [3]}, ParameterError, "lists of names"),
    ],
)
def test_roles_that_contradict_are_refused_in_words(arguments: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as raised:
        sf.protect(table(50), k=5, **(ROLES | arguments))  # type: ignore[arg-type]
    assert words in str(raised.value)
    assert "person 0" not in str(raised.value)


def test_one_name_is_one_column() -> None:
    rows = table(100).select(["sex", "disease"])
    assert sf.protect(rows, k=5, quasi="sex", sensitive="disease").schema.quasi == ("sex",)


def test_rows_in_an_engine_are_described_by_a_schema(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "people.duckdb")) as database:
        database.execute("CREATE TABLE people AS SELECT 1 AS age")
    with pytest.raises(InputError, match="pass schema="):
        sf.protect(tmp_path / "people.duckdb", k=2, quasi="age")


def test_microdata_are_inspected_as_they_were_read() -> None:
    read = people(100)
    profile = sf.inspect(read)
    assert profile.rows == 100 and profile.column("zip").role == "quasi" and profile.unit == "record"
    with pytest.raises(InputError, match="was read before"):
        sf.inspect(read, decimal=",")


def test_head_shows_released_rows_alone() -> None:
    release = sf.protect(people(200), k=5)
    assert release.head(3) == release.data.slice(0, 3) and release.head().num_rows == 5 and release.head(0).num_rows == 0
    assert release.head(10**20) == release.data
    with pytest.raises(ParameterError, match="whole number"):
        release.head(-1)


def test_a_class_in_place_of_a_method_is_told_so() -> None:
    with pytest.raises(ParameterError, match="Lattice is a class. Pass Lattice"):
        sf.protect(people(20), k=2, method=sf.Lattice)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="Mdav is a class. Pass Mdav"):
        sf.compare(people(20), [sf.Mdav])  # type: ignore[list-item]


def test_rows_that_stayed_in_their_engine_have_no_head(tmp_path: Path) -> None:
    release = sf.protect(people(200), k=5, method=sf.Lattice(), destination=tmp_path / "out")
    with pytest.raises(Unsupported, match="stayed in their engine"):
        release.head()


def test_names_of_columns_may_be_whatever_lists_them() -> None:
    frame = table(200).to_pandas()
    wanted = {**ROLES, "quasi": frame[["age", "zip", "sex"]].columns}
    assert sf.protect(frame, k=5, **wanted).certificate.measured["KAnonymity"] >= 5


@pytest.mark.parametrize("wrong", [5, None, 2.5])
def test_what_is_no_guarantee_is_refused_in_words(wrong: object) -> None:
    with pytest.raises(ParameterError, match="write k=5"):
        sf.protect(people(100), wrong)  # type: ignore[arg-type]


def test_what_is_no_list_of_columns_is_refused_in_words() -> None:
    with pytest.raises(ParameterError, match="lists of names of columns"):
        sf.protect(table(100), k=5, quasi=5)  # type: ignore[arg-type]
