"""The statistical tester: what it must refute, what it must not, and how often it may be wrong.

Every call below is wrong with a chance of at most 1e-6 unless it says otherwise; randomness is seeded, and there is time
enough that a busy machine makes the same draws.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.core.errors import ParameterError
from sfumato.core.randomness import StreamRandomness
from sfumato.dp.refute import examples, tester
from sfumato.dp.refute.confidence import epsilon_bound, lower_bound, upper_bound
from sfumato.dp.refute.outputs import Outputs, Raised, kept

refute = functools.partial(tester.refute, seconds=3000.0)
PATIENTS = examples.PATIENTS
FEWER = PATIENTS[:-1]


@pytest.fixture(autouse=True)
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "_SOURCE", StreamRandomness(7))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_a_constant_is_not_refuted_at_any_epsilon() -> None:
    assert not refute(examples.func1, (PATIENTS, FEWER), 0, samples=5000).refuted


@pytest.mark.golden("G-DP-20")
def test_a_count_plus_ten_is_refuted_and_the_witness_is_thirteen() -> None:
    found = refute(examples.func2, (PATIENTS, FEWER), 2)
    assert found.refuted and found.witness is not None
    assert found.witness.event == "output is exactly 13"
    assert (found.witness.probability, found.witness.other_probability) == (1.0, 0.0)
    assert found.witness.direction == "first neighbour against second"


def test_a_record_beside_a_noisy_count_is_refuted() -> None:
    found = refute(examples.func3, (PATIENTS, FEWER))
    assert found.refuted and found.witness is not None
    assert found.witness.event.startswith("output[1]")
    assert "Dora" not in repr(found) and "Dora" in found.explain()


def test_a_count_with_discrete_laplace_noise_is_not_refuted() -> None:
    found = refute(examples.func4, (PATIENTS, FEWER), 1, samples=20_000)
    assert not found.refuted and 0.8 < found.epsilon <= 1
    assert refute(examples.func4, (PATIENTS, FEWER), 0.7, samples=20_000).refuted


@pytest.mark.parametrize("name", ["uniform_noise", "forced_yes", "naive_bounded_laplace", "float_laplace"])
def test_what_only_looks_private_is_refuted(name: str) -> None:
    found = refute(getattr(examples, name), examples.NEIGHBOURS[name], 1, samples=30_000)  # type: ignore[arg-type]
    assert found.refuted and found.epsilon > 1 and found.witness is not None
    low, high = found.witness.interval[0], found.witness.other_interval[1]
    assert found.epsilon == pytest.approx(math.log(low / high))


def test_uniform_noise_with_its_delta_is_not_refuted() -> None:
    neighbours = examples.NEIGHBOURS["uniform_noise"]
    assert not refute(examples.uniform_noise, neighbours, 0, "0.2", samples=20_000).refuted  # type: ignore[arg-type]
    assert refute(examples.uniform_noise, neighbours, 0, "0.15", samples=20_000).refuted  # type: ignore[arg-type]


@pytest.mark.golden("G-DP-18")
def test_clamping_down_mean_under_add_and_remove_is_refuted() -> None:
    found = refute(examples.clamping_down_means, ((1.0,), (1.0, 0.0)), 1, vectorised=True)
    assert found.refuted and 1 < found.epsilon < 1.1931
    assert found.witness is not None and found.witness.direction == "second neighbour against first"


def test_clamping_down_mean_with_a_replaced_record_is_not_refuted() -> None:
    found = refute(examples.clamping_down_means, ((1.0, 1.0), (1.0, 0.0)), 1, vectorised=True, samples=200_000)
    assert not found.refuted and found.epsilon > 0.8


@pytest.mark.parametrize(
    ("noise", "neighbours", "epsilon", "delta"),
    [
        (lambda rng: rng.laplace(), (0.0, 1.0), 1, 0),
        (lambda rng: rng.laplace(scale=10), (0.0, 1.0), "0.1", 0),
        (lambda rng: rng.laplace(scale=0.5), (0.0, 1.0), 2, 0),
        (lambda rng: rng.laplace(), (0.1, 1.1), 1, 0),
        (lambda rng: rng.laplace(scale=3), (0.0, 3.0), 1, 0),
        (lambda rng: rng.normal(scale=5), (0.0, 1.0), 1, "0.00001"),
    ],
)
def test_floating_point_noise_is_refuted_by_its_lowest_bits(
    noise: Callable[[np.random.Generator], float], neighbours: tuple[float, float], epsilon: Any, delta: Any, rng: Any
) -> None:
    found = refute(lambda value: value + noise(rng), neighbours, epsilon, delta)
    assert found.refuted and found.witness is not None and "bit" in found.witness.event


def test_the_same_noise_on_a_grid_is_not_refuted(rng: np.random.Generator) -> None:
    found = refute(
        lambda value, count: np.round((value + rng.laplace(size=count)) * 1024) / 1024,
        (0.0, 1.0),
        1,
        vectorised=True,
        samples=200_000,
    )
    assert not found.refuted


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    noise: float


@pytest.mark.parametrize(
    ("mechanism", "told"),
    [
        (lambda rows, rng: 1 / (len(rows) - 3), "output"),
        (lambda rows, rng: [rng.integers(9)] * len(rows), "output"),
        (lambda rows, rng: {"n": int(rng.integers(9)), "first": rows[-1][0]}, "output['first']"),
        (lambda rows, rng: Row(rows[-1][0], float(rng.integers(9))), "output['name']"),
        (lambda rows, rng: None if len(rows) == 4 else 0.0, "output"),
        (lambda rows, rng: np.arange(len(rows)) + rng.integers(99), "output"),
        (lambda rows, rng: frozenset(row[0] for row in rows), "output"),
        (lambda rows, rng: len(rows) + 2 * int(rng.integers(-50, 50)), "remainder of output"),
        (lambda rows, rng: int(rng.integers(-50, 50)) + len(rows) / 8, "fractional part of output"),
        (lambda rows, rng: (lambda same: (same + len(rows), same))(int(rng.integers(10**6))), "output[0] minus output[1]"),
        (lambda rows, rng: str(rows[-1]), "output"),
        (lambda rows, rng: math.nan if len(rows) == 3 else 1.0, "output"),
        (lambda rows, rng: 10 ** (400 + len(rows)), "output"),
        (lambda rows, rng: "x" * 10**4 + str(len(rows)), "output"),
    ],
)
def test_any_kind_of_output_is_looked_at(mechanism: Callable[..., Any], told: str, rng: np.random.Generator) -> None:
    found = refute(lambda rows: mechanism(rows, rng), (PATIENTS, FEWER), 1, samples=20_000)
    assert found.refuted and found.witness is not None
    assert told in found.witness.event


def test_an_exception_and_its_message_are_outputs() -> None:
    def complains(rows: Any) -> None:
        raise ValueError(f"{len(rows)} rows are too many")

    found = refute(complains, (PATIENTS, FEWER))
    assert found.refuted and found.witness is not None and "message" in found.witness.event


def test_losses_of_many_coordinates_add_up(rng: np.random.Generator) -> None:
    """Each of twelve coordinates alone shows ε = 0.25; together they lose 3."""
    truth = 1 / (1 + math.exp(-0.25))

    def vote(bit: bool, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        return (rng.random((count, 12)) < (truth if bit else 1 - truth)).astype(np.int64)

    found = refute(vote, (True, False), 1, vectorised=True, samples=100_000)
    assert found.refuted and found.witness is not None and "add up" in found.witness.event
    assert not refute(vote, (True, False), 3, vectorised=True, samples=100_000).refuted


def test_a_function_that_always_fails_tests_nothing() -> None:
    with pytest.raises(ParameterError, match="raised TypeError every time"):
        refute(lambda: 1, (PATIENTS, FEWER))


@pytest.mark.parametrize(
    "arguments",
    [
        {"neighbours": (1, 2, 3)},
        {"epsilon": -1},
        {"delta": 1},
        {"samples": 10},
        {"seconds": 0},
        {"confidence": 1},
        {"mechanism": 3},
        {"vectorised": True},
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, Any]) -> None:
    given: dict[str, Any] = {"mechanism": lambda rows, count=1: [0] * (count - 1), "neighbours": (PATIENTS, FEWER), **arguments}
    with pytest.raises(ParameterError):
        refute(**given)


def test_a_slow_function_gets_fewer_draws_and_a_note() -> None:
    import time

    found = refute(lambda rows: time.sleep(0.001), (PATIENTS, FEWER), seconds=0.3)
    assert not found.refuted and found.draws < 2000 and found.notes


def test_a_finding_is_plain_data_and_plain_words() -> None:
    import json

    found = refute(examples.func2, (PATIENTS, FEWER))
    told = json.loads(json.dumps(found.to_mapping(), allow_nan=False))
    assert told["refuted"] is True and told["witness"]["event"] == "output is exactly 13"
    assert found.explain().startswith("Refuted: the claim ε = 1 is false")
    assert "no proof" in refute(examples.func1, (PATIENTS, FEWER), samples=1000).explain()


@pytest.mark.parametrize("trials", [1, 7, 40])
@pytest.mark.parametrize("alarm", [0.2, 1e-3])
def test_confidence_bounds_are_wrong_at_most_as_often_as_stated(trials: int, alarm: float) -> None:
    hits = np.arange(trials + 1)
    low, high = lower_bound(hits, trials, alarm), upper_bound(hits, trials, alarm)
    assert low[0] == 0 and high[-1] == 1
    for probability in np.linspace(0, 1, 201):
        chances = binom.pmf(hits, trials, probability)
        assert chances[low > probability].sum() <= alarm + 1e-12
        assert chances[high < probability].sum() <= alarm + 1e-12


def test_the_bound_on_epsilon_is_wrong_at_most_as_often_as_stated() -> None:
    trials, alarm, epsilon = 30, 0.05, math.log(3)
    hits = np.arange(trials + 1)
    bounds = epsilon_bound(hits[:, None], trials, hits[None, :], trials, alarm, 0.0)
    chances = binom.pmf(hits, trials, 0.75)[:, None] * binom.pmf(hits, trials, 0.25)[None, :]
    assert chances[bounds > epsilon].sum() <= alarm


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["yes or no", "integers", "vectors"])
def test_false_alarms_are_rarer_than_stated(kind: str, rng: np.random.Generator) -> None:
    """200 calls at confidence 0.9 on mechanisms that are exactly at the claim: more than 47 alarms have a chance of 1e-7."""
    stays = math.e / (1 + math.e)

    def draw(bit: int, count: int) -> Any:
        if kind == "yes or no":
            return (rng.random(count) < (stays if bit else 1 - stays)).astype(np.int64)
        size = 1 if kind == "integers" else 3
        noise = rng.geometric(1 - math.exp(-1), (count, size)) - rng.geometric(1 - math.exp(-1), (count, size))
        noise[:, 0] += bit
        return noise[:, 0] if kind == "integers" else noise

    alarms = sum(refute(draw, (0, 1), 1, samples=1000, vectorised=True, confidence=0.9).refuted for _ in range(200))
    assert binom.sf(47, 200, 0.1) < 1e-6
    assert alarms <= 47


def test_outputs_are_taken_apart_once() -> None:
    values = [kept(value) for value in [(1, "a"), Raised("ValueError", "no"), 2.5]]
    outputs = Outputs(values)
    assert outputs.count == 3
    assert np.array_equal(outputs.column(("output", "[0]")).numbers, [1, math.nan, math.nan], equal_nan=True)
    keys = outputs.column(("the type of ", "output")).keys
    assert keys is not None and keys.tolist() == ["'tuple'", "'raised ValueError'", "'float'"]


def _lists(rng: Any, database: int) -> list[str]:
    return ["x"] * int(rng.choice([0, 0, 0, 0, 0, 1, 1, 1, 1, 2]) if database else rng.choice([0, 1]))


def _gaps(rng: Any, database: int) -> float | None:
    return None if not database and rng.random() < 0.001 else float(rng.integers(2))


def _many_keys(rng: Any, database: int) -> dict[str, int]:
    return {f"k{rng.integers(200)}": 1 for _ in range(30)}


@pytest.mark.parametrize(
    ("mechanism", "delta"), [(_lists, 0.2), (_gaps, 0.01), (_many_keys, 0.0)], ids=["lengths", "gaps", "many keys"]
)
def test_outputs_of_changing_shape_are_compared_alike_in_both_batches(mechanism: Any, delta: float) -> None:
    """What is looked at must not depend on what else occurs in a batch: these claims are true."""
    rng = np.random.default_rng(7)
    assert not refute(lambda database: mechanism(rng, database), (1, 0), 1.0, delta, samples=3000).refuted
