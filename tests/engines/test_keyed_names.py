"""Pseudonyms computed by engines: those of `Pseudonyms`, and the key is in no statement, plan, log or event file."""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sfumato.anonymity.pseudonyms import Pseudonyms, with_pseudonyms
from sfumato.core.errors import MissingColumn, Unsupported
from sfumato.engines.class_queries import ROWS
from sfumato.engines.digests.keyed_names import KEYS, Base32, Naming, with_keyed_names
from sfumato.engines.expressions import Reference
from sfumato.engines.plan import Field, Scan
from sfumato.wire.keys import OwnerKey
from tests.engines.conftest import OpenTable
from tests.engines.tables import rows

KEY = OwnerKey(bytes(range(100, 132)))
PEOPLE = pa.table(
    {
        "name": ["Ada", "Ada", None, "", "Å", "a\u0301", "🙂" * 40, "tab\t'\"\\"],
        "number": pa.array([1, -1, 2**63 - 1, -(2**63), None, 0, 10, 1], pa.int64()),
        "member": [True, False, None, True, True, False, None, True],
        "born": pa.array([datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None, *[datetime.date(1815, 12, 10)] * 5]),
        "octets": pa.array([b"", b"\x00\xff", None, b"a", b"b", b"c", b"d", b"e"], pa.binary()),
        "kept": range(8),
    }
)
NAMED = ("name", "number", "member", "born", "octets")


def scanned(relation: Any) -> Scan:
    return Scan(ROWS, tuple(relation.fields.values()))


def named(**lengths: int) -> dict[str, Pseudonyms]:
    return {name: Pseudonyms(KEY, scope=name, length=lengths.get(name, 26)) for name in NAMED}


def expected(names: dict[str, Pseudonyms]) -> pa.Table:
    return pa.table({n: names[n].apply(c) if n in names else c for n, c in zip(PEOPLE.column_names, PEOPLE.columns, strict=True)})


def secrets() -> Iterator[str]:
    """The key and its blocks as somebody would find them in a text: hexadecimal, base 64, and lists of octets with and without
    signs; of each a part is enough."""
    key = KEY.derive("pseudonyms")
    for octets in (key, bytes(o ^ 0x36 for o in key), bytes(o ^ 0x5C for o in key)):
        part = octets[:12]
        yield part.hex()
        yield part.hex().upper()
        yield " ".join(f"{octet:02X}" for octet in part)
        yield base64.b64encode(part).decode()
        yield ", ".join(map(str, part))
        yield ",".join(str(octet - 256 if octet > 127 else octet) for octet in part)
        yield ", ".join(str(octet - 256 if octet > 127 else octet) for octet in part)
        yield "".join(f"\\{octet:03o}" for octet in part[:6])


def refuse_key_in(text: str) -> None:
    assert not [place for place, secret in enumerate(secrets()) if secret in text]


def test_every_engine_computes_the_pseudonyms_of_the_process(on_engine: OpenTable) -> None:
    relation: Any = on_engine(PEOPLE)
    names = named(name=16, number=51, born=27)
    plan, uploads = with_pseudonyms(scanned(relation), names)
    assert rows(relation.run(plan, uploads)) == rows(expected(names))


def test_a_keyed_name_is_what_the_definition_says() -> None:
    from sfumato.engines.memory import MemoryRelation

    for key in (b"", b"k" * 64, b"k" * 65):
        relation = MemoryRelation(pa.table({"id": ["Ada"]}))
        plan, uploads = with_keyed_names(scanned(relation), {"id": Naming(b"\x00p", 30)}, key)
        digest = hmac.digest(key, b"\x00pAda", hashlib.sha256)
        assert relation.run(plan, uploads).column("id").to_pylist() == [base64.b32encode(digest).decode().lower()[:30]]


def test_wide_numbers_are_named_by_their_digits() -> None:
    from sfumato.engines.duckdb.relation import run_in_process

    wide = pa.table({"id": pa.array([Decimal(10) ** 30, None], pa.decimal128(38, 0))})
    names = {"id": Pseudonyms(KEY, scope="id")}
    plan, uploads = with_pseudonyms(Scan("wide", (Field("id", "wide"),)), names)
    assert set(run_in_process(plan, {"wide": wide, **uploads}).column("id").to_pylist()) == {names["id"].of(10**30), None}


def test_without_columns_the_plan_stays_and_nothing_is_uploaded() -> None:
    plan = Scan(ROWS, (Field("id", "string"),))
    assert with_pseudonyms(plan, {}) == (plan, {})


def test_what_engines_write_in_different_ways_is_refused() -> None:
    plan = Scan(ROWS, (Field("x", "number"), Field("at", "datetime"), Field("id", "string")))
    names = {name: Pseudonyms(KEY, scope="s") for name in ("x", "at", "id")}
    with pytest.raises(Unsupported) as refused:
        with_pseudonyms(plan, names)
    assert "'x' is a number" in str(refused.value) and "'at' is a datetime" in str(refused.value)
    assert "'id'" not in str(refused.value)
    with pytest.raises(Unsupported, match="'id' has unicode_form"):
        with_pseudonyms(plan, {"id": Pseudonyms(KEY, scope="s", unicode_form="NFC")})
    with pytest.raises(Unsupported, match="one key"):
        with_pseudonyms(plan, {"id": names["id"], "x": Pseudonyms(OwnerKey(bytes(32)), scope="s")})
    with pytest.raises(MissingColumn, match="no column 'zip'"):
        with_pseudonyms(plan, {"zip": names["id"]})
    with pytest.raises(Unsupported, match="1 to 51"):
        Base32(Reference("id"), 52).kind("string")


