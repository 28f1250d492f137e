"""Top-k lists: scores, rates, and the law of the one-shot choice."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import ParameterError, SchemaError
from sfumato.core.guarantees.loss import ConcentratedDP, PureDP
from sfumato.core.randomness import default
from sfumato.dp import TopK
from tests.dp.algorithms.tables import microdata, without

DESCRIBED = {"user": {"role": "unit", "type": "string"}, "dish": {"type": "string", "domain": ["soup", "rice", "pie"]}}


def meals(rows: list[tuple[str, str | None]]) -> sf.Microdata:
    return microdata(
        {"user": [row[0] for row in rows], "dish": [row[1] for row in rows]},
        DESCRIBED,
        {"user": pa.string(), "dish": pa.string()},
    )


rows = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["soup", "rice", "pie", "other", None])), max_size=20)


@given(rows, st.sampled_from("abc"))
def test_a_unit_changes_every_score_by_at_most_one_and_upwards(entries: list[tuple[str, str | None]], gone: str) -> None:
    algorithm = TopK("dish", 1, epsilon=1)
    change = algorithm.scores(meals(entries))[1] - algorithm.scores(without(meals(entries), "user", gone))[1]
    assert algorithm.sensitivity == 1
    assert change.min() >= 0
    assert change.max() <= 1


@given(rows, st.integers(1, 4), st.sampled_from("abc"))
def test_with_repeats_a_unit_keeps_that_many_mentions(entries: list[tuple[str, str | None]], most: int, gone: str) -> None:
    algorithm = TopK("dish", 1, epsilon=1, repeats=True, max_rows=most)
    totals = [algorithm.scores(data)[1].sum() for data in (meals(entries), without(meals(entries), "user", gone))]
    assert algorithm.sensitivity == most
    assert 0 <= totals[0] - totals[1] <= most


def test_repeats_would_break_a_sensitivity_of_one() -> None:
    """E-48: where repeats count, one user changes a score by m, so that a sensitivity of 1 is wrong for it."""
    everyone = meals([("a", "soup")] * 5)
    change = TopK("dish", 1, epsilon=1, repeats=True, max_rows=5).scores(everyone)[1]
    assert change.tolist() == [5, 0, 0]
    assert TopK("dish", 1, epsilon=1, repeats=True, max_rows=5).rate() == TopK("dish", 1, epsilon=1).rate() / 5
    with pytest.raises(ParameterError, match="repeats"):
        TopK("dish", 1, epsilon=1, max_rows=5)


def test_rates() -> None:
    assert TopK("dish", 4, epsilon=1, method="peeling").rate() == Fraction(1, 8)  # ε/k · score / 2S
    assert TopK("dish", 4, epsilon=1, method="permute_and_flip").rate() == Fraction(1, 4)
    assert TopK("dish", 4, epsilon=1, method="oneshot").rate() == Fraction(1, 4)
    rate = TopK("dish", 4, rho="0.1", method="peeling").rate()
    assert rate**2 * 4 / 8 <= Fraction(1, 10)  # k rounds of rate²/8 stay within ρ
    assert float(rate) == pytest.approx(math.sqrt(8 * 0.1 / 4), rel=1e-9)


def law_of_oneshot(scores: tuple[int, ...], k: int, scale: float, longest: int = 60) -> dict[tuple[int, ...], float]:
    """The exact law of the list: all noises up to `longest`, ties broken by all permutations."""
    mass = np.exp(-np.arange(longest) / scale) * (1 - np.exp(-1 / scale))
    law: Counter[tuple[int, ...]] = Counter()
    permutations = list(itertools.permutations(range(len(scores))))
    for noise in itertools.product(range(longest), repeat=len(scores)):
        probability = float(np.prod(mass[list(noise)]))
        noisy = [score + extra for score, extra in zip(scores, noise, strict=True)]
        if len(set(noisy)) == len(noisy):
            law[tuple(sorted(range(len(noisy)), key=lambda place: -noisy[place])[:k])] += probability
            continue
        for order in permutations:
            law[tuple(sorted(order, key=lambda place: -noisy[place])[:k])] += probability / len(permutations)
    return law


def largest_ratio(one: dict[tuple[int, ...], float], other: dict[tuple[int, ...], float]) -> float:
    return max(abs(math.log(one[event] / other[event])) for event in one)


@pytest.mark.parametrize("k", [1, 2])
def test_the_oneshot_list_keeps_epsilon_on_all_neighbours(k: int) -> None:
    """Enumerated exactly: three candidates, ε = 2, all ways in which one unit can raise the scores."""
    epsilon, scores = 2.0, (2, 1, 0)
    scale = k / epsilon
    law = law_of_oneshot(scores, k, scale, 22)
    ratios = [
        largest_ratio(law, law_of_oneshot(tuple(np.add(scores, raised)), k, scale, 22))
        for raised in itertools.product((0, 1), repeat=3)
    ]
    assert max(ratios) <= epsilon + 1e-4
    assert max(ratios) > 0.5 * epsilon


def test_noise_for_one_winner_does_not_pay_for_two() -> None:
    law, neighbour = (law_of_oneshot(scores, 2, 1 / 2, 22) for scores in ((0, 0, 2), (1, 1, 2)))
    assert largest_ratio(law, neighbour) > 2.0 + 0.1  # the scale k/ε would keep ε = 2


@pytest.mark.parametrize("method", ["peeling", "permute_and_flip", "oneshot"])
def test_the_first_winner_follows_its_law(method: str) -> None:
    """20,000 draws at k = 1: a frequency 0.02 off its probability has a probability below 10⁻⁷."""
    scores = np.array([3, 2, 0])
    algorithm = TopK("dish", 1, epsilon=1, method=method)  # type: ignore[arg-type]
    source = default(f"law {method}")
    drawn = Counter(algorithm.choose(scores, source)[0] for _ in range(20_000))
    if method == "peeling":
        weights = np.exp(0.5 * scores)
        law = dict(enumerate(weights / weights.sum()))
    elif method == "oneshot":
        law = {event[0]: mass for event, mass in law_of_oneshot((3, 2, 0), 1, 1.0, 30).items()}
    else:
        accept = np.exp(scores - 3.0)
        law = dict.fromkeys(range(3), 0.0)
        for order in itertools.permutations(range(3)):
            going = 1.0
            for place in order:
                law[place] += going * accept[place] / 6
                going *= 1 - accept[place]
    for place in range(3):
        assert drawn[place] / 20_000 == pytest.approx(law[place], abs=0.02)


@pytest.mark.parametrize("method", ["peeling", "permute_and_flip", "oneshot"])
def test_winners_differ_and_are_reproducible(method: str) -> None:
    algorithm = TopK("dish", 3, epsilon=1, method=method)  # type: ignore[arg-type]
    data = meals([("a", "soup"), ("b", "soup"), ("b", "pie")])
    first, again = (algorithm.run(data, randomness=default(5)).result for _ in range(2))
    assert sorted(first) == ["pie", "rice", "soup"]
    assert first == again


@pytest.mark.parametrize("method", ["peeling", "permute_and_flip", "oneshot"])
def test_winners_fall_short_by_no_more_than_stated(method: str) -> None:
    """The confidence is 1 - 10⁻⁷ per list, 30 lists."""
    scores = np.arange(200) * 3
    algorithm = TopK("dish", 5, epsilon=1, method=method)  # type: ignore[arg-type]
    allowed = algorithm.shortfall(200, 1 - 1e-7)
    for seed in range(30):
        left = set(range(200))
        for winner in algorithm.choose(scores, default(seed)):
            assert max(scores[place] for place in left) - scores[winner] <= allowed
            left.remove(winner)


def test_sets_and_words_are_split() -> None:
    data = microdata({"basket": ["tea|milk", "milk|tea|milk", "milk"]}, {"basket": {"type": "string", "items": "|"}})
    assert TopK("basket", 1, epsilon=1, candidates=("tea", "milk")).scores(data)[1].tolist() == [2, 3]
    data = microdata({"text": ["tea milk", "milk"]}, {"text": {"type": "string"}})
    assert TopK("text", 1, epsilon=1, candidates=("tea", "milk"), split="words").scores(data)[1].tolist() == [1, 2]


def test_losses_and_refusals() -> None:
    assert TopK("dish", 2, epsilon="0.5").loss() == PureDP("0.5")
    assert TopK("dish", 2, rho="0.5", method="peeling").loss() == ConcentratedDP("0.5")
    assert TopK("dish", 1, epsilon=1).run(meals([]), randomness=default(1)).claimed == (PureDP(1, unit="user"),)
    for wrong in (
        {"k": 0},
        {"epsilon": None},
        {"rho": 1, "epsilon": None},
        {"method": "best"},
        {"candidates": ("a", "a")},
        {"candidates": ("a",), "k": 2},
    ):
        with pytest.raises(ParameterError):
            TopK(**{"column": "dish", "k": 1, "epsilon": 1, **wrong})  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="fewer than k"):
        TopK("dish", 4, epsilon=1).run(meals([]))
    with pytest.raises(SchemaError, match="It needs domain"):
        TopK("x", 1, epsilon=1).run(microdata({"x": ["a"]}, {"x": {"type": "string"}}))


@pytest.mark.data
@pytest.mark.parametrize("method", ["peeling", "oneshot"])
def test_the_twenty_most_searched_words(data_dir: Path, method: str) -> None:
    """2,000 users, 5,000 declared words, ε = 1: at least 16 of the 20 on average over five seeds."""
    described = {"user": {"role": "unit", "type": "string"}, "time": {"type": "string"}, "query": {"type": "string"}}
    data = sf.read(data_dir / "logs" / "synthetic_querylog.tsv", {"columns": described})
    algorithm = TopK("query", 20, epsilon=1, method=method, candidates=tuple(f"w{i:04}" for i in range(5_000)), split="words")  # type: ignore[arg-type]
    words, scores = algorithm.scores(data)
    truth = set(np.argsort(-scores, kind="stable")[:20].tolist())
    hits = [len(truth & set(algorithm.choose(scores, default(seed)))) for seed in range(5)]
    assert len(words) == 5_000
    assert np.mean(hits) >= 16
