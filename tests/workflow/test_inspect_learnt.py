"""What `inspect` learns from the rows is not declared, and a first record is not taken for names."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.cli.main import run
from sfumato.core.errors import SfumatoError, SourceError, Unsupported
from sfumato.data.profiling.suggested_schema import starting_schema
from sfumato.data.readers.read_result import are_numbers
from sfumato.data.schema import Schema

VISITS = "patient id,sex,country,note\n" + "".join(f"P{n // 2:03},{'MF'[n % 2]},DE,note {n}\n" for n in range(80))
RECORDS = "".join(f"{n % 2};{n % 7};{n};{90 - n}\n" for n in range(12, 60))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_type_found_in_the_values_is_marked_as_learnt_and_no_question_rests_on_it(place: Path) -> None:
    (place / "visits.csv").write_text(VISITS)
    sf.inspect("visits.csv", schema_out="start.toml")
    proposed = Schema.load("start.toml")
    assert {column.source for column in proposed.columns.values()} == {"data"}
    questions = ("COUNT(*) AS n FROM visits", "COUNT(*) AS n FROM visits WHERE country = 'DE'")
    session = sf.Session(sf.read("visits.csv", proposed, unreadable="missing"), budget=sf.PureDP(5), max_rows=2)
    for question in questions:
        with pytest.raises(Unsupported, match='Declare it in the schema: type = .*source = "declared"'):
            session.sql(f"SELECT {question}", epsilon=1)
    declared = Schema.parse({**proposed.model_dump(), "columns": {
        name: column.model_copy(update={"source": "declared"}).model_dump() for name, column in proposed.columns.items()
    }})  # fmt: skip
    session = sf.Session(sf.read("visits.csv", declared, unreadable="missing"), budget=sf.PureDP(5), max_rows=2)
    for question in questions:
        assert session.sql(f"SELECT {question}", epsilon=1).table.num_rows == 1


def test_a_type_that_the_source_states_is_not_learnt(place: Path) -> None:
    sf.data.write_file(pa.table({"patient id": ["a", "b"] * 9, "when": [1, 2] * 9}), "t.parquet")
    sf.inspect("t.parquet", schema_out="start.toml")
    assert Schema.load("start.toml").columns["patient id"].source == "declared"


@pytest.mark.parametrize(
    "content", [RECORDS, "M,Berlin,flu\nF,Paris,cold\nM,Berlin,cold\nF,Berlin,flu\n", "17.5,x\n3,y\n4,x\n1,z\n"]
)
def test_a_first_record_is_not_taken_for_names(content: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "t.csv").write_text(content)
    first = re.split("[;,\n]", content)[:3]
    with pytest.raises(SourceError, match="looks like a record of its own. Write the names of the columns above it") as refused:
        sf.inspect("t.csv", schema_out="start.toml")
    assert not any(f"'{value}'" in str(refused.value) for value in first) and not (place / "start.toml").exists()
    assert run(["inspect", "t.csv"]) == 2 and run(["compare", "t.csv"]) == 2
    assert not any(value in capsys.readouterr().out for value in first)


def test_whoever_publishes_it_all_the_same_is_warned(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "t.csv").write_text(RECORDS)
    (place / "half.toml").write_text('[columns."0"]\nrole = "quasi"\n')
    with (
        pytest.warns(sf.SfumatoWarning, match="looks like a record of its own; it is read as names") as notices,
        pytest.raises(SfumatoError, match="3 columns .* record of its own") as refused,
    ):
        sf.protect("t.csv", sf.KAnonymity(2), schema="half.toml")
    assert not any("78" in text for text in (str(refused.value), *(str(notice.message) for notice in notices)))
    (place / "all.toml").write_text('unlisted = "drop"\n[columns."0"]\nrole = "quasi"\n')
    assert run(["protect", "t.csv", "--schema", "all.toml", "--k", "2", "--no-ledger", "-o", "out"]) == 0
    assert "looks like a record of its own, and its values are published as names" in capsys.readouterr().out


def test_names_that_are_words_are_names() -> None:
    assert are_numbers(["12", "84", "age"]) and are_numbers(["-1.5", "2e3"]) and are_numbers(["12", "12.2", "7 %"])
    assert not are_numbers(["age", "sex", "12"]) and not are_numbers([]) and not are_numbers(["1990s", "q1", "v2.1"])


@pytest.mark.parametrize("k", [5])
def test_what_was_learnt_from_a_suppressed_person_stays_with_the_owner(k: int, place: Path) -> None:
    """One person more, suppressed, changes the widths that inspect proposes: nothing of them is published."""
    rows = [(n % 100, "fm"[n % 2], f"{10_000 + n % 40}") for n in range(600)]
    published = []
    for number, table in enumerate((rows, [*rows, (390, "x", "7")])):
        file, schema = place / f"{number}.csv", place / f"{number}.toml"
        file.write_text("stay,sex,postcode\n" + "".join(f"{stay},{sex},{code}\n" for stay, sex, code in table))
        sf.inspect(file, schema_out=schema)
        learnt = Schema.load(schema).model_dump()
        for name in ("stay", "sex", "postcode"):
            learnt["columns"][name]["role"] = "quasi"
        described = Schema.parse({**learnt, "dataset": "stays", "unit": "record"})
        release = sf.protect(sf.read(file, described), sf.KAnonymity(k), sf.Lattice(suppression=0.05))
        release.save(place / f"out{number}")
        assert sf.verify(place / f"out{number}").holds
        published.append(Schema.load(place / f"out{number}" / "public" / "schema.toml"))
        owner = (place / f"out{number}" / "owner" / "schema.toml").read_text()
        assert "intervals" in owner or "cuts" in owner
    assert {column.hierarchy for each in published for column in each.columns.values()} == {None}


def test_ranges_that_a_search_made_are_called_so(place: Path) -> None:
    """Mondrian everywhere cuts where the data are dense: the declared widths describe nothing that is shown."""
    pay = [1000.0 + 7.3 * n for n in range(200)]
    columns = {"pay": {"role": "quasi", "type": "number", "hierarchy": {"intervals": [500, 1000]}}}
    people = sf.read(pa.table({"pay": pay}), {"dataset": "pay", "unit": "record", "columns": columns})
    release = sf.protect(people, sf.KAnonymity(5), sf.Mondrian(ranges_everywhere=True))
    release.save(place / "out")
    assert release.certificate.transparency["hierarchies"] == {"pay": "ranges of the data"}
    assert any("can be the values of single records" in notice for notice in release.certificate.notices)
    assert Schema.load(place / "out" / "public" / "schema.toml").columns["pay"].hierarchy is None
    assert sf.verify(place / "out").holds
    for search in (sf.Mondrian(), sf.Lattice()):
        declared = sf.protect(people, sf.KAnonymity(5), search)
        assert declared.certificate.transparency["hierarchies"] == {"pay": "intervals"}
        assert not any("ranges" in notice for notice in declared.certificate.notices)
    declared.save(place / "declared")
    said = [sf.verify(place / folder).explain() for folder in ("out", "declared")]
    assert ["trees that are not published" in each for each in said] == [True, False]


@pytest.mark.parametrize("search", [sf.Lattice(), sf.LocalRecoding(), sf.LeastLoss()], ids=repr)
def test_a_hierarchy_that_allows_ranges_is_published_in_a_form_that_verify_reads(search: sf.Search, place: Path) -> None:
    hierarchy = {"intervals": [5, 10, 20], "ranges": True}
    columns = {"pay": {"role": "quasi", "type": "integer", "hierarchy": hierarchy}}
    people = sf.read(pa.table({"pay": list(range(60)) * 2}), {"dataset": "d", "unit": "record", "columns": columns})
    sf.protect(people, sf.KAnonymity(5), search).save(place / "out")
    assert sf.verify(place / "out").verdict == "keeps"


def test_ranges_of_dates_are_read_by_whoever_looks_people_up(place: Path) -> None:
    dates = [f"19{50 + n // 12:02}-{1 + n % 12:02}-{1 + n % 28:02}" for n in range(60)]
    columns = {"born": {"role": "quasi", "type": "date", "hierarchy": {"dates": ["month", "year", "decade"]}}}
    people = sf.read(pa.table({"born": dates}), {"dataset": "d", "unit": "record", "columns": columns})
    sf.protect(people, sf.KAnonymity(5), sf.Mondrian(ranges_everywhere=True)).save(place / "out")
    assert sf.verify(place / "out").verdict == "keeps"
    assert Schema.load(place / "out" / "public" / "schema.toml").columns["born"].hierarchy is not None


def test_a_learnt_tree_of_a_sensitive_column_is_not_published_for_its_distances() -> None:
    stay = {"role": "sensitive", "type": "integer", "hierarchy": {"cuts": [13, 37]}}
    columns = {"age": {"role": "quasi", "type": "integer"}, "stay": stay}
    table = pa.table({"age": list(range(40)) * 2, "stay": [n % 50 for n in range(80)]})
    asked = [sf.KAnonymity(5), sf.TCloseness(0.9, "stay", distance="hierarchical")]
    with pytest.raises(SfumatoError, match="learnt from the data"):
        learnt = {**columns, "stay": {**stay, "source": "data"}}
        sf.protect(sf.read(table, {"dataset": "d", "unit": "record", "columns": learnt}), asked)
    assert sf.protect(sf.read(table, {"dataset": "d", "unit": "record", "columns": columns}), asked).certificate.claims[1].holds


def test_a_width_that_was_read_off_the_values_is_marked_as_learnt() -> None:
    codes = [f"{10_000 + 7 * n}" for n in range(4_000)]  # too many to be listed as a domain
    profile = sf.inspect(pa.table({"postcode": pa.array(codes, pa.string())}))
    proposed = starting_schema(profile, "d").columns["postcode"]
    assert proposed.hierarchy is not None and proposed.hierarchy.width == 5 and proposed.domain is None
    assert proposed.source == "data"
