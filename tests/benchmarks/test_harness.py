"""The bench harness judges rightly and writes what it promises; how long things take is not tested here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import run
from benchmarks.arx import K_ANONYMITY, WITH_SENSITIVE
from benchmarks.harness import Case, Result, as_json, judge, line, measure, row, summary, write

KEYS = ["name", "ours", "peer", "limit", "ratio", "bar", "met", "unit", "repeats", "note"]
COMMITTED = Path(run.__file__).with_name("results.json")


def nothing(_: Any) -> None:
    return None


def test_ratio_is_ours_to_the_limit_also_where_a_peer_is_shown() -> None:
    found = judge(Case("a", nothing, limit=50.0, peer=200.0), 25.0, 200.0, 9)
    assert (found.ratio, found.bar, found.met) == (0.5, 1.0, True)


@pytest.mark.parametrize(("ours", "met"), [(100.0, True), (100.1, False)])
def test_a_bar_is_a_share_of_the_peer(ours: float, met: bool) -> None:
    found = judge(Case("a", nothing, peer=400.0, bar=0.25), ours, 400.0, 9)
    assert found.ratio == pytest.approx(ours / 400)
    assert found.met is met


def test_a_wrong_result_is_not_met_however_fast() -> None:
    found = measure(Case("a", lambda _: 7, limit=1e9, repeats=2, check=lambda result: f"{result} is not 8"))
    assert not found.met
    assert found.ratio < 1
    assert "WRONG RESULT: 7 is not 8" in found.note
    assert summary([found]).endswith("missed: a")


def test_a_case_needs_something_to_be_held_against() -> None:
    with pytest.raises(ValueError, match="limit or a peer"):
        Case("a", nothing)


def test_one_run_warms_up_and_the_sides_take_turns() -> None:
    order: list[str] = []
    case = Case("a", lambda _: order.append("ours"), peer=lambda: order.append("peer"), bar=1e9, repeats=2)
    assert measure(case).repeats == 2
    assert order == ["peer", "ours", "ours", "peer", "peer", "ours"]


def test_every_repetition_gets_what_prepare_made_for_it() -> None:
    made: list[object] = []
    seen: list[object] = []

    def prepare() -> object:
        made.append(object())
        return made[-1]

    measure(Case("a", seen.append, limit=1.0, repeats=3, prepare=prepare))
    assert seen == made
    assert len(made) == 4


def test_a_reported_number_is_the_median_after_the_warm_run() -> None:
    numbers = iter([1000.0, 1.0, 5.0, 2.0])
    case = Case("a", lambda _: next(numbers), unit="MB", limit=4.0, reports=True, repeats=3)
    assert measure(case).ours == 2.0


def test_a_peer_that_reports_is_not_asked_to_warm_up() -> None:
    numbers = iter([30.0, 10.0, 20.0])
    case = Case("a", lambda _: 5.0, reports=True, peer=lambda: next(numbers), peer_reports=True, repeats=3)
    found = measure(case)
    assert (found.peer, found.ratio) == (20.0, 0.25)


def test_stretch_is_told_and_not_judged() -> None:
    found = judge(Case("a", nothing, limit=50.0, stretch=10.0), 25.0, None, 9)
    assert found.met
    assert "stretch 10 ms not reached" in found.note


def test_results_are_a_list_with_the_promised_keys(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    found = judge(Case("größer", nothing, peer=3.0, bar=6.0, unit="s"), 1.23456789, 3.0, 5)
    write([found], file)
    [entry] = json.loads(file.read_text("utf-8"))
    assert list(entry) == KEYS
    assert (entry["name"], entry["ours"], entry["limit"], entry["met"]) == ("größer", 1.235, None, True)
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def test_a_line_of_the_table_says_what_was_missed() -> None:
    found = judge(Case("slow", nothing, limit=10.0), 1234.5, None, 9)
    assert line(row(found)).split() == ["MISSED", "slow", "1,234", "ms", "10", "123", "≤", "1"]


def test_without_real_data_the_rest_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv("SFUMATO_DATA", raising=False)
    names = [case.name for case in run._cases(tmp_path, run.re.compile(""), quick=False)]
    assert names[:2] == ["import sfumato", "sfumato --help"]
    assert {name.split(",")[0] for name in names} >= {"session", "a thousand rows"}
    assert not [name for name in names if "Adult" in name or "protect" in name]
    assert capsys.readouterr().err.count("SFUMATO_DATA") == 2  # people, and baskets


def test_committed_results_are_consistent() -> None:
    entries = json.loads(COMMITTED.read_text("utf-8"))
    assert len({entry["name"] for entry in entries}) == len(entries)
    for entry in entries:
        found = Result(**entry)
        against = found.limit if found.limit is not None else found.peer
        assert against is not None
        assert found.ratio == pytest.approx(found.ours / against, rel=2e-3)
        assert found.met == (found.ratio <= found.bar and "WRONG" not in found.note)
    assert as_json([Result(**entry) for entry in entries]) == COMMITTED.read_text("utf-8")


def test_anchors_cover_every_model_at_three_limits() -> None:
    rows = [K_ANONYMITY, *WITH_SENSITIVE.values()]
    assert [[best.suppression for best in optima] for optima in rows] == [[0.0, 0.05, 1.0]] * 6
    for optima in rows:
        losses = [best.loss for best in optima]
        assert losses == sorted(losses, reverse=True)  # more suppression allowed never costs loss
