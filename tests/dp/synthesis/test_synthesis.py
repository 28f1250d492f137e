"""Mst and Aim: what they promise, what they refuse, and what they return."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.declared import build
from sfumato.core.errors import Cancelled, ParameterError, SchemaError
from sfumato.core.guarantees.loss import ConcentratedDP
from sfumato.core.randomness import default
from sfumato.dp import Aim, Mst, quality
from sfumato.dp.synthesis import base
from sfumato.dp.synthesis.budget import Purse
from tests.dp.synthesis.people import SCHEMA, people, small

METHODS = pytest.mark.parametrize("method", [Mst, Aim])


@METHODS
def test_a_table_of_the_schemas_types_leaves_with_its_claim(method):
    outcome = method(rho="0.2").run(people(), randomness=default(1))
    table = outcome.result
    assert table.column_names == ["city", "grade", "age", "income", "member", "floor"]
    assert abs(table.num_rows - 2000) < 60
    assert set(table.column("city").to_pylist()) <= set(SCHEMA["columns"]["city"]["domain"])
    ages = table.column("age").to_pylist()
    assert all(isinstance(age, int) and 0 <= age <= 99 for age in ages)
    assert 0.03 < table.column("income").null_count / table.num_rows < 0.2
    assert outcome.claimed == (ConcentratedDP("0.2"),)
    assert outcome.details["private"] is False and "demonstration" in outcome.details["randomness"]
    assert outcome.method["name"] == method.__name__
    assert {"columns", "deviation"} == set(outcome.details["measured"][0])
    assert "quality" in outcome.details["owner"]


@METHODS
def test_the_synthetic_table_is_closer_than_independent_columns(method):
    data = people(5000)
    report = method(rho=1).run(data, randomness=default(2)).details["owner"]["quality"]
    shuffled = data.table()
    random = np.random.default_rng(1)
    for place, name in enumerate(shuffled.column_names):
        order = pa.array(random.permutation(shuffled.num_rows))
        shuffled = shuffled.set_column(place, name, shuffled.column(name).take(order))
    independent = quality(data, shuffled)
    assert report["distance"]["1"]["mean"] < 0.04
    assert report["distance"]["2"]["mean"] < 0.8 * independent["distance"]["2"]["mean"]
    assert report["distance"]["3"]["mean"] < 0.8 * independent["distance"]["3"]["mean"]


@METHODS
@pytest.mark.parametrize("rho", ["0.014973", "0.015", "1/3", "0.1", "1e-6", "25"])
def test_what_is_spent_never_exceeds_rho_by_a_rounding_unit(method, rho, monkeypatch):
    purses = []

    class Watched(Purse):
        def __init__(self, rho: Fraction) -> None:
            super().__init__(rho)
            purses.append(self)

    monkeypatch.setattr(base, "Purse", Watched)
    method(rho=rho, rows=10, report=False).run(people(200), randomness=default(3))
    (purse,) = purses
    assert Fraction(95, 100) * Fraction(rho) < purse.spent <= Fraction(rho)


@METHODS
def test_a_seed_reproduces_the_table_and_another_does_not(method):
    data = people(300)
    first, again, other = (method(rho=0.5).run(data, randomness=default(seed)).result for seed in (7, 7, 8))
    assert first.equals(again)
    assert not first.equals(other)


@METHODS
def test_without_a_seed_the_operating_system_is_asked(method):
    outcome = method(rho=0.5, rows=5).run(small(["red"] * 9, [True] * 9))
    assert outcome.details["private"] is True
    assert outcome.result.num_rows == 5


@METHODS
def test_the_number_of_records_drawn_does_not_tell_the_exact_number(method):
    counts = {
        method(rho=0.02, report=False).run(small(["red"] * 500, [True] * 500), randomness=default(s)).result.num_rows
        for s in range(6)
    }
    assert len(counts) > 1
    assert all(350 < count < 650 for count in counts)


@METHODS
@pytest.mark.parametrize(
    "data",
    [
        small([], []),
        small(["green"], [False]),
        small([None] * 20, [None] * 20),
        small(["purple"] * 20, [True] * 20),
        small(["red"] * 20, [True] * 20),
    ],
    ids=["empty", "one row", "all missing", "all outside the domain", "constant"],
)
def test_degenerate_data_give_a_table_and_no_error(method, data):
    outcome = method(rho=1, rows=12).run(data, randomness=default(4))
    assert outcome.result.num_rows == 12
    assert outcome.result.column("colour").null_count == 0


@METHODS
def test_what_is_drawn_without_rows_given_is_never_negative(method):
    for seed in range(5):
        assert method(rho=0.001, report=False).run(small([], []), randomness=default(seed)).result.num_rows >= 0


@METHODS
def test_missing_values_are_a_category_where_declared(method):
    data = small(["red"] * 300 + [None] * 300, [True, False] * 300)
    kept = method(rho=2, missing=("colour",)).run(data, randomness=default(5))
    assert 200 < kept.result.column("colour").null_count < 400
    dropped = method(rho=2).run(data, randomness=default(5))
    assert abs(dropped.result.num_rows - 300) < 40
    assert dropped.details["owner"]["quality"]["records"]["not_counted"] == 300


@METHODS
def test_one_column_and_two_columns_are_enough(method):
    one = sf.read(pa.table({"a": ["x"] * 400 + ["y"] * 100}), {"dataset": "one", "columns": {"a": {"domain": ["x", "y"]}}})
    counts = Counter(method(rho=1, rows=500).run(one, randomness=default(6)).result.column("a").to_pylist())
    assert abs(counts["x"] - 400) < 20
    pair = small(["red"] * 300 + ["blue"] * 300, [True] * 300 + [False] * 300)
    table = method(rho=2).run(pair, randomness=default(6)).result
    cells = Counter(zip(table.column("colour").to_pylist(), table.column("flag").to_pylist(), strict=True))
    assert cells["red", True] > 250 and cells["blue", False] > 250 and cells["red", False] < 40


def test_max_cells_keeps_pairs_out_of_the_tree():
    apart = Mst(rho=5, max_cells=5).run(small(["red", "blue"] * 50, [True, False] * 50), randomness=default(9))
    assert [entry["columns"] for entry in apart.details["measured"]] == [["colour"], ["flag"]]


def test_aim_never_measures_a_marginal_above_its_cells():
    outcome = Aim(rho=1, marginal_cells=20).run(people(500), randomness=default(9))
    sizes = {"city": 4, "grade": 3, "age": 32, "income": 33, "member": 2, "floor": 3}
    for entry in outcome.details["measured"]:
        if len(entry["columns"]) > 1:
            assert np.prod([sizes[name] for name in entry["columns"]]) <= 20


def visits(rows_of_one: int):
    """Forty people with two visits each, and one with many."""
    users = [f"u{place // 2}" for place in range(80)] + ["heavy"] * rows_of_one + [None] * 3
    schema = {"dataset": "visits", "columns": {"user": {"role": "unit"}, "kind": {"domain": ["in", "out"]}}}
    kinds = ["in"] * 80 + ["out"] * rows_of_one + ["out"] * 3
    return sf.read(pa.table({"user": users, "kind": kinds}), schema)


@METHODS
@pytest.mark.parametrize("bounding", ["sample", "truncate"])
def test_no_unit_counts_for_more_than_its_bound(method, bounding):
    outcome = method(rho=500, max_rows=2, bounding=bounding, rows=82).run(visits(2000), randomness=default(10))
    assert outcome.claimed == (ConcentratedDP(500, unit="user"),)
    assert outcome.result.column_names == ["kind"]
    counts = Counter(outcome.result.column("kind").to_pylist())
    assert counts["out"] <= 6  # two of the heavy user, and little noise; records without a unit do not count


@METHODS
def test_more_rows_per_unit_and_replacing_need_more_noise(method):
    schema = visits(1).schema
    first = method(rho=1, max_rows=1).error(schema).deviation
    assert method(rho=1, max_rows=3).error(schema).deviation == pytest.approx(3 * first, rel=1e-3)
    assert method(rho=1, max_rows=1, neighbours="replace").error(schema).deviation == pytest.approx(2**0.5 * first, rel=1e-3)


@METHODS
def test_the_stated_error_is_the_noise_of_the_first_measurements(method):
    outcome = method(rho=0.3).run(people(100), randomness=default(1))
    assert outcome.details["measured"][0]["deviation"] == method(rho=0.3).error(people(1).schema).deviation


@METHODS
def test_a_unit_column_needs_a_bound_and_a_bound_needs_a_unit_column(method):
    with pytest.raises(ParameterError, match="--set max_rows="):
        method(rho=1).run(visits(2))
    with pytest.raises(ParameterError, match="unit column"):
        method(rho=1, max_rows=2).run(people(3))


@METHODS
def test_epsilon_and_delta_are_converted_to_a_rho_that_implies_them(method):
    from sfumato.dp import epsilon_for

    loss = method(epsilon=1, delta="1e-9").loss()
    assert epsilon_for(loss.rho, "1e-9") <= 1
    assert 0.014 < loss.rho < 0.02


@METHODS
@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"rho": 0},
        {"rho": -1},
        {"rho": 1, "epsilon": 1, "delta": 1e-6},
        {"epsilon": 1},
        {"rho": 1, "delta": 1e-6},
        {"rho": float("nan")},
        {"rho": 1, "bins": 0},
        {"rho": 1, "rows": -1},
        {"rho": 1, "max_rows": 0},
        {"rho": 1, "max_cells": 0},
        {"rho": 1, "missing": "city"},
        {"rho": 1, "bounding": "first"},
        {"rho": 1, "neighbours": "friends"},
    ],
)
def test_parameters_out_of_range_are_refused(method, wrong):
    with pytest.raises(ParameterError):
        method(**wrong)


@METHODS
def test_parameters_round_trip(method):
    made = method(rho=Fraction(1, 3), missing=("city",), max_rows=2)
    again = build(method, made.parameters())
    assert again.budget == made.budget
    assert again.parameters() == made.parameters()


@METHODS
def test_undeclared_domains_are_refused_before_a_row_is_read(method, monkeypatch):
    data = people(10)
    learnt = data.schema.columns["city"].model_copy(update={"source": "data"})
    data = data.with_schema(data.schema.replace(columns={**data.schema.columns, "city": learnt}))
    monkeypatch.setattr(type(data.relation), "batches", lambda *_, **__: pytest.fail("rows were read"))
    with pytest.raises(SchemaError, match="learnt from the data"):
        method(rho=1).run(data)


@METHODS
def test_refusals_say_the_same_for_neighbouring_data(method):
    said = []
    for rows in (10, 11):
        data = people(rows)
        data = data.with_schema(data.schema.replace(columns={**data.schema.columns, "city": sf.Column(role="quasi")}))
        with pytest.raises(SchemaError) as caught:
            method(rho=1).run(data)
        said.append(str(caught.value))
    assert said[0] == said[1]


@METHODS
def test_progress_is_told_and_may_cancel(method):
    seen = []
    method(rho=1, rows=5).run(people(50), randomness=default(1), progress=lambda *told: seen.append(told))
    assert len({phase for phase, _, _ in seen}) >= 3
    assert all(0 <= done <= total for _, done, total in seen)

    def cancel(phase: str, done: int, total: int) -> None:
        if phase.startswith(("choosing", "measuring")):
            raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        method(rho=1).run(people(50), randomness=default(1), progress=cancel)


@METHODS
def test_what_was_counted_without_noise_stays_with_the_owner(method):
    outcome = method(rho="1e-6", rows=3).run(small(["purple"] * 7654, [True] * 7654), randomness=default(2))
    public = {key: value for key, value in outcome.details.items() if key != "owner"}
    assert set(public) == {"argument", "randomness", "private", "dataset", "ledger_entry", "rows", "spent", "measured"}
    assert "7654" not in repr(public)
    assert "purple" not in repr(outcome) + repr(public)
    assert method(rho=1, rows=3, report=False).run(small(["red"], [True])).details["owner"] == {}
    assert outcome.details["owner"]["quality"]["records"]["not_counted"] == 7654


@METHODS
def test_records_are_drawn_from_the_model_not_copied(method):
    """With a million cells and 40 records that are all different, what comes out is not what went in."""
    values = [str(place) for place in range(1000)]
    schema = {"dataset": "d", "columns": {name: {"type": "string", "domain": values} for name in "ab"}}
    random = np.random.default_rng(1)
    first, second = random.permutation(1000)[:40].astype(str), random.permutation(1000)[:40].astype(str)
    data = sf.read(pa.table({"a": pa.array(first), "b": pa.array(second)}), schema)
    report = method(rho=0.1, rows=40).run(data, randomness=default(3)).details["owner"]["quality"]
    assert report["matches"]["equal_to_a_unique_original"] <= 1


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("seed", [1, 2])
def test_adult_at_rho_0_015_is_within_the_bar(data_dir, seed):
    import csv

    folder = data_dir / "adult"
    names = (folder / "adult.csv").open(encoding="utf-8-sig").readline().strip().split(";")
    columns = {}
    for name in names:
        with (folder / f"adult_hierarchy_{name}.csv").open(encoding="utf-8-sig", newline="") as file:
            values = [line[0] for line in csv.reader(file, delimiter=";")]
            columns[name] = {"role": "quasi", "type": "string", "domain": values}
    data = sf.read(folder / "adult.csv", {"dataset": "adult", "columns": columns})
    report = Aim(rho="0.015").run(data, randomness=default(seed)).details["owner"]["quality"]["distance"]
    assert report["3"]["marginals"] == 75
    assert report["3"]["mean"] <= 0.09
    assert report["2"]["mean"] <= 0.05
    assert report["1"]["mean"] <= 0.015
