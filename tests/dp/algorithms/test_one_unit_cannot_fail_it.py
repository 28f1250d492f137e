"""No text of one unit, however long, frequent or broken, makes a release fail: a failure would tell that it is there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.errors import SourceError
from sfumato.core.randomness import default
from sfumato.data.microdata import Microdata
from sfumato.dp import Algorithm, PrivateHistogram, SearchLog, TopK
from sfumato.dp.algorithms.declared_values import distinct_values, read

SCHEMA = {
    "dataset": "log",
    "columns": {
        "u": {"role": "unit", "type": "string"},
        "q": {"type": "string", "domain": ["a", "b"], "source": "declared"},
    },
}
ALGORITHMS: list[Algorithm] = [
    PrivateHistogram(("q",), epsilon=100, max_rows=1),
    TopK("q", 1, epsilon=100),
    SearchLog("q", 1, epsilon=100, domain=("a", "b")),
    SearchLog("q", 1, epsilon=1, delta="1e-6"),
    sf.dp.Mst(rho=100, max_rows=1, report=False),
    sf.dp.Aim(rho=100, max_rows=1, report=False),
]
names = pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.name)


def broken(*cells: bytes) -> pa.Array:
    """A column of text whose cells are these bytes, valid or not."""
    ends = np.cumsum([0, *map(len, cells)]).astype(np.int32)
    return pa.Array.from_buffers(pa.string(), len(cells), [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(cells))])


def repeated(text: str, rows: int) -> pa.Array:
    """Two rows of others, and one long text many times, stored once."""
    codes = pa.array([0, 1, *[2] * rows], pa.int32())
    return pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b", text]))


def with_broken_text(where: str, folder: Path) -> Microdata:
    table = pa.table({"u": broken(b"p", b"q", b"r", b"\xff"), "q": broken(b"a", b"a", b"\xffa", b"b")})
    if where == "memory":
        return sf.read(table, SCHEMA)
    if where == "csv":
        # beyond the lines that DuckDB looks at to find out how the file is written
        filled = [b"%d," % place for place in range(30_000)]
        lines = [b"u,q", b"p,a", b"q,a", *filled, b"r,\xffa", b"\xff,b"]
        (folder / "log.csv").write_bytes(b"\n".join(lines) + b"\n")
        return sf.read(folder / "log.csv", SCHEMA, engine="duckdb")
    pq.write_table(table, folder / "log.parquet")
    return sf.read(folder / "log.parquet", SCHEMA, engine="duckdb")


@pytest.mark.parametrize("column", ["u", "q"])
def test_a_long_text_in_many_rows_never_fails(column: str) -> None:
    """140 rows of 16 MiB are more than 2 GiB once every row has its own copy."""
    columns = {"u": pa.array(["p", "q", *["V"] * 140]), "q": pa.array(["a", "b", *["a"] * 140])}
    columns[column] = repeated("x" * (16 << 20), 140)
    data = sf.read(pa.table(columns), SCHEMA)
    for algorithm in (ALGORITHMS[0], ALGORITHMS[4]):
        outcome = sf.Session(data, budget=sf.ConcentratedDP(9**5), seed=1).release(algorithm)
        assert isinstance(outcome.result, pa.Table)


def test_distinct_values_join_dictionaries_that_differ_repeat_and_have_gaps() -> None:
    first = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2], pa.int32()), pa.array(["x", "y", "x"]))
    second = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int32()), pa.array([None, "y"]))
    values, codes = distinct_values(pa.chunked_array([first, second]))
    assert values.to_pylist() == ["x", "y"]
    assert codes.tolist() == [0, 1, -1, 0, 1, -1]
    for plain in ([3, None, 3, 1], [1.5, None], ["b", "a", "b"], [True, None, False], []):
        column = pa.chunked_array([pa.array(plain[:2], pa.array(plain).type), pa.array(plain[2:], pa.array(plain).type)])
        values, codes = distinct_values(column)
        assert [None if code < 0 else values[code].as_py() for code in codes.tolist()] == plain
        assert len(values) == len(set(plain) - {None})


@pytest.mark.parametrize("where", ["memory", "duckdb", "csv"])
@names
def test_text_that_is_not_utf8_counts_as_missing(algorithm: Algorithm, where: str, tmp_path: Path) -> None:
    data = with_broken_text(where, tmp_path)
    outcome = algorithm.run(data, randomness=default(1))
    charged = sf.Session(data, budget=sf.ConcentratedDP(9**6), seed=1) if algorithm is not ALGORITHMS[3] else None
    for made in (outcome, *([charged.release(algorithm)] if charged is not None else [])):
        if isinstance(algorithm, PrivateHistogram):  # almost no noise at this ε
            assert made.result.column("count").to_pylist() == [2, 0]
        if isinstance(algorithm, TopK):
            assert made.result == ["a"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_every_kind_of_stored_text_may_be_broken(kind: pa.DataType, tmp_path: Path) -> None:
    words = broken(b"a", b"\xff", b"b", "é".encode())
    columns = [words.dictionary_encode() if pa.types.is_dictionary(kind) else words.cast(kind), broken(b"p", b"q", b"\xfe", b"r")]
    table = pa.table([*columns, pa.array([1, 2, 3, 4])], names=["q", "Q", "u"])  # names that differ in case alone
    pq.write_table(table, tmp_path / "log.parquet")
    schema = {"dataset": "log", "columns": {name: {"type": "string"} for name in ("q", "Q")}}
    values = read(sf.read(tmp_path / "log.parquet", schema, engine="duckdb"), ["q", "u", "Q"])
    assert values.to_pydict() == {"q": ["a", None, "b", "é"], "u": [1, 2, 3, 4], "Q": ["p", "q", None, "r"]}


def test_broken_text_is_told_without_its_content_where_nothing_is_lenient(tmp_path: Path) -> None:
    data = with_broken_text("csv", tmp_path)
    with pytest.raises(SourceError) as told:
        data.table()
    assert "ÿ" not in str(told.value) and "Original Line" not in str(told.value)


@pytest.mark.parametrize("where", ["memory", "duckdb", "csv"])
def test_questions_meet_text_that_is_not_utf8_as_missing(where: str, tmp_path: Path) -> None:
    session = sf.Session(with_broken_text(where, tmp_path), max_rows=1, max_groups=1, budget=sf.PureDP(10**4), seed=1)
    for query in (
        "SELECT COUNT(*) AS n FROM log WHERE q = 'a'",
        "SELECT COUNT(*) AS n FROM log WHERE UPPER(q) = 'A'",
        "SELECT q, COUNT(*) AS n FROM log GROUP BY q",
    ):
        answer = session.sql(query, epsilon=200).table
        assert answer.column("n").to_pylist()[0] == 2


def test_a_question_about_one_column_of_a_file_with_broken_text_is_answered(tmp_path: Path) -> None:
    """DuckDB stopped for good where it read some columns of such a line."""
    with_broken_text("csv", tmp_path)
    schema = {"dataset": "log", "unit": "record", "columns": {"u": {"type": "string"}, "q": SCHEMA["columns"]["q"]}}
    session = sf.Session(sf.read(tmp_path / "log.csv", schema, engine="duckdb"), budget=sf.PureDP(100), seed=1)
    counted = session.sql("SELECT q, COUNT(*) AS n FROM log WHERE q = 'a' GROUP BY q", epsilon=50).table
    assert dict(zip(counted.column("q").to_pylist(), counted.column("n").to_pylist(), strict=True))["a"] == 2
