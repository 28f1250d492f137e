"""The headline of what commands say: kept, warning, no promise, not kept; what `--strict` makes of it; the JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sfumato.cli.main import run
from sfumato.cli.output import conclude
from sfumato.core.certificate import Claim
from sfumato.report.headline import DRAFT, Headline, breaks_together
from sfumato.workflow.verdicts import attack_verdict, by_gain
from tests.faults.forging import change, rewrite
from tests.faults.test_forged_folders import card_again
from tests.workflow.people import files

SEARCH = ["--method", "Lattice, suppression=0.05"]
TABLE = ["protect", "people.csv", "--schema", "people.toml"]
PROTECT = [*TABLE, *SEARCH, "--k", "5"]
WHOLE = [*PROTECT, "--l", "disease=2"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def headline(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    shown = capsys.readouterr()
    return next(line for line in shown.out.splitlines() if line.startswith("verdict   ")), shown.out


def told(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int) -> Any:
    capsys.readouterr()
    assert run([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_every_promise_is_kept(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*WHOLE, "-o", "out", "--strict"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("verdict   kept: 2 promises") and "warning" not in shown.out + shown.err
    assert run(["verify", "out", "--strict"]) == 0
    assert headline(capsys)[0].startswith("verdict   kept: ")
    answer = told(["verify", "out"], capsys, 0)
    assert (answer["verdict"], answer["headline"], answer["warnings"]) == ("keeps", "kept", [])


def test_a_sensitive_column_without_a_promise_is_a_warning_before_and_after(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*PROTECT, "-o", "out"]) == 0
    shown = capsys.readouterr()
    assert shown.err.startswith("warning: nothing is promised about 'disease', which is sensitive")
    assert shown.out.startswith("verdict   warning: ") and "warning   nothing is promised about 'disease'" in shown.out
    answer = told([*PROTECT, "-o", "again"], capsys, 0)
    assert answer["verdict"] == "warning" and "'disease'" in answer["warnings"][0] and answer["unpromised"] == ["disease"]
    assert run(["verify", "out"]) == 0 and run(["verify", "out", "--strict"]) == 1
    assert told(["inspect", "people.csv"], capsys, 0)["warnings"][0].startswith("'disease' looks sensitive")


def test_a_mask_without_a_guarantee_promises_nothing(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mask = [
        "protect",
        "people.csv",
        "--schema",
        "people.toml",
        "--method",
        'AdditiveNoise(ratio=0.1, columns=["age"])',
        "-o",
        "out",
    ]
    assert run(mask) == 0
    line, shown = headline(capsys)
    assert shown.startswith(line) and line.startswith("verdict   no promise: nothing is guaranteed")
    assert "safe" not in shown
    assert run(["verify", "out"]) == 1
    assert headline(capsys)[0].startswith("verdict   no promise: ")
    nothing_left(place, [*mask, "-o", "strict"], capsys, "nothing is guaranteed about this release")


def nothing_left(place: Path, command: list[str], capsys: pytest.CaptureFixture[str], reason: str) -> None:
    """Somebody strict gets the reason, and neither a folder nor an entry."""
    books = {book: book.read_bytes() for book in place.glob("*.db")}
    capsys.readouterr()
    assert run([*command, "--strict"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "" and "nothing was written or entered" in shown.err and reason in shown.err
    assert not (place / "strict").exists()
    with_entries = {book: book.read_bytes() for book in place.glob("*.db")}
    assert with_entries == books


def test_somebody_strict_gets_nothing_but_what_is_kept(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nothing_left(place, [*PROTECT, "-o", "strict"], capsys, "nothing is promised about 'disease'")
    assert run([*WHOLE, "-o", "first"]) == 0
    other = ["protect", "people.csv", "--schema", "people.toml", "--method", "Mondrian", "--k", "5", "--l", "disease=2"]
    nothing_left(place, [*other, "-o", "strict"], capsys, "together with earlier releases the promise is broken")
    answer = told([*other, "-o", "strict"], capsys, 0)
    assert answer["verdict"] == "warning"


def test_many_sensitive_columns_are_one_warning_that_names_them(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"answer {number}" for number in range(15)]
    Path("many.csv").write_text("\n".join([",".join(["sex", *names]), *[",".join(["f", *"0" * 7, *"1" * 8])] * 20]) + "\n")
    columns = "".join(f'[columns.\'{name}\']\nrole = "sensitive"\ntype = "integer"\n' for name in names)
    Path("many.toml").write_text(f'dataset = "many"\nunit = "record"\n[columns.sex]\nrole = "quasi"\ntype = "string"\n{columns}')
    command = ["protect", "many.csv", "--schema", "many.toml", "--k", "5", "--l", "answer 3=1"]
    assert run([*command, "-o", "out"]) == 0
    shown = capsys.readouterr()
    assert shown.err.count("nothing is promised about") == shown.out.count("nothing is promised about") == 1
    assert "15 sensitive columns" in shown.out and all(f"'{name}'" in shown.out for name in names)
    answer = told(["verify", "out"], capsys, 0)
    assert (
        sorted(answer["unpromised"]) == sorted(names)
        and sum("nothing is promised about" in each for each in answer["warnings"]) == 1
    )
    assert Path("out/public/card.html").read_text().count("Nothing is promised about") == 1


def test_earlier_releases_that_break_the_promise_turn_the_headline(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*WHOLE, "-o", "first"]) == 0
    other = [
        "protect",
        "people.csv",
        "--schema",
        "people.toml",
        "--k",
        "5",
        "--l",
        "disease=2",
        "--method",
        "Mondrian",
        "-o",
        "second",
    ]
    capsys.readouterr()
    assert run(other) == 0
    line, shown = headline(capsys)
    assert line.startswith("verdict   warning: ")
    assert "warning   together with earlier releases the promise is broken: 1 earlier release" in shown
    assert "earlier   " not in shown  # said once
    assert run(["verify", "second"]) == 0
    assert headline(capsys)[0].startswith("verdict   warning: ")


@pytest.mark.parametrize(
    ("details", "broken"),
    [
        ({"combinations": 4, "worst_remaining_group": 4}, True),
        ({"combinations": 4, "worst_remaining_group": 5, "smallest_difference": 3}, True),
        ({"combinations": 4, "worst_remaining_group": 5, "singled_out": 2, "singled_out_by_one_release_alone": 1}, True),
        ({"combinations": 4, "worst_remaining_group": 5, "smallest_difference": 0, "singled_out": 0}, False),
        ({"combinations": 4, "worst_remaining_group": 5, "singled_out": 40, "singled_out_by_one_release_alone": 37}, True),
        (
            {
                "combinations": 4,
                "worst_remaining_group": 5,
                "singled_out": 40,
                "singled_out_by_one_release_alone": 37,
                "people_are": "estimated",
            },
            False,
        ),
        ({"combinations": 0, "worst_remaining_group": 1}, False),
        ({}, False),
    ],
)
def test_what_breaks_a_promise_together(details: dict[str, Any], broken: bool) -> None:
    claims = [Claim("KAnonymity", {"k": 5}, "…", 5, True, "output", "…")]
    assert breaks_together({"details": details}, claims) is broken


def test_a_table_that_does_not_keep_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "people.csv", "--schema", "people.toml", "--k", "5"]) == 1
    assert headline(capsys)[0] == "verdict   not kept: KAnonymity does not hold; 1 warning"
    assert run(["check", "people.csv", "--schema", "people.toml"]) == 0
    assert headline(capsys)[0].startswith("verdict   no promise: ")
    assert told(["check", "people.csv", "--schema", "people.toml", "--k", "1"], capsys, 0)["verdict"] == "warning"
    assert run(["check", "people.csv", "--schema", "people.toml", "--k", "1", "--l", "disease=1", "--strict"]) == 1


def test_attacks_are_sorted_by_gain_and_end_with_one_verdict(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*WHOLE, "-o", "out"]) == 0
    capsys.readouterr()
    assert run(["attack", "out", "--with", "people.csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.startswith("verdict   ") for line in lines].count(True) == 1 and lines[-1].startswith("verdict   warning: ")
    answer = told(["attack", "out", "--with", "people.csv", "--strict"], capsys, 1)
    gains = [each["gain"] for each in answer["attacks"]]
    assert gains == sorted(gains, reverse=True) and len(gains) > 2
    assert answer["attacks"][0]["attack"] in answer["reason"]
    assert run(["attack", "out", "--attack", "Homogeneity", "--strict"]) == 0
    assert headline(capsys)[0].startswith("verdict   kept: no attack got further than blind guessing")


def result(name: str, success: float, guessing: float, targets: int = 1000, **details: Any) -> dict[str, Any]:
    return {"attack": name, "success": success, "baseline": guessing, "interval": [success - 0.02, success + 0.02],
            "targets": targets, "details": details}  # fmt: skip


def test_an_attack_that_picks_one_record_in_k_is_what_the_promise_allows() -> None:
    claims = [{"parameters": {"k": 5}, "holds": True}]
    allowed = [result("Linkage", 0.2, 0.001)]
    assert attack_verdict(allowed, claims).word == "kept"
    assert attack_verdict([result("Linkage", 0.3, 0.001)], claims).word == "warning"
    assert attack_verdict(allowed, [{"parameters": {"t": 0.2}, "holds": True}]).word == "warning"
    assert attack_verdict([result("Homogeneity", 0.2, 0.001)], claims).word == "warning"
    assert attack_verdict(allowed, []).word == "no promise" and attack_verdict([], claims).word == "warning"


def test_chance_is_no_success_and_few_people_no_excuse() -> None:
    claims = [{"parameters": {}, "holds": True}]
    assert attack_verdict([result("Skewness", 0.51, 0.5)], claims).word == "kept"
    assert attack_verdict([result("Skewness", 0.51, 0.5, targets=4)], claims).word == "warning"
    assert attack_verdict([result("Skewness", 0.51, 0.5, people_are="estimated")], claims).word == "warning"
    ordered = by_gain([result("A", 0.9, 0.89), result("B", 0.5, 0.1), result("C", 1, 1)])
    assert [each["attack"] for each in ordered] == ["B", "A", "C"]


def test_colour_is_never_alone(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = Headline.of("kept", "all of it", [])
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")

    def shown(terminal: bool) -> str:
        with monkeypatch.context() as patch:
            patch.setattr(sys.stdout, "isatty", lambda: terminal)
            conclude({}, ["rest"], verdict, False, strict=True)
        return capsys.readouterr().out

    assert shown(False) == "verdict   kept: all of it\nrest\n"
    assert shown(True) == "verdict   \x1b[1;32mkept\x1b[0m: all of it\nrest\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in shown(True)


def test_a_strange_verdict_writes_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    conclude({}, [], Headline.of("kept", "a\x1b[31m", ["b\x1b[31m"]), False, strict=False)
    assert "\x1b" not in capsys.readouterr().out


def test_a_private_artefact_has_a_verdict(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("numbers.csv").write_text("age\n" + "".join(f"{age}\n" for age in range(200)))
    Path("numbers.toml").write_text(
        'dataset = "n"\nunit = "record"\n[columns.age]\nrole = "quasi"\ntype = "integer"\nbounds = [0, 199]\n'
        'source = "declared"\n'
    )
    publish = [
        "publish",
        "PrivateHistogram",
        "numbers.csv",
        "--schema",
        "numbers.toml",
        "--set",
        'columns=["age"]',
        "--set",
        "epsilon=1",
    ]
    assert run(["ledger", "grant", "n", "analyst", "--epsilon", "2"]) == 0
    capsys.readouterr()
    assert run([*publish, "-o", "hist", "--strict"]) == 0
    assert headline(capsys)[0].startswith("verdict   kept: 1 promise kept by how the result was made")
    nothing_left(place, [*publish, "-o", "strict", "--seed", "1"], capsys, "made with a seed")
    assert run([*publish, "-o", "seeded", "--seed", "1"]) == 0
    assert headline(capsys)[0].startswith("verdict   warning: ")
    assert run(["verify", "hist", "--ledger", "sfumato-ledger.db", "--strict"]) == 0
    assert run(["verify", "hist", "--strict"]) == 1  # it rests on its maker


def test_no_verdict_of_a_forged_folder_repeats_what_it_says(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*PROTECT, "-o", "out", "--no-ledger"]) == 0
    certificate = place / "out" / "public" / "certificate.json"
    certificate.write_text(certificate.read_text().replace('"sensitive"', '"canary-17"'))
    capsys.readouterr()
    assert run(["verify", "out"]) == 1
    assert headline(capsys)[0].startswith("verdict   not kept: ")


@pytest.mark.slow
def test_a_program_that_reads_sees_no_colours(place: Path) -> None:
    command = [sys.executable, "-c", "from sfumato.cli.main import main; main()", *WHOLE, "-o", "out"]
    answer = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "TERM": "xterm"})
    assert answer.returncode == 0 and b"\x1b" not in answer.stdout
    assert answer.stdout.startswith(b"verdict   kept")


def test_a_draft_is_a_warning_whatever_it_keeps(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = told([*WHOLE, "-o", "out", "--draft", "--strict"], capsys, 1)
    assert answer["verdict"] == "warning" and answer["warnings"] == [DRAFT]
    assert run(["verify", "out"]) == 1
    assert headline(capsys)[0].startswith("verdict   warning: a draft, not a release")


def test_a_maker_who_leaves_notices_out_does_not_get_a_better_verdict(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`verify` counts the records that are alone itself, and what it finds weighs as much as what the maker says."""
    lines = ["sex,code,disease", *(f"{'fm'[place % 2]},c{place},{['flu', 'cold'][place // 2 % 2]}" for place in range(80))]
    Path("alone.csv").write_text("\n".join(lines) + "\n")
    roles = {"sex": "quasi", "code": "plain", "disease": "sensitive"}
    columns = "".join(f'[columns.{name}]\nrole = "{role}"\ntype = "string"\n' for name, role in roles.items())
    Path("alone.toml").write_text(f'dataset = "alone"\nunit = "record"\n{columns}')
    arguments = ["protect", "alone.csv", "--schema", "alone.toml", "--k", "5", "--l", "disease=2", "--no-ledger", "-o", "alone"]
    assert run(arguments) == 0
    assert run(["verify", "alone", "--strict"]) == 1
    public = Path("alone/public")
    change(public, lambda certificate: certificate.update(notices=[]))
    rewrite(public, "card.html", card_again(public))
    capsys.readouterr()
    assert run(["verify", "alone"]) == 0
    assert headline(capsys)[0].startswith("verdict   warning: ")
    assert run(["verify", "alone", "--strict"]) == 1


def test_promises_that_every_table_keeps_are_none(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for empty in (["--l", "disease=1"], ["--t", "disease=1"]):
        nothing_left(place, [*PROTECT, *empty, "-o", "strict"], capsys, "promises nothing: every table keeps it")
        assert run([*PROTECT, *empty, "--no-ledger", "-o", "empty", "--overwrite"]) == 0
        shown = capsys.readouterr()
        assert "promises nothing: every table keeps it" in shown.out and "nothing is promised about 'disease'" in shown.out
