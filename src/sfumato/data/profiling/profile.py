"""The profile of a table: what each column holds, which columns single people out, and a role to start from.

Everything is computed on codes. Uniqueness of a combination is the share of records that no other record
equals on it; combinations are explored best first, extending the pairs that single out most. Sweeney, "Simple
demographics often identify people uniquely", 2000.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import MissingColumn
from sfumato.core.markup import shorten
from sfumato.core.plain_data import PlainDict
from sfumato.core.texts import counted, percent
from sfumato.data.microdata import Microdata
from sfumato.data.profiling.identifier_names import role_by_name
from sfumato.data.profiling.identifier_patterns import PATTERNS, share
from sfumato.data.profiling.repeated_columns import without_copy
from sfumato.data.profiling.roles import Suggestion, suggest
from sfumato.data.profiling.singling import SinglingOut, singling_order
from sfumato.data.profiling.suggested_intervals import fullest_interval, nested_widths, quantile_cuts
from sfumato.data.profiling.suggested_reading import SuggestedReading
from sfumato.data.profiling.suggested_unit import SuggestedUnit, suggest_unit
from sfumato.data.readers.read_result import normalise, type_name
from sfumato.data.schema import Role, Type
from sfumato.data.texts.values import texts
from sfumato.kernels.classes.grouping import group_columns

if TYPE_CHECKING:
    import pyarrow as pa

Codes = NDArray[np.int32]

_MOST_CANDIDATES = 12
_ROWS_TO_GROUP = 120_000_000  # over all combinations together
_FEWEST_COMBINATIONS = 20
_MOST_COMBINATIONS = 150
_SAMPLED_VALUES = 4_000
_PATTERN_SHARE = 0.5
_MOST_LISTED = 1_000
#: Up to so many different whole numbers may be codes of categories; they are listed as texts are.
MOST_CODES = 10
_WHOLE = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True)
class ColumnProfile:
    """One column. `unique_share` is the share of records whose value no other record has, or no other unit's where there is one;
    `entropy` is in nats; `mean_rows` and `most_rows` say how many records have the same value, on average and at most; `learnt`
    says that the type was found by looking at the values. `domain` lists the distinct values of texts, and of up to ten whole
    numbers. Of more numbers `fullest` is the share of the known values in the fullest of about sixteen equal intervals, `cuts`
    are rounded quantiles. `lengths` are those of the values as texts, in characters.

    Smallest and largest value and the distinct values themselves are the owner's alone and never printed by
    `repr`.
    """

    name: str
    type: Type
    distinct: int
    missing: int
    unique_share: float
    entropy: float
    role: Role
    reason: str
    patterns: dict[str, float] = field(default_factory=dict)
    smallest: float | str | None = field(default=None, repr=False)
    largest: float | str | None = field(default=None, repr=False)
    domain: tuple[str, ...] | None = field(default=None, repr=False)
    mean_rows: float = 0.0
    most_rows: int = 0
    learnt: bool = False
    fullest: float | None = None
    cuts: tuple[float, ...] = field(default=(), repr=False)
    lengths: tuple[int, ...] = ()

    def to_mapping(self) -> PlainDict:
        """For JSON; the distinct values are left out."""
        listed = {key: value for key, value in vars(self).items() if key != "domain" and value is not None}
        return {**listed, "patterns": dict(self.patterns)}


@dataclass(frozen=True)
class Combination:
    """Columns together: how many records they single out, as a number and a share, and the smallest class."""

    columns: tuple[str, ...]
    uniques: int
    unique_share: float
    smallest_class: int


@dataclass(frozen=True)
class Profile:
    """What is known about a table after one look. It describes the original data, so it is the owner's and
    not for publication.

    `combinations` are sorted by the share of records they single out. `contributions` says, per suggested
    quasi-identifier, how many records would no longer be unique without it. `k` is the smallest class over
    all suggested quasi-identifiers. Where `unit` is a column, classes are counted in units, and a record is unique where no other
    unit has its values. `unit` is the column that seems to name whom a row is about, "record" where every row
    seems to be about somebody else, None where the data do not tell; `unit_reason` says why. `singling` orders the suggested
    quasi-identifiers by how much they single people out. `reading` says how the texts of the table
    are read, and why.
    """

    rows: int
    columns: tuple[ColumnProfile, ...]
    quasi: tuple[str, ...] = ()
    k: int = 0
    uniques: int = 0
    combinations: tuple[Combination, ...] = ()
    contributions: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    description: str = "table"
    unit: str | None = None
    unit_reason: str = ""
    singling: tuple[SinglingOut, ...] = ()
    reading: SuggestedReading = SuggestedReading()

    def __repr__(self) -> str:
        return (
            f"Profile('{shorten(self.description, 60)}', {counted(self.rows, 'row')}, {counted(len(self.columns), 'column')}, "
            f"{len(self.quasi)} quasi-identifiers, smallest class {self.k}, {percent(self.unique_share)} unique)"
        )

    def _repr_html_(self) -> str:
        from sfumato.core.markup import table
        from sfumato.core.panel import panel

        facts = [
            ("source", shorten(self.description, 200)),
            ("rows", f"{self.rows:,}"),
            ("quasi-identifiers together", f"smallest class {self.k}; {percent(self.unique_share)} of the records are unique"),
            ("unit", self.unit or "none named"),
        ]
        rows = [
            (shorten(each.name, 80), each.role, each.type, f"{each.distinct:,}", f"{each.missing:,}", shorten(each.reason, 200))
            for each in self.columns
        ]
        return panel(
            "Profile", facts, table("Columns", ("column", "role", "type", "distinct", "missing", "why"), rows), owner=True
        )

    @property
    def unique_share(self) -> float:
        """The share of records that no other record, or no other unit's, equals on the suggested quasi-identifiers."""
        return self.uniques / self.rows if self.rows else 0.0

    def column(self, name: str) -> ColumnProfile:
        """The profile of one column."""
        for column in self.columns:
            if column.name == name:
                return column
        raise MissingColumn(f"the profile has no column '{name}'")

    def to_mapping(self) -> PlainDict:
        """For JSON."""
        return {
            "description": self.description,
            "rows": self.rows,
            "columns": [column.to_mapping() for column in self.columns],
            "quasi": list(self.quasi),
            "k": self.k,
            "uniques": self.uniques,
            "unique_share": self.unique_share,
            "combinations": [{**vars(combination), "columns": list(combination.columns)} for combination in self.combinations],
            "contributions": dict(self.contributions),
            "notes": list(self.notes),
            "unit": self.unit,
            "unit_reason": self.unit_reason,
            "singling": [vars(each) for each in self.singling],
            "read": self.reading.reading.to_mapping(),
            "read_because": dict(self.reading.reasons),
            "questions": list(self.reading.questions),
        }


