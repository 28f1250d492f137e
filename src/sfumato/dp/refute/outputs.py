"""Outputs of any function as columns: every number, text, length and type in them, whatever their shape.

An event is found in a column: a coordinate of a tuple, an entry of a record, how long a list is, what was raised, or
which bits of a float are set.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import fractions
import hashlib
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Path: TypeAlias = tuple[str, ...]

MOST_COLUMNS = 48
_DEPTH = 3
_WIDTH = 24
_LONG = 200
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_ABSENT = object()
#: The aspect that is everything an output says.
_WHOLE: Path = ("the whole output",)


class _Key(str):
    """What is compared instead of a value that is too large to keep."""

    __slots__ = ()


@dataclass(frozen=True)
class Raised:
    """The function raised this instead of returning: an output like any other."""

    kind: str
    message: str


@dataclass(frozen=True, eq=False)
class Leaves:
    """An output taken apart: what is kept of it, so that a hundred thousand tables fit into memory."""

    parts: tuple[tuple[Path, Any], ...]


@dataclass(frozen=True, eq=False)
class OutputColumn:
    """One aspect of the outputs: `numbers` (NaN where there is none), or `keys`, equal exactly where the outputs are."""

    path: Path
    numbers: NDArray[np.float64] | None
    keys: NDArray[Any] | None
    floating: bool = False

    @property
    def words(self) -> str:
        """How an event names it."""
        return "".join(self.path)


class Outputs:
    """A batch of outputs; `column(path)` gives an aspect of all of them, `paths` lists the aspects that occur.

    Batches that are compared are made by `pair`, so that both are read in the same way and hold the same aspects: what is
    looked at must be a function of the output alone, never of the batch it came in.
    """

    def __init__(
        self,
        values: Sequence[Any] | NDArray[Any],  # whatever a mechanism returns
        only: Sequence[Path] | None = None,
    ) -> None:
        self._columns: dict[Path, OutputColumn] = {}
        self.count = len(values)
        table = _plain_numbers(values) if only is None else None
        if table is None:
            self._read(values, _paths(values) if only is None else only)
        else:
            for path, numbers, floating in table:
                self._columns[path] = OutputColumn(path, numbers, None, floating)

    @classmethod
    def pair(
        cls,
        first: Sequence[Any] | NDArray[Any],  # whatever a mechanism returns
        second: Sequence[Any] | NDArray[Any],  # and again
        like: Outputs | None = None,
    ) -> tuple[Outputs, Outputs]:
        """Two batches with the same aspects: those that occur in either, or those of an earlier batch."""
        if _plain_numbers(first) is not None and _plain_numbers(second) is not None:
            return cls(first), cls(second)
        only = _paths(first, second) if like is None else like.paths
        return cls(first, only), cls(second, only)

    @property
    def paths(self) -> list[Path]:
        """The aspects that are looked at in these outputs."""
        return list(self._columns)

    def column(self, path: Path) -> OutputColumn:
        """An aspect; nothing but gaps where these outputs never have it."""
        if path in self._columns:
            return self._columns[path]
        return OutputColumn(path, np.full(self.count, np.nan), np.full(self.count, "", dtype=object))

    def _read(self, values: Sequence[Any] | NDArray[Any], paths: Sequence[Path]) -> None:
        """Column by column from Python objects."""
        cells: dict[Path, list[Any]] = {path: [_ABSENT] * self.count for path in paths if path != _WHOLE}
        together = []
        for row, value in enumerate(values):
            said = []
            for path, leaf in _parts(value):
                held = cells.get(path)
                if held is not None:
                    held[row] = leaf
                said.append(f"{''.join(path)}: {_key(leaf)}")
            together.append(_shortened("; ".join(said)))
        for path, held in cells.items():
            self._columns[path] = _column(path, held)
        self._columns[_WHOLE] = OutputColumn(_WHOLE, None, np.array(together, dtype=object))


def _parts(value: Any) -> Iterator[tuple[Path, Any]]:
    return iter(value.parts) if isinstance(value, Leaves) else _leaves(value)


def _paths(*batches: Sequence[Any] | NDArray[Any]) -> list[Path]:
    """The aspects that occur, by first appearance, until there are too many."""
    paths: dict[Path, None] = {}
    for value in itertools.chain(*batches):
        for path, _ in _parts(value):
            if len(paths) >= MOST_COLUMNS:
                return list(paths)
            paths[path] = None
    return list(paths)


def kept(output: object) -> object:
    """A number or a short text as it is, anything larger taken apart."""
    if type(output) in (float, int, bool, type(None), np.float64) or (type(output) is str and len(output) <= _LONG):
        return output
    return Leaves(tuple(itertools.islice(_leaves(output), 2 * MOST_COLUMNS)))


def _plain_numbers(values: Sequence[Any] | NDArray[Any]) -> list[tuple[Path, NDArray[np.float64], bool]] | None:
    """Columns straight from an array of numbers, or from a list of plain ints or floats; None for anything else."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf" and values.ndim in (1, 2):
        floating = values.dtype.kind == "f"
        if values.ndim == 1:
            return [(("output",), values.astype(np.float64), floating)]
        return [
            ((f"coordinate {i}",), values[:, i].astype(np.float64), floating) for i in range(min(values.shape[1], MOST_COLUMNS))
        ]
    kinds = set(map(type, values)) if isinstance(values, list) else set()
    if kinds and (kinds == {float} or kinds == {np.float64}):
        return [(("output",), np.array(values, dtype=np.float64), True)]
    if kinds == {int} and all(abs(value) < 2**53 for value in values):
        return [(("output",), np.array(values, dtype=np.float64), False)]
    return None


