"""What noise has to know about the records it is added to: their moments, and how to meet moments exactly.

A drawn sample never has quite the covariance of its law. Taking out its part along the data and whitening what is left
gives noise with zero mean, zero covariance with the data and exactly the covariance asked for. Kim, "A method for limiting
disclosure in microdata based on random noise and transformation", Proceedings of the ASA Section on Survey Research
Methods, 1986; Tendick, Matloff, "A modified random perturbation method for database security", ACM TODS 19(1), 1994.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported, all_at_once
from sfumato.data.records import NumberColumn, deviation_of

Real = NDArray[np.float64]

#: A column is refused when rounding is expected to give more than this share of its values back.
MOST_ROUNDED_BACK = 0.95

#: Dimensions that have to be left to chance in noise with exact moments, whatever else is known.
LEAST_FREEDOM = 10

#: Of fewer values than this the common divisor is chance; only their decimals are a grid.
_FEWEST_FOR_DIVISOR = 10

#: Values that are looked at first: nearly always they show that a grid is none.
_GLANCE = 64
#: Parts of a unit in which values may be counted: decimals, and for moments (in days) hours, minutes, seconds.
_DECIMALS = (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
_PARTS_OF_A_DAY = (1, 24, 1_440, 86_400)
_LARGEST_COUNT = 2.0**53

#: Smallest eigenvalue of a correlation matrix that counts as more than a rounding error.
SINGULAR = 1e-10


def pairwise_covariance(values: Real) -> Real:
    """Sample covariances of columns side by side, each from the records that know both; NaN where fewer than two do."""
    width = values.shape[1]
    present = ~np.isnan(values)
    covariance = np.full((width, width), np.nan)
    if present.all():
        if values.shape[0] > 1:
            centred = values - values.mean(axis=0)
            covariance = centred.T @ centred / (values.shape[0] - 1)
        return covariance
    for i in range(width):
        for j in range(i, width):
            both = present[:, i] & present[:, j]
            count = int(both.sum())
            if count > 1:
                left, right = values[both, i], values[both, j]
                covariance[i, j] = covariance[j, i] = float((left - left.mean()) @ (right - right.mean())) / (count - 1)
    return covariance


def known_means(values: Real) -> Real:
    """The mean of the known values of each column; 0 for a column without any."""
    present = ~np.isnan(values)
    totals: Real = np.where(present, values, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    return totals


def exact_noise(values: Real, drawn: Real, covariance: Real) -> Real:
    """Draws reshaped so that, as a sample, they have mean 0, this covariance, and no covariance with `values`.

    Needs more records than twice the columns (`least_for_exact` of them to protect anybody), no missing value, and a
    covariance that is positive definite.
    """
    from scipy.linalg import solve_triangular

    count, width = values.shape
    centred = values - values.mean(axis=0)
    spread = np.sqrt((centred**2).mean(axis=0))
    along, _ = np.linalg.qr(np.column_stack([np.ones(count), centred / np.where(spread > 0, spread, 1.0)]))
    left = drawn
    for _ in range(2):  # the second pass takes out what rounding left in the first
        left = left - along @ (along.T @ left)
    has = np.linalg.cholesky(left.T @ left / (count - 1))
    wants = np.linalg.cholesky(covariance)
    white = solve_triangular(has, left.T, lower=True)
    reshaped: Real = (wants @ white).T
    return reshaped.reshape(count, width)


def least_for_exact(columns: int) -> int:
    """The fewest records whose noise may be given exact moments.

    With n records, such noise of d columns lies in n - 1 - d dimensions with its lengths and angles known, as anybody who
    knows the method knows. With three values of one column a sign is all that is left to chance, and the masked values give
    the original ones away. So `LEAST_FREEDOM` dimensions are asked for, even when the noise of the other columns is known.
    """
    return LEAST_FREEDOM + 2 * columns


def refuse_without_spread(method: str, columns: Sequence[NumberColumn]) -> None:
    """Noise in proportion to a spread of 0 is no noise: such a column, or one stratum of it, is not left as it is."""
    faults = []
    for column in columns:
        present = column.present
        if present.size and not present.max() > present.min():
            faults.append(
                f"column '{column.name}' does not vary (in a stratum, where there are strata), so noise in proportion to its "
                "variance would leave it as it is; leave it out of columns=(…) or use coarser strata"
            )
    all_at_once(Unsupported, method, faults)


def once_per_column(number: Callable[[NumberColumn], float]) -> Callable[[NumberColumn], float]:
    """A number that follows from a column alone, computed once: a mask asks before it draws and again for what it tells."""
    numbers: WeakKeyDictionary[NumberColumn, float] = WeakKeyDictionary()

    @wraps(number)
    def remembered(column: NumberColumn) -> float:
        if column not in numbers:
            numbers[column] = number(column)
        return numbers[column]

    return remembered


@once_per_column
def grid_step(column: NumberColumn) -> float:
    """The distance of the grid on which all known values lie: whole numbers, cents, fives, days, seconds…

    Whether the type is one of whole numbers does not matter: who sees that all values are whole rounds to whole numbers. At
    the least it is the distance of neighbouring floats.
    """
    present = column.present
    if not present.size:
        return 0.0
    largest = float(np.abs(present).max())
    finest = float(np.spacing(largest))
    single = pa.types.is_float32(column.arrow)
    for parts in _PARTS_OF_A_DAY if pa.types.is_timestamp(column.arrow) else _DECIMALS:
        if not largest < _LARGEST_COUNT / parts:
            break
        if _on_grid(present[:_GLANCE], parts, single) and _on_grid(present, parts, single):
            whole = np.rint(present * parts).astype(np.int64)
            common = int(np.gcd.reduce(whole - whole.min())) if present.size >= _FEWEST_FOR_DIVISOR else 1
            return max(max(common, 1) / parts, finest)
    return finest


def _on_grid(values: Real, parts: float, single: bool) -> bool:
    """Whether all values are whole numbers of parts, as far as their precision says."""
    back = np.rint(values * parts) / parts
    return bool(np.array_equal(back.astype(np.float32) if single else back, values))


def rounded_back(column: NumberColumn, deviations: Real | float) -> float:
    """The expected share of values that rounding to the grid of the column makes what they were, for normal noise of these
    deviations (one for all values, or one for each)."""
    from scipy.special import ndtr

    widths = np.asarray(deviations, dtype=np.float64)
    widths = widths[column.known] if widths.ndim else widths[None]
    if not widths.size or not column.known.any():
        return 0.0
    with np.errstate(over="ignore"):  # a step that is infinitely many deviations wide takes everything back
        steps = grid_step(column) / np.maximum(widths, 5e-324)
    return float(1.0 - 2.0 * ndtr(-0.5 * steps).mean())


def noise_deviation(column: NumberColumn, ratio: float) -> float:
    """The deviation of noise with `ratio` times the variance of the known values; 0 of fewer than two."""
    return math.sqrt(ratio) * _deviation(column)


@once_per_column
def _deviation(column: NumberColumn) -> float:
    return deviation_of(column.present, ddof=1) if column.present.size > 1 else 0.0


def refuse_rounded_back(method: str, shares: Mapping[str, float], allowed: bool) -> None:
    """Refuse columns whose noise anybody takes back by rounding, be they published as whole or as real numbers."""
    if allowed:
        return
    all_at_once(
        Unsupported,
        method,
        (
            f"the noise of column '{name}' is so small that rounding to the grid on which its values lie (whole numbers, say) "
            f"would take it back in {100 * share:.1f} % of its values (in a stratum, where there are strata); use more noise, or "
            "leave the column out of columns=(…) and mask it by another method (may_round_back=True is for studies)"
            for name, share in shares.items()
            if share > MOST_ROUNDED_BACK
        ),
    )
