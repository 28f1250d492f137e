"""Sequential trees: marginals stay, and much more dependence than columns on their own would keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import stats

import sfumato as sf
from sfumato.core.errors import ParameterError, Unsupported
from sfumato.core.randomness import StreamRandomness
from sfumato.data.records import CategoryColumn, NumberColumn
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.synthetic.leaf_donors import DonorLeaves, Trees, _by_target
from tests.conformance.masks import CATEGORIES, NUMBERS, people

RECORDS = 1_500


def bent(seed: int = 1) -> pa.Table:
    """Dependence that a correlation does not see: a parabola, and categories that follow its branches."""
    random = np.random.default_rng(seed)
    x = random.uniform(-2, 2, RECORDS)
    y = x**2 + random.normal(0, 0.3, RECORDS)
    letters = np.array(["d", "a", "c", "b"])[np.digitize(x, [-1, 0, 1])]
    drawn = np.where(random.random(RECORDS) < 0.8, letters, "a")
    return pa.table({"x": x, "y": y, "letter": drawn, "count": random.poisson(1 + 2 * y.clip(0))})


def joint(table: pa.Table, left: str, right: str, edges: dict[str, Any]) -> NDArray[np.float64]:
    """Shares of the cells of a table of two columns, numbers in eight bins."""
    cells = []
    for name in (left, right):
        values = table.column(name).to_numpy(zero_copy_only=False)
        cells.append(np.digitize(values, edges[name]) if name in edges else np.unique(values, return_inverse=True)[1])
    counts = np.zeros((9, 9))
    np.add.at(counts, (cells[0], cells[1]), 1)
    return np.asarray(counts / counts.sum())


def test_pairs_of_columns_are_far_closer_than_columns_on_their_own() -> None:
    table = bent()
    made = sf.SequentialTrees(columns=tuple(table.column_names)).apply(table, seed=1).result.table
    alone = sf.Resampling(columns=tuple(table.column_names)).apply(table, seed=1).result.table
    edges = {name: np.quantile(table.column(name).to_numpy(), np.arange(1, 8) / 8) for name in ("x", "y", "count")}
    for left, right in (("x", "y"), ("x", "letter"), ("y", "letter"), ("y", "count")):
        real = joint(table, left, right, edges)
        distance = [np.abs(joint(other, left, right, edges) - real).sum() / 2 for other in (made, alone)]
        assert distance[0] < 0.5 * distance[1], (left, right, distance)


@pytest.mark.parametrize("smooth", [False, True])
def test_marginals_stay(smooth: bool) -> None:
    """The first column is a plain bootstrap: Dvoretzky–Kiefer–Wolfowitz at 1e-6, 0.01 more for smoothing; later columns have
    leaves of varying sizes, and get half as much again."""
    table = bent()
    bound = np.sqrt(np.log(2e6) / (2 * RECORDS)) + 0.01 * smooth
    made = sf.SequentialTrees(columns=tuple(table.column_names), smooth=smooth).apply(table, seed=2).result.table
    for name, factor in (("x", 1.0), ("y", 1.5)):
        gap = stats.ks_2samp(table.column(name).to_numpy(), made.column(name).to_numpy()).statistic
        assert gap <= factor * bound
    for letter in "abcd":
        shares = [np.mean(np.array(t.column("letter").to_pylist()) == letter) for t in (table, made)]
        assert abs(shares[0] - shares[1]) <= 1.5 * bound


def test_without_smoothing_cells_are_donated_and_with_it_numbers_are_not() -> None:
    table = bent()
    for smooth in (False, True):
        made = sf.SequentialTrees(columns=("x", "y", "letter"), smooth=smooth).apply(table, seed=1).result.table
        repeated = set(made.column("y").to_pylist()) & set(table.column("y").to_pylist())
        assert bool(repeated) != smooth
        low, high = min(table.column("y").to_pylist()), max(table.column("y").to_pylist())
        assert low <= min(made.column("y").to_pylist()) and max(made.column("y").to_pylist()) <= high
        assert set(made.column("letter").to_pylist()) <= set("abcd")


def test_smoothing_keeps_mean_and_variance_of_a_leaf() -> None:
    """100,000 draws of a leaf of 12: within 5 standard errors; 1 % for what is reflected at the ends of the column."""
    values = np.array([3.0, 4, 4, 5, 6, 7, 8, 8, 9, 10, 12, 13, -200, 200])
    leaves = DonorLeaves(np.array([0] * 12 + [1, 1]), np.zeros(100_000, dtype=np.int64))
    draws = Draws(StreamRandomness("smoothing"))
    donors = leaves.donors(draws)
    assert set(donors.tolist()) == set(range(12))
    drawn = leaves.smoothed(values, donors, draws)
    assert abs(drawn.mean() - values[:12].mean()) < 5 * values[:12].std() / np.sqrt(100_000)
    assert drawn.var() == pytest.approx(values[:12].var(), rel=0.02)


def test_donors_come_from_the_same_leaf_and_evenly() -> None:
    leaves = DonorLeaves(np.array([7, 3, 7, 3, 3]), np.repeat([3, 7], 30_000))
    donors = leaves.donors(Draws(StreamRandomness("donors")))
    assert set(donors[:30_000].tolist()) == {1, 3, 4} and set(donors[30_000:].tolist()) == {0, 2}
    counts = np.bincount(donors[:30_000], minlength=5)[[1, 3, 4]]
    assert stats.chisquare(counts).pvalue > 1e-6


def test_categories_stand_in_the_order_of_what_they_predict() -> None:
    codes = np.array([0, 0, 1, 1, 2, 2, -1, -1], dtype=np.int32)
    column = CategoryColumn("c", codes, ("u", "v", "w"), False, pa.string())
    target = NumberColumn("t", np.array([5.0, 5, 1, 1, 9, 9, 3, 3]), pa.float64())
    assert _by_target(column, target, None)[codes[::2]].tolist() == [2, 0, 3, 1]
    classes = np.array([0, 1, 0, 0, 1, 1, 0, 0])
    place = _by_target(column, target, classes)[codes[::2]]
    assert place[0] in (1, 2) and {place[1], place[3]} in ({0, 1}, {2, 3}) and place[2] in (0, 3)


def test_missing_cells_keep_their_share_and_their_reasons() -> None:
    """Numbers are missing where x > 0, with probability 1/2: 5 standard errors."""
    table = bent()
    random = np.random.default_rng(9)
    lacking = (table.column("x").to_numpy() > 0) & (random.random(RECORDS) < 0.5)
    gone = pa.array(table.column("y").to_numpy(), mask=lacking)
    letter = pa.array(np.array(table.column("letter").to_pylist()), mask=lacking)
    table = table.set_column(1, "y", gone).set_column(2, "letter", letter)
    made = sf.SequentialTrees(columns=("x", "y", "letter")).apply(table, seed=1).result.table
    for name in ("y", "letter"):
        missing, right = np.array(made.column(name).is_null()), made.column("x").to_numpy() > 0
        assert abs(missing[right].mean() - 0.5) < 5 * 0.5 / np.sqrt(right.sum()) + 0.03
        assert missing[~right].mean() < 0.03


def test_the_order_is_followed_and_told() -> None:
    told = sf.SequentialTrees(("wage", "town"), columns=(*NUMBERS, *CATEGORIES)).apply(people(), seed=1).result.transparency
    assert told["order"] == ["wage", "town", "height", "weight", "school"] and told["rows"] == 400


def test_a_category_of_many_values_is_split_by_their_order() -> None:
    codes = np.arange(1_200) // 8
    table = pa.table({"x": codes + 0.0, "code": [f"{code:04}" for code in codes]})
    made = sf.SequentialTrees(columns=("x", "code")).apply(table, seed=1).result.table
    away = np.abs(made.column("x").to_numpy() - np.array([int(code) for code in made.column("code").to_pylist()]))
    assert np.median(away) == 0 and away.max() <= 8


def test_leaves_hold_the_fewest_records_asked_for() -> None:
    x = NumberColumn("x", np.arange(100.0), pa.float64())
    y = NumberColumn("y", np.arange(100.0) ** 2, pa.float64())
    for fewest in (2, 10, 50, 60):
        leaves = Trees(fewest, None, False)._leaves(y, [x], [x], 100, 1)
        counts = np.unique(leaves.original, return_counts=True)[1]
        assert fewest <= counts.min() < 2 * fewest or counts.size == 1
    assert np.unique(Trees(2, 3, False)._leaves(y, [x], [x], 100, 1).original).size == 8


def test_strata_and_size() -> None:
    made = (
        sf.SequentialTrees(columns=(*NUMBERS, *CATEGORIES), strata=("region",), size=50).apply(people(missing=0.1), seed=1).result
    )
    assert made.rows is None and 50 <= len(made) <= 51


class TestRefusals:
    @pytest.mark.parametrize(
        "parameters", [{"min_leaf": 1}, {"max_depth": 0}, {"order": ("a", "a")}, {"order": "a"}, {"size": 0}]
    )
    def test_parameters_out_of_range(self, parameters: dict[str, Any]) -> None:
        with pytest.raises(ParameterError, match="SequentialTrees"):
            sf.SequentialTrees(**parameters)

    def test_an_order_of_columns_that_are_not_made(self) -> None:
        with pytest.raises(ParameterError, match="'region'"):
            sf.SequentialTrees(("region",), columns=NUMBERS).apply(people())

    def test_fewer_values_than_a_leaf_needs(self) -> None:
        with pytest.raises(Unsupported, match="'v' has 4 values"):
            sf.SequentialTrees(columns=("v",)).apply(pa.table({"v": [1.0, 2.0, 3.0, 4.0, None, None]}))
