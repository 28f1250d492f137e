"""Random inputs for the kernels of rank swapping and PRAM."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

UNIT = st.one_of(st.sampled_from([0.0, 0.5, 1 - 2.0**-53]), st.floats(0, 1, exclude_max=True))


def _units(draw: DrawFn, size: int) -> np.ndarray:
    return np.array(draw(st.lists(UNIT, min_size=size, max_size=size)), dtype=np.float64)


@st.composite
def values(draw: DrawFn) -> tuple[Any, ...]:
    """Numbers with many ties, both zeros and every sign and size."""
    few = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, -1e300, 1e300, 5e-324])
    found = draw(st.lists(st.one_of(few, st.floats(allow_nan=False, allow_infinity=False)), max_size=40))
    return (np.array(found, dtype=np.float64),)


@st.composite
def window(draw: DrawFn) -> tuple[Any, ...]:
    size = draw(st.integers(0, 25))
    return _units(draw, size), draw(st.integers(1, 30))


@st.composite
def distances(draw: DrawFn) -> tuple[Any, ...]:
    return (np.array(draw(st.lists(st.integers(-30, 30), max_size=25)), dtype=np.int64),)


@st.composite
def buckets(draw: DrawFn) -> tuple[Any, ...]:
    size = draw(st.integers(0, 25))
    return _units(draw, size), _units(draw, size), draw(st.integers(1, 30))


@st.composite
def rows(draw: DrawFn) -> tuple[Any, ...]:
    """Codes with missing ones, a draw each, and cumulative rows with impossible categories."""
    from sfumato.kernels.changes.transitions import cumulative

    height, width = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    weights = np.array(draw(st.lists(st.integers(0, 4), min_size=height * width, max_size=height * width)), dtype=np.float64)
    weights = weights.reshape(height, width)
    weights[weights.sum(axis=1) == 0, 0] = 1
    size = draw(st.integers(0, 25))
    codes = np.array(draw(st.lists(st.integers(-1, height - 1), min_size=size, max_size=size)), dtype=np.int32)
    return codes, _units(draw, size), cumulative(weights / weights.sum(axis=1, keepdims=True))
