"""Masks whose ratio of noise was called `k`: what was stored under that name is read, what is written today has the new one."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.core import registry
from sfumato.core.errors import ParameterError
from sfumato.masking.base import Mask
from sfumato.workflow.recipe import Recipe
from tests.corpus.make import people, schema

MASKS: tuple[type[Mask], ...] = (sf.AdditiveNoise, sf.CorrelatedNoise)
HINT = "calls this ratio: the variance of the noise, as a multiple of that of the column"
RECIPE = (
    'data = "people.csv"\nschema = "people.toml"\nledger = false\n[method]\nname = "AdditiveNoise"\nk = 0.1\ncolumns = ["age"]\n'
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("stored")
    with tarfile.open(Path(__file__).parent / "earlier-names.tar.xz") as packed:
        packed.extractall(place, filter="data")
    return place


@pytest.mark.parametrize("name", ["noise", "combined"])
def test_a_folder_that_says_k_is_verified_as_before(stored: Path, name: str) -> None:
    certificate = json.loads((stored / "folders" / name / "public" / "certificate.json").read_text())
    assert '"k": 0.' in json.dumps(certificate["method"]) and certificate["format"] == "sfumato-certificate-2"
    checked = sf.verify(stored / "folders" / name, ledger=stored / "ledger" / "ledger.sqlite")
    assert checked.verdict == "promises nothing", checked.explain()
    assert {finding.check for finding in checked.findings if finding.passed} >= {"certificate", "files", "card", "ledger"}


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


def test_results_of_comparisons_are_found_under_the_names_they_were_stored_by() -> None:
    noise = sf.AdditiveNoise(0.1, columns=("age",))
    described = sf.Combined(masks=(noise, sf.Mdav(3, columns=("x",)))).described()
    [first, second] = registry.in_first_names("method", described)["masks"]
    assert first["k"] == 0.1 and "ratio" not in first and second["k"] == 3
    assert registry.in_names_of_now("method", registry.in_first_names("method", described)) == described
