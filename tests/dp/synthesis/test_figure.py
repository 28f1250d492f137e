"""The figure beside the owner's report: plain SVG, the same bytes for the same numbers, safe whatever the names."""

from __future__ import annotations

from xml.etree import ElementTree

import pyarrow as pa

import sfumato as sf
from sfumato.dp import quality
from sfumato.report.content import inline_svg
from sfumato.report.figures.synthetic_quality import synthetic_quality
from tests.dp.synthesis.people import people, small

SVG = "{http://www.w3.org/2000/svg}"


def test_the_figure_shows_every_column_and_every_distance():
    data = people(300)
    source = synthetic_quality(quality(data, data.table().slice(0, 150)))
    inline_svg(source, "synthetic-quality")
    titles = [node.text or "" for node in ElementTree.fromstring(source).iter(f"{SVG}title")]
    assert any(title.startswith("Ankara: ") and title.endswith("(synthetic)") for title in titles)
    assert any(title.startswith("three columns: ") for title in titles)
    texts = {node.text for node in ElementTree.fromstring(source).iter(f"{SVG}text")}
    assert {"city", "grade", "age", "income", "member", "floor"} <= texts
    assert source == synthetic_quality(quality(data, data.table().slice(0, 150)))


def test_hostile_names_stay_text_and_long_domains_are_shortened():
    hostile = "<script>alert('x')</script>"
    values = [hostile, *(f"value {place}" for place in range(40))]
    data = sf.read(pa.table({hostile: values}), {"dataset": "d", "columns": {hostile: {"domain": values}}})
    source = synthetic_quality(quality(data, data.table()))
    assert "<script" not in source
    assert "31 others" in source


def test_an_empty_comparison_can_be_drawn():
    empty = small([], [])
    ElementTree.fromstring(synthetic_quality(quality(empty, empty.table())))
