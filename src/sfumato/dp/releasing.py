"""One artefact, charged like a question: refused before the charge where it can be, silent about the data after it."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sfumato.core.declared import parameters
from sfumato.core.errors import ParameterError
from sfumato.core.guarantees.loss import RECORD, LossGuarantee
from sfumato.core.outcome import Outcome
from sfumato.core.plain_data import PlainDict
from sfumato.core.progress import Progress
from sfumato.core.randomness import Randomness, default
from sfumato.data.microdata import Microdata
from sfumato.data.readers.read_result import UNREADABLE
from sfumato.data.schema import Column
from sfumato.dp.algorithms.base import Algorithm
from sfumato.dp.book import Book, drawn
from sfumato.dp.protected_unit import as_decided
from sfumato.dp.sql.reading.catalogue import KnownTable
from sfumato.engines.canonical import kind_of_type
from sfumato.engines.class_queries import ROWS
from sfumato.engines.memory import MemoryRelation
from sfumato.engines.plan import Scan
from sfumato.engines.snapshots import held_still
from sfumato.ledger.accounts import Charge, Protected
from sfumato.ledger.amounts import LossAmount

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ArtefactCost:
    """What one artefact would cost and hold, before anything is drawn.

    `reads` says of each column that is read what the schema declares; `released` names the columns of the result with their
    kinds, and is None where that is no table.
    """

    method: PlainDict
    loss: LossGuarantee
    unit: str
    counted: str
    reads: Mapping[str, str]
    released: Mapping[str, str] | None

    def to_mapping(self) -> PlainDict:
        """Plain data, ready for JSON."""
        loss = {"name": self.loss.name, **parameters(self.loss)}
        released = None if self.released is None else dict(self.released)
        return {**vars(self), "loss": loss, "reads": dict(self.reads), "released": released}

    def __str__(self) -> str:
        from sfumato.dp.sql.asking.explanation import cost_text

        lines = [f"costs {cost_text(self.loss)} of the budget, protecting one {self.unit} ({self.loss.compared})"]
        lines += [self.counted] if self.counted else []
        lines += [f"  reads '{name}': {said}" for name, said in self.reads.items()]
        named = "plain data" if self.released is None else ", ".join(f"{name} ({kind})" for name, kind in self.released.items())
        return "\n".join([*lines, f"would release: {named}"])


def charged_run(
    algorithm: Algorithm,
    table: KnownTable,
    book: Book,
    dataset: str,
    analyst: str,
    *,
    randomness: Randomness,
    progress: Progress,
    for_owner: bool = False,
) -> Outcome[Any]:  # the artefact
    """Reserve, run, commit the digest of the result.

    What an algorithm computes without noise, for the owner of the data, is left out unless the owner asks.
    """
    from sfumato.dp.sql.asking.identity import digest, result_digest

    data, rehearsed, columns = _rehearsed(algorithm, table)
    _check_rights(data.relation, columns)
    charge = Charge(LossAmount.of(algorithm.loss()), Protected.of(_about(rehearsed, algorithm, table.unit)))
    request = {"method": {"name": algorithm.name, **algorithm.parameters()}, "run": secrets.token_hex(16)}
    reservation = book.reserve(dataset, analyst, charge, digest(request))
    with drawn(book, reservation), held_still(data.relation) as relation:
        outcome = algorithm.run(replace(data, relation=relation), randomness=randomness, progress=progress)
    stored = book.commit(reservation, {"artefact": request["method"], "sha256": result_digest(outcome.result)})
    details = {**outcome.details, "ledger_entry": stored.entry or None, "dataset": dataset}
    if publication := data.schema.publication.stated():
        details["publication"] = publication
    counted = _counted(algorithm, table, columns)
    method = {**outcome.method, **({"contribution": counted} if counted else {})}
    return replace(outcome, method=method, details=details if for_owner else {**details, "owner": {}})


def cost_of_artefact(algorithm: Algorithm, table: KnownTable) -> ArtefactCost:
    """What a run would cost and release, from schema and parameters alone: no row is read."""
    data, rehearsed, columns = _rehearsed(algorithm, table)
    fields = rehearsed.result.schema if hasattr(rehearsed.result, "schema") else None
    return ArtefactCost(
        method={"name": algorithm.name, **algorithm.parameters()},
        loss=_about(rehearsed, algorithm, table.unit),
        unit=table.unit or RECORD,
        counted=_counted(algorithm, table, columns),
        reads={name: _declared(data.schema.columns[name]) for name in columns if name in data.schema.columns},
        released=None if fields is None else {each.name: kind_of_type(each.type) or str(each.type) for each in fields},
    )


def _rehearsed(algorithm: Algorithm, table: KnownTable) -> tuple[Microdata, Outcome[Any], tuple[str, ...]]:
    """The table as the algorithm gets it, what a run on no rows returns, and which columns that reads. It meets every refusal
    that depends on schema and parameters, before anything is charged."""
    if not isinstance(algorithm, Algorithm):
        raise ParameterError("release takes an algorithm that makes one artefact, such as sf.dp.PrivateHistogram")
    if table.data is None:
        raise ParameterError(f"'{table.name}' is a public table; an algorithm protects a private one")
    untyped = {column.name for column in table.columns.values() if column.untyped}
    # The algorithm refuses to read them, in the rehearsal already.
    data = replace(_with_unit(table.data, table.unit), inferred=table.data.inferred | untyped)
    _check_order(algorithm, data)
    rehearsal = _WithoutRows(data.relation.schema())
    rehearsed = algorithm.run(replace(data, relation=rehearsal), randomness=default("refusals first"))
    return data, rehearsed, tuple(rehearsal.read)


def _counted(algorithm: Algorithm, table: KnownTable, columns: Sequence[str]) -> str:
    """What of each unit counts, and which rows are left out, in words."""
    typed = any(table.columns[name].field.kind != "string" for name in columns if name in table.columns)
    return ". ".join(filter(None, [algorithm.counted(table.unit), UNREADABLE if typed else None]))


def _declared(column: Column) -> str:
    """What the schema says of the values of a column, in a few words."""
    said: list[str] = [column.type or "any type"]
    said += [f"from {column.bounds[0]:,.6g} to {column.bounds[1]:,.6g}"] if column.bounds else []
    said += [f"{len(column.domain):,} values"] if column.domain else []
    return ", ".join([*said, *([str(column.source)] if column.bounds or column.domain else [])])


def _about(rehearsed: Outcome[Any], algorithm: Algorithm, unit: str | None) -> LossGuarantee:
    """The guarantee as the certificate will state it: `loss()` alone does not know the schema and so not the unit."""
    claimed = [each for each in rehearsed.claimed if isinstance(each, LossGuarantee)]
    return claimed[0] if claimed else algorithm.loss().about(unit=unit)


def _check_order(algorithm: Algorithm, data: Microdata) -> None:
    from sfumato.dp.algorithms.contributions import check_order

    if data.schema.unit is not None and getattr(algorithm, "bounding", None) == "truncate":
        check_order(data, "truncate", getattr(algorithm, "order", None))


def _with_unit(data: Microdata, unit: str | None) -> Microdata:
    """The data under a schema whose unit is the session's."""
    return replace(data, schema=as_decided(data.schema, unit))


def _check_rights(relation: Any, columns: Iterable[str]) -> None:
    """Let the engine refuse, before the charge, what does not depend on any record."""
    read = tuple(relation.fields[name] for name in columns if name in relation.fields) if hasattr(relation, "rehearse") else ()
    if read:
        relation.rehearse([Scan(ROWS, read)])


class _WithoutRows(MemoryRelation):
    """A table of no rows that notes which columns are read."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema.empty_table())
        self.read: dict[str, None] = {}

    def distinct_units(self, unit: str) -> MemoryRelation:
        """The same, noting in the same place."""
        apart = super().distinct_units(unit)
        if apart is self:
            return self
        noting = _WithoutRows(apart.schema())
        noting.read = self.read
        return noting

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """No rows."""
        self.read.update(dict.fromkeys(self.schema().names if columns is None else columns))
        yield from super().batches(columns)
