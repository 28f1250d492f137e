"""docs/theory/border-sweep.md holds: the sweep and the box search find what trying every node finds.

The yardstick shares nothing with the search: it recodes rows with dictionaries, measures classes with the plain
verifier and adds up the loss.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.anonymity.predicates.promises import promises_of
from sfumato.anonymity.search.base import pose
from sfumato.anonymity.search.node_tables import NodeTables
from sfumato.core.errors import Infeasible, Unsupported
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.measures.guarantees import ReferenceDistribution, measure_each
from tests.examples import examples

TREES = {
    "zip": {"13": {"130": ["1301", "1302"], "131": ["1311"]}, "14": {"140": ["1401", "1402", "1403"]}},
    "sex": {"anyone": ["f", "m"]},
    "born": {"early": ["50", "51"], "late": ["60", "61", "62"]},
}
LEAVES = {
    "zip": ["1301", "1302", "1311", "1401", "1402", "1403"],
    "sex": ["f", "m"],
    "born": ["50", "51", "60", "61", "62"],
}
SCHEMA = Schema(
    columns={
        **{name: Column(role="quasi", type="string", hierarchy=HierarchySpec(tree=tree)) for name, tree in TREES.items()},
        "illness": Column(role="sensitive"),
    }
)
rows = st.lists(
    st.tuples(*(st.sampled_from(values) for values in LEAVES.values()), st.sampled_from("abcd")), min_size=6, max_size=40
)
wanted = st.sampled_from(
    [
        (sf.KAnonymity(2),),
        (sf.KAnonymity(4),),
        (sf.KAnonymity(2), sf.DistinctLDiversity(2, "illness")),
        (sf.EntropyLDiversity(1.7, "illness"),),
        (sf.RecursiveLDiversity(2.0, 2, "illness"),),
        (sf.TCloseness(0.35, "illness"),),
        (sf.KAnonymity(2), sf.TCloseness(0.5, "illness", distance="kl")),
        (sf.BetaLikeness(0.9, "illness"),),
        (sf.AlphaKAnonymity(0.6, 2, "illness"),),
        (sf.KAnonymity(2), sf.EntropyLDiversity(1.5, "illness", protected_values=("a",))),
    ]
)


def table_of(given_rows: list[tuple[str, ...]]) -> pa.Table:
    return pa.table({name: [row[i] for row in given_rows] for i, name in enumerate([*LEAVES, "illness"])})


def cheapest_of_all_nodes(table: pa.Table, guarantees: tuple[Any, ...], limit: int) -> float | None:
    """The smallest loss of all level vectors, by brute force; None when none reaches the guarantees."""
    data = sf.read(table, SCHEMA)
    trees = pose(data, guarantees).table.hierarchies
    original = ReferenceDistribution.of(table, ["illness"])
    best = None
    for levels in product(*(range(tree.height + 1) for tree in trees)):
        shown, losses = {}, np.zeros(table.num_rows)
        for name, tree, level in zip(LEAVES, trees, levels, strict=True):
            nodes = [int(tree.node_of[level, tree.index[value]]) for value in table.column(name).to_pylist()]
            shown[name] = [tree.labels[node] for node in nodes]
            losses += np.array([tree.loss[node] for node in nodes]) / len(trees)
        recoded = pa.table({**shown, "illness": table.column("illness")})
        classes: dict[tuple[str, ...], list[int]] = {}
        for position, key in enumerate(zip(*shown.values(), strict=True)):
            classes.setdefault(key, []).append(position)
        gone: list[int] = []
        for members in classes.values():
            alone = recoded.take(members)
            if not all(found.holds for found in measure_each(alone, SCHEMA, guarantees, original=original)):
                gone += members
        if len(gone) <= limit:
            losses[gone] = 1.0
            loss = float(losses.mean())
            best = loss if best is None else min(best, loss)
    return best


@pytest.mark.slow
@settings(max_examples=examples(30), deadline=None)
@given(rows, wanted, st.sampled_from([0.0, 0.1, 0.4, 1.0]))
def test_both_searches_find_the_least_loss_of_all_nodes(
    given_rows: list[tuple[str, ...]], guarantees: tuple[Any, ...], suppression: float
) -> None:
    table = table_of(given_rows)
    assume(protects_somebody(given_rows, guarantees))
    if any(getattr(guarantee, "k", 1) > table.num_rows for guarantee in guarantees):
        return
    expected = cheapest_of_all_nodes(table, guarantees, int(np.floor(suppression * table.num_rows + 1e-9)))
    data = sf.read(table, SCHEMA)
    for method in (sf.Lattice(suppression), sf.Lattice(suppression, max_nodes=1)):
        if expected is None:
            with pytest.raises(Infeasible):
                method.run(data, guarantees)
            continue
        details = method.run(data, guarantees).details
        assert details["loss"] == pytest.approx(expected, abs=1e-9)
        assert details["optimal"] and details["gap"] == 0.0


def protects_somebody(given_rows: list[tuple[str, ...]], guarantees: tuple[Any, ...]) -> bool:
    """A protected value that no record has is refused, which is another test's business."""
    present = {row[-1] for row in given_rows}
    return all(set(getattr(guarantee, "protected_values", None) or present) <= present for guarantee in guarantees)


