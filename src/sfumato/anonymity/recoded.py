"""A recoded table as rows of values, so that risk and loss of a search can be measured beside those of masks.

A generalised cell stands for several values. Whoever analyses it reads a number as the middle of the values it covers and a
category as one of them, each as likely as the others; a suppressed record is one of which nothing is known. An intruder who
knows the recoding finds the class of a person, and one of its rows by guessing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.anonymity.search.base import Search, SearchOutcome
from sfumato.anonymity.search.least_loss import LeastLoss
from sfumato.core import randomness as sources
from sfumato.core.declared import Declared, parameters, require
from sfumato.core.errors import Infeasible, Unsupported
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.outcome import Outcome
from sfumato.core.progress import Progress, silent
from sfumato.core.randomness import Randomness
from sfumato.core.ranges import Each, Instance
from sfumato.data.masked import Masked
from sfumato.data.microdata import Microdata
from sfumato.data.recoding import RecodingTable
from sfumato.data.records import kind_of
from sfumato.data.schema import Column
from sfumato.kernels.sampling.draws import Draws

Int = NDArray[np.int64]

_ROW = "source row of sfumato"
NOT_PUBLISHED = -1


@dataclass(frozen=True, eq=False)
class Searched:
    """What a search decided about a table, before its cells are read as values: the same for every draw."""

    table: pa.Table = field(repr=False)
    outcome: SearchOutcome = field(repr=False)
    shown: pa.Table = field(repr=False)


@dataclass(frozen=True)
class Recoded(Declared):
    """`guarantees` and the `search` that reaches them, as one method of a comparison.

    `apply` gives what an analyst reads out of the recoded table, row by row, in the order of the original; `classes` of the
    result says which rows show the same. To publish the recoded table itself, use `protect`.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())
    >>> read = sf.Recoded(sf.KAnonymity(5), sf.Mondrian()).apply(people, seed=1).result
    >>> len(read) == len(people), int(np.unique(read.classes, return_counts=True)[1].min()) >= 5
    (True, True)
    """

    guarantees: Annotated[
        ClassGuarantee | tuple[ClassGuarantee, ...],
        Each(
            Instance(ClassGuarantee),
            at_least=1,
            alone=True,
            what="one guarantee or several, as in sf.Recoded(sf.KAnonymity(5), sf.Mondrian())",
        ),
        "the guarantees to reach",
    ]
    search: Annotated[Search, Instance(Search, "a search for guarantees such as sf.Mondrian()"), "how they are reached"] = (
        LeastLoss()
    )

    #: As masks have them: its columns are the quasi-identifiers, and records stand behind its rows.
    columns = None
    synthetic = False

    @property
    def asked(self) -> tuple[ClassGuarantee, ...]:
        """The guarantees, always several."""
        return self.guarantees if isinstance(self.guarantees, tuple) else (self.guarantees,)

    def described(self) -> dict[str, object]:
        """Name and parameters, as plain data."""
        return {
            "name": type(self).__name__,
            "guarantees": [{"name": each.name, **parameters(each)} for each in self.asked],
            "search": {"name": type(self.search).__name__, **parameters(self.search)},
        }

    def searched(self, data: Microdata, progress: Progress = silent) -> Searched:
        """Search and recode. No search draws, so that several readings of one table share this."""
        if data.schema.set_valued:
            raise Unsupported(
                f"Recoded: a generalised set cannot be read as one value ({', '.join(data.schema.set_valued)}); "
                "protect the table and look at the measures of its release"
            )
        table = data.table()
        numbered = _numbered(data, table)
        numbered.hierarchies.update(data.hierarchies)  # over the same values
        outcome = self.search.run(numbered, self.asked, progress=progress)
        data.hierarchies.update(numbered.hierarchies)  # for the next search
        recoding = outcome.result
        if recoding.suppressed == recoding.records:
            raise Infeasible("the guarantees can only be kept by suppressing every record")
        quasi = tuple(outcome.class_table.quasi)
        shown = numbered.relation.recode(RecodingTable.of(recoding, outcome.class_table.keys, quasi), [*quasi, _ROW])
        return Searched(table, outcome, shown)

    def apply(
        self,
        data: Microdata,
        *,
        randomness: Randomness | None = None,
        seed: int | str | None = None,
        progress: Progress = silent,
        searched: Searched | None = None,
    ) -> Outcome[Masked]:
        """Search, recode, and read every cell as a value; with a `seed` the same data give the same values. What was `searched`
        before is not searched again."""
        require(randomness is None or seed is None, "pass randomness or a seed, not both")
        done = searched if searched is not None else self.searched(data, progress)
        table, outcome, shown = done.table, done.outcome, done.shown
        quasi = tuple(outcome.class_table.quasi)
        rows: Int = shown.column(_ROW).to_numpy().astype(np.int64)
        draws = Draws(randomness if randomness is not None else sources.default(seed))
        for name in quasi:
            place = table.column_names.index(name)
            is_number = kind_of(table.schema.field(name).type, data.schema.columns[name]) == "number"
            cells = _read(_whole(table.column(name)), _codes(shown.column(name)), rows, draws if not is_number else None)
            table = table.set_column(place, name, cells)
        classes = np.full(table.num_rows, NOT_PUBLISHED, dtype=np.int64)
        classes[rows] = _classes([_codes(shown.column(name)) for name in quasi], rows.size)
        every_row = np.arange(table.num_rows, dtype=np.int64)
        source = None if data.relation.engine == "memory" else (data.relation, done.table)
        read = Masked(table, data.schema, quasi, every_row, MappingProxyType({}), classes, source)
        kept = ("loss", "suppressed", "classes", "optimal", "gap", "objective", "time_limit")
        details = {name: outcome.details[name] for name in kept if name in outcome.details}
        return Outcome(read, outcome.claimed, self.described(), MappingProxyType(details))


def _numbered(data: Microdata, table: pa.Table) -> Microdata:
    """The same rows with their numbers, which come through the recoding."""
    from sfumato.engines.sources import read

    columns = {**data.schema.columns, _ROW: Column(role="plain")}
    numbers = pa.array(np.arange(table.num_rows, dtype=np.int64))
    numbered: Microdata = read(table.append_column(_ROW, numbers), data.schema.replace(columns=columns))
    return numbered


def _codes(column: pa.ChunkedArray) -> Int:
    """A whole number for each different value, a missing one included."""
    encoded = pc.dictionary_encode(_whole(column), null_encoding="encode")
    return np.asarray(encoded.indices, dtype=np.int64)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """The column in one piece, its values written out."""
    piece = column.combine_chunks()
    if isinstance(piece, pa.ChunkedArray):  # of an empty column, and of one too long for one piece
        piece = pa.concat_arrays(piece.chunks) if piece.num_chunks else pa.array([], type=piece.type)
    return piece.dictionary_decode() if pa.types.is_dictionary(piece.type) else piece


def _classes(codes: Sequence[Int], size: int) -> Int:
    """Which rows show the same in all columns."""
    classes = np.zeros(size, dtype=np.int64)
    for column in codes:
        classes = (
            np.unique(classes * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1].reshape(-1).astype(np.int64)
        )
    return classes


def _read(column: pa.Array, label: Int, rows: Int, draws: Draws | None) -> pa.Array:
    """Every cell as one of the values its label covers: drawn, or without draws the middle one."""
    values, first = _ranked(column)
    distinct = int(first.size)
    if not distinct:
        return column
    inside = values[rows] >= 0
    pairs = np.unique(label[inside] * distinct + values[rows][inside])
    count = np.bincount(pairs // distinct, minlength=int(label.max(initial=0)) + 1)
    start = np.cumsum(count) - count
    offset = (np.maximum(count, 1) - 1)[label] // 2 if draws is None else draws.below(np.maximum(count, 1)[label])
    chosen = np.full(values.size, (distinct - 1) // 2, dtype=np.int64)
    hidden = np.ones(values.size, dtype=np.bool_)
    hidden[rows] = False
    if draws is not None:
        chosen[hidden] = draws.below(np.full(int(hidden.sum()), distinct, dtype=np.int64))
    covered = count[label] > 0
    chosen[rows[covered]] = (pairs % distinct)[(start[label] + offset)[covered]]
    missing = np.zeros(values.size, dtype=np.bool_)
    missing[rows[~covered]] = True  # such a label covers missing values alone
    return pc.take(column, pa.array(first[chosen], mask=missing))


def _ranked(column: pa.Array) -> tuple[Int, Int]:
    """The rank of each value among the different ones (-1: missing), and a row that has it."""
    order = np.asarray(pc.sort_indices(column), dtype=np.int64)
    present = order[: len(column) - column.null_count]
    ordered = np.asarray(pc.dictionary_encode(pc.take(column, pa.array(present))).indices, dtype=np.int64)
    new = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if present.size else np.empty(0, dtype=np.bool_)
    ranks = np.full(len(column), -1, dtype=np.int64)
    ranks[present] = np.cumsum(new) - 1
    return ranks, present[new]
