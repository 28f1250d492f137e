"""Ledger timeline: which releases of which data sets were made when; about the same people they add up."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.core.errors import InputError
from sfumato.report.figures.drawing import ACCENT, GRID, INK, SECOND, board, finished, short_name
from sfumato.report.figures.labels import Label, place_labels
from sfumato.report.markup import visible


@dataclass(frozen=True)
class TimelineRelease:
    """One release in the ledger: data set, ISO time, a word on what was promised, and whether it is this
    release."""

    dataset: str
    created: str
    promise: str = ""
    current: bool = False


def ledger_timeline(entries: Sequence[TimelineRelease]) -> str:
    """A row per data set, a mark per release, this release marked."""
    names = sorted({entry.dataset for entry in entries})
    moments = [moment(entry.created) for entry in entries]
    with board(7.2, 1.15 + 0.45 * max(len(names), 1)) as drawn:
        axes = drawn.axes()
        for place in range(len(names)):
            axes.axhline(place, color=GRID, linewidth=1)
        for i, (entry, when) in enumerate(zip(entries, moments, strict=True)):
            place = names.index(entry.dataset)
            mark = axes.scatter(
                [when], [place], s=110 if entry.current else 60, color=SECOND if entry.current else ACCENT,
                zorder=3, linewidth=0,
            )  # fmt: skip
            mark.set_gid(f"release-{i}")
            which = " (this release)" if entry.current else ""
            promise = f": {visible(entry.promise)}" if entry.promise else ""
            drawn.tooltips[f"release-{i}"] = [f"{visible(entry.dataset)}, {visible(entry.created)}{promise}{which}"]
        axes.set_yticks(range(len(names)), [short_name(name, 28) for name in names])
        axes.tick_params(axis="y", labelcolor=INK, labelsize=12)
        axes.set_ylim(-0.7, max(len(names), 1) - 0.3)
        if moments:
            pad = max((max(moments) - min(moments)) * 0.08, 0.5)
            axes.set_xlim(min(moments) - pad, max(moments) + pad)
        date_axis(axes, moments)
        places = [(when, float(names.index(entry.dataset))) for entry, when in zip(entries, moments, strict=True)]
        current = [place for entry, place in zip(entries, places, strict=True) if entry.current]
        place_labels(axes, [Label("this release", *place, SECOND, 11, needed=True) for place in current], places)
        axes.spines["left"].set_visible(False)
        text = f"{len(entries):,} releases of {len(names):,} data sets."
        return finished(drawn, "ledger-timeline", "Releases in the ledger", text)


def date_axis(axes: object, moments: Sequence[float]) -> None:
    """Dates along the bottom of a drawing whose places are days."""
    from matplotlib.axes import Axes
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    assert isinstance(axes, Axes)  # noqa: S101  (for the type checker)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda day, _: _date_text(day)))
    if not moments:
        axes.set_xticks([])


def _date_text(day: float) -> str:
    try:
        return datetime.date.fromordinal(int(day)).isoformat()
    except (ValueError, OverflowError):
        return ""


def moment(created: str) -> float:
    """Days since the year 1, with the time of day as a fraction, in UTC."""
    try:
        time = datetime.datetime.fromisoformat(created)
    except ValueError:
        raise InputError("a ledger entry has a time that is not in ISO form") from None
    if time.tzinfo is not None:
        time = time.astimezone(datetime.UTC)
    return time.toordinal() + (time.hour * 3600 + time.minute * 60 + time.second) / 86400
