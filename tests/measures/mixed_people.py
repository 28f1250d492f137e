"""A health survey as tables of its kind are: three numbers, three columns of 0 and 1, five categories; and correlated keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.data.microdata import Microdata


def survey(rows: int = 5_110, seed: int = 0) -> pa.Table:
    """Age, glucose and body mass index, three rare yes-or-no columns as numbers, five columns of words."""
    draw = np.random.default_rng(seed)
    age = np.clip(np.round(draw.gamma(4, 11, rows)), 1, 95)
    flags = {name: (draw.random(rows) < age / scale).astype(np.int64) for name, scale in _FLAGS.items()}
    words = {name: draw.choice([f"{name} {i}" for i in range(kinds)], rows) for name, kinds in _WORDS.items()}
    glucose = np.round(80 + draw.gamma(2, 14, rows) + 0.3 * age, 2)
    bmi = np.round(np.clip(draw.normal(29, 7, rows), 12, 70), 1)
    return pa.table({"age": age, "glucose": glucose, "bmi": bmi, **flags, **words})


_FLAGS = {"hypertension": 400, "heart": 700, "stroke": 1000}
_WORDS = {"gender": 2, "married": 2, "work": 5, "home": 2, "smoking": 4}


def resampled(table: pa.Table, seed: int) -> pa.Table:
    """Every column drawn anew from its own values: nothing about anybody is left."""
    draw = np.random.default_rng(seed)
    return pa.table({name: table.column(name).take(pa.array(draw.permutation(table.num_rows))) for name in table.column_names})


def correlated_keys(rows: int = 1_500, seed: int = 0) -> pa.Table:
    """Eight keys of which five say the same: their agreement looks like that of right pairs."""
    draw = np.random.default_rng(seed)
    shared = draw.integers(0, 4, rows).astype(str)
    alone = {f"key {i}": draw.integers(0, 3, rows).astype(str) for i in range(5, 8)}
    return pa.table({**{f"key {i}": shared for i in range(5)}, **alone})


def all_quasi(table: pa.Table) -> Microdata:
    return sf.read(table, schema=sf.Schema.of(quasi=table.column_names))
