"""Record swapping: pairs of records that agree on what is counted exchange what would give them away.

A share of the records (or households) is chosen, at random or those that stand out first; each exchanges the swapped
columns, such as its place of residence, with a random record that is equal on the match columns and differs on these.
Dalenius, Reiss, "Data-swapping: a technique for disclosure control", Journal of Statistical Planning and Inference 6, 1982.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import MissingColumn, ParameterError, Unsupported, all_at_once
from sfumato.core.ranges import ColumnName, ColumnNames, PositiveShare
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, Kind, NumberColumn, Records
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask
from sfumato.masking.columns import DifferentColumns
from sfumato.masking.unchanged import refuse_unchanged

Int = NDArray[np.int64]

#: Partners are drawn and rejected so many times before those that differ are listed.
_TRIES = 24
#: Partners may agree on one of several swapped columns by mere chance; a column is judged by its unchanged values only where
#: at least so many would change at random.
_JUDGED = 20
_WHAT_TO_DO = "match on fewer or coarser columns, or leave it out of the swapped columns"


@dataclass(frozen=True)
class RecordSwapping(Mask):
    """Exchange the `swapped` columns between pairs of records.

    `rate`: the share of records whose values are exchanged, both partners counted (above 0, at most 1). `match`: columns on
    which partners agree; tables of match by swapped columns stay exactly as they are. `swapped`: the columns that are
    exchanged, together (default: `columns`, then the quasi-identifiers). `targeted`: records that are rare on the `key` columns
    (default: the quasi-identifiers) are chosen first, by risk 1/(records with the same key), then at random.
    `household`: a column that names households; whole households are then exchanged, with households of the same size
    whose members agree on the match columns, member by member.

    Every column keeps its values, and so does every table of match and swapped columns. A record with a missing value in a
    swapped column takes no part. `details` counts the records that were exchanged, and how many should have been, and has the
    `unchanged` share of each column. A column is refused when less than a twentieth of the share asked for changes in it.

    >>> import sfumato as sf
    >>> people = sf.data.sample_table(400)
    >>> mask = sf.RecordSwapping(0.2, match=("sex",), swapped=("age",))
    >>> outcome = mask.apply(people, seed=1)
    >>> outcome.details["exchanged"]
    80
    """

    rate: Annotated[PositiveShare, "the share of records whose values are exchanged"]
    match: Annotated[DifferentColumns, "columns on which partners agree"] = ()
    swapped: Annotated[DifferentColumns, "the columns that are exchanged, together"] = ()
    targeted: Annotated[bool, "whether rare records are chosen first"] = False
    key: Annotated[ColumnNames | None, "the columns on which a record is rare"] = None
    household: Annotated[ColumnName | None, "a column that names households, which are exchanged as a whole"] = None

    handles: ClassVar[frozenset[Kind]] = frozenset({"number", "ordered", "category"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.swapped:
            object.__setattr__(self, "columns", self.swapped)

    def coherent(self) -> Iterable[str]:
        if self.key is not None and not self.targeted:
            yield "key names columns of targeted swapping"
        if self.swapped and self.columns not in (None, self.swapped):
            yield "swapped and columns name the same columns"

    def check(self, records: Records, people: Microdata) -> None:
        """The columns it looks at must be there; match and swapped columns are different ones."""
        looked = dict.fromkeys((*self.match, *(self.key or ()), *((self.household,) if self.household else ())))
        gone = [f"column '{name}' is not in the data" for name in looked if name not in people.column_names]
        all_at_once(MissingColumn, "RecordSwapping", gone)
        both = [name for name in (*self.match, self.household) if name in records.names]
        faults = [f"column '{name}' cannot be swapped and stay as it is at once" for name in both]
        if self.targeted and not (self.key or people.schema.quasi):
            faults.append("targeted swapping needs key columns: give key=(…), or a schema with the role 'quasi'")
        all_at_once(ParameterError, "RecordSwapping", faults)

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Choose, pair, exchange."""
        context.progress("swapping records", 0, 1)
        size = records.size
        matched = _classes((context.column(name) for name in self.match), size)
        signature = _classes(records.columns, size)
        able = np.all([column.known for column in records.columns], axis=0)
        members, starts = self._units(context, matched, size)
        order = _priority(self._risk(context, size), members, starts, draws)
        pairs = max(1, round(self.rate * (starts.size - 1) / 2))
        first, second = _pairs(
            order,
            _unit_classes(matched, members, starts),
            _unit_classes(signature, members, starts),
            able,
            members,
            starts,
            pairs,
            draws,
        )
        if first.size == 0:
            raise Unsupported(
                "RecordSwapping: no two records"
                + (" of a stratum" if self.strata else "")
                + " agree on the match columns and differ on "
                "the swapped ones, so nothing would change; match on fewer or coarser columns"
            )
        source = np.arange(size)
        left, right = _rows(first, members, starts), _rows(second, members, starts)
        source[left], source[right] = right, left
        context.progress("swapping records", 1, 1)
        values = {
            column.name: (column.values if isinstance(column, NumberColumn) else column.codes)[source]
            for column in records.columns
        }
        rate = 2 * pairs / (starts.size - 1)
        details = {
            "exchanged": 2 * int(first.size),
            "asked": 2 * pairs,
            "records_exchanged": int(left.size + right.size),
            "unchanged": refuse_unchanged(
                "RecordSwapping", records.columns, values, _WHAT_TO_DO, rate=min(rate, 1.0), expected=_JUDGED
            ),
        }
        return Change(values, details=details)

    def keeps(self) -> tuple[Kept, ...]:
        """Swapped columns move together, so everything among them is the same; so are tables with the match columns."""
        return tuple(
            Kept(what, exactly=True) for what in ("multiset", "mean", "variance", "covariance", "correlation", "frequencies")
        )

    def _units(self, context: Context, matched: Int, size: int) -> tuple[Int, Int]:
        """Rows unit by unit, members of a household in the order of their match classes, and where each unit starts."""
        if self.household is None:
            return np.arange(size), np.arange(size + 1)
        column = context.column(self.household)
        if not column.known.all():
            raise Unsupported(f"RecordSwapping: column '{self.household}' has missing values; every record needs a household")
        belongs = _classes([column], size)
        members = np.lexsort((matched, belongs))
        starts = np.concatenate([[0], np.flatnonzero(np.diff(belongs[members])) + 1, [size]])
        return members, starts

    def _risk(self, context: Context, size: int) -> NDArray[np.float64] | None:
        if not self.targeted:
            return None
        classes = _classes((context.column(name) for name in self.key or context.people.schema.quasi), size)
        risk: NDArray[np.float64] = 1.0 / np.bincount(classes)[classes]
        return risk


