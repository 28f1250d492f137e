"""The first sentence of a card, true in every case: people or records, several promises, none, broken ones, losses as odds."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import sfumato as sf
from sfumato.core.certificate import Certificate, Claim
from sfumato.core.declared import parameters
from sfumato.core.guarantees.base import Guarantee, Knowledge
from sfumato.core.guarantees.loss import ApproxDP, ConcentratedDP, LossGuarantee, PureDP, RenyiDP
from sfumato.report.headline import weakening
from sfumato.report.lead import lead
from tests.report.sample import certificate

ROLES = {"age": "quasi", "sex": "quasi", "region": "quasi", "job": "sensitive"}


def claimed(guarantee: Guarantee, measured: float | None = None, **changes: Any) -> Claim:
    process = isinstance(guarantee, LossGuarantee)
    return Claim(
        guarantee=guarantee.key,
        parameters=parameters(guarantee),
        promised=guarantee.claim(),
        measured=measured,
        holds=True,
        evidence="process" if process else guarantee.evidence,
        protects=guarantee.protects,
        **({"unit": guarantee.unit, "neighbours": guarantee.compared} if isinstance(guarantee, LossGuarantee) else {}),
        **changes,
    )


def stated(*claims: Claim, **changes: Any) -> Certificate:
    schema = {"columns": {name: {"role": role} for name, role in ROLES.items()}, **changes.pop("schema", {})}
    return replace(certificate(), claims=claims, schema=schema, **changes)


def test_people_where_a_unit_is_declared_and_records_where_none_is() -> None:
    k = claimed(sf.KAnonymity(5), 7)
    said = lead(stated(k))
    assert said.sentence == "In this table every combination of age, sex and region is shared by at least 7 records."
    assert said.notes[0].startswith("Records are counted, whoever they belong to")
    said = lead(stated(k, schema={"unit": "record"}))
    assert (
        said.sentence.endswith("is shared by at least 7 people.")
        and "the publisher states that nobody has several" in said.notes[0]
    )
    said = lead(stated(replace(k, unit="different 'patient'"), schema={"publication": {"units": "patients"}}))
    assert said.sentence.endswith("is shared by at least 7 different patients.")
    assert said.notes[0] == "Patients are counted by the column patient."
    on_trust = replace(k, unit="different 'patient'", also_measured={"records per class": 9})
    assert "rests on the publisher's word" in lead(stated(on_trust)).notes[0]


def test_rows_of_a_mask_are_records_whatever_the_owner_declares() -> None:
    masked = stated(claimed(sf.KAnonymity(5), 5), schema={"unit": "record"}, method={"name": "Mdav", "k": 5})
    assert lead(masked).sentence.endswith("at least 5 records.")


@pytest.mark.parametrize(
    ("guarantee", "measured", "words"),
    [
        (sf.KAnonymity(1), 1, "Nothing is promised about this table: what is stated of it, every table keeps."),
        (sf.DistinctLDiversity(1, "job"), 1, "every table keeps"),
        (sf.TCloseness(1, "job"), 0.4, "every table keeps"),
        (sf.TCloseness(0.09524, "job"), 0.0952381, "at most 9.53 % would have to move"),
        (
            sf.EntropyLDiversity(1.88988, "job"),
            1.889882,
            "share a combination of age, sex and region the value of job is at least as uncertain as 1.889 equally likely",
        ),
        (sf.AlphaKAnonymity(1 / 3, 3, "job"), 1 / 3, "no value of job belongs to more than 33.34 % of them"),
        (sf.AverageRisk(1 / 3), 1 / 3, "with a chance of at most 33.34 %"),
        (sf.DeltaPresence(0.1666, 0.33336), 0.3, "to lie between 16.66 % and 33.34 %"),
        (
            sf.DistinctLDiversity(3, "job"),
            4,
            "In this table the records that share a combination of age, sex and region have at least 3 different values of job.",
        ),
        (sf.TCloseness(0.2, "job"), None, "as the whole original table has, of which at most 20 % would have to move"),
        (sf.TCloseness(0.2, "job", distance="ordered", reference="released"), 0.1, "the whole released table has, at a distance"),
        (
            sf.AlphaKAnonymity(0.5, 4, "job"),
            0.4,
            "shared by at least 4 records, and no value of job belongs to more than 50 % of them",
        ),
        (sf.BetaLikeness(2, "job"), 1.0, "no value of job is more than 3 times as frequent among the records that share"),
        (sf.AverageRisk(0.1), 0.05, "picks the right one with a chance of at most 10 %, on average over the records"),
        (sf.KMap(20), 25, "has at least 25 records of the population that it was compared with"),
        (sf.DeltaPresence(0, 0.5), 0.4, "to lie between 0 % and 50 %"),
        (
            sf.RecursiveLDiversity(2, 2, "job"),
            1.0,
            "the most frequent value of job has fewer than 2 times as many as all values from the 2nd most frequent on together",
        ),
        (sf.DeltaDisclosure(1, "job"), 0.9, "is less than 2.719 times as frequent, and less than 2.719 times as rare, among"),
        (
            sf.RecursiveLDiversity(2, 2, "job", protected_values=("clerk",)),
            1.0,
            "In this table, where a class is all records with the same age, sex and region, in every class with a protected",
        ),
    ],
)
def test_each_promise_has_its_sentence(guarantee: Guarantee, measured: float | None, words: str) -> None:
    assert words in lead(stated(claimed(guarantee, measured))).sentence


def test_several_promises_are_one_sentence_and_many_are_counted() -> None:
    claims = [claimed(sf.KAnonymity(5), 5), claimed(sf.DistinctLDiversity(2, "job"), 2)]
    assert lead(stated(*claims)).sentence == (
        "In this table every combination of age, sex and region is shared by at least 5 records; the records that share one have "
        "at least 2 different values of job."
    )
    more = [*claims, claimed(sf.BetaLikeness(2, "job")), claimed(sf.TCloseness(0.1, "job")), claimed(sf.AverageRisk(0.5))]
    assert lead(stated(*more)).sentence.endswith("; 2 further promises are listed below.")


def test_many_columns_are_counted_and_odd_names_are_quoted() -> None:
    many = {f"q{i}": {"role": "quasi"} for i in range(31)}
    assert (
        "every combination of 31 columns that others may know"
        in lead(stated(claimed(sf.KAnonymity(2), 2), schema={"columns": many})).sentence
    )
    odd = {"nobody, and all is safe": {"role": "quasi"}}
    said = lead(stated(claimed(sf.KAnonymity(2), 2), schema={"columns": odd})).sentence
    assert said.startswith("In this table every value of ‘nobody, and all is safe’ is shared")


def test_what_is_missing_and_what_was_not_promised_is_said() -> None:
    few = claimed(sf.DistinctLDiversity(3, "job"), 3, also_measured={"different known values": 2})
    notes = " ".join(lead(stated(claimed(sf.KAnonymity(5), 5), few), missing=("region",)).notes)
    assert "A missing value of region counts as a value." in notes and "only 2 different known values" in notes
    assert "Nothing is promised about" not in notes
    assert any(note.startswith("Nothing is promised about job") for note in lead(stated(claimed(sf.KAnonymity(5), 5))).notes)


def test_what_is_not_kept_not_promised_or_seeded_is_said_first() -> None:
    k = claimed(sf.KAnonymity(5), 3)
    broken = lead(stated(replace(k, holds=False)))
    assert (broken.state, broken.sentence) == ("bad", "This release does not keep what it promises: KAnonymity does not hold.")
    seeded = lead(stated(k, private=False))
    assert seeded.state == "warn" and seeded.sentence.startswith("A demonstration, not a private release")
    assert "nobody proves that no person can be recognised" in lead(stated(method={"name": "AdditiveNoise"})).sentence
    assert "some records were chosen" in lead(stated(method={"name": "Sampling"})).sentence
    assert "invented by a model" in lead(stated(method={"name": "GaussianCopula"})).sentence


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (
            PureDP(1),
            "Adding or removing one record makes no result more than 2.72 times as likely, so that even odds (1 to 1) become at "
            "most 2.72 to 1 (ε = 1, δ = 0).",
        ),
        (
            ApproxDP("0.5", "1e-6", unit="patient"),
            "everything of one patient makes no set of results more than 1.65 times as likely, plus a chance of 1 in 1,000,000 (",
        ),
        (PureDP(1, neighbours="replace"), "Replacing one record by another makes"),
        (PureDP(0), "leaves every result exactly as likely"),
        (PureDP(50), "more than 10^22 (hardly a bound at all) times"),
        (PureDP(Fraction(12345678901234567891, 10**20)), "(ε at most 0.124, δ = 0)"),
    ],
)
def test_a_loss_is_a_factor_and_odds(loss: LossGuarantee, words: str) -> None:
    assert words in lead(stated(claimed(loss))).sentence


@pytest.mark.parametrize(
    "loss", [ConcentratedDP(Fraction(1, 7)), RenyiDP(8, Fraction(1, 3)), PureDP(Fraction(10**19 + 1, 3 * 10**19))]
)
def test_neither_an_order_nor_a_long_fraction_is_shown(loss: LossGuarantee) -> None:
    said = lead(stated(claimed(loss)))
    words = " ".join([said.sentence, *said.notes])
    assert "Rényi" not in words and "/" not in words and "order" not in words
    assert max(len(word) for word in words.replace("(", " ").split()) <= 13


def test_rounding_never_makes_a_loss_smaller() -> None:
    for loss in (Fraction(1, 3), Fraction(999_999, 10**6), Fraction(1, 1000)):
        said = lead(stated(claimed(PureDP(loss)))).sentence
        import math

        factor = float(said.split("more than ")[1].split(" ")[0])
        assert math.exp(loss) <= factor <= math.exp(loss) * 1.01


@pytest.mark.parametrize(
    "changes",
    [
        {"claims": ()},
        {"notices": ("60 of 80 records (75 %) are alone in what the 2 columns show together. No promise covers it",)},
        {"notices": ("a missing value of 'job' counts as a value of its own: without those, some class shows only 1 value",)},
        {"composition": {"earlier_releases": 1, "compared": 0, "finding": "the releases could not be compared"}},
    ],
)
def test_the_box_is_green_only_where_nothing_weakens_what_it_says(changes: dict[str, Any]) -> None:
    claims = [claimed(sf.KAnonymity(5), 5), claimed(sf.DistinctLDiversity(2, "job"), 2)]
    alone = replace(stated(*claims), notices=(), composition={})
    assert lead(alone).state == "good"
    assert lead(replace(alone, **changes)).state == "warn"
    unpromised = replace(alone, claims=tuple(claims[:1]))
    assert lead(unpromised).state == "warn"


def test_people_with_several_rows_are_not_said_to_share_what_rows_share() -> None:
    several = replace(claimed(sf.AlphaKAnonymity(0.5, 5, "job"), 0.5), unit="different 'patient'")
    assert "no value of job stands in more than 50 % of their records" in lead(stated(several)).sentence
    assert several.promise.endswith("counted in different 'patient', and shares in records")


@pytest.mark.parametrize(
    "guarantee",
    [
        sf.EntropyLDiversity(2, "job"),
        sf.TCloseness(0.2, "job"),
        sf.BetaLikeness(2, "job"),
        sf.DeltaDisclosure(1, "job"),
        sf.RecursiveLDiversity(2, 2, "job"),
    ],
    ids=lambda guarantee: guarantee.name,
)
def test_shares_are_said_to_be_of_records_where_people_have_several(guarantee: Guarantee) -> None:
    """One person has four rows of flu and four have one row of HIV each: four of five share a value, and half of the rows."""
    k = claimed(sf.KAnonymity(5), 5, unit="different 'patient'")
    said = lead(stated(k, claimed(guarantee, 1.0)))
    assert "those who" not in said.sentence and "record" in said.sentence.split(";")[1]
    assert any("Shares of values are counted in records" in note for note in said.notes)


@pytest.mark.parametrize(
    "guarantee",
    [
        sf.AlphaKAnonymity(1, 5, "job"),
        sf.AlphaKAnonymity(0.5, 5, "job", protected_values=()),
        sf.DistinctLDiversity(3, "job", protected_values=()),
        sf.EntropyLDiversity(3, "job", protected_values=()),
        sf.RecursiveLDiversity(2, 3, "job", protected_values=()),
        sf.TCloseness(0.1, "job", protected_values=()),
        sf.BetaLikeness(1, "job", protected_values=()),
        sf.DeltaDisclosure(1, "job", protected_values=()),
    ],
    ids=str,
)
def test_a_promise_about_no_value_promises_nothing_about_its_column(guarantee: Guarantee) -> None:
    said = lead(stated(claimed(sf.KAnonymity(5), 5), claimed(guarantee, 1.0)))
    assert said.state == "warn" and any(note.startswith("Nothing is promised about job") for note in said.notes)


def test_a_promise_that_supposes_a_person_in_each_record_says_who_declares_it() -> None:
    risk = claimed(sf.AverageRisk(0.1), 0.1)
    said = lead(stated(risk))
    assert said.state == "warn" and any("supposes that each record is another person" in note for note in said.notes)
    columns = {"age": {"role": "quasi"}}
    declared = lead(stated(risk, schema={"unit": "record", "columns": columns}, composition={}))
    assert declared.state == "good" and "the publisher states that nobody has several" in declared.notes[0]
    presence = lead(stated(claimed(sf.DeltaPresence(0, 0.5), 0.4)))
    assert any("supposes that each record is another person" in note for note in presence.notes)
    assert any("Records of the population" in note for note in lead(stated(claimed(sf.KMap(5), 5))).notes)


def test_a_promise_by_a_model_is_never_green() -> None:
    by_model = sf.KMapByModel(20, sampling_fraction=0.1)
    assert lead(stated(claimed(by_model, 5), schema={"unit": "record"})).state == "warn"
    assert sf.KMapByModel(1, sampling_fraction=0.1).says_nothing and sf.KMap(1).says_nothing


def test_a_quasi_identifier_that_no_promise_supposes_known_is_named() -> None:
    narrow = claimed(sf.KAnonymity(5, Knowledge(attributes=("age", "sex"))), 5)
    certificate = stated(narrow, schema={"unit": "record"})
    assert lead(certificate).state == "warn" and any("'region' may be known to others" in each for each in weakening(certificate))
    both = stated(narrow, claimed(sf.KAnonymity(2), 2), schema={"unit": "record"})
    assert not any("may be known to others" in each or "together" in each for each in weakening(both))
    other = claimed(sf.KAnonymity(5, Knowledge(attributes=("region",))), 5)
    apart = weakening(stated(narrow, other, schema={"unit": "record"}, composition={}))
    assert any("no promise supposes that 'age', 'sex' and 'region' are known together" in each for each in apart)


def test_words_of_the_owner_are_quoted_in_the_sentence() -> None:
    counted = claimed(sf.KAnonymity(5), 5, unit="different 'patient'")
    said = lead(stated(counted, schema={"publication": {"units": "fully anonymised people"}})).sentence
    assert said.endswith("5 different ‘fully anonymised people’.")
