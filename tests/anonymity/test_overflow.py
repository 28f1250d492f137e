"""Two classes of n/2 rows, one value each: the true distance is 0.5 under t = 0.2, however many rows there are.

A search that multiplies counts in 32 bits keeps the classes apart from 131,072 rows on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.anonymity.predicates.promises import promises_of
from sfumato.anonymity.search.base import Problem
from sfumato.anonymity.search.lattice import Lattice
from sfumato.core.errors import Unsupported
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.guarantees.k_anonymity import KAnonymity
from sfumato.core.guarantees.t_closeness import TCloseness
from sfumato.core.progress import silent
from sfumato.data.class_table import from_grouped
from sfumato.data.relation import COUNT
from sfumato.data.schema import Column, HierarchySpec, Schema
from tests.conformance.methods import SEARCHES, variants

SIZES = [20_000, 131_072, 1_000_000, 10_000_000, 2**40]
DISTANCES = ["equal", "hierarchical", "ordered", "variational", "kl"]

#: A two-level hierarchy whose values meet only at the root.
VALUES = HierarchySpec(tree={"X": ["x", "x2"], "Y": ["y", "y2"]})
SCHEMA = Schema(
    columns={
        "group": Column(role="quasi"),
        "value": Column(role="sensitive", order=("x", "x2", "y", "y2"), hierarchy=VALUES),
    }
)


def two_classes(rows: int, asked: list[ClassGuarantee]) -> Problem:
    grouped = pa.table({"group": ["A", "B"], "value": ["x", "y"], COUNT: [rows // 2, rows - rows // 2]})
    table = from_grouped(grouped, SCHEMA, ["group"], ["value"])
    assert table.records == rows
    return Problem(table, promises_of(asked, table), tuple(asked))


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("rows", SIZES)
def test_classes_at_distance_one_half_are_refused(rows: int, distance: Any) -> None:
    asked: list[ClassGuarantee] = [KAnonymity(5), TCloseness(0.2, "value", distance=distance)]
    problem = two_classes(rows, asked)
    assert np.all(problem.promises.needs(problem.promises.totals()) != 0)
    # every record of one class would have to go before the rest is close enough, and there is no rest
    recoding, details = Lattice().solve(problem, silent)
    assert details["levels"] == {"group": 1}
    assert recoding.class_sizes().tolist() == [rows]


@pytest.mark.parametrize("rows", SIZES)
def test_a_distance_of_exactly_one_half_keeps_the_classes(rows: int) -> None:
    _, details = Lattice().solve(two_classes(rows, [TCloseness(0.5, "value")]), silent)
    assert details["levels"] == {"group": 0}


@pytest.mark.parametrize("name", sorted(SEARCHES))
@pytest.mark.parametrize("rows", [131_072, 10_000_000])
def test_no_search_keeps_the_classes_apart(name: str, rows: int) -> None:
    asked: list[ClassGuarantee] = [KAnonymity(5), TCloseness(0.2, "value", distance="hierarchical")]
    for search in variants(name):
        if getattr(search, "max_records", rows) < rows:
            with pytest.raises(Unsupported, match="max_records"):
                search.solve(two_classes(rows, asked), silent)
            continue
        if name == "KMember" and rows < search.max_records:
            continue  # compares every record with every other: tested on small tables
        recoding, _ = search.solve(two_classes(rows, asked), silent)
        kept = recoding.class_sizes()[recoding.class_sizes() > 0]
        # relaxed Mondrian may halve both values evenly; no class may hold one value alone
        assert recoding.suppressed == 0 or not kept.size
        for klass in range(recoding.classes):
            values = np.bincount(recoding.cell[recoding.klass == klass], recoding.count[recoding.klass == klass], minlength=2)
            assert values.min() >= 0.3 * values.sum()