def _leaves(value: Any, path: Path = ("output",), depth: int = 0) -> Iterator[tuple[Path, Any]]:
    value = _opened(value)
    yield ("the type of ", *path), type(value).__name__ if not isinstance(value, Raised) else f"raised {value.kind}"
    if isinstance(value, Raised):
        yield ("the message of what was raised",), value.message
    elif isinstance(value, (list, tuple)) and depth < _DEPTH:
        yield ("the length of ", *path), len(value)
        for place, entry in enumerate(value[:_WIDTH]):
            yield from _leaves(entry, (*path, f"[{place}]"), depth + 1)
    elif isinstance(value, Mapping) and depth < _DEPTH:
        yield ("the length of ", *path), len(value)
        yield ("the keys of ", *path), ", ".join(sorted(map(repr, value)))
        for key in sorted(value, key=repr)[:_WIDTH]:
            yield from _leaves(value[key], (*path, f"[{key!r}]"), depth + 1)
    else:
        yield path, value if _small(value) else _Key(_key(value))
        if isinstance(value, (str, bytes)):
            yield ("the length of ", *path), len(value)


def _opened(value: Any) -> Any:
    """Arrays, tables, sets and records as lists and mappings; scalars of NumPy as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, Raised):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    for method in ("to_pylist", "to_dict", "tolist"):  # Arrow, pandas and polars
        opener = getattr(value, method, None)
        if callable(opener) and not isinstance(value, (str, bytes, int, float)):
            try:
                return opener()
            except Exception:  # noqa: S112  (an object that only looks like a table is read as itself)
                continue
    return value


def _column(path: Path, cells: list[Any]) -> OutputColumn:
    numbers = np.array([_number(cell) for cell in cells], dtype=np.float64)
    floating = any(type(cell) is float for cell in cells)
    keys = np.array([_key(cell) for cell in cells], dtype=object)
    return OutputColumn(path, None if np.isnan(numbers).all() else numbers, keys, floating)


def _number(cell: Any) -> float:
    if isinstance(cell, bool) or not isinstance(cell, (int, float, fractions.Fraction, decimal.Decimal)):
        return math.nan
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf


def _key(cell: Any) -> str:
    if cell is _ABSENT:
        return ""
    if isinstance(cell, _Key):
        return str(cell)
    if isinstance(cell, (bool, int, float, str, bytes, type(None), fractions.Fraction, decimal.Decimal, datetime.date)):
        return _shortened(repr(cell))
    return _shortened(f"{type(cell).__name__} {_ADDRESS.sub('', repr(cell))}")


def _small(value: Any) -> bool:
    return isinstance(value, (bool, float, type(None))) or (isinstance(value, int) and abs(value) < 2**1000)


def _shortened(text: str) -> str:
    """Long texts by their beginning and a digest: still equal exactly where the texts are."""
    if len(text) <= _LONG:
        return text
    return f"{text[: _LONG // 2]}… (digest {hashlib.sha256(text.encode('utf-8', 'backslashreplace')).hexdigest()[:32]})"
