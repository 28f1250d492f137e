"""`inspect`: a profile of any source and a schema to start from, which is never overwritten unasked."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from sfumato.core.errors import InputError, SourceError
from sfumato.data.sample import write_sample
from sfumato.data.schema import Schema
from sfumato.engines.sources import read
from sfumato.workflow.inspect import dataset_id, inspect


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sample(tmp_path_factory.mktemp("people"), rows=400)[0]


def test_a_file_is_profiled_and_described(people: Path, tmp_path: Path) -> None:
    target = tmp_path / "start.toml"
    profile = inspect(people, schema_out=target)
    assert profile.rows == 400
    assert any("separator comma" in note for note in profile.notes)
    schema = Schema.load(target)
    assert schema.dataset == "people"
    assert set(schema.columns) == {column.name for column in profile.columns}
    assert schema.columns["postcode"].type == "string"
    assert 'source = "data"' in target.read_text(encoding="utf-8")
    assert read(people, target).schema.quasi == profile.quasi


def test_an_existing_schema_is_kept_unless_asked(people: Path, tmp_path: Path) -> None:
    target = tmp_path / "mine.toml"
    target.write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        inspect(people, schema_out=target)
    assert target.read_text() == "mine"
    inspect(people, schema_out=target, overwrite=True, dataset="census")
    assert Schema.load(target).dataset == "census"


def test_frames_and_reader_options(tmp_path: Path) -> None:
    assert inspect(pd.DataFrame({"age": [1, 2, 2]})).column("age").unique_share == pytest.approx(1 / 3)
    (tmp_path / "t.csv").write_text("a:b\n1:2\n")
    assert [c.name for c in inspect(tmp_path / "t.csv", separator=":").columns] == ["a", "b"]


def test_a_failure_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        inspect(tmp_path / "absent.csv", schema_out=tmp_path / "s.toml")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("source", "table", "expected"),
    [
        ("data/Adult 2024.csv.gz", None, "adult-2024"),
        (Path("people.parquet"), None, "people"),
        ("postgresql://me:secret@host/db", "public.people", "public-people"),
        ("postgresql://me:secret@host/db", None, "table"),
        (pd.DataFrame(), None, "table"),
    ],
)
def test_the_dataset_id_comes_from_the_name_and_never_from_a_url(source: object, table: str | None, expected: str) -> None:
    assert dataset_id(source, table) == expected
