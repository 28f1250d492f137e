"""Data shuffling: the same values, the same relations on average, nothing of the old value beyond what predictors tell."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.declared import build, parameters
from sfumato.core.errors import MissingColumn, ParameterError, Unsupported
from sfumato.data.schema import Column, Schema


def spearman(one: np.ndarray, two: np.ndarray) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(one, two).statistic)


def correlated(size: int = 4000, seed: int = 1) -> dict[str, np.ndarray]:
    """Predictor x, confidential y and z that depend on it and on each other; marginals far from normal."""
    random = np.random.default_rng(seed)
    x, common, rest = random.normal(size=(3, size))
    y = 0.8 * x + 0.6 * common
    z = 0.5 * x - 0.6 * common + math.sqrt(1 - 0.25 - 0.36) * rest
    return {"x": np.exp(x), "y": np.exp(2 * y), "z": z**3}


NUMBERS = st.lists(st.tuples(st.one_of(st.none(), st.integers(-3, 3).map(float)), st.integers(0, 3)), min_size=5, max_size=60)


@given(NUMBERS, st.integers(0, 20), st.booleans())
def test_a_column_keeps_its_values_and_its_gaps(rows: list[tuple[float | None, int]], seed: int, predicted: bool) -> None:
    values = [value for value, _ in rows]
    table = pa.table({"y": pa.array(values, pa.float64()), "x": [float(x) for _, x in rows]})
    try:
        masked = sf.Shuffling(("x",) if predicted else (), columns=("y",)).apply(table, seed=seed).result.table["y"].to_pylist()
    except (Unsupported, ParameterError) as refusal:
        assert any(word in str(refusal) for word in ("one value only", "no values", "follows from", "nearly"))
        return
    assert [value is None for value in masked] == [value is None for value in values]
    assert sorted(value for value in masked if value is not None) == sorted(value for value in values if value is not None)


def test_rank_correlations_are_kept() -> None:
    """With 4,000 records a rank correlation has a standard error below 0.016; two draws differ by less than 0.12 but for a
    chance below 10⁻⁶."""
    data = correlated()
    masked = sf.Shuffling(predictors=("x",), columns=("y", "z")).apply(pa.table(data), seed=2).result.table
    new = {"x": data["x"], "y": masked["y"].to_numpy(), "z": masked["z"].to_numpy()}
    for one, two in (("x", "y"), ("x", "z"), ("y", "z")):
        assert spearman(new[one], new[two]) == pytest.approx(spearman(data[one], data[two]), abs=0.12)
    assert sorted(new["y"]) == sorted(data["y"])


def test_given_the_predictors_the_new_value_does_not_depend_on_the_old_one() -> None:
    """The partial correlation of 4,000 pairs is below 0.09 but for a chance below 10⁻⁷."""
    data = correlated()
    masked = sf.Shuffling(predictors=("x",), columns=("y",)).apply(pa.table(data), seed=3).result.table["y"].to_numpy()
    x, old, new = np.log(data["x"]), np.log(data["y"]), np.log(masked)
    left = [value - np.polyval(np.polyfit(x, value, 1), x) for value in (old, new)]
    assert abs(np.corrcoef(left)[0, 1]) < 0.09
    assert np.corrcoef(old, new)[0, 1] > 0.5  # through the predictor only


def test_without_predictors_columns_keep_their_relation_to_each_other_only() -> None:
    data = correlated()
    masked = sf.Shuffling(columns=("y", "z")).apply(pa.table(data), seed=4).result.table
    assert spearman(masked["y"].to_numpy(), masked["z"].to_numpy()) == pytest.approx(spearman(data["y"], data["z"]), abs=0.12)
    assert abs(spearman(masked["y"].to_numpy(), data["x"])) < 0.09
    assert abs(spearman(masked["y"].to_numpy(), data["y"])) < 0.09


def test_missing_values_do_not_weaken_the_relation() -> None:
    data = correlated()
    gaps = np.random.default_rng(8).uniform(size=4000) < 0.3
    table = pa.table({"x": data["x"], "y": pa.array(data["y"], mask=gaps)})
    masked = sf.Shuffling(predictors=("x",), columns=("y",)).apply(table, seed=5).result.table["y"]
    known = np.array([value is not None for value in masked.to_pylist()])
    assert np.array_equal(known, ~gaps)
    new = np.array(masked.to_pylist(), dtype=float)[known]
    assert spearman(data["x"][known], new) == pytest.approx(spearman(data["x"][known], data["y"][known]), abs=0.12)


def test_categories_predict_and_ordered_ones_can_be_shuffled() -> None:
    random = np.random.default_rng(2)
    group = random.integers(0, 3, 3000)
    level = np.clip(np.rint(group + random.normal(scale=0.7, size=3000)), 0, 3).astype(int)
    names = np.array(["none", "some", "much", "all"])
    table = pa.table({"group": np.array(["p", "q", "r"])[group], "level": names[level]})
    schema = Schema(columns={"group": Column(), "level": Column(role="quasi", order=tuple(names))})
    masked = sf.Shuffling(predictors=("group",)).apply(sf.read(table, schema=schema), seed=1).result.table["level"].to_pylist()
    assert sorted(masked) == sorted(names[level].tolist())
    new = np.array([names.tolist().index(value) for value in masked])
    means, old = ([float(values[group == g].mean()) for g in range(3)] for values in (new, level))
    assert means == pytest.approx(old, abs=0.2)


def test_linearly_dependent_predictors_are_no_obstacle() -> None:
    data = correlated(500)
    table = pa.table({**data, "again": data["x"] * 3, "fixed": np.ones(500)})
    masked = sf.Shuffling(predictors=("x", "again", "fixed"), columns=("y",)).apply(table, seed=1).result.table["y"].to_numpy()
    assert spearman(masked, data["x"]) > 0.5


def test_a_seed_gives_the_same_file_and_parameters_come_back() -> None:
    mask = sf.Shuffling(predictors=("x",), columns=("y", "z"))
    table = pa.table(correlated(300))
    assert mask.apply(table, seed=5).result.table.equals(mask.apply(table, seed=5).result.table)
    assert build(sf.Shuffling, parameters(mask)) == mask


def test_what_cannot_be_shuffled_is_refused() -> None:
    data = correlated(50)
    table = pa.table({**data, "copy": data["y"] * 2, "name": [f"n{i}" for i in range(50)]})
    with pytest.raises(Unsupported, match="'y' follows from the predictors"):
        sf.Shuffling(predictors=("copy",), columns=("y",)).apply(table, seed=1)
    with pytest.raises(Unsupported, match="'y' follows from the predictors"):
        sf.Shuffling(predictors=("name",), columns=("y",)).apply(table, seed=1)
    with pytest.raises(ParameterError, match="cannot be shuffled and predict"):
        sf.Shuffling(predictors=("y",), columns=("y",)).apply(table, seed=1)
    with pytest.raises(MissingColumn, match="'w'"):
        sf.Shuffling(predictors=("w",), columns=("y",)).apply(table, seed=1)
    with pytest.raises(ParameterError, match="predictors must be a list of different columns"):
        sf.Shuffling(predictors=("x", "x"))
    with pytest.raises(Unsupported, match="holds categories"):
        sf.Shuffling(columns=("name",)).apply(table, seed=1)
    with pytest.raises(Unsupported, match="one value only"):
        sf.Shuffling(columns=("x",)).apply(pa.table({"x": [3.0] * 4}), seed=1)
    many = pa.table({"x": np.arange(500.0), "name": [f"n{i}" for i in range(500)]})
    with pytest.raises(Unsupported, match="500 categories"):
        sf.Shuffling(predictors=("name",), columns=("x",)).apply(many, seed=1)


def test_nothing_that_depends_on_the_true_pairs_is_published() -> None:
    """With the residual correlation at full precision the pairs of a small stratum can be found by trying."""
    data = correlated(12)
    table = pa.table({**data, "group": ["a"] * 6 + ["b"] * 6})
    for strata in (None, ("group",)):
        mask = sf.Shuffling(predictors=("x",), columns=("y", "z"), strata=strata)
        outcome = mask.apply(table, seed=1)
        again = mask.apply(table.set_column(1, "y", table["y"].take([*range(5, -1, -1), *range(11, 5, -1)])), seed=1)
        assert outcome.result.transparency == again.result.transparency  # other pairs, the same values
        assert outcome.details["residual_correlation"] != again.details["residual_correlation"]


def test_a_column_that_predictors_bring_back_is_refused() -> None:
    """A flag and nearly the score it was made of: little is left to chance, and two values hide what is."""
    random = np.random.default_rng(4)
    flag = np.repeat([0.0, 1.0], 500)
    codes = [f"c{int(value)}{'x' if slip else ''}" for value, slip in zip(flag, random.uniform(size=1000) < 0.5, strict=True)]
    codes[0], codes[999] = "c1", "c0"
    table = pa.table({"flag": flag, "near": codes, "far": random.normal(size=1000)})
    with pytest.raises(Unsupported, match="'flag' would be published nearly as it is"):
        sf.Shuffling(predictors=("near",), columns=("flag",)).apply(table, seed=1)
    outcome = sf.Shuffling(predictors=("far",), columns=("flag",)).apply(table, seed=1)
    masked = outcome.result.table["flag"].to_numpy()
    assert outcome.details["unchanged"] == {"flag": pytest.approx(np.mean(masked == flag))}


def test_a_chance_return_of_few_values_is_no_reason_to_refuse() -> None:
    """One in ten has the flag; it returns to the same person with probability 1/10 and nobody learns from that."""
    table = pa.table({"x": [0.0] * 9 + [1.0]})
    shares = {sf.Shuffling(columns=("x",)).apply(table, seed=seed).details["unchanged"]["x"] for seed in range(100)}
    assert shares == {0.8, 1.0}
