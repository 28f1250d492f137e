"""Pieces of SQL from which texts are taken apart and put together."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sfumato.engines.expressions import Dialect, Kind
from sfumato.engines.sql.values import as_kind, sql_type, text_literal


def call(name: str, *arguments: exp.Expression) -> exp.Expression:
    """A function of values, each of which is copied."""
    return exp.Anonymous(this=name, expressions=[each.copy() for each in arguments])


def number(value: int) -> exp.Expression:
    """A whole number."""
    return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))


def joined(pieces: Sequence[exp.Expression]) -> exp.Expression:
    """Texts one after the other."""
    whole = pieces[0].copy()
    for each in pieces[1:]:
        whole = exp.DPipe(this=whole, expression=each.copy(), safe=True)
    return whole


def fits(text: exp.Expression, form: str, dialect: Dialect) -> exp.Expression:
    """Whether the whole text has a form; on Spark it ends in no line break."""
    if dialect == "duckdb":
        return call("REGEXP_FULL_MATCH", text, text_literal(form))
    return exp.RegexpLike(this=text.copy(), expression=text_literal(f"^(?:{form})$"))


def first_piece(text: exp.Expression, form: str, dialect: Dialect) -> exp.Expression:
    """The first part of a text that has a form; the empty text where there is none."""
    if dialect == "postgres":
        return exp.Coalesce(this=call("SUBSTRING", text, text_literal(form)), expressions=[text_literal("")])
    return call("REGEXP_EXTRACT", text, text_literal(form), number(0))


def tried(value: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
    """A cast that fails nowhere, on PostgreSQL because the form of the value was tested."""
    if dialect == "postgres":
        return as_kind(value.copy(), kind, dialect)
    return exp.TryCast(this=value.copy(), to=sql_type(kind, dialect), safe=True)
