"""Private artefacts: certified by their process, saved, verified from the files and against the ledger."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.certificate import Certificate
from sfumato.core.errors import InputError, ParameterError
from sfumato.core.guarantees.loss import ApproxDP, ConcentratedDP, LossGuarantee, PureDP, RenyiDP
from sfumato.core.outcome import Outcome
from sfumato.core.progress import Progress, silent
from sfumato.core.randomness import Randomness, default
from sfumato.data.microdata import Microdata
from sfumato.dp.algorithms.base import Algorithm
from sfumato.dp.outcomes import private_outcome
from sfumato.dp.session import Session
from sfumato.ledger import Charge, Ledger, LossAmount
from sfumato.workflow.publishing.publish import publish
from sfumato.workflow.publishing.signing import new_key
from tests.faults.forging import change
from tests.workflow.people import people

ROWS = pa.table({"sex": ["f", "m", None], "count": [301, -2, 0], "share": [0.5, 0.25, None], "known": [True, False, None]})


@dataclass(frozen=True)
class Pretended(Algorithm):
    """Stands for any algorithm: what it returns is said beforehand."""

    result: Any = dataclasses.field(default_factory=lambda: ROWS)
    epsilon: str = "0.25"

    def loss(self) -> LossGuarantee:
        return PureDP(self.epsilon)

    def parameters(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon}

    def run(self, data: Microdata, *, randomness: Randomness | None = None, progress: Progress = silent) -> Outcome[Any]:
        return private_outcome(
            self.result,
            self.loss(),
            {"name": "Pretended", "epsilon": self.epsilon},
            argument="nothing is computed from the data",
            randomness=randomness or default(),
            owner={"quality": 0.75, "secret_count": 12345, "table": pa.table({"a": [1, 2]})},
            cells=3,
        )


@pytest.fixture
def book(tmp_path: Path) -> str:
    place = str(tmp_path / "ledger.db")
    with Ledger.open(place) as ledger:
        ledger.grant("clinic", "ann", LossAmount.pure(1))
    return place


def released(book: str, result: Any = ROWS, **options: Any) -> Outcome[Any]:
    return Session(people(50), ledger=book, analyst="ann", **options).release(Pretended(result), for_owner=True)


def edited(folder: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    change(folder / "public", lambda content: (edit(content), None)[1])


def checked(folder: Path, **options: Any) -> tuple[bool | None, str]:
    [finding] = [finding for finding in sf.verify(folder, **options).findings if finding.claim]
    return finding.passed, finding.text


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_table_is_published_and_its_charge_found_in_the_ledger(tmp_path: Path, book: str, format: Any) -> None:
    made = publish(released(book))
    folder = made.save(tmp_path / "out", format)
    assert {path.name for path in (folder / "public").iterdir()} == {f"data.{format}", "card.html", "certificate.json"}
    certificate = Certificate.from_mapping(json.loads((folder / "public" / "certificate.json").read_text()))
    [claim] = certificate.claims
    assert (claim.guarantee, claim.evidence, claim.unit, claim.measured) == ("PureDP", "process", "record", None)
    assert claim.neighbours == "one record added or removed" and claim.argument == "nothing is computed from the data"
    assert claim.parameters == {"epsilon": "1/4", "neighbours": "add_remove", "unit": "record"}
    assert certificate.private and certificate.ledger == claim.ledger_entry and made.entered
    found = sf.verify(folder, ledger=book)
    assert found.holds and "charged ε = 0.25" in found.explain()
    alone = sf.verify(folder)
    assert alone.verdict == "rests on its maker" and alone.accepted and not alone.holds
    assert alone.not_checked and "pass the ledger" in alone.explain()
    assert "FAILED" not in alone.explain()


@pytest.mark.parametrize("result", [{"centres": [[1.5, 2], [3, 4]], "k": 2}, ["a", "ü"], 7])
def test_plain_data_is_published_as_json(tmp_path: Path, book: str, result: Any) -> None:
    folder = publish(released(book, result)).save(tmp_path / "out")
    assert json.loads((folder / "public" / "result.json").read_text()) == result
    assert sf.verify(folder, ledger=book).holds
    with Ledger.open(book) as ledger:
        assert sf.verify(folder, ledger=ledger).holds


def test_what_was_computed_without_noise_stays_with_the_owner(tmp_path: Path, book: str) -> None:
    folder = publish(released(book)).save(tmp_path / "out")
    public = "".join(path.read_text() for path in (folder / "public").iterdir() if path.suffix != ".parquet")
    assert "12345" not in public and "12,345" not in public and "secret_count" not in public
    assert json.loads((folder / "owner" / "quality.json").read_text())["secret_count"] == 12345
    assert "12,345" in (folder / "owner" / "card.html").read_text()
    assert (folder / "owner").stat().st_mode & 0o077 == 0
    assert not [path for path in (folder / "owner").iterdir() if path.stat().st_mode & 0o077]


def test_without_being_asked_for_it_does_not_come_out_of_a_session_at_all(tmp_path: Path, book: str) -> None:
    outcome = Session(people(50), ledger=book, analyst="ann").release(Pretended())
    assert "12345" not in repr(dict(outcome.details)) and outcome.details["cells"] == 3
    folder = publish(outcome).save(tmp_path / "out")
    assert json.loads((folder / "owner" / "quality.json").read_text()) == {}


def test_the_quality_of_a_synthetic_table_is_drawn_for_its_owner(tmp_path: Path) -> None:
    schema = {"dataset": "d", "columns": {name: {"type": "string", "domain": ["a", "b"]} for name in "xyz"}}
    table = pa.table({name: ["a", "b"] * 20 for name in "xyz"})
    session = sf.Session(sf.read(table, schema=schema), budget=sf.ConcentratedDP(1))
    folder = publish(session.release(sf.dp.Mst(rho="0.5"), for_owner=True)).save(tmp_path / "out")
    assert (folder / "owner" / "quality.svg").read_text().startswith(("<svg", "<?xml"))
    assert not (folder / "public" / "quality.svg").exists()


def test_a_seeded_run_is_a_demonstration_and_never_private(tmp_path: Path, book: str) -> None:
    made = publish(released(book, seed=7))
    assert not made.certificate.private and not made.certificate.holds and "demonstration" in repr(made)
    assert any("seed" in notice for notice in made.certificate.notices)
    folder = made.save(tmp_path / "out")
    card = (folder / "public" / "card.html").read_text()
    assert "A demonstration, not a private release" in card and "does not hold" in card
    passed, text = checked(folder, ledger=book)
    assert passed is None and "seeded" in text and not sf.verify(folder, ledger=book).holds

    def pretend(content: dict[str, Any]) -> None:
        content["claims"][0]["holds"] = True

    edited(folder, pretend)
    assert checked(folder, ledger=book)[0] is False


def test_the_card_says_the_promise_the_unit_and_what_is_not_promised(book: str) -> None:
    card = publish(released(book)).card()
    for text in (
        "Adding or removing one record makes no result more than 1.29 times as likely, so that even odds (1 to 1) become at most "
        "1.29 to 1 (ε = 0.25, δ = 0).",
        "can reach odds of 1.29 to 1 at the most, a chance of 56.3\u00a0%".replace("\u00a0", " "),
        "Unit: record. Compared are data sets with one record added or removed.",
        "knows everything, including all other records and the algorithm",
        "What is not promised",
        "Losses add up",
        "What is true of many can still be learnt",
        "Nothing is computed from the data",
    ):
        assert text in card, text
    for text in ("quasi-identifier", "k-anonymity", "No earlier release"):
        assert text not in card, text
    approximate = Outcome(ROWS, (ApproxDP(1, "1e-6"),), {"name": "x"}, {"private": True})
    assert "of events that have a chance of δ or less the bound says nothing" in publish(approximate).card()
    assert "depends on the δ that one is ready to add" in publish(Outcome(1, (ConcentratedDP(1),), {}, {"private": True})).card()


def test_an_outcome_that_was_not_charged_says_so_and_does_not_verify(tmp_path: Path, book: str) -> None:
    made = publish(Pretended().run(people(10)), dataset="clinic")
    assert not made.entered and made.certificate.ledger == "not entered"
    assert any("not charged" in notice for notice in made.certificate.notices)
    folder = made.save(tmp_path / "out")
    assert "was not charged to a ledger" in (folder / "public" / "card.html").read_text()
    passed, text = checked(folder, ledger=book)
    assert passed is False and "names no ledger entry" in text


def other_loss(content: dict[str, Any]) -> None:
    claim = content["claims"][0]
    claim["parameters"]["epsilon"] = "1/10"
    claim["promised"] = PureDP("1/10").claim()


def other_words(content: dict[str, Any]) -> None:
    content["claims"][0]["promised"] = "nobody will ever know"


def other_unit(content: dict[str, Any]) -> None:
    content["claims"][0]["unit"] = "person"


def _stated_for(content: dict[str, Any], **about: Any) -> None:
    """The claim, in numbers and words alike, for another unit or relation than was charged."""
    claim, stated = content["claims"][0], PureDP("1/4", **about)
    claim["parameters"].update(about)
    claim.update(promised=stated.claim(), unit=stated.unit, neighbours=stated.compared)


def coarser_unit(content: dict[str, Any]) -> None:
    _stated_for(content, unit="person")


def other_neighbours(content: dict[str, Any]) -> None:
    _stated_for(content, neighbours="replace")


def other_entry(content: dict[str, Any]) -> None:
    content["claims"][0]["ledger_entry"] = "0" * 64


def no_entry(content: dict[str, Any]) -> None:
    content["claims"][0]["ledger_entry"] = None


def odd_entry(content: dict[str, Any]) -> None:
    content["claims"][0]["ledger_entry"] = "entered, really"


def other_dataset(content: dict[str, Any]) -> None:
    content["dataset"] = content["schema"]["dataset"] = "another"


def odd_parameters(content: dict[str, Any]) -> None:
    content["claims"][0]["parameters"] = {"epsilon": "1e999999999"}


def hostile_parameters(content: dict[str, Any]) -> None:
    content["claims"][0]["parameters"] = {"epsilon": [1], "__class__": "x"}


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (other_loss, "not what the certificate claims"),
        (other_words, "do not say what its parameters mean"),
        (other_unit, "do not say what its parameters mean"),
        (coarser_unit, "charged for one record added or removed, and the certificate claims it for one person added or removed"),
        (other_neighbours, "charged for one record added or removed, and the certificate claims it for one record replaced"),
        (other_entry, "not confirmed by the ledger"),
        (no_entry, "names no ledger entry"),
        (odd_entry, "not the hash of an entry"),
        (other_dataset, "another dataset"),
        (odd_parameters, "cannot be read"),
        (hostile_parameters, "cannot be read"),
    ],
)
def test_a_changed_claim_is_found(tmp_path: Path, book: str, edit: Any, text: str) -> None:
    folder = publish(released(book)).save(tmp_path / "out")
    edited(folder, edit)
    passed, found = checked(folder, ledger=book)
    assert passed is False and text in found, found


def test_one_charge_pays_for_one_result(tmp_path: Path, book: str) -> None:
    first = released(book)
    other = dataclasses.replace(released(book, {"k": 1}), details=first.details)
    folder = publish(other).save(tmp_path / "out")
    passed, text = checked(folder, ledger=book)
    assert passed is False and "another result" in text


def test_what_is_no_outcome_or_was_paid_for_elsewhere_is_not_published(book: str) -> None:
    session = Session(people(50), ledger=book, analyst="ann")
    for wrong in (None, ROWS, "histogram"):
        with pytest.raises(ParameterError, match="what a private method returned"):
            publish(wrong)  # type: ignore[call-overload]
    outcome = session.release(Pretended())
    with pytest.raises(ParameterError, match="another data set"):
        publish(outcome, ledger=session.ledger, dataset="clinic-2025")
    assert publish(outcome, ledger=session.ledger).entered


def test_an_entry_that_is_no_charge_does_not_count(tmp_path: Path, book: str) -> None:
    with Ledger.open(book) as ledger:
        note = ledger.note("clinic", {}, token="n")
        open_charge = ledger.reserve("clinic", "ann", Charge(LossAmount.pure("0.25")), "q")
        [spend] = ledger.spends()
    for number, entry in enumerate((note.hash, spend.reserved_by)):
        folder = publish(Pretended().run(people(10)), dataset="clinic", ledger_entry=entry).save(tmp_path / str(number))
        passed, text = checked(folder, ledger=book)
        assert passed is False and "no answered charge" in text
    assert open_charge.answer is None


def test_files_and_signature_are_checked_as_for_any_release(tmp_path: Path, book: str) -> None:
    key = tmp_path / "owner.key"
    _, public_key = new_key(key)
    folder = publish(released(book, {"k": 1})).save(tmp_path / "out", sign=key)
    assert sf.verify(folder, ledger=book, public_key=public_key).holds
    (folder / "public" / "result.json").write_text('{"k": 2}')
    assert "is not the one that was certified" in sf.verify(folder, ledger=book).explain()
    edited(folder, lambda content: content["files"].pop("card.html"))
    assert not sf.verify(folder, ledger=book).holds


def test_a_hostile_result_gets_a_verdict(tmp_path: Path, book: str) -> None:
    import hashlib

    folder = publish(released(book, {"k": 1})).save(tmp_path / "out")
    for number, content in enumerate((b"{", b"[" * 500, b'{"a": NaN}', b"\xff")):
        (folder / "public" / "result.json").write_bytes(content)
        told = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content), "rows": None}
        edited(folder, lambda certificate, told=told: certificate["files"].update({"result.json": told}))  # type: ignore[misc]
        assert "the result" in sf.verify(folder, ledger=book).explain(), number


def test_a_class_guarantee_cannot_hide_behind_plain_data(tmp_path: Path, book: str) -> None:
    folder = publish(released(book, {"k": 1})).save(tmp_path / "out")

    def claim_more(content: dict[str, Any]) -> None:
        more = {"guarantee": "KAnonymity", "parameters": {"k": 5}, "evidence": "output"}
        content["claims"].append({**content["claims"][0], **more})

    edited(folder, claim_more)
    assert "partly about rows and partly about a process" in sf.verify(folder, ledger=book).explain()


def test_entered_as_a_release_it_is_listed_and_not_intersected(book: str) -> None:
    with Ledger.open(book) as ledger:
        made = publish(released(book), ledger=ledger)
        [entry] = ledger.releases("clinic")
        assert made.certificate.ledger == entry.hash and entry.payload["evidence"] == "process"
        assert entry.payload["charged"] == made.certificate.claims[0].ledger_entry
        assert made.certificate.claims[0].ledger_entry != entry.hash
        again = publish(dataclasses.replace(released(book), details=made_details(made)), ledger=ledger)
        assert again.certificate.ledger == entry.hash, "the same release is entered once"
        table = sf.protect(people(), [sf.KAnonymity(5)], sf.Lattice(suppression=0.05), ledger=ledger)
        assert table.certificate.composition["earlier_releases"] == 0
        assert table.certificate.composition["made_with_noise"] == 1
        assert "1 earlier result of this dataset made with noise" in table.certificate.composition["finding"]


def made_details(made: sf.Release[Any]) -> dict[str, Any]:
    return {"private": True, "dataset": "clinic", "ledger_entry": made.certificate.claims[0].ledger_entry}


@pytest.mark.parametrize("result", [{"a": object()}, {"a": b"x"}, {1, 2}])
def test_a_result_that_is_neither_table_nor_plain_data_is_refused(tmp_path: Path, result: Any) -> None:
    outcome: Outcome[Any] = Outcome(result, (PureDP(1),), {"name": "x"}, {"private": True})
    with pytest.raises(ParameterError, match="neither") as caught:
        publish(outcome).save(tmp_path / "out")
    assert caught.value.__suppress_context__ and not (tmp_path / "out").exists()


def test_other_guarantees_are_not_certified_here(tmp_path: Path) -> None:
    for claimed in ((), (sf.KAnonymity(5),), (PureDP(1), sf.KAnonymity(5))):
        with pytest.raises(ParameterError, match=r"sf\.protect"):
            publish(Outcome(1, claimed, {"name": "x"}))
    renyi = publish(Outcome(1, (RenyiDP(2, 1),), {"name": "x"}, {"private": True}), ledger_entry="0" * 64)
    assert renyi.certificate.claims[0].guarantee == "RenyiDP"
    with pytest.raises(ParameterError, match="parquet"):
        renyi.save(tmp_path / "out", "xls")  # type: ignore[arg-type]
    renyi.save(tmp_path / "out")
    with pytest.raises(InputError, match="exists already"):
        renyi.save(tmp_path / "out")


def test_cells_that_a_spreadsheet_would_run_raise_a_notice(tmp_path: Path) -> None:
    made = publish(Outcome(pa.table({"word": ["=1+1"]}), (PureDP(1),), {"name": "x"}, {"private": True}))
    folder = made.save(tmp_path / "out", "csv")
    assert "formula" in (folder / "public" / "certificate.json").read_text()
