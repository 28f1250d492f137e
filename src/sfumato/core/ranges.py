"""What a parameter may be: a whole number, a share, one of a few words; declared once, beside the field's type.

    k: Annotated[int, Whole(at_least=2), "records in a cluster, at the least"]
    suppression: Annotated[Share, "the records that may be left out"] = 0.0

A range turns what somebody wrote (in Python, TOML, JSON or on the command line) into the value that is stored, or says in a
few words what it must be. `core.declared` reads the ranges of a class; validation, help and documentation follow from them.
"""

from __future__ import annotations

import datetime
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Annotated, Any

from sfumato.core.errors import ParameterError
from sfumato.core.exact import exact
from sfumato.core.texts import python_number, text_of


class Refused(ValueError):
    """The value is outside its range; the text says what it must be, to be read after the name of the parameter."""


class Range(ABC):
    """A set of values with words for it."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What a value must be, after "must be": `a whole number of at least 2`."""

    @abstractmethod
    def settled(self, value: object) -> object:
        """The value as it is stored; raises `Refused` where it is none of these."""

    def refuse(self, value: object) -> Refused:
        """The refusal of a value; numbers are repeated, anything else may hold what nobody should read."""
        number = isinstance(value, (int, float, Fraction)) and not isinstance(value, bool)
        try:
            text = str(value) if number else ""
        except ValueError:  # a whole number with more digits than Python writes
            text = ""
        return Refused(f"must be {self.words}" + (f", not {text}" if 0 < len(text) <= 40 else ""))


