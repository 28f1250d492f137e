"""An answer as notebooks show it: its rows with the margin of every noisy number, and what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.core.markup import Child, shorten, table
from sfumato.core.panel import panel

if TYPE_CHECKING:
    from sfumato.dp.sql.asking.answer import QueryAnswer
    from sfumato.dp.sql.margins.reach import Interval

#: A longer answer is cut; its table has all of it.
_MOST_ROWS = 20
_CONFIDENCE = 0.95


def answer_panel(answered: QueryAnswer) -> str:
    """The first rows, with margins at 95 %, and the loss that was charged."""
    answer = answered.answer
    noisy = {note.name for note in answered.explanation.columns}
    intervals = answer.intervals(_CONFIDENCE, _MOST_ROWS)
    rows: list[tuple[Child, ...]] = [
        tuple(_cell(value, intervals[name][place], name in noisy) for name, value in zip(answer.names, row, strict=True))
        for place, row in enumerate(answer.rows[:_MOST_ROWS])
    ]
    left = len(answer.rows) - len(rows)
    caption = f"Margins at 95 % confidence{f'; {left:,} more rows are in .table' if left > 0 else ''}"
    charged = answered.loss.claim()
    facts: list[tuple[str, Child]] = [("cost", f"nothing: asked before, at {charged}" if answered.repeated else charged)]
    facts += [("counted", answered.contribution)]
    facts += [("chosen", answered.selection)] if answered.selection else []
    if not answered.source.private:
        facts.append(("demonstration", "its noise was seeded: anybody with the seed can take it away again"))
    names = [shorten(name, 80) for name in answer.names]
    return panel("Answer", facts, table(caption, names, rows, row_headers=False))


def _cell(value: Any, interval: Interval | None, noisy: bool) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not noisy:
        return shorten(value, 60)
    return f"{value:,} ± ?" if interval is None else interval.beside(value)
