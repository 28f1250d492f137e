"""Who publishes a table, for what, and until when: what the owner wants the card of every release to say.

All of it is optional, and none of it is checked: it is the publisher's statement, shown as text. An address of the web is a text
too; nothing makes a link of it.
"""

from __future__ import annotations

import datetime
import re
from typing import Annotated, Any

from pydantic import BeforeValidator, model_validator

from sfumato.core.markup import visible
from sfumato.core.plain_data import PlainDict
from sfumato.core.texts import is_unicode
from sfumato.data.frozen import Frozen

LONGEST_LINE = 500
_LONGEST_WORD = 40
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_WORD = re.compile(r"[^\W\d_][^\W_]*(?:[ '’-][^\W_]+){0,3}")


def _line(value: Any) -> Any:
    if not isinstance(value, str) or not is_unicode(value):
        raise ValueError("a text in one line stands here")
    text = value.strip()
    if not text or len(text) > LONGEST_LINE or visible(text) != text:
        raise ValueError(f"a text in one line stands here, of at most {LONGEST_LINE} characters that can all be seen")
    return text


def _day(value: Any) -> Any:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):  # a date of TOML
        return value.isoformat()
    if not isinstance(value, str) or not _DAY.fullmatch(value):
        raise ValueError("a date such as 2030-12-31 stands here")
    try:
        return datetime.date.fromisoformat(value).isoformat()
    except ValueError:
        raise ValueError("a date such as 2030-12-31 stands here, of a day that the calendar has") from None


def _units(value: Any) -> Any:
    if not isinstance(value, str) or len(value) > _LONGEST_WORD or not _WORD.fullmatch(value):
        raise ValueError("what the units are called stands here, in the plural: a word or a few, such as patients")
    return value


Line = Annotated[str, BeforeValidator(_line)]
Day = Annotated[str, BeforeValidator(_day)]
Units = Annotated[str, BeforeValidator(_units)]

#: What the card calls each entry, in reading order; `units` is said in its first sentence.
LABELS = {
    "publisher": "Published by",
    "contact": "Contact",
    "purpose": "Purpose",
    "licence": "Licence",
    "date": "Date",
    "valid_until": "Valid until",
    "citation": "How to cite",
}


class Publication(Frozen):
    """What the card of a release says about its publication, as the owner writes it under `[publication]`.

    `publisher`, `contact` (an address that people can write to), `purpose`, `licence` and `citation` (how to cite the release)
    are texts in one line; `date` and `valid_until` are days. `units` is what one unit is called, in the plural: people, unless
    the table is about patients or households.

    >>> Publication(publisher="City hospital", valid_until="2030-12-31").shown()
    [('Published by', 'City hospital'), ('Valid until', '2030-12-31')]
    """

    publisher: Line | None = None
    contact: Line | None = None
    purpose: Line | None = None
    licence: Line | None = None
    date: Day | None = None
    valid_until: Day | None = None
    citation: Line | None = None
    units: Units | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Publication:
        if self.date is not None and self.valid_until is not None and self.valid_until < self.date:
            raise ValueError("valid_until is before date")
        return self

    def stated(self) -> PlainDict:
        """The entries that say something."""
        return self.model_dump(exclude_none=True)

    def shown(self) -> list[tuple[str, str]]:
        """What the card calls the entries that say something, with what they say."""
        stated = self.stated()
        return [(label, stated[name]) for name, label in LABELS.items() if name in stated]


NOTHING_SAID = Publication()
