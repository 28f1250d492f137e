"""A budget is about one kind of unit: sessions that protect different ones cannot share it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import BudgetRefused, ParameterError
from sfumato.ledger import LossAmount, Protected

SCHEMA = {
    "dataset": "clinic",
    "columns": {
        "patient": {"type": "string"},
        "household": {"type": "string"},
        "ward": {"type": "string", "domain": ["a", "b"]},
    },
}
VISITS = [("p1", "h1", "a"), ("p1", "h1", "b"), ("p2", "h1", "a"), ("p3", "h2", "b")]
COUNT = "SELECT COUNT(*) AS n FROM clinic"
HISTOGRAM = sf.dp.PrivateHistogram(columns=("ward",), epsilon="0.1", max_rows=1)


def clinic(rows: list[tuple[str, str, str]] = VISITS, **changes: Any) -> sf.Microdata:
    names = ("patient", "household", "ward")
    return sf.read(pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)}), schema={**SCHEMA, **changes})


def question(session: sf.Session) -> None:
    session.sql(COUNT, epsilon="0.1")


def artefact(session: sf.Session) -> None:
    session.release(HISTOGRAM)


@pytest.mark.parametrize("spend", [question, artefact])
@pytest.mark.parametrize(
    ("first", "second"), [("patient", None), (None, "patient"), ("patient", "household"), ("household", "patient")]
)
def test_a_session_about_another_unit_is_refused_and_charges_nothing(
    tmp_path: Path, spend: Callable[[sf.Session], None], first: str | None, second: str | None
) -> None:
    where = tmp_path / "ledger.db"
    spend(sf.Session(clinic(), max_rows=1, max_groups=1, ledger=where, unit=first, budget=sf.PureDP(1)))
    other = sf.Session(clinic(), max_rows=1, max_groups=1, ledger=where, unit=second, budget=sf.PureDP(1))
    for again in (question, artefact):
        with pytest.raises(BudgetRefused) as refusal:
            again(other)
        assert f"protects one {first or 'record'}, and this would protect one {second or 'record'}" in str(refusal.value)
        assert refusal.value.exit_code == 3
    assert other.remaining() == LossAmount.pure("0.9")
    with sf.Ledger.open(where) as ledger:
        assert [spent.protected for spent in ledger.spends()] == [Protected(first or "record")] and ledger.verify().ok


@pytest.mark.parametrize("unit", [None, "patient"])
def test_sessions_about_the_same_unit_share_the_budget(tmp_path: Path, unit: str | None) -> None:
    for spend in (question, artefact):
        spend(sf.Session(clinic(), max_rows=1, max_groups=1, ledger=tmp_path / "ledger.db", unit=unit, budget=sf.PureDP(1)))
    left = sf.Session(clinic(), max_rows=1, max_groups=1, ledger=tmp_path / "ledger.db", unit=unit).remaining()
    assert left == LossAmount.pure("0.8")


def test_a_unit_in_the_schema_and_one_named_by_the_session_are_the_same(tmp_path: Path) -> None:
    columns = {**SCHEMA["columns"], "patient": {"type": "string", "role": "unit"}}  # type: ignore[dict-item]
    question(sf.Session(clinic(columns=columns), max_rows=1, max_groups=1, ledger=tmp_path / "ledger.db", budget=sf.PureDP(1)))
    artefact(sf.Session(clinic(), max_rows=1, max_groups=1, ledger=tmp_path / "ledger.db", unit="patient"))
    with pytest.raises(BudgetRefused, match="protects one patient"):
        question(sf.Session(clinic(), max_rows=1, max_groups=1, ledger=tmp_path / "ledger.db"))


def test_the_unit_that_the_owner_granted_binds_the_first_session(tmp_path: Path) -> None:
    with sf.Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.grant("clinic", "analyst", LossAmount.pure(1), unit="patient")
        for finer_or_coarser in (None, "household"):
            for spend in (question, artefact):
                with pytest.raises(BudgetRefused, match="protects one patient"):
                    spend(sf.Session(clinic(), max_rows=1, max_groups=1, ledger=ledger, unit=finer_or_coarser))
        assert ledger.spends() == []
        question(sf.Session(clinic(), max_rows=1, max_groups=1, ledger=ledger, unit="patient"))


def test_explaining_is_free_whatever_the_unit(tmp_path: Path) -> None:
    question(sf.Session(clinic(), max_rows=1, max_groups=1, ledger=tmp_path / "ledger.db", unit="patient", budget=sf.PureDP(1)))
    other = sf.Session(clinic(), max_rows=1, max_groups=1, ledger=tmp_path / "ledger.db")
    assert other.explain(COUNT, epsilon=1).unit == "record" and other.remaining() == LossAmount.pure("0.9")


def test_the_refusal_is_the_same_on_neighbouring_databases(tmp_path: Path) -> None:
    """Decided from query, schema and ledger alone: with a patient more, and with no rows at all."""
    told = set()
    for number, rows in enumerate((VISITS, [*VISITS, ("p4", "h3", "a")], VISITS[2:], [])):
        where = tmp_path / f"{number}.db"
        with sf.Ledger.open(where) as ledger:
            ledger.grant("clinic", "analyst", LossAmount.pure(1), unit="household")
        for spend in (question, artefact):
            with pytest.raises(BudgetRefused) as refusal:
                spend(sf.Session(clinic(rows), max_rows=1, max_groups=1, ledger=where, unit="patient"))
            told.add(str(refusal.value).replace(str(where), "LEDGER"))
    assert len(told) == 1


def test_an_artefact_about_replaced_records_does_not_share_a_budget_about_one_more_or_less(tmp_path: Path) -> None:
    replaced = sf.dp.PrivateHistogram(columns=("ward",), epsilon="0.1", neighbours="replace", max_rows=1)
    asked = sf.Session(clinic(), max_rows=1, max_groups=1, ledger=tmp_path / "ledger.db", budget=sf.PureDP(1))
    question(asked)
    with pytest.raises(BudgetRefused, match="one record added or removed, and this would be about one record replaced"):
        asked.release(replaced)
    assert asked.remaining() == LossAmount.pure("0.9")
    alone = sf.Session(clinic(dataset="other"), max_rows=1, max_groups=1, ledger=tmp_path / "ledger.db", budget=sf.PureDP(1))
    assert alone.release(replaced).claimed[0].neighbours == "replace"


def test_a_session_without_a_ledger_keeps_to_one_unit_and_relation_too() -> None:
    asked = sf.Session(clinic(), max_rows=1, max_groups=1, budget=sf.PureDP(1))
    question(asked)
    with pytest.raises(BudgetRefused, match="do not add up"):
        asked.release(sf.dp.PrivateHistogram(columns=("ward",), epsilon="0.1", neighbours="replace", max_rows=1))
    assert asked.remaining() == LossAmount.pure("0.9")
    tables = {
        name: sf.read(
            pa.table({unit: ["x"], "n": [1]}), schema={"dataset": "d", "columns": {unit: {"role": "unit", "type": "string"}}}
        )
        for name, unit in (("people", "person"), ("homes", "home"))
    }
    mixed = sf.Session(tables, max_rows=1, max_groups=1, budget=sf.PureDP(1))
    mixed.sql("SELECT COUNT(*) FROM people", epsilon="0.1")
    with pytest.raises(BudgetRefused, match="protects one person, and this would protect one home"):
        mixed.sql("SELECT COUNT(*) FROM homes", epsilon="0.1")


def test_a_column_called_record_is_no_name_for_a_unit() -> None:
    """Otherwise a budget for what has several rows could be spent row by row."""
    table = sf.read(pa.table({"record": ["a", "a"]}), schema={"dataset": "d", "columns": {"record": {"type": "string"}}})
    with pytest.raises(ParameterError, match="another name"):
        sf.Session(table, unit="record", budget=sf.PureDP(1))


def test_a_budget_stated_for_another_unit_than_the_session_is_refused(tmp_path: Path) -> None:
    for ledger in (None, tmp_path / "ledger.db"):
        with pytest.raises(ParameterError, match="stated for one household, and the session protects one patient"):
            sf.Session(clinic(), max_rows=1, max_groups=1, ledger=ledger, unit="patient", budget=sf.PureDP(1, unit="household"))
        question(
            sf.Session(clinic(), max_rows=1, max_groups=1, ledger=ledger, unit="patient", budget=sf.PureDP(1, unit="patient"))
        )
