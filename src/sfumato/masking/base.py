"""The common frame of masks: X' = ρ(X; parameters), with what it keeps and what may be published about it.

A mask is a frozen value. `apply` checks the columns, lets the method change them (stratum by stratum where asked), and
returns the masked table with the parameters that a reader needs to correct an analysis, and that an attacker may use too:
a mask has to be safe although everything but its random draws is known.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core import randomness as sources
from sfumato.core.declared import Declared, parameters, require
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.outcome import Outcome
from sfumato.core.plain_data import Plain
from sfumato.core.progress import Progress, ProgressLike, shown, silent
from sfumato.core.randomness import Randomness
from sfumato.core.ranges import ColumnNames, Each, Text
from sfumato.data.masked import Masked
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, Kind, NumberColumn, Records
from sfumato.data.schema import Schema
from sfumato.engines.snapshots import read_once
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.columns import assembled, check_columns, check_strata, chosen_columns, joined_details, microdata, strata_of
from sfumato.masking.transparency import VisibleTable, fits, transparency_of

if TYPE_CHECKING:
    from sfumato.engines.sources import TableLike
    from sfumato.masking.engine_rows import EngineChange, EngineRows
    from sfumato.masking.shown_rows import ShownRows

Int = NDArray[np.int64]

#: What a mask may promise to keep. `multiset`: each column has exactly the same values, in another order.
What = Literal["mean", "variance", "covariance", "correlation", "multiset", "frequencies", "regression", "order"]


@dataclass(frozen=True)
class Kept:
    """A statement about the masked data that tests hold the method to.

    `exactly`: for every draw, up to rounding errors; otherwise on average over draws. `note` is for readers.
    """

    what: What
    exactly: bool = False
    note: str = ""


@dataclass(frozen=True, eq=False)
class Change:
    """What a method did to the records of one stratum.

    `values` holds, by column, floats for a column of numbers, codes for a column of categories, or an Arrow array where
    the column changes its kind. `rows` are the positions (within the stratum) of the records that the new rows stand
    for: None for all of them in order; `unrelated=True` when no record stands behind a row (synthetic data).
    `published` is for everybody; `details` are the owner's.
    """

    values: Mapping[str, Any]
    rows: Int | None = None
    unrelated: bool = False
    published: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    details: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, kw_only=True)
class Mask(Declared, ABC):
    """A masking method; the constructor only stores parameters.

    `columns` are masked (default: the quasi-identifiers; for synthetic data every published column). With `strata` the
    records are masked separately within each combination of values of those columns, which stay as they are. `whole`
    rounds what is put into columns of whole numbers; `whole=False` publishes such columns as real numbers, for exact moments.
    """

    columns: Annotated[ColumnNames | None, "the columns that are masked; the quasi-identifiers if none are named"] = None
    strata: Annotated[
        tuple[str, ...] | None,
        Each(Text("the name of a column"), what="a list of columns"),
        "columns within whose combinations of values records are masked separately",
    ] = None
    whole: Annotated[bool, "whether columns of whole numbers stay whole"] = True

    #: Kinds of columns that the method can mask.
    handles: ClassVar[frozenset[Kind]] = frozenset({"number"})
    #: Whether a column with one value only is refused, because the method would leave it as it is.
    refuses_constant: ClassVar[bool] = True
    #: The same of a column with one value only in some stratum. Not where it would be changed nevertheless, or is shared by
    #: so many records on purpose.
    refuses_constant_stratum: ClassVar[bool] = True
    #: Whether all published columns are made anew.
    synthetic: ClassVar[bool] = False
    #: Whether it chooses records and leaves their values as they are.
    selects: ClassVar[bool] = False
    #: Whether a missing value stays missing and no other becomes so: then it is certain who has none.
    shows_missing: ClassVar[bool] = False
    #: Whether nothing is drawn, whatever the parameters: then the same data give the same rows.
    certain: ClassVar[bool] = False
    #: Whether every cell of a masked column shows a node of its hierarchy that the record's value lies under.
    generalises: ClassVar[bool] = False

    @property
    def usual_measures(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What is measured of the use and of the risk of a release where nobody says: record by record, if any stands behind."""
        return ("information_loss",), ("nearest_record" if self.synthetic else "disclosure_risk",)

    def apply(
        self,
        data: TableLike,
        *,
        randomness: Randomness | None = None,
        seed: int | str | None = None,
        progress: ProgressLike = silent,
    ) -> Outcome[Masked]:
        """Mask the data; with a `seed` the same data give the same result on every run. `progress=True` shows a bar."""
        require(randomness is None or seed is None, "pass randomness or a seed, not both")
        source = microdata(data)
        people = read_once(source)
        table = people.table()
        records, groups, parts = self.checked(people, table)
        draws = Draws(randomness if randomness is not None else sources.default(seed))
        changes = []
        with shown(progress) as receiver:
            for position, (part, rows) in enumerate(zip(parts, groups, strict=True)):
                receiver("masking", position, len(groups))
                changes.append(self.change(part, draws, Context(people, table, rows, receiver)))
            receiver("masking", len(groups), len(groups))
        outcome = self._outcome(people, table, records, groups, changes)
        if people is source:
            return outcome
        return replace(outcome, result=replace(outcome.result, source=(source.relation, table)))

    def checked(self, people: Microdata, table: pa.Table) -> tuple[Records, list[Int], list[Records]]:
        """The columns to mask as arrays, the rows of each stratum and its records; refused where the method cannot mask
        them."""
        records = self.records(people, table)
        check_columns(self, records)
        groups = strata_of(table, self.strata, records.names)
        parts = [records] if len(groups) == 1 else [records.take(rows) for rows in groups]
        if len(parts) > 1:
            check_strata(self, parts)
        for part in parts:
            self.check(part, people)
        return records, groups, parts

    def records(self, people: Microdata, table: pa.Table) -> Records:
        """The columns to mask as arrays."""
        return Records.of(table, people.schema, chosen_columns(self, people))

    def check(self, records: Records, people: Microdata) -> None:
        """Refuse parameters that the records of a stratum cannot have (k above their number…), before anything is changed."""

    @abstractmethod
    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Mask the records of one stratum."""

    def in_engine(self, rows: EngineRows) -> EngineChange:
        """Mask rows that stay in their engine, by plans; refused where the method cannot be computed there."""
        from sfumato.masking.engine_rows import needs_all_records

        raise needs_all_records(self)

    @abstractmethod
    def keeps(self) -> tuple[Kept, ...]:
        """What the masked data have in common with the original, with these parameters and `whole=False`."""

    def claims(self, people: Microdata) -> tuple[ClassGuarantee, ...]:
        """Guarantees that the masked table keeps by construction; they are verified when it is published."""
        return ()

    def columns_of(self, schema: Schema, names: Sequence[str]) -> tuple[str, ...]:
        """Which of the columns `names` are masked: those of the parameters, or the quasi-identifiers; for synthetic data all
        that may be published."""
        if self.columns is not None:
            return self.columns
        if self.synthetic:
            left = {*schema.with_role("identifier"), *schema.with_role("unit"), *(self.strata or ())}
            return tuple(name for name in names if name in schema.columns and name not in left)
        return tuple(name for name in schema.quasi if name not in (self.strata or ()))

    def changed_columns(self, names: Sequence[str], published: Plain) -> tuple[str, ...]:
        """Those of the columns `names` that it masks whose values it changes: none, where it only chooses records. `published` is
        what it tells about a stratum."""
        return () if self.selects else tuple(names)

    def tells(self, names: tuple[str, ...]) -> Plain:
        """What is published about the records of a stratum besides the parameters, when `names` are masked: the value where it
        follows from them, a `Test` of its form where it follows from the data."""
        return {}

    def could_tell(self, facts: Plain, names: tuple[str, ...], visible: VisibleTable) -> bool:
        """Whether this can be what was published about a stratum; a stranger may have written it."""
        own = self.tells(names)
        return set(facts) <= set(own) and all(fits(own[name], value, visible) for name, value in facts.items())

    @property
    def draws(self) -> bool:
        """Whether chance decides what is published, with these parameters."""
        return not self.certain

    @property
    def truthful(self) -> bool:
        """Whether no value is put in place of another, only what it lies under, or no value is changed at all."""
        return self.generalises or self.selects

    @property
    def keeps_rows(self) -> bool:
        """Whether every record that comes in goes out as one row."""
        return not (self.selects or self.synthetic)

    def disproved_by(self, shown: ShownRows) -> bool:
        """Whether rows show that they were not made with these parameters; never true of rows that were. A stranger may have
        written both, and what the rows do not show disproves nothing. A mask of numbers leaves numbers."""
        return self.handles == {"number"} and not shown.are_numbers(shown.columns_of(self))

    def described(self) -> dict[str, object]:
        """Name and parameters, those of the method before those that all masks have."""
        listed = parameters(self)
        shared = {field.name for field in fields(Mask)}
        return {"name": type(self).__name__, **dict(sorted(listed.items(), key=lambda entry: entry[0] in shared))}

    def _outcome(
        self, people: Microdata, table: pa.Table, records: Records, groups: list[Int], changes: list[Change]
    ) -> Outcome[Masked]:
        masked_table, rows = assembled(self, people, table, records, groups, changes)
        facts = partial(transparency_of, self, records.names, [change.published for change in changes])
        masked = Masked(masked_table, people.schema, records.names, rows, facts, truthful=self.truthful)
        return Outcome(masked, self.claims(people), self.described(), MappingProxyType(joined_details(changes)))


@dataclass(frozen=True, eq=False)
class Context:
    """What a method may look at besides the columns it masks: the data with its schema, all rows as an Arrow table, the
    positions of this stratum's records in it, and where to say how far the work is."""

    people: Microdata = field(repr=False)
    table: pa.Table = field(repr=False)
    rows: Int = field(repr=False)
    progress: Progress = field(repr=False)

    def column(self, name: str) -> NumberColumn | CategoryColumn:
        """Another column of the same records (a confidential attribute, a predictor)."""
        from sfumato.data.records import Records as Read

        return Read.of(self.table.select([name]), self.people.schema, [name]).take(self.rows).columns[0]
