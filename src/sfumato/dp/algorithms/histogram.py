"""A private histogram: counts over declared categories, declared bins, or a grid of several columns, released once.

Count the rows (or units) in every cell of a partition fixed without the data, add integer noise to each cell, also to
the empty ones. Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data analysis", TCC 2006.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import formerly
from sfumato.core.guarantees.loss import LossGuarantee, Neighbours
from sfumato.core.outcome import Outcome
from sfumato.core.plain_data import Plain
from sfumato.core.progress import Progress, silent
from sfumato.core.randomness import Randomness, default
from sfumato.core.ranges import ByName, Each, Either, Text, Whole
from sfumato.data.microdata import Microdata
from sfumato.dp.algorithms.base import RowBounded
from sfumato.dp.algorithms.contributions import (
    BoundedBy,
    KeptRows,
    OrderedBy,
    check_order,
    keep_per_unit,
    random_keys,
    ranks,
)
from sfumato.dp.algorithms.declared_values import (
    Axis,
    Categories,
    Codes,
    category_codes,
    check_unit,
    clamped_numbers,
    declared_axis,
    declared_categories,
    read,
    refuse,
    unit_codes,
)
from sfumato.dp.algorithms.engine_codes import edges_code, listed_code
from sfumato.dp.algorithms.engine_counts import cell_counts, fresh_salt, rows_in_engine
from sfumato.dp.algorithms.spending import Epsilon, LossShare, Rho, one_of_them
from sfumato.dp.mechanisms.base import Error
from sfumato.dp.outcomes import private_outcome
from sfumato.dp.ranges import Floating, Rising
from sfumato.engines.cell_counts import Code
from sfumato.engines.cell_counts import KeptRows as EngineRows
from sfumato.engines.sql.relation import SqlRelation

if TYPE_CHECKING:
    import pyarrow as pa

#: Every cell gets noise, empty or not, so that all of them must fit into memory.
MAX_CELLS = 20_000_000
#: Bins of one column.
MOST_BINS = 1_000_000


@dataclass(frozen=True)
class Bins:
    """A column of numbers in half-open bins, the last one closed; numbers outside count in the outermost bins."""

    axis: Axis
    edges: tuple[float, ...]

    @property
    def size(self) -> int:
        """The number of bins."""
        return len(self.edges) - 1

    def codes(self, column: pa.ChunkedArray) -> Codes:
        """The bin of each value, -1 where it is missing."""
        numbers, present = clamped_numbers(column, self.axis)
        place = np.searchsorted(np.array(self.edges), numbers, side="right") - 1
        return np.where(present, np.clip(place, 0, self.size - 1), -1)


@formerly(max_rows="rows")
@dataclass(frozen=True)
class PrivateHistogram(RowBounded):
    """Noisy counts of all combinations of declared categories and bins.

    An adversary who sees the counts, and knows everything but the noise, learns almost nothing about whether one unit is in
    the data (`neighbours` "add_remove") or which rows it has ("replace"); `epsilon` or `rho` says how little. A unit
    is one value of the schema's unit column and keeps at most `max_rows` rows; without a unit column it is a record.

    `columns` are counted together. A column of numbers needs `bins`: how many of equal width between its declared
    bounds, or their edges; whole numbers without `bins` are counted one by one. `count` says what is counted: "rows",
    or "units", where a unit counts once in each of at most `max_rows` cells. `bounding` and `order` say which rows of a unit
    are kept. `non_negative` raises negative counts to 0, after the noise: sums over many cells are then biased.

    >>> PrivateHistogram(("sex",), epsilon=1, max_rows=100).error().deviation   # at most 100 visits per person
    141.4213562373095
    """

    columns: Annotated[
        Sequence[str],
        Each(Text("the name of a column"), at_least=1, different=True, what="one or more different columns", alone=True),
        "the columns that are counted together",
    ]
    epsilon: Epsilon = None
    rho: Rho = None
    bins: Annotated[
        Mapping[str, int | Sequence[float]],
        ByName(
            Either((Whole(at_least=1, at_most=MOST_BINS), Rising(Floating(), at_least=2, what="two or more edges that rise")))
        ),
        "for each column of numbers, how many bins there are or their edges",
    ] = field(default_factory=dict)
    max_rows: KeptRows = None
    count: Annotated[Literal["rows", "units"], "what is counted"] = "rows"
    bounding: BoundedBy = "sample"
    order: OrderedBy = None
    neighbours: Annotated[Neighbours, "which databases are neighbours"] = "add_remove"
    non_negative: Annotated[bool, "whether negative counts are raised to 0"] = False

    def coherent(self) -> Iterable[str]:
        if not set(self.bins) <= set(self.columns):
            yield "bins are given for columns of the histogram only"
        yield from one_of_them(self.epsilon, self.rho)

    def sensitivity(self) -> tuple[int, int]:
        """(L1, squared L2) of all counts together: a unit's rows may all lie in one cell; as a unit it counts there once."""
        squared = self.kept_rows**2 if self.count == "rows" else self.kept_rows
        return (self.kept_rows, squared) if self.neighbours == "add_remove" else (2 * self.kept_rows, 2 * squared)

    def loss(self) -> LossGuarantee:
        return self._spending.guarantee(self.neighbours)

    def error(self) -> Error:
        """Of one cell, before negative counts are raised."""
        return self._spending.error(*self.sensitivity())

    def run(self, data: Microdata, *, randomness: Randomness | None = None, progress: Progress = silent) -> Outcome[pa.Table]:
        """An Arrow table with one row per cell: its categories or bin edges (`name_from`, `name_to`) and its `count`."""
        source = randomness or default()
        cells, unit = self._declared(data)
        progress("counting", 0, 0)
        exact_counts = self.counts(data, source)
        spending = self._spending
        l1, l2_squared = self.sensitivity()
        noisy = exact_counts + spending.noise(exact_counts.size, l1, l2_squared, source)
        released = np.maximum(noisy, 0) if self.non_negative else noisy
        guarantee = spending.guarantee(self.neighbours, unit or "record")
        return private_outcome(
            _table(cells, released),
            guarantee,
            {"name": self.name, **self.parameters()},
            argument=f"the cells are declared; all counts together change by at most {l1} in L1 ({l2_squared} in squared L2) "
            f"and each carries discrete {spending.law} noise with the parameter {spending.noise_parameter(l1, l2_squared)}",
            randomness=source,
            dataset=data.schema.dataset,
            **self.tells(),
        )

    def left_out(self) -> str:
        return (
            "Rows in which a counted column is missing, or has a category that is not declared, are left out; a number beyond "
            "its bounds counts in the outermost bin"
        )

    def tells(self) -> Plain:
        """The standard deviation of the noise on a count."""
        return {"deviation": self.error().deviation}

    def counts(self, data: Microdata, randomness: Randomness | None = None) -> NDArray[np.int64]:
        """The exact counts after bounding, cell by cell: the owner's, not for release."""
        cells, unit = self._declared(data)
        relation = rows_in_engine(data, [*self.columns, unit, self.order])
        codes = None if relation is None else self._engine_codes(relation, cells)
        if relation is not None and codes is not None:
            sampled = unit is not None and self.bounding == "sample"
            salt = fresh_salt(randomness or default()) if sampled else None
            order = None if sampled else self.order
            return cell_counts(relation, codes, EngineRows(unit, self.kept_rows, salt, order, once=self.count == "units"))
        table = read(data, [*self.columns, unit, self.order])
        code = np.zeros(table.num_rows, dtype=np.int64)
        inside = np.ones(table.num_rows, dtype=np.bool_)
        for cell in cells:
            column = table.column(cell.axis.name if isinstance(cell, Bins) else cell.name)
            own = cell.codes(column) if isinstance(cell, Bins) else category_codes(column, cell)
            inside &= own >= 0
            code = code * _size(cell) + own
        units = unit_codes(table, unit)
        rows = np.flatnonzero(inside & (units >= 0))
        code, units = code[rows], units[rows]
        if unit is not None:
            keys = [ranks(table.column(self.order))[rows]] if self.order else []
            kept = self._kept(units, code, keys, randomness or default())
            code = code[kept]
        return np.bincount(code, minlength=math.prod(map(_size, cells))).astype(np.int64)

    @staticmethod
    def _engine_codes(relation: SqlRelation, cells: Sequence[Bins | Categories]) -> list[Code] | None:
        """The cells as codes that the engine computes; None where it cannot."""
        codes = []
        for cell in cells:
            if isinstance(cell, Bins):
                code = edges_code(cell.axis.name, relation.fields[cell.axis.name].kind, cell.edges, cell.axis.whole)
            else:
                places = {value: place for place, value in enumerate(cell.values)}
                code = listed_code(cell.name, relation.fields[cell.name].kind, places, len(places))
            if code is None:
                return None
            codes.append(code)
        return codes

    def _kept(self, units: Codes, code: Codes, keys: list[Codes], randomness: Randomness) -> Codes:
        rows = np.arange(code.size)
        if self.count == "units":
            # Each unit once per cell, its earliest row there, before the number of cells is bounded.
            order = np.lexsort([*reversed(keys), code, units])
            first = np.ones(order.size, dtype=np.bool_)
            first[1:] = (units[order][1:] != units[order][:-1]) | (code[order][1:] != code[order][:-1])
            rows = np.sort(order[first])
        chosen: list[NDArray[np.generic]] = (
            [random_keys(rows.size, randomness)]
            if self.bounding == "sample"
            else [*(key[rows] for key in keys), *([code[rows]] if keys else [])]
        )
        return rows[keep_per_unit(units[rows], self.kept_rows, *chosen)]

    @property
    def _spending(self) -> LossShare:
        return LossShare.of(self.epsilon, self.rho)

    def _declared(self, data: Microdata) -> tuple[tuple[Bins | Categories, ...], str | None]:
        faults: list[str] = []
        unit = check_unit(data, self.max_rows, faults)
        if self.order is not None and self.order not in data.column_names:
            faults.append(f"there is no column '{self.order}' in the data to order rows by")
        cells = [self._cell(data, name, faults) for name in self.columns]
        present = tuple(cell for cell in cells if cell is not None)
        total = math.prod(map(_size, present))
        if total > MAX_CELLS:
            faults.append(f"{total:,} cells are too many (at most {MAX_CELLS:,}); use fewer columns or wider bins")
        refuse(data, self.name, faults)
        if unit is not None:
            check_order(data, self.bounding, self.order)
        return present, unit

    def _cell(self, data: Microdata, name: str, faults: list[str]) -> Bins | Categories | None:
        edges = self.bins.get(name)
        described = data.schema.columns.get(name)
        if isinstance(edges, tuple):
            # Edges that the caller states are a declaration, whatever the schema says.
            before = len(faults)
            declared_axis(data, name, faults)
            faults[before:] = [fault for fault in faults[before:] if not fault.startswith("the bounds of")]
            return Bins(Axis(name, edges[0], edges[-1]), edges) if len(faults) == before else None
        if edges is None and (described is None or described.bounds is None):
            return declared_categories(data, name, faults)
        axis = declared_axis(data, name, faults)
        if axis is None:
            return None
        if isinstance(edges, int):
            return Bins(axis, tuple(float(edge) for edge in np.linspace(axis.low, axis.high, edges + 1)))
        first, last = math.ceil(axis.low), math.floor(axis.high)
        if not axis.whole or not 0 <= last - first < MAX_CELLS:
            faults.append(
                f"column '{name}' holds numbers; say how they are grouped: bins = {{\"{name}\": 20}} or a list of edges"
            )
            return None
        return Bins(Axis(name, first, last, True), tuple(float(edge) for edge in range(first, last + 2)))


def _size(cell: Bins | Categories) -> int:
    return cell.size if isinstance(cell, Bins) else len(cell.values)


def _table(cells: Sequence[Bins | Categories], counts: NDArray[np.int64]) -> pa.Table:
    import pyarrow as pa

    columns: dict[str, pa.Array] = {}
    for cell, place in zip(cells, np.unravel_index(np.arange(counts.size), [_size(cell) for cell in cells]), strict=True):
        if isinstance(cell, Categories):
            columns[cell.name] = pa.array(np.array(cell.values, dtype=object)[place], pa.string())
        elif cell.axis.whole and all(b - a == 1 for a, b in zip(cell.edges, cell.edges[1:], strict=False)):
            columns[cell.axis.name] = pa.array(np.array(cell.edges[:-1], dtype=np.int64)[place])
        else:
            edges = np.array(cell.edges)
            columns[f"{cell.axis.name}_from"], columns[f"{cell.axis.name}_to"] = (
                pa.array(edges[place]),
                pa.array(edges[place + 1]),
            )
    return pa.table({**columns, "count": pa.array(counts, pa.int64())})
