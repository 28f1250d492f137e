"""Printed values that are wrong stay wrong: each is refused, beside the right one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.data.hierarchies import hierarchy_builders
from sfumato.data.schema import Column
from sfumato.measures.guarantees.distances import emd_ordered
from sfumato.measures.guarantees.l_diversity import effective_l, infimum_c, is_recursive
from sfumato.measures.guarantees.measure import measure, measure_each
from sfumato.measures.utility.loss import cell_loss
from tests.measures.tables import WORKCLASS, classes_table, grouped_schema

COUNTS = [3, 2, 1]

class_counts = st.dictionaries(st.sampled_from("abcde"), st.integers(1, 8), min_size=1)
several_classes = st.lists(class_counts, min_size=2, max_size=6)


def merged(classes: list[dict[str, int]]) -> list[dict[str, int]]:
    """The first two classes become one."""
    together = {value: classes[0].get(value, 0) + classes[1].get(value, 0) for value in "abcde"}
    return [{value: n for value, n in together.items() if n}, *classes[2:]]


def test_e03_two_is_not_the_smallest_c_for_l_2() -> None:
    assert infimum_c(COUNTS, 2) != 2
    assert is_recursive(COUNTS, 1.5, 2)


def test_e04_one_is_not_enough_for_l_3() -> None:
    assert not is_recursive(COUNTS, 1, 3)
    assert not is_recursive(COUNTS, 3, 3)
    assert is_recursive(COUNTS, 3.001, 3)


@given(several_classes)
def test_e05_distinct_l_diversity_implies_l_anonymity(classes: list[dict[str, int]]) -> None:
    size, diversity = measure_each(
        classes_table(classes), grouped_schema(), [sf.KAnonymity(1), sf.DistinctLDiversity(1, "disease")]
    )
    assert size.value >= diversity.value


@given(several_classes)
def test_e06_merging_classes_never_worsens_a_table_wide_guarantee(classes: list[dict[str, int]]) -> None:
    schema = grouped_schema(order=tuple("abcde"))
    asked = [
        sf.KAnonymity(1),
        sf.DistinctLDiversity(1, "disease"),
        sf.EntropyLDiversity(1, "disease"),
        sf.RecursiveLDiversity(1, 2, "disease"),
        sf.RecursiveLDiversity(1, 3, "disease"),
        sf.AlphaKAnonymity(1, 1, "disease"),
        *(sf.TCloseness(1, "disease", distance=d, reference="released") for d in ("equal", "ordered", "hierarchical", "kl")),
        sf.BetaLikeness(1, "disease", reference="released"),
    ]
    before = measure_each(classes_table(classes), schema, asked)
    after = measure_each(classes_table(merged(classes)), schema, asked)
    for guarantee, old, new in zip(asked, before, after, strict=True):
        if guarantee.direction == "at_least":
            assert new.value >= old.value * (1 - 1e-12), guarantee
        else:
            assert new.value <= old.value * (1 + 1e-12) + 1e-12, guarantee


def test_e06_only_the_class_of_one_record_can_get_less_even() -> None:
    assert effective_l([7, 1]) < effective_l([1, 1])


def test_e08_the_class_with_the_larger_distance_is_the_worse_one() -> None:
    uniform = (0.25,) * 4
    first, second = (0.5, 0.5, 0, 0), (0, 0.5, 0.5, 0)
    assert emd_ordered(first, uniform) > emd_ordered(second, uniform)
    released = classes_table([{"1": 1, "2": 1}, {"2": 1, "3": 1}, {"1": 1, "3": 1, "4": 2}], "pay")
    found = measure(released, grouped_schema("pay"), sf.TCloseness(0.2, "pay", distance="ordered", reference="released"))
    assert 0 in found.failing.tolist()
    assert 1 not in found.failing.tolist()


@pytest.mark.golden("G-ANO-23")
@given(st.integers(2, 400), st.randoms(use_true_random=False))
def test_e09_at_most_as_many_2_diverse_classes_as_rare_records(classes: int, random: object) -> None:
    """10,000 records of which 100 are positive, dealt into classes: more than 100 classes cannot all be
    diverse.
    """
    seed = random.randrange(2**32)  # type: ignore[attr-defined]
    group = np.random.default_rng(seed).permutation(np.arange(10_000) % classes)
    positive = np.arange(10_000) < 100
    released = pa.table({"group": group, "disease": np.where(positive, "HIV+", "HIV-")})
    found = measure(released, grouped_schema(), sf.DistinctLDiversity(2, "disease"))
    assert found.classes - found.failing_classes <= 100
    if found.holds:
        assert found.classes <= 100


@pytest.mark.golden("G-ANO-23")
def test_e09_one_hundred_classes_are_possible() -> None:
    hundred = [{"HIV-": 99, "HIV+": 1}] * 100
    assert measure(classes_table(hundred), grouped_schema(), sf.DistinctLDiversity(2, "disease")).holds


def test_e10_the_loss_has_parentheses() -> None:
    tree = hierarchy_builders.build("workclass", Column(hierarchy=WORKCLASS), ["Private"])
    measured = cell_loss(tree, "Government")
    assert measured == pytest.approx(2 / 7)
    assert measured != pytest.approx(3 - 1 / 8 - 1)


def test_e11_the_domain_of_a_query_is_a_choice() -> None:
    from sfumato.core.errors import ParameterError
    from sfumato.measures.utility.query_error import QueryError

    assert QueryError().domain == "full"
    with pytest.raises(ParameterError):
        QueryError(domain="whatever")  # type: ignore[arg-type]
