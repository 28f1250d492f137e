"""A register is read as the release writes: a code for a missing value is no value of its own."""

from __future__ import annotations

import dataclasses
import random
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.cli.main import run
from sfumato.core.errors import ParameterError, VerificationFailed
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.workflow.attacking.registers import CodesNotApplied
from sfumato.workflow.earlier.read_alike import read_described
from sfumato.workflow.earlier.readings import digest_of_code, written_as
from sfumato.workflow.publishing.scoring import Checked
from sfumato.workflow.verifying.folder_parts import refuse_other_attacks
from sfumato.workflow.verifying.verify import certificate_of
from tests.workflow.attacked import attack_folder

SCHEMA = """dataset = "people"
unit = "record"
[columns.zip]
role = "quasi"
type = "string"
missing = ["-9"]
hierarchy = { flat = true }
[columns.age]
role = "quasi"
type = "integer"
missing = ["999"]
hierarchy = { intervals = [5, 10, 20] }
[columns.ill]
role = "sensitive"
type = "string"
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table with codes (coded.csv) and with empty cells (empty.csv), and what was published of it."""
    folder = tmp_path_factory.mktemp("registers")
    choose = random.Random(1)
    rows = [
        (choose.choice(["01.10", "2.50", "-9"]), choose.choice([*range(20, 60), *[999] * 4]), choose.choice("xyz"))
        for _ in range(200)
    ]
    for name, codes in (("coded", ("-9", "999")), ("empty", ("", ""))):
        cells = [(codes[0] if z == "-9" else z, codes[1] if age == 999 else age, ill) for z, age, ill in rows]
        (folder / f"{name}.csv").write_text("zip,age,ill\n" + "".join(f"{z},{age},{ill}\n" for z, age, ill in cells))
    (folder / "people.toml").write_text(SCHEMA)
    people = sf.read(folder / "coded.csv", folder / "people.toml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFUMATO_KEY", str(folder / "owner.key"))
        sf.protect(people, sf.KAnonymity(5)).save(folder / "local")
        sf.protect(people, sf.KAnonymity(5), sf.Mondrian(ranges_everywhere=True)).save(folder / "mondrian")
        sf.mask(people, sf.RankSwapping(p=5, columns=("age",))).save(folder / "masked")
    return folder


@pytest.fixture(autouse=True)
def no_warning() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error", CodesNotApplied)
        yield


@pytest.mark.parametrize("options", [{"only": "Linkage"}, {"only": "Intersection", "earlier": "mondrian"}])
def test_codes_and_empty_cells_find_the_same(place: Path, options: dict[str, Any]) -> None:
    options |= {"earlier": [place / options["earlier"]]} if "earlier" in options else {}
    coded, empty = (attack_folder(place / "local", register=place / f"{each}.csv", **options) for each in ("coded", "empty"))
    assert coded == empty


def test_everybody_of_the_original_matches_some_record(place: Path) -> None:
    """By brute force: each entry picks among the rows that show its values, a missing one as missing."""
    released, people = pd.read_parquet(place / "local" / "public" / "data.parquet"), pd.read_csv(place / "empty.csv", dtype=str)

    def shows(text: Any, value: Any) -> bool:
        if pd.isna(text) or pd.isna(value):
            return text == "*" or (pd.isna(text) and pd.isna(value))
        if str(text).startswith("["):
            low, high = str(text).strip("[)").split(", ")
            return float(low) <= float(value) < float(high)
        return text in ("*", value)

    right = 0.0
    for entry in people.itertuples():
        matches = sum(shows(row.zip, entry.zip) and shows(row.age, entry.age) for row in released.itertuples())
        right += 1 / matches if matches else 0.0
    [found] = sf.attack(place / "local", register=place / "coded.csv", only="Linkage")
    assert found.success == pytest.approx(right / len(people))


@pytest.mark.parametrize(
    "take", [lambda path: pd.read_csv(path, dtype=str), lambda path: pa.table(pd.read_csv(path, dtype=str)).to_reader()]
)
def test_a_frame_without_a_schema_is_read_in_the_same_way(place: Path, take: Any) -> None:
    frame, file = (
        attack_folder(place / "local", register=register, only="Linkage")
        for register in (take(place / "coded.csv"), place / "coded.csv")
    )
    assert frame == file


def test_a_register_that_pandas_wrote_with_points_is_read_alike(place: Path, tmp_path: Path) -> None:
    """A column of whole numbers with an empty cell is one of floating-point numbers to pandas, and so are its codes."""
    frame = pd.read_csv(place / "coded.csv", dtype={"zip": "string", "age": "float"})
    frame.to_csv(tmp_path / "floats.csv", index=False)
    assert "999.0" in (tmp_path / "floats.csv").read_text()
    [floats] = sf.attack(place / "local", register=tmp_path / "floats.csv", only="Linkage")
    [empty] = sf.attack(place / "local", register=place / "empty.csv", only="Linkage")
    assert floats == empty


