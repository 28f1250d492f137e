"""The lattice search finds the best node of all, or says how far from it it may be."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections import Counter
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.anonymity.search import node_tables
from sfumato.anonymity.search.base import Search, pose
from sfumato.anonymity.search.lattice import Lattice
from sfumato.anonymity.search.local_recoding import LocalRecoding
from sfumato.anonymity.search.node_tables import KEY_BITS, NodeTables
from sfumato.core.errors import Infeasible
from sfumato.core.guarantees.k_anonymity import KAnonymity
from sfumato.core.guarantees.l_diversity import EntropyLDiversity, RecursiveLDiversity
from sfumato.core.guarantees.likeness import DeltaDisclosure
from sfumato.core.guarantees.population import DeltaPresence
from sfumato.core.guarantees.risk import WholeTableGuarantee
from sfumato.core.guarantees.t_closeness import TCloseness
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.engines.memory import MemoryRelation
from tests.anonymity.brute_force import all_nodes, best_loss
from tests.conformance.problems import FOREST, People, mixtures, people, released_rows, verdicts
from tests.examples import examples

LIMITS = (0.0, 0.1, 0.5, 1.0)


def small_lattices() -> st.SearchStrategy[People]:
    three = people(attributes=(2, 3), kinds=("unbalanced", "intervals", "forest", "flat", "mask", "single", "dates"))
    four = people(attributes=(4, 4), kinds=("flat", "forest", "ordered", "numbers"))
    return st.one_of(three, four)


@pytest.mark.parametrize("key_bits", [KEY_BITS, 0], ids=["packed keys", "keys that do not fit"])
@settings(max_examples=examples(20))
@given(table=small_lattices(), data=st.data())
def test_the_search_equals_brute_force_over_all_nodes(key_bits: int, table: People, data: st.DataObject) -> None:
    asked = data.draw(mixtures(table.secrets))
    nodes = list(all_nodes(table, asked))
    for share in LIMITS:
        expected = best_loss(nodes, math.floor(share * table.table.num_rows + 1e-9))
        # the second search goes box by box, as it does where the lattice is too large to hold
        for search in (Lattice(share), Lattice(share, max_nodes=1)):
            try:
                with mock.patch.object(node_tables, "KEY_BITS", key_bits):
                    outcome = search.run(table.microdata(), asked, population=table.register())
            except Infeasible:
                assert expected is None or asked_k(asked) > table.table.num_rows
                continue
            assert expected is not None
            assert outcome.details["loss"] == pytest.approx(expected, abs=1e-12)
            # a promise about all records together leaves a choice that may not be proven, see test_whole_table
            chosen = any(isinstance(each, WholeTableGuarantee) for each in asked)
            assert chosen or (outcome.details["optimal"] and outcome.details["gap"] == 0)
            assert outcome.details["nodes"] == len(nodes)
            assert outcome.result.suppressed <= share * table.table.num_rows + 1e-9
            at = next(node for node in nodes if node.levels == tuple(outcome.details["levels"].values()))
            assert at.suppressed == outcome.result.suppressed


def asked_k(asked: list) -> int:  # type: ignore[type-arg]
    return max((guarantee.k for guarantee in asked if hasattr(guarantee, "k")), default=1)


@pytest.mark.golden("G-ANO-26")
def test_a_lattice_of_three_attributes_has_twelve_nodes_and_twenty_edges() -> None:
    """Z has levels 0 to 2, S and B have 0 and 1."""
    table = pa.table({"Z": ["11", "12", "21", "22"], "S": ["m", "f", "m", "f"], "B": ["x", "x", "y", "y"]})
    columns = {
        "Z": Column(role="quasi", hierarchy=HierarchySpec(mask="right")),
        "S": Column(role="quasi"),
        "B": Column(role="quasi"),
    }
    problem = pose(Microdata(MemoryRelation(table), Schema(columns=columns)), [KAnonymity(2)])
    tables = NodeTables(problem.table, problem.promises, problem.promises.totals())
    assert tables.heights == [2, 1, 1]
    assert tables.nodes == 12
    nodes = list(itertools.product(*(range(height + 1) for height in tables.heights)))
    assert [sum(sum(node) == height for node in nodes) for height in range(5)] == [1, 3, 4, 3, 1]
    edges = [(a, b) for a in nodes for b in nodes if sum(b) == sum(a) + 1 and all(x <= y for x, y in zip(a, b, strict=True))]
    assert len(edges) == 20
    # along every edge classes only merge: the same records in fewer or as many classes
    for below, above in edges:
        finer, coarser = tables.classes(below)[1], tables.classes(above)[1]
        assert len(coarser) <= len(finer) and coarser.sum() == finer.sum() == 4
    # the only two-anonymous nodes are found through every limit
    assert Lattice().run(Microdata(MemoryRelation(table), Schema(columns=columns)), [KAnonymity(2)]).details["loss"] < 1


def wide_table(rows: int = 300) -> Microdata:
    """Twelve attributes with five levels each: 244 million nodes."""
    draw = np.random.default_rng(5)
    base = draw.integers(0, 16, rows)
    table = pa.table({f"a{i}": (base + draw.integers(0, 3, rows)) % 16 for i in range(12)})
    described = Column(role="quasi", type="integer", bounds=(0, 15), hierarchy=HierarchySpec(intervals=(2, 4, 8)))
    return Microdata(MemoryRelation(table), Schema(columns=dict.fromkeys(table.column_names, described)))


def test_a_time_limit_gives_a_valid_release_and_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock counts the looks at it, one per box: a busy machine would search less in a second."""
    data = wide_table()
    monkeypatch.setattr("sfumato.anonymity.search.boxes.time", mock.Mock(monotonic=itertools.count().__next__))
    outcome = Lattice(0.1, time_limit=300.0).run(data, [KAnonymity(5)])
    assert outcome.details["nodes"] == 5**12
    assert not outcome.details["optimal"]
    assert 0 < outcome.details["gap"] < outcome.details["loss"] < 1
    assert outcome.result.suppressed <= 30
    assert outcome.result.class_sizes().min() >= 5
    longer = Lattice(0.1, time_limit=3000.0).run(data, [KAnonymity(5)])
    assert longer.details["loss"] <= outcome.details["loss"] + 1e-12
    assert longer.details["loss"] - longer.details["gap"] >= outcome.details["loss"] - outcome.details["gap"] - 1e-12


