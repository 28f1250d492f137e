"""Every objective of the lattice search has the optimum of an exhaustive search that shares nothing with it."""

from __future__ import annotations

import itertools
import math
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.anonymity.search import node_tables
from sfumato.anonymity.search.node_tables import KEY_BITS
from sfumato.anonymity.search.objectives import Objective
from sfumato.core.errors import Infeasible, ParameterError
from sfumato.core.guarantees.risk import WholeTableGuarantee
from sfumato.data.class_table import encode
from sfumato.data.schema import HierarchySpec
from sfumato.data.texts.values import text_of
from tests.anonymity.brute_force import _generalised, _kept_rows
from tests.anonymity.test_lattice import asked_k
from tests.conformance.problems import People, mixtures, people
from tests.examples import examples

AGGREGATES = ("mean", "sum", "geometric_mean", "maximum", "rank")


def column_losses(table: People, levels: tuple[int, ...], measured: str) -> list[list[float]]:
    """Per column and record the loss at a node, from the rows of the hierarchy alone."""
    coded = encode(table.microdata(), population=table.register())
    losses = []
    for name, tree, level in zip(coded.quasi, coded.hierarchies, levels, strict=True):
        rows = tree.rows()
        at = {row[0]: row[level] for row in rows}
        share = {leaf: (sum(row[level] == at[leaf] for row in rows) - 1) / max(len(rows) - 1, 1) for leaf in at}
        climbed = level / tree.height if tree.height else 0.0
        texts = [text_of(value) for value in table.table.column(name).to_pylist()]
        losses.append([climbed if measured == "precision" else share[text] for text in texts])
    return losses


def cost(table: People, levels: tuple[int, ...], kept: list[int], search: sf.Lattice) -> tuple[float, ...]:
    """What a node costs by the formulas of the docs; a tuple, because `rank` compares one number after the other."""
    p, records = search.prefer_generalising, table.table.num_rows
    g, s = min(1, 2 * (1 - p)), min(1, 2 * p)
    by_column = []
    for losses in column_losses(table, levels, search.measured):
        by_column.append(sum(g * x if row in kept else x + s * (1 - x) for row, x in enumerate(losses)) / records)
    importance = [table.schema.columns[name].importance for name in table.schema.quasi]
    weights = [each / sum(importance) for each in importance]
    weighed = [len(weights) * w * loss for w, loss in zip(weights, by_column, strict=True)]
    if search.aggregate == "rank":
        return tuple(sorted(weighed, reverse=True))
    if search.aggregate == "geometric_mean":
        return (math.prod((1 + loss) ** w for w, loss in zip(weights, by_column, strict=True)) - 1,)
    if search.aggregate == "maximum":
        return max(weighed), sum(weighed) / len(weights)
    return ({"mean": sum(weighed) / len(weights), "sum": sum(weighed)}[search.aggregate],)


