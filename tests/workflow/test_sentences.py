"""Sentences about data that are true of adversarial tables too."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato import attacks
from sfumato.cli.main import run
from sfumato.core.view import View
from sfumato.data.schema import Column, Schema
from sfumato.dp.refute.tester import Refutation
from sfumato.report.checklist import checklist
from sfumato.report.content import CardContent
from tests.report.sample import certificate
from tests.workflow.people import people, release, table

SEARCH = sf.Lattice(suppression=0.2)


def test_a_list_of_another_dataset_does_not_call_the_ledger_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = str(tmp_path / "ledger.db")
    release(ledger=ledger)
    for command, what in (("releases", "releases"), ("show", "entries")):
        assert run(["ledger", command, "--ledger", ledger, "--dataset", "another"]) == 0
        assert capsys.readouterr().out == f"the ledger has no {what} of 'another'\n"


def test_a_release_that_is_made_again_knows_what_came_between(tmp_path: Path) -> None:
    """The first release entered once more is the same entry, but no longer the only one."""
    release(ledger=tmp_path / "l.db")
    sf.protect(people(), sf.KAnonymity(4), SEARCH, ledger=tmp_path / "l.db")
    assert release(ledger=tmp_path / "l.db").certificate.composition["earlier_releases"] == 1


def test_the_same_rows_again_are_not_called_the_first_release(tmp_path: Path) -> None:
    release(ledger=tmp_path / "l.db")
    second = sf.protect(people(), [sf.KAnonymity(5)], sf.Lattice(suppression=0.06), ledger=tmp_path / "l.db")
    assert second.data.equals(release().data)
    assert second.certificate.composition["finding"] == "the same rows were released before"


def test_certain_about_a_masked_column_is_about_what_is_shown(tmp_path: Path) -> None:
    """Everybody's published illness is one value of a channel that changes it, so nothing is certain about people."""
    rows = pa.table({"q": ["a"] * 8, "illness": ["flu", "cold"] * 4})
    data = sf.read(rows, Schema.of("d", quasi=["q"], sensitive=["illness"]))
    made = sf.protect(data, [], sf.Pram(0.6, columns=("illness",)), attacks=["Homogeneity"])
    assert "A mask changed this column" in made.certificate.attacks[0]["finding"]
    plain = View(rows, data.schema)
    assert "A mask" not in attacks.Homogeneity().run(plain).finding


def test_pseudonyms_that_are_published_are_pointed_at() -> None:
    made = sf.protect(people(name=Column(role="identifier", pseudonym=True)), [sf.KAnonymity(5)], SEARCH)
    points = {point.principle: point for point in checklist(CardContent(made.certificate))}
    assert "pseudonyms are published and can be followed: name" in points["2. Private by default"].because
    assert "leaves out identifiers" not in points["2. Private by default"].because


def test_a_seeded_fingerprint_is_not_said_to_keep_its_input_secret() -> None:
    from sfumato.report.card import release_card

    kept = release_card(CardContent(certificate()), audience="public")
    assert "without it no guess about the input" in kept
    seeded = release_card(CardContent(dataclasses.replace(certificate(), private=False)), audience="public")
    assert "without it no guess" not in seeded and "comes from the seed" in seeded
    none = release_card(CardContent(dataclasses.replace(certificate(), fingerprint=None)), audience="public")
    assert "The fingerprint is keyed" not in none


@pytest.mark.parametrize("epsilon", [1.23456, 0.99996, 1234.56, 2.0, 1e-9])
def test_a_lower_bound_is_never_rounded_up(epsilon: float) -> None:
    told = Refutation(True, 0.5, 0.0, epsilon, 0.0, None, 10, 20, 0.99, 0.1).explain()
    assert 0.999 * epsilon <= float(told.split("at least ")[1].split(" ")[0]) <= epsilon


@pytest.mark.parametrize("bound", [1_234_564, 333_333.25, 7])
def test_an_upper_bound_is_never_rounded_down(bound: float) -> None:
    from sfumato.core.exact import rounded_to

    assert bound <= rounded_to(6, bound, up=True) <= bound * 1.00001
    assert bound >= rounded_to(6, bound, up=False) >= bound / 1.00001


def test_pseudonyms_made_with_other_keys_do_not_make_releases_disjoint(tmp_path: Path) -> None:
    described = people(name=Column(role="identifier", pseudonym=True))
    for key in ("one", "two"):
        made = sf.protect(described, [sf.KAnonymity(5)], SEARCH, ledger=tmp_path / "l.db", key=tmp_path / key)
    found = made.certificate.composition
    assert found["compared"] == 1 and found["details"]["worst_remaining_group"] >= 1
    # nobody can tell another key from another table
    assert "The table, or the key of its fingerprint, was another one then" in found["finding"]


