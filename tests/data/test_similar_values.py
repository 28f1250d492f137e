"""Likeness: what may be the same is put together, what is not stays apart, in the same way every time."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import HierarchyError, ParameterError
from sfumato.data.hierarchies import similar_values
from sfumato.data.hierarchies.group_lists import looked_up, parse_groups
from sfumato.data.hierarchies.similar_values import MOST_VALUES, edit_distance, nearest_values, plain_words, similar_groups
from tests.examples import examples


def full_distance(one: str, other: str) -> int:
    """The same distance over the whole table."""
    steps = {(i, 0): i for i in range(len(one) + 1)} | {(0, j): j for j in range(len(other) + 1)}
    for i in range(1, len(one) + 1):
        for j in range(1, len(other) + 1):
            exchanged = i > 1 and j > 1 and one[i - 1] == other[j - 2] and one[i - 2] == other[j - 1]
            steps[i, j] = min(
                steps[i - 1, j] + 1,
                steps[i, j - 1] + 1,
                steps[i - 1, j - 1] + (one[i - 1] != other[j - 1]),
                *([steps[i - 2, j - 2] + 1] if exchanged else []),
            )
    return steps[len(one), len(other)]


@settings(max_examples=examples(60))
@given(st.text("abc", max_size=8), st.text("abc", max_size=8), st.integers(0, 4))
def test_the_distance_is_exact_up_to_its_limit(one: str, other: str, most: int) -> None:
    assert edit_distance(one, other, most) == min(full_distance(one, other), most + 1)


def test_case_accents_punctuation_order_and_slips_make_no_other_group() -> None:
    values = ["Software engineer", "software  Engineer", "Engineer, software", "Sofware engineer", "Müller", "MULLER", "Driver"]
    groups = similar_groups(values, [9, 8, 7, 6, 5, 4, 3])
    assert groups == [values[:4], values[4:6], ["Driver"]]


def test_most_words_in_common_are_alike_and_half_of_them_are_not() -> None:
    values = ["registered nurse of surgery", "nurse of surgery", "sales manager", "project manager"]
    assert similar_groups(values, [4, 3, 2, 1]) == [values[:2], ["sales manager"], ["project manager"]]


def test_digits_are_no_slips_and_short_words_are_compared_exactly() -> None:
    for values in (["ward 11", "ward 12"], ["cook", "book"], ["A1", "A2"], ["?", "!"]):
        assert len(similar_groups(values, [2, 1])) == 2


def test_small_differences_lead_to_no_chain() -> None:
    chain = ["aaaaa bbbbb", "aaaaa bbbcc", "aaaaa bcccc"]  # two letters each, four between the ends
    assert similar_groups(chain, [3, 2, 1]) == [chain[:2], chain[2:]]


@settings(max_examples=examples(40))
@given(st.lists(st.text("ab é-1", max_size=8), unique=True, max_size=12), st.randoms(use_true_random=False))
def test_every_value_is_in_one_group_whatever_the_order(values: list[str], order: object) -> None:
    counts = {value: len(value) + 1 for value in values}
    groups = similar_groups(values, [counts[value] for value in values])
    assert sorted(value for group in groups for value in group) == sorted(values)
    shuffled = list(values)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert similar_groups(shuffled, [counts[value] for value in shuffled]) == groups


def test_likeness_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParameterError, match="5,000"):
        similar_groups([str(i) for i in range(MOST_VALUES + 1)], [1] * (MOST_VALUES + 1))
    compared = []
    monkeypatch.setattr(similar_values, "edit_distance", lambda one, other, most: compared.append(one) or most + 1)
    letters = "abcdefgh"
    alike = [f"wo{one * 3}{two * 3}{three * 3}er" for one in letters for two in letters for three in letters]
    assert similar_groups(alike, [1] * len(alike)) == [[value] for value in sorted(alike)]
    assert nearest_values(["woxer"], alike) == {}
    assert max(Counter(compared).values()) == 200
    compared.clear()
    similar_groups([f"number {i}" for i in range(1_000)], [1] * 1_000)
    assert compared == []  # texts with digits have no slips


def test_plain_words() -> None:
    assert plain_words("  U.S.A. ") == "usa" and plain_words("d'Été — Nord/Süd") == "dete nord sud"
    assert plain_words("Dr.Smith") == "dr smith" and plain_words("1.5") == "1 5" and plain_words("R&D") == "r and d"


def test_the_nearest_value_is_proposed_where_it_is_near() -> None:
    known = ["Bachelors", "Masters", "Doctorate"]
    assert nearest_values(["Batchelors", "MASTERS", "Mastres", "none"], known) == {
        "Batchelors": "Bachelors",
        "MASTERS": "Masters",
        "Mastres": "Masters",
    }
    assert nearest_values(["", "?", "x"], ["", "y"]) == {}


# --- lists of groups ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Health: nurse, doctor\nFood: baker\n",
        "nurse\tHealth\ndoctor\tHealth\n\nbaker\tFood",
        "nurse;Health\ndoctor;Health\nbaker;Food\n",
        '"nurse",Health\ndoctor,Health\nbaker,Food\n',
    ],
)
def test_a_list_of_groups_is_read_however_it_was_pasted(text: str) -> None:
    assert parse_groups(text) == {"nurse": "Health", "doctor": "Health", "baker": "Food"}


def test_faults_of_a_list_come_together_with_their_lines() -> None:
    with pytest.raises(HierarchyError) as caught:
        parse_groups("Health: nurse\nno colon here\nFood: nurse, baker\nEmpty:\n")
    assert all(part in str(caught.value) for part in ("3 faults", "line 2", "line 3: 'nurse'", "line 4"))
    assert caught.value.owner_only
    for text in ("", "  \n"):
        with pytest.raises(HierarchyError, match="no group"):
            parse_groups(text)


def test_values_are_looked_up_as_written_and_then_by_their_words() -> None:
    listed = {"Nurse": ("Health",), "cook": ("Food",), "COOK": ("Ships",)}
    placed, respelt = looked_up(listed, ["nurse", "Nurse", "cook", "Cook", "pilot"])
    assert placed == {"nurse": ("Health",), "Nurse": ("Health",), "cook": ("Food",)}  # "Cook" could be in two groups
    assert respelt == ("nurse",)
