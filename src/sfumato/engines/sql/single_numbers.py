"""Numbers of 32 bits as their shortest text says, which engines write differently and Arrow as it is.

People wrote 0.1, of which 32 bits hold 0.10000000149011612. The shortest text is the nearest decimal of the fewest digits that
gives the number back: of six to nine digits, of fewer for the smallest numbers; of two that are equally near, the even one.
DuckDB writes large numbers with all their digits, PostgreSQL takes no decimal halfway to the next number, and Java before
version 19 often takes a digit too many. So the decimals are written here one after the other, and the first is taken that fits.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sfumato.engines.expressions import Dialect
from sfumato.engines.sql.values import literal, sql_type, text_literal, type_named

#: Digits that a number of 32 bits needs, and those that the smallest ones may do with.
_DIGITS, _FEW_DIGITS = (6, 7, 8, 9), (1, 2, 3, 4, 5, 6, 7, 8, 9)
_SMALLEST_NORMAL = 2.0**-126
#: Powers of two whose lower neighbour is nearer than the upper one, so that the nearest decimal is not the shortest: with that.
_LOPSIDED = {2.0**-96: 1.2621775e-29, 2.0**87: 1.5474251e26, 2.0**90: 1.2379401e27}


def shortest_number(raw: exp.Expression, dialect: Dialect) -> exp.Expression:
    """A stored number of 32 bits as the number of 64 bits that its shortest text names."""
    wide = _number_of(raw, dialect)
    lopsided = [
        exp.If(this=exp.EQ(this=wide.copy(), expression=_number(sign * value, dialect)), true=_number(sign * shown, dialect))
        for value, shown in _LOPSIDED.items()
        for sign in (1.0, -1.0)
    ]
    size = exp.Abs(this=wide.copy())
    odd = exp.If(this=exp.GTE(this=size.copy(), expression=_number(float("inf"), dialect)), true=wide.copy())  # and what is none
    small = exp.LT(this=size, expression=_number(_SMALLEST_NORMAL, dialect))
    few = exp.If(this=small, true=_fewest(wide, raw, _FEW_DIGITS, dialect))
    return exp.Case(ifs=[odd, *lopsided, few], default=_fewest(wide, raw, _DIGITS, dialect))


def _fewest(wide: exp.Expression, raw: exp.Expression, digits: Sequence[int], dialect: Dialect) -> exp.Expression:
    """The decimal of the fewest of these digits that gives the number back."""
    decimals = [_decimal(wide, each, dialect) for each in digits]
    single = type_named("REAL" if dialect == "postgres" else "FLOAT", dialect)
    narrowed = [
        exp.cast(each.copy(), single) if dialect == "postgres" else exp.TryCast(this=each.copy(), to=single, safe=True)
        for each in decimals
    ]
    ifs = [
        exp.If(this=exp.EQ(this=narrow, expression=raw.copy()), true=each)
        for narrow, each in zip(narrowed[:-1], decimals, strict=False)
    ]
    return exp.Case(ifs=ifs, default=decimals[-1])


def _decimal(wide: exp.Expression, digits: int, dialect: Dialect) -> exp.Expression:
    """The nearest decimal of so many digits."""
    if dialect == "spark":
        return _even_decimal(wide, digits)
    if dialect == "duckdb":
        written = _call("PRINTF", text_literal(f"%.{digits - 1}e"), wide.copy())
    else:
        written = _call("TO_CHAR", wide.copy(), text_literal("9." + "9" * (digits - 1) + "EEEE" if digits > 1 else "9EEEE"))
    return _number_of(written, dialect)


def _even_decimal(wide: exp.Expression, digits: int) -> exp.Expression:
    """Java rounds what lies halfway away from zero: where one digit more is exact and a five behind an even digit, it is left
    out."""
    longer = _call("FORMAT_STRING", text_literal(f"%.{digits}e"), wide.copy())
    exact = exp.EQ(this=_number_of(longer, "spark"), expression=wide.copy())
    halfway = exp.RegexpLike(this=longer.copy(), expression=text_literal("[02468][.]?5e"))
    shortened = _call("REGEXP_REPLACE", longer.copy(), text_literal("5e"), text_literal("e"))
    usual = _call("FORMAT_STRING", text_literal(f"%.{digits - 1}e"), wide.copy())
    even = exp.If(this=exp.And(this=exact, expression=halfway), true=_number_of(shortened, "spark"))
    return exp.Case(ifs=[even], default=_number_of(usual, "spark"))


def _call(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _number_of(value: exp.Expression, dialect: Dialect) -> exp.Expression:
    return exp.cast(value.copy(), sql_type("number", dialect))


def _number(value: float, dialect: Dialect) -> exp.Expression:
    return literal(value, "number", dialect)
