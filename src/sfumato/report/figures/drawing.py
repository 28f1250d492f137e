"""The drawing board of every figure: one look, and SVG that is safe to put inside a page.

matplotlib draws; what it writes is then cleaned: no declaration, metadata or style block, every id prefixed
with the figure's name, colours as CSS variables (a dark page sets them), fonts left to the reader's system, a
title and a description for screen readers and a tooltip on every mark. Nothing in the text depends on the
clock or on chance.
"""

from __future__ import annotations

import io
import itertools
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from sfumato.report.markup import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colours by role: what matplotlib gets (a code no chart would use) and the CSS that replaces it.
INK, MUTED, GRID, ACCENT = "#010203", "#040506", "#070809", "#0a0b0c"
PALE, SECOND, PAPER = "#0d0e0f", "#101112", "#131415"
_COLOURS = {
    INK: "var(--figure-ink, #1f2933)",
    MUTED: "var(--figure-muted, #55606b)",
    GRID: "var(--figure-grid, #d8dee4)",
    ACCENT: "var(--figure-accent, #154a6b)",
    PALE: "var(--figure-pale, #6b96b0)",
    SECOND: "var(--figure-second, #b8472f)",
    PAPER: "var(--figure-paper, #ffffff)",
}
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
_STYLE: dict[Any, Any] = {
    "axes.edgecolor": GRID,
    "axes.facecolor": "none",
    "axes.labelcolor": MUTED,
    "axes.labelsize": 12,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.unicode_minus": False,
    "figure.facecolor": "none",
    "font.family": ["DejaVu Sans"],
    "font.size": 12,
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "sfumato",
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a column name is a dollar sign
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "path.simplify": False,
}
_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"
#: Free space around the name of a tick, in pixels.
_TICK_GAP = 1.5
_ALLOWED = frozenset("svg g path use defs clipPath rect circle line polyline polygon text tspan title desc".split())


@dataclass
class Board:
    """A figure in the making: its drawing area, and the tooltips of its marks by their id (`set_gid`)."""

    figure: Figure
    tooltips: dict[str, str | Sequence[str]] = field(default_factory=dict)

    def axes(self) -> Axes:
        """The only drawing area."""
        return self.figure.subplots()


@contextmanager
def board(width: float = 7.2, height: float = 3.4) -> Iterator[Board]:
    """A drawing board of this size in inches, in the house style."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(), warnings.catch_warnings():
        # texts keep their characters whatever font measures them here; the reader's browser draws them
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        matplotlib.rcdefaults()  # a reader's own settings must not change the bytes
        matplotlib.rcParams.update(_STYLE)
        yield Board(Figure(figsize=(width, height), layout="constrained"))


def finished(drawn: Board, name: str, title: str, description: str) -> str:
    """The SVG of a figure; call it while its board is open."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    _keep_ticks_apart(drawn.figure)
    buffer = io.BytesIO()
    canvas: Any = FigureCanvasSVG(drawn.figure)
    canvas.print_svg(buffer, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    root = ElementTree.fromstring(buffer.getvalue())  # noqa: S314  (written by matplotlib a line above)
    _clean(root, name)
    _add_tooltips(root, {f"{name}-{gid}": text for gid, text in drawn.tooltips.items()})
    root.set("role", "img")
    root.set("xmlns", _SVG[1:-1])
    root.set("aria-labelledby", f"{name}-title {name}-desc")
    root.set("style", f"font-family: {_FONT}; stroke-linejoin: round; stroke-linecap: butt")
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        heading = ElementTree.Element(tag, {"id": f"{name}-{tag}"})
        heading.text = visible(text)
        root.insert(place, heading)
    return _recoloured(ElementTree.tostring(root, encoding="unicode"))


def _keep_ticks_apart(figure: Figure) -> None:
    """Of the names along an axis only so many that none runs into the next: all, every second, every third and so on."""
    figure.draw_without_rendering()  # so that boxes are those of the drawing
    for panel in figure.axes:
        for axis in (panel.xaxis, panel.yaxis):
            ticks = [tick for tick in axis.get_major_ticks() if tick.label1.get_visible() and tick.label1.get_text()]
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in ticks if low - 1e-9 <= tick.get_loc() <= high + 1e-9]
            boxes = [tick.label1.get_window_extent().padded(_TICK_GAP) for tick in ticks]
            step = next((step for step in range(1, len(boxes) + 1) if not _collide(boxes[::step])), 1)
            if step > 1:
                kept = ticks[::step]
                axis.set_ticks([tick.get_loc() for tick in kept], [tick.label1.get_text() for tick in kept])


