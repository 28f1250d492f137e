"""Texts of a stored table as values of a declared type, as this process reads them (`data.text_forms`): another text is none.

An engine's own cast decides nothing: each rounds, guesses and refuses in its own way. The form of a text is tested first, and
only texts that the engine casts to the value that this process reads are cast. Plain forms come first: most cells have one.
"""

from __future__ import annotations

from sqlglot import exp

from sfumato.data.texts import text_forms as forms
from sfumato.engines.expressions import Dialect, Kind
from sfumato.engines.postgres.conversions import decimal_of_text, real_of_text, whole_of_decimal
from sfumato.engines.sql.moment_text import is_day, moment_of_text
from sfumato.engines.sql.pieces import call, fits, joined, number, tried
from sfumato.engines.sql.values import as_kind, sql_type, text_literal

#: Whole numbers that are certainly within 64 bits, and decimals that PostgreSQL certainly casts to the nearest number.
_SHORT_INTEGER = "[+-]?[0-9]{1,18}"
_SHORT_NUMBER = "[+-]?[0-9]{1,15}(?:[.][0-9]{1,15})?"
_ASCII_SPACE = "".join(each for each in forms.SPACE if each.isascii())
#: What an engine's log says where a text cannot be read: no value of a record.
_UNREADABLE = "unreadable"


def from_text(value: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
    """A text as a value of its kind, missing where it is none."""
    raw = as_kind(value.copy(), "string", dialect)
    text = _without_space(raw, dialect)
    # In Java a dollar sign stands before a line break too, so that Spark sees no text with one.
    plain = text if dialect == "spark" else raw
    match kind:
        case "integer":
            cases = [(fits(plain, _SHORT_INTEGER, dialect), tried(plain, kind, dialect))]
            cases += [(fits(text, forms.INTEGER, dialect), _whole(text, dialect))]
        case "number":
            short = _SHORT_NUMBER if dialect == "postgres" else forms.NUMBER
            cases = [(fits(plain, short, dialect), tried(plain, kind, dialect))]
            real = real_of_text(text) if dialect == "postgres" else tried(text, kind, dialect)
            cases += [(fits(text, forms.NUMBER, dialect), real)]
        case "boolean":
            words = ((forms.YES, exp.true()), (forms.NO, exp.false()))
            written = (plain, call("LOWER", text))
            cases = [
                (exp.In(this=each.copy(), expressions=[*map(text_literal, said)]), truth)
                for each in written
                for said, truth in words
            ]
        case _:
            form = forms.DAY if kind == "date" else forms.PLAIN_MOMENT
            cases = [(is_day(plain, form, dialect), tried(plain, kind, dialect))]
            cases += [(is_day(text, forms.MOMENT, dialect), moment_of_text(text, kind, dialect))]
    return exp.Case(ifs=[exp.If(this=condition, true=read.copy()) for condition, read in cases])


def required_from_text(value: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
    """A text as a value of its kind; one that is none stops the query. The empty text is missing."""
    text = as_kind(value.copy(), "string", dialect)
    if dialect == "postgres":
        # A cast that fails, of the column, so that the planner does not try it beforehand.
        stop = joined([call("LEFT", text, number(0)), text_literal(_UNREADABLE)])
    else:
        stop = call("RAISE_ERROR" if dialect == "spark" else "ERROR", text_literal(_UNREADABLE))
    there = exp.NEQ(this=text.copy(), expression=text_literal(""))
    stopped = exp.Case(ifs=[exp.If(this=there, true=exp.cast(stop, sql_type(kind, dialect)))])
    return exp.Coalesce(this=from_text(value, kind, dialect), expressions=[stopped])


def _whole(text: exp.Expression, dialect: Dialect) -> exp.Expression:
    digits = call("SUBSTRING_INDEX" if dialect == "spark" else "SPLIT_PART", text, text_literal("."), number(1))
    return whole_of_decimal(decimal_of_text(digits)) if dialect == "postgres" else tried(digits, "integer", dialect)


def _without_space(text: exp.Expression, dialect: Dialect) -> exp.Expression:
    if dialect == "duckdb":
        return call("TRIM", text, text_literal(forms.SPACE))
    if dialect == "spark":  # which has no escapes for two of them
        tabs = "\v\f"
        others = text_literal("".join(each for each in forms.SPACE if each not in tabs))
        return call("BTRIM", text, joined([others, *(call("CHR", number(ord(tab))) for tab in tabs)]))
    # A database may have an encoding without these characters, where a constant with one of them is an error.
    points = "".join(f"\\u{ord(each):04x}" for each in forms.SPACE)
    within = call("REGEXP_REPLACE", text, text_literal(f"^[{points}]+|[{points}]+$"), text_literal(""), text_literal("g"))
    unicode = exp.EQ(this=call("GETDATABASEENCODING"), expression=text_literal("UTF8"))
    outer = call("BTRIM", text, text_literal(_ASCII_SPACE))
    return exp.Case(ifs=[exp.If(this=unicode, true=within)], default=outer)
