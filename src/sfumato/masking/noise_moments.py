"""What noise has to know about the records it is added to: their moments, and how to meet moments exactly.

A drawn sample never has quite the covariance of its law. Taking out its part along the data and whitening what is left
gives noise with zero mean, zero covariance with the data and exactly the covariance asked for. Kim, "A method for limiting
disclosure in microdata based on random noise and transformation", Proceedings of the ASA Section on Survey Research
Methods, 1986; Tendick, Matloff, "A modified random perturbation method for database security", ACM TODS 19(1), 1994.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported, all_at_once
from sfumato.data.records import NumberColumn

Real = NDArray[np.float64]

#: A column of whole numbers is refused when more than this share of its values is expected to come out as it was.
MOST_ROUNDED_BACK = 0.95

#: Smallest eigenvalue of a correlation matrix that counts as more than a rounding error.
SINGULAR = 1e-10


def pairwise_covariance(values: Real) -> Real:
    """Sample covariances of columns side by side, each from the records that know both; NaN where fewer than two do."""
    width = values.shape[1]
    known = ~np.isnan(values)
    found = np.full((width, width), np.nan)
    if known.all():
        if values.shape[0] > 1:
            centred = values - values.mean(axis=0)
            found = centred.T @ centred / (values.shape[0] - 1)
        return found
    for i in range(width):
        for j in range(i, width):
            both = known[:, i] & known[:, j]
            count = int(both.sum())
            if count > 1:
                left, right = values[both, i], values[both, j]
                found[i, j] = found[j, i] = float((left - left.mean()) @ (right - right.mean())) / (count - 1)
    return found


def known_means(values: Real) -> Real:
    """The mean of the known values of each column; 0 for a column without any."""
    known = ~np.isnan(values)
    totals: Real = np.where(known, values, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return totals


def exact_noise(values: Real, drawn: Real, covariance: Real) -> Real:
    """Draws reshaped so that, as a sample, they have mean 0, this covariance, and no covariance with `values`.

    Needs more records than twice the columns, no missing value, and a covariance that is positive definite.
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


def refuse_without_spread(method: str, columns: Sequence[NumberColumn]) -> None:
    """Noise in proportion to a spread of 0 is no noise: such a column, or one stratum of it, is not left as it is."""
    faults = []
    for column in columns:
        known = column.values[column.known]
        if known.size and not np.ptp(known) > 0:
            faults.append(
                f"column '{column.name}' does not vary (in a stratum, where there are strata), so noise in proportion to its "
                "variance would leave it as it is; leave it out of columns=(…) or use coarser strata"
            )
    all_at_once(Unsupported, method, faults)


def rounded_back(column: NumberColumn, deviations: Real | float, *, whole: bool) -> float:
    """The expected share of values that rounding to whole numbers makes what they were, for normal noise of these deviations."""
    from scipy.special import ndtr

    if not (pa.types.is_date(column.arrow) or (column.whole and whole)):
        return 0.0
    widths = np.broadcast_to(np.asarray(deviations, dtype=np.float64), column.values.shape)[column.known]
    if not widths.size:
        return 0.0
    return float(1.0 - 2.0 * ndtr(-0.5 / np.maximum(widths, 1e-300)).mean())


def refuse_rounded_back(method: str, shares: Mapping[str, float]) -> None:
    """Refuse columns of whole numbers whose noise rounding would take back again."""
    all_at_once(
        Unsupported,
        method,
        (
            f"the noise of column '{name}' is so small that rounding to whole numbers would take it back in "
            f"{100 * share:.1f} % of its values; use more noise, or whole=False to publish real numbers"
            for name, share in shares.items()
            if share > MOST_ROUNDED_BACK
        ),
    )
