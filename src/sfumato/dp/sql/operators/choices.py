"""Choices and conversions of a query: CASE, IF, COALESCE, NULLIF, CAST."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.core.texts import with_article
from sfumato.dp.sql.operators import box
from sfumato.dp.sql.operators.base import (
    Boxes,
    Cell,
    Cells,
    Kinds,
    Operator,
    OverAnswers,
    Terms,
    arguments,
    array_of_several,
    expect,
    image_by_twos,
    image_of,
    one_kind,
    same_kind,
)
from sfumato.dp.sql.operators.box import Box
from sfumato.dp.sql.operators.conditions import UNCHANGED, check_date, comparable, equal, moment, truth
from sfumato.dp.sql.operators.term import Term, as_number, merged, null
from sfumato.engines import expressions as e

_TYPES: Mapping[str, str] = {
    "INT": "integer", "BIGINT": "integer", "SMALLINT": "integer", "TINYINT": "integer",
    "DOUBLE": "number", "FLOAT": "number", "DECIMAL": "number",
    "TEXT": "string", "VARCHAR": "string", "CHAR": "string", "BOOLEAN": "boolean", "DATE": "date",
    "TIMESTAMP": "datetime", "TIMESTAMPNTZ": "datetime", "DATETIME": "datetime",
}  # fmt: skip


# Over rows -------------------------------------------------------------------------------------------------------------


def _case(node: exp.Case, terms: Terms) -> Term:
    conditions, values = [], []
    for branch in node.args["ifs"]:
        test = branch.this if node.this is None else exp.EQ(this=node.this.copy(), expression=branch.this.copy())
        conditions.append(truth(test, terms))
        values.append(terms(branch.args["true"]))
    default = node.args.get("default")
    values.append(null() if default is None else terms(default))
    return _chosen(conditions, values)


def _if(node: exp.If, terms: Terms) -> Term:
    otherwise = node.args.get("false")
    values = [terms(node.args["true"]), null() if otherwise is None else terms(otherwise)]
    return _chosen([truth(node.this, terms)], values)


def _chosen(conditions: list[e.Expression], values: list[Term]) -> Term:
    return merged(values, lambda parts: e.Choose(tuple(zip(conditions, parts[:-1], strict=True)), parts[-1]))


def _coalesce(node: exp.Coalesce, terms: Terms) -> Term:
    values = [terms(part) for part in (node.this, *node.expressions)]

    def first_present(parts: list[e.Expression]) -> e.Expression:
        *tested, last = parts
        return e.Choose(tuple((e.Not(e.IsMissing(part)), part) for part in tested), last)

    chosen = merged(values, first_present)
    certain = values[-1].values is not None and None not in values[-1].values
    if chosen.values is not None and certain:
        return replace(chosen, values=tuple(value for value in chosen.values if value is not None))
    return chosen


def _nullif(node: exp.Nullif, terms: Terms) -> Term:
    return _case(
        exp.Case(
            ifs=[exp.If(this=exp.EQ(this=node.this.copy(), expression=node.expression.copy()), true=exp.Null())],
            default=node.this.copy(),
        ),
        terms,
    )


def _cast(node: exp.Cast, terms: Terms) -> Term:
    target = _TYPES.get(node.to.this.name if hasattr(node.to.this, "name") else str(node.to.this))
    term = terms(node.this)
    if target is None:
        raise Unsupported("CAST takes INTEGER, DOUBLE, TEXT, BOOLEAN, DATE or TIMESTAMP")
    if term.text is not None and target in ("date", "datetime"):
        return moment(term.text, target)
    if target == term.kind:
        return term
    if target == "number" and term.numeric:
        return as_number(term)
    if target == "integer" and term.numeric:
        return terms(exp.Round(this=node.this))
    if target == "integer" and term.kind == "boolean":
        return Term(e.Cast(term.expression, "integer"), "integer", Fraction(0), Fraction(1))
    if target in e.CASTS[term.kind]:
        return Term(e.Cast(term.expression, target), target)
    raise Unsupported(f"{with_article(term.kind)} cannot be cast to {target}: some values would fail")


# Over answers ----------------------------------------------------------------------------------------------------------


def _case_kind(node: exp.Case, kinds: Kinds) -> str | None:
    branches = node.args["ifs"]
    if node.this is None:
        expect((kinds(branch.this) for branch in branches), "boolean", node)
    else:
        comparable([node.this, *(branch.this for branch in branches)], kinds, node)
    default = node.args.get("default")
    values = (*(branch.args["true"] for branch in branches), *([default] if default else []))
    return same_kind((kinds(part) for part in values), node)


def _cast_kind(node: exp.Cast, kinds: Kinds) -> str | None:
    source = kinds(node.this)
    if _type_name(node) == "DATE" and source == "string":
        check_date(node.this)
        return "date"
    if source not in ("number", None):
        raise Unsupported("CAST over aggregates is for numbers")
    return source


def _type_name(node: exp.Expression) -> str:
    return str(getattr(node.args["to"].this, "name", ""))


def branch_taken(node: exp.Case, cells: Cells) -> int:
    """Which branch of a CASE is taken, counted from 0; as many as there are where none is."""
    branches = node.args["ifs"]
    for number, branch in enumerate(branches):
        tested = cells(branch.this)
        if tested is True if node.this is None else equal(cells(node.this), tested):
            return number
    return len(branches)


def branch_value(node: exp.Case, number: int) -> exp.Expression:
    """What a CASE is in that branch."""
    branches = node.args["ifs"]
    chosen = branches[number].args["true"] if number < len(branches) else node.args.get("default")
    return exp.Null() if chosen is None else chosen


def _case_cell(node: exp.Case, cells: Cells) -> Cell:
    return cells(branch_value(node, branch_taken(node, cells)))


def _first_present(node: exp.Coalesce, cells: Cells) -> Cell:
    return next((value for part in arguments(node) if (value := cells(part)) is not None), None)


def _unless_equal(node: exp.Nullif, cells: Cells) -> Cell:
    value = cells(node.this)
    return None if value == cells(node.expression) else value


def _cast_cell(node: exp.Cast, cells: Cells) -> Cell:
    value = cells(node.this)
    kind = _type_name(node)
    if kind == "DATE" and isinstance(value, str):
        return datetime.date.fromisoformat(value)
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if "INT" in kind:
        return math.floor(value + 0.5) if math.isfinite(value) else None
    return float(value)


def _cast_rounding(node: exp.Cast, cells: Cells) -> tuple[float, exp.Expression] | None:
    return (1.0, node.this) if "INT" in _type_name(node) else None


def _cast_image(node: exp.Cast, boxes: Boxes) -> Box | None:
    part = boxes(node.this)
    if part is None or "INT" not in _type_name(node):
        return part
    return part.rising(lambda ends: np.floor(ends + 0.5))


def _case_image(node: exp.Case, boxes: Boxes) -> Box | None:
    branches = node.args["ifs"]
    tests = [branch.this for branch in branches]
    if node.this is not None:
        tests = [exp.EQ(this=node.this.copy(), expression=test.copy()) for test in tests]
    conditions = [boxes(test) for test in tests]
    values = [boxes(branch_value(node, number)) for number in range(len(branches) + 1)]
    whens, thens = [each for each in conditions if each is not None], [each for each in values if each is not None]
    return box.chosen(whens, thens) if len(whens) == len(conditions) and len(thens) == len(values) else None


_CAST = OverAnswers(
    _cast_kind, _cast_cell, UNCHANGED, linear="sum", contracts="first", rounding=_cast_rounding, image=_cast_image
)

ROWS = (
    Operator(
        "CASE WHEN p THEN a ELSE b END", (exp.Case,),
        "the first value whose condition holds, else b, or missing without `ELSE`; also `CASE a WHEN b THEN …`", _case,
        OverAnswers(_case_kind, _case_cell, image=_case_image), reads=("ifs", "default"),
    ),
    Operator("IF(p, a, b)", (exp.If,), "a where p holds, else b", _if, reads=("true", "false")),
    Operator(
        "COALESCE(a, b, …)", (exp.Coalesce,), "the first value that is not missing", _coalesce,
        OverAnswers(
            one_kind, _first_present, array_of_several(lambda first, other: np.where(np.isnan(first), other, first)),
            image=image_by_twos(Box.or_else),
        ),
        reads=("is_nvl", "is_null"),
    ),
    Operator(
        "NULLIF(a, b)", (exp.Nullif,), "a, or missing where it equals b", _nullif,
        OverAnswers(
            one_kind, _unless_equal, array_of_several(lambda value, other: np.where(value == other, np.nan, value)),
            contracts="first", image=image_of(Box.unless),
        ),
    ),
    Operator(
        "CAST(a AS type)", (exp.Cast,),
        "as `INTEGER` (halves upwards), `DOUBLE`, `TEXT`, `BOOLEAN`, `DATE` or `TIMESTAMP`, where no value can fail; "
        "over answers numbers only", _cast, _CAST, reads=("to",),
    ),
    Operator("TRY_CAST(a AS type)", (exp.TryCast,), "as `CAST`", _cast, _CAST, reads=("to", "safe")),
    Operator(
        "(SELECT …)", (exp.Subquery, exp.Select),
        rows="a sub-query inside an expression is not supported, unless it reads public tables alone; join its table instead",
    ),
    Operator("EXISTS (SELECT …)", (exp.Exists,), rows="it stands in WHERE: put the condition there"),
    Operator(
        "… OVER (…)", (exp.Window,),
        rows="windows are computed over the groups of an answer, not over rows; aggregate per unit in a sub-query instead",
    ),
)  # fmt: skip
