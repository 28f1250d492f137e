"""What a question costs and how far its answer may be off, before anything is spent."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.declared import parameters, require_confidence
from sfumato.core.errors import InputError
from sfumato.core.exact import rounded_to
from sfumato.core.exact import shown as shown_number
from sfumato.core.guarantees.loss import RECORD, LossGuarantee
from sfumato.core.plain_data import PlainDict
from sfumato.core.texts import with_article
from sfumato.data.readers.read_result import UNREADABLE
from sfumato.dp.sql.margins.expected_error import SIZES, ColumnNote, column_notes
from sfumato.dp.sql.measuring.measurement import QueryMeasurement
from sfumato.dp.sql.measuring.noise import UNITS, Bounds, Price
from sfumato.dp.sql.question import Question
from sfumato.engines.plan import scans

_EACH_RECORD = "Each record counts by itself, as a unit of its own"


@dataclass(frozen=True)
class MeasurementNote:
    """One measurement: what it is, what one unit can change, and the noise it gets, in the units of the value."""

    name: str
    what: str
    sensitivity_l1: float
    sensitivity_l2: float
    law: str
    scale: float
    deviation: float
    margin: float


@dataclass(frozen=True)
class Explanation:
    """Sensitivity, noise, expected error and cost of a question."""

    query: str
    loss: LossGuarantee
    unit: str
    contribution: str
    groups: int | None
    threshold: int | None
    confidence: float
    measurements: tuple[MeasurementNote, ...]
    columns: tuple[ColumnNote, ...]
    notes: tuple[str, ...] = ()

    def to_mapping(self) -> PlainDict:
        """Plain data, ready for JSON."""
        loss = {"name": self.loss.name, **parameters(self.loss)}
        return {
            "query": self.query,
            "loss": loss,
            "unit": self.unit,
            "contribution": self.contribution,
            "groups": self.groups,
            "threshold": self.threshold,
            "confidence": self.confidence,
            "measurements": [dict(note.__dict__) for note in self.measurements],
            "columns": [
                {**note.__dict__, "per_rows": {str(rows): margin for rows, margin in note.per_rows.items()}}
                for note in self.columns
            ],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        groups = "discovered in the data" if self.groups is None else f"{self.groups:,}"
        lines = [f"costs {cost_text(self.loss)} of the budget, protecting one {self.unit} ({self.loss.compared})"]
        lines.append(
            f"groups: {groups}" + (f", shown from {self.threshold:,} {self.unit}s up (after noise)" if self.threshold else "")
        )
        lines.append(self.contribution)
        for note in self.measurements:
            lines.append(
                f"  {note.what}: one {self.unit} changes it by at most "
                f"{rounded_to(6, note.sensitivity_l1, up=True):,.6g} in sum; "
                f"{note.law} noise, standard deviation {note.deviation:,.4g}"
            )
        for column in self.columns:
            lines.append(f"  {column.sentence(self.confidence)}")
        return "\n".join([*lines, *self.notes])


def cost_text(loss: LossGuarantee) -> str:
    """The amount in symbols: ε = 0.1, δ = 1e-6."""
    symbols = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
    amounts = [f"{symbol} = {shown_number(getattr(loss, name))}" for name, symbol in symbols.items() if hasattr(loss, name)]
    return ", ".join(amounts)


def explain(question: Question, price: Price, confidence: float, sizes: Sequence[int] = SIZES) -> Explanation:
    """The explanation of a priced question; what depends on how many rows a group has is stated for these sizes."""
    require_confidence(confidence)
    named = {m.name: m for m in question.measurements} | {UNITS: QueryMeasurement(UNITS, "units")}
    notes = tuple(_measurement(named[name], price, question, confidence) for name in price.noises)
    columns = column_notes(question, price, confidence, sizes)
    return Explanation(
        query=question.text,
        loss=price.loss,
        unit=question.unit,
        contribution=". ".join(
            [_contribution(question, price), *_values(question, price), *_fixed_values(question), *_left_out(question)]
        ),
        groups=question.groups if question.keys else 1,
        threshold=price.threshold,
        confidence=confidence,
        measurements=notes,
        columns=columns,
        notes=tuple(_notes(question, columns)),
    )


def _contribution(question: Question, price: Price) -> str:
    if question.rows.unit is None:
        return _EACH_RECORD
    return _counted(question.unit, price.bounds, question.rows.single, question.counts_rows, bool(question.keys))


def _counted(unit: str, bounds: Bounds, single: bool, rows: bool, groups: bool) -> str:
    """What of each unit is counted, and that margins are silent about the rest."""
    if single:
        return f"The query makes one row of each {unit}, so that nothing has to be bounded"
    counted = f"{bounds.rows:,} row{'s' if bounds.rows != 1 else ''} of each {unit}" if rows else ""
    if groups:
        most = f"{bounds.groups:,} group{'s' if bounds.groups != 1 else ''}"
        within = "in" if bounds.groups == 1 else "in each of at most"
        counted = f"{counted} {within} {most}" if counted else f"{most} of each {unit}"
    if not counted:
        return f"Each {unit} is counted once, however many rows it has"
    plural = bounds.groups if groups and not rows else bounds.rows
    how = "chosen at random" if bounds.method == "sample" else "the first ones"
    return (
        f"At most {counted} {'is' if plural == 1 else 'are'} counted, {how} where there are more; "
        "rows beyond that are left out, and the margins do not speak of them"
    )


def _values(question: Question, price: Price) -> list[str]:
    """What a count of distinct values is about, where it may be less than there are."""
    counted = any(measurement.kind == "values" for measurement in question.measurements)
    return [_shown_values(question.unit, price.bounds)] if counted and question.rows.unit is not None else []


def _shown_values(unit: str, bounds: Bounds) -> str:
    most = f"{bounds.rows:,} value{'s' if bounds.rows != 1 else ''}"
    return f"COUNT(DISTINCT …) counts the values that at most {most} of each {unit} in a group show, which is at most all of them"


def chosen_groups(question: Question, price: Price) -> str:
    """By what groups are shown or left out, and that margins are about each before that; empty where all are shown."""
    limits = question.limit is not None and (bool(question.keys) or question.limit == 0)  # a single row is within any other
    by = ["HAVING"] * (question.having is not None) + ["LIMIT"] * limits + ["OFFSET"] * bool(question.offset)
    below = ""
    if price.threshold is not None:
        by.append("the threshold")
        below = f". Groups with fewer than {price.threshold:,} {question.unit}s, after noise, are not shown"
    if not by:
        return ""
    all_of_them = " and ".join(part for part in (", ".join(by[:-1]), by[-1]) if part)
    return f"The margins hold for each group before {all_of_them} chose which are shown{below}"


def _left_out(question: Question) -> list[str]:
    """Which other rows are not counted."""
    sentences = [] if question.rows.unit is None else [_without(question.unit)]
    declared = [key.values for key in question.keys if key.values is not None]
    if declared:
        sentences.append(_outside(missing=not any(None in values for values in declared)))
    return [*sentences, UNREADABLE] if question.typed else sentences


def _without(unit: str) -> str:
    return f"Rows without {with_article(unit)} are left out"


def _outside(*, missing: bool) -> str:
    return f"Rows whose key is {'missing or ' if missing else ''}not among the declared values are left out"


def contributions(unit: str, bounds: Bounds) -> set[str]:
    """All that an explanation can say is counted of each unit under these bounds, whatever the question is."""
    outside = [
        [*keys, *more] for keys in ([], [_outside(missing=True)], [_outside(missing=False)]) for more in ([], [UNREADABLE])
    ]
    if unit == RECORD:
        return {". ".join([_EACH_RECORD, *more]) for more in outside}
    shapes = itertools.product((True, False), repeat=3)
    return {
        ". ".join([_counted(unit, bounds, single, rows, groups), *values, *fixed, _without(unit), *more])
        for single, rows, groups in shapes
        for values in ([], [_shown_values(unit, bounds)])
        for fixed in ([], [_one_value(unit)])
        for more in (outside if groups else [[], [UNREADABLE]])
    }


def _notes(question: Question, columns: tuple[ColumnNote, ...]) -> list[str]:
    notes = [
        f"each {question.unit} has one value of '{name}', the least of its rows where they differ" for name in _fixed(question)
    ]
    if question.keys and not question.discovers:
        notes.append("declared groups without rows are shown")
    if any(m.kind == "tree" for m in question.measurements):
        notes.append(
            "quantiles come from one tree of noisy counts over the declared bounds; MIN and MAX keep clear of the ends by it"
        )
    if any(column.per_rows for column in columns):
        notes.append("margins for so many rows are to first order, for values in the middle of their bounds")
    return notes


def _fixed_values(question: Question) -> list[str]:
    return [_one_value(question.unit)] if _fixed(question) else []


def _one_value(unit: str) -> str:
    """Said where rows that contradict the schema change the answer, which no margin tells."""
    return f"A column that is declared to have one value per {unit} has the least of them where its rows differ"


def _fixed(question: Question) -> list[str]:
    """The columns that are read with one value per unit."""
    read = {each.name for scan in scans(question.rows.plan) for each in scan.columns}
    tables = question.tables.values()
    return sorted({name for table in tables for name, each in table.columns.items() if each.one_per_unit and name in read})


def _measurement(measurement: QueryMeasurement, price: Price, question: Question, confidence: float) -> MeasurementNote:
    noise = price.noises[measurement.name]
    step = float(noise.step)
    what = {
        "units": f"number of {question.unit}s",
        "rows": "number of rows",
        "values": "number of distinct values",
        "sum": "sum",
        "tree": f"tree of {measurement.leaves:,} counts",
    }[measurement.kind]
    scale = float(noise.amount) if noise.law == "laplace" else float(noise.amount) ** 0.5
    return MeasurementNote(
        measurement.name,
        what,
        noise.l1 * step,
        float(noise.l2_squared) ** 0.5 * step,
        noise.law,
        scale * step,
        noise.deviation * step,
        noise.margin(confidence),
    )


def least_loss(reached: Callable[[Fraction], bool]) -> Fraction:
    """The smallest amount, to three significant digits, that reaches the goal; more always reaches it too."""
    for exponent in range(-6, 6):
        worth = Fraction(10) ** (exponent - 2)
        if reached(999 * worth):
            amounts = [digits * worth for digits in range(100, 1000)]
            return amounts[bisect.bisect_left(amounts, True, key=reached)]
    raise InputError("no reasonable loss reaches this accuracy; widen the margin, or bound contributions more tightly")