@pytest.mark.parametrize("code", ["999", "999.0"])
@pytest.mark.parametrize("cells", [[999, 7], [999.0, 7.0], ["999", "7"], ["999.0", "7.0"]])
def test_a_code_known_by_its_digest_is_found_with_and_without_a_point(code: str, cells: list[Any]) -> None:
    described = {"age": sf.Column(type="number", missing=(digest_of_code(code),))}
    read = read_described(pa.table({"age": cells}), described)
    assert read.table().column("age").to_pylist() == [None, 7.0]


@pytest.mark.parametrize("code", ["1e3", "1000.00", "+1000", " 1000 "])
@pytest.mark.parametrize("cells", [[1000, 7], [1000.0, 7.0], ["1e3", "7"], ["1000.000", "7.0"]])
def test_a_code_among_numbers_is_known_by_its_value(code: str, cells: list[Any]) -> None:
    own = sf.read(pa.table({"pay": [1000.0, 7.0]}), {"columns": {"pay": {"type": "number", "missing": [code, "NA"]}}})
    told = written_as(own, ["pay"])
    assert told == written_as(own.with_schema(Schema(columns={"pay": Column(type="number", missing=("NA", "1000"))})), ["pay"])
    described = {"pay": Column(type=told["pay"]["type"], missing=tuple(told["pay"]["missing"]))}
    assert read_described(pa.table({"pay": cells}), described).table().column("pay").to_pylist() == [None, 7.0]


def test_a_code_among_texts_is_known_by_its_text() -> None:
    own = sf.read(pa.table({"zip": ["1000", "7"]}), {"columns": {"zip": {"type": "string", "missing": ["1000"]}}})
    told = written_as(own, ["zip"])["zip"]
    described = {"zip": Column(type="string", missing=tuple(told["missing"]))}
    assert read_described(pa.table({"zip": ["1e3", "1000"]}), described).table().column("zip").to_pylist() == ["1e3", None]


def test_a_release_keeps_what_it_claims_however_its_codes_are_written(tmp_path: Path) -> None:
    pay = pa.table({"pay": [[1000.0, 1.5, 2.5, 10.0, 30.0][n % 5] for n in range(100)]})
    pd.DataFrame({"pay": pay["pay"].to_pylist() * 3}).to_csv(tmp_path / "all.csv", index=False)
    found = {}
    for place, code in enumerate(("1000", "1e3", "1000.00")):
        described = {"pay": Column(role="quasi", type="number", missing=(code,), hierarchy=HierarchySpec(intervals=(5, 20)))}
        schema = Schema(dataset="d", columns=described)
        everybody = sf.read(tmp_path / "all.csv", schema)
        made = sf.protect(sf.read(pay, schema), sf.KMap(2), sf.Lattice(), population=everybody)
        folder = made.save(tmp_path / str(place))
        assert sf.verify(folder, population=tmp_path / "all.csv").holds
        [found[code]] = sf.attack(made, register=pay, only="Linkage")
    assert found["1000"] == found["1e3"] == found["1000.00"]


def test_what_was_read_under_a_schema_stays_as_it_is(place: Path) -> None:
    own = sf.read(place / "coded.csv", {"columns": {"zip": {"type": "string"}, "age": {"type": "integer"}}})
    [found] = sf.attack(place / "local", register=own, only="Linkage")
    [file] = sf.attack(place / "local", register=place / "coded.csv", only="Linkage")
    assert found.success < file.success


def test_the_owner_who_aligns_has_the_schema(place: Path) -> None:
    coded, empty = (attack_folder(place / "masked", register=place / f"{each}.csv", aligned=True) for each in ("coded", "empty"))
    assert coded == empty


def test_a_release_that_names_no_codes_is_told(place: Path) -> None:
    with pytest.warns(CodesNotApplied):
        sf.attack(place / "local", earlier=[place / "masked"], register=place / "coded.csv", only="Linkage")


