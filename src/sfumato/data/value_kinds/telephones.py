"""Telephone numbers: without the last four digits, the beginning that says the region, the country.

Codes of countries begin as ITU-T Recommendation E.164 gives them: one digit for zones 1 and 7, two digits for those listed, three
for the rest. A number without such a code is national.
"""

from __future__ import annotations

import re

from sfumato.data.profiling.identifier_patterns import PATTERNS
from sfumato.data.value_kinds.base import Groups, ValueKind

_TWO_DIGITS = frozenset(
    "20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 66 81 82 84 86 90 91 92 93"
    " 94 95 98".split()
)
#: Zones in which no country has a code.
_UNASSIGNED = ("0", "28", "83", "89")
_LAST, _REGION = 4, 2
_NATIONAL = "no country code"
_WITHIN = re.compile(r"\( *0 *\)")
_SHAPE = next(pattern for pattern in PATTERNS if pattern.name == "telephone number")


def groups(value: str) -> Groups:
    """The number without its last four digits, its region, and its country; digits that are left out show as `*`.

    >>> groups("+41 44 123 45 67")
    ('+4144123****', '+4144*******', '+41')
    >>> groups("+41 (0)44 123 45 67") == groups("+41 44 123 45 67")
    True
    """
    text = value.strip()
    if not _SHAPE.matches(text):
        return None
    abroad = text.startswith(("+", "00"))
    # the zero in +41 (0)44 is dialled within the country alone, and never behind the code of the country
    digits = re.sub(r"\D", "", _WITHIN.sub("", text, count=1) if abroad else text)
    if not abroad:
        return _masked(digits, digits[:3] if digits[0] == "0" else digits[: _REGION + 1], _NATIONAL)
    digits = digits.removeprefix("00") if text.startswith("00") else digits
    code = country_code(digits)
    if code is None or len(digits) < len(code) + _REGION + _LAST:
        return None
    return _masked(f"+{digits}", f"+{digits[: len(code) + _REGION]}", f"+{code}")


def _masked(number: str, region: str, country: str) -> tuple[str, ...]:
    return number[:-_LAST] + "*" * _LAST, region + "*" * (len(number) - len(region)), country


def country_code(digits: str) -> str | None:
    """The code of the country that an international number begins with."""
    if digits.startswith(_UNASSIGNED):
        return None
    return digits[: 1 if digits[:1] in ("1", "7") else 2 if digits[:2] in _TWO_DIGITS else 3]


KIND = ValueKind(
    "telephones",
    "telephone numbers",
    ("without the last four digits", "region", "country"),
    ("phone", "telephone", "tel", "mobile", "cell", "fax", "telefon", "telefono", "telefone", "handy", "telefonnummer"),
    groups,
    telling=True,
)
