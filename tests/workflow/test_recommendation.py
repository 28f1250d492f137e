"""What is recommended: above chance, with error bars, never a mask that was drawn before, and with what it does not promise."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import sfumato as sf
from sfumato.workflow.comparing.draws import margin, told_apart, widened
from sfumato.workflow.comparing.grid import method_of, usual_methods
from sfumato.workflow.comparing.measuring import Point
from tests.measures.mixed_people import all_quasi, survey
from tests.workflow.test_mask import SCHEMA, table


@pytest.fixture(scope="module")
def people() -> sf.Microdata:
    return sf.read(table(150), SCHEMA)


@pytest.fixture(scope="module")
def comparison(people: sf.Microdata) -> Any:
    methods = ["AdditiveNoise(ratio=[0.5, 0.501])", "Mdav(k=5)", "KAnonymity(k=5) by Mondrian", "Mdav(k=500)"]
    return sf.compare(people, methods, cache=False, workers=1, guessed=("wage",))


def test_every_method_is_drawn_several_times(comparison: Any) -> None:
    noise, _, mdav, recoded, _ = comparison.points
    assert [len(point.draws) for point in comparison.measured] == [4] * 4
    assert noise.margins[0] > 0 and mdav.margins == (0.0, 0.0)
    assert noise.gain == pytest.approx(np.mean([gain for gain, _ in noise.draws]))
    assert recoded.guaranteed and mdav.guaranteed and not noise.guaranteed
    assert noise.drawn and not mdav.drawn and not recoded.drawn


def test_a_search_has_no_margin_and_measuring_it_has(comparison: Any) -> None:
    noise, _, _, recoded, _ = comparison.points
    recoded = dataclasses.replace(
        recoded, draws=((0.1, 0.2), (0.12, 0.2), (0.11, 0.21), (0.1, 0.2))
    )  # cells, measured four times
    assert recoded.margins == (0.0, 0.0) and recoded.measured_within[0] > 0 and noise.measured_within == noise.margins
    both = dataclasses.replace(comparison, points=(recoded, noise))
    assert ["±" in line for line in both.lines() if recoded.label in line or noise.label in line] == [False, True]
    alone = dataclasses.replace(comparison, points=(recoded,))
    assert any(reason.startswith("The method draws nothing, but measuring its cells does") for reason in alone.reasons)


def test_bounds_by_few_draws_are_said_to_be_wide(comparison: Any) -> None:
    """Beside the interval of a known deviation, which very many draws come to."""
    alone = dataclasses.replace(comparison, points=(comparison.points[0],))
    assert any("make these bounds 1.8 times as wide as many would" in reason for reason in alone.reasons)
    assert widened(20) < 1.1 and widened(4) == pytest.approx(3.182446 * 1.25**0.5 / 1.959964, rel=1e-6)


def test_the_margin_holds_a_new_draw() -> None:
    """4,000 series of four draws and one more: 95 % lie inside; below 93 % or above 97 % has a chance below 10⁻⁶."""
    draw = np.random.default_rng(1)
    inside = 0
    for _ in range(4_000):
        *before, after = draw.normal(0.3, 0.02, 5).tolist()
        inside += abs(after - np.mean(before)) <= margin(before)
    assert 0.93 <= inside / 4_000 <= 0.97
    assert margin([0.3]) is None


def test_equal_methods_are_told_apart_once_in_twenty_times_and_different_ones_always() -> None:
    draw = np.random.default_rng(2)
    equal = [told_apart(draw.normal(0.3, 0.02, 4).tolist(), draw.normal(0.3, 0.03, 4).tolist()) for _ in range(2_000)]
    assert 0.02 <= np.mean(equal) <= 0.07  # Welch's test is a little cautious with four draws
    assert told_apart([0.1, 0.11, 0.1, 0.1], [0.3, 0.31, 0.3, 0.32]) is True
    assert told_apart([0.1, 0.1], [0.1, 0.1]) is False and told_apart([0.1, 0.1], [0.2, 0.2]) is True
    assert told_apart([0.1], [0.2, 0.3]) is None


def test_welch_agrees_with_a_second_computation() -> None:
    stats = pytest.importorskip("scipy.stats")
    draw = np.random.default_rng(3)
    for _ in range(200):
        first, second = draw.normal(0, 1, 4).tolist(), draw.normal(1, 2, 3).tolist()
        assert told_apart(first, second) == (stats.ttest_ind(first, second, equal_var=False).pvalue < 0.05)


def test_methods_that_cannot_be_told_apart_are_said_to_be(comparison: Any) -> None:
    """The same noise at nearly the same strength: whichever of the two wins, the other is named beside it."""
    only = dataclasses.replace(comparison, points=comparison.points[:2])
    first, second = only.points
    assert told_apart(first.balances, second.balances) is False
    assert only.alike == (second if only.recommended is first else first,)
    said = " ".join(only.reasons)
    assert "cannot be told apart" in said and first.label in said and second.label in said
    once = [dataclasses.replace(point, draws=point.draws[:1]) for point in only.points]
    assert "drawn once" in " ".join(dataclasses.replace(only, points=tuple(once)).reasons)


def test_a_mask_without_a_guarantee_is_recommended_with_that_said_in_the_same_sentence(comparison: Any) -> None:
    by_label = {point.label: point for point in comparison.points}
    noise = comparison.points[0].label
    for label, words in (
        (noise, "promises no guarantee"),
        ("Mdav(k=5)", "keeps its guarantee"),
        ("KAnonymity(k=5) by Mondrian", "keeps its guarantee"),
    ):
        alone = dataclasses.replace(comparison, points=(by_label[label],))
        [sentence] = [reason for reason in alone.reasons if reason.startswith(f"Take {label}")]
        assert words in sentence
        assert ("That draws a new mask" in " ".join(alone.reasons)) == (label == noise)
    masks = dataclasses.replace(comparison, points=(by_label[noise], _lossy(by_label["KAnonymity(k=5) by Mondrian"])))
    assert any("keep a guarantee KAnonymity(k=5) by Mondrian" in reason for reason in masks.reasons)


@pytest.mark.parametrize("label", ["Mdav(k=5)", "KAnonymity(k=5) by Mondrian", "AdditiveNoise(ratio=0.5)"])
def test_what_is_said_of_a_guarantee_is_what_protect_certifies(people: sf.Microdata, label: str) -> None:
    [point] = sf.compare(people, [label], runs=1, cache=False, workers=1).points
    guarantee, _, search = label.partition(" by ")
    release = (
        sf.protect(people, sf.KAnonymity(5), sf.Mondrian()) if search else sf.protect(people, method=method_of(point.method))
    )
    assert bool(release.certificate.claims) == point.guaranteed


def _lossy(point: Point) -> Point:
    return dataclasses.replace(point, loss=1.0, draws=tuple((gain, 1.0) for gain, _ in point.draws))


def test_the_published_draw_is_a_new_one_and_measured_itself(people: sf.Microdata, tmp_path: Path) -> None:
    """Nothing but scores is written, and what is typed to publish names no seed: two releases differ."""
    found = sf.compare(people, ["AdditiveNoise(ratio=0.5)"], cache=tmp_path / "kept", workers=1)
    assert found.typed is not None and "seed" not in " ".join(found.typed)
    assert {path.suffix for path in (tmp_path / "kept").iterdir()} == {".json", ""}
    for path in (tmp_path / "kept").glob("*.json"):
        assert "risk" in json.loads(path.read_bytes())
    first, second = (sf.protect(people, method=sf.AdditiveNoise(0.5), ledger=tmp_path / f"{i}.db") for i in range(2))
    assert not first.data.equals(second.data)
    assert first.owner.scores and first.scores != second.scores


def test_the_map_shows_the_gain_its_floor_and_error_bars(comparison: Any) -> None:
    tree = ElementTree.fromstring(comparison.figure())
    assert [node for node in tree.iter() if (node.get("id") or "").endswith("chance")]
    titles = [node.text or "" for node in tree.iter() if node.tag.endswith("title")]
    point = comparison.points[0]
    [tooltip] = {text for text in titles if text.startswith(f"{point.label}: risk")}
    assert "by chance" in tooltip and "gain" in tooltip and "±" in tooltip
    assert len([node for node in tree.iter() if "LineCollection" in (node.get("id") or "")]) >= 2


def test_the_page_names_columns_roles_components_and_records_found(comparison: Any) -> None:
    page = comparison.page()
    for words in ("guessed", "declared", "wage", "quasi", "out of bounds", "interval disclosure", "Records found", "by chance"):
        assert words in page, words
    assert f"of {comparison.records:,} (by chance" in page


def test_the_table_has_one_short_line_for_a_refused_method(comparison: Any) -> None:
    [line] = [line for line in comparison.lines() if "Mdav(k=500)" in line]
    assert "refused" in line and len(line) < 260
    assert comparison.to_mapping()["points"][-1]["refused"] == comparison.points[-1].refused


def test_the_default_search_is_among_what_is_compared() -> None:
    methods = usual_methods(all_quasi(survey(60)))
    searches = {type(method.search).__name__ for method in methods if isinstance(method, sf.Recoded)}
    assert type(sf.Recoded(sf.KAnonymity(3)).search).__name__ in searches and "Mondrian" in searches


def test_draws_of_a_search_share_one_search_and_are_those_of_separate_runs(people: sf.Microdata, monkeypatch: Any) -> None:
    from sfumato.anonymity.search.mondrian import Mondrian

    method, searches, solve = sf.Recoded(sf.KAnonymity(5), sf.Mondrian()), [], Mondrian.solve

    def counted(search: Mondrian, *problem: Any) -> Any:
        searches.append(search)
        return solve(search, *problem)

    monkeypatch.setattr(Mondrian, "solve", counted)
    together = sf.compare(people, [method], cache=False, workers=1).points[0]
    assert len(searches) == 1 and len(together.draws) == 4
    from sfumato.workflow.comparing.compare import USUAL_RISK, _masked_measure

    alone = [
        _masked_measure(USUAL_RISK).score(people, method.apply(people, seed=f"compare/{run}").result).gain for run in range(4)
    ]
    assert [gain for gain, _ in together.draws] == pytest.approx(alone)
