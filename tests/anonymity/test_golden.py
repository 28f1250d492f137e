"""The worked tables of the catalogue, reached by search."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from sfumato.anonymity.search.base import Search
from sfumato.anonymity.search.k_member import KMember
from sfumato.anonymity.search.lattice import Lattice
from sfumato.anonymity.search.local_recoding import LocalRecoding
from sfumato.anonymity.search.mondrian import Mondrian
from sfumato.anonymity.search.top_down import TopDown
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.guarantees.k_anonymity import KAnonymity
from sfumato.core.guarantees.l_diversity import DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity
from sfumato.core.guarantees.t_closeness import TCloseness
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.engines.memory import MemoryRelation
from tests.conformance.problems import People, released_rows, verdicts
from tests.measures.tables import generalised_hospital, hospital

AGES = {"<30": [str(age) for age in range(20, 30)], "30-40": [str(age) for age in range(30, 41)]}
AGES[">40"] = [str(age) for age in range(41, 60)]


def hospital_schema(zip_codes: HierarchySpec) -> Schema:
    return Schema(
        columns={
            "zip": Column(role="quasi", hierarchy=zip_codes),
            "age": Column(role="quasi", hierarchy=HierarchySpec(tree=AGES)),
            "nationality": Column(role="quasi"),
            "disease": Column(role="sensitive"),
        }
    )


def rows(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True))


def released(table: pa.Table, schema: Schema, search: Search, asked: list[ClassGuarantee]) -> pa.Table:
    data = Microdata(MemoryRelation(table), schema)
    return released_rows(data, search.run(data, asked))


@pytest.mark.golden("G-ANO-20")
def test_given_hierarchies_lead_to_the_four_anonymous_table() -> None:
    """130** and 1485* stand on one level of the given hierarchy, so one level per attribute is enough."""
    schema = hospital_schema(HierarchySpec(tree={"130**": ["13053", "13068"], "1485*": ["14850", "14853"]}))
    assert rows(released(hospital(), schema, Lattice(), [KAnonymity(4)])) == rows(generalised_hospital())


@pytest.mark.golden("G-ANO-20")
def test_digit_masks_lead_to_the_four_anonymous_table_by_specialisation() -> None:
    """Two digits are masked in one class and one in another, never more than needed."""
    schema = hospital_schema(HierarchySpec(mask="right"))
    assert rows(released(hospital(), schema, TopDown(), [KAnonymity(4)])) == rows(generalised_hospital())


JOBS = pa.table(
    {
        "job": ["Engineer", "Engineer", "Lawyer", "Writer", "Writer", "Dancer", "Dancer"],
        "sex": ["Male"] * 3 + ["Female"] * 4,
        "age": [35, 38, 38, 30, 30, 30, 30],
        "disease": ["Hepatitis", "Hepatitis", "HIV", "Flu", "HIV", "HIV", "HIV"],
    }
)
JOB_SCHEMA = Schema(
    columns={
        "job": Column(
            role="quasi", hierarchy=HierarchySpec(tree={"Professional": ["Engineer", "Lawyer"], "Artist": ["Writer", "Dancer"]})
        ),
        "sex": Column(role="quasi"),
        "age": Column(role="quasi", type="integer", bounds=(30, 39), hierarchy=HierarchySpec(intervals=(5,))),
        "disease": Column(role="sensitive"),
    }
)


@pytest.mark.golden("G-ANO-19")
@pytest.mark.parametrize("search", [LocalRecoding(), TopDown(), KMember()], ids=repr)
def test_a_class_shows_its_lowest_common_ancestors(search: Search) -> None:
    """Artists are all 30, so their age stays; professionals are 35 to 38 and show the interval above."""
    table = released(JOBS, JOB_SCHEMA, search, [KAnonymity(3)])
    assert rows(table.select(["job", "sex", "age"])) == {
        ("Professional", "Male", "[35, 40)"): 3,
        ("Artist", "Female", "30"): 4,
    }
    people = People(JOBS, JOB_SCHEMA, JOBS)
    k, distinct, effective, infimum = verdicts(
        people,
        table,
        [
            KAnonymity(3),
            DistinctLDiversity(2, "disease"),
            EntropyLDiversity(1, "disease"),
            RecursiveLDiversity(4, 2, "disease"),
        ],
    )
    assert (k.value, distinct.value, infimum.value) == (3, 2, 3)
    assert effective.value == pytest.approx(1.754765, abs=1e-6)


@pytest.mark.golden("G-ANO-19")
def test_full_domain_recoding_takes_the_interval_for_all() -> None:
    table = released(JOBS, JOB_SCHEMA, Lattice(), [KAnonymity(3)])
    assert rows(table.select(["job", "sex", "age"])) == {
        ("Professional", "Male", "[35, 40)"): 3,
        ("Artist", "Female", "[30, 35)"): 4,
    }


@pytest.mark.parametrize("search", [Lattice(), Mondrian(), KMember(), TopDown(), LocalRecoding()], ids=repr)
@pytest.mark.parametrize(
    "notion",
    [
        DistinctLDiversity(2, "disease"),
        EntropyLDiversity(2, "disease"),
        RecursiveLDiversity(2, 2, "disease"),
        TCloseness(0.3, "disease"),
    ],
    ids=repr,
)
def test_every_family_takes_any_monotone_notion_as_its_test(search: Search, notion: ClassGuarantee) -> None:
    """ANO-29: the four-anonymous table has a class of four cancers; a second notion, enforced together with k, allows none."""
    schema = hospital_schema(HierarchySpec(mask="right"))
    people = People(hospital(), schema, hospital().select(["zip", "age", "nationality"]))
    table = released(hospital(), schema, search, [KAnonymity(3), notion])
    assert all(measured.holds for measured in verdicts(people, table, [KAnonymity(3), notion]))
    assert table.num_rows == 12
    assert not verdicts(people, generalised_hospital(), [notion])[0].holds
