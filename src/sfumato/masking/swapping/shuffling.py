"""Data shuffling: the values of confidential columns, dealt out anew so that they still go with what they went with.

Columns become normal scores by their ranks; new scores are drawn from the normal law given the predictors' scores; the
sorted original values are then dealt out in the order of the new scores.
Muralidhar, Sarathy, "Data shuffling: a new masking approach for numerical data", Management Science 52(5), 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import MissingColumn, ParameterError, Unsupported, all_at_once
from sfumato.core.plain_data import Plain
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, Kind, NumberColumn, Records
from sfumato.kernels.changes.rank_swapping import stable_order
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask
from sfumato.masking.columns import DifferentColumns
from sfumato.masking.unchanged import refuse_unchanged

Real = NDArray[np.float64]

#: A column whose scores the predictors leave less variance than this would be dealt out as it was.
_DETERMINED = 1e-6
#: A plain category among the predictors has at most so many labels, each of which is a variable of its own.
_MOST_LABELS = 200
#: Values are dealt out independently of the old ones, so that few of them may all fall back into their places by mere chance;
#: a column is judged by its unchanged values only where at least so many would change at random.
_JUDGED = 20
_WHAT_TO_DO = "name fewer predictors or use coarser strata, or mask such a column of few values by PRAM"


@dataclass(frozen=True)
class Shuffling(Mask):
    """Deal the values of each column out anew, given `predictors`.

    `predictors`: columns that stay as they are and whose relation to the shuffled columns is to be kept (numbers and
    categories; a missing value counts as one in the middle, a plain category as one variable per label). Without them the
    shuffled columns keep only their relations to each other.

    Each column keeps its values exactly, and all rank correlations among shuffled columns and predictors on average, as far
    as a normal copula expresses them. Given the predictors, the new value of a record does not depend on its old one: an
    intruder learns from it no more than the predictors and the relation tell. Missing values stay missing. A column that
    predictors bring back nearly as it was is refused; `details["unchanged"]` has the share of values that came out as they were.

    >>> import sfumato as sf
    >>> people = sf.data.sample_table(500)
    >>> masked = sf.Shuffling(predictors=("education",), columns=("age", "income")).apply(people, seed=1).result
    >>> sorted(masked.table["income"].drop_null().to_pylist()) == sorted(people["income"].drop_null().to_pylist())
    True
    """

    predictors: Annotated[DifferentColumns, "columns whose relation to the shuffled ones is kept"] = ()

    handles: ClassVar[frozenset[Kind]] = frozenset({"number", "ordered"})
    shows_missing: ClassVar[bool] = True

    def check(self, records: Records, people: Microdata) -> None:
        """Predictors must be there and not be masked."""
        gone = [f"predictor '{name}' is not in the data" for name in self.predictors if name not in people.column_names]
        all_at_once(MissingColumn, "Shuffling", gone)
        faults = [f"column '{name}' cannot be shuffled and predict at once" for name in self.predictors if name in records.names]
        all_at_once(ParameterError, "Shuffling", faults)

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Draw new scores given the predictors, and deal out the sorted values in their order."""
        context.progress("shuffling", 0, 1)
        scores = np.column_stack([_scores(column) for column in records.columns])
        predictors = [context.column(name) for name in self.predictors]
        features = [part for column in predictors for part in _predicting(column)]
        before = np.column_stack(features) if features else np.empty((records.size, 0))
        slopes, left = _conditional_law(
            before, scores, np.all([column.known for column in (*records.columns, *predictors)], axis=0)
        )
        determined = [
            column.name
            for position, column in enumerate(records.columns)
            if left[position, position] < _DETERMINED and np.any(scores[:, position] != 0)
        ]
        all_at_once(
            Unsupported,
            "Shuffling",
            [f"column '{name}' follows from the predictors, so it would come back as it is; name fewer" for name in determined],
        )
        values, vectors = np.linalg.eigh(left)
        noise = draws.normal(records.size, scores.shape[1]) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        drawn = before @ slopes + noise
        dealt = {column.name: _dealt(column, drawn[:, position]) for position, column in enumerate(records.columns)}
        context.progress("shuffling", 1, 1)
        unchanged = refuse_unchanged("Shuffling", records.columns, dealt, _WHAT_TO_DO, expected=_JUDGED)
        # What the predictors leave is a function of the true pairs, and in a small stratum would single them out: the owner's.
        details = {"unchanged": unchanged, "residual_correlation": left.tolist()}
        return Change(dealt, published=self.tells(records.names), details=details)

    def tells(self, names: tuple[str, ...]) -> Plain:
        """The columns by which values were dealt."""
        return {"predictors": list(self.predictors)}

    def keeps(self) -> tuple[Kept, ...]:
        """Every column has the values it had."""
        return tuple(Kept(what, exactly=True) for what in ("multiset", "mean", "variance", "frequencies"))


