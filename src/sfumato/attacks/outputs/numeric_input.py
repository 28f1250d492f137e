"""Numbers that an attack is given, as arrays: finite, of the right shape, or refused without repeating one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError

Real = NDArray[np.float64]
#: Numbers as somebody has them.
Numbers: TypeAlias = Sequence[float] | NDArray[np.number[Any]]


def are_numbers(entries: object, *, rows: bool = False) -> bool:
    """Whether these are finite numbers in a sequence, or in rows of equal length."""
    if not isinstance(entries, (Sequence, np.ndarray)) or isinstance(entries, (str, bytes)):
        return False
    try:
        matrix(entries, "") if rows else vector(entries, "")
    except InputError:
        return False
    return True


def vector(entries: object, what: str, size: int | None = None) -> Real:
    """A sequence of finite numbers, of this size where one is given."""
    numbers = _array(entries, what)
    if numbers.ndim != 1 or not numbers.size:
        raise InputError(f"{what}: a sequence of numbers is needed")
    if size is not None and numbers.size != size:
        raise InputError(f"{what}: {size:,} numbers are needed, {numbers.size:,} are given")
    return _finite(numbers, what)


def matrix(entries: object, what: str, columns: int | None = None, *, missing: bool = False) -> Real:
    """Rows of numbers, one row per record; `missing` cells are NaN where they are allowed."""
    numbers = _array(entries, what)
    if numbers.ndim != 2 or not numbers.size:
        raise InputError(f"{what}: rows of numbers are needed, one row per record")
    if columns is not None and numbers.shape[1] != columns:
        raise InputError(f"{what}: {columns:,} columns are needed, {numbers.shape[1]:,} are given")
    if missing:
        return _finite(np.where(np.isnan(numbers), 0.0, numbers), what) * np.where(np.isnan(numbers), np.nan, 1.0)
    return _finite(numbers, what)


def _array(entries: Any, what: str) -> Real:
    if entries is None:
        raise InputError(f"{what}: nothing is given")
    try:
        return np.asarray(entries, dtype=np.float64)
    except (TypeError, ValueError):  # the reason would repeat a value
        raise InputError(f"{what}: these are not numbers in rows of equal length") from None


def _finite(numbers: Real, what: str) -> Real:
    if not np.isfinite(numbers).all():
        raise InputError(f"{what}: a number is missing or not finite")
    return numbers
