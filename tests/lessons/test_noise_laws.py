"""The figure of shifted Laplace densities: plain SVG, as the documentation shows it."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from sfumato.lessons.noise_laws import noise_laws

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_figure_has_a_tooltip_on_each_curve() -> None:
    root = ElementTree.fromstring(noise_laws())
    titles = [node.text or "" for node in root.iter("{http://www.w3.org/2000/svg}title")]
    assert sum("density of L(" in title for title in titles) == 3
    assert sum("stays between e^-" in title for title in titles) == 2
    assert "<script" not in noise_laws()


def test_the_documentation_shows_this_figure() -> None:
    told = re.compile(r"<desc[^>]*>(.*?)</desc>", re.DOTALL)
    kept = (DOCS / "figures" / "noise-laws.svg").read_text("utf-8")
    assert told.search(kept)[1] == told.search(noise_laws())[1]  # type: ignore[index]
