"""Answering count queries from a release: how far are the answers from the truth?

A class answers size × Π |query ∩ range| / |range| over the asked attributes, as if its records were
spread evenly over the values its texts stand for. What those values are is a choice (`domain`): the full
domain, the leaves of the hierarchy, or those that occur in the data. LeFevre, DeWitt, Ramakrishnan,
"Mondrian multidimensional k-anonymity", ICDE 2006; Xiao, Tao, "Anatomy", VLDB 2006.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core import randomness
from sfumato.core.declared import Declared
from sfumato.core.errors import MissingColumn
from sfumato.core.ranges import ByName, Count, Either, Instance, OneOf, Positive, PositiveShare
from sfumato.core.view import Measure, Score
from sfumato.data.microdata import ReleasedTable
from sfumato.data.texts.values import as_numbers
from sfumato.measures.guarantees.classes import Classes, CodedColumn
from sfumato.measures.parameters import DrawSeed
from sfumato.measures.utility.shown import (
    OriginalColumn,
    Rows,
    ShownColumn,
    quasi_of,
    require_leaves,
    require_release,
    rows_of,
    shown_columns,
)

Domain = Literal["full", "leaves", "present"]
_DOMAIN = OneOf(get_args(Domain))


@dataclass(frozen=True)
class CountQuery:
    """How many records have, in every named attribute, one of the listed values?"""

    accepts: Mapping[str, frozenset[str | None]] = field(repr=False)

    def true_count(self, table: pa.Table) -> int:
        """The answer on the original table."""
        matching = np.ones(table.num_rows, dtype=np.bool_)
        for name, accepted in self.accepts.items():
            coded = CodedColumn.of(table.column(name))
            matching &= np.array([value in accepted for value in coded.values], dtype=np.bool_)[coded.codes]
        return int(matching.sum())


@dataclass(frozen=True)
class Workload(Declared):
    """Random count queries (`queries` of them): each asks about `attributes` of the quasi-identifiers and accepts a share of
    their values.

    `selectivity` is the aimed share of records; each attribute accepts a run of neighbouring values
    (ordered attributes) or a random set holding about selectivity^(1/attributes) of the records. The
    same `seed` draws the same queries.
    """

    queries: Annotated[Count, "how many queries are drawn"] = 200
    attributes: Annotated[Count, "quasi-identifiers that a query asks about"] = 2
    selectivity: Annotated[PositiveShare, "the share of records that a query aims at"] = 0.1
    seed: DrawSeed = "workload"

    def generate(self, table: pa.Table, quasi: Sequence[str]) -> list[CountQuery]:
        """Draw the queries for a table."""
        source = randomness.default(self.seed)
        columns = {name: OriginalColumn.of(table, name) for name in quasi}
        attributes = min(self.attributes, len(columns))
        share = self.selectivity ** (1.0 / attributes)
        names = list(columns)
        drawn = []
        for _ in range(self.queries):
            chosen = [names[i] for i in randomness.permutation(source, len(names)).tolist()[:attributes]]
            drawn.append(CountQuery({name: _some_values(source, columns[name], share) for name in chosen}))
        return drawn


@dataclass(frozen=True)
class QueryError(Measure[Rows, ReleasedTable]):
    """Median relative error, |answer − count|/max(count, `sanity`), of the count queries of `workload` on the release.

    `domain` says over which values a shown text is spread (one choice, or one per attribute); `sanity`
    replaces the true count in the denominator where that is smaller. The mean, the 90th percentile and
    the mean absolute error are parts.
    """

    workload: Annotated[Workload, Instance(Workload), "the queries"] = field(default_factory=Workload)
    domain: Annotated[
        Domain | Mapping[str, Domain],
        Either((_DOMAIN, ByName(_DOMAIN))),
        "the values a shown text is spread over: one choice, or one per attribute",
    ] = "full"
    sanity: Annotated[Positive, "the least denominator of a relative error"] = 1.0
    key: ClassVar[str] = "query_error"

    def score(self, original: Rows, released: ReleasedTable) -> Score:
        """Generate the workload on the original and answer it on both tables."""
        require_release(released)
        rows = rows_of(original)
        errors = self.errors(self.workload.generate(rows, quasi_of(released)), rows, released)
        relative = errors["relative"]
        parts = {
            "mean": float(relative.mean()),
            "percentile 90": float(np.quantile(relative, 0.9)),
            "mean absolute": float(np.abs(errors["true"] - errors["estimated"]).mean()),
            "queries": float(relative.size),
        }
        meaning = "relative error of a count query, in the middle of a random workload"
        return Score(self.key, float(np.median(relative)), "lower", meaning, MappingProxyType(parts))

    def errors(
        self, queries: Sequence[CountQuery], original: pa.Table, released: ReleasedTable
    ) -> dict[str, NDArray[np.float64]]:
        """True and estimated count and the relative error of each query."""
        true = np.array([query.true_count(original) for query in queries], dtype=np.float64)
        estimated = self.estimates(queries, original, released)
        return {
            "true": true,
            "estimated": estimated,
            "relative": np.abs(true - estimated) / np.maximum(true, self.sanity),
        }

    def estimates(self, queries: Sequence[CountQuery], original: pa.Table, released: ReleasedTable) -> NDArray[np.float64]:
        """The answers that the release gives."""
        shown = shown_columns(original, released)
        columns = {column.name: column for column in shown}
        named = {name for query in queries for name in query.accepts}
        unknown = sorted(named - set(columns))
        if unknown:
            raise MissingColumn(f"queries ask about {', '.join(unknown)}, which are no quasi-identifiers of the release")
        require_leaves(tuple(column for column in shown if column.name in named))
        classes = Classes.of(released.table, tuple(columns))
        spreads = {name: _Spread.of(columns[name], original, self._domain(name)) for name in named}
        texts = {name: columns[name].coded.codes[classes.first] for name in named}
        answers = []
        for query in queries:
            share = np.ones(len(classes))
            for name, accepted in query.accepts.items():
                share *= spreads[name].shares(accepted)[texts[name]]
            answers.append(float((classes.sizes * share).sum()))
        return np.array(answers)

    def _domain(self, name: str) -> Domain:
        return self.domain if isinstance(self.domain, str) else self.domain.get(name, "full")


@dataclass(frozen=True, eq=False)
class _Spread:
    """For each shown text, the values it is spread over and how many there are."""

    leaves: tuple[frozenset[str | None], ...]
    sizes: NDArray[np.float64]

    @classmethod
    def of(cls, column: ShownColumn, original: pa.Table, domain: Domain) -> _Spread:
        leaves = [meaning.leaves for meaning in column.meanings]
        if domain == "full":
            sizes = [max(meaning.size, 1.0) for meaning in column.meanings]
            return cls(tuple(leaves), np.array(sizes))
        if domain == "present":
            present = frozenset(OriginalColumn.of(original, column.name).coded.values)
            leaves = [below & present for below in leaves]
        return cls(tuple(leaves), np.array([max(len(below), 1) for below in leaves], dtype=np.float64))

    def shares(self, accepted: frozenset[str | None]) -> NDArray[np.float64]:
        """Per shown text the share of its values that the query accepts."""
        hits = np.array([len(below & accepted) for below in self.leaves], dtype=np.float64)
        return np.minimum(hits / self.sizes, 1.0)


def _some_values(source: randomness.Randomness, column: OriginalColumn, share: float) -> frozenset[str | None]:
    """Values holding about this share of the records: neighbours where the values are numbers, any set
    otherwise.
    """
    values = column.coded.values
    numbers = as_numbers(values)
    if numbers is None:
        order = randomness.permutation(source, len(values))
    else:
        start = randomness.below(source, len(values))
        order = np.roll(np.argsort(numbers, kind="stable"), -start)
    held = np.cumsum(column.counts[order])
    needed = int(np.searchsorted(held, share * held[-1])) + 1
    return frozenset(values[int(i)] for i in order[:needed])
