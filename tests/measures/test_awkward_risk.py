"""No measure of risk crashes, warns or leaves [0, 1], whatever the columns are like; what it cannot do it refuses."""

from __future__ import annotations

import math
import warnings
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import SfumatoError
from sfumato.core.view import Measure
from sfumato.measures import risk

ROWS = 24
_DRAW = np.random.default_rng(0)
COLUMNS = {
    "number": _DRAW.normal(size=ROWS).tolist(),
    "constant": [5.0] * ROWS,
    "missing": pa.array([None] * ROWS, pa.float64()),
    "sometimes": [None if i % 3 == 0 else float(i) for i in range(ROWS)],
    "huge": (1e300 * _DRAW.normal(size=ROWS)).tolist(),
    "tiny": (1e-300 * _DRAW.normal(size=ROWS)).tolist(),
    "word": [f"wört{i % 4}" for i in range(ROWS)],
    "gap": [None if i % 5 == 0 else "x" for i in range(ROWS)],
    "nothing": pa.array([None] * ROWS, pa.string()),
    "whole": list(range(ROWS)),
}
SETS = [tuple(COLUMNS), *((name,) for name in COLUMNS), *list(combinations(COLUMNS, 3))[::20]]
MEASURES: list[Measure] = [
    risk.DistanceLinkage(),
    risk.DistanceLinkage("euclidean"),
    risk.DistanceLinkage("mahalanobis"),
    risk.DistanceLinkage(knowledge="average over subsets"),
    risk.ProbabilisticLinkage(),
    risk.AssignmentLinkage(),
    risk.IntervalDisclosure(),
    risk.IntervalDisclosure("deviation"),
    risk.DisclosureRisk(),
    risk.NearestRecord(),
    risk.AttributeDisclosure("huge"),
    risk.AttributeDisclosure("word"),
    risk.SpecialUniques(),
    risk.IndividualRisk(0.5),
    risk.HouseholdRisk("word", 0.5),
]


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: str(measure)[:60])
def test_a_measure_is_a_rate_or_a_refusal(measure: Measure) -> None:
    measured = 0
    for size in (ROWS, 2, 1, 0):
        for names in SETS:
            table = pa.table({name: COLUMNS[name] for name in names}).slice(0, size)
            people = sf.read(table, schema=sf.Schema.of(quasi=list(names)))
            moved = table.take(pa.array(np.random.default_rng(size).permutation(size)))
            for released in (table, moved, table.slice(0, max(size - 1, 0))):
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    try:
                        score = measure.score(people, released)
                    except SfumatoError as error:
                        assert "wört" not in str(error)
                        continue
                assert 0.0 <= score.value <= 1.0
                assert all(math.isfinite(part) for part in score.parts.values())
                measured += 1
    assert measured > 10
