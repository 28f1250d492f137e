"""The adversary's two sides, people with true values and the released table, and what is picked for each person.

Masks may have worked within strata, which they leave as they are; then the sides are split and picked from stratum by stratum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import MissingColumn
from sfumato.data.records import Records, paired
from sfumato.data.schema import Schema
from sfumato.data.texts.values import CodedText

Real = NDArray[np.float64]
Int = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sides:
    """People with true values and the released table; `truth[i]` is the row of person i in it, -1 where there is none.

    `names` maps columns of the release to columns of the people. `owner[j]` says whose released row j is, where somebody may
    have several, all of which are right answers. `agreeing` are columns that were published as they are: the own record has
    the person's values in them. `judged` are the people who count; by default all."""

    people: pa.Table = field(repr=False)
    released: pa.Table = field(repr=False)
    schema: Schema = field(repr=False)
    truth: Int = field(repr=False)
    names: Mapping[str, str]
    owner: Int | None = field(default=None, repr=False)
    agreeing: tuple[str, ...] = ()
    judged: NDArray[np.bool_] | None = field(default=None, repr=False)

    @property
    def owners(self) -> Int:
        """Whose each released row is; by default everybody has one."""
        return self.owner if self.owner is not None else np.arange(self.released.num_rows, dtype=np.int64)

    @property
    def mine(self) -> Int:
        """Which owner each person is, -1 where there is none."""
        owners = self.owners
        return np.where(self.truth >= 0, owners[np.maximum(self.truth, 0)], -1) if owners.size else self.truth

    def records(self, columns: Sequence[str]) -> tuple[Records, Records]:
        """Both sides over the same columns, with the same labels."""
        held = pa.table({name: self.people.column(self.names[name]) for name in columns})
        return paired(Records.of(held, self.schema, columns), Records.of(self.released, self.schema, columns))

    def shared(self, columns: Sequence[str], what: str) -> tuple[str, ...]:
        """Those of the columns that both sides have."""
        shared = tuple(name for name in columns if name in self.names and name in self.released.column_names)
        if not shared:
            raise MissingColumn(f"{what}: the people's table holds none of the columns that were masked")
        return shared

    def split(self, strata: Sequence[str]) -> Iterator[tuple[Int, Int, Sides]]:
        """People and released rows of each stratum, which the mask left as it was."""
        missing = [name for name in strata if name not in self.names]
        if missing:
            raise MissingColumn(f"the mask worked within strata, and the people's table has no column for {', '.join(missing)}")
        ours, theirs = np.zeros(self.people.num_rows, dtype=np.int64), np.zeros(self.released.num_rows, dtype=np.int64)
        for name in strata:
            joined = pa.chunked_array([_texts(self.people.column(self.names[name])), _texts(self.released.column(name))])
            codes = CodedText.of(joined).codes.astype(np.int64) + 1
            both = np.concatenate([ours, theirs]) * (int(codes.max(initial=0)) + 1) + codes
            both = np.unique(both, return_inverse=True)[1].reshape(-1)
            ours, theirs = both[: ours.size], both[ours.size :]
        place = np.full(self.released.num_rows + 1, -1, dtype=np.int64)
        owners, theirs_ahead = self.owners, np.append(theirs, -1)
        first, second = np.argsort(ours, kind="stable"), np.argsort(theirs, kind="stable")
        for stratum in np.unique(theirs).tolist():
            people, rows = _run(first, ours, stratum), _run(second, theirs, stratum)
            place[rows] = np.arange(rows.size)
            truth = np.where(theirs_ahead[self.truth[people]] == stratum, place[self.truth[people]], -1)
            held, shown = self.people.take(people), self.released.take(rows)
            yield people, rows, replace(self, people=held, released=shown, truth=truth, owner=owners[rows], judged=None)


@dataclass(frozen=True, eq=False)
class Picked:
    """Per person: the chance that the adversary picks the own record, how many candidates there are, whether the own record is
    one of them, and where a law gives it, how likely the adversary thinks it is."""

    credit: Real
    candidates: Int
    own_found: NDArray[np.bool_]
    posterior: Real | None = None

    @property
    def rate(self) -> float:
        """The expected share of people whose record is picked."""
        return float(self.credit.mean()) if self.credit.size else 0.0


def by_stratum(sides: Sides, strata: Sequence[str] | None, pick: Callable[[Sides], Picked]) -> Picked:
    """Pick within each stratum, where the mask had strata."""
    if not strata:
        return pick(sides)
    people = sides.people.num_rows
    credit, candidates, own_found = np.zeros(people), np.zeros(people, dtype=np.int64), np.zeros(people, dtype=np.bool_)
    posterior = np.zeros(people)
    has_posterior = False
    for rows, _, part in sides.split(strata):
        if rows.size:
            one = pick(part)
            credit[rows], candidates[rows], own_found[rows] = one.credit, one.candidates, one.own_found
            if one.posterior is not None:
                posterior[rows], has_posterior = one.posterior, True
    return Picked(credit, candidates, own_found, posterior if has_posterior else None)


def _run(order: Int, codes: Int, code: int) -> Int:
    """Where the codes are the wanted one, by their order."""
    low = np.searchsorted(codes, code, side="left", sorter=order)
    return order[low : np.searchsorted(codes, code, side="right", sorter=order)]


def _texts(column: pa.ChunkedArray) -> pa.Array:
    return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())
