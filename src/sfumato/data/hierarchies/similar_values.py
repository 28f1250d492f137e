"""Values that may be the same written differently: groups of them as a proposal, and the nearest value of a list.

Texts are compared as plain words: lower case, without accents and punctuation. Values with the same words, in any order, are
alike; so are values that differ in few letters (edit distance), or share most of their words. From the most frequent value on,
each joins the most similar group before it or begins one of its own, so that no chain of small differences leads far, and the
outcome depends on the values and counts alone. Letters are compared only between values that begin or end alike, of each with the
200 most frequent such groups at most.
Levenshtein, "Binary codes capable of correcting deletions, insertions, and reversals", Soviet Physics Doklady 10(8), 1966.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence

from sfumato.core.errors import ParameterError

#: More values are compared by nobody in reasonable time, nor looked through by a person.
MOST_VALUES = 5_000
_SHARED_WORDS = 0.6  # of all words of two values, from which on they are alike
_ENDS = 2  # letters at the beginning or end that have to agree before letters are compared
_MOST_COMPARED = 200
_LETTERS_PER_SLIP = 5
_MOST_SLIPS = 2
_LETTERS_OF_A_NAME, _MOST_SLIPS_OF_A_NAME = 3, 3  # of what is looked up in a list
_LETTERS = str.maketrans({"ß": "ss", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "æ": "ae", "Æ": "AE", "œ": "oe", "&": " and "})


def plain_words(text: str) -> str:
    """The words of a text in lower case, without accents and punctuation.

    >>> plain_words("  Côte-d'Ivoire "), plain_words("U.S.A.")
    ('cote divoire', 'usa')
    """
    decomposed = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    letters = "".join(character for character in decomposed if not unicodedata.combining(character)).casefold()
    abbreviated = re.sub(r"['’]|(?<=\b[^\W\d_])\.", "", letters)
    return " ".join(re.findall(r"[^\W_]+", abbreviated))


def similar_groups(values: Sequence[str], counts: Sequence[int]) -> list[list[str]]:
    """Values that may be the same, together: each group begins with its most frequent value, and groups of one are listed too."""
    if len(values) > MOST_VALUES:
        raise ParameterError(
            f"{len(values):,} different values are too many to be compared with each other (at most {MOST_VALUES:,}). "
            "Group them by a list (--groups), or make the column coarser first."
        )
    order = sorted(range(len(values)), key=lambda i: (-counts[i], values[i]))
    groups: list[list[str]] = []
    leaders: list[str] = []
    by_words: dict[str, int] = {}
    by_word: dict[str, list[int]] = defaultdict(list)
    ends = _Ends()
    for value in (values[i] for i in order):
        words = plain_words(value)
        same = " ".join(sorted(words.split())) or value
        place = by_words.get(same)
        if place is None:
            place = _most_similar(words, leaders, by_word, ends)
        if place is None:
            place = len(groups)
            groups.append([])
            leaders.append(words)
            for word in set(words.split()):
                by_word[word].append(place)
            ends.add(words, place)
        by_words[same] = place
        groups[place].append(value)
    return groups


class _Ends:
    """Places of texts by their first and last letters."""

    def __init__(self) -> None:
        self._places: dict[tuple[bool, str], list[int]] = defaultdict(list)

    def add(self, words: str, place: int) -> None:
        """One more text; places are added in their order."""
        for end in self._of(words):
            self._places[end].append(place)

    def alike(self, words: str) -> list[int]:
        """The first places of texts that begin or end as this one does."""
        places = {place for end in self._of(words) for place in self._places.get(end, ())[:_MOST_COMPARED]}
        return sorted(places)[:_MOST_COMPARED]

    @staticmethod
    def _of(words: str) -> tuple[tuple[bool, str], ...]:
        return ((True, words[:_ENDS]), (False, words[-_ENDS:])) if len(words) > _ENDS else ()


def _most_similar(words: str, leaders: Sequence[str], by_word: dict[str, list[int]], ends: _Ends) -> int | None:
    """The group that differs in the fewest letters, else the one that shares the most words."""
    slips: dict[int, int] = {}
    for place in ends.alike(words):
        most = _slips_allowed(words, leaders[place])
        distance = edit_distance(words, leaders[place], most) if most else 1  # equal words were looked up before
        if distance <= most:
            slips[place] = distance
    if slips:
        return min(slips, key=lambda place: (slips[place], place))
    tokens = set(words.split())
    shared = Counter(place for word in tokens for place in by_word.get(word, ()))
    # with fewer words in common than this share of the value's own, they are fewer than it of both
    shares = {place: common for place, common in shared.items() if common >= _SHARED_WORDS * len(tokens)}
    overlap = {place: common / len(tokens | set(leaders[place].split())) for place, common in shares.items()}
    enough = [place for place, part in overlap.items() if part >= _SHARED_WORDS]
    return min(enough, key=lambda place: (-overlap[place], place)) if enough else None


def _slips_allowed(one: str, other: str) -> int:
    """How many letters two texts may differ in: none where they hold digits, which are seldom slips."""
    if any(character.isdigit() for character in one + other):
        return 0
    return min(len(one) // _LETTERS_PER_SLIP, len(other) // _LETTERS_PER_SLIP, _MOST_SLIPS)


def edit_distance(one: str, other: str, most: int) -> int:
    """Letters to insert, delete, replace or exchange with their neighbour so that one text becomes the other; `most` + 1 where
    more than `most` are needed.

    >>> edit_distance("nurse", "nusre", 2), edit_distance("nurse", "driver", 2)
    (1, 3)
    """
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, match in enumerate(other, 1):
            steps = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != match))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == match:
                steps = min(steps, before[j - 2] + 1)
            row.append(steps)
        if min(row) > most:
            return most + 1
        before, last = last, row
    return min(last[-1], most + 1)


def nearest_values(values: Sequence[str], choices: Sequence[str]) -> dict[str, str]:
    """For each value the choice that it may be a misspelling of, where there is one: the same plain words, or the fewest
    letters away, at most one in three and three in all, among those that begin or end alike. A proposal for a person to look at.

    >>> nearest_values(["Columbia", "Mars"], ["Colombia", "Cuba", "France"])
    {'Columbia': 'Colombia'}
    """
    plain: dict[str, str] = {}
    for choice in choices:
        plain.setdefault(plain_words(choice), choice)
    listed, ends = list(plain), _Ends()
    for place, words in enumerate(listed):
        ends.add(words, place)
    misspelt: dict[str, str] = {}
    for value in values:
        words = plain_words(value)
        near = words if words in plain else _nearest(words, [listed[place] for place in ends.alike(words)])
        if near:
            misspelt[value] = plain[near]
    return misspelt


def _nearest(words: str, choices: Sequence[str]) -> str | None:
    """The choice that is the fewest letters away, the first of several."""
    nearest, fewest = None, min(len(words) // _LETTERS_OF_A_NAME, _MOST_SLIPS_OF_A_NAME)
    for choice in choices:
        distance = edit_distance(words, choice, fewest) if fewest else 1
        if distance <= fewest:
            nearest, fewest = choice, distance - 1
    return nearest
