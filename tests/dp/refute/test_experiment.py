"""Histograms of outputs on neighbours against the exact law, point masses included.

Chi-square tests reject a right law with a chance of 1e-6 each; randomness is seeded.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.errors import ParameterError
from sfumato.core.randomness import StreamRandomness
from sfumato.report.figures.output_histogram import output_histogram as figure

ALARM = 1e-6
D10 = (1000, 2000, 3000, 2000, 1000, 6000, 2000, 10000, 2000, 4000)
WITH = (*D10, 1_000_000)


def truncated(epsilon: int, runs: int = 10_000) -> Any:
    mechanism = sf.dp.TruncatedMean(2000, 4000, epsilon=epsilon, min_size=5, bounds=(1000, 1_000_000))
    source = StreamRandomness(epsilon)
    laws = [sf.dp.truncated_mean_law(values, epsilon, 2000, 4000, 2000) for values in (D10, WITH)]
    return sf.dp.output_histogram(lambda values: mechanism.answer(values, source), D10, WITH, runs=runs, laws=laws)


@pytest.mark.golden("G-DP-33")
@pytest.mark.parametrize("epsilon", [1, 2])
def test_the_truncated_mean_follows_its_exact_law_on_both_neighbours(epsilon: int) -> None:
    found = truncated(epsilon)
    assert found.atoms == (2000.0, 4000.0) and found.runs == 10_000
    for which in (0, 1):
        assert found.p_value(which) > ALARM
        assert found.counts[which].sum() + found.atom_counts[which].sum() == 10_000
    for share, other in zip(found.atom_shares(0), found.atom_shares(1), strict=True):
        assert max(share / other, other / share) < np.exp(epsilon) * 1.1


@pytest.mark.slow
def test_the_clamping_down_mean_follows_its_exact_law_and_not_the_printed_one() -> None:
    mechanism, source = sf.dp.ClampingDownMean(2000, 4000, epsilon=1), StreamRandomness(3)
    replaced = (*D10[:-1], 1_000_000)
    laws = [sf.dp.clamping_down_mean_law(values, 1, 2000, 4000) for values in (D10, replaced)]
    found = sf.dp.output_histogram(lambda values: mechanism.answer(values, source), D10, replaced, laws=laws)
    assert min(found.p_value(0), found.p_value(1)) > ALARM
    printed = [sf.dp.clamping_down_mean_law(values, 1, 2000, 4000, clamp_records=False) for values in (D10, replaced)]
    wrong = sf.dp.output_histogram(lambda values: mechanism.answer(values, source), D10, replaced, laws=printed)
    assert max(wrong.p_value(0), wrong.p_value(1)) < ALARM


def test_values_with_a_probability_of_their_own_are_found_without_a_law() -> None:
    rng = np.random.default_rng(1)
    found = sf.dp.output_histogram(
        lambda centre, count: np.clip(rng.normal(centre, 1, count), 0, 3), 1.0, 2.0, runs=2000, vectorised=True
    )
    assert found.atoms == (0.0, 3.0)
    with pytest.raises(ParameterError):
        found.expected(0)


def test_outputs_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ParameterError):
        sf.dp.output_histogram(lambda value: float("nan"), 0, 1, runs=100)


def test_the_figure_has_a_tooltip_for_every_mark_and_no_script() -> None:
    found = truncated(1, runs=500)
    drawn = figure(found, names=("D10", "D10 and 1 000 000"))
    root = ElementTree.fromstring(drawn)
    titles = [node.text or "" for node in root.iter() if node.tag.endswith("title")]
    assert sum("exactly 2000" in title or "exactly 4000" in title for title in titles) == 4
    assert any("exact probability of 4000: 0.352344" in title for title in titles)
    assert "<script" not in drawn and "http://www.w3.org" in drawn
    assert figure(found) == figure(found)
