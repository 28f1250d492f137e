"""Withdrawn releases: not combined with later ones, whose certificates repeat that this is the owner's word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.data.schema import Column
from sfumato.dp import PrivateHistogram, Session
from sfumato.ledger import LossAmount
from sfumato.workflow.earlier.comparing import NONE_COUNTS
from sfumato.workflow.earlier.withdrawn import withdrawn_in_words
from sfumato.workflow.publishing.publish import publish
from sfumato.workflow.verdicts import verification_verdict
from tests.workflow.people import people

WHY = "a role was wrong; the folder was deleted unread"


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def made(book: Path, k: int, **options: Any) -> sf.Release:
    return sf.protect(people(), sf.KAnonymity(k), sf.Lattice(suppression=0.2), ledger=book, **options)


def withdraw(book: Path, *releases: sf.Release) -> None:
    with sf.Ledger.open(book) as opened:
        for each in releases:
            opened.withdraw(each.certificate.ledger, WHY)


def said(found: Any) -> tuple[bool | None, str]:
    [finding] = [each for each in found.findings if each.check == "withdrawn releases"]
    return finding.passed, finding.text


def test_a_withdrawn_release_does_not_count_and_every_later_certificate_says_so(tmp_path: Path, book: Path) -> None:
    first = made(book, 5)
    assert made(book, 4).certificate.composition["earlier_releases"] == 1
    withdraw(book, first)
    third = made(book, 3)
    stated = third.certificate
    assert stated.composition["earlier_releases"] == stated.composition["compared"] == 1
    assert stated.withdrawn == (first.certificate.ledger,)
    notice = withdrawn_in_words(stated.withdrawn)
    assert notice in stated.notices and "the owner states" in notice and "nobody can verify that" in notice
    assert WHY not in str(stated.to_mapping())  # the reason stays in the ledger
    third.save(tmp_path / "out")
    assert first.certificate.ledger[:16] in (tmp_path / "out" / "public" / "card.html").read_text()
    alone, beside = sf.verify(tmp_path / "out"), sf.verify(tmp_path / "out", ledger=book)
    assert alone.verdict == beside.verdict == "keeps"
    assert said(alone) == (None, notice) and said(beside)[0] is True and "nobody can verify" in said(beside)[1]
    assert alone.to_mapping()["withdrawn"] == [first.certificate.ledger]


def test_where_all_were_withdrawn_nobody_says_that_there_was_none(book: Path) -> None:
    first = made(book, 5)
    withdraw(book, first)
    for later in (made(book, 4, draft=True), made(book, 4)):
        assert later.certificate.composition == {"earlier_releases": 0, "finding": NONE_COUNTS}
        assert later.certificate.withdrawn == (first.certificate.ledger,)
    assert made(book, 4).verify(ledger=book).verdict == "keeps"


def test_masks_that_were_withdrawn_do_not_add_up(book: Path) -> None:
    noise = sf.AdditiveNoise(0.1, columns=("age",))
    first, second = (sf.mask(people(), noise, ledger=book) for _ in range(2))
    assert "age" in second.certificate.composition["repeated_masks"]
    withdraw(book, first, second)
    third = sf.mask(people(), noise, ledger=book)
    assert "repeated_masks" not in third.certificate.composition and len(third.certificate.withdrawn) == 2
    assert third.verify(ledger=book).verdict == "promises nothing"


def test_what_is_released_again_after_a_withdrawal_counts(book: Path) -> None:
    first = made(book, 5)
    withdraw(book, first)
    again = made(book, 5)
    assert again.certificate.ledger != first.certificate.ledger and again.certificate.withdrawn == (first.certificate.ledger,)
    assert again.verify(ledger=book).verdict == "keeps"
    assert made(book, 4).certificate.composition["earlier_releases"] == 1


def test_the_folder_of_a_withdrawn_release_is_called_withdrawn_by_its_ledger(book: Path) -> None:
    first = made(book, 5)
    assert first.verify(ledger=book).verdict == "keeps"
    withdraw(book, first)
    found = first.verify(ledger=book)
    assert found.verdict == "withdrawn" and not found.accepted and not found.holds
    headline = verification_verdict(found)
    assert headline.word == "warning" and headline.reason.startswith("its owner withdrew this release")
    assert "NOT" not in found.explain() and "WITHDRAWN   withdrawal: " in found.explain()
    assert any(finding.check == "card" and finding.passed for finding in found.findings)  # the rest is looked at as ever


def test_the_rows_of_a_withdrawn_release_must_still_be_its_own(book: Path, tmp_path: Path) -> None:
    first = made(book, 5)
    folder = first.save(tmp_path / "out")
    withdraw(book, first)
    certificate = folder / "public" / "certificate.json"
    certificate.write_text(certificate.read_text().replace("KAnonymity", "KAnonimity"))
    assert sf.verify(folder, ledger=book).verdict == "does not keep"


def test_certificates_from_before_a_withdrawal_stay_right(book: Path) -> None:
    first, second = made(book, 5), made(book, 4)
    withdraw(book, first)
    assert second.certificate.composition["earlier_releases"] == 1 and not second.certificate.withdrawn
    assert second.verify(ledger=book).verdict == "keeps"
    again = made(book, 4)  # the same entry, from before the withdrawal, which it names now
    assert again.certificate.ledger == second.certificate.ledger and again.certificate.withdrawn == (first.certificate.ledger,)
    assert again.verify(ledger=book).verdict == "keeps"


def test_a_private_result_repeats_the_statement_and_cannot_be_withdrawn(book: Path) -> None:
    first = made(book, 5)
    with sf.Ledger.open(book) as opened:
        opened.grant("clinic", "ann", LossAmount.pure(1))
    sex = Column(type="string", domain=("f", "m"))
    session = Session(people(60, sex=sex), ledger=str(book), analyst="ann")
    withdraw(book, first)
    outcome = session.release(PrivateHistogram(("sex",), epsilon="0.5"))
    noisy = publish(outcome, ledger=session.ledger)
    assert noisy.certificate.withdrawn == (first.certificate.ledger,)
    assert noisy.verify(ledger=book).verdict == "keeps" and noisy.verify().verdict == "rests on its maker"
    assert publish(outcome).verify(ledger=book).verdict == "keeps"  # no ledger was at hand when it was published
    with sf.Ledger.open(book) as opened, pytest.raises(sf.core.errors.InputError, match="privacy charge never returns"):
        opened.withdraw(noisy.certificate.ledger, WHY)


def test_many_withdrawals_are_named_by_the_first_three() -> None:
    ids = [f"{number:064x}" for number in range(1, 6)]
    assert withdrawn_in_words(ids).count("…") == 3 and "and 2 more) were never given away" in withdrawn_in_words(ids)
