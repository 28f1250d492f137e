"""Values and numbers as texts: one text form for all types that can carry a value, and numbers for sentences, which are shorter
than measured and never past what is true. Long lists of texts for files of the owner.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cache
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tomlkit.items import Array

_LONG = Context(prec=700)  # digits enough for the largest float with the smallest margin


def python_number(value: object) -> Any:  # the number in its own type, or the value as it is
    """A number of numpy, or of another such library, as one of Python; anything else as it is."""
    if type(value) in (bool, int, float) or not isinstance(value, Real) or isinstance(value, Fraction):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def text_of(value: object) -> str | None:
    """The text form of one value."""
    if value is None:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time(0)
        return value.date().isoformat() if midnight and value.tzinfo is None else value.isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    plain = python_number(value)
    return str(value) if plain is value else text_of(plain)


def is_unicode(text: str) -> bool:
    """Whether a text can be written as UTF-8: no half character, as Python makes of bytes that are no UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def nearest(word: str, words: Iterable[str], cutoff: float = 0.6) -> str:
    """A question for the word that is meant, to stand behind one that is not there; empty where none is near, and never the word
    itself.

    >>> nearest("Mdavv", ["Mdav", "VMdav"]), nearest("age", ["age"])
    (" (did you mean 'Mdav'?)", '')
    """
    near = closest(word, words, cutoff)
    return "" if near is None else f" (did you mean '{near}'?)"


