"""ISCO-08 codes of occupations: four digits, three, two, and the major group.

Structure of the International Standard Classification of Occupations 2008, International Labour Organization: 10 major, 43
sub-major and 130 minor groups. A code of four digits is known if its minor group is. Names of major groups are our own words.
"""

from __future__ import annotations

import re

from sfumato.data.value_kinds.base import Groups, ValueKind

MAJOR_GROUPS = {
    "0": "0 Armed forces",
    "1": "1 Managers",
    "2": "2 Professionals",
    "3": "3 Technicians",
    "4": "4 Clerks",
    "5": "5 Services and sales",
    "6": "6 Farming, forestry and fishing",
    "7": "7 Crafts",
    "8": "8 Machines and assembly",
    "9": "9 Elementary occupations",
}
#: Sub-major groups, each with the last digits of its minor groups.
_MINOR = """
01:1 02:1 03:1
11:12 12:12 13:1234 14:123
21:123456 22:123456 23:12345 24:123 25:12 26:12345
31:12345 32:12345 33:12345 34:123 35:12
41:123 42:12 43:12 44:1
51:123456 52:1234 53:12 54:1
61:123 62:12 63:1234
71:123 72:123 73:12 74:12 75:1234
81:12345678 82:1 83:12345
91:12 92:1 93:123 94:1 95:12 96:12
"""
_DIGITS = {entry[:2]: entry[3:] for entry in _MINOR.split()}
MINOR_GROUPS = frozenset(sub + digit for sub, digits in _DIGITS.items() for digit in digits)


def groups(value: str) -> Groups:
    """Minor, sub-major and major group of a code; a shorter code stands for the group that it names.

    >>> groups("2211")
    ('221', '22', '2 Professionals')
    """
    code = value.strip()
    if not re.fullmatch(r"[0-9]{1,4}", code) or code[0] not in MAJOR_GROUPS:
        return None
    if len(code) >= 2 and code[:2] not in _DIGITS or len(code) >= 3 and code[:3] not in MINOR_GROUPS:
        return None
    return code[:3], code[:2], MAJOR_GROUPS[code[0]]


KIND = ValueKind(
    "isco08",
    "ISCO-08 codes of occupations",
    ("minor group", "sub-major group", "major group"),
    ("isco", "isco08", "isco 08", "occupation", "occupation code", "job code", "beruf", "profession"),
    groups,
)
