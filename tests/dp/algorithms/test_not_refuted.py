"""From table to release, no algorithm is refuted on small neighbours, and each is when its claim is understated.

The tester is wrong with a chance of at most 10⁻⁶ per call; randomness is seeded, and time is no limit.
"""

from __future__ import annotations

import pytest

import sfumato as sf
from sfumato.core.randomness import StreamRandomness
from sfumato.dp import Algorithm, GridKMeans, KMeans, PrivateHistogram, PrivateQuantiles, SearchLog, TopK
from sfumato.dp.refute.tester import Refutation, refute
from tests.dp.algorithms.tables import microdata

DESCRIBED = {
    "who": {"role": "unit", "type": "string"},
    "word": {"type": "string", "domain": ["a", "b", "c"]},
    "x": {"type": "number", "bounds": [0, 1]},
}
ROWS = [("p", "a", 0.1), ("q", "a", 0.2), ("q", "b", 0.9)]
#: One user more, with more rows than may be kept.
GREEDY = [*ROWS, *[("z", word, 1.0) for word in "bbcbb"]]

#: Algorithm, ε and δ that it claims, and a smaller ε or δ that must be refuted (None where small tables cannot show it).
CASES: dict[str, tuple[Algorithm, float, float, tuple[float, float] | None]] = {
    "histogram": (PrivateHistogram("word", epsilon=2, max_rows=2), 2, 0, (1, 0)),
    "histogram of units": (PrivateHistogram("word", epsilon=2, max_rows=2, count="units"), 2, 0, (1, 0)),
    "quantiles": (PrivateQuantiles("x", (0.25, 0.5, 0.75), epsilon=2, leaves=4, branching=2, max_rows=1), 2, 0, None),
    "top 1, peeling": (TopK("word", 1, epsilon=4, method="peeling"), 4, 0, (0.5, 0)),
    "top 2, permute and flip": (TopK("word", 2, epsilon=4, method="permute_and_flip"), 4, 0, (1, 0)),
    "top 2, one shot": (TopK("word", 2, epsilon=4), 4, 0, (1, 0)),
    "log, declared": (SearchLog("word", 2, epsilon=2, domain=("a", "b", "c"), split="value"), 2, 0, (1, 0)),
    "log, found": (SearchLog("word", 2, epsilon=1, delta="0.2", split="value"), 1, 0.2, (1, 0.02)),
    "k-means": (KMeans(("x",), 1, 2, iterations=1, max_rows=2), 2, 0, (0.8, 0)),
    "grid k-means": (GridKMeans(("x",), 2, epsilon=2, max_rows=2), 2, 0, None),
}

#: Draws on each neighbour: as many as refute the understated claim.
DRAWS = dict.fromkeys(CASES, 2_000) | {
    "log, found": 4_000,
    "k-means": 2_000,
    "grid k-means": 1_000,
    "quantiles": 1_000,
    "top 1, peeling": 1_000,
    "top 2, one shot": 1_000,
}


def verdict(name: str, epsilon: float, delta: float) -> Refutation:
    algorithm = CASES[name][0]
    source = StreamRandomness(f"{name} {epsilon}")

    def release(data: sf.Microdata) -> object:
        result = algorithm.run(data, randomness=source).result
        if isinstance(algorithm, SearchLog):
            counts = dict(zip(*result.to_pydict().values(), strict=True))
            return tuple(counts.get(word, -100) for word in "abc")
        return result if isinstance(result, list) else [tuple(row.values()) for row in result.to_pylist()]

    neighbours = [
        microdata({column: [row[i] for row in rows] for i, column in enumerate(DESCRIBED)}, DESCRIBED) for rows in (GREEDY, ROWS)
    ]
    return refute(release, neighbours, epsilon, delta, samples=DRAWS[name], seconds=3000)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_no_algorithm_is_refuted(name: str) -> None:
    _, epsilon, delta, _ = CASES[name]
    assert not verdict(name, epsilon, delta).refuted


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case[3] is not None])
def test_an_understated_claim_is_refuted(name: str) -> None:
    understated = CASES[name][3]
    assert understated is not None
    assert verdict(name, *understated).refuted
