"""How the texts of a table are to be read: what separates cells, how numbers and dates are written, what stands for no value.

A schema states it once for its table, as `[read]`; an option of a command or of `read` overrides a key. What is left out is
detected (separator, encoding) or plain: a decimal point, no mark between thousands, dates as 1956-02-25. Numbers and dates are
read exactly: under `decimal = ","` the text 1.5 is no number, because 1.500 could mean either.
"""

from __future__ import annotations

import codecs
import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated

from sfumato.core.declared import Declared, declarations
from sfumato.core.errors import ParameterError
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.core.ranges import Each, OneOf, Range, Refused
from sfumato.core.texts import is_unicode
from sfumato.data.texts.date_format import DateFormat, DatePattern

#: Codecs of texts that are no sets of characters: they rewrite what stands in a cell.
_REWRITING = frozenset({"unicode-escape", "raw-unicode-escape", "idna", "punycode", "undefined", "unicode-internal"})
#: What may stand for a mark between thousands: blanks and apostrophes come in several characters.
_ALIKE = {" ": " \u00a0\u2009\u202f", "'": "'\u2019"}


@dataclass(frozen=True)
class _Separator(Range):
    words = "one ASCII character, and neither a quote nor a line break"

    def settled(self, value: object) -> str:
        if value == "\\t":  # as it is typed in a shell
            return "\t"
        if not isinstance(value, str) or len(value) != 1 or not value.isascii() or value in '"\r\n\0':
            raise Refused(f"is {self.words}")
        return value


@dataclass(frozen=True)
class _Thousands(OneOf):
    """The empty text is no mark: it takes back that of a schema."""

    def settled(self, value: object) -> object:
        return None if value == "" else super().settled(value)


@dataclass(frozen=True)
class _Encoding(Range):
    words = "the name of an encoding, for instance utf-8 or cp1252"

    def settled(self, value: object) -> str:
        if not isinstance(value, str):
            raise Refused("is the name of an encoding")
        if not _is_character_encoding(value):
            raise Refused(f"is {value[:40]!r}, and there is no encoding called so; utf-8 and cp1252, for instance, are some")
        return value


@dataclass(frozen=True)
class _Pattern(Range):
    words = "a pattern of %d %m %Y %y %b %H %M %S, for instance %d.%m.%Y"

    def settled(self, value: object) -> str:
        if not isinstance(value, str):
            raise self.refuse(value)
        try:
            DateFormat.of(value)
        except ValueError as fault:
            raise Refused(str(fault)) from None
        return value


@dataclass(frozen=True)
class _Code(Range):
    words = "a text"

    def settled(self, value: object) -> str:
        if isinstance(value, int) and not isinstance(value, bool):  # a whole number is a code too
            return str(value)
        if not isinstance(value, str) or len(value) > 1000 or not is_unicode(value):
            raise Refused("must be a list of texts")
        return value


def _is_character_encoding(name: str) -> bool:
    try:
        "".encode(name)  # refuses what makes something other than bytes out of a text, such as rot13
        return codecs.lookup(name).name.replace("_", "-") not in _REWRITING
    except (LookupError, ValueError):
        return False


