"""Masks whose ratio of noise was called `k`: what was stored under that name is read, what is written today has the new one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.core import registry
from sfumato.core.certificate import Certificate, plain
from sfumato.core.errors import ParameterError
from sfumato.masking.base import Mask
from sfumato.workflow.publishing.cards import public_card
from sfumato.workflow.recipe import Recipe
from tests.corpus.make import people, schema
from tests.faults.forging import change, rewrite

MASKS: tuple[type[Mask], ...] = (sf.AdditiveNoise, sf.CorrelatedNoise)
HINT = "calls this ratio: the variance of the noise, as a multiple of that of the column"
RECIPE = (
    'data = "people.csv"\nschema = "people.toml"\nledger = false\n[method]\nname = "AdditiveNoise"\nk = 0.1\ncolumns = ["age"]\n'
)


MADE: dict[str, Mask] = {
    "noise": sf.AdditiveNoise(0.2, columns=("age",)),
    "combined": sf.Combined(masks=(sf.CorrelatedNoise(0.2, columns=("age", "share")), sf.Mdav(3, columns=("zip",)))),
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Releases as they were written when the ratio was called `k`."""
    place = tmp_path_factory.mktemp("stored")
    for name, mask in MADE.items():
        release = sf.protect(people(), [], mask)
        release.save(place / "folders" / name)
        public = place / "folders" / name / "public"
        change(public, lambda certificate: json.loads(json.dumps(certificate).replace('"ratio": ', '"k": ')))
        certificate = Certificate.from_mapping(json.loads((public / "certificate.json").read_text()))
        rewrite(public, "card.html", public_card(certificate, release.data, ""))
    return place


@pytest.mark.parametrize("name", ["noise", "combined"])
def test_a_folder_that_says_k_is_verified_as_before(stored: Path, name: str) -> None:
    certificate = json.loads((stored / "folders" / name / "public" / "certificate.json").read_text())
    assert '"k": 0.' in json.dumps(certificate["method"]) and certificate["format"] == "sfumato-certificate-2"
    checked = sf.verify(stored / "folders" / name)
    assert checked.verdict == "promises nothing", checked.explain()
    assert {finding.check for finding in checked.findings if finding.passed} >= {"certificate", "files", "card"}


def test_a_release_with_another_k_is_refused(stored: Path, tmp_path: Path) -> None:
    shutil.copytree(stored / "folders" / "noise", tmp_path / "noise")
    file = tmp_path / "noise" / "public" / "certificate.json"
    for other in ('"k": 0.3', '"k": 0.2, "ratio": 0.2'):
        file.write_text((stored / "folders" / "noise" / "public" / "certificate.json").read_text().replace('"k": 0.2', other))
        checked = sf.verify(tmp_path / "noise")
        assert checked.verdict == "does not keep" and "the certificate says of its m" in checked.explain(), checked.explain()


@pytest.mark.parametrize("mask", MASKS)
def test_the_old_name_gets_one_clear_hint(mask: type[Mask]) -> None:
    for make in (lambda: mask(k=0.1), lambda: registry.make("mask", {"name": mask.__name__, "k": 0.1})):
        with pytest.raises(ParameterError, match=f"^{mask.__name__}: parameter 'k' has another name; {mask.__name__} {HINT}$"):
            make()
    with pytest.raises(ParameterError, match=HINT):
        sf.compare(people(), [f"{mask.__name__}(k=[0.1, 0.2])"], cache=False)


def test_a_recipe_that_says_k_runs_and_is_answered_with_the_name(tmp_path: Path) -> None:
    from sfumato.data.writers import write_file
    from tests.corpus.make import table

    write_file(table(), tmp_path / "people.csv")
    (tmp_path / "people.toml").write_text(schema().to_toml(), encoding="utf-8")
    (tmp_path / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    hints: list[str] = []
    release = Recipe.load(tmp_path / "recipe.toml", notice=hints.append).run()
    assert release.certificate.method["ratio"] == 0.1 and "k" not in release.certificate.method
    assert len(hints) == 1 and HINT in hints[0]


def test_what_was_stored_is_restated_with_the_names_of_now() -> None:
    noise = sf.AdditiveNoise(0.1, columns=("age",))
    described = sf.Combined(masks=(noise, sf.Mdav(3, columns=("x",)))).described()
    stored = json.loads(json.dumps(plain(described)).replace('"ratio": ', '"k": '))
    assert stored["masks"][0]["k"] == 0.1
    assert registry.in_names_of_now("method", stored) == json.loads(json.dumps(plain(described)))
