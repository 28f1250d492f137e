"""What is looked at in the outputs: the columns themselves, and what can be computed from them.

The lowest bit of a float reveals the number it was added to (Mironov, "On significance of the least significant bits
for differential privacy", CCS 2012); the fraction reveals noise that is too coarse; sums and differences of
coordinates reveal noise that was used twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.dp.refute.outputs import Outputs, Path

Kind = Literal["number", "key", "lowest bit", "bits", "fraction", "parity", "sum", "difference"]

_PAIRED = 6
_NO_NUMBER = -1.0


@dataclass(frozen=True)
class Aspect:
    """A number or a key per output."""

    kind: Kind
    path: Path
    second: Path = ()

    @property
    def numeric(self) -> bool:
        """Whether it has an order."""
        return self.kind not in ("key", "bits", "parity")

    @property
    def words(self) -> str:
        """How an event names it."""
        name, other = "".join(self.path), "".join(self.second)
        return {
            "number": name,
            "key": name,
            "lowest bit": f"the exponent of the lowest bit of {name}",
            "bits": f"the binary exponent of {name} and that of its lowest bit",
            "fraction": f"the fractional part of {name}",
            "parity": f"the remainder of {name}, rounded down, divided by 2 (-1 where it is no finite number)",
            "sum": f"{name} plus {other}",
            "difference": f"{name} minus {other}",
        }[self.kind]

    def of(self, outputs: Outputs) -> NDArray[Any]:  # numbers or texts
        """Its values on a batch: floats with NaN for gaps, or keys."""
        column = outputs.column(self.path)
        if self.kind == "key":
            return column.keys if column.keys is not None else np.full(outputs.count, "", dtype=object)
        numbers = column.numbers if column.numbers is not None else np.full(outputs.count, np.nan)
        if self.kind == "number":
            return numbers
        if self.kind in ("lowest bit", "bits"):
            exponent, lowest = _binary(numbers)
            return lowest if self.kind == "lowest bit" else exponent * 8192 + lowest
        with np.errstate(invalid="ignore"):
            if self.kind == "fraction":
                return numbers - np.floor(numbers)
            if self.kind == "parity":
                remainder = np.mod(np.floor(numbers), 2)
                return np.where(np.isnan(remainder), _NO_NUMBER, remainder)
            other = outputs.column(self.second).numbers
            if other is None:
                return np.full(outputs.count, np.nan)
            return numbers + other if self.kind == "sum" else numbers - other


def aspects(first: Outputs, second: Outputs) -> list[Aspect]:
    """Everything that is looked at in two batches."""
    paths = list(dict.fromkeys((*first.paths, *second.paths)))
    columns = [(path, [batch.column(path) for batch in (first, second)]) for path in paths]
    numeric = [path for path, both in columns if any(_some(one.numbers) for one in both)]
    plain = [path for path in numeric if not path[0].startswith("the length")]
    listed = [Aspect("number", path) for path in numeric]
    listed += [Aspect("key", path) for path, both in columns if any(one.keys is not None for one in both)]
    for path, both in columns:
        if path in plain:
            listed += _about_bits(path, floating=any(one.floating for one in both))
    for one, two in _pairs(plain[:_PAIRED]):
        listed += [Aspect("sum", one, two), Aspect("difference", one, two)]
    return listed


def _about_bits(path: Path, *, floating: bool) -> Iterator[Aspect]:
    yield Aspect("parity", path)
    if floating:
        yield Aspect("fraction", path)
        yield Aspect("lowest bit", path)
        yield Aspect("bits", path)


def _pairs(paths: list[Path]) -> Iterator[tuple[Path, Path]]:
    for i, one in enumerate(paths):
        for two in paths[i + 1 :]:
            yield one, two


def _some(numbers: NDArray[np.float64] | None) -> bool:
    return numbers is not None and bool((~np.isnan(numbers)).any())


def _binary(numbers: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The exponent of each number and of its lowest bit that is set; NaN for zero, infinities and gaps."""
    usable = np.isfinite(numbers) & (numbers != 0)
    mantissa, exponent = np.frexp(np.where(usable, numbers, 1.0))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    trailing = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    lowest = exponent - 53 + trailing
    gap = np.full(numbers.shape, np.nan)
    return np.where(usable, exponent, gap), np.where(usable, lowest, gap)
