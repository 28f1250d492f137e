"""Sampled contributions in this process: the engine streams the few columns needed, a kernel chooses and sums.

Units travel as 64-bit words (128-bit digests where they are text), groups as codes, values as whole numbers; the
answer is the one of `bounding.expanded` except that other rows are drawn. See docs/decisions/0006.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported
from sfumato.engines.canonical import ARROW_TYPES, Coded, canonical_column, encode, from_numbers, plain_numbers
from sfumato.engines.expressions import (
    And,
    Choose,
    Expression,
    IsMissing,
    Kind,
    Literal,
    Not,
    Reference,
    Scrambled,
    kind_of,
)
from sfumato.engines.plan import (
    AggregateColumn,
    BoundedGroup,
    Filter,
    Group,
    Join,
    Named,
    Plan,
    Project,
    Scan,
    columns,
    sources,
)
from sfumato.kernels.classes.bounding import Sums, bounded_sums, rows_by_unit
from sfumato.kernels.classes.grouping import group_columns

#: The answer to a plan as the engine streams it: columns by position, in any form that means the same.
Stream = Callable[[Plan], Iterable[pa.RecordBatch]]
#: The key columns of some leaves.
Labels = Callable[[NDArray[np.int64]], list[pa.Array]]

_T = TypeVar("_T", bound=np.generic)
_WORDS: frozenset[Kind] = frozenset({"integer", "number", "boolean", "date", "datetime", "instant", "time"})
_UNIT = "\x00unit"
_ROW_LIMIT = 2**31 - 1
_SHARES = 4


def replace_sampled(plan: Plan, answered: Callable[[BoundedGroup], Scan]) -> Plan:
    """The plan with every sampled grouping replaced by a scan of its answer."""
    if isinstance(plan, BoundedGroup) and plan.sampled:
        return answered(plan)
    match plan:
        case Scan():
            return plan
        case Join(left, right):
            sides = (replace_sampled(left, answered), replace_sampled(right, answered))
            return plan if sides == (left, right) else replace(plan, left=sides[0], right=sides[1])
        case _:
            (below,) = sources(plan)
            above = replace_sampled(below, answered)
            return plan if above is below else replace(plan, source=above)


def bounded_in_process(plan: BoundedGroup, stream: Stream) -> pa.Table:
    """The answer to a sampled grouping."""
    if plan.unit is None or plan.salt is None:
        raise ValueError("only sampled groupings of units are answered in this process")
    layout = _Layout(plan, plan.unit, plan.salt)
    rows = _Rows(layout)
    shares = min(pa.cpu_count(), _SHARES)
    with ThreadPoolExecutor(max_workers=max(shares, 2)) as workers:
        loading = workers.submit(_load_kernels)
        _fill(rows, stream(layout.plan), workers)
        units, *keys = (_word(f"{plan.salt}:{what}") for what in ("units", "rows", "groups"))
        leaf, group_of_leaf, labels = _leaves(plan, rows.codes(), rows.size)
        loading.result()
        words = rows.words()
        limits = [_ROW_LIMIT if limit is None else min(limit, _ROW_LIMIT) for limit in (plan.rows, plan.groups)]
        values, flags = rows.values(), rows.flags()

        def summed(share: int) -> Sums:
            ordered = rows_by_unit(*words, leaf, units, share, shares)
            return bounded_sums(*ordered, np.array(keys), group_of_leaf, limits[0], limits[1], values, flags)

        parts = list(workers.map(summed, range(shares)))
    sums = _Summed(*(np.sum(part, axis=0) for part in zip(*parts, strict=True)))
    return _answer(plan, layout, sums, labels)


def _fill(rows: _Rows, batches: Iterable[pa.RecordBatch], workers: Executor) -> None:
    """Take one batch while the engine computes the next."""
    pending: Future[None] | None = None
    for batch in batches:
        if pending is not None:
            pending.result()
        if rows.size > _ROW_LIMIT - batch.num_rows:
            raise Unsupported("more than 2^31 rows have a unit; keep the first rows of each (order) instead of random ones")
        pending = workers.submit(rows.add, batch)
    if pending is not None:
        pending.result()


def _load_kernels() -> None:
    """Machine code takes a moment to load, which passes while the engine reads."""
    none, no_code = np.zeros(0, np.uint64), np.zeros(0, np.int32)
    ordered = rows_by_unit(none, none, no_code, np.uint64(0), 0, 1)
    bounded_sums(*ordered, np.zeros(2, np.uint64), no_code, 1, 1, np.zeros((0, 0), np.int64), np.zeros((0, 0), np.uint8))


def _word(text: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big"))


@dataclass(frozen=True)
class _Summed:
    """What the kernel returns, see `bounded_sums`."""

    rows: NDArray[np.int64]
    units: NDArray[np.int64]
    flag_rows: NDArray[np.int64]
    flag_units: NDArray[np.int64]
    upper: NDArray[np.int64]
    lower: NDArray[np.int64]


class _Layout:
    """Which columns are streamed: the unit, keys and leaves, values to sum, conditions to count.

    Each value and each condition is streamed once. A value that is missing counts for no condition, so that a summed
    value tells where it may be counted, too.
    """

    def __init__(self, plan: BoundedGroup, unit: str, salt: str) -> None:
        below = columns(plan.source)
        self.names = plan.keys + plan.within
        self.kinds = [below[name] for name in self.names]
        self.by_digest = below[unit] not in _WORDS
        self.unit_kind: Kind = "string" if self.by_digest else below[unit]
        self.sums: dict[tuple[Expression | None, Expression | None], int] = {}
        self.flags: dict[tuple[Expression | None, Expression | None], int] = {}
        self.wide: list[bool] = []
        sums, conditions = [], []
        for aggregate in plan.aggregates:
            asked = (aggregate.expression, aggregate.where)
            if aggregate.function == "sum" and aggregate.expression is not None and asked not in self.sums:
                kind = kind_of(aggregate.expression, below)
                self.sums[asked] = len(self.sums)
                self.flags[asked] = len(self.flags)
                self.wide.append(kind == "wide")
                none = Literal(None, kind)
                value = aggregate.expression
                sums.append(value if aggregate.where is None else Choose(((aggregate.where, value),), none))
        for aggregate in plan.aggregates:
            asked = _counted(aggregate)
            if asked != (None, None) and asked not in self.flags:
                self.flags[asked] = len(self.flags)
                present = () if asked[0] is None else (Not(IsMissing(asked[0])),)
                conditions.append(And((*present, *(() if asked[1] is None else (asked[1],)))))
        identity = Scrambled(Reference(unit), f"{salt}:units") if self.by_digest else Reference(unit)
        shown = [Named(_UNIT, identity), *(Named(f"\x00k{i}", Reference(name)) for i, name in enumerate(self.names))]
        shown += [Named(f"\x00v{i}", value) for i, value in enumerate(sums)]
        shown += [Named(f"\x00f{i}", condition) for i, condition in enumerate(conditions)]
        self.plan: Plan = Project(Filter(plan.source, Not(IsMissing(Reference(unit)))), tuple(shown))


def _counted(aggregate: AggregateColumn) -> tuple[Expression | None, Expression | None]:
    """Where an aggregate counts: rows in which the expression has a value and the condition holds."""
    return (None if aggregate.function == "count_distinct" else aggregate.expression, aggregate.where)


class _Growing(Generic[_T]):
    """Columns of numbers that grow in place, row by row beside each other; no second copy is ever made."""

    def __init__(self, width: int, kind: type[_T]) -> None:
        self._width = width
        self._data: NDArray[_T] = np.empty(0, dtype=kind)
        self._rows = 0

    def add(self, columns: Sequence[NDArray[Any]], rows: int) -> None:
        """Append as many rows of each column."""
        end = self._rows + rows
        if end * self._width > self._data.size:
            self._data.resize(max(end, self._rows + self._rows // 8) * self._width, refcheck=False)
        block = self._data[self._rows * self._width : end * self._width].reshape(rows, self._width)
        for place, column in enumerate(columns):
            block[:, place] = column
        self._rows = end

    def taken(self) -> NDArray[_T]:
        """All rows; this object is empty afterwards."""
        data, self._data = self._data, np.empty(0, dtype=self._data.dtype)
        data.resize(self._rows * self._width, refcheck=False)
        return data.reshape(self._rows, self._width)


class _Rows:
    """The streamed rows, a batch at a time, in arrays that the kernel takes."""

    def __init__(self, layout: _Layout) -> None:
        self.layout = layout
        self.size = 0
        self._keys: list[list[pa.Array]] = [[] for _ in layout.names]
        self._low = _Growing(1, np.uint64)
        self._high = _Growing(1, np.uint64)
        self._values = _Growing(sum(1 + wide for wide in layout.wide), np.int64)
        self._flags = _Growing(len(layout.flags), np.uint8)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the next rows."""
        streamed = iter(batch.columns)
        self._add_units(next(streamed))
        for chunks, kind in zip(self._keys, self.layout.kinds, strict=True):
            column = canonical_column(next(streamed), "key", kind)
            chunks.extend(c if pa.types.is_dictionary(c.type) else c.dictionary_encode() for c in column.chunks)
        values: list[NDArray[np.int64]] = []
        flags: list[NDArray[np.bool_]] = []
        for wide in self.layout.wide:
            column = next(streamed)
            values += wide_words(column) if wide else (_filled(column),)
            flags.append(_truth(column.is_valid()))
        flags += [_truth(condition.fill_null(False)) for condition in streamed]
        self._values.add(values, batch.num_rows)
        self._flags.add(flags, batch.num_rows)
        self.size += batch.num_rows

    def _add_units(self, column: pa.Array) -> None:
        if self.layout.by_digest:
            both = _digest_words(column)
            self._high.add([both[:, 0]], len(column))
            self._low.add([both[:, 1]], len(column))
        else:
            self._low.add([_unit_words(column, self.layout.unit_kind)], len(column))

    def codes(self) -> list[Coded]:
        """Keys and leaves in codes."""
        coded = []
        for i, kind in enumerate(self.layout.kinds):
            target = pa.dictionary(pa.int32(), pa.string() if kind == "string" else ARROW_TYPES[kind])
            coded.append(encode(pa.chunked_array(self._keys[i], type=target)))
            self._keys[i] = []
        return coded

    def words(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """The units, low and high half."""
        return self._low.taken().reshape(-1), self._high.taken().reshape(-1)

    def values(self) -> NDArray[np.int64]:
        """The words to sum of each row."""
        return self._values.taken()

    def flags(self) -> NDArray[np.uint8]:
        """The conditions of each row."""
        return self._flags.taken()


def _leaves(plan: BoundedGroup, coded: Sequence[Coded], rows: int) -> tuple[NDArray[np.int32], NDArray[np.int32], Labels]:
    """The leaf of each row, the group of each leaf, and how leaves are shown."""
    bounded = len(plan.keys)
    if not coded:
        return np.zeros(rows, np.int32), np.zeros(1, np.int32), lambda leaves: []
    if len(coded) == 1:
        only = coded[0]
        each = np.arange(only.cardinality, dtype=np.int32)
        listed = replace(only, codes=each)
        # the kernel takes no array that may not be written to, as Arrow's are
        return (
            np.require(only.codes, requirements="W"),
            each if bounded else np.zeros_like(each),
            lambda leaves: [listed.at(leaves)],
        )
    if not rows:
        return np.zeros(0, np.int32), np.zeros(0, np.int32), lambda leaves: [column.at(leaves) for column in coded]
    numbers, first = group_columns([column.codes for column in coded], [column.cardinality for column in coded])
    groups = np.zeros(first.size, np.int64)
    if bounded:
        keys = coded[:bounded]
        groups, _ = group_columns([column.codes[first] for column in keys], [column.cardinality for column in keys])
    return numbers.astype(np.int32), groups.astype(np.int32), lambda leaves: [column.at(first[leaves]) for column in coded]


def _answer(plan: BoundedGroup, layout: _Layout, sums: _Summed, labels: Labels) -> pa.Table:
    # without any grouping column there is one row, even over no rows
    leaves = np.flatnonzero(sums.rows) if layout.names else np.zeros(1, dtype=np.int64)
    shown = labels(leaves)
    for aggregate in plan.aggregates:
        if aggregate.function == "sum":
            shown.append(_total((aggregate.expression, aggregate.where), layout, sums, leaves))
            continue
        place = layout.flags.get(_counted(aggregate))
        if aggregate.function == "count_distinct":
            counted = sums.units if place is None else sums.flag_units[place]
        else:
            counted = sums.rows if place is None else sums.flag_rows[place]
        shown.append(from_numbers(counted[leaves]))
    kinds = columns(Group(plan.source, layout.names, plan.aggregates))
    arrays = [canonical_column(array, name, kind) for array, (name, kind) in zip(shown, kinds.items(), strict=True)]
    return pa.table(arrays, schema=pa.schema([(name, ARROW_TYPES[kind]) for name, kind in kinds.items()]))


def _total(
    asked: tuple[Expression | None, Expression | None], layout: _Layout, sums: _Summed, leaves: NDArray[np.int64]
) -> pa.Array:
    """A sum as 38 digits; missing where no value was summed."""
    place = layout.sums[asked]
    word = sum(1 + wide for wide in layout.wide[:place])
    low, high = _two_words(sums.upper[word][leaves], sums.lower[word][leaves])
    if layout.wide[place]:
        high += _two_words(sums.upper[word + 1][leaves], sums.lower[word + 1][leaves])[0].view(np.int64)
    pairs = np.empty((leaves.size, 2), dtype=np.int64)
    pairs[:, 0], pairs[:, 1] = low.view(np.int64), high
    present = np.packbits(sums.flag_rows[layout.flags[asked]][leaves] > 0, bitorder="little")
    return pa.Array.from_buffers(
        pa.decimal128(38, 0), leaves.size, [pa.py_buffer(present.tobytes()), pa.py_buffer(pairs.tobytes())]
    )


def _two_words(upper: NDArray[np.int64], lower: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """upper · 2^32 + lower as a low and a high 64-bit word."""
    carried = upper + (lower >> 32)
    low = ((carried & 0xFFFFFFFF) << 32) | (lower & 0xFFFFFFFF)
    return low.view(np.uint64), carried >> 32


def wide_words(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Decimals of up to 38 digits as (low, high) with value = high · 2^64 + low, both signed; missing is zero."""
    clean = column.fill_null(0).cast(pa.decimal128(38, 0))
    if not len(clean):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    pairs = np.frombuffer(clean.buffers()[1], dtype=np.int64).reshape(-1, 2)[clean.offset : clean.offset + len(clean)]
    low = np.ascontiguousarray(pairs[:, 0])
    return low, pairs[:, 1] + (low < 0)


def _filled(column: pa.Array) -> NDArray[np.int64]:
    return plain_numbers(column.fill_null(0) if column.null_count else column)


def _truth(column: pa.Array) -> NDArray[np.bool_]:
    return plain_numbers(column)


def _unit_words(column: pa.Array, kind: Kind) -> NDArray[np.uint64]:
    canonical = canonical_column(column, "unit", kind).combine_chunks()
    flat = pa.concat_arrays(canonical.chunks) if isinstance(canonical, pa.ChunkedArray) else canonical
    if kind == "boolean":
        flat = flat.cast(pa.int64())
    elif kind == "date":
        flat = flat.cast(pa.int32()).cast(pa.int64())
    elif kind != "integer":
        flat = flat.view(pa.int64())
    return np.ascontiguousarray(plain_numbers(flat), dtype=np.int64).view(np.uint64)


_NIBBLES = np.zeros(256, dtype=np.uint8)
_NIBBLES[[ord(digit) for digit in "0123456789abcdef"]] = np.arange(16)


def _digest_words(column: pa.Array) -> NDArray[np.uint64]:
    """Hexadecimal digests of 128 bits as two words each."""
    if not len(column):
        return np.zeros((0, 2), np.uint64)
    text = column.cast(pa.string())
    data, offset = text.buffers()[2], text.buffers()[1]
    begin = int(np.frombuffer(offset, dtype=np.int32)[text.offset])
    digits = _NIBBLES[np.frombuffer(data, dtype=np.uint8)[begin : begin + 32 * len(text)]]
    return ((digits[::2] << 4) | digits[1::2]).view(np.uint64).reshape(-1, 2)
