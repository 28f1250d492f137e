"""Exact extremes of a hidden group, described by a file beside a table of everybody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.attacks import AnswerIntersection, Extreme
from sfumato.cli.main import run
from sfumato.core.errors import SfumatoError
from sfumato.core.view import View
from sfumato.data.writers import write_file
from sfumato.workflow.attacking.outputs import attack_outputs

PEOPLE = pa.table(
    {
        "name": ["Alice", "Bob", "Carl", "Don", "Ellie", "Frank"],
        "age": [30, 30, 40, 40, 50, 50],
        "weight": [60.0, 90.0, 90.0, 100.0, 60.0, 100.0],
    }
)
TWO = [{"column": "age", "value": 40}, {"column": "weight", "value": 100, "which": "least"}]


def game(folder: Path, published: Any = TWO, knowledge: Any = None) -> Path:
    path = folder / "game.json"
    known = {"people": "people.csv"} if knowledge is None else knowledge
    path.write_text(json.dumps({"attack": {"name": "AnswerIntersection"}, "published": published, "knowledge": known}))
    return path


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_a_file_of_extremes_gives_what_python_gives(
    tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(PEOPLE, tmp_path / "people.csv")
    if ending == "parquet":
        pq.write_table(PEOPLE, tmp_path / "people.parquet")
    elif ending == "tsv":
        (tmp_path / "people.tsv").write_text((tmp_path / "people.csv").read_text().replace(",", "\t"))
    path = game(tmp_path, knowledge={"people": f"people.{ending}"})
    found = attack_outputs(path)
    real = AnswerIntersection().run(View([Extreme("age", 40), Extreme("weight", 100)], None), PEOPLE)
    assert (found["success"], found["baseline"], found["targets"]) == (real.success, real.baseline, 1) == (1.0, 1 / 6, 1)
    assert found["finding"] == real.finding and found["details"] == dict(real.details)
    monkeypatch.chdir(Path(__file__).parent)  # the table is looked for beside the file that names it
    assert run(["attack", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "AnswerIntersection: success 100 %" in shown and "Don" not in shown and "40" not in shown
    assert run(["attack", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["attacks"] == [{**found, "gain": 1.0}]


@pytest.mark.parametrize(
    ("published", "knowledge", "why"),
    [
        ([], None, "a list of 1 to 10,000 extremes"),
        ({"column": "age", "value": 40}, None, "a list of 1 to 10,000 extremes"),
        ([40], None, "an extreme must be an object"),
        ([{"column": "age"}], None, "'value' is missing"),
        ([{"column": "age", "value": "canary-31"}], None, "value must be a number"),
        ([{"column": "age", "value": float("nan")}], None, "value must be a number"),
        ([{"column": "age", "value": 40, "which": "canary-31"}], None, "'least' or 'greatest'"),
        ([{"column": "height", "value": 40}], None, "lacks height"),
        ([{"column": "name", "value": 40}], None, "'name' does not hold numbers"),
        (TWO, {}, "name a table of everybody"),
        (TWO, {"people": 3}, "name a table of everybody"),
        (TWO, {"people": "people.csv", "truth": "canary-31"}, "name a table of everybody"),
        (TWO, {"people": "none.csv"}, "there is no file"),
        (TWO, {"people": "a\0b.csv"}, "no file"),
        (TWO, {"people": "people.pkl"}, "must end with"),
        (TWO, {"people": "damaged.parquet"}, "not a complete Parquet"),
        (TWO, {"people": "empty.csv"}, "table of people"),
    ],
)
def test_a_game_that_makes_no_sense_is_one_clear_error_without_a_value(
    tmp_path: Path, published: Any, knowledge: Any, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_file(PEOPLE, tmp_path / "people.csv")
    (tmp_path / "people.pkl").write_bytes(b"x")
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 no more")
    (tmp_path / "empty.csv").write_text("name,age,weight\n")
    path = game(tmp_path, published, knowledge)
    with pytest.raises(SfumatoError, match=why):
        attack_outputs(path)
    assert run(["attack", str(path)]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("error: ") and shown.out == ""
    assert not any(value in shown.err for value in ("canary", "Alice", "Don"))


def test_large_tables_and_many_answers_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    path = game(tmp_path, knowledge={"people": "people.parquet"})
    monkeypatch.setattr("sfumato.attacks.outputs.answer_intersection.MOST_CELLS", 17)
    with pytest.raises(SfumatoError, match="more than 17 cells"):
        attack_outputs(path)
    monkeypatch.setattr("sfumato.workflow.attacking.tables.MOST_BYTES", 10)
    with pytest.raises(SfumatoError, match="larger than 10 bytes"):
        attack_outputs(path)
    monkeypatch.setattr("sfumato.attacks.outputs.answer_intersection.MOST_ANSWERS", 1)
    with pytest.raises(SfumatoError, match="1 to 1 extremes"):
        attack_outputs(path)
