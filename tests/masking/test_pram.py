"""PRAM: rows of a matrix, frequencies, ε, and everything that is no transition matrix."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.declared import build, parameters
from sfumato.core.errors import InputError, ParameterError, Unsupported
from sfumato.data.schema import Column, Schema
from sfumato.masking.base import Mask
from sfumato.masking.pram.transition_matrix import invariant, occurring, staying, uniform

LABELS = ["a", "b", "c"]
TABLE = pa.table({"x": ["a", "b", "b", "c", None, "c", "c"] * 40})


def values(mask: sf.Pram, table: pa.Table = TABLE, seed: int = 1) -> list[str | None]:
    return mask.apply(table, seed=seed).result.table["x"].to_pylist()


def chi_square(observed: np.ndarray, expected: np.ndarray) -> float:
    return float(np.sum((observed - expected) ** 2 / expected))


@pytest.mark.golden("G-MSK-05")
def test_the_identity_changes_nothing() -> None:
    mask = sf.Pram(matrix={"x": np.eye(3).tolist()})
    outcome = mask.apply(TABLE, seed=1)
    assert outcome.result.table["x"].to_pylist() == TABLE["x"].to_pylist()
    assert outcome.result.transparency["epsilon"] == "infinite"
    assert outcome.details["changed"] == {"x": 0} and outcome.details["unchanged"] == {"x": 1.0}
    assert outcome.result.transparency["notice"] == "column 'x' is published as it is: its matrix changes nothing"


@pytest.mark.golden("G-MSK-05")
@pytest.mark.parametrize("target", range(3))
def test_rows_that_are_one_unit_vector_suppress_completely(target: int) -> None:
    mask = sf.Pram(matrix={"x": [[float(column == target) for column in range(3)]] * 3})
    outcome = mask.apply(TABLE, seed=1)
    assert {value for value in outcome.result.table["x"].to_pylist() if value is not None} == {LABELS[target]}
    assert outcome.result.transparency["epsilon"] == 0


def test_missing_values_stay_missing() -> None:
    for mask in (
        sf.Pram(stay=0.1, columns=("x",)),
        sf.Pram(suppress=1.0, columns=("x",)),
        sf.Pram(stay=0.1, invariant=True, columns=("x",)),
    ):
        assert [value is None for value in values(mask)] == [value is None for value in TABLE["x"].to_pylist()]


def test_rows_are_reached_with_their_probabilities() -> None:
    """Chi-square of 30,000 draws per row below 35.9 (at most three degrees of freedom, false alarm below 10⁻⁷)."""
    rows = {"a": {"a": 0.5, "b": 0.2, "new": 0.3}, "b": {"a": 0.1, "b": 0.6, "new": 0.3}}
    table = pa.table({"x": ["a", "b"] * 30_000})
    masked = np.array(values(sf.Pram(matrix={"x": rows}), table))
    for position, label in enumerate("ab"):
        drawn = masked[position::2]
        observed = np.array([np.count_nonzero(drawn == output) for output in ("a", "b", "new")])
        assert chi_square(observed, 30_000 * np.array(list(rows[label].values()))) < 35.9


@pytest.mark.parametrize("count", [2, 5, 300])
def test_a_category_stays_with_the_stated_probability_and_others_are_alike(count: int) -> None:
    table = pa.table({"x": [f"v{i:03}" for i in range(count)] * (60_000 // count)})
    masked = sf.Pram(stay=0.7, columns=("x",)).apply(table, seed=2).result
    same = np.array(masked.table["x"].to_pylist()) == np.array(table["x"].to_pylist())
    assert abs(same.mean() - 0.7) < 5.5 * math.sqrt(0.21 / same.size)  # false alarm below 10⁻⁷
    told = masked.transparency["transitions"]["x"]
    assert told["epsilon"] == pytest.approx(math.log(0.7 * (count - 1) / 0.3))
    assert ("matrix" in told) == (count <= 256)


def test_randomised_response_at_epsilon_provides_that_epsilon() -> None:
    mask = sf.Pram(epsilon=1.5, columns=("x",))
    told = mask.apply(TABLE, seed=1).result.transparency
    assert told["transitions"]["x"]["epsilon"] == told["epsilon"] == pytest.approx(1.5, abs=1e-12)
    assert told["transitions"]["x"]["matrix"][0][0] == pytest.approx(math.exp(1.5) / (math.exp(1.5) + 2))
    assert staying(10.0, 7) == pytest.approx(0.9997277, abs=5e-8)


def test_epsilons_of_columns_add_up() -> None:
    table = pa.table({"x": LABELS * 10, "y": ["u", "v", "w"] * 10})
    told = sf.Pram(epsilon=0.5, columns=("x", "y")).apply(table, seed=1).result.transparency
    assert told["epsilon"] == pytest.approx(1.0)
    flipped = {"y": [[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.1, 0.1, 0.8]]}
    both = sf.Pram(epsilon=0.5, matrix=flipped, columns=("x", "y")).apply(table, seed=1).result.transparency
    assert both["transitions"]["y"]["epsilon"] == both["epsilon"] == "infinite"


WEIGHTS = st.lists(st.integers(1, 50), min_size=2, max_size=6)


@given(WEIGHTS, st.floats(0, 0.99), st.integers(0, 3))
def test_an_invariant_matrix_has_the_frequencies_as_its_fixed_point(weights: list[int], stay: float, absent: int) -> None:
    frequencies = np.array([*weights, *([0] * absent)], dtype=np.float64)
    frequencies /= frequencies.sum()
    matrix = invariant(uniform(stay, frequencies.size), frequencies)
    assert np.all(matrix >= 0)
    assert matrix.sum(axis=1) == pytest.approx(np.ones(frequencies.size))
    assert frequencies @ matrix == pytest.approx(frequencies, abs=1e-14)


def test_invariant_pram_keeps_frequencies_on_average() -> None:
    """The mean count of the rare category over 144 seeds lies within 5.5 standard errors of the true one."""
    table = pa.table({"x": ["a"] * 160 + ["b"] * 30 + ["c"] * 10})
    mask = sf.Pram(stay=0.5, invariant=True, columns=("x",))
    counts = np.array([values(mask, table, seed).count("c") for seed in range(144)])
    assert abs(counts.mean() - 10) < 5.5 * counts.std() / 12
    assert [kept.what for kept in mask.keeps()] == ["frequencies"]
    plain = np.array([values(sf.Pram(stay=0.5, columns=("x",)), table, seed).count("c") for seed in range(20)])
    assert plain.mean() > 40  # without it, rare categories grow


def test_suppression_is_one_more_category() -> None:
    outcome = sf.Pram(suppress=0.25, columns=("x",)).apply(TABLE, seed=1)
    masked = outcome.result.table["x"].to_pylist()
    changed = [new for old, new in zip(TABLE["x"].to_pylist(), masked, strict=True) if old != new]
    assert set(changed) == {"*"} and 20 < len(changed) < 100
    told = outcome.result.transparency["transitions"]["x"]
    assert told["outputs"] == [*LABELS, "*"]
    assert told["matrix"][1] == [0.0, 0.75, 0.0, 0.25]
    assert set(values(sf.Pram(suppress=1.0, columns=("x",)))) == {"*", None}


def test_a_declared_domain_is_used_and_said() -> None:
    schema = Schema(columns={"x": Column(role="quasi", domain=("c", "b", "a", "never seen"))})
    masked = sf.Pram(stay=0.4).apply(sf.read(TABLE, schema=schema), seed=1).result
    told = masked.transparency["transitions"]["x"]
    assert told["source"] == "declared" and told["labels"] == ["c", "b", "a", "never seen"]
    assert "never seen" in masked.table["x"].to_pylist()
    assert sf.Pram(stay=0.4, columns=("x",)).apply(TABLE, seed=1).result.transparency["transitions"]["x"]["source"] == "data"
    learnt = Schema(columns={"x": Column(role="quasi", domain=("a", "b", "c"), source="data")})
    assert (
        sf.Pram(stay=0.4).apply(sf.read(TABLE, schema=learnt), seed=1).result.transparency["transitions"]["x"]["source"] == "data"
    )


def test_a_constant_column_changes_within_its_declared_domain_only() -> None:
    table = pa.table({"x": ["a"] * 50})
    schema = Schema(columns={"x": Column(role="quasi", domain=("a", "b"))})
    assert set(values(sf.Pram(stay=0.5), sf.read(table, schema=schema))) == {"a", "b"}
    for data, mask in (
        (table, sf.Pram(stay=0.5, columns=("x",))),
        (sf.read(table, schema=schema), sf.Pram(stay=0.5, invariant=True)),
    ):
        with pytest.raises(ParameterError, match="one category only"):
            mask.apply(data, seed=1)


def test_joint_columns_change_together() -> None:
    table = pa.table({"x": ["a", "b", "b"] * 400, "y": ["u", "u", "v"] * 400})
    outcome = sf.Pram(stay=0.6, joint=True, columns=("x", "y")).apply(table, seed=1)
    before = list(zip(table["x"].to_pylist(), table["y"].to_pylist(), strict=True))
    after = list(zip(outcome.result.table["x"].to_pylist(), outcome.result.table["y"].to_pylist(), strict=True))
    assert set(after) == {("a", "u"), ("b", "u"), ("b", "v")}  # no combination that does not occur
    share = np.mean([one == two for one, two in zip(before, after, strict=True)])
    assert abs(share - 0.6) < 5.5 * math.sqrt(0.24 / len(after))
    assert outcome.result.transparency["epsilon"] == pytest.approx(math.log(0.6 / 0.2))
    domain = {"x": Column(role="quasi", domain=("a", "b")), "y": Column(role="quasi", domain=("u", "v"))}
    declared = sf.Pram(stay=0.2, joint=True).apply(sf.read(table, schema=Schema(columns=domain)), seed=1).result
    assert declared.transparency["transitions"]["x × y"]["source"] == "declared"
    assert ("a", "v") in set(zip(declared.table["x"].to_pylist(), declared.table["y"].to_pylist(), strict=True))
    kept = sf.Pram(stay=0.2, joint=True, invariant=True, columns=("x", "y")).apply(table, seed=1).result
    assert kept.table.num_rows == 1200


def test_ordered_and_boolean_columns_keep_their_type() -> None:
    schema = Schema(columns={"x": Column(role="quasi", order=("a", "b", "c"))})
    assert set(values(sf.Pram(stay=0.5), sf.read(TABLE, schema=schema))) == {"a", "b", "c", None}
    table = pa.table({"x": [True, False, None] * 30})
    masked = sf.Pram(stay=0.5, columns=("x",)).apply(table, seed=1).result.table
    assert masked["x"].type == pa.bool_()
    assert set(sf.Pram(suppress=0.5, columns=("x",)).apply(table, seed=1).result.table["x"].to_pylist()) >= {"*", None}


def test_what_is_published_is_plain_and_parameters_come_back() -> None:
    for mask in (
        sf.Pram(stay=0.5, invariant=True, columns=("x",)),
        sf.Pram(matrix={"x": {"a": {"a": 1.0}, "b": {"a": 0.5, "b": 0.5}, "c": {"c": 1.0}}}),
        sf.Pram(epsilon=0.3, suppress=0.1, columns=("x",)),
    ):
        json.dumps(dict(mask.apply(TABLE, seed=1).result.transparency))
        assert build(sf.Pram, json.loads(json.dumps(parameters(mask)))) == mask


def test_strata_may_have_different_invariant_matrices() -> None:
    table = pa.table({"x": ["a", "b", "b", "b"] * 50, "group": ["s"] * 100 + ["t"] * 100})
    table = table.set_column(0, "x", pa.array(["a", "b"] * 50 + ["a", "b", "b", "b"] * 25))
    told = sf.Pram(stay=0.5, invariant=True, columns=("x",), strata=("group",)).apply(table, seed=1).result.transparency
    assert len(told["transitions"]["by stratum"]) == 2


HALF = [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "nothing would change"),
        ({"stay": 0.5, "epsilon": 1.0}, "not both"),
        ({"stay": 1.0}, "below 1"),
        ({"stay": -0.1}, "at least 0"),
        ({"stay": float("nan")}, "stay must be a number of at least 0 and below 1"),
        ({"epsilon": -1.0}, "at least 0"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"suppress": 1.5}, "suppress must be a number from 0 to 1"),
        ({"suppress": 0.2, "invariant": True}, "leave out suppress"),
        ({"invariant": True, "suppress": 0.0}, "nothing would change"),
        ({"matrix": {"x": [[0.5, 0.5], [0.5, 0.4]]}}, "row 2 of the matrix of column 'x' adds up to 0.9"),
        ({"matrix": {"x": [[1.5, -0.5], [0.5, 0.5]]}}, "row 1 of the matrix of column 'x' has a negative entry"),
        ({"matrix": {"x": [[math.nan, 0.5], [0.5, 0.5]]}}, "not a finite number"),
        ({"matrix": {"x": [[1.0], [1.0]]}}, "as many probabilities"),
        ({"matrix": {"x": []}}, "no rows"),
        ({"matrix": {"x": "ab"}}, "a table or a list of rows"),
        ({"matrix": {"x": ["ab"]}}, "row 1"),
        ({"matrix": {"x": [["1", 0], [0, 1]]}}, "must hold numbers"),
        ({"matrix": {"x": {"a": {"a": 0.7}}}}, "row 1 of the matrix of column 'x' adds up to 0.7"),
        ({"matrix": {"x": {"a": [1.0], "b": {"b": 1}}}}, "each of its 2 labels"),
        ({"matrix": {}}, "by column"),
        ({"matrix": {"x": HALF}, "joint": True}, "joint"),
        ({"suppress": 0.1, "joint": True}, "joint"),
    ],
)
def test_what_is_no_transition_matrix_is_refused(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        sf.Pram(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (sf.Pram(matrix={"x": HALF}), "2 rows and the column 3 categories"),
        (sf.Pram(matrix={"x": {"a": {"a": 1.0}}}), "2 categories without a row"),
        (sf.Pram(matrix={"y": HALF}, columns=("x",)), "'y', which is not masked"),
        (sf.Pram(matrix={"x": np.eye(3).tolist()}, columns=("x", "y")), "'y' has no matrix"),
        (sf.Pram(matrix={"x": {"a": {"*": 1.0}, "b": {"b": 1}, "c": {"c": 1}}}, invariant=True), "name others"),
        (sf.Pram(stay=0.5, joint=True, columns=("x", "y")), "missing values"),
    ],
)
def test_a_matrix_that_does_not_fit_is_refused_without_naming_values(mask: sf.Pram, words: str) -> None:
    secret = pa.table({"x": ["b" if value == "b" else value for value in TABLE["x"].to_pylist()], "y": ["q7", "q8"] * 140})
    with pytest.raises(ParameterError, match=words) as refusal:
        mask.apply(secret, seed=1)
    assert "q7" not in str(refusal.value)


def test_columns_it_cannot_mask_are_refused() -> None:
    with pytest.raises(Unsupported, match="holds numbers"):
        sf.Pram(stay=0.5, columns=("n",)).apply(pa.table({"n": [1.0, 2.0]}), seed=1)
    with pytest.raises(Unsupported, match="no values at all"):
        sf.Pram(stay=0.5, columns=("x",)).apply(pa.table({"x": pa.array([None, None], pa.string())}), seed=1)
    with pytest.raises(InputError, match="no records"):
        sf.Pram(stay=0.5, columns=("x",)).apply(pa.table({"x": pa.array([], pa.string())}), seed=1)
    outside = Schema(columns={"x": Column(role="quasi", domain=("a", "b"))})
    with pytest.raises(InputError):
        sf.Pram(stay=0.5).apply(sf.read(TABLE, schema=outside), seed=1)
    ordered = Schema(columns={"x": Column(role="quasi", order=("a", "b", "c"))})
    with pytest.raises(ParameterError, match="order does not list"):
        sf.Pram(suppress=0.5).apply(sf.read(TABLE, schema=ordered), seed=1)
    many = pa.table({"x": [f"v{i}" for i in range(1500)]})
    with pytest.raises(ParameterError, match="at most 1000"):
        sf.Pram(stay=0.5, invariant=True, columns=("x",)).apply(many, seed=1)
    assert sf.Pram(stay=0.5, columns=("x",)).apply(many, seed=1).result.transparency["transitions"]["x"]["categories"] == 1500


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (sf.Pram(epsilon=50, columns=("x",)), "keep 100.0 % of its values.*epsilon = 3.63 or less"),
        (sf.Pram(epsilon=4, columns=("x",)), "keep 96.5 %"),
        (sf.Pram(stay=0.96, columns=("x",)), "keep 96.0 % of its values.*stay = 0.95 or less"),
        (sf.Pram(suppress=0.02, columns=("x",)), "keep 98.0 % of its values.*suppress = 0.05 or more"),
        (sf.Pram(stay=0.999, invariant=True, columns=("x",)), "keep 99.8 %"),
        (sf.Pram(epsilon=50, joint=True, columns=("y", "z")), "'y × z' is expected to keep 100.0 %"),
    ],
)
def test_a_column_that_is_expected_to_stay_as_it_is_is_refused(mask: sf.Pram, words: str) -> None:
    table = TABLE.append_column("y", pa.array(["u", "v"] * 140)).append_column("z", pa.array(["s", "t"] * 140))
    with pytest.raises(Unsupported, match=words):
        mask.apply(table, seed=1)


def test_the_borders_of_that_rule_are_accepted() -> None:
    for mask in (
        sf.Pram(stay=0.95, columns=("x",)),
        sf.Pram(epsilon=3.63, columns=("x",)),
        sf.Pram(suppress=0.05, columns=("x",)),
        sf.Pram(stay=0.99, suppress=0.1, columns=("x",)),
    ):
        outcome = mask.apply(TABLE, seed=1)
        known = 240
        assert outcome.details["unchanged"]["x"] == pytest.approx(1 - outcome.details["changed"]["x"] / known)
        assert 0.85 < outcome.details["expected_unchanged"]["x"] <= 0.9501
        assert "notice" not in outcome.result.transparency


def test_an_own_matrix_that_changes_little_is_taken_with_a_notice() -> None:
    little = {"a": {"a": 0.99, "b": 0.01}, "b": {"b": 1.0}, "c": {"c": 1.0}}
    outcome = sf.Pram(matrix={"x": little}).apply(TABLE, seed=1)
    assert "nearly as it is" in outcome.result.transparency["notice"]
    assert outcome.details["expected_unchanged"]["x"] == pytest.approx(1 - 0.01 * 40 / 240)
    recode = {"a": {"b": 1.0}, "b": {"b": 1.0}, "c": {"c": 1.0}}
    assert "notice" not in sf.Pram(matrix={"x": recode}).apply(TABLE, seed=1).result.transparency


def test_an_invariant_matrix_of_few_records_is_refused_and_of_many_says_what_it_tells() -> None:
    mask = sf.Pram(stay=0.5, invariant=True, columns=("x",))
    told = mask.apply(pa.table({"x": ["a", "b", "b", "b"] * 25}), seed=1).result.transparency
    assert told["notice"] == "the invariant matrix of column 'x' tells the frequencies of its categories before masking"
    with pytest.raises(ParameterError, match="'x' has 99 known values .* from 100 at least; leave out invariant"):
        mask.apply(pa.table({"x": ["a", "b", "b"] * 33 + [None] * 50}), seed=1)
    strata = pa.table({"x": ["a", "b"] * 100, "group": ["s"] * 150 + ["t"] * 50})
    with pytest.raises(ParameterError, match="'x' has 50 known values .in a stratum"):
        sf.Pram(stay=0.5, invariant=True, columns=("x",), strata=("group",)).apply(strata, seed=1)


def test_an_invariant_matrix_does_not_list_which_declared_categories_are_absent() -> None:
    """A declared category of nobody counts as one record: it has the row and column of a category of one."""
    domain = Schema(columns={"x": Column(role="quasi", domain=("a", "b", "c", "d"))})
    people = sf.read(pa.table({"x": ["a"] * 120 + ["b"] * 79 + ["c"]}), schema=domain)
    matrix = np.array(sf.Pram(stay=0.5, invariant=True).apply(people, seed=1).result.transparency["transitions"]["x"]["matrix"])
    assert np.all(matrix > 0)
    assert matrix[:2, 2] == pytest.approx(matrix[:2, 3])
    frequencies = np.array([120, 79, 1, 0]) / 200
    assert frequencies @ matrix == pytest.approx(frequencies, abs=0.01)
    assert occurring(np.array([300.0, 0.0, 0.0, 0.0, 0.0])).tolist() == [300.0, 0.75, 0.75, 0.75, 0.75]  # 1 % together


def test_frequencies_of_one_dominant_category_are_kept_although_few_values_change() -> None:
    """2 % of 1,000 have the rare category: exchanged at random, 3.9 % of the values change, which is no fault."""
    table = pa.table({"x": ["a"] * 980 + ["b"] * 20})
    outcome = sf.Pram(stay=0.5, invariant=True, columns=("x",)).apply(table, seed=1)
    assert outcome.details["expected_unchanged"]["x"] == pytest.approx(1 - 2 * 0.98 * 0.02)


#: A dictionary with a category that no record has: whoever had it was removed.
REMOVED = pa.table({"x": pa.DictionaryArray.from_arrays(pa.array([0, 1, 1] * 100), pa.array(["a", "b", "astronaut"]))})


@pytest.mark.parametrize(
    "mask",
    [
        sf.Pram(stay=0.5),
        sf.Pram(epsilon=1),
        sf.Pram(stay=0.5, invariant=True),
        sf.Pram(stay=0.5, strata=("s",)),
        sf.Pram(stay=0.5, joint=True, columns=("x", "s")),
    ],
)
@pytest.mark.parametrize("data", ["dictionary", "learnt domain"])
def test_no_category_is_published_that_no_record_has(mask: sf.Pram, data: str) -> None:
    domain = ("a", "b", "astronaut") if data == "learnt domain" else None
    schema = Schema(columns={"x": Column(role="quasi", type="string", domain=domain, source="data"), "s": Column(type="string")})
    table = REMOVED.append_column("s", pa.array(["u", "u", "u", "v", "v", "v"] * 50))
    masked = mask.apply(sf.read(table, schema=schema), seed=1).result
    assert set(masked.table["x"].to_pylist()) == {"a", "b"}
    assert "astronaut" not in json.dumps(dict(masked.transparency))


@pytest.mark.parametrize("first", [sf.Sampling(0.3, columns=("x",)), sf.Mdav(20, columns=("x",))])
def test_a_mask_after_another_knows_the_categories_that_are_left(first: Mask) -> None:
    table = pa.table({"x": ["astronaut"] + ["a", "b", "b", "c"] * 50, "row": list(range(201))})
    both = sf.Combined(masks=(first, sf.Pram(stay=0.5, columns=("x",))))
    for seed in range(3):
        masked = both.apply(table, seed=seed).result
        assert masked.rows is not None
        if isinstance(first, sf.Mdav) or 0 not in masked.rows.tolist():
            assert "astronaut" not in masked.table["x"].to_pylist()
            assert "astronaut" not in json.dumps(dict(masked.transparency))


def test_a_stratum_may_reach_what_others_have() -> None:
    table = pa.table({"x": ["a", "b"] * 60 + ["c", "d"] * 60, "s": ["u"] * 120 + ["v"] * 120})
    masked = sf.Pram(stay=0.2, columns=("x",), strata=("s",)).apply(table, seed=1).result.table
    assert set(masked.slice(0, 120)["x"].to_pylist()) == {"a", "b", "c", "d"}
