"""Names beside the marks of a map, on a side where they cover no mark and no other name, and never beyond the drawing.

Boxes are measured as matplotlib draws them, in a font that is wider than those of most readers. A name for which there is no room
is left out, and its mark keeps its tooltip; one that must be there is written above the drawing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.report.figures.drawing import INK, PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

#: Sides of a mark, nearest first: how far in points, and how the text is aligned.
_SIDES = (
    (9, 0, "left", "center"),
    (-9, 0, "right", "center"),
    (7, 7, "left", "bottom"),
    (-7, 7, "right", "bottom"),
    (7, -7, "left", "top"),
    (-7, -7, "right", "top"),
    (0, 10, "center", "bottom"),
    (0, -10, "center", "top"),
    (12, 20, "left", "bottom"),
    (-12, 20, "right", "bottom"),
    (12, -20, "left", "top"),
    (-12, -20, "right", "top"),
)
#: Places farther off, which a line joins with their mark.
_FAR = tuple(
    (across, up, "center", "center")
    for reach in (40, 65, 90, 120, 150)
    for up in (-reach, reach)
    for across in (-70, 0, 70, -140, 140)
)
#: How far around its middle a mark reaches, and what is kept free around a name, in points.
_MARK, _FREE = 6.0, 1.5


@dataclass(frozen=True)
class Label:
    """A name for the mark at a place of the drawing; one that is `needed` is written in any case."""

    text: str
    x: float
    y: float
    colour: str = INK
    size: float = 10.5
    bold: bool = False
    needed: bool = False


def place_labels(axes: Axes, labels: Sequence[Label], marks: Sequence[tuple[float, float]]) -> None:
    """Write the names in this order, each where there is room; call it when the axes have their limits. One that is needed and
    has no room stands above the drawing, in the colour of its mark."""
    figure = axes.figure
    figure.draw_without_rendering()  # type: ignore[union-attr]  # so that the layout is that of the drawing
    scale = figure.dpi / 72
    inside = axes.get_window_extent()
    reach = _MARK * scale
    covered = [_box(float(x), float(y), reach) for x, y in (axes.transData.transform(mark) for mark in marks)]
    covered += [text.get_window_extent() for text in axes.texts if text.get_text()]
    for label in labels:
        best: tuple[float, Annotation] | None = None
        for written in _tried(axes, label):
            box = _text_box(written).padded(_FREE * scale)
            outside = not (inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1)
            cost = 1000.0 * outside + sum(box.overlaps(other) for other in covered)
            if best is None or cost < best[0]:
                if best is not None:
                    best[1].remove()
                best = (cost, written)
            else:
                written.remove()
            if best[0] == 0:
                break
        if best is None:
            continue
        if best[0]:
            best[1].remove()
            if label.needed:
                words = " ".join(label.text.split("\n"))  # a line higher than what stands above the drawing already
                axes.set_title(f"{words}\n", loc="left", fontsize=label.size, color=label.colour, fontweight="bold")
            continue
        best[1].set_in_layout(False)
        covered.append(_text_box(best[1]))


def _tried(axes: Axes, label: Label) -> Iterator[Annotation]:
    for across, up, horizontal, vertical in (*_SIDES, *(_FAR if label.needed else ())):
        far = horizontal == vertical == "center"
        yield axes.annotate(
            label.text,
            (label.x, label.y),
            (across, up),
            textcoords="offset points",
            ha=horizontal,
            va=vertical,
            fontsize=label.size,
            fontweight="bold" if label.bold else "normal",
            color=label.colour,
            zorder=5,
            bbox={"facecolor": PAPER, "alpha": 0.8, "linewidth": 0, "pad": 1},
            arrowprops={"arrowstyle": "-", "color": label.colour, "linewidth": 0.8, "shrinkB": _MARK} if far else None,
        )


def _text_box(written: Annotation) -> Bbox:
    """The box of the words, without the line to their mark."""
    from matplotlib.text import Text

    written.get_window_extent()  # brings the words to their place
    return Text.get_window_extent(written)


def _box(x: float, y: float, reach: float) -> Bbox:
    from matplotlib.transforms import Bbox

    return Bbox.from_extents(x - reach, y - reach, x + reach, y + reach)
