"""Rounding: each value is replaced by a multiple of a base, the nearest one or, at random, one of its two neighbours.

Random rounding goes up with probability proportional to the distance from below, so that it changes no value on average.
Hundepool et al., "Statistical disclosure control", Wiley 2012, section 3.4; Nargundkar, Saveland, "Random rounding to
prevent statistical disclosures", Proceedings of the ASA Social Statistics Section, 1972.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import ParameterError, Unsupported, all_at_once
from sfumato.core.ranges import ByName, Either, Number
from sfumato.data.microdata import Microdata
from sfumato.data.records import LARGEST_WHOLE, SECOND, NumberColumn, Records
from sfumato.engines.digests.keyed_draws import EXACT_BITS, exact_draw
from sfumato.engines.expressions import And, Arithmetic, Cast, Choose, Compare, Expression, Not, Or, Reference
from sfumato.engines.expressions import Literal as Constant
from sfumato.engines.functions.numbers import Divide, Floor, Rounded
from sfumato.engines.functions.plain_arithmetic import Affine
from sfumato.engines.plan import AggregateColumn
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask
from sfumato.masking.engine_rows import EngineChange, EngineRows
from sfumato.masking.engine_summaries import NumberSummary, masked_columns, summaries
from sfumato.masking.shown_rows import ShownRows

Real = NDArray[np.float64]

#: How far from a multiple (in bases) a value may lie and still count as one: decimal fractions have no exact float.
_SLACK = 1e-9
#: How far, as a share of it, a published multiple may be from the exact one.
_LAST_DIGITS = 1e-12


@dataclass(frozen=True)
class Rounding(Mask):
    """Round columns of numbers to multiples of `base`: X' = base·⌊X/base + 1/2⌋.

    `base` is one number for all columns or one for each: `{"age": 5, "income": 1000}`. `how="nearest"` takes the nearest
    multiple, halves upward; it keeps the order and moves nothing further than half a base. `how="random"` takes the multiple
    below or above by chance, so that values, and hence sums and means, are right on average; it moves a value by less than a
    base. Whoever sees a multiple knows an interval of one base (two at random) that holds the value. Missing values stay missing;
    dates are rounded in days since 1970.

    A column whose values are all multiples already is refused, like a fractional base for whole numbers, unless
    `whole=False` publishes real numbers.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(1000), schema=sf.data.sample_schema())
    >>> masked = sf.Rounding({"age": 5}, columns=("age",)).apply(people).result
    >>> {age % 5 for age in masked.table.column("age").to_pylist()}
    {0}
    """

    base: Annotated[
        float | Mapping[str, float],
        Either((Number(above=0), ByName(Number(above=0), at_least=1))),
        "values become multiples of it; one for all columns, or one for each",
    ]
    how: Annotated[Literal["nearest", "random"], "which multiple is taken"] = "nearest"

    #: The only value of a stratum is rounded like any other; multiples of the base are refused below.
    refuses_constant_stratum: ClassVar[bool] = False
    shows_missing: ClassVar[bool] = True

    def check(self, records: Records, people: Microdata) -> None:
        """Every column needs a base that fits it and changes it."""
        self._refuse_bases(records.names)
        faults = []
        for column in records.numbers:
            base = self._base(column.name)
            fault = self._misfit(column.name, column.whole, base, dates=pa.types.is_date(column.arrow))
            if fault is not None:
                faults.append(fault)
            # within a stratum all values may be multiples by chance; a whole column of them is rounded to itself
            elif (column.whole and base == 1) or (not self.strata and _multiples(column, base)):
                faults.append(_all_multiples(column.name))
        all_at_once(Unsupported, type(self).__name__, faults)

    def _refuse_bases(self, names: tuple[str, ...]) -> None:
        if not isinstance(self.base, Mapping):
            return
        lacking = [column for column in names if column not in self.base]
        stray = sorted(set(self.base) - set(names))
        if lacking or stray:
            what = f"no base is given for column '{lacking[0]}'" if lacking else f"'{stray[0]}' is not among the masked columns"
            raise ParameterError(f"{type(self).__name__}: {what}")

    def _misfit(self, name: str, is_whole: bool, base: float, *, dates: bool = False) -> str | None:
        """Why the base does not fit a column of whole numbers."""
        whole = dates or (is_whole and self.whole)
        if whole and base != math.floor(base):
            return (
                f"column '{name}' holds whole numbers, but a fractional base gives fractional values; use a whole base, or "
                "whole=False to publish real numbers"
            )
        if whole and base > LARGEST_WHOLE:
            return f"the base of column '{name}' lies beyond 2^53, where whole numbers are no longer exact"
        return None

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Round each column."""
        values = {}
        unchanged = {}
        for column in records.numbers:
            base = self._base(column.name)
            steps = column.values / base
            steps = np.where(_whole(steps), np.rint(steps), steps)
            if self.how == "nearest":
                chosen = np.floor(steps + 0.5)
            else:
                below = np.floor(steps)
                chosen = below + (draws.uniform(records.size) < steps - below)
            values[column.name] = np.round(chosen * base, _decimals(base))
            present = column.known
            unchanged[column.name] = float((chosen[present] == steps[present]).mean()) if present.any() else 0.0
        return Change(values, details={"unchanged": unchanged})

    def in_engine(self, rows: EngineRows) -> EngineChange:
        """Multiples by arithmetic; at random by comparing a draw with the part of a base above the multiple below."""
        name, names = type(self).__name__, masked_columns(self, rows)
        self._refuse_bases(names)
        columns = summaries(self, rows, names, moments=False)
        all_at_once(Unsupported, name, [fault for each in columns.values() for fault in self._faults_in_engine(rows, each)])
        rows, held = rows.drawn(f"{name} {each}" for each in names) if self.draws else (rows, {})
        steps = {each: f"\x00steps {place}" for place, each in enumerate(names)}
        rows = rows.with_columns({steps[each]: _steps(each, self._base(each)) for each in names})
        masked = {
            each.name: self._rounded(each, Reference(steps[each.name]), held.get(f"{name} {each.name}"))
            for each in columns.values()
        }
        return EngineChange(rows.replaced(masked, (*held.values(), *steps.values())), names)

    def _faults_in_engine(self, rows: EngineRows, column: NumberSummary) -> list[str]:
        base = self._base(column.name)
        farthest = LARGEST_WHOLE / 10 ** _decimals(base) / 2
        if (fault := self._misfit(column.name, column.whole, base)) is not None:
            return [fault]
        if max(abs(column.low), abs(column.high)) / base >= farthest or max(abs(column.low), abs(column.high)) >= farthest:
            return [f"column '{column.name}' has values beyond what its base can count; use a larger base"]
        counted = rows.with_columns({"\x00steps": _steps(column.name, base)})
        other = AggregateColumn("others", "count", where=Not(_is_multiple(Reference("\x00steps"))))
        if (column.whole and base == 1) or not counted.ask([other]).column(0)[0].as_py():
            return [_all_multiples(column.name)]
        return []

    def _rounded(self, column: NumberSummary, steps: Expression, drawn: str | None) -> tuple[Expression, pa.DataType]:
        base = self._base(column.name)
        nearest = Rounded(steps, 0)
        if drawn is not None:
            below = Floor(steps)
            up_to = Affine((below, exact_draw(drawn), Constant(2.0**-EXACT_BITS)))
            goes_up = Compare("<", up_to, steps)
            up = Cast(Arithmetic("+", below, Constant(1)), "integer")
            multiple: Expression = Choose(((_is_multiple(steps), nearest), (goes_up, up)), below)
        else:
            multiple = nearest
        if column.whole and self.whole:
            return Cast(Arithmetic("*", multiple, Constant(int(base))), "integer"), pa.int64()
        value: Expression = Arithmetic("*", Cast(multiple, "number"), Constant(base))
        decimals = _decimals(base)
        return (Rounded(value, decimals) if 0 < decimals <= 15 else value), pa.float64()

    @property
    def draws(self) -> bool:
        """Whether the multiple is drawn."""
        return self.how == "random"

    def disproved_by(self, shown: ShownRows) -> bool:
        """Where a number is no multiple of its base, or has none."""
        names = shown.columns_of(self)
        if super().disproved_by(shown) or (isinstance(self.base, Mapping) and not set(names) <= set(self.base)):
            return True
        return not all(_shows_multiples(column, self._base(column.name)) for column in shown.numbers(names))

    def keeps(self) -> tuple[Kept, ...]:
        """The order of values, or on average the mean."""
        if self.how == "random":
            return (Kept("mean"),)
        return (Kept("order", True, "values that round to the same multiple become equal"),)

    def _base(self, column: str) -> float:
        return float(self.base[column] if isinstance(self.base, Mapping) else self.base)