def test_a_search_that_ran_out_of_time_does_not_say_impossible() -> None:
    """The table as one class is too one-sided, parts of it might not be."""
    data = wide_table(40)
    rows = data.table().append_column("s", pa.array(["x"] * 24 + ["y"] * 8 + ["z"] * 8))
    columns = {**data.schema.columns, "s": Column(role="sensitive")}
    with pytest.raises(Infeasible, match="within the time limit"):
        Lattice(0.45, time_limit=1e-9).run(
            Microdata(MemoryRelation(rows), Schema(columns=columns)), [EntropyLDiversity(2.95, "s")]
        )


@pytest.mark.parametrize("search", [Lattice(0.2), LocalRecoding()], ids=repr)
def test_combinations_of_more_than_64_bits_are_searched(search: Search) -> None:
    """Eleven attributes with 97 values each need 77 bits per combination."""
    draw = np.random.default_rng(3)
    base = draw.permutation(np.repeat(np.arange(97), 3))
    table = pa.table({f"q{i}": (base * (i + 1) + (draw.random(base.size) < 0.02)) % 97 for i in range(11)})
    data = Microdata(MemoryRelation(table), Schema.of(quasi=table.column_names))
    outcome = search.run(data, [KAnonymity(3)])
    assert outcome.result.class_sizes().min() >= 3
    assert outcome.result.suppressed <= 0.2 * base.size
    released = released_rows(data, outcome)
    assert min(Counter(zip(*(column.to_pylist() for column in released.columns), strict=True)).values()) >= 3
    assert outcome.details["loss"] < 0.7


@pytest.mark.parametrize("values", [2, 3, 4, 5, 6, 7, 10])
def test_a_class_uniform_over_exactly_l_values_may_fail_by_the_last_bit_and_never_leads_to_a_worse_one(values: int) -> None:
    table = pa.table({"q": ["a"] * values + ["b"] * values, "s": [str(i) for i in range(values)] * 2})
    given_people = People(table, Schema.of(quasi=["q"], sensitive=["s"]), table.select(["q"]))
    asked = [EntropyLDiversity(values, "s")]
    try:
        outcome = Lattice().run(given_people.microdata(), asked)
    except Infeasible:
        # term by term: `sum` rounds once since Python 3.12
        entropy = functools.reduce(operator.sub, [1 / values * math.log(1 / values)] * values, 0.0)
        assert entropy < math.log(values)
        return
    assert verdicts(given_people, released_rows(given_people.microdata(), outcome), asked)[0].holds


@pytest.mark.parametrize("ratio", range(2, 40))
def test_a_share_exactly_e_to_the_delta_away_is_refused(ratio: int) -> None:
    """δ = ln r and a share of exactly r times the overall one: a tie breaks the strict promise, however it is rounded."""
    others = ratio * (ratio - 1)
    table = pa.table({"q": ["a"] * ratio + ["b"] * others, "s": ["x"] * ratio + ["y"] * others})
    given_people = People(table, Schema.of(quasi=["q"], sensitive=["s"]), table.select(["q"]))
    outcome = Lattice().run(given_people.microdata(), [DeltaDisclosure(math.log(ratio), "s", protected_values=("x",))])
    assert outcome.details["levels"] == {"q": 1}


