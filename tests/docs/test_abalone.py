"""The Abalone study: it runs, and on the real shells the published trends come out."""

from __future__ import annotations

import runpy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pytest

import sfumato as sf

STUDY = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "abalone" / "study.py"))
FAMILIES = (
    ("Noise 3", "Noise 10", "Noise 100"),
    ("MultNoise 5", "MultNoise 10", "MultNoise 100"),
    ("RS p-dist 2", "RS p-dist 10", "RS p-dist 50"),
    ("CBFS k=5", "CBFS k=25", "CBFS k=100"),
)


def shells(path: Path, rows: int = 200) -> Path:
    """Made-up shells with the columns of the real file."""
    draw = np.random.default_rng(4)
    size = draw.normal(size=rows)
    numbers = {
        name: np.exp(scale * size + draw.normal(0, 0.1, rows))
        for name, scale in zip(
            ("Length", "Diameter", "Height", "Whole", "Shucked", "Viscera", "Shell"), np.linspace(0.2, 0.9, 7), strict=True
        )
    }
    table = pa.table({"Sex": draw.choice(["M", "F", "I"], rows), **numbers, "Rings": np.rint(10 + 3 * size).astype(np.int64)})
    pcsv.write_csv(table, path)
    return path


def check_trends(rows: dict[str, Any]) -> None:
    for family in FAMILIES:
        losses = [rows[name].measured[0] for name in family]
        risks = [rows[name].measured[1] for name in family]
        assert losses == sorted(losses) and risks == sorted(risks, reverse=True), family


def test_the_study_prints_twenty_settings_beside_the_published_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sf, "compare", partial(sf.compare, workers=1))
    rows, found = STUDY["run"](STUDY["read"](shells(tmp_path / "shells.csv")), classifiers=False, cache=False)
    assert len(rows) == 20 and rows[0].measured == pytest.approx((0.0, 100.0), abs=1.0)
    assert sum(bool(row.refused) for row in rows) <= 3
    printed = STUDY["printed"](rows)
    assert len(printed) == 41 and any("(86.00)" in line for line in printed)
    assert found.recommended is not None


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.golden("G-RSK-06")
def test_the_published_trends_come_out_on_the_real_shells(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sf, "compare", partial(sf.compare, workers=1))  # the models of the original are learnt once
    people = STUDY["read"](data_dir / "abalone" / "abalone.csv")
    rows, _ = STUDY["run"](people, classifiers=False, cache=False)
    assert all(not row.refused and len(row.measured) == 2 for row in rows)
    check_trends({row.name: row for row in rows})


#: Masks of each kind, the mildest and the harshest of them: learners take most of the time.
LEARNT = {"Original", "RS p-dist 10", "CBFS k=25", "CBFS 2-sen k=25", "CBFS 3-div k=25"}


@pytest.mark.data
@pytest.mark.parametrize(
    "names", [pytest.param(LEARNT, marks=pytest.mark.slow, id="some"), pytest.param(None, marks=pytest.mark.stress, id="all")]
)
def test_only_diverse_groups_cost_learners_much_on_the_real_shells(
    names: set[str] | None, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sf, "compare", partial(sf.compare, workers=1))
    settings = [setting for setting in STUDY["SETTINGS"] if names is None or setting.name in names]
    monkeypatch.setitem(STUDY["run"].__globals__, "SETTINGS", settings)
    rows, _ = STUDY["run"](STUDY["read"](data_dir / "abalone" / "abalone.csv"), cache=False)
    by_name = {row.name: row for row in rows}
    assert len(rows) == len(names or STUDY["SETTINGS"]) and all(len(row.measured) == 10 for row in rows)
    original = by_name["Original"].measured
    assert by_name["CBFS k=25"].measured[:2] == by_name["CBFS 2-sen k=25"].measured[:2]
    for row in rows:
        dropped = [before - after for before, after in zip(original[2:], row.measured[2:], strict=True)]
        if row.name == "CBFS 3-div k=25":
            assert min(dropped) > 10
        else:
            assert max(dropped) < 6, row.name
