"""The answer to a question: a table, the standard error of every number, what it cost, and how it was reached.

An answer is kept in the ledger as plain data, so that the same question shows the same numbers for ever. What only some who ask
look at (errors, margins, the explanation, what is published) is computed when it is looked at.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.core.certificate import plain
from sfumato.core.declared import parameters, require_confidence
from sfumato.core.errors import LedgerError
from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.core.markup import shorten
from sfumato.core.outcome import Outcome
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.core.randomness import Randomness
from sfumato.data.publication import NOTHING_SAID, Publication
from sfumato.dp.outcomes import private_outcome
from sfumato.dp.sql.asking.list_columns import beside, with_lists
from sfumato.dp.sql.margins.column_errors import NO_ERROR, column_errors, column_law
from sfumato.dp.sql.margins.expressions import NoisyQuantiles, Possible
from sfumato.dp.sql.margins.quantiles import quantile_of
from sfumato.dp.sql.margins.reach import ColumnLaw, Distances, Interval, Reach, stored_law
from sfumato.dp.sql.measuring.noise import Price
from sfumato.dp.sql.measuring.one_query import Measured
from sfumato.dp.sql.measuring.statistic import Floats
from sfumato.dp.sql.operators.aggregates import PLACEHOLDER
from sfumato.dp.sql.operators.base import Cell
from sfumato.dp.sql.operators.language import evaluate
from sfumato.dp.sql.operators.ordering import in_this_order
from sfumato.dp.sql.operators.windows import window_values
from sfumato.dp.sql.question import Question, column_kind
from sfumato.dp.sql.reading.grouping import KEY

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.dp.sql.asking.explanation import Explanation

FORMAT = "sfumato-answer-1"

ARGUMENT = (
    "each unit's contribution is bounded before aggregation, sums are of integers on a fixed grid, and exact integer noise "
    "is scaled to the largest change that one unit can make; what follows is post-processing"
)


@dataclass(frozen=True)
class CellErrors:
    """The law of each column's noise, and the standard error of each cell (None where a cell has no noise, or no known one).

    `reaches` say how far off a cell may be at several confidences, where that does not follow from the error and the law of a
    noise.
    """

    laws: tuple[ColumnLaw, ...]
    errors: tuple[tuple[float | None, ...], ...]
    reaches: tuple[tuple[Reach | None, ...], ...] = ()


@dataclass(frozen=True)
class AnswerTable:
    """Rows of an answer and the errors of their cells, which are computed when somebody asks for them."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...] = field(repr=False)
    off: CellErrors | Callable[[], CellErrors] = field(repr=False, compare=False)

    @cached_property
    def cell_errors(self) -> CellErrors:
        """Errors and margins of all cells, which follow from the noisy measurements: the same whenever they are computed."""
        return self.off if isinstance(self.off, CellErrors) else self.off()

    @property
    def laws(self) -> tuple[ColumnLaw, ...]:
        """How margins follow from errors, column by column."""
        return self.cell_errors.laws

    @property
    def errors(self) -> tuple[tuple[float | None, ...], ...]:
        """The standard error of each cell."""
        return self.cell_errors.errors

    @property
    def reaches(self) -> tuple[tuple[Reach | None, ...], ...]:
        """How far below and above each cell what the bounded data says may lie."""
        return self.cell_errors.reaches

    def __reduce__(self) -> tuple[type[AnswerTable], tuple[object, ...]]:
        return AnswerTable, (self.names, self.kinds, self.rows, self.cell_errors)

    def to_mapping(self) -> PlainDict:
        """Plain data for the ledger."""
        return {
            "format": FORMAT,
            "columns": [
                {"name": name, "kind": kind, "law": str(law)}
                for name, kind, law in zip(self.names, self.kinds, self.laws, strict=True)
            ],
            "rows": [[_stored(cell) for cell in row] for row in self.rows],
            "errors": [list(row) for row in self.errors],
            "reaches": [[None if reach is None else [reach.below, reach.above] for reach in row] for row in self.reaches],
        }

    @classmethod
    def from_mapping(cls, mapping: Plain) -> AnswerTable:
        """Read a stored answer back."""
        if mapping.get("format") != FORMAT:
            raise LedgerError("the stored answer was written by another version; ask a slightly different question")
        columns = mapping["columns"]
        kinds = tuple(column["kind"] for column in columns)
        rows = tuple(tuple(_restored(c, k) for c, k in zip(row, kinds, strict=True)) for row in mapping["rows"])
        names, laws = tuple(column["name"] for column in columns), tuple(stored_law(column["law"]) for column in columns)
        errors = tuple(tuple(row) for row in mapping["errors"])
        reaches = tuple(tuple(_reach(sides) for sides in row) for row in mapping.get("reaches", ()))
        if "reaches" not in mapping:
            # Earlier answers kept one margin for both sides.
            reaches = tuple(tuple(_reach(m and (m, m)) for m in row) for row in mapping.get("margins", ()))
        return cls(names, kinds, rows, CellErrors(laws, errors, reaches))

    def table(self) -> pa.Table:
        """The answer as an Arrow table."""
        import pyarrow as pa

        types = {"string": pa.string(), "boolean": pa.bool_(), "date": pa.date32(), "number": pa.float64()}
        arrays = []
        for place, kind in enumerate(self.kinds):
            cells = [row[place] for row in self.rows]
            if kind == "integer":
                large = any(cell is not None and not -(2**63) <= cell < 2**63 for cell in cells)
                arrays.append(
                    pa.array([None if c is None else float(c) for c in cells]) if large else pa.array(cells, pa.int64())
                )
            else:
                arrays.append(pa.array(cells, types[kind]))
        return pa.Table.from_arrays(arrays, names=list(self.names))

    def error_table(self) -> pa.Table:
        """The standard errors, column by column as in the answer."""
        import pyarrow as pa

        columns = [pa.array([row[place] for row in self.errors], pa.float64()) for place in range(len(self.names))]
        return pa.Table.from_arrays(columns, names=list(self.names))

    def margin_table(self, confidence: float) -> pa.Table:
        """How far each number may be from what the bounded data says, at a confidence: the distance to the farther end.

        By the law of the noise for counts and sums; for everything else by what the noise may have been, and missing where that
        may be anything. An answer that was stored without that is read by the law of a sum of noises.
        """
        import pyarrow as pa

        margins = [[None if each is None else each.margin for each in column] for column in self.distances(confidence)]
        columns = [pa.array(column, pa.float64()) for column in margins]
        return pa.Table.from_arrays(columns, names=list(self.names))

    def interval_table(self, confidence: float) -> pa.Table:
        """The low and the high end between which what the bounded data says lies, at a confidence.

        Each number that has noise has a `low` and a `high`, of which one is missing where it may be anything; both are where
        nothing is known, as they are where there is no noise.
        """
        import pyarrow as pa

        kind = pa.struct([("low", pa.float64()), ("high", pa.float64())])
        columns = [
            pa.array([None if each is None else {"low": each.low, "high": each.high} for each in column], kind)
            for column in self.intervals(confidence).values()
        ]
        return pa.Table.from_arrays(columns, names=list(self.names))

    def intervals(self, confidence: float, most: int | None = None) -> dict[str, list[Interval | None]]:
        """The interval of each cell of the first rows, or of all, by column; None where there is no noise, or no end is known."""
        distances = self.distances(confidence, most)
        return {
            name: [_around(row[place], away) for row, away in zip(self.rows, distances[place], strict=False)]
            for place, name in enumerate(self.names)
        }

    def distances(self, confidence: float, most: int | None = None) -> list[list[Distances | None]]:
        """How far below and above each cell of the first rows, or of all, the ends lie, column by column."""
        require_confidence(confidence)
        rows = range(len(self.rows))[:most]
        return [[self._distances(row, place, confidence) for row in rows] for place in range(len(self.names))]

    def _distances(self, row: int, place: int, confidence: float) -> Distances | None:
        reach = self.reaches[row][place] if self.reaches else None
        if reach is not None:
            return reach.distances(confidence, self.laws[place].grid)
        error = self.errors[row][place]
        return None if error is None else self.laws[place].distances(error, confidence)


