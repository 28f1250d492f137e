"""Generalising a table merges classes, and what a table promises does not get worse by that (ANO-24, E-06)."""

from __future__ import annotations

import math
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.guarantees.k_anonymity import AlphaKAnonymity, KAnonymity
from sfumato.core.guarantees.l_diversity import DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity
from sfumato.core.guarantees.likeness import BetaLikeness, DeltaDisclosure
from sfumato.core.guarantees.population import DeltaPresence, KMap
from sfumato.core.guarantees.risk import AverageRisk, KMapByModel, UniquenessByModel
from sfumato.core.guarantees.t_closeness import TCloseness
from sfumato.data.class_table import encode
from sfumato.data.schema import Schema
from sfumato.data.texts.values import text_of
from sfumato.measures.guarantees.l_diversity import entropy
from tests.conformance.methods import GUARANTEE_KINDS
from tests.conformance.problems import People, people, verdicts
from tests.examples import examples

#: A guarantee whose measured number must not fall, or must not rise, when the table is generalised.
NEVER_LOWER: dict[str, ClassGuarantee] = {
    "k": KAnonymity(1),
    "distinct l": DistinctLDiversity(1, "secret"),
    "entropy l": EntropyLDiversity(1, "secret"),
    "k-map": KMap(1),
    "k-map by a model": KMapByModel(9, 0.5),
}
NEVER_HIGHER: dict[str, ClassGuarantee] = {
    "alpha": AlphaKAnonymity(1, 1, "secret"),
    "recursive c": RecursiveLDiversity(1, 2, "secret"),
    "equal t": TCloseness(1, "secret"),
    "ordered t": TCloseness(1, "secret", distance="ordered"),
    "hierarchical t": TCloseness(1, "secret", distance="hierarchical"),
    "kl t": TCloseness(1, "secret", distance="kl"),
    "beta": BetaLikeness(1, "secret"),
    "enhanced beta": BetaLikeness(1, "secret", enhanced=True),
    "delta": DeltaDisclosure(1, "secret"),
    "largest chance": DeltaPresence(0, 1),
    "average risk": AverageRisk(1),
    "uniqueness by a model": UniquenessByModel(1, 0.4),
}


def generalised(given_people: People, levels: Callable[[int], int]) -> pa.Table:
    """Every quasi-identifier at the level that is drawn for its height."""
    table = given_people.table
    coded = encode(given_people.microdata(), population=given_people.register())
    for name, tree in zip(coded.quasi, coded.hierarchies, strict=True):
        level = levels(tree.height)
        shown = [tree.generalise(text_of(value), level) for value in table.column(name).to_pylist()]
        table = table.set_column(table.column_names.index(name), name, pa.array(shown, pa.string()))
    return table


def measured(given_people: People, table: pa.Table, guarantee: ClassGuarantee) -> float:
    return verdicts(given_people, table, [guarantee])[0].value


def two_nodes(data: st.DataObject, given_people: People) -> tuple[pa.Table, pa.Table]:
    """The table at two nodes of its lattice, the second above the first."""
    drawn: list[int] = []

    def low(height: int) -> int:
        drawn.append(data.draw(st.integers(0, height)))
        return drawn[-1]

    finer = generalised(given_people, low)
    lowest = iter(drawn)
    return finer, generalised(given_people, lambda height: data.draw(st.integers(next(lowest), height)))


def test_every_kind_of_guarantee_is_covered() -> None:
    assert {type(value).__name__ for value in [*NEVER_LOWER.values(), *NEVER_HIGHER.values()]} == set(GUARANTEE_KINDS)


@settings(max_examples=examples(20))
@given(data=st.data(), table=people())
def test_generalising_never_lowers_k(data: st.DataObject, table: People) -> None:
    finer, coarser = two_nodes(data, table)
    for name, guarantee in NEVER_LOWER.items():
        assert measured(table, coarser, guarantee) >= measured(table, finer, guarantee) - 1e-9, name


@settings(max_examples=examples(20))
@given(data=st.data(), table=people())
def test_generalising_never_raises_the_distance_from_the_whole_table(data: st.DataObject, table: People) -> None:
    finer, coarser = two_nodes(data, table)
    for name, guarantee in NEVER_HIGHER.items():
        before = measured(table, finer, guarantee)
        assert math.isinf(before) or measured(table, coarser, guarantee) <= before + 1e-9, name


@pytest.mark.golden("G-ANO-25")
def test_the_class_of_one_record_may_become_less_even_while_the_table_becomes_more() -> None:
    before, after = [entropy([1, 1]), entropy([6])], entropy([7, 1])
    assert before == [pytest.approx(0.693147, abs=1e-6), 0]
    assert after == pytest.approx(0.376770, abs=1e-6)
    assert after < before[0] and after > min(before)
    rows = {"q": ["x"] * 2 + ["y"] * 6, "secret": ["a", "b"] + ["a"] * 6, "number": range(8)}
    given_people = People(
        pa.table(rows), Schema.of(quasi=["q"], sensitive=["secret"], plain=["number"]), pa.table({"q": rows["q"]})
    )
    effective = EntropyLDiversity(1, "secret")
    assert measured(given_people, given_people.table, effective) == 1
    assert measured(given_people, generalised(given_people, lambda height: height), effective) == pytest.approx(math.exp(after))
