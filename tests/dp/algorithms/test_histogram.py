"""Private histograms: declared cells, bounded units, noise on every cell."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import ParameterError, SchemaError
from sfumato.core.guarantees.loss import ConcentratedDP, PureDP
from sfumato.core.randomness import default
from sfumato.dp import PrivateHistogram
from tests.dp.algorithms.tables import microdata, without

VISITS = {
    "person": {"role": "unit", "type": "string"},
    "day": {"type": "string", "domain": ["mo", "tu", "we"]},
    "hour": {"type": "integer", "bounds": [0, 5]},
    "cost": {"type": "number", "bounds": [0, 10]},
}
KINDS = {"person": pa.string(), "day": pa.string(), "hour": pa.int64(), "cost": pa.float64()}


def visits(rows: list[tuple[str | None, str | None, int | None, float | None]]) -> sf.Microdata:
    return microdata({name: [row[i] for row in rows] for i, name in enumerate(VISITS)}, VISITS, KINDS)


def test_counts_of_categories_bins_and_whole_numbers() -> None:
    data = visits(
        [
            ("a", "mo", 0, 0.0),
            ("b", "mo", 5, 9.99),
            ("c", "we", 99, 10.0),
            ("d", "su", 1, 5.0),
            ("e", None, 1, 5.0),
            (None, "mo", 1, 5.0),
        ]
    )
    assert PrivateHistogram("day", epsilon=1, max_rows=1).counts(data).tolist() == [
        2,
        0,
        1,
    ]  # unknown, missing and unowned values are left out
    assert PrivateHistogram("hour", epsilon=1, max_rows=1).counts(data).tolist() == [1, 2, 0, 0, 0, 2]  # 99 is clamped to 5
    assert PrivateHistogram("cost", epsilon=1, bins={"cost": 2}, max_rows=1).counts(data).tolist() == [
        1,
        4,
    ]  # half open, the last closed
    assert PrivateHistogram("cost", epsilon=1, bins={"cost": [4, 5, 6]}, max_rows=1).counts(data).tolist() == [
        1,
        4,
    ]  # stated edges, the rest clamped
    both = PrivateHistogram(("day", "cost"), epsilon=1, bins={"cost": 2}, max_rows=1)
    assert both.counts(data).tolist() == [1, 1, 0, 0, 0, 1]


def test_the_release_names_every_cell() -> None:
    data = visits([("a", "mo", 0, 0.0), ("b", "we", 5, 9.99)])
    released = (
        PrivateHistogram(("day", "cost", "hour"), epsilon=1, bins={"cost": 2}, max_rows=1).run(data, randomness=default(1)).result
    )
    assert released.column_names == ["day", "cost_from", "cost_to", "hour", "count"]
    assert released.num_rows == 3 * 2 * 6
    assert released.slice(0, 1).to_pylist()[0].items() >= {"day": "mo", "cost_from": 0.0, "cost_to": 5.0, "hour": 0}.items()
    assert released.column("count").type == pa.int64()


entries = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["mo", "tu", "we", "su", None]),
        st.one_of(st.none(), st.integers(-3, 9)),
        st.one_of(st.none(), st.floats(-5, 20)),
    ),
    max_size=25,
)


@given(entries, st.integers(1, 4), st.sampled_from(["rows", "units"]), st.sampled_from("abc"))
def test_one_unit_changes_the_counts_by_at_most_the_stated_sensitivity(rows: list, most: int, count: str, gone: str) -> None:
    histogram = PrivateHistogram(
        ("day", "cost"), epsilon=1, bins={"cost": 3}, max_rows=most, count=count, bounding="truncate", order="hour"
    )  # type: ignore[arg-type]
    data = visits(rows)
    change = histogram.counts(data) - histogram.counts(without(data, "person", gone))
    l1, l2_squared = histogram.sensitivity()
    assert (change >= 0).all()
    assert change.sum() <= l1
    assert (change**2).sum() <= l2_squared


@given(entries, st.integers(1, 4), st.integers(0, 2**32))
def test_a_sample_keeps_at_most_the_allowed_rows_of_each_unit(rows: list, most: int, seed: int) -> None:
    histogram = PrivateHistogram(("day", "hour"), epsilon=1, max_rows=most)
    usable = Counter(row[0] for row in rows if row[1] in ("mo", "tu", "we") and row[2] is not None)
    assert histogram.counts(visits(rows), default(seed)).sum() == sum(min(count, most) for count in usable.values())


def test_the_sensitivity_of_a_bar_chart_of_visits() -> None:
    """At most 100 visits per person: 100 where a person comes or goes, 200 where it is replaced."""
    chart = PrivateHistogram("day", epsilon=1, max_rows=100)
    assert chart.sensitivity() == (100, 10_000)
    assert PrivateHistogram("day", epsilon=1, max_rows=100, neighbours="replace").sensitivity() == (200, 20_000)
    assert PrivateHistogram("day", epsilon=1, max_rows=100, count="units").sensitivity() == (100, 100)
    assert PrivateHistogram("day", epsilon=1, max_rows=1).sensitivity() == (1, 1)


@pytest.mark.parametrize(("paid", "loss"), [({"epsilon": "0.5"}, PureDP("0.5")), ({"rho": "0.1"}, ConcentratedDP("0.1"))])
def test_noise_is_as_large_as_stated_on_empty_cells_too(paid: dict[str, str], loss: object) -> None:
    """20,000 cells: the mean square leaves [0.9, 1.1] of its expectation with probability below 10⁻⁶."""
    data = microdata({"x": [0.5]}, {"x": {"type": "number", "bounds": [0, 1]}})
    histogram = PrivateHistogram("x", bins={"x": 20_000}, **paid)
    counts = histogram.run(data, randomness=default("cells")).result.column("count").to_numpy()
    stated = histogram.error().deviation
    assert 0.9 < np.mean(counts.astype(float) ** 2) / stated**2 < 1.1
    assert abs(counts.mean()) < 6 * stated / np.sqrt(20_000)
    assert histogram.loss() == loss


def test_the_outcome_claims_the_unit_and_hides_nothing() -> None:
    outcome = PrivateHistogram("day", epsilon="0.5", max_rows=2).run(visits([("a", "mo", 1, 1.0)]), randomness=default(1))
    assert outcome.claimed == (PureDP("0.5", unit="person"),)
    assert outcome.details["private"] is False
    assert outcome.details["owner"] == {}
    assert outcome.method["name"] == "PrivateHistogram"
    assert PrivateHistogram("day", epsilon=1, max_rows=1).run(visits([]), randomness=None).details["private"] is True


def test_negative_counts_are_raised_only_when_asked() -> None:
    data = microdata({"x": [0.5]}, {"x": {"type": "number", "bounds": [0, 1]}})
    plain = (
        PrivateHistogram("x", epsilon=1, bins={"x": 200}, max_rows=1)
        .run(data, randomness=default(2))
        .result.column("count")
        .to_numpy()
    )
    raised = (
        PrivateHistogram("x", epsilon=1, bins={"x": 200}, non_negative=True, max_rows=1)
        .run(data, randomness=default(2))
        .result.column("count")
        .to_numpy()
    )
    assert plain.min() < 0
    assert np.array_equal(raised, np.maximum(plain, 0))


def test_engines_agree_before_noise(tmp_path: Path) -> None:
    rows = [("ab"[i % 2], ["mo", "tu", "we"][i % 3], i % 7, float(i % 11)) for i in range(200)]
    memory = visits(rows)
    pq.write_table(memory.table(), tmp_path / "visits.parquet")
    stored = sf.read(tmp_path / "visits.parquet", {"columns": VISITS}, engine="duckdb")
    histogram = PrivateHistogram(("day", "cost"), epsilon=1, bins={"cost": 4}, max_rows=50, bounding="truncate", order="hour")
    assert stored.relation.engine == "duckdb"
    assert np.array_equal(histogram.counts(memory), histogram.counts(stored))


class _Unread:
    """A relation that must not be read."""

    engine = "memory"

    def __init__(self, inner: object) -> None:
        self.schema = inner.schema  # type: ignore[attr-defined]

    def batches(self, columns: object = None) -> object:
        raise AssertionError("rows were read")


def test_all_faults_are_named_before_a_row_is_read() -> None:
    from dataclasses import replace

    data = microdata(
        {"age": [1], "town": ["x"], "income": [1.0], "name": ["y"]},
        {
            "age": {"type": "integer", "bounds": [0, 9], "source": "data"},
            "town": {"type": "string"},
            "income": {"type": "number", "bounds": [0, 1]},
            "name": {"type": "string", "domain": ["y"]},
        },
    )
    histogram = PrivateHistogram(("age", "town", "income", "name", "nowhere"), epsilon=1, max_rows=3, bins={"name": 4})
    with pytest.raises(SchemaError) as refused:
        histogram.run(replace(data, relation=_Unread(data.relation)))  # type: ignore[arg-type]
    for part in (
        "6 faults",
        "rows = 3",
        "learnt from the data",
        "domain of column 'town'",
        "bins",
        "'name' does not hold numbers",
        "nowhere",
    ):
        assert part in str(refused.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"columns": ()},
        {"columns": ("day", "day")},
        {"epsilon": None},
        {"rho": 1},
        {"epsilon": 0},
        {"epsilon": "1e-9"},
        {"max_rows": 0},
        {"bins": {"other": 3}},
        {"bins": {"day": 0}},
        {"bins": {"day": [1, 1]}},
        {"bins": {"day": "ten"}},
        {"bins": {"day": [0, float("inf")]}},
        {"count": "people"},
        {"bounding": "first"},
        {"neighbours": "anything"},
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        PrivateHistogram(**{"columns": ("day",), "epsilon": 1, **wrong})  # type: ignore[arg-type]


def test_too_many_cells_are_refused() -> None:
    data = microdata({"x": [0.5], "y": [0.5]}, {name: {"type": "number", "bounds": [0, 1]} for name in "xy"})
    with pytest.raises(SchemaError, match="too many"):
        PrivateHistogram(("x", "y"), epsilon=1, bins={"x": 10_000, "y": 10_000}, max_rows=1).run(data)


@pytest.mark.data
def test_check_ins_of_a_city_on_a_map(data_dir: Path) -> None:
    """10,991 check-ins in Paris on a 16 × 12 grid at ε = 1: total-variation distance to the true map below 3 %."""
    declared = {"lat": {"type": "number", "bounds": [48.82, 48.90]}, "lon": {"type": "number", "bounds": [2.24, 2.42]}}
    places = sf.read(data_dir / "gowalla" / "gowalla_paris_8x6km.csv", {"columns": declared})
    grid = PrivateHistogram(("lon", "lat"), epsilon=1, bins={"lon": 16, "lat": 12}, non_negative=True, max_rows=1)
    truth = grid.counts(places)
    noisy = grid.run(places, randomness=default("paris")).result.column("count").to_numpy()
    assert truth.sum() == len(places)
    assert np.abs(noisy / noisy.sum() - truth / truth.sum()).sum() / 2 < 0.03