@pytest.mark.parametrize("seeds", [(1, None), (None, 1), (1, 2), (1, 1)])
def test_a_seeded_release_of_the_same_table_is_not_said_to_be_of_another(
    tmp_path: Path, seeds: tuple[int | None, int | None]
) -> None:
    """The key of a seeded fingerprint comes from the seed: two fingerprints that differ do not say that two tables do."""
    release(ledger=tmp_path / "l.db", seed=seeds[0])
    made = sf.protect(people(), [sf.KAnonymity(9)], SEARCH, ledger=tmp_path / "l.db", seed=seeds[1])
    finding = made.certificate.composition["finding"]
    assert "was another one then" not in finding
    assert ("Whether the table changed since cannot be told" in finding) is (seeds[0] != seeds[1])


def test_two_kinds_of_masks_of_one_column_are_both_told(tmp_path: Path) -> None:
    both = ("age", "visits")
    for method in (sf.AdditiveNoise(0.5, columns=both), sf.RankSwapping(p=10, columns=both)):
        for _ in range(2):
            sf.mask(people(), method, ledger=tmp_path / "l.db")
    again = sf.mask(people(), sf.AdditiveNoise(0.5, columns=both), ledger=tmp_path / "l.db").certificate.composition
    assert "the noise in each of 'age' and 'visits' (3 releases) may average" in again["finding"]
    assert "the noise in 'age'" in again["repeated_masks"]["age"] and "the rank in 'age'" in again["repeated_masks"]["age"]
    assert "None of them could be compared" in again["finding"]


def test_what_is_kept_beside_the_ledger_holds_no_suppressed_value(tmp_path: Path) -> None:
    """What is kept beside the ledger describes texts; values of records that were suppressed are in no file."""
    rows = table()
    rows = rows.set_column(2, "zip", pa.array(["98765", *rows.column("zip").to_pylist()[1:]]))
    rows = rows.set_column(1, "age", pa.array([4711, *rows.column("age").to_pylist()[1:]]))
    sf.protect(sf.read(rows, people().schema), sf.KAnonymity(5), SEARCH, ledger=tmp_path / "l.db")
    for path in (tmp_path / "l.db.releases").glob("*.json"):
        text = path.read_text(encoding="utf-8")
        assert "98765" not in text and "4711" not in text and "person 0" not in text


def test_releases_that_cannot_be_compared_are_not_passed_over_in_silence(tmp_path: Path) -> None:
    from sfumato.core.errors import Unsupported
    from tests.workflow.attacked import attack_folder

    release().save(tmp_path / "search")
    sf.protect(people(), [], sf.AdditiveNoise(0.5, columns=("age",))).save(tmp_path / "mask")
    for one, other in (("search", "mask"), ("mask", "search")):
        with pytest.raises(Unsupported, match="assume that everything the releases tell adds up"):
            attack_folder(tmp_path / one, earlier=[tmp_path / other])


def test_several_records_of_one_person_are_pointed_at() -> None:
    schema = Schema(dataset="d", columns={"x": Column(role="quasi"), "p": Column(role="unit", pseudonym=True)})
    view = View(pa.table({"x": ["a"] * 4, "p": ["1", "1", "2", "2"]}), schema)
    assert "One person may stand behind several records." in attacks.Intersection().run(view, view).finding


def test_records_of_a_unit_that_was_dropped_are_not_called_people(tmp_path: Path) -> None:
    """19 people have 57 of 60 records in the second release; one person's three are singled out by subtraction."""
    from sfumato.data.schema import HierarchySpec
    from tests.workflow.attacked import attack_folder

    rows = pa.table(
        {
            "pid": [f"p{i // 3}" for i in range(60)],
            "z": ["a1"] * 30 + ["a2"] * 3 + ["b1"] * 27,
            "ill": ["flu", "cold", "gout", "ms"] * 15,
        }
    )
    for tree, suppressed in (({"a": ["a1", "a2"], "b": ["b1"]}, 0.0), (None, 0.2)):
        quasi = Column(role="quasi", type="string", hierarchy=HierarchySpec(tree=tree) if tree else None)
        columns = {"pid": Column(role="unit", type="string"), "z": quasi, "ill": Column(role="sensitive", type="string")}
        schema = Schema(dataset="u", columns=columns)
        made = sf.protect(sf.read(rows, schema), sf.KAnonymity(2), sf.Lattice(suppression=suppressed), ledger=tmp_path / "l.db")
    told = made.certificate.composition
    exact = made.details["composition"]["records counted in the original"]
    for finding in (told["finding"], exact):
        assert "3 records in all" in finding and "3 people" not in finding
        assert "One person may stand behind several records." in finding
    assert told["records_estimated"] == 60 and "people_estimated" not in told
    made.save(tmp_path / "out")
    pq.write_table(rows.select(["z"]), tmp_path / "register.parquet")
    linkage = attack_folder(tmp_path / "out", register=str(tmp_path / "register.parquet"), only=["Linkage"])[0]
    assert linkage["finding"].startswith("Of 60 entries in the register")
    assert "Right is the very record: one person may stand behind several" in linkage["finding"]
