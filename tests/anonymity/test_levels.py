"""Least and greatest levels: no search shows a value outside them, and the best node is the best of those that are left."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.anonymity.search import node_tables, survivors, sweep
from sfumato.anonymity.search.node_tables import KEY_BITS
from sfumato.core.errors import Infeasible, SchemaError, Unsupported
from sfumato.data.class_table import encode
from sfumato.data.sample import write_sample
from sfumato.data.schema import HierarchySpec
from sfumato.data.texts.values import text_of
from tests.anonymity.brute_force import all_nodes, best_loss
from tests.anonymity.test_lattice import LIMITS, asked_k
from tests.conformance.problems import People, mixtures, people, released_rows, verdicts
from tests.examples import examples

SEARCHES = [
    sf.Lattice(0.3),
    sf.LeastLoss(0.3),
    sf.LocalRecoding(0.3),
    sf.Mondrian(),
    sf.Mondrian(relaxed=True, ranges_everywhere=True),
    sf.TopDown(partial=True),
    sf.KMember(),
    sf.Hybrid(0.3),
]


def limited(table: People, data: st.DataObject, *, population: bool = False) -> tuple[People, dict[str, tuple[int, int]]]:
    """The same people with random limits of levels; a mask may have more of them with the population's values."""
    coded = encode(table.microdata(), population=table.register() if population else None)
    limits = {}
    for name, tree in zip(coded.quasi, coded.hierarchies, strict=True):
        least = data.draw(st.integers(0, tree.height), f"least level of {name}")
        limits[name] = (least, data.draw(st.integers(least, tree.height), f"greatest level of {name}"))
    schema = table.schema.with_levels(*({name: limits[name][end] for name in limits} for end in (0, 1)))
    return People(table.table, schema, table.population), limits


@pytest.mark.parametrize(
    ("key_bits", "alone"),
    [(KEY_BITS, sweep.ALONE), (KEY_BITS, 0), (0, sweep.ALONE)],
    ids=["packed keys", "packed keys by families", "keys that do not fit"],
)
@settings(max_examples=examples(10))
@given(table=people(attributes=(2, 3), kinds=("unbalanced", "intervals", "forest", "mask", "dates", "numbers")), data=st.data())
def test_the_best_node_equals_brute_force_over_the_levels_that_are_left(
    key_bits: int, alone: int, table: People, data: st.DataObject
) -> None:
    asked = data.draw(mixtures(table.secrets))
    few, limits = limited(table, data, population=True)
    nodes = [
        node
        for node in all_nodes(table, asked)
        if all(least <= level <= greatest for level, (least, greatest) in zip(node.levels, limits.values(), strict=True))
    ]
    for share in LIMITS:
        expected = best_loss(nodes, math.floor(share * table.table.num_rows + 1e-9))
        for search in (sf.Lattice(share), sf.Lattice(share, max_nodes=1)):
            try:
                with (
                    mock.patch.object(node_tables, "KEY_BITS", key_bits),
                    mock.patch.object(sweep, "ALONE", alone),
                    mock.patch.object(sweep, "HARD", min(alone, sweep.HARD)),
                    mock.patch.object(survivors, "FEW", min(alone, survivors.FEW)),
                ):
                    outcome = search.run(few.microdata(), asked, population=few.register())
            except Infeasible:
                assert expected is None or asked_k(asked) > table.table.num_rows
                continue
            assert expected is not None
            assert outcome.details["loss"] == pytest.approx(expected, abs=1e-12)
            assert outcome.details["optimal"] and outcome.details["nodes"] == len(nodes)
            at = next(node for node in nodes if node.levels == tuple(outcome.details["levels"].values()))
            assert at.suppressed == outcome.result.suppressed


@pytest.mark.parametrize("search", SEARCHES, ids=repr)
@settings(max_examples=examples(20))
@given(table=people(attributes=(1, 3), kinds=("unbalanced", "intervals", "mask", "dates", "numbers")), data=st.data())
def test_no_search_shows_a_value_outside_the_levels(search: Any, table: People, data: st.DataObject) -> None:
    few, limits = limited(table, data)
    k = data.draw(st.integers(1, 3))
    try:
        outcome = search.run(few.microdata(), [sf.KAnonymity(k)])
    except (Infeasible, Unsupported):
        return
    shown = released_rows(few.microdata(), outcome)
    assert all(verdict.holds for verdict in verdicts(few, shown, [sf.KAnonymity(k)]))
    coded = encode(table.microdata())
    for name, tree in zip(coded.quasi, coded.hierarchies, strict=True):
        least, greatest = limits[name]
        allowed = {row[level] for row in tree.rows() for level in range(least, greatest + 1)}
        assert {text_of(value) for value in shown.column(name).to_pylist()} <= allowed
    assert outcome.details["suppressed"] + shown.num_rows == table.table.num_rows


def towns(**limits: int) -> sf.Microdata:
    tree = {"north": {"oslo": ["0150", "0151"], "bergen": ["5003"]}, "south": {"rome": ["00100", "00118"]}}
    columns = {
        "zip": sf.Column(role="quasi", hierarchy=HierarchySpec(tree=tree), **limits),  # type: ignore[arg-type]
        "age": sf.Column(role="quasi", type="integer", hierarchy=HierarchySpec(intervals=(10, 20))),
    }
    table = pa.table({"zip": ["0150", "0151", "5003", "00100", "00118", "00118"], "age": [31, 32, 33, 44, 45, 46]})
    return sf.read(table, sf.Schema(dataset="people", columns=columns))


