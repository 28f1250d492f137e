"""What a promise says is what was measured: about which classes, against whom, with which threshold."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.certificate import FIRST_FORMAT, FORMAT, FORMATS
from sfumato.core.errors import ParameterError
from sfumato.core.guarantees.base import ANY_ADVERSARY, ClassGuarantee, Knowledge
from sfumato.data.schema import Column
from sfumato.workflow.publishing.cards import public_card
from sfumato.workflow.verifying.certificate_form import read_certificate, read_schema
from sfumato.workflow.verifying.limited_reading import read_foreign
from sfumato.workflow.verifying.verification import Verification
from tests.faults.forging import change, rewrite

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


def restated(folder: Path, format: str, **words: str) -> Verification:
    """The verdict on the folder with other words in its first claim, in this format; its page is made again."""
    public = folder / "public"

    def edit(stated: dict[str, Any]) -> None:
        stated["claims"][0] |= words
        stated["format"] = format
        if format == FIRST_FORMAT:
            stated.pop("card", None), stated["versions"].pop("matplotlib", None)

    change(public, edit)
    if format == FORMAT:
        certificate = read_certificate(json.loads((public / "certificate.json").read_text()))
        rewrite(public, "card.html", public_card(certificate, read_foreign(public / "data.csv", read_schema(certificate)), ""))
    return sf.verify(folder)


ODDS = "in every class the odds of each value of 'disease' change by less than the factor e^0.29"


def odds(folder: Path) -> Path:
    """Chances change by less than e^0.29; the odds of flu do so by e^0.405."""
    rows = pa.table({"age": [5] * 100 + [7] * 100, "disease": (["flu"] * 50 + ["cold"] * 50 + ["flu"] * 30 + ["cold"] * 70)})
    saved(folder, sf.DeltaDisclosure(0.29, "disease", reference="released"), rows, WITHOUT_ZIP)
    return folder


def test_a_wording_of_the_first_versions_is_read_in_their_format_and_its_meaning_told(tmp_path: Path) -> None:
    found = restated(odds(tmp_path / "out"), FIRST_FORMAT, promised=ODDS)
    (claim,) = (each for each in found.findings if each.claim)
    meant = sf.DeltaDisclosure(0.29, "disease", reference="released").claim()
    assert found.verdict == "keeps what could be checked" and claim.passed is True
    assert claim.text.startswith(meant) and "odds" not in found.explain()
    assert any(each.startswith("DeltaDisclosure(disease) is worded") and meant in each for each in found.caveats)
    assert restated(tmp_path / "out", FIRST_FORMAT, promised="in every class nothing changes").verdict == "does not keep"


def test_a_wording_of_the_first_versions_is_refused_in_the_format_of_today(tmp_path: Path) -> None:
    found = restated(odds(tmp_path / "out"), FORMAT, promised=ODDS)
    assert found.verdict == "does not keep" and "words do not say what its parameters mean" in found.explain()


@pytest.mark.parametrize("format", FORMATS)
def test_an_adversary_of_the_first_versions_is_told_apart(format: str, tmp_path: Path) -> None:
    rows, people = pa.table({"age": [5] * 6}), sf.read(pa.table({"age": [5] * 12}))
    release = sf.protect(
        sf.read(rows, SCHEMA.replace(columns={"age": AGE})), sf.DeltaPresence(0, 1), sf.Lattice(), population=people
    )
    release.save(tmp_path / "out", "csv")
    found = restated(tmp_path / "out", format, adversary=ANY_ADVERSARY)
    if format == FORMAT:
        assert found.verdict == "does not keep"
    else:
        assert any("wants to know who of them is in the table" in each for each in found.caveats)
        assert sf.verify(tmp_path / "out", population=people).verdict == "keeps what could be checked"


@pytest.mark.parametrize(
    ("flu", "least", "kept"),
    [
        (249, 1.99998, False),  # 1.999984 values: not as uncertain as the 2 that the rounded words promise
        (250, 1.99998, True),
        (250, 1.9, False),  # no rounding of 1.9
    ],
)
def test_a_rounded_threshold_is_read_where_the_rounded_promise_is_kept(
    flu: int, least: float, kept: bool, tmp_path: Path
) -> None:
    mixed = [*["flu"] * flu, *["cold"] * (500 - flu)]
    saved(tmp_path / "out", sf.EntropyLDiversity(least, "disease"), pa.table({"age": [5] * 500, "disease": mixed}), WITHOUT_ZIP)
    rounded = sf.EntropyLDiversity(2, "disease").claim()
    found = restated(tmp_path / "out", FIRST_FORMAT, promised=rounded)
    assert found.verdict == ("keeps what could be checked" if kept else "does not keep")
    assert any("EntropyLDiversity(disease) is worded" in each for each in found.caveats) is kept


def test_a_rounded_chance_is_read_where_the_stated_numbers_keep_it(tmp_path: Path) -> None:
    """Without the population only the stated numbers can be held against the words."""
    rows, people = pa.table({"age": [5] * 49_999}), sf.read(pa.table({"age": [5] * 100_000}))
    promised, rounded = sf.DeltaPresence(0.49999, 0.6), sf.DeltaPresence(0.5, 0.6)
    release = sf.protect(sf.read(rows, SCHEMA.replace(columns={"age": AGE})), promised, sf.Lattice(), population=people)
    release.save(tmp_path / "out", "csv")
    assert sf.verify(tmp_path / "out").verdict == "not checked"
    assert restated(tmp_path / "out", FIRST_FORMAT, promised=rounded.claim()).verdict == "does not keep"


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
        (sf.AlphaKAnonymity(0.66666, 2, "disease"), sf.AlphaKAnonymity(0.6667, 2, "disease")),
        (
            sf.AlphaKAnonymity(0.66666, 2, "disease", protected_values=("flu",)),
            sf.AlphaKAnonymity(0.6667, 2, "disease", protected_values=("flu",)),
        ),
    ],
)
def test_a_threshold_that_an_earlier_version_rounded_is_still_read(
    guarantee: ClassGuarantee, earlier: ClassGuarantee, tmp_path: Path
) -> None:
    rows = pa.table({"age": [5] * 4, "disease": ["flu", "cold"] * 2})
    saved(tmp_path / "out", guarantee, rows, WITHOUT_ZIP)
    assert restated(tmp_path / "out", FIRST_FORMAT, promised=earlier.claim()).verdict == "keeps what could be checked"


def test_the_first_versions_did_not_say_that_a_promise_is_about_some_values(tmp_path: Path) -> None:
    rows = pa.table({"age": [5] * 4, "disease": ["flu", "cold"] * 2})
    guarantee = sf.EntropyLDiversity(1.00001, "disease", protected_values=("flu",))
    saved(tmp_path / "out", guarantee, rows, WITHOUT_ZIP)
    rounded = sf.EntropyLDiversity(1, "disease", protected_values=("flu",))
    for words in (rounded.claim(), dataclasses.replace(guarantee, protected_values=None).claim()):
        assert restated(tmp_path / "out", FIRST_FORMAT, promised=words).verdict == "does not keep"


@pytest.mark.parametrize("method", [sf.Lattice(), sf.Mdav(4, columns=("age",))], ids=["search", "mask"])
def test_what_is_asked_for_twice_is_promised_once(method: Any) -> None:
    people = sf.read(pa.table({"age": [5] * 4 + [7] * 4, "disease": ["flu", "cold"] * 4}), WITHOUT_ZIP)
    asked = [sf.KAnonymity(2), sf.DistinctLDiversity(2, "disease"), sf.KAnonymity(2), sf.KAnonymity(3)]
    claims = sf.protect(people, asked, method).certificate.claims
    assert [claim.parameters.get("k") for claim in claims[:3]] == [2, None, 3] and len({str(each) for each in claims}) == len(
        claims
    )