@dataclass(frozen=True)
class QueryAnswer:
    """A noisy answer: the `table` asked for, standard errors, what it cost, and where that is entered.

    `repeated` says that what it needs was measured before: the same numbers, at no cost, with the margins of the noise that
    was drawn then.
    """

    answer: AnswerTable
    question: Question
    price: Price
    dataset: str
    source: Randomness
    entry: str | None = None
    repeated: bool = False
    not_covered: tuple[str, ...] = ()
    publication: Publication = NOTHING_SAID

    @cached_property
    def explanation(self) -> Explanation:
        """Sensitivity, noise, expected error and cost of the question."""
        from sfumato.dp.sql.asking.explanation import explain

        explanation = explain(self.question, self.price, 0.95)
        return replace(explanation, notes=(*explanation.notes, *self.not_covered))

    @cached_property
    def outcome(self) -> Outcome[Any]:  # an Arrow table, which has no types
        """The answer as it is published: with its claim, and with the errors."""
        method = {
            "name": "Session.sql",
            "query": self.question.text,
            "bounds": plain(parameters(self.price.bounds)),
            "contribution": self.contribution,
        }
        return private_outcome(
            self.answer.table(),
            self.loss,
            method,
            argument=ARGUMENT,
            randomness=self.source,
            dataset=self.dataset,
            ledger_entry=self.entry,
            explanation=self.explanation.to_mapping(),
            not_covered=list(self.not_covered),
            errors=self.answer.error_table(),
            publication=self.publication.stated(),
        )

    @property
    def table(self) -> pa.Table:
        """What was asked for, as an Arrow table; several quantiles of one call are a list."""
        return self._with_lists(self.answer.table())

    @property
    def errors(self) -> pa.Table:
        """Standard errors, column by column; empty for keys."""
        return self._with_lists(self.answer.error_table())

    def margins(self, confidence: float = 0.95) -> pa.Table:
        """How far each number may be from what the counted rows say (see `contribution`), at a confidence."""
        return self._with_lists(self.answer.margin_table(confidence))

    def intervals(self, confidence: float = 0.95) -> pa.Table:
        """Between which `low` and `high` what the counted rows say lies, at a confidence: both sides need not be equally long."""
        return self._with_lists(self.answer.interval_table(confidence))

    def _with_lists(self, table: pa.Table) -> pa.Table:
        return with_lists(table, [column.listed for column in self.question.shown])

    @property
    def contribution(self) -> str:
        """What of each unit is counted: the margins are about that, and say nothing of rows beyond it."""
        return self.explanation.contribution

    @property
    def selection(self) -> str:
        """By what the query chose the groups that are shown, and that margins hold before that; empty where it shows all."""
        from sfumato.dp.sql.asking.explanation import chosen_groups

        return chosen_groups(self.question, self.price)

    @property
    def loss(self) -> LossGuarantee:
        """What its measurements were charged (when it is repeated, to the question that was asked first)."""
        return self.price.loss

    def to_pandas(self, confidence: float = 0.95) -> Any:  # pandas has no types
        """The table as a pandas DataFrame; beside each noisy column `n` stands `n_margin`, how far its numbers may be off at the
        confidence. A margin is missing where nothing is known of it."""
        from sfumato.core.extras import require_extra

        require_extra("pandas", "pandas", "to_pandas()")
        return self.with_margins(confidence).to_pandas()

    def with_margins(self, confidence: float = 0.95) -> pa.Table:
        """The table, and right of each noisy column its margins at the confidence."""
        return beside(self.table, self.margins(confidence), self._noisy)

    @property
    def _noisy(self) -> set[str]:
        """The columns of `table` that have noise."""
        noted = {note.name for note in self.explanation.columns}
        return {column.listed or column.name for column in self.question.shown if column.name in noted}

    def __repr__(self) -> str:
        sentences = ". ".join(each for each in (self.contribution, self.selection) if each)
        names = shorten(", ".join(self.answer.names), 120)
        return f"QueryAnswer({len(self.answer.rows)} rows, columns {names}; {sentences})"

    def _repr_html_(self) -> str:
        from sfumato.dp.sql.asking.answer_panel import answer_panel

        return answer_panel(self)

    def __copy__(self) -> QueryAnswer:
        return self  # nothing in it changes

    def __deepcopy__(self, memo: object) -> QueryAnswer:
        return self


