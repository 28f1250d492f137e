"""Baskets as a release: published, read back, verified with the owner's list and without it; what was changed is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.core.errors import InputError, Unsupported, VerificationFailed
from sfumato.core.outcome import Outcome
from sfumato.data.transactions_lists import ItemsetList
from sfumato.workflow.publishing.saving import describe_file, pretty

BASKETS = sf.data.Transactions.of(
    [[*"abcd"], [*"abc"], [*"acd"], ["whole milk", "a"], [], ["planted", "b"], ["planted", "b", "c"]]
)
LISTED = [["planted", "b"], ["a", "b", "c"]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    outcome = sf.rules.hide(BASKETS, LISTED, 2, confidence=0.9, rules=[(["d"], ["c"])])
    return sf.publish(outcome, tmp_path / "ledger.db", dataset="shop").save(tmp_path / "out")


def owners(folder: Path) -> Path:
    return folder / "owner" / "itemsets.json"


def test_a_release_is_verified_with_the_list_and_says_what_it_cannot_judge_without(folder: Path) -> None:
    ledger = folder.parent / "ledger.db"
    found = sf.verify(folder, itemsets=owners(folder), ledger=ledger)
    assert found.verdict == "keeps"
    assert "0 of 3 itemsets and rules are derived" in found.explain()
    without = sf.verify(folder, ledger=ledger)
    assert without.verdict == "not checked"
    assert "pass it (--itemsets) to check this claim" in without.explain()


def test_the_list_is_nowhere_in_what_is_given_away_nor_in_the_ledger(folder: Path) -> None:
    """An item that the list alone is about is still in the baskets, but nothing tells that it was on the list."""
    public = folder / "public"
    assert sorted(path.name for path in public.iterdir()) == ["baskets.dat", "card.html", "certificate.json"]
    told = b"".join(path.read_bytes() for path in public.iterdir() if path.name != "baskets.dat")
    ledger = b"".join(path.read_bytes() for path in folder.parent.glob("ledger.db*"))
    assert b"planted" not in told and b"planted" not in ledger and b"whole milk" not in told
    claim = json.loads((public / "certificate.json").read_bytes())["claims"][0]
    assert claim["parameters"] == {"support": 2, "confidence": 0.9}
    assert claim["reference"] == f"itemsets {ItemsetList.read(owners(folder)).digest}"
    assert (folder / "owner").stat().st_mode & 0o077 == 0
    assert json.loads((folder / "owner" / "side_effects.json").read_bytes())["hiding_failures"] == 0


def test_baskets_leave_in_the_order_of_their_content(folder: Path) -> None:
    lines = (folder / "public" / "baskets.dat").read_text().split("\n")[:-1]
    baskets = [tuple(line.split("\t")) if line else () for line in lines]
    assert baskets == sorted(baskets) and len(baskets) == len(BASKETS)
    assert ("a", "whole milk") in baskets


def test_another_list_is_told_by_its_digest_and_one_without_key_is_measured(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_bytes(ItemsetList((("a", "c"),), key=bytes(32)).written())
    assert "is not the one that the certificate names by its digest" in sf.verify(folder, itemsets=other).explain()
    (tmp_path / "list.txt").write_text("# mine\nplanted, b\n\na, b, c\nd -> c\n")
    by_text = sf.verify(folder, itemsets=tmp_path / "list.txt")
    assert by_text.verdict == "keeps" and "the key of its digest shows" in by_text.explain()
    broken = sf.verify(folder, itemsets=sf.Hidden([["a", "c"]], 2))
    assert broken.verdict == "does not keep" and "1 of 1 itemsets and rules are derived, which breaks it" in broken.explain()


def test_what_is_still_derived_is_never_released() -> None:
    lazy: Outcome[Any] = Outcome(BASKETS, (sf.Hidden(LISTED, 2),), {"name": "SupportReduction"}, {"private": True})
    with pytest.raises(VerificationFailed, match="2 of 2 itemsets and rules are still derived; nothing was released") as refused:
        sf.publish(lazy)
    assert "planted" not in str(refused.value)


def test_a_seeded_tie_is_a_demonstration() -> None:
    release = sf.publish(sf.rules.hide(BASKETS, LISTED, 2, method="GreedyHiding", seed=1))
    assert release.verify().verdict == "demonstration" and release.certificate.content == "Baskets"
    with pytest.raises(Unsupported, match="no table and has no rows"):
        release.head()


def _lines(folder: Path, change: Callable[[bytes], bytes]) -> None:
    place = folder / "public" / "baskets.dat"
    place.write_bytes(change(place.read_bytes()))
    _certificate(folder, lambda stated: stated["files"].update({"baskets.dat": describe_file(place)}))


def _certificate(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    place = folder / "public" / "certificate.json"
    stated = json.loads(place.read_bytes())
    change(stated)
    place.write_bytes(pretty(stated))


def _claim(**changes: Any) -> Callable[[Path], None]:
    return lambda folder: _certificate(folder, lambda stated: stated["claims"][0].update(changes))


FORGERIES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a basket more": (lambda folder: _lines(folder, lambda raw: raw + b"planted\tb\n" * 2), "not written as releases write it"),
    "frequent again": (
        lambda folder: _lines(folder, lambda raw: b"".join(sorted((raw + b"a\tb\tc\n" * 2).splitlines(True)))),
        "",
    ),
    "out of order": (lambda folder: _lines(folder, lambda raw: b"".join(raw.splitlines(True)[::-1])), "sorted, each item once"),
    "an item twice": (lambda folder: _lines(folder, lambda raw: raw + b"z\tz\n"), "sorted, each item once"),
    "a control character": (lambda folder: _lines(folder, lambda raw: raw + b"z\x07\n"), "line 8"),
    "no text": (lambda folder: _lines(folder, lambda raw: raw + b"\xff\n"), "broken lines"),
    "another threshold": (_claim(parameters={"support": 5, "confidence": 0.9}), "words do not say"),
    "no threshold": (_claim(parameters={"support": "2"}), "thresholds are none"),
    "the list in the parameters": (_claim(parameters={"support": 2, "itemsets": [["a"]]}), "thresholds are none"),
    "not held": (_claim(holds=False), "does not hold"),
    "another number": (_claim(measured=1), "words do not say"),
    "a reference without digest": (_claim(reference="itemsets of ours"), "names no list by its digest"),
    "an argument": (_claim(argument="trust us"), "only a claim about a process has"),
    "a file more": (
        lambda folder: (folder / "public" / "more.dat").write_text("x") and None,
        "files the certificate does not name",
    ),
    "a fingerprint": (
        lambda folder: _certificate(folder, lambda stated: stated.update(fingerprint=f"sfumato-fingerprint-1:{'0' * 64}")),
        "what only a table of records has",
    ),
    "too large": (
        lambda folder: _certificate(folder, lambda stated: stated["files"]["baskets.dat"].update(bytes=10**12)),
        "said to be larger",
    ),
}


@pytest.mark.parametrize("name", sorted(FORGERIES))
def test_what_a_stranger_changed_is_refused(folder: Path, name: str) -> None:
    forge, words = FORGERIES[name]
    listed = owners(folder).read_bytes()
    copied = folder.parent / "copied"
    shutil.copytree(folder, copied)
    forge(copied)
    (folder.parent / "list.json").write_bytes(listed)
    found = sf.verify(copied, itemsets=folder.parent / "list.json")
    assert found.verdict == "does not keep" and words in found.explain(), found.explain()


def test_lists_and_tables_are_for_what_they_are_about(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="pass itemsets="):
        sf.verify(folder, original="people.csv")
    people = sf.read(sf.data.sample_table(200), schema=sf.data.sample_schema())
    table = sf.protect(people, [sf.KAnonymity(2)], ledger=None).save(tmp_path / "table")
    with pytest.raises(InputError, match="this release has none"):
        sf.verify(table, itemsets=owners(folder))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a -> a\nb, b2\n -> c\n", "line 1, 3"),
        ("# nothing\n", "no itemset and no rule"),
        ('{"format": "other"}', "no list of itemsets as releases write it"),
        ("{" * 5_000, "no list of itemsets"),
        ('{"format":"sfumato-itemsets-1","key":"00","itemsets":[["a"]],"rules":[]}', "a key of another length"),
    ],
)
def test_a_broken_list_is_refused_without_its_items(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "list.txt").write_text(text)
    with pytest.raises(InputError, match=words) as refused:
        ItemsetList.read(tmp_path / "list.txt")
    assert "b2" not in str(refused.value)


def test_guesses_just_below_the_threshold_are_scored_by_the_list(folder: Path) -> None:
    baskets = sf.data.Transactions.of([[*"abc"]] * 6 + [[*"ab"], [*"ac"], [*"bc"]] * 3 + [[*"de"]] * 9)
    hidden = sf.Hidden([["a", "b", "c"]], 5)
    release = sf.publish(sf.rules.hide(baskets, hidden, method="SupportReduction"))
    attack = sf.attacks.GuessHidden()
    guesses = attack.guesses(release.view())
    assert guesses.itemsets == (("a", "b", "c"),)
    (result,) = sf.attack(release, knowledge={"itemsets": hidden})
    assert (result.attack, result.success, result.targets) == ("GuessHidden", 1.0, 1)
    assert result.baseline == 1 / guesses.possible_itemsets < 0.5
    assert guesses.possible_itemsets == 1 + 6  # abc, and the pairs of a letter of abc with one of de
    missed = attack.run(release.view(), ItemsetList((("a", "d"),)))
    assert missed.success == 0.0
    assert sf.attack(folder) == []
    (by_file,) = sf.attack(folder, knowledge={"itemsets": str(owners(folder))})
    assert by_file.targets == 3


def test_rules_one_basket_short_are_guessed() -> None:
    baskets = sf.data.Transactions.of([[*"ab"]] * 8 + [["a"]] * 2 + [["b"]] * 10)
    hidden = sf.Hidden((), 2, 0.8, [(["a"], ["b"])])
    release = sf.publish(sf.rules.hide(baskets, hidden))
    (result,) = sf.attack(release, knowledge={"itemsets": hidden})
    assert sf.attacks.GuessHidden().guesses(release.view()).rules == ((("a",), ("b",)),)
    assert (result.success, result.baseline) == (1.0, 0.5)