def closest(word: str, words: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The word that may be meant, however it is capitalised; None where none is near, and never the word itself.

    >>> closest("MDAVV", ["Mdav", "Mondrian"]), closest("Mdav", ["Mdav"]), closest("Mdav", ["mdav"])
    ('Mdav', None, 'mdav')
    """
    import difflib

    by_letters: dict[str, str] = {}
    for each in words:
        if each != word:
            by_letters.setdefault(each.casefold(), each)
    near = difflib.get_close_matches(word.casefold(), by_letters, n=1, cutoff=cutoff)
    return by_letters[near[0]] if near else None


def with_article(noun: str) -> str:
    """The noun behind `a` or `an`; a `u` is mostly spoken as in `user` and `unit`.

    >>> with_article("id"), with_article("user"), with_article("patient")
    ('an id', 'a user', 'a patient')
    """
    return f"{'an' if noun[:1].lower() in tuple('aeio') else 'a'} {noun}"


def percent(rate: float) -> str:
    """A rate in per cent, with three digits; `0 %` and `100 %` only where it is exactly that.

    >>> percent(0.125), percent(0.0003), percent(0.9996), percent(1e-9)
    ('12.5 %', '0.03 %', '99.96 %', 'less than 0.01 %')
    """
    if 0 < rate < 0.0001:
        return "less than 0.01 %"
    if 0.9999 < rate < 1:
        return "more than 99.99 %"
    if rate > 1:
        return f"{rate * 100:,.1f} %"
    shown = f"{rate * 100:.3g}"
    return f"{shown} %" if shown != "100" or rate == 1 else f"{rate * 100:.2f} %"


def rough(rate: float) -> float:
    """A rate that is only estimated, with one digit; two above 95 %, so that it does not read as everybody.

    >>> rough(0.184), rough(0.972), rough(0.9999)
    (0.2, 0.97, 0.99)
    """
    shown = float(f"{rate:.{1 if rate < 0.95 else 2}g}")
    return shown if shown < 1 or rate == 1 else 0.99


def rough_percent(rate: float) -> str:
    """A rate that is only estimated, in per cent with one digit; two above 95 %, so that it does not read as everybody.

    >>> rough_percent(0.184), rough_percent(0.0047), rough_percent(0.972), rough_percent(1)
    ('20 %', '0.5 %', '97 %', '100 %')
    """
    return percent(rough(rate))


def rounded_up(number: float, digits: int = 2) -> str:
    """A number with at most so many digits, not below itself.

    >>> rounded_up(374.2), rounded_up(0.0612), rounded_up(30.0, 4)
    ('380', '0.062', '30')
    """
    if not math.isfinite(number) or number <= 0:
        return f"{number:,}"
    exact = Decimal(str(number))
    shown = f"{_rounded(exact, exact.adjusted() + 1 - digits, ROUND_CEILING):,f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def within(value: float, margin: float) -> str:
    """A number with its margin, as an interval that holds the whole measured one.

    The margin has two digits and is rounded up, by what the number loses too; the number ends where the margin ends.

    >>> within(1_649_994_428.9, 374.2), within(412, 3.24)
    ('1,649,994,429 ± 380', '412 ± 3.3')
    """
    if not (math.isfinite(value) and math.isfinite(margin)):
        return f"{value:,} ± ?"
    if margin == 0:
        return f"{value:,} ± 0"
    exact, reach = Decimal(str(value)), Decimal(str(margin))
    shown = exact if isinstance(value, int) else _rounded(exact, min(reach.adjusted() - 1, 0), ROUND_HALF_EVEN)
    reach = _LONG.add(reach, abs(_LONG.subtract(exact, shown)))
    return f"{shown:,f} ± {_rounded(reach, reach.adjusted() - 1, ROUND_CEILING):,f}"


def between(value: float, low: float | None, high: float | None) -> str:
    """A number with the ends of its interval, rounded outward to two digits of the longer distance; None where there is no end.

    >>> between(3.2512, 0.0, 3.9134), between(412, 408.6, None)
    ('3.3 (0 to 4)', '412 (408.6 to ?)')
    """
    if not math.isfinite(value):
        return f"{value:,} ± ?"
    ends = [None if end is None or not math.isfinite(end) else Decimal(str(end)) for end in (low, high)]
    exact = Decimal(str(value))
    reach = max((abs(_LONG.subtract(end, exact)) for end in ends if end is not None), default=Decimal(0))
    place = min(reach.adjusted() - 1, 0) if reach else -6
    shown = exact if isinstance(value, int) else _rounded(exact, place, ROUND_HALF_EVEN)
    outward = (ROUND_FLOOR, ROUND_CEILING)
    texts = ["?" if end is None else f"{_plain(_rounded(end, place, way)):,f}" for end, way in zip(ends, outward, strict=True)]
    return f"{_plain(shown):,f} ({texts[0]} to {texts[1]})"


def _plain(number: Decimal) -> Decimal:
    """Without zeros at the end of its decimals."""
    return number.quantize(Decimal(1), context=_LONG) if number == number.to_integral_value() else number.normalize(_LONG)


def _rounded(number: Decimal, place: int, rounding: str) -> Decimal:
    """The number without what is below this power of ten, and without an exponent above 0."""
    return number.quantize(Decimal(1).scaleb(place), rounding, _LONG).quantize(Decimal(1).scaleb(min(place, 0)), context=_LONG)


def text_list(values: Sequence[str]) -> Array:
    """The array as tomlkit writes it, in one go: entry by entry it takes time that grows with the square of their number."""
    from tomlkit.items import Array, Trivia

    escapes = _escapes()
    written = "[" + ", ".join(f'"{value.translate(escapes)}"' for value in values) + "]"
    array = Array([], Trivia())
    array.as_string = lambda: written  # type: ignore[method-assign]
    return array


@cache
def _escapes() -> dict[int, str]:
    """How tomlkit writes the characters that it does not write as they are."""
    import tomlkit

    odd = [*range(0x20), 0x22, 0x5C, 0x7F]
    return {code: tomlkit.item(chr(code)).as_string()[1:-1] for code in odd}


def counted(count: int, noun: str, several: str | None = None) -> str:
    """A number of things: `1 record`, `1,200 records`, `2 classes`, `3 leaves`."""
    plural = several or f"{noun}{'es' if noun.endswith('s') else 's'}"
    return f"{count:,} {noun if count == 1 else plural}"
