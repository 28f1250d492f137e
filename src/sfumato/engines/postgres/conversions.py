"""Decimals and texts in PostgreSQL read as numbers without ever failing, as other engines read them.

PostgreSQL has no cast that tries: one decimal beyond the floating-point numbers, or one text that is no date, and the whole
query fails, which would reveal that somebody has it. So what a value is is asked before it is cast.
"""

from __future__ import annotations

from sqlglot import exp

from sfumato.engines.expressions import Kind
from sfumato.engines.plan import Field
from sfumato.engines.sql.values import as_kind, text_literal, type_named

_YEAR = "(?!0000)[0-9]{4}"
_LEAP_YEAR = "(?!0000)(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
#: How a day begins that the calendar has.
VALID_DAY = (
    f"(?:{_YEAR}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    f"|{_YEAR}-(?:0[13-9]|1[0-2])-(?:29|30)|{_YEAR}-(?:0[13578]|1[02])-31|{_LEAP_YEAR}-02-29)"
)

#: Numbers of more characters are none here: a decimal holds so many digits and an exponent of four, and far more.
LONGEST = 1000
_EXPONENT = "[eE][+-]?0*[0-9]{1,4}"

#: Decimals from the first on are nearest to infinity, those up to the second nearest to zero; PostgreSQL fails beyond.
_LARGE, _TINY = str(2**1024 - 2**970), f"{5**1075}e-1075"
_FIRST_INTEGER, _LAST_INTEGER = str(-(2**63)), str(2**63 - 1)


def is_decimal(entry: Field) -> bool:
    """True for a column of type `numeric` that is read as a number of fixed size."""
    if entry.kind == "number":
        return entry.stored is None and entry.exact is not None
    return entry.kind == "integer" and entry.stored == "number"


def from_decimal(value: exp.Expression, kind: Kind) -> exp.Expression:
    """A `numeric` as a floating-point or whole number; infinite beyond the largest double, missing where it is none."""
    return _nearest_double(value) if kind == "number" else whole_of_decimal(value)


def real_of_text(text: exp.Expression) -> exp.Expression:
    """A text that has the form of a number as the nearest one; missing where it is longer than `LONGEST`."""

    def has(form: str) -> exp.Expression:
        return exp.RegexpLike(this=text.copy(), expression=text_literal(form))

    # The text is short, so that an exponent of more digits decides alone; the digits before it may all be zeros.
    below = has("^[+-]?[0.]+[eE]|[eE]-")
    far = [exp.If(this=below, true=_constant("0", "number")), exp.If(this=has("^-"), true=_constant("-Infinity", "number"))]
    cases = [
        exp.If(this=exp.GT(this=exp.Length(this=text.copy()), expression=exp.Literal.number(LONGEST)), true=exp.Null()),
        exp.If(this=has("inf$"), true=as_kind(text.copy(), "number", "postgres")),
        exp.If(this=has(f"^[^eE]+({_EXPONENT})?$"), true=_nearest_double(decimal_of_text(text))),
    ]
    return exp.Case(ifs=[*cases, *far], default=_constant("Infinity", "number"))


def decimal_of_text(value: exp.Expression) -> exp.Expression:
    """A text of digits as a `numeric`."""
    return exp.cast(value.copy(), type_named("NUMERIC", "postgres"))


def _constant(text: str, kind: Kind | None = None) -> exp.Expression:
    return decimal_of_text(text_literal(text)) if kind is None else as_kind(text_literal(text), kind, "postgres")


def _nearest_double(value: exp.Expression) -> exp.Expression:
    # NaN is larger than any other decimal, so that it is asked for first.
    cases = [
        exp.If(this=exp.EQ(this=value.copy(), expression=_constant("NaN")), true=_constant("NaN", "number")),
        exp.If(this=exp.GTE(this=value.copy(), expression=_constant(_LARGE)), true=_constant("Infinity", "number")),
        exp.If(this=exp.LTE(this=value.copy(), expression=_constant(f"-{_LARGE}")), true=_constant("-Infinity", "number")),
        exp.If(
            this=exp.LTE(this=exp.Abs(this=value.copy()), expression=_constant(_TINY)),
            true=_constant("0", "number"),
        ),
    ]
    return exp.Case(ifs=cases, default=as_kind(value.copy(), "number", "postgres"))


def whole_of_decimal(value: exp.Expression) -> exp.Expression:
    """A `numeric` without a fraction as a whole number, missing beyond 64 bits."""
    ends = {"low": _constant(_FIRST_INTEGER), "high": _constant(_LAST_INTEGER)}
    inside = exp.Between(this=value.copy(), **ends)
    return exp.Case(ifs=[exp.If(this=inside, true=as_kind(value.copy(), "integer", "postgres"))])
