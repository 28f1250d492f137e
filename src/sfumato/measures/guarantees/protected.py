"""Which values of a sensitive attribute are protected, and which classes contain one.

`None` protects every value, an empty tuple none. Wong, Li, Fu, Wang, "(α,k)-anonymity", KDD 2006.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.measures.guarantees.classes import ValueCounts


def protected_mask(values: Sequence[str | None], protected: tuple[str, ...] | None) -> NDArray[np.bool_]:
    """For each value whether it is protected."""
    if protected is None:
        return np.ones(len(values), dtype=np.bool_)
    chosen = set(protected)
    return np.array([value in chosen for value in values], dtype=np.bool_)


def concerned(histogram: ValueCounts, protected: tuple[str, ...] | None) -> NDArray[np.bool_]:
    """For each class whether it contains a protected value; the others are exempt."""
    if protected is None:
        return np.ones(histogram.sizes.size, dtype=np.bool_)
    mask = protected_mask(histogram.values, protected)
    return histogram.largest(mask[histogram.value].astype(np.int8)).astype(np.bool_)
