"""What PRAM works on: a categorical variable with the categories it may have, and the law by which they change.

A law that keeps a category with one probability and moves to any other otherwise is drawn without its matrix, so that
a column may have any number of categories.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.certificate import plain
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.data.records import CategoryColumn
from sfumato.data.schema import Column
from sfumato.kernels.changes.channel import Channel
from sfumato.kernels.changes.transitions import cumulative, drawn_by_row, kept_or_other
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.pram.transition_matrix import Rows, from_rows, uniform
from sfumato.masking.transparency import alike
from sfumato.masking.unchanged import MOST_UNCHANGED

Real = NDArray[np.float64]
Codes = NDArray[np.int32]
Int = NDArray[np.int64]

#: Between the names of columns that are treated as one.
JOIN = " × "
#: Categories: texts, combinations of texts where columns change together, or numbers in the place of too many to list.
Labels: TypeAlias = tuple[Any, ...]
#: How far the published rows of a matrix may be from 1, and how many categories may be named.
_ROUNDING, _MOST_CATEGORIES = 1e-9, 1 << 40
#: What suppressed values become.
SUPPRESSED = "*"
#: A matrix that is not the owner's is published entry by entry up to so many categories.
LISTED = 256
#: An invariant or joint matrix has at most so many rows.
LARGEST = 1000
#: Whoever has an invariant matrix has the frequencies, so it is built from at least so many records.
FEWEST = 100


@dataclass(frozen=True, eq=False)
class TransitionLaw:
    """From inputs to outputs by `matrix`, or by `stay` alone; then to the extra category with probability `suppress`."""

    inputs: Labels
    reached: Labels
    stay: float | None
    matrix: Real | None
    suppress: float = 0.0

    @property
    def outputs(self) -> Labels:
        """What may be published: the inputs first, then other categories."""
        extra = bool(self.suppress) and SUPPRESSED not in self.reached
        return (*self.reached, SUPPRESSED) if extra else self.reached

    def draw(self, codes: Codes, draws: Draws) -> Codes:
        """New codes, into the outputs; a missing value stays missing."""
        if self.matrix is not None:
            drawn = drawn_by_row(np.ascontiguousarray(codes), draws.uniform(codes.size), cumulative(self.matrix))
        elif self.stay is not None and self.stay < 1:
            drawn = kept_or_other(codes, draws.uniform(codes.size), self.stay, len(self.inputs))
        else:
            drawn = codes
        if self.suppress:
            hit = (draws.uniform(codes.size) < self.suppress) & (codes >= 0)
            drawn = np.where(hit, np.int32(self.outputs.index(SUPPRESSED)), drawn)
        return drawn

    def whole(self) -> Real | None:
        """The matrix with the extra category; None where a uniform law has too many categories to list."""
        matrix = self.matrix
        if matrix is None and self.stay is not None and len(self.inputs) <= LISTED:
            matrix = uniform(self.stay, len(self.inputs))
        if matrix is None or not self.suppress:
            return matrix
        wide = np.zeros((len(self.inputs), len(self.outputs)))
        wide[:, : matrix.shape[1]] = (1.0 - self.suppress) * matrix
        wide[:, self.outputs.index(SUPPRESSED)] += self.suppress
        return wide

    def epsilon(self) -> float:
        """The ε of the matrix: the logarithm of the largest ratio within one of its columns."""
        matrix = self.whole()
        if matrix is not None:
            return Channel(matrix).epsilon()
        other = (1.0 - (self.stay or 0.0)) / (len(self.inputs) - 1)
        if self.suppress == 1:
            return 0.0
        return abs(math.log(self.stay) - math.log(other)) if self.stay and other else math.inf

    def stays(self) -> Real | float:
        """The probability of each category, or of all of them alike, to come out as it is."""
        kept = self.matrix.diagonal() if self.matrix is not None else 1.0 if self.stay is None else self.stay
        return (1.0 - self.suppress) * kept

    def kept(self, frequencies: Real) -> float:
        """The expected share of known values that come out as they are, from how many have each category; 0 where none is
        known."""
        stays = self.stays()
        return stays if isinstance(stays, float) else float(frequencies @ stays) / max(float(frequencies.sum()), 1.0)

    def notices(self, name: str, invariant: bool) -> list[str]:
        """What a reader of the release has to know about it; from the matrix alone."""
        stays, notices = float(np.min(self.stays())), []
        as_it_is, nearly, frequencies = sentences(name)
        if stays == 1.0:
            notices.append(as_it_is)
        elif stays > MOST_UNCHANGED:
            notices.append(nearly)
        if invariant:
            notices.append(frequencies)
        return notices

    def published(self, source: str) -> PlainDict:
        """What is published: categories and matrix (or the probability to stay, for very many), ε, where categories come from."""
        matrix = self.whole()
        facts: dict[str, Any] = {"epsilon": self.epsilon(), "source": source}
        if matrix is None:
            return {"categories": len(self.inputs), "stay": self.stay, "suppress": self.suppress, **facts}
        return {"labels": list(self.inputs), "outputs": list(self.outputs), "matrix": matrix.tolist(), **facts}


def published_labels(facts: Plain) -> Labels | None:
    """The categories in what is published about a law, or as many numbers where they are too many to list; None where neither
    is there."""
    count = facts.get("categories")
    if count is not None:
        return cast("Labels", range(count)) if type(count) is int and LISTED < count <= _MOST_CATEGORIES else None
    listed = facts.get("labels")
    if not isinstance(listed, list) or not listed:
        return None
    labels = tuple(tuple(label) if isinstance(label, list) else label for label in listed)
    try:
        return labels if len(set(labels)) == len(labels) else None
    except TypeError:  # a category that cannot be one
        return None


def is_same_law(facts: Plain, law: Plain) -> bool:
    """Whether two laws are one: numbers as they are rounded, outputs in any order, since a certificate sorts an owner's rows."""
    if "matrix" not in law:
        return alike(dict(facts), dict(law))
    if set(facts) != set(law) or not all(alike(facts[name], law[name]) for name in ("labels", "epsilon", "source")):
        return False
    one, other = _by_output(facts), _by_output(law)
    return one is not None and other is not None and set(one) == set(other) and all(alike(one[each], other[each]) for each in one)


