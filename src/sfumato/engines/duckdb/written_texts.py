"""Numbers and dates of a text file that stays on disk, as its schema says that they are written: rewritten into the plain forms
that DuckDB casts, before it casts them.

A text of another form becomes one that no cast takes, so that 1.5 is no number under `decimal = ","`, as in this process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sfumato.core.errors import Unsupported
from sfumato.data.texts.reading import Reading
from sfumato.data.texts.text_forms import SPACE
from sfumato.engines.expressions import Kind

if TYPE_CHECKING:
    from sqlglot import exp

    from sfumato.engines.plan import Field

_UNREADABLE = "no value of this form"
#: Encodings that DuckDB decodes by itself, by the names that people give them.
_ENCODINGS = {"utf-8": None, "utf8": None, "utf-8-sig": None, "latin-1": "latin-1", "latin1": "latin-1", "iso-8859-1": "latin-1"}
_DIGITS = {"Y", "m", "d"}
_CLOCK = "[ T]+([0-9]{1,2}:[0-9]{2}(:[0-9]{2})?)([.]0+)?$"


def encoding_in_place(reading: Reading) -> str | None:
    """What DuckDB calls the encoding; None for UTF-8."""
    if reading.encoding is None:
        return None
    name = reading.encoding.lower().replace("_", "-")
    if name in _ENCODINGS:
        return _ENCODINGS[name]
    raise Unsupported(
        f"DuckDB reads text files in UTF-8 and Latin-1 where they lie, and this one is in {reading.encoding}. Leave engine out "
        "to read it into memory, or convert the file to UTF-8"
    )


def refuse_dates_in_place(reading: Reading) -> None:
    """Patterns of dates that are not read in place, refused in one sentence."""
    if reading.dates is not None and not set(reading.dates.parts) <= _DIGITS:
        raise Unsupported(
            f"DuckDB reads dates where they lie by %d, %m and %Y alone, and date_format is {reading.date_format}. Leave engine "
            "out to read the file into memory"
        )


def rewritten(fields: Mapping[str, Field], reading: Reading) -> dict[str, Callable[[exp.Expression], exp.Expression]]:
    """By column that is a number or a date and stored as text: its text in the plain form."""
    texts: dict[str, Callable[[exp.Expression], exp.Expression]] = {}
    for name, field in fields.items():
        if field.stored == "string" and field.kind in ("integer", "number") and not reading.plain_numbers:
            texts[name] = partial(plain_number, reading=reading, codes=field.missing)
        elif field.stored == "string" and field.kind in ("date", "datetime") and reading.dates is not None:
            texts[name] = partial(plain_date, reading=reading, codes=field.missing)
    return texts


def plain_number(value: exp.Expression, reading: Reading, codes: Collection[str] = ()) -> exp.Expression:
    """A number with a decimal point and without marks between thousands."""
    from sqlglot import exp

    from sfumato.engines.sql.values import text_literal

    text = _stripped(value)
    plain = text
    for mark in reading.thousands_marks:
        plain = exp.Anonymous(this="replace", expressions=[plain, text_literal(mark), text_literal("")])
    if reading.decimal == ",":
        plain = exp.Anonymous(this="replace", expressions=[plain, text_literal(","), text_literal(".")])
    return _of_form(value, text, reading.number_form, plain, codes)


def plain_date(value: exp.Expression, reading: Reading, codes: Collection[str] = ()) -> exp.Expression:
    """A date, perhaps with a time of day, in ISO form."""
    from sqlglot import exp

    from sfumato.engines.sql.values import text_literal

    assert reading.dates is not None  # noqa: S101  (whoever calls asked)
    form = _without_names(reading.dates.form.pattern)
    places = {part: f"\\{place}" for place, part in enumerate(reading.dates.parts, 1)}
    order = f"{places['Y']}-{places['m']}-{places['d']}"
    text = _stripped(value)
    day = _replaced(text, f"^{form}$", order)
    clock: exp.Expression = exp.Anonymous(
        this="regexp_extract", expressions=[text.copy(), text_literal(_CLOCK), exp.Literal.number(1)]
    )
    for short, padded in (("-([0-9])-", r"-0\1-"), ("-([0-9])$", r"-0\1")):
        day = _replaced(day, short, padded)
    clock = _replaced(clock, "^([0-9]:)", r"0\1")
    plain = exp.Trim(this=exp.DPipe(this=exp.DPipe(this=day, expression=text_literal(" ")), expression=clock))
    iso = (r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T].*)?",) if reading.reads_iso else ()
    return _of_form(value, text, form, plain, codes, iso)


def _stripped(value: exp.Expression) -> exp.Expression:
    """Without white space around it, as this process reads it."""
    from sqlglot import exp

    from sfumato.engines.sql.values import text_literal

    return exp.Anonymous(this="trim", expressions=[value.copy(), text_literal(SPACE)])


def _replaced(text: exp.Expression, form: str, other: str) -> exp.Expression:
    from sqlglot import exp

    from sfumato.engines.sql.values import text_literal

    return exp.Anonymous(this="regexp_replace", expressions=[text.copy(), text_literal(form), text_literal(other)])


def _of_form(
    value: exp.Expression,
    text: exp.Expression,
    form: str,
    plain: exp.Expression,
    codes: Collection[str],
    as_it_is: Sequence[str] = (),
) -> exp.Expression:
    from sqlglot import exp

    from sfumato.engines.sql.values import text_literal

    # codes first, by their text: one may have the form of a value, or that of another value once it is rewritten
    absent: exp.Expression = _absent(value)
    if codes:
        absent = exp.or_(absent, exp.In(this=value.copy(), expressions=[text_literal(code) for code in codes]))
    cases = [exp.If(this=absent, true=exp.Null()), exp.If(this=matches(text, form), true=plain)]
    cases += [exp.If(this=matches(text, each), true=text.copy()) for each in as_it_is]
    cases.append(exp.If(this=exp.EQ(this=value.copy(), expression=text_literal("")), true=value.copy()))
    return exp.Case(ifs=cases, default=text_literal(_UNREADABLE))


def matches(value: exp.Expression, form: str) -> exp.Expression:
    """Whether the whole text has this form."""
    from sqlglot import exp

    from sfumato.engines.sql.values import text_literal

    return exp.Anonymous(this="regexp_full_match", expressions=[value.copy(), text_literal(form)])


def _without_names(form: str) -> str:
    return re.sub(r"\(\?P<\w+>", "(", form)


def kind_forms(value: exp.Expression, kind: Kind, form: str, reading: Reading) -> list[exp.Expression]:
    """Tests, one of which holds for every text of a column of this kind."""
    if kind in ("integer", "number") and not reading.plain_numbers:
        from sqlglot import exp

        return [exp.and_(matches(value, reading.number_form), matches(plain_number(value, reading), form))]
    if kind == "date":
        from sqlglot import exp

        tests = [(value, form)] if reading.reads_iso else []
        if reading.dates is not None:
            tests.append((plain_date(value, reading), form))
        return [exp.and_(matches(text, each), exp.or_(_is_day(text), _absent(value))) for text, each in tests]
    return [matches(value, form)]


def _is_day(text: exp.Expression) -> exp.Expression:
    from sqlglot import exp

    return exp.Not(this=_absent(exp.TryCast(this=text.copy(), to=exp.DataType.build("DATE"))))


def _absent(value: exp.Expression) -> exp.Expression:
    from sqlglot import exp

    return exp.Is(this=value.copy(), expression=exp.Null())
