"""Columns as small codes, by the schema's declarations alone: values of a domain, ranges between bounds, missing values.

Every row is coded by itself, whatever it holds: numbers outside the bounds are clamped; a value outside a domain, or
none, is "missing" where the column may be missing and otherwise makes the record one that is not counted (code -1).
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.randomness import Randomness, words
from sfumato.core.texts import text_of
from sfumato.data.schema import Type
from sfumato.data.texts.values import texts
from sfumato.dp.algorithms.declared_values import distinct_values

Codes = NDArray[np.int64]
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_DIGITS = 3  # a synthetic number is given to about a thousandth of the declared range


def uniform(source: Randomness, count: int) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1), for what is drawn from a model that is already private."""
    return (words(source, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


@dataclass(frozen=True)
class DomainColumn(ABC):
    """A column and its codes 0 to `size` - 1; with `missing` the last one stands for "no value"."""

    name: str
    kind: Type
    missing: bool

    @property
    @abstractmethod
    def known(self) -> int:
        """How many codes stand for values."""

    @property
    def size(self) -> int:
        """How many codes there are."""
        return self.known + self.missing

    def encode(self, column: pa.ChunkedArray) -> Codes:
        """The code of each row; -1 where the record is not counted."""
        codes = self._codes(column)
        return np.where(codes < 0, self.known, codes) if self.missing else codes

    @abstractmethod
    def _codes(self, column: pa.ChunkedArray) -> Codes:
        """The code of each row, -1 where there is none."""

    @abstractmethod
    def decode(self, codes: Codes, source: Randomness) -> pa.Array:
        """Values for codes, in the column's type."""

    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """What each code stands for, in words."""


@dataclass(frozen=True)
class ListedValues(DomainColumn):
    """A column whose values are listed in the schema."""

    values: pa.Array = field(repr=False, compare=False)

    @property
    def known(self) -> int:
        return len(self.values)

    def places(self) -> dict[str, int]:
        """The code of each listed value, by the form in which it is compared."""
        return {compared(str(text)): code for code, text in enumerate(texts(self.values))}

    def _codes(self, column: pa.ChunkedArray) -> Codes:
        place = self.places()
        distinct, codes = distinct_values(column)
        own = [-1 if text is None else place.get(compared(text), -1) for text in texts(distinct)]
        return np.array([*own, -1], dtype=np.int64)[codes]

    def decode(self, codes: Codes, source: Randomness) -> pa.Array:
        return self.values.take(pa.array(codes, mask=codes >= self.known))

    def labels(self) -> tuple[str, ...]:
        return (*(str(text) for text in texts(self.values)), *(("missing",) if self.missing else ()))


@dataclass(frozen=True)
class Ranges(DomainColumn):
    """Numbers between declared bounds, in ranges of equal width; inside a range every number is as likely."""

    low: float
    high: float
    bins: int

    @property
    def known(self) -> int:
        return min(self.bins, self._span) if self.kind == "integer" else self.bins

    @property
    def _span(self) -> int:
        return int(self.high) - int(self.low) + 1

    def _codes(self, column: pa.ChunkedArray) -> Codes:
        numbers = _numbers(column)
        present = ~np.isnan(numbers)
        inside = np.clip(np.where(present, numbers, self.low), self.low, self.high)
        if self.kind == "integer":
            codes = (np.floor(inside).astype(np.int64) - int(self.low)) * self.known // self._span
        else:
            width = self.high - self.low
            codes = (
                np.floor((inside - self.low) / width * self.known).astype(np.int64)
                if width > 0
                else np.zeros(inside.size, np.int64)
            )
        return np.where(present, np.clip(codes, 0, self.known - 1), -1)

    def decode(self, codes: Codes, source: Randomness) -> pa.Array:
        drawn = uniform(source, codes.size)
        none = codes >= self.known
        code = np.where(none, 0, codes)
        if self.kind == "integer":
            start, stop = -(-code * self._span // self.known), -(-(code + 1) * self._span // self.known)
            whole = int(self.low) + start + np.floor(drawn * (stop - start)).astype(np.int64)
            return pa.array(whole, pa.int64(), mask=none)
        width = self.high - self.low
        digits = max(_DIGITS - math.floor(math.log10(width)), 0) if width > 0 else 15
        number = np.round(self.low + (code + drawn) / self.known * width, min(digits, 15))
        return pa.array(np.clip(number, self.low, self.high), pa.float64(), mask=none)

    def labels(self) -> tuple[str, ...]:
        edges: list[float] = [self.low + (self.high - self.low) * place / self.known for place in range(self.known + 1)]
        if self.kind == "integer":
            starts = [int(self.low) + -(-place * self._span // self.known) for place in range(self.known + 1)]
            named = [f"{a}" if b == a + 1 else f"{a} to {b - 1}" for a, b in zip(starts, starts[1:], strict=False)]
        else:
            named = [f"{a:.6g} to {b:.6g}" for a, b in zip(edges, edges[1:], strict=False)]
        return (*named, *(("missing",) if self.missing else ()))


def compared(text: str) -> str:
    """The form in which a cell and a declared value are compared: 1.0, 1e0 and 1 are one value.

    A reader that guesses types may give a column of 1.0 as numbers or, when another record holds a word, as text. How
    one record is coded must not depend on the others.
    """
    return str(text_of(float(text))) if _NUMBER.fullmatch(text) and not _WHOLE.fullmatch(text) else text


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Each cell as a number, NaN where it is none; never an error, whatever the cells hold."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        plain = column.cast(pa.float64(), safe=False)
        return np.asarray(plain.fill_null(math.nan).to_numpy(), dtype=np.float64)
    distinct, codes = distinct_values(column)
    return np.array([math.nan if text is None else _number(text) for text in texts(distinct)] + [math.nan])[codes]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
