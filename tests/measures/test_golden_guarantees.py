"""The worked cases about class guarantees."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.measures.guarantees.distances import emd_ordered, kl, variational
from sfumato.measures.guarantees.examined import ExaminedTable
from sfumato.measures.guarantees.l_diversity import effective_l, entropy, infimum_c, is_recursive, largest_l
from sfumato.measures.guarantees.measure import measure
from sfumato.measures.guarantees.overview import measure_all
from tests.measures.tables import (
    HOSPITAL_SCHEMA,
    classes_table,
    generalised_hospital,
    grouped_schema,
    hospital,
    table,
)

THREE_TWO_ONE = [3, 2, 1]


@pytest.mark.golden("G-ANO-09")
def test_twelve_patients_have_k_4_and_one_homogeneous_class() -> None:
    found = measure_all(generalised_hospital(), HOSPITAL_SCHEMA)
    histogram = ExaminedTable(generalised_hospital(), HOSPITAL_SCHEMA).histogram("disease")
    per_class: list[dict[str | None, int]] = [{}, {}, {}]
    for c, v, n in zip(histogram.klass.tolist(), histogram.value.tolist(), histogram.count.tolist(), strict=True):
        per_class[c][histogram.values[v]] = n
    assert found.k == 4
    assert per_class == [{"Heart": 2, "Flu": 2}, {"Cancer": 1, "Heart": 1, "Flu": 2}, {"Cancer": 4}]
    assert found.attributes["disease"].distinct_l == 1


@pytest.mark.golden("G-ANO-10")
def test_the_first_eight_patients_are_entropy_2_diverse() -> None:
    found = measure_all(generalised_hospital(8), HOSPITAL_SCHEMA)
    assert found.k == 4
    assert found.attributes["disease"].distinct_l == 2
    assert found.attributes["disease"].entropy_l == 2
    assert entropy([2, 2]) == pytest.approx(0.693147, abs=5e-7)
    assert entropy([1, 1, 2]) == pytest.approx(1.039721, abs=5e-7)
    assert effective_l([1, 1, 2]) == pytest.approx(2.828427, abs=5e-7)
    assert measure(generalised_hospital(8), HOSPITAL_SCHEMA, sf.EntropyLDiversity(2, "disease")).holds
    assert not measure(generalised_hospital(8), HOSPITAL_SCHEMA, sf.EntropyLDiversity(2.01, "disease")).holds


@pytest.mark.golden("G-ANO-13")
def test_the_infimum_of_c_for_l_2_is_1_and_is_not_attained() -> None:
    assert infimum_c(THREE_TWO_ONE, 2) == 1
    assert not is_recursive(THREE_TWO_ONE, 1, 2)
    assert is_recursive(THREE_TWO_ONE, 1.0000001, 2)
    released = classes_table([{"Flu": 3, "Acne": 2, "Shingles": 1}])
    assert not measure(released, grouped_schema(), sf.RecursiveLDiversity(1, 2, "disease")).holds
    assert measure(released, grouped_schema(), sf.RecursiveLDiversity(1.0000001, 2, "disease")).holds


@pytest.mark.golden("G-ANO-14")
def test_the_infimum_of_c_for_l_3_is_3() -> None:
    assert infimum_c(THREE_TWO_ONE, 3) == 3
    smallest_integer = next(c for c in range(1, 10) if is_recursive(THREE_TWO_ONE, c, 3))
    assert smallest_integer == 4
    released = classes_table([{"Flu": 3, "Acne": 2, "Shingles": 1}])
    found = measure(released, grouped_schema(), sf.RecursiveLDiversity(3, 3, "disease"))
    assert (found.value, found.holds) == (3, False)


@pytest.mark.golden("G-ANO-15")
def test_the_largest_l_for_c_2_is_2() -> None:
    assert largest_l(THREE_TWO_ONE, 2) == 2
    assert infimum_c(THREE_TWO_ONE, 4) == math.inf


@pytest.mark.golden("G-ANO-16")
def test_the_entropy_of_three_two_one() -> None:
    assert entropy(THREE_TWO_ONE) == pytest.approx(1.011404, abs=5e-7)
    assert effective_l(THREE_TWO_ONE) == pytest.approx(2.749459, abs=5e-7)


@pytest.mark.golden("G-ANO-17")
def test_three_distances_of_two_distributions() -> None:
    p, q = (0.1, 0.6, 0.3), (0.2, 0.4, 0.4)
    assert variational(p, q) == pytest.approx(0.2)
    assert kl(p, q) == pytest.approx(0.087660, abs=5e-7)
    assert kl(p, q, base=2) == pytest.approx(0.126466, abs=5e-7)
    assert kl(q, p) == pytest.approx(0.091516, abs=5e-7)
    assert emd_ordered(p, q, normalised=False) == pytest.approx(0.2)
    assert emd_ordered(p, q) == pytest.approx(0.1)


@pytest.mark.golden("G-ANO-18")
def test_only_the_ordered_distance_tells_low_salaries_from_middle_ones() -> None:
    q = (0.25, 0.25, 0.25, 0.25)
    low, middle = (0.5, 0.5, 0.0, 0.0), (0.0, 0.5, 0.5, 0.0)
    assert variational(low, q) == variational(middle, q) == 0.5
    assert kl(low, q) == pytest.approx(math.log(2)) == kl(middle, q)
    assert emd_ordered(low, q, normalised=False) == pytest.approx(1.0)
    assert emd_ordered(middle, q, normalised=False) == pytest.approx(0.5)
    assert emd_ordered(low, q) == pytest.approx(1 / 3)
    assert emd_ordered(middle, q) == pytest.approx(1 / 6)
    released = classes_table([{"10000": 1, "20000": 1}, {"20000": 1, "30000": 1}, {"10000": 1, "30000": 1, "40000": 2}], "salary")
    found = measure(
        released,
        grouped_schema("salary"),
        sf.TCloseness(0.3, "salary", distance="ordered", reference="released"),
    )
    assert found.value == pytest.approx(1 / 3)
    assert found.failing.tolist() == [0]


@pytest.mark.golden("G-ANO-19")
def test_the_job_table() -> None:
    rows = [("Professional", "Male", "[35,40)", d) for d in ("Hepatitis", "Hepatitis", "HIV")]
    rows += [("Artist", "Female", "30", d) for d in ("Flu", "HIV", "HIV", "HIV")]
    released = table(["job", "sex", "age", "disease"], rows)
    schema = sf.Schema.of(quasi=["job", "sex", "age"], sensitive=["disease"])
    found = measure_all(released, schema)
    assert found.k == 3
    assert found.attributes["disease"].distinct_l == 2
    assert effective_l([2, 1]) == pytest.approx(1.889882, abs=5e-7)
    assert effective_l([1, 3]) == pytest.approx(1.754765, abs=5e-7)
    assert found.attributes["disease"].entropy_l == pytest.approx(1.754765, abs=5e-7)
    assert (infimum_c([2, 1], 2), infimum_c([1, 3], 2)) == (2, 3)
    assert found.attributes["disease"].recursive_c[2] == 3


@pytest.mark.golden("G-ANO-20")
def test_the_published_table_is_4_anonymous_and_its_third_class_homogeneous() -> None:
    assert measure(hospital(), HOSPITAL_SCHEMA, sf.KAnonymity(2)).value == 1
    published = measure(generalised_hospital(), HOSPITAL_SCHEMA, sf.KAnonymity(4))
    assert (published.value, published.holds, published.classes) == (4, True, 3)
    diversity = measure(generalised_hospital(), HOSPITAL_SCHEMA, sf.DistinctLDiversity(2, "disease"))
    assert diversity.failing.tolist() == [2]


def published_twice() -> tuple[pa.Table, pa.Table]:
    first = [("130**", "<30", d) for d in ("AIDS", "Heart", "Viral", "Viral")]
    first += [("130**", ">=40", d) for d in ("Cancer", "Heart", "Viral", "Viral")]
    first += [("130**", "3*", "Cancer")] * 4
    second = [("130**", "<35", d) for d in ("AIDS", "Tub", "Flu", "Tub", "Cancer", "Cancer")]
    second += [("130**", ">=35", d) for d in ("Cancer", "Cancer", "Cancer", "Tub", "Viral", "Viral")]
    return table(["zip", "age", "disease"], first), table(["zip", "age", "disease"], second)


TWICE_SCHEMA = sf.Schema.of(quasi=["zip", "age"], sensitive=["disease"])


@pytest.mark.golden("G-ANO-21")
def test_two_published_tables() -> None:
    first, second = published_twice()
    one, two = measure_all(first, TWICE_SCHEMA), measure_all(second, TWICE_SCHEMA)
    assert (one.k, two.k) == (4, 6)
    assert (one.attributes["disease"].distinct_l, two.attributes["disease"].distinct_l) == (1, 3)
    assert effective_l([1, 1, 2]) == pytest.approx(2.828, abs=5e-4)
    assert effective_l([1, 2, 1, 2]) == pytest.approx(3.780, abs=5e-4)
    assert one.attributes["disease"].entropy_l == 1
    assert two.attributes["disease"].entropy_l == pytest.approx(2.749, abs=5e-4)


@pytest.mark.golden("G-ANO-22")
def test_a_person_in_both_tables_has_one_possible_disease_left() -> None:
    first, second = published_twice()
    known = []
    for released, age in ((first, "<30"), (second, "<35")):
        rows = zip(released["age"].to_pylist(), released["disease"].to_pylist(), strict=True)
        known.append({disease for shown, disease in rows if shown == age})
        assert measure(released, TWICE_SCHEMA, sf.KAnonymity(4)).holds
    assert known[0] & known[1] == {"AIDS"}


@pytest.mark.golden("G-ANO-24")
def test_a_class_without_the_rare_value_is_closer_than_an_even_one() -> None:
    q = (0.99, 0.01)
    assert variational((0.5, 0.5), q) == pytest.approx(0.49)
    assert variational((1, 0), q) == pytest.approx(0.01)
    assert kl((0.5, 0.5), q) == pytest.approx(1.614463, abs=5e-7)
    assert kl((1, 0), q) == pytest.approx(0.010050, abs=5e-7)


@pytest.mark.golden("G-ANO-25")
def test_merging_raises_the_smallest_entropy_while_one_class_gets_less_even() -> None:
    assert entropy([1, 1]) == pytest.approx(0.693, abs=5e-4)
    assert entropy([6]) == 0
    assert entropy([7, 1]) == pytest.approx(0.376770, abs=5e-7)
    apart = measure_all(classes_table([{"a": 1, "b": 1}, {"a": 6}]), grouped_schema())
    merged = measure_all(classes_table([{"a": 7, "b": 1}]), grouped_schema())
    assert apart.attributes["disease"].entropy_l == 1
    assert merged.attributes["disease"].entropy_l == pytest.approx(math.exp(0.376770), abs=1e-6)


@pytest.mark.golden("G-ANO-27")
def test_alpha_k_with_protected_cancer() -> None:
    def alpha(value: float, protected: tuple[str, ...], rows: int = 12) -> bool:
        guarantee = sf.AlphaKAnonymity(value, 4, "disease", protected)
        return measure(generalised_hospital(rows), HOSPITAL_SCHEMA, guarantee).holds

    assert alpha(1.0, ("Cancer",))
    assert not alpha(0.99, ("Cancer",))
    assert alpha(0.25, ("Cancer",), rows=8)
    assert not alpha(0.249, ("Cancer",), rows=8)
    assert alpha(0.0001, ())
    found = measure(generalised_hospital(), HOSPITAL_SCHEMA, sf.AlphaKAnonymity(0.3, 4, "disease", ("Cancer",)))
    assert (found.value, found.also["k"], found.failing.tolist()) == (1.0, 4, [2])
