"""The commands about differential privacy as a person types them: query, publish, and the ledger that pays."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.cli.main import run
from sfumato.ledger import Charge, Ledger, Protected
from tests.cli.test_commands import as_json

SCHEMA = """
dataset = "people"
[columns.user]
role = "unit"
type = "integer"
[columns.age]
type = "integer"
bounds = [18, 90]
[columns.sex]
type = "string"
domain = ["f", "m"]
[columns.income]
type = "integer"
bounds = [0, 100000]
"""
BY_SEX = "SELECT sex, COUNT(*) AS n, AVG(income) AS income FROM people GROUP BY sex ORDER BY sex"
QUARTILES = "SELECT QUANTILE_CONT(age, [0.25, 0.75]) AS ages FROM people"
COUNT = "SELECT COUNT(*) AS n FROM people"
BOUNDS = ["--max-rows", "1", "--max-groups", "1"]
ON = ["--data", "people.csv", "--schema", "people.toml", "--analyst", "ann"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from sfumato.data.writers import write_file

    draw = np.random.default_rng(1)
    rows = 2000
    table = pa.table(
        {
            "user": np.arange(rows) % 900,
            "age": draw.integers(18, 90, rows),
            "sex": draw.choice(["f", "m"], rows),
            "income": draw.integers(0, 100_000, rows),
        }
    )
    write_file(table, tmp_path / "people.csv")
    (tmp_path / "people.toml").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    assert run(["ledger", "grant", "people", "ann", "--epsilon", "2"]) == 0
    return tmp_path


def query(text: str, *more: str) -> list[str]:
    return ["query", text, *ON, *BOUNDS, *more]


def test_a_question_is_answered_with_margins_and_charged_once(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(query(BY_SEX, "--epsilon", "1")) == 0
    first = capsys.readouterr().out.splitlines()
    assert first[0].split() == ["sex", "n", "income"] and " ± " in first[1] and first[1].startswith("f ")
    assert any("At most 1 row of each user in 1 group is counted" in line for line in first)
    assert any(line.startswith("cost      ε = 1 (ledger entry ") for line in first) and "left      ε = 1" in first
    assert run(query(BY_SEX, "--epsilon", "1")) == 0
    again = capsys.readouterr().out.splitlines()
    assert again[:3] == first[:3] and "left      ε = 1" in again
    assert any("answered before" in line for line in again)


def test_other_names_and_fewer_rows_cost_nothing_and_can_be_verified(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(query(BY_SEX, "--epsilon", "1")) == 0
    other = "SELECT AVG(income) AS mean, sex AS who FROM people GROUP BY sex ORDER BY mean LIMIT 1"
    told = as_json(query(other, "--epsilon", "0.5", "--output", "again"), capsys)
    assert told["repeated"] is True and told["left"] == {"kind": "pure", "epsilon": "1/1"} and len(told["rows"]) == 1
    assert run(["verify", "again", "--ledger", "sfumato-ledger.db"]) == 0


def test_the_owner_is_told_when_the_schema_names_another_ledger(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["ledger", "grant", "people", "bob", "--epsilon", "1"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "ledger = " in line).rpartition(": ")[2]
    schema = place / "people.toml"
    schema.write_text(f"{line}\n{schema.read_text('utf-8')}", encoding="utf-8")
    assert run(query(COUNT, "--epsilon", "0.1", "--analyst", "bob")) == 0
    assert capsys.readouterr().err == ""
    assert run(["ledger", "grant", "people", "bob", "--epsilon", "1", "--ledger", "other.db"]) == 0
    capsys.readouterr()
    assert run(query(COUNT, "--epsilon", "0.1", "--analyst", "bob", "--ledger", "other.db")) == 0
    told = capsys.readouterr().err
    assert told.startswith("notice: the schema says") and "charges another one" in told
    assert run(query(COUNT, "--epsilon", "0.1", "--explain")) == 0
    assert capsys.readouterr().err == ""


def test_several_quantiles_are_a_list_in_json_and_a_column_each_on_the_terminal(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = as_json(query(QUARTILES, "--epsilon", "1", "--output", "out"), capsys)
    (row,), (margins,), (ends,) = (told[part] for part in ("rows", "margins", "intervals"))
    assert len(row["ages"]) == len(margins["ages"]) == len(ends["ages"]) == 2 and told["left"]["epsilon"] == "1/1"
    assert all(end["low"] <= value <= end["high"] for value, end in zip(row["ages"], ends["ages"], strict=True))
    assert run(["verify", "out", "--ledger", "sfumato-ledger.db"]) == 0
    capsys.readouterr()
    assert run(query(QUARTILES, "--epsilon", "1")) == 0
    first = capsys.readouterr().out.splitlines()
    assert first[0].split() == ["ages[1]", "ages[2]"] and str(row["ages"][0]) in first[1]


def test_json_has_rows_errors_margins_and_costs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = as_json(query(BY_SEX, "--epsilon", "0.5", "--confidence", "0.9"), capsys)
    assert [row["sex"] for row in told["rows"]] == ["f", "m"] and told["confidence"] == 0.9
    assert told["margins"][0]["n"] > told["standard_errors"][0]["n"] > 0 and told["margins"][0]["sex"] is None
    shown, margin, ends = (told[part][0] for part in ("rows", "margins", "intervals"))
    assert ends["n"] == {"low": shown["n"] - margin["n"], "high": shown["n"] + margin["n"]} and ends["sex"] is None
    assert told["loss"] == {"kind": "pure", "epsilon": "1/2"} and told["left"] == {"kind": "pure", "epsilon": "3/2"}
    assert told["private"] is True and told["repeated"] is False and len(told["entry"]) == 64
    assert as_json(query(BY_SEX, "--epsilon", "0.5"), capsys)["repeated"] is True


def test_explaining_costs_nothing_and_needs_no_ledger(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(query(COUNT, "--epsilon", "0.1", "--explain", "--ledger", "none.db")) == 0
    shown = capsys.readouterr().out
    assert "costs ε = 0.1" in shown and "within ±" in shown and "nothing was spent" in shown
    assert run(query(COUNT, "--within", "100", "--ledger", "none.db")) == 0
    assert "costs ε = 0.0299" in capsys.readouterr().out  # ln(1/0.05) / 100, to three digits
    assert as_json(query(COUNT, "--within", "100"), capsys)["loss"]
    median = query("SELECT MEDIAN(age) AS m FROM people", "--rank-within", "50", "--ledger", "none.db")
    assert run(median) == 0
    assert "rows of its rank at 95%" in capsys.readouterr().out
    assert 0 < as_json(median, capsys)["columns"][0]["rank_margin"] <= 50
    assert not (place / "none.db").exists()
    with Ledger.open(place / "sfumato-ledger.db") as ledger:
        assert ledger.spends() == []


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (query(COUNT, "--epsilon", "2.1"), 3),
        (query(COUNT, "--rho", "0.1"), 3),  # a grant of ε cannot pay ρ exactly
        (["query", COUNT, *ON[:4], *BOUNDS, "--analyst", "eve", "--epsilon", "0.1"], 3),
        (query("SELECT income FROM people", "--epsilon", "0.1"), 2),
        (query("SELECT AVG(height) FROM people", "--epsilon", "0.1"), 2),
        (query("DROP TABLE people", "--epsilon", "0.1"), 2),
        (query(COUNT), 2),
        (query(COUNT, "--rho", "1", "--epsilon", "1"), 2),
        (query(COUNT, "--epsilon", "much"), 2),
        (query(COUNT, "--epsilon", "1", "--bounding", "guess"), 2),
        (query(COUNT, "--within", "near"), 2),
        (query(COUNT, "--rank-within", "50"), 2),
        (query(COUNT, "--rank-within", "near"), 2),
        (query(COUNT, "--epsilon", "1", "--output", "people.csv"), 2),
        (query(COUNT, "--epsilon", "1", "--output", "o", "--format", "xls"), 2),
        (query(COUNT, "--epsilon", "1", "--output", "o", "--sign", "no.key"), 2),
        (["query", COUNT, "--epsilon", "1"], 2),
        (["query", COUNT, "--epsilon", "1", "--data", "people.csv"], 2),
        (["query", COUNT, "--epsilon", "1", "--table", "people=people.csv"], 2),
        (["query", COUNT, "--epsilon", "1", "--data", "no.csv", "--schema", "people.toml"], 2),
        (["publish"], 2),
        (["publish", "PrivateHistogram", "people.csv"], 2),
        (["publish", "Histogramm", "people.csv", "--schema", "people.toml"], 2),
        (["publish", "--list", "Histogramm"], 2),
        (["publish", "PrivateHistogram", "people.csv", "--schema", "people.toml", "--set", "columns"], 2),
        (["publish", "PrivateHistogram", "people.csv", "--schema", "people.toml", "--set", "colour=1"], 2),
    ],
)
def test_refusals_end_with_2_or_3_and_spend_nothing(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int
) -> None:
    capsys.readouterr()
    assert run(arguments) == code
    shown = capsys.readouterr()
    assert shown.err.startswith("error: ") and "internal" not in shown.err and shown.out == ""
    assert as_json(arguments, capsys, code)["exit_code"] == code
    with Ledger.open(place / "sfumato-ledger.db") as ledger:
        assert ledger.spends() == [] and not (place / "o").exists() and not (place / "out").exists()


def test_an_answer_is_published_and_verified(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["key", "new", "owner.key"]) == 0
    assert run(query(BY_SEX, "--epsilon", "1", "--output", "answer", "--sign", "owner.key")) == 0
    assert {path.name for path in (place / "answer" / "public").iterdir()} == {
        "data.csv", "errors.csv", "card.html", "certificate.json", "signature.json",
    }  # fmt: skip
    assert as_json(["verify", "answer"], capsys)["verdict"] == "rests on its maker", "files alone cannot show a process"
    told = as_json(["verify", "answer", "--ledger", "sfumato-ledger.db", "--public-key", "owner.key.pub"], capsys)
    assert told["holds"] is True and told["verdict"] == "keeps" and "keeps what it claims" in told["sentence"]
    assert run(["verify", "answer", "--ledger", "no.db"]) == 2
    assert run(["ledger", "grant", "people", "bob", "--epsilon", "1", "--ledger", "other.db"]) == 0
    assert as_json(["verify", "answer", "--ledger", "other.db"], capsys, 1)["holds"] is False
    [release] = as_json(["ledger", "releases"], capsys)["releases"]
    assert release["evidence"] == "process" and release["rows"] == 2
    assert run(query(BY_SEX, "--epsilon", "1", "--output", "answer")) == 2
    assert run(query(BY_SEX, "--epsilon", "1", "--output", "answer", "--overwrite")) == 0
    capsys.readouterr()
    assert run(["ledger", "releases"]) == 0
    assert "no event is more than e^1 times as likely" in capsys.readouterr().out


def test_a_seed_makes_a_demonstration(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(query(COUNT, "--epsilon", "0.1", "--seed", "7", "--output", "demo")) == 0
    assert "demonstration" in capsys.readouterr().out
    assert sf.verify(place / "demo", ledger="sfumato-ledger.db").holds is False
    assert as_json(query(COUNT, "--epsilon", "0.2", "--seed", "7"), capsys)["private"] is False


def test_several_tables_public_tables_and_keys(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "names.csv").write_text("sex,word\nf,female\nm,male\n")
    joined = "SELECT word, COUNT(*) AS n FROM people JOIN names ON people.sex = names.sex GROUP BY word ORDER BY word"
    tables = ["--table", "people=people.csv:people.toml", "--public", "names=names.csv", "--analyst", "ann"]
    told = as_json(["query", joined, *tables, *BOUNDS, "--epsilon", "0.5"], capsys)
    assert [row["word"] for row in told["rows"]] == ["female", "male"]
    ages = "SELECT age, COUNT(*) AS n FROM people GROUP BY age ORDER BY age"
    told = as_json(query(ages, "--keys", "age=20,30", "--epsilon", "0.5"), capsys)
    assert [row["age"] for row in told["rows"]] == [20, 30]
    (place / "coded.csv").write_text("user,code\n1,8001\n2,8002\n")
    (place / "coded.toml").write_text(
        'dataset = "people"\n[columns.user]\nrole = "unit"\ntype = "integer"\n[columns.code]\ntype = "string"\n'
    )
    grouped = ["query", "SELECT code, COUNT(*) AS n FROM coded GROUP BY code", "--table", "coded=coded.csv:coded.toml", *BOUNDS]
    told = as_json([*grouped, "--analyst", "ann", "--keys", "code=8001,8002", "--epsilon", "0.5"], capsys)
    assert [row["code"] for row in told["rows"]] == ["8001", "8002"]
    assert run(query(ages, "--keys", "age", "--epsilon", "0.5")) == 2
    assert run(query(ages, "--public", "names", "--epsilon", "0.5")) == 2


def test_bounds_of_contribution_reach_the_session(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wide = as_json(query(COUNT, "--epsilon", "0.1", "--max-rows", "5", "--explain"), capsys)
    narrow = as_json(query(COUNT, "--epsilon", "0.1", "--explain"), capsys)
    assert wide["measurements"][0]["deviation"] > 4.9 * narrow["measurements"][0]["deviation"]
    assert run(query(COUNT, "--epsilon", "0.1", "--max-rows-per-group", "5")) == 2
    assert "write --max-rows 5" in capsys.readouterr().err
    asked = query(COUNT, "--epsilon", "0.1", "--bounding", "truncate", "--order", "age", "--data-version", "march")
    assert as_json(asked, capsys)["repeated"] is False


def test_an_artefact_is_made_paid_for_and_verified(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["publish", "PrivateHistogram", "people.csv", "--schema", "people.toml", "--analyst", "ann",
             "--set", 'columns=["sex", "age"]', "--set", "bins={age=[18, 40, 65, 90]}",
             "--set", "epsilon=1/2", "--set", "max_rows=1"]  # fmt: skip
    capsys.readouterr()
    assert run([*asked, "--output", "h"]) == 0
    shown = capsys.readouterr().out
    assert "made      6 rows" in shown and "cost      ε = 0.5 (ledger entry " in shown and "left      ε = 1.5" in shown
    assert as_json(["verify", "h", "--ledger", "sfumato-ledger.db"], capsys)["holds"] is True
    told = as_json([*asked, "--output", "p", "--format", "parquet", "--seed", "x"], capsys)
    assert told["private"] is False and told["rows"] == 6 and told["left"] == {"kind": "pure", "epsilon": "1/1"}
    assert [entry["kind"] for entry in as_json(["ledger", "show"], capsys)["entries"]].count("release") == 2


def test_the_list_of_algorithms_tells_their_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    known = as_json(["publish", "--list"], capsys)["algorithms"]
    assert {"PrivateHistogram", "KMeans", "TopK"} <= set(known)
    assert all(about["what"] and about["parameters"] for about in known.values())
    assert list(as_json(["publish", "--list", "KMeans"], capsys)["algorithms"]) == ["KMeans"]
    assert run(["publish", "--list"]) == 0
    listed = capsys.readouterr().out
    assert "    k: how many clusters there are (a whole number from 1 to 10,000)" in listed
    assert "Annotated" not in listed and "Rho" not in listed


def test_the_ledger_alone_shows_who_spent_what_and_what_is_left(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ledger", "cap", "people", "--epsilon", "1.5"]) == 0
    assert run(query(COUNT, "--epsilon", "0.5")) == 0
    with Ledger.open(place / "sfumato-ledger.db") as ledger:
        from sfumato.ledger import LossAmount

        ledger.reserve("people", "ann", Charge(LossAmount.pure("0.25"), Protected("user")), "a process died")
    told = as_json(["ledger"], capsys)
    everybody, ann = told["accounts"]
    assert (everybody["analyst"], everybody["left"]["epsilon"]) == ("*", "3/4")
    assert (ann["granted"]["epsilon"], ann["spent"]["epsilon"], ann["left"]["epsilon"]) == ("2/1", "3/4", "5/4")
    assert (ann["answered"], ann["reserved_without_answer"]) == (1, 1) == (everybody["answered"], 1)
    assert told["entries"] == 6 and len(told["last"]) == 6 and told["releases"] == 0
    capsys.readouterr()
    assert run(["ledger", "--dataset", "people"]) == 0
    shown = capsys.readouterr().out
    assert "everybody" in shown and "it stays spent" in shown and "0 releases, 6 entries" in shown
    assert run(query("SELECT SUM(age) AS s FROM people", "--epsilon", "0.8")) == 3
    assert "cap for everybody together does not suffice" in capsys.readouterr().err


def test_spends_are_listed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["ledger", "spends"]) == 0
    assert capsys.readouterr().out == "nothing was spent yet\n"
    assert run(query(COUNT, "--epsilon", "0.5")) == 0
    [spend] = as_json(["ledger", "spends"], capsys)["spends"]
    assert (spend["analyst"], spend["state"], spend["loss"]["epsilon"]) == ("ann", "committed", "1/2")
    assert run(["ledger", "spends", "--dataset", "people"]) == 0
    assert "answered" in capsys.readouterr().out


def test_spends_on_two_questions_about_the_same_rows_can_be_told_apart(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for question in (COUNT, "SELECT SUM(age) AS s FROM people"):
        assert run(query(question, "--epsilon", "0.5")) == 0
    capsys.readouterr()
    assert run(["ledger", "spends"]) == 0
    listed = [line.split()[-2] for line in capsys.readouterr().out.splitlines()[-2:]]
    told = [each["question"] for each in as_json(["ledger", "spends"], capsys)["spends"]]
    assert listed[0] != listed[1] and all(short in whole for short, whole in zip(listed, told, strict=True))


def test_spends_on_the_same_question_about_other_rows_can_be_told_apart(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for condition in ("age > 40", "age > 60", "sex = 'f'"):
        assert run(query(f"{COUNT} WHERE {condition}", "--epsilon", "0.5")) == 0
    capsys.readouterr()
    assert run(["ledger", "spends"]) == 0
    assert len({line.split()[-2] for line in capsys.readouterr().out.splitlines()[-3:]}) == 3


def test_values_that_cannot_be_read_are_counted_for_the_owner(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "odd.csv").write_text("born;costs\n31.12.1980;1,5\n1981-01-01;2,5\n30.12.1980;3\n")
    columns = '[columns.born]\ntype = "date"\n[columns.costs]\ntype = "number"\nbounds = [0, 9]\n'
    (place / "odd.toml").write_text(f'dataset = "people"\nunit = "record"\n{columns}')
    assert run(["inspect", "odd.csv", "--schema", "odd.toml"]) == 2
    told = capsys.readouterr().err
    assert (
        "'born': 2 of 3 values cannot be read as a date" in told and "'costs': 2 of 3 values cannot be read as a number" in told
    )
    assert "1980" not in told and "1,5" not in told
    made = ["publish", "PrivateQuantiles", "odd.csv", "--schema", "odd.toml", "--set", 'column="costs"']
    assert run([*made, "--set", "epsilon=0.5", "--analyst", "ann"]) == 0
    said = "A value that cannot be read as its declared type counts as missing"
    assert said in capsys.readouterr().out and said in (place / "out/public/certificate.json").read_text()
    assert run(["verify", "out", "--ledger", "sfumato-ledger.db"]) == 0
    assert run(["inspect", "people.csv", "--schema", "people.toml"]) == 0
    assert "every value can be read as the type that the schema declares" in capsys.readouterr().out


def test_a_published_result_says_how_many_rows_of_one_unit_it_counts(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = ["publish", "PrivateHistogram", "people.csv", "--schema", "people.toml", "--set", "columns=sex", "--analyst", "ann"]
    assert run([*made, "--set", "epsilon=0.5"]) == 2
    refused = capsys.readouterr().err
    assert "--set max_rows=…" in refused and "rows = 1" not in refused
    assert run([*made, "--set", "epsilon=0.5", "--set", "max_rows=2"]) == 0
    said = "At most 2 rows of each user are counted; rows beyond that are left out"
    assert f"counted   {said}" in capsys.readouterr().out
    assert said in (place / "out/public/card.html").read_text() and said in (place / "out/public/certificate.json").read_text()
    told = as_json([*made, "--set", "epsilon=0.5", "--set", "max_rows=2", "--overwrite"], capsys)
    assert told["method"]["contribution"].startswith(said)
    assert "has a category that is not declared, are left out" in told["method"]["contribution"]
    assert run(["verify", "out", "--ledger", "sfumato-ledger.db"]) == 0


def test_a_type_that_was_learnt_is_refused_with_the_word_to_change(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    learnt = SCHEMA.replace("bounds = [18, 90]", 'bounds = [18, 90]\nsource = "data"')
    (place / "people.toml").write_text(learnt)
    capsys.readouterr()
    assert run(query("SELECT COUNT(*) AS n FROM people WHERE age > 30", "--epsilon", "0.5")) == 2
    assert 'source = "declared"' in capsys.readouterr().err


def test_the_ledger_is_drawn(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(query(COUNT, "--epsilon", "0.5")) == 0
    assert run(["ledger", "--figure", "budget.svg"]) == 0
    source = (place / "budget.svg").read_text()
    assert "<script" not in source and ElementTree.fromstring(source).tag.endswith("svg")
    assert "ann on people: ε 0.5 of 2 per user (25.00 %)" in source and "spent by 20" in source
    assert run(["ledger", "--figure", "no/folder/budget.svg"]) == 2


def test_caps_are_entered(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = as_json(["ledger", "cap", "people", "--epsilon", "1", "--delta", "1e-6"], capsys)
    assert told["cap"] == {"kind": "approx", "epsilon": "1/1", "delta": "1/1000000"}
    assert run(["ledger", "cap", "people"]) == 2 and run(["ledger", "grant", "people", "*", "--epsilon", "1"]) == 2
    assert as_json(["ledger", "verify"], capsys)["ok"] is True


def test_no_value_of_a_record_is_shown_by_a_refusal(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same refusal, letter for letter, on a neighbouring table."""
    texts: list[Any] = []
    for extra in ("", "901,18,f,99999\n"):
        with (place / "people.csv").open("a") as file:
            file.write(extra)
        for asked in (query("SELECT MAX(user) FROM people", "--epsilon", "0.1"), query(COUNT, "--epsilon", "9")):
            capsys.readouterr()
            assert run([*asked, "--json"]) in (2, 3)
            texts.append(json.loads(capsys.readouterr().out))
    assert texts[:2] == texts[2:]


