"""The same release from memory, DuckDB, PostgreSQL and Spark, for every search, on a table that is hard on engines."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.engines.memory import MemoryRelation
from tests.conformance.methods import SEARCHES, variants
from tests.conformance.problems import released_rows
from tests.engines.conftest import OpenTable
from tests.engines.conftest import on_engine as on_engine
from tests.engines.tables import ODD, rows

DAYS = [datetime.date(2024, 2, 29), datetime.date(1899, 1, 1), None]


def people() -> pa.Table:
    """Missing values, odd names, Unicode, leading zeros, numbers with a point, dates, equal rows; 48 records."""
    count = 48
    return pa.table(
        {
            "marital-status": [["single", "wed", None, ""][i % 4] for i in range(count)],
            "Country": [["NO", "FI", "å", "日本", "a\u0301"][i * i % 5] for i in range(count)],
            ODD: [["01234", "1234", "01299", "99 9"][i // 3 % 4] for i in range(count)],
            "größe in cm": [[150.5, 171.0, float("nan"), -0.0][i // 5 % 4] for i in range(count)],
            "age": pa.array([[39, 50, 17, None, 90][i * 7 % 5] for i in range(count)], pa.int64()),
            "born": [DAYS[i // 2 % 3] for i in range(count)],
            "disease": [["flu", "cold", "'; --", None][i // 7 % 4] for i in range(count)],
            "number": pa.array(range(count), pa.int64()),
        }
    )


SCHEMA = Schema(
    dataset="nasty",
    columns={
        "marital-status": Column(role="quasi"),
        "Country": Column(role="quasi", hierarchy=HierarchySpec(tree={"North": ["NO", "FI", "å"], "Far": ["日本", "a\u0301"]})),
        ODD: Column(role="quasi", hierarchy=HierarchySpec(mask="right")),
        "größe in cm": Column(role="quasi", type="number", importance=2.0),
        "age": Column(role="quasi", type="integer", bounds=(0, 99), hierarchy=HierarchySpec(intervals=(10, 50))),
        "born": Column(role="quasi", type="date"),
        "disease": Column(role="sensitive"),
        "number": Column(role="plain"),
    },
)
ASKED: list[ClassGuarantee] = [sf.KAnonymity(3), sf.DistinctLDiversity(2, "disease")]


@pytest.fixture(scope="module")
def expected() -> dict[Any, Any]:
    """What memory gives, by search."""
    data = Microdata(MemoryRelation(people()), SCHEMA)
    found = {}
    for name in sorted(SEARCHES):
        for search in variants(name)[:2]:
            outcome = search.run(data, ASKED)
            found[repr(search)] = (outcome.details["loss"], rows(released_rows(data, outcome)))
    return found


def test_every_search_recodes_alike(on_engine: OpenTable, expected: dict[Any, Any]) -> None:
    data = Microdata(on_engine(people()), SCHEMA)
    for name in sorted(SEARCHES):
        for search in variants(name)[: 1 if data.relation.engine == "spark" else 2]:
            outcome = search.run(data, ASKED)
            loss, released = expected[repr(search)]
            assert outcome.details["loss"] == pytest.approx(loss, abs=1e-12), search
            assert rows(released_rows(data, outcome)) == released, search


def test_protect_gives_the_same_table(on_engine: OpenTable) -> None:
    """Spark takes seconds for each: what it counts is compared above for every search, and published here for every third."""
    here, there = Microdata(MemoryRelation(people()), SCHEMA), Microdata(on_engine(people()), SCHEMA)
    for name in sorted(SEARCHES)[:: 3 if there.relation.engine == "spark" else 1]:
        first, second = (sf.protect(data, ASKED, SEARCHES[name](), seed=1) for data in (here, there))
        assert first.data.schema == second.data.schema, name
        assert first.data.equals(second.data), name
        assert first.certificate.measured == second.certificate.measured
        assert first.certificate.holds and first.data.num_rows > 40
