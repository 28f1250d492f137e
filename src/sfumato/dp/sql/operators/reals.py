"""Real numbers of a query: quotients, roots, logarithms and exponentials, each missing where it has no value."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.operators import box
from sfumato.dp.sql.operators.base import (
    Arrays,
    Boxes,
    Cell,
    Cells,
    Floats,
    Operator,
    OverAnswers,
    Terms,
    arguments,
    array_of_one,
    array_of_several,
    constant_of,
    image_of,
    of_one,
    of_two,
    rising,
    takes,
)
from sfumato.dp.sql.operators.box import Box
from sfumato.dp.sql.operators.term import Term, as_number, bounded, finite
from sfumato.engines import expressions as e
from sfumato.engines.functions import numbers as f
from sfumato.engines.functions import reals as r

_NUMBERS = takes("number")
#: The ends of a range, infinite where nothing bounds it.
_Range = tuple[Fraction | float, Fraction | float]


# Over rows -------------------------------------------------------------------------------------------------------------


def _divide(node: exp.Div, terms: Terms) -> Term:
    left, right = terms(node.this), terms(node.expression)
    if not (left.numeric and right.numeric):
        raise Unsupported(f"'/' needs two numbers, not a {left.kind} and a {right.kind}")
    return _by_constant(left, right.constant) if right.constant is not None else _quotient(left, right)


def _by_constant(term: Term, divisor: Fraction) -> Term:
    if not Fraction(1, 10**9) <= abs(divisor) <= 10**9:
        raise Unsupported("a constant divisor must lie between 1e-9 and 1e9 in size")
    term = as_number(bounded(term))
    ends = [None if end is None else end / divisor for end in (term.low, term.high)]
    if divisor < 0:
        ends.reverse()
    return Term(f.Divide(term.expression, float(divisor)), "number", ends[0], ends[1], sure=False)


def _quotient(left: Term, right: Term) -> Term:
    """A quotient of two columns, missing where the divisor is zero; bounded where that follows from the bounds of both."""
    left, right = bounded(left), bounded(right)
    low, high = _product(_range(left), _reciprocals(right))
    ends = [None if math.isinf(end) else finite(Fraction(end)) for end in (low, high)]
    hint = left.hint or right.hint or "it is divided by a number that may be as near to 0 as one likes"
    expression = e.Arithmetic("/", as_number(left).expression, as_number(right).expression)
    return Term(expression, "number", ends[0], ends[1], sure=False, hint=hint if None in ends else "")


def _range(term: Term) -> _Range:
    return (-math.inf if term.low is None else term.low), (math.inf if term.high is None else term.high)


def _reciprocals(divisor: Term) -> _Range:
    """Between which ends 1 over a divisor lies where that is not zero; a whole number is then at least 1 in size."""
    low, high = _range(divisor)
    least: Fraction | int = 0 if divisor.kind == "number" else 1
    ends: list[Fraction | float] = []
    if high > 0:
        nearest = max(low, Fraction(least))
        ends += [0 if math.isinf(high) else 1 / Fraction(high), math.inf if nearest == 0 else 1 / Fraction(nearest)]
    if low < 0:
        nearest = min(high, -Fraction(least))
        ends += [0 if math.isinf(low) else 1 / Fraction(low), -math.inf if nearest == 0 else 1 / Fraction(nearest)]
    return (min(ends), max(ends)) if ends else (Fraction(0), Fraction(0))


def _product(one: _Range, other: _Range) -> _Range:
    corners = [0 if 0 in (a, b) else a * b for a in one for b in other]
    return min(corners), max(corners)


def _whole_division(node: exp.IntDiv, terms: Terms) -> Term:
    return terms(exp.Floor(this=exp.Div(this=node.this, expression=node.expression)))


def _real(term: Term, what: str) -> Term:
    if not term.numeric:
        raise Unsupported(f"{what} needs a number, not a {term.kind}")
    return as_number(bounded(term))


def _square_root(node: exp.Sqrt, terms: Terms) -> Term:
    term = _real(terms(node.this), "SQRT")
    ends = [None if end is None else Fraction(math.sqrt(max(float(end), 0.0))) for end in (term.low, term.high)]
    return Term(r.Root(term.expression), "number", ends[0] or Fraction(0), ends[1], sure=False, hint=term.hint)


def _logarithm_of_rows(node: exp.Ln | exp.Log, terms: Terms) -> Term:
    *written, argument = arguments(node)
    base = math.e if isinstance(node, exp.Ln) else 10.0
    if written:
        base = float(constant_of(terms(written[0]), "the base of LOG"))
    if not r.is_base(base):
        raise Unsupported("the base of LOG lies above 0 and at least 0.1 away from 1; for others write LN(a) / LN(base)")
    raw = terms(argument)
    term = _real(raw, "a logarithm")
    logarithm = r.Logarithm(term.expression, base)
    # The least number above zero is 1 among whole ones, and none among others.
    least = Fraction(1) if raw.kind != "number" else Fraction(0)
    low = None if term.low is None else max(term.low, least)
    high = None if term.high is None else max(term.high, least)
    ends = [None if not end else Fraction(logarithm.of(float(end))) for end in (low, high)]
    if base < 1:
        ends.reverse()
    hint = term.hint or "a logarithm has no lower end where numbers may be as near to 0 as one likes"
    return Term(logarithm, "number", ends[0], ends[1], sure=False, hint="" if None not in ends else hint)


def _exponential(node: exp.Exp, terms: Terms) -> Term:
    term = _real(terms(node.this), "EXP")
    limit = Fraction(r.EXPONENT)
    high = None if term.high is None or term.high > limit else Fraction(math.exp(term.high))
    low = Fraction(0) if term.low is None or term.low < -limit else Fraction(math.exp(min(term.low, limit)))
    hint = term.hint or "an exponential has no upper end where its argument has none"
    return Term(r.PowerOfE(term.expression), "number", low, high, sure=False, hint="" if high is not None else hint)


# Over answers ----------------------------------------------------------------------------------------------------------


def _divided(left: Floats, right: Floats) -> Floats:
    """A divisor that has another sign than the one shown may have been zero in between: no value there."""
    return left / np.where(np.sign(right) == np.sign(right[:, :1]), right, np.nan)


def _to_whole_part(node: exp.IntDiv, cells: Cells) -> tuple[float, exp.Expression] | None:
    return 1.0, exp.Div(this=node.this.copy(), expression=node.expression.copy())


def _last(node: exp.Expression, cells: Cells) -> exp.Expression:
    return arguments(node)[-1]


def _root(part: Box) -> Box:
    return part.above(0.0).rising(np.sqrt)


def _logarithm(part: Box) -> Box:
    return part.above(0.0, strictly=True).rising(np.log)


def _natural(values: Floats) -> Floats:
    return np.where(values > 0, np.log(values), np.nan)


def _base(node: exp.Log, cells: Cells) -> float | None:
    """The base of a logarithm, 10 where none is written; None for one that has no logarithms."""
    base = cells(node.this) if node.expression is not None else 10
    usable = isinstance(base, (int, float)) and r.is_base(float(base))
    return float(base) if usable else None


def _log_cell(node: exp.Log, cells: Cells) -> Cell:
    base, value = _base(node, cells), cells(arguments(node)[-1])
    if base is None or value is None or value <= 0:
        return None
    exact = {10.0: math.log10, 2.0: math.log2}.get(base)
    return math.log(value) / math.log(base) if exact is None else exact(value)


def _log_array(node: exp.Log, arrays: Arrays) -> Floats | None:
    parts = [arrays(part) for part in arguments(node)]
    base = np.array([[10.0]]) if len(parts) == 1 else parts[0]
    values = parts[-1]
    return None if base is None or values is None else _natural(values) / np.log(base)


def _log_image(node: exp.Log, boxes: Boxes) -> Box | None:
    *written, argument = [boxes(part) for part in arguments(node)]
    if argument is None or None in written:
        return None
    base = 10.0 if not written or written[0] is None else float(written[0].low.flat[0])
    exact = not written or (written[0] is not None and bool(np.all(written[0].low == written[0].high)))
    if not exact or not r.is_base(base):
        return None
    natural = _logarithm(argument)
    scaled = natural.rising(lambda ends: ends / abs(math.log(base)))
    return scaled if base > 1 else scaled.minus()


def _whole_quotient(one: Box, other: Box) -> Box:
    return box.divided(one, other).rising(np.floor)


_ENGINES = "in rows to 12 digits after the point, alike on every engine"

ROWS = (
    Operator(
        "a / b", (exp.Div,),
        "quotient of real numbers (7 / 2 is 3.5), missing where b is 0; in rows it has bounds where b cannot come near 0",
        _divide,
        OverAnswers(
            _NUMBERS, of_two(lambda a, b: a / b), array_of_several(_divided), linear="quotient", divisor=_last,
            image=image_of(box.divided),
        ),
        reads=("typed", "safe"),
    ),
    Operator(
        "a // b", (exp.IntDiv,), "`FLOOR(a / b)`", _whole_division,
        OverAnswers(
            _NUMBERS, of_two(lambda a, b: math.floor(a / b)), rounding=_to_whole_part, divisor=_last,
            image=image_of(_whole_quotient),
        ),
    ),
    Operator(
        "SQRT(a)", (exp.Sqrt,), "root, missing below 0", _square_root,
        OverAnswers(_NUMBERS, of_one(lambda a: math.sqrt(a) if a >= 0 else None), array_of_one(np.sqrt), image=image_of(_root)),
    ),
    Operator(
        "LN(a)", (exp.Ln,), f"natural logarithm, missing from 0 down; {_ENGINES}", _logarithm_of_rows,
        OverAnswers(
            _NUMBERS, of_one(lambda a: math.log(a) if a > 0 else None), array_of_one(_natural), divisor=_last,
            image=image_of(_logarithm),
        ),
    ),
    Operator(
        "LOG(a)", (exp.Log,),
        f"logarithm to base 10, also `LOG10(a)`; `LOG2(a)` and `LOG(base, a)` to another constant base. As `LN`, {_ENGINES}",
        _logarithm_of_rows, OverAnswers(_NUMBERS, _log_cell, _log_array, divisor=_last, image=_log_image),
    ),
    Operator(
        "EXP(a)", (exp.Exp,), "exponential, missing where it is too large: in rows above 1e149", _exponential,
        OverAnswers(_NUMBERS, of_one(math.exp), array_of_one(np.exp), image=image_of(rising(np.exp))),
    ),
)  # fmt: skip
