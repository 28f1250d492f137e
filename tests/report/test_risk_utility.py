"""The risk-utility map: every mark is told, the front is joined, a hostile name stays a name."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.text import Text

from sfumato.core.errors import ParameterError
from sfumato.report.comparison_page import ComparisonContent, ComparisonRow, comparison_page
from sfumato.report.figures.drawing import board
from sfumato.report.figures.labels import Label, place_labels
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


@pytest.mark.parametrize("seed", range(3))
def test_every_name_on_a_dense_map_belongs_to_one_mark(seed: int) -> None:
    """Thirty methods in three heaps: what no line joins with its mark is nearer to it than to any other."""
    draw = np.random.default_rng(seed)
    centres = np.repeat([[0.2, 0.7], [0.45, 0.4], [0.8, 0.15]], 10, axis=0)
    marks = [(float(x), float(y)) for x, y in centres + draw.normal(0, 0.035, centres.shape)]
    with board(7.6, 5.0) as drawn:
        axes = drawn.axes()
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        place_labels(axes, [Label(f"Method(p={i})", x, y) for i, (x, y) in enumerate(marks)], marks)
        places = axes.transData.transform(marks)
        scale = drawn.figure.dpi / 72
        placed = {int(text.get_text()[9:-1]): text for text in axes.texts if text.get_text()}
        lines = 0
        for number, text in placed.items():
            box, own = Text.get_window_extent(text), places[number]
            if text.arrow_patch is not None:
                lines += 1
                others = np.delete(places, number, axis=0)
                middle = np.array([(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2])
                steps = np.linspace(0, 1, 200)[:, None] * (own - middle) + middle
                nearest = np.linalg.norm(others[:, None] - steps, axis=2).min(axis=1)
                assert nearest[np.linalg.norm(others - own, axis=1) > 2 * scale].min() > 4 * scale
                continue
            off = np.maximum(np.maximum([box.x0, box.y0] - places, places - [box.x1, box.y1]), 0)
            away = np.linalg.norm(off, axis=1)
            assert away[number] <= 24 * scale
            same = np.linalg.norm(places - own, axis=1) <= 2 * scale
            assert away[~same].min() - away[number] >= 2 * scale  # marks in the same place are one to the eye
    assert len(placed) >= 15 and lines >= 3
