"""The commands as a person types them: what they print, what they write, how they end."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.cli.main import run
from tests.workflow.people import files

SEARCH = ["--method", "Lattice, suppression=0.05"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def as_json(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> Any:
    capsys.readouterr()
    assert run([*arguments, "--json"]) == code
    shown = capsys.readouterr()
    assert shown.err == ""
    return json.loads(shown.out)


def protect(*more: str) -> list[str]:
    return ["protect", "people.csv", "--schema", "people.toml", "--k", "5", *SEARCH, *more]


def test_protect_then_verify(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(protect("--l", "disease=2", "--output", "release")) == 0
    shown = capsys.readouterr().out
    assert "every combination of quasi-identifiers is shared by at least 5 records" in shown
    assert shown.startswith("verdict   kept: ") and "sfumato verify" in shown and len(shown.splitlines()) <= 13
    assert run(["verify", "release"]) == 0
    assert (place / "sfumato-ledger.db").exists()


def commands_in(shown: str) -> list[list[str]]:
    """The commands that a text proposes, as a shell reads them."""
    lines = [line[line.index("sfumato ") :].removesuffix(")") for line in shown.splitlines() if "sfumato " in line]
    return [shlex.split(line)[1:] for line in lines]


def test_commands_that_are_printed_can_be_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the folder is called."""
    place = tmp_path / "my data; it's mine"
    files(place)
    monkeypatch.chdir(tmp_path)
    source, schema = str(place / "people.csv"), str(place / "first look.toml")
    assert run(["inspect", source, "--schema-out", schema]) == 0
    [proposed] = commands_in(capsys.readouterr().out)
    assert proposed == ["protect", source, "--schema", schema, "--k", "5", "--l", "disease=2"]
    out = str(place / "out 1")
    assert run(["protect", source, "--schema", str(place / "people.toml"), "--k", "5", *SEARCH, "-o", out, "--no-ledger"]) == 0
    [check] = [each for each in commands_in(capsys.readouterr().out) if each[0] == "verify"]
    assert check == ["verify", out] and run(check) == 0
    key = str(place / "signing key")
    capsys.readouterr()
    assert run(["key", "new", key]) == 0
    assert [each[-1] for each in commands_in(capsys.readouterr().out)] == [key, f"{key}.pub"]


def test_protect_a_recipe(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "recipe.toml").write_text(
        'data = "people.csv"\nschema = "people.toml"\noutput = "out"\n'
        '[[guarantee]]\nname = "KAnonymity"\nk = 5\n[method]\nname = "Lattice"\nsuppression = 0.05\n'
    )
    told = as_json(["protect", "recipe.toml"], capsys)
    assert told["measured"][0]["measured"] >= 5 and told["scores"]["loss"] > 0
    assert run(["protect", "recipe.toml"]) == 2  # the output is there already
    assert run(["protect", "recipe.toml", "--overwrite", "--format", "csv"]) == 0
    assert (place / "out" / "public" / "data.csv").exists()
    assert run(["protect", "recipe.toml", "--k", "3"]) == 2


