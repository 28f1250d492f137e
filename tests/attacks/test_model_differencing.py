"""Two versions of a model and the record between them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from sfumato import attacks
from sfumato.attacks.outputs.model_differencing import (
    EarlierVersion,
    MeanVersion,
    ModelDifferencing,
    RegressionVersion,
    changed_record,
)
from sfumato.core.errors import InputError, ParameterError, Unsupported
from sfumato.core.view import View
from tests.examples import examples


def people(seed: int, count: int = 40) -> np.ndarray:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, 3)) * [1, 10, 100] + [0, 40, 1000]
    return np.column_stack([features, features @ [2.0, -1.0, 0.1] + rng.normal(size=count)])


def regression(rows: np.ndarray, *, penalty: float = 0.0, intercept: bool = True) -> RegressionVersion:
    """Fitted by scikit-learn (ridge) or by the least squares of NumPy: nothing is shared with the attack."""
    features, outcome = rows[:, :-1], rows[:, -1]
    design = np.column_stack([np.ones(len(rows)), features]) if intercept else features
    if penalty:
        ridge = Ridge(alpha=penalty, fit_intercept=intercept, solver="cholesky").fit(features, outcome)
        weights = np.concatenate([[ridge.intercept_], ridge.coef_]) if intercept else ridge.coef_
    else:
        weights = np.linalg.lstsq(design, outcome, rcond=None)[0]
    return RegressionVersion(weights, design.T @ design, penalty, intercept)


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("penalty", [0.0, 3.0])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_one_record_between_two_regressions_is_recovered(seed: int, intercept: bool, penalty: float, joined: bool) -> None:
    rows = people(seed)
    fewer, more = (regression(part, penalty=penalty, intercept=intercept) for part in (rows[:-1], rows))
    before, later = (fewer, more) if joined else (more, fewer)
    known = {} if intercept else {1: float(rows[-1, 1])}
    found = attacks.ModelDifferencing(1e-5).run(View(later, None), EarlierVersion(before, joined, known, truth=rows[-1]))
    assert found.success == 1.0
    assert found.baseline == 0.0
    assert found.targets == 4 - len(known)


@settings(max_examples=examples(20))
@given(st.lists(st.lists(st.integers(-1000, 1000), min_size=2, max_size=2), min_size=2, max_size=20), st.booleans())
def test_one_record_between_two_means_is_recovered(rows: list[list[int]], joined: bool) -> None:
    table = np.array(rows, dtype=float)
    fewer, more = MeanVersion(table[:-1].mean(axis=0), len(rows) - 1), MeanVersion(table.mean(axis=0), len(rows))
    before, later = (fewer, more) if joined else (more, fewer)
    assert changed_record(later, EarlierVersion(before, joined)) == pytest.approx(table[-1], abs=1e-8)


def test_noise_on_the_weights_hides_the_record() -> None:
    rows = people(9)
    before, later = regression(rows[:-1]), regression(rows)
    rng = np.random.default_rng(0)
    noisy = RegressionVersion(later.weights + rng.laplace(0, 1, later.weights.size))
    assert ModelDifferencing(0.01).run(View(noisy, None), EarlierVersion(before, truth=rows[-1])).success == 0


def test_the_mean_as_a_guess_is_the_baseline() -> None:
    rows = np.vstack([people(3), people(3).mean(axis=0) + [0, 0, 0, 5]])
    found = ModelDifferencing(1e-6).run(View(regression(rows), None), EarlierVersion(regression(rows[:-1]), truth=rows[-1]))
    assert (found.success, found.baseline) == (1.0, 0.75)


def test_what_cannot_be_attacked_is_said() -> None:
    rows = people(4)
    one, two = regression(rows[:-1]), regression(rows)
    with pytest.raises(InputError, match="EarlierVersion"):
        ModelDifferencing().run(View(two, None))
    with pytest.raises(InputError, match="truth"):
        ModelDifferencing().run(View(two, None), EarlierVersion(one))
    with pytest.raises(InputError, match="two MeanVersions or two"):
        changed_record(MeanVersion([1.0], 3), EarlierVersion(one))
    with pytest.raises(InputError, match="one person must have been added or removed"):
        changed_record(MeanVersion([1.0], 3), EarlierVersion(MeanVersion([1.0], 3)))
    with pytest.raises(InputError, match="design statistics"):
        changed_record(two, EarlierVersion(RegressionVersion(one.weights)))
    with pytest.raises(InputError, match="same attributes"):
        changed_record(regression(rows, penalty=1), EarlierVersion(one))
    with pytest.raises(Unsupported, match="leaves no trace"):
        changed_record(one, EarlierVersion(one))
    bare = [regression(part, intercept=False) for part in (rows[:-1], rows)]
    for known in ({}, {0: 0.0}, {7: 1.0}):
        with pytest.raises(Unsupported, match="up to a factor"):
            changed_record(bare[1], EarlierVersion(bare[0], known=known))
    only = RegressionVersion([0.0, 1.0], np.eye(2))
    with pytest.raises(Unsupported, match="do not differ by one record"):
        changed_record(RegressionVersion([0.0, 2.0]), EarlierVersion(only))
    for wrong in (lambda: MeanVersion([1.0], 0), lambda: RegressionVersion([1.0], penalty=-1), lambda: ModelDifferencing(0)):
        with pytest.raises(ParameterError):
            wrong()
    with pytest.raises(ParameterError, match="a row and a column"):
        RegressionVersion([1.0, 2.0], np.ones((3, 2)))
    for wrong_value in ("canary-7391", float("nan"), None):
        with pytest.raises(InputError, match="the known attributes") as refused:
            changed_record(bare[1], EarlierVersion(bare[0], known={0: wrong_value}))  # type: ignore[dict-item]
        assert "canary" not in str(refused.value)