def invariant_told(facts: Plain, labels: Labels) -> TransitionLaw | None:
    """The law of a published invariant matrix, which leads to the categories it comes from; None where that is no such law."""
    matrix = facts.get("matrix")
    rows = matrix if isinstance(matrix, list) and all(isinstance(row, list) and len(row) == len(labels) for row in matrix) else []
    if len(rows) != len(labels) or not all(type(entry) in (int, float) and 0 <= entry <= 1 for row in rows for entry in row):
        return None
    law = TransitionLaw(labels, labels, None, np.array(rows, dtype=np.float64))
    sums = all(abs(math.fsum(row) - 1.0) <= _ROUNDING for row in rows)
    return law if sums and is_same_law(facts, plain(law.published(str(facts["source"])))) else None


def _by_output(facts: Mapping[str, Any]) -> dict[Any, list[Any]] | None:
    """The columns of a published matrix; None where it has not the form of one."""
    matrix, outputs = facts["matrix"], facts["outputs"]
    sound = isinstance(matrix, list) and isinstance(outputs, list) and all(isinstance(row, list) for row in matrix)
    if not sound or any(len(row) != len(outputs) for row in matrix):
        return None
    names = [tuple(output) if isinstance(output, list) else output for output in outputs]
    try:
        columns = dict(zip(names, map(list, zip(*matrix, strict=True)), strict=True))
    except TypeError:
        return None
    return columns if len(columns) == len(names) else None


def sentences(name: str) -> tuple[str, str, str]:
    """All that a notice may say about a column."""
    return (
        f"column '{name}' is published as it is: its matrix changes nothing",
        f"column '{name}' is published nearly as it is: every category stays with a probability above {MOST_UNCHANGED:g}",
        f"the invariant matrix of column '{name}' tells the frequencies of its categories before masking",
    )


