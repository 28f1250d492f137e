"""What a question costs and how far its answer may be off, told before anything is spent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sqlglot import exp

from sfumato.core.errors import InputError
from sfumato.core.exact import shown as shown_number
from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.core.params import parameters
from sfumato.dp.sql.aggregates import PLACEHOLDER
from sfumato.dp.sql.measurement import Measurement
from sfumato.dp.sql.measuring import contribution
from sfumato.dp.sql.noise import UNITS, Price, errors_in_margin
from sfumato.dp.sql.question import Question
from sfumato.dp.sql.statistics import Statistic


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
class ColumnNote:
    """One column of the answer: how far it is expected to be off at the confidence.

    `margin` is None where it depends on the data; `per_rows` then gives it for groups of that many rows.
    """

    name: str
    what: str
    margin: float | None
    per_rows: Mapping[int, float] = field(default_factory=dict)


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

    def to_mapping(self) -> dict[str, Any]:
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
                f"  {note.what}: one {self.unit} changes it by at most {note.sensitivity_l1:,.6g} in sum; "
                f"{note.law} noise, standard deviation {note.deviation:,.4g}"
            )
        for column in self.columns:
            if column.margin is not None:
                lines.append(f"  {column.name}: within ±{column.margin:,.4g} at {self.confidence:.0%}")
            elif column.per_rows:
                shown = ", ".join(f"±{margin:,.4g} for {rows:,} rows" for rows, margin in column.per_rows.items())
                lines.append(f"  {column.name}: about {shown} per group at {self.confidence:.0%}")
        return "\n".join([*lines, *self.notes])


def cost_text(loss: LossGuarantee) -> str:
    """The amount in symbols: ε = 0.1, δ = 1e-6."""
    symbols = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
    amounts = [f"{symbol} = {shown_number(getattr(loss, name))}" for name, symbol in symbols.items() if hasattr(loss, name)]
    return ", ".join(amounts)


def explain(question: Question, price: Price, confidence: float) -> Explanation:
    """The explanation of a priced question."""
    named = {m.name: m for m in question.measurements} | {UNITS: Measurement(UNITS, "units")}
    notes = tuple(_measurement(named[name], price, question, confidence) for name in price.noises)
    columns = []
    for column in question.shown:
        node = column.expression
        if isinstance(node, exp.Column) and node.name.startswith(PLACEHOLDER):
            statistic = question.statistics[node.name.removeprefix(PLACEHOLDER)]
            columns.append(_column(column.name, statistic, price, confidence))
    return Explanation(
        query=question.text,
        loss=price.loss,
        unit=question.unit,
        contribution=_contribution(question, price),
        groups=question.groups if question.keys else 1,
        threshold=price.threshold,
        confidence=confidence,
        measurements=notes,
        columns=tuple(columns),
        notes=tuple(_notes(question)),
    )


def _contribution(question: Question, price: Price) -> str:
    if question.rows.unit is None:
        return "each record is a unit of its own and is counted once"
    if question.rows.single:
        return f"the query makes one row of each {question.unit}, so that nothing has to be bounded"
    return contribution(price.bounds, question.unit, grouped=bool(question.keys))


def _notes(question: Question) -> list[str]:
    notes = []
    if question.keys and not question.discovers:
        notes.append(
            "rows whose key is missing or not among the declared values are left out; declared groups without rows are shown"
        )
    if question.rows.unit is not None:
        notes.append(f"rows without a {question.unit} are left out")
    if any(m.kind == "tree" for m in question.measurements):
        notes.append(
            "quantiles come from one tree of noisy counts over the declared bounds; MIN and MAX keep clear of the ends by it"
        )
    return notes


def _measurement(measurement: Measurement, price: Price, question: Question, confidence: float) -> MeasurementNote:
    noise = price.noises[measurement.name]
    step = float(noise.step)
    what = {
        "units": f"number of {question.unit}s",
        "rows": "number of rows",
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


#: Group sizes for which the error of means and spreads is told.
_SIZES = (100, 1_000, 10_000)


def _column(name: str, statistic: Statistic, price: Price, confidence: float) -> ColumnNote:
    if statistic.linear:
        noise = price.noises[statistic.parts[0]]
        return ColumnNote(name, statistic.function, noise.margin(confidence))
    if statistic.tree is not None:
        return ColumnNote(name, statistic.function, None)
    if statistic.steady:
        return ColumnNote(name, statistic.function, _at(statistic, price, confidence, 1))
    # A group whose values lie in the middle of their bounds; others differ by what the count's noise moves.
    margins = {rows: _at(statistic, price, confidence, rows) for rows in _SIZES}
    return ColumnNote(name, statistic.function, None, margins)


def worst_margin(question: Question, price: Price, confidence: float, rows: int | None) -> float | None:
    """The largest expected margin over the columns; for means in groups of `rows` rows. None where it is not known."""
    margins = []
    for column in question.shown:
        node = column.expression
        if not (isinstance(node, exp.Column) and node.name.startswith(PLACEHOLDER)):
            continue
        statistic = question.statistics[node.name.removeprefix(PLACEHOLDER)]
        if statistic.linear:
            margins.append(price.noises[statistic.parts[0]].margin(confidence))
        elif statistic.tree is not None or (rows is None and not statistic.steady):
            return None
        else:
            margins.append(_at(statistic, price, confidence, rows or 1))
    return max(margins) if margins else None


def _at(statistic: Statistic, price: Price, confidence: float, rows: int) -> float:
    import numpy as np

    noisy = {part: np.array([0.0]) for part in statistic.parts}
    noisy[statistic.count or ""] = np.array([float(rows)])
    deviations = {part: price.noises[part].deviation for part in statistic.parts}
    law = price.noises[statistic.parts[0]].law
    return float(statistic.error(noisy, deviations)[0]) * errors_in_margin(law, confidence)


def least_loss(reached: Callable[[Fraction], bool]) -> Fraction:
    """The smallest amount, to three significant digits, that reaches the goal; more always reaches it too."""
    for exponent in range(-6, 6):
        for digits in range(100, 1000) if _within(reached, exponent) else ():
            amount = Fraction(digits) * Fraction(10) ** (exponent - 2)
            if reached(amount):
                return amount
    raise InputError("no reasonable loss reaches this accuracy; widen the margin, or bound contributions more tightly")


def _within(reached: Callable[[Fraction], bool], exponent: int) -> bool:
    return bool(reached(Fraction(999) * Fraction(10) ** (exponent - 2)))
