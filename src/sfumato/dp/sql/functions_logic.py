"""Conditions and choices of a query: comparisons, AND and OR, CASE, COALESCE, NULLIF, CAST."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.dispatch import Resolve, lower, rule
from sfumato.dp.sql.term import Term, as_number, condition, constant, merged, null
from sfumato.engines import expressions as e
from sfumato.engines.expressions import Value

_COMPARISONS: Mapping[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "is",
}
_TYPES: Mapping[str, str] = {
    "INT": "integer", "BIGINT": "integer", "SMALLINT": "integer", "TINYINT": "integer",
    "DOUBLE": "number", "FLOAT": "number", "DECIMAL": "number",
    "TEXT": "string", "VARCHAR": "string", "CHAR": "string", "BOOLEAN": "boolean", "DATE": "date",
    "TIMESTAMP": "datetime", "TIMESTAMPNTZ": "datetime", "DATETIME": "datetime",
}  # fmt: skip


@rule(exp.Column)
def _column(node: exp.Column, resolve: Resolve) -> Term:
    return resolve(node)


@rule(exp.Boolean)
def _boolean(node: exp.Boolean, resolve: Resolve) -> Term:
    return constant(bool(node.this))


@rule(exp.Null)
def _null(node: exp.Null, resolve: Resolve) -> Term:
    return null()


@rule(exp.Paren)
def _paren(node: exp.Paren, resolve: Resolve) -> Term:
    return lower(node.this, resolve)


@rule(exp.And, exp.Or)
def _and_or(node: exp.And | exp.Or, resolve: Resolve) -> Term:
    terms = (_truth(node.this, resolve), _truth(node.expression, resolve))
    return condition(e.And(terms) if isinstance(node, exp.And) else e.Or(terms))


@rule(exp.Not)
def _not(node: exp.Not, resolve: Resolve) -> Term:
    return condition(e.Not(_truth(node.this, resolve)))


@rule(*_COMPARISONS)
def _compare(node: exp.Binary, resolve: Resolve) -> Term:
    left, right = _alike(lower(node.this, resolve), lower(node.expression, resolve))
    return condition(e.Compare(_COMPARISONS[type(node)], left.expression, right.expression))  # type: ignore[arg-type]


def _alike(left: Term, right: Term) -> tuple[Term, Term]:
    """Both sides of a comparison in comparable kinds: a text beside a date is read as a date."""
    for one, other, swapped in ((left, right, False), (right, left, True)):
        if other.text is not None and one.kind in ("date", "datetime"):
            read = _moment(other.text, one.kind)
            return (read, one) if swapped else (one, read)
        if other.missing and one.kind != other.kind:
            none = null(one.kind)
            return (none, one) if swapped else (one, none)
    if left.kind != right.kind and not (left.numeric and right.numeric):
        raise Unsupported(f"a {left.kind} cannot be compared with a {right.kind}")
    return left, right


def _moment(text: str, kind: str) -> Term:
    try:
        if kind == "date":
            return constant(datetime.date.fromisoformat(text))
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise Unsupported("a date in the query is not written as 'YYYY-MM-DD'") from None
    if moment.tzinfo is not None:
        raise Unsupported("a moment in the query has a time zone; write it without: TIMESTAMP '2026-01-31 10:00'")
    return constant(moment)


def _truth(node: exp.Expression, resolve: Resolve) -> e.Expression:
    term = lower(node, resolve)
    if term.missing:
        return e.Literal(None, "boolean")
    if term.kind != "boolean":
        raise Unsupported(f"a {term.kind} stands where a condition is needed; compare it with something")
    return term.expression


@rule(exp.Between)
def _between(node: exp.Between, resolve: Resolve) -> Term:
    term = lower(node.this, resolve)
    parts = []
    for operator, key in ((">=", "low"), ("<=", "high")):
        left, right = _alike(term, lower(node.args[key], resolve))
        parts.append(e.Compare(operator, left.expression, right.expression))  # type: ignore[arg-type]
    return condition(e.And(tuple(parts)))


@rule(exp.In)
def _one_of(node: exp.In, resolve: Resolve) -> Term:
    if node.args.get("query") is not None or node.args.get("unnest") is not None:
        raise Unsupported("IN (SELECT …) is not supported; join the other table instead")
    term = lower(node.this, resolve)
    if len(node.expressions) > 10_000:
        raise Unsupported("IN lists more than 10,000 values; put them into a public table and join it")
    values: list[Value] = []
    for entry in node.expressions:
        _, other = _alike(term, lower(entry, resolve))
        if not isinstance(other.expression, e.Literal) or other.missing:
            raise Unsupported("IN takes a list of constants")
        values.append(other.expression.value)
    return condition(e.OneOfValues(term.expression, tuple(values)))


@rule(exp.Is)
def _is(node: exp.Is, resolve: Resolve) -> Term:
    term = lower(node.this, resolve)
    if isinstance(node.expression, exp.Null):
        return condition(e.IsMissing(term.expression))
    if isinstance(node.expression, exp.Boolean):
        if term.kind != "boolean":
            raise Unsupported("IS TRUE and IS FALSE are for conditions")
        return condition(e.Compare("is", term.expression, e.Literal(bool(node.expression.this))))
    raise Unsupported("IS takes NULL, TRUE or FALSE")


@rule(exp.Case)
def _case(node: exp.Case, resolve: Resolve) -> Term:
    conditions, terms = [], []
    for branch in node.args["ifs"]:
        test = branch.this if node.this is None else exp.EQ(this=node.this.copy(), expression=branch.this.copy())
        conditions.append(_truth(test, resolve))
        terms.append(lower(branch.args["true"], resolve))
    default = node.args.get("default")
    terms.append(null() if default is None else lower(default, resolve))
    return _chosen(conditions, terms)


@rule(exp.If)
def _if(node: exp.If, resolve: Resolve) -> Term:
    otherwise = node.args.get("false")
    terms = [lower(node.args["true"], resolve), null() if otherwise is None else lower(otherwise, resolve)]
    return _chosen([_truth(node.this, resolve)], terms)


def _chosen(conditions: list[e.Expression], terms: list[Term]) -> Term:
    return merged(terms, lambda parts: e.Choose(tuple(zip(conditions, parts[:-1], strict=True)), parts[-1]))


@rule(exp.Coalesce)
def _coalesce(node: exp.Coalesce, resolve: Resolve) -> Term:
    terms = [lower(part, resolve) for part in (node.this, *node.expressions)]

    def first_known(parts: list[e.Expression]) -> e.Expression:
        *tested, last = parts
        return e.Choose(tuple((e.Not(e.IsMissing(part)), part) for part in tested), last)

    merged_term = merged(terms, first_known)
    certain = terms[-1].values is not None and None not in terms[-1].values
    if merged_term.values is not None and certain:
        return replace(merged_term, values=tuple(v for v in merged_term.values if v is not None))
    return merged_term


@rule(exp.Nullif)
def _nullif(node: exp.Nullif, resolve: Resolve) -> Term:
    return _case(
        exp.Case(
            ifs=[exp.If(this=exp.EQ(this=node.this.copy(), expression=node.expression.copy()), true=exp.Null())],
            default=node.this.copy(),
        ),
        resolve,
    )


@rule(exp.Cast, exp.TryCast)
def _cast(node: exp.Cast, resolve: Resolve) -> Term:
    wanted = _TYPES.get(node.to.this.name if hasattr(node.to.this, "name") else str(node.to.this))
    term = lower(node.this, resolve)
    if wanted is None:
        raise Unsupported("CAST takes INTEGER, DOUBLE, TEXT, BOOLEAN, DATE or TIMESTAMP")
    if term.text is not None and wanted in ("date", "datetime"):
        return _moment(term.text, wanted)
    if wanted == term.kind:
        return term
    if wanted == "number" and term.numeric:
        return as_number(term)
    if wanted == "integer" and term.numeric:
        return lower(exp.Round(this=node.this), resolve)
    if wanted == "integer" and term.kind == "boolean":
        return Term(e.Cast(term.expression, "integer"), "integer", Fraction(0), Fraction(1))
    if wanted in e.CASTS[term.kind]:
        return Term(e.Cast(term.expression, wanted), wanted)
    raise Unsupported(f"a {term.kind} cannot be cast to {wanted}: some values would fail")
