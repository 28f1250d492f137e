"""Answers as lines: each number with a margin that it keeps to."""

from __future__ import annotations

import pyarrow as pa

from sfumato.dp.sql.reach import Distances
from sfumato.workflow.querying import answer_lines


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
