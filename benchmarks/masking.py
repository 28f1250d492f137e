"""Microaggregation and additive noise against the reference implementation and against the plain algorithm.

sdcMicro 5.8.1 was measured once, by hand, as CPU seconds of one thread; the plain algorithm (every distance computed every
time, noise by NumPy's own generator) is measured beside us, and must find the same clusters.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Case

if TYPE_CHECKING:
    import numpy as np

#: CPU seconds of sdcMicro 5.8.1 for MDAV on 100,000 records, 8 attributes, k = 10.
SDCMICRO_SECONDS = 21.9
#: CPU seconds of sdcMicro 5.8.1 for additive noise on 100,000 records, 8 attributes.
SDCMICRO_NOISE_SECONDS = 0.048
NOISE_RATIO = 0.1
SEED = 5


def records(count: int, attributes: int) -> np.ndarray[Any, Any]:
    """Standard normal numbers."""
    import numpy as np

    return np.random.Generator(np.random.PCG64(SEED)).normal(size=(count, attributes))


def clusters(points: np.ndarray[Any, Any], k: int) -> np.ndarray[Any, Any]:
    """Ours."""
    from sfumato.kernels.microaggregation.live import Space
    from sfumato.kernels.microaggregation.partitions import mdav

    return mdav(Space.of_numbers(points), k)


def plain_clusters(points: np.ndarray[Any, Any], k: int) -> np.ndarray[Any, Any]:
    """MDAV as the definition reads: every distance to every record that is left."""
    import numpy as np

    labels = np.empty(len(points), dtype=np.int64)
    rows, left, made = np.arange(len(points)), points.copy(), 0

    def take(row: int) -> None:
        nonlocal rows, left, made
        distances = ((left - points[row]) ** 2).sum(axis=1)
        near = np.argpartition(distances, k - 1)[:k]
        labels[rows[near]] = made
        kept = np.ones(len(rows), dtype=bool)
        kept[near] = False
        rows, left, made = rows[kept], left[kept], made + 1

    def farthest(centre: np.ndarray[Any, Any]) -> int:
        return int(rows[np.argmax(((left - centre) ** 2).sum(axis=1))])

    while len(rows) >= 3 * k:
        one = farthest(left.mean(axis=0))
        take(one)
        take(farthest(points[one]))
    if len(rows) >= 2 * k:
        take(farthest(left.mean(axis=0)))
    labels[rows] = made
    return labels


@cache
def expected() -> list[int]:
    """The clusters of the case that is measured beside the plain algorithm."""
    found: list[int] = plain_clusters(records(10_000, 8), 10).tolist()
    return found


def sizes(k: int) -> Any:
    """A check that every cluster has k to 2k - 1 records."""

    def check(labels: Any) -> str | None:
        import numpy as np

        counted = np.bincount(labels)
        return None if counted.min() >= k and counted.max() < 2 * k else "a cluster has fewer than k or more than 2k - 1 records"

    return check


def cases() -> Iterator[Case]:
    """The published bar, and the plain algorithm side by side."""
    yield Case(
        name="MDAV, 100,000 records, 8 attributes, k = 10",
        ours=lambda points: clusters(points, 10),
        prepare=lambda: records(100_000, 8),
        unit="s",
        peer=SDCMICRO_SECONDS,
        bar=0.1,
        check=sizes(10),
        repeats=5,
        stretch=SDCMICRO_SECONDS / 20,
        note="peer: sdcMicro 5.8.1, measured once",
    )
    yield Case(
        name="MDAV, 10,000 records, 8 attributes, k = 10",
        ours=lambda points: clusters(points, 10),
        prepare=lambda: records(10_000, 8),
        unit="s",
        peer=lambda: plain_clusters(records(10_000, 8), 10),
        bar=0.1,
        check=lambda labels: None if labels.tolist() == expected() else "other clusters than the plain algorithm's",
        note="peer: the plain algorithm with NumPy, beside us; same clusters",
    )
    yield _additive_noise()


def _additive_noise() -> Case:
    """From an Arrow table to a masked Arrow table, as a mask and with NumPy alone."""
    import numpy as np
    import pyarrow as pa

    import sfumato as sf

    table = pa.table({f"x{i}": column for i, column in enumerate(records(100_000, 8).T)})
    mask = sf.AdditiveNoise(NOISE_RATIO, columns=tuple(table.column_names))

    def plain() -> pa.Table:
        draw = np.random.Generator(np.random.PCG64())
        values = np.column_stack([column.to_numpy() for column in table.columns])
        masked = values + draw.normal(size=values.shape) * np.sqrt(NOISE_RATIO * values.var(axis=0, ddof=1))
        return pa.table(dict(zip(table.column_names, masked.T, strict=True)))

    def check(outcome: Any) -> str | None:
        masked = outcome.result.table
        moved = [
            float(np.var(masked.column(name).to_numpy() - table.column(name).to_numpy()) / np.var(table.column(name).to_numpy()))
            for name in table.column_names
        ]
        return None if all(0.095 < ratio < 0.105 for ratio in moved) else "the noise has another variance"

    return Case(
        "additive noise, 100,000 records, 8 attributes",
        mask.apply,
        unit="s",
        limit=SDCMICRO_NOISE_SECONDS,
        prepare=lambda: sf.read(table),
        check=check,
        peer=plain,
        note="limit: sdcMicro 5.8.1, measured once. peer: NumPy with its own generator",
    )


def long_cases() -> Iterator[Case]:
    """A million records."""
    yield Case(
        name="MDAV, 1,000,000 records, 4 attributes, k = 5",
        ours=lambda points: clusters(points, 5),
        prepare=lambda: records(1_000_000, 4),
        unit="s",
        limit=30.0,
        check=sizes(5),
        repeats=1,
        warm_run=False,
        stretch=15.0,
    )