def profile_table(data: Microdata | pa.Table) -> Profile:
    """Profile a dataset or an Arrow table; roles already given by a schema are kept."""
    roles: dict[str, Role] = {}
    notes: tuple[str, ...] = ()
    description = "table"
    if isinstance(data, Microdata):
        # plain is what a column is where nobody says anything: only a written one was decided
        stated = {name: column for name, column in data.schema.columns.items() if "role" in column.model_fields_set}
        roles = {name: column.role for name, column in stated.items()}
        notes, description = data.notes, data.description
    table = data.table() if isinstance(data, Microdata) else data
    columns, codes = [], {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        described, coded = _describe(name, column, table.num_rows, roles.get(name))
        columns.append(described)
        codes[name] = coded
    learnt = data.inferred if isinstance(data, Microdata) else frozenset[str]()
    columns = [replace(column, learnt=column.name in learnt) for column in columns]
    unit, columns = suggest_unit(columns, roles)
    if isinstance(data, Microdata) and data.schema.each_record_is_a_unit:
        unit = SuggestedUnit("record", "given by the schema")
    columns = [column if column.name in roles else without_copy(column, table) for column in columns]
    quasi = tuple(column.name for column in columns if column.role == "quasi")
    named = next((column.name for column in columns if column.role == "unit"), "")
    if named and table.num_rows:
        columns = [replace(column, unique_share=_among_units(codes[column.name], codes[named])) for column in columns]
    uniqueness = _Uniqueness(table.num_rows, {name: codes[name] for name in quasi}, codes.get(named))
    whole = uniqueness.of(quasi) if quasi and table.num_rows else None
    return Profile(
        rows=table.num_rows,
        columns=tuple(columns),
        quasi=quasi,
        k=whole.smallest_class if whole else table.num_rows,
        uniques=whole.uniques if whole else 0,
        combinations=tuple(_combinations(uniqueness, columns, quasi)) if whole else (),
        contributions=_contributions(uniqueness, quasi, whole.uniques) if whole else {},
        notes=notes,
        description=description,
        unit=unit.unit,
        unit_reason=unit.reason,
        singling=singling_order({name: codes[name] for name in quasi}, table.num_rows),
    )


@dataclass(frozen=True, eq=False)
class _Coded:
    """A column as codes into its distinct values, with a sample of their texts."""

    codes: Codes
    counts: NDArray[np.int64]
    values: pa.Array
    sampled: NDArray[np.int64]
    texts: list[str]

    @classmethod
    def of(cls, array: pa.Array) -> _Coded:
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_floating(array.type):
            array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
        encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        codes = encoded.indices.cast(pa.int32()).fill_null(len(encoded.dictionary)).to_numpy()
        values = encoded.dictionary
        counts = np.bincount(codes, minlength=len(values) + 1).astype(np.int64)
        present = np.flatnonzero(counts[: len(values)])
        sampled = present[:: max(1, math.ceil(present.size / _SAMPLED_VALUES))]
        read = [text or "" for text in texts(values.take(pa.array(sampled)))]
        return cls(codes, counts, values, sampled, read)


def _describe(name: str, column: pa.ChunkedArray, rows: int, role: Role | None) -> tuple[ColumnProfile, tuple[Codes, int]]:
    array, _ = normalise(name, column)
    kind = type_name(array.type)
    coded = _Coded.of(array)
    values = coded.counts[:-1]
    shares = coded.counts[coded.counts > 0] / rows if rows else np.zeros(0)
    patterns = _patterns(coded, kind)
    distinct = int(np.count_nonzero(values))
    unique_share = float(np.count_nonzero(values == 1)) / rows if rows else 0.0
    smallest, largest = _extent(array, kind)
    lengths = [len(text) for text in coded.texts]
    choice = Suggestion(role, "given by the schema") if role is not None else suggest(
        kind=kind, rows=int(values.sum()), distinct=distinct, unique_share=unique_share,
        mean_length=sum(lengths) / max(len(lengths), 1),
        mean_words=sum(len(text.split()) for text in coded.texts) / max(len(lengths), 1),
        named=role_by_name(name),
        patterns=patterns,
        numbers=coded.values.to_numpy(zero_copy_only=False)[values > 0] if kind == "integer" else None,
    )  # fmt: skip
    listed = kind in ("string", "boolean") and 0 < distinct <= _MOST_LISTED
    codes = kind in ("integer", "number") and 0 < distinct <= MOST_CODES and all(map(_WHOLE.fullmatch, coded.texts))
    described = ColumnProfile(
        name=name,
        type=kind,
        distinct=distinct,
        missing=int(coded.counts[-1]),
        unique_share=unique_share,
        entropy=float(-(shares * np.log(shares)).sum()) + 0.0,  # no negative zero
        role=choice.role,
        reason=choice.reason,
        patterns=patterns,
        smallest=smallest,
        largest=largest,
        domain=tuple(sorted(coded.texts, key=int if codes else None)) if listed or codes else None,
        mean_rows=float(values.sum()) / distinct if distinct else 0.0,
        most_rows=int(values.max(initial=0)),
        lengths=tuple(sorted(set(lengths))),
    )
    if kind in ("integer", "number") and distinct > MOST_CODES:
        described = _with_intervals(described, coded)
    return described, (coded.codes, int(coded.counts.size))


def _with_intervals(column: ColumnProfile, coded: _Coded) -> ColumnProfile:
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = pc.fill_null(coded.values.cast(pa.float64(), safe=False), math.nan).to_numpy(zero_copy_only=False)
    kept = np.isfinite(numbers) & (coded.counts[:-1] > 0)
    numbers, counts, whole = numbers[kept], coded.counts[:-1][kept], column.type == "integer"
    widths = nested_widths(float(np.ptp(numbers)) if numbers.size else 0.0, whole)
    if not widths:
        return column
    return replace(column, fullest=fullest_interval(numbers, counts, widths[0]), cuts=quantile_cuts(numbers, counts, whole))


def _extent(array: pa.Array, kind: Type) -> tuple[float | str | None, float | str | None]:
    import pyarrow.compute as pc

    if kind not in ("integer", "number", "date", "datetime"):
        return None, None
    ends = pc.min_max(array.filter(pc.is_finite(array)) if kind == "number" else array).as_py()
    low, high = ends["min"], ends["max"]
    if low is None:
        return None, None
    return (low, high) if kind in ("integer", "number") else (low.isoformat(), high.isoformat())


#: Digits alone say little: which patterns are looked for in columns that are no text.
_PATTERNS_OF: dict[Type, tuple[str, ...]] = {
    "integer": ("payment card", "national number"),
    "date": ("date of the last 120 years",),
    "number": (),
    "boolean": (),
    "datetime": (),
}


def _patterns(coded: _Coded, kind: Type) -> dict[str, float]:
    """Patterns that at least half of the values match, with the share that does, over a sample of the
    distinct values."""
    if not coded.texts:
        return {}
    weights = coded.counts[coded.sampled].tolist()
    searched = [p for p in PATTERNS if kind == "string" or p.name in _PATTERNS_OF[kind]]
    shares = {pattern.name: share(pattern, coded.texts, weights) for pattern in searched}
    return {name: part for name, part in shares.items() if part >= _PATTERN_SHARE}


class _Uniqueness:
    """Counts of unique records for any set of columns, computed on the distinct tuples of all of them.

    With the codes of a unit a class is as small as the number of its units, and a record is unique in a class of one unit.
    """

    def __init__(self, rows: int, codes: dict[str, tuple[Codes, int]], unit: tuple[Codes, int] | None = None) -> None:
        self.rows = rows
        self._codes = codes
        self._unit = unit
        self.counts = np.ones(rows, dtype=np.int64)
        if codes and rows:
            columns = [*codes.values(), *([] if unit is None else [unit])]
            inverse, first = group_columns([c for c, _ in columns], [n for _, n in columns])
            self.counts = np.bincount(inverse, minlength=first.size).astype(np.int64)
            self._codes = {name: (column[first], size) for name, (column, size) in codes.items()}
            self._unit = None if unit is None else (unit[0][first], unit[1])

    def of(self, columns: Sequence[str]) -> Combination:
        """Uniques and smallest class over these columns."""
        chosen = [self._codes[name] for name in columns]
        inverse, first = group_columns([c for c, _ in chosen], [n for _, n in chosen])
        sizes = np.bincount(inverse, weights=self.counts, minlength=first.size)
        units = sizes if self._unit is None else self._units(inverse, first.size, *self._unit)
        uniques = int(sizes[units == 1].sum())
        return Combination(tuple(columns), uniques, uniques / self.rows, int(units.min()))

    @staticmethod
    def _units(classes: NDArray[np.int64], count: int, unit: Codes, width: int) -> NDArray[np.int64]:
        _, pairs = group_columns([classes.astype(np.int32), unit], [count, width])
        return np.bincount(classes[pairs], minlength=count).astype(np.int64)


def _among_units(column: tuple[Codes, int], unit: tuple[Codes, int]) -> float:
    """The share of records with a value that no other unit has; the last code, a missing value, is none."""
    codes, width = column
    units = _Uniqueness._units(codes.astype(np.int64), width, *unit)
    return float(np.count_nonzero((units[codes] == 1) & (codes < width - 1))) / codes.size


def _combinations(uniqueness: _Uniqueness, columns: Sequence[ColumnProfile], quasi: Sequence[str]) -> list[Combination]:
    """Single columns, pairs, and the triples that extend the pairs that single out most, within a bound on
    the work."""
    by_entropy = sorted((column for column in columns if column.name in quasi), key=lambda column: -column.entropy)
    candidates = [column.name for column in by_entropy[:_MOST_CANDIDATES]]
    tuples = max(uniqueness.counts.size, 1)
    left = int(min(max(_ROWS_TO_GROUP // tuples, _FEWEST_COMBINATIONS), _MOST_COMBINATIONS))
    results = [uniqueness.of([name]) for name in candidates]
    pairs = [uniqueness.of(pair) for pair in list(itertools.combinations(candidates, 2))[: left // 2]]
    pairs.sort(key=lambda pair: -pair.uniques)
    triples: dict[frozenset[str], Combination] = {}
    room = left - len(pairs)
    for pair, name in itertools.product(pairs, candidates):
        key = frozenset((*pair.columns, name))
        if len(triples) >= room:
            break
        if len(key) == 3 and key not in triples:
            triples[key] = uniqueness.of([c for c in candidates if c in key])
    results += [*pairs, *triples.values()]
    return sorted(results, key=lambda result: (-result.uniques, len(result.columns), result.columns))


def _contributions(uniqueness: _Uniqueness, quasi: Sequence[str], uniques: int) -> dict[str, int]:
    """Uniques that disappear when a column is left out, largest first."""
    if len(quasi) == 1:
        return {quasi[0]: uniques}
    drops = {name: uniques - uniqueness.of([other for other in quasi if other != name]).uniques for name in quasi}
    return dict(sorted(drops.items(), key=lambda entry: -entry[1]))