def put_together(question: Question, price: Price, measured: Measured) -> AnswerTable:
    """From noisy measurements to the table that was asked for: statistics, expressions, HAVING, ORDER BY, LIMIT."""
    values, quantiles = _statistics(question, price, measured)
    rows: list[tuple[int, dict[str, Cell]]] = []
    for place, group in enumerate(measured.groups):
        row = {PLACEHOLDER + text: column[place] for text, column in values.items()}
        row |= {KEY + str(number): value for number, value in enumerate(group)}
        rows.append((place, row))
    if question.having is not None:
        having = question.having
        rows = [(place, row) for place, row in rows if evaluate(having, row) is True]
    windows = {text: window_values(window, rows) for text, window in question.windows.items()}
    for place, row in rows:
        row |= {PLACEHOLDER + text: each.values[place] for text, each in windows.items()}
    shown = (in_this_order(rows, question.order) if question.order else list(rows))[question.offset :]
    if question.limit is not None:
        shown = shown[: question.limit]
    cells = tuple(tuple(evaluate(column.expression, row) for column in question.shown) for _, row in shown)
    places, keys = [place for place, _ in shown], [measured.groups[place] for place, _ in shown]
    kinds = tuple(column_kind(question, column.expression) for column in question.shown)

    def off() -> CellErrors:
        laws = tuple(column_law(question, price, column.expression) for column in question.shown)
        possible = Possible(question, price, _arrays(measured), quantiles, windows)
        columns = [
            column_errors(question, price, column.expression, possible, places, keys)
            if kind in ("integer", "number")
            else [NO_ERROR] * len(places)
            for column, kind in zip(question.shown, kinds, strict=True)
        ]
        cells = list(zip(*columns, strict=True)) if places else []
        return CellErrors(
            laws,
            tuple(tuple(error for error, _ in row) for row in cells),
            tuple(tuple(reach for _, reach in row) for row in cells),
        )

    clean = tuple(tuple(_cell(cell, kind) for cell, kind in zip(row, kinds, strict=True)) for row in cells)
    return AnswerTable(tuple(column.name for column in question.shown), kinds, clean, off)