def test_a_grant_says_its_unit_and_every_view_shows_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    granted = as_json(["ledger", "grant", "people", "ann", "--epsilon", "2", "--unit", "user"], capsys)
    assert (granted["unit"], granted["neighbours"]) == ("user", "add_remove")
    assert run(["ledger", "cap", "people", "--epsilon", "3", "--unit", "user"]) == 0
    assert "all budgets on people are about one user added or removed" in capsys.readouterr().out
    assert run(query(COUNT, "--epsilon", "0.5")) == 0
    assert [account["unit"] for account in as_json(["ledger"], capsys)["accounts"]] == ["user", "user"]
    [spend] = as_json(["ledger", "spends"], capsys)["spends"]
    assert (spend["unit"], spend["neighbours"]) == ("user", "add_remove")
    units = {entry["kind"]: entry["unit"] for entry in as_json(["ledger", "show"], capsys)["entries"]}
    assert units == {"grant": "user", "version": None, "reserve": "user", "commit": None}
    for command in ([], ["show"], ["spends"]):
        assert run(["ledger", *command]) == 0
        shown = capsys.readouterr().out.splitlines()
        assert "unit" in shown[0].split() and "user" in shown[-1 if command == ["spends"] else 2].split()
    assert as_json(["ledger", "verify"], capsys)["ok"] is True


