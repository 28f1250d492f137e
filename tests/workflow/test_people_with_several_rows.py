"""What is promised about people with several rows: never a class of one person, never classes that a pseudonym ties together."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import Infeasible, ParameterError

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
