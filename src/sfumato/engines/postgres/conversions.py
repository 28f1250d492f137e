"""Stored values in PostgreSQL read as their kinds without ever failing, as other engines read them.

PostgreSQL has no cast that tries: one text that is no date, or one decimal beyond the floating-point numbers, and the
whole query fails, which would reveal that somebody has it. So the form of a value is tested before it is cast.
"""

from __future__ import annotations

from sqlglot import exp

from sfumato.engines.expressions import Kind
from sfumato.engines.plan import Field
from sfumato.engines.sql.values import as_kind, text_literal, type_named

_YEAR = "(?!0000)[0-9]{4}"
_LEAP_YEAR = "(?!0000)([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
_DAY = (
    f"({_YEAR}-(0?[1-9]|1[0-2])-(0?[1-9]|1[0-9]|2[0-8])"
    f"|{_YEAR}-(0?[13-9]|1[0-2])-(29|30)|{_YEAR}-(0?[13578]|1[02])-31|{_LEAP_YEAR}-0?2-29)"
)
_TIME = "([01]?[0-9]|2[0-3]):[0-5]?[0-9](:[0-5]?[0-9]([.][0-9]+)?)?Z?"
_SPACE = r"[ \t\n\r\f\v]*"

#: Texts, in whatever case, that can be cast. A decimal holds so many digits and an exponent of four, and far more.
_LONGEST = 1000
_FORMS: dict[Kind, str] = {
    "integer": "[+-]?[0-9]{1,30}([.]0*)?",
    "number": "[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)(e[+-]?[0-9]{1,4})?",
    "boolean": "(true|false|t|f|yes|no|y|n|1|0)",
    "date": f"{_DAY}([ T]{_TIME})?",
    "datetime": f"{_DAY}([ T]{_TIME})?",
}
_INFINITY = "[+-]?inf(inity)?"

#: Decimals from the first on are nearest to infinity, those up to the second nearest to zero; both are rounded to the safe
#: side, since PostgreSQL fails beyond.
_LARGE, _TINY = "1.7976931348623158079e308", "2.4703282292062327209e-324"
_FIRST_INTEGER, _LAST_INTEGER = str(-(2**63)), str(2**63 - 1)


def is_decimal(entry: Field) -> bool:
    """True for a column of type `numeric` that is read as a number of fixed size."""
    if entry.kind == "number":
        return entry.stored is None and entry.exact is not None
    return entry.kind == "integer" and entry.stored == "number"


def from_decimal(value: exp.Expression, kind: Kind) -> exp.Expression:
    """A `numeric` as a floating-point or whole number; infinite beyond the largest double, missing where it is none."""
    return _nearest_double(value) if kind == "number" else _whole(value)


def from_text(value: exp.Expression, kind: Kind) -> exp.Expression | None:
    """A text as a kind, missing where it is none; None for kinds that are not read from text."""
    form = _FORMS.get(kind)
    if form is None:
        return None
    # Under the collation C letters and spaces are those of ASCII, which are all that the casts know.
    text = as_kind(value, "string", "postgres")
    if kind == "integer":
        read = _whole(_decimal(text))
    elif kind == "number":
        read = _nearest_double(_decimal(text))
    elif kind == "boolean":
        read = as_kind(text.copy(), kind, "postgres")
    else:
        # Moments are cut to microseconds; the cast would round.
        pieces = [text.copy(), text_literal("([.][0-9]{6})[0-9]+"), text_literal(r"\1")]
        read = as_kind(exp.Anonymous(this="REGEXP_REPLACE", expressions=pieces), kind, "postgres")
    cases = [exp.If(this=_matches(text, form), true=read)]
    if kind == "number":
        cases.append(exp.If(this=_matches(text, _INFINITY), true=as_kind(text.copy(), kind, "postgres")))
    return exp.Case(ifs=cases)


def _matches(text: exp.Expression, form: str) -> exp.Expression:
    fits = exp.RegexpILike(this=text.copy(), expression=text_literal(f"^{_SPACE}{form}{_SPACE}$"))
    short = exp.LTE(this=exp.Length(this=text.copy()), expression=exp.Literal.number(_LONGEST))
    return exp.And(this=short, expression=fits)


def _decimal(value: exp.Expression) -> exp.Expression:
    return exp.cast(value.copy(), type_named("NUMERIC", "postgres"))


def _constant(text: str, kind: Kind | None = None) -> exp.Expression:
    return _decimal(text_literal(text)) if kind is None else as_kind(text_literal(text), kind, "postgres")


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


def _whole(value: exp.Expression) -> exp.Expression:
    ends = {"low": _constant(_FIRST_INTEGER), "high": _constant(_LAST_INTEGER)}
    inside = exp.Between(this=value.copy(), **ends)
    return exp.Case(ifs=[exp.If(this=inside, true=as_kind(value.copy(), "integer", "postgres"))])
