"""What masks have to know about columns that stay in an engine, from aggregates that every engine computes alike.

Counts, extremes and sums of whole numbers do not depend on the order in which rows are added up. So numbers enter sums as whole
multiples of a unit, a power of two near 2^-30 of the column's range: mean and deviation are exact for the values rounded to it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sfumato.core.errors import InputError, MissingColumn, ParameterError, Unsupported, all_at_once
from sfumato.data.records import LARGEST_WHOLE
from sfumato.engines.expressions import And, Arithmetic, Cast, Choose, Compare, Expression, Literal, Reference
from sfumato.engines.functions.numbers import Bucket, FixedPoint, Remainder, Rounded
from sfumato.engines.functions.plain_arithmetic import Affine
from sfumato.engines.plan import AggregateColumn, Named
from sfumato.masking.columns import WORDS
from sfumato.masking.engine_rows import EngineRows, needs_all_records

if TYPE_CHECKING:
    from sfumato.masking.base import Mask

#: Numbers enter sums as so many units of their range at the most, and their squares fit 64 bits.
_STEPS = 30
_LIMIT = 2.0**31
#: A deviation below this share of the range would be one of the units, not of the values.
_LEAST_SPREAD = 2.0**-22
#: Sizes of numbers that sums and products of floating-point numbers take as they are.
_LARGEST, _SMALLEST = 1e90, 1e-90
#: Decimals on which values may lie.
_DECIMALS = range(7)
_FEWEST_FOR_DIVISOR = 10
#: Parts of a range that are counted at once when a value of a rank is looked for.
_BUCKETS = 256


@dataclass(frozen=True)
class NumberSummary:
    """A column of numbers: how many are known, the extremes, how many are zero, mean and sample deviation (of the values rounded
    to 2^-30 of the range), and the distance of the grid on which all lie."""

    name: str
    count: int
    low: float
    high: float
    zeros: int
    whole: bool
    mean: float = 0.0
    deviation: float = 0.0
    grid: float = 0.0


def masked_columns(mask: Mask, rows: EngineRows) -> tuple[str, ...]:
    """The columns that a mask changes in an engine; refused where they are none, or of a kind that it cannot mask there."""
    method = type(mask).__name__
    if mask.strata:
        raise needs_all_records(mask, "strata are masked one by one, and an engine would be asked about each of them")
    names = mask.columns_of(rows.schema, rows.names)
    gone = [f"column '{name}' is not in the data, or not published" for name in names if name not in rows.names]
    all_at_once(MissingColumn, method, gone)
    if not names:
        raise InputError(
            f"{method}: the schema names no quasi-identifier to mask. Give columns=(…), or a schema with the role 'quasi'."
        )
    faults = []
    for name in names:
        kind = rows.column_kind(name)
        if kind not in mask.handles:
            able = " and ".join(WORDS[each] for each in ("number", "ordered", "category") if each in mask.handles)
            faults.append(
                f"column '{name}' holds {WORDS[kind]}, and {method} masks {able} only; leave it out of columns=(…) and mask it "
                "by another method"
            )
        elif rows.schema.columns.get(name) is not None and rows.schema.columns[name].items is not None:
            faults.append(f"column '{name}' holds sets of items, neither numbers nor categories")
    all_at_once(Unsupported, method, faults)
    return names


def summaries(mask: Mask, rows: EngineRows, names: Sequence[str], *, moments: bool = True) -> dict[str, NumberSummary]:
    """Summaries of columns of numbers, by two questions, and more where values seem to have a divisor in common; dates are
    refused, and columns without a value, or with one value where the mask would leave it."""
    method = type(mask).__name__
    if not names:
        return {}
    dates = [name for name in names if rows.kind(name) not in ("integer", "number")]
    all_at_once(Unsupported, method, (f"column '{name}' holds dates, which are masked in this process alone" for name in dates))
    extremes = [each for place, name in enumerate(names) for each in _extremes(rows, place, name)]
    first = rows.ask(extremes)
    asked_about = {name: _first(rows, place, name, first) for place, name in enumerate(names)}
    all_at_once(Unsupported, method, [fault for each in asked_about.values() for fault in _faults(mask, each)])
    if not moments:
        return asked_about
    counted = {name: _whole_numbers(place, asked_about[name]) for place, name in enumerate(names)}
    numbered = rows.with_columns({key: value for columns in counted.values() for key, value in columns.items()})
    second = numbered.ask(each for place, name in enumerate(names) for each in _sums(place, counted[name]))
    divisors = _common_divisors(
        numbered, {place for place in range(len(names)) if _steps(place) in counted[names[place]]}, second
    )
    return {name: _second(place, asked_about[name], second, divisors.get(place, 1)) for place, name in enumerate(names)}


def _extremes(rows: EngineRows, place: int, name: str) -> list[AggregateColumn]:
    value = Reference(name)
    zero = Compare("=", value, Literal(0) if rows.kind(name) == "integer" else Literal(0.0))
    asked = [
        AggregateColumn(f"known {place}", "count", value),
        AggregateColumn(f"low {place}", "min", value),
        AggregateColumn(f"high {place}", "max", value),
        AggregateColumn(f"zeros {place}", "count", where=zero),
    ]
    if rows.kind(name) == "number":
        asked += [
            AggregateColumn(
                f"decimals {digits} {place}", "count", where=Compare("=", Cast(Rounded(value, digits), "number"), value)
            )
            for digits in _DECIMALS
        ]
    return asked


def _first(rows: EngineRows, place: int, name: str, answer: pa.Table) -> NumberSummary:
    count, low, high, zeros = (answer.column(f"{what} {place}")[0].as_py() for what in ("known", "low", "high", "zeros"))
    whole = rows.kind(name) == "integer"
    largest = max(abs(float(low or 0)), abs(float(high or 0)))
    grid = 1.0 if whole else 0.0
    for digits in () if whole else _DECIMALS:
        if largest < LARGEST_WHOLE / 10**digits and answer.column(f"decimals {digits} {place}")[0].as_py() == count:
            grid = 10.0**-digits
            break
    spacing = math.ulp(largest) if math.isfinite(largest) else 0.0
    return NumberSummary(name, int(count), float(low or 0), float(high or 0), int(zeros), whole, grid=max(grid, spacing))


def _faults(mask: Mask, column: NumberSummary) -> list[str]:
    largest = max(abs(column.low), abs(column.high))
    if not column.count:
        return [f"column '{column.name}' has no values at all; leave it out of columns=(…)"]
    if not math.isfinite(largest) or largest > _LARGEST:
        return [f"column '{column.name}' has infinite values, or values beyond {_LARGEST:g}; set them to missing first"]
    if column.whole and largest > LARGEST_WHOLE:
        return [f"column '{column.name}' has whole numbers beyond 2^53; declare it as type = \"string\" if they are codes"]
    if column.low == column.high and mask.refuses_constant:
        return [
            f"column '{column.name}' has one value only, which {type(mask).__name__} cannot change; leave it out of columns=(…)"
        ]
    if 0 < column.high - column.low < _SMALLEST:
        return [f"the values of column '{column.name}' are less than {_SMALLEST:g} apart; multiply them first"]
    return []


def _unit(column: NumberSummary) -> float:
    """The power of two in which values, as they lie around the middle of their range, are counted."""
    return math.ldexp(1.0, math.frexp(column.high - column.low)[1] - 1 - _STEPS) if column.high > column.low else 1.0


def _middle(column: NumberSummary) -> float:
    return column.low / 2 + column.high / 2


def _above_middle(column: NumberSummary, unit: float) -> Expression:
    """A value in units above the middle of the range."""
    return Affine((Literal(-_middle(column) / unit), Reference(column.name), Literal(1.0 / unit)))


def _whole_numbers(place: int, column: NumberSummary) -> dict[str, Expression]:
    """What is summed of a column, and what divisors are looked for in."""
    numbers: dict[str, Expression] = {f"\x00units {place}": FixedPoint(_above_middle(column, _unit(column)), 1, _LIMIT)}
    counted = _counted(column)
    return numbers if counted is None else {**numbers, _steps(place): counted}


def _steps(place: int) -> str:
    return f"\x00steps {place}"


def _sums(place: int, numbers: Mapping[str, Expression]) -> list[AggregateColumn]:
    units, steps = Reference(f"\x00units {place}"), Reference(_steps(place))
    asked = [
        AggregateColumn(f"sum {place}", "sum", units),
        AggregateColumn(f"squares {place}", "sum", Arithmetic("*", units, units)),
    ]
    if _steps(place) in numbers:
        asked.append(AggregateColumn(f"least step {place}", "min", steps, Compare(">", steps, Literal(0))))
        asked.append(AggregateColumn(f"largest step {place}", "max", steps))
    return asked


def _common_divisors(rows: EngineRows, places: Collection[int], answer: pa.Table) -> dict[int, int]:
    """The greatest whole number that divides all steps of each column: that of some, until nothing is left of the others. Each
    round at least halves a divisor that was too large."""
    divisors = {
        place: math.gcd(*(int(answer.column(f"{which} step {place}")[0].as_py() or 0) for which in ("least", "largest")))
        for place in places
    }
    unsettled = {place for place, divisor in divisors.items() if divisor > 1}
    while unsettled:
        asked = []
        for place in unsettled:
            rest = Remainder(Reference(_steps(place)), divisors[place])
            asked.append(AggregateColumn(f"rest {place}", "min", rest, Compare(">", rest, Literal(0))))
        rests = rows.ask(asked)
        for place in list(unsettled):
            left = rests.column(f"rest {place}")[0].as_py()
            divisors[place] = math.gcd(divisors[place], int(left or 0))
            if left is None or divisors[place] == 1:
                unsettled.remove(place)
    return {place: max(divisor, 1) for place, divisor in divisors.items()}


def _counted(column: NumberSummary) -> Expression | None:
    """A value as a number of steps of its decimal grid above the least one; None where there is no such grid."""
    scale = round(1.0 / column.grid) if column.grid > 0 else 0
    if column.count < _FEWEST_FOR_DIVISOR or scale not in {10**digits for digits in _DECIMALS}:
        return None
    fixed = FixedPoint(Reference(column.name), scale, LARGEST_WHOLE / scale)
    least = math.floor(column.low * scale + 0.5)
    return Cast(Arithmetic("-", fixed, Literal(least)), "integer")


def _second(place: int, column: NumberSummary, answer: pa.Table, divisor: int) -> NumberSummary:
    total, squares = (int(answer.column(f"{what} {place}")[0].as_py() or 0) for what in ("sum", "squares"))
    unit, count = Fraction(_unit(column)), column.count
    mean = Fraction(_middle(column)) + unit * Fraction(total, count)
    variance = unit**2 * (squares - Fraction(total**2, count)) / (count - 1) if count > 1 else Fraction(0)
    return replace(column, mean=float(mean), deviation=math.sqrt(variance), grid=column.grid * divisor)


def refuse_little_spread(method: str, columns: Mapping[str, NumberSummary]) -> None:
    """Columns whose deviation is lost beside their range."""
    all_at_once(
        Unsupported,
        method,
        (
            f"the deviation of column '{each.name}' is less than {_LEAST_SPREAD:.1g} of its range, which sums of whole numbers "
            "do not resolve; limit the column by top and bottom coding first"
            for each in columns.values()
            if each.deviation < _LEAST_SPREAD * (each.high - each.low)
        ),
    )


def value_of_rank(rows: EngineRows, expression: Expression, rank: int) -> float:
    """The value that so many others, from 0, do not exceed: parts of the range are counted, and one of them looked into, until it
    holds one value."""
    name = "\x00part"
    low, high = None, None
    while True:
        inside: Expression | None = None
        part: Expression = Literal(0)
        if low is not None and high is not None:
            inside = And((Compare(">=", expression, low), Compare("<=", expression, high)))
            part = Bucket(expression, _number(low), _number(high), _BUCKETS)
        asked = (
            AggregateColumn("count", "count", expression),
            AggregateColumn("low", "min", expression),
            AggregateColumn("high", "max", expression),
        )
        answer = rows.ask(asked, (Named(name, part),), inside).sort_by(name).to_pylist()
        counted = [each for each in answer if each["count"]]
        if not counted or rank >= sum(each["count"] for each in counted):
            raise ParameterError("there are fewer values than the rank that is looked for")
        for each in counted:
            if rank < each["count"]:
                break
            rank -= each["count"]
        if each["low"] == each["high"]:
            return each["low"]  # type: ignore[no-any-return]
        low, high = Literal(each["low"]), Literal(each["high"])


def _number(bound: Literal) -> Any:  # a number of either kind
    return bound.value


@dataclass(frozen=True)
class CodedValues:
    """How many values of a column lie beyond two bounds, and their sums."""

    column: NumberSummary
    low: float
    high: float
    below: int
    above: int
    sums: tuple[Fraction, Fraction]

    def means(self) -> tuple[float, float]:
        """The mean of the values beyond each bound; the bound where there are none."""
        sides = zip((self.below, self.above), self.sums, (self.low, self.high), strict=True)
        low, high = (float(total / count) if count else bound for count, total, bound in sides)
        return low, high

    def replaced(self, shown: tuple[float, float], *, whole: bool) -> Expression:
        """The column with these numbers in place of what lies beyond the bounds."""
        value = Reference(self.column.name)
        kept: Expression = value if whole or not self.column.whole else Cast(value, "number")
        branches = tuple(
            (condition, Literal(round(number) if whole else float(number)))
            for condition, number in zip(_beyond(value, self.low, self.high), shown, strict=True)
            if condition is not None
        )
        return Choose(branches, kept) if branches else kept


def coded_values(rows: EngineRows, column: NumberSummary, low: float, high: float) -> CodedValues:
    """What lies beyond two bounds, of which either may be infinite; sums are exact for values rounded to 2^-58 of the range."""
    value, unit = Reference(column.name), math.ldexp(_unit(column), _STEPS - 58)
    units = value if column.whole else FixedPoint(_above_middle(column, unit), 1, 2.0**60)
    asked: list[AggregateColumn] = []
    for side, condition in zip(("below", "above"), _beyond(value, low, high), strict=True):
        if condition is not None:
            asked += [AggregateColumn(side, "count", where=condition), AggregateColumn(f"{side} sum", "sum", units, condition)]
    answer = rows.ask(asked).to_pylist()[0] if asked else {}
    counts = [int(answer.get(side) or 0) for side in ("below", "above")]
    totals = [int(answer.get(f"{side} sum") or 0) for side in ("below", "above")]
    if column.whole:
        sums = [Fraction(total) for total in totals]
    else:
        sums = [count * Fraction(_middle(column)) + total * Fraction(unit) for count, total in zip(counts, totals, strict=True)]
    return CodedValues(column, low, high, counts[0], counts[1], (sums[0], sums[1]))


def _beyond(value: Expression, low: float, high: float) -> tuple[Expression | None, Expression | None]:
    return (
        Compare("<", value, Literal(float(low))) if math.isfinite(low) else None,
        Compare(">", value, Literal(float(high))) if math.isfinite(high) else None,
    )
