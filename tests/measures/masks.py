"""Small masks for tests of measures: identity, noise, an independent resample, groups of equal rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.data.microdata import Microdata

NAMES = ("height", "weight", "age", "pulse")


def numbers(rows: int, seed: int = 0) -> np.ndarray:
    """Correlated numbers, all records different."""
    draw = np.random.default_rng(seed)
    plain = draw.normal(size=(rows, len(NAMES)))
    return plain @ np.array([[1, 0.6, 0.2, 0], [0, 1, 0.3, 0.1], [0, 0, 1, 0.5], [0, 0, 0, 1.0]]) + 100.0


def table(matrix: np.ndarray) -> pa.Table:
    return pa.table({name: matrix[:, i] for i, name in enumerate(NAMES[: matrix.shape[1]])})


def people(matrix: np.ndarray) -> Microdata:
    return sf.read(table(matrix), schema=sf.Schema.of(quasi=list(NAMES[: matrix.shape[1]])))


def noisy(matrix: np.ndarray, share: float, seed: int = 1) -> np.ndarray:
    return matrix + share * matrix.std(axis=0) * np.random.default_rng(seed).normal(size=matrix.shape)


def resampled(matrix: np.ndarray, seed: int = 2) -> np.ndarray:
    """Rows drawn independently of the record they stand for."""
    return numbers(len(matrix), seed + 100)


def grouped(matrix: np.ndarray, size: int) -> np.ndarray:
    """Neighbours along the first column share their mean."""
    out = np.empty_like(matrix)
    order = np.argsort(matrix[:, 0])
    for start in range(0, len(matrix), size):
        rows = order[start : start + size]
        out[rows] = matrix[rows].mean(axis=0)
    return out
