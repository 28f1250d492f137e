"""What a digest is taken of is the same on every engine that counts and adds up."""

from __future__ import annotations

import pyarrow as pa

from sfumato.data.microdata import Microdata
from sfumato.data.schema import Schema
from sfumato.dp.data_digest import _counts_and_sums
from tests.engines.conftest import OpenTable


def summary(on_engine: OpenTable, ages: list[int | None]) -> list[object]:
    table = pa.table({"ward": pa.array(["a", None, "b"], pa.string()), "age": pa.array(ages, pa.int64())})
    return _counts_and_sums(Microdata(on_engine(table), Schema(dataset="d")))


def test_rows_values_and_sums(on_engine: OpenTable) -> None:
    assert summary(on_engine, [1, 2, None]) == [["ward", "age"], ["3", "2", "2", "3"]]
    assert summary(on_engine, [1, 3, None]) != summary(on_engine, [1, 2, None])
