"""Concepts of the catalogue that are words and rules rather than methods: the pages define them, and the code lives by them."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.data.sample import sample_schema, sample_table
from sfumato.report.checklist import QUESTIONS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PRIVACY_BY_DESIGN = (DOCS / "privacy-by-design.md").read_text("utf-8")
GLOSSARY = (DOCS / "glossary.md").read_text("utf-8")


def section(heading: str) -> str:
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", PRIVACY_BY_DESIGN, re.MULTILINE | re.DOTALL)
    assert found, heading
    return found[1]


def test_erasing_somebody_makes_earlier_releases_due_again(tmp_path: Path) -> None:
    """PBD-13: the ledger knows which releases rest on other rows than today's, and the new one is laid over them."""
    people = sf.read(sample_table(500), sample_schema())
    book = tmp_path / "ledger.db"
    before = sf.protect(people, [sf.KAnonymity(5)], sf.Lattice(0.1), ledger=book)
    remaining = sf.read(people.table().slice(1), people.schema)
    after = sf.protect(remaining, [sf.KAnonymity(5)], sf.Lattice(0.1), ledger=book)
    with sf.Ledger.open(book) as ledger:
        entered = ledger.releases(people.schema.dataset)
    due = [entry.hash for entry in entered if entry.payload["fingerprint"] != after.certificate.fingerprint]
    assert due == [before.certificate.ledger]
    assert after.certificate.composition["earlier_releases"] == 1


@pytest.mark.parametrize("duty", ["Tell people", "Give access", "Correct", "Erase", "Report a breach", "stated purpose"])
def test_every_duty_in_law_has_a_line(duty: str) -> None:
    """PBD-13."""
    assert duty in section("Duties in law, as features")


def test_two_permitted_averages_give_away_one_salary() -> None:
    """PBD-14: security and access control do not stop somebody who may ask; the page tells the three apart."""
    text = section("Privacy, security, access control")
    assert all(f"**{word}**" in text for word in ("Security", "Access control", "Privacy"))
    salaries = [3_100, 2_900, 4_200, 100_000]
    with_her, without_her = sum(salaries) / 4, sum(salaries[:3]) / 3
    assert 4 * with_her - 3 * without_her == pytest.approx(salaries[3])


@pytest.mark.parametrize(
    "word", ["SDC", "PET", "PPDM", "Naive anonymisation", "Items of interest", "Anonymity set", "Transparency principle"]
)
def test_the_words_of_the_communities_are_defined(word: str) -> None:
    """PBD-03, PBD-15."""
    assert f"**{word}.**" in GLOSSARY


@pytest.mark.parametrize(
    "promise",
    [
        sf.KAnonymity(2),
        sf.DistinctLDiversity(2, "disease"),
        sf.TCloseness(0.9, "disease"),
        sf.BetaLikeness(5.0, "disease"),
        sf.AlphaKAnonymity(0.9, 2, "disease"),
    ],
    ids=lambda promise: promise.key,
)
def test_every_printed_guarantee_says_what_against_whom_about_whom_and_on_what_evidence(promise: object) -> None:
    """PBD-16."""
    table = pa.table({"age": ["30", "30", "40", "40"], "disease": ["flu", "cold", "flu", "cold"]})
    schema = sf.Schema.of("few", quasi=["age"], sensitive=["disease"])
    release = sf.protect(sf.read(table, schema), [promise], sf.Lattice(), seed=1)  # type: ignore[list-item]
    (claim,) = release.certificate.claims
    assert claim.promised and claim.adversary and claim.unit and claim.protects and claim.parameters
    assert claim.evidence in ("output", "output+reference")
    card = release.card("public")
    assert claim.guarantee in card and "evidence" in card.lower()


def test_what_can_never_be_promised_is_said() -> None:
    """PBD-17."""
    text = section("What can never be promised")
    assert "Dalenius" in text and "cannot be had" in text and "Dalenius" in GLOSSARY


def test_the_limits_of_technology_are_said_and_the_checklist_asks_for_the_rest() -> None:
    """PBD-18."""
    text = section("What technology does not solve")
    assert all(f"**{word}.**" in text for word in ("Law and interest", "Custom", "People", "Scope"))
    assert "1890" in text
    assert {"responsible", "custody", "informed", "objection", "retention", "roles"} == set(QUESTIONS)
    asked = section("The checklist of a release")
    assert "| Organisation |" in asked and "asked" in asked
