"""Tables that are already in memory: Arrow, polars, pandas, and whatever offers the Arrow stream interface.

No frame library is imported here: an object is recognised by the module its type comes from, and that library
is then loaded already.
"""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa

from sfumato.core.errors import SourceError, forgetting
from sfumato.data.readers.read_result import RawTable, ReadResult, Unreadable, finish
from sfumato.data.schema import Schema
from sfumato.data.texts.values import text_of


def is_frame(source: object) -> bool:
    """True for objects `from_frame` understands."""
    return isinstance(source, (pa.Table, pa.RecordBatch, pa.RecordBatchReader)) or _library(source) is not None


@forgetting()
def from_frame(
    source: object,
    schema: Schema | None = None,
    *,
    as_text: bool = False,
    unreadable: Unreadable = "refuse",
    name: str = "the table in memory",
) -> ReadResult:
    """Take over a table in memory; types are those it has, brought to the ones the system speaks. Faults are said of `name`."""
    return finish(_raw(source), name, schema, as_text=as_text, unreadable=unreadable)


def _raw(source: Any) -> RawTable:
    if isinstance(source, pa.Table):
        return RawTable.of(source)
    if isinstance(source, pa.RecordBatch):
        return RawTable.of(pa.Table.from_batches([source]))
    if isinstance(source, pa.RecordBatchReader):
        return RawTable.of(source.read_all())
    library = _library(source)
    if library == "pandas":
        return _pandas(source)
    if library == "polars":
        return RawTable.of(source.collect().to_arrow() if type(source).__name__ == "LazyFrame" else source.to_arrow())
    if library == "arrow stream":
        return RawTable.of(pa.table(source))
    raise SourceError(
        f"an object of type {type(source).__name__} is not a table; pass a pandas or polars DataFrame, "
        "an Arrow table, or the path of a file"
    )


def _library(source: object) -> str | None:
    root, kind = type(source).__module__.partition(".")[0], type(source).__name__
    if root == "pandas" and kind == "DataFrame":
        return "pandas"
    if root == "polars" and kind in ("DataFrame", "LazyFrame"):
        return "polars"
    return "arrow stream" if hasattr(source, "__arrow_c_stream__") else None


def _pandas(frame: Any) -> RawTable:
    pandas = sys.modules["pandas"]
    notes = []
    if not isinstance(frame.index, pandas.RangeIndex):
        notes.append("the index of the DataFrame was left out; call reset_index() first to keep it as a column")
    names = tuple(_name(label) for label in frame.columns)
    columns = []
    for position, name in enumerate(names):
        column, note = _series(frame.iloc[:, position], name, pandas)
        columns.append(column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column]))
        notes.extend(note)
    objects = frozenset(position for position in range(len(names)) if str(frame.dtypes.iloc[position]) == "object")
    return RawTable(names, tuple(columns), False, tuple(notes), guessed=objects)


def _name(label: Any) -> str:
    parts = label if isinstance(label, tuple) else (label,)
    return " ".join(str(part) for part in parts if part is not None and part != "")


def _series(series: Any, name: str, pandas: Any) -> tuple[pa.Array | pa.ChunkedArray, list[str]]:
    if series.dtype == object:
        kind = pandas.api.types.infer_dtype(series, skipna=True)
        if kind.startswith("mixed") and kind != "mixed-integer-float":
            return _texts(series, pandas), [f"column '{name}' mixes types: kept as text"]
    try:
        array = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        array = None
    if array is None or isinstance(array.type, pa.ExtensionType):
        # intervals, periods, sparse and other types that Arrow does not take over as values
        return _texts(series, pandas), [f"column '{name}' has the type {series.dtype}: kept as text"]
    return array, []


def _texts(series: Any, pandas: Any) -> pa.Array:
    absent = pandas.isna(series).tolist()
    cells = [None if missing else text_of(value) for value, missing in zip(series.tolist(), absent, strict=True)]
    return pa.array(cells, pa.string())