@pytest.mark.parametrize("search", [sf.Lattice(), sf.LeastLoss(0), sf.LocalRecoding(0), sf.Mondrian(), sf.TopDown()], ids=repr)
def test_a_refusal_names_the_column_whose_limit_is_in_the_way(search: Any) -> None:
    assert search.run(towns(), [sf.KAnonymity(4)]).result.class_sizes().min() >= 4
    with pytest.raises(Infeasible) as refusal:
        search.run(towns(greatest_level=2), [sf.KAnonymity(4)])
    text = str(refusal.value)
    assert "The schema limits 'zip' to level 2 of 3 (greatest_level)" in text
    assert "Without the limit of 'zip' the table would keep it" in text
    assert "'age'" not in text and "0150" not in text
    assert search.run(towns(greatest_level=2), [sf.KAnonymity(3)]).result.class_sizes().tolist() == [3, 3]


def test_two_limits_that_are_in_the_way_together_are_both_named() -> None:
    data = towns(greatest_level=2)
    with pytest.raises(Infeasible, match="Without these limits together the table would keep it"):
        sf.Lattice().run(data.with_schema(data.schema.with_levels(greatest={"age": 1})), [sf.KAnonymity(4)])
    data = towns(greatest_level=2)
    data = data.with_schema(data.schema.replace(columns={**data.schema.columns, "age": sf.Column(role="sensitive")}))
    with pytest.raises(Infeasible, match="Even without these limits the most general levels break it"):
        sf.Lattice().run(data, [sf.DistinctLDiversity(7, "age")])


def test_a_column_with_limits_shows_nodes_of_its_hierarchy_and_no_ranges() -> None:
    data = towns()
    limited_age = data.with_schema(data.schema.with_levels(least={"age": 1}))
    for search in (sf.Mondrian(), sf.Mondrian(ranges_everywhere=True), sf.LeastLoss()):
        assert search.run(limited_age, [sf.KAnonymity(1)]).result.shown[1].labels is not None
        shown = set(released_rows(limited_age, search.run(limited_age, [sf.KAnonymity(1)])).column("age").to_pylist())
        assert shown == {"[30, 40)", "[40, 50)"}


def test_limits_that_cannot_be_are_refused() -> None:
    with pytest.raises(SchemaError, match=r"column 'zip': least_level = 7, but its hierarchy has levels 0 to 3"):
        sf.Lattice().run(towns(least_level=7), [sf.KAnonymity(2)])
    with pytest.raises(ValueError, match="greatest_level = 1 is below least_level = 2"):
        towns(least_level=2, greatest_level=1)
    with pytest.raises(ValueError, match="columns that are generalised"):
        sf.Column(role="plain", least_level=1)
    with pytest.raises(ValueError, match="items of sets"):
        sf.Column(role="quasi", type="string", items="|", greatest_level=1)
    with pytest.raises(SchemaError) as faults:
        towns().schema.with_levels(least={"zap": 1, "age": -1}, greatest={"zip": True})
    assert all(text in str(faults.value) for text in ("'zap'", "'age' must be a whole number", "'zip' must be a whole number"))
    with pytest.raises(Unsupported, match="cannot keep to levels of zip"):
        sf.CellSuppression().run(towns(least_level=1), [sf.KAnonymity(2)])
    with pytest.raises(Unsupported, match="Column 'zip' has no common root. Raise its greatest_level"):
        sf.KMember().run(towns(greatest_level=1), [sf.KAnonymity(2)])
    with pytest.raises(SchemaError, match="zip: least_level says that the column is generalised"):
        sf.Lattice().run(towns(least_level=1), [sf.KAnonymity(2, sf.Knowledge(attributes=("age",)))])


def test_a_release_within_levels_verifies_and_says_the_levels_of_the_whole_hierarchy(tmp_path: Path) -> None:
    data = towns(least_level=1, greatest_level=2)
    release = sf.protect(data, [sf.KAnonymity(2)], sf.Lattice(0.2))
    assert release.details["levels"]["zip"] == 2
    assert release.certificate.transparency["levels"]["zip"] == 2
    release.save(tmp_path / "out")
    verification = sf.verify(tmp_path / "out")
    assert verification.accepted
    assert "greatest_level = 2" in (tmp_path / "out" / "owner" / "schema.toml").read_text()
    assert "level" not in (tmp_path / "out" / "public" / "schema.toml").read_text()


def test_levels_from_the_command_line_and_the_recipe_that_is_kept(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from sfumato.cli.main import app

    data, schema = write_sample(tmp_path, rows=300)
    out = tmp_path / "out"
    words = ["protect", str(data), "--schema", str(schema), "--k", "3", "--method", "Lattice, suppression=0.2", "-o", str(out)]
    words += ["--no-ledger", "--json", "--least-level", "age=1", "--greatest-level", "age=2"]
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code == 0, ended.output
    recipe = sf.Recipe.load(out / "owner" / "recipe.toml")
    assert recipe.least_level == {"age": 1} and recipe.greatest_level == {"age": 2}
    assert 1 <= recipe.run().details["levels"]["age"] <= 2
    odd = CliRunner().invoke(app, [*words[:-4], "--least-level", "age=1.5", "--overwrite"])
    assert "whole number of at least 0" in str(odd.exception)
