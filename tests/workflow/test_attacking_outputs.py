"""Attacks on published numbers, described by a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.cli.main import run
from sfumato.core.errors import InputError, SfumatoError
from sfumato.workflow.attacking.outputs import attack_outputs

DRAW = np.random.default_rng(3)
BITS = DRAW.integers(0, 2, 32)
SUBSETS = DRAW.integers(0, 2, (160, 32))
PEOPLE = DRAW.random((400, 300)) < DRAW.random(300)
MEMBERS, OTHERS, REFERENCE = PEOPLE[:50].astype(float), PEOPLE[50:100].astype(float), PEOPLE[100:].astype(float)

#: Three cells of the table of salaries, which the attacks on aggregate tables break.
SALARIES = {"cells": ["M1, P1", "M2, P3", "M3, P5"], "counts": [2, 1, 5], "totals": [360, 22, 363]}
GAMES: dict[str, tuple[dict[str, Any], float]] = {
    "Reconstruction": (
        {"published": (SUBSETS @ BITS).tolist(), "knowledge": {"members": SUBSETS.tolist(), "truth": BITS.tolist()}},
        1.0,
    ),
    "AggregateDifferencing": (
        {
            "published": [{"kind": "mean", "value": 12000}, {"kind": "mean", "value": 3300}],
            "knowledge": {"groups": [["ann", "bob", "rich"], ["ann", "bob"]], "truth": {"rich": 29400}},
        },
        1 / 3,
    ),
    "Averaging": (
        {"published": [(10 + DRAW.laplace(0, 2, 4000)).tolist()], "knowledge": {"scale": 2.0, "truth": [10.0]}},
        1.0,
    ),
    "MembershipInAggregates": (
        {
            "published": MEMBERS.mean(axis=0).tolist(),
            "knowledge": {"reference": REFERENCE.tolist(), "members": MEMBERS.tolist(), "others": OTHERS.tolist()},
        },
        0.85,
    ),
    "ModelDifferencing": (
        {
            "published": {"means": [3.0, 5.0], "count": 4},
            "knowledge": {"model": {"means": [2.0, 5.0], "count": 3}, "known": {"1": 5.0}, "truth": [6.0, 5.0]},
        },
        1.0,
    ),
    "ExternalDisclosure": ({"published": SALARIES, "knowledge": {}}, 1 / 3),
    "ContributorDisclosure": ({"published": SALARIES, "knowledge": {}}, 1 / 2),
    "LargeContributor": ({"published": SALARIES, "knowledge": {"largest": [200, 22, 350]}}, 1 / 2),
    "TableDifferencing": ({"published": SALARIES, "knowledge": {"counts": [2, 1, 6], "totals": [360, 22, 400]}}, 1 / 3),
    "OutlierInference": (
        {
            "published": [60.0],
            "knowledge": {"typical": [[10.0], [12.0], [11.0], [9.0]], "targets": [[1000.0]], "count": 20, "present": [True]},
        },
        1.0,
    ),
    "Scoreboard": (
        {
            "published": {
                "record": [0, 0, 1, 2],
                "item": [0, 1, 0, 2],
                "rating": [4, 2, 1, 5],
                "date": [0, 10, 200, 3],
                "records": 3,
            },
            "knowledge": {"target": [0, 0], "item": [0, 1], "rating": [4, 2], "date": [0, 10], "truth": [0]},
        },
        1.0,
    ),
}
PARAMETERS = {"Averaging": {"tolerance": 0.5}, "Scoreboard": {"eccentricity": 0.5}}


def written(folder: Path, name: str, **changes: Any) -> Path:
    game = {"attack": {"name": name, **PARAMETERS.get(name, {})}, **GAMES[name][0], **changes}
    path = folder / "game.json"
    path.write_text(json.dumps(game))
    return path


@pytest.mark.parametrize("name", sorted(GAMES))
def test_every_attack_on_numbers_can_be_described(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, name)
    told = attack_outputs(path)
    assert told["attack"] == name and told["success"] >= GAMES[name][1] - 1e-9 and told["success"] >= told["baseline"]
    assert run(["attack", str(path)]) == 0
    assert f"{name}: success" in capsys.readouterr().out
    assert run(["attack", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["attacks"][0]["success"] == pytest.approx(told["success"])


def test_the_salary_is_found_and_not_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "AggregateDifferencing")
    assert attack_outputs(path)["baseline"] == 0.0  # nobody guesses one salary blindly
    assert run(["attack", str(path)]) == 0
    assert "29400" not in capsys.readouterr().out.replace(",", "")


@pytest.mark.parametrize(
    "changes",
    [
        {"attack": {"name": "Homogeneity"}},
        {"attack": {"name": "MembershipInModels"}},
        {"attack": 7},
        {"published": "canary-3391"},
        {"published": None},
        {"knowledge": []},
        {"knowledge": {"members": [["canary-3391"]], "truth": [1]}},
        {"knowledge": {"nobody": 1}},
        {"more": 1},
    ],
)
def test_what_makes_no_sense_is_one_clear_error_without_a_value(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(SfumatoError) as refusal:
        attack_outputs(written(tmp_path, "Reconstruction", **changes))
    assert "canary" not in str(refusal.value)


@pytest.mark.parametrize("content", ["", "[", "[]", "[" * 100_000, "null"])
def test_a_file_that_is_no_game_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "game.json"
    path.write_text(content)
    with pytest.raises(InputError):
        attack_outputs(path)
    assert run(["attack", str(tmp_path / "none.json")]) == 2
    assert run(["attack", str(path), "--with", "people.csv"]) == 2
