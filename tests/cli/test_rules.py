"""The commands about itemsets and rules, from the baskets of the heuristic to a verified release."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sfumato.cli.main import run


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.dat").write_text("a b c d\na b c\na c d\n" * 4)
    (tmp_path / "secret.txt").write_text("a, b, c\n")
    return tmp_path


def test_itemsets_and_rules_are_mined(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "mine", "b.dat", "--support", "8"]) == 0
    out = capsys.readouterr().out
    assert "found     11 frequent itemsets" in out and "a, c" in out and "100 %" in out
    assert run(["rules", "mine", "b.dat", "--support", "0.5", "--confidence", "0.9", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["minimum"] == 6
    assert {"if": ["b"], "then": ["a"], "baskets": 8, "confidence": 1.0, "lift": 1.0} in facts["rules"]


def test_baskets_are_hidden_published_verified_and_attacked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hide = [
        "rules",
        "hide",
        "b.dat",
        "--list",
        "secret.txt",
        "--support",
        "0.5",
        "--method",
        "SupportReduction(victim='least frequent')",
    ]
    assert run([*hide, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["side_effects"]["hiding_failures"] == 0 and facts["side_effects"]["ghost_itemsets"] == 0
    assert facts["guessed"]["targets"] == 1 and facts["method"]["victim"] == "least frequent"
    assert run(["verify", "out", "--itemsets", "out/owner/itemsets.json"]) == 0
    assert "verdict   kept" in capsys.readouterr().out
    assert run(["attack", "out", "--itemsets", "out/owner/itemsets.json"]) == 0
    assert "GuessHidden" in capsys.readouterr().out
    assert run([*hide, "--output", "again"]) == 0
    out = capsys.readouterr().out
    assert "hidden    1 of 1 itemsets and rules on the list" in out and "guessed" in out and "a, b, c" not in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mine", "b.dat", "--support", "often"], "--support is a share of the baskets below 1"),
        (["mine", "b.dat", "--support", "1.5"], "support must be a number of baskets of at least 1, or a share"),
        (["mine", "gone.dat", "--support", "2"], "'gone.dat' cannot be read"),
        (["mine", "b.dat", "--support", "2", "--kind", "closed", "--confidence", "0.5"], "rules take the frequent itemsets"),
        (["hide", "b.dat", "--list", "secret.txt", "--support", "2", "--method", "Magic"], "unknown hiding 'Magic'"),
        (["hide", "b.dat", "--list", "gone.txt", "--support", "2"], "'gone.txt' cannot be read"),
        (
            ["hide", "b.dat", "--list", "secret.txt", "--support", "2", "--method", "ConfidenceReduction"],
            "confidence of rules alone",
        ),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_left(
    place: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert run(["rules", *words]) == 2
    assert said in capsys.readouterr().err
    assert not (place / "out").exists()
