"""Draws computed by engines: those of the definition, the same under any order, and the key is nowhere to be read."""

from __future__ import annotations

import base64
import datetime
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.engines.class_queries import ROWS
from sfumato.engines.digests.keyed_draws import (
    COPY,
    DRAW_BITS,
    DRAWS,
    ROW,
    draw,
    drawn_here,
    exact_draw,
    with_draws,
    with_numbers,
)
from sfumato.engines.memory import MemoryRelation
from sfumato.engines.plan import Named, Project, Scan, column
from tests.engines.conftest import OpenTable

KEY = bytes(range(100, 132))
PURPOSES = {"a": "0/Pram sex", "b": "0/Pram sêx"}
PEOPLE = pa.table(
    {
        "name": ["Ada", "Ada", "Ada", None, "Ben", "Ben", "🙂", ""],
        "number": pa.array([1, 1, 1, None, 2, 3, -(2**63), 0], pa.int64()),
        "income": [1.5, 1.5, 1.5, -0.0, 1e-300, None, 3.25, 1e300],
        "born": pa.array([datetime.date(1815, 12, 10)] * 7 + [None]),
    }
)


def drawn(relation: Any, purposes: dict[str, str] = PURPOSES, key: bytes = KEY) -> pa.Table:
    plan, uploads = with_draws(with_numbers(Scan(ROWS, tuple(relation.fields.values()))), purposes, key, "\x00keys")
    draws = (Named(f"{name} {part}", draw(name, part)) for name in purposes for part in range(DRAWS))
    return relation.run(Project(plan, (column(ROW), column(COPY), *draws)), uploads)


def listed(answer: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in answer.to_pylist())


def test_every_engine_draws_what_the_definition_says(on_engine: OpenTable) -> None:
    answer = drawn(on_engine(PEOPLE))
    assert answer.num_rows == 8
    for row in answer.to_pylist():
        for name, purpose in PURPOSES.items():
            assert [row[f"{name} {part}"] for part in range(DRAWS)] == list(drawn_here(row[ROW], row[COPY], purpose, KEY))


def test_equal_rows_are_numbered_and_draw_apart_from_each_other(on_engine: OpenTable) -> None:
    rows = drawn(on_engine(PEOPLE)).to_pylist()
    copies = Counter(row[ROW] for row in rows)
    assert sorted(copies.values()) == [1, 1, 1, 1, 1, 3]
    thrice = [row for row in rows if copies[row[ROW]] == 3]
    assert {row[COPY] for row in thrice} == {1, 2, 3} and len({row["a 0"] for row in thrice}) == 3


def test_draws_do_not_depend_on_order_or_partitions(on_engine: OpenTable) -> None:
    """What a retried task computes again: the same rows with the same draws, whichever rows stand beside them."""
    expected = listed(drawn(MemoryRelation(PEOPLE)))
    shuffled = PEOPLE.take(np.random.default_rng(5).permutation(8))
    assert listed(drawn(on_engine(shuffled))) == expected
    assert listed(drawn(on_engine(PEOPLE))) == expected


def test_draws_are_uniform_and_independent_of_neighbours_and_purposes() -> None:
    """Rows that differ in one digit, 20,000 of them: 64 parts of each draw, and pairs of draws, by χ² (false alarm 10⁻⁶)."""
    from scipy.stats import chi2

    answer = drawn(MemoryRelation(pa.table({"x": np.arange(20_000)})))
    top = {name: np.asarray(answer.column(name)) >> (DRAW_BITS - 6) for name in ("a 0", "a 1", "b 0")}
    order = np.argsort(np.asarray(answer.column(ROW)))
    pairs = [(top["a 0"], top["a 1"]), (top["a 0"], top["b 0"]), (top["a 0"][order][:-1], top["a 0"][order][1:])]
    for parts in top.values():
        counts = np.bincount(parts, minlength=64)
        assert ((counts - 312.5) ** 2 / 312.5).sum() < chi2.isf(1e-6 / 6, 63)
    for one, other in pairs:
        counts = np.bincount((one >> 3) * 8 + (other >> 3), minlength=64)
        expected = one.size / 64
        assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-6 / 6, 63)


def test_another_key_draws_other_numbers() -> None:
    one, other = (listed(drawn(MemoryRelation(PEOPLE), key=key)) for key in (KEY, KEY[::-1]))
    assert not set(one) & set(other)


def test_a_draw_that_becomes_a_number_is_not_rounded(on_engine: OpenTable) -> None:
    relation: Any = on_engine(PEOPLE)
    plan, uploads = with_draws(with_numbers(Scan(ROWS, tuple(relation.fields.values()))), {"a": "p"}, KEY, "\x00keys")
    answer = relation.run(Project(plan, (Named("whole", draw("a")), Named("exact", exact_draw("a")))), uploads)
    assert all(row["exact"] == row["whole"] % 2**52 for row in answer.to_pylist())


def secrets() -> Iterator[str]:
    for octets in (KEY, bytes(o ^ 0x36 for o in KEY), bytes(o ^ 0x5C for o in KEY)):
        part = octets[:12]
        yield from (part.hex(), part.hex().upper(), base64.b64encode(part).decode(), ", ".join(map(str, part)))
        yield "".join(f"\\{octet:03o}" for octet in part[:6])


def test_the_plan_does_not_hold_the_key() -> None:
    plan, uploads = with_draws(with_numbers(Scan(ROWS, tuple(MemoryRelation(PEOPLE).fields.values()))), PURPOSES, KEY, "\x00keys")
    assert not any(secret in repr(plan) for secret in secrets())
    assert any(secret in uploads["\x00keys"].column(1)[0].as_py().hex() for secret in secrets())  # the search would find it


@pytest.mark.postgres
def test_postgresql_logs_no_key(postgres_url: str) -> None:
    import psycopg

    from sfumato.engines.postgres.relation import PostgresRelation
    from sfumato.engines.write import write_table

    write_table(PEOPLE, postgres_url, table_name="drawn", overwrite=True)
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        log = Path(owner.execute("SHOW data_directory").fetchone()[0]).parent  # type: ignore[index]
        owner.execute("ALTER SYSTEM SET log_statement = 'all'")
        owner.execute("SELECT pg_reload_conf()")
        try:
            assert drawn(PostgresRelation(postgres_url, "drawn")).num_rows == 8
            owner.execute("SELECT 'the end of the log'")
            logs = [path for path in log.rglob("*") if path.is_file() and path.name.endswith("log")]
            written = "".join(path.read_text(errors="replace") for path in logs)
            assert "the end of the log" in written and not any(secret in written for secret in secrets())
        finally:
            owner.execute("ALTER SYSTEM RESET log_statement")
            owner.execute("SELECT pg_reload_conf()")
