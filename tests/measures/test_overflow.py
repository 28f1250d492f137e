"""Two classes of n/2 rows with one value each: the true distance is 0.5, and no number of rows hides it
under t = 0.2.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.guarantees.t_closeness import TCloseness
from sfumato.data.schema import HierarchySpec, Schema
from sfumato.measures.guarantees.classes import ValueCounts
from sfumato.measures.guarantees.examined import ExaminedTable
from sfumato.measures.guarantees.measure import measure, measure_examined
from tests.measures.tables import grouped_schema

DISTANCES = ("equal", "variational", "ordered", "hierarchical", "kl")
SCHEMA = grouped_schema(hierarchy=HierarchySpec(tree={"x": [], "y": []}))


def halves(n: int, schema: Schema = SCHEMA) -> ExaminedTable:
    """The counts of such a table without its rows."""
    two = pa.table({"group": ["A", "B"], "disease": ["x", "y"]})
    examined = ExaminedTable(two, schema)
    half = np.array([n // 2, n // 2], dtype=np.int64)
    key = ("group",), "disease"
    examined._histograms[key] = ValueCounts(("x", "y"), np.array([0, 1]), np.array([0, 1]), half, half)
    return examined


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("n", [20, 20_000, 131_072, 1_000_000, 10_000_000, 10**12, 4 * 10**18])
def test_a_distance_of_one_half_is_refused_at_any_size(distance: str, n: int) -> None:
    guarantee = TCloseness(0.2, "disease", distance=distance, reference="released")  # type: ignore[arg-type]
    found = measure_examined(halves(n), guarantee)
    assert found.value == pytest.approx(np.log(2) if distance == "kl" else 0.5)
    assert (found.holds, found.failing_classes) == (False, 2)
    tie = TCloseness(0.5, "disease", distance=distance, reference="released")  # type: ignore[arg-type]
    assert measure_examined(halves(n), tie).holds is (distance != "kl")


@pytest.mark.parametrize("n", [10_000_000, 4 * 10**18])
def test_the_other_comparisons_do_not_overflow_either(n: int) -> None:
    examined = halves(n)
    assert measure_examined(examined, sf.BetaLikeness(0.9, "disease", reference="released")).value == 1.0
    assert not measure_examined(examined, sf.BetaLikeness(0.9, "disease", reference="released")).holds
    assert measure_examined(examined, sf.BetaLikeness(1, "disease", reference="released")).holds
    assert not measure_examined(examined, sf.DeltaDisclosure(9, "disease", reference="released")).holds
    assert not measure_examined(examined, sf.AlphaKAnonymity(0.9, 2, "disease")).holds
    assert not measure_examined(examined, sf.RecursiveLDiversity(1e9, 2, "disease")).holds


@pytest.mark.slow
def test_ten_million_real_rows_are_refused() -> None:
    n = 10_000_000
    group = pa.DictionaryArray.from_arrays(pa.array(np.arange(n, dtype=np.int32) % 2), pa.array(["A", "B"]))
    disease = pa.DictionaryArray.from_arrays(pa.array(np.arange(n, dtype=np.int32) % 2), pa.array(["x", "y"]))
    rows = pa.table({"group": group, "disease": disease})
    for distance in DISTANCES:
        guarantee = TCloseness(0.2, "disease", distance=distance, reference="released")  # type: ignore[arg-type]
        assert not measure(rows, SCHEMA, guarantee).holds
    assert measure(rows, SCHEMA, sf.KAnonymity(5)).value == n // 2
