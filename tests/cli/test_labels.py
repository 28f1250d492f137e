"""Whatever is printed as a name can be typed into the next command, and a name that is nearly right is named."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pyarrow.csv as pcsv
import pytest

import sfumato as sf
from sfumato.cli.main import run
from sfumato.core.errors import ParameterError, Unsupported
from sfumato.data.schema import Column, Schema
from sfumato.workflow.comparing.grid import Shared, expanded, label, label_of, method_called, placed
from tests.workflow.test_mask import table

SCHEMA = Schema(
    dataset="measured",
    columns={
        "name": Column(role="identifier", type="string"),
        "height": Column(role="quasi", type="number"),
        "weight": Column(role="quasi", type="number"),
        "wage": Column(role="plain", type="number"),
        "ill": Column(role="quasi", type="string"),
    },
)


PROTECT = ["protect", "people.csv", "--schema", "people.toml"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pcsv.write_csv(table(120), tmp_path / "people.csv")
    (tmp_path / "people.toml").write_text(SCHEMA.to_toml())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def compared(*methods: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    words = ["compare", "people.csv", "--schema", "people.toml", "--workers", "1", "--runs", "1", "--json"]
    for method in methods:
        words += ["-m", method]
    capsys.readouterr()
    assert run(words) == 0
    told = json.loads(capsys.readouterr().out)
    return [*told["points"], {"command": told["command"]}]


def method_in(folder: str) -> object:
    return json.loads((Path(folder) / "public" / "certificate.json").read_text())["method"]


@pytest.mark.slow
def test_every_label_that_compare_prints_is_a_method_of_protect(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The usual methods: masks that share the quasi-identifiers, and searches with their guarantees."""
    *points, command = compared(capsys=capsys)
    labels = [str(point["label"]) for point in points if point["refused"] is None]
    assert "RankSwapping(p=25) + Pram(stay=0.8)" in labels and "KAnonymity(k=10) by Mondrian" in labels
    for number, point in enumerate(points):
        typed = [
            "protect",
            "people.csv",
            "--schema",
            "people.toml",
            "--no-ledger",
            "-o",
            f"o{number}",
            "--method",
            str(point["label"]),
        ]
        assert run(typed) == 0, point["label"]
        described = dict(point["method"])  # type: ignore[call-overload]
        assert method_in(f"o{number}") == (described["search"] if described["name"] == "Recoded" else described)
    words = shlex.split(str(command["command"]))
    assert words[:5] == ["sfumato", "protect", "people.csv", "--schema", "people.toml"]
    assert run([*words[1:], "--no-ledger", "-o", "proposed"]) == 0


@pytest.mark.parametrize(
    "method",
    [
        'Mdav(k=3, columns=["height"]) + RankSwapping(p=10, columns=["weight"])',
        'Combined(masks=[{name="Mdav", k=3, columns=["height"]}])',
        'AdditiveNoise(ratio=0.1, columns=["height"], whole=false)',
        'KAnonymity(k=3) + DistinctLDiversity(l=2, attribute="wage") by Lattice(suppression=0.2)',
        "Mdav(k=3)",  # which leaves the words as they are
    ],
)
def test_labels_with_columns_and_parameters_can_be_typed_too(
    place: Path, method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    described = SCHEMA.replace(columns={**SCHEMA.columns, "wage": Column(role="sensitive", type="number")})
    (place / "people.toml").write_text(described.to_toml())
    point, _ = compared(method, capsys=capsys)
    assert run([*PROTECT, "--no-ledger", "-o", "out", "--method", str(point["label"])]) == 0
    (again, _) = compared(str(point["label"]), capsys=capsys)
    assert again["label"] == point["label"] and again["method"] == point["method"]


def test_python_takes_the_same_labels(tmp_path: Path) -> None:
    people = sf.read(table(120), SCHEMA)
    release = sf.protect(people, method="KAnonymity(k=10) by Mondrian")
    assert release.guarantees == (sf.KAnonymity(10),) and release.certificate.method["name"] == "Mondrian"
    masked = sf.protect(people, method="RankSwapping(p=25) + Pram(stay=0.8)", risk=(), utility=())
    steps = masked.certificate.method["masks"]
    assert [(step["name"], step["columns"]) for step in steps] == [("RankSwapping", ["height", "weight"]), ("Pram", ["ill"])]
    with pytest.raises(ParameterError, match="KAnonymity is a guarantee and no method"):
        sf.protect(people, method="KAnonymity(k=10)")


def test_masks_that_share_columns_say_which_is_left_over() -> None:
    people = sf.read(table(120), SCHEMA)
    with pytest.raises(Unsupported, match="none of these masks changes 'ill'"):
        placed(Shared((sf.RankSwapping(p=5), sf.AdditiveNoise(0.1, columns=("height",)))), people)
    with pytest.raises(Unsupported, match="no quasi-identifier is left for Pram"):
        placed(Shared((sf.RankSwapping(p=5), sf.Mdav(3), sf.Pram(stay=0.8))), people)
    (method,) = expanded(["RankSwapping(p=25) + Pram(stay=0.8)"], people)
    assert label_of(method, people) == "RankSwapping(p=25) + Pram(stay=0.8)"
    assert label_of(method) == 'RankSwapping(p=25, columns=["height", "weight"]) + Pram(stay=0.8, columns=["ill"])'
    assert method_called(label_of(method)) == (method, ())


def test_labels_are_toml_whatever_the_parameters_are() -> None:
    odd = sf.Mdav(3, columns=('a "b"', "c' + d by e"))
    assert method_called(label(odd)) == (odd, ())
    closeness = sf.TCloseness(0.2, "a, b", distance="equal")
    assert method_called(f"{label(closeness)} by Mondrian") == (sf.Mondrian(), (closeness,))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*PROTECT, "--method", "Mdavv"], "Did you mean 'Mdav'?"),
        ([*PROTECT, "--method", "MDAV(k=3)"], "Did you mean 'Mdav'?"),
        ([*PROTECT, "--method", "Mdavv(k=3) + Pram(stay=0.8)"], "Did you mean 'Mdav'?"),
        ([*PROTECT, "--method", "KAnonymity(k=3) by Mondriann"], "'Mondrian'"),
        ([*PROTECT, "--method", "KAnonymity(k=3)"], "KAnonymity is a guarantee"),
        ([*PROTECT, "-g", "KAnonimity(k=3)"], "Did you mean 'KAnonymity'?"),
        ([*PROTECT, "-g", "Mondrian"], "It is a search, and a guarantee is needed"),
        (
            [*PROTECT, "--k", "3", "--attack", "Homogenity"],
            "Did you mean 'Homogeneity'?",
        ),
        ([*PROTECT, "--k", "3", "--risk", "unique"], "Did you mean 'uniques'?"),
        (["compare", "people.csv", "--schema", "people.toml", "-m", "Mdavv"], "Did you mean 'Mdav'?"),
        (["compare", "people.csv", "--schema", "people.toml", "-m", "Mdav(kk=3)"], "did you mean 'k'?"),
    ],
)
def test_a_name_that_is_nearly_right_is_named(
    place: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    shown = capsys.readouterr().err
    assert said in shown and "--k, --l" not in shown


def test_no_question_proposes_the_word_that_was_typed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*PROTECT, "-g", "Mdav(k=3)"]) == 2
    shown = capsys.readouterr().err
    assert "unknown guarantee 'Mdav'" in shown and "mean 'Mdav'" not in shown
