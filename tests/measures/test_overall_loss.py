"""The loss of the map: it sees the shape of distributions, where PIL sees moments."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.data.masked import compared
from sfumato.data.schema import Column, Schema
from sfumato.measures.risk import DisclosureRisk
from sfumato.measures.utility import Hellinger, InformationLoss, OverallLoss
from sfumato.measures.utility.overall_loss import WEIGHTS, moved_quantiles
from sfumato.measures.utility.relations import moved_relations
from tests.measures.mixed_people import all_quasi, survey

NUMBERS = ("age", "glucose", "bmi")


@pytest.fixture(scope="module")
def people() -> sf.Microdata:
    return all_quasi(survey(2_000))


def test_the_value_is_the_weighted_mean_of_its_components(people: sf.Microdata) -> None:
    masked = sf.AdditiveNoise(0.3, columns=NUMBERS).apply(people, seed=1).result
    score = OverallLoss().score(people, masked)
    assert score.value == pytest.approx(sum(WEIGHTS[name] * score.parts[name] for name in WEIGHTS))
    kept = 1 - score.parts["values out of bounds"] / (2_000 * 11)
    assert score.parts["kept"] == pytest.approx(kept) and kept < 1
    for name, measure in (("statistics", InformationLoss()), ("marginals", Hellinger())):
        assert score.parts[name] == pytest.approx(1 - kept * (1 - measure.score(people, masked).value))
    left, right, _ = compared(people, masked, None)
    assert score.parts["relations"] == pytest.approx(1 - kept * (1 - moved_relations(left, right)))
    assert all(f"{name} {weight:.2g}" in score.meaning for name, weight in WEIGHTS.items())
    assert OverallLoss().score(people, people).value == 0.0


def _permuted(table: pa.Table, seed: int = 0) -> pa.Table:
    draw = np.random.default_rng(seed)
    return pa.table({name: table[name].take(pa.array(draw.permutation(table.num_rows))) for name in table.column_names})


def _bound(rows: int = 1_000, seed: int = 0) -> pa.Table:
    """Numbers and words that go together, as measurements of one body do."""
    draw = np.random.default_rng(seed)
    size = draw.gamma(5, 1, rows)
    numbers = {f"x{i}": size * draw.normal(1, 0.1, rows) for i in range(4)}
    kind = np.digitize(size * draw.normal(1, 0.1, rows), [3.0, 5.0])
    return pa.table({**numbers, "kind": np.array(["small", "middle", "large"])[kind]})


def test_losing_all_relations_costs_more_than_any_mask_that_keeps_them() -> None:
    """Swapping ever further loses ever more; without any relation left, more than groups of ten or their whole shape."""
    table = _bound()
    people, numbers = all_quasi(table), ("x0", "x1", "x2", "x3")
    swapped = [
        OverallLoss(numbers).score(people, sf.RankSwapping(p=p, columns=numbers).apply(people, seed=1).result).value
        for p in (2, 10, 25, 50, 100)
    ]
    assert swapped == sorted(swapped) and swapped[-1] > 2 * swapped[1]
    grouped = OverallLoss(numbers).score(people, sf.Mdav(k=10, columns=numbers).apply(people, seed=1).result)
    assert grouped.value < 0.5 * swapped[-1] and grouped.parts["relations"] < 0.1
    assert OverallLoss().score(people, _permuted(table)).parts["relations"] > 0.9


def test_relations_weigh_as_much_as_all_that_columns_show_alone() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1)
    assert WEIGHTS["relations"] == pytest.approx(WEIGHTS["quantiles"] + WEIGHTS["marginals"] + WEIGHTS["out of bounds"])
    words = _bound().select(["kind"]).append_column("other", _bound()["kind"])
    assert "relations 0.3" in (meaning := OverallLoss().score(all_quasi(words), words).meaning) and "marginals 0.3" in meaning


@pytest.mark.parametrize("rows", [20, 200, 2_000])
@pytest.mark.parametrize("related", [True, False])
def test_unknown_values_and_values_that_cannot_be_are_lost_in_every_component(rows: int, related: bool) -> None:
    table = _bound(rows) if related else _permuted(_bound(rows))
    people = all_quasi(table)
    unknown = OverallLoss().score(people, pa.table({n: pa.nulls(rows, table[n].type) for n in table.column_names}))
    assert unknown.value == pytest.approx(1) and all(unknown.parts[name] == pytest.approx(1) for name in WEIGHTS)
    numbers = table.select([f"x{i}" for i in range(4)])
    far = OverallLoss().score(all_quasi(numbers), pa.table({name: np.full(rows, 1e6) for name in numbers.column_names}))
    assert far.value == pytest.approx(1) and all(far.parts[name] == pytest.approx(1) for name in WEIGHTS)


def test_the_more_is_unknown_the_more_is_lost() -> None:
    table = _bound()
    people, draw = all_quasi(table), np.random.default_rng(3).random((1_000, 5))
    losses = []
    for share in (0.0, 0.1, 0.5, 0.9):
        holes = {n: pa.array(table[n].to_pylist(), mask=draw[:, i] < share) for i, n in enumerate(table.column_names)}
        score = OverallLoss().score(people, pa.table(holes))
        assert all(score.parts[name] >= 1 - score.parts["kept"] - 1e-12 for name in WEIGHTS if name != "out of bounds")
        assert score.parts["out of bounds"] == pytest.approx(np.mean(draw[:, :4] < share))
        losses.append(score.value)
    assert losses[0] == 0.0 and losses == sorted(losses) and losses[2] > 0.5


def test_ipso_keeps_moments_and_no_longer_betters_rank_swapping(people: sf.Microdata) -> None:
    """By PIL it loses less than swapping and is safer; by shape it loses more, with values that nobody has,
    also where the relations that swapping breaks are counted."""
    ipso, swapped = (
        mask.apply(people, seed=1).result for mask in (sf.Ipso(columns=NUMBERS), sf.RankSwapping(p=20, columns=NUMBERS))
    )
    risks = [DisclosureRisk(columns=NUMBERS).score(people, masked).value for masked in (ipso, swapped)]
    pil = [InformationLoss(NUMBERS).score(people, masked).value for masked in (ipso, swapped)]
    assert risks[0] < risks[1] and pil[0] < pil[1]
    first, second = (OverallLoss(NUMBERS).score(people, masked) for masked in (ipso, swapped))
    assert first.value > 1.3 * second.value
    assert first.parts["relations"] < second.parts["relations"]
    assert first.parts["quantiles"] > 0.05 and second.parts["quantiles"] == 0.0
    assert first.parts["values out of bounds"] > 50 and second.parts["values out of bounds"] == 0


def test_quantiles_that_all_move_to_one_value_are_lost() -> None:
    x = np.random.default_rng(1).gamma(2, 1, 500)
    assert moved_quantiles(x, x) == 0.0
    assert moved_quantiles(x, np.full(500, np.quantile(x, 0.5))) == pytest.approx(1.0)
    assert moved_quantiles(x, np.full(500, np.nan)) == 1.0
    assert moved_quantiles(x, x + 100) == 1.0
    assert moved_quantiles(np.ones(9), np.ones(9)) == 0.0 and moved_quantiles(np.ones(9), np.zeros(9)) == 1.0
    assert moved_quantiles(x * 1e300, x * 1e300 * 1.1) == pytest.approx(moved_quantiles(x, x * 1.1))


@pytest.mark.parametrize(("bounds", "outside"), [(None, 2), ((0.0, 10.0), 1), ((-5.0, 10.0), 0)])
def test_declared_bounds_say_what_cannot_be(bounds: tuple[float, float] | None, outside: int) -> None:
    schema = Schema(dataset="d", columns={"x": Column(role="quasi", type="number", bounds=bounds)})
    people = sf.read(pa.table({"x": [1.0, 2.0, 3.0, 4.0]}), schema)
    score = OverallLoss().score(people, pa.table({"x": [-1.0, 2.0, 3.0, 9.0]}))
    assert score.parts["values out of bounds"] == outside
    assert score.parts["out of bounds"] == outside / 4


def test_a_table_of_words_shares_the_weights() -> None:
    words = pa.table({"town": ["a", "b", "c", "d"] * 20})
    people = all_quasi(words)
    score = OverallLoss().score(people, pa.table({"town": ["a"] * 80}))
    assert set(score.parts) == {"statistics", "marginals", "tree", "kept"}
    parts = score.parts
    assert score.value == pytest.approx((0.3 * parts["marginals"] + 0.2 * parts["statistics"] + 0.2 * parts["tree"]) / 0.7)
