"""What an analyst reads out of a recoded table: values that its cells cover, and classes an intruder can find but not divide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.anonymity.search.base import Search
from sfumato.core.errors import Infeasible, ParameterError, Unsupported
from sfumato.data.masked import Masked
from sfumato.data.recoding import RecodingTable
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.measures.risk.disclosure.disclosure_risk import DisclosureRisk
from sfumato.measures.risk.linkage.distance_linkage import DistanceLinkage
from sfumato.measures.risk.linkage.probabilistic_linkage import ProbabilisticLinkage

SEARCHES: list[Search] = [
    sf.Mondrian(),
    sf.LocalRecoding(),
    sf.Lattice(suppression=0.1),
    sf.TopDown(),
    sf.KMember(),
    sf.CellSuppression(),
]
SCHEMA = Schema(
    dataset="towns",
    columns={
        "age": Column(role="quasi", type="integer", bounds=(0, 99), hierarchy=HierarchySpec(intervals=(10, 50))),
        "town": Column(role="quasi", type="string", hierarchy=HierarchySpec(tree={"east": ["a", "b"], "west": ["c", "d"]})),
        "wage": Column(role="plain", type="number"),
    },
)


def people(size: int = 120, seed: int = 1) -> sf.Microdata:
    draw = np.random.default_rng(seed)
    rows = {
        "age": draw.integers(20, 60, size),
        "town": draw.choice(["a", "b", "c", "d"], size, p=[0.5, 0.3, 0.15, 0.05]),
        "wage": draw.normal(size=size),
    }
    return sf.read(pa.table(rows), SCHEMA)


def read_out(data: sf.Microdata, search: Search, k: int = 4) -> Masked:
    return sf.Recoded(sf.KAnonymity(k), search).apply(data, seed=5).result


# KMember may show equal records differently, and which of them depends on the columns that are kept
@pytest.mark.parametrize("search", [s for s in SEARCHES if not isinstance(s, sf.KMember)], ids=lambda s: type(s).__name__)
def test_every_value_read_is_one_that_its_cell_covers(search: Search) -> None:
    data = people()
    read = read_out(data, search)
    outcome = search.run(data, [sf.KAnonymity(4)])
    shown = data.relation.recode(
        RecodingTable.of(outcome.result, outcome.class_table.keys, outcome.class_table.quasi), ["age", "town", "wage"]
    )
    row_of = {wage: row for row, wage in enumerate(data.table().column("wage").to_pylist())}
    rows = [row_of[wage] for wage in shown.column("wage").to_pylist()]
    for name in ("age", "town"):
        original, values = data.table().column(name).to_pylist(), read.table.column(name).to_pylist()
        covered: dict[Any, set[Any]] = {}
        for row, label in zip(rows, shown.column(name).to_pylist(), strict=True):
            covered.setdefault(label, set()).add(original[row])
        for row, label in zip(rows, shown.column(name).to_pylist(), strict=True):
            assert values[row] in covered[label]
            if name == "age":  # the middle of the different values, the lower one of two
                assert values[row] == sorted(covered[label])[(len(covered[label]) - 1) // 2]
    assert read.classes is not None and read.table.column("wage") == data.table().column("wage")
    assert sorted(np.flatnonzero(read.classes >= 0)) == sorted(rows)
    labels = [tuple(shown.column(name).to_pylist()[i] for name in ("age", "town")) for i in range(len(rows))]
    for i, j in zip(range(len(rows) - 1), range(1, len(rows)), strict=True):
        assert (labels[i] == labels[j]) == (read.classes[rows[i]] == read.classes[rows[j]])


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
def test_an_intruder_finds_the_class_and_guesses_within_it(search: Search) -> None:
    data = people()
    read = read_out(data, search)
    assert read.classes is not None
    shown = read.classes >= 0
    sizes = np.bincount(read.classes[shown])
    assert sizes[sizes > 0].min() >= 4
    least = np.where(shown, 1.0 / sizes[np.maximum(read.classes, 0)], 0.0)
    for measure in (DistanceLinkage(), ProbabilisticLinkage()):
        credit = measure.per_record(data, read)
        assert (credit >= least - 1e-12).all() and (credit[~shown] == 0).all()
    parts = DisclosureRisk().score(data, read).parts
    assert min(parts["distance linkage"], parts["probabilistic linkage"]) >= least.mean() - 1e-12


def test_who_knows_fewer_columns_does_not_find_the_class() -> None:
    data = people()
    read = read_out(data, sf.Mondrian())
    bare = Masked(read.table, read.schema, read.columns, read.rows)
    measure = DistanceLinkage(columns=("age",))
    assert measure.score(data, read).value == measure.score(data, bare).value
    assert DistanceLinkage().score(data, read).value > DistanceLinkage().score(data, bare).value


def test_suppressed_records_are_read_as_unknown_and_never_found() -> None:
    data = people(200, seed=3)
    read = read_out(data, sf.Lattice(suppression=0.5), k=8)
    assert read.classes is not None
    hidden = read.classes < 0
    assert hidden.any() and (DistanceLinkage().per_record(data, read)[hidden] == 0).all()
    different = sorted(set(data.table().column("age").to_pylist()))
    ages = np.array(read.table.column("age").to_pylist())[hidden]
    assert set(ages) == {different[(len(different) - 1) // 2]}


def test_categories_are_drawn_evenly_from_what_their_cell_covers() -> None:
    """Each of 4 covered towns is drawn with chance 1/4: 4,000 draws stay within 6 deviations (false alarm below 1e-8)."""
    rows = pa.table({"age": [30] * 4000, "town": ["a"] * 3997 + ["b", "c", "d"], "wage": np.arange(4000.0)})
    read = sf.Recoded(sf.KAnonymity(3000), sf.Lattice()).apply(sf.read(rows, SCHEMA), seed=1).result
    counts = np.unique(read.table.column("town").to_pylist(), return_counts=True)[1]
    assert counts.size == 4 and (np.abs(counts - 1000) < 6 * np.sqrt(4000 * 3 / 16)).all()


def test_the_same_seed_reads_the_same() -> None:
    data = people()
    method = sf.Recoded((sf.KAnonymity(30),), sf.Lattice())
    first, again, other = (method.apply(data, seed=seed).result.table for seed in (1, 1, 2))
    assert first == again and first != other
    assert method == sf.Recoded(sf.KAnonymity(30), sf.Lattice())


def test_missing_values_stay_missing_where_a_cell_covers_nothing_else() -> None:
    draw = np.random.default_rng(2)
    rows = pa.table({"age": [None] * 20 + draw.integers(20, 60, 40).tolist(), "town": ["a"] * 60, "wage": draw.normal(size=60)})
    read = sf.Recoded(sf.KAnonymity(4), sf.Lattice()).apply(sf.read(rows, SCHEMA), seed=1).result
    ages = read.table.column("age").to_pylist()
    assert ages[20:].count(None) == 0 and set(ages[:20]) <= {None, *ages[20:]}


def test_what_cannot_be_read_or_reached_is_refused() -> None:
    with pytest.raises(ParameterError, match="guarantees must be one guarantee or several"):
        sf.Recoded(())
    with pytest.raises(ParameterError, match="search must be a search for guarantees"):
        sf.Recoded(sf.KAnonymity(3), sf.Mdav(3))  # type: ignore[arg-type]
    with pytest.raises(Infeasible):
        sf.Recoded(sf.KAnonymity(1000), sf.Mondrian()).apply(people(), seed=1)
    basket = Schema(dataset="b", columns={"items": Column(role="quasi", type="string", items=",")})
    with pytest.raises(Unsupported, match="set"):
        sf.Recoded(sf.KAnonymity(2), sf.Hybrid()).apply(sf.read(pa.table({"items": ["a,b", "a,b"]}), basket), seed=1)
