"""An independent reading of conditions, row by row, in three-valued logic."""

from __future__ import annotations

import math

from sfumato.engines.expressions import And, Compare, Expression, IsMissing, Literal, Not, OneOfValues, Or, Reference


def truth(condition: Expression, row: dict[str, object], nan_on_top: bool) -> bool | None:
    match condition:
        case And(terms):
            found = [truth(term, row, nan_on_top) for term in terms]
            return False if False in found else None if None in found else True
        case Or(terms):
            found = [truth(term, row, nan_on_top) for term in terms]
            return True if True in found else None if None in found else False
        case Not(term):
            inner = truth(term, row, nan_on_top)
            return None if inner is None else not inner
        case IsMissing(Reference(name)):
            return row[name] is None
        case OneOfValues(Reference(name), values):
            return truth(Or(tuple(Compare("=", Reference(name), Literal(value)) for value in values)), row, nan_on_top)
        case Compare(operator, Reference(name), Literal(value)):
            held = row[name]
            if operator == "is":
                return held == value
            if held is None or value is None:
                return None
            if math.isnan(held):  # type: ignore[arg-type]
                return operator == "<>" or (nan_on_top and operator in (">", ">="))
            return {
                "=": held == value,
                "<>": held != value,
                "<": held < value,
                "<=": held <= value,
                ">": held > value,
                ">=": held >= value,
            }[operator]  # type: ignore[operator]
    raise AssertionError(condition)
