"""Combinations that do not fit into one key: the same verdicts and the same optimum as with packed keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.anonymity.search.base import pose
from sfumato.anonymity.search.node_tables import NodeTables, WideTables, fits
from sfumato.anonymity.search.sweep import Sweep
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.measures.guarantees.measure import measure

GUARANTEES: list[list[ClassGuarantee]] = [
    [sf.KAnonymity(3)],
    [sf.KAnonymity(2), sf.DistinctLDiversity(2, "s")],
    [sf.TCloseness(0.4, "s")],
]


def people(rows: int, columns: int, seed: int) -> sf.Microdata:
    draw = np.random.default_rng(seed)
    table = pa.table({**{f"q{i}": draw.integers(0, 40, rows) for i in range(columns)}, "s": draw.choice(["x", "y", "z"], rows)})
    intervals = sf.Column(role="quasi", type="integer", hierarchy={"intervals": [5, 10, 20]})
    described = {f"q{i}": intervals for i in range(columns)}
    return sf.read(table, sf.Schema(dataset="wide", columns={**described, "s": sf.Column(role="sensitive")}))


@pytest.mark.parametrize("guarantees", GUARANTEES, ids=lambda asked: asked[-1].key)
@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_wide_and_packed_tables_find_the_same_optimum(guarantees: list[ClassGuarantee], share: float) -> None:
    for seed in range(4):
        problem = pose(people(60, 3, seed), guarantees)
        totals = problem.promises.totals()
        found = [
            Sweep(kind(problem.table, problem.promises, totals), problem.allowed(share)).run()
            for kind in (NodeTables, WideTables)
        ]
        assert found[0].levels == found[1].levels
        assert found[0].loss == pytest.approx(found[1].loss, abs=1e-12)
        assert found[0].evaluated == found[1].evaluated


def test_twelve_rich_columns_are_searched_and_the_release_keeps_the_promise() -> None:
    data = people(400, 12, 1)
    assert not fits(pose(data, [sf.KAnonymity(3)]).table)
    release = sf.protect(data, [sf.KAnonymity(3)], sf.Lattice(suppression=0.1, time_limit=1.0))
    assert measure(release.data, release.schema, sf.KAnonymity(3)).holds
    assert release.details["gap"] > 0
    assert not release.details["optimal"]


def test_a_large_lattice_is_searched_as_well_as_from_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer passengers than in the benchmark, and a clock that counts the looks at it, so that a busy machine finds the same."""
    import itertools
    from unittest import mock

    import sfumato as sf
    from benchmarks import passengers

    people = passengers.passengers(400)
    monkeypatch.setattr("sfumato.anonymity.search.boxes.time", mock.Mock(monotonic=itertools.count().__next__))
    outcome = sf.Lattice(suppression=0.05, time_limit=2000.0).run(people, [sf.KAnonymity(5)])
    assert outcome.details["nodes"] == 679_477_248 and not outcome.details["optimal"] and outcome.details["gap"] > 0
    assert outcome.result.class_sizes().min() >= 5 and outcome.result.suppressed <= 20
    simple = passengers.top_down(passengers.Bench(people, 60.0))
    assert outcome.details["loss"] <= simple + 1e-9