def _all_multiples(name: str) -> str:
    return f"every value of column '{name}' is a multiple of its base already; use a larger base"


def _steps(name: str, base: float) -> Expression:
    """A value in bases, in an engine."""
    return Divide(Reference(name), base)


def _is_multiple(steps: Expression) -> Expression:
    """`_whole` in an engine."""
    near = Cast(Rounded(steps, 0), "number")
    apart = Affine((steps, Constant(-1.0), near))
    close = And(
        (Compare("<=", apart, Constant(_SLACK)), Compare(">=", apart, Constant(-_SLACK)), Compare("<>", near, Constant(0.0)))
    )
    return Or((Compare("=", steps, near), close))


def _multiples(column: NumberColumn, base: float) -> bool:
    steps = column.values[column.known] / base
    return bool(steps.size and np.all(_whole(steps)))


def _shows_multiples(column: NumberColumn, base: float) -> bool:
    """Whether all numbers can be multiples, as they are published: moments in seconds at the least."""
    numbers = column.values[column.known]
    steps = numbers[np.abs(numbers) < LARGEST_WHOLE] / base
    second = SECOND / base if pa.types.is_timestamp(column.arrow) else 0.0
    return bool(np.all(np.abs(steps - np.rint(steps)) <= _SLACK + _LAST_DIGITS * np.abs(steps) + second))


def _whole(steps: Real) -> NDArray[np.bool_]:
    """Where a value is a multiple, as far as floating-point numbers tell. A tiny part of a base is not the multiple 0."""
    near = np.rint(steps)
    with np.errstate(invalid="ignore"):  # infinitely many steps less as many
        close = np.abs(steps - near) <= _SLACK
    return np.asarray((steps == near) | ((near != 0) & close), dtype=np.bool_)


def _decimals(base: float) -> int:
    """The decimals of a multiple: 3 · 0.1 is shown as 0.3, not as 0.30000000000000004."""
    exponent = Decimal(repr(base)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0
