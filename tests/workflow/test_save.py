"""Saving: what goes into `public/` and `owner/`, that it appears whole, and that it can be verified."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import InputError, VerificationFailed
from sfumato.data.hierarchies.hierarchy import from_tree
from sfumato.data.hierarchies.hierarchy_builders import build
from sfumato.data.schema import Column, HierarchySpec
from sfumato.wire.signatures import SigningKey
from sfumato.workflow.publishing.saving import pretty
from sfumato.workflow.verifying.verify import open_release
from tests.workflow.people import people, release, schema, table

SEARCH = sf.Lattice(suppression=0.05)


def test_the_two_folders_and_what_is_in_them(tmp_path: Path) -> None:
    release().save(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"public", "owner"}
    public = {path.name for path in (tmp_path / "out" / "public").iterdir()}
    assert public == {"data.parquet", "certificate.json", "card.html", "schema.toml"}
    owner = {path.name for path in (tmp_path / "out" / "owner").iterdir()}
    assert owner == {"card.html", "scores.json", "details.json", "schema.toml", "recipe.toml"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_owners_folder_is_closed_to_others(tmp_path: Path) -> None:
    release().save(tmp_path / "out")
    owner = tmp_path / "out" / "owner"
    assert stat.S_IMODE(owner.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in owner.iterdir()} == {0o600}


def test_what_was_computed_from_the_original_stays_with_the_owner(tmp_path: Path) -> None:
    made = release()
    made.save(tmp_path / "out")
    loss = f"{made.scores['loss']:.6f}"[:7]
    public = "".join(path.read_text("utf-8") for path in (tmp_path / "out" / "public").iterdir() if path.suffix != ".parquet")
    assert loss not in public
    assert '"suppressed"' not in public
    assert json.loads((tmp_path / "out" / "owner" / "scores.json").read_text())["scores"][0]["value"] == made.scores["loss"]


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_a_saved_release_verifies(tmp_path: Path, format: str) -> None:
    made = sf.protect(people(), [sf.KAnonymity(5), sf.DistinctLDiversity(2, "disease")], SEARCH)
    made.save(tmp_path / "out", format=format)  # type: ignore[arg-type]
    found = sf.verify(tmp_path / "out")
    assert found.holds, found.explain()
    assert sf.verify(tmp_path / "out" / "public").holds
    assert found.certificate is not None and found.certificate.measured == made.certificate.measured


def test_claims_that_need_a_reference_are_checked_when_it_is_given(tmp_path: Path) -> None:
    made = sf.protect(people(), [sf.KAnonymity(5), sf.TCloseness(0.4, "disease")], SEARCH)
    made.save(tmp_path / "out")
    without = {finding.check: finding.passed for finding in sf.verify(tmp_path / "out").findings}
    with_it = {finding.check: finding.passed for finding in sf.verify(tmp_path / "out", original=table()).findings}
    assert without["TCloseness(disease)"] is None
    assert with_it["TCloseness(disease)"] is True
    other = {finding.check: finding.passed for finding in sf.verify(tmp_path / "out", original=table(200, seed=5)).findings}
    assert other["TCloseness(disease)"] is False


def test_population_claims_can_be_checked_again(tmp_path: Path) -> None:
    population = sf.read(table(3000, seed=9), schema())
    sf.protect(people(300), [sf.KMap(5)], SEARCH, population=population).save(tmp_path / "out")
    found = {finding.check: finding.passed for finding in sf.verify(tmp_path / "out", population=table(3000, seed=9)).findings}
    assert found["KMap"] is True


def test_frequency_groups_of_a_public_population_can_be_checked_again(tmp_path: Path) -> None:
    groups = Column(role="quasi", type="string", hierarchy=HierarchySpec(frequency=(3, 9)))
    population = people(600, seed=3, zip=groups)
    made = sf.protect(
        people(100, zip=groups), [sf.KMap(3)], sf.Lattice(suppression=0.3), population=population, population_public=True
    )
    made.save(tmp_path / "out", "csv")
    found = sf.verify(tmp_path / "out", population=population)
    assert found.verdict == "keeps", found.explain()


def test_hierarchical_distances_can_be_checked_again(tmp_path: Path) -> None:
    ill = Column(role="sensitive", hierarchy=HierarchySpec(tree={"lungs": ["flu", "cold", "asthma"], "well": ["none"]}))
    wanted = [sf.KAnonymity(3), sf.TCloseness(0.6, "disease", distance="hierarchical", reference="released")]
    sf.protect(people(disease=ill), wanted, SEARCH).save(tmp_path / "out")
    found = sf.verify(tmp_path / "out")
    assert found.holds, found.explain()
    assert [finding.passed for finding in found.findings if finding.check == "TCloseness(disease)"] == [True]
    assert sf.verify(tmp_path / "out", original=people(disease=ill)).verdict == "keeps"


@pytest.mark.parametrize("role", ["quasi", "sensitive"])
def test_blanks_around_the_labels_of_a_hierarchy_stay(tmp_path: Path, role: str) -> None:
    tree = {" gov": [" State-gov", "Local-gov "], "own": [" Private", "Private"]}
    described = {
        "age": Column(role="quasi"),
        "work": Column.model_validate({"role": role, "hierarchy": {"tree": tree}}),
        "ill": Column(role="plain"),
    }
    work = [" State-gov", "Local-gov ", " Private", "Private"] * 20
    rows = pa.table({"work": work, "age": [30] * 40 + [40] * 40, "ill": ["a", "b", "c", "d", "e"] * 16})
    hierarchical = sf.TCloseness(0.9, "work", distance="hierarchical", reference="released")
    wanted = [sf.KAnonymity(2), *([hierarchical] if role == "sensitive" else [])]
    sf.protect(sf.read(rows, sf.Schema(dataset="work", columns=described)), wanted).save(tmp_path / "out", "csv")
    found = sf.verify(tmp_path / "out")
    assert found.accepted and not found.caveats, found.explain()
    with open_release(tmp_path / "out") as opened:
        read = build("work", opened.schema.columns["work"], work, None, opened.schema.folder)
    assert read.rows() == from_tree(tree).rows()


def test_a_folder_is_never_replaced_by_accident(tmp_path: Path) -> None:
    made = release()
    made.save(tmp_path / "out")
    with pytest.raises(InputError, match="overwrite"):
        made.save(tmp_path / "out")
    made.save(tmp_path / "out", format="csv", overwrite=True)
    assert (tmp_path / "out" / "public" / "data.csv").exists()
    work = tmp_path / "thesis"
    work.mkdir()
    (work / "chapter.txt").write_text("months of work")
    with pytest.raises(InputError, match="not replaced"):
        made.save(work, overwrite=True)
    assert (work / "chapter.txt").read_text() == "months of work"


def test_links_are_not_followed_when_saving(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    os.symlink(tmp_path / "real", tmp_path / "link")
    with pytest.raises(InputError, match="not a folder"):
        release().save(tmp_path / "link", overwrite=True)


def test_a_signature_is_checked(tmp_path: Path) -> None:
    key, other = SigningKey.generate(), SigningKey.generate()
    key.save(tmp_path / "sign.key")
    (tmp_path / "public.txt").write_text(str(key.public))
    release().save(tmp_path / "out", sign=tmp_path / "sign.key")
    assert sf.verify(tmp_path / "out").holds
    assert sf.verify(tmp_path / "out", public_key=tmp_path / "public.txt").holds
    assert sf.verify(tmp_path / "out", public_key=str(key.public)).holds
    assert not sf.verify(tmp_path / "out", public_key=str(other.public)).holds
    certificate = tmp_path / "out" / "public" / "certificate.json"
    certificate.write_text(certificate.read_text().replace('"clinic"', '"hospital"'))
    assert not sf.verify(tmp_path / "out").holds
    release().save(tmp_path / "unsigned")
    assert not sf.verify(tmp_path / "unsigned", public_key=str(key.public)).holds


def test_a_signature_has_one_form(tmp_path: Path) -> None:
    """Spaces around the key, and bits that base64 does not use, would be room for something else."""
    key = SigningKey.generate()
    key.save(tmp_path / "sign.key")
    release().save(tmp_path / "out", sign=tmp_path / "sign.key")
    file = tmp_path / "out" / "public" / "signature.json"
    told = json.loads(file.read_text())
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    assert told["signature"].endswith("==")
    other = letters[letters.index(told["signature"][-3]) ^ 1]
    for forged in (
        {"public_key": told["public_key"] + "\n"},
        {"public_key": told["public_key"].replace(":", ": ")},
        {"signature": told["signature"][:-3] + other + "=="},
        {"audited": "yes"},
    ):
        file.write_bytes(pretty({**told, **forged}))
        found = sf.verify(tmp_path / "out")
        assert not found.accepted and "not a signature" in found.explain()
    file.write_bytes(pretty(told))
    assert sf.verify(tmp_path / "out").holds


def test_a_search_that_promises_too_much_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What reaches a guarantee never certifies it: a search that lies does not get a release."""

    class Liar(sf.Lattice):
        def run(self, data, guarantees, **options):  # type: ignore[no-untyped-def]
            return super().run(data, [sf.KAnonymity(1)], **options)

    ledger = tmp_path / "ledger.db"
    with pytest.raises(VerificationFailed, match="KAnonymity promises 5 but 1 was measured"):
        sf.protect(people(), sf.KAnonymity(5), Liar(suppression=0.0), ledger=ledger)
    with sf.Ledger.open(ledger) as book:
        assert book.releases("clinic") == []
    assert not Path(f"{ledger}.releases").exists()