def _classes(columns: Iterable[NumberColumn | CategoryColumn], size: int) -> Int:
    """The number of the class of equal records; a missing value is equal to another missing one."""
    classes = np.zeros(size, dtype=np.int64)
    for column in columns:
        values = column.values if isinstance(column, NumberColumn) else column.codes
        codes = np.unique(values, return_inverse=True, equal_nan=True)[1].reshape(-1)
        classes = np.unique(classes * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].reshape(-1)
    return classes


def _unit_classes(classes: Int, members: Int, starts: Int) -> Int:
    """The class of each unit: units are equal where they have as many members of the same classes in order."""
    if starts.size == members.size + 1:
        return classes[members]
    class_of: dict[bytes, int] = {}
    inside = classes[members]
    return np.array(
        [class_of.setdefault(inside[a:b].tobytes(), len(class_of)) for a, b in zip(starts[:-1], starts[1:], strict=True)],
        dtype=np.int64,
    )


def _priority(risk: NDArray[np.float64] | None, members: Int, starts: Int, draws: Draws) -> Int:
    """Units in the order in which they are chosen: at random, the riskiest member first where swapping is targeted."""
    order = draws.permutation(starts.size - 1)
    if risk is None:
        return order
    worst = np.maximum.reduceat(risk[members], starts[:-1])
    return order[np.argsort(-worst[order], kind="stable")]


def _pairs(
    order: Int, matched: Int, signature: Int, able: NDArray[np.bool_], members: Int, starts: Int, most: int, draws: Draws
) -> tuple[Int, Int]:
    """Each chosen unit with a uniformly drawn unchosen one of its match class that differs on the swapped columns."""
    whole = np.logical_and.reduceat(able[members], starts[:-1])
    pools: dict[int, list[int]] = {}
    place = [-1] * matched.size
    alike: dict[tuple[int, int], int] = {}
    classes, kinds = matched.tolist(), signature.tolist()
    for unit in np.flatnonzero(whole).tolist():
        pool = pools.setdefault(classes[unit], [])
        place[unit] = len(pool)
        pool.append(unit)
        alike[classes[unit], kinds[unit]] = alike.get((classes[unit], kinds[unit]), 0) + 1

    def remove(unit: int) -> None:
        pool = pools[classes[unit]]
        last = pool.pop()
        if last != unit:
            pool[place[unit]] = last
            place[last] = place[unit]
        place[unit] = -1
        alike[classes[unit], kinds[unit]] -= 1

    uniform = _stream(draws)
    first: list[int] = []
    second: list[int] = []
    for unit in order.tolist():
        if len(first) == most:
            break
        pool = pools.get(classes[unit], [])
        if place[unit] < 0 or alike[classes[unit], kinds[unit]] == len(pool):
            continue
        partner = _differing(pool, kinds, kinds[unit], uniform)
        remove(unit)
        remove(partner)
        first.append(unit)
        second.append(partner)
    return np.array(first, dtype=np.int64), np.array(second, dtype=np.int64)


def _differing(pool: list[int], kinds: list[int], own: int, uniform: Iterator[float]) -> int:
    """A uniformly drawn unit of another kind: by rejection, then among a list of them; there is at least one."""
    for _ in range(_TRIES):
        partner = pool[int(next(uniform) * len(pool))]
        if kinds[partner] != own:
            return partner
    others = [unit for unit in pool if kinds[unit] != own]
    return others[int(next(uniform) * len(others))]


def _stream(draws: Draws, block: int = 4096) -> Iterator[float]:
    while True:
        yield from draws.uniform(block).tolist()


def _rows(units: Int, members: Int, starts: Int) -> Int:
    """The rows of these units, member by member."""
    if starts.size == members.size + 1:
        return members[units]
    return np.concatenate([members[starts[unit] : starts[unit + 1]] for unit in units]) if units.size else np.empty(0, np.int64)