@dataclass(frozen=True, eq=False)
class Variable:
    """A column, or several as one, as codes into the categories it may have; `rows` is the owner's matrix for it."""

    name: str
    columns: tuple[CategoryColumn, ...]
    codes: Codes
    labels: Labels
    source: str
    unknown: int = 0
    rows: Rows | None = None
    weights: Int | None = None  # how many records each code stands for, where one stands for several

    @classmethod
    def of(cls, column: CategoryColumn, described: Column, rows: Rows | None) -> Variable:
        """A column: its categories are those of the matrix, of the declared domain or order, or those that occur: a domain
        learnt from the source may name people whom another mask has left out."""
        labels, source = column.labels, "data" if described.order is None else described.source
        if isinstance(rows, dict):
            labels, source = tuple(rows), "declared"
        elif described.order is None and described.domain is not None and described.source == "declared":
            labels, source = described.domain, "declared"
        if labels == column.labels:
            return cls(column.name, (column,), column.codes, labels, source, 0, rows)
        place = {label: position for position, label in enumerate(labels)}
        codes = np.array([*(place.get(label, -2) for label in column.labels), -1], dtype=np.int32)[column.codes]
        unknown = int(np.unique(column.codes[codes == -2]).size)
        return cls(column.name, (column,), codes, labels, source, unknown, rows)

    @classmethod
    def joined(cls, parts: list[Variable]) -> Variable:
        """All combinations where every category is declared and they are not too many, otherwise those that occur."""
        sizes = [len(part.labels) for part in parts]
        declared = all(part.source == "declared" for part in parts) and math.prod(sizes) <= LARGEST
        if declared:
            present = np.array(np.unravel_index(np.arange(math.prod(sizes)), sizes))
            codes: Int = np.ravel_multi_index(tuple(np.maximum(part.codes, 0) for part in parts), sizes)
        else:
            codes, rows = _combinations(parts)
            present = np.array([part.codes[rows] for part in parts])
        labels = tuple(tuple(part.labels[i] for part, i in zip(parts, row, strict=True)) for row in present.T.tolist())
        return cls(
            name=JOIN.join(part.name for part in parts),
            columns=tuple(replace(part.columns[0], labels=part.labels, codes=part.codes) for part in parts),
            codes=codes.reshape(-1).astype(np.int32),
            labels=labels,
            source="declared" if declared else "data",
            unknown=sum(part.unknown for part in parts),
        )

    def frequencies(self) -> Real:
        """How many records have each category."""
        present = self.codes >= 0
        weights = None if self.weights is None else self.weights[present]
        return np.bincount(self.codes[present], weights=weights, minlength=len(self.labels)).astype(np.float64)

    def faults(self, default: bool, invariant: bool, suppress: bool) -> list[str]:
        """Why it cannot be masked. `default`: there is a law for columns without an own matrix."""
        named, count, joint = f"column '{self.name}'", len(self.labels), len(self.columns) > 1
        if self.unknown:
            place = "row in the matrix" if self.rows is not None else "place in the declared domain"
            return [f"{named} has {self.unknown} categories without a {place}; add them"]
        if self.rows is None and not default and not suppress:
            return [f"{named} has no matrix; give it one, or give stay or epsilon for columns without"]
        if isinstance(self.rows, tuple) and len(self.rows) != count:
            return [f"the matrix of {named} has {len(self.rows)} rows and the column {count} categories (source: {self.source})"]
        outputs = set(from_rows(self.rows)[1]) if isinstance(self.rows, dict) else set(self.labels)
        faults = []
        if self.rows is None and count < 2 and not suppress:
            faults.append(f"{named} has one category only, which cannot become another; declare its domain or leave it out")
        if invariant and np.unique(self.codes[self.codes >= 0]).size < 2:
            faults.append(f"{named} has one category only here, which an invariant matrix keeps as it is; leave it out")
        present = int(self.frequencies().sum())
        if invariant and 0 < present < FEWEST:
            faults.append(
                f"{named} has {present} known values (in a stratum, where there are strata), and an invariant matrix, which "
                f"tells the frequencies, is built from {FEWEST} at least; leave out invariant, or use coarser strata"
            )
        if (invariant or joint) and count > LARGEST:
            faults.append(f"{named} has {count} categories, and such a matrix at most {LARGEST}; generalise first")
        if invariant and len(outputs) != count:
            faults.append(f"an invariant matrix leads to the categories it comes from, and rows of {named} name others")
        if (
            not joint
            and self.columns[0].ordered
            and not outputs | ({SUPPRESSED} if suppress else set()) <= set(self.columns[0].labels)
        ):
            faults.append(f"{named} would get categories that its declared order does not list; add them to the order")
        return faults

    def restored(self, drawn: Codes, outputs: Labels) -> dict[str, Codes | pa.Array]:
        """Codes of outputs as columns again."""
        if len(self.columns) == 1:
            same = outputs == self.columns[0].labels
            return {self.name: drawn if same else _column(self.columns[0], drawn, outputs)}
        places = [{label: code for code, label in enumerate(column.labels)} for column in self.columns]
        tables = [
            np.array([place[label[position]] for label in outputs], dtype=np.int32) for position, place in enumerate(places)
        ]
        return {
            column.name: _column(column, table[drawn], column.labels) for column, table in zip(self.columns, tables, strict=True)
        }


def _combinations(parts: list[Variable]) -> tuple[Int, Int]:
    """The number of each record's combination, in the order of the categories, and a row that has it."""
    key = np.zeros(parts[0].codes.size, dtype=np.int64)
    count = 1
    for part in parts:
        key = key * len(part.labels) + np.maximum(part.codes, 0)
        count *= len(part.labels)
        if count > key.size + LARGEST:  # keep the numbers small, so that they index a table
            key = np.unique(key, return_inverse=True)[1].reshape(-1)
            count = int(key.max(initial=0)) + 1
    rows = np.full(count, -1, dtype=np.int64)
    rows[key] = np.arange(key.size)
    present = np.flatnonzero(rows >= 0)
    rank = np.zeros(count, dtype=np.int64)
    rank[present] = np.arange(present.size)
    return rank[key], rows[present]


def _column(column: CategoryColumn, codes: Codes, labels: tuple[str, ...]) -> pa.Array:
    renamed = replace(column, labels=labels)
    if set(labels) <= set(column.labels) or pa.types.is_dictionary(column.arrow) or pa.types.is_string(column.arrow):
        return renamed.restored(codes)
    return renamed.restored(codes) if holds_labels(column.arrow, labels) else replace(renamed, arrow=pa.string()).restored(codes)


def holds_labels(arrow: pa.DataType, labels: tuple[str, ...]) -> bool:
    """Whether a column of numbers or truth values can hold the new categories too."""
    try:
        pa.array(labels, pa.string()).cast(arrow)
    except pa.ArrowInvalid:
        return False
    return True
