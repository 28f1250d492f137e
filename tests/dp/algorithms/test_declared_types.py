"""No type that was found in the values decides what is refused or what an answer looks like."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.errors import Unsupported
from sfumato.core.randomness import default
from sfumato.dp import Algorithm, GridKMeans, KMeans, PrivateHistogram, PrivateQuantiles, SearchLog, TopK

ALGORITHMS: list[Algorithm] = [
    PrivateQuantiles("x", (0.5,), epsilon=1, max_rows=1),
    PrivateHistogram(("x",), epsilon=1, bins={"x": 3}, max_rows=1),
    PrivateHistogram(("x",), epsilon=1, bins={"x": [0, 5, 10]}, max_rows=1),
    PrivateHistogram(("word",), epsilon=1, max_rows=1),
    KMeans(("x",), 2, epsilon=1, max_rows=1),
    GridKMeans(("x",), 2, epsilon=1, max_rows=1),
    TopK("word", 1, epsilon=1),
    TopK("word", 1, epsilon=1, candidates=("a", "b")),
    SearchLog("word", 1, epsilon=1, domain=("a", "b")),
    sf.dp.Mst(rho=1, max_rows=1),
    sf.dp.Aim(rho=1, max_rows=1),
]


def schema(typed: bool) -> dict[str, object]:
    columns: dict[str, dict[str, object]] = {
        "who": {"role": "unit", "type": "string"},
        "x": {"bounds": [0, 10], "type": "number"},
        "word": {"domain": ["a", "b"], "type": "string"},
    }
    if not typed:
        columns = {name: {key: value for key, value in column.items() if key != "type"} for name, column in columns.items()}
    return {"dataset": "log", "columns": columns}


def written(folder: Path, x: list[str]) -> Path:
    path = folder / "log.csv"
    path.write_text("who,x,word\n" + "".join(f"p{place},{cell},a\n" for place, cell in enumerate(x)))
    return path


@pytest.mark.parametrize(
    ("engine", "cells"),
    [
        ("memory", ["1", "2"]),
        ("memory", ["1", "2", "2.5"]),
        ("duckdb", ["1", "2"]),
        ("duckdb", ["1", "2", "2.5"]),
        ("duckdb", ["1", "2", "abc"]),  # in memory bounds of a text are refused when it is read
    ],
)
@pytest.mark.parametrize("algorithm", ALGORITHMS[:9], ids=lambda algorithm: algorithm.name)
def test_types_that_nobody_declared_are_refused_whatever_the_values_are(
    algorithm: Algorithm, engine: str, cells: list[str], tmp_path: Path
) -> None:
    data = sf.read(written(tmp_path, cells), schema=schema(False), engine=engine)
    with pytest.raises(Unsupported, match="is not declared"):
        algorithm.run(data)


@pytest.mark.parametrize("method", [sf.dp.Mst, sf.dp.Aim])
def test_a_synthesis_refuses_untyped_columns_of_a_text_file(method: type[sf.dp.Mst], tmp_path: Path) -> None:
    columns = {"who": {"role": "unit"}, "word": {"domain": ["a", "b"]}}
    data = sf.read(written(tmp_path, ["1"]), schema={"dataset": "log", "unlisted": "drop", "columns": columns})
    with pytest.raises(Unsupported, match="is not declared"):
        method(rho=1, max_rows=1).run(data)


def test_a_type_declared_after_reading_comes_too_late(tmp_path: Path) -> None:
    data = sf.read(written(tmp_path, ["1", "2"])).with_schema(sf.Schema.model_validate(schema(True)))
    with pytest.raises(Unsupported, match="read with"):
        PrivateQuantiles("x", (0.5,), epsilon=1, max_rows=1).run(data)


def test_types_of_excel_cells_and_python_objects_follow_the_values(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": pandas.Series([1, 2.5], dtype=object), "n": [1, 2]})
    assert sf.read(frame).inferred == {"x"}
    assert sf.read(frame, {"dataset": "d", "columns": {"x": {"type": "number"}}}).inferred == frozenset()
    pytest.importorskip("openpyxl")
    frame.to_excel(tmp_path / "cells.xlsx", index=False)
    assert sf.read(tmp_path / "cells.xlsx").inferred == {"x", "n"}


def test_types_that_are_stored_serve_without_a_declaration(tmp_path: Path) -> None:
    table = pa.table({"who": ["p", "q"], "x": [1.0, 2.0], "word": ["a", "b"]})
    pq.write_table(table, tmp_path / "log.parquet")
    for source, engine in ((table, None), (tmp_path / "log.parquet", None), (tmp_path / "log.parquet", "duckdb")):
        data = sf.read(source, schema=schema(False), engine=engine)
        for algorithm in ALGORITHMS[:9]:
            algorithm.run(data, randomness=default(1))


def test_whole_numbers_that_may_not_fit_need_a_declared_type() -> None:
    table = pa.table({"n": pa.array([1, 2], pa.uint64()), "d": pa.array([1, 2], pa.decimal128(25, 0)), "i": [1, 2]})
    assert sf.read(table).inferred == {"n", "d"}
    assert sf.read(table, {"dataset": "d", "columns": {"d": {"role": "unit"}}}).inferred == {"n"}


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.name)
def test_a_cell_that_is_not_of_its_declared_type_is_missing_on_an_engine(algorithm: Algorithm, tmp_path: Path) -> None:
    path = written(tmp_path, ["1", "2", "abc"])
    outcome = algorithm.run(sf.read(path, schema=schema(True), engine="duckdb"), randomness=default(1))
    assert outcome.claimed
