"""What the pages under docs/methods/ say of every search: it keeps any mixture of guarantees or refuses with a reason."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.anonymity.search.base import Search
from sfumato.core import registry
from sfumato.core.errors import Infeasible, Unsupported
from sfumato.core.guarantees.base import Knowledge
from sfumato.core.view import View
from sfumato.data.sample import sample_schema, sample_table
from sfumato.data.schema import Column, HierarchySpec, Schema
from tests.examples import examples

METHODS = [
    sf.Lattice(0.3),
    sf.LeastLoss(),
    sf.LocalRecoding(),
    sf.LocalRecoding(1.0, refine=False),
    sf.Mondrian(),
    sf.Mondrian(relaxed=True),
    sf.Mondrian(ranges_everywhere=True),
    sf.KMember(),
    sf.TopDown(),
    sf.TopDown("fewest_children", partial=True),
    sf.CellSuppression({"age": 3.0}),
    sf.Hybrid(),
]
SCHEMA = Schema(
    columns={
        "age": Column(role="quasi", type="integer", hierarchy=HierarchySpec(intervals=(5.0, 10.0))),
        "town": Column(role="quasi", hierarchy=HierarchySpec(tree={"north": ["a", "b"], "south": ["c", "d", "e"]})),
        "sex": Column(role="quasi", hierarchy=HierarchySpec(flat=True)),
        "illness": Column(role="sensitive", hierarchy=HierarchySpec(tree={"mild": ["p", "q"], "grave": ["r", "s"]})),
        "income": Column(role="sensitive", type="integer"),
    }
)
people = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(20, 45)),
        st.sampled_from("abcde"),
        st.sampled_from("fm"),
        st.sampled_from("pqrs"),
        st.integers(1, 5),
    ),
    min_size=8,
    max_size=60,
)
GUARANTEES = [
    sf.KAnonymity(3),
    sf.KAnonymity(2, Knowledge(("age", "town"))),
    sf.DistinctLDiversity(2, "illness"),
    sf.DistinctLDiversity(2, "illness", protected_values=("r",)),
    sf.EntropyLDiversity(1.6, "illness"),
    sf.EntropyLDiversity(1.6, "illness", protected_values=("r",)),
    sf.RecursiveLDiversity(3.0, 2, "illness"),
    sf.TCloseness(0.4, "illness"),
    sf.TCloseness(0.4, "illness", distance="hierarchical"),
    sf.TCloseness(0.3, "income", distance="ordered"),
    sf.TCloseness(0.5, "illness", distance="kl"),
    sf.TCloseness(0.4, "illness", reference="released"),
    sf.TCloseness(0.2, "illness", protected_values=("r",)),
    sf.BetaLikeness(1.0, "illness"),
    sf.BetaLikeness(1.0, "illness", enhanced=True, reference="released"),
    sf.DeltaDisclosure(1.5, "illness"),
    sf.AlphaKAnonymity(0.7, 2, "illness"),
]


def table_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(SCHEMA.columns)})


@pytest.mark.parametrize("method", METHODS, ids=repr)
@settings(max_examples=examples(8))
@given(rows=people, wanted=st.lists(st.sampled_from(GUARANTEES), min_size=1, max_size=3, unique_by=repr))
def test_any_search_keeps_any_mixture_of_guarantees_or_says_why_not(
    method: Search, rows: list[tuple[Any, ...]], wanted: list[Any]
) -> None:
    data = sf.read(table_of(rows), SCHEMA)
    try:
        release = sf.protect(data, wanted, method, seed=1)
    except (Infeasible, Unsupported) as refusal:
        assert str(refusal)
        return
    found = sf.check(release.data, release.content.owners, wanted, original=data.table())
    assert found.holds, found.explain()
    assert release.certificate.holds


def test_every_public_search_keeps_the_truth_and_says_so() -> None:
    """ANO-16 and PBD-08: each search is tagged; released values are original values or ancestors of them."""
    searches = registry.every("search")
    assert {type(method).__name__ for method in METHODS} == set(searches)
    for kind in searches.values():
        assert kind.truthful is True
        assert (kind.family, kind.protects) == ("data-driven", "respondent")


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_everybody_who_is_in_a_release_is_covered_by_at_least_k_of_its_records(method: Search) -> None:
    """Truthful: what is shown may stand for what was there. Only suppressed people can be without a matching record."""
    table = sample_table(400)
    release = sf.protect(sf.read(table, sample_schema()), [sf.KAnonymity(4)], method, seed=1)
    view = View(release.content.released, release.schema)
    found = sf.attacks.Linkage().run(view, table).details
    assert found["without_match"] <= release.details["suppressed"]
    assert found["smallest_candidate_group"] >= 4
