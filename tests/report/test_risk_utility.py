"""The risk-utility map: every mark is told, the front is joined, a hostile name stays a name."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from sfumato.core.errors import ParameterError
from sfumato.report.comparison_page import ComparisonContent, ComparisonRow, comparison_page
from sfumato.report.figures.risk_utility import Mark, RiskUtility, risk_utility

MARKS = [
    Mark("Mdav", "Mdav(k=3)", 0.5, 0.1, "Mdav(k=3): risk 50 %", best=True),
    Mark("Mdav", "Mdav(k=9)", 0.3, 0.3, "Mdav(k=9): risk 30 %", best=True),
    Mark("Noise", "Noise(<script>)", 0.7, 0.4, "Noise(<script>): risk 70 %"),
]


def titles(svg: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("title")]


def test_every_mark_is_told_and_the_recommended_one_twice() -> None:
    svg = risk_utility(RiskUtility(MARKS, (1.0, 0.0), chosen=1, most_risk=0.6))
    told = titles(svg)
    assert [sum(mark.tooltip in text for text in told) for mark in MARKS] == [1, 2, 1]
    assert any(text.startswith("the original") for text in told)
    assert "3 choices of method and parameters; for 2 of them no other is both safer and more useful." in svg


def test_the_same_content_gives_the_same_bytes() -> None:
    content = RiskUtility(MARKS, (1.0, 0.0), chosen=0)
    assert risk_utility(content) == risk_utility(content)


def test_many_families_and_equal_points_are_drawn() -> None:
    marks = [Mark(f"F{i}", f"F{i}()", 0.5, 0.5, f"F{i}: told", best=i == 0) for i in range(30)]
    assert len([text for text in titles(risk_utility(RiskUtility(marks, (1.0, 0.0)))) if "told" in text]) == 30


def test_a_map_without_methods_is_refused() -> None:
    with pytest.raises(ParameterError):
        risk_utility(RiskUtility([], (1.0, 0.0)))


def test_the_page_escapes_what_it_shows() -> None:
    rows = [
        ComparisonRow("Noise(<script>)", "front", 0.5, 0.2, "35 %", "10 %", scores={"pil": 0.1}),
        ComparisonRow("Bad()", "refused", note="no <b>columns</b>"),
    ]
    page = comparison_page(
        ComparisonContent("A <i>title", 10, risk_utility(RiskUtility(MARKS, (1.0, 0.0))), ["because <b>"], rows)
    )
    assert "<script>" not in page and "<b>" not in page and "<i>" not in page
    assert "Noise(&lt;script&gt;)" in page
