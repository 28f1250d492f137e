"""A release and a comparison as notebooks show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.core.panel import owners_mark, panel
from sfumato.report.comparison_words import balanced_order, note, with_margins
from sfumato.report.markup import Child, definitions, shorten, table
from sfumato.report.wording import counted, number, plain_name

if TYPE_CHECKING:
    from sfumato.workflow.comparing.compare import Comparison
    from sfumato.workflow.contents.base import Content
    from sfumato.workflow.release import Release

#: A longer comparison is cut; its page has all of it.
_MOST_POINTS = 20


def release_panel(release: Release[Content]) -> str:
    """What the certificate states; below it, marked as the owner's, the scores. No row is shown: `head` shows them."""
    shape = counted(len(release), "row") if hasattr(release.data, "num_rows") else "plain data"
    facts = [("content", shape), *release.certificate.facts()]
    if not release.scores:
        return panel("Release", facts)
    scores: list[tuple[str, Child]] = [(plain_name(name), number(value)) for name, value in release.scores.items()]
    return panel("Release", facts, owners_mark(), definitions(scores))


def comparison_words(comparison: Comparison) -> str:
    """A comparison in a line."""
    chosen = comparison.recommended
    choice = "none recommended" if chosen is None else f"recommended {shorten(chosen.label, 80)}"
    return f"Comparison('{shorten(comparison.dataset, 60)}', {counted(len(comparison.points), 'method')}, {choice})"


def comparison_panel(comparison: Comparison) -> str:
    """The points of a comparison, best balance first, and the recommendation."""
    chosen, front = comparison.recommended, comparison.front
    rows: list[tuple[Child, ...]] = []
    for point in balanced_order(comparison)[:_MOST_POINTS]:
        label = shorten(point.label, 120)
        if point.refused is not None:
            rows.append((label, "", "", "could not be applied"))
            continue
        gain, loss = with_margins(point)
        mark = "recommended" if point is chosen else "on the front" if point in front else ""
        rows.append((label, gain, loss, "; ".join(each for each in (mark, note(comparison, point)) if each)))
    left = len(comparison.points) - len(rows)
    more = f" ({left} more are in .page())" if left > 0 else ""
    caption = f"Risk above chance and loss of each method, best balance first{more}"
    facts: list[tuple[str, Child]] = [
        ("dataset", shorten(comparison.dataset, 200)),
        ("records", number(comparison.records)),
        ("recommended", "none" if chosen is None else shorten(chosen.label, 120)),
    ]
    return panel("Comparison", facts, table(caption, ("method", "gain", "loss", "note"), rows), owner=True)