def test_the_command_takes_a_schema_of_the_register(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = ["attack", str(place / "local"), "--earlier", str(place / "masked"), "--attack", "Linkage", "--json"]
    assert run([*known, "--with", str(place / "coded.csv")]) == 0
    told = capsys.readouterr()
    assert told.err.count("codes for missing values were not applied") == 1 and "--schema FILE" in told.err
    assert run([*known, "--with", str(place / "coded.csv"), "--schema", str(place / "people.toml")]) == 0
    schema = capsys.readouterr()
    assert schema.err == "" and schema.out == told.out
    assert run([*known, "--schema", str(place / "people.toml")]) == 2
    assert "--with" in capsys.readouterr().out


@pytest.mark.parametrize("codes", [["-9"], ["-9", "unknown"]])
def test_whoever_verifies_reads_the_original_as_the_release_was_written(tmp_path: Path, codes: list[str]) -> None:
    choose = random.Random(2)
    rows = [(choose.choice("AB"), choose.choice(["flu", "cold", "hiv", *codes])) for _ in range(400)]
    source = tmp_path / "source.csv"
    source.write_text("zip,ill\n" + "".join(f"{place},{ill}\n" for place, ill in rows))
    columns = {
        "zip": sf.Column(role="quasi", type="string"),
        "ill": sf.Column(role="sensitive", type="string", missing=tuple(codes)),
    }
    people = sf.read(source, schema=sf.Schema(dataset="coded", unit="record", columns=columns))
    sf.protect(people, [sf.KAnonymity(5), sf.TCloseness(0.2, "ill")], sf.Lattice()).save(tmp_path / "release")
    assert sf.verify(tmp_path / "release", original=source).verdict == "keeps"


def test_a_register_that_matches_nobody_tells_nothing(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "others.csv").write_text("zip,age,ill\n99.99,95,x\n99.98,96,y\n")
    assert run(["attack", str(place / "mondrian"), "--with", str(tmp_path / "others.csv"), "--attack", "Linkage"]) == 0
    told = capsys.readouterr().out
    assert "matches a record of the release" in told and "tells nothing" in told and "0 %" not in told


def test_a_certificate_says_what_an_attack_supposes(place: Path) -> None:
    people = pa.table({"zip": ["01.10", "2.50"], "age": [30, 40]})
    (result,) = sf.attack(place / "mondrian", register=people, only=["Linkage"])
    (stated,) = Checked(attacks=(result,)).stated_attacks
    assert " if they took part," in result.finding and " if they took part," in stated["finding"]
    # only a masked release is attacked with a register when it is published
    certificate = dataclasses.replace(certificate_of(place / "mondrian"), method=sf.Mdav(3).described())
    earlier = stated["finding"].replace(" if they took part", "")
    for words in (stated["finding"], earlier):
        refuse_other_attacks(dataclasses.replace(certificate, attacks=({**stated, "finding": words},)))
    with pytest.raises(VerificationFailed):
        refuse_other_attacks(dataclasses.replace(certificate, attacks=({**stated, "finding": f"{earlier} Really"},)))


def test_a_register_is_a_table_of_a_database(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import duckdb

    with duckdb.connect(tmp_path / "registers.duckdb") as database:
        database.execute(f"CREATE TABLE coded AS FROM read_csv('{place / 'coded.csv'}', all_varchar = true)")
        database.execute("CREATE TABLE others AS SELECT 1 AS n")
    told = []
    for register in ([str(place / "coded.csv")], [str(tmp_path / "registers.duckdb"), "--table", "coded"]):
        assert run(["attack", str(place / "mondrian"), "--with", *register, "--attack", "Linkage"]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert run(["attack", str(place / "mondrian"), "--table", "coded"]) == 2
    attack = ["attack", str(place / "mondrian"), "--with", str(tmp_path / "registers.duckdb")]
    capsys.readouterr()
    assert (
        run(attack) == 2
        and "has 2 tables; name one with table= in Python, or --table where a command has it: " in capsys.readouterr().err
    )


def test_the_faults_of_a_register_are_said_of_its_table(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import duckdb

    with duckdb.connect(tmp_path / "registers.duckdb") as database:
        database.execute("CREATE TABLE faulty AS SELECT 'x' AS age, '1.10' AS zip")
        database.execute("CREATE TABLE others AS SELECT 1 AS n")
    attack = ["attack", str(place / "mondrian"), "--with", str(tmp_path / "registers.duckdb"), "--attack", "Linkage"]
    assert run([*attack, "--table", "faulty"]) == 2
    told = capsys.readouterr().err
    assert "registers.duckdb, table faulty" in told and "'age'" in told and "in memory" not in told


def test_a_table_of_a_register_that_is_no_database_is_refused(tmp_path: Path) -> None:
    rows = pa.table({"age": [30] * 6})
    release = sf.protect(sf.read(rows, Schema(columns={"age": Column(role="quasi")})), sf.KAnonymity(2), sf.Lattice())
    release.save(tmp_path / "out", "csv")
    for register in (rows, sf.read(rows), None):
        with pytest.raises(ParameterError, match="table="):
            sf.attack(tmp_path / "out", register=register, table="people")
