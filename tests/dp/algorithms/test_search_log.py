"""Search logs and the threshold for keywords found in them."""

from __future__ import annotations

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
from sfumato.core.guarantees.loss import ApproxDP, ConcentratedDP, PureDP
from sfumato.core.randomness import default
from sfumato.dp import SearchLog
from sfumato.dp.algorithms.stability import laplace_tail, threshold
from tests.dp.algorithms.tables import microdata, without

DESCRIBED = {"user": {"role": "unit", "type": "string"}, "time": {"type": "integer"}, "query": {"type": "string"}}
KINDS = {"user": pa.string(), "time": pa.int64(), "query": pa.string()}


def log(rows: list[tuple[str | None, int | None, str | None]]) -> sf.Microdata:
    return microdata({name: [row[i] for row in rows] for i, name in enumerate(DESCRIBED)}, DESCRIBED, KINDS)


def tail_by_summing(scale: Fraction, value: int) -> float:
    support = np.arange(-20_000, 20_001)
    mass = np.exp(-np.abs(support) / float(scale))
    return float(mass[support >= value].sum() / mass.sum())


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(20, 3), Fraction(100)])
def test_the_tail_bounds_the_exact_one_tightly(scale: Fraction) -> None:
    for value in (-3, 0, 1, 2, 17, 60):
        exact = tail_by_summing(scale, value)
        assert laplace_tail(scale, value) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(20, 3), Fraction(100)])
@pytest.mark.parametrize("keys", [1, 5, 40])
@pytest.mark.parametrize("delta", [Fraction(1, 100), Fraction(1, 10**6)])
def test_the_threshold_is_the_least_that_keeps_delta(scale: Fraction, keys: int, delta: Fraction) -> None:
    least = threshold(scale, delta, keys)
    assert keys * tail_by_summing(scale, least - 1) <= float(delta)
    assert least == 2 or keys * tail_by_summing(scale, least - 2) > float(delta) * (1 - 1e-9)


def test_a_threshold_below_the_least_is_not_delta() -> None:
    """The wrong version, ln(1/δ) without the keys of one user, lets a user's own keywords through too often."""
    scale, delta, keys = Fraction(10), Fraction(1, 1000), 10
    naive = 1 + round(float(scale) * np.log(float(1 / (2 * delta))))
    assert 1 - (1 - tail_by_summing(scale, naive - 1)) ** keys > float(delta)


def test_keywords_count_users_and_repeats_count_searches() -> None:
    data = log([("a", 1, "red car"), ("a", 2, "red"), ("b", 1, "car  car"), (None, 1, "red"), ("c", 1, None), ("c", 2, "  ")])
    distinct = SearchLog("query", 5, epsilon=1, domain=("red", "car", "bus"))
    assert distinct.mentions(data).counts().tolist() == [1, 2, 0]
    repeated = SearchLog("query", 5, epsilon=1, domain=("red", "car", "bus"), repeats=True)
    assert repeated.mentions(data).counts().tolist() == [2, 3, 0]
    whole = SearchLog("query", 5, epsilon=1, domain=("red car", "red"), split="value")
    assert whole.mentions(data).counts().tolist() == [1, 1]


@pytest.mark.golden("G-DP-24")
def test_the_log_of_three_users_truncated_to_two_keywords() -> None:
    searches = {
        "Alice": ["car", "bicycle"],
        "Bob": ["apples", "bananas", "koc university"],
        "Sam": ["Sam Altman", "Open AI", "Ward"],
    }
    data = log([(user, place, text) for user, texts in searches.items() for place, text in enumerate(texts)])
    algorithm = SearchLog("query", 2, epsilon=1, delta="1e-6", split="value", bounding="truncate", order="time")
    kept = algorithm.mentions(data)
    shown = {kept.keywords[code] for code in kept.code}
    assert shown == {"car", "bicycle", "apples", "bananas", "Sam Altman", "Open AI"}
    assert algorithm.sensitivity()[0] == 2


words = st.sampled_from(["a", "b", "c", "d", "é", "a b", "c b a", "b b", ""])
searches = st.lists(st.tuples(st.sampled_from("xyz"), st.one_of(st.none(), st.integers(0, 2)), words), max_size=20)


