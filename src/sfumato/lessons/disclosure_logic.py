"""Kinds of disclosure and how they imply each other: identity, attribute, membership.

Identity: a record is alone with what the intruder knows. Attribute: all records that fit share a confidential value.
Membership: it is certain that somebody is in the table. Being identified discloses attributes unless the intruder knew them
all; attributes are disclosed without identity in a homogeneous class; anonymity (k ≥ 2) excludes identity disclosure. Torra,
"Data privacy: foundations, new developments and the big data challenge", Springer 2017.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.measures.guarantees.classes import CodedColumn, combined, require_columns

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Disclosures:
    """What an intruder who knows `known` learns about each record: one flag per record and kind.

    `attributes` has one array per confidential column; `attribute` says whether any of them is learnt.
    """

    known: tuple[str, ...]
    identity: Flags = field(repr=False)
    attributes: dict[str, Flags] = field(repr=False)
    membership: Flags = field(repr=False)

    @property
    def attribute(self) -> Flags:
        """Records with at least one confidential value learnt."""
        learnt = np.zeros(self.identity.size, dtype=np.bool_)
        for flags in self.attributes.values():
            learnt |= flags
        return learnt

    @property
    def anonymous(self) -> bool:
        """Whether nobody can be identified."""
        return not bool(self.identity.any())

    def in_words(self) -> str:
        """The counts as a sentence."""
        return (
            f"{int(self.identity.sum()):,} of {self.identity.size:,} records can be identified, "
            f"of {int(self.attribute.sum()):,} a confidential value is learnt "
            f"({int((self.attribute & ~self.identity).sum()):,} of them without being identified), "
            f"of {int(self.membership.sum()):,} it is certain that they are in the table"
        )


def disclosures(
    table: pa.Table, known: Sequence[str], confidential: Sequence[str] = (), population: pa.Table | None = None
) -> Disclosures:
    """What is disclosed to an intruder who knows the columns `known` of everybody.

    `confidential` are the other columns (default: all of them); with none left, being identified tells nothing new.
    Membership is certain where a record is alone; with a `population` (the people who might be in the table) where the table
    has as many records with the known values as the population has people.

    >>> table = pa.table({"city": ["B", "B", "T"], "illness": ["flu", "flu", "cold"]})
    >>> disclosures(table, ["city"]).in_words()[:36]
    '1 of 3 records can be identified, of'
    """
    names = tuple(known)
    require(bool(names), "disclosures: the intruder must know at least one column")
    others = tuple(confidential) or tuple(name for name in table.column_names if name not in names)
    require(not set(others) & set(names), "disclosures: a column is either known or confidential")
    require_columns(table, (*names, *others))
    rows = table.num_rows
    keys, count = combined([CodedColumn.of(table.column(name)) for name in names], rows)
    sizes = np.bincount(keys, minlength=count)
    identity = sizes[keys] == 1
    attributes = {}
    for name in others:
        pairs, different = combined([CodedColumn.of(table.column(c)) for c in (*names, name)], rows)
        of_class = np.zeros(different, dtype=np.int64)
        of_class[pairs] = keys
        attributes[name] = np.bincount(of_class, minlength=count)[keys] == 1
    membership = identity if population is None else _all_present(table, population, names)
    return Disclosures(names, identity, attributes, membership)


def _all_present(table: pa.Table, population: pa.Table, names: tuple[str, ...]) -> Flags:
    require_columns(population, names)
    both = [pa.chunked_array([*_texts(table, name).chunks, *_texts(population, name).chunks], pa.string()) for name in names]
    keys, count = combined([CodedColumn.of(column) for column in both], table.num_rows + population.num_rows)
    ours = np.bincount(keys[: table.num_rows], minlength=count)
    everybody = np.bincount(keys[table.num_rows :], minlength=count)
    return np.asarray((ours >= everybody)[keys[: table.num_rows]])


def _texts(table: pa.Table, name: str) -> pa.ChunkedArray:
    return table.column(name).cast(pa.string())
