"""Predictors of synthetic values: other columns of the same records, as the regressors of a linear model.

Numbers as they are, categories as indicators of every value but the first; a category that is missing is a value of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import MissingColumn, ParameterError, Unsupported, all_at_once
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, NumberColumn, Records, magnitude

Real = NDArray[np.float64]

#: Below this share of the largest singular value, standardised regressors count as linearly dependent.
_DEPENDENT = 1e-9


def check_predictors(
    method: str, names: Sequence[str], masked: Records, strata: tuple[str, ...] | None, people: Microdata
) -> None:
    """Refuse predictors that are not in the data, are masked themselves, or are the strata."""
    missing = [f"predictor '{name}' is not in the data" for name in names if name not in people.column_names]
    all_at_once(MissingColumn, method, missing)
    for name in names:
        if name in masked.names:
            raise ParameterError(f"{method}: column '{name}' cannot be masked and predict the masked columns at once")
        if name in (strata or ()):
            raise ParameterError(f"{method}: column '{name}' is a stratum, within which it predicts nothing; leave it out")


def regressors(columns: Sequence[NumberColumn | CategoryColumn], size: int) -> Real:
    """One row per record, without the intercept; NaN where a number is missing; numbers in units of their
    magnitude. What has one value only is left out."""
    parts: list[Real] = []
    for column in columns:
        if isinstance(column, NumberColumn):
            known_values = column.values[column.known]
            if known_values.size and known_values.max() > known_values.min():
                parts.append((column.values / magnitude(column.values))[:, None])
        else:
            present = np.unique(column.codes)
            parts.append((column.codes[:, None] == present[None, 1:]).astype(np.float64))
    return np.concatenate([np.empty((size, 0)), *parts], axis=1)


def orthonormal(method: str, regressor: Real) -> Real:
    """An orthonormal basis of the regressors and the intercept (n × (columns + 1)), the intercept first."""
    rows, width = regressor.shape
    spread = regressor.std(axis=0)
    if width and (spread == 0).any():
        raise Unsupported(f"{method}: {_DEPENDENCE}")
    standard = (regressor - regressor.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    basis, triangle = np.linalg.qr(np.concatenate([np.ones((rows, 1)), standard], axis=1))
    sizes = np.linalg.svd(triangle, compute_uv=False)
    if sizes[-1] <= _DEPENDENT * sizes[0]:
        raise Unsupported(f"{method}: {_DEPENDENCE}")
    orthogonal: Real = basis
    return orthogonal


_DEPENDENCE = (
    "the predictors depend linearly on each other (one follows from the others), so the regression has no unique answer; "
    "leave out the redundant columns"
)
