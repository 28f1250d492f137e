"""The answer to a question in words: its rows with the margin of every noisy number, what it cost, and what is left."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfumato.core.certificate import plain
from sfumato.core.errors import SfumatoError
from sfumato.core.plain_data import PlainDict
from sfumato.ledger.amounts import LossAmount
from sfumato.report.markup import shorten

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.core.guarantees.loss import LossGuarantee
    from sfumato.dp.sql.asking.answer import QueryAnswer
    from sfumato.dp.sql.margins.reach import Interval

    Intervals = Mapping[str, Sequence[Interval | None]]

#: A longer answer is cut on the terminal; files and JSON hold all of it.
MOST_LINES = 60


def answer_lines(table: pa.Table, intervals: Intervals, noisy_columns: Collection[str] = ()) -> list[str]:
    """The answer with the margin of every noisy number, or both ends where one is farther off; a question mark for anything.

    `intervals` are by column, of the first `MOST_LINES` rows at least.
    """
    columns = []
    for name in table.column_names:
        values = table.column(name).slice(0, MOST_LINES).to_pylist()
        around = intervals.get(name, [None] * len(values))
        unsure = name in noisy_columns
        columns.append([_cell(value, interval, unsure) for value, interval in zip(values, around, strict=False)])
    widths = [max(len(text) for text in (name, *column)) for name, column in zip(table.column_names, columns, strict=True)]
    rows = [tuple(table.column_names), *zip(*columns, strict=True)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    left = table.num_rows - MOST_LINES
    return [*lines, f"… and {left:,} more rows (--json or --output has them all)"] if left > 0 else lines


def _cell(value: Any, interval: Interval | None, unsure: bool) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return shorten(value, 60)
    if interval is None:
        # A key is no amount: the year 2021 is not 2,021.
        return f"{value:,} ± ?" if unsure else str(value)
    return interval.beside(value)


def answer_facts(answered: QueryAnswer, confidence: float) -> PlainDict:
    """An answer as plain data: rows, errors, what it counts and what it costs by itself."""
    charged = amount(answered.loss)
    return {
        "rows": rows_of(answered.table),
        "standard_errors": rows_of(answered.errors),
        "margins": rows_of(answered.margins(confidence)),
        "intervals": rows_of(answered.intervals(confidence)),
        "confidence": confidence,
        "contribution": answered.contribution,
        "selection": answered.selection,
        "loss": charged.to_mapping() if isinstance(charged, LossAmount) else charged,
        "entry": answered.entry,
        "repeated": answered.repeated,
        "private": bool(answered.outcome.details.get("private")),
    }


def answer_text(answered: QueryAnswer, confidence: float) -> list[str]:
    """An answer with its margins, and what they are about."""
    intervals = answered.answer.intervals(confidence, MOST_LINES)
    lines = answer_lines(answered.answer.table(), intervals, {note.name for note in answered.explanation.columns})
    lines += ["", f"margins   ±, or low to high, at {confidence * 100:.10g}% confidence; {answered.loss.claim()}"]
    lines += [f"chosen    {answered.selection}"] if answered.selection else []
    return [*lines, f"counted   {answered.contribution}"]


def cost_lines(loss: LossGuarantee, entry: str | None, repeated: bool, left: LossAmount | None) -> list[str]:
    """What the answer cost and what is left."""
    charged = str(amount(loss))
    if repeated:
        paid = f"; it was charged {charged}" + (f" (ledger entry {entry[:16]}…)" if entry else "")
        lines = [f"cost      nothing: what it needs was answered before, and the same numbers are shown{paid}"]
    else:
        lines = [f"cost      {charged}" + (f" (ledger entry {entry[:16]}…)" if entry else "")]
    return [*lines, *([] if left is None else [f"left      {left}"])]


def amount(loss: LossGuarantee) -> LossAmount | str:
    """A guarantee as an amount where the ledger can hold it; otherwise its words."""
    try:
        return LossAmount.of(loss)
    except SfumatoError:
        return loss.claim()


def rows_of(table: pa.Table) -> list[PlainDict]:
    """The rows as plain data."""
    return [{name: _plain(value) for name, value in row.items()} for row in table.to_pylist()]


def _plain(value: Any) -> Any:
    return plain(value) if isinstance(value, (bool, int, float, str, type(None), Mapping, list)) else str(value)
