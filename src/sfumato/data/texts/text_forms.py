"""The forms in which a text is a value of a declared type: one definition for this process and for every engine.

Regular expressions for whole texts, in words that Python, DuckDB, PostgreSQL and Spark read alike, so without a look ahead.
White space around a text means nothing and has gone before.
"""

from __future__ import annotations

#: White space of Unicode: what `str.strip` removes.
SPACE = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)

#: Truth values, in lower case.
YES = ("true", "t", "yes", "y", "1")
NO = ("false", "f", "no", "n", "0")

#: A whole number, perhaps with a fraction of zeros; one within 64 bits is a value.
INTEGER = "[+-]?[0-9]{1,30}(?:[.]0*)?"
NUMBER = "[+-]?(?:(?:[0-9]+(?:[.][0-9]*)?|[.][0-9]+)(?:[eE][+-]?[0-9]+)?|inf)"

_HOUR, _SIXTY = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]"
_FRACTION = "(?:[.,][0-9]+)?"
_CLOCK = f"{_HOUR}(?::{_SIXTY}(?::{_SIXTY}{_FRACTION})?|{_SIXTY}(?:{_SIXTY}{_FRACTION})?)?"
_ZONE = f"(?: ?(?:Z|[+-]{_HOUR}(?::{_SIXTY}(?::{_SIXTY})?|{_SIXTY}(?:{_SIXTY})?)?))?"

#: A day of the years 1 to 9999, if the calendar has it.
DAY = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{2}-[0-9]{2}"
#: A day, perhaps with a time of day and a distance from UTC; six digits of a fraction count. A date is one at midnight.
MOMENT = f"{DAY}(?:[ T]{_CLOCK}{_ZONE})?"
#: The moments that every engine casts by itself.
PLAIN_MOMENT = f"{DAY}[ T]{_HOUR}:{_SIXTY}(?::{_SIXTY}(?:[.][0-9]{{1,6}})?)?"

#: What is said of a table in which some texts are no values of their type.
MISFITS = (
    "has values that do not fit their type (correct the type, list the code under the column, as missing, or say under [read] "
    "how numbers and dates are written)"
)


def unreadable_texts(name: str, count: int, texts: int, kind: str) -> str:
    """How many texts of a column are no values of its type."""
    return f"column '{name}': {count:,} of {texts:,} values cannot be read as {'an' if kind == 'integer' else 'a'} {kind}"
