"""A forger who takes the word draft away, hides a withdrawal or invents one gains nothing that a release of that kind lacks."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.workflow.contents.base import DRAFT
from sfumato.workflow.earlier.comparing import NOTHING_EARLIER
from sfumato.workflow.earlier.withdrawn import withdrawn_in_words
from tests.faults.forging import refused
from tests.faults.test_forged_words import forged
from tests.workflow.people import people

Edit = Callable[[dict[str, Any]], Any]
NOBODY = "f" * 64


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with a release that was withdrawn, one that counts and one after both; drafts beside them and alone."""
    place = tmp_path_factory.mktemp("made")
    os.environ.setdefault("SFUMATO_KEY", str(place / "owner.key"))
    book = place / "ledger.db"

    def release(name: str, k: int, **options: Any) -> str:
        release = sf.protect(people(60), sf.KAnonymity(k), sf.Lattice(suppression=0.5), **options)
        release.save(place / name, "csv")
        return release.certificate.ledger

    withdrawn = release("withdrawn", 5, ledger=book)
    release("counts", 4, ledger=book)
    with sf.Ledger.open(book) as opened:
        opened.withdraw(withdrawn, "never left the house")
    release("after", 3, ledger=book)
    release("beside", 2, ledger=book, draft=True)
    release("alone", 3, draft=True)
    release("plain", 3)
    return place


def copied(made: Path, tmp_path: Path, base: str) -> Path:
    shutil.copytree(made / base, tmp_path / "out")
    return tmp_path / "out" / "public"


def withdrawing(*releases: str) -> Edit:
    """The certificate names these releases as withdrawn, in field and notice."""

    def edit(stated: dict[str, Any]) -> None:
        stated["notices"] = [each for each in stated["notices"] if not each.startswith("withdrawn")]
        stated.pop("withdrawn", None)
        if releases:
            stated["withdrawn"] = list(releases)
            stated["notices"].append(withdrawn_in_words(releases))

    return edit


def no_draft(stated: dict[str, Any]) -> None:
    del stated["draft"]
    stated["notices"].remove(DRAFT)


def test_the_untouched_folders_have_their_verdicts(made: Path) -> None:
    verdicts = {name: sf.verify(made / name).verdict for name in ("after", "beside", "alone", "plain")}
    assert verdicts == {"after": "keeps", "beside": "draft", "alone": "draft", "plain": "keeps"}


def test_a_draft_without_the_word_is_a_release_without_a_ledger_and_nothing_more(made: Path, tmp_path: Path) -> None:
    public = forged(copied(made, tmp_path, "alone"), no_draft)
    assert sf.verify(public).verdict == "keeps"  # as the same release without a ledger, word by word:
    stated, plain = (json.loads((each / "certificate.json").read_text()) for each in (public, made / "plain" / "public"))
    assert {**stated, "created": plain["created"]} == plain


NO_ENTRY = "names no entry of a ledger, and says what only a ledger with its entry tells"
IN_ONE_PLACE = "calls itself a draft in one place and not in another"
NO_DRAFT_SAYS = "calls itself a draft, and says what no draft says"
FORM = "does not have the form of a certificate"
SAME = "do not name the same withdrawn releases"
FORGERIES: dict[str, tuple[str, Edit, str]] = {
    "draft-no-more-but-compared": ("beside", no_draft, NO_ENTRY),
    "draft-in-the-field-alone": ("alone", lambda c: c["notices"].remove(DRAFT), IN_ONE_PLACE),
    "draft-in-the-notice-alone": ("alone", lambda c: c.pop("draft"), IN_ONE_PLACE),
    "draft-that-says-false": ("alone", lambda c: c.update(draft=False), FORM),
    "draft-in-words": ("alone", lambda c: c.update(draft="no"), FORM),
    "draft-with-an-entry": ("alone", lambda c: c.update(ledger=NOBODY), NO_DRAFT_SAYS),
    "release-without-its-entry": ("after", lambda c: c.update(ledger="not entered"), NO_ENTRY),
    "withdrawals-without-a-ledger": ("plain", withdrawing(NOBODY), NO_ENTRY),
    "withdrawn-in-the-field-alone": ("after", lambda c: c.update(withdrawn=[*c["withdrawn"], NOBODY]), SAME),
    "withdrawn-in-the-notice-alone": ("after", lambda c: c.pop("withdrawn"), SAME),
    "withdrawn-and-trusted": ("after", lambda c: c["notices"].append("withdrawn: all others, as a notary confirms"), SAME),
    "withdrawn-by-nobody": ("after", lambda c: c.update(withdrawn=[]), FORM),
    "withdrawn-in-words": ("after", lambda c: c.update(withdrawn=["all"]), FORM),
    "withdrawn-twice": ("after", lambda c: withdrawing(*c["withdrawn"] * 2)(c), "as withdrawn twice, or one that it counts"),
    "withdrawn-itself": ("after", lambda c: withdrawing(c["ledger"])(c), "as withdrawn twice, or one that it counts"),
    "nothing-counts-and-nothing-withdrawn": (
        "plain",
        lambda c: c.update(
            ledger=NOBODY,
            composition={"earlier_releases": 0, "finding": "every earlier release of this dataset in the ledger was withdrawn"},
        ),
        "what no comparison with them says",
    ),
    "nothing-earlier-but-withdrawn": (
        "after",
        lambda c: c.update(composition={"earlier_releases": 0, "finding": NOTHING_EARLIER}),
        "what no comparison with them says",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_what_no_release_says_is_refused_without_a_ledger(made: Path, tmp_path: Path, name: str) -> None:
    base, edit, reason = FORGERIES[name]
    public = copied(made, tmp_path, base)
    forged(public, edit) if reason != FORM else _changed(public, edit)
    refused(public, reason)


def _changed(public: Path, edit: Edit) -> None:
    from tests.faults.forging import change

    change(public, lambda certificate: (edit(certificate), None)[1])


@pytest.mark.parametrize(
    ("base", "edit", "reason"),
    [
        ("after", withdrawing(), "does not repeat that 1 release was withdrawn before it"),
        ("after", withdrawing(NOBODY), "names a release as withdrawn that is not withdrawn in the ledger"),
        ("counts", withdrawing(NOBODY), "names a release as withdrawn that is not withdrawn in the ledger"),
        ("after", lambda c: withdrawing(*c["withdrawn"], NOBODY)(c), "that is not withdrawn in the ledger"),
        ("beside", withdrawing(NOBODY), "that is not withdrawn in the ledger"),
    ],
    ids=["hidden", "exchanged", "invented", "one-more", "draft"],
)
def test_a_ledger_knows_what_was_withdrawn(made: Path, tmp_path: Path, base: str, edit: Edit, reason: str) -> None:
    public = forged(copied(made, tmp_path, base), edit)
    assert sf.verify(public).verdict in ("keeps", "draft")  # nobody can tell from the files
    found = sf.verify(public, ledger=made / "ledger.db")
    assert found.verdict == "does not keep" and reason in found.explain()


def test_a_withdrawal_that_cannot_be_read_is_a_verdict_and_no_crash(made: Path, tmp_path: Path) -> None:
    import sqlite3

    shutil.copy(made / "ledger.db", tmp_path / "ledger.db")
    connection = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    connection.execute("DROP TRIGGER entries_no_UPDATE")
    connection.execute("UPDATE entries SET payload = '{}' WHERE kind = 'withdrawal'")
    connection.close()
    found = sf.verify(made / "beside", ledger=tmp_path / "ledger.db")
    assert found.verdict == "does not keep" and "cannot be read" in found.explain()
