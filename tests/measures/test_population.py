"""k-map and δ-presence: a release matched with a population whose raw values are known."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import InputError
from sfumato.data.schema import HierarchySpec
from sfumato.measures.guarantees.cover import covered, interval_of
from sfumato.measures.guarantees.measure import measure

SCHEMA = sf.Schema(
    columns={
        "age": sf.Column(role="quasi", hierarchy=HierarchySpec(intervals=(10, 50))),
        "zip": sf.Column(role="quasi", hierarchy=HierarchySpec(mask="right")),
    }
)
POPULATION = pa.table(
    {
        "age": [21, 22, 23, 31, 32, 33, 34, 45],
        "zip": ["111", "112", "112", "111", "111", "121", "122", "111"],
    }
)


def test_generalised_classes_match_raw_people() -> None:
    released = pa.table({"age": ["[20, 30)", "[20, 30)", "[30, 40)"], "zip": ["11*", "11*", "1**"]})
    found = measure(released, SCHEMA, sf.KMap(3), population=POPULATION)
    assert (found.value, found.holds) == (3, True)
    assert not measure(released, SCHEMA, sf.KMap(4), population=POPULATION).holds
    assert measure(released, SCHEMA, sf.KAnonymity(2)).value == 1


def test_ranges_that_are_no_hierarchy_nodes_match_by_number() -> None:
    released = pa.table({"age": ["[22, 33)", "[22, 33)"], "zip": ["*", "*"]})
    assert measure(released, SCHEMA, sf.KMap(4), population=POPULATION).value == 4


def test_a_class_nobody_matches_fails() -> None:
    released = pa.table({"age": ["[0, 10)"], "zip": ["***"]})
    assert measure(released, SCHEMA, sf.KMap(1), population=POPULATION).value == 0


def test_presence_is_the_released_share_of_a_class() -> None:
    released = pa.table({"age": ["[20, 30)", "[20, 30)", "[30, 40)"], "zip": ["11*", "11*", "1**"]})
    found = measure(released, SCHEMA, sf.DeltaPresence(0.0, 0.7), population=POPULATION)
    assert found.value == pytest.approx(2 / 3)
    assert found.holds
    assert found.also["smallest chance"] == 0.0  # the person of 45 matches no class
    assert not measure(released, SCHEMA, sf.DeltaPresence(0.1, 0.7), population=POPULATION).holds
    assert not measure(released, SCHEMA, sf.DeltaPresence(0.0, 0.6), population=POPULATION).holds


def test_presence_within_bounds_for_everybody() -> None:
    released = pa.table({"age": ["[0, 50)"] * 4, "zip": ["***"] * 4})
    found = measure(released, SCHEMA, sf.DeltaPresence(0.5, 0.5), population=POPULATION)
    assert (found.value, found.holds) == (0.5, True)


def test_without_a_population_it_cannot_be_measured() -> None:
    with pytest.raises(InputError, match="population="):
        measure(POPULATION, SCHEMA, sf.KMap(1))


@given(st.lists(st.tuples(st.integers(0, 49), st.sampled_from(["111", "112", "121"])), min_size=1, max_size=30))
def test_k_map_of_a_full_domain_recoding_counts_the_recoded_population(people: list[tuple[int, str]]) -> None:
    population = pa.table({"age": [age for age, _ in people], "zip": [place for _, place in people]})
    recoded = [(f"[{age // 10 * 10}, {age // 10 * 10 + 10})", place[:2] + "*") for age, place in people]
    sample = recoded[::2]
    released = pa.table({"age": [age for age, _ in sample], "zip": [place for _, place in sample]})
    found = measure(released, SCHEMA, sf.KMap(1), population=population)
    assert found.value == min(Counter(recoded)[entry] for entry in set(sample))


def test_intervals_in_text_form() -> None:
    assert interval_of("[20, 30)") == (20, 30, True, False)
    assert interval_of("]1;2.5]") == (1, 2.5, False, True)
    assert interval_of("20-30") is None
    assert covered("(20, 30]", ["20", "25", "30", None], None).tolist() == [False, True, True, False]


@pytest.mark.data
def test_the_research_subset_of_adult(data_dir: Path) -> None:
    """k-map of the raw subset against the whole: each released person is somebody of the population."""
    options = pyarrow.csv.ParseOptions(delimiter=";")
    population = pyarrow.csv.read_csv(data_dir / "adult" / "adult.csv", parse_options=options)
    subset = pyarrow.csv.read_csv(data_dir / "adult" / "adult_subset.csv", parse_options=options)
    names = ["sex", "age", "race"]
    schema = sf.Schema.of(quasi=names)
    rows = list(zip(*(population[name].to_pylist() for name in names), strict=True))
    people = Counter(rows)
    sample = Counter(zip(*(subset[name].to_pylist() for name in names), strict=True))
    found = measure(subset, schema, sf.KMap(1), population=population)
    assert found.value == min(people[entry] for entry in sample)
    presence = measure(subset, schema, sf.DeltaPresence(0, 1), population=population)
    assert presence.value == pytest.approx(max(n / people[entry] for entry, n in sample.items()))
