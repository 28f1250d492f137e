"""Drafts: made, measured and compared like a release, entered nowhere, and called drafts wherever they are seen."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.core.errors import NoLedger, ParameterError, RecipeError, Unsupported
from sfumato.data.schema import Column, HierarchySpec
from sfumato.workflow.contents.base import DRAFT, Submission
from sfumato.workflow.contents.private_result import PrivateResult
from sfumato.workflow.publishing.publish import publish
from sfumato.workflow.recipe import Recipe
from tests.workflow.people import files, people, release

CARD = "A draft, not a release, and not to be given away"


def on_the_disk(place: Path) -> dict[str, bytes]:
    """Every file but the index that SQLite keeps while somebody reads, and its log as long as that is empty."""
    files = {str(path.relative_to(place)): path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}
    return {name: content for name, content in files.items() if not name.endswith("-shm") and (content or "-wal" not in name)}


def test_a_draft_says_so_wherever_it_is_seen_and_verify_does_not_accept_it(tmp_path: Path) -> None:
    draft = release(draft=True)
    assert draft.certificate.draft and DRAFT in draft.certificate.notices and not draft.entered
    assert draft.certificate.to_mapping()["draft"] is True and "draft" not in release().certificate.to_mapping()
    assert "a draft" in repr(draft) and "a draft" in repr(draft.certificate) and "draft" in draft.certificate._repr_html_()
    draft.save(tmp_path / "out")
    for audience in ("public", "owner"):
        page = (tmp_path / "out" / audience / "card.html").read_text()
        assert CARD in page and DRAFT[1:] in page
    found = sf.verify(tmp_path / "out")
    assert found.verdict == "draft" and not found.accepted and not found.holds
    assert "Make the release without --draft" in found.sentence
    assert not [finding for finding in found.findings if finding.passed is False]  # it would be a sound release
    told = found.to_mapping()
    assert (told["verdict"], told["draft"], told["accepted"]) == ("draft", True, False)


def test_a_draft_with_a_seed_is_no_demonstration_that_could_be_allowed() -> None:
    draft = release(draft=True, seed=1)
    assert draft.verify(allow_demonstration=True).verdict == "draft"


def test_no_ledger_is_made_for_a_draft(tmp_path: Path) -> None:
    draft = release(draft=True, ledger=tmp_path / "ledger.db")
    assert not draft.certificate.composition and not list(tmp_path.iterdir())


@pytest.mark.postgres
def test_no_ledger_is_made_in_a_database_for_a_draft(postgres_url: str) -> None:
    from tests.ledger.conftest import postgres_place

    places = postgres_place(postgres_url)
    book = next(places).address
    assert not release(draft=True, ledger=book).certificate.composition
    with pytest.raises(NoLedger):
        sf.Ledger.open(book, read_only=True)
    release(ledger=book)
    draft = sf.protect(people(), sf.KAnonymity(4), sf.Lattice(suppression=0.2), ledger=book, draft=True)
    assert draft.certificate.composition["earlier_releases"] == 1
    with sf.Ledger.open(book, read_only=True) as ledger:
        assert ledger.count() == 1
    next(places, None)


def test_a_draft_says_what_the_release_will_say_about_earlier_ones_and_leaves_the_ledger_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "sex.csv").write_text("f;*\nm;*\n")
    tree = Column(role="quasi", type="string", hierarchy=HierarchySpec(file=str(tmp_path / "sex.csv")))
    shutil.copy(tmp_path / "sex.csv", tmp_path / "other.csv")
    other = Column(role="quasi", type="string", hierarchy=HierarchySpec(file=str(tmp_path / "other.csv")))
    (tmp_path / "other.csv").write_text("f;people;*\nm;people;*\n")  # a file that the store does not have yet
    book, search = tmp_path / "ledger.db", sf.Lattice(suppression=0.2)
    sf.protect(people(sex=tree), sf.KAnonymity(5), search, ledger=book)
    before = on_the_disk(tmp_path)

    def again(**options: Any) -> sf.Release:
        return sf.protect(people(sex=other), sf.KAnonymity(4), search, ledger=book, **options)

    draft = again(draft=True)
    assert on_the_disk(tmp_path) == before
    assert draft.certificate.composition["compared"] == 1 and draft.certificate.composition["attack"] == "Intersection"
    made = again()
    assert draft.certificate.composition == made.certificate.composition
    assert draft.details["composition"] == made.details["composition"]
    assert len(on_the_disk(tmp_path)) > len(before)  # the release itself is kept


def test_an_open_ledger_stays_open_and_empty(tmp_path: Path) -> None:
    with sf.Ledger.open(tmp_path / "ledger.db") as book:
        draft = release(draft=True, ledger=book)
        assert book.count() == 0 and draft.certificate.composition["earlier_releases"] == 0
        made = release(ledger=book)
        again = release(draft=True, ledger=book)
        assert again.certificate.composition["finding"] == "the same rows were released before" and book.count() == 1
    assert made.certificate.holds


@pytest.mark.parametrize("mask", [sf.Mdav(5, columns=("age",)), sf.AdditiveNoise(0.1, columns=("age",))], ids=["mdav", "noise"])
def test_masks_have_drafts(tmp_path: Path, mask: Any) -> None:
    sf.mask(people(), mask, ledger=tmp_path / "ledger.db")
    before = on_the_disk(tmp_path)
    draft = sf.mask(people(), mask, ledger=tmp_path / "ledger.db", draft=True)
    assert on_the_disk(tmp_path) == before and draft.certificate.draft
    assert draft.verify().verdict == "draft" and "draft" in draft.card()
    if isinstance(mask, sf.AdditiveNoise):  # independent noise averages out, in a draft that somebody got hold of too
        assert "age" in draft.certificate.composition["repeated_masks"]


def test_an_engine_writes_a_draft_into_a_folder_and_no_draft_into_a_table(tmp_path: Path) -> None:
    source, described = files(tmp_path / "in")
    microdata = sf.read(source, described, engine="duckdb")
    book = tmp_path / "ledger.db"
    asked: dict[str, Any] = {"guarantees": sf.KAnonymity(5), "method": sf.Lattice(suppression=0.1), "ledger": book}
    sf.protect(microdata, **asked, destination=tmp_path / "made")
    before = {name: content for name, content in on_the_disk(tmp_path).items() if name.startswith("ledger.db")}
    draft = sf.protect(microdata, **{**asked, "guarantees": sf.KAnonymity(4)}, destination=tmp_path / "out", draft=True)
    assert draft.certificate.composition["earlier_releases"] == 1
    assert sf.verify(tmp_path / "out").verdict == "draft"
    assert {name: content for name, content in on_the_disk(tmp_path).items() if name.startswith("ledger.db")} == before
    with pytest.raises(ParameterError, match="a draft is not put into a database"):
        sf.protect(microdata, **asked, destination=tmp_path / "out.duckdb", draft=True)
    with pytest.raises(Unsupported, match="a draft is not put into a database"):
        release(draft=True).write(tmp_path / "out.duckdb")
    assert not (tmp_path / "out.duckdb").exists()


def test_a_recipe_says_draft_and_the_one_that_is_kept_makes_the_release(tmp_path: Path) -> None:
    files(tmp_path)
    asked = {"data": "people.csv", "schema": "people.toml", "guarantee": [{"name": "KAnonymity", "k": 5}], "output": "out"}
    asked |= {"ledger": "ledger.db", "draft": True}
    recipe = Recipe.parse(asked, folder=tmp_path)
    assert recipe.run().certificate.draft and not (tmp_path / "ledger.db").exists()
    kept = Recipe.load(tmp_path / "out" / "owner" / "recipe.toml")
    assert not kept.draft
    made = kept.with_changes({"output": str(tmp_path / "out"), "overwrite": True}).run()
    assert made.entered and sf.verify(tmp_path / "out", ledger=tmp_path / "ledger.db").verdict == "keeps"
    with pytest.raises(RecipeError, match="a draft is not put into a database"):
        recipe.with_changes({"write": {"to": "rows.duckdb"}, "output": "other"}).run()
    assert not (tmp_path / "other").exists()


def test_noise_has_no_draft() -> None:
    work = Submission(PrivateResult([1], "d"), (), {"name": "Histogram"}, "operating system", True, draft=True)
    with pytest.raises(Unsupported, match="no drafts of PrivateResult: what is drawn for a look would be free noise"):
        publish(work)
