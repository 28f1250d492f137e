"""What follows from a column is computed once, and noise without missing values is the noise with them."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.data.records import NumberColumn
from sfumato.masking.noise.moments import once_per_column


def test_a_number_of_a_column_is_computed_once_and_forgotten_with_it() -> None:
    asked: list[str] = []

    @once_per_column
    def total(column: NumberColumn) -> float:
        asked.append(column.name)
        return float(column.present.sum())

    one, other = (NumberColumn(name, np.array([1.0, np.nan, 2.0]), pa.float64()) for name in ("one", "other"))
    assert [total(one), total(one), total(other), total(one.take(np.array([0])))] == [3.0, 3.0, 3.0, 1.0]
    assert asked == ["one", "other", "one"]
    remembered = total.__closure__
    assert remembered is not None
    numbers = next(
        cell.cell_contents
        for cell in remembered
        if hasattr(cell.cell_contents, "valuerefs") or hasattr(cell.cell_contents, "keyrefs")
    )
    del one, other
    gc.collect()
    assert len(numbers) == 0


def test_a_missing_value_changes_nothing_about_the_noise_of_the_others() -> None:
    """The same draws, added to the same values: the last record of one table has no value."""
    values = np.arange(40.0) ** 1.5
    whole = sf.AdditiveNoise(0.1, columns=("x",)).apply(sf.read(pa.table({"x": values})), seed=3).result.table["x"].to_pylist()
    longer = pa.table({"x": pa.array([*values.tolist(), None])})
    masked = sf.AdditiveNoise(0.1, columns=("x",)).apply(sf.read(longer), seed=3).result.table["x"].to_pylist()
    assert masked == [*whole, None] and whole != values.tolist()
