"""Dates as people write them, by a pattern such as `%d.%m.%Y`: a small and exact part of `strftime`.

`%d` day, `%m` month, `%b` month in three English letters, `%Y` year in four digits, `%y` in two, `%H:%M` and `%H:%M:%S` the time
of day. Of two digits 00 to 29 mean 2000 to 2029, and 30 to 99 mean 1930 to 1999. Days, months and hours may be written without a
leading zero where something stands between them and the next digits. A pattern without a time also reads a time of day that
follows after a blank or a T.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
#: The last two-digit year of this century.
LAST_OF_THIS_CENTURY = 29
_PARTS = {"Y": "year", "y": "year", "m": "month", "b": "month", "d": "day", "H": "hour", "M": "minute", "S": "second"}
_LONGEST = 40
_TIME = r"(?:[ T]+(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.]0+)?)?)?"


@dataclass(frozen=True)
class DatePattern:
    """A pattern of dates; `form` is its regular expression with a group for each part."""

    pattern: str
    form: re.Pattern[str]
    parts: tuple[str, ...]  # letters of the directives, in order

    @property
    def year_day_month(self) -> bool:
        """Whether the order is that of ISO dates with day and month exchanged."""
        return [part for part in self.parts if part in "Ymbd"][:2] == ["Y", "d"]

    def iso(self, text: str) -> str | None:
        """The date, with its time of day where that is written, in ISO 8601; None where the text is no date of this form."""
        match = self.form.fullmatch(text.strip())
        moment = None if match is None else self._moment(match.groupdict())
        if match is None or moment is None:
            return None
        return moment.date().isoformat() if match["hour"] is None else moment.isoformat(sep=" ")

    def _moment(self, parts: Mapping[str, str]) -> datetime.datetime | None:
        year = int(parts["year"])
        if "y" in self.parts:
            year += 2000 if year <= LAST_OF_THIS_CENTURY else 1900
        month = parts["month"].lower()
        hour, minute, second = (int(parts.get(name) or 0) for name in ("hour", "minute", "second"))
        try:
            number = MONTHS.index(month) + 1 if "b" in self.parts else int(month)
            return datetime.datetime(year, number, int(parts["day"]), hour, minute, second)
        except ValueError:
            return None


class DateFormat:
    """Patterns by their text."""

    @staticmethod
    @cache
    def of(pattern: str) -> DatePattern:
        """The pattern; a `ValueError` says what is wrong with it."""
        if not 0 < len(pattern) <= _LONGEST or not pattern.isprintable():
            raise ValueError(f"must be a pattern of at most {_LONGEST} printable characters, for instance %d.%m.%Y")
        pieces = re.findall(r"%.?| +|[^% ]", pattern)
        letters = tuple(piece[1:] for piece in pieces if piece.startswith("%"))
        if any(letter not in _PARTS for letter in letters):
            raise ValueError("may use %d %m %Y %y %b %H %M %S only, for instance %d.%m.%Y")
        parts = [_PARTS[letter] for letter in letters]
        if len(set(parts)) != len(parts):
            raise ValueError("names a part of the date twice")
        if not {"year", "month", "day"} <= set(parts):
            raise ValueError("must name day, month and year, for instance %d.%m.%Y")
        if ("minute" in parts) != ("hour" in parts) or ("second" in parts and "minute" not in parts):
            raise ValueError("must name hours with minutes (%H:%M), and seconds only behind them (%H:%M:%S)")
        form = ""
        for place, piece in enumerate(pieces):
            if not piece.startswith("%"):
                if piece.isalnum() and piece != "T":
                    raise ValueError("may have no letters or digits beside its parts")
                form += "[ \u00a0]+" if piece.isspace() else re.escape(piece)
                continue
            beside = [pieces[near] for near in (place - 1, place + 1) if 0 <= near < len(pieces)]
            apart = not any(near.startswith("%") and near != "%b" for near in beside)
            form += f"(?P<{_PARTS[piece[1:]]}>{_digits(piece[1:], apart)})"
        return DatePattern(pattern, re.compile(form + (_TIME if "hour" not in parts else "")), letters)


def _digits(letter: str, apart: bool) -> str:
    if letter == "b":
        return f"(?ai:{'|'.join(MONTHS)})"  # ASCII: the long s of other times is no s
    if letter == "Y":
        return "[0-9]{4}"
    return "[0-9]{1,2}" if apart and letter in "dmH" else "[0-9]{2}"
