"""What a promise says is what was measured: about which classes, against whom, with which threshold."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import ParameterError
from sfumato.core.guarantees.base import ClassGuarantee, Knowledge
from sfumato.data.schema import Column
from sfumato.workflow.saving import pretty
from sfumato.workflow.verify_claims import _wordings

AGE = Column(role="quasi", type="integer")
SCHEMA = sf.Schema(dataset="promises", columns={"age": AGE, "zip": AGE, "disease": Column(role="sensitive", type="string")})
ROWS = pa.table(
    {"age": [5] * 5 + [7] * 5, "zip": [1, 2, 3, 4, 5] * 2, "disease": ["flu"] * 5 + ["HIV", "gout", "cold", "mumps", "rash"]}
)
#: Half of the people share one disease: diverse they are not.
WITHOUT_ZIP = SCHEMA.replace(columns={name: column for name, column in SCHEMA.columns.items() if name != "zip"})


def saved(folder: Path, guarantee: ClassGuarantee, rows: pa.Table = ROWS, schema: sf.Schema = SCHEMA) -> sf.Release:
    release = sf.protect(sf.read(rows, schema), guarantee, sf.Lattice())
    release.save(folder, "csv")
    return release


def test_an_adversary_who_knows_some_columns_is_named_in_promise_and_card(tmp_path: Path) -> None:
    release = saved(tmp_path / "out", sf.KAnonymity(5, Knowledge(attributes=("age",))))
    (claim,) = release.certificate.claims
    assert len(set(zip(*(release.data.column(name).to_pylist() for name in ("age", "zip")), strict=True))) == 10  # all alone
    assert claim.promised == "every combination of 'age' is shared by at least 5 records"
    page = (tmp_path / "out" / "public" / "card.html").read_text()
    assert "every combination of quasi-identifiers" not in page
    assert "knows age of a person" in page and "knows the quasi-identifiers of a person" not in page
    assert release.certificate.transparency["adversary"] == "as each promise says"
    assert sf.verify(tmp_path / "out").verdict == "keeps"


def test_an_adversary_who_knows_nothing_is_none() -> None:
    with pytest.raises(ParameterError, match="one or more different columns"):
        Knowledge(attributes=())


@pytest.mark.parametrize(
    "guarantee",
    [
        sf.DistinctLDiversity(5, "disease", protected_values=("HIV",)),
        sf.EntropyLDiversity(3, "disease", protected_values=("HIV",)),
        sf.RecursiveLDiversity(3, 2, "disease", protected_values=("HIV",)),
        sf.TCloseness(0.5, "disease", reference="released", protected_values=("HIV",)),
        sf.BetaLikeness(2, "disease", reference="released", protected_values=("HIV",)),
        sf.DeltaDisclosure(2, "disease", reference="released", protected_values=("HIV",)),
        sf.AlphaKAnonymity(0.5, 2, "disease", protected_values=("HIV",)),
    ],
    ids=lambda guarantee: guarantee.name,
)
def test_a_promise_about_protected_values_says_so(guarantee: ClassGuarantee) -> None:
    everybody = dataclasses.replace(guarantee, protected_values=None)  # type: ignore[type-var]
    assert "protected value" in guarantee.claim() and "protected value" not in everybody.claim()


def test_a_class_without_a_protected_value_may_show_one_value(tmp_path: Path) -> None:
    release = saved(
        tmp_path / "out", sf.DistinctLDiversity(5, "disease", protected_values=("HIV",)), ROWS.drop_columns(["zip"]), WITHOUT_ZIP
    )
    diseases = {age: set() for age in release.data.column("age").to_pylist()}  # type: ignore[var-annotated]
    for age, disease in zip(*(release.data.column(name).to_pylist() for name in ("age", "disease")), strict=True):
        diseases[age].add(disease)
    assert {"flu"} in diseases.values()
    (claim,) = release.certificate.claims
    assert claim.promised == "every class with a protected value of 'disease' shows at least 5 different values of 'disease'"
    assert sf.verify(tmp_path / "out").verdict == "keeps"


def test_a_promise_about_values_that_no_row_has_is_about_nobody(tmp_path: Path) -> None:
    rows = pa.table({"age": [5] * 6, "disease": ["flu", "cold"] * 3})
    declared = Column(role="sensitive", type="string", domain=("flu", "cold", "HIV"))
    schema = WITHOUT_ZIP.replace(columns={**WITHOUT_ZIP.columns, "disease": declared})
    saved(tmp_path / "out", sf.EntropyLDiversity(50, "disease", protected_values=("HIV",)), rows, schema)
    found = sf.verify(tmp_path / "out")
    assert found.verdict != "keeps"
    assert any(each.passed is None and "about nobody" in each.text for each in found.findings)


@pytest.mark.parametrize(
    ("guarantee", "threshold"),
    [
        (sf.EntropyLDiversity(2.99996, "disease"), "2.99996"),
        (sf.TCloseness(0.20004, "disease"), "0.20004"),
        (sf.BetaLikeness(1 / 3, "disease"), "0.3333333333333333"),
        (sf.DeltaPresence(0.1, 0.900004), "0.900004"),
        (sf.AlphaKAnonymity(0.5, 2, "disease"), "0.5"),
    ],
)
def test_a_threshold_is_not_rounded(guarantee: ClassGuarantee, threshold: str) -> None:
    assert f" {threshold} " in f"{guarantee.claim()} "


def test_whoever_looks_for_members_does_not_know_them() -> None:
    assert "that the person is in the table" not in sf.DeltaPresence(0, 1).adversary


def test_an_earlier_wording_of_the_same_promise_is_still_read(tmp_path: Path) -> None:
    rows = pa.table({"age": [5] * 4, "disease": ["flu", "cold"] * 2})
    saved(tmp_path / "out", sf.DeltaDisclosure(1, "disease", reference="released"), rows, WITHOUT_ZIP)
    place = tmp_path / "out" / "public" / "certificate.json"
    stated = json.loads(place.read_text())
    stated["claims"][0]["promised"] = "in every class the odds of each value of 'disease' change by less than the factor e^1"
    stated["format"] = "sfumato-certificate-1"
    del stated["card"], stated["versions"]["matplotlib"]
    place.write_bytes(pretty(stated))
    found = {(each.check, each.passed) for each in sf.verify(tmp_path / "out").findings}
    assert {("DeltaDisclosure(disease)", True), ("card", None)} <= found
    stated["claims"][0]["promised"] = "in every class nothing changes"
    place.write_bytes(pretty(stated))
    assert sf.verify(tmp_path / "out").verdict not in ("keeps", "keeps what could be checked")


@pytest.mark.parametrize(
    "guarantee",
    [
        sf.DistinctLDiversity(50, "disease", protected_values=()),
        sf.BetaLikeness(0.001, "disease", reference="released", protected_values=()),
    ],
)
def test_a_promise_that_protects_no_value_is_about_nobody(guarantee: ClassGuarantee, tmp_path: Path) -> None:
    saved(tmp_path / "out", guarantee, ROWS.drop_columns(["zip"]), WITHOUT_ZIP)
    assert sf.verify(tmp_path / "out").verdict != "keeps"


def test_how_large_classes_are_is_about_everybody(tmp_path: Path) -> None:
    """The only record with the protected value is suppressed; that every class has three records is a promise all the same."""
    rows = pa.table({"age": [30] * 20 + [99], "disease": ["flu", "cold"] * 10 + ["HIV"]})
    people = sf.read(rows, WITHOUT_ZIP)
    guarantee = sf.AlphaKAnonymity(0.5, 3, "disease", protected_values=("HIV",))
    release = sf.protect(people, guarantee, sf.LocalRecoding(suppression=0.1))
    assert "HIV" not in release.data.column("disease").to_pylist()
    release.save(tmp_path / "out")
    assert sf.verify(tmp_path / "out").verdict == "keeps"


@pytest.mark.parametrize(
    ("guarantee", "earlier"),
    [
        (sf.TCloseness(0.33333, "disease", reference="released"), sf.TCloseness(0.3333, "disease", reference="released")),
        (sf.BetaLikeness(10 / 3, "disease", reference="released"), sf.BetaLikeness(3.333, "disease", reference="released")),
        (sf.EntropyLDiversity(1.23456, "disease"), sf.EntropyLDiversity(1.235, "disease")),
        (sf.EntropyLDiversity(1.00001, "disease", protected_values=("flu",)), None),
        (sf.AlphaKAnonymity(0.66666, 2, "disease"), sf.AlphaKAnonymity(0.6667, 2, "disease")),
        (
            sf.AlphaKAnonymity(0.66666, 2, "disease", protected_values=("flu",)),
            sf.AlphaKAnonymity(0.6667, 2, "disease", protected_values=("flu",)),
        ),
    ],
)
def test_a_threshold_that_an_earlier_version_rounded_is_still_read(
    guarantee: ClassGuarantee, earlier: ClassGuarantee | None
) -> None:
    said = {promised for promised, _ in _wordings(guarantee)}
    assert guarantee.claim() in said and (earlier is None or earlier.claim() in said)
    other = {each.claim() for each in (sf.TCloseness(0.3, "disease"), sf.EntropyLDiversity(1.2, "disease"))}
    assert not said & other and (earlier is not None or said == {guarantee.claim()})
