"""Interval disclosure and the combined risk."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import InputError, ParameterError, Unsupported
from sfumato.data.masked import Masked
from sfumato.measures.risk.disclosure.disclosure_risk import DisclosureRisk, combined_risk, overall_score
from sfumato.measures.risk.disclosure.interval_disclosure import IntervalDisclosure
from sfumato.measures.risk.linkage.distance_linkage import DistanceLinkage
from sfumato.measures.risk.linkage.probabilistic_linkage import ProbabilisticLinkage
from tests.measures.masks import noisy, numbers, people, table

X = numbers(200)
PEOPLE = people(X)


@pytest.mark.golden("G-RSK-08")
def test_the_weights_of_the_score() -> None:
    risk = combined_risk(40, 20, 10)
    assert risk == 27.5
    assert overall_score(30, risk) == 28.75
    assert combined_risk(40, 20, 10, linkage="largest") == 30
    assert combined_risk(40, 20, 10, linkage="only") == 15
    assert combined_risk(40, 20, 10, weights=(1, 0, 0), linkage="only") == 15


def ranks_by_hand(x: np.ndarray, y: np.ndarray) -> float:
    """Per column and width: is the original between the masked values w % of n ranks away?"""
    shares = []
    for a, b in zip(x.T.tolist(), y.T.tolist(), strict=True):
        ranked = sorted(b)
        for width in range(1, 11):
            steps = width * len(b) // 100
            inside = 0
            for value, shown in zip(a, b, strict=True):
                first, last = ranked.index(shown), len(ranked) - 1 - ranked[::-1].index(shown)
                inside += ranked[max(first - steps, 0)] <= value <= ranked[min(last + steps, len(b) - 1)]
            shares.append(inside / len(a))
    return float(np.mean(shares))


@pytest.mark.parametrize("masked", [noisy(X, 0.1), noisy(X, 2.0), np.round(X)])
def test_rank_intervals_equal_counting_by_hand(masked: np.ndarray) -> None:
    assert IntervalDisclosure().score(PEOPLE, table(masked)).value == pytest.approx(ranks_by_hand(X, masked))


def test_deviation_intervals_equal_counting_by_hand_and_are_symmetric_in_position() -> None:
    masked = noisy(X, 0.05)
    gap = np.abs(X - masked) / X.std(axis=0)
    expected = np.mean([(gap <= width / 100).mean() for width in range(1, 11)])
    score = IntervalDisclosure("deviation").score(PEOPLE, table(masked))
    assert score.value == pytest.approx(expected)
    assert set(score.parts) == {"height", "weight", "age", "pulse"}


def test_missing_values_and_constants() -> None:
    x = np.array([[1.0], [2.0], [np.nan], [4.0]])
    y = np.array([[1.0], [np.nan], [3.0], [4.0]])
    for version in ("rank", "deviation"):
        assert IntervalDisclosure(version).score(people(x), table(y)).value == pytest.approx(2 / 3)
    flat = np.full((4, 1), 5.0)
    assert IntervalDisclosure("deviation").score(people(flat), table(flat)).value == 1.0
    assert IntervalDisclosure("deviation").score(people(flat), table(flat + 1)).value == 0.0


def test_the_score_is_made_of_its_parts() -> None:
    masked = table(noisy(X, 0.3))
    score = DisclosureRisk().score(PEOPLE, masked)
    parts = [measure.score(PEOPLE, masked).value for measure in (IntervalDisclosure(), DistanceLinkage(), ProbabilisticLinkage())]
    assert list(score.parts.values())[:3] == pytest.approx(parts)
    assert score.value == pytest.approx(0.5 * parts[0] + 0.25 * parts[1] + 0.25 * parts[2])
    largest = DisclosureRisk(linkage="largest").score(PEOPLE, masked).value
    assert largest == pytest.approx(0.5 * parts[0] + 0.5 * max(parts[1:]))
    assert DisclosureRisk().score(PEOPLE, table(X)).value == 1.0


def test_without_numbers_the_score_rests_on_linkage() -> None:
    words = pa.table({"job": list("abcd"), "town": list("xyxy")})
    original = sf.read(words, schema=sf.Schema.of(quasi=["job", "town"]))
    score = DisclosureRisk().score(original, words)
    assert score.value == 1.0 and score.parts["intervals counted"] == 0.0
    with pytest.raises(Unsupported, match="about numbers"):
        IntervalDisclosure().score(original, words)


def test_mixed_data_count_intervals_of_the_numbers() -> None:
    rows = pa.table({"job": list("abcd"), "age": [20, 30, 40, 50]})
    original = sf.read(rows, schema=sf.Schema.of(quasi=["job", "age"]))
    score = DisclosureRisk().score(original, rows)
    assert score.value == 1.0 and score.parts["intervals counted"] == 1.0


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="sum to 1"):
        DisclosureRisk(weights=(0.5, 0.5, 0.5))
    with pytest.raises(ParameterError, match="sum to 1"):
        combined_risk(1, 1, 1, weights=(1.5, -0.25, -0.25))
    with pytest.raises(ParameterError, match="linkage"):
        DisclosureRisk(linkage="mean")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="version"):
        IntervalDisclosure("width")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="version"):
        DisclosureRisk(version="width")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="bins"):
        DisclosureRisk(bins=0)
    with pytest.raises(ParameterError, match="distance"):
        DisclosureRisk(distance="taxi")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no record stands behind"):
        DisclosureRisk().score(PEOPLE, table(X[:3]))


def test_a_person_published_twice_counts_as_found_by_either_row() -> None:
    rows = np.repeat(np.arange(len(X)), 2)
    score = DisclosureRisk().score(PEOPLE, Masked(table(X[rows]), PEOPLE.schema, tuple(table(X).column_names), rows))
    assert score.value == pytest.approx(1.0)
    assert score.parts["distance linkage"] == score.parts["probabilistic linkage"] == pytest.approx(1.0)
