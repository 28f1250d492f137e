"""One artefact, charged like a question: refused before the charge where it can be, silent about the data after it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sfumato.core.errors import Cancelled, ParameterError, SourceError
from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.core.outcome import Outcome
from sfumato.core.progress import Progress
from sfumato.core.randomness import Randomness, default
from sfumato.data.microdata import Microdata
from sfumato.dp.algorithms.base import Algorithm
from sfumato.dp.book import Book
from sfumato.dp.protected_unit import as_decided
from sfumato.dp.sql.catalogue import KnownTable
from sfumato.ledger.amounts import LossAmount


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
) -> Outcome[Any]:
    """Reserve, run, commit the digest of the result.

    What an algorithm computes without noise, for the owner of the data, is left out unless the owner asks.
    """
    from sfumato.dp.sql.identity import digest, result_digest

    if not isinstance(algorithm, Algorithm):
        raise ParameterError("release takes an algorithm that makes one artefact, such as sf.dp.PrivateHistogram")
    if table.data is None:
        raise ParameterError(f"'{table.name}' is a public table; an algorithm protects a private one")
    untyped = {column.name for column in table.columns.values() if column.untyped}
    # The algorithm refuses to read them, in the rehearsal already.
    data = replace(_with_unit(table.data, table.unit), inferred=table.data.inferred | untyped)
    _check_order(algorithm, data)
    # A run on no rows meets every refusal that depends on schema and parameters, before anything is charged.
    rehearsed = algorithm.run(_without_rows(data), randomness=default("refusals first"))
    about = _about(rehearsed, algorithm, table.unit)
    asked = {"method": {"name": algorithm.name, **algorithm.parameters()}, "run": secrets.token_hex(16)}
    reservation = book.reserve(
        dataset,
        analyst,
        LossAmount.of(algorithm.loss()),
        digest(asked),
        unit=about.unit,
        neighbours=about.neighbours,
    )
    book.draw(reservation)
    with constant_failure():
        outcome = algorithm.run(data, randomness=randomness, progress=progress)
    stored = book.commit(reservation, {"artefact": asked["method"], "sha256": result_digest(outcome.result)})
    details = {**outcome.details, "ledger_entry": stored.entry or None, "dataset": dataset}
    return replace(outcome, details=details if for_owner else {**details, "owner": {}})


@contextmanager
def constant_failure() -> Iterator[None]:
    """Whatever goes wrong after the charge is told in one sentence, so that it tells nothing about the data."""
    try:
        yield
    except Cancelled:
        raise
    except Exception:
        raise SourceError(
            "the engine could not answer; the question stays charged, because giving it back could tell something about the "
            "data. Ask the owner to run the same question on a copy of the table"
        ) from None


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


def _without_rows(data: Microdata) -> Microdata:
    from sfumato.engines.memory import MemoryRelation

    return replace(data, relation=MemoryRelation(data.relation.schema().empty_table()))
