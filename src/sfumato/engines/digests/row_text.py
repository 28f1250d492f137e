"""The text and digest of a row as expressions of a plan; `row_digest` says what they are.

Floating-point numbers enter by their 64 bits. DuckDB and PostgreSQL hand these out. Spark does not, so there the exponent is
found by a logarithm, corrected by one where that was rounded across a power of two, and everything else is a multiplication by a
power of two, which is exact.

Spark writes expressions out as Java, and Java leaves long methods uncompiled. So the SQL of a value is short there. What it
names twice stands outside of all branches, since Spark computes only that once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.engines.expressions import Dialect, Function, Kind, RowFunction, expect
from sfumato.engines.functions.dates import EPOCH
from sfumato.engines.sql.values import as_kind, literal, sql_type, text_literal, type_named

#: A digest is added up in so many parts of so many bits: sums over 10^18 rows fit 38 digits.
LIMBS = 4
LIMB_BITS = 60
_LIMB_DIGITS = LIMB_BITS // 4
#: PostgreSQL's functions take 100 arguments.
_AT_ONCE = 90

_TAGS: Mapping[Kind, str] = {
    "string": "s",
    "integer": "i",
    "boolean": "i",
    "date": "i",
    "datetime": "i",
    "instant": "i",
    "time": "i",
    "wide": "w",
    "number": "d",
    "binary": "b",
}


@dataclass(frozen=True)
class RowDigest(RowFunction):
    """SHA-256 of the text of a row, in hexadecimal."""

    once: ClassVar[bool] = True

    def kind(self, kinds: tuple[Kind, ...]) -> Kind:
        if not kinds:
            raise Unsupported("RowDigest needs at least one column")
        return "string"

    def sql(self, terms: tuple[exp.Expression, ...], kinds: tuple[Kind, ...], dialect: Dialect) -> exp.Expression:
        piece_of = _piece_in_spark if dialect == "spark" else _pieces
        pieces = [piece for term, kind in zip(terms, kinds, strict=True) for piece in piece_of(term, kind, dialect)]
        text = joined(pieces)
        # The others digest the octets of a text as it is, without a copy.
        return as_kind(sha256(as_octets(text, dialect) if dialect == "postgres" else text, dialect), "string", dialect)


@dataclass(frozen=True)
class Limb(Function):
    """Part 0, 1, 2 or 3 of a digest in hexadecimal, as a whole number of 60 bits."""

    part: int

    def kind(self, kind: Kind) -> Kind:
        expect(kind, {"string"}, "Limb")
        if not 0 <= self.part < LIMBS:
            raise Unsupported(f"Limb has the parts 0 to {LIMBS - 1}")
        return "integer"

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        return whole_of_hex(hex_digits(term, self.part * _LIMB_DIGITS, _LIMB_DIGITS, dialect), _LIMB_DIGITS, dialect)

    @property
    def largest(self) -> int:
        return (1 << LIMB_BITS) - 1


# What engines call it ---------------------------------------------------------------------------------------------------


def call(name: str, *arguments: exp.Expression) -> exp.Expression:
    """A function by the engine's own name."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def joined(pieces: list[exp.Expression]) -> exp.Expression:
    """Texts and numbers one after the other as one text, missing ones left out; in Spark none may be missing."""
    while len(pieces) > _AT_ONCE:
        pieces = [call("CONCAT", *pieces[start : start + _AT_ONCE]) for start in range(0, len(pieces), _AT_ONCE)]
    return call("CONCAT", *pieces)


def as_octets(text: exp.Expression, dialect: Dialect) -> exp.Expression:
    """A text as its octets in UTF-8."""
    if dialect == "postgres":
        return call("CONVERT_TO", text, text_literal("UTF8"))
    return call("ENCODE", text) if dialect == "duckdb" else call("ENCODE", text, text_literal("UTF-8"))


def sha256(octets: exp.Expression, dialect: Dialect) -> exp.Expression:
    """SHA-256 of octets, in hexadecimal."""
    if dialect == "postgres":
        return call("ENCODE", call("SHA256", octets), text_literal("hex"))
    return call("SHA256", octets) if dialect == "duckdb" else call("SHA2", octets, exp.Literal.number(256))


