"""The marks of the original's texts: where they hold for another table of the same people, and where that is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

import sfumato as sf
from sfumato.core.errors import InputError

SCHEMA = """dataset = "x"
unit = "record"
[read]
separator = ","
decimal = ","
thousands = "."
[columns.age]
role = "quasi"
type = "integer"
hierarchy = { intervals = [10, 20] }
[columns.pay]
role = "sensitive"
type = "number"
"""
ORDERED = sf.TCloseness(0.5, "pay", distance="ordered")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    rows = "".join(f'{20 + i % 40},"{1 + i % 7},{10 + i % 80}{1 + i % 9}"\n' for i in range(200))
    (tmp_path / "o.csv").write_text("age,pay\n" + rows, "utf-8")
    (tmp_path / "s.toml").write_text(SCHEMA, "utf-8")
    sf.protect(sf.read(tmp_path / "o.csv", tmp_path / "s.toml"), [sf.KAnonymity(5), ORDERED]).save(tmp_path / "rel", format="csv")
    return tmp_path


def test_a_release_is_not_read_by_the_thousands_mark_of_its_original_in_silence(place: Path) -> None:
    released, schema = place / "rel" / "public" / "data.csv", place / "s.toml"
    assert sf.check(released, schema, [ORDERED], original=place / "o.csv").holds
    alone = place / "alone.csv"
    alone.write_bytes(released.read_bytes())
    with pytest.raises(InputError, match="column 'pay' can be read in the plain forms"):
        sf.check(alone, schema, [ORDERED], original=place / "o.csv")
    assert sf.check(sf.read(alone), schema, [ORDERED], original=place / "o.csv").holds
    spread = sf.check(alone, schema, [ORDERED], original=place / "o.csv", decimal=",", thousands=".")
    assert spread.measurements[0].value != sf.check(released, schema, [ORDERED], original=place / "o.csv").measurements[0].value


def test_a_table_as_it_was_before_is_read_by_its_schema(place: Path) -> None:
    raw = place / "raw.csv"
    raw.write_text("age;pay\n" + "".join(f"{20 + i % 4};9117,{97 + i % 2}\n" for i in range(60)), "utf-8")
    schema = place / "raw.toml"
    schema.write_text(SCHEMA.replace('separator = ","', 'separator = ";"').replace('thousands = "."\n', ""), "utf-8")
    measured = sf.check(raw, schema, [sf.DistinctLDiversity(1, "pay")])
    assert str(measured._examined.table.schema.field("pay").type) == "double"


def test_a_register_is_read_with_the_marks_of_the_owner(tmp_path: Path) -> None:
    rows = "".join(f"{1 + i % 28:02d}.0{1 + i % 9}.19{50 + i % 9};{'m' if i % 2 else 'f'}\n" for i in range(200))
    (tmp_path / "german.csv").write_text("born;sex\n" + rows, "utf-8")
    (tmp_path / "german.toml").write_text(
        'dataset = "g"\nunit = "record"\n[read]\nseparator = ";"\ndate_format = "%d.%m.%Y"\n[columns.born]\nrole = "quasi"\n'
        'type = "date"\nhierarchy = { dates = ["month", "year", "decade"] }\n[columns.sex]\nrole = "sensitive"\n',
        "utf-8",
    )
    sf.protect(sf.read(tmp_path / "german.csv", tmp_path / "german.toml"), sf.KAnonymity(3)).save(tmp_path / "out")
    results = sf.attack(tmp_path / "out", register=tmp_path / "german.csv")
    assert any(result.attack == "Linkage" for result in results)