def _values(column: NumberColumn | CategoryColumn) -> Real:
    """Numbers, or codes of an ordered column, with NaN where missing."""
    if isinstance(column, NumberColumn):
        return column.values
    return np.where(column.known, column.codes, np.nan).astype(np.float64)


def _scores(column: NumberColumn | CategoryColumn) -> Real:
    """Standard normal scores of the ranks; equal values share the mean of their ranks, missing ones the score 0."""
    from scipy.special import ndtri

    values = _values(column)
    rows = np.flatnonzero(column.known)
    scores = np.zeros(values.size)
    if rows.size == 0:
        return scores
    ordered = rows[stable_order(np.ascontiguousarray(values[rows]))]
    starts = np.flatnonzero(np.concatenate([[True], np.diff(values[ordered]) != 0]))
    ends = np.append(starts[1:], rows.size)
    middle = np.repeat((starts + ends) / 2, ends - starts)  # ranks count from 1, less one half
    scores[ordered] = ndtri(middle / rows.size)
    present = scores[rows]
    spread = present.std()
    scores[rows] = (present - present.mean()) / spread if spread > 0 else 0.0
    return scores


def _predicting(column: NumberColumn | CategoryColumn) -> list[Real]:
    """A predictor as variables with mean 0 and variance 1; one that is the same everywhere predicts nothing."""
    if isinstance(column, NumberColumn) or column.ordered:
        scores = [_scores(column)]
    else:
        present = np.unique(column.codes[column.codes >= 0])
        if present.size > _MOST_LABELS:
            raise Unsupported(
                f"Shuffling: predictor '{column.name}' has {present.size} categories (at most {_MOST_LABELS}); generalise it"
            )
        flags = [(column.codes == code).astype(np.float64) for code in present[1:]]
        scores = [(flag - flag.mean()) / flag.std() for flag in flags if flag.std() > 0]
    return [score for score in scores if np.any(score != 0)]


def _conditional_law(before: Real, scores: Real, complete: NDArray[np.bool_]) -> tuple[Real, Real]:
    """Slopes on the predictors and the covariance that they leave, from complete records where there are enough of them.

    Predictors that depend on each other linearly share their slopes.
    """
    if np.count_nonzero(complete) > 2 * (before.shape[1] + scores.shape[1]):
        before, scores = before[complete], scores[complete]
    count = scores.shape[0]
    before, scores = before - before.mean(axis=0), scores - scores.mean(axis=0)
    among: Real = scores.T @ scores / count
    if before.shape[1] == 0:
        return np.zeros((0, scores.shape[1])), among
    across = before.T @ scores / count
    slopes: Real = np.linalg.pinv(before.T @ before / count, rcond=1e-10, hermitian=True) @ across
    left = among - across.T @ slopes
    return slopes, (left + left.T) / 2


def _dealt(column: NumberColumn | CategoryColumn, drawn: Real) -> NDArray[np.float64] | NDArray[np.int32]:
    """The sorted known values in the order of the drawn scores."""
    original = column.values if isinstance(column, NumberColumn) else column.codes
    rows = np.flatnonzero(column.known)
    dealt = original.copy()
    dealt[rows[stable_order(np.ascontiguousarray(drawn[rows]))]] = np.sort(original[rows])
    return dealt
