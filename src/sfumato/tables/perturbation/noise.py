"""Noise before tabulating: each contribution is multiplied by a factor of its own, and the table adds up what comes out.

A cell of one contributor is then never its value, while totals of many hardly change. Parts still add up, and equal contributors
have the same factor in every table. Evans, Zayatz, Slanta, "Using noise for disclosure limitation of establishment tabular data",
Journal of Official Statistics 14, 1998.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import Declared
from sfumato.core.errors import InputError, MissingColumn, as_name
from sfumato.core.randomness import Randomness, default, words
from sfumato.core.ranges import Number
from sfumato.data.microdata import Microdata


@dataclass(frozen=True)
class NoiseBeforeTabulating(Declared):
    """Every holding draws a factor between 1 + `least` and 1 + `most` percent, or as far below 1, each side with probability 1/2;
    its contributions are multiplied by it before anything is counted."""

    least: Annotated[float, Number(above=0, below=100), "percent that every contribution changes at least"] = 10.0
    most: Annotated[float, Number(above=0, below=100), "percent that a contribution changes at most"] = 20.0

    def coherent(self) -> Iterable[str]:
        """least lies below most."""
        if not self.least < self.most:
            yield f"least is {self.least:g} and most {self.most:g}; least must lie below most"

    def apply(self, people: Microdata, value: str, *, holding: str | None = None, seed: int | str | None = None) -> Microdata:
        """The same people with changed contributions, to be tabulated like any others."""
        import pyarrow as pa

        import sfumato.engines.sources as sources

        table = people.table()
        for name in (value, *([] if holding is None else [holding])):
            if name not in table.column_names:
                raise MissingColumn(f"there is no column {as_name(name)}")
        amounts = table.column(value)
        if amounts.null_count or not (pa.types.is_integer(amounts.type) or pa.types.is_floating(amounts.type)):
            raise InputError(f"the column {as_name(value)} must hold a number for every record")
        held = np.arange(table.num_rows)
        if holding is not None:
            names = table.column(holding).to_pylist()
            number = {name: place for place, name in enumerate(dict.fromkeys(names))}
            held = np.array([number[name] for name in names], dtype=np.int64)
        factors = self.factors(int(held.max(initial=-1)) + 1, default(seed))
        changed = amounts.to_numpy() * factors[held]
        place = table.column_names.index(value)
        described = people.schema
        return sources.read(table.set_column(place, value, pa.array(changed)), described)

    def factors(self, count: int, source: Randomness) -> NDArray[np.float64]:
        """One factor for each holding."""
        drawn = words(source, 2 * count)
        size = (self.least + (self.most - self.least) * (drawn[:count] / 2.0**64)) / 100.0
        return np.asarray(1.0 + np.where(drawn[count:] % np.uint64(2) == 0, size, -size))
