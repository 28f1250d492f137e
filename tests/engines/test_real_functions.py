"""Quotients, roots, logarithms and exponentials have one value on every engine, for every input."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from sfumato.core.errors import SchemaError
from sfumato.engines import expressions as e
from sfumato.engines import plan as p
from sfumato.engines.class_queries import ROWS
from sfumato.engines.functions import reals as r
from sfumato.engines.plan import validate
from tests.engines.conftest import OpenTable
from tests.engines.test_functions import INTEGERS, NUMBERS, X, computed, each, moved


def quotient(left: float | None, right: float | None) -> float | None:
    if left is None or right is None or left != left or right != right or moved(right, near_zero=True) == 0:
        return None
    return moved(left, near_zero=True) / moved(right, near_zero=True)


def test_a_quotient_is_missing_where_its_divisor_is_zero(on_engine: OpenTable) -> None:
    pairs = [(one, other) for one in NUMBERS for other in NUMBERS]
    columns = {"i": list(range(len(pairs))), "a": [a for a, _ in pairs], "b": [b for _, b in pairs]}
    relation: Any = on_engine(pa.table(columns, schema=pa.schema([("i", pa.int64()), ("a", pa.float64()), ("b", pa.float64())])))
    scan = p.Scan(ROWS, (p.Field("i", "integer"), p.Field("a", "number"), p.Field("b", "number")))
    ratio = p.Named("q", e.Arithmetic("/", e.Reference("a"), e.Reference("b")))
    answer = relation.run(p.Project(scan, (p.column("i"), ratio))).sort_by("i")
    assert answer.column("q").to_pylist() == [quotient(a, b) for a, b in pairs]


def test_whole_numbers_are_divided_as_real_ones(on_engine: OpenTable) -> None:
    found = computed(
        on_engine, INTEGERS, "integer", pa.int64(), to=e.Arithmetic("/", X, e.Literal(2)), by=e.Arithmetic("/", e.Literal(1), X)
    )
    assert found["to"] == each(lambda n: float(n) / 2, INTEGERS)
    assert found["by"] == each(lambda n: 1 / float(n) if n else None, INTEGERS)


def test_roots_are_the_same_everywhere(on_engine: OpenTable) -> None:
    found = computed(on_engine, NUMBERS, "number", pa.float64(), root=r.Root(X))
    assert found["root"] == each(lambda x: math.sqrt(moved(x, near_zero=False)) if x >= 0 else None, NUMBERS)


@pytest.mark.parametrize("base", [math.e, 2.0, 10.0, 0.5])
def test_logarithms_are_multiples_of_a_step(on_engine: OpenTable, base: float) -> None:
    values = [*NUMBERS, 1.0, 2.0, 8.0, 10.0, 1000.0, 999.9999, 1e15, 1e-149]
    logarithm = r.Logarithm(X, base)
    found = computed(on_engine, values, "number", pa.float64(), log=logarithm)
    for value, shown in zip(values, found["log"], strict=True):
        if value is None or value != value or moved(value, near_zero=True) <= 0:
            assert shown is None
        else:
            exact = math.log(moved(value, near_zero=True)) / math.log(base)
            assert shown == pytest.approx(logarithm.of(value), abs=2**-40) and shown == pytest.approx(exact, abs=2**-40)
            assert (shown * 2**40).is_integer()
    wholes = {2.0: {8.0: 3.0}, 10.0: {1000.0: 3.0, 1e15: 15.0}}.get(base, {1.0: 0.0})
    assert {value: found["log"][values.index(value)] for value in wholes} == wholes


def test_exponentials_are_missing_where_they_are_too_large(on_engine: OpenTable) -> None:
    values = [*NUMBERS, 345.0, 345.1, -345.0, -345.1, 1.0, -800.0]
    found = computed(on_engine, values, "number", pa.float64(), power=r.PowerOfE(X))
    for value, shown in zip(values, found["power"], strict=True):
        if value is None or value != value or value > 345:
            assert shown is None
        else:
            assert shown == pytest.approx(math.exp(value) if value >= -345 else 0.0, rel=1e-15, abs=0)


def test_what_is_no_number_or_no_base_is_refused() -> None:
    scan = p.Scan(ROWS, (p.Field("x", "string"), p.Field("n", "number")))
    for expression in (r.Root(X), r.Logarithm(X, 2.0), r.PowerOfE(X), r.Logarithm(e.Reference("n"), 1.05)):
        with pytest.raises(SchemaError):
            validate(p.Project(scan, (p.Named("y", expression),)))
