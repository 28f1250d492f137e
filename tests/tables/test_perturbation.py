"""Tables that are changed: what each method keeps, what it draws, and what it costs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import InputError, ParameterError, Unsupported
from sfumato.core.randomness import default
from sfumato.tables import (
    CellKeys,
    ControlledAdjustment,
    ControlledRounding,
    ConventionalRounding,
    Dimension,
    MinimumFrequency,
    NoiseBeforeTabulating,
    PPercent,
    RandomRounding,
    SmallCountRounding,
    TableCube,
    TableLoss,
    count_cube,
    protect_cube,
)
from sfumato.tables.perturbation.base import rounded_up
from sfumato.tables.perturbation.cell_keys import cell_keys, perturbations
from sfumato.tables.sensitivity import sensitive_cells
from tests.tables.salaries import COUNTS, NAMES, salary_cube


def counts() -> TableCube:
    return TableCube.from_cells(dict(zip(NAMES, COUNTS, strict=True)), salary_cube().dimensions)


@pytest.mark.golden("G-TAB-09")
def test_22_is_rounded_to_20_or_25_without_bias() -> None:
    """Of 20,000 draws the share of 25 deviates from 0.4 by more than 0.02 with probability below 10^-7 (5.7 deviations)."""
    drawn = rounded_up(np.full(20_000, 22), 5, default(9))
    assert set(drawn.tolist()) == {20, 25}
    assert (drawn == 25).mean() == pytest.approx(0.4, abs=0.02)
    assert rounded_up(np.array([20, 25]), 5, default(1)).tolist() == [20, 25]


@given(st.lists(st.integers(0, 60), min_size=12, max_size=12), st.integers(2, 12))
def test_controlled_rounding_keeps_sums_and_every_cell_next_to_its_value(values: list[int], base: int) -> None:
    if not any(values):
        return
    by = [Dimension.flat("a", "pqr"), Dimension.flat("b", "wxyz")]
    cube = TableCube.from_cells(dict(zip([(a, b) for a in "pqr" for b in "wxyz"], values, strict=True)), by)
    table = ControlledRounding(base).run(cube, seed=1).result
    assert not table.system.residuals(table.units).any()
    assert (np.abs(table.units - cube.units) < base).all() and (table.units % base == 0).all()


def test_controlled_rounding_of_a_hierarchy_is_additive_too() -> None:
    by = [Dimension.tree("a", {"p": "g", "q": "g", "r": "h", "s": "h"}), Dimension.flat("b", "xy"), Dimension.flat("c", "uv")]
    cells = {(a, b, c): 7 * i % 23 for i, (a, b, c) in enumerate((a, b, c) for a in "pqrs" for b in "xy" for c in "uv")}
    cube = TableCube.from_cells(cells, by)
    table = ControlledRounding(5).run(cube, seed=1).result
    assert not table.system.residuals(table.units).any() and (table.units % 5 == 0).all()


def test_small_counts_disappear_and_totals_hardly_change() -> None:
    cube = counts()
    table = SmallCountRounding(16).run(cube, seed=1).result
    totals = np.zeros(cube.size, dtype=np.bool_)
    totals[cube.system.cells[cube.system.starts[:-1]]] = True
    inner = table.units[~totals]
    assert not ((inner > 0) & (inner < 16)).any() and not table.system.residuals(table.units).any()
    large = ~totals & (cube.units >= 16)
    assert (table.units[large] == cube.units[large]).all()
    assert np.abs(table.units - cube.units)[totals].max() < 16


def test_adjusted_cells_lie_outside_their_levels_and_add_up() -> None:
    cube, rules = salary_cube(), (MinimumFrequency(3), PPercent(10))
    table = ControlledAdjustment(rules).run(cube, seed=1).result
    assert cube.contributions is not None
    sensitive = sensitive_cells(cube.contributions, rules)
    moved = table.units - cube.units
    for cell in np.flatnonzero(sensitive.cells).tolist():
        assert moved[cell] >= sensitive.upper[cell] or moved[cell] <= -sensitive.lower[cell]
    assert not table.system.residuals(table.units).any() and (table.units >= 0).all()


@pytest.mark.parametrize("count", range(1, 9))
def test_a_law_of_perturbations_has_mean_zero_its_variance_and_no_hidden_count(count: int) -> None:
    law = np.array(perturbations(5, 3.0, 2)[count])
    changes = np.arange(-5, 6)
    assert law.sum() == pytest.approx(1) and law @ changes == pytest.approx(0, abs=1e-9)
    assert law @ changes**2 == pytest.approx(3.0, abs=1e-6)
    assert not law[np.isin(count + changes, [1, 2]) | (count + changes < 0)].any()


def test_equal_cells_get_equal_noise_under_one_secret() -> None:
    cube = counts()
    whole = CellKeys(secret="a secret of the owner").run(cube).result
    again = CellKeys(secret="a secret of the owner").run(cube).result
    other = CellKeys(secret="another one").run(cube).result
    assert np.array_equal(whole.units, again.units) and not np.array_equal(whole.units, other.units)
    assert np.abs(whole.units - cube.units).max() <= 5 and not np.isin(whole.units, [1, 2]).any()
    keys = cell_keys(cube, b"key")
    inner = sum(keys[cube.cell("M1", f"P{i}")] for i in range(1, 6)) % 2**64
    assert keys[cube.cell("M1", "Total")] == inner
    with pytest.raises(Unsupported, match="counts"):
        CellKeys().run(salary_cube())
    with pytest.raises(ParameterError, match="variance between"):
        CellKeys(variance=100.0).run(cube)


@pytest.mark.data
def test_the_law_is_that_of_a_published_table_of_perturbations(data_dir: Path) -> None:
    """The sample of τ-ARGUS: reach 5, variance 3, counts of 1 and 2 hidden, and larger ones left alone half of the time."""
    lines = (data_dir / "tables" / "tau_ck_ptab_freq.txt").read_text().splitlines()[1:]
    rows = [line.split(";") for line in lines]
    ours = perturbations(5, 3.0, 2, 0.5)
    compared = 0
    for count, _, probability, change, _ in rows:
        if int(count) in (1, 2, 3):
            assert ours[int(count)][int(change) + 5] == pytest.approx(float(probability), abs=2e-5)
            compared += 1
    assert compared > 12


def test_noise_before_tabulating_changes_each_holding_by_one_factor() -> None:
    firms = pa.table({"region": list("AABB"), "group": list("xyxz"), "turnover": [100.0, 50.0, 200.0, 10.0]})
    changed = NoiseBeforeTabulating(10, 20).apply(sf.read(firms), "turnover", holding="group", seed=3).table()
    ratio = np.array(changed["turnover"].to_pylist()) / [100, 50, 200, 10]
    assert ratio[0] == pytest.approx(ratio[2]) and ((np.abs(ratio - 1) >= 0.1) & (np.abs(ratio - 1) <= 0.2)).all()
    cube = count_cube(sf.read(changed), ["region"], value="turnover")
    assert not cube.system.residuals(cube.units).any()
    with pytest.raises(ParameterError, match="least must lie below most"):
        NoiseBeforeTabulating(20, 10)


def test_a_rounded_table_is_published_with_a_promise_that_anybody_checks(tmp_path: Path) -> None:
    release = sf.publish(ControlledRounding(5).run(salary_cube()))
    assert release.certificate.claims[0].promised == "every value is a multiple of 5 units of the last digit"
    folder = release.save(tmp_path / "out")
    assert sf.verify(folder).verdict == "keeps"
    demonstration = sf.publish(RandomRounding(5).run(salary_cube(), seed=1))
    assert not demonstration.certificate.private


def test_the_loss_of_methods_is_compared_on_one_scale() -> None:
    cube = salary_cube()
    same = ConventionalRounding(2).run(TableCube.from_cells({("M1",): 2, ("M2",): 4}, [Dimension.flat("r", ["M1", "M2"])])).result
    with pytest.raises(InputError, match="other cells"):
        TableLoss().score(cube, same)
    blanked = protect_cube(cube, [MinimumFrequency(3), PPercent(10)]).published
    loss = TableLoss().score(cube, blanked)
    assert loss.value == pytest.approx(2522 / cube.units.sum()) and loss.parts["blank cells"] == 7
    rounded = TableLoss().score(cube, ControlledRounding(5).run(cube).result)
    assert 0 < rounded.value < loss.value and rounded.parts["totals off"] == 0
    assert TableLoss("cells").score(cube, blanked).value == 7 / 24
