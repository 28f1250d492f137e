"""Figures: well-formed, the same bytes for the same numbers, a tooltip on each mark, and safe whatever the
names."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.errors import InputError, ParameterError
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.microdata import ReleasedTable, ShownValue
from sfumato.data.schema import Schema
from sfumato.report.content import inline_svg
from sfumato.report.figures.class_sizes import class_sizes, one_two_five, risk_profile
from sfumato.report.figures.distributions import compared, loss_per_attribute
from sfumato.report.figures.ledger_budget import MOST_ACCOUNTS, AccountBudget, ledger_budget
from sfumato.report.figures.ledger_budget import MOST_MARKS as MOST_SPENDS
from sfumato.report.figures.ledger_timeline import TimelineRelease, ledger_timeline
from sfumato.report.figures.tradeoff import MOST_MARKS, Nodes, frontier, tradeoff
from tests.report.sample import CANARY, figures

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def drawn() -> dict[str, str]:
    return figures()


@pytest.mark.parametrize("text", ["age", CANARY])
def test_every_figure_is_plain_svg_with_title_and_description(text: str) -> None:
    for name, source in figures(text).items():
        root = ElementTree.fromstring(source)
        assert root.tag == f"{SVG}svg"
        assert root.get("role") == "img"
        first, second = list(root)[:2]
        assert (first.tag, second.tag) == (f"{SVG}title", f"{SVG}desc")
        assert root.get("aria-labelledby") == f"{first.get('id')} {second.get('id')}"
        assert first.text and second.text
        assert "width" not in root.attrib
        inline_svg(source, name)


def test_ids_of_different_figures_do_not_meet(drawn: dict[str, str]) -> None:
    ids = Counter(node.get("id") for source in drawn.values() for node in ElementTree.fromstring(source).iter())
    del ids[None]
    assert [name for name, count in ids.items() if count > 1] == []


def test_the_same_numbers_give_the_same_bytes(drawn: dict[str, str]) -> None:
    assert figures() == drawn


@pytest.mark.slow
def test_the_bytes_do_not_depend_on_the_process_or_the_settings_of_its_user(drawn: dict[str, str], tmp_path: object) -> None:
    settings = f"{tmp_path}/matplotlibrc"
    with open(settings, "w") as file:
        file.write("font.size: 31\naxes.facecolor: red\nsvg.fonttype: path\n")
    program = (
        "from tests.report.sample import figures; import hashlib; print(hashlib.sha256(repr(figures()).encode()).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "MATPLOTLIBRC": settings, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    import hashlib

    assert found == {hashlib.sha256(repr(drawn).encode()).hexdigest() + "\n"}


def test_drawing_leaves_the_settings_of_matplotlib_alone() -> None:
    import matplotlib

    matplotlib.rcParams["font.size"] = 17
    try:
        class_sizes([3, 4])
        assert matplotlib.rcParams["font.size"] == 17
    finally:
        matplotlib.rcdefaults()


def titles(source: str, group: str) -> list[str]:
    root = ElementTree.fromstring(source)
    return [
        title.text or ""
        for node in root.iter(f"{SVG}g")
        if (node.get("id") or "").startswith(group)
        for title in node.iter(f"{SVG}title")
    ]


def test_every_bar_says_its_numbers() -> None:
    source = class_sizes([5, 5, 7, 30], k=5)
    assert "3 classes of 5–9 records, 17 records together" in titles(source, "class-sizes-bar")
    assert "30 records (63.8 %) with a risk above 2 % and up to 5 %" in titles(risk_profile([5, 5, 7, 30]), "risk-profile-bar")
    losses = loss_per_attribute({"a": 0.25, "b": 1.0}, levels={"a": "level 1"})
    assert titles(losses, "loss-per-attribute-bar") == [
        "b: 100.00 % of the detail lost",
        "a: 25.00 % of the detail lost (level 1)",
    ]


@pytest.mark.parametrize("largest", [1, 2, 3, 9, 10, 11, 999, 1000, 123_456])
def test_bins_cover_every_size_once(largest: int) -> None:
    edges = one_two_five(largest)
    assert edges[0] == 1
    assert edges == sorted(set(edges))
    assert edges[-1] > largest >= edges[-2]


def test_the_frontier_is_what_no_node_betters() -> None:
    rng = np.random.default_rng(7)
    risk, loss = rng.random(200).round(2), rng.random(200).round(2)
    front = set(frontier(risk, loss).tolist())
    for i in range(200):
        bettered = np.any((risk <= risk[i]) & (loss <= loss[i]) & ((risk < risk[i]) | (loss < loss[i])))
        if i in front:
            assert not bettered
        elif not bettered:
            assert any(risk[i] == risk[j] and loss[i] == loss[j] for j in front)


def test_every_node_of_a_large_lattice_is_counted_and_the_figure_stays_small() -> None:
    rng = np.random.default_rng(3)
    n = 12_960
    risk, loss = 1 / rng.integers(1, 5000, n), rng.random(n)
    source = tradeoff(Nodes(risk, loss, np.zeros(n), chosen=17))
    marks = titles(source, "tradeoff-spots")
    counted = sum(int(text.split(" node")[0].replace(",", "")) for text in marks)
    assert counted + len({*frontier(risk, loss).tolist(), 17}) == n
    assert len(marks) > 100
    assert len(source) < 500_000
    assert n > MOST_MARKS


def test_tradeoff_refuses_arrays_of_different_lengths() -> None:
    with pytest.raises(ParameterError, match="same length"):
        tradeoff(Nodes([0.1], [0.2, 0.3], [0.0]))


def test_empty_inputs_are_drawn_too() -> None:
    for source in (
        class_sizes([]),
        risk_profile([]),
        loss_per_attribute({}),
        ledger_timeline([]),
        tradeoff(Nodes([], [], [])),
    ):
        ElementTree.fromstring(source)


def test_a_ledger_time_that_is_none_is_refused_without_repeating_it() -> None:
    with pytest.raises(InputError) as caught:
        ledger_timeline([TimelineRelease("d", "CANARY-TIME")])
    assert "CANARY" not in str(caught.value)


def test_generalised_values_are_spread_over_their_leaves() -> None:
    tree = Hierarchy.from_levels([["a", "ab", "*"], ["b", "ab", "*"], ["c", "c", "*"]])
    released = ReleasedTable(pa.table({"x": ["ab", "ab", "c", "*"]}), Schema.of(quasi=["x"]), {"x": tree}, 4)
    found = compared("x", {"a": 2, "b": 1, "c": 1}, released)
    shares = dict(zip(found.labels, zip(found.before, found.after, strict=True), strict=True))
    assert shares["a"] == pytest.approx((2 / 4, (1 + 1 / 3) / 4))
    assert shares["c"] == pytest.approx((1 / 4, (1 + 1 / 3) / 4))
    assert found.after.sum() == pytest.approx(1)


def test_ranges_are_spread_over_the_numbers_they_hold() -> None:
    ranges = {"x": {"[0, 10)": ShownValue(0.5, 10, frozenset(), bounds=(0.0, 10.0))}}
    tree = Hierarchy.from_levels([[str(i), "*"] for i in range(20)])
    released = ReleasedTable(pa.table({"x": ["[0, 10)"] * 4}), Schema.of(quasi=["x"]), {"x": tree}, 4, ranges)
    found = compared("x", {"3": 3, "7": 1, "15": 1}, released)
    assert dict(zip(found.labels, found.after, strict=True)) == pytest.approx({"3": 0.5, "7": 0.5, "15": 0.0})


def test_the_budget_figure_tells_shares_and_amounts() -> None:
    spends = (("2026-03-01T09:00:00+00:00", 0.25), ("2026-03-09T09:00:00+00:00", 0.5))
    source = ledger_budget(
        [AccountBudget("clinic", "ann", 0.75, "ε 0.75 of 1", spends), AccountBudget("clinic", "bob", 0.0, "ρ 0 of 2")]
    )
    assert "ann on clinic: ε 0.75 of 1 (75.00 %)" in source and "bob on clinic: ρ 0 of 2 (0.00 %)" in source
    assert "ann on clinic: 25.00 % spent by 2026-03-01" in source and "ann on clinic: 75.00 % spent by 2026-03-09" in source


def test_the_budget_figure_of_an_empty_ledger_says_so() -> None:
    assert "No grant yet." in ledger_budget([])


def test_a_long_history_and_many_accounts_are_thinned_and_the_last_spend_is_kept() -> None:
    spends = tuple((f"2026-03-01T{i // 60 % 24:02d}:{i % 60:02d}:00+00:00", 0.001) for i in range(1000))
    budgets = [AccountBudget("d", f"a{i}", 1.5, "more than granted") for i in range(MOST_ACCOUNTS + 5)]
    source = ledger_budget([AccountBudget("d", "ann", 1.0, "all", spends), *budgets])
    assert source.count("spent by 2026") == MOST_SPENDS and "100.00 % spent by" in source
    assert "6 more accounts" in source


def test_whole_numbers_that_floating_point_does_not_tell_apart_are_one_range() -> None:
    numbers = [2**63 + place for place in range(200)]
    table = ReleasedTable(pa.table({"n": pa.array(numbers, pa.uint64())}), Schema(dataset="large"), records=200)
    drawn = compared("n", {str(number): 1 for number in numbers}, table)
    assert drawn.before.sum() == pytest.approx(1) and len(drawn.labels) == drawn.before.size
