"""Class sizes where suppressed cells match anything, beside trying every pair of records."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.cli.main import run
from sfumato.core.errors import InputError
from sfumato.data.microdata import ReleasedTable
from sfumato.data.sample import write_sample
from sfumato.measures import risk
from sfumato.measures.risk.uniques.wildcard_risk import Matches

NAMES = ("a", "b", "c", "d")
CELLS = st.one_of(st.none(), st.sampled_from(["*", "*", "0", "1", "2"]))


def as_table(rows: list[tuple[str | None, ...]]) -> pa.Table:
    return pa.table({name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(NAMES)})


@given(st.lists(st.tuples(*[CELLS] * 4), min_size=1, max_size=25), st.booleans())
def test_matches_equal_trying_every_pair(rows: list[tuple[str | None, ...]], missing: bool) -> None:
    def hides(cell: str | None) -> bool:
        return cell == "*" or (missing and cell is None)

    matches = Matches.of(as_table(rows), NAMES, missing)
    for i, row in enumerate(rows):
        pairs = [[(mine, theirs) for mine, theirs in zip(row, other, strict=True)] for other in rows]
        loose = [all(x == y or hides(x) or hides(y) for x, y in pair) for pair in pairs]
        sure = [fits and all(hides(y) for x, y in pair if hides(x)) for fits, pair in zip(loose, pairs, strict=True)]
        assert matches.any[i] == sum(loose) >= matches.sure[i] == sum(sure)
        assert matches.equal[i] == rows.count(row) <= matches.sure[i]
    assert matches.hiding == sum(any(hides(cell) for cell in row) for row in rows)


@given(st.lists(st.tuples(*[st.sampled_from("012")] * 3), min_size=2, max_size=20), st.data())
def test_whoever_knows_hidden_cells_has_at_least_the_sure_candidates(raw: list[tuple[str, ...]], data: st.DataObject) -> None:
    """Cells of raw records are hidden at random; an intruder with all raw values of somebody counts the rows that fit."""
    shown = [tuple("*" if data.draw(st.booleans()) else cell for cell in row) for row in raw]
    table = pa.table({name: [row[i] for row in shown] for i, name in enumerate(NAMES[:3])})
    matches = Matches.of(table, NAMES[:3])
    for i, person in enumerate(raw):
        fitting = sum(all(cell in ("*", value) for cell, value in zip(row, person, strict=True)) for row in shown)
        assert matches.sure[i] <= fitting <= matches.any[i]


def test_the_score_names_both_intruders_and_plain_classes() -> None:
    rows = pa.table({"age": ["30", "*", "40", "40"], "sex": ["f", "f", "f", "m"]})
    released = ReleasedTable(rows, sf.Schema.of(quasi=["age", "sex"]), records=4)
    score = risk.WildcardRisk(threshold=0.4).score(None, released)
    # 30 f: itself and * f; * f: three of them; 40 f: itself and * f; 40 m: itself alone
    assert score.value == 1.0 and score.parts["mean"] == pytest.approx((1 / 2 + 1 / 3 + 1 / 2 + 1) / 4)
    assert score.parts["share above 0.4"] == 0.75 and score.parts["records with a suppressed cell"] == 1
    assert score.parts["mean, if hidden cells are known"] == pytest.approx((1 / 2 + 1 + 1 / 2 + 1) / 4)
    assert score.parts["largest, by plain classes"] == 1.0
    assert (score.floor, score.interval) == (0.25, (1.0, 1.0))
    assert risk.ProsecutorRisk().score(None, released).parts["mean"] == 1.0


def test_without_suppressed_cells_it_is_the_prosecutors_risk() -> None:
    people = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())
    released = ReleasedTable(people.table(), people.schema, records=300)
    ours, theirs = risk.WildcardRisk().score(None, released), risk.ProsecutorRisk().score(None, released)
    assert (ours.value, ours.parts["mean"], ours.floor) == pytest.approx((theirs.value, theirs.parts["mean"], theirs.floor))


def test_people_with_several_records_are_not_counted_as_many() -> None:
    rows = pa.table({"who": list("aaabc"), "town": ["x", "x", "*", "x", "y"]})
    schema = sf.Schema(columns={"who": sf.Column(role="unit"), "town": sf.Column(role="quasi")})
    score = risk.WildcardRisk().score(None, ReleasedTable(rows, schema, records=5))
    # four records match x, and the three of a could be among them: two people at the least
    assert score.parts["mean"] == pytest.approx((1 / 2 + 1 / 2 + 1 / 2 + 1 / 2 + 1) / 5) and score.floor == pytest.approx(1 / 3)


def test_no_records_are_refused() -> None:
    with pytest.raises(InputError, match="no released records"):
        risk.WildcardRisk().score(None, ReleasedTable(as_table([]), sf.Schema.of(quasi=list(NAMES)), records=0))


def test_ten_thousand_records_with_every_pattern_of_suppression_take_a_moment() -> None:
    draw = np.random.default_rng(1)
    cells = {f"c{i}": np.where(draw.random(10_000) < 0.3, "*", draw.integers(0, 5, 10_000).astype(str)) for i in range(6)}
    matches = Matches.of(pa.table(cells), tuple(cells))
    values = np.stack([cells[name] for name in cells])
    for i in (0, 17, 4_321):
        fits = ((values == values[:, [i]]) | (values == "*") | (values[:, [i]] == "*")).all(axis=0)
        assert matches.any[i] == fits.sum()


@pytest.mark.slow
def test_measures_of_rareness_are_reached_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFUMATO_KEY", str(tmp_path / "owner.key"))
    write_sample(".", rows=60)
    asked = ["wildcard_risk", "sampling_risk(sampling_fraction=0.1)", "special_uniques(sampling_fraction=0.1, columns=['sex'])",
             "log_linear_risk(sampling_fraction=0.1, columns=['sex', 'age'])"]  # fmt: skip
    options = [word for each in asked for word in ("--risk", each)]
    command = ["protect", "people.csv", "--schema", "people.toml", "--k", "3", "--method", "Lattice", "--no-ledger"]
    assert run([*command, *options, "--output", "out"]) == 0
    shown = capsys.readouterr().out
    assert all(each.partition("(")[0] in shown for each in asked)
