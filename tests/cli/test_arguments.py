"""Arguments that no text, no file name and no folder can be: one sentence each, and no address with its password."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.cli.main import run

SECRET = "s3cr3t-canary"
ADDRESS = f"postgresql://u:{SECRET}@localhost:1/x"
SCHEMA = 'dataset = "t"\nunit = "record"\n[columns.age]\nrole = "quasi"\ntype = "integer"\n'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("age\n" + "30\n40\n" * 10, "utf-8")
    Path("t.toml").write_text(SCHEMA, "utf-8")
    return tmp_path


PROTECT = ["protect", "t.csv", "--schema", "t.toml", "--k", "3", "--no-ledger", "-q"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", "t.csv", "--missing", "\udcff"],
        [*PROTECT, "-o", "po", "--seed", "\udcff"],
        [*PROTECT, "-o", "\udcff"],
        ["attack", "t.csv", "--with", "t.csv", "--earlier", "a" * 5000],
    ],
)
def test_what_is_no_text_or_no_file_name_is_refused_in_a_sentence(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert run(arguments) == 2
    assert "internal" not in capsys.readouterr().err
    assert sorted(path.name for path in place.iterdir()) == ["t.csv", "t.toml"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify", ADDRESS],
        ["attack", ADDRESS],
        ["hierarchy", "show", ADDRESS],
        ["hierarchy", "new", "age", "--data", "t.csv", "--groups", ADDRESS],
        ["hierarchy", "new", "age", "--data", "t.csv", "-o", ADDRESS],
        ["inspect", "t.csv", "--schema", ADDRESS],
        ["inspect", "t.csv", "--schema-out", ADDRESS],
        ["key", "new", ADDRESS],
        [*PROTECT, "-o", ADDRESS],
    ],
)
def test_an_address_in_place_of_a_file_is_not_repeated_and_makes_no_folder(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert run(arguments) == 2
    said = capsys.readouterr()
    assert SECRET not in said.err + said.out
    assert sorted(path.name for path in place.iterdir()) == ["t.csv", "t.toml"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["hierarchy", "new", "agge", "--data", "t.csv"], "no column 'agge' (did you mean 'age'?); it has age"),
        (["hierarchy", "new", "age", "--data", "t.csv", "--as", "postcode"], "'postcode' (did you mean 'postcodes'?); choose"),
        ([*PROTECT, "-o", "po", "--l", "agee=2"], "does not describe (did you mean 'age'?); sensitive columns: none"),
        ([*PROTECT[:5], "0", "-o", "po"], "error: --k must be a whole number of at least 1, not 0."),
        (
            [*PROTECT, "-o", "po", "--l", "age=0", "--t", "age=-1"],
            "error: --l must be a whole number of at least 1, not 0; --t must",
        ),
        (["check", "t.csv", "--schema", "t.toml", "--k", "0"], "error: --k must be"),
    ],
)
def test_a_refusal_names_what_was_typed_and_what_may_be_meant(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert run(arguments) == 2
    assert said in capsys.readouterr().err