def test_json_is_all_there_is_on_standard_output(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    as_json(protect("--output", "release"), capsys)
    assert as_json(["verify", "release"], capsys)["holds"] is True
    assert as_json(["check", "people.csv", "--schema", "people.toml"], capsys)["holds"] is True
    assert as_json(["inspect", "people.csv"], capsys)["rows"] == 600
    assert as_json(["attack", "release", "--with", "people.csv"], capsys)["attacks"]
    assert as_json(["hierarchy", "people.toml", "--data", "people.csv"], capsys)["age"][0]["values"] > 10
    assert as_json(["ledger", "show"], capsys)["entries"][0]["kind"] == "release"
    assert as_json(["ledger", "releases"], capsys)["releases"][0]["rows"] > 0
    assert as_json(["ledger", "verify"], capsys)["ok"] is True
    assert as_json(["version"], capsys)["version"] == sf.__version__


def test_the_version_is_an_option_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"sfumato {sf.__version__}\n"
    assert run(["--version", "--help"]) == 0 and run(["--versions"]) == 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["protect", "people.csv", "--schema", "people.toml", "--k", "601", *SEARCH], 1),
        (["protect", "people.csv", "--schema", "people.toml", "--k", "five"], 2),
        (["protect", "people.csv", "--k", "5"], 2),
        (["protect", "people.csv", "--schema", "people.toml"], 2),
        (["protect", "nothing.csv", "--schema", "people.toml", "--k", "5", *SEARCH], 2),
        (["protect", "nothing.toml"], 2),
        (["protect", "people.csv", "--schema", "people.toml", "--l", "disease"], 2),
        (["protect", "people.csv", "--schema", "people.toml", "--l", "disease=2.5"], 2),
        (["protect", "people.csv", "--schema", "people.toml", "-g", "Unknown, k=2"], 2),
        (["protect", "people.csv", "--schema", "people.toml", "-g", "KAnonymity, k=="], 2),
        (["check", "people.csv", "--schema", "people.toml", "--k", "5"], 1),
        (["check", "nothing.csv"], 2),
        (["verify", "nothing"], 2),
        (["attack", "nothing"], 2),
        (["ledger", "show", "--ledger", "nothing.db"], 2),
        (["hierarchy", "people.toml", "--column", "nothing"], 2),
        (["conjure"], 2),
        (["protect"], 2),
        (["verify", "--frobnicate"], 2),
    ],
)
def test_how_commands_end(place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int) -> None:
    assert run(arguments) == code
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    if code == 2:
        assert [line.split(":")[0] for line in shown.err.splitlines() if line[:1].isalpha()][-1] == "error" and shown.out == ""
    capsys.readouterr()
    assert run([*arguments, "--json"]) == code
    told = json.loads(capsys.readouterr().out)
    assert told.get("exit_code", code) == code
    assert not (place / "out").exists()


