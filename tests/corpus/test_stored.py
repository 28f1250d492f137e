"""What earlier versions wrote stays readable and gets the right verdict: every stored corpus, folder by folder."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.ledger import Ledger
from sfumato.workflow.recipe import Recipe
from sfumato.workflow.verifying.verification import Verification

KEPT = "keeps what could be checked"  # of a release of the first format, whose page is not compared
HERE = Path(__file__).parent
STORED = sorted(HERE.glob("format-*.tar.xz"))

#: The verdict on each folder from its files alone.
VERDICTS = {
    "answer": "rests on its maker",
    "csv": "keeps",
    "entered": "keeps",
    "hierarchy-file": "keeps",
    "histogram": "rests on its maker",
    "histogram-seeded": "demonstration",
    "histogram-signed": "rests on its maker",
    "k-map": "not checked",
    "local-recoding": "keeps",
    "mask": "promises nothing",
    "mask-k": "keeps",
    "parquet": "keeps",
    "pseudonyms": "keeps",
    "seeded": "demonstration",
    "several-csv-signed": "keeps",
    "several-signed": "keeps",
    "t-closeness": "keeps what could be checked",
    "unit": "keeps what could be checked",  # outsiders count its records, not its units
    "unit-pseudonym": "keeps",
}


@pytest.fixture(scope="module", params=STORED, ids=lambda path: path.name.removesuffix(".tar.xz"))
def corpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("corpus")
    with tarfile.open(request.param) as packed:
        packed.extractall(place, filter="data")
    return place


def card_of(found: Verification) -> bool | None:
    [finding] = [finding for finding in found.findings if finding.check == "card"]
    return finding.passed


def test_the_first_format_is_stored() -> None:
    assert "format-1.tar.xz" in [path.name for path in STORED]


@pytest.mark.parametrize("name", sorted(VERDICTS))
def test_a_stored_folder_gets_its_verdict(corpus: Path, name: str) -> None:
    found = sf.verify(corpus / "folders" / name)
    assert found.certificate is not None
    first = found.certificate.format == "sfumato-certificate-1"
    assert found.verdict == (KEPT if first and VERDICTS[name] == "keeps" else VERDICTS[name]), found.explain()
    assert card_of(found) is (None if first else True)  # the page of the first format is not compared


def test_no_folder_of_the_corpus_is_forgotten(corpus: Path) -> None:
    assert {path.name for path in (corpus / "folders").iterdir()} == set(VERDICTS)


def test_references_signatures_and_seeds_complete_the_verdict(corpus: Path) -> None:
    folders, references = corpus / "folders", corpus / "references"
    assert sf.verify(folders / "k-map", population=references / "population.parquet").verdict in ("keeps", KEPT)
    assert sf.verify(folders / "t-closeness", original=references / "original.parquet").verdict in ("keeps", KEPT)
    assert sf.verify(folders / "several-signed", public_key=corpus / "signing.pub").verdict in ("keeps", KEPT)
    assert sf.verify(folders / "seeded", allow_demonstration=True).holds
    seeded = sf.verify(folders / "histogram-seeded", allow_demonstration=True)
    assert seeded.accepted and not seeded.holds


@pytest.mark.parametrize("name", ["answer", "histogram", "histogram-signed"])
def test_the_stored_ledger_confirms_what_it_paid_for(corpus: Path, name: str) -> None:
    found = sf.verify(corpus / "folders" / name, ledger=corpus / "ledger" / "ledger.sqlite")
    assert found.verdict in ("keeps", KEPT) and found.holds, found.explain()


def test_the_stored_ledger_is_whole_and_goes_on(corpus: Path, tmp_path: Path) -> None:
    shutil.copytree(corpus / "ledger", tmp_path / "ledger")
    place = tmp_path / "ledger" / "ledger.sqlite"
    with Ledger.open(place) as ledger:
        assert ledger.verify().ok
        assert len(ledger.releases("clinic")) == 2
        head = ledger.head()
    made = json.loads((corpus / "folders" / "entered" / "public" / "certificate.json").read_text())
    with Ledger.open(place, read_only=True) as ledger:
        assert ledger.verify(made["ledger"]).ok and ledger.head() == head
    assert made["composition"]["earlier_releases"] == 1


def test_a_stored_recipe_runs(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_KEY", str(tmp_path / "owner.key"))
    shutil.copytree(corpus / "recipe", tmp_path / "recipe")
    made = Recipe.load(tmp_path / "recipe" / "recipe.toml").run()
    assert made.certificate.measured["KAnonymity"] >= 4
    assert sf.verify(tmp_path / "recipe" / "out").holds


def test_stored_schemas_are_read(corpus: Path) -> None:
    assert sf.Schema.load(corpus / "recipe" / "people.toml").quasi == ("age", "zip", "sex")
    for name in sorted(VERDICTS):
        file = corpus / "folders" / name / "public" / "schema.toml"
        if file.exists():
            assert sf.Schema.load(file).columns


def test_the_stored_ledger_confirms_a_release_that_was_entered(corpus: Path) -> None:
    found = sf.verify(corpus / "folders" / "entered", ledger=corpus / "ledger" / "ledger.sqlite")
    assert [finding.passed for finding in found.findings if finding.check == "ledger"] == [True] and found.accepted
