"""Claims and notices in the words of earlier versions ("one record more or less"): such folders are verified as before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.ledger.unit_changes import Uncovered
from sfumato.workflow.publishing.publish import publish
from tests.dp.sql.test_budget_unit import COUNT, HISTOGRAM, clinic
from tests.faults.forging import change


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A release made when these were the words, with a notice about what is not covered."""
    ledger = tmp_path / "ledger.db"
    sf.Session(clinic(), ledger=ledger, budget=sf.PureDP(1)).sql(COUNT, epsilon="0.1")
    with sf.Ledger.open(ledger) as book:
        book.change_unit("clinic", "patient")
    with pytest.MonkeyPatch.context() as earlier:
        earlier.setattr(LossGuarantee, "compared", LossGuarantee.formerly_compared)
        earlier.setattr(LossGuarantee, "claim", lambda loss: f"{loss._bound} with {loss.compared}")
        earlier.setattr(Uncovered, "__str__", lambda charges: charges.formerly)
        session = sf.Session(clinic(), ledger=ledger, unit="patient", max_rows=1)
        publish(session.release(HISTOGRAM), ledger=session.ledger).save(tmp_path / "out")
    return tmp_path / "out"


def test_a_folder_in_former_words_is_verified_with_its_ledger(folder: Path) -> None:
    text = (folder / "public" / "certificate.json").read_text()
    assert "as likely with one patient more or less" in text and "what that tells of one patient more or less" in text
    checked = sf.verify(folder, ledger=folder.parent / "ledger.db")
    assert checked.verdict == "keeps", checked.explain()


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("with one patient more or less", "with one record more or less"),
        ("with one patient more or less", "with one patient added or removed"),
        ('"neighbours": "one patient more or less"', '"neighbours": "one patient added or removed"'),
        ("e^0.1 times as likely with", "e^0.01 times as likely with"),
    ],
)
def test_former_words_are_taken_as_they_were_and_not_otherwise(folder: Path, said: str, instead: str) -> None:
    public = folder / "public"
    text = (public / "certificate.json").read_text()
    assert said in text
    change(public, lambda _: json.loads(text.replace(said, instead)))
    checked = sf.verify(folder, ledger=folder.parent / "ledger.db")
    assert checked.verdict == "does not keep" and "words do not say what its parameters mean" in checked.explain()