@dataclass(frozen=True)
class _Between(Range):
    """Numbers between two ends, either of which may be open or absent."""

    at_least: float | Fraction | None = None
    at_most: float | Fraction | None = None
    above: float | Fraction | None = None
    below: float | Fraction | None = None

    @property
    def ends(self) -> str:
        """The ends in words: `of at least 1 and below 2`, `from 0 to 1`."""
        if self.at_least is not None and self.at_most is not None:
            return f"from {_shown(self.at_least)} to {_shown(self.at_most)}"
        stated = (("of at least", self.at_least), ("above", self.above), ("at most", self.at_most), ("below", self.below))
        return " and ".join(f"{word} {_shown(end)}" for word, end in stated if end is not None)

    def holds(self, value: Any) -> bool:  # a number that may be compared with floating-point ones
        """Whether a number lies between the ends."""
        return (
            (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )


#: The largest whole number where a range states no end: counts beyond it fit into no kernel and no memory.
LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Whole(_Between):
    """Whole numbers; True and 2.0 are none. Without an upper end of their own they end at `largest`, unless that is None."""

    largest: int | None = LARGEST

    @property
    def words(self) -> str:
        return " ".join(filter(None, ("a whole number", self.ends)))

    def settled(self, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, Integral) or not self.holds(value):
            raise self.refuse(value)
        if self.at_most is None and self.largest is not None and int(value) > self.largest:
            raise Refused(f"must be {self.words}, and at most {_shown(self.largest)}")
        if not is_finite(value):
            raise Refused("is too large a number")
        return int(value)


@dataclass(frozen=True)
class Number(_Between):
    """Finite numbers, whole or not, kept as whole or floating-point numbers of Python, which can be written and read again. With
    `exact` they become fractions, and 0.1 is a tenth."""

    exact: bool = False

    @property
    def words(self) -> str:
        return " ".join(filter(None, ("a number", self.ends)))

    def settled(self, value: Any) -> Any:  # a number, whole, exact or floating
        if self.exact:
            try:
                number: Any = exact(value, "")
            except ParameterError as error:
                raise Refused(str(error).strip()) from None
        else:
            if isinstance(value, bool) or not isinstance(value, (Real, Decimal)) or not is_finite(value):
                raise self.refuse(value)
            number = int(value) if isinstance(value, Integral) else float(value)
        if not self.holds(number):
            raise self.refuse(value)
        return number


@dataclass(frozen=True)
class OneOf(Range):
    """One of a few words. A field of type `Literal[...]` has this range without saying so."""

    choices: tuple[Any, ...]

    @property
    def words(self) -> str:
        listed = [f"'{choice}'" if isinstance(choice, str) else str(choice) for choice in self.choices]
        return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"

    def settled(self, value: object) -> object:
        for choice in self.choices:
            if isinstance(value, type(choice)) and not (isinstance(value, bool) and choice is not value) and value == choice:
                return choice
        raise self.refuse(value)


@dataclass(frozen=True)
class Flag(Range):
    """Yes or no. A field of type `bool` has this range without saying so."""

    words = "true or false"

    def settled(self, value: object) -> bool:
        if not is_truth(value):
            raise self.refuse(value)
        return bool(value)


@dataclass(frozen=True)
class Limit(Range):
    """How much at the most: a whole number of at least 1, or infinity where there is no limit."""

    words = "a whole number of at least 1, or infinite for no limit"

    def settled(self, value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise self.refuse(value)
        number: Any = python_number(value)
        if not (number >= 1 and (number == math.inf or (is_finite(number) and number == int(number)))):
            raise self.refuse(value)
        return int(number) if isinstance(number, Fraction) else number


@dataclass(frozen=True)
class Text(Range):
    """A text that is not empty: the name of a column, say."""

    what: str = "a text"
    longest: int = 1000

    @property
    def words(self) -> str:
        return self.what

    def settled(self, value: object) -> str:
        if not isinstance(value, str) or not 0 < len(value) <= self.longest:
            raise self.refuse(value)
        return value


@dataclass(frozen=True)
class Value(Range):
    """A value as cells hold it. Dates and times become their texts, numbers of numpy those of Python: these can be written."""

    words = "a text, a number, a date or a truth value"

    def settled(self, value: object) -> str | bool | int | float:
        if isinstance(value, (datetime.date, datetime.time)):
            return str(text_of(value))
        if isinstance(value, str):
            return value
        settled: bool | int | float = Flag().settled(value) if is_truth(value) else Number().settled(value)
        return settled


@dataclass(frozen=True)
class Each(Range):
    """Several values of one range, kept as a tuple; a text is not taken for a list of its letters. With `alone`, a value that
    is no list stands for a list of itself."""

    of: Range
    at_least: int = 0
    at_most: int | None = None
    different: bool = False
    what: str = ""
    alone: bool = False

    @property
    def words(self) -> str:
        if self.what:
            return self.what
        if self.at_least == self.at_most:
            count = f"{self.at_least} values, "
        else:
            count = f"at least {self.at_least} values, " if self.at_least > 1 else ""
        return f"a list{' that is not empty' if self.at_least == 1 else ''}, {count}each {self.of.words}"

    def settled(self, value: object) -> tuple[Any, ...]:  # what `of` settles
        if self.alone and (isinstance(value, str) or not isinstance(value, Iterable)):
            value = (value,)
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            raise self.refuse(value)
        try:
            entries = tuple(self.of.settled(entry) for entry in value)
        except (Refused, TypeError):  # an array without dimensions is iterable and cannot be iterated
            raise self.refuse(value) from None
        right = len(entries) >= self.at_least and (self.at_most is None or len(entries) <= self.at_most)
        try:
            repeated = self.different and len(set(entries)) < len(entries)
        except TypeError:  # a list among them, say, of which nobody can tell where it occurs
            raise self.refuse(value) from None
        if not right or repeated:
            raise self.refuse(value)
        return entries


class NameTable(Mapping[str, Any]):
    """A mapping that cannot be changed and can be copied, pickled and, where its values can, hashed."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[str, object]) -> None:
        self._entries = dict(entries)

    def __getitem__(self, name: str) -> object:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __hash__(self) -> int:
        return hash(frozenset(self._entries.items()))

    def __repr__(self) -> str:
        return repr(self._entries)


@dataclass(frozen=True)
class ByName(Range):
    """A value for each of some names, kept as a mapping that cannot be changed."""

    of: Range
    at_least: int = 0

    @property
    def words(self) -> str:
        return f"a table of names, each with {self.of.words}"

    def settled(self, value: object) -> Mapping[str, object]:
        if not isinstance(value, Mapping) or len(value) < self.at_least or not all(isinstance(name, str) for name in value):
            raise self.refuse(value)
        try:
            return NameTable({name: self.of.settled(entry) for name, entry in value.items()})
        except Refused:
            raise self.refuse(value) from None


@dataclass(frozen=True)
class Instance(Range):
    """A value of some class."""

    kind: type[Any]
    what: str = ""

    @property
    def words(self) -> str:
        return self.what or f"a {self.kind.__name__}"

    def settled(self, value: object) -> object:
        if not isinstance(value, self.kind):
            raise self.refuse(value)
        return value


@dataclass(frozen=True)
class Made(Range):
    """What a function makes of the value; the function raises `ParameterError` where it cannot."""

    by: Callable[[Any], Any]
    what: str

    @property
    def words(self) -> str:
        return self.what

    def settled(self, value: object) -> object:
        try:
            return self.by(value)
        except ParameterError:
            raise self.refuse(value) from None


@dataclass(frozen=True)
class Either(Range):
    """A value of any of some ranges; the first that takes it decides."""

    ranges: tuple[Range, ...]
    what: str = ""

    @property
    def words(self) -> str:
        return self.what or ", or ".join(each.words for each in self.ranges)

    def settled(self, value: object) -> object:
        for each in self.ranges:
            try:
                return each.settled(value)
            except Refused:
                continue
        raise self.refuse(value)


@dataclass(frozen=True)
class Because(Range):
    """A range with the reason for it, which a refusal tells: `k must be a number above 0, not 0; it would add no noise`."""

    of: Range
    reason: str

    @property
    def words(self) -> str:
        return self.of.words

    def settled(self, value: object) -> object:
        try:
            return self.of.settled(value)
        except Refused as refusal:
            # the reason is about the range, not about a number that is refused for something else, such as its digits
            own = str(refusal) == str(self.of.refuse(value))
            raise Refused(f"{refusal}; {self.reason}" if own else str(refusal)) from None


def _shown(end: float | Fraction) -> str:
    return f"{end:,}" if isinstance(end, int) else f"{float(end):g}"


def is_truth(value: object) -> bool:
    """Whether a value is true or false, of numpy too."""
    return isinstance(value, bool) or str(getattr(value, "dtype", "")) == "bool"


def is_finite(value: Any) -> bool:  # whatever `math.isfinite` takes
    """Whether a number is one that floating-point numbers come near."""
    try:
        return math.isfinite(value)
    except (OverflowError, ValueError):  # no floating-point number comes near it; or a decimal that signals it is none
        return False


_COLUMN = Text("the name of a column")
DIFFERENT_COLUMNS = Each(_COLUMN, at_least=1, different=True, what="a list of one or more different columns")

#: A number of things, at least one.
Count = Annotated[int, Whole(at_least=1)]
#: A part of a whole.
Share = Annotated[float, Number(at_least=0, at_most=1)]
#: A part of a whole that is not nothing.
PositiveShare = Annotated[float, Number(above=0, at_most=1)]
#: A probability that is neither 0 nor 1.
Probability = Annotated[float, Number(above=0, below=1)]
#: A number above 0.
Positive = Annotated[float, Number(above=0)]
#: A time in seconds; `inf` is for as long as it takes.
Seconds = Annotated[float, Either((Number(above=0), OneOf((math.inf,))))]
#: What makes draws repeatable.
Seed = Annotated[int | str, Either((Whole(largest=None), Text("a text")))]
#: The name of a column.
ColumnName = Annotated[str, _COLUMN]
#: The names of some columns.
ColumnNames = Annotated[tuple[str, ...], DIFFERENT_COLUMNS]
