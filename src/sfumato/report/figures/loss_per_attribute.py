"""Loss per attribute: how much detail each quasi-identifier gave up."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.report.escape import shorten, visible
from sfumato.report.figures.drawing import ACCENT, GRID, INK, MUTED, PAPER, board, finished


def loss_per_attribute(losses: Mapping[str, float], *, levels: Mapping[str, str] | None = None) -> str:
    """Bars from 0 % (untouched) to 100 % (nothing left); `levels` adds a word on each attribute's
    generalisation."""
    ordered = sorted(losses.items(), key=lambda pair: (-pair[1], pair[0]))
    with board(7.2, 0.75 + 0.36 * max(len(ordered), 1)) as drawn:
        axes = drawn.axes()
        for place, (name, loss) in enumerate(ordered):
            axes.barh(place, 1.0, height=0.62, color=GRID, alpha=0.45, linewidth=0)
            bar = axes.barh(place, loss, height=0.62, color=ACCENT)[0]
            bar.set_gid(f"bar-{place}")
            note = f" ({visible(levels[name])})" if levels and name in levels else ""
            drawn.tooltips[f"bar-{place}"] = f"{visible(name)}: {loss * 100:.2f} % of the detail lost{note}"
            inside = loss > 0.9
            label = f"{loss * 100:.0f} %" if loss in (0.0, 1.0) else f"{loss * 100:.1f} %"
            axes.annotate(
                label,
                (loss, place),
                (-6 if inside else 6, 0),
                textcoords="offset points",
                va="center",
                ha="right" if inside else "left",
                fontsize=11,
                color=PAPER if inside else INK,
            )
        axes.set_yticks(range(len(ordered)), [shorten(name, 24) for name, _ in ordered])
        axes.tick_params(axis="y", labelcolor=INK, labelsize=12)
        axes.set_xlim(0, 1)
        axes.set_ylim(max(len(ordered), 1) - 0.5, -0.5)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
        axes.set_xlabel("detail lost (0 %: as in the original, 100 %: everything)", color=MUTED)
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)
        summary = ", ".join(f"{visible(name)} {loss * 100:.0f} %" for name, loss in ordered)
        return finished(drawn, "loss-per-attribute", "Loss of detail per attribute", summary or "No attribute.")
