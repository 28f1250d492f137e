"""Transactions: baskets of items, as codes in one long array with the place where each basket starts.

Agrawal, Imielinski, Swami, "Mining association rules between sets of items in large databases", SIGMOD 1993. A basket is a set:
an item counts once, and the order of items says nothing. Empty baskets are kept, because shares are shares of all baskets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError, MissingColumn, all_at_once, as_name
from sfumato.core.texts import text_of
from sfumato.data.transactions_files import LONGEST_ITEM, TABLES, places, read_lines, read_list_column, writable, written_lines

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.data.microdata import Microdata

Int = NDArray[np.int64]
Codes = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Transactions:
    """Baskets of items: basket `i` has the items with the codes `codes[starts[i]:starts[i + 1]]`, ascending, each once.

    >>> baskets = Transactions.of([["milk", "bread"], ["bread"], []])
    >>> len(baskets), baskets.items, list(baskets.baskets())
    (3, ('bread', 'milk'), [('bread', 'milk'), ('bread',), ()])
    """

    starts: Int = field(repr=False)
    codes: Codes = field(repr=False)
    items: tuple[str, ...] = field(repr=False)

    def __repr__(self) -> str:
        return f"Transactions({len(self):,} baskets, {len(self.items):,} items, {self.codes.size:,} entries)"

    def __len__(self) -> int:
        return int(self.starts.size - 1)

    def __bool__(self) -> bool:
        return True

    # Making

    @classmethod
    def of(cls, baskets: Iterable[Iterable[object]]) -> Self:
        """Baskets as lists of items: texts, or numbers and dates as texts."""
        index: dict[object, int] = {}
        entries: list[int] = []
        lengths: list[int] = []
        broken: list[int] = []
        for place, basket in enumerate(baskets, start=1):
            if isinstance(basket, (str, bytes)) or not isinstance(basket, Iterable):
                broken.append(place)
                continue
            before = len(entries)
            try:
                entries.extend(index.setdefault(item, len(index)) for item in basket)
            except TypeError:  # an item that is a list, say
                broken.append(place)
            lengths.append(len(entries) - before)
        if broken:
            raise InputError(f"{places('basket', broken)}: not a list of single items; give each basket as a list of texts")
        return cls.coded(np.asarray(lengths, np.int64), np.asarray(entries, np.int64), list(index), "basket")

    @classmethod
    def of_lists(cls, column: pa.Array | pa.ChunkedArray) -> Self:
        """An Arrow column of lists; a missing list is refused."""
        import pyarrow as pa
        import pyarrow.compute as pc

        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
        if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
            raise InputError("this column holds no lists of items. Name a column of lists, or basket= and item=")
        if array.null_count:
            absent = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)) + 1
            raise InputError(f"{places('record', absent.tolist())}: no basket. An empty basket is an empty list")
        lengths = pc.list_value_length(array).to_numpy(zero_copy_only=False).astype(np.int64)
        values = pc.list_flatten(array)
        encoded = values if isinstance(values, pa.DictionaryArray) else values.dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        if (codes < 0).any():
            rows = np.repeat(np.arange(1, lengths.size + 1), lengths)[codes < 0]
            raise InputError(f"{places('record', np.unique(rows).tolist())}: an item is missing in a list")
        return cls.coded(lengths, codes, encoded.dictionary.to_pylist(), "record")

    @classmethod
    def of_table(cls, table: pa.Table | Microdata, *, basket: str, item: str) -> Self:
        """A long table: one record per entry, with the columns that name its basket and its item; baskets in the order in which
        they appear."""
        import pyarrow as pa

        rows = table if isinstance(table, pa.Table) else table.table()
        _require(rows, (basket, item))
        coded = []
        for name in (basket, item):
            column = rows.column(name).combine_chunks()
            column = column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)
            encoded = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
            coded.append((encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary))
        (owner, _), (codes, names) = coded
        absent = np.flatnonzero((owner < 0) | (codes < 0)) + 1
        if absent.size:
            raise InputError(f"{places('record', absent.tolist())}: '{basket}' or '{item}' is missing; leave such records out")
        order = np.argsort(owner, kind="stable")
        lengths = np.bincount(owner).astype(np.int64) if owner.size else np.zeros(0, np.int64)
        return cls.coded(lengths, codes[order], names.to_pylist(), "record")

    @classmethod
    def of_columns(cls, table: pa.Table | Microdata, columns: Sequence[str] | None = None) -> Self:
        """Each record as a basket of `column=value`; a missing value is no item. So rules about people are mined from a table."""
        import pyarrow as pa

        rows = table if isinstance(table, pa.Table) else table.table()
        chosen = list(rows.column_names if columns is None else columns)
        _require(rows, chosen)
        baskets: list[list[str]] = [[] for _ in range(rows.num_rows)]
        for name in chosen:
            for basket, value in zip(baskets, rows.column(name).to_pylist(), strict=True):
                text = text_of(value)
                if text is not None:
                    basket.append(f"{name}={text}")
        return cls.of(baskets)

    @classmethod
    def read(cls, path: str | Path, *, basket: str | None = None, item: str | None = None, separator: str | None = None) -> Self:
        """A file: lines of items (`.dat`, `.txt`, `.basket`), or a table (CSV, Parquet) with the columns `basket` and `item`, or
        with a column `item` of lists."""
        place = Path(path)
        if place.suffix.lower() not in TABLES:
            if basket is not None or item is not None:
                raise InputError(f"'{place.name}' is read as lines of items, which have no columns; leave basket= and item= out")
            return cls.coded(*read_lines(place, separator), "line")
        if item is None:
            raise InputError(f"'{place.name}' is a table: name the column of the items (item=), and of the baskets (basket=)")
        if basket is not None:
            from sfumato.data.readers.files import read_file

            return cls.of_table(read_file(place, None, separator=separator).table, basket=basket, item=item)
        return cls.of_lists(read_list_column(place, item))

    @classmethod
    def coded(cls, lengths: Int, codes: Int, names: Sequence[object], what: str) -> Self:
        """Baskets by their lengths and the codes of their items, in any order and with repetitions; `names` by code."""
        texts = [text_of(name) for name in names]
        bad = [place for place, text in enumerate(texts) if text is None or not writable(text)]
        if bad:
            rows = np.repeat(np.arange(1, lengths.size + 1), lengths)[np.isin(codes, bad)]
            raise InputError(
                f"{places(what, np.unique(rows).tolist())}: an item is missing, empty, longer than {LONGEST_ITEM} characters or "
                "holds a tab or another control character"
            )
        distinct = sorted({str(text) for text in texts})
        place_of = {text: place for place, text in enumerate(distinct)}
        now = np.fromiter((place_of[str(text)] for text in texts), np.int64, len(texts))
        width = max(len(distinct), 1)
        rows = np.repeat(np.arange(lengths.size, dtype=np.int64), lengths)
        keys = rows * width + (now[codes] if codes.size else codes)
        if keys.size > 1 and not (keys[1:] > keys[:-1]).all():
            keys.sort()
            keys = keys[np.concatenate([[True], keys[1:] > keys[:-1]])]  # an item counts once
            rows = keys // width
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=lengths.size))]).astype(np.int64)
        return cls(starts, (keys % width).astype(np.int32), tuple(distinct))

    # Looking

    @property
    def lengths(self) -> Int:
        """How many items each basket has."""
        return np.diff(self.starts)

    @property
    def basket_of_entry(self) -> Int:
        """The basket of each entry of `codes`."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.lengths)

    def baskets(self) -> Iterator[tuple[str, ...]]:
        """The items of each basket by name."""
        codes = self.codes.tolist()
        for start, end in pairwise(self.starts.tolist()):
            yield tuple(self.items[code] for code in codes[start:end])

    def supports(self) -> Int:
        """In how many baskets each item is."""
        return np.bincount(self.codes, minlength=len(self.items)).astype(np.int64)

    def itemset(self, names: Iterable[str]) -> tuple[int, ...] | None:
        """The codes of some items, ascending; None where one of them is in no basket."""
        places_of = self._codes_of
        codes = [places_of.get(name, -1) for name in names]
        return None if -1 in codes else tuple(sorted(codes))

    def support(self, names: Iterable[str]) -> int:
        """In how many baskets all these items are: counted one basket after the other."""
        codes = self.itemset(names)
        if codes is None:
            return 0
        counts = np.zeros(len(self), dtype=np.int64)
        owner = self.basket_of_entry
        for code in codes:
            counts[owner[self.codes == code]] += 1
        return int((counts == len(codes)).sum())

    @property
    def _codes_of(self) -> dict[str, int]:
        stored: dict[str, int] | None = self.__dict__.get("_by_name")
        if stored is None:
            stored = {name: code for code, name in enumerate(self.items)}
            object.__setattr__(self, "_by_name", stored)
        return stored

    # Changing and writing

    def edited(self, removed: NDArray[np.bool_], added: Iterable[tuple[int, int]] = ()) -> Transactions:
        """The same baskets without the entries that are marked in `removed`, with these (basket, item) added."""
        kept = ~removed
        keys = self.basket_of_entry[kept] * max(len(self.items), 1) + self.codes[kept]
        more = np.fromiter((basket * len(self.items) + code for basket, code in added), np.int64)
        if more.size:
            keys = np.unique(np.concatenate([keys, more]))
        width = max(len(self.items), 1)
        starts = np.concatenate([[0], np.cumsum(np.bincount(keys // width, minlength=len(self)))]).astype(np.int64)
        return Transactions(starts, (keys % width).astype(np.int32), self.items)

    def in_canonical_order(self) -> Transactions:
        """The same baskets sorted by content, with the items that occur alone: neither order nor names tell of what was there."""
        return Transactions.of(sorted(self.baskets()))

    def same_baskets(self, other: Transactions) -> bool:
        """Whether both hold equal baskets in the same order."""
        return (
            np.array_equal(self.starts, other.starts)
            and np.array_equal(self.codes, other.codes)
            and (self.items == other.items or list(self.baskets()) == list(other.baskets()))
        )

    def write(self, path: str | Path, *, separator: str = " ") -> None:
        """Write a line of items for each basket; refused where an item holds the separator."""
        Path(path).write_bytes(written_lines(self.baskets(), self.items, separator))


def _require(table: pa.Table, names: Sequence[str]) -> None:
    faults = [f"there is no column {as_name(name)}" for name in names if name not in table.column_names]
    all_at_once(MissingColumn, "the table of baskets", faults)
