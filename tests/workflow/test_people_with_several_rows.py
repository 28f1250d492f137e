"""What is promised about people with several rows: never a class of one person, never classes that a pseudonym ties together."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.certificate import FIRST_FORMAT
from sfumato.core.errors import Infeasible, InputError, ParameterError, VerificationFailed
from sfumato.workflow.publishing.claims import References
from sfumato.workflow.verifying.claims import check_claims

PATIENTS, VISITS = 40, 6


def visits(*, moving: bool = True, **unit: Any) -> sf.Microdata:
    """Patients with six visits each, in several weeks or all in the week of the patient."""
    rows = [(patient, visit) for patient in range(PATIENTS) for visit in range(VISITS)]
    table = pa.table(
        {
            "patient": [f"p{patient}" for patient, _ in rows],
            "week": [(patient * (visit + 1 if moving else 1)) % 10 for patient, visit in rows],
            "diagnosis": ["flu", "cold", "none"] * (len(rows) // 3),
        }
    )
    columns = {
        "patient": sf.Column(role="unit", type="string", **unit),
        "week": sf.Column(role="quasi", type="integer", hierarchy={"intervals": [5]}),
        "diagnosis": sf.Column(role="sensitive", type="string"),
    }
    return sf.read(table, schema=sf.Schema(dataset="visits", columns=columns))


ABOUT_VALUES: list[Any] = [
    sf.DistinctLDiversity(2, "diagnosis"),
    sf.EntropyLDiversity(1.5, "diagnosis"),
    sf.RecursiveLDiversity(5, 2, "diagnosis"),
    sf.TCloseness(0.9, "diagnosis"),
    sf.BetaLikeness(3, "diagnosis"),
    sf.DeltaDisclosure(3, "diagnosis"),
    sf.AlphaKAnonymity(0.9, 1, "diagnosis"),
]


@pytest.mark.parametrize("promise", ABOUT_VALUES, ids=lambda promise: promise.name)
def test_a_promise_about_values_alone_is_refused_where_a_class_may_be_one_person(promise: Any) -> None:
    data = visits()
    for refused in (lambda: sf.protect(data, promise), lambda: sf.protect(data, [promise, sf.KAnonymity(1)])):
        with pytest.raises(ParameterError, match=r"'patient' may have several.*--k 2"):
            refused()
    with pytest.raises(ParameterError, match="'patient' may have several"):
        sf.mask(data, sf.AdditiveNoise(ratio=0.1, columns=("week",)), guarantees=promise)


def test_with_k_every_class_has_two_people_and_two_values() -> None:
    data = visits()
    made = sf.protect(data, [sf.DistinctLDiversity(2, "diagnosis"), sf.KAnonymity(2)], sf.Lattice())
    assert made.certificate.measured["KAnonymity"] >= 2


def test_classes_that_a_published_pseudonym_ties_together_are_not_promised_to_hide_anybody() -> None:
    """Every class has k patients, and most patients are alone with the set of their classes."""
    kept = sf.protect(visits(), sf.KAnonymity(1), sf.Lattice())
    counted = sf.protect(visits(pseudonym=True), sf.KAnonymity(1), sf.Lattice())
    assert kept.certificate.measured["KAnonymity"] == counted.certificate.measured["KAnonymity"] >= 5
    weeks = defaultdict(set)
    for row in counted.data.to_pylist():
        weeks[row["patient"]].add(row["week"])
    assert min(Counter(map(frozenset, weeks.values())).values()) < 5
    with pytest.raises(Infeasible, match="pseudonym = false"):
        sf.protect(visits(pseudonym=True), sf.KAnonymity(5), sf.CellSuppression())
    assert sf.protect(visits(), sf.KAnonymity(5), sf.CellSuppression()).certificate.measured["KAnonymity"] >= 5


def test_pseudonyms_whose_records_are_in_one_class_may_be_published() -> None:
    made = sf.protect(visits(moving=False, pseudonym=True), sf.KAnonymity(2), sf.Lattice())
    assert made.certificate.measured["KAnonymity"] >= 2 and "patient" in made.data.column_names


def test_a_mask_promises_nothing_about_tied_classes_either() -> None:
    noise = sf.AdditiveNoise(ratio=0.1, columns=("week",))
    assert not sf.mask(visits(pseudonym=True), noise, seed=1).certificate.claims
    swap = sf.RankSwapping(p=50, columns=("week",))  # the values stay, so that every class keeps its size
    with pytest.raises(Infeasible, match="pseudonyms of 'patient'"):
        sf.mask(visits(pseudonym=True), swap, guarantees=sf.KAnonymity(2), seed=1)
    assert sf.mask(visits(), swap, guarantees=sf.KAnonymity(2), seed=1).certificate.measured["KAnonymity"] >= 2


def stays(**pseudonym: Any) -> sf.Microdata:
    """Twelve people with eight records each, all in one class: it has eight records, and one person."""
    columns = {
        "person": sf.Column(role="identifier", type="string", **pseudonym),
        "zip": sf.Column(role="quasi", type="integer"),
        "ill": sf.Column(role="sensitive", type="string"),
    }
    people = [place // 8 for place in range(96)]
    table = pa.table({"person": [f"P{one}" for one in people], "zip": people, "ill": ["flu", "cold"] * 48})
    return sf.read(table, schema=sf.Schema(dataset="stays", unit="record", columns=columns))


WITH_CLAIMS: list[Any] = [sf.Mdav(5), sf.VMdav(5), sf.Cbfs(5), sf.OptimalUnivariate(5)]


@pytest.mark.parametrize("method", [sf.Lattice(), sf.LocalRecoding(), *WITH_CLAIMS], ids=lambda each: type(each).__name__)
def test_an_identifier_whose_pseudonym_repeats_ties_records_together(method: Any) -> None:
    asked = [] if method in WITH_CLAIMS else [sf.KAnonymity(5)]
    with pytest.raises(Infeasible, match=r"'person'.*records of one person are tied together.*role = \"unit\""):
        sf.protect(stays(pseudonym=True), asked, method)
    with pytest.raises(InputError, match="'person', which numbers people, has 12 different values in 96 rows"):
        sf.protect(stays(), asked, method)


def test_pseudonyms_that_repeat_are_published_where_nothing_is_promised() -> None:
    made = sf.protect(stays(pseudonym=True), [], sf.AdditiveNoise(ratio=0.1))
    assert "person" in made.data.column_names and any("pseudonym" in notice for notice in made.certificate.notices)
    assert sf.protect(stays(pseudonym=True), sf.KAnonymity(1), sf.Lattice()).certificate.claims


def test_an_identifier_with_one_record_each_or_none_is_no_tie() -> None:
    data = stays(pseudonym=True).table()
    names = pa.array([None, None, *(f"P{place}" for place in range(94))])
    table = data.set_column(data.column_names.index("person"), "person", names)
    made = sf.protect(sf.read(table, schema=stays(pseudonym=True).schema), sf.KAnonymity(5), sf.Lattice())
    assert made.certificate.measured["KAnonymity"] >= 5 and made.verify().verdict == "keeps"


def test_another_pseudonym_beside_a_counted_unit_ties_classes_together() -> None:
    data = visits()
    table = data.table().append_column("card", data.table().column("patient"))
    columns = {**data.schema.columns, "card": sf.Column(role="identifier", type="string", pseudonym=True)}
    with pytest.raises(Infeasible, match="pseudonyms of 'card'"):
        sf.protect(sf.read(table, schema=data.schema.replace(columns=columns)), sf.KAnonymity(5), sf.CellSuppression())


UNTIED = "sfumato.workflow.publishing.claims._refuse_tied_classes"
UNCOUNTED = "sfumato.workflow.publishing.columns._refuse_classes_of_one_person"
DIVERSE = sf.DistinctLDiversity(2, "diagnosis")
#: Releases that no version publishes: the data, what they claim, and the check that was left out.
UNPROTECTED: dict[str, tuple[Any, list[Any], str, str]] = {
    "tied units": (lambda: visits(pseudonym=True), [sf.KAnonymity(2)], UNTIED, "tie records of one person together"),
    "tied records": (lambda: stays(pseudonym=True), [sf.KAnonymity(5)], UNTIED, "tie records of one person together"),
    "a published unit": (lambda: visits(moving=False, pseudonym=True), [DIVERSE], UNCOUNTED, "one person alone"),
    "a removed unit": (visits, [DIVERSE, sf.KAnonymity(1)], UNCOUNTED, "one person alone"),
}


@pytest.mark.parametrize("case", UNPROTECTED)
def test_verify_refuses_what_protect_refuses(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, claims, check, reason = UNPROTECTED[case]
    with monkeypatch.context() as unguarded:
        unguarded.setattr(check, lambda *_: None)
        made = sf.protect(data(), claims, sf.Lattice())
        made.save(tmp_path / "made")
    found = sf.verify(tmp_path / "made")
    assert found.verdict == "does not keep" and reason in found.explain()
    # the first versions published them: what was measured holds, and the verdict says what that is worth
    first = replace(made.certificate, format=FIRST_FORMAT)
    findings = check_claims(first, made.content.schema, made.data, References(), None)
    assert all(finding.passed is not False for finding in findings)
    assert any(reason in finding.caveat for finding in findings)


def test_a_mask_that_groups_records_says_that_the_promise_counts_people() -> None:
    rows = [(patient, visit) for patient in range(6) for visit in range(3)]
    table = pa.table(
        {"patient": [f"p{patient}" for patient, _ in rows], "week": [10 * patient + visit for patient, visit in rows]}
    )
    columns = {"patient": sf.Column(role="unit", type="string"), "week": sf.Column(role="quasi", type="integer")}
    data = sf.read(table, schema=sf.Schema(dataset="visits", columns=columns))
    with pytest.raises(VerificationFailed, match=r"1 was measured.*Mdav groups records.*counts different 'patient'.*search"):
        sf.protect(data, sf.KAnonymity(3), sf.Mdav(3))