def test_a_release_that_fails_its_claims_ends_with_1(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(protect("--output", "release")) == 0
    (place / "release" / "public" / "card.html").write_text("changed")
    assert run(["verify", "release"]) == 1
    assert "FAILED" in capsys.readouterr().out


def test_inspect_writes_a_schema_that_protect_accepts(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", "people.csv", "--schema-out", "start.toml"]) == 0
    assert "start.toml" in capsys.readouterr().out
    roles = {name: column.get("role") for name, column in tomllib.loads((place / "start.toml").read_text())["columns"].items()}
    assert roles["name"] == "identifier" and roles["age"] == "quasi"
    assert run(["protect", "people.csv", "--schema", "start.toml", "--k", "2", *SEARCH]) == 0


def test_inspect_says_whose_the_unique_values_are(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a column names units, a value is counted as long as one unit alone has it, in however many records."""
    (place / "visits.csv").write_text("patient_id,age\n" + "".join(f"p{i % 40:03d},{20 + i % 40}\n" for i in range(200)))
    (place / "visits.toml").write_text('dataset = "v"\n[columns]\npatient_id = {role = "unit"}\nage = {role = "quasi"}\n')
    assert run(["inspect", "visits.csv", "--schema", "visits.toml", "--no-schema"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"distinct +of one unit only +suggested role", shown) and "100 %" in shown
    assert run(["inspect", "people.csv", "--no-schema"]) == 0
    assert re.search(r"distinct +unique +suggested role", capsys.readouterr().out)


def test_grants_are_entered(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ledger", "grant", "clinic", "ada", "--epsilon", "0.1", "--ledger", "book.db"]) == 0
    assert run(["ledger", "grant", "clinic", "ada", "--epsilon", "1", "--delta", "1e-6", "--ledger", "book.db"]) == 0
    assert run(["ledger", "grant", "clinic", "ada", "--rho", "1/2", "--epsilon", "1", "--ledger", "book.db"]) == 2
    told = as_json(["ledger", "show", "--ledger", "book.db"], capsys)
    assert [entry["kind"] for entry in told["entries"]] == ["grant", "grant"]


def test_an_anchor_from_a_certificate_is_found_in_the_ledger(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = as_json(protect("--output", "release"), capsys)["ledger"]
    assert run(["ledger", "verify", "--anchor", entry]) == 0
    assert run(["ledger", "verify", "--anchor", "0" * 64]) == 1


def test_options_of_protect_reach_the_release(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = as_json(
        protect("-g", 'EntropyLDiversity, l=1.5, attribute="disease"', "--t", "disease=0.6", "--seed", "7", "--no-ledger",
                "--attack", "Homogeneity", "--utility", "discernibility", "--output", "o"),
        capsys,
    )  # fmt: skip
    assert [claim["guarantee"] for claim in told["measured"]] == [
        "KAnonymity",
        "TCloseness(disease)",
        "EntropyLDiversity(disease)",
    ]
    assert told["private"] is False and told["ledger"] == "not entered"
    assert set(told["scores"]) == {"loss", "discernibility"} and told["attacks"][0]["attack"] == "Homogeneity"


def test_measures_take_parameters_on_the_command_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--utility", 'machine_learning, target="disease"', "--risk", "prosecutor_risk, threshold=0.1", "--risk", "uniques"]
    told = as_json(protect(*asked, "--output", "o"), capsys)
    assert set(told["scores"]) == {"loss", "machine_learning", "prosecutor_risk", "uniques"}
    failed = as_json(protect("--utility", "machine_learning", "--risk", "nonsense", "--output", "p"), capsys, 2)
    assert "parameter 'target' is missing" in failed["error"] and "unknown measure 'nonsense'" in failed["error"]


def test_rows_go_into_a_database_too(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(protect("--output", "o", "--write-to", "rows.duckdb", "--write-table", "people")) == 0
    assert "rows.duckdb, table people" in capsys.readouterr().out
    assert len(sf.read(place / "rows.duckdb", table="people")) > 500
    again = protect("--output", "p", "--write-to", "rows.duckdb", "--write-table", "people")
    assert run(again) == 2 and not (place / "p").exists()
    assert as_json([*again, "--write-overwrite"], capsys)["written"] == {"to": "rows.duckdb", "table": "people"}
    assert run(protect("--output", "q", "--write-table", "people")) == 2
    project = place / "project"
    files(project)
    (project / "recipe.toml").write_text(
        'data = "people.csv"\nschema = "people.toml"\n[[guarantee]]\nname = "KAnonymity"\nk = 5\n'
        '[method]\nname = "Lattice"\nsuppression = 0.05\n'
    )
    assert run(["protect", "project/recipe.toml", "--write-to", "here.duckdb"]) == 0
    assert (place / "here.duckdb").is_file() and not (project / "here.duckdb").exists()


def test_the_password_of_a_database_is_never_shown(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(protect("--output", "o", "--write-to", "postgresql://ada:hunter2@127.0.0.1:1/clinic")) == 2
    shown = capsys.readouterr()
    assert "cannot connect" in shown.err and "hunter2" not in shown.out + shown.err
    assert not (place / "o").exists()


def test_debugging_shows_places_and_no_values(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_DEBUG", "1")
    assert run(["verify", "nothing"]) == 2
    assert "raised at:" in capsys.readouterr().err


def test_a_fault_of_the_program_does_not_show_what_it_was_about(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: object, **options: object) -> None:
        raise RuntimeError("person 00001 has asthma")

    monkeypatch.setattr("sfumato.workflow.verifying.verify.verify", broken)
    (place / "r").mkdir()
    assert run(["verify", "r"]) == 70
    shown = capsys.readouterr()
    assert "asthma" not in shown.out + shown.err and "RuntimeError" in shown.err


def test_help_is_plain_and_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    for name in ("inspect", "protect", "check", "verify", "attack", "ledger", "warm", "demo", "hierarchy", "key", "version"):
        assert name in shown
    assert run(["protect", "--help"]) == 0


def test_help_loads_nothing_heavy() -> None:
    """What it costs is measured by `make bench`; here, what it may not load."""
    probe = (
        "import contextlib, io, sys\nfrom sfumato.cli.main import run\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n    run(['--help'])\nprint(' '.join(sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "pyarrow", "pydantic", "duckdb", "matplotlib", "numba", "sklearn", "polars"} & set(loaded)


@pytest.mark.slow
def test_progress_goes_to_standard_error_and_only_to_a_terminal(place: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", "from sfumato.cli.main import main; main()", *protect("--l", "disease=2", "--output", "quiet")],
        capture_output=True, text=True, check=False, env=dict(os.environ),
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""


@pytest.mark.slow
def test_a_terminal_sees_progress(place: Path) -> None:
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "from sfumato.cli.main import main; main()", *protect("--output", "seen")],
        stdout=subprocess.PIPE, stderr=follower, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(follower)
    seen = b""
    try:
        while part := os.read(leader, 65536):
            seen += part
    except OSError:
        pass
    out, _ = process.communicate()
    os.close(leader)
    assert process.returncode == 0
    assert seen and b"\x1b" not in out


@pytest.mark.slow
@pytest.mark.e2e
def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "--rows", "3000"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("verdict   warning: 2 promises") and "nothing is promised about 'income'" in shown
    assert len(shown.splitlines()) <= 16
    assert "measured 5" in shown or "measured 6" in shown
    assert "granularity" in shown and "card.html" in shown
    assert sf.verify(tmp_path / "sfumato-demo" / "release").holds
    assert run(["demo", "--rows", "3000"]) == 0  # its own earlier demonstration is replaced
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("x")
    assert run(["demo", str(other)]) == 2
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]


def test_options_beside_a_recipe_are_checked_and_mean_this_folder(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = place / "project"
    files(project)
    (project / "recipe.toml").write_text(
        'data = "people.csv"\nschema = "people.toml"\noutput = "out"\n'
        '[[guarantee]]\nname = "KAnonymity"\nk = 5\n[method]\nname = "Lattice"\nsuppression = 0.05\n'
    )
    assert run(["protect", "project/recipe.toml", "--format", "xls"]) == 2
    assert not (project / "sfumato-ledger.db").exists()
    assert run(["protect", "project/recipe.toml", "--output", "here", "--ledger", "here.db", "--seed", "7"]) == 0
    assert (place / "here" / "public").is_dir() and (place / "here.db").is_file()
    assert not (project / "out").exists()


def test_check_against_a_population_says_k_map_and_presence(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = as_json(["check", "people.csv", "--schema", "people.toml", "--population", "people.csv"], capsys)["measures"]
    assert found["k_map"] == found["k"] and found["presence"] == [1.0, 1.0]
    assert run(["check", "people.csv", "--schema", "people.toml", "--population", "people.csv"]) == 0
    shown = capsys.readouterr().out
    assert "k-map" in shown and "δ-presence, smallest" in shown and "δ-presence, largest" in shown


def test_check_shows_failing_classes_to_their_owner(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["check", "people.csv", "--schema", "people.toml", "--k", "5", "--show-failing", "3"]
    failing = as_json(asked, capsys, code=1)["failing"]["KAnonymity"]
    assert len(failing) == 3 and all(row["records"] < 5 and "zip" in row for row in failing)
    assert run(asked) == 1
    assert "Failing classes of KAnonymity" in capsys.readouterr().out


def test_a_missing_option_points_at_the_help_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ledger", "no-such-command"]) == 2
    assert "See `sfumato ledger --help`." in capsys.readouterr().err
    assert run(["no-such-command"]) == 2
    assert "See `sfumato --help`." in capsys.readouterr().err