@dataclass(frozen=True)
class Reading(Declared):
    """How the texts of one table are read.

    >>> german = Reading(decimal=",", thousands=".", date_format="%d.%m.%Y")
    >>> german.number("1.234,56"), german.number("1.5"), german.moment("25.02.1956")
    ('1234.56', None, '1956-02-25')
    """

    separator: Annotated[str | None, _Separator(), "the character between the cells of a text file; detected if left out"] = None
    decimal: Annotated[str | None, OneOf((".", ",")), "the decimal mark of numbers; a point if left out"] = None
    thousands: Annotated[
        str | None,
        _Thousands((".", ",", " ", "'", "_")),
        "the mark between groups of three digits of a number; none if left out, '' for none where the schema states one",
    ] = None
    encoding: Annotated[
        str | None,
        _Encoding(),
        "the encoding of a text file, for instance cp1252; detected if left out, in private answers UTF-8",
    ] = None
    date_format: Annotated[
        str | None, _Pattern(), "how dates are written, for instance %d.%m.%Y or %m/%d/%Y; 1956-02-25 is read too"
    ] = None
    missing: Annotated[tuple[str, ...], Each(_Code(), alone=True), "a text that means no value, in every column"] = ()

    def coherent(self) -> Iterable[str]:
        """A mark cannot stand for two things."""
        if self.thousands is not None and self.thousands == (self.decimal or "."):
            also = "" if self.decimal else ", which a decimal point is unless decimal says otherwise"
            yield f"thousands and decimal are both {self.thousands!r}{also}. State the other one too; thousands '' is for none"

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The keys."""
        return tuple(each.name for each in declarations(cls))

    def overridden(self, stated: Plain) -> Reading:  # values of the keys
        """The same with other keys, those that are None left as they are."""
        changes = {name: value for name, value in stated.items() if value is not None}
        try:
            return dataclasses.replace(self, **changes) if changes else self
        except ParameterError as error:
            raise ParameterError(str(error).removeprefix("Reading: ")) from None

    def of_another_table(self) -> Reading:
        """What is kept for a second table about the same people: separator and encoding of its file are its own."""
        return dataclasses.replace(self, separator=None, encoding=None)

    def to_mapping(self) -> PlainDict:
        """The keys that say something, as plain data."""
        listed = {name: getattr(self, name) for name in self.names()}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in listed.items() if value}

    @property
    def plain_numbers(self) -> bool:
        """Whether numbers are written as everywhere in the program."""
        return self.decimal in (None, ".") and self.thousands is None

    @property
    def plain(self) -> bool:
        """Whether numbers and dates are."""
        return self.plain_numbers and self.date_format is None

    @cached_property
    def dates(self) -> DatePattern | None:
        """The pattern of dates, ready to be used."""
        return None if self.date_format is None else DateFormat.of(self.date_format)

    @property
    def number_form(self) -> str:
        """Numbers as they are written here, as a regular expression; blanks may stand around them."""
        return _number_form(self.decimal or ".", self.thousands)

    @property
    def thousands_marks(self) -> str:
        """The characters that may stand between thousands."""
        return _ALIKE.get(self.thousands or "", self.thousands or "")

    def number(self, text: str) -> str | None:
        """A number with a decimal point and without marks between thousands; None where it is none."""
        if _compiled(self.number_form).fullmatch(text) is None:
            return None
        for mark in self.thousands_marks:
            text = text.replace(mark, "")
        return text.replace(self.decimal or ".", ".").strip()

    def moment(self, text: str) -> str | None:
        """A date, or a date with a time, as it is written in ISO 8601; None where it is neither."""
        return text if self.dates is None else self.dates.iso(text)

    @property
    def reads_iso(self) -> bool:
        """Whether dates such as 1956-02-25 are read too: unless they could mean another day."""
        return self.dates is None or not self.dates.year_day_month


PLAIN = Reading()


@cache
def _number_form(decimal: str, thousands: str | None) -> str:
    whole = "[0-9]+"
    if thousands is not None:
        mark = f"[{re.escape(_ALIKE.get(thousands, thousands))}]"
        # one kind of blank or apostrophe may stand beside another: nobody means two things by them
        whole = f"(?:[0-9]{{1,3}}(?:{mark}[0-9]{{3}})+|[0-9]+)"
    point = re.escape(decimal)
    return rf"\s*[+-]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]{{1,3}})?\s*"


@cache
def _compiled(form: str) -> re.Pattern[str]:
    return re.compile(form, re.ASCII)


def stated_options(options: Plain) -> PlainDict:
    """Options that can only be keys of a reading, checked."""
    if other := [name for name in options if name not in Reading.names()]:
        raise ParameterError(f"unknown option {', '.join(other)}; texts are read by {', '.join(Reading.names())}")
    return stated_reading(options)


def stated_reading(options: Plain) -> PlainDict:
    """The keys of a reading among options, checked; those that are None say nothing."""
    stated = {name: options[name] for name in Reading.names() if options.get(name) is not None}
    try:
        Reading(**stated)
    except ParameterError as error:
        raise ParameterError(str(error).removeprefix("Reading: ")) from None
    return stated
