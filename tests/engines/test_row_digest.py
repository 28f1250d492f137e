"""Row digests: every engine adds up the same numbers, which are those of the definition written out here once more."""

from __future__ import annotations

import datetime
import hashlib
import math
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sfumato.core.errors import MissingColumn, SchemaError, Unsupported
from sfumato.engines.class_queries import ROWS
from sfumato.engines.digests.row_digest import RowSums, digest_plan, row_sums, sums_of, table_sums
from sfumato.engines.digests.row_text import Limb, RowDigest
from sfumato.engines.expressions import Compare, Literal, Reference
from sfumato.engines.memory import MemoryRelation
from sfumato.engines.plan import Field, Filter, Project, Scan, column, validate
from sfumato.wire.keys import OwnerKey
from tests.engines.conftest import OpenTable
from tests.engines.tables import nasty_table

EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)


def written(value: Any) -> bytes:
    """A value in the text of its row, from the definition."""
    match value:
        case None:
            return b"n"
        case bool():
            return b"%di" % value
        case int():
            return b"%di" % value
        case float():
            if math.isnan(value):
                return b"n"
            return b"%dd" % struct.unpack(">q", struct.pack(">d", value or 0.0))
        case str():
            octets = value.encode()
            return b"%ds" % len(octets) + octets
        case bytes():
            return b"%db" % len(value) + value.hex().encode()
        case Decimal():
            return b"%dw" % int(value)
        case datetime.datetime():
            return b"%di" % ((value.replace(tzinfo=None) - EPOCH) // MICROSECOND)
        case datetime.date():
            return b"%di" % (value - EPOCH.date()).days
        case datetime.time():
            return b"%di" % ((datetime.datetime.combine(EPOCH, value) - EPOCH) // MICROSECOND)
    raise AssertionError(type(value))


def by_definition(table: pa.Table) -> tuple[int, tuple[int, ...]]:
    sums = [0, 0, 0, 0]
    for row in table.select(sorted(table.column_names)).to_pylist():
        digest = hashlib.sha256(b"".join(map(written, row.values()))).hexdigest()
        for part in range(4):
            sums[part] += int(digest[15 * part : 15 * part + 15], 16)
    return table.num_rows, tuple(sums)


def numbers(sums: RowSums) -> tuple[int, tuple[int, ...]]:
    return sums.rows, sums.sums


#: Every power of two and its neighbours, the smallest and largest numbers, halves, tenths, and some of every size.
POWERS = [math.ldexp(1.0, exponent) for exponent in range(-1074, 1024)]
FLOATS = [
    *POWERS,
    *(math.nextafter(power, 0.0) for power in POWERS),
    *(math.nextafter(power, math.inf) for power in POWERS),
    *(0.0, -0.0, math.inf, -math.inf, math.nan, 0.1, -0.1, 1 / 3, 1e15, 2.0**53 + 2, 123456.789, 1.7976931348623157e308),
    *(float(n) for n in np.random.default_rng(7).integers(-(2**63), 2**63, 500).view(np.float64)),
]
MOMENTS = [
    datetime.datetime(1, 1, 1),
    datetime.datetime(1582, 10, 4, 23, 59, 59, 999_999),
    datetime.datetime(1893, 3, 31, 23, 59, 59, 1),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    datetime.datetime(2024, 3, 31, 2, 30),  # skipped by the clocks of Berlin
    datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999),
    None,
]


def test_every_engine_adds_up_what_the_definition_says(on_engine: OpenTable) -> None:
    sums = row_sums(on_engine(nasty_table()))
    assert numbers(sums) == by_definition(nasty_table())
    assert sums.columns == table_sums(nasty_table()).columns
    assert sums == table_sums(nasty_table())


def test_floating_point_numbers_enter_by_their_bits_on_every_engine(on_engine: OpenTable) -> None:
    signed = [sign * number for number in FLOATS for sign in (1, -1)]
    table = pa.table({"x": pa.array([*signed, None], pa.float64()), "row": range(len(signed) + 1)})
    assert numbers(row_sums(on_engine(table))) == by_definition(table)


def test_moments_and_octets_enter_alike_on_every_engine(on_engine: OpenTable) -> None:
    table = pa.table(
        {
            "clock": pa.array(MOMENTS, pa.timestamp("us")),
            "moment": pa.array(MOMENTS, pa.timestamp("us", tz="UTC")),
            "day": pa.array([None if m is None else m.date() for m in MOMENTS], pa.date32()),
            "octets": pa.array([b"", b"\x00", b"bn", None, b"\xff" * 70, "é".encode(), b"\x00\x01"], pa.binary()),
            "whole": pa.array([0, -1, 2**63 - 1, -(2**63), None, 10, 100], pa.int64()),
            "truth": pa.array([True, False, None, True, False, None, True]),
            "none": pa.array([None] * 7, pa.string()),
        }
    )
    assert numbers(row_sums(on_engine(table))) == by_definition(table)


def test_times_and_wide_numbers_enter_by_the_definition() -> None:
    times = [datetime.time(0), datetime.time(23, 59, 59, 999_999), None]
    table = pa.table({"at": pa.array(times, pa.time64("us")), "n": [1, 2, 3]})
    assert numbers(table_sums(table)) == by_definition(table)
    wide = pa.table({"sum": pa.array([Decimal(10) ** 37, Decimal(-5), None], pa.decimal128(38, 0))})
    plan = Scan("wide", (Field("sum", "wide"),))
    from sfumato.engines.duckdb.relation import run_in_process

    assert numbers(sums_of(run_in_process(digest_plan(plan), {"wide": wide}), {"sum": "wide"})) == by_definition(wide)


def test_a_digest_of_more_columns_than_a_function_has_arguments(on_engine: OpenTable) -> None:
    table = pa.table({f"column {place}": [place, None] for place in range(120)})
    assert numbers(row_sums(on_engine(table))) == by_definition(table)


def test_no_rows_have_sums_of_zero(on_engine: OpenTable) -> None:
    sums = row_sums(on_engine(nasty_table().slice(0, 0)))
    assert (sums.rows, sums.sums) == (0, (0, 0, 0, 0))
    assert sums == table_sums(nasty_table().slice(0, 0))


def test_some_columns_and_the_rows_of_a_plan(on_engine: OpenTable) -> None:
    relation: Any = on_engine(nasty_table())
    assert numbers(row_sums(relation, ["weight", "age"])) == by_definition(nasty_table().select(["age", "weight"]))
    rows = Scan(ROWS, tuple(relation.fields.values()))
    kept = Project(Filter(rows, Compare(">", Reference("weight"), Literal(3))), (column("plain"), column("weight")))
    sums = sums_of(relation.run(digest_plan(kept)), validate(kept))
    heavy = [row for row in nasty_table().select(["plain", "weight"]).to_pylist() if (row["weight"] or 0) > 3]
    assert numbers(sums) == by_definition(pa.Table.from_pylist(heavy))


@pytest.mark.spark
def test_partitions_and_their_order_do_not_matter_to_spark(spark: Any) -> None:
    from sfumato.engines.spark.relation import SparkRelation

    frame = spark.range(3_000).selectExpr("id % 7 AS a", "cast(id % 11 AS string) AS b", "id / 8 AS c")
    first = row_sums(SparkRelation(frame.repartition(1)))
    for other in (frame.repartition(5, "b"), frame.orderBy("a", "b"), frame.coalesce(2)):
        assert row_sums(SparkRelation(other)) == first
    assert first.rows == 3_000


@pytest.mark.postgres
def test_infinite_dates_and_decimals_that_are_none_are_missing_in_postgresql(postgres_url: str) -> None:
    import psycopg

    from sfumato.engines.postgres.relation import PostgresRelation

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE digested (d date, t timestamp, n numeric)")
        connection.execute("INSERT INTO digested VALUES ('infinity', '-infinity', 'NaN'), ('2020-01-01', '2020-01-01', 1.5)")
        relation = PostgresRelation(postgres_url, "digested")
    table = pa.Table.from_batches(relation.batches())
    assert table.column("d").null_count == table.column("n").null_count == 1
    assert row_sums(relation) == table_sums(table)


VALUES = st.one_of(st.none(), st.sampled_from(["", "1", "n", "s", "1s", "i", "0", "ü", "1sn", "-1i", "12", "\x00"]))
WHOLE = st.one_of(st.none(), st.integers(-12, 12))
RECORDS = st.lists(st.tuples(VALUES, VALUES, WHOLE), max_size=8)


def table_of(records: list[tuple[str | None, str | None, int | None]]) -> pa.Table:
    one, two, three = zip(*records, strict=True) if records else ((), (), ())
    kinds = (pa.string(), pa.string(), pa.int64())
    return pa.table({name: pa.array(c, kind) for name, c, kind in zip("abc", (one, two, three), kinds, strict=True)})


@given(RECORDS, st.randoms(use_true_random=False))
def test_the_order_of_rows_and_columns_does_not_matter(records: list, random) -> None:  # type: ignore[no-untyped-def,type-arg]
    shuffled = table_of(random.sample(records, len(records))).select(["c", "a", "b"])
    assert table_sums(table_of(records)) == table_sums(shuffled)
    assert numbers(table_sums(shuffled)) == by_definition(shuffled)


@given(RECORDS, RECORDS)
def test_different_multisets_of_rows_have_different_digests(one: list, other: list) -> None:  # type: ignore[type-arg]
    assume(sorted(map(repr, one)) != sorted(map(repr, other)))
    assert table_sums(table_of(one)).content_digest() != table_sums(table_of(other)).content_digest()


@given(st.lists(st.tuples(VALUES, VALUES, WHOLE), min_size=2, max_size=2, unique=True))
def test_different_rows_have_different_texts(pair: list) -> None:  # type: ignore[type-arg]
    one, other = (b"".join(map(written, row)) for row in pair)
    assert one != other


@given(RECORDS, RECORDS)
def test_sums_of_parts_add_up_to_those_of_the_whole(one: list, other: list) -> None:  # type: ignore[type-arg]
    assert table_sums(table_of(one)) + table_sums(table_of(other)) == table_sums(table_of(one + other))


def test_rows_of_other_columns_do_not_add_up() -> None:
    with pytest.raises(SchemaError, match="do not add up"):
        table_sums(pa.table({"a": [1]})) + table_sums(pa.table({"b": [1]}))


def test_names_and_kinds_are_part_of_the_content() -> None:
    digests = {
        table_sums(table).content_digest()
        for table in (
            pa.table({"a": [1], "b": [0]}),
            pa.table({"a": [0], "b": [1]}),
            pa.table({"a": [True], "b": [False]}),
            pa.table({"A": [1], "b": [0]}),
            pa.table({"a": [1, 1], "b": [0, 0]}),
        )
    }
    assert len(digests) == 5


def test_encoding_chunks_and_narrow_types_do_not_matter() -> None:
    plain = pa.table({"t": ["a", "b", "a"], "n": pa.array([1, 2, 3], pa.int64())})
    other = pa.table({"t": plain["t"].dictionary_encode(), "n": plain["n"].cast(pa.int8())})
    pieces = pa.concat_tables([other.slice(0, 1), other.slice(1)])
    assert table_sums(plain) == table_sums(other) == table_sums(pieces)


def test_the_content_digest_of_a_small_table_stays_what_it_is() -> None:
    """The text of a row, the sums and the content are a published format."""
    table = pa.table({"name": ["Ada", None], "born": [datetime.date(1815, 12, 10), None], "x": [0.5, 2.0]})
    sums = table_sums(table)
    assert sums.content_digest() == "sfumato-content-1:556bc2195d841162dd2964800ced033ffe55370898f2422f472da92e6059a414"
    assert (
        sums.fingerprint(OwnerKey(bytes(32)))
        == "sfumato-fingerprint-2:99b313c17f0967f150f27bf485834997525a1e83b80bf8b9e39385c677b0c27b"
    )
    assert sums.fingerprint(OwnerKey(bytes(32))) == sums.fingerprint(OwnerKey(bytes(32)).derive("fingerprint"))
    assert sums.fingerprint(OwnerKey(bytes(31) + b"1")) != sums.fingerprint(OwnerKey(bytes(32)))


def test_what_engines_do_not_hold_alike_is_refused_by_name() -> None:
    fine = pa.table({"at": pa.array([1], pa.timestamp("ns")), "many": pa.array([[1]]), "n": [1]})
    with pytest.raises(Unsupported) as refused:
        table_sums(fine)
    assert "'at' has moments finer than a microsecond" in str(refused.value)
    assert "'many' has the type list" in str(refused.value)
    assert table_sums(pa.table({"at": pa.array([1000], pa.timestamp("ns"))})).rows == 1
    with pytest.raises(MissingColumn, match="no column 'zip'"):
        row_sums(MemoryRelation(fine), ["n", "zip"])
    with pytest.raises(Unsupported, match="without columns"):
        table_sums(pa.table({}))


def test_postgresql_keeps_the_digest_apart_from_where_it_is_used() -> None:
    """It would write the digest out in each of the four sums, and compute it four times."""
    from sfumato.engines.sql.compile import PhysicalTable, compile_plan

    plan = digest_plan(Scan(ROWS, (Field("x", "integer"),)))
    statements = {engine: compile_plan(plan, engine, {ROWS: PhysicalTable(("rows",))}).sql for engine in ("postgres", "duckdb")}
    assert "OFFSET 0) AS" in statements["postgres"]
    assert "OFFSET" not in statements["duckdb"]


def test_expressions_refuse_what_they_have_no_value_for() -> None:
    with pytest.raises(Unsupported, match="at least one column"):
        RowDigest(()).kind(())
    with pytest.raises(Unsupported, match="parts 0 to 3"):
        Limb(Reference("x"), 4).kind("string")
    with pytest.raises(Unsupported, match="Limb does not apply to an integer"):
        Limb(Reference("x"), 0).kind("integer")