@pytest.mark.parametrize("key_bits", [KEY_BITS, 0], ids=["packed keys", "keys that do not fit"])
@settings(max_examples=examples(8))
@given(table=people(attributes=(2, 3), kinds=("unbalanced", "intervals", "forest", "mask", "flat", "dates")), data=st.data())
def test_the_optimum_of_each_objective_equals_that_of_an_exhaustive_search(
    key_bits: int, table: People, data: st.DataObject
) -> None:
    asked = data.draw(mixtures(table.secrets))
    coded = encode(table.microdata(), population=table.register())
    trees = dict(zip(coded.quasi, coded.hierarchies, strict=True))
    ones = dict.fromkeys(trees, 1.0)
    kept = {
        levels: _kept_rows(table, *_generalised(table.table, trees, dict(zip(trees, levels, strict=True)), ones), asked)
        for levels in itertools.product(*(range(tree.height + 1) for tree in trees.values()))
    }
    preference = data.draw(st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0]))
    measured: Any = data.draw(st.sampled_from(["loss", "precision"]))
    # which classes go for a promise about all records together is not chosen by the objective, and nothing is proven then
    on_average = any(isinstance(each, WholeTableGuarantee) for each in asked)
    limit = 0.0 if on_average else data.draw(st.sampled_from([0.0, 0.3, 1.0]))
    allowed = math.floor(limit * table.table.num_rows + 1e-9)
    for aggregate, most in itertools.product(AGGREGATES, (1_000_000, 1)):
        search = sf.Lattice(limit, most, aggregate=aggregate, prefer_generalising=preference, measured=measured)  # type: ignore[arg-type]
        costs = {
            levels: cost(table, levels, rows, search)
            for levels, rows in kept.items()
            if rows is not None and table.table.num_rows - len(rows) <= allowed
        }
        try:
            with mock.patch.object(node_tables, "KEY_BITS", key_bits):
                outcome = search.run(table.microdata(), asked, population=table.register())
        except Infeasible:
            assert not costs or asked_k(asked) > table.table.num_rows
            continue
        chosen = costs[tuple(outcome.details["levels"].values())]
        best = min(costs.values(), key=lambda each: tuple(round(number, 9) for number in each))
        assert chosen == pytest.approx(best, abs=1e-8)
        assert outcome.details["optimal"]
        if "objective" in outcome.details:
            assert outcome.details["objective"] == pytest.approx(chosen[0], abs=1e-9)


@given(
    losses=st.lists(st.floats(0, 1), min_size=3, max_size=3),
    more=st.lists(st.floats(0, 0.5), min_size=3, max_size=3),
    preference=st.floats(0, 1),
)
def test_aggregates_grow_with_every_loss_and_suppressing_adds_less_to_a_larger_one(
    losses: list[float], more: list[float], preference: float
) -> None:
    """What the bounds of the search rest on."""
    for aggregate in AGGREGATES:
        objective = Objective(aggregate, preference, "loss", np.array([0.5, 0.3, 0.2]))
        low, high = np.array(losses), np.minimum(np.array(losses) + np.array(more), 1)
        assert objective.of_one(low) <= objective.of_one(high) + 1e-12
        assert (objective.added(low) >= objective.added(high) - 1e-12).all()
        assert (objective.added(low) >= -1e-12).all()


def test_the_preference_decides_between_suppressing_and_generalising() -> None:
    """Nineteen people of one town and one of another: suppress one, or generalise all."""
    table = pa.table({"town": ["a"] * 19 + ["b"], "age": [30] * 20})
    columns = {
        "town": sf.Column(role="quasi", hierarchy=HierarchySpec(tree={"ab": ["a", "b"], "cd": ["c", "d"]})),
        "age": sf.Column(role="quasi"),
    }
    data = sf.read(table, sf.Schema(dataset="people", columns=columns))

    def suppressed(preference: float) -> int:
        return sf.Lattice(0.1, prefer_generalising=preference).run(data, [sf.KAnonymity(2)]).result.suppressed

    assert suppressed(0.0) == 1 and suppressed(0.5) == 1 and suppressed(1.0) == 0


def test_the_maximum_spares_the_column_that_loses_most_and_a_certificate_names_the_objective() -> None:
    people_ = sf.read(sf.data.sample_table(400), schema=sf.data.sample_schema())
    by_mean = sf.Lattice(0.05).run(people_, [sf.KAnonymity(4)]).details
    release = sf.protect(people_, [sf.KAnonymity(4)], sf.Lattice(0.05, aggregate="maximum"))
    most = max(release.details["loss_per_attribute"].values())
    assert most <= max(by_mean["loss_per_attribute"].values()) + 1e-12
    assert release.details["loss"] >= by_mean["loss"] - 1e-12
    # where some column must lose everything, the others still lose as little as possible
    assert release.details["loss"] < 1
    assert release.certificate.method["aggregate"] == "maximum"


def test_objectives_that_cannot_be_are_refused() -> None:
    for wrong in ({"aggregate": "median"}, {"prefer_generalising": 1.5}, {"measured": "entropy"}):
        with pytest.raises(ParameterError):
            sf.Lattice(**wrong)  # type: ignore[arg-type]
