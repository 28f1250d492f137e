"""Risk profile: how many records carry which risk of being picked out by somebody who knows they are in the
table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.report.figures.drawing import ACCENT, INK, MUTED, SECOND, board, finished, tidy_axes

_EDGES = (0.0, 0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 1 / 3, 0.5, 1.0)
_NAMES = ("0.1 %", "1 %", "2 %", "5 %", "10 %", "20 %", "33 %", "50 %", "100 %")


def risk_profile(sizes: Sequence[int] | NDArray[np.int64]) -> str:
    """Bars: the share of records whose risk (1 over the size of the class) lies up to each step."""
    values = np.asarray(sizes, dtype=np.float64)
    risk = 1 / values
    bins = np.searchsorted(np.array(_EDGES[1:]) + 1e-12, risk)
    records = np.bincount(bins, weights=values, minlength=len(_NAMES))
    total = max(float(values.sum()), 1.0)
    highest = float(risk.max()) if values.size else 0.0
    average = values.size / total
    with board(7.2, 3.1) as drawn:
        axes = drawn.axes()
        for place, count in enumerate(records):
            low = "0 %" if place == 0 else _NAMES[place - 1]
            bar = axes.bar(place, count / total, width=0.86, color=ACCENT)[0]
            bar.set_gid(f"bar-{place}")
            drawn.tooltips[f"bar-{place}"] = (
                f"{int(count):,} records ({count / total * 100:.1f} %) with a risk above {low} and up to {_NAMES[place]}"
            )
            if count:
                axes.annotate(
                    _percent(count / total),
                    (place, count / total),
                    (0, 3),
                    textcoords="offset points",
                    ha="center",
                    va="bottom",
                    fontsize=11,
                    color=MUTED,
                )
        axes.set_xticks(range(len(_NAMES)), [f"≤ {name}" for name in _NAMES])
        top = max(float(records.max()) / total if records.size else 0.0, 0.01)
        axes.set_ylim(0, top * 1.15)
        axes.set_yticks([])
        axes.set_xlabel("risk that a known participant's record is picked out")
        axes.set_ylabel("share of records")
        tidy_axes(axes, grid="y")
        text = f"highest {_percent(highest)}, average {_percent(average)}"
        axes.set_title(text, loc="left", fontsize=12, color=INK)
        limit = int(np.searchsorted(np.array(_EDGES[1:]) + 1e-12, highest))
        if values.size and limit < len(_NAMES) - 1:
            axes.axvline(limit + 0.5, color=SECOND, linewidth=1.4, linestyle=(0, (4, 3)))
            axes.annotate(
                "nobody beyond",
                (limit + 0.5, 0.9),
                (6, 0),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                va="top",
                fontsize=11,
                color=SECOND,
            )
        return finished(drawn, "risk-profile", "Risk of being picked out", f"Share of records by risk: {text}.")


def _percent(rate: float) -> str:
    return f"{rate * 100:.3g} %" if rate >= 0.0001 or rate == 0 else "< 0.01 %"
