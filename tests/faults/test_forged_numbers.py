"""Numbers on the public page, what attacks found, and facts that are left out: only what the files or the house say."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import VerificationFailed
from sfumato.workflow.publishing.publish import publish
from tests.faults.forging import change, refused
from tests.faults.test_forged_words import Edit, forged

ROWS = pa.table(
    {
        "who": [f"p{i // 2}" for i in range(80)],
        "age": [20 + 10 * (i // 20) + (i // 2) % 5 for i in range(80)],
        "town": ["Bonn", "Ulm", "Oslo", "none given"] * 20,
        "ill": ["flu", "flu", "flu", "cold"] * 20,
    }
)
SCHEMA = {
    "dataset": "visits",
    "columns": {
        "who": {"role": "unit", "type": "string"},
        "age": {"role": "quasi", "type": "integer", "hierarchy": {"intervals": [10, 20, 80]}},
        "town": {"role": "quasi", "type": "string", "missing": ["none given"]},
        "ill": {"role": "sensitive", "type": "string"},
    },
}
FORM = "form of a certificate"
STATED = "states an attack in a way that no release does"
SCORES = "scores on its page that its published content does not have"


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("honest")
    release = sf.protect(
        sf.read(ROWS, SCHEMA),
        [sf.KAnonymity(2)],
        sf.Lattice(suppression=0.5),
        attacks=["Homogeneity", "ProbabilisticInference"],
        utility=["loss", "class_count", "discernibility"],
        risk=["prosecutor_risk", "uniques"],
        answers={"roles": True},
    )
    release.save(place / "rows", "csv")
    assert sf.verify(place / "rows").verdict == "keeps what could be checked"  # people were counted inside the house
    public = {score["measure"] for score in release.certificate.card["scores"]}
    assert public == {"class_count", "prosecutor_risk", "uniques"}  # the others take more than the published rows
    column = {"role": "plain", "type": "string", "domain": ["f", "m"], "source": "declared"}
    people = sf.read(pa.table({"sex": ["f", "m"] * 50}), {"dataset": "p", "unit": "record", "columns": {"sex": column}})
    publish(sf.dp.PrivateHistogram(("sex",), epsilon=1).run(people), ledger_entry="a" * 64).save(place / "noise", "csv")
    return place


def tried(public: Path, edit: Edit, reason: str) -> None:
    """Forge the page too, where the certificate still has its form."""
    kept = (public / "certificate.json").read_bytes()
    try:
        forged(public, edit)
    except VerificationFailed:
        (public / "certificate.json").write_bytes(kept)
        change(public, lambda certificate: (edit(certificate), None)[1])
    refused(public, reason)


def attack(**changes: Any) -> Edit:
    return lambda certificate: certificate["attacks"][0].update(changes)


def score(measure: str, value: float, **changes: Any) -> Edit:
    stated = {"measure": measure, "value": value, "better": "lower", "meaning": "risk", "parts": {}, "uses_original": False}
    return lambda certificate: certificate["card"]["scores"].append(stated | changes)


def without(name: str) -> Edit:
    return lambda certificate: certificate["transparency"].pop(name)


FORGED: dict[str, tuple[Edit, str]] = {
    "rows among attacks": (lambda c: c.update(attacks=[{"original": [["Ada", 36, "HIV"]]}]), FORM),
    "rows in an attack": (attack(original=[["Ada", 36, "HIV"]]), FORM),
    "words of a forger": (attack(finding="Nobody can be found."), STATED),
    "another number than the words": (attack(success=0.0, interval=[0.0, 0.1]), STATED),
    "outside its interval": (attack(interval=[0.99, 1.0], success=0.1), STATED),
    "more than everybody": (attack(baseline=7.0), FORM),
    "fewer than nobody": (attack(targets=-5), FORM),
    "no such attack": (attack(attack="Audited"), STATED),
    "a question that nobody asks": (lambda c: c["card"].update(answers={"safe": {"given": True, "note": ""}}), FORM),
    "a long note": (lambda c: c["card"].update(answers={"roles": {"given": True, "note": "Ada, 36, HIV; " * 50}}), FORM),
    "a record as a code": (lambda c: c["transparency"]["written_as"]["town"].update(missing=["Ada 36 HIV"]), "were written"),
    "no such measure": (score("epsilon", 0.001), SCORES),
    "a measure of more than rows": (score("suppressed", 0.0, meaning="share of records that are not in the release"), SCORES),
    "another risk": (lambda c: [s.update(value=0.0) for s in c["card"]["scores"] if s["measure"] == "prosecutor_risk"], SCORES),
    "another meaning": (lambda c: c["card"]["scores"][0].update(meaning="certified by the state"), SCORES),
    "another part": (lambda c: c["card"]["scores"][0]["parts"].update(audited=1.0), SCORES),
    "twice": (lambda c: c["card"]["scores"].append(c["card"]["scores"][0]), SCORES),
    "no number": (lambda c: c["card"]["scores"][0].update(value=None), SCORES),
    **{
        f"without {name}": (without(name), "every release of its kind tells")
        for name in ("unit", "adversary", "removed_columns", "row_order", "pseudonymised_columns")
    },
    "without quasi-identifiers": (without("quasi_identifiers"), "levels and hierarchies"),
    "without levels": (without("levels"), "levels and hierarchies"),
    "without a level": (lambda c: c["transparency"]["levels"].pop("town"), "levels and hierarchies"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_statement_is_refused(name: str, honest: Path, tmp_path: Path) -> None:
    shutil.copytree(honest / "rows", tmp_path / "out")
    tried(tmp_path / "out" / "public", *FORGED[name])


@pytest.mark.parametrize(
    "edit", [score("epsilon", 0.001), score("prosecutor_risk", 0.0), lambda c: c["card"].update(scored=True)]
)
def test_a_private_result_shows_no_score(edit: Edit, honest: Path, tmp_path: Path) -> None:
    shutil.copytree(honest / "noise", tmp_path / "out")
    tried(tmp_path / "out" / "public", edit, SCORES)


def test_people_are_not_records_because_nobody_says_so(honest: Path, tmp_path: Path) -> None:
    """Without the unit a class of eight records could be said to be of eight people."""
    shutil.copytree(honest / "rows", tmp_path / "out")

    def edit(certificate: dict[str, Any]) -> None:
        certificate["transparency"].pop("unit")
        claim = certificate["claims"][0]
        claim["measured"] = claim["also_measured"].pop("records per class")
        claim |= {"unit": "record", "parameters": {"k": claim["measured"]}}
        claim["promised"] = sf.KAnonymity(claim["measured"]).claim()

    tried(tmp_path / "out" / "public", edit, "every release of its kind tells")


def test_what_an_attack_found_is_told_to_the_owner(honest: Path) -> None:
    certificate = json.loads((honest / "rows" / "public" / "certificate.json").read_text())
    for stated in certificate["attacks"]:
        assert stated["finding"].startswith("Success ") and "'ill'" not in stated["finding"]
    page = (honest / "rows" / "owner" / "card.html").read_text()
    assert "&#x27;ill&#x27;" in page.rsplit("Attacks run against the release", 1)[1]


def test_usefulness_that_was_not_measured_is_not_said_to_be() -> None:
    made = sf.protect(sf.read(ROWS, SCHEMA), [sf.KAnonymity(2)], sf.Lattice(suppression=0.5), utility=[], risk=["uniques"])
    masked = sf.mask(sf.read(ROWS, SCHEMA), sf.Rounding(base=10, columns=("age",)), utility=[], risk=[])
    assert "The owner says that usefulness was measured" in made.card("owner")  # its loss is always known
    assert "Usefulness was not measured" in masked.card("owner")


def test_a_table_in_the_details_of_an_outcome_stays_with_its_owner(tmp_path: Path) -> None:
    column = {"role": "plain", "type": "string", "domain": ["f", "m"], "source": "declared"}
    people = sf.read(pa.table({"sex": ["f", "m"] * 50}), {"dataset": "p", "unit": "record", "columns": {"sex": column}})
    outcome = sf.dp.PrivateHistogram(("sex",), epsilon=1).run(people)
    more = dataclasses.replace(outcome, details={**outcome.details, "extra": pa.table({"x": [1.5]})})
    publish(more, ledger_entry="a" * 64).save(tmp_path / "out", "csv")
    assert not list((tmp_path / "out" / "public").glob("extra*"))
    assert sf.verify(tmp_path / "out").verdict == "rests on its maker"


@dataclasses.dataclass(frozen=True)
class OfTheOwner(sf.attacks.Homogeneity):
    """An attack that nobody else knows."""

    def run(self, view: Any, knowledge: Any = None) -> Any:
        return dataclasses.replace(super().run(view, knowledge), attack="OfTheOwner")


def test_an_attack_that_only_its_owner_knows_is_not_stated(tmp_path: Path) -> None:
    made = sf.protect(sf.read(ROWS, SCHEMA), [sf.KAnonymity(2)], sf.Lattice(suppression=0.5), attacks=[OfTheOwner()])
    made.save(tmp_path / "out")
    assert [each.attack for each in made.owner.attacks] == ["OfTheOwner"] and not made.certificate.attacks
    assert sf.verify(tmp_path / "out").accepted
