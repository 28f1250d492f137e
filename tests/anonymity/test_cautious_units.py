"""People with rows in several classes: the searches never count too many of them, and no fewer than they must."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.anonymity.predicates.promises import promises_of
from sfumato.anonymity.search.base import Search
from sfumato.data.class_table import ClassTable, encode
from sfumato.kernels.classes.rollup import add_up

SITES = [f"site {number}" for number in range(6)]
SCHEMA = sf.Schema(
    dataset="visits",
    columns={
        "patient": sf.Column(role="unit", type="string"),
        "site": sf.Column(role="quasi", type="string", hierarchy={"flat": True}),
        "ward": sf.Column(role="quasi", type="string", hierarchy={"flat": True}),
        "diagnosis": sf.Column(role="sensitive", type="string"),
    },
)


def visits(patients: int = 60, each: int = 8, wards: int = 1) -> sf.Microdata:
    """Every patient goes everywhere, so that each site has nearly all of them."""
    draw = np.random.default_rng(3)
    rows = patients * each
    return sf.read(
        pa.table(
            {
                "patient": [f"p{row // each}" for row in range(rows)],
                "site": [SITES[number] for number in draw.integers(0, len(SITES), rows)],
                "ward": [f"ward {number}" for number in draw.integers(0, wards, rows)],
                "diagnosis": [f"d{number}" for number in draw.integers(0, 3, rows)],
            }
        ),
        schema=SCHEMA,
    )


SEARCHES: list[Search] = [
    sf.Lattice(),
    sf.Mondrian(),
    sf.TopDown(),
    sf.TopDown(partial=True),
    sf.LocalRecoding(),
    sf.CellSuppression(),
    sf.Hybrid(),
]


@pytest.mark.parametrize("search", SEARCHES, ids=repr)
def test_nothing_is_given_up_where_every_class_has_enough_people_already(search: Search) -> None:
    outcome = search.run(visits(), [sf.KAnonymity(5)])
    assert outcome.details["loss"] == 0.0
    assert outcome.details["suppressed"] == 0


def test_a_search_that_counts_cautiously_is_not_called_optimal() -> None:
    details = sf.Lattice().run(visits(), [sf.KAnonymity(5)]).details
    assert not details["optimal"] and "gap" not in details
    once = sf.Lattice().run(visits(each=1), [sf.KAnonymity(5)]).details
    assert once["optimal"] and once["gap"] == 0.0  # nobody is in two classes: units add up


@pytest.mark.parametrize("guarantees", [[sf.KAnonymity(5)], [sf.KAnonymity(5), sf.DistinctLDiversity(2, "diagnosis")]])
def test_small_wards_are_merged_by_what_their_people_give_to_them(guarantees: list[Any]) -> None:
    """Most combinations of site and ward have fewer than five patients, and not all must be merged."""
    people = visits(patients=40, each=4, wards=12)
    table = encode(people, sensitive=["diagnosis"])
    assert np.median(table.units) < 5
    release = sf.protect(people, guarantees, sf.Lattice())
    assert release.certificate.measured["KAnonymity"] >= 5
    assert release.scores["loss"] < 1.0


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[tuple[str, str, str]], int]:
    letters = st.sampled_from("abcd")
    rows = draw(st.lists(st.tuples(st.sampled_from("uvwxyz"), letters, letters), min_size=1, max_size=25))
    return rows, draw(st.integers(2, 5))


def encoded(rows: list[tuple[str, str, str]]) -> ClassTable:
    columns = {name: [row[place] for row in rows] for place, name in enumerate(("patient", "site", "ward"))}
    return encode(sf.read(pa.table({**columns, "diagnosis": ["d"] * len(rows)}), schema=SCHEMA), sensitive=[])


@given(tables(), st.randoms(use_true_random=False))
def test_a_class_that_is_said_to_have_k_people_has_them(given_: tuple[list[tuple[str, str, str]], int], random: Any) -> None:
    rows, k = given_
    table = encoded(rows)
    promises = promises_of([sf.KAnonymity(k)], table)
    leaves = [tree.leaves for tree in table.hierarchies]
    names = [tuple(leaf[code] for leaf, code in zip(leaves, codes, strict=True)) for codes in table.codes.T]
    class_of = np.array([random.randrange(4) for _ in names], dtype=np.int64)
    of_tuple = dict(zip(names, class_of.tolist(), strict=True))
    different: dict[int, set[str]] = defaultdict(set)
    for unit, *values in rows:
        different[of_tuple[tuple(values)]].add(unit)
    said = promises.needs(add_up(class_of, promises.totals(), 4)) == 0
    for number, units in different.items():
        assert len(units) >= k or not said[number]
        alone = [tuple_ for tuple_, own in of_tuple.items() if own == number]
        if len(alone) == 1:
            assert said[number] == (len(units) >= k)  # a tuple by itself is counted exactly
    together = promises.needs(promises.totals().sum(axis=0)[None, :])
    assert (together[0] == 0) == (len({row[0] for row in rows}) >= k)  # and so are all of them
