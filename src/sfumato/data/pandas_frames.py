"""Arrow tables as pandas DataFrames: whole numbers stay whole beside missing values, and texts of intervals become intervals.

A released table shows `[30, 40)` for half-open intervals, `[2.5, 7]` for ranges of numbers with both ends, and
`1950-05-31 … 1962-12-31` for ranges of days. `*` stands for any value, a missing one among them, and is no interval.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal

from sfumato.core.extras import require_extra
from sfumato.data.hierarchies.hierarchy import ROOT
from sfumato.data.hierarchies.shown_levels import RENAMED, TO, is_day

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_WHOLE = re.compile(r"-?[0-9]+")
_CODE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_VALUE = re.compile(_NUMBER)
_CLOSED: dict[tuple[bool, bool], Literal["left", "right", "both", "neither"]] = {
    (True, False): "left",
    (False, True): "right",
    (True, True): "both",
    (False, False): "neither",
}
_INTERVAL = re.compile(rf"\[({_NUMBER}|-inf), ({_NUMBER}|inf)([)\]])")


def pandas_frame(table: pa.Table, *, intervals: bool = False, codes: Collection[str] = ()) -> pd.DataFrame:
    """The table as a DataFrame. `intervals` turns columns that show intervals into `pandas.Interval`, closed on the sides that
    the texts mean; a value that is shown as it is stays a number, and `*` stays `*`. `codes` are columns of whole numbers that
    were read as texts; they are numbers again where they show nothing else."""
    require_extra("pandas", "pandas", "to_pandas()")
    import pyarrow as pa

    frame = table.to_pandas()
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_integer(column.type) and column.null_count:  # as floating-point numbers they would lose digits
            frame[name] = column.to_pandas(types_mapper=_nullable)
    for name in codes:
        numbers = _whole_numbers(table.column(name))
        if numbers is not None:
            frame[name] = numbers.to_pandas(types_mapper=_nullable if numbers.null_count else None)
    if intervals:
        for name in table.column_names:
            shown = _intervals_of(table.column(name))
            if shown is not None:
                frame[name] = shown
    return frame


def _nullable(kind: pa.DataType) -> Any:
    """The type of pandas that has whole numbers and missing values."""
    import pandas as pd

    return pd.api.types.pandas_dtype(f"{'UInt' if str(kind).startswith('u') else 'Int'}{kind.bit_width}")


def _whole_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """A column of texts as numbers, where each of them is a whole number as it is usually written."""
    import pyarrow as pa

    texts = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
    if not pa.types.is_string(texts.type) or not all(map(_CODE.fullmatch, texts.drop_null().unique().to_pylist())):
        return None
    return texts.cast(pa.int64())


def _intervals_of(column: pa.ChunkedArray) -> Any | None:
    """The column with intervals in place of their texts; None where some value is neither interval, number nor `*`."""
    import pandas as pd
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    coded = column.cast(kind).combine_chunks().dictionary_encode()
    meanings = [_meaning(text) for text in coded.dictionary.to_pylist()]
    if not any(isinstance(each, pd.Interval) for each in meanings) or None in meanings:
        return None
    values = [None if code is None else meanings[code] for code in coded.indices.to_pylist()]
    return (
        _in_one_type(values) if all(isinstance(each, pd.Interval | None) for each in values) else pd.Series(values, dtype=object)
    )


def _in_one_type(values: Sequence[Any]) -> Any:
    """Intervals as an array of intervals where all are closed on the same sides, otherwise as objects."""
    import pandas as pd

    closed = {each.closed for each in values if each is not None}
    return pd.Series(pd.arrays.IntervalArray(values) if len(closed) == 1 else values, dtype=None if len(closed) == 1 else object)


def _meaning(text: str) -> Any | None:
    """What a released text stands for: an interval, a number, or `*`; None where it is another text."""

    renamed = RENAMED.fullmatch(text)
    text = text if renamed is None else renamed["text"]
    if text == ROOT:
        return ROOT
    if _VALUE.fullmatch(text):
        return int(text) if _WHOLE.fullmatch(text) else float(text)
    try:
        return _interval_of(text)
    except ValueError:  # ends in the wrong order, or no day
        return None


def _interval_of(text: str) -> Any | None:
    import pandas as pd

    if (ends := _INTERVAL.fullmatch(text)) is not None:
        low, high = (int(end) if _WHOLE.fullmatch(end) else float(end) for end in ends.groups()[:2])
        sides = (low > float("-inf"), ends[3] == "]")  # which of the ends belong to it
        return pd.Interval(low, high, closed=_CLOSED[sides])
    first, to, last = text.partition(TO)
    if to and is_day(first) and is_day(last):
        return pd.Interval(pd.Timestamp(first), pd.Timestamp(last), closed="both")
    return None
