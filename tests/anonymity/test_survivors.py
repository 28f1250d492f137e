"""Leaving out classes that lose everything changes no verdict, and what is said about less general nodes stays true."""

from __future__ import annotations

import math
from itertools import product
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sfumato.anonymity.search import survivors, sweep
from sfumato.anonymity.search.base import pose
from sfumato.anonymity.search.lattice import Lattice
from sfumato.anonymity.search.node_tables import NodeTables, fits
from sfumato.anonymity.search.survivors import Survivors
from sfumato.anonymity.search.verdicts import NodeVerdict
from sfumato.core.errors import Infeasible, Unsupported
from sfumato.core.guarantees.k_anonymity import KAnonymity
from sfumato.core.guarantees.t_closeness import TCloseness
from tests.anonymity.brute_force import all_nodes, best_loss
from tests.anonymity.test_lattice import small_lattices
from tests.conformance.problems import People, mixtures
from tests.examples import examples


@pytest.mark.parametrize(("family", "rows"), [(1, 1), (4, 1 << 16), (24, 1 << 16), (24, 12)])
@settings(max_examples=examples(12))
@given(table=small_lattices(), data=st.data())
def test_verdicts_on_families_are_those_on_single_nodes(family: int, rows: int, table: People, data: st.DataObject) -> None:
    asked = data.draw(mixtures(table.secrets))
    try:
        problem = pose(table.microdata(), asked, table.register())
    except (Infeasible, Unsupported):
        assume(False)
    assume(fits(problem.table))
    tables = NodeTables(problem.table, problem.promises, problem.promises.totals())
    assume(Survivors.suit(tables))
    nodes = list(product(*(range(height + 1) for height in tables.heights)))
    with (
        mock.patch.object(survivors, "FAMILY", family),
        mock.patch.object(survivors, "ROWS", rows),
        mock.patch.object(survivors, "FEW", 0),
    ):
        among = Survivors(tables)
        verdicts: dict[tuple[int, ...], NodeVerdict] = {}
        wanted = np.ones([height + 1 for height in tables.heights], dtype=np.bool_)
        for node in nodes:
            if node not in verdicts:
                verdicts.update(among.verdicts(node, wanted).each())
                for each in verdicts:
                    wanted[each] = False
    assert set(verdicts) == set(nodes)
    for node, verdict in verdicts.items():
        alone = tables.verdict(node)
        assert (verdict.suppressed, verdict.kept) == (alone.suppressed, alone.kept)
        assert verdict.penalty == pytest.approx(alone.penalty, abs=1e-12)
        assert verdict.least_suppressed >= alone.least_suppressed
        for lower in nodes:
            if all(below <= above for below, above in zip(lower, node, strict=True)):
                assert verdicts[lower].suppressed >= verdict.least_suppressed
                assert verdicts[lower].penalty >= verdict.least_penalty - 1e-12


@settings(max_examples=examples(15))
@given(table=small_lattices(), t=st.sampled_from([0.15, 0.3, 0.45]), distance=st.sampled_from(["equal", "hierarchical"]))
def test_a_search_by_families_finds_the_best_of_all_nodes(table: People, t: float, distance: str) -> None:
    assume(table.secrets)
    asked = [KAnonymity(2), TCloseness(t, "secret", distance=distance)]  # type: ignore[arg-type]
    assume(table.table.num_rows >= 2)
    nodes = list(all_nodes(table, asked))
    for share in (0.2, 1.0):
        expected = best_loss(nodes, math.floor(share * table.table.num_rows + 1e-9))
        with (
            mock.patch.object(survivors, "FAMILY", 2),
            mock.patch.object(survivors, "FEW", 0),
            mock.patch.object(sweep, "ALONE", 0),
            mock.patch.object(sweep, "HARD", 0),
        ):
            try:
                outcome = Lattice(share).run(table.microdata(), asked, population=table.register())
            except Infeasible:
                assert expected is None
                continue
        assert outcome.details["loss"] == pytest.approx(expected, abs=1e-12) and outcome.details["optimal"]
