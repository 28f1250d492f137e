"""The generated table about people: the same for the same seed, described by its schema, and like life where
it matters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sfumato as sf
from sfumato.core.errors import InputError, ParameterError
from sfumato.data.hierarchies import hierarchy_builders
from sfumato.data.profiling.profile import profile_table
from sfumato.data.readers.files import read_file
from sfumato.data.sample import sample_schema, sample_table, write_sample
from sfumato.data.schema import Schema
from sfumato.data.texts.values import texts


@pytest.fixture(scope="module")
def people() -> pa.Table:
    return sample_table(20_000)


def test_the_seed_decides_everything() -> None:
    assert sample_table(300, seed=5).equals(sample_table(300, seed=5))
    assert not sample_table(300, seed=5).equals(sample_table(300, seed=6))


def test_the_table_is_the_same_on_every_machine() -> None:
    first = sample_table(3, seed=1).to_pylist()
    assert [row["age"] for row in first] == AGES
    assert [row["postcode"] for row in first] == POSTCODES


AGES = [28, 51, 51]
POSTCODES = ["37000", "40615", "80451"]


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_any_number_of_rows(rows: int) -> None:
    table = sample_table(rows)
    assert table.num_rows == rows
    assert table.column_names == list(sample_schema().columns)


def test_a_negative_number_of_rows_is_refused() -> None:
    with pytest.raises(ParameterError):
        sample_table(-1)


def test_it_has_what_is_usually_difficult(people: pa.Table) -> None:
    postcodes = people["postcode"].to_pylist()
    assert all(len(code) == 5 for code in postcodes)
    assert any(code.startswith("0") for code in postcodes)
    assert pc.sum(pc.equal(people["country"].cast(pa.string()), "NO")).as_py() > 5_000
    assert 0 < people["income"].null_count < 1_000


def test_every_value_is_in_its_hierarchy(people: pa.Table) -> None:
    schema = sample_schema()
    for name in (*schema.quasi, "diagnosis"):
        tree = hierarchy_builders.build(name, schema.columns[name], texts(people[name].unique()))
        assert tree.has_root
        assert tree.height >= 1


def test_people_are_like_people(people: pa.Table) -> None:
    frame = {name: np.asarray(people[name].to_pylist(), dtype=object) for name in people.column_names}
    age = frame["age"].astype(int)
    assert age.min() == 18 and age.max() <= 95
    assert age[frame["marital-status"] == "widowed"].mean() > age[frame["marital-status"] == "never married"].mean() + 20
    paid = np.array([value is not None for value in frame["income"]])
    pay = np.array([value or 0 for value in frame["income"]], dtype=float)
    assert pay[paid & (frame["occupation"] == "physician")].mean() > 2 * pay[paid & (frame["occupation"] == "cleaner")].mean()
    assert age[frame["education"] == "doctorate"].min() >= 28
    assert (frame["occupation"][age >= 70] == "retired").mean() > 0.8
    ill = age[frame["diagnosis"] == "heart disease"].mean()
    assert ill > age[frame["diagnosis"] == "allergy"].mean() + 10


def test_the_raw_table_needs_protection(people: pa.Table) -> None:
    profile = profile_table(people)
    assert profile.k == 1
    assert profile.column("name").role == "identifier"
    assert profile.column("diagnosis").role == "sensitive"


def test_written_files_read_back_to_the_same_people(tmp_path: Path) -> None:
    data, description = write_sample(tmp_path / "demo", rows=500, seed=3)
    assert sorted(path.name for path in data.parent.iterdir()) == [
        "people.csv", "people.toml", "people_country.csv", "people_occupation.csv"
    ]  # fmt: skip
    schema = Schema.load(description)
    assert schema.dataset == "sample-people"
    table = read_file(data, schema).table
    assert table.to_pydict() == sample_table(500, seed=3).to_pydict()
    for name in schema.quasi:
        hierarchy_builders.build(name, schema.columns[name], texts(table[name].unique()), folder=schema.folder)


def test_the_sample_is_protected_without_a_notice_of_a_leak() -> None:
    made = sf.protect(sf.read(sample_table(400), sample_schema()), sf.KAnonymity(5), sf.Lattice(suppression=0.1))
    assert not any("width" in notice for notice in made.certificate.notices)


def test_a_sample_replaces_a_sample_and_nothing_else(tmp_path: Path) -> None:
    write_sample(tmp_path, rows=20)
    data, _ = write_sample(tmp_path, rows=30)
    assert len(data.read_text().splitlines()) == 31
    data.write_text("name,age\nsomebody's work,1\n")
    with pytest.raises(InputError, match="another folder"):
        write_sample(tmp_path, rows=20)
    assert "somebody's work" in data.read_text()


@pytest.mark.parametrize("name", ["people.toml", "people_country.csv", "people_occupation.csv"])
def test_a_sample_replaces_no_file_that_was_edited(tmp_path: Path, name: str) -> None:
    write_sample(tmp_path, rows=20)
    edited = tmp_path / name
    edited.write_text(edited.read_text() + "# a day's work\n")
    with pytest.raises(InputError, match=f"{name} is there already"):
        write_sample(tmp_path, rows=20)
    assert "a day's work" in edited.read_text()


def test_a_folder_in_the_place_of_a_sample_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "people.csv").mkdir()
    with pytest.raises(InputError, match="there already"):
        write_sample(tmp_path, rows=20)
