"""The order in which quasi-identifiers single people out, beside the classes counted one by one."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.data.profiling.singling import FEW, MANY, few_to_keep, singling_order


def order_of(columns: dict[str, list[int]]) -> list[tuple[str, float, float]]:
    codes = {name: (np.array(cells, np.int32), max(cells) + 1) for name, cells in columns.items()}
    return [(each.column, each.chance, each.gain) for each in singling_order(codes, len(next(iter(columns.values()))))]


def test_the_greedy_order_is_that_of_classes_counted_one_by_one() -> None:
    draw = random.Random(1)
    columns = {name: [draw.randrange(size) for _ in range(60)] for name, size in (("a", 2), ("b", 9), ("c", 4), ("d", 3))}
    expected, chosen = [], []
    before = 0
    while len(chosen) < len(columns):
        classes = {name: len(set(zip(*(columns[each] for each in [*chosen, name]), strict=True))) for name in columns}
        best = max((name for name in columns if name not in chosen), key=lambda name: classes[name])
        expected.append((best, classes[best] / 60, (classes[best] - before) / 60))
        before = classes[best]
        chosen.append(best)
    found = order_of(columns)
    assert [name for name, _, _ in found] == [name for name, _, _ in expected]
    assert np.array([each[1:] for each in found]) == pytest.approx(np.array([each[1:] for each in expected]))


def test_once_everybody_is_alone_no_column_adds_anything() -> None:
    assert order_of({"a": [0, 0, 1, 1], "number": [0, 1, 2, 3]}) == [("number", 1.0, 1.0), ("a", 1.0, 0.0)]
    assert singling_order({}, 0) == ()


def test_of_many_those_that_outsiders_know_come_first_and_few_are_all_kept() -> None:
    draw = random.Random(2)
    names = ["age", "sex", *(f"answer{number}" for number in range(MANY))]
    profile = sf.data.profile_table(pa.table({name: [str(draw.randrange(3)) for _ in range(90)] for name in names}))
    few = few_to_keep(profile.singling)
    assert {"age", "sex"} <= set(few) and len(few) == FEW
    assert set(few_to_keep(profile.singling[:MANY])) == {each.column for each in profile.singling[:MANY]}
