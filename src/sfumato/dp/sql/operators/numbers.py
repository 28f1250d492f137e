"""Numbers of a query: sums and products, clamping, rounding, buckets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.operators import box
from sfumato.dp.sql.operators.base import (
    Boxes,
    Cell,
    Cells,
    Floats,
    Operator,
    OverAnswers,
    Terms,
    array_of_one,
    array_of_several,
    constant_of,
    image_by_twos,
    image_of,
    of_one,
    of_two,
    one_kind,
    rising,
    takes,
)
from sfumato.dp.sql.operators.box import Box
from sfumato.dp.sql.operators.dates import days_between, moved_by_days, moved_date
from sfumato.dp.sql.operators.term import EXACT, Term, arithmetic, as_number, bounded, clamped, constant, merged
from sfumato.engines import expressions as e
from sfumato.engines.functions import numbers as f

_NUMBERS = takes("number")
#: Floors and ceilings are held inside this.
_FARTHEST = 2**53
_ARITHMETIC: Mapping[type[exp.Expression], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}


# Over rows -------------------------------------------------------------------------------------------------------------


def _arithmetic(node: exp.Binary, terms: Terms) -> Term:
    if not isinstance(node, exp.Mul) and (term := _of_dates(node, terms)) is not None:
        return term
    return arithmetic(_ARITHMETIC[type(node)], terms(node.this), terms(node.expression))


def _of_dates(node: exp.Binary, terms: Terms) -> Term | None:
    """A sum or difference with a date in it; None without one."""
    one, other = node.this, node.expression
    if isinstance(node, exp.Add) and isinstance(one, exp.Interval):
        one, other = other, one
    sign = 1 if isinstance(node, exp.Add) else -1
    if isinstance(other, exp.Interval):
        return moved_date(terms(one), other, sign)
    left, right = terms(one), terms(other)
    if left.kind == right.kind == "date" and sign == -1:
        return days_between(left, right)
    return moved_by_days(left, right, sign) if left.kind == "date" and right.numeric else None


def _clamp(node: exp.Anonymous, terms: Terms) -> Term:
    if len(node.expressions) != 3:
        raise Unsupported("CLAMP(x, low, high) takes three arguments")
    term, low, high = (terms(argument) for argument in node.expressions)
    return clamped(term, constant_of(low, "CLAMP"), constant_of(high, "CLAMP"))


def _negative(node: exp.Neg, terms: Terms) -> Term:
    term = terms(node.this)
    value = term.constant
    if value is not None:
        return constant(-int(value) if term.kind == "integer" else -float(value))
    return arithmetic("-", constant(0), term)


def _extreme(node: exp.Least | exp.Greatest, terms: Terms) -> Term:
    sides = [bounded(terms(part)) for part in (node.this, *node.expressions)]
    least = isinstance(node, exp.Least)
    constants = [term.constant for term in sides if term.constant is not None]
    rest = [term for term in sides if term.constant is None]
    if len(rest) == 1 and constants and rest[0].numeric:
        return _limited(rest[0], min(constants) if least else max(constants), least=least)
    if not all(term.numeric for term in sides):
        raise Unsupported("LEAST and GREATEST are for numbers")
    operator = "<=" if least else ">="

    def chosen_of(parts: list[e.Expression]) -> e.Expression:
        chosen = parts[0]
        for part in parts[1:]:
            present = e.And((e.Not(e.IsMissing(chosen)), e.Not(e.IsMissing(part))))
            ordered = e.Compare(operator, chosen, part)  # type: ignore[arg-type]
            chosen = e.Choose(((e.And((present, ordered)), chosen), (present, part)), e.Arithmetic("+", chosen, part))
        return chosen

    return merged([as_number(term) for term in sides], chosen_of)


def _limited(term: Term, edge: Fraction, *, least: bool) -> Term:
    """A term and a constant: the smaller or the larger of both."""
    if term.kind != "number" and edge.denominator != 1:
        term = as_number(term)
    side = constant(int(edge) if term.kind != "number" else float(edge))
    beyond = e.Compare(">" if least else "<", term.expression, side.expression)
    chosen = e.Choose(((beyond, side.expression),), term.expression)
    low, high = term.low, term.high
    if least:
        high = edge if high is None else min(high, edge)
        low = None if low is None else min(low, edge)
    else:
        low = edge if low is None else max(low, edge)
        high = None if high is None else max(high, edge)
    return Term(chosen, term.kind, low, high)


def _absolute(node: exp.Abs, terms: Terms) -> Term:
    term = bounded(terms(node.this))
    negative = arithmetic("-", constant(0), term)
    size = merged(
        [negative, term], lambda parts: e.Choose(((e.Compare("<", term.expression, constant(0).expression), parts[0]),), parts[1])
    )
    return replace(size, low=Fraction(0), values=None)


def _sign(node: exp.Sign, terms: Terms) -> Term:
    term = bounded(terms(node.this))
    if not term.numeric:
        raise Unsupported(f"a {term.kind} has no sign")
    missing = (e.IsMissing(term.expression), e.Literal(None, "integer"))
    sides = tuple((e.Compare(side, term.expression, e.Literal(0)), e.Literal(one)) for side, one in ((">", 1), ("<", -1)))  # type: ignore[arg-type]
    low, high = (outer if end is None else (end > 0) - (end < 0) for end, outer in ((term.low, -1), (term.high, 1)))
    return Term(e.Choose((missing, *sides), e.Literal(0)), "integer", Fraction(low), Fraction(high))


def _floor(node: exp.Floor | exp.Ceil, terms: Terms) -> Term:
    if isinstance(node, exp.Ceil):
        return _to_whole_number(terms(node.this), f.Ceil, math.ceil)
    return _to_whole_number(terms(node.this), f.Floor, math.floor)


def _to_whole_number(term: Term, function: Callable[[e.Expression], e.Expression], compute: Callable[[Fraction], int]) -> Term:
    term = bounded(term)
    if not term.numeric:
        raise Unsupported(f"a {term.kind} cannot be rounded")
    low, high = (
        None if end is None else Fraction(min(max(compute(end), -_FARTHEST), _FARTHEST)) for end in (term.low, term.high)
    )
    return Term(function(term.expression), "integer", low, high, hint=term.hint)


def _round(node: exp.Round, terms: Terms) -> Term:
    digits = Fraction(0) if node.args.get("decimals") is None else constant_of(terms(node.args["decimals"]), "ROUND")
    if digits.denominator != 1 or not 0 <= digits <= 9:
        raise Unsupported("ROUND takes a whole number of digits from 0 to 9")
    term = bounded(terms(node.this))
    if term.kind == "integer" and term.high is not None and term.low is not None and max(-term.low, term.high) <= EXACT:
        return term
    if not term.numeric:
        raise Unsupported(f"a {term.kind} cannot be rounded")
    rounded = f.Rounded(term.expression, int(digits))
    low, high = (None if end is None else Fraction(rounded.of(float(end))) for end in (term.low, term.high))
    return Term(rounded, "number" if digits else "integer", low, high, hint=term.hint)


def _remainder(node: exp.Mod, terms: Terms) -> Term:
    divisor = constant_of(terms(node.expression), "MOD")
    term = bounded(terms(node.this))
    if term.kind != "integer" or divisor.denominator != 1 or not 0 < divisor < EXACT:
        raise Unsupported("MOD takes a whole number and a positive whole constant")
    low = Fraction(0) if term.low is not None and term.low >= 0 else -(divisor - 1)
    return Term(f.Remainder(term.expression, int(divisor)), "integer", low, divisor - 1)


def _power(node: exp.Pow, terms: Terms) -> Term:
    if constant_of(terms(node.expression), "POWER") != 2:
        raise Unsupported("POWER takes the exponent 2 only; write other products out")
    term = terms(node.this)
    squared = arithmetic("*", term, term)
    return replace(squared, low=Fraction(0) if squared.low is None else max(squared.low, Fraction(0)))


def _bucket(node: exp.WidthBucket, terms: Terms) -> Term:
    term = as_number(bounded(terms(node.this)))
    low, high, count = (constant_of(terms(node.args[key]), "WIDTH_BUCKET") for key in ("min_value", "max_value", "num_buckets"))
    if low >= high or count.denominator != 1 or not 1 <= count <= 10_000:
        raise Unsupported("WIDTH_BUCKET(x, low, high, n) takes constants with low < high and n from 1 to 10,000")
    inside = f.Bucket(term.expression, float(low), float(high), int(count))
    below = e.Compare("<", term.expression, e.Literal(float(low)))
    above = e.Compare(">=", term.expression, e.Literal(float(high)))
    shifted = f.FixedPoint(e.Arithmetic("+", inside, e.Literal(1)), 1, float(EXACT))
    chosen = e.Choose(((below, e.Literal(0)), (above, e.Literal(int(count) + 1))), shifted)
    return Term(chosen, "integer", Fraction(0), count + 1)


# Over answers ----------------------------------------------------------------------------------------------------------


def _raised(left: Floats, right: Floats) -> Floats:
    return np.where(np.abs(right) < 100, np.power(left, right), np.nan)


def _rounded(node: exp.Round, cells: Cells) -> Cell:
    """Halves upwards, as in rows."""
    value = cells(node.this)
    digits = node.args.get("decimals")
    places = 0 if digits is None else cells(digits)
    if not isinstance(value, (int, float)) or not isinstance(places, int) or abs(places) > 15:
        return value
    power = 10.0**places
    try:
        return math.floor(value * power + 0.5) / power
    except OverflowError:
        return value


def _to_a_digit(node: exp.Round, cells: Cells) -> tuple[float, exp.Expression] | None:
    digits = node.args.get("decimals")
    if digits is not None and digits.find(exp.Column) is not None:
        return None
    places = 0 if digits is None else cells(digits)
    return (10.0**-places, node.this) if isinstance(places, int) and abs(places) <= 15 else None


def _negative_power(node: exp.Pow, cells: Cells) -> exp.Expression | None:
    """What is raised, where that may be to a power below 0."""
    exponent = cells(node.expression)
    not_below = isinstance(exponent, (int, float)) and math.isfinite(exponent) and exponent >= 0
    return None if not_below else node.this


def _to_whole(node: exp.Expression, cells: Cells) -> tuple[float, exp.Expression] | None:
    return 1.0, node.this


def _chosen(choose: Callable[[list[Any]], Any]) -> Callable[[exp.Expression, Cells], Cell]:
    def cell(node: exp.Expression, cells: Cells) -> Cell:
        values = [cells(part) for part in (node.this, *node.expressions)]
        return None if None in values else choose(values)

    return cell


def _extreme_answers(
    choose: Callable[[list[Any]], Any], array: Callable[[Floats, Floats], Floats], image: Callable[[Box, Box], Box]
) -> OverAnswers:
    return OverAnswers(one_kind, _chosen(choose), array_of_several(array), contracts="single", image=image_by_twos(image))


def _product_image(node: exp.Mul, boxes: Boxes) -> Box | None:
    """A number times itself is a square, which is not below zero."""
    if node.this == node.expression:
        part = boxes(node.this)
        return None if part is None else box.raised(part, Box.exactly(np.array([[2.0]])))
    return image_of(box.multiplied)(node, boxes)


def _difference_image(node: exp.Sub, boxes: Boxes) -> Box | None:
    """A number less itself is zero."""
    part = boxes(node.this)
    if part is None or node.this != node.expression:
        return image_of(box.subtracted)(node, boxes)
    return Box.of(np.zeros_like(part.low), np.zeros_like(part.high), part.lost)


def _rounded_image(node: exp.Round, boxes: Boxes) -> Box | None:
    part, digits = boxes(node.this), node.args.get("decimals")
    places = 0 if digits is None else _digits(boxes(digits))
    if part is None or places is None:
        return None
    power = 10.0**places
    return part.rising(lambda ends: np.floor(ends * power + 0.5) / power)


def _digits(places: Box | None) -> int | None:
    if places is None or places.low.size != 1:
        return None
    low, high = float(places.low.flat[0]), float(places.high.flat[0])
    return int(low) if low == high == round(low) and abs(low) <= 15 else None


ROWS = (
    Operator(
        "a + b", (exp.Add,), "sum", _arithmetic,
        OverAnswers(_NUMBERS, of_two(lambda a, b: a + b), array_of_several(np.add), linear="sum", image=image_of(box.added)),
    ),
    Operator(
        "a - b", (exp.Sub,), "difference", _arithmetic,
        OverAnswers(
            _NUMBERS, of_two(lambda a, b: a - b), array_of_several(np.subtract), linear="sum", image=_difference_image
        ),
    ),
    Operator(
        "a * b", (exp.Mul,), "product", _arithmetic,
        OverAnswers(_NUMBERS, of_two(lambda a, b: a * b), array_of_several(np.multiply), linear="product", image=_product_image),
    ),
    Operator(
        "MOD(n, k)", (exp.Mod,),
        "what is left of n after division by k, signed as n; also `n % k`. In rows n is whole and k a positive whole constant",
        _remainder, OverAnswers(_NUMBERS, of_two(lambda a, b: math.fmod(a, b))),
    ),
    Operator(
        "-a", (exp.Neg,), "with the other sign", _negative,
        OverAnswers(
            _NUMBERS, of_one(lambda a: -a), array_of_one(np.negative), linear="sum", contracts="first", turns=-1,
            image=image_of(Box.minus),
        ),
    ),
    Operator(
        "POWER(a, b)", (exp.Pow,), "power, missing where it is no real number and for b from 100 up; in rows b is 2", _power,
        OverAnswers(
            _NUMBERS, of_two(lambda a, b: float(a) ** float(b) if abs(b) < 100 else None), array_of_several(_raised),
            divisor=_negative_power, image=image_of(box.raised),
        ),
    ),
    Operator(
        "ABS(a)", (exp.Abs,), "size without sign", _absolute,
        OverAnswers(_NUMBERS, of_one(abs), array_of_one(np.abs), contracts="first", turns=0, image=image_of(Box.size)),
    ),
    Operator(
        "SIGN(a)", (exp.Sign,), "1 above 0, -1 below 0, 0 at 0", _sign,
        OverAnswers(_NUMBERS, of_one(lambda a: (a > 0) - (a < 0)), image=image_of(rising(np.sign))),
    ),
    Operator(
        "FLOOR(a)", (exp.Floor,), "largest whole number that is not above a", _floor,
        OverAnswers(_NUMBERS, of_one(math.floor), rounding=_to_whole, image=image_of(rising(np.floor))),
    ),
    Operator(
        "CEIL(a)", (exp.Ceil,), "smallest whole number that is not below a", _floor,
        OverAnswers(_NUMBERS, of_one(math.ceil), rounding=_to_whole, image=image_of(rising(np.ceil))),
    ),
    Operator(
        "ROUND(a, digits)", (exp.Round,), "rounded to so many digits (0 where none are said), halves upwards", _round,
        OverAnswers(_NUMBERS, _rounded, rounding=_to_a_digit, image=_rounded_image),
        reads=("decimals",),
    ),
    Operator(
        "LEAST(a, b, …)", (exp.Least,), "smallest of several numbers, missing where one of them is", _extreme,
        _extreme_answers(min, np.minimum, box.smaller),
        reads=("ignore_nulls",),
    ),
    Operator(
        "GREATEST(a, b, …)", (exp.Greatest,), "largest of several numbers, missing where one of them is", _extreme,
        _extreme_answers(max, np.maximum, box.larger),
        reads=("ignore_nulls",),
    ),
    Operator("CLAMP(a, low, high)", words="a moved between two constants; gives a column bounds that has none", rows=_clamp),
    Operator(
        "WIDTH_BUCKET(a, low, high, n)", (exp.WidthBucket,),
        "in which of n equal parts a lies, 1 to n; 0 below `low`, n + 1 from `high` up", _bucket,
        reads=("min_value", "max_value", "num_buckets"),
    ),
    Operator(
        "RANDOM()", (exp.Rand,), rows="a query may not draw its own random numbers: the same question must mean the same thing"
    ),
)  # fmt: skip
