"""What a minimally generalised release tells about why it was generalised."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import attacks
from sfumato.attacks.tables import possible_worlds
from sfumato.attacks.tables.minimality import KnownAlgorithm, Minimality
from sfumato.core.errors import InputError, MissingColumn, ParameterError, Unsupported
from sfumato.core.view import View
from tests.attacks.published import bare
from tests.examples import examples

Classes = list[list[tuple[int, list[str]]]]  # classes of groups of people with equal age: the age and the diseases


def release(classes: Classes) -> tuple[View, pa.Table]:
    """A table of ranges of ages with the diseases, and the register of the people behind it."""
    shown, diseases, ages = [], [], []
    for groups in classes:
        low, high = min(age for age, _ in groups), max(age for age, _ in groups) + 1
        for age, values in groups:
            shown += [f"[{low}, {high})"] * len(values)
            diseases += values
            ages += [age] * len(values)
    return bare({"age": shown, "disease": diseases}, quasi=["age"], sensitive=["disease"]), pa.table({"age": ages})


def holds(values: Sequence[str], l: int, requirement: str, protected: Sequence[str] | None) -> bool:  # noqa: E741
    counts = Counter(values)
    if requirement == "distinct":
        return len(counts) >= l
    return all(n * l <= len(values) for value, n in counts.items() if protected is None or value in protected)


def worlds(groups: list[tuple[int, list[str]]]) -> Iterator[list[list[str]]]:
    """Every assignment of the diseases of a class to its people, one by one."""
    people = [disease for _, values in groups for disease in values]
    ends = [sum(len(values) for _, values in groups[: i + 1]) for i in range(len(groups))]
    for order in permutations(people):
        yield [list(order[end - len(values) : end]) for end, (_, values) in zip(ends, groups, strict=True)]


def finer_possible(groups: list[list[str]], known: KnownAlgorithm) -> bool | None:
    """Whether the algorithm would have published a finer class; None where k left it no choice."""
    everybody = range(len(groups))
    splits = [[[g] for g in everybody]]
    if known.refinement == "any split":
        splits = [[list(b), [g for g in everybody if g not in b]] for n in everybody if n for b in combinations(everybody, n)]
    joined = [[[value for g in block for value in groups[g]] for block in split] for split in splits]
    allowed = [split for split in joined if all(len(block) >= known.k for block in split)]
    if not allowed:
        return None
    return any(all(holds(block, known.l, known.requirement, known.protected) for block in split) for split in allowed)


def believed(classes: Classes, known: KnownAlgorithm) -> dict[tuple[int, int, str], Fraction]:
    """By going through every world of the whole table, person by person."""
    found: Counter[tuple[int, int, str]] = Counter()
    if known.recoding == "global":
        total = 0
        for world in product(*(list(worlds(groups)) for groups in classes)):
            choices = [True if len(groups) == 1 else finer_possible(groups, known) for groups in world]
            if None not in choices and all(choices):
                continue
            total += 1
            for c, groups in enumerate(world):
                for g, values in enumerate(groups):
                    found.update((c, g, value) for value in values)
        return {key: Fraction(n, total * len(classes[key[0]][key[1]][1])) for key, n in found.items()}
    shares: dict[tuple[int, int, str], Fraction] = {}
    for c, groups in enumerate(classes):
        seen: Counter[tuple[int, int, str]] = Counter()
        total = 0
        for world in worlds(groups):
            if len(groups) > 1 and finer_possible(world, known):
                continue
            total += 1
            for g, values in enumerate(world):
                seen.update((c, g, value) for value in values)
        shares |= {key: Fraction(n, total * len(groups[key[1]][1])) for key, n in seen.items()}
    return shares


def reasoned(classes: Classes, known: KnownAlgorithm) -> dict[tuple[int, int, str], Fraction]:
    view, _ = release(classes)
    found: dict[tuple[int, int, str], Fraction] = {}
    places: Counter[int] = Counter()
    for belief in Minimality().beliefs(view, known, "disease"):
        for value, chance in belief.probability.items():
            if chance:
                found[belief.klass, places[belief.klass], str(value)] = chance
        places[belief.klass] += 1
    return found


def test_two_people_who_were_merged_with_four_others_must_both_be_sick() -> None:
    """2-diversity allows one sick of two and two of four: only two sick among the two needed merging."""
    classes: Classes = [[(1, ["HIV", "HIV"]), (2, ["none"] * 4)]]
    view, register = release(classes)
    known = KnownAlgorithm(register, l=2, protected=("HIV",))
    assert reasoned(classes, known) == {(0, 0, "HIV"): 1} == believed_of_sick(classes, known)
    found = attacks.Minimality().run(view, known)
    assert (found.success, found.baseline, found.targets) == (1.0, 0.5, 2)
    assert found.details["without_minimality"] == pytest.approx(1 / 3)
    assert found.details["people_above_the_promise"] == 2
    assert "HIV" not in found.finding


def believed_of_sick(classes: Classes, known: KnownAlgorithm) -> dict[tuple[int, int, str], Fraction]:
    return {key: chance for key, chance in believed(classes, known).items() if key[2] == "HIV"}


def test_what_k_forced_tells_nothing() -> None:
    classes: Classes = [[(1, ["HIV", "HIV"]), (2, ["none"] * 4)]]
    view, register = release(classes)
    for recoding in ("local", "global"):
        known = KnownAlgorithm(register, l=2, k=3, protected=("HIV",), recoding=recoding)  # type: ignore[arg-type]
        found = Minimality().run(view, known)
        assert found.success == pytest.approx(1 / 3)
        assert found.details["classes_merged_for_k"] == 1


def test_a_class_that_was_not_merged_tells_what_it_shows() -> None:
    classes: Classes = [[(1, ["HIV", "none"])], [(2, ["HIV", "HIV"]), (3, ["none", "none", "none"])]]
    view, register = release(classes)
    found = reasoned(classes, KnownAlgorithm(register, l=2, protected=("HIV",)))
    assert found[0, 0, "HIV"] == Fraction(1, 2)
    # Three groups of worlds need merging: both sick are the two, or two of the three are.
    assert found[1, 0, "HIV"] == Fraction(1, 4)
    assert found[1, 1, "HIV"] == Fraction(1, 2)


DISEASES = st.lists(st.sampled_from(["HIV", "flu", "cold"]), min_size=1, max_size=3)


def everything_fits(classes: Classes, known: KnownAlgorithm) -> bool:
    """The release keeps the requirement and the algorithm would not have published a finer one."""
    for groups in classes:
        if not holds([value for _, values in groups for value in values], known.l, known.requirement, known.protected):
            return False
    choices = [finer_possible([values for _, values in groups], known) for groups in classes if len(groups) > 1]
    if known.recoding == "global":
        return bool(choices) and not (None not in choices and all(choices))
    return not any(choices)


@settings(max_examples=examples(100))
@given(
    st.lists(DISEASES, min_size=2, max_size=3).filter(lambda groups: sum(map(len, groups)) <= 6),
    st.lists(DISEASES, min_size=1, max_size=2).filter(lambda groups: sum(map(len, groups)) <= 4),
    st.sampled_from([("frequency", None), ("frequency", ("HIV",)), ("distinct", None)]),
    st.sampled_from([("local", "original"), ("local", "any split"), ("global", "original")]),
    st.integers(1, 2),
)
def test_beliefs_are_those_of_going_through_all_worlds(
    first: list[list[str]], second: list[list[str]], required: Any, algorithm: Any, k: int
) -> None:
    classes: Classes = [
        [(10 + i, values) for i, values in enumerate(first)],
        [(20 + i, values) for i, values in enumerate(second)],
    ]
    _, register = release(classes)
    known = KnownAlgorithm(register, 2, k, required[0], required[1], algorithm[0], algorithm[1])
    if not everything_fits(classes, known):
        return
    expected = believed(classes, known)
    if known.protected is not None:
        expected = {key: chance for key, chance in expected.items() if key[2] in known.protected}
    assert reasoned(classes, known) == expected


def test_large_classes_are_left_as_they_are_shown() -> None:
    classes: Classes = [[(age, ["HIV", "none"] * 10) for age in range(5)], [(9, ["none"])]]
    view, register = release(classes)
    found = Minimality(max_worlds=10).run(view, KnownAlgorithm(register, l=2, protected=("HIV",)))
    assert (found.success, found.details["classes_too_large"]) == (0.5, 1)


SHAPES: list[tuple[list[int], dict[str, int], bool]] = [
    ([1] * 1200, {"a": 600, "b": 600}, False),
    ([1] * 1200, {str(value): 1 for value in range(1200)}, False),
    ([600, 600], {str(value): 1 for value in range(1200)}, False),
    ([100] * 6, {"a": 300, "b": 300}, False),
    ([1] * 21, {"a": 10, "b": 11}, True),
    ([1] * 60, {"a": 1, "b": 59}, True),
    ([1] * 20_000, {"a": 1, "b": 19_999}, False),
]


@pytest.mark.parametrize(("sizes", "values", "any_split"), SHAPES)
def test_large_classes_are_recognised_without_going_through_their_tables(
    sizes: list[int], values: dict[str, int], any_split: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone_through(*_: Any) -> Any:
        raise AssertionError("nothing may be gone through")

    monkeypatch.setattr(possible_worlds, "_tables", gone_through)
    monkeypatch.setattr(possible_worlds, "_finer", gone_through)
    requirement = possible_worlds.Requirement(2, 1, False, any_split)
    assert possible_worlds.worlds_of_class(sizes, values, requirement, 200_000).too_large


def test_a_class_of_many_different_people_is_no_obstacle() -> None:
    """Twelve hundred groups are more than calls may be nested."""
    classes: Classes = [[(age, ["HIV" if age < 600 else "none"]) for age in range(1200)]]
    view, register = release(classes)
    found = Minimality().run(view, KnownAlgorithm(register, l=2, protected=("HIV",)))
    assert (found.success, found.details["classes_too_large"]) == (0.5, 1)


def test_more_groups_or_values_than_calls_may_be_nested_are_gone_through() -> None:
    many = 1100
    tables = possible_worlds._tables((1,) * many, (1, many - 1))
    assert sum(1 for _ in itertools.islice(tables, 3)) == 3
    assert sum(1 for _ in possible_worlds._rows(1, (1,) * many)) == many


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4), st.lists(st.integers(0, 6), min_size=1, max_size=3), st.integers(1, 40)
)
def test_there_are_at_least_as_many_tables_as_foretold(sizes: list[int], values: list[int], enough: int) -> None:
    left = sum(sizes) - sum(values)
    if left < 0:
        return
    margins = (*values, left)
    tables = list(possible_worlds._tables(tuple(sizes), margins))
    assert len({table for table, _ in tables}) == len(tables)
    assert all([sum(row) for row in table] == sizes for table, _ in tables)
    assert all(tuple(map(sum, zip(*table, strict=True))) == margins for table, _ in tables)
    assert 1 <= possible_worlds._tables_at_least(tuple(sizes), margins, enough) <= len(tables)
    # Every assignment of values to people is in exactly one table.
    assignments = math.factorial(sum(sizes)) // math.prod(map(math.factorial, margins))
    assert sum(weight for _, weight in tables) == assignments


@given(st.lists(st.integers(1, 6), min_size=2, max_size=6), st.integers(1, 8), st.booleans())
def test_k_forces_a_merger_where_no_split_has_k_people_on_both_sides(sizes: list[int], k: int, any_split: bool) -> None:
    requirement = possible_worlds.Requirement(2, k, False, any_split)
    assert possible_worlds._merged_for_k(tuple(sizes), requirement) == (not possible_worlds._finer(tuple(sizes), requirement))


def test_what_cannot_be_attacked_is_said() -> None:
    classes: Classes = [[(1, ["HIV", "HIV"]), (2, ["none"] * 4)]]
    view, register = release(classes)
    with pytest.raises(InputError, match="KnownAlgorithm"):
        Minimality().run(view)
    with pytest.raises(InputError, match="exactly the people"):
        Minimality().run(view, KnownAlgorithm(register.slice(1), l=2))
    with pytest.raises(InputError, match="1 people of the register are in no released class"):
        Minimality().run(view, KnownAlgorithm(pa.table({"age": [1, 1, 2, 2, 2, 50]}), l=2))
    overlapping = bare({"age": ["[1, 3)", "[1, 3)", "2", "2"], "disease": list("abab")}, quasi=["age"], sensitive=["disease"])
    with pytest.raises(Unsupported, match="overlap"):
        Minimality().run(overlapping, KnownAlgorithm(pa.table({"age": [1, 2, 2, 2]}), l=2))
    with pytest.raises(MissingColumn, match="not in the register"):
        Minimality().run(view, KnownAlgorithm(pa.table({"size": [1]}), l=2))
    with pytest.raises(InputError, match="breaks the requirement"):
        Minimality().run(view, KnownAlgorithm(register, l=4, protected=("HIV",)))
    harmless: Classes = [[(1, ["HIV", "a", "b", "c"]), (2, ["d", "e", "f", "g"])]]
    safe, people = release(harmless)
    for recoding in ("local", "global"):
        with pytest.raises(InputError, match="not the algorithm"):
            Minimality().run(safe, KnownAlgorithm(people, l=2, recoding=recoding))  # type: ignore[arg-type]
    faults: tuple[dict[str, Any], ...] = (
        {"l": 1},
        {"l": 2.5},
        {"l": True},
        {"l": 2, "k": 0},
        {"l": 2, "protected": "HIV"},
        {"l": 2, "requirement": "x"},
        {"l": 2, "recoding": "x"},
        {"l": 2, "refinement": "x"},
        {"l": 2, "requirement": "distinct", "protected": ("HIV",)},
        {"l": 2, "recoding": "global", "refinement": "any split"},
    )
    for fault in faults:
        with pytest.raises(ParameterError):
            KnownAlgorithm(register, **fault)
    for settings_of_attack in ({"max_worlds": 0}, {"max_worlds": 1.5}, {"value": ["HIV"]}):
        with pytest.raises(ParameterError):
            Minimality(**settings_of_attack)  # type: ignore[arg-type]


def test_a_value_asked_for_is_the_only_one_that_counts() -> None:
    """Both of the two are sick, none of the four: whoever asks about health learns no more than the release shows."""
    classes: Classes = [[(1, ["HIV", "HIV"]), (2, ["none"] * 3 + ["flu"])], [(5, ["HIV", "flu"])]]
    view, register = release(classes)
    known = KnownAlgorithm(register, l=2)
    for value in ("HIV", "flu", "none"):
        told = [belief.probability.get(value, Fraction(0)) for belief in Minimality().beliefs(view, known, "disease")]
        found = Minimality(value=value).run(view, known)
        assert found.details["max_posterior"] == str(max(told)) and found.baseline == 0.5
        assert value not in found.finding and value not in str(found.details) and value not in repr(Minimality(value=value))
    assert Minimality().run(view, known).success == max(
        Minimality(value=v).run(view, known).success for v in ("HIV", "flu", "none")
    )
    distinct = Minimality(value="flu").run(view, KnownAlgorithm(register, l=2, requirement="distinct"))
    assert distinct.baseline == 0.5  # the share of the class that shows most of it
    for protected, value in ((None, "canary-7"), (("HIV",), "flu")):
        with pytest.raises(InputError, match="no protected value") as refusal:
            Minimality(value=value).run(view, KnownAlgorithm(register, l=2, protected=protected))
        assert value not in str(refusal.value)


def test_values_that_are_numbers_are_compared_in_their_text_form() -> None:
    ages = {"age": ["[1, 3)"] * 6, "code": [7.0, 7.0, 1.0, 1.0, 2.0, 2.0]}
    view, register = bare(ages, quasi=["age"], sensitive=["code"]), pa.table({"age": [1, 1, 2, 2, 2, 2]})
    known = KnownAlgorithm(register, l=2, protected=("7",))
    assert Minimality(value=7).run(view, known).success == Minimality(value="7").run(view, known).success == 1.0
