"""Texts of the form of moments as moments in UTC, or as days where it is midnight there."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sfumato.engines.expressions import Dialect, Kind
from sfumato.engines.postgres.conversions import VALID_DAY
from sfumato.engines.sql.pieces import call, first_piece, fits, joined, number, tried
from sfumato.engines.sql.values import as_kind, text_literal, type_named

_FIRST, _LAST = "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"
_CLOCK_AT = 12


def is_day(text: exp.Expression, form: str, dialect: Dialect) -> exp.Expression:
    """Whether a text has a form that begins with a day; PostgreSQL, whose casts fail, must have it in its calendar as well."""
    fitting = fits(text, form, dialect)
    if dialect != "postgres":
        return fitting
    return exp.And(this=fitting, expression=exp.RegexpLike(this=text.copy(), expression=text_literal(f"^{VALID_DAY}")))


def moment_of_text(text: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
    """A text of the form `MOMENT` as a moment, or as a day; missing outside the years 1 to 9999, and no day but at midnight."""
    clock = call("SUBSTRING", text, number(_CLOCK_AT))
    moment = exp.Paren(this=_moved(_local(text, clock, dialect), clock, dialect))
    ends = {"low": as_kind(text_literal(_FIRST), "datetime", dialect), "high": as_kind(text_literal(_LAST), "datetime", dialect)}
    inside: exp.Expression = exp.Between(this=moment.copy(), **ends)
    if kind == "datetime":
        return exp.Case(ifs=[exp.If(this=inside, true=moment)])
    day = tried(moment, "date", dialect)
    midnight = exp.EQ(this=moment, expression=tried(day, "datetime", dialect))
    return exp.Case(ifs=[exp.If(this=exp.And(this=inside, expression=midnight), true=day.copy())])


def _local(text: exp.Expression, clock: exp.Expression, dialect: Dialect) -> exp.Expression:
    """The moment on the clocks of its place."""
    digits = _digits(clock, "^[0-9:]+", 6, dialect)
    fraction = call("SUBSTRING", first_piece(clock, "[.,][0-9]+", dialect), number(2), number(6))
    hour, minute, second = (_pair(digits, at) for at in (1, 3, 5))
    colon = text_literal(":")
    day = call("SUBSTRING", text, number(1), number(10))
    padded = call("RPAD", fraction, number(6), text_literal("0"))
    pieces = [day, text_literal(" "), hour, colon, minute, colon, second, text_literal("."), padded]
    return tried(joined(pieces), "datetime", dialect)


def _moved(local: exp.Expression, clock: exp.Expression, dialect: Dialect) -> exp.Expression:
    """A moment in UTC: its place may be so many hours, minutes and seconds east or west."""
    offset = _digits(clock, "[+-][0-9:]+$", 7, dialect)
    west = exp.EQ(this=call("SUBSTRING", offset, number(1), number(1)), expression=text_literal("-"))
    sign = exp.Case(ifs=[exp.If(this=west, true=number(1))], default=number(-1))
    parts = [exp.Mul(this=sign.copy(), expression=_counted(_pair(offset, at), dialect)) for at in (2, 4, 6)]
    moved = local
    for span in _spans(parts, dialect):
        moved = exp.Add(this=moved, expression=span)
    return moved


def _spans(parts: Sequence[exp.Expression], dialect: Dialect) -> list[exp.Expression]:
    match dialect:
        case "duckdb":
            return [call(name, part) for name, part in zip(("TO_HOURS", "TO_MINUTES", "TO_SECONDS"), parts, strict=True)]
        case "postgres":  # years, months, weeks and days come first
            return [call("MAKE_INTERVAL", *(number(0) for _ in range(4)), *parts)]
        case "spark":  # days come first
            return [call("MAKE_DT_INTERVAL", number(0), *parts)]


def _digits(clock: exp.Expression, form: str, length: int, dialect: Dialect) -> exp.Expression:
    """A piece of a clock without colons, zeros for what it leaves out."""
    plain = call("REPLACE", first_piece(clock, form, dialect), text_literal(":"), text_literal(""))
    return call("RPAD", plain, number(length), text_literal("0"))


def _pair(digits: exp.Expression, at: int) -> exp.Expression:
    return call("SUBSTRING", digits, number(at), number(2))


def _counted(pair: exp.Expression, dialect: Dialect) -> exp.Expression:
    if dialect == "postgres":
        return exp.cast(pair, type_named("INT", dialect))
    return exp.TryCast(this=pair, to=type_named("INT", dialect), safe=True)