def test_a_question_about_another_unit_is_refused_with_3_and_costs_nothing(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(query(COUNT, "--epsilon", "0.5")) == 0
    artefact = [
        "publish",
        "PrivateHistogram",
        "people.csv",
        "--analyst",
        "ann",
        "--set",
        'columns=["sex"]',
        "--set",
        "epsilon=1/2",
        "--set",
        "max_rows=1",
    ]
    (place / "records.toml").write_text(SCHEMA.replace('role = "unit"', 'role = "plain"'))
    asked = ["query", COUNT, "--data", "people.csv", "--schema", "records.toml", *BOUNDS, "--analyst", "ann", "--epsilon", "0.5"]
    for refused in (asked, [*artefact, "--schema", "records.toml"], [*asked, "--unit", "age"]):
        told = as_json(refused, capsys, 3)
        assert (
            "protects one user" in told["error"]
            and "unit='user'" in told["error"]
            and "sfumato ledger unit people" in told["error"]
        )
    assert len(as_json(["ledger", "spends"], capsys)["spends"]) == 1 and not (place / "out").exists()
    assert run([*asked, "--unit", "user"]) == 0, "the schema may leave the unit to the question"
    assert run([*artefact, "--schema", "people.toml"]) == 0
    regrant = ["ledger", "grant", "people", "ann", "--epsilon", "3", "--unit", "record"]
    assert "what was spent on dataset 'people' is about one user added or removed" in as_json(regrant, capsys, 3)["error"]
    assert run(regrant[:-2]) == 0
    assert run([*regrant[:-1], "user", "--neighbours", "both"]) == 2
    assert run([*regrant[:-2], "--neighbours", "replace"]) == 2


def test_the_refusal_of_a_unit_is_the_same_on_a_neighbouring_table(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(query(COUNT, "--epsilon", "0.5")) == 0
    (place / "people.toml").write_text(SCHEMA.replace('role = "unit"', 'role = "plain"'))
    texts = []
    for extra in ("", "901,18,f,99999\n"):
        with (place / "people.csv").open("a") as file:
            file.write(extra)
        texts.append(as_json(query("SELECT SUM(income) AS s FROM people", "--epsilon", "0.1", "--unit", "age"), capsys, 3))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("cell", ["x", "1e400", "9" * 24, "NaN", "", "5"])
def test_a_cell_that_cannot_be_read_is_missing_and_tells_nothing(
    place: Path, cell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (place / "people.csv").read_text().splitlines()
    (place / "people.csv").write_text("\n".join([*lines, f"901,30,f,{cell}", f"902,{cell},f,30"]) + "\n")
    asked = ["query", "SELECT COUNT(income) AS n, COUNT(age) AS a FROM people", *ON, "--epsilon", "1", *BOUNDS, "--seed", "1"]
    assert run(asked) == 0
    shown = capsys.readouterr()
    said = "A value that cannot be read as its declared type counts as missing"  # whether there is one or not
    assert "record" not in shown.err and "cannot be read" not in shown.out.replace(said, "") + shown.err
    publish = ["publish", "PrivateHistogram", "people.csv", "--schema", "people.toml", "--analyst", "ann", "--seed", "1"]
    settings = ["--set", 'columns=["age"]', "--set", "bins={age=2}", "--set", "epsilon=0.5", "--set", "max_rows=1"]
    assert run([*publish, *settings, "--output", "out"]) == 0, capsys.readouterr().err


def test_a_file_in_another_encoding_is_read_where_it_is_named(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (place / "people.csv").read_text() + "901,30,f\u00e9,100\n"
    (place / "people.csv").write_bytes(text.encode("cp1252"))
    assert run(["query", COUNT, *ON, "--epsilon", "1", *BOUNDS]) == 2
    assert run(["query", COUNT, *ON, "--epsilon", "1", *BOUNDS, "--encoding", "cp1252"]) == 0, capsys.readouterr().err


def test_a_broken_line_is_refused_without_saying_which(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (place / "people.csv").open("a") as file:
        file.write("903,30,f,1,2\n")
    assert run(["query", COUNT, *ON, "--epsilon", "1", *BOUNDS]) == 2
    told = capsys.readouterr().err
    assert "well-formed" in told and "2,00" not in told and "1 line" not in told


def test_a_question_without_declared_types_is_refused_without_guessing_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("sex,age\n" + "f,30\nm,40\n" * 20)
    Path("t.toml").write_text('dataset = "t"\nunit = "record"\n[columns.sex]\nrole = "quasi"\n[columns.age]\nrole = "quasi"\n')
    asked = ["--data", "t.csv", "--schema", "t.toml", "--analyst", "ann", "--epsilon", "1", "--explain"]
    assert run(["query", "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex", *asked]) == 2
    told = capsys.readouterr().err
    assert "the type of 'sex' is not declared" in told and 'for instance type = "integer"' not in told
    assert run(["query", "SELECT COUNT(*) AS n FROM t", *asked]) == 2
    assert "no column has a declared type, and rows are counted by reading one" in capsys.readouterr().err


def test_the_check_that_a_private_result_proposes_can_be_typed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = ["publish", "PrivateHistogram", "people.csv", "--schema", "people.toml", "--set", "columns=sex", "--analyst", "ann"]
    assert run([*made, "--set", "epsilon=0.5", "--set", "max_rows=2", "-o", "a histogram"]) == 0
    assert run(query(COUNT, "--epsilon", "0.5", "-o", "an answer")) == 0
    shown = [line.removesuffix(")") for line in capsys.readouterr().out.splitlines() if "sfumato verify" in line]
    for line, folder in zip(shown, ("a histogram", "an answer"), strict=True):
        check = shlex.split(line[line.index("sfumato verify") :])[1:]
        assert check == ["verify", folder, "--ledger", "sfumato-ledger.db"] and run(check) == 0


def test_an_answer_that_chooses_groups_says_that_margins_hold_before_that(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
    sentences = {
        BY_SEX: "",
        f"{COUNT} LIMIT 1": "",
        f"{COUNT} LIMIT 0": "before LIMIT chose",
        f"{many} HAVING COUNT(*) > 5": "before HAVING chose which are shown",
        f"{many} HAVING COUNT(*) > 5 ORDER BY n LIMIT 1": "before HAVING and LIMIT chose",
    }
    for text, sentence in sentences.items():
        capsys.readouterr()
        assert run(query(text, "--epsilon", "0.1", "--seed", "1")) == 0
        told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("chosen ")]
        assert sentence in told[0] if sentence else not told
    table = sf.read("people.csv", "people.toml")
    (place / "other.toml").write_text(SCHEMA.replace('domain = ["f", "m"]\n', ""))
    undeclared = sf.read("people.csv", "other.toml")
    session = sf.Session(undeclared, budget=sf.ApproxDP(10, "0.1"), max_rows=1, max_groups=1, seed=1)
    found = session.sql(f"{many} LIMIT 3", epsilon=1, delta="1e-6")
    threshold = found.explanation.threshold
    assert threshold and f"fewer than {threshold:,} users, after noise, are not shown" in repr(found)
    assert "before LIMIT and the threshold chose" in found.selection
    declared = sf.Session(table, budget=sf.ApproxDP(10, "0.1"), max_rows=1, max_groups=1, seed=1)
    assert declared.sql(f"{many} ORDER BY n", epsilon=1).selection == ""


def test_a_text_in_double_quotes_is_told_the_single_ones(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "people.toml").write_text(SCHEMA.replace('[columns.income]\ntype = "integer"\nbounds = [0, 100000]\n', ""))
    assert run(query(f'{COUNT} WHERE sex = "m"', "--epsilon", "0.5")) == 2
    told = capsys.readouterr().err
    assert "write it in single quotes: 'm'" in told and "income" not in told and "age" in told


def test_bounds_without_a_unit_are_said_to_have_no_effect(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(query(COUNT, "--epsilon", "0.1", "--explain")) == 0
    assert "no effect" not in capsys.readouterr().err
    (place / "records.toml").write_text('unit = "record"\n' + SCHEMA.replace('role = "unit"', 'role = "plain"'))
    asked = [
        "query",
        COUNT,
        "--data",
        "people.csv",
        "--schema",
        "records.toml",
        "--analyst",
        "ann",
        "--epsilon",
        "0.1",
        "--explain",
    ]
    assert run([*asked, *BOUNDS]) == 0
    assert "--max-rows and --max-groups have no effect" in capsys.readouterr().err
    assert run(asked) == 0
    assert capsys.readouterr().err == ""


def test_statements_separated_by_semicolons_are_one_batch(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    described = SCHEMA.replace('domain = ["f", "m"]', 'domain = ["f", "m"]\none_per_unit = true')
    (place / "people.toml").write_text(described)
    batch = "SELECT COUNT(*) AS women FROM people WHERE sex = 'f'; SELECT AVG(income) AS income FROM people WHERE sex = 'm';"
    asked = ["query", batch, *ON, *BOUNDS]
    assert run([*asked, "--describe"]) == 0
    assert "No user is in two of the questions" in capsys.readouterr().out
    assert run([*asked, "--epsilon", "0.5", "--explain"]) == 0
    shown = capsys.readouterr().out
    assert "together it costs ε = 0.5, reserved as one charge" in shown and "one value of 'sex'" in shown
    facts = as_json([*asked, "--epsilon", "0.5"], capsys)
    assert [list(each["rows"][0]) for each in facts["answers"]] == [["women"], ["income"]]
    assert facts["loss"]["epsilon"] == "1/2" and facts["left"]["epsilon"] == "3/2" and "largest cost" in facts["composition"]
    assert run([*asked, "--epsilon", "0.5"]) == 0
    again = capsys.readouterr().out
    assert "measured before" in again and "cost      nothing" in again
    assert run([*asked, "--epsilon", "0.5", "--output", "out"]) == 2
    assert "Ask one of its questions" in capsys.readouterr().err
    assert run(["query", batch.replace("AVG(income)", "AVG(height)"), *ON, *BOUNDS, "--epsilon", "0.5"]) != 0
    assert "question 2 of the batch" in capsys.readouterr().err
