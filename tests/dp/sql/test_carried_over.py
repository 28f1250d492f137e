"""Naming a unit later, from question to certificate: nothing is forgotten, and what is not covered is said."""

from __future__ import annotations

from pathlib import Path

import pytest

import sfumato as sf
from sfumato.core.errors import BudgetRefused
from sfumato.ledger import LossAmount
from sfumato.workflow.publishing.publish import publish
from tests.dp.sql.test_budget_unit import COUNT, HISTOGRAM, clinic

SAID = "not covered: ε = 0.1 was charged earlier on this data set for one record added or removed"


def test_the_advice_of_a_refusal_carries_over_what_was_spent(tmp_path: Path) -> None:
    where = tmp_path / "ledger.db"
    sf.Session(clinic(), ledger=where, budget=sf.PureDP(1)).sql(COUNT, epsilon="0.1")
    later = sf.Session(clinic(), ledger=where, unit="patient", max_rows=1)
    with pytest.raises(BudgetRefused, match="sfumato ledger unit clinic --unit patient --rows-per-unit MOST") as refusal:
        later.sql(COUNT, epsilon="0.1")
    assert "dataset id" not in str(refusal.value)
    with sf.Ledger.open(where) as ledger:
        ledger.change_unit("clinic", "patient", rows_per_unit=8)
    answer = later.sql(COUNT, epsilon="0.1")
    assert later.remaining() == LossAmount.pure("0.1") and not any("not covered" in note for note in answer.explanation.notes)
    with pytest.raises(BudgetRefused, match="protects one patient, and this would protect one record"):
        sf.Session(clinic(), ledger=where).sql(COUNT, epsilon="0.2")  # finer than what was measured: a new charge


def test_an_unknown_maximum_is_said_by_everything_that_follows(tmp_path: Path) -> None:
    where = tmp_path / "ledger.db"
    sf.Session(clinic(), ledger=where, budget=sf.PureDP(1)).sql(COUNT, epsilon="0.1")
    opened_before = sf.Session(clinic(), ledger=where, unit="patient", max_rows=1)
    with sf.Ledger.open(where) as ledger:
        ledger.change_unit("clinic", "patient")
    for session in (opened_before, sf.Session(clinic(), ledger=where, unit="patient", max_rows=1)):
        assert SAID in str(session.explain(COUNT, epsilon="0.1"))
        assert SAID in str(session.cost(COUNT, within=50))
        answer = session.sql(COUNT, epsilon="0.1")
        assert any(SAID in note for note in answer.explanation.notes)
        made = session.release(HISTOGRAM)
        for outcome in (answer.outcome, made):
            for ledger in (None, session.ledger):
                certificate = publish(outcome, ledger=ledger).certificate
                assert sum(SAID in notice for notice in certificate.notices) == 1
            assert SAID[1:] in publish(outcome).card()
    with sf.Ledger.open(where) as ledger:
        ledger.change_unit("clinic", "patient", rows_per_unit=2)
        kept = publish(made, ledger=ledger).certificate.notices
        assert any(SAID in notice for notice in kept), "it was not covered when it was paid for"
    assert "not covered" not in str(opened_before.explain(COUNT, epsilon="0.1"))


def test_what_is_published_verifies_with_such_a_notice(tmp_path: Path) -> None:
    where = tmp_path / "ledger.db"
    sf.Session(clinic(), ledger=where, budget=sf.PureDP(1)).sql(COUNT, epsilon="0.1")
    with sf.Ledger.open(where) as ledger:
        ledger.change_unit("clinic", "patient")
    session = sf.Session(clinic(), ledger=where, unit="patient", max_rows=1)
    publish(session.release(HISTOGRAM), ledger=session.ledger).save(tmp_path / "out")
    assert sf.verify(tmp_path / "out", ledger=where).holds
