"""How released texts are read when nobody describes them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sfumato import attacks
from sfumato.attacks.several.coverage import covering, overlapping
from sfumato.attacks.tables.meaning import TextMeaning, read
from sfumato.data.hierarchies.hierarchy import Hierarchy
from tests.attacks.published import bare

VALUES = ["13001", "13099", "14853", "20", "29", "30", "130", "Ulm", None]


@pytest.mark.parametrize(
    ("text", "stands_for"),
    [
        ("*", VALUES),
        ("*****", VALUES),
        ("130**", ["13001", "13099", "130"]),
        ("1*", []),
        ("**853", ["14853"]),
        ("[20, 30)", ["20", "29"]),
        ("[20, 30]", ["20", "29", "30"]),
        ("[20; 29]", ["20", "29"]),
        ("[a, b)", []),
        ("Ulm", ["Ulm"]),
        (None, [None]),
    ],
)
def test_a_text_is_read_by_its_form(text: str | None, stands_for: list[str | None]) -> None:
    found = covering([read(text)], VALUES)
    assert [value for i, value in enumerate(VALUES) if found.offsets[i + 1] > found.offsets[i]] == stands_for


def test_a_range_of_an_ordered_attribute_holds_the_values_between() -> None:
    grades = Hierarchy.from_levels([[g, "*"] for g in ("low", "middle", "high", "top")], ordered=True)
    assert read("[low, high]", tree=grades).leaves == {"low", "middle", "high"}
    assert read("[low, high]").leaves == {"[low, high]"}


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("[20, 30)", "[29, 40)", True),
        ("[20, 30)", "[30, 40)", False),
        ("[20, 30]", "[30, 40)", True),
        ("130**", "13***", True),
        ("130**", "131**", False),
        ("**853", "***53", True),
        ("**853", "***54", False),
        ("130**", "13053", True),
        ("130**", "14053", False),
        ("[20, 30)", "25", True),
        ("[20, 30)", "35", False),
        ("*", "anything", True),
        ("[20, 30)", "2*", True),
        ("a", "a", True),
        ("a", "b", False),
    ],
)
def test_texts_of_two_releases_meet_when_one_value_can_be_behind_both(one: str, other: str, meet: bool) -> None:
    for first, second in ((one, other), (other, one)):
        found = overlapping([read(first)], [read(second)])
        assert bool(found.labels.size) is meet


def test_a_hostile_mask_takes_no_time() -> None:
    assert not read("*" * 5000 + "b").fits("a" * 5000)
    assert read("*a" * 200).everything


def test_masks_meet_only_masks() -> None:
    assert not TextMeaning().may_share_a_text(read("13*"))
    assert not TextMeaning().fits("13")


def test_releases_without_hierarchies_are_laid_over_each_other() -> None:
    first = bare(
        {"zip": ["130**"] * 2, "age": ["[20, 30)"] * 2, "s": ["u", "v"]},
        quasi=["zip", "age"],
        sensitive=["s"],
    )
    second = bare(
        {"zip": ["1305*"] * 2, "age": ["[25, 35)"] * 2, "s": ["v", "w"]},
        quasi=["zip", "age"],
        sensitive=["s"],
    )
    original = pa.table({"zip": ["13053"], "age": [27]})
    for knowledge in (second, attacks.OtherReleases((second,), original)):
        found = attacks.Intersection().run(first, knowledge)
        assert found.details["worst_remaining_group"] == 1
        assert found.success == 1.0
