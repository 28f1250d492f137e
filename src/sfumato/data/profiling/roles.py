"""A role to start from, with the reason: by what the values look like, then by the column's name, then by how
many values there are.

In doubt a column counts as known to an outsider (`quasi`): a default that protects, for the owner to relax.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.texts import percent
from sfumato.data.profiling.identifier_names import PERSON_NUMBERS
from sfumato.data.profiling.identifier_patterns import PATTERNS
from sfumato.data.schema import Role, Type

DIRECT = {pattern.name for pattern in PATTERNS if pattern.kind == "direct"}
_CLEAR = 0.8  # share of matching values that settles the matter
_NEARLY_ALL_DIFFERENT = 0.9
_FREE_TEXT_LENGTH = 40
_FREE_TEXT_WORDS = 4
_FEWEST_ROWS = 20  # below that, all values being different says little
_AS_FLAGS_HAVE = 2  # values
_CODE_DIGITS = 6  # whole numbers of so many digits, all of one length and none twice, are codes rather than amounts
_AMOUNTS = 'nearly all values differ, as amounts do, and no name or form says that they number people; role = "identifier" if so'
_FEW_KINDS, _OFTEN = 20, 100  # fewer values than this, in so many rows each on average


@dataclass(frozen=True)
class Suggestion:
    """A role and why."""

    role: Role
    reason: str


def suggest(
    *,
    kind: Type,
    rows: int,
    distinct: int,
    unique_share: float,
    mean_length: float,
    mean_words: float = 1.0,
    named: tuple[Role, str] | None,
    patterns: Mapping[str, float],
    numbers: NDArray[np.int64] | None = None,
) -> Suggestion:
    """The role of a column; `named` is what its name suggests and `patterns` the share of values of each
    kind, `numbers` the different values of a column of whole numbers."""
    if distinct <= 1 and not (named and named[0] == "identifier"):
        return Suggestion("plain", "one value only" if distinct else "no values")
    direct = {name: part for name, part in patterns.items() if name in DIRECT and part >= _CLEAR}
    if direct and not (named is not None and named[0] == "quasi"):
        name, part = max(direct.items(), key=lambda entry: entry[1])
        return Suggestion("identifier", f"{percent(part)} of the values look like: {name}")
    if named is not None:
        return _by_name(named, kind, distinct, rows)
    text = kind == "string"
    wordy = mean_words >= _FREE_TEXT_WORDS and distinct > _FEW_KINDS and distinct * 2 >= rows
    if text and (mean_length >= _FREE_TEXT_LENGTH or wordy):
        return Suggestion("identifier", "free text, which may name people: an identifier, so that it is dropped")
    if rows >= _FEWEST_ROWS and kind in ("string", "integer") and nearly_all_different(distinct, rows):
        if numbers is not None and not _are_codes(numbers, all_differ=distinct == rows):
            return Suggestion("quasi", _AMOUNTS)
        return Suggestion("identifier", f"{percent(unique_share)} of the records have a value of their own")
    indirect = next((name for name, part in patterns.items() if part >= _CLEAR), None)
    if indirect is not None:
        return Suggestion("quasi", f"the values look like: {indirect}")
    return Suggestion("quasi", 'an outsider may know it; set role = "plain" if not')


def nearly_all_different(distinct: int, rows: int) -> bool:
    """Whether so few values repeat that most records have one of their own."""
    return distinct >= _NEARLY_ALL_DIFFERENT * rows


def _are_codes(numbers: NDArray[np.int64], *, all_differ: bool) -> bool:
    """Whether whole numbers were given out: as a series in equal steps with few gaps, or as codes of one length. Amounts are
    neither: drawn from a range so narrow that half of it occurs, far more than a tenth of them would repeat."""
    first, last = int(numbers.min()), int(numbers.max())
    if all_differ and first > 0 and len(str(first)) == len(str(last)) >= _CODE_DIGITS:
        return True
    step = int(np.gcd.reduce(np.diff(np.sort(numbers)).astype(np.uint64)))  # right also where a difference of 64 bits overflows
    return last - first < 2 * numbers.size * step


def _by_name(named: tuple[Role, str], kind: Type, distinct: int, rows: int) -> Suggestion:
    role, word = named
    if role == "weight" and kind not in ("integer", "number"):
        return Suggestion("quasi", f"the name says '{word}', but the values are no numbers")
    if role == "unit" and kind not in ("string", "integer"):
        return Suggestion("quasi", f"the name says '{word}', but the values name nobody")
    if role in ("identifier", "unit") and distinct <= _AS_FLAGS_HAVE and rows >= _FEWEST_ROWS:
        return Suggestion("quasi", f"the name says '{word}', but there {'is 1 value' if distinct == 1 else 'are 2 values'} only")
    if role in ("identifier", "unit") and few_repeat(word, distinct, rows):
        return Suggestion("identifier", f"the name says '{word}', though {distinct} values repeat often")
    return Suggestion(role, f"the name says '{word}'")


def few_repeat(word: str, distinct: int, rows: int) -> bool:
    """Whether so few values repeat so often that they may as well be kinds of something, unless the word numbers people."""
    return word not in PERSON_NUMBERS and distinct < _FEW_KINDS and distinct <= rows // _OFTEN
