"""The worked cases of the catalogue that an adversary plays."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pyarrow as pa
import pytest

from sfumato import attacks, dp
from sfumato.attacks.outputs.answer_intersection import Extreme, candidates, surely_inside
from sfumato.attacks.several.intersection import sensitive_candidates
from sfumato.attacks.tables.classes import classes_of
from sfumato.core.view import View
from tests.attacks.published import SCHEMA, bare, four_anonymous, six_anonymous


def effective_values(view: View) -> dict[str | None, float]:
    """exp(entropy) of the disease in each class, by its age text."""
    classes = classes_of(view)
    histogram = classes.histogram("disease")
    ages = classes.labels[1]
    found = {}
    for c, size in enumerate(classes.sizes.tolist()):
        counts = histogram.count[histogram.starts[c] : histogram.starts[c + 1]]
        entropy = -sum(n / size * math.log(n / size) for n in counts.tolist())
        found[ages[classes.shown[1][c]]] = math.exp(entropy)
    return found


@pytest.mark.golden("G-ANO-21")
def test_the_two_published_tables() -> None:
    first, second = classes_of(four_anonymous()), classes_of(six_anonymous())
    assert first.sizes.min() == 4
    assert second.sizes.min() == 6
    assert sorted(first.histogram("disease").distinct.tolist()) == [1, 3, 3]
    assert sorted(second.histogram("disease").distinct.tolist()) == [3, 4]
    assert effective_values(four_anonymous()) == pytest.approx({"<30": 2.828427, ">=40": 2.828427, "3*": 1.0}, abs=1e-6)
    assert effective_values(six_anonymous()) == pytest.approx({"<35": 3.779763, ">=35": 2.749459}, abs=1e-6)


@pytest.mark.golden("G-ANO-22")
@pytest.mark.golden("G-ATK-03")
def test_a_target_aged_28_is_left_with_one_disease() -> None:
    target = {"zip": "13053", "age": "28"}
    first, second = four_anonymous(), six_anonymous()
    assert sensitive_candidates([first], target, "disease") == {"AIDS", "Heart", "Viral"}
    assert sensitive_candidates([second], target, "disease") == {"AIDS", "Tub", "Flu", "Cancer"}
    assert sensitive_candidates([first, second], target, "disease") == {"AIDS"}
    assert sensitive_candidates([second, first], {"age": "28"}, "disease") == {"AIDS"}


@pytest.mark.golden("G-ANO-22")
def test_the_attack_finds_that_target_by_itself() -> None:
    found = attacks.Intersection().run(six_anonymous(), four_anonymous())
    assert found.details["worst_remaining_group"] == 1
    assert found.details["worst_group_alone"] == 4
    assert found.details["singled_out"] > 0
    original = pa.table({"zip": ["13053"], "age": [28], "disease": ["AIDS"]})
    owner = attacks.Intersection().run(six_anonymous(), attacks.OtherReleases((four_anonymous(),), original))
    assert owner.success == 1.0
    assert owner.details["worst_remaining_group"] == 1
    assert owner.details["worst_joint_group"] == 1
    assert owner.details["people_are"] == "counted"


@pytest.mark.golden("G-ATK-01")
def test_two_minima_point_at_don() -> None:
    people = pa.table(
        {
            "name": ["Alice", "Bob", "Carl", "Don", "Ellie", "Frank"],
            "age": [30, 30, 40, 40, 50, 50],
            "weight": [60, 90, 90, 100, 60, 100],
        }
    )
    age, weight = Extreme("age", 40), Extreme("weight", 100)
    names = people.column("name").to_pylist()
    assert [names[i] for i in candidates([age], people)] == ["Carl", "Don"]
    assert [names[i] for i in candidates([weight], people)] == ["Don", "Frank"]
    assert [names[i] for i in candidates([age, weight], people)] == ["Don"]
    assert [names[i] for i in surely_inside([age, weight], people)] == ["Don"]
    found = attacks.AnswerIntersection().run(View((age, weight), SCHEMA), people)
    assert (found.success, found.baseline) == (1.0, pytest.approx(1 / 6))
    assert found.details["candidates_per_answer"] == [2, 2]


@pytest.mark.golden("G-ATK-02")
def test_two_noisy_minima_point_at_nobody_for_certain() -> None:
    age = dp.TruncatedGeometric((30, 40, 50), ratio="1/2", form="renormalised")
    weight = dp.TruncatedGeometric((60, 90, 100), ratio="1/2", form="renormalised")
    assert age.law(40)[40] * weight.law(100)[100] == Fraction(2, 7)
    # Whatever pair is reported, every true pair may lie behind it: nobody can be excluded, nobody is certain.
    for reported_age, reported_weight in product((30, 40, 50), (60, 90, 100)):
        behind = [age.law(a)[reported_age] * weight.law(w)[reported_weight] for a, w in product((30, 40, 50), (60, 90, 100))]
        assert min(behind) > 0
        assert max(behind) / sum(behind) < Fraction(1, 2)


@pytest.mark.golden("G-ANO-20")
def test_the_third_class_of_the_hospital_table_is_homogeneous() -> None:
    diseases = ["Heart", "Heart", "Flu", "Flu", "Cancer", "Heart", "Flu", "Flu", *["Cancer"] * 4]
    view = bare(
        {
            "zip": ["130**"] * 4 + ["1485*"] * 4 + ["130**"] * 4,
            "age": ["<30"] * 4 + [">40"] * 4 + ["30-40"] * 4,
            "nationality": ["*"] * 12,
            "disease": diseases,
        },
        quasi=["zip", "age", "nationality"],
        sensitive=["disease"],
    )
    found = attacks.Homogeneity().run(view)
    assert found.success == pytest.approx(4 / 12)
    assert found.baseline == pytest.approx(4 / 12)  # blind guessing names Cancer, the most frequent value
    assert found.details["exposed_classes"] == 1