def hex_digits(text: exp.Expression, start: int, count: int, dialect: Dialect) -> exp.Expression:
    """So many digits of a text, after so many others."""
    places = (exp.Literal.number(start + 1), exp.Literal.number(count))
    if dialect == "spark":  # which counts the characters of a whole text before it takes some, and takes octets as they are
        octets = call("SUBSTRING", exp.cast(text, sql_type("binary", dialect)), *places)
        return exp.cast(octets, sql_type("string", dialect))
    return call("SUBSTRING", text, *places)


def whole_of_hex(digits: exp.Expression, count: int, dialect: Dialect) -> exp.Expression:
    """So many hexadecimal digits, at most 15, as a whole number."""
    if dialect == "spark":
        return as_kind(call("CONV", digits, exp.Literal.number(16), exp.Literal.number(10)), "integer", dialect)
    if dialect == "duckdb":
        return as_kind(exp.DPipe(this=text_literal("0x"), expression=digits, safe=True), "integer", dialect)
    padded = exp.DPipe(this=text_literal("x" + "0" * (16 - count)), expression=digits, safe=True)
    return as_kind(exp.cast(padded, type_named("BIT(64)", dialect)), "integer", dialect)


# Values -----------------------------------------------------------------------------------------------------------------


def _pieces(term: exp.Expression, kind: Kind, dialect: Dialect) -> Iterator[exp.Expression]:
    """A value as pieces of the row's text, of which those of a missing value are missing or `n`."""
    if kind in ("string", "binary"):
        term = valid_text(term, dialect) if kind == "string" else term
        yield call("STRLEN" if (kind, dialect) == ("string", "duckdb") else "OCTET_LENGTH", term.copy())
        yield _tag(exp.Is(this=term.copy(), expression=exp.Null()), kind)
        yield term.copy() if kind == "string" else hexadecimal(term.copy(), dialect)
        return
    absent, whole = _WHOLE[kind](term, dialect)
    yield whole
    yield _tag(absent, kind)


def _piece_in_spark(term: exp.Expression, kind: Kind, dialect: Dialect) -> Iterator[exp.Expression]:
    """A value as one piece of the row's text; in Spark, what is joined with a missing text is missing."""
    if kind in ("string", "binary"):
        term = valid_text(term, dialect) if kind == "string" else term
        shown = term.copy() if kind == "string" else hexadecimal(term.copy(), dialect)
        parts = [call("OCTET_LENGTH", term.copy()), text_literal(_TAGS[kind]), shown]
    else:
        parts = [_WHOLE[kind](term, dialect)[1], text_literal(_TAGS[kind])]
    parts[0] = exp.cast(parts[0], sql_type("string", dialect))
    yield exp.Coalesce(this=call("CONCAT", *parts), expressions=[text_literal("n")])


def _tag(absent: exp.Expression, kind: Kind) -> exp.Expression:
    return exp.Case(ifs=[exp.If(this=absent, true=text_literal("n"))], default=text_literal(_TAGS[kind]))


def valid_text(term: exp.Expression, dialect: Dialect) -> exp.Expression:
    """A text, missing where it is not UTF-8, which Spark alone lets through."""
    return exp.Case(ifs=[exp.If(this=call("IS_VALID_UTF8", term), true=term.copy())]) if dialect == "spark" else term


def hexadecimal(octets: exp.Expression, dialect: Dialect) -> exp.Expression:
    """Octets in hexadecimal digits, letters in lower case."""
    if dialect == "postgres":
        return call("ENCODE", octets, text_literal("hex"))
    return call("LOWER", call("HEX", octets))


def _missing(term: exp.Expression) -> exp.Expression:
    return exp.Is(this=term.copy(), expression=exp.Null())


def _where(condition: exp.Expression, value: exp.Expression) -> exp.Expression:
    return exp.Case(ifs=[exp.If(this=condition, true=value)])


def _number(value: int | float, dialect: Dialect) -> exp.Expression:
    return literal(value, "number" if isinstance(value, float) else "integer", dialect)


