"""Rank swapping and PRAM: from a table in memory to a masked one, beside a limit, a published peer and plain NumPy.

The peer's seconds (sdcMicro 5.8.1: 2.16 for eight columns of 100,000 values at 10 %, 0.75 for PRAM of two columns of 100,000)
are constants, measured on a machine of the same kind. The plain versions follow the definitions word by word: a scan of the
window for every rank, and a comparison of each draw with its whole cumulative row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Case

if TYPE_CHECKING:
    from sfumato.core.outcome import Outcome
    from sfumato.data.masked import Masked
    from sfumato.data.microdata import Microdata
    from sfumato.masking.base import Mask

RECORDS = 100_000
MANY = 1_000_000
LABELS = 20
PERCENT = 10
SEED = 44
#: Milliseconds that sdcMicro needs.
PEER_SWAPPING, PEER_PRAM = 2160.0, 750.0


def numbers(columns: int) -> Microdata:
    """That many columns of normal values."""
    import numpy as np
    import pyarrow as pa

    import sfumato as sf

    drawn = np.random.Generator(np.random.PCG64(SEED)).normal(size=(columns, RECORDS))
    return sf.read(pa.table({f"x{position}": values for position, values in enumerate(drawn)}))


def categories(records: int, columns: int) -> Microdata:
    """That many columns with twenty labels, the first ones frequent."""
    import numpy as np
    import pyarrow as pa

    import sfumato as sf

    generator = np.random.Generator(np.random.PCG64(SEED))
    labels = np.array([f"label {i:02}" for i in range(LABELS)])
    weights = 1 / np.arange(1, LABELS + 1)
    drawn = generator.choice(LABELS, size=(columns, records), p=weights / weights.sum())
    return sf.read(pa.table({f"c{position}": labels[codes] for position, codes in enumerate(drawn)}))


def applied(mask: Mask) -> Any:
    """The masking of a prepared table, as a timed call that also hands back what it was given."""
    return lambda people: (people, mask.apply(people, seed=1))


def same_values(result: tuple[Microdata, Outcome[Masked]]) -> str | None:
    """Every column has its values, in another order."""
    import numpy as np

    people, outcome = result
    before, after = people.table(), outcome.result.table
    for name in before.column_names:
        one, two = before[name].to_numpy(), after[name].to_numpy()
        if not np.array_equal(np.sort(one), np.sort(two)) or np.count_nonzero(one == two) > RECORDS // 100:
            return f"column {name} does not have its values in another order"
    return None


def about_stay(stay: float) -> Any:
    """A check that the share of unchanged values is what it has to be, within six standard errors."""

    def check(result: tuple[Microdata, Outcome[Masked]]) -> str | None:
        people, outcome = result
        size = len(people)
        for name, changed in outcome.details["changed"].items():
            if abs(1 - changed / size - stay) > 6 * (stay * (1 - stay) / size) ** 0.5:
                return f"column {name} did not stay as often as it should"
        return None

    return check


def plain_rank_swapping() -> Any:
    """The definition on one column: list the unswapped ranks of the window, draw one of them, swap."""
    import numpy as np

    generator = np.random.Generator(np.random.PCG64(SEED))
    values = generator.normal(size=RECORDS)
    window = RECORDS * PERCENT // 100

    def swap() -> Any:
        order = np.argsort(values, kind="stable")
        ranked = values[order]
        free = np.ones(RECORDS, dtype=bool)
        for rank in range(RECORDS):
            if free[rank]:
                others = np.flatnonzero(free[rank + 1 : rank + 1 + window])
                if others.size:
                    other = rank + 1 + others[generator.integers(others.size)]
                    ranked[rank], ranked[other] = ranked[other], ranked[rank]
                    free[rank] = free[other] = False
        masked = np.empty(RECORDS)
        masked[order] = ranked
        return masked

    return swap


def plain_pram() -> Any:
    """Every draw compared with the cumulative row of its label."""
    import numpy as np

    generator = np.random.Generator(np.random.PCG64(SEED))
    codes = generator.integers(LABELS, size=MANY)
    matrix = np.full((LABELS, LABELS), 0.2 / (LABELS - 1))
    np.fill_diagonal(matrix, 0.8)
    sums = np.cumsum(matrix, axis=1)
    return lambda: (generator.random(MANY)[:, None] >= sums[codes]).sum(axis=1)


def cases() -> Iterator[Case]:
    """The cases of `make bench`."""
    import sfumato as sf

    one, eight = ("x0",), tuple(f"x{position}" for position in range(8))
    labels = [f"label {i:02}" for i in range(LABELS)]
    own = {"c0": {label: {other: 0.81 if label == other else 0.01 for other in labels} for label in labels}}
    swapping = sf.RankSwapping(PERCENT, columns=eight)
    yield Case(
        "rank swapping, 100,000 values",
        applied(sf.RankSwapping(PERCENT, columns=one)),
        limit=100.0,
        prepare=lambda: numbers(1),
        check=same_values,
    )
    yield Case(
        "rank swapping, 8 columns of 100,000", applied(swapping), limit=100.0, prepare=lambda: numbers(8), check=same_values
    )
    yield Case(
        "rank swapping, 8 columns of 100,000, beside sdcMicro",
        applied(swapping),
        peer=PEER_SWAPPING,
        bar=0.05,
        prepare=lambda: numbers(8),
        check=same_values,
    )
    yield Case(
        "rank swapping, 100,000 values, beside a scan of the window",
        applied(sf.RankSwapping(PERCENT, columns=one)),
        peer=plain_rank_swapping(),
        bar=0.1,
        repeats=3,
        prepare=lambda: numbers(1),
        check=same_values,
    )
    for mask in (sf.DistributionRankSwapping(PERCENT, columns=eight), sf.BucketRankSwapping(PERCENT, columns=eight)):
        kind = "distribution" if isinstance(mask, sf.DistributionRankSwapping) else "buckets"
        yield Case(
            f"rank swapping by {kind}, 8 columns of 100,000",
            applied(mask),
            limit=100.0,
            prepare=lambda: numbers(8),
            check=same_values,
        )
    yield Case(
        "PRAM, a million values, stay = 0.8",
        applied(sf.Pram(stay=0.8, columns=("c0",))),
        limit=100.0,
        prepare=lambda: categories(MANY, 1),
        check=about_stay(0.8),
    )
    yield Case(
        "PRAM, a million values, a matrix of 20 rows",
        applied(sf.Pram(matrix=own)),
        limit=100.0,
        prepare=lambda: categories(MANY, 1),
        check=about_stay(0.81),
    )
    yield Case(
        "PRAM, a million values, beside comparing whole rows",
        applied(sf.Pram(matrix=own)),
        peer=plain_pram(),
        bar=1.0,
        repeats=5,
        prepare=lambda: categories(MANY, 1),
        check=about_stay(0.81),
    )
    yield Case(
        "PRAM, 2 columns of 100,000, beside sdcMicro",
        applied(sf.Pram(stay=0.8, columns=("c0", "c1"))),
        peer=PEER_PRAM,
        bar=0.02,
        prepare=lambda: categories(RECORDS, 2),
        check=about_stay(0.8),
    )