@given(searches, st.integers(1, 4), st.booleans(), st.sampled_from("xyz"), st.randoms(use_true_random=False))
def test_one_user_changes_the_counts_by_at_most_the_stated_sensitivity(
    rows: list, limit: int, repeats: bool, gone: str, random: object
) -> None:
    """Keywords of others neither come nor go with a user, also where times tie and rows are stored in another order."""
    domain = ("a", "b", "c", "d", "é") if repeats else None
    paid = {"epsilon": 1, "domain": domain} if repeats else {"epsilon": 1, "delta": "0.01"}
    algorithm = SearchLog("query", limit, bounding="truncate", order="time", repeats=repeats, **paid)  # type: ignore[arg-type]
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    everyone, others = (
        Counter({found.keywords[code]: int(count) for code, count in enumerate(found.counts())})
        for found in (algorithm.mentions(log(rows)), algorithm.mentions(without(log(shuffled), "user", gone)))
    )
    change = {word: everyone[word] - others[word] for word in {*everyone, *others} if everyone[word] != others[word]}
    l1, l2_squared = algorithm.sensitivity()
    assert all(count > 0 for count in change.values())
    assert sum(change.values()) <= l1
    assert sum(count**2 for count in change.values()) <= l2_squared
    if not repeats:
        assert all(count == 1 for count in change.values())


def test_a_keyword_of_one_user_alone_is_hidden() -> None:
    """One of 300 seeds would show the secret with probability below 300 · 10⁻⁹."""
    data = log([(f"u{i}", 1, "common") for i in range(400)] + [("eve", 1, "secret")])
    algorithm = SearchLog("query", 1, epsilon=1, delta="1e-9")
    for seed in range(300):
        assert algorithm.run(data, randomness=default(seed)).result.column("keyword").to_pylist() == ["common"]


def test_what_bounding_left_out_is_not_shown_by_its_noise() -> None:
    """A user with a thousand keywords of which one is kept: δ is about that one, the others do not exist for the release."""
    data = log([("eve", place, f"secret{place}") for place in range(1_000)])
    algorithm = SearchLog("query", 1, epsilon="0.1", delta="0.4", bounding="truncate", order="time")
    for seed in range(20):
        shown = algorithm.run(data, randomness=default(seed)).result.column("keyword").to_pylist()
        assert set(shown) <= {"secret0"}


def test_counts_are_within_the_stated_error() -> None:
    """5,000 counts: their mean square leaves [0.8, 1.2] of its expectation with probability below 10⁻⁶."""
    domain = tuple(f"w{i}" for i in range(5_000))
    algorithm = SearchLog("query", 4, epsilon=1, domain=domain)
    counts = algorithm.run(log([]), randomness=default("log")).result.column("count").to_numpy()
    assert 0.8 < np.mean(counts.astype(float) ** 2) / algorithm.error().deviation ** 2 < 1.2
    assert (np.diff(counts) <= 0).all()


def test_losses() -> None:
    assert SearchLog("q", 3, epsilon=1, delta="1e-6").loss() == ApproxDP(1, "1e-6")
    assert SearchLog("q", 3, epsilon=1, domain=("a",)).loss() == PureDP(1)
    assert SearchLog("q", 3, rho=1, domain=("a",)).loss() == ConcentratedDP(1)
    claimed = SearchLog("query", 3, epsilon=1, delta="1e-6").run(log([]), randomness=default(1)).claimed
    assert claimed == (ApproxDP(1, "1e-6", unit="user"),)


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 0},
        {"delta": None},
        {"delta": 0},
        {"delta": 1},
        {"domain": ("a",)},
        {"domain": (), "delta": None},
        {"domain": ("a", "a"), "delta": None},
        {"rho": 1},
        {"repeats": True},
        {"split": "letters"},
        {"bounding": "truncate"},
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        SearchLog(**{"column": "q", "limit": 2, "epsilon": 1, "delta": "1e-6", **wrong})  # type: ignore[arg-type]


def test_a_log_without_users_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"whose searches(.|\n)*'when'"):
        SearchLog("q", 2, epsilon=1, delta="1e-6", order="when").run(microdata({"q": ["a"]}, {"q": {}}))


@pytest.mark.data
def test_the_most_frequent_words_of_a_log(data_dir: Path) -> None:
    """2,000 users and 4,747 words at ε = 1, δ = 10⁻⁶ and five words per user: on average over ten seeds, at least three
    quarters of the twenty most frequent words are among the twenty shown first."""
    data = sf.read(data_dir / "logs" / "synthetic_querylog.tsv", {"columns": {**DESCRIBED, "time": {"type": "string"}}})
    everything = SearchLog("query", 10**6, epsilon=1, delta="1e-6").mentions(data)
    best = np.argsort(-everything.counts(), kind="stable")[:20]
    truth = {everything.keywords[code] for code in best}
    algorithm = SearchLog("query", 5, epsilon=1, delta="1e-6", bounding="truncate", order="time")
    shown = [algorithm.run(data, randomness=default(seed)).result.column("keyword").to_pylist()[:20] for seed in range(10)]
    assert np.mean([len(truth & set(words)) / 20 for words in shown]) >= 0.75
