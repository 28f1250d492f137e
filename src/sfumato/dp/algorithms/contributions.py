"""Bounded contributions: at most so many rows of each unit, by sampling or by truncating.

Number each unit's rows in a random order (sampling) or in the order of a column (truncating) and keep the first ones.
What is kept of one unit depends on that unit's rows alone, so that adding or removing a unit changes at most `rows`
rows. McSherry, "Privacy integrated queries", SIGMOD 2009; Wilson et al., "Differentially private SQL with bounded
user contribution", PoPETs 2020.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.core.errors import MissingColumn, ParameterError, Unsupported, all_at_once
from sfumato.core.randomness import Randomness, StreamRandomness, default, words
from sfumato.core.ranges import ColumnName, Whole
from sfumato.data.microdata import Microdata
from sfumato.dp.algorithms.declared_values import Codes, distinct_values, unit_codes

Bounding = Literal["sample", "truncate"]

MOST_ROWS = 10**6

#: How many rows of a unit count.
KeptRows = Annotated[int | None, Whole(at_least=1, at_most=MOST_ROWS), "the most rows that one unit keeps"]
#: Which of them count.
BoundedBy = Annotated[Bounding, "how a unit's rows are chosen: at random, or the first ones"]
#: What truncating keeps first.
OrderedBy = Annotated[ColumnName | None, "the column by which the first rows of a unit are kept"]


def bound_contributions(
    data: Microdata,
    rows: int,
    *,
    unit: str | None = None,
    method: Bounding = "sample",
    order: str | None = None,
    randomness: Randomness | None = None,
) -> Microdata:
    """The rows of `data` with at most `rows` rows of each unit, in their order; rows without a unit are left out.

    `sample` keeps a uniformly random subset of a unit's rows. `truncate` keeps the first ones by the column `order`
    (missing values last, ties by the other columns); without `order` by their place in the table, which only data in
    memory has. `unit` defaults to the schema's unit column. The result is as sensitive as the data: bounding is a step
    before noise, not a protection.
    """
    check_bounding(rows, method)
    column = unit or data.schema.unit
    if column is None:
        raise ParameterError('whose rows are bounded? Give a column role = "unit" in the schema, or pass unit = …')
    missing = [
        f"there is no column '{name}'" for name in dict.fromkeys([column, order]) if name and name not in data.column_names
    ]
    all_at_once(MissingColumn, f"bounding the contributions to '{data.schema.dataset}'", missing)
    check_order(data, method, order)
    from sfumato.engines.distinct_units import distinct_units
    from sfumato.engines.memory import MemoryRelation

    data = replace(data, relation=distinct_units(data.relation, column))
    kept = bounded_rows(data.table(), column, rows, method=method, order=order, randomness=randomness)
    return replace(data, relation=MemoryRelation(kept))


def bounded_rows(
    table: pa.Table,
    unit: str,
    rows: int,
    *,
    method: Bounding = "sample",
    order: str | None = None,
    randomness: Randomness | None = None,
) -> pa.Table:
    """`bound_contributions` of an Arrow table.

    >>> log = pa.table({"user": ["Bob", "Bob", "Bob", "Eve"], "word": ["apples", "bananas", "koc university", "car"]})
    >>> bounded_rows(log, "user", 2, method="truncate").column("word").to_pylist()
    ['apples', 'bananas', 'car']
    """
    check_bounding(rows, method)
    units = unit_codes(table, unit)
    keys: list[NDArray[np.generic]] = []
    if method == "sample":
        keys.append(random_keys(table.num_rows, randomness or default()))
    elif order is not None:
        others = [name for name in table.column_names if name not in (unit, order)]
        keys.extend(ranks(table.column(name)) for name in [order, *others])
    return table.take(pa.array(keep_per_unit(units, rows, *keys)))


def check_bounding(rows: int | None, method: str) -> None:
    """Parameters of a bound, checked alike by everything that has one; None where nobody said one."""
    require(
        rows is None or isinstance(rows, int) and not isinstance(rows, bool) and 1 <= rows <= MOST_ROWS,
        "rows, the most that one unit keeps, is a whole number from 1 to a million",
    )
    require(method in ("sample", "truncate"), "contributions are bounded by sample or truncate")


def check_order(data: Microdata, method: str, order: str | None) -> None:
    """Truncating needs an order that the rows themselves carry."""
    if method == "truncate" and order is None and data.relation.engine != "memory":
        raise Unsupported(
            f"rows on {data.relation.engine} have no order of their own, so that 'the first rows' of a unit would depend on "
            "how they are stored. Name a column that orders them (order = …) or sample"
        )


def keep_per_unit(units: Codes, rows: int, *keys: NDArray[np.generic]) -> Codes:
    """The positions, ascending, of the first `rows` rows of each unit by the sort `keys`, the first key first.

    Rows with a negative unit are left out; rows equal in all keys stay in their order.
    """
    owned = np.flatnonzero(units >= 0)
    order = owned[np.lexsort([*(key[owned] for key in reversed(keys)), units[owned]])]
    own = units[order]
    starts = np.flatnonzero(np.concatenate([[True], own[1:] != own[:-1]])) if own.size else np.zeros(0, dtype=np.int64)
    place = np.arange(own.size) - np.repeat(starts, np.diff(np.append(starts, own.size)))
    return np.sort(order[place < rows])


def random_keys(count: int, randomness: Randomness) -> NDArray[np.uint64]:
    """Sort keys that put rows in a uniformly random order.

    They have a stream of their own: what is drawn afterwards depends neither on the number of rows nor on the engine.
    """
    return words(StreamRandomness(randomness.bytes(16).hex()), count)


def ranks(column: pa.ChunkedArray) -> Codes:
    """For each row the place of its value among the different values, missing ones last."""
    distinct, codes = distinct_values(column)
    place = np.zeros(len(distinct) + 1, dtype=np.int64)
    place[pc.sort_indices(distinct).to_numpy(zero_copy_only=False)] = np.arange(len(distinct))
    place[-1] = len(distinct)
    return place[codes]
