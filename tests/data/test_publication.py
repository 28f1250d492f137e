"""What a schema says about a publication: optional, one line each, refused where it could not be shown as it is."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.core.errors import SchemaError
from sfumato.data.publication import Publication
from sfumato.data.schema_text import schema_to_edit

TOML = """
dataset = "clinic"
[publication]
publisher = "City hospital"
valid_until = 2030-12-31
units = "patients"
[columns.age]
role = "quasi"
"""


def test_it_is_read_written_and_read_again(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(TOML)
    schema = sf.Schema.load(tmp_path / "schema.toml")
    assert schema.publication == Publication(publisher="City hospital", valid_until="2030-12-31", units="patients")
    for text in (schema.to_toml(), schema_to_edit(schema, {}, {})):
        (tmp_path / "again.toml").write_text(text)
        assert sf.Schema.load(tmp_path / "again.toml").publication == schema.publication
    assert "publication" not in sf.Schema.of(quasi=["age"]).to_toml()


def test_dates_of_python_and_toml_are_days() -> None:
    assert Publication(date=datetime.date(2026, 5, 1)).date == "2026-05-01"


@pytest.mark.parametrize(
    "entry",
    [
        {"publisher": "two\nlines"},
        {"publisher": "\u202eevil"},
        {"publisher": " "},
        {"contact": "x" * 501},
        {"valid_until": "31.12.2030"},
        {"valid_until": "2030-02-30"},
        {"date": datetime.datetime(2026, 1, 1)},
        {"date": "2030-01-02", "valid_until": "2030-01-01"},
        {"units": "people, who are all safe"},
        {"publishr": "x"},
    ],
)
def test_what_cannot_be_shown_is_refused_without_repeating_it(entry: dict[str, object]) -> None:
    with pytest.raises(SchemaError, match="publication") as caught:
        sf.Schema.parse({"publication": entry})
    assert "evil" not in str(caught.value) and "safe" not in str(caught.value)


def test_a_key_at_the_top_is_told_its_place() -> None:
    with pytest.raises(SchemaError, match=r"belongs below \[publication\]"):
        sf.Schema.parse({"publisher": "x"})
