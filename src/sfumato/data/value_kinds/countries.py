"""Countries by English name or by their letters in ISO 3166: region, continent.

Letters are read in capitals only; names in any case, with or without accents and punctuation. A name that is spelt otherwise is
not placed.
"""

from __future__ import annotations

from functools import cache

from sfumato.data.hierarchies.similar_values import plain_words
from sfumato.data.value_kinds.base import Groups, ValueKind
from sfumato.data.value_kinds.country_list import REGIONS

_TWO, _THREE = 2, 3


@cache
def places() -> tuple[dict[str, tuple[str, str]], dict[str, tuple[str, str]]]:
    """Region and continent by letters, and by the plain words of names."""
    by_letters: dict[str, tuple[str, str]] = {}
    by_name: dict[str, tuple[str, str]] = {}
    place = ("", "")
    for line in REGIONS.strip().splitlines():
        continent, colon, region = line.partition(": ")
        if colon:
            place = (region, continent)
            continue
        two, three, names = line.split(" ", 2)
        by_letters[two] = by_letters[three] = place
        by_name.update((plain_words(name), place) for name in names.split(" | "))
    return by_letters, by_name


def groups(value: str) -> Groups:
    """Region and continent of a country.

    >>> groups("CH"), groups("Ivory Coast")
    (('Western Europe', 'Europe'), ('Western Africa', 'Africa'))
    """
    by_letters, by_name = places()
    letters = value.strip()
    if len(letters) in (_TWO, _THREE) and letters.isupper() and letters in by_letters:
        return by_letters[letters]
    return by_name.get(plain_words(value))


def names() -> list[str]:
    """The names of all countries, those in common use first."""
    listed = [line.split(" ", 2)[2] for line in REGIONS.strip().splitlines() if ": " not in line]
    return [name for entry in listed for name in entry.split(" | ")]


KIND = ValueKind(
    "countries",
    "countries (names, or two or three letters of ISO 3166)",
    ("region", "continent"),
    ("country", "pays", "pais", "paese", "land", "nation", "nationality", "citizenship", "native country", "birthplace", "staat"),
    groups,
    telling=True,
    spellings=names,
)