def _collide(boxes: Sequence[Any]) -> bool:  # boxes of matplotlib
    return any(one.overlaps(other) for one, other in itertools.pairwise(boxes))


def tidy_axes(axes: Axes, *, grid: str) -> None:
    """Hairlines along one direction behind the marks, no frame but the base line."""
    axes.set_axisbelow(True)
    axes.grid(axis="y" if grid == "y" else "x", color=GRID, linewidth=0.8)
    axes.spines["left" if grid == "y" else "bottom"].set_visible(False)


def _clean(root: ElementTree.Element, name: str) -> None:
    """Plain element names, only drawing elements, ids of this figure."""
    for parent in root.iter():
        for child in list(parent):
            if child.tag.removeprefix(_SVG) not in _ALLOWED:
                parent.remove(child)
    for node in root.iter():
        node.tag = node.tag.removeprefix(_SVG)
        for key in list(node.attrib):
            value = node.attrib.pop(key)
            if key == "id":
                value = f"{name}-{value}"
            elif key == _LINK:
                key, value = "href", f"#{name}-{value.removeprefix('#')}"
            elif key in ("width", "height", "version") and node is root:
                continue
            if key in ("d", "x", "y", "transform", "points"):
                value = re.sub(r"\s+", " ", re.sub(r"-?\d+\.\d{2,}", _rounded, value)).strip()
            node.set(key, re.sub(r"url\(#", f"url(#{name}-", value))
        if node.tag == "text" and "style" in node.attrib:
            # keep size and anchor, leave the family to the page
            node.set("style", re.sub(r"font-family: [^;]+; ", "", node.attrib["style"]))


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number.group()):.2f}".rstrip("0").rstrip(".")


def _add_tooltips(root: ElementTree.Element, tooltips: Mapping[str, str | Sequence[str]]) -> None:
    for node in list(root.iter("g")):
        text = tooltips.get(node.get("id", ""))
        if text is None:
            continue
        if isinstance(text, str):
            _titled(node, text)
        else:
            for mark, line in zip(list(_marks(node)), text, strict=True):
                _titled(mark, line)


def _marks(node: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """The drawn shapes of a collection: matplotlib writes each as a path, or as a use of one defined path."""
    for child in node:
        if child.tag in ("use", "path"):
            yield child
        elif child.tag != "defs":
            yield from _marks(child)


def _titled(node: ElementTree.Element, text: str) -> None:
    title = ElementTree.Element("title")
    title.text = visible(text)
    node.insert(0, title)


def _recoloured(source: str) -> str:
    # Element and attribute names hold no `#`; texts that happen to hold such a code are escaped by their own
    # markup only,
    # so only style values are touched.
    def in_style(match: re.Match[str]) -> str:
        style = match.group()
        for code, colour in _COLOURS.items():
            style = style.replace(code, colour)
        return style

    return re.sub(r'style="[^"]*"', in_style, source)


def short_name(text: str, longest: int) -> str:
    """A name of at most so many characters; a long one loses its middle, so that names which begin alike stay different.

    >>> short_name("question 17 of the survey", 16)
    'questio…e survey'
    """
    shown = visible(text)
    if len(shown) <= longest:
        return shown
    tail = (longest - 1) // 2
    return f"{shown[: longest - 1 - tail]}…{shown[-tail:]}"


def fit_titles(axes: Sequence[Axes], texts: Sequence[str]) -> None:
    """Titles of small drawings, each shortened until it ends where its drawing does."""
    shown = [
        (panel, panel.set_title(text, loc="left", fontsize=12, color=INK, fontweight="bold"), text)
        for panel, text in zip(axes, texts, strict=True)
    ]
    if not shown:
        return
    shown[0][0].figure.draw_without_rendering()  # type: ignore[union-attr]
    for panel, title, text in shown:
        room, left = panel.get_window_extent(), len(text)
        while left > 4 and title.get_window_extent().x1 > room.x1:
            left -= 1
            title.set_text(short_name(text, left))
