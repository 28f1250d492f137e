"""Hellinger and Kullback–Leibler on marginals and pairs, against counting by hand."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import ParameterError
from sfumato.measures.utility.divergence import Cells, Hellinger, KullbackLeibler, hellinger, kullback_leibler, range_cuts
from tests.measures.masked_tables import microdata, noisy, people, synthetic, with_gaps

rows = st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from("xy")), min_size=1, max_size=30)


def shares(values: list[object]) -> dict[object, float]:
    return {value: count / len(values) for value, count in Counter(values).items()}


def plain_hellinger(first: list[object], second: list[object]) -> float:
    p, q = shares(first), shares(second)
    return math.sqrt(sum((math.sqrt(p.get(v, 0)) - math.sqrt(q.get(v, 0))) ** 2 for v in p | q) / 2)


def plain_kullback_leibler(first: list[object], second: list[object], add: float) -> float:
    p, q = Counter(first), Counter(second)
    cells = p | q
    total_p, total_q = len(first) + add * len(cells), len(second) + add * len(cells)
    return sum((p[v] + add) / total_p * math.log2((p[v] + add) / total_p / ((q[v] + add) / total_q)) for v in cells)


@given(rows.filter(lambda rows: any(a for a, _ in rows)), rows)
def test_categories_equal_counting_by_hand(original: list[tuple[str | None, str]], masked: list[tuple[str | None, str]]) -> None:
    def columns(rows: list[tuple[str | None, str]]) -> dict[str, pa.Array]:
        return {name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(["a", "b"])}

    data = microdata(columns(original))
    shown = synthetic(data, pa.table(columns(masked)))
    first = [list(values) for values in zip(*original, strict=True)]
    second = [list(values) for values in zip(*masked, strict=True)]
    for measure, by_hand in (
        (Hellinger(pairs=True), plain_hellinger),
        (KullbackLeibler(pairs=True, smoothing=0.25), lambda x, y: plain_kullback_leibler(x, y, 0.25)),
    ):
        alone = [by_hand(x, y) for x, y in zip(first, second, strict=True)]
        together = by_hand(list(original), list(masked))
        found = measure.score(data, shown)
        assert [found.parts["a"], found.parts["b"]] == pytest.approx(alone, abs=1e-12)
        assert found.value == pytest.approx((sum(alone) / 2 + together) / 2, abs=1e-12)


def test_nothing_is_lost_where_nothing_changed() -> None:
    data = with_gaps(people(), 0.1)
    for measure in (Hellinger(), Hellinger(pairs=True), KullbackLeibler(), KullbackLeibler(pairs=True)):
        assert measure.score(data, data).value == 0
    turned = synthetic(data, data.table().take(pa.array(np.random.default_rng(0).permutation(len(data)))))
    assert Hellinger(pairs=True).score(data, turned).value == 0


def test_disjoint_columns_are_as_far_apart_as_can_be() -> None:
    data = microdata({"a": ["x"] * 5, "n": [1.0] * 5})
    shown = pa.table({"a": ["y"] * 5, "n": pa.array([None] * 5, pa.float64())})
    assert Hellinger().score(data, shown).value == 1
    assert 0 < KullbackLeibler().score(data, shown).value < math.inf


def test_pairs_notice_what_marginals_do_not() -> None:
    a = ["p", "q"] * 50
    data = microdata({"a": a, "b": a})
    shown = pa.table({"a": a, "b": ["p", "p", "q", "q"] * 25})
    assert Hellinger().score(data, shown).value == 0
    found = Hellinger(pairs=True).score(data, shown)
    assert found.value == pytest.approx(hellinger(np.array([50.0, 0, 0, 50]), np.full(4, 25.0)) / 2)


def test_more_noise_moves_distributions_further() -> None:
    data = people(1000)
    for measure in (Hellinger(), KullbackLeibler()):
        found = [np.mean([measure.score(data, noisy(data, k, s)).value for s in range(4)]) for k in (0.03, 0.3, 3.0)]
        assert found[0] < found[1] < found[2]


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=80), st.integers(2, 12))
def test_ranges_hold_every_value_once_and_cut_between_values(values: list[int], bins: int) -> None:
    known = np.array(values, dtype=float)
    cuts = range_cuts(known, bins)
    assert np.all(np.diff(cuts) > 0)
    assert not np.isin(cuts, known).any()
    assert cuts.size <= 2 * (bins - 1) or cuts.size == np.unique(known).size - 1
    if np.unique(known).size <= bins:
        assert cuts.size == np.unique(known).size - 1


def test_ranges_of_a_smooth_column_hold_equal_shares() -> None:
    known = np.random.default_rng(0).normal(size=10_000)
    cuts = range_cuts(known, 10)
    assert cuts.size == 9
    held = np.bincount(np.searchsorted(cuts, known), minlength=10)
    assert held.min() >= 995 and held.max() <= 1005


def test_a_spike_is_a_range_by_itself() -> None:
    known = np.r_[np.zeros(900), np.arange(1.0, 101)]
    cuts = range_cuts(known, 10)
    assert np.searchsorted(cuts, 0.0) != np.searchsorted(cuts, 1.0)
    data = microdata({"n": known})
    assert Hellinger().score(data, pa.table({"n": known + 0.2})).value == 0  # less than halfway to the next value


def test_many_cells_are_counted_without_a_table_of_them_all() -> None:
    draw = np.random.default_rng(0)
    codes = draw.integers(0, 3000, (4, 500))
    wide = Cells(codes[0], codes[1], 3000).joined(Cells(codes[2], codes[3], 3000))
    assert wide.count == 9_000_000
    left, right = wide.counts()
    assert left.size <= 1000
    first, second = (list(zip(codes[i].tolist(), codes[i + 2].tolist(), strict=True)) for i in (0, 1))
    assert hellinger(left, right) == pytest.approx(plain_hellinger(list(first), list(second)))


def test_all_pairs_are_in_the_mean() -> None:
    data = people(60)
    shown = noisy(data, 0.5)
    together = [Hellinger(pair, pairs=True).score(data, shown).parts["all pairs"] for pair in combinations(data.column_names, 2)]
    assert Hellinger(pairs=True).score(data, shown).parts["all pairs"] == pytest.approx(np.mean(together))


def test_smoothing_keeps_the_divergence_finite_and_zero_for_equal_counts() -> None:
    counts = np.array([3.0, 0.0, 5.0])
    assert kullback_leibler(counts, counts, 0.5) == 0
    assert math.isfinite(kullback_leibler(counts, np.array([0.0, 8.0, 0.0]), 0.5))


def test_parameters_out_of_range_are_refused() -> None:
    with pytest.raises(ParameterError, match="bins"):
        Hellinger(bins=1)
    with pytest.raises(ParameterError, match="bins"):
        KullbackLeibler(bins=0)
    with pytest.raises(ParameterError, match="smoothing"):
        KullbackLeibler(smoothing=0)
