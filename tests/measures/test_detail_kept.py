"""Detail kept: counted on known cells, so that missing values hide nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.measures.utility.detail_kept import DetailKept
from sfumato.report.summary import summary_lines


def line_list(rows: int = 1_000) -> pa.Table:
    """Everybody's age, and for one in ten the date of onset."""
    draw = np.random.default_rng(3)
    dates = [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" if known else None for i, known in enumerate(draw.random(rows) < 0.1)]
    return pa.table({"age": [str(age) for age in draw.integers(0, 95, rows)], "onset": dates})


@pytest.fixture(scope="module")
def release() -> sf.Release:
    people = sf.read(line_list(), schema=sf.Schema.of(quasi=["age", "onset"]))
    return sf.protect(people, [sf.KAnonymity(5)], sf.LocalRecoding(), utility=["granularity", "detail_kept"])


def test_missing_values_are_no_detail_that_was_kept(release: sf.Release) -> None:
    [score] = [score for score in release.owner.scores if score.measure == "detail_kept"]
    [granular] = [score for score in release.owner.scores if score.measure == "granularity"]
    table = line_list()
    assert score.parts["onset, known cells"] == table.num_rows - table["onset"].null_count
    assert score.parts["age, known cells"] == table.num_rows
    shown = release.data
    for name in ("age", "onset"):
        values = {value for value in table[name].to_pylist() if value is not None}
        assert score.parts[f"{name}, kept"] == sum(value in values for value in shown[name].to_pylist())
        assert 0.0 <= score.parts[f"{name}, mean width"] <= 1.0
    assert score.parts["onset, mean width"] > 1 - granular.parts["onset"]


def test_widths_are_the_losses_where_nothing_is_missing() -> None:
    table = line_list().select(["age"])
    people = sf.read(table, schema=sf.Schema.of(quasi=["age"]))
    release = sf.protect(people, [sf.KAnonymity(30)], sf.LocalRecoding(), utility=["granularity", "detail_kept"])
    by_name = {score.measure: score for score in release.owner.scores}
    assert by_name["detail_kept"].value == pytest.approx(by_name["granularity"].value)


def test_the_summary_names_what_costs_most(release: sf.Release) -> None:
    [score] = [score for score in release.owner.scores if score.measure == "detail_kept"]
    words = score.words
    assert any(f"of {score.parts['onset, known cells']:,.0f} known cells kept, mean width" in line for line in words)
    assert "cost most" in words[-1]
    assert all(f"detail    {line}" in summary_lines(release) for line in words)


def test_without_the_original_nothing_is_counted(release: sf.Release) -> None:
    from sfumato.core.errors import InputError
    from sfumato.data.microdata import ReleasedTable

    with pytest.raises(InputError, match="pass the original"):
        DetailKept().score(None, ReleasedTable(release.data, release.content.public, records=1_000))


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_protect_says_by_default_what_was_kept_and_reads_no_row_again(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sfumato.measures.utility import detail_kept

    table = line_list()
    sf.data.write_file(table, tmp_path / "cases.parquet")
    monkeypatch.setattr(detail_kept, "rows_of", None)  # the search has counted
    people = sf.read(tmp_path / "cases.parquet", sf.Schema.of(quasi=["age", "onset"]), engine=engine)
    release = sf.protect(people, [sf.KAnonymity(5)])
    [score] = [score for score in release.owner.scores if score.measure == "detail_kept"]
    for name in table.column_names:
        assert score.parts[f"{name}, known cells"] == table.num_rows - table[name].null_count
    assert any(line.startswith("detail    ") and "onset: " in line for line in summary_lines(release))
    assert "detail_kept" not in str(release.certificate.to_mapping())  # it was computed from the original


def test_of_a_sample_no_column_is_said_to_cost_anything() -> None:
    people = sf.read(line_list(), schema=sf.Schema.of(quasi=["age", "onset"]))
    sample = sf.protect(people, (), sf.Sampling(0.5), utility=["detail_kept"], risk=(), seed=1)
    [score] = sample.owner.scores  # no value is changed, so that the measure says something
    assert score.measure == "detail_kept" and score.value < 1
    words = " ".join(score.words)
    assert "; age: 500 of 1,000 known cells kept" in words and "no value became coarser" in score.words[-1]
    assert "width" not in words and "most" not in words
