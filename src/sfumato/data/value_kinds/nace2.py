"""NACE codes of economic activities, revision 2: class, group, division, section.

Structure of the statistical classification of economic activities in the European Community, Regulation (EC) No 1893/2006: 21
sections over 88 divisions; a division, a group and a class each add a digit. Names of sections are our own words.
"""

from __future__ import annotations

import re

from sfumato.data.value_kinds.base import Groups, ValueKind

#: Section, first and last division, and what it is about.
_SECTIONS = """
A 01 03 Farming, forestry and fishing
B 05 09 Mining
C 10 33 Manufacturing
D 35 35 Electricity and gas
E 36 39 Water and waste
F 41 43 Building
G 45 47 Trade
H 49 53 Transport and storage
I 55 56 Hotels and restaurants
J 58 63 Information and communication
K 64 66 Finance and insurance
L 68 68 Real estate
M 69 75 Professional and technical services
N 77 82 Administrative services
O 84 84 Public administration
P 85 85 Education
Q 86 88 Health and social work
R 90 93 Arts and leisure
S 94 96 Other services
T 97 98 Households as employers
U 99 99 International organisations
"""
SECTIONS = {
    f"{number:02d}": f"{letter} {words}"
    for letter, first, last, words in (line.split(maxsplit=3) for line in _SECTIONS.strip().splitlines())
    for number in range(int(first), int(last) + 1)
}
_LETTERS = {section[0]: section for section in SECTIONS.values()}
#: `62.01` and `6201`, `62.0` and `620`, `62`, each with or without the letter of its section.
_CODE = re.compile(r"([A-U])?[ .]?([0-9]{2})(?:\.?([0-9])([0-9])?)?")


def groups(value: str) -> Groups:
    """Group, division and section of a class; a shorter code stands for what it names. A letter must be that of the division.

    >>> groups("62.01"), groups("J")
    (('62.0', '62', 'J Information and communication'), ('J', 'J', 'J Information and communication'))
    """
    text = value.strip().upper()
    if text in _LETTERS:
        return text, text, _LETTERS[text]
    code = _CODE.fullmatch(text)
    if code is None or code[2] not in SECTIONS:
        return None
    section, division = SECTIONS[code[2]], code[2]
    if code[1] is not None and code[1] != section[0]:
        return None
    return f"{division}.{code[3]}" if code[3] else division, division, section


KIND = ValueKind(
    "nace2",
    "NACE codes of economic activities (revision 2)",
    ("group", "division", "section"),
    ("nace", "nace2", "industry", "branche", "sector", "wz", "noga", "ateco", "activity", "sni", "industry code"),
    groups,
)