def test_the_plan_as_a_value_does_not_hold_the_key() -> None:
    plan, uploads = with_pseudonyms(Scan(ROWS, (Field("id", "string"),)), {"id": Pseudonyms(KEY, scope="id")})
    refuse_key_in(repr(plan))
    assert any(secret in uploads[KEYS].column(1)[0].as_py().hex() for secret in secrets())  # the search would find it


@pytest.mark.postgres
def test_postgresql_logs_no_key_and_a_user_who_may_bring_no_table_is_refused(postgres_url: str) -> None:
    import psycopg

    from sfumato.engines.postgres.relation import PostgresRelation
    from sfumato.engines.write import write_table

    write_table(PEOPLE, postgres_url, table_name="named")
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        log = Path(owner.execute("SHOW data_directory").fetchone()[0]).parent  # type: ignore[index]
        owner.execute("ALTER SYSTEM SET log_statement = 'all'")
        owner.execute("ALTER SYSTEM SET log_min_duration_statement = 0")
        owner.execute("SELECT pg_reload_conf()")
        try:
            relation = PostgresRelation(postgres_url, "named")
            plan, uploads = with_pseudonyms(scanned(relation), named())
            assert relation.run(plan, uploads).num_rows == 8
            owner.execute("SELECT 'the end of the log'")
            written = "".join(path.read_text(errors="replace") for path in log.rglob("*") if path.is_file() and _is_log(path))
            assert "COPY" in written and "the end of the log" in written
            refuse_key_in(written)
            statistics = owner.execute("SELECT count(*) FROM pg_stats WHERE tablename LIKE 'sfumato_upload%'").fetchone()
            assert statistics == (0,)
        finally:
            owner.execute("ALTER SYSTEM RESET log_statement")
            owner.execute("ALTER SYSTEM RESET log_min_duration_statement")
            owner.execute("SELECT pg_reload_conf()")
        database = owner.execute("SELECT current_database()").fetchone()[0]  # type: ignore[index]
        owner.execute(f"REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC".encode())
        owner.execute("CREATE ROLE reader LOGIN")
        owner.execute("GRANT SELECT ON named TO reader")
        try:
            relation = PostgresRelation(postgres_url.replace("postgres:@", "reader:@"), "named")
            with pytest.raises(Unsupported, match="may not create temporary tables"):
                relation.run(plan, uploads)
        finally:
            owner.execute(f"GRANT TEMPORARY ON DATABASE {database} TO PUBLIC".encode())
            owner.execute("REVOKE ALL ON named FROM reader")
            owner.execute("DROP ROLE reader")


def _is_log(path: Path) -> bool:
    return path.suffix == ".log" or path.name.endswith("log")


_EVENTS = """
from sfumato.anonymity.pseudonyms import Pseudonyms, with_pseudonyms
from sfumato.engines.class_queries import ROWS
from sfumato.engines.sql.compile import compile_plan
from sfumato.engines.digests.keyed_names import KEYS
from sfumato.engines.spark.relation import SparkRelation, for_spark, spark_schema
from tests.engines.test_keyed_names import KEY, scanned
from tests.services import spark_session
with spark_session() as spark:
    if hasattr(spark, "_jvm"):
        spark.sparkContext.setLogLevel("INFO")
    frame = spark.range(50).selectExpr("id", "cast(id AS string) AS name")
    relation = SparkRelation(frame)
    names = {name: Pseudonyms(KEY, scope=name) for name in ("id", "name")}
    plan, uploads = with_pseudonyms(scanned(relation), names)
    assert set(relation.run(plan, uploads).column("name").to_pylist()) == {names["name"].of(place) for place in range(50)}
    keys = uploads[KEYS]
    brought = spark.createDataFrame(for_spark(keys), schema=spark_schema(keys))
    with relation._view(frame, frame.columns) as rows, relation._view(brought, keys.column_names, clean=True) as secret:
        answer = spark.sql(compile_plan(plan, "spark", {ROWS: rows, KEYS: secret}).sql)
        assert len(answer.collect()) == 50  # outside our questions, so that the log is on
        for mode in ("extended", "formatted", "codegen", "cost"):
            answer.explain(mode=mode)
print("ALL WAS ASKED")
"""


@pytest.mark.spark
@pytest.mark.slow
def test_spark_shows_no_key_in_plans_logs_and_events(tmp_path: Path) -> None:
    events, settings = tmp_path / "events", tmp_path / "conf"
    events.mkdir()
    settings.mkdir()
    logged = {"enabled": "true", "compress": "false", "dir": events.as_uri()}
    (settings / "spark-defaults.conf").write_text("".join(f"spark.eventLog.{name} {value}\n" for name, value in logged.items()))
    command = [sys.executable, "-c", _EVENTS]
    # a Connect server of its own, at a port that nobody has
    testing = {"SPARK_TESTING": "1"} if os.environ.get("SFUMATO_SPARK") == "connect" else {}
    environment = {**os.environ, **testing, "SPARK_CONF_DIR": str(settings)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0 and "ALL WAS ASKED" in done.stdout, done.stderr[-2000:]
    assert "LocalTableScan" in done.stdout
    written = "".join(path.read_text(errors="replace") for path in events.rglob("*") if path.is_file())
    assert "SparkListenerSQLExecutionStart" in written and "LocalTableScan" in written
    refuse_key_in(done.stdout + done.stderr)
    refuse_key_in(written)