def test_csv_with_awkward_values_reads_back_the_same(tmp_path: Path) -> None:
    rows = 12
    awkward = pa.table(
        {
            "marital status, née": ['say "hi"', "a,b", "line\nbreak", "", None, "NO"] * (rows // 6),
            "zip": ["01234"] * rows,
            "job": ["00", "null", "NaN", "x", "ü", "-"] * (rows // 6),
        }
    )
    described = sf.Schema.of("odd", quasi=["zip"], plain=["marital status, née"], sensitive=["job"])
    made = sf.protect(sf.read(awkward, described), sf.KAnonymity(5), sf.Lattice())
    made.save(tmp_path / "out", format="csv")
    from sfumato.data.readers.files import read_file

    back = read_file(tmp_path / "out" / "public" / "data.csv", made.schema).table
    assert back.to_pylist() == made.data.to_pylist()
    assert sf.verify(tmp_path / "out").holds


def test_spreadsheet_formulas_raise_a_notice(tmp_path: Path) -> None:
    rows = pa.table({"zip": ["1"] * 6, "note": ["=cmd|' /C calc'!A0", "+1+2", "ok", "ok", "@x", "-2+3"]})
    described = sf.Schema.of("odd", quasi=["zip"], plain=["note"])
    sf.protect(sf.read(rows, described), sf.KAnonymity(2), sf.Lattice()).save(tmp_path / "out", format="csv")
    notices = json.loads((tmp_path / "out" / "public" / "certificate.json").read_text())["notices"]
    assert any("formula" in notice and "'note'" in notice for notice in notices)


def test_the_card_is_for_its_reader() -> None:
    made = release()
    public, owner = made.card(), made.card("owner")
    assert "Content-Security-Policy" in public and "Content-Security-Policy" in owner
    assert "owner" in owner and len(owner) > len(public)


def test_the_recipe_in_the_owners_folder_says_how_it_was_made(tmp_path: Path) -> None:
    release().save(tmp_path / "out")
    text = (tmp_path / "out" / "owner" / "recipe.toml").read_text()
    assert 'name = "KAnonymity"' in text and 'name = "Lattice"' in text


def test_the_verdict_says_which_claims_were_not_checked(tmp_path: Path) -> None:
    made = sf.protect(people(), [sf.KAnonymity(5), sf.TCloseness(0.9, "disease")], SEARCH)
    found = sf.verify(made.save(tmp_path / "out"))
    assert found.holds
    closing = found.explain().splitlines()[-1]
    assert closing.startswith("every claim that could be checked holds; 1 not checked: TCloseness(disease)")
    assert "prove nothing about who made it" in found.explain()


def test_a_release_of_which_no_claim_could_be_checked_is_not_said_to_hold(tmp_path: Path) -> None:
    made = sf.protect(people(), [sf.TCloseness(0.9, "disease")], SEARCH)
    found = sf.verify(made.save(tmp_path / "out"))
    assert not found.holds
    assert found.explain().splitlines()[-1].startswith("no claim could be checked: TCloseness(disease)")
    assert sf.verify(tmp_path / "out", original=table()).explain().endswith("the release keeps what it claims")


def test_columns_that_were_not_touched_are_none_on_the_card() -> None:
    made = sf.protect(
        sf.read(table().drop_columns(["name"]), schema().replace(columns=dict(list(schema().columns.items())[1:]))),
        [sf.KAnonymity(5)],
        SEARCH,
    )
    assert "<dt>removed columns</dt><dd>none</dd>" in made.card("owner").replace("\n", "")
