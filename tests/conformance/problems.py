"""Random tables with every kind of hierarchy, and random guarantees of every kind, for laws about searches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from sfumato.core.guarantees.base import ClassGuarantee, Knowledge
from sfumato.core.guarantees.k_anonymity import AlphaKAnonymity, KAnonymity
from sfumato.core.guarantees.l_diversity import DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity
from sfumato.core.guarantees.likeness import BetaLikeness, DeltaDisclosure
from sfumato.core.guarantees.population import DeltaPresence, KMap
from sfumato.core.guarantees.risk import AverageRisk, KMapByModel, UniquenessByModel
from sfumato.core.guarantees.t_closeness import TCloseness
from sfumato.core.outcome import Outcome
from sfumato.data.microdata import Microdata
from sfumato.data.recoding import RecodingTable
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.data.texts.values import text_of
from sfumato.engines.memory import MemoryRelation
from sfumato.measures.guarantees.examined import Measurement
from sfumato.measures.guarantees.measure import measure_each

FOREST = str(Path(__file__).with_name("forest.csv"))

#: Kinds of quasi-identifiers: the column and the values that may occur in it.
KINDS: dict[str, tuple[dict[str, Any], Sequence[Any]]] = {
    "unbalanced": (
        {"hierarchy": HierarchySpec(tree={"ab": ["a", "b"], "c": [], "def": {"de": ["d", "e"], "f": []}})},
        ["a", "b", "c", "d", "e", "f", None],
    ),
    "intervals": ({"type": "integer", "bounds": (0, 7), "hierarchy": HierarchySpec(intervals=(2, 4))}, [0, 1, 2, 5, 7]),
    "forest": ({"hierarchy": HierarchySpec(file=FOREST)}, ["a", "b", "c", "d"]),
    "flat": ({}, ["å", "日本", "", "'; --", None]),
    "mask": ({"hierarchy": HierarchySpec(mask="right")}, ["01", "02", "11", "1", None]),
    "ordered": ({"order": ("3", "1", "2")}, ["1", "2", "3"]),
    "numbers": ({}, [1.5, 2.0, 3.25, 10.0, None]),
    "single": ({}, ["only"]),
    "dates": ({"type": "date", "hierarchy": HierarchySpec(dates=("month", "year"))}, ["2020-01-31", "2020-02-01", "2021-01-01"]),
}

#: Kinds of sensitive attributes: all have an order, so that every distance has a meaning.
SENSITIVE: dict[str, tuple[dict[str, Any], Sequence[Any]]] = {
    "tree": (
        {"order": ("flu", "cold", "ulcer"), "hierarchy": HierarchySpec(tree={"lung": ["flu", "cold"], "ulcer": []})},
        ["flu", "cold", "ulcer"],
    ),
    "forest": ({"order": ("a", "b", "c", "d"), "hierarchy": HierarchySpec(file=FOREST)}, ["a", "b", "c", "d"]),
    "salaries": ({"type": "integer"}, [3, 4, 10, None]),
    "dates": ({"type": "date"}, ["2020-01-31", "2020-02-01", "2021-01-01"]),
}


@dataclass(frozen=True, eq=False)
class People:
    """A table with its schema and a population that contains it."""

    table: pa.Table
    schema: Schema
    population: pa.Table

    @property
    def secrets(self) -> list[str]:
        """The values that somebody may want to protect."""
        return sorted({str(text_of(value)) for value in self.table.column("secret").to_pylist() if value is not None})

    def microdata(self, order: Sequence[int] | None = None) -> Microdata:
        rows = self.table if order is None else self.table.take(pa.array(order, pa.int64()))
        return Microdata(MemoryRelation(rows), self.schema)

    def register(self) -> Microdata:
        columns = {name: column for name, column in self.schema.columns.items() if name in self.schema.quasi}
        return Microdata(MemoryRelation(self.population), self.schema.replace(columns=columns))


@st.composite
def people(
    draw: DrawFn,
    *,
    attributes: tuple[int, int] = (1, 3),
    rows: tuple[int, int] = (1, 14),
    units: bool = False,
    kinds: Sequence[str] = tuple(KINDS),
) -> People:
    """A small table: some quasi-identifiers of different kinds, one sensitive attribute, a number per record."""
    count = draw(st.integers(*rows))
    chosen = draw(st.lists(st.sampled_from(sorted(kinds)), min_size=attributes[0], max_size=attributes[1]))
    columns: dict[str, Column] = {}
    values: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    types: dict[str, Any] = {"person": pa.string()}
    more = draw(st.integers(0, 6))
    for position, kind in enumerate(chosen):
        described, domain = KINDS[kind]
        name = f"{kind}-{position}"
        types[name] = pa.array(domain).type
        columns[name] = Column(role="quasi", importance=draw(st.sampled_from([1.0, 1.0, 3.0])), **described)
        values[name] = draw(st.lists(st.sampled_from(domain), min_size=count, max_size=count))
        extra[name] = draw(st.lists(st.sampled_from(domain), min_size=more, max_size=more))
    described, domain = SENSITIVE[draw(st.sampled_from(sorted(SENSITIVE)))]
    columns["secret"] = Column(role="sensitive", **described)
    types["secret"] = pa.array(domain).type
    values["secret"] = draw(st.lists(st.sampled_from(domain), min_size=count, max_size=count))
    values["number"] = list(range(count))
    columns["number"] = Column(role="plain")
    if units:
        columns["person"] = Column(role="unit")
        values["person"] = draw(st.lists(st.sampled_from(["p1", "p2", "p3", "p4", "p5"]), min_size=count, max_size=count))
    table = pa.table({name: pa.array(column, types.get(name)) for name, column in values.items()})
    alone = pa.table({name: pa.array(column, types[name]) for name, column in extra.items()})
    population = pa.concat_tables([table.select(alone.column_names), alone])
    return People(table, Schema(dataset="random", columns=columns), population)


def _some_protected(draw: DrawFn, values: Sequence[str]) -> tuple[str, ...] | None:
    return draw(st.sampled_from([None, None, tuple(values[:1]), tuple(values[:2]), ()]))


def _reference(draw: DrawFn) -> Any:
    return draw(st.sampled_from(["input", "input", "input", "released"]))


Maker = Callable[[DrawFn, Sequence[str]], ClassGuarantee]

#: How to draw a guarantee of each kind. Real thresholds are no ties of small counts; ties have tests of their own.
GUARANTEES: Mapping[str, Maker] = {
    "KAnonymity": lambda draw, values: KAnonymity(draw(st.integers(1, 5))),
    "AlphaKAnonymity": lambda draw, values: AlphaKAnonymity(
        draw(st.sampled_from([0.34, 0.5, 0.75, 1.0])), draw(st.integers(1, 4)), "secret", _some_protected(draw, values)
    ),
    "DistinctLDiversity": lambda draw, values: DistinctLDiversity(
        draw(st.integers(1, 3)), "secret", _some_protected(draw, values)
    ),
    "EntropyLDiversity": lambda draw, values: EntropyLDiversity(
        draw(st.sampled_from([1.3, 1.9, 2.5])), "secret", _some_protected(draw, values)
    ),
    "RecursiveLDiversity": lambda draw, values: RecursiveLDiversity(
        draw(st.sampled_from([0.7, 1.0, 1.1, 2.0, 3.0])), draw(st.integers(1, 3)), "secret", _some_protected(draw, values)
    ),
    "TCloseness": lambda draw, values: TCloseness(
        draw(st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5])),
        "secret",
        draw(st.sampled_from(["equal", "ordered", "hierarchical", "variational", "kl"])),
        _reference(draw),
        _some_protected(draw, values),
    ),
    "BetaLikeness": lambda draw, values: BetaLikeness(
        draw(st.sampled_from([0.5, 1.0, 2.0])), "secret", draw(st.booleans()), _reference(draw), _some_protected(draw, values)
    ),
    "DeltaDisclosure": lambda draw, values: DeltaDisclosure(
        draw(st.sampled_from([0.31, 0.83, 1.57])), "secret", _reference(draw), _some_protected(draw, values)
    ),
    "KMap": lambda draw, values: KMap(draw(st.integers(1, 6))),
    "AverageRisk": lambda draw, values: AverageRisk(draw(st.sampled_from([0.21, 0.34, 0.51, 0.76, 1.0]))),
    "KMapByModel": lambda draw, values: KMapByModel(draw(st.integers(1, 12)), draw(st.sampled_from([0.05, 0.3, 1.0]))),
    "UniquenessByModel": lambda draw, values: UniquenessByModel(
        draw(st.sampled_from([0.0, 0.11, 0.4])),
        draw(st.sampled_from([0.06, 0.3, 1.0])),  # 0.05 ties with 1 - confidence
    ),
    "DeltaPresence": lambda draw, values: DeltaPresence(
        draw(st.sampled_from([0.0, 0.0, 0.2])), draw(st.sampled_from([0.4, 0.6, 0.9, 1.0]))
    ),
}


@st.composite
def guarantee(draw: DrawFn, name: str, values: Sequence[str]) -> ClassGuarantee:
    """A guarantee of this kind; `values` are those that may be protected."""
    return GUARANTEES[name](draw, values)


def mixtures(
    values: Sequence[str], most: int = 3, names: Sequence[str] = tuple(GUARANTEES)
) -> SearchStrategy[list[ClassGuarantee]]:
    """Some guarantees of different kinds."""
    kinds = st.lists(st.sampled_from(sorted(names)), min_size=1, max_size=most, unique=True)
    return kinds.flatmap(lambda chosen: st.tuples(*(guarantee(name, values) for name in chosen)).map(list))


def released_rows(data: Microdata, outcome: Outcome[Any]) -> pa.Table:
    """The rows that leave: what the recoding of an outcome makes of the table."""
    return data.relation.recode(
        RecodingTable.of(outcome.result, outcome.class_table.keys, outcome.class_table.quasi), data.column_names
    )


def verdicts(given: People, released: pa.Table, guarantees: Sequence[ClassGuarantee]) -> tuple[Measurement, ...]:
    """What the plain verifier says."""
    return measure_each(released, given.schema, guarantees, original=given.table, population=given.population)


def knowing(names: Sequence[str], k: int) -> KAnonymity:
    """k-anonymity against an adversary who knows these columns."""
    return KAnonymity(k, Knowledge(tuple(names)))
