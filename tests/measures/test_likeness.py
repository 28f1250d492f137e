"""β-likeness and δ-disclosure privacy, and what protecting some values means for every guarantee."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import InputError
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.measures.guarantees.measure import measure
from tests.measures.tables import classes_table, grouped_schema

TWO = [{"a": 6, "b": 2}, {"a": 2, "b": 6}]
SCHEMA = grouped_schema(order=("a", "b", "c"))


def value(classes: list[dict[str, int]], guarantee: ClassGuarantee) -> float:
    return measure(classes_table(classes), SCHEMA, guarantee).value


def test_beta_is_the_largest_relative_gain() -> None:
    guarantee = sf.BetaLikeness(0.5, "disease", reference="released")
    assert value(TWO, guarantee) == 0.5
    assert measure(classes_table(TWO), SCHEMA, guarantee).holds
    assert not measure(classes_table(TWO), SCHEMA, sf.BetaLikeness(0.49, "disease", reference="released")).holds


def test_enhanced_beta_is_infinite_when_a_frequent_value_gains_more_than_its_logarithm() -> None:
    """q = 0.5: at most -ln 0.5 = 0.693 may be gained; a class of one value gains 1."""
    pure = [{"a": 4}, {"b": 4}]
    assert value(pure, sf.BetaLikeness(5, "disease", reference="released")) == 1.0
    enhanced = sf.BetaLikeness(5, "disease", enhanced=True, reference="released")
    assert value(pure, enhanced) == math.inf
    assert not measure(classes_table(pure), SCHEMA, enhanced).holds
    assert value(TWO, enhanced) == 0.5


def test_delta_is_the_largest_log_ratio_and_infinite_when_a_value_is_missing() -> None:
    guarantee = sf.DeltaDisclosure(1, "disease", reference="released")
    assert value(TWO, guarantee) == pytest.approx(math.log(2))
    assert value([{"a": 1, "b": 1}, {"a": 2}], guarantee) == math.inf


def test_delta_is_strict() -> None:
    released = classes_table([{"a": 1, "b": 3}, {"a": 3, "b": 1}])
    bound = measure(released, SCHEMA, sf.DeltaDisclosure(9, "disease", reference="released")).value
    assert bound == pytest.approx(math.log(2))
    assert not measure(released, SCHEMA, sf.DeltaDisclosure(bound, "disease", reference="released")).holds
    above = math.nextafter(bound, 9)
    assert measure(released, SCHEMA, sf.DeltaDisclosure(above, "disease", reference="released")).holds


def test_a_value_the_reference_lacks_is_an_infinite_gain() -> None:
    original = classes_table([{"a": 4}])
    released = classes_table([{"a": 3, "b": 1}])
    for guarantee in (
        sf.BetaLikeness(9, "disease"),
        sf.DeltaDisclosure(9, "disease"),
        sf.TCloseness(9, "disease", distance="kl"),
    ):
        found = measure(released, SCHEMA, guarantee, original=original)
        assert found.value == math.inf and not found.holds


@pytest.mark.parametrize(
    "guarantee",
    [sf.TCloseness(0.1, "disease"), sf.BetaLikeness(1, "disease"), sf.DeltaDisclosure(1, "disease")],
)
def test_comparing_with_the_input_needs_the_input(guarantee: ClassGuarantee) -> None:
    with pytest.raises(InputError, match="original="):
        measure(classes_table(TWO), SCHEMA, guarantee)


NOTHING: tuple[str, ...] = ()


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(1, 5), min_size=1), min_size=1, max_size=4))
def test_protecting_nothing_holds_always(classes: list[dict[str, int]]) -> None:
    released = classes_table(classes)
    for guarantee in (
        sf.DistinctLDiversity(9, "disease", NOTHING),
        sf.EntropyLDiversity(9, "disease", NOTHING),
        sf.RecursiveLDiversity(0.001, 9, "disease", NOTHING),
        *(
            sf.TCloseness(0, "disease", d, "released", NOTHING)  # type: ignore[arg-type]
            for d in ("equal", "ordered", "hierarchical", "variational", "kl")
        ),
        sf.BetaLikeness(0.001, "disease", False, "released", NOTHING),
        sf.BetaLikeness(0.001, "disease", True, "released", NOTHING),
        sf.DeltaDisclosure(0.001, "disease", "released", NOTHING),
        sf.AlphaKAnonymity(0.001, 1, "disease", NOTHING),
    ):
        assert measure(released, SCHEMA, guarantee).holds, guarantee


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(1, 5), min_size=1), min_size=1, max_size=4))
def test_protecting_every_value_is_protecting_all(classes: list[dict[str, int]]) -> None:
    released = classes_table(classes)
    every = ("a", "b", "c")
    for one, other in (
        (sf.DistinctLDiversity(2, "disease"), sf.DistinctLDiversity(2, "disease", every)),
        (sf.EntropyLDiversity(2, "disease"), sf.EntropyLDiversity(2, "disease", every)),
        (
            sf.TCloseness(0.2, "disease", reference="released"),
            sf.TCloseness(0.2, "disease", "equal", "released", every),
        ),
        (
            sf.BetaLikeness(0.5, "disease", reference="released"),
            sf.BetaLikeness(0.5, "disease", False, "released", every),
        ),
        (
            sf.DeltaDisclosure(2, "disease", reference="released"),
            sf.DeltaDisclosure(2, "disease", "released", every),
        ),
    ):
        first, second = measure(released, SCHEMA, one), measure(released, SCHEMA, other)
        assert (first.value, first.holds, first.failing.tolist()) == (
            second.value,
            second.holds,
            second.failing.tolist(),
        )


def test_a_class_without_a_protected_value_is_exempt_from_diversity() -> None:
    released = classes_table([{"HIV-": 5}, {"HIV+": 1, "HIV-": 1}])
    assert not measure(released, grouped_schema(), sf.DistinctLDiversity(2, "disease")).holds
    found = measure(released, grouped_schema(), sf.DistinctLDiversity(2, "disease", ("HIV+",)))
    assert (found.holds, found.value) == (True, 2)
    assert "exempt" in found.explanation


def test_the_equal_distance_adds_up_protected_values_alone() -> None:
    released = classes_table([{"a": 2, "b": 2, "c": 4}, {"a": 2, "b": 6}])
    found = measure(released, grouped_schema(), sf.TCloseness(1, "disease", "equal", "released", ("a",)))
    assert found.value == pytest.approx(0.0)
    found = measure(released, grouped_schema(), sf.TCloseness(1, "disease", "equal", "released", ("c",)))
    assert found.value == pytest.approx(0.125)