@settings(max_examples=examples(15), deadline=None)
@given(rows, wanted)
def test_base_loss_rises_and_penalty_falls_towards_general_nodes(
    given_rows: list[tuple[str, ...]], guarantees: tuple[Any, ...]
) -> None:
    assume(protects_somebody(given_rows, guarantees))
    problem = pose(
        sf.read(table_of(given_rows), SCHEMA),
        [g for g in guarantees if getattr(g, "k", 1) <= len(given_rows)] or [sf.KAnonymity(1)],
    )
    promises = promises_of(problem.guarantees, problem.table)
    tables = NodeTables(problem.table, promises, promises.totals())
    assert all(np.all(np.diff(part) >= 0) for part in tables.base_losses())
    for levels in product(*(range(height + 1) for height in tables.heights)):
        upper = tables.verdict(levels)
        for attribute in (a for a, level in enumerate(levels) if level):
            lower = tables.verdict((*levels[:attribute], levels[attribute] - 1, *levels[attribute + 1 :]))
            assert lower.suppressed >= upper.least_suppressed
            assert lower.penalty >= upper.least_penalty - 1e-12


@pytest.mark.golden("G-ANO-26")
def test_a_lattice_of_twelve_nodes() -> None:
    """Z has two levels above the raw values, S and B one: 12 nodes, 20 edges, heights 0 to 4 with 1, 3, 4, 3, 1 nodes."""
    table = pa.table({"Z": ["a", "b"], "S": ["f", "m"], "B": ["x", "y"]})
    trees = {"Z": {"ab": ["a", "b"]}, "S": None, "B": None}
    columns = {
        name: Column(role="quasi", hierarchy=HierarchySpec(tree=tree) if tree else HierarchySpec(flat=True))
        for name, tree in trees.items()
    }
    problem = pose(sf.read(table, Schema(columns=columns)), [sf.KAnonymity(1)])
    tables = NodeTables(problem.table, problem.promises, problem.promises.totals())
    nodes = list(product(*(range(height + 1) for height in tables.heights)))
    edges = [
        (low, high)
        for low in nodes
        for high in nodes
        if sum(high) == sum(low) + 1 and all(a <= b for a, b in zip(low, high, strict=True))
    ]
    assert tables.nodes == len(nodes) == 12
    assert len(edges) == 20
    assert np.bincount([sum(node) for node in nodes]).tolist() == [1, 3, 4, 3, 1]


def test_equal_losses_are_settled_by_fewest_suppressed_then_fewest_classes() -> None:
    from sfumato.anonymity.search.node_tables import NodeVerdict
    from sfumato.anonymity.search.sweep import BestNode

    found = BestNode(records=10)
    found.note((2, 0), 0.5, NodeVerdict(3, 0.1, 3, 0.1, 4), True)
    found.note((1, 1), 0.5 + 1e-14, NodeVerdict(0, 0.1, 0, 0.1, 9), True)
    assert found.levels == (1, 1)
    found.note((0, 2), 0.5, NodeVerdict(0, 0.1, 0, 0.1, 7), True)
    assert found.levels == (0, 2)
    found.note((0, 1), 0.4, NodeVerdict(9, 0.1, 9, 0.1, 9), False)
    assert found.levels == (0, 2)


@settings(max_examples=examples(25), deadline=None)
@given(rows, wanted, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_change_the_release(
    given_rows: list[tuple[str, ...]], guarantees: tuple[Any, ...], shuffle: Any
) -> None:
    if any(getattr(guarantee, "k", 1) > len(given_rows) for guarantee in guarantees):
        return
    other = list(given_rows)
    shuffle.shuffle(other)
    found = []
    for order in (given_rows, other):
        try:
            release = sf.protect(sf.read(table_of(order), SCHEMA), guarantees, sf.Lattice(0.4), seed=1)
            found.append(release.data.to_pylist())
        except (Infeasible, Unsupported) as error:
            found.append(str(error))
    assert found[0] == found[1]
