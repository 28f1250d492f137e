"""Linkage of aligned files: exact and in linear memory, beside brute force in blocks and a library's k-d tree.

The intruder holds the originals; the masked file has normal noise. Nearest-neighbour credit is the whole measure at the kernel:
building the tree, asking for everybody, sharing ties. Brute force runs at a size it can afford.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from benchmarks.harness import Case

_WIDTH = 8
_BLOCK = 256


def cases() -> Iterator[Case]:
    """All cases of linkage."""
    yield from _distance()
    yield _against_brute_force()
    yield _mixed()
    yield _probabilistic()
    yield _assignment()


@cache
def _files(rows: int, noise: float, width: int = _WIDTH) -> tuple[Any, Any]:
    import numpy as np

    draw = np.random.default_rng(rows)
    original = draw.normal(size=(rows, width))
    return original, original + noise * draw.normal(size=original.shape)


def _distance() -> Iterator[Case]:
    from sfumato.kernels.linkage.points import own_is_nearest

    for noise in (0.1, 0.3, 1.0):
        files = _files(100_000, noise)
        yield Case(
            f"distance linkage, 100,000 records, {_WIDTH} columns, noise {noise:g} sd",
            lambda _, files=files: own_is_nearest(*files),
            unit="s",
            limit=1.5,
            peer=lambda files=files: _library(*files),
            repeats=3,
            check=lambda credits, files=files: _differs(credits, files),
            remark=lambda credits: f"{credits.mean():.2%} linked",
            note="peer: scipy's k-d tree, nearest neighbour without ties",
        )


def _library(original: Any, masked: Any) -> Any:
    from scipy.spatial import cKDTree

    return cKDTree(masked).query(original, 1)[1]


def _differs(credits: Any, files: tuple[Any, Any]) -> str | None:
    """A sample of the records, by brute force."""
    import numpy as np

    original, masked = files
    for row in range(0, len(original), len(original) // 200):
        apart = ((original[row] - masked) ** 2).sum(axis=1)
        if bool(credits[row] > 0) != bool(apart[row] <= np.min(apart) * (1 + 1e-9)):
            return "a record is linked otherwise than by brute force"
    return None


def _against_brute_force() -> Case:
    from sfumato.kernels.linkage.points import own_is_nearest

    files = _files(10_000, 0.3)
    return Case(
        f"distance linkage, 10,000 records, {_WIDTH} columns, against brute force",
        lambda _: own_is_nearest(*files),
        unit="s",
        peer=lambda: brute_force(*files),
        bar=0.1,
        repeats=3,
        check=lambda credits: None if (credits == brute_force(*files)).all() else "another credit than by brute force",
        note="peer: all pairs in NumPy, in blocks",
    )


def brute_force(original: Any, masked: Any) -> Any:
    """The credit of every record by comparing all pairs, a block of records at a time."""
    import numpy as np

    credits = np.empty(len(original))
    for start in range(0, len(original), _BLOCK):
        block = original[start : start + _BLOCK]
        apart = np.zeros((len(block), len(masked)))
        for column in range(original.shape[1]):
            apart += (block[:, column, None] - masked[None, :, column]) ** 2
        own = apart[np.arange(len(block)), start + np.arange(len(block))][:, None]
        closer = (apart < own * (1 - 1e-9)).any(axis=1)
        credits[start : start + _BLOCK] = np.where(closer, 0.0, 1.0 / (apart <= own * (1 + 1e-9)).sum(axis=1))
    return credits


def long_cases() -> Iterator[Case]:
    """A million records: a matrix of all pairs would be eight terabytes."""
    from sfumato.kernels.linkage.points import own_is_nearest

    yield Case(
        f"distance linkage, 1,000,000 records, {_WIDTH} columns, noise 0.1 sd",
        lambda files: own_is_nearest(*files),
        unit="s",
        limit=60.0,
        prepare=lambda: _files(1_000_000, 0.1),
        repeats=1,
        warm_run=False,
        remark=lambda credits: f"{credits.mean():.2%} linked",
    )


def _mixed() -> Case:
    import numpy as np

    from sfumato.kernels.linkage.points import Metric, own_is_nearest
    from sfumato.kernels.linkage.tree import ABSOLUTE, CATEGORY

    draw = np.random.default_rng(1)
    rows = 100_000
    numbers, masked = _files(rows, 0.1, 4)
    words = draw.integers(0, 12, size=(rows, 4)).astype(float)
    other = np.where(draw.random(words.shape) < 0.1, draw.integers(0, 12, size=words.shape), words)
    kinds = np.array([ABSOLUTE] * 4 + [CATEGORY] * 4, dtype=np.int64)
    metric = Metric(kinds, np.ones(8), np.full(8, 0.5))
    left, right = np.hstack([numbers / 8, words]), np.hstack([masked / 8, other])
    return Case(
        "Gower linkage, 100,000 records, 4 numbers and 4 categories",
        lambda _: own_is_nearest(left, right, metric),
        unit="s",
        limit=2.0,
        repeats=1,
        warm_run=False,
        remark=lambda credits: f"{credits.mean():.2%} linked",
    )


def _records(matrix: Any) -> Any:
    import pyarrow as pa

    from sfumato.data.records import NumberColumn, Records

    columns = tuple(NumberColumn(f"c{i}", matrix[:, i].copy(), pa.float64()) for i in range(matrix.shape[1]))
    return Records(columns, len(matrix))


def _probabilistic() -> Case:
    from sfumato.measures.risk.linkage.probabilistic_linkage import probabilistic_links

    original, masked = (_records(side) for side in _files(100_000, 0.1))
    return Case(
        f"probabilistic linkage, 100,000 records, {_WIDTH} columns, 10 bins",
        lambda _: probabilistic_links(original, masked, 10).credit,
        unit="s",
        limit=4.0,
        repeats=1,
        warm_run=False,
        remark=lambda credits: f"{credits.mean():.2%} linked; 10¹⁰ pairs, none of them looked at",
    )


def _assignment() -> Case:
    import numpy as np

    from sfumato.kernels.linkage.points import Metric
    from sfumato.measures.risk.linkage.assignment_linkage import assigned
    from sfumato.measures.risk.linkage.spaces import LinkageSpace

    original, masked = _files(3_000, 0.5)

    def full() -> float:
        from scipy.optimize import linear_sum_assignment
        from scipy.spatial.distance import cdist

        costs = cdist(original, masked)
        return float(costs[linear_sum_assignment(costs)].sum())

    return Case(
        f"one-to-one linkage, 3,000 records, {_WIDTH} columns, noise 0.5 sd",
        lambda _: assigned(LinkageSpace(original, masked, Metric.euclidean(_WIDTH), "euclidean")),
        unit="s",
        peer=full,
        bar=1.5,
        repeats=3,
        check=lambda found: None if np.isclose(found.total, full()) else "another total than over all pairs",
        note="peer: scipy on the matrix of all pairs",
    )
