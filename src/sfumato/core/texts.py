"""The text form of a value: one for all types that can carry it."""

from __future__ import annotations

import datetime
import math

from sfumato.core.exact import python_number


def text_of(value: object) -> str | None:
    """The text form of one value."""
    if value is None:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time(0)
        return value.date().isoformat() if midnight and value.tzinfo is None else value.isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    plain = python_number(value)
    return str(value) if plain is value else text_of(plain)


def with_article(noun: str) -> str:
    """The noun behind `a` or `an`; a `u` is mostly spoken as in `user` and `unit`.

    >>> with_article("id"), with_article("user"), with_article("patient")
    ('an id', 'a user', 'a patient')
    """
    return f"{'an' if noun[:1].lower() in tuple('aeio') else 'a'} {noun}"
