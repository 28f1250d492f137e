"""Numbers that no computer holds, and numbers where a list should be: refused in words, in certificates and in schemas."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.cli.main import run
from sfumato.core.errors import HierarchyError, InputError, ParameterError, SchemaError
from sfumato.workflow import named
from sfumato.workflow.attacking.outputs import attack_outputs
from tests.workflow.people import people


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made")
    os.environ.setdefault("SFUMATO_KEY", str(place / "owner.key"))
    sf.protect(people(200), [sf.KAnonymity(5)], sf.Lattice(suppression=0.1)).save(place / "out")
    return place / "out"


@pytest.mark.parametrize("number", ["1" + "0" * 400, "-1" + "0" * 400, "1e999", "9" * 5_000])
def test_a_certificate_with_a_number_beyond_all_numbers_is_refused(made: Path, tmp_path: Path, number: str) -> None:
    shutil.copytree(made, tmp_path / "out")
    path = tmp_path / "out" / "public" / "certificate.json"
    content = json.loads(path.read_text())
    content["claims"][0]["measured"] = "NUMBER"
    path.write_text(json.dumps(content).replace('"NUMBER"', number))
    found = sf.verify(tmp_path / "out")
    assert not found.holds
    assert "too large" in found.explain()


@pytest.mark.parametrize("intervals", [5, "5", {"5": 5}, None, True])
def test_a_certificate_with_a_number_for_a_list_is_refused(made: Path, tmp_path: Path, intervals: object) -> None:
    shutil.copytree(made, tmp_path / "out")
    path = tmp_path / "out" / "public" / "certificate.json"
    content = json.loads(path.read_text())
    content["schema"]["columns"]["age"]["hierarchy"] = {"intervals": intervals}
    path.write_text(json.dumps(content))
    found = sf.verify(tmp_path / "out")
    assert not found.holds
    assert "hierarchy that no release has" in found.explain()


@pytest.mark.parametrize(
    "hierarchy",
    [
        "{intervals = 5}",
        "{intervals = [inf]}",
        "{intervals = [nan, 5]}",
        "{intervals = [1e-320, 1e308]}",
        "{intervals = [5], origin = inf}",
        '{mask = "right", width = 1000000000}',
        '{mask = "right", alphabet = 100000000000000000000000}',
        f"{{tree = {'{a = ' * 2_000}[]{'}' * 2_000}}}",
        '{file = "towns.csv", separator = "ab"}',
        '{file = "towns.csv"}',
        '{file = "a\\u0000b"}',
        f"{{intervals = [{'9' * 5_000}]}}",
        f"{{intervals = [0x{'f' * 5_000}]}}",
    ],
)
def test_a_schema_with_an_impossible_hierarchy_is_refused(hierarchy: str, tmp_path: Path) -> None:
    (tmp_path / "towns.csv").write_text('a;"b\rc;*\r"d";e"e;*\n"' + "x" * 200_000)
    (tmp_path / "people.toml").write_text(f'[columns.zip]\nrole = "quasi"\nhierarchy = {hierarchy}\n', encoding="utf-8")
    with pytest.raises((SchemaError, HierarchyError)) as caught:
        sf.protect(people(20).table().select(["zip"]), sf.KAnonymity(2), schema=tmp_path / "people.toml")
    assert caught.value.__cause__ is None


def test_infinite_bounds_and_long_texts_are_no_fault(tmp_path: Path) -> None:
    columns = {
        "age": {"role": "quasi", "type": "integer", "bounds": [float("-inf"), float("inf")], "hierarchy": {"intervals": [10]}},
        "code": {"role": "quasi", "hierarchy": {"mask": "right", "alphabet": 26}},
    }
    table = people(20).table().select(["age"]).append_column("code", people(20).table().column("zip"))
    assert sf.protect(table, sf.KAnonymity(2), sf.Lattice(suppression=0.5), schema={"columns": columns}).data.num_rows > 0
    from sfumato.data.hierarchies.hierarchy_builders import from_mask

    assert len(from_mask(["x" * 400, "y"], alphabet=26).rows()[0]) > 300


def test_parameters_beyond_all_numbers_are_refused() -> None:
    for name, parameter in (("AdditiveNoise", "ratio"), ("Mdav", "k"), ("Lattice", "suppression")):
        with pytest.raises(ParameterError, match="too large a number"):
            named.method({"name": name, parameter: 10**400})


@pytest.mark.parametrize("stored", ['{"index_columns": 5}', '{"index_columns": null}', "[]", "{", "[" * 5_000])
def test_what_a_parquet_file_says_for_pandas_is_not_believed(stored: str, tmp_path: Path) -> None:
    table = people(20).table().select(["age"]).replace_schema_metadata({"pandas": stored})
    pq.write_table(table, tmp_path / "people.parquet")
    assert sf.read(tmp_path / "people.parquet").column_names == ("age",)


@pytest.mark.parametrize("value", ["[" * 5_000, "9" * 5_000, "0x" + "f" * 5_000])
def test_deeply_nested_and_endless_parameters_on_the_command_line_are_refused(value: str) -> None:
    with pytest.raises(ParameterError):
        named.inline(f"Mdav, k={value}")


@pytest.mark.parametrize("number", ["9" * 5_000, "0x" + "f" * 5_000])
def test_a_whole_number_without_end_in_a_file_is_refused(number: str, tmp_path: Path) -> None:
    file = tmp_path / "given.toml"
    file.write_text(f"[[guarantee]]\nname = 'KAnonymity'\nk = {number}\n")
    for load in (sf.Schema.load, sf.Recipe.load):
        with pytest.raises(InputError, match="whole number that is too large"):
            load(file)
    (tmp_path / "people.csv").write_text("sex\nf\nm\n")
    told = ["publish", "PrivateHistogram", str(tmp_path / "people.csv"), "--set", f"epsilon={number}"]
    assert run(told) == 2


@pytest.mark.parametrize("members", [[1], 5, [[1, "a"]], [[]], [[1], [1, 2]], {"a": 1}, [[1e999, 1], [0, 1]]])
def test_a_game_whose_numbers_do_not_fit_is_refused(members: object, tmp_path: Path) -> None:
    game = {"attack": {"name": "Reconstruction"}, "published": [2, 1], "knowledge": {"members": members, "truth": [1, 1]}}
    (tmp_path / "game.json").write_text(json.dumps(game))
    with pytest.raises(InputError):
        attack_outputs(tmp_path / "game.json")


def test_a_parameter_without_its_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ParameterError, match="The parameters of AdditiveNoise are called ratio, "):
        named.inline("AdditiveNoise(0.1)")
    with pytest.raises(ParameterError, match="cannot read 'Nothing'") as refused:
        named.inline("Nothing(0.1)")
    assert "are called" not in str(refused.value)