def _plain(term: exp.Expression, dialect: Dialect) -> tuple[exp.Expression, exp.Expression]:
    return _missing(term), term.copy()


def _truth(term: exp.Expression, dialect: Dialect) -> tuple[exp.Expression, exp.Expression]:
    ifs = [exp.If(this=term.copy(), true=_number(1, dialect))]
    return _missing(term), exp.Case(ifs=[*ifs, exp.If(this=exp.Not(this=term.copy()), true=_number(0, dialect))])


def _finite(term: exp.Expression, whole: exp.Expression, dialect: Dialect) -> tuple[exp.Expression, exp.Expression]:
    """A number of days or microseconds, missing where the date has none."""
    if dialect == "spark":
        return _missing(term), whole
    infinite = exp.Not(this=call("ISFINITE", term.copy()))
    return exp.Or(this=_missing(term), expression=infinite), _where(call("ISFINITE", term.copy()), whole)


def _days(term: exp.Expression, dialect: Dialect) -> tuple[exp.Expression, exp.Expression]:
    if dialect == "spark":
        return _missing(term), call("UNIX_DATE", term.copy())
    days = exp.Paren(this=exp.Sub(this=term.copy(), expression=literal(EPOCH, "date", dialect)))
    return _finite(term, as_kind(days, "integer", dialect), dialect)


def _moment(term: exp.Expression, dialect: Dialect) -> tuple[exp.Expression, exp.Expression]:
    return _finite(term, _microseconds(term, dialect), dialect)


def _clock(term: exp.Expression, dialect: Dialect) -> tuple[exp.Expression, exp.Expression]:
    """A datetime; Spark would read it in the session's time zone, so that there it is put together from its parts."""
    if dialect != "spark":
        return _moment(term, dialect)
    day = as_kind(call("UNIX_DATE", as_kind(term.copy(), "date", dialect)), "integer", dialect)
    total: exp.Expression = exp.Mul(this=day, expression=_number(86_400_000_000, dialect))
    for part, size in (("HOUR", 3_600_000_000), ("MINUTE", 60_000_000), ("SECOND", 1_000_000)):
        count = call("DATE_PART", text_literal(part), term.copy())
        scaled = exp.Mul(this=exp.cast(count, type_named("DECIMAL(19, 6)", dialect)), expression=_number(size, dialect))
        total = exp.Add(this=total, expression=as_kind(exp.Paren(this=scaled), "integer", dialect))
    return _missing(term), total


def _time(term: exp.Expression, dialect: Dialect) -> tuple[exp.Expression, exp.Expression]:
    if dialect == "spark":
        raise Unsupported("Spark has no times of day to digest")
    return _missing(term), _microseconds(term, dialect)


def _microseconds(term: exp.Expression, dialect: Dialect) -> exp.Expression:
    if dialect == "duckdb":
        return call("EPOCH_US", term.copy())
    if dialect == "spark":
        return call("UNIX_MICROS", term.copy())
    seconds = exp.Extract(this=exp.var("EPOCH"), expression=term.copy())
    return as_kind(exp.Paren(this=exp.Mul(this=seconds, expression=exp.Literal.number(1_000_000))), "integer", dialect)


# Floating-point numbers -------------------------------------------------------------------------------------------------

_SMALLEST_NORMAL, _LARGEST = 2.0**-1022, float.fromhex("0x1.fffffffffffffp+1023")
_NEGATIVE_BITS = -(2**63)


def _bits(term: exp.Expression, dialect: Dialect) -> tuple[exp.Expression, exp.Expression]:
    zero = exp.If(this=exp.EQ(this=term.copy(), expression=_number(0.0, dialect)), true=_number(0, dialect))
    if dialect == "spark":
        return _missing(term), _reckoned_bits(term, dialect)
    if dialect == "postgres":
        nan: exp.Expression = exp.EQ(this=term.copy(), expression=as_kind(text_literal("NaN"), "number", dialect))
        octets = call("ENCODE", call("FLOAT8SEND", term.copy()), text_literal("hex"))
        pattern = exp.DPipe(this=text_literal("x"), expression=octets, safe=True)
        bits = as_kind(exp.cast(exp.Paren(this=pattern), type_named("BIT(64)", dialect)), "integer", dialect)
    else:
        nan = call("ISNAN", term.copy())
        bits = as_kind(exp.cast(term.copy(), type_named("BIT", dialect)), "integer", dialect)
    absent = exp.Or(this=_missing(term), expression=nan)
    return absent, exp.Case(ifs=[exp.If(this=absent.copy(), true=exp.Null()), zero], default=bits)


