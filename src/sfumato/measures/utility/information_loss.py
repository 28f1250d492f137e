"""Information loss: what an analysis of the masked data gives, compared with what it gives on the original.

IL_f(X, X') = divergence(f(X), f(X')) for any analysis f. `AnalysisLoss` takes f and the divergence; `InformationLoss` is the
generic one for mixed data, the number the risk-utility map shows. Domingo-Ferrer, Torra, "Disclosure control methods and
information loss for microdata", in Confidentiality, Disclosure and Data Access, North-Holland 2001.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.core.errors import ParameterError, Unsupported
from sfumato.core.ranges import Either, Made, OneOf
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, compared
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, Records
from sfumato.measures.parameters import Bins, ComparedColumns
from sfumato.measures.utility.divergence import Cells, hellinger, kullback_leibler, mean_over_pairs
from sfumato.measures.utility.probabilistic_loss import probabilistic_losses

Real = NDArray[np.float64]
#: Any analysis of records that gives numbers.
Analysis = Callable[[Records], ArrayLike]
#: How far the second result is from the first.
Divergence = Callable[[Real, Real], float]

_SMOOTHING = 1e-9

#: Divergences by name. The last three take results for distributions (counts or shares, not negative).
DIVERGENCES: MappingProxyType[str, Divergence] = MappingProxyType(
    {
        "absolute": lambda a, b: float(np.mean(np.abs(a - b))),
        "squared": lambda a, b: float(np.mean((a - b) ** 2)),
        "maximum": lambda a, b: float(np.max(np.abs(a - b))),
        "euclidean": lambda a, b: float(np.sqrt(((a - b) ** 2).sum())),
        "relative": lambda a, b: float(np.mean(np.abs(a - b)) / (np.mean(np.abs(a)) or 1.0)),
        "total_variation": lambda a, b: float(np.abs(a / a.sum() - b / b.sum()).sum() / 2),
        "hellinger": hellinger,
        "kullback_leibler": lambda a, b: kullback_leibler(a / a.sum(), b / b.sum(), _SMOOTHING),
    }
)
_OF_DISTRIBUTIONS = ("total_variation", "hellinger", "kullback_leibler")


def _function(value: Any) -> Any:
    if not callable(value):
        raise ParameterError("not a function")
    return value


@dataclass(frozen=True)
class AnalysisLoss(Measure[Microdata, Compared]):
    """How far the result of your own analysis moves when it is run on the masked records.

    `analysis` takes `Records` (columns of numbers and categories as arrays) and returns numbers, as many on both sides;
    `divergence` is a name of `DIVERGENCES` or a function of both results. The `columns` are compared; rows need not correspond.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(500), schema=sf.data.sample_schema())
    >>> oldest = AnalysisLoss(lambda records: records.matrix().max(axis=0), "maximum", ("age",))
    >>> oldest.score(people, people).value
    0.0
    """

    analysis: Annotated[Analysis, Made(_function, "a function of records"), "the analysis that is run on both tables"]
    divergence: Annotated[
        str | Divergence, Either((OneOf(tuple(DIVERGENCES)), Made(_function, "a function"))), "how far two results are apart"
    ] = "absolute"
    columns: ComparedColumns = None
    key: ClassVar[str] = "analysis_loss"
    masked: ClassVar[bool] = True

    def score(self, original: Microdata, released: Compared) -> Score:
        """The divergence of the second result from the first."""
        left, right, _ = compared(original, released, self.columns)
        before, after = (np.atleast_1d(np.asarray(self.analysis(side), dtype=np.float64)) for side in (left, right))
        if before.shape != after.shape or not before.size:
            raise Unsupported(
                f"the analysis gives {before.size} numbers on the original and {after.size} on the masked records; it must give "
                "the same number, at least one, on both"
            )
        if not (np.isfinite(before).all() and np.isfinite(after).all()):
            raise Unsupported("the analysis gives results that are missing or infinite; let it leave missing values out")
        if self.divergence in _OF_DISTRIBUTIONS and not all(side.min() >= 0 and side.sum() > 0 for side in (before, after)):
            raise Unsupported(f"the divergence {self.divergence} compares distributions: results must not be negative nor all 0")
        distance = self.divergence if callable(self.divergence) else DIVERGENCES[self.divergence]
        return Score(self.key, float(distance(before, after)), "lower", "how far the result of the analysis moved")


@dataclass(frozen=True)
class InformationLoss(Measure[Microdata, Compared]):
    """One number for mixed data, in [0, 1]: 0 where nothing changed, 1 where nothing is left.

    Of the `columns` those of numbers count with their probabilistic information loss (`pil`). Columns of categories count with
    the mean of two Hellinger distances: of their distributions, and of the joint distributions of all pairs with at least one
    category (numbers cut into `bins` ranges), so that a mask that keeps every column and breaks what binds them is noticed.
    Both are weighted by the number of columns: for numbers alone it *is* PIL. Rows need not correspond.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(500), schema=sf.data.sample_schema())
    >>> masked = sf.AdditiveNoise(0.1, columns=("age", "income")).apply(people, seed=1).result
    >>> loss = InformationLoss(("age", "income", "sex"))
    >>> 0 == loss.score(people, people).value < loss.score(people, masked).value < 1
    True
    """

    columns: ComparedColumns = None
    bins: Bins = 10
    key: ClassVar[str] = "information_loss"
    masked: ClassVar[bool] = True

    def score(self, original: Microdata, released: Compared) -> Score:
        """The weighted mean; its components as parts."""
        left, right, _ = compared(original, released, self.columns)
        parts: dict[str, float] = {}
        weighted = []
        if left.numbers:
            losses = probabilistic_losses(left, right)
            parts.update({"numbers": losses.value, **losses.families})
            weighted.append((len(left.numbers), losses.value))
        if left.categories:
            parts.update(self._categories(left, right))
            weighted.append((len(left.categories), parts["categories"]))
        value = sum(weight * loss for weight, loss in weighted) / len(left.columns)
        meaning = "information lost over numbers (PIL) and categories (Hellinger distance)"
        return Score(self.key, value, "lower", meaning, MappingProxyType(parts))

    def _categories(self, left: Records, right: Records) -> dict[str, float]:
        named = [isinstance(column, CategoryColumn) for column in left.columns]
        cells = [Cells.of(a, b, self.bins) for a, b in zip(left.columns, right.columns, strict=True)]
        alone = float(np.mean([hellinger(*each.counts()) for each, is_named in zip(cells, named, strict=True) if is_named]))
        if len(cells) == 1:
            return {"categories": alone, "distributions": alone}
        together = mean_over_pairs(cells, hellinger, lambda i, j: named[i] or named[j])
        return {"categories": (alone + together) / 2, "distributions": alone, "pairs": together}
