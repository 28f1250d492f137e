"""Additive noise: X' = X + e with normal e, independent per column, Var(e) = ratio · Var(X).

Each value of a column is moved by a draw whose spread is proportional to the spread of the column. Kim, "A method for
limiting disclosure in microdata based on random noise and transformation", Proceedings of the ASA Section on Survey
Research Methods, 1986; Brand, "Microdata protection through noise addition", Inference Control in Statistical Databases,
LNCS 2316, 2002.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from sfumato.core.declared import formerly
from sfumato.core.errors import Unsupported, all_at_once
from sfumato.core.plain_data import Plain
from sfumato.core.ranges import Because, Number
from sfumato.data.microdata import Microdata
from sfumato.data.records import NumberColumn, Records, magnitude
from sfumato.engines.expressions import Expression, Reference
from sfumato.engines.expressions import Literal as Constant
from sfumato.engines.functions.plain_arithmetic import Affine
from sfumato.kernels.sampling.cells import normal_cells
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask
from sfumato.masking.engine_rows import EngineChange, EngineRows, needs_all_records
from sfumato.masking.engine_summaries import masked_columns, refuse_little_spread, summaries
from sfumato.masking.noise.keyed_noise import drawn_numbers, rounded_back_share, shown_number
from sfumato.masking.noise.moments import (
    LEAST_FREEDOM,
    Real,
    exact_noise,
    least_for_exact,
    noise_deviation,
    refuse_rounded_back,
    refuse_without_spread,
    rounded_back,
)

#: The variance of noise as a multiple of a column's variance.
NoiseRatio = Annotated[
    float, Because(Number(above=0), "0 would add no noise"), "the variance of the noise, as a multiple of that of the column"
]


@formerly(ratio="k")
@dataclass(frozen=True)
class AdditiveNoise(Mask):
    """Add independent normal noise to columns of numbers: X' = X + N(0, ratio·Var X).

    `ratio` is the variance of the noise as a multiple of the variance of the column: 0.1 adds a tenth. On average the mean
    stays and the variance grows by 1 + ratio, which anyone who knows the ratio divides out again (`Correction`); covariances with
    other columns stay, so correlations shrink.

    `moments="exact"` makes that true of every draw, not only on average: the noise of a column has mean 0, no covariance
    with the column, and exactly the variance asked for. That leaves less to chance, so it needs twelve known values (in each
    stratum): of three, the noise is known up to its sign. `rescale=True` draws the masked values towards the mean, by
    1/√(1+ratio), so that the variance itself is kept; covariances with other columns then shrink by the same factor, between
    masked columns by its square.

    Against an intruder who knows the ratio the noise is all there is: a record that stands alone stays near where it was
    (`attacks` and `measures.risk` say how near). Missing values stay missing. A column that does not vary is refused, and
    so is one whose values lie on a grid (whole numbers, cents) so coarse that rounding to it takes the noise back, in more than
    95 % of them; publishing real numbers (`whole=False`) does not help against who rounds them.
    `may_round_back=True` masks such columns all the same, for a study.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(1000), schema=sf.data.sample_schema())
    >>> masked = sf.AdditiveNoise(0.1, columns=("age", "income")).apply(people, seed=1).result
    >>> masked.transparency["noise_variance_ratio"]
    0.1
    """

    ratio: NoiseRatio
    moments: Annotated[Literal["free", "exact"], "whether moments are met on average or by every draw"] = "free"
    rescale: Annotated[bool, "whether masked values are drawn towards the mean, so that the variance stays"] = False
    may_round_back: Annotated[bool, "whether columns are masked that rounding gives back"] = False

    shows_missing: ClassVar[bool] = True

    def check(self, records: Records, people: Microdata) -> None:
        """Every column has to vary; exact moments need enough of them to hide in; rounding must not take the noise back."""
        name = type(self).__name__
        refuse_without_spread(name, records.numbers)
        if self.moments == "exact":
            few = [column.name for column in records.numbers if 0 < int(column.known.sum()) < least_for_exact(1)]
            all_at_once(Unsupported, name, (_too_few(column) for column in few))
        refuse_rounded_back(name, {column.name: self._unchanged(column) for column in records.numbers}, self.may_round_back)

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Noise for each column in turn."""
        values, unchanged = {}, {}
        for done, column in enumerate(records.numbers):
            context.progress("adding noise", done, len(records.numbers))
            values[column.name] = self._masked(column, draws)
            unchanged[column.name] = self._unchanged(column)
        return Change(values, published=self.tells(records.names), details={"expected_unchanged": unchanged})

    def in_engine(self, rows: EngineRows) -> EngineChange:
        """Noise by a table of quantiles; exact moments would need all draws of a column at once."""
        if self.moments == "exact":
            raise needs_all_records(self, "noise with exact moments is made of all draws of a column at once")
        name, names = type(self).__name__, masked_columns(self, rows)
        columns = summaries(self, rows, names)
        refuse_little_spread(name, columns)
        scale, root = scaled_by(self.ratio, self.rescale), math.sqrt(self.ratio)
        unchanged = {each.name: rounded_back_share(each.grid, root * each.deviation * scale) for each in columns.values()}
        refuse_rounded_back(name, unchanged, self.may_round_back)
        drawn = drawn_numbers(rows, name, names, normal_cells())
        masked = {}
        for column in columns.values():
            deviation = Constant(root * column.deviation)
            value: Expression = Affine((Reference(column.name), drawn.draws[column.name], deviation))
            if self.rescale:
                above = Affine((value, Constant(-1.0), Constant(column.mean)))
                value = Affine((Constant(column.mean), above, Constant(scale)))
            masked[column.name] = shown_number(value, column, whole=self.whole)
        changed = drawn.rows.replaced(masked, drawn.helpers)
        return EngineChange(changed, names, self.tells(names), {"expected_unchanged": unchanged})

    def tells(self, names: tuple[str, ...]) -> Plain:
        """The kind of noise, its variance in units of a column's own, and by what the sum was scaled."""
        return {"noise": "independent", "noise_variance_ratio": self.ratio, "scaled_by": scaled_by(self.ratio, self.rescale)}

    def keeps(self) -> tuple[Kept, ...]:
        """The mean; with `rescale` the variance too."""
        exactly = self.moments == "exact"
        kept = [Kept("mean", exactly)]
        if self.rescale:
            kept.append(Kept("variance", exactly))
        return tuple(kept)

    def _masked(self, column: NumberColumn, draws: Draws) -> Real:
        count = column.present.size
        if count == 0:
            return column.values.copy()
        unit = magnitude(column.present)
        there = column.present / unit
        variance = self.ratio * float(there.var(ddof=1))
        drawn = draws.normal(count)
        if self.moments == "exact":
            drawn = exact_noise(there[:, None], drawn[:, None], np.array([[variance]]))[:, 0]
        else:
            drawn *= math.sqrt(variance)
        centre = float(there.mean())
        there -= centre
        there += drawn
        with np.errstate(over="ignore"):  # what no number can hold is refused when the table is put together
            there *= scaled_by(self.ratio, self.rescale)
            there += centre
            there *= unit
        if count == column.values.size:
            return there
        masked = column.values.copy()
        masked[column.known] = there
        return masked

    def _unchanged(self, column: NumberColumn) -> float:
        return rounded_back(column, noise_deviation(column, self.ratio) * scaled_by(self.ratio, self.rescale))


def scaled_by(ratio: float, rescale: bool) -> float:
    """The factor by which deviations from the mean are multiplied after the noise was added."""
    return 1.0 / math.sqrt(1.0 + ratio) if rescale else 1.0


def _too_few(column: str) -> str:
    return (
        f"column '{column}' has fewer than {least_for_exact(1)} known values (in a stratum, where there are strata), too few for "
        f"noise with exact moments: less than {LEAST_FREEDOM} dimensions of it would be left to chance, and who knows the method "
        'could work the values out; use moments="free" or coarser strata'
    )