def _reckoned_bits(term: exp.Expression, dialect: Dialect) -> exp.Expression:
    """The bits of a number by multiplications that round nothing; missing where it is missing or NaN.

    A number m · 2^e with 1 ≤ m < 2 and e ≥ -1022 has the bits (e + 1022) · 2^52 + m · 2^52. That is computed of every number,
    moved to where it holds; then infinity gets the bits after those of the largest, and smaller numbers k · 2^-1074 the bits k.
    """

    def number(value: float) -> exp.Expression:
        return _number(value, dialect)

    def plus(*terms: exp.Expression) -> exp.Expression:
        total, *others = terms
        for other in others:
            total = exp.Add(this=total, expression=other)
        return exp.Paren(this=total)

    def times(*factors: exp.Expression) -> exp.Expression:
        product, *others = factors
        for other in others:
            product = exp.Mul(this=product, expression=other)
        return exp.Paren(this=product)

    def whole(value: exp.Expression) -> exp.Expression:
        return as_kind(value, "integer", dialect)

    value = call("NANVL", term.copy(), literal(None, "number", dialect))
    size = exp.Abs(this=value)
    usual = call("LEAST", call("GREATEST", size.copy(), number(_SMALLEST_NORMAL)), number(_LARGEST))
    rounded = whole(exp.Floor(this=times(call("LN", usual.copy()), number(1 / math.log(2)))))
    exponent = call("LEAST", call("GREATEST", rounded, _number(-1022, dialect)), _number(1023, dialect))
    power = call("POWER", number(2.0), as_kind(exponent.copy(), "number", dialect))
    factor = exp.Paren(this=exp.Div(this=usual, expression=power, typed=True))
    # How far the logarithm is below the exponent, which is 1, -1 or 0, times 2^52, and m · 2^52.
    mantissa = exp.Case(
        ifs=[
            exp.If(
                this=exp.GTE(this=factor.copy(), expression=number(2.0)),
                true=plus(whole(times(factor.copy(), number(2.0**51))), _number(2**52, dialect)),
            ),
            exp.If(
                this=exp.LT(this=factor.copy(), expression=number(1.0)),
                true=plus(whole(times(factor.copy(), number(2.0**53))), _number(-(2**52), dialect)),
            ),
        ],
        default=whole(times(factor.copy(), number(2.0**52))),
    )
    biased = times(plus(exponent, _number(1022, dialect)), _number(2**52, dialect))
    tiny = whole(times(size.copy(), number(2.0**537), number(2.0**537)))
    beyond = exp.Case(
        ifs=[
            exp.If(this=exp.GT(this=size.copy(), expression=number(_LARGEST)), true=_number(1, dialect)),
            exp.If(this=exp.LT(this=size, expression=number(_SMALLEST_NORMAL)), true=plus(tiny, _number(-(2**52), dialect))),
        ],
        default=_number(0, dialect),
    )
    sign = times(whole(exp.Paren(this=exp.LT(this=value.copy(), expression=number(0.0)))), _number(_NEGATIVE_BITS, dialect))
    return plus(sign, biased, mantissa, beyond)


#: Per kind, where a value counts as missing and the whole number that stands for it otherwise.
_WHOLE: Mapping[Kind, Callable[[exp.Expression, Dialect], tuple[exp.Expression, exp.Expression]]] = {
    "integer": _plain,
    "wide": _plain,
    "boolean": _truth,
    "date": _days,
    "datetime": _clock,
    "instant": _moment,
    "time": _time,
    "number": _bits,
}