def test_a_sensitive_hierarchy_without_a_root_is_read_as_if_one_stood_above_it() -> None:
    """Values under different tops are at distance 1: half the records differ there, which is 0.5 on both levels."""
    forest = Column(role="sensitive", hierarchy=HierarchySpec(file=FOREST))
    table = pa.table({"q": ["x", "x", "y", "y"], "s": ["a", "a", "c", "c"]})
    schema = Schema(columns={"q": Column(role="quasi"), "s": forest})
    for t, level in ((0.5, 0), (0.45, 1)):
        outcome = Lattice().run(Microdata(MemoryRelation(table), schema), [TCloseness(t, "s", distance="hierarchical")])
        assert outcome.details["levels"] == {"q": level}
    # half of each class moves within the same top: 0.5 on the lower level, 0 on the upper, 0.25 on average
    table = pa.table({"q": ["x", "x", "y", "y"], "s": ["a", "c", "b", "d"]})
    for t, level in ((0.25, 0), (0.24, 1)):
        outcome = Lattice().run(Microdata(MemoryRelation(table), schema), [TCloseness(t, "s", distance="hierarchical")])
        assert outcome.details["levels"] == {"q": level}


def test_a_sensitive_hierarchy_of_frequencies_counts_records() -> None:
    """The two most frequent values stand together: the verifier measures 0.375 for this table as it is."""
    frequent = Column(role="sensitive", hierarchy=HierarchySpec(frequency=(2,)))
    table = pa.table({"q": ["a"] * 6 + ["b"] * 2, "s": ["z"] * 3 + ["y"] * 2 + ["x", "x", "w"]})
    given_people = People(table, Schema(columns={"q": Column(role="quasi"), "s": frequent}), table.select(["q"]))
    for t, level in ((0.375, 0), (0.37, 1)):
        asked = [TCloseness(t, "s", distance="hierarchical")]
        outcome = Lattice().run(given_people.microdata(), asked)
        assert verdicts(given_people, table, asked)[0].value == pytest.approx(0.375)
        assert outcome.details["levels"] == {"q": level}


def test_a_promise_without_a_bound_is_not_forgotten_beside_a_smallest_chance_of_presence() -> None:
    """Nothing may be suppressed, and the class breaks l-diversity with protected values, of whose parts nothing is known."""
    table = pa.table({"q": ["x"] * 4, "s": ["a", "b", "c", "b"]})
    given_people = People(table, Schema.of(quasi=["q"], sensitive=["s"]), table.select(["q"]))
    asked = [RecursiveLDiversity(0.7, 2, "s", protected_values=("a",)), DeltaPresence(0.2, 1.0)]
    with pytest.raises(Infeasible):
        Lattice(1.0).run(given_people.microdata(), asked, population=given_people.register())
    # one class of all breaks it, and yet a finer partition keeps it: exempt classes beside a diverse one
    finer = pa.table({"q": ["x", "x", "y", "y"], "s": ["a", "b", "b", "b"]})
    given_people = People(finer, Schema.of(quasi=["q"], sensitive=["s"]), finer.select(["q"]))
    asked = [RecursiveLDiversity(1.5, 2, "s", protected_values=("a",)), DeltaPresence(0.2, 1.0)]
    outcome = Lattice().run(given_people.microdata(), asked, population=given_people.register())
    assert outcome.details["levels"] == {"q": 0}


def test_a_summary_says_where_the_optimum_is_not_proven_and_its_gap() -> None:
    import sfumato as sf
    from sfumato.report.summary import summary, summary_lines

    people = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())
    proven = sf.protect(people, [sf.KAnonymity(3)], sf.Lattice(suppression=0.05), seed=1)
    assert not any(line.startswith("optimum") for line in summary_lines(proven))
    cut_short = sf.protect(people, [sf.KAnonymity(3)], sf.Lattice(suppression=0.05, time_limit=1e-9), seed=1)
    (line,) = [line for line in summary_lines(cut_short) if line.startswith("optimum")]
    gap = cut_short.details["gap"]
    assert gap > 0 and f"{gap:.4f}" in line and f"{cut_short.details['loss']:.4f}" in line
    assert cut_short.details["loss"] - gap <= proven.details["loss"] + 1e-9
    assert summary(cut_short)["details"]["gap"] == gap and summary(cut_short)["details"]["optimal"] is False
    (line,) = [line for line in summary_lines(sf.protect(people, [sf.KAnonymity(3)], seed=1)) if line.startswith("optimum")]
    assert "LeastLoss gives no bound" in line
