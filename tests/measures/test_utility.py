"""Measures of utility beyond the worked cases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import InputError, ParameterError, Unsupported
from sfumato.core.registry import find
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.masked import Masked
from sfumato.data.microdata import ReleasedTable, ShownValue
from sfumato.data.schema import HierarchySpec
from sfumato.measures.utility.class_sizes import AverageClassSize, ClassCount, Discernibility, Suppressed
from sfumato.measures.utility.distortion import Distortion
from sfumato.measures.utility.loss import Granularity, Loss
from sfumato.measures.utility.machine_learning import MachineLearningLoss
from sfumato.measures.utility.non_uniform_entropy import NonUniformEntropy
from sfumato.measures.utility.query_error import CountQuery, QueryError, Workload

AGES = Hierarchy.from_levels([[str(age), f"[{age // 10 * 10}, {age // 10 * 10 + 10})", "*"] for age in range(20, 60)])
SEX = Hierarchy.from_levels([["f", "*"], ["m", "*"]])
SCHEMA = sf.Schema.of(quasi=["age", "sex"], sensitive=["pay"])
people = st.lists(st.tuples(st.integers(20, 59), st.sampled_from("fm")), min_size=4, max_size=40)


def original_of(rows: list[tuple[int, str]]) -> pa.Table:
    return pa.table({"age": [str(age) for age, _ in rows], "sex": [sex for _, sex in rows]})


def recoded(rows: list[tuple[int, str]], level: int, drop: int = 0) -> ReleasedTable:
    kept = rows[drop:]
    shown = pa.table({"age": [AGES.generalise(str(age), level) for age, _ in kept], "sex": [sex for _, sex in kept]})
    return ReleasedTable(shown, SCHEMA, {"age": AGES, "sex": SEX}, records=len(rows))


@given(people)
def test_generalising_more_never_loses_less(rows: list[tuple[int, str]]) -> None:
    original = original_of(rows)
    for key in ("loss", "distortion", "entropy", "discernibility", "average_class_size"):
        measure = find("measure", key)()
        values = [measure.score(original, recoded(rows, level)).value for level in range(3)]
        assert values == sorted(values), key
    counts = [ClassCount().score(original, recoded(rows, level)).value for level in range(3)]
    assert counts == sorted(counts, reverse=True)


@given(people)
def test_an_unchanged_table_loses_nothing(rows: list[tuple[int, str]]) -> None:
    original, same = original_of(rows), recoded(rows, 0)
    for key in ("loss", "distortion", "entropy", "suppressed"):
        assert find("measure", key)().score(original, same).value == 0, key
    exact = QueryError(Workload(queries=20)).score(original, same)
    assert exact.value == pytest.approx(0, abs=1e-9)
    assert exact.parts["mean absolute"] == pytest.approx(0, abs=1e-9)


@given(people)
def test_granularity_is_what_loss_leaves(rows: list[tuple[int, str]]) -> None:
    released = recoded(rows, 1, drop=1)
    original = original_of(rows)
    assert Granularity().score(original, released).value == pytest.approx(1 - Loss().score(original, released).value)


@given(people)
def test_suppressing_everything_costs_everything(rows: list[tuple[int, str]]) -> None:
    nothing = recoded(rows, 0, drop=len(rows))
    original = original_of(rows)
    assert Loss().score(original, nothing).value == 1
    assert Suppressed().score(original, nothing).value == 1
    assert Discernibility().score(original, nothing).value == len(rows) ** 2
    spread = len(set(rows)) > 1
    assert NonUniformEntropy().score(original, nothing).value == pytest.approx(1.0 if spread else 0.0)


def test_a_suppressed_record_costs_1_in_each_attribute() -> None:
    rows = [(20, "f"), (21, "f"), (22, "m"), (23, "m")]
    score = Loss().score(original_of(rows), recoded(rows, 1, drop=1))
    expected_age = (3 * 9 / 39 + 1) / 4
    assert score.parts["age"] == pytest.approx(expected_age)
    assert score.parts["sex"] == pytest.approx(0.25)
    assert score.value == pytest.approx((expected_age + 0.25) / 2)


def test_weights_follow_the_schema_and_may_be_given() -> None:
    rows = [(20, "f"), (21, "f")]
    heavy = sf.Schema(columns={"age": sf.Column(role="quasi", importance=3), "sex": sf.Column(role="quasi")})
    released = ReleasedTable(recoded(rows, 2).table, heavy, {"age": AGES, "sex": SEX}, 2)
    assert Loss().score(original_of(rows), released).value == pytest.approx(0.75)
    assert Loss({"age": 1, "sex": 1}).score(original_of(rows), released).value == pytest.approx(0.5)
    with pytest.raises(ParameterError, match="missing: sex"):
        Loss({"age": 1}).score(original_of(rows), released)


def test_hierarchies_are_built_from_the_schema_when_not_given() -> None:
    schema = sf.Schema(
        columns={
            "age": sf.Column(
                role="quasi",
                type="integer",
                bounds=(20, 39),
                hierarchy=HierarchySpec(intervals=(10, 20), origin=20),
            )
        }
    )
    original = pa.table({"age": [20, 25, 31]})
    released = ReleasedTable(pa.table({"age": ["[20, 30)", "[20, 30)", "31"]}), schema, records=3)
    assert Loss().score(original, released).value == pytest.approx(2 / 3 * 9 / 19)


def test_ranges_of_a_partitioning_are_read_by_their_description_or_their_text() -> None:
    original = pa.table({"age": ["20", "25", "29"], "sex": ["f", "f", "m"]})
    shown = pa.table({"age": ["[20, 25]", "[20, 25]", "29"], "sex": ["f", "f", "m"]})
    by_text = ReleasedTable(shown, SCHEMA, {"age": AGES, "sex": SEX}, records=3)
    assert Loss().score(original, by_text).parts["age"] == pytest.approx(2 / 3 * 5 / 39)
    described = {"age": {"[20, 25]": ShownValue(0.4, 6, frozenset(), bounds=(20, 26))}}
    by_description = ReleasedTable(shown, SCHEMA, {"age": AGES, "sex": SEX}, 3, described)
    assert Loss().score(original, by_description).parts["age"] == pytest.approx(2 / 3 * 0.4)
    assert NonUniformEntropy().score(original, by_description).parts["age"] == pytest.approx(2.0)


def test_an_unknown_text_is_refused_without_being_shown() -> None:
    shown = pa.table({"age": ["canary-7f3"], "sex": ["f"]})
    released = ReleasedTable(shown, SCHEMA, {"age": AGES, "sex": SEX}, records=1)
    with pytest.raises(Unsupported) as error:
        Loss().score(None, released)
    assert "canary" not in str(error.value)


def test_distortion_climbs_only_real_edges_of_an_unbalanced_tree() -> None:
    """Private is a leaf right below the root, State-gov two edges below it."""
    tree = Hierarchy.from_levels(
        [["State-gov", "Government", "*"], ["Local-gov", "Government", "*"], ["Private", "Private", "*"]]
    )
    schema = sf.Schema.of(quasi=["work"])
    original = pa.table({"work": ["State-gov", "Local-gov", "Private", "Private"]})
    top = ReleasedTable(pa.table({"work": ["*"] * 4}), schema, {"work": tree}, records=4)
    assert Distortion().score(original, top).value == 2 + 2 + 1 + 1
    suppressed = ReleasedTable(pa.table({"work": pa.array([], pa.string())}), schema, {"work": tree}, records=4)
    assert Distortion().score(original, suppressed).value == 6
    middle = ReleasedTable(
        pa.table({"work": ["Government", "Government", "Private", "Private"]}),
        schema,
        {"work": tree},
        records=4,
    )
    assert Distortion().score(original, middle).value == 2


def test_entropy_counts_the_bits_of_guessing_back() -> None:
    tree = Hierarchy.from_levels([["a", "ab", "*"], ["b", "ab", "*"], ["c", "c", "*"], ["d", "d", "*"]])
    schema = sf.Schema.of(quasi=["x"])
    original = pa.table({"x": ["a", "a", "b", "b", "c", "c", "d", "d"]})
    released = ReleasedTable(pa.table({"x": ["ab"] * 4 + ["c", "c", "d", "d"]}), schema, {"x": tree}, records=8)
    score = NonUniformEntropy().score(original, released)
    assert score.parts["x"] == pytest.approx(4.0)  # four cells, one bit each
    assert score.value == pytest.approx(4 / 16)  # of eight cells of two bits
    shuffled = ReleasedTable(pa.table({"x": ["c", "c", "d", "d"] + ["ab"] * 4}), schema, {"x": tree}, records=8)
    assert NonUniformEntropy().score(original, shuffled).value == pytest.approx(4 / 16)


def test_discernibility_and_average_size() -> None:
    shown = pa.table({"age": ["*"] * 3 + ["[20, 30)"] * 2, "sex": ["*"] * 5})
    released = ReleasedTable(shown, SCHEMA, {"age": AGES, "sex": SEX}, records=7)
    assert Discernibility().score(None, released).value == 9 + 4 + 2 * 7
    assert AverageClassSize().score(None, released).value == 2.5
    assert AverageClassSize(k=2).score(None, released).value == 1.25
    assert Suppressed().score(None, released).value == pytest.approx(2 / 7)


def test_a_workload_is_repeatable_and_aims_at_its_selectivity() -> None:
    draw = np.random.default_rng(1)
    original = pa.table({"age": draw.integers(20, 60, 4_000), "sex": draw.choice(["f", "m"], 4_000)})
    workload = Workload(queries=50, attributes=1, selectivity=0.2)
    first, again = workload.generate(original, ["age"]), workload.generate(original, ["age"])
    assert first == again
    assert first != Workload(50, 1, 0.2, seed="other").generate(original, ["age"])
    shares = [query.true_count(original) / 4_000 for query in first]
    assert 0.15 < float(np.mean(shares)) < 0.3


def test_a_query_nobody_matches_has_a_bounded_error() -> None:
    original = pa.table({"age": ["20", "21"], "sex": ["f", "f"]})
    released = ReleasedTable(pa.table({"age": ["[20, 30)"] * 2, "sex": ["f", "f"]}), SCHEMA, {"age": AGES, "sex": SEX}, records=2)
    nobody = CountQuery({"age": frozenset({"25"})})
    errors = QueryError().errors([nobody], original, released)
    assert errors["true"][0] == 0
    assert errors["relative"][0] == pytest.approx(0.2)


def labelled(count: int) -> pa.Table:
    draw = np.random.default_rng(3)
    age = draw.integers(20, 60, count)
    sex = draw.choice(["f", "m"], count)
    pay = np.where((age >= 40) ^ (draw.random(count) < 0.1), "high", "low")
    return pa.table({"age": age.astype(str), "sex": sex, "pay": pay})


@pytest.mark.parametrize("learner", ["logistic", "forest"])
def test_a_model_trained_on_the_release_loses_accuracy_with_its_detail(learner: str) -> None:
    original = labelled(600)

    def loss(level: int) -> float:
        ages = [AGES.generalise(age, level) for age in original["age"].to_pylist()]
        shown = original.set_column(0, "age", pa.array(ages))
        released = ReleasedTable(shown, SCHEMA, {"age": AGES, "sex": SEX}, records=600)
        measure = MachineLearningLoss("pay", learner=learner)  # type: ignore[arg-type]
        score = measure.score(original, released)
        assert score.parts["accuracy original"] > 0.85
        return score.value

    assert loss(0) == 0
    assert abs(loss(1)) < 0.05  # decades keep the boundary at 40
    assert loss(2) > 0.25  # without any age the majority is the best guess


def test_machine_learning_needs_a_feature() -> None:
    schema = sf.Schema.of(quasi=["age"])
    ages = pa.table({"age": ["20"] * 20})
    with pytest.raises(Unsupported):
        MachineLearningLoss("age").score(ages, ReleasedTable(ages, schema, {"age": AGES}, 20))


@pytest.mark.data
def test_loss_of_a_known_recoding_of_adult(data_dir: Path) -> None:
    """Age to level 1 alone: the loss is that of its hierarchy, averaged over the nine attributes."""
    from sfumato.data.hierarchies.hierarchy import Hierarchy

    folder = data_dir / "adult"
    rows = pyarrow.csv.read_csv(folder / "adult.csv", parse_options=pyarrow.csv.ParseOptions(delimiter=";"))
    trees = {name: Hierarchy.load(folder / f"adult_hierarchy_{name}.csv") for name in rows.column_names}
    age = trees["age"]
    shown = [age.generalise(str(value), 1) for value in rows["age"].to_pylist()]
    released = ReleasedTable(
        rows.set_column(1, "age", pa.array(shown)),
        sf.Schema.of(quasi=rows.column_names),
        trees,
        records=rows.num_rows,
    )
    expected = np.mean([age.loss[age.node_of[1, age.index[str(v)]]] for v in rows["age"].to_pylist()])
    score = Loss().score(None, released)
    assert score.value == pytest.approx(expected / 9, rel=1e-12)


def test_measures_of_a_release_refuse_a_masked_table() -> None:
    people = sf.read(pa.table({"age": [30.0, 40, 50], "job": ["a", "b", "b"]}), sf.Schema.of(quasi=["age"]))
    masked = Masked(people.table(), people.schema, ("age",), np.arange(3))
    for measure in (Suppressed(), Discernibility(), Loss(), Granularity(), Distortion(), NonUniformEntropy(), QueryError()):
        with pytest.raises(InputError, match="masked table use a measure of masked data"):
            measure.score(people, masked)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="masked table use a measure of masked data"):
        MachineLearningLoss("job").score(people, masked)  # type: ignore[arg-type]
