"""One digest for one question, so that the same question is recognised and shows the same numbers."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from sfumato.core.certificate import canonical, plain
from sfumato.core.params import parameters
from sfumato.dp.sql.noise import Price
from sfumato.dp.sql.question import Question


def question_digest(question: Question, priced: Price, version: str, seed: int | str | None) -> str:
    """What is computed from what, at which cost and bounds, on which version of the data."""
    tables = {name: table_digest(table.rows) for name, table in question.tables.items() if table.rows is not None}
    asked = {
        "format": 1,
        "rows": _renumbered(repr((question.rows.plan, question.rows.unit))),
        "keys": _renumbered(repr(question.keys)),
        "measurements": _renumbered(repr(question.measurements)),
        "shown": [[column.name, column.expression.sql()] for column in question.shown],
        "having": None if question.having is None else question.having.sql(),
        "order": [[o.expression.sql(), o.descending, o.nulls_first] for o in question.order],
        "limit": [question.limit, question.offset],
        "loss": plain({"name": priced.loss.name, **parameters(priced.loss)}),
        "noise": sorted(f"{name} {noise.law} {noise.amount}" for name, noise in priced.noises.items()),
        "bounds": plain(parameters(priced.bounds)),
        "public": tables,
        "version": version,
        "seed": None if seed is None else str(seed),
    }
    return digest(asked)


def _renumbered(text: str) -> str:
    """Names of computed columns by first appearance, so that equal questions read equal."""
    seen: dict[str, str] = {}
    return re.sub(r"'([vk]\d+)'", lambda match: seen.setdefault(match[1], f"'{match[1][0]}#{len(seen)}'"), text)


def digest(value: Any) -> str:
    return hashlib.sha256(canonical(plain(value))).hexdigest()


def table_digest(table: Any) -> str:
    digest = hashlib.sha256()
    for name in table.column_names:
        digest.update(repr((name, table.column(name).to_pylist())).encode())
    return digest.hexdigest()


def result_digest(result: Any) -> str:
    if hasattr(result, "column_names"):
        return table_digest(result)
    return digest(result)
