"""Propensity scores: the fit against scikit-learn, the expectation against resampling, the edges."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import ParameterError, Unsupported
from sfumato.data.masked import compared
from sfumato.measures.utility.propensity import PropensityScore, logistic_fit
from tests.measures.masked_tables import microdata, noisy, people, synthetic, taken, with_gaps


@pytest.mark.oracle
def test_the_fit_is_that_of_another_implementation() -> None:
    from sklearn.linear_model import LogisticRegression

    draw = np.random.default_rng(0)
    points = draw.normal(size=(300, 4))
    labels = (points @ [1.0, -2.0, 0.0, 0.5] + draw.logistic(size=300) > 0.3).astype(float)
    other = LogisticRegression(C=1e10, tol=1e-10, max_iter=1000).fit(points, labels).predict_proba(points)[:, 1]
    assert logistic_fit(np.hstack([np.ones((300, 1)), points]), labels) == pytest.approx(other, abs=1e-5)


def test_the_score_equals_the_definition() -> None:
    data = people(200)
    shown = synthetic(data, noisy(data, 0.5).slice(0, 150))
    found = PropensityScore(("age", "income")).score(data, shown)
    design = []
    for table in (data.table(), shown.table):
        design += [[1.0, a, b] for a, b in zip(*(table.column(n).to_pylist() for n in ("age", "income")), strict=True)]
    points = np.array(design)
    points[:, 1:] = (points[:, 1:] - points[:, 1:].mean(axis=0)) / points[:, 1:].std(axis=0)
    share = 150 / 350
    pmse = float(np.mean((logistic_fit(points, np.repeat([0.0, 1.0], [200, 150])) - share) ** 2))
    assert found.parts["pMSE"] == pytest.approx(pmse, rel=1e-6)
    assert found.value == pytest.approx(pmse / (share * (1 - share)), rel=1e-6)
    assert found.parts["expected pMSE"] == pytest.approx(2 * (1 - share) ** 2 * share / 350)


@pytest.mark.parametrize("measure", [PropensityScore(), PropensityScore(interactions=True), PropensityScore(model="tree")])
def test_equal_tables_cannot_be_told_apart(measure: PropensityScore) -> None:
    data = with_gaps(people(), 0.1)
    assert measure.score(data, data).value == pytest.approx(0, abs=1e-12)
    turned = taken(data, np.random.default_rng(0).permutation(len(data)))
    assert measure.score(data, turned).value == pytest.approx(0, abs=1e-12)


def test_resampling_the_original_is_as_good_as_expected() -> None:
    """Ratio 1 for rows drawn from the original: the mean of 60 ratios, each of deviation √(2/5), lies within
    5 · 0.63/√60 = 0.41 of 1 but for one run in 10^6."""
    data = people(500)
    draw = np.random.default_rng(2)
    ratios, standardised = [], []
    for _ in range(60):
        shown = data.table().take(pa.array(draw.integers(0, 500, 500)))
        parts = PropensityScore(("age", "income", "sex", "town")).score(data, synthetic(data, shown)).parts
        ratios.append(parts["ratio"])
        standardised.append(parts["standardised"])
    assert np.mean(ratios) == pytest.approx(1, abs=0.41)
    assert abs(np.mean(standardised)) < 0.65


def test_the_tree_finds_a_resample_as_good_as_resamples() -> None:
    data = people(400)
    shown = data.table().take(pa.array(np.random.default_rng(3).integers(0, 400, 400)))
    assert abs(PropensityScore(model="tree").score(data, synthetic(data, shown)).parts["standardised"]) < 6


def _by_tree(data: sf.Microdata, shown: pa.Table) -> float:
    left, right, masked = compared(data, shown, None)
    return PropensityScore(model="tree").by_tree(left, right, masked.rows)


def _drawn(rows: int, draw: np.random.Generator) -> pa.Table:
    size = draw.normal(size=rows)
    return pa.table({"a": size, "b": 2 * size + draw.normal(size=rows), "c": draw.lognormal(0, 1.5, rows),
                     "k": draw.choice(list("abcdefgh"), rows)})  # fmt: skip


@pytest.mark.parametrize("rows", [30, 200, 600, 2_000])
def test_a_tree_cannot_tell_apart_what_differs_by_chance(rows: int) -> None:
    """A new sample of the same people, a little noise, and the same rows in another order: about 0 at every size."""
    draw = np.random.default_rng(rows)
    fresh, noisy_ones = [], []
    for _ in range(5):
        table = _drawn(rows, draw)
        data = microdata({name: table[name].to_pylist() for name in table.column_names})
        fresh += [_by_tree(data, _drawn(rows, draw)), _by_tree(data, _drawn(rows * 2, draw))]
        shaken = {name: table[name].to_numpy() + 1e-3 * draw.normal(size=rows) for name in ("a", "b", "c")}
        noisy_ones.append(_by_tree(data, pa.table({**shaken, "k": table["k"]})))
        assert _by_tree(data, table) == 0.0
        assert _by_tree(data, table.take(pa.array(draw.permutation(rows)))) <= 0.05
    assert max(np.mean(fresh), np.mean(noisy_ones)) < 0.03


@pytest.mark.parametrize("rows", [4, 30, 200, 600, 2_000])
def test_a_tree_surely_tells_apart_what_is_far_away(rows: int) -> None:
    table = _drawn(rows, np.random.default_rng(0))
    data = microdata({name: table[name].to_pylist() for name in table.column_names})
    far = pa.table({name: table[name].to_numpy() + 1e3 for name in ("a", "b", "c")}).append_column("k", table["k"])
    unknown = pa.table({name: pa.nulls(rows, table[name].type) for name in table.column_names})
    assert _by_tree(data, far) == pytest.approx(1) and _by_tree(data, unknown) == pytest.approx(1)


def test_a_tree_sees_lost_relations_that_no_column_shows() -> None:
    table = _drawn(2_000, np.random.default_rng(1))
    data = microdata({name: table[name].to_pylist() for name in table.column_names})
    assert _by_tree(data, table.set_column(1, "b", pa.array(np.random.default_rng(2).permutation(table["b"])))) > 0.1


def test_a_shift_is_seen_by_both_models_and_a_spread_needs_squares() -> None:
    data = people(1000)
    table = data.table()
    shifted = table.set_column(1, "income", pa.array(table["income"].to_numpy() * 1.5))
    wide = noisy(data, 1.0)
    for measure in (PropensityScore(), PropensityScore(model="tree")):
        assert measure.score(data, shifted).parts["standardised"] > 6
    assert PropensityScore().score(data, wide).parts["ratio"] < 3
    assert PropensityScore(interactions=True).score(data, wide).parts["ratio"] > 3


def test_complete_separation_is_the_largest_value_without_a_warning() -> None:
    data = microdata({"x": np.arange(50.0), "c": ["a"] * 50})
    shown = pa.table({"x": np.arange(50.0) + 1000, "c": ["b"] * 50})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert PropensityScore().score(data, shown).value == pytest.approx(1, abs=1e-3)
        assert PropensityScore(model="tree").score(data, shown).value == 1


def test_missing_values_are_a_feature() -> None:
    data = microdata({"x": np.random.default_rng(0).normal(size=300)})
    known = data.table()["x"].to_numpy()
    shown = pa.table({"x": pa.array(known, mask=np.arange(300) % 2 == 0)})
    assert PropensityScore().score(data, shown).parts["ratio"] > 10


def test_dependent_and_constant_columns_count_once() -> None:
    x = np.random.default_rng(0).normal(size=200)
    plain, more = microdata({"x": x}), microdata({"x": x, "y": 2 * x, "c": [1.0] * 200})
    shown = pa.table({"x": x + 0.1, "y": 2 * (x + 0.1), "c": [1.0] * 200})
    first, second = PropensityScore(("x",)).score(plain, shown), PropensityScore().score(more, shown)
    assert second.parts["expected pMSE"] == pytest.approx(first.parts["expected pMSE"])
    assert second.value == pytest.approx(first.value, rel=1e-4)


def test_parameters_out_of_range_are_refused() -> None:
    for wrong in ({"model": "forest"}, {"resamples": 1}, {"sample": 5}):
        with pytest.raises(ParameterError, match="PropensityScore"):
            PropensityScore(**wrong)
    wide = microdata({f"x{i}": np.arange(9.0) for i in range(41)})
    with pytest.raises(Unsupported, match="more than 40 features"):
        PropensityScore(interactions=True).score(wide, wide)
