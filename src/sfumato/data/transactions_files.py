"""Basket files: a line of items for each basket, as most miners have them; a column of lists in a Parquet file.

Lines are read one at a time, so that a large file needs the memory of its codes; every broken line is named, all at once.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError, SourceError, all_at_once

if TYPE_CHECKING:
    import pyarrow as pa

Int = NDArray[np.int64]

#: The longest line, in bytes, and the longest name of an item, in characters.
LONGEST_LINE = 10_000_000
LONGEST_ITEM = 1000
#: The most different items of a file.
MOST_ITEMS = 5_000_000
#: What files are called that hold a table, and no lines of items.
TABLES = (".csv", ".tsv", ".parquet", ".feather", ".arrow")
#: A name that a basket line can hold: no control character, no tab.
_WRITABLE = re.compile(r"[^\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]+")
_SHOWN = 10


def read_lines(path: Path, separator: str | None = None) -> tuple[Int, Int, list[object]]:
    """A line of items for each basket, with white space or the `separator` between them; an empty line is an empty basket. The
    lengths of the baskets, the codes of their items, and the items by code."""
    index: defaultdict[bytes, int] = defaultdict()
    index.default_factory = index.__len__
    code_of = index.__getitem__
    between = None if separator is None else separator.encode()
    entries, lengths = array("i"), array("i")
    long: list[int] = []
    try:
        with path.open("rb") as file:
            while line := file.readline(LONGEST_LINE):
                if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                    long.append(len(lengths) + 1)
                    break  # what follows belongs to a line that nobody reads
                if len(index) > MOST_ITEMS:
                    raise InputError(f"'{path.name}' has more than {MOST_ITEMS:,} different items, as no baskets have")
                words = line.split() if between is None else _separated(line, between)
                entries.extend(map(code_of, words))
                lengths.append(len(words))
    except OSError as error:
        raise SourceError(f"'{path.name}' cannot be read: {error.strerror}") from None
    names = [_decoded(word) for word in index]
    bad = {place for place, name in enumerate(names) if name is None or not writable(name)}
    faults = [f"{places('line', long)}: longer than {LONGEST_LINE:,} bytes"] if long else []
    codes, counts = np.frombuffer(entries, np.int32), np.frombuffer(lengths, np.int32).astype(np.int64)
    if bad:
        of_entry = np.repeat(np.arange(1, counts.size + 1), counts)
        lines = np.unique(of_entry[np.isin(codes, np.fromiter(bad, np.int32))]).tolist()
        faults.append(
            f"{places('line', lines)}: an item is empty, no UTF-8 text, longer than {LONGEST_ITEM} characters or holds a control "
            "character"
        )
    all_at_once(InputError, f"'{path.name}' has broken lines", faults)
    return counts, codes.astype(np.int64), list(names)


def _separated(line: bytes, separator: bytes) -> list[bytes]:
    """The items of a line; a line without any is an empty basket."""
    bare = line.rstrip(b"\r\n")
    return bare.split(separator) if bare else []


def _decoded(word: bytes) -> str | None:
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        return None


def read_list_column(path: Path, item: str) -> pa.ChunkedArray:
    """A column of lists of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    otherwise = InputError(f"'{path.name}' has no lists of items in that column: name the column of the baskets (basket=)")
    if path.suffix.lower() != ".parquet":
        raise otherwise
    try:
        schema = pq.read_schema(path)
        if item in schema.names and _of_lists(schema.field(item).type):
            return pq.read_table(path, columns=[item]).column(item)
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"'{path.name}' cannot be read as Parquet ({type(error).__name__})") from None
    raise otherwise


def _of_lists(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def written_lines(baskets: Iterable[Sequence[str]], items: Sequence[str], separator: str) -> bytes:
    """The lines of a basket file."""
    torn = sum(separator in name or (separator == " " and any(map(str.isspace, name))) for name in items)
    if torn:
        raise InputError(
            f"{torn:,} of the items hold the separator, so that nobody could read them back. Write with another one, "
            'for instance separator="\\t"'
        )
    return "".join(f"{separator.join(basket)}\n" for basket in baskets).encode()


def writable(text: str) -> bool:
    """Whether a text can be the name of an item."""
    return 0 < len(text) <= LONGEST_ITEM and _WRITABLE.fullmatch(text) is not None


def places(what: str, numbers: Sequence[int]) -> str:
    """Some lines, records or baskets by number: the first ones, and how many more there are."""
    shown = ", ".join(f"{number:,}" for number in numbers[:_SHOWN])
    more = f" and {len(numbers) - _SHOWN:,} more" if len(numbers) > _SHOWN else ""
    return f"{what if len(numbers) == 1 else f'{what}s'} {shown}{more}"
