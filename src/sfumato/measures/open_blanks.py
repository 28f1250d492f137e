"""The plain verifier of a table with blanks: equations written down from codes and sums, witnesses checked by adding.

It shares no code with what chose the blanks, and looks at the published files alone. A witness is one way in which all blanks may
be filled so that every total is the sum of its parts; a blank is open if two witnesses fill it differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product

from sfumato.core.errors import VerificationFailed
from sfumato.core.plain_data import Plain

#: A combination of codes, by their places.
Place = tuple[int, ...]
_MOST_FILLED = 20_000_000


def places_of(structure: Plain) -> list[Place]:
    """All cells of the tables, in order."""
    return sorted({place for table in structure["tables"] for place in product(*table)})


def equations_of(structure: Plain) -> Iterator[tuple[Place, list[Place]]]:
    """Every total with its parts."""
    for table in structure["tables"]:
        for axis, dimension in enumerate(structure["dimensions"]):
            shown = set(table[axis])
            for total, parts in dimension["sums"]:
                if {total, *parts} <= shown:
                    for place in product(*(codes if i != axis else [total] for i, codes in enumerate(table))):
                        yield place, [(*place[:axis], part, *place[axis + 1 :]) for part in parts]


def additive(structure: Plain, values: Mapping[Place, Fraction | int]) -> bool:
    """Whether every total is the sum of its parts."""
    return all(values[total] == sum(values[part] for part in parts) for total, parts in equations_of(structure))


def open_blanks(
    structure: Plain,
    shown: Mapping[Place, int],
    witnesses: Sequence[Sequence[str]],
) -> tuple[int, int]:
    """How many blanks there are, and how many of them two witnesses fill differently; no witness may break an equation."""
    places = places_of(structure)
    blanks = [place for place in places if place not in shown]
    if not blanks:
        if not additive(structure, shown):
            raise VerificationFailed("the published values contradict each other: a total is not the sum of its parts")
        return 0, 0
    if len(witnesses) * len(places) > _MOST_FILLED:
        raise VerificationFailed("there are more witnesses than anybody needs")
    fillings: list[set[Fraction]] = [set() for _ in blanks]
    for number, witness in enumerate(witnesses, 1):
        if len(witness) != len(blanks):
            raise VerificationFailed(f"witness {number} does not fill each of the {len(blanks):,} blanks")
        filled = [_exact(text) for text in witness]
        if any(value < 0 for value in filled):
            raise VerificationFailed(f"witness {number} fills a blank with a negative value")
        if not additive(structure, {**shown, **dict(zip(blanks, filled, strict=True))}):
            raise VerificationFailed(f"witness {number} does not add up")
        for seen, value in zip(fillings, filled, strict=True):
            seen.add(value)
    return len(blanks), sum(len(each) > 1 for each in fillings)


def all_multiples(shown: Mapping[Place, int], base: int) -> float:
    """The share of shown values that are multiples of `base`, in units of the last digit."""
    return sum(value % base == 0 for value in shown.values()) / max(len(shown), 1)


def _exact(text: str) -> Fraction:
    """A number that a witness states: a whole one, or one over another."""
    above, slash, below = text.partition("/") if isinstance(text, str) and len(text) <= 400 else ("", "", "")
    if not above.isdigit() or (slash and (not below.isdigit() or not int(below))):
        raise VerificationFailed("a witness holds something that is no number of 0 or more")
    return Fraction(int(above), int(below) if slash else 1)
