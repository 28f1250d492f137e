"""What the values of a column look like: addresses, numbers with check digits, dates of birth, places.

Each pattern is a shape plus, where the number has check digits, their test, so that arbitrary digits are not
taken for an account or a card. Nothing here returns a value: only the share of values that match.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Pattern:
    """A kind of value: `direct` ones identify a person alone, the others in combination."""

    name: str
    matches: Callable[[str], bool]
    kind: Literal["direct", "indirect"] = "direct"


def share(pattern: Pattern, values: Sequence[str], counts: Sequence[int]) -> float:
    """The share of records whose value matches."""
    total = sum(counts)
    return sum(count for value, count in zip(values, counts, strict=True) if pattern.matches(value)) / total if total else 0.0


def luhn(digits: str) -> bool:
    """The check of card numbers and of several national numbers. Luhn, US patent 2950048, 1960."""
    total = 0
    for position, digit in enumerate(reversed(digits)):
        number = int(digit) * (2 if position % 2 else 1)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


def iban(value: str) -> bool:
    """ISO 13616: country, two check digits, up to 30 more characters, remainder 1 modulo 97."""
    compact = value.replace(" ", "").upper()
    if not re.fullmatch(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}", compact):
        return False
    return int("".join(str(int(c, 36)) for c in compact[4:] + compact[:4])) % 97 == 1


def payment_card(value: str) -> bool:
    """13 to 19 digits, in groups or not, starting like a card and passing Luhn's check."""
    digits = re.sub(r"[ -]", "", value)
    return bool(re.fullmatch(r"[3-6][0-9]{12,18}", digits)) and luhn(digits)


def national_id(value: str) -> bool:
    """A personal number of one of several countries; where it has check digits they must be right."""
    text = value.strip().upper()
    return any(test(text) for test in _NATIONAL)


def _us_ssn(text: str) -> bool:
    return bool(re.fullmatch(r"(?!000|666|9)[0-9]{3}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}", text))


def _uk_nino(text: str) -> bool:
    return bool(
        re.fullmatch(
            r"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?(?:[0-9]{2} ?){3}[A-D]",
            text,
        )
    )


def _es_dni(text: str) -> bool:
    match = re.fullmatch(r"([XYZ]?)([0-9]{7,8})-?([A-Z])", text)
    if match is None or len(match[1]) + len(match[2]) != 8:
        return False
    number = int({"X": "0", "Y": "1", "Z": "2"}.get(match[1], "") + match[2])
    return "TRWAGMYFPDXBNJZSQVHLCKE"[number % 23] == match[3]


def _it_codice_fiscale(text: str) -> bool:
    return bool(re.fullmatch(r"[A-Z]{6}[0-9]{2}[ABCDEHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z]", text))


def _fr_nir(text: str) -> bool:
    digits = text.replace(" ", "")
    return bool(re.fullmatch(r"[12][0-9]{14}", digits)) and 97 - int(digits[:13]) % 97 == int(digits[13:])


def _se_personnummer(text: str) -> bool:
    match = re.fullmatch(r"(?:[0-9]{2})?([0-9]{6})[-+]([0-9]{4})", text)
    return match is not None and luhn(match[1] + match[2])


def _fi_henkilotunnus(text: str) -> bool:
    match = re.fullmatch(r"([0-9]{6})[-+A-FU-Y]([0-9]{3})([0-9A-Y])", text)
    return match is not None and "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(match[1] + match[2]) % 31] == match[3]


def _no_fodselsnummer(text: str) -> bool:
    if not re.fullmatch(r"[0-7][0-9]{10}", text):
        return False
    digits = [int(c) for c in text]
    first = sum(a * b for a, b in zip((3, 7, 6, 1, 8, 9, 4, 5, 2, 1), digits, strict=False))
    second = sum(a * b for a, b in zip((5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1), digits, strict=True))
    return first % 11 == 0 and second % 11 == 0


def _br_cpf(text: str) -> bool:
    digits = [int(c) for c in re.sub(r"[.-]", "", text) if c.isdecimal()]
    if not re.fullmatch(r"[0-9]{3}\.?[0-9]{3}\.?[0-9]{3}-?[0-9]{2}", text) or len(set(digits)) == 1:
        return False
    checks = [sum((length + 1 - i) * digits[i] for i in range(length)) * 10 % 11 % 10 for length in (9, 10)]
    return checks == digits[9:]


def _tr_kimlik(text: str) -> bool:
    if not re.fullmatch(r"[1-9][0-9]{10}", text):
        return False
    d = [int(c) for c in text]
    return (7 * sum(d[0:9:2]) - sum(d[1:8:2])) % 10 == d[9] and sum(d[:10]) % 10 == d[10]


_NATIONAL = (
    _us_ssn,
    _uk_nino,
    _es_dni,
    _it_codice_fiscale,
    _fr_nir,
    _se_personnummer,
    _fi_henkilotunnus,
    _no_fodselsnummer,
    _br_cpf,
    _tr_kimlik,
)


def _ip(value: str) -> bool:
    if value.count(".") != 3 and value.count(":") < 2:
        return False
    try:
        ipaddress.ip_address(value.strip())
    except ValueError:
        return False
    return True


def _date_in_a_lifetime(value: str) -> bool:
    """A date in the last 120 years, in ISO or a usual national order."""
    match = re.match(r"([0-9]{4})-[01][0-9]-[0-3][0-9]\b", value) or re.fullmatch(
        r"[0-3]?[0-9][./][0-3]?[0-9][./]([0-9]{4})", value
    )
    this_year = datetime.date.today().year
    return match is not None and this_year - 120 <= int(match[1]) <= this_year


def _phone(value: str) -> bool:
    digits = re.sub(r"\D", "", value)
    shaped = re.fullmatch(
        r"(?:\+|00)[0-9 ()./-]{7,22}"  # international
        r"|\(?0[0-9]{1,5}\)?[ /.-][0-9 ()./-]{4,20}"  # area code and number
        r"|\(?[2-9][0-9]{2}\)?[ .-][0-9]{3}[ .-][0-9]{4}",  # North America
        value,
    )
    return shaped is not None and 7 <= len(digits) <= 15


def _shape(expression: str) -> Callable[[str], bool]:
    compiled = re.compile(expression)
    return lambda value: compiled.fullmatch(value) is not None


#: Four or five digits, the United Kingdom, Canada.
_POSTCODE = (
    r"(?:[A-Z]{1,2}-)?[0-9]{4,5}(?:-[0-9]{4})?"
    r"|[A-Z]{1,2}[0-9][A-Z0-9]? ?[0-9][A-Z]{2}"
    r"|[A-Z][0-9][A-Z] ?[0-9][A-Z][0-9]"
)

PATTERNS: tuple[Pattern, ...] = (
    Pattern("e-mail address", _shape(r"[^@\s]{1,64}@[^@\s]+\.[A-Za-z]{2,24}")),
    Pattern("UUID", _shape(r"\{?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\}?")),
    Pattern("IBAN", iban),
    Pattern("payment card", payment_card),
    Pattern("national number", national_id),
    Pattern("IP address", _ip),
    Pattern("web address", _shape(r"(?:https?://|www\.)\S+")),
    Pattern("date of the last 120 years", _date_in_a_lifetime, "indirect"),
    Pattern("telephone number", _phone),
    Pattern("coordinates", _shape(r"\(?-?[0-9]{1,3}\.[0-9]{3,}[,; ]+-?[0-9]{1,3}\.[0-9]{3,}\)?"), "indirect"),
    Pattern("postcode", _shape(_POSTCODE), "indirect"),
)  # fmt: skip
