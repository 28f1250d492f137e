"""What private clusterings share: points in whole steps between declared bounds, a bound per unit, and first centres."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.core.randomness import Randomness
from sfumato.core.ranges import Each, Text, Whole
from sfumato.data.microdata import Microdata
from sfumato.dp.algorithms.contributions import Bounding, check_order, keep_per_unit, random_keys, ranks
from sfumato.dp.algorithms.declared_values import (
    STEPS,
    Axis,
    Codes,
    check_unit,
    declared_axis,
    in_steps,
    read,
    refuse,
    unit_codes,
)

#: Squared distances in steps of all columns together must fit into 64 bits.
MAX_COLUMNS = 64

#: More centres than anybody looks at, and they take a while.
MOST_CENTRES = 10_000

_TRIALS = 10

#: What becomes of rows that are no point between the bounds.
LEFT_OUT = "Rows in which a clustered column is missing are left out; a number beyond its bounds counts as the nearest bound"

#: The columns whose numbers are clustered.
ClusteredColumns = Annotated[
    Sequence[str],
    Each(Text("the name of a column"), 1, MAX_COLUMNS, different=True, what=f"1 to {MAX_COLUMNS} different columns", alone=True),
    "the columns whose numbers are clustered",
]
#: How many clusters are formed.
Centres = Annotated[int, Whole(at_least=1, at_most=MOST_CENTRES), "how many clusters there are"]


def misnamed(columns: Sequence[str]) -> Iterator[str]:
    """What is wrong with columns that a table of centres cannot show."""
    if "size" in columns:
        yield "a clustered column cannot be called 'size': the sizes of clusters are; rename it"


class ClusterParameters(Protocol):
    """The parameters that say which points are clustered."""

    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> Sequence[str]: ...
    @property
    def max_rows(self) -> int | None: ...
    @property
    def kept_rows(self) -> int: ...
    @property
    def bounding(self) -> Bounding: ...
    @property
    def order(self) -> str | None: ...


def declared_axes(data: Microdata, algorithm: ClusterParameters) -> list[Axis]:
    """The declared bounds; all faults at once, before a row is read."""
    faults: list[str] = []
    unit = check_unit(data, algorithm.max_rows, faults)
    if algorithm.order is not None and algorithm.order not in data.column_names:
        faults.append(f"there is no column '{algorithm.order}' in the data to order rows by")
    axes = [declared_axis(data, name, faults) for name in algorithm.columns]
    refuse(data, algorithm.name, faults)
    if unit is not None:
        check_order(data, algorithm.bounding, algorithm.order)
    return [axis for axis in axes if axis is not None]


def bounded_points(data: Microdata, axes: Sequence[Axis], algorithm: ClusterParameters, source: Randomness) -> Codes:
    """The complete rows in whole steps, at most `max_rows` of each unit."""
    unit = data.schema.unit
    table = read(data, [*algorithm.columns, unit, algorithm.order])
    parts = [in_steps(table.column(axis.name), axis) for axis in axes]
    units = unit_codes(table, unit)
    complete = np.flatnonzero(np.logical_and.reduce([present for _, present in parts]) & (units >= 0))
    points = np.column_stack([steps for steps, _ in parts])[complete]
    if unit is None:
        return points
    if algorithm.bounding == "sample":
        keys: list[NDArray[np.generic]] = [random_keys(complete.size, source)]
    elif algorithm.order is None:
        keys = []
    else:
        keys = [ranks(table.column(algorithm.order))[complete], *points.T]
    return points[keep_per_unit(units[complete], algorithm.kept_rows, *keys)]


def spread_centres(k: int, columns: int, source: Randomness) -> Codes:
    """Random centres, each the one of a few trials that is farthest from those before it; no data involved."""
    from sfumato.kernels.sampling.noise import uniform_below

    centres = uniform_below(STEPS + 1, columns, source).reshape(1, columns)
    while len(centres) < k:
        trials = uniform_below(STEPS + 1, _TRIALS * columns, source).reshape(_TRIALS, columns)
        distance = ((trials[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2).min(axis=1)
        centres = np.vstack([centres, trials[np.argmax(distance)]])
    return centres
