"""Tables that are empty, tiny, constant, full of gaps or in other scripts: nothing that depends on the data fails."""

from __future__ import annotations

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.randomness import default
from sfumato.dp import Algorithm, GridKMeans, KMeans, PrivateHistogram, PrivateQuantiles, SearchLog, TopK
from sfumato.dp.outcomes import private_outcome
from tests.dp.algorithms.tables import microdata

TOWNS = ("Zürich", "東京", "naïve\u200dté", "e\u0301", "é", "")
DESCRIBED = {
    "who": {"role": "unit", "type": "string"},
    "town": {"type": "string", "domain": list(TOWNS)},
    "x": {"type": "number", "bounds": [-1, 1]},
    "n": {"type": "integer", "bounds": [0, 10]},
}
KINDS = {"who": pa.string(), "town": pa.string(), "x": pa.float64(), "n": pa.int64()}

TABLES = {
    "empty": [],
    "one row": [("a", "東京", 0.5, 3)],
    "one row without values": [("a", None, None, None)],
    "no unit at all": [(None, "é", 0.5, 3)] * 5,
    "all missing": [(f"p{i}", None, None, None) for i in range(20)],
    "constant": [(f"p{i}", "é", 0.25, 7) for i in range(50)],
    "one unit": [("a", TOWNS[i % 6], i / 50, i % 11) for i in range(50)],
    "not a number and infinite": [("a", "é", float("nan"), 1), ("b", "é", float("inf"), 2), ("c", "é", float("-inf"), 3)],
    "far outside": [("a", "nowhere", 1e300, 2**62), ("b", "nowhere else", -1e300, -(2**62))],
    "texts that look alike": [("a", "e\u0301", 0.0, 0), ("b", "é", 0.0, 0)],
}

ALGORITHMS: list[Algorithm] = [
    PrivateHistogram("town", epsilon=1, max_rows=1),
    PrivateHistogram(("town", "x"), rho="0.1", bins={"x": 3}, max_rows=2, count="units"),
    PrivateHistogram("n", epsilon=1, max_rows=3, bounding="truncate", order="x"),
    PrivateQuantiles("x", (0, 0.5, 1), epsilon=1, max_rows=1),
    PrivateQuantiles("n", (0.5,), rho="0.1", max_rows=1),
    TopK("town", 2, epsilon=1),
    TopK("town", 2, epsilon=1, method="peeling"),
    TopK("town", 6, epsilon=1, method="permute_and_flip", repeats=True, max_rows=3),
    SearchLog("town", 2, epsilon=1, delta="1e-6", split="value"),
    SearchLog("town", 2, epsilon=1, domain=TOWNS[:-1]),
    KMeans(("x", "n"), 3, 1, max_rows=1),
    KMeans(("x",), 1, "0.001", iterations=2, max_rows=1),
    GridKMeans(("x", "n"), 3, epsilon=1, max_rows=1),
    GridKMeans(("x",), 4, rho="0.001", expected_rows=100, max_rows=1),
]


def table(rows: list[tuple[object, ...]]) -> sf.Microdata:
    return microdata({name: [row[i] for row in rows] for i, name in enumerate(DESCRIBED)}, DESCRIBED, KINDS)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.name)
def test_every_algorithm_answers_every_table(algorithm: Algorithm, name: str) -> None:
    outcome = algorithm.run(table(TABLES[name]), randomness=default(name))
    assert outcome.claimed[0] == algorithm.loss().about(unit="who")
    assert outcome.method["name"] == algorithm.name
    if isinstance(outcome.result, pa.Table):
        assert all(column.null_count == 0 for column in outcome.result.columns)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.name)
def test_the_shape_of_a_release_does_not_depend_on_the_data(algorithm: Algorithm) -> None:
    """Keywords found in a log are the exception, and the reason why they cost δ."""
    results = [algorithm.run(table(rows), randomness=default(1)).result for rows in TABLES.values()]
    if isinstance(algorithm, SearchLog) and algorithm.domain is None:
        shown = dict(zip(TABLES, (result.column("keyword").to_pylist() for result in results), strict=True))
        assert shown.pop("constant") == ["é"]  # 50 people have it
        assert not any(shown.values())
        return
    shapes = {(result.num_rows, str(result.schema)) if isinstance(result, pa.Table) else len(result) for result in results}
    assert len(shapes) == 1


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.name)
def test_parameters_are_plain_and_rebuild_the_algorithm(algorithm: Algorithm) -> None:
    import json

    from sfumato.core.declared import build

    plain = json.loads(json.dumps(algorithm.parameters()))
    assert build(type(algorithm), plain) == algorithm


def test_texts_that_look_alike_are_told_apart() -> None:
    counts = PrivateHistogram("town", epsilon=1, max_rows=1).counts(table(TABLES["texts that look alike"]))
    assert dict(zip(TOWNS, counts.tolist(), strict=True))["e\u0301"] == 1
    assert dict(zip(TOWNS, counts.tolist(), strict=True))["é"] == 1


def test_an_outcome_shows_no_value_in_its_representation() -> None:
    outcome = private_outcome(
        [1],
        PrivateHistogram("town", epsilon=1, max_rows=1).loss(),
        {"name": "x"},
        argument="",
        randomness=default(1),
        owner={"secret": 5},
    )
    assert "secret" not in repr(outcome)
