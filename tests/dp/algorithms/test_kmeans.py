"""Private k-means: the seed's noisy Lloyd iterations, the grid variant, and the baseline."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import ParameterError, SchemaError
from sfumato.core.guarantees.loss import ConcentratedDP, PureDP
from sfumato.core.randomness import default
from sfumato.dp import GridKMeans, KMeans, clustering_cost, kmeans_baseline
from sfumato.dp.algorithms.cluster_points import bounded_points, declared_axes
from sfumato.dp.algorithms.declared_values import STEPS
from sfumato.dp.algorithms.kmeans import kmeans_scales, sizes_and_sums
from sfumato.dp.algorithms.lloyd import nearest_centres
from tests.dp.algorithms.tables import microdata, mixture, without


@pytest.mark.golden("G-DP-21")
def test_scales_of_ten_iterations() -> None:
    scales = kmeans_scales(1, 10, [100])
    assert scales.size == 20
    assert scales.sums == (2000,)


def test_an_iteration_has_a_part_of_epsilon_not_its_inverse() -> None:
    """E-41: the budget of an iteration is ε/T, of its sizes ε/2T; T/ε and T/2ε would spend 10 and 100 times too much."""
    algorithm = KMeans(("x",), 3, "0.5", iterations=5, max_rows=1)
    assert algorithm.budget_per_iteration() == Fraction(1, 10)
    assert algorithm.budget_per_iteration() * algorithm.iterations == algorithm.loss().epsilon  # type: ignore[attr-defined]
    sizes = 1 / kmeans_scales("0.5", 5, [100]).size
    sums = 100 / kmeans_scales("0.5", 5, [100]).sums[0]
    assert sizes + sums == algorithm.budget_per_iteration()
    assert Fraction(5) / Fraction("0.5") != algorithm.budget_per_iteration()


def test_the_scales_cover_all_coordinates_and_rows() -> None:
    scales = kmeans_scales(1, 10, [100, 50], rows=3)
    assert scales.size == 60
    assert scales.sums == (2 * 3 * 2000, 2 * 3 * 1000)
    spent = 3 / scales.size + sum(Fraction(3 * width) / scale for width, scale in zip((100, 50), scales.sums, strict=True))
    assert spent == Fraction(1, 10)


DESCRIBED = {
    "who": {"role": "unit", "type": "string"},
    "t": {"type": "integer"},
    "x": {"type": "number", "bounds": [-1, 1]},
    "y": {"type": "number", "bounds": [0, 10]},
}
KINDS = {"who": pa.string(), "t": pa.int64(), "x": pa.float64(), "y": pa.float64()}
rows = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.one_of(st.none(), st.floats(-2, 2)), st.floats(-5, 20)), max_size=20
)


def places(entries: list) -> sf.Microdata:
    return microdata({name: [row[i] for row in entries] for i, name in enumerate(DESCRIBED)}, DESCRIBED, KINDS)


@given(rows, st.integers(1, 3), st.sampled_from("abc"), st.randoms(use_true_random=False))
def test_one_unit_changes_sizes_and_sums_by_at_most_what_the_scales_assume(
    entries: list, most: int, gone: str, random: object
) -> None:
    algorithm = KMeans(("x", "y"), 2, 1, max_rows=most, bounding="truncate", order="t")
    centres = np.array([[0, 0], [STEPS, STEPS // 2]])
    shuffled = list(entries)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    found = []
    for data in (places(entries), without(places(shuffled), "who", gone)):
        points = bounded_points(data, declared_axes(data, algorithm), algorithm, default(1))
        found.append(sizes_and_sums(points, nearest_centres(points, centres)[0], 2))
    assert np.abs(found[0][0] - found[1][0]).sum() <= most
    assert np.abs(found[0][1] - found[1][1]).sum() <= most * 2 * STEPS


@given(rows, st.integers(1, 3), st.sampled_from("abc"))
def test_one_unit_changes_clipped_offsets_by_at_most_the_radius(entries: list, most: int, gone: str) -> None:
    """The grid variant divides each cluster's offsets by its radius: at most d per row in L1 and in squared L2."""
    algorithm = KMeans(("x", "y"), 2, 1, max_rows=most, bounding="truncate", order="t")
    centres, radius = np.array([[0, 0], [STEPS, STEPS // 2]]), np.array([STEPS // 20, STEPS // 3])
    found = []
    for data in (places(entries), without(places(entries), "who", gone)):
        points = bounded_points(data, declared_axes(data, algorithm), algorithm, default(1))
        nearest, _ = nearest_centres(points, centres)
        offsets = np.clip(points - centres[nearest], -radius[nearest, None], radius[nearest, None])
        found.append(sizes_and_sums(offsets, nearest, 2)[1] / radius[:, None])
    change = np.abs(found[0] - found[1])
    assert change.sum() <= 2 * most + 1e-9
    assert (change**2).sum() <= 2 * most**2 + 1e-9


@given(st.lists(st.tuples(st.integers(0, STEPS), st.integers(0, STEPS)), min_size=1, max_size=30), st.integers(1, 4))
def test_points_go_to_the_nearest_centre(entries: list[tuple[int, int]], k: int) -> None:
    points, centres = np.array(entries), np.array(entries * k)[:k]
    nearest, squared = nearest_centres(points, centres)
    table = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    assert np.array_equal(squared, table.min(axis=1))
    assert np.array_equal(nearest, table.argmin(axis=1))
    sizes, sums = sizes_and_sums(points, nearest, k)
    assert sizes.sum() == len(points)
    assert np.array_equal(sums.sum(axis=0), points.sum(axis=0))


@pytest.mark.parametrize(("columns", "clusters"), [(2, 5), (5, 4)])
def test_the_grid_is_far_closer_to_ordinary_k_means_than_noisy_iterations(columns: int, clusters: int) -> None:
    """10,000 points at ε = 1 and three seeds: on average within 10 % of the baseline, where noisy iterations lose half."""
    grid, lloyd = [], []
    for seed in range(3):
        data = mixture(10_000, columns, clusters, seed)
        names = [f"x{place}" for place in range(columns)]
        baseline = kmeans_baseline(data, names, clusters, restarts=3).cost
        grid.append(
            clustering_cost(data, GridKMeans(names, clusters, epsilon=1, max_rows=1).run(data, randomness=default(seed)).result)
            / baseline
        )
        lloyd.append(
            clustering_cost(data, KMeans(names, clusters, 1, max_rows=1).run(data, randomness=default(seed)).result) / baseline
        )
    assert np.mean(grid) < 1.1
    assert np.mean(lloyd) > 1.5
    assert min(grid) > 0.99


def test_the_baseline_is_ordinary_k_means() -> None:
    from sklearn.cluster import KMeans as Ordinary

    data = mixture(2_000, 2, 4, 1)
    points = np.column_stack([data.table().column(name).to_numpy() for name in ("x0", "x1")])
    assert kmeans_baseline(data, ("x0", "x1"), 4).cost == pytest.approx(
        Ordinary(4, n_init=10, random_state=0).fit(points).inertia_, rel=1e-4
    )


def test_with_almost_no_noise_the_centres_are_the_means() -> None:
    data = microdata({"x": [1.0, 2.0, 3.0, 90.0, 92.0] * 200}, {"x": {"type": "number", "bounds": [0, 100]}})
    for algorithm in (
        KMeans(("x",), 2, 10_000, start=[[0], [100]], max_rows=1),
        GridKMeans(("x",), 2, epsilon=10_000, max_rows=1),
        GridKMeans(("x",), 2, rho=10**7),
    ):
        released = algorithm.run(data, randomness=default(1)).result.sort_by("x").to_pylist()
        assert [row["x"] for row in released] == pytest.approx([2, 91], abs=0.2)
        assert [row["size"] for row in released] == pytest.approx([600, 400], abs=2)


def test_units_are_bounded() -> None:
    """One person with 10,000 rows moves nothing: with rows = 1 it counts once."""
    data = microdata(
        {"who": ["whale"] * 10_000 + [f"p{i}" for i in range(1_000)], "x": [100.0] * 10_000 + [10.0] * 1_000},
        {"who": {"role": "unit", "type": "string"}, "x": {"type": "number", "bounds": [0, 100]}},
    )
    released = KMeans(("x",), 1, 100, iterations=1, max_rows=1).run(data, randomness=default(1)).result.to_pylist()[0]
    assert released["x"] == pytest.approx(10.1, abs=0.5)
    assert released["size"] == pytest.approx(1_001, abs=5)


@pytest.mark.parametrize(
    "algorithm",
    [
        KMeans(("x0", "x1"), 3, 1, max_rows=1),
        GridKMeans(("x0", "x1"), 3, epsilon=1, max_rows=1),
        GridKMeans(("x0", "x1"), 3, rho="0.1", expected_rows=500),
    ],
)
def test_a_seed_reproduces_and_marks_the_outcome(algorithm: KMeans | GridKMeans) -> None:
    data = mixture(500, 2, 3, 2)
    first, again = (algorithm.run(data, randomness=default(4)) for _ in range(2))
    assert first.result.equals(again.result)
    assert first.details["private"] is False
    assert algorithm.run(data).details["private"] is True
    assert first.result.column_names == ["x0", "x1", "size"]
    assert first.result.num_rows == 3


def test_losses() -> None:
    assert KMeans(("x",), 2, "0.1", max_rows=1).loss() == PureDP("0.1")
    assert GridKMeans(("x",), 2, epsilon="0.1", max_rows=1).loss() == PureDP("0.1")
    assert GridKMeans(("x",), 2, rho="0.1", max_rows=1).loss() == ConcentratedDP("0.1")
    outcome = KMeans(("x",), 1, 1, order="t", bounding="truncate", max_rows=1).run(
        places([("a", 1, 0.5, 1.0)]), randomness=default(1)
    )
    assert outcome.claimed == (PureDP(1, unit="who"),)


@pytest.mark.parametrize(
    "wrong",
    [
        {"columns": ()},
        {"columns": ("x", "x")},
        {"columns": ("size",)},
        {"k": 0},
        {"k": True},
        {"epsilon": 0},
        {"iterations": 0},
        {"start": [[1.0]]},
        {"start": [[1.0, 2.0], [1.0, 2.0]]},
        {"start": [[float("nan")], [1.0]]},
        {"max_rows": 0},
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        KMeans(**{"columns": ("x",), "k": 2, "epsilon": 1, **wrong})  # type: ignore[arg-type]


def test_a_grid_of_too_many_columns_is_refused() -> None:
    with pytest.raises(ParameterError, match="KMeans"):
        GridKMeans([f"x{i}" for i in range(17)], 2, epsilon=1, max_rows=1)


def test_undeclared_bounds_are_refused_together() -> None:
    data = microdata(
        {"x": [1.0], "y": ["a"], "z": [1.0]},
        {"x": {"type": "number"}, "y": {"type": "string"}, "z": {"type": "number", "bounds": [1, 1]}},
    )
    for algorithm in (KMeans(("x", "y", "z"), 1, 1, max_rows=2), GridKMeans(("x", "y", "z"), 1, epsilon=1, max_rows=2)):
        with pytest.raises(SchemaError, match="4 faults"):
            algorithm.run(data)


@pytest.mark.filterwarnings("error")
def test_a_start_beyond_the_bounds_is_at_the_bounds_and_much_noise_is_borne() -> None:
    from tests.conformance.test_large_numbers import declared

    far = KMeans(("age",), 2, 10**6, start=[[-1e308], [1e308]], iterations=1, max_rows=1).run(declared(), randomness=default(1))
    near = KMeans(("age",), 2, 10**6, start=[[18], [90]], iterations=1, max_rows=1).run(declared(), randomness=default(1))
    assert far.result.equals(near.result)
    noisy = KMeans(("age",), 2, "1e-6", iterations=1000, max_rows=10**6).run(declared(), randomness=default(1)).result
    assert all(18 <= age <= 90 for age in noisy["age"].to_pylist())


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        (lambda: KMeans(("x",), 2, 1, iterations=1001), "iterations must be a whole number from 1 to 1,000"),
        (lambda: KMeans(("x",), 10_001, 1), "k must be a whole number from 1 to 10,000"),
        (lambda: GridKMeans(("x",), 10_001, epsilon=1), "k must be a whole number from 1 to 10,000"),
    ],
)
def test_more_than_anybody_waits_for_is_refused(algorithm: Callable[[], object], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        algorithm()