def _arrays(measured: Measured) -> dict[str, Floats]:
    return {name: np.array([float(v) for v in column]) for name, column in measured.numbers.items()}


def _statistics(question: Question, price: Price, measured: Measured) -> tuple[dict[str, list[Cell]], dict[str, NoisyQuantiles]]:
    noisy = _arrays(measured)
    values: dict[str, list[Cell]] = {}
    quantiles: dict[str, NoisyQuantiles] = {}
    for text, statistic in question.statistics.items():
        if statistic.tree is not None:
            valued = [quantile_of(statistic, tree, price.noises[statistic.tree]) for tree in measured.trees[statistic.tree]]
            values[text] = [value for value, _ in valued]
            quantiles[text] = NoisyQuantiles([float(value) for value, _ in valued], [reach for _, reach in valued])
            continue
        values[text] = statistic.cells(noisy, measured.numbers)
    return values, quantiles


def _cell(cell: Cell, kind: str) -> Cell:
    if kind == "number" and cell is not None:
        try:
            number = float(cell)
        except (TypeError, ValueError, OverflowError):
            return None
        return number if math.isfinite(number) else None
    return cell


def _reach(sides: Any) -> Reach | None:
    if sides is None:
        return None
    below, above = (None if side is None else tuple(side) for side in sides)
    return Reach(below, above)


def _around(cell: Cell, away: Distances | None) -> Interval | None:
    return None if away is None or isinstance(cell, bool) or not isinstance(cell, (int, float)) else away.around(cell)


def _stored(cell: Cell) -> Any:
    return cell.isoformat() if isinstance(cell, datetime.date) else cell


def _restored(cell: Any, kind: str) -> Cell:
    return datetime.date.fromisoformat(cell) if kind == "date" and cell is not None else cell
