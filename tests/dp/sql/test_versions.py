"""Data that change under a declared version: the owner is told, the analyst sees what was shown before, the budget stays."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.errors import SfumatoError
from sfumato.ledger import LossAmount
from sfumato.ledger.versions import outdated

SCHEMA: dict[str, Any] = {
    "dataset": "visits",
    "columns": {"ward": {"type": "string", "domain": ["a", "b"]}, "age": {"type": "integer", "bounds": [0, 120]}},
}
COUNT = "SELECT COUNT(*) AS n FROM visits"


def table(rows: int, **columns: Any) -> pa.Table:
    return pa.table({"ward": [f"{'ab'[row % 2]}" for row in range(rows)], "age": [row % 90 for row in range(rows)], **columns})


def visits(rows: int, **columns: Any) -> sf.Microdata:
    return sf.read(table(rows, **columns), schema=SCHEMA)


def states(where: Path) -> list[tuple[str, str]]:
    with sf.Ledger.open(where) as ledger:
        assert ledger.verify().ok
        return [(each.version, each.state) for each in ledger.versions("visits")]


def test_a_table_that_grew_is_noted_for_the_owner_and_shown_to_nobody_else(tmp_path: Path) -> None:
    where = tmp_path / "ledger.db"
    first = sf.Session(visits(100), ledger=where, budget=sf.PureDP(10)).sql(COUNT, epsilon=5)
    assert states(where) == [("", "first seen")]
    later = sf.Session(visits(5000), ledger=where).sql(COUNT, epsilon=5)
    assert later.repeated and later.table.equals(first.table), "what was shown before, at no cost"
    assert later.explanation == first.explanation and dict(later.outcome.details) == dict(first.outcome.details)
    assert states(where) == [("", "first seen"), ("", "changed")]
    renewed = sf.Session(visits(5000), ledger=where, version="March").sql(COUNT, epsilon=5)
    assert not renewed.repeated and abs(renewed.table.column("n")[0].as_py() - 5000) < 100
    with sf.Ledger.open(where) as ledger:
        assert ledger.remaining("visits", "analyst") == LossAmount.pure(0), "one budget for all versions"
        assert [each.worrying for each in ledger.versions("visits")] == [False, True, False]


def test_the_same_data_are_the_same_whatever_their_order_and_engine(tmp_path: Path) -> None:
    where = tmp_path / "ledger.db"
    rows = table(200)
    pq.write_table(rows, tmp_path / "visits.parquet")
    for data in (
        sf.read(rows, schema=SCHEMA),
        sf.read(rows.take(list(range(199, -1, -1))), schema=SCHEMA),
        sf.read(tmp_path / "visits.parquet", schema=SCHEMA, engine="duckdb"),
    ):
        sf.Session(data, ledger=where, budget=sf.PureDP(1))
    assert states(where) == [("", "first seen")]


def test_going_back_is_a_change_too_and_each_is_entered_once(tmp_path: Path) -> None:
    where = tmp_path / "ledger.db"
    for rows in (100, 100, 101, 101, 100):
        sf.Session(visits(rows), ledger=where, budget=sf.PureDP(1))
    assert states(where) == [("", "first seen"), ("", "changed"), ("", "changed")]


def test_only_another_version_ends_the_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = tmp_path / "ledger.db"

    def asked_for() -> list[str]:
        with sf.Ledger.open(where) as ledger:
            return outdated(ledger.versions("visits"))

    for rows in (100, 101):
        sf.Session(visits(rows), ledger=where, budget=sf.PureDP(1))
    assert asked_for() == [""]
    sf.Session(visits(101), ledger=where, digest=False)
    assert asked_for() == [""]
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("SFUMATO_KEY", str(tmp_path / "other.key"))
        sf.Session(visits(101), ledger=where)
    assert states(where)[-2:] == [("", "not taken"), ("", "not comparable")] and asked_for() == [""]
    sf.Session(visits(101), ledger=where, version="2", digest=False)
    assert asked_for() == []
    sf.Session(visits(102), ledger=where)
    assert asked_for() == [""]


def test_other_columns_and_other_keys_are_told_apart_from_changed_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = tmp_path / "ledger.db"
    sf.Session(visits(100), ledger=where, budget=sf.PureDP(1))
    sf.Session(visits(100, floor=[1] * 100), ledger=where)
    monkeypatch.setenv("SFUMATO_KEY", str(tmp_path / "other.key"))
    for _ in range(2):
        sf.Session(visits(100), ledger=where)
    monkeypatch.undo()
    sf.Session(visits(100, floor=[1] * 100), ledger=where)
    assert [state for _, state in states(where)] == ["first seen", "other columns", "not comparable"]


def test_the_owner_can_leave_it_out_and_that_is_noted(tmp_path: Path) -> None:
    where = tmp_path / "ledger.db"
    for rows in (100, 200):
        sf.Session(visits(rows), ledger=where, budget=sf.PureDP(1), digest=False)
    assert states(where) == [("", "not taken")]


def test_every_table_of_a_session_is_noted_by_its_name(tmp_path: Path) -> None:
    where = tmp_path / "ledger.db"
    sf.Session({"old": visits(10), "new": visits(20)}, ledger=where, budget=sf.PureDP(1))
    sf.Session({"old": visits(10), "new": visits(21)}, ledger=where)
    with sf.Ledger.open(where) as ledger:
        found = [(each.table, each.state) for each in ledger.versions("visits")]
    assert found == [("old", "first seen"), ("new", "first seen"), ("new", "changed")]


def test_neither_values_nor_counts_nor_the_key_are_in_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_KEY", str(tmp_path / "owner.key"))
    where = tmp_path / "ledger.db"
    data = sf.read(pa.table({"ward": ["canary-7319"] * 4321, "age": [7] * 4321}), schema=SCHEMA)
    sf.Session(data, ledger=where, budget=sf.PureDP(1))
    with sf.Ledger.open(where) as ledger:
        payload = ledger.entries("visits", "version")[0].payload
    secret = (tmp_path / "owner.key").read_text().split()[1]
    stored = b"".join(file.read_bytes() for file in tmp_path.glob("ledger.db*"))
    assert set(payload) == {"version", "table", "how", "digest", "columns", "key"} and payload["how"] == "every row"
    assert b"canary" not in stored and secret.encode() not in stored
    assert b"4321" not in re.sub(rb"[0-9a-f]{16,}", b"", stored)  # a digest may hold any digits by chance
    monkeypatch.setenv("SFUMATO_KEY", str(tmp_path / "other.key"))
    sf.Session(data, ledger=tmp_path / "second.db", budget=sf.PureDP(1))
    with sf.Ledger.open(tmp_path / "second.db") as ledger:
        assert ledger.entries("visits", "version")[0].payload["digest"] != payload["digest"]


class Unreadable:
    """A relation whose rows cannot be read, with a value in the reason."""

    engine = "memory"

    def __init__(self, relation: Any) -> None:
        self._relation = relation

    def __getattr__(self, name: str) -> Any:
        return getattr(self._relation, name)

    def batches(self, columns: Any = None) -> Any:
        raise ValueError("canary-7319")


def test_what_goes_wrong_is_noted_and_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    where = tmp_path / "ledger.db"
    data = visits(50)
    sf.Session(replace(data, relation=Unreadable(data.relation)), ledger=where, budget=sf.PureDP(1))  # type: ignore[arg-type]
    (tmp_path / "locked.key").write_text("no key")
    monkeypatch.setenv("SFUMATO_KEY", str(tmp_path / "locked.key"))
    sf.Session(data, ledger=where).sql(COUNT, epsilon=1)
    assert states(where) == [("", "not taken")]


def test_the_digest_changes_neither_refusals_nor_what_questions_cost(tmp_path: Path) -> None:
    told = []
    for name, sizes in (("same", (100, 100)), ("grown", (100, 5000))):
        where = tmp_path / f"{name}.db"
        for rows in sizes:
            session = sf.Session(visits(rows), ledger=where, budget=sf.PureDP(1))
            try:
                session.sql("SELECT AVG(nothing) FROM visits", epsilon=1)
            except SfumatoError as refusal:
                told.append((name, str(refusal), str(session.explain(COUNT, epsilon=1)), str(session.remaining())))
    assert {rest for _, *rest in told for rest in [tuple(rest)]} == {tuple(told[0][1:])}


def test_a_demonstration_and_a_session_without_a_ledger_note_nothing(tmp_path: Path) -> None:
    sf.Session(visits(10), ledger=tmp_path / "ledger.db", budget=sf.PureDP(1), seed=1).sql(COUNT, epsilon=1)
    assert states(tmp_path / "ledger.db") == []
    sf.Session(visits(10), budget=sf.PureDP(1)).sql(COUNT, epsilon=1)


@pytest.mark.postgres
def test_a_database_counts_and_adds_up_where_the_rows_are(postgres_url: str, tmp_path: Path) -> None:
    import psycopg

    where = tmp_path / "ledger.db"
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute("DROP TABLE IF EXISTS digested")
        server.execute("CREATE TABLE digested (ward text, age bigint)")
        server.execute("INSERT INTO digested SELECT 'a', i FROM generate_series(1, 100) i")
        try:
            for change in ("SELECT 1", "UPDATE digested SET age = age + 1 WHERE age = 5", "INSERT INTO digested VALUES ('b', 1)"):
                server.execute(change)
                data = sf.read(postgres_url, schema=SCHEMA, table="digested")
                sf.Session(data, ledger=where, budget=sf.PureDP(1))
                sf.Session(data, ledger=where)
        finally:
            server.execute("DROP TABLE digested")
    assert [state for _, state in states(where)] == ["first seen", "changed", "changed"]
    with sf.Ledger.open(where) as ledger:
        assert {each.how for each in ledger.versions("visits")} == {"counts and sums"}


def test_a_version_is_a_text() -> None:
    with pytest.raises(SfumatoError, match="version is a text"):
        sf.Session(visits(3), budget=sf.PureDP(1), version=4)  # type: ignore[arg-type]
