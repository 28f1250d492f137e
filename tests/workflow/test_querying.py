"""Answers as lines: each number with a margin that it keeps to."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from sfumato.cli.arguments import tables_of
from sfumato.core.errors import SourceError
from sfumato.dp.sql.margins.reach import Distances
from sfumato.report.answer_words import answer_lines

_SCHEMA = """
dataset = "towns"
unit = "record"
[columns.town]
type = "string"
domain = ["Zürich", "Bern"]
"""


def test_every_private_text_file_is_read_in_the_encoding_that_is_named(tmp_path: Path) -> None:
    data, schema = tmp_path / "towns.csv", tmp_path / "towns.toml"
    data.write_text("town\nZürich\nBern\n", encoding="cp1252")
    schema.write_text(_SCHEMA, encoding="utf-8")
    read = tables_of(None, None, [f"t={data}:{schema}"], {"encoding": "cp1252"})
    assert isinstance(read, dict) and read["t"].table().column("town").to_pylist() == ["Zürich", "Bern"]
    for encoding, named in ((None, r"in UTF-8\..*--encoding"), ("utf-16", r"in utf-16\..*--encoding")):
        with pytest.raises(SourceError, match=f"not a well-formed text file {named}"):
            tables_of(None, None, [f"t={data}:{schema}"], {} if encoding is None else {"encoding": encoding})


def test_a_line_shows_every_digit_that_the_margin_speaks_of() -> None:
    table = pa.table({"total": [1_649_994_428.9], "mean": [49_912.7312], "n": [657], "share": [0.25]})
    margins = {"total": 374.2, "mean": 0.0, "n": 53.2}
    intervals = {name: [Distances(by, by, 0.95).around(table[name][0].as_py())] for name, by in margins.items()}
    assert answer_lines(table, intervals, {"total", "mean", "n", "share"})[1].split("  ") == [
        "1,649,994,429 ± 380",
        "49,912.7312 ± 0",
        "657 ± 54",
        "0.25 ± ?",
    ]
