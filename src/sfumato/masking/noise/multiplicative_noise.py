"""Multiplicative noise: X' = X · F with independent factors F around 1.

Large values move further than small ones, in proportion. Factors are normal, N(1, (α/100)²) cut off at zero, or
log-normal; both have mean 1. Kim, Winkler, "Multiplicative noise for masking continuous data", US Census Bureau Research
Report Statistics 2003-01.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa

from sfumato.core.errors import Unsupported, all_at_once
from sfumato.core.plain_data import Plain
from sfumato.core.ranges import Number, Share
from sfumato.data.microdata import Microdata
from sfumato.data.records import NumberColumn, Records
from sfumato.engines.expressions import And, Arithmetic, Compare, Reference
from sfumato.engines.expressions import Literal as Constant
from sfumato.engines.plan import AggregateColumn
from sfumato.kernels.sampling.cells import QuantileCells, quantile_cells
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask
from sfumato.masking.engine_rows import EngineChange, EngineRows
from sfumato.masking.engine_summaries import NumberSummary, masked_columns, summaries
from sfumato.masking.noise.keyed_noise import drawn_numbers, rounded_back_share, shown_number
from sfumato.masking.noise.moments import Real, refuse_rounded_back, rounded_back

_HALF_STEP = 2.0**-54
#: Deviations of the noise, in steps of the grid that values are rounded to, by which an engine counts values.
_STEPS = tuple(2.0 ** (quarter / 4) for quarter in range(-16, 41))


@dataclass(frozen=True)
class MultiplicativeNoise(Mask):
    """Multiply every value by a random factor with mean 1: X' = X·F.

    `alpha` is the spread of the factors in percent: with 10 most values move by up to 10 %. `law="normal"` draws factors
    from N(1, (alpha/100)²), only positive ones, divided by their mean so that it is 1 again (which matters above
    alpha = 25 only); `law="lognormal"` draws log-normal factors with mean 1 and standard deviation alpha/100. Signs stay;
    on average each value, hence the mean, and the covariance of different columns stay.

    Zero times anything is zero. Who uses this mask usually wants that (no income stays no income), but such values are
    not protected: a column of which more than the share `zeros` is zero is refused, and the release says that zeros stay.
    Dates have no zero of their own and are refused, and so are values on a grid (whole numbers, cents) so coarse that rounding
    to it takes the factor back in more than 95 % of them; `may_round_back=True` masks such columns all the same, for a study.
    Missing values stay missing.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(1000), schema=sf.data.sample_schema())
    >>> masked = sf.MultiplicativeNoise(10, columns=("income",)).apply(people, seed=1).result
    >>> round(masked.transparency["factor_variance"], 6)
    0.01
    """

    alpha: Annotated[float, Number(above=0, at_most=1000), "the spread of the factors in percent"]
    law: Annotated[Literal["normal", "lognormal"], "the law of the factors"] = "normal"
    zeros: Annotated[Share, "the share of a column that may be zero and stays so"] = 0.5
    may_round_back: Annotated[bool, "whether columns are masked that rounding gives back"] = False

    #: The only value of a stratum is multiplied like any other.
    refuses_constant_stratum: ClassVar[bool] = False
    shows_missing: ClassVar[bool] = True

    def check(self, records: Records, people: Microdata) -> None:
        """Refuse dates, columns of mostly zeros, and numbers so small that rounding to their grid takes the factor back."""
        name = type(self).__name__
        faults = []
        for column in records.numbers:
            if pa.types.is_temporal(column.arrow):
                faults.append(f"column '{column.name}' holds dates, which cannot be multiplied; use additive noise")
            elif (share := _zero_share(column)) > self.zeros:
                faults.append(_too_many_zeros(column.name, share))
        all_at_once(Unsupported, name, faults)
        refuse_rounded_back(name, {column.name: self._rounded_back(column) for column in records.numbers}, self.may_round_back)

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Independent factors for every value."""
        values, unchanged = {}, {}
        for done, column in enumerate(records.numbers):
            context.progress("multiplying", done, len(records.numbers))
            with np.errstate(over="ignore"):  # what no number can hold is refused when the table is put together
                values[column.name] = column.values * self._factors(records.size, draws)
            zeros = _zero_share(column)
            unchanged[column.name] = zeros + (1.0 - zeros) * self._rounded_back(column)
        return Change(values, published=self.tells(records.names), details={"expected_unchanged": unchanged})

    def in_engine(self, rows: EngineRows) -> EngineChange:
        """Factors by a table of quantiles."""
        name, names = type(self).__name__, masked_columns(self, rows)
        columns = summaries(self, rows, names)
        zeros = {each.name: each.zeros / each.count for each in columns.values()}
        all_at_once(Unsupported, name, (_too_many_zeros(each, share) for each, share in zeros.items() if share > self.zeros))
        back = {each.name: self._rounded_back_in_engine(rows, each) for each in columns.values()}
        refuse_rounded_back(name, back, self.may_round_back)
        drawn = drawn_numbers(rows, name, names, self._cells())
        masked = {
            column.name: shown_number(Arithmetic("*", Reference(column.name), drawn.draws[column.name]), column, whole=self.whole)
            for column in columns.values()
        }
        unchanged = {each: zeros[each] + (1.0 - zeros[each]) * back[each] for each in names}
        changed = drawn.rows.replaced(masked, drawn.helpers)
        return EngineChange(changed, names, self.tells(names), {"expected_unchanged": unchanged})

    def tells(self, names: tuple[str, ...]) -> Plain:
        """The kind of noise and the variance of its factors."""
        return {"noise": "multiplicative", "factor_variance": self.factor_variance(), "zeros_stay": True}

    def keeps(self) -> tuple[Kept, ...]:
        """The mean."""
        return (Kept("mean", note="signs and zeros stay as they are"),)

    def factor_variance(self) -> float:
        """The variance of a factor, whose mean is 1."""
        deviation = self.alpha / 100.0
        if self.law == "lognormal":
            return deviation**2
        mean, cut = _cut_mean(deviation), 1.0 / deviation
        hazard = _hazard(cut)
        return deviation**2 * (1.0 - cut * hazard - hazard**2) / mean**2

    def _factors(self, count: int, draws: Draws) -> Real:
        from scipy.special import ndtr, ndtri

        deviation = self.alpha / 100.0
        if self.law == "lognormal":
            spread = math.sqrt(math.log1p(deviation**2))
            factors: Real = np.exp(spread * draws.normal(count) - spread**2 / 2)
            return factors
        # inversion in the upper tail: the draw 1 is the cut at a factor of 0, and no draw is 0, which would be infinity
        standard = -ndtri((draws.uniform(count) + _HALF_STEP) * ndtr(1.0 / deviation))
        cut_off: Real = np.maximum(1.0 + deviation * standard, 1e-12) / _cut_mean(deviation)
        return cut_off

    def _cells(self) -> QuantileCells:
        """The law of the factors as cells, all of them above 0."""
        from scipy.special import ndtr, ndtri

        deviation, variance = self.alpha / 100.0, self.factor_variance()
        if self.law == "lognormal":
            spread = math.sqrt(math.log1p(deviation**2))
            cells = quantile_cells(lambda share: np.exp(spread * ndtri(share) - spread**2 / 2), 1.0, variance)
        else:
            mass, mean = float(ndtr(1.0 / deviation)), _cut_mean(deviation)
            cells = quantile_cells(lambda share: (1.0 - deviation * ndtri((1.0 - share) * mass)) / mean, 1.0, variance)
        if cells.ends[0] <= 0:
            raise Unsupported("MultiplicativeNoise: factors this spread reach 0 in an engine; use a smaller alpha")
        return cells

    def _rounded_back_in_engine(self, rows: EngineRows, column: NumberSummary) -> float:
        """The share of values other than zero, at the most: they are counted by size, and each taken for the smallest of its
        count. Steps of the size grow with it, since most values of a column may be far smaller than its range."""
        deviation = math.sqrt(self.factor_variance())
        if not column.grid:
            return 0.0
        value, sizes = Reference(column.name), [column.grid / deviation * step for step in _STEPS]
        limits = [math.ceil(size) if column.whole else size for size in sizes]
        within = [And((Compare("<", value, Constant(limit)), Compare(">", value, Constant(-limit)))) for limit in limits]
        asked = [AggregateColumn(f"within {place}", "count", value, where=each) for place, each in enumerate(within)]
        other = Compare("<>", value, Constant(0) if column.whole else Constant(0.0))
        answer = rows.ask([*asked, AggregateColumn("all", "count", value)], where=other)
        counts = np.diff([0, *(int(answer.column(place)[0].as_py()) for place in range(len(limits) + 1))])
        shares = [rounded_back_share(column.grid, size * deviation) for size in (0.0, *sizes)]
        return float(np.dot(counts, shares)) / max(int(counts.sum()), 1)

    def _rounded_back(self, column: NumberColumn) -> float:
        """The share of values other than zero, which `zeros` distinguishes from them."""
        other = column.take(np.flatnonzero(column.known & (column.values != 0)))
        with np.errstate(over="ignore"):
            return rounded_back(other, np.abs(other.values) * math.sqrt(self.factor_variance()))


def _too_many_zeros(column: str, share: float) -> str:
    return (
        f"{100 * share:.0f} % of column '{column}' is zero (in a stratum, where there are strata) and would stay so; use "
        "additive noise, or state with zeros=… which share may stay"
    )


def _zero_share(column: NumberColumn) -> float:
    present = column.values[column.known]
    return float((present == 0).mean()) if present.size else 0.0


def _hazard(cut: float) -> float:
    """Density over mass of the standard normal law above -cut."""
    from scipy.special import ndtr

    return math.exp(-cut * cut / 2.0) / math.sqrt(2.0 * math.pi) / float(ndtr(cut))


def _cut_mean(deviation: float) -> float:
    """The mean of N(1, deviation²) above 0."""
    return 1.0 + deviation * _hazard(1.0 / deviation)
