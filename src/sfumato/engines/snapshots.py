"""One state of the data for a whole run: grouped, recoded and fingerprinted must be the same rows.

PostgreSQL answers a run from one transaction, DuckDB refuses a file that changes meanwhile, and so does Spark where a frame shows
files as they are; any other frame it answers from is materialised.
Whatever pairs records by their position reads them once into this process: a table on an engine has no order of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from sfumato.core.errors import SfumatoError, SourceError
from sfumato.core.texts import counted
from sfumato.data.microdata import Microdata
from sfumato.data.recoding import RecodingTable
from sfumato.data.relation import Relation
from sfumato.engines.plan import Plan, scans
from sfumato.engines.plannable import plannable

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from sfumato.engines.plan import Field, Plan


@contextmanager
def held_still(relation: Relation) -> Iterator[Relation]:
    """The same rows, all of whose answers are about one state of the data until the end."""
    if not hasattr(relation, "snapshot"):
        yield relation
        return
    with ExitStack() as stack:
        held = stack.enter_context(relation.snapshot())
        try:
            yield held
        finally:
            with suppress(SfumatoError):  # whatever was answered was answered
                stack.close()


def held_for(stack: ExitStack, read: Sequence[tuple[Relation, Sequence[tuple[str, Plan]]]]) -> list[Relation]:
    """The same relations, held still until the end of `stack`, for plans that are known beforehand.

    With each relation come the plans that read it and what they call it. Tables of one PostgreSQL database share a transaction;
    Spark computes a frame once and keeps the columns of which at least two plans read some; columns of files are read again.
    """
    held: list[Relation] = []
    for relation, uses in read:
        if hasattr(relation, "kept"):
            fields = [{field.name for scan in scans(plan) if scan.table == name for field in scan.columns} for name, plan in uses]
            readings = [names for names in fields if names]
            if len(readings) > 1:
                relation = stack.enter_context(relation.kept(sorted(set().union(*readings))))
        elif (joined := next(filter(None, (_in_run_of(relation, other) for other in held)), None)) is not None:
            relation = joined
        else:
            relation = stack.enter_context(held_still(relation))
        held.append(relation)
    return held


def _in_run_of(relation: Relation, other: Relation) -> Relation | None:
    joined: Relation | None = relation.in_run_of(other) if hasattr(relation, "in_run_of") else None
    return joined


class Snapshot:
    """A relation held still. When the run is over it still knows how often each value of a column occurred where that was
    asked, and refuses everything else: it would be about other rows."""

    def __init__(self, relation: Relation) -> None:
        self._relation: Relation | None = relation
        self._engine = relation.engine
        self._schema = relation.schema()
        self._count = relation.count()
        self._counted: dict[str, pa.Table] = {}

    def __repr__(self) -> str:
        return f"Snapshot({self._engine}, {counted(self._count, 'row')})"

    @property
    def engine(self) -> str:
        """The engine that holds the rows."""
        return self._engine

    @property
    def held(self) -> Relation:
        """The relation itself, for plans, while the run lasts."""
        return self._open()

    def schema(self) -> pa.Schema:
        """Column names and canonical types."""
        return self._schema

    def count(self) -> int:
        """The number of rows."""
        return self._count

    def group(self, columns: Sequence[str], *, unit: str | None = None, weight: str | None = None) -> pa.Table:
        """See `Relation.group`."""
        alone = len(columns) == 1 and unit is None and weight is None
        if alone and columns[0] in self._counted:
            return self._counted[columns[0]]
        answer = self._open().group(columns, unit=unit, weight=weight)
        if alone:
            self._counted[columns[0]] = answer
        return answer

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """See `Relation.batches`."""
        yield from self._open().batches(columns)

    def recode(self, recoding: RecodingTable, keep: Sequence[str]) -> pa.Table:
        """See `Relation.recode`."""
        return self._open().recode(recoding, keep)

    def recode_counted(self, recoding: RecodingTable, keep: Sequence[str]) -> tuple[pa.Table, NDArray[np.int64] | None]:
        """The rows of `recode`; where the engine counts them, different ones only and how often each of them occurs."""
        relation = self._open()
        if hasattr(relation, "recode_counted"):
            counted: tuple[pa.Table, NDArray[np.int64]] = relation.recode_counted(recoding, keep)
            return counted
        return relation.recode(recoding, keep), None

    @property
    def fields(self) -> dict[str, Field]:
        """The columns as fields of a plan, by name."""
        return plannable(self._open()).fields

    def run(self, plan: Plan, uploads: Mapping[str, pa.Table] | None = None) -> pa.Table:
        """The answer to a plan over `rows`, about the state that is held."""
        return plannable(self._open()).run(plan, uploads)

    def note_counts(self, name: str, counted: pa.Table) -> None:
        """Remember how often each value of a column occurs, as `group([name])` answers; whoever knows it asks nobody."""
        self._counted.setdefault(name, counted)

    def close(self) -> None:
        """Let the engine go."""
        self._relation = None

    def _open(self) -> Relation:
        if self._relation is None:
            raise SourceError("the run that read this table is over, and the table may have changed since; read it again")
        return self._relation


@contextmanager
def one_state(data: Microdata) -> Iterator[Microdata]:
    """The same people for one run, all of it about one state of their table."""
    if not hasattr(data.relation, "snapshot"):
        yield data
        return
    from sfumato.engines.date_limits import refuse_other_years

    with held_still(data.relation) as relation:
        refuse_other_years(relation)
        held = Snapshot(relation)
        try:
            yield replace(data, relation=held)
        finally:
            held.close()


@contextmanager
def one_state_or_none(data: Microdata | None) -> Iterator[Microdata | None]:
    """As `one_state`, where there may be no table."""
    if data is None:
        yield None
        return
    with one_state(data) as held:
        yield held


def remember(data: Microdata, columns: Iterable[str]) -> None:
    """Count the values of these columns while the run lasts: whoever saves its release asks for them later."""
    if isinstance(data.relation, Snapshot):
        for name in columns:
            if name in data.column_names:
                data.relation.group([name])


def read_once(data: Microdata) -> Microdata:
    """The same people in this process, read in one scan: from here on the order of their records stays as it is."""
    if data.relation.engine == "memory":
        return data
    from sfumato.engines.date_limits import refuse_other_years
    from sfumato.engines.distinct_units import distinct_units, rounded
    from sfumato.engines.memory import MemoryRelation

    refuse_other_years(data.relation)
    relation = distinct_units(data.relation, data.schema.unit)
    table = replace(data, relation=relation).table()
    return replace(data, relation=MemoryRelation(table, rounded(relation)))
