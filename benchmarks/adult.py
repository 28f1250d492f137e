"""The Adult table with its nine hierarchies, from the folder that SFUMATO_DATA names, and larger tables made of it.

A larger table is a recombination: rows drawn from Adult, of which three in ten take education, workclass and
occupation from another row and three in ten, independently, age and marital status from a third.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.data.microdata import Microdata

COLUMNS = (
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
)
FIVE_KEYS = ("sex", "age", "race", "marital-status", "education")
WORK = ("education", "workclass", "occupation")
LIFE = ("age", "marital-status")
SEED = 34
_ROWS_AT_ONCE = 1_000_000


class NoData(Exception):
    """The real data are not there."""


def folder() -> Path:
    """The folder with the Adult table and its hierarchies."""
    named = os.environ.get("SFUMATO_DATA")
    if not named:
        raise NoData("the Adult table is missing: set SFUMATO_DATA to the folder that holds adult/")
    found = Path(named) / "adult"
    if not (found / "adult.csv").is_file():
        raise NoData("the Adult table is missing: the folder that SFUMATO_DATA names has no adult/adult.csv")
    return found


def schema(sensitive: str | None = None, quasi: Sequence[str] = COLUMNS) -> dict[str, Any]:
    """Every column a quasi-identifier with its hierarchy, except a sensitive one and those not in `quasi`."""
    columns = {}
    for name in COLUMNS:
        role = "sensitive" if name == sensitive else "quasi" if name in quasi else "plain"
        columns[name] = {"role": role, "hierarchy": str(folder() / f"adult_hierarchy_{name}.csv")}
    return {"dataset": "adult", "columns": columns}


@cache
def table() -> pa.Table:
    """The 30,162 rows."""
    import sfumato as sf

    return sf.read(folder() / "adult.csv", schema()).table()


def fresh(rows: pa.Table, sensitive: str | None = None, quasi: Sequence[str] = COLUMNS) -> Callable[[], Microdata]:
    """Makes the table anew for each repetition, with its hierarchies in memory and nothing encoded yet."""
    import sfumato as sf
    from sfumato.data.class_table import encode

    first = sf.read(rows, schema(sensitive, quasi))
    encode(first)  # reads the hierarchies

    def make() -> Microdata:
        people = sf.read(rows, first.schema)
        people.hierarchies.update(first.hierarchies)
        return people

    return make


def recombined(rows: int, path: Path) -> Path:
    """Write a recombination of Adult as Parquet, a row group per million rows; the same rows in every run."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = table().combine_chunks()
    generator = np.random.Generator(np.random.PCG64(SEED))

    def draw(size: int) -> Any:
        return generator.integers(source.num_rows, size=size)

    with pq.ParquetWriter(path, source.schema) as file:
        for start in range(0, rows, _ROWS_AT_ONCE):
            size = min(_ROWS_AT_ONCE, rows - start)
            whole = draw(size)
            work = np.where(generator.random(size) < 0.3, draw(size), whole)
            life = np.where(generator.random(size) < 0.3, draw(size), whole)
            places = {name: work if name in WORK else life if name in LIFE else whole for name in COLUMNS}
            file.write_table(pa.table({name: source.column(name).take(pa.array(places[name])) for name in COLUMNS}))
    return path
