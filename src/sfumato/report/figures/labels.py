"""Names beside the marks of a map, on a side where they cover no mark and no other name, and never beyond the drawing.

A name belongs to the mark that it is nearest to, by a distance, or to the one that a line joins it with, past all others.
Boxes are measured as matplotlib draws them, in a font that is wider than those of most readers. A name for which there is no
room is left out, and its mark keeps its tooltip; one that must be there is written above the drawing.
"""

from __future__ import annotations

import math
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
#: Places farther off, which a line joins with their mark; the last ones are for names that must be there.
_FAR = tuple(
    (across, up, "center", "center")
    for reach in (28, 40, 65, 90, 120, 150)
    for up in (-reach, reach)
    for across in (-70, 0, 70, -140, 140)
)
_NEARER_ONES = 15  # of the places farther off
#: How far around its middle a mark reaches, and what is kept free around a name, in points.
_MARK, _FREE = 6.0, 1.5
#: How much nearer its own mark is to a name without a line than any other, in points; marks that near each other are one place.
_NEARER, _SAME = 3.0, 2.0


#: From a name to its mark.
_Line = tuple[tuple[float, float], tuple[float, float]]


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
    above: str = ""  # how it begins where it stands above the drawing, away from its mark


def place_labels(
    axes: Axes, labels: Sequence[Label], marks: Sequence[tuple[float, float]], kept_free: Sequence[tuple[float, float]] = ()
) -> None:
    """Write the names in this order, each where there is room; call it when the axes have their limits. Names cover neither marks
    nor places that are `kept_free`. One that is needed and has no room stands above the drawing, in the colour of its mark."""
    figure = axes.figure
    figure.draw_without_rendering()  # type: ignore[union-attr]  # so that the layout is that of the drawing
    scale = figure.dpi / 72
    inside = axes.get_window_extent()
    reach = _MARK * scale
    places = [(float(x), float(y)) for x, y in (axes.transData.transform(mark) for mark in marks)]
    free = [(float(x), float(y)) for x, y in (axes.transData.transform(place) for place in kept_free)]
    covered = [_box(x, y, reach) for x, y in (*places, *free)]
    covered += [text.get_window_extent() for text in axes.texts if text.get_text()]
    leads: list[_Line] = []
    names: list[Bbox] = []
    for label in labels:
        best: tuple[float, Annotation] | None = None
        x, y = axes.transData.transform((label.x, label.y))
        others = [place for place in places if math.hypot(place[0] - x, place[1] - y) > _SAME * scale]
        for written in _tried(axes, label):
            box = _text_box(written).padded(_FREE * scale)
            outside = not (inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1)
            cost = 1000.0 * outside + sum(box.overlaps(other) for other in covered)
            cost += not _is_plain(written, box, (float(x), float(y)), others, scale)
            line = _line_to(written, (float(x), float(y)))
            if line is not None:
                cost += sum(_meet(line, other) for other in leads) + sum(_crosses(line, other) for other in names)
            cost += sum(_crosses(other, box) for other in leads)
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
                words = label.above + " ".join(label.text.split("\n"))  # a line higher than what stands above the drawing already
                axes.set_title(f"{words}\n", loc="left", fontsize=label.size, color=label.colour, fontweight="bold")
            continue
        best[1].set_in_layout(False)
        names.append(_text_box(best[1]))
        covered.append(names[-1])
        if (line := _line_to(best[1], (float(x), float(y)))) is not None:
            leads.append(line)


def _tried(axes: Axes, label: Label) -> Iterator[Annotation]:
    for across, up, horizontal, vertical in (*_SIDES, *(_FAR if label.needed else _FAR[:_NEARER_ONES])):
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


def _is_plain(
    written: Annotation, box: Bbox, mark: tuple[float, float], others: Sequence[tuple[float, float]], scale: float
) -> bool:
    """Whether a reader sees which mark a name is of: a line leads to it past all others, or it is the nearest by a distance."""
    if written.arrow_patch is not None:
        middle = ((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2)
        return all(_off_line(other, middle, mark) > _MARK * scale for other in others)
    own = _away(box, mark)
    return all(own + _NEARER * scale <= _away(box, other) for other in others)


def _line_to(written: Annotation, mark: tuple[float, float]) -> _Line | None:
    """The line from the middle of a name to its mark, where one is drawn."""
    if written.arrow_patch is None:
        return None
    box = _text_box(written)
    return ((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2), mark


def _meet(one: _Line, other: _Line) -> bool:
    """Whether two lines cross."""

    def turn(start: tuple[float, float], end: tuple[float, float], place: tuple[float, float]) -> float:
        return (end[0] - start[0]) * (place[1] - start[1]) - (end[1] - start[1]) * (place[0] - start[0])

    apart = turn(*one, other[0]) * turn(*one, other[1]) < 0
    return apart and turn(*other, one[0]) * turn(*other, one[1]) < 0


def _crosses(line: _Line, box: Bbox) -> bool:
    """Whether a line runs through a box."""
    corners = [(box.x0, box.y0), (box.x1, box.y0), (box.x1, box.y1), (box.x0, box.y1)]
    sides = zip(corners, [*corners[1:], corners[0]], strict=True)
    return any(_meet(line, side) for side in sides)


def _away(box: Bbox, place: tuple[float, float]) -> float:
    """How far a place is from a box; 0 within."""
    across = max(box.x0 - place[0], 0.0, place[0] - box.x1)
    up = max(box.y0 - place[1], 0.0, place[1] - box.y1)
    return math.hypot(across, up)


def _off_line(place: tuple[float, float], start: tuple[float, float], end: tuple[float, float]) -> float:
    """How far a place is from the line between two others."""
    across, up = end[0] - start[0], end[1] - start[1]
    length = across**2 + up**2
    along = 0.0 if length == 0 else ((place[0] - start[0]) * across + (place[1] - start[1]) * up) / length
    along = min(max(along, 0.0), 1.0)
    return math.hypot(place[0] - start[0] - along * across, place[1] - start[1] - along * up)


def _text_box(written: Annotation) -> Bbox:
    """The box of the words, without the line to their mark."""
    from matplotlib.text import Text

    written.get_window_extent()  # brings the words to their place
    return Text.get_window_extent(written)


def _box(x: float, y: float, reach: float) -> Bbox:
    from matplotlib.transforms import Bbox

    return Bbox.from_extents(x - reach, y - reach, x + reach, y + reach)
