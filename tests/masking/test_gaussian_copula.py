"""Gaussian copula: marginals and correlations of normal scores come back within their statistical error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import stats

import sfumato as sf
from sfumato.core.errors import ParameterError, Unsupported
from sfumato.data.schema import Column, Schema
from sfumato.masking.synthetic.gaussian_copula import _hidden_correlations, _Margin, _root
from tests.conformance.masks import people

SIZES = ("small", "middle", "large")
SCHEMA = Schema(
    dataset="copula",
    columns={
        "a": Column(role="quasi", type="number"),
        "b": Column(role="quasi", type="number"),
        "size": Column(role="quasi", type="string", order=SIZES),
        "colour": Column(role="quasi", type="string"),
        "count": Column(role="quasi", type="integer"),
    },
)
DRAWN = 20_000
#: Dvoretzky–Kiefer–Wolfowitz: the largest difference of distribution functions, exceeded with probability 1e-6.
DKW = float(np.sqrt(np.log(2e6) / (2 * DRAWN)))


def correlated(records: int = 3_000, seed: int = 1, missing: float = 0.0) -> sf.Microdata:
    """Two numbers, an ordered and an unordered category and a count, all from correlated normal numbers."""
    random = np.random.default_rng(seed)
    mix = np.array([[1, 0, 0, 0], [0.7, 0.7, 0, 0], [0.6, 0, 0.8, 0], [-0.8, 0, 0, 0.6]], dtype=float)
    hidden = random.normal(size=(records, 4)) @ mix.T
    level = np.digitize(hidden[:, 2], [-0.5, 0.8])
    # neither the order of the alphabet nor its reverse follows the numbers
    colour = np.array(["green", "amber", "red", "blue"])[np.digitize(hidden[:, 3], [-0.7, 0.0, 0.7])]
    count = np.floor(np.exp(hidden[:, 1])).astype(np.int64)
    gone = random.random((records, 2)) < missing * (1 + np.sign(hidden[:, :1]))
    return sf.read(
        pa.table(
            {
                "a": pa.array(hidden[:, 0], mask=gone[:, 0] & (missing > 0)),
                "b": pa.array(np.exp(hidden[:, 1])),
                "size": pa.array(np.array(SIZES)[level], mask=gone[:, 1] & (missing > 0)),
                "colour": pa.array(colour),
                "count": pa.array(count),
            }
        ),
        SCHEMA,
    )


def column(table: pa.Table, name: str) -> NDArray[Any]:
    return np.asarray(table.column(name).to_pylist())


def largest_gap(a: NDArray[Any], b: NDArray[Any]) -> float:
    return float(stats.ks_2samp(a, b).statistic)


@pytest.mark.parametrize("marginals", ["empirical", "smoothed"])
def test_marginals_are_those_of_the_records(marginals: Any) -> None:
    data = correlated()
    made = sf.GaussianCopula(marginals, size=DRAWN).apply(data, seed=1).result.table
    assert made.num_rows == DRAWN
    slack = 5 / 3_000 if marginals == "smoothed" else 0.0
    for name in ("a", "b"):
        assert largest_gap(column(data.table(), name), column(made, name)) <= DKW + slack
    for name in ("size", "colour"):
        values, counts = np.unique(column(data.table(), name), return_counts=True)
        for value, count in zip(values, counts, strict=True):
            share = np.mean(column(made, name) == value)
            assert abs(share - count / 3_000) <= np.sqrt(np.log(2e6) / (2 * DRAWN))  # Hoeffding, 1e-6


def test_empirical_publishes_values_of_records_and_smoothed_does_not() -> None:
    data = correlated()
    real = set(column(data.table(), "a").tolist())
    empirical = sf.GaussianCopula("empirical").apply(data, seed=1).result.table
    smoothed = sf.GaussianCopula("smoothed").apply(data, seed=1).result.table
    assert set(column(empirical, "a").tolist()) <= real
    assert not set(column(smoothed, "a").tolist()) & real
    extreme = column(smoothed, "a")
    assert extreme.min() > min(real) and extreme.max() < max(real)


def test_rank_correlations_come_back() -> None:
    """With 3,000 records fitted and 20,000 drawn, a rank correlation has a standard error below 1/√20000 given the fit; 5 of
    them and 0.01 for what a copula cannot do (a false alarm is below 1e-6)."""
    data = correlated()
    made = sf.GaussianCopula("empirical", size=DRAWN).apply(data, seed=2).result.table
    for left, right in (("a", "b"), ("a", "count"), ("b", "count")):
        before = stats.spearmanr(column(data.table(), left), column(data.table(), right)).statistic
        after = stats.spearmanr(column(made, left), column(made, right)).statistic
        assert abs(before - after) <= 5 / np.sqrt(DRAWN) + 0.01


@pytest.mark.parametrize("name", ["size", "colour"])
def test_numbers_within_categories_come_back(name: str) -> None:
    """Means of a normal number within each category: 5 standard errors of records and draws, and 0.03 for the fit."""
    data = correlated()
    made = sf.GaussianCopula("empirical", size=DRAWN).apply(data, seed=3).result.table
    for value in set(column(made, name).tolist()):
        before = column(data.table(), "a")[column(data.table(), name) == value]
        after = column(made, "a")[column(made, name) == value]
        assert (
            abs(before.mean() - after.mean())
            <= 5 * np.hypot(after.std() / np.sqrt(after.size), before.std() / np.sqrt(before.size)) + 0.03
        )


def test_missing_cells_come_back_with_their_share_and_their_reasons() -> None:
    """Cells of `a` are missing where the other columns are large: 5 standard errors."""
    data = correlated(missing=0.2)
    made = sf.GaussianCopula("empirical", size=DRAWN).apply(data, seed=4).result.table
    for name in ("a", "size"):
        share = data.table().column(name).null_count / len(data)
        assert 0.1 < share and abs(made.column(name).null_count / DRAWN - share) <= 5 * np.sqrt(share / DRAWN)
    gaps = []
    for table in (data.table(), made):
        lacking = np.array(table.column("a").is_null())
        count = np.log(column(table, "b").astype(float))
        gaps.append(count[lacking].mean() - count[~lacking].mean())
    assert gaps[0] > 0.5 and abs(gaps[0] - gaps[1]) < 0.15


@pytest.mark.parametrize("wanted", [-0.8, -0.3, 0.0, 0.5, 0.9])
def test_hidden_correlations_of_two_halves_follow_the_arcsine_law(wanted: float) -> None:
    """Sheppard 1899: two normal numbers of correlation ρ agree in sign with probability 1/2 + arcsin(ρ)/π."""
    records = 100_000
    agreeing = round(records * (0.5 + np.arcsin(wanted) / np.pi) / 2)
    a = np.repeat([1, 0], records // 2)
    b = np.concatenate(
        [np.repeat([1, 0], [agreeing, records // 2 - agreeing]), np.repeat([0, 1], [agreeing, records // 2 - agreeing])]
    )
    found = _hidden_correlations([_Margin.of(a), _Margin.of(b)])
    assert found[0, 1] == pytest.approx(wanted, abs=0.01 if abs(wanted) > 0.8 else 1e-3)


def test_pairs_that_do_not_fit_together_become_a_correlation_matrix() -> None:
    torn = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    assert np.linalg.eigvalsh(torn)[0] < -0.5
    root = _root(torn)
    mended = root @ root.T
    assert np.allclose(np.diag(mended), 1.0) and np.linalg.eigvalsh(mended)[0] > -1e-12
    fitting = np.array([[1.0, 0.5], [0.5, 1.0]])
    assert np.allclose(_root(fitting) @ _root(fitting).T, fitting)


def test_strata_share_the_size_and_no_record_stands_behind_a_row() -> None:
    data = people()
    outcome = sf.GaussianCopula(columns=("height", "town"), strata=("region",), size=100).apply(data, seed=1)
    assert outcome.result.rows is None and outcome.result.table.column_names == ["height", "town", "region"]
    north = data.table().column("region").to_pylist().count("north")
    assert outcome.result.table.column("region").to_pylist().count("north") == -(-100 * north // 400)


def test_identifiers_are_left_out_and_nothing_of_the_records_is_told() -> None:
    data = sf.read(sf.data.sample_table(500), schema=sf.data.sample_schema())
    result = sf.GaussianCopula().apply(data, seed=1).result
    assert "name" not in result.table.column_names
    assert set(result.transparency) == {"method", "masked_columns", "model", "marginals", "rows"}


def test_a_stratum_without_values_of_a_column_has_none_afterwards() -> None:
    table = pa.table(
        {"v": [None] * 20 + [float(i % 9) for i in range(20)], "w": [float(i) for i in range(40)], "s": ["a"] * 20 + ["b"] * 20}
    )
    made = sf.GaussianCopula(columns=("v", "w"), strata=("s",)).apply(table, seed=1).result.table
    inside = np.array(made.column("s").to_pylist()) == "a"
    assert np.array(made.column("v").is_null())[inside].all() and not np.array(made.column("v").is_null())[~inside].any()


class TestRefusals:
    @pytest.mark.parametrize("parameters", [{"marginals": "real"}, {"size": 0}, {"size": 2.5}])
    def test_parameters_out_of_range(self, parameters: dict[str, Any]) -> None:
        with pytest.raises(ParameterError, match="GaussianCopula"):
            sf.GaussianCopula(**parameters)

    def test_so_few_values_that_they_would_be_repeated(self) -> None:
        with pytest.raises(Unsupported, match="'v' has 3 values"):
            sf.GaussianCopula(columns=("v",)).apply(pa.table({"v": [1.0, 2.0, 3.0, None, None, None]}))

    def test_a_constant_column(self) -> None:
        with pytest.raises(Unsupported, match="'v' has one value only"):
            sf.GaussianCopula(columns=("v",)).apply(pa.table({"v": [1.0] * 20}))
