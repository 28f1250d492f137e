"""Relations between columns: each strength against its definition, what counts as chance, and what is lost."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2_contingency, rankdata, spearmanr

import sfumato as sf
from sfumato.data.masked import compared
from sfumato.data.records import Records
from sfumato.measures.utility.relations import Relations, _listed, _named, moved_relations

ORDERED = sf.data.schema.Column(role="quasi", type="category", order=("low", "middle", "high"))
WORDS = sf.data.schema.Column(role="quasi", type="category")
NUMBER = sf.data.schema.Column(role="quasi", type="number")
SCHEMA = sf.Schema(dataset="d", columns={"x": NUMBER, "y": NUMBER, "level": ORDERED, "kind": WORDS, "town": WORDS})


def _table(rows: int, draw: np.random.Generator, missing: float = 0.0) -> pa.Table:
    size = draw.normal(size=rows)
    level = np.array(["low", "middle", "high"])[np.digitize(size + draw.normal(size=rows), [-1, 1])]
    kind = np.array(list("abcd"))[np.digitize(size + draw.normal(size=rows), [-1, 0, 1])]
    town = np.where(draw.random(rows) < 0.5, kind, draw.choice(list("abcdef"), rows))
    columns = {"x": np.round(size, 1), "y": -np.exp(size) + draw.normal(size=rows), "level": level, "kind": kind, "town": town}
    holes = {name: draw.random(rows) < missing for name in columns}
    return pa.table({name: pa.array(values.tolist(), mask=holes[name]) for name, values in columns.items()})


def _relations(table: pa.Table) -> dict[tuple[str, str], float]:
    records = Records.of(table, SCHEMA, tuple(table.column_names))
    strength = Relations.of(records, {i: _listed(column) for i, column in _named(records)}).strength
    return dict(zip(combinations(table.column_names, 2), strength.tolist(), strict=True))


def _by_definition(first: list, second: list, kinds: tuple[bool, bool]) -> float:
    """The strength of one pair: `kinds` says which of the two are words."""
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    if kinds == (True, True):
        seen = [sorted({pair[i] for pair in pairs}) for i in (0, 1)]
        counts = np.array([[pairs.count((a, b)) for b in seen[1]] for a in seen[0]])
        n, (r, c) = counts.sum(), counts.shape
        phi = chi2_contingency(counts, correction=False).statistic / n - (r - 1) * (c - 1) / (n - 1)
        return float(np.sqrt(max(phi, 0) / (min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1)))
    if kinds == (False, False):
        return float(spearmanr(*zip(*pairs, strict=True)).statistic)
    words, values = (first, second) if kinds[0] else (second, first)
    ranks = np.full(len(values), np.nan)
    known = [i for i, value in enumerate(values) if value is not None]
    ranks[known] = rankdata([values[i] for i in known])
    rows = [i for i in known if words[i] is not None]
    groups = [[ranks[i] for i in rows if words[i] == word] for word in {words[i] for i in rows}]
    within, whole = sum(np.var(group) * len(group) for group in groups), np.var(ranks[rows]) * len(rows)
    return float(np.sqrt(max(1 - within / whole * (len(rows) - 1) / (len(rows) - len(groups)), 0)))


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_strengths_equal_their_definitions(missing: float) -> None:
    table = _table(200, np.random.default_rng(1), missing)
    levels = {"low": 0, "middle": 1, "high": 2, None: None}
    columns = {name: table[name].to_pylist() for name in table.column_names}
    columns["level"] = [levels[value] for value in columns["level"]]
    for (a, b), strength in _relations(table).items():
        expected = _by_definition(columns[a], columns[b], (a in ("kind", "town"), b in ("kind", "town")))
        # ranks are those of the whole column, where the definition ranks the pairs that are known
        exact = missing == 0 or a in ("kind", "town") or b in ("kind", "town")
        assert strength == pytest.approx(expected, abs=1e-9 if exact else 0.02), (a, b)


def _moved(original: pa.Table, masked: pa.Table) -> float:
    names = tuple(original.column_names)
    people = sf.read(original, sf.Schema(dataset="d", columns={name: SCHEMA.columns[name] for name in names}))
    left, right, _ = compared(people, masked, names)
    return moved_relations(left, right)


def test_nothing_moved_and_everything_lost() -> None:
    draw = np.random.default_rng(2)
    table = _table(1_000, draw)
    assert _moved(table, table) == 0.0
    assert _moved(table, table.take(pa.array(draw.permutation(1_000)))) == 0.0
    permuted = pa.table({n: table[n].take(pa.array(draw.permutation(1_000))) for n in table.column_names})
    assert _moved(table, permuted) > 0.9
    assert _moved(permuted, table) > 0.9
    assert _moved(table, pa.table({name: [table[name][0].as_py()] * 1_000 for name in table.column_names})) == 1.0
    turned = table.set_column(0, "x", pa.array(-table["x"].to_numpy()))
    assert 0.3 < _moved(table, turned) <= 1.0
    stretched = table.set_column(0, "x", pa.array(np.exp(table["x"].to_numpy())))
    assert _moved(table, stretched) == 0.0


@pytest.mark.parametrize("rows", [10, 100, 1_000])
def test_relations_that_chance_gives_do_not_count(rows: int) -> None:
    """Independent columns, and new ones: a pair beyond three deviations is rare, about 3 in 1,000 of ten pairs and two sides."""
    draw = np.random.default_rng(rows)
    lost = []
    for _ in range(20):
        table, other = (
            pa.table({n: t[n].take(pa.array(draw.permutation(rows))) for n in t.column_names})
            for t in (_table(rows, draw), _table(rows, draw))
        )
        lost.append(_moved(table, other) > 0)
    assert sum(lost) <= 8


def test_many_labels_are_chance_too() -> None:
    draw = np.random.default_rng(5)
    many = [pa.table({n: [str(v) for v in draw.integers(0, 200, 500)] for n in ("kind", "town")}) for _ in range(2)]
    assert _moved(*many) == 0.0


def test_a_category_that_became_constant_has_lost_its_relations() -> None:
    table = _table(600, np.random.default_rng(4)).select(["x", "kind"])
    constant = table.set_column(1, "kind", pa.array(["a"] * 600))
    assert _moved(table, table) == 0.0
    assert _moved(table, constant) == _moved(constant, table) == 1.0
