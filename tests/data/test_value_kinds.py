"""Kinds of values: codes are placed by the structure of their standard, unknown ones nowhere, and every tree is a tree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import ParameterError
from sfumato.data.hierarchies.hierarchy import ROOT, Hierarchy
from sfumato.data.value_kinds import countries, icd10, isco08, listing, nace2, postcodes, telephones
from tests.examples import examples

ICD = [f"{letter}{n:02d}{rest}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" for n in range(100) for rest in ("", ".1")]
ISCO = [str(n) for n in range(10)] + [f"{n:0{d}d}" for d in (2, 3, 4) for n in range(10**d)]
NACE = [f"{n:02d}{rest}" for n in range(100) for rest in ("", ".1", ".12", ".9")] + list("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
PHONES = [
    f"{start}{n:04d}" for start in ("+41 44 123 ", "0041 44 124 ", "+1 212 555-", "044 123 ", "(212) 555-") for n in (7, 4711)
]
HALVES = ["SW1A", "M1", "EC1A", "E11", "B33", "CR2"]
BRITISH = [f"{half} {digit}AA" for half in HALVES for digit in range(10)]


def tree_of(kind_groups: object, values: list[str]) -> tuple[list[str], Hierarchy]:
    placed = {value: above for value in values if (above := kind_groups(value)) is not None}  # type: ignore[operator]
    return list(placed), Hierarchy.from_levels([[value, *above, ROOT] for value, above in placed.items()])


@pytest.mark.parametrize(
    ("groups", "values", "known"),
    [
        (icd10.groups, ICD, None),
        (isco08.groups, ISCO, 10 + 43 + 130 + 1300),
        (nace2.groups, NACE, 88 * 4 + 21),
        (countries.groups, [*countries.places()[0], *countries.names()], 2 * 249 + 300),
        (telephones.groups, PHONES, len(PHONES)),
        (postcodes.of_country("GB").groups, BRITISH, len(BRITISH)),
    ],
    ids=["icd10", "isco08", "nace2", "countries", "telephones", "british postcodes"],
)
def test_every_tree_is_a_tree(groups: object, values: list[str], known: int | None) -> None:
    """Levels nest (`from_levels` refuses two parents), every known value is covered once, and all meet in the root."""
    placed, tree = tree_of(groups, values)
    assert sorted(str(leaf) for leaf in tree.leaves) == sorted(placed) and tree.has_root
    sizes = [len(set(tree.node_of[level].tolist())) for level in range(tree.height + 1)]
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] == 1
    assert known is None or len(placed) == known


def test_every_category_is_in_one_block_and_no_block_overlaps() -> None:
    ends = [(first, last) for first, last, *_ in icd10.BLOCKS]
    assert all(first <= last for first, last in ends)
    assert all(before[1] < after[0] for before, after in zip(ends, ends[1:], strict=False))
    assert len({chapter for *_, chapter in icd10.BLOCKS}) == 22


@pytest.mark.parametrize(
    ("code", "above"),
    [
        ("E11.9", ("E11", "E10-E14", "IV Hormones, nutrition and metabolism")),
        ("e119", ("E11", "E10-E14", "IV Hormones, nutrition and metabolism")),
        ("A09.-", ("A09", "A00-A09", "I Infections and parasites")),
        ("C50", ("C50", "C50", "II Tumours")),
        ("G01*", ("G01", "G00-G09", "VI Nervous system")),
        ("D50.0", ("D50", "D50-D53", "III Blood and immune system")),
        ("Y05", ("Y05", "X85-Y09", "XX Causes from outside")),
        ("U07.1", ("U07", "U00-U49", "XXII Special purposes")),
    ],
)
def test_icd10(code: str, above: tuple[str, ...]) -> None:
    assert icd10.groups(code) == above


@pytest.mark.parametrize("code", ["A10", "E08", "C4A", "E1", "11.9", "", "diabetes", "E11.12345", "Ä11"])
def test_icd10_places_no_code_that_is_in_no_block(code: str) -> None:
    assert icd10.groups(code) is None


def test_isco08() -> None:
    assert isco08.groups("2221") == ("222", "22", "2 Professionals")
    assert isco08.groups("0110") == ("011", "01", "0 Armed forces")
    assert isco08.groups("72") == ("72", "72", "7 Crafts")
    assert (len(isco08.MAJOR_GROUPS), len(isco08.MINOR_GROUPS)) == (10, 130)
    assert [isco08.groups(code) for code in ("2700", "2291", "12345", "nurse", "", "٢٢١١")] == [None] * 6


def test_nace2() -> None:
    assert nace2.groups("62.01") == nace2.groups("6201") == nace2.groups("J62.01") == ("62.0", "62", nace2.SECTIONS["62"])
    assert nace2.groups("A 01.11") == ("01.1", "01", "A Farming, forestry and fishing")
    assert (len(nace2.SECTIONS), len(set(nace2.SECTIONS.values()))) == (88, 21)
    assert [nace2.groups(code) for code in ("04.1", "K62", "6.2", "34", "V", "")] == [None] * 6


def test_countries() -> None:
    by_letters, _ = countries.places()
    assert len([letters for letters in by_letters if len(letters) == 2]) == 249
    for name in ("CH", "CHE", "Switzerland", " switzerland"):
        assert countries.groups(name) == ("Western Europe", "Europe")
    assert countries.groups("Côte d’Ivoire") == countries.groups("Ivory-Coast") == ("Western Africa", "Africa")
    assert countries.groups("United-States") == ("Northern America", "Americas")
    assert [countries.groups(name) for name in ("ch", "Columbia", "XX", "", "Hong")] == [None] * 5


def test_telephones() -> None:
    assert (
        telephones.groups("0041 44 123 45 67") == telephones.groups("+41 44 123 45 67") == ("+4144123****", "+4144*******", "+41")
    )
    assert telephones.groups("+1 212 555 1234") == ("+1212555****", "+121********", "+1")
    assert telephones.groups("044 123 45 67") == ("044123****", "044*******", "no country code")
    assert [telephones.groups(number) for number in ("+289 1234567", "12345", "call me", "+41")] == [None] * 4


@pytest.mark.parametrize(
    ("country", "code", "width"),
    [("CH", "8001", 4), ("DE", "10115", 5), ("PL", "00-950", 6), ("NL", "1012 AB", 7), ("US", "10001", 5), ("CA", "K1A 0B1", 7)],
)
def test_postcodes_are_masked_from_the_right_over_the_national_length(country: str, code: str, width: int) -> None:
    kind = postcodes.of_country(country)
    spec = kind.parameters([code])
    assert kind.groups(code) == () and kind.groups(code[1:]) is None
    assert spec is not None and (spec.mask, spec.width) == ("right", width)


def test_postcodes_of_two_lengths_reach_the_longest_form() -> None:
    spec = postcodes.of_country("US").parameters(["10001", "10001-1234"])
    assert spec is not None and spec.width == 10
    assert postcodes.of_country("GB").groups("sw1a1aa") == ("SW1A 1", "SW1A", "SW")
    with pytest.raises(ParameterError, match="two letters"):
        postcodes.of_country("XX")


def test_a_guess_is_a_count_and_is_proposed_where_the_name_or_the_look_speaks_for_it() -> None:
    codes, counts = ["E11.9", "A09", "xx"], [50, 45, 5]
    weighed = listing.evidence("note", codes, counts)
    assert (weighed[0].kind.name, weighed[0].records, weighed[0].other_records, weighed[0].named) == ("icd10", 95, 5, False)
    assert listing.proposed(weighed) == icd10.KIND
    assert listing.proposed(listing.evidence("note", codes, [50, 20, 30])) is None  # too few fit
    digits = ["2211", "2221", "5120"]
    assert listing.proposed(listing.evidence("number", digits, [5, 5, 5])) is None  # several things look like that
    assert listing.proposed(listing.evidence("isco", digits, [5, 5, 5])) == isco08.KIND
    assert listing.proposed(listing.evidence("isco_zip", digits, [5, 5, 5])) is None  # the name says two things
    assert listing.evidence("name", ["Ann", "Bob"], [1, 1]) == ()


@settings(max_examples=examples(100))
@given(st.text("AEJ0123456789.-+ *é٢\u2212", max_size=12))
def test_any_text_is_placed_or_not_and_never_an_error(text: str) -> None:
    for name in listing.NAMES:
        kind = listing.kind_named(name, [text], [1])
        above = kind.groups(text)
        assert above is None or len(above) == len(kind.levels)


def test_a_kind_that_there_is_not_is_refused() -> None:
    with pytest.raises(ParameterError, match="icd10"):
        listing.kind_named("icd9", [], [])
    with pytest.raises(ParameterError, match="postcodes"):
        listing.kind_named("ages", [], [], "CH")
