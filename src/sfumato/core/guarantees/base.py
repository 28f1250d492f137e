"""The guarantee of a published table: a frozen value measured on its classes.

A class is the set of records that share the released values of all quasi-identifiers. A guarantee names a number
that can be measured on the classes, the direction in which it protects, and whether merging classes keeps it
(`monotone`), so that searches know how to prune.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from sfumato.core.declared import Declared
from sfumato.core.errors import ParameterError
from sfumato.core.ranges import ColumnName, ColumnNames, Made, Whole
from sfumato.core.texts import text_of

Evidence = Literal["output", "output+reference", "output+model", "process"]
Direction = Literal["at_least", "at_most", "below"]
Reference = Literal["input", "released"]

#: Against whom most guarantees protect.
ANY_ADVERSARY = "knows the quasi-identifiers of a person and that the person is in the table, and has no other information"
#: Slack of every comparison with a real threshold: far above rounding, far below any count of records.
TOLERANCE = 1e-12


@dataclass(frozen=True)
class Knowledge(Declared):
    """What the adversary is assumed to know about a person: by default the values of all quasi-identifiers.

    `attributes` narrows it to some columns. With `items` above 0 a set-valued quasi-identifier is known in part
    only: up to so many items of each set, all of them different. Other shapes of data extend this (a degree, places
    visited).
    """

    attributes: Annotated[ColumnNames | None, "the columns that are known; all quasi-identifiers where left out"] = None
    items: Annotated[int, Whole(at_least=0), "the items of each set that are known, at the most; 0 for the whole set"] = 0


def _texts(values: Iterable[object]) -> tuple[str, ...]:
    """Protected values in the text form that tables are compared in."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ParameterError("not a list of values")
    try:
        listed = tuple(values)
    except TypeError:  # an array without dimensions is iterable and cannot be iterated
        raise ParameterError("not a list of values") from None
    if any(isinstance(value, Iterable) and not isinstance(value, (str, bytes)) for value in listed):
        raise ParameterError("a list among the values")
    texts = tuple(text_of(value) for value in listed)
    if None in texts:
        raise ParameterError("a value is missing")
    return tuple(str(text) for text in texts)


def stated(number: float) -> str:
    """A threshold as promises write it: short where that is exact, otherwise in full, never rounded.

    >>> stated(0.2), stated(3), stated(2.99996)
    ('0.2', '3', '2.99996')
    """
    short = f"{number:.4g}"
    return short if float(short) == number else repr(float(number))


def ordinal(number: int) -> str:
    """The place of something in a row.

    >>> [ordinal(number) for number in (1, 2, 3, 4, 11, 22)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd']
    """
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


#: The attribute that a guarantee keeps uncertain.
SensitiveAttribute = Annotated[ColumnName, "the sensitive attribute"]
#: The values that nobody may infer.
ProtectedValues = Annotated[
    tuple[str, ...] | None,
    Made(_texts, "a list of values, none of them missing, for instance ('HIV',)"),
    "the values of the attribute that are protected; every value where left out",
]
#: The table whose distribution counts as known.
ReferenceTable = Annotated[Reference, "the table whose shares count as known: the whole input, or the released rows alone"]


class Guarantee(Declared, ABC):
    """A promise about what is published: whom it protects from whom, and what somebody needs to check it."""

    protects: ClassVar[str] = ""
    #: What it does not protect from, in sentences for people; what is true of all promises of its kind is said elsewhere.
    limits: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        """The public name of the guarantee."""
        return type(self).__name__

    @property
    def key(self) -> str:
        """How certificates and results name it."""
        return self.name

    @property
    def evidence(self) -> Evidence:
        """What somebody needs to re-check it: the released files, a second file as well, or the word of a ledger; with a model
        files can contradict it and never confirm it."""
        return "output"

    @property
    def adversary(self) -> str:
        """Against whom it protects: what the attacker is assumed to know and not to know."""
        return ANY_ADVERSARY

    @abstractmethod
    def claim(self) -> str:
        """The promise in plain words."""

    def former_claims(self) -> tuple[str, ...]:
        """How earlier versions worded it."""
        return ()


def supposed_known(guarantees: Iterable[Guarantee], quasi: Sequence[str]) -> list[str]:
    """The quasi-identifiers that some of the guarantees supposes to be known; all of them where none is given."""
    known, any_given = set[str](), False
    for guarantee in guarantees:
        any_given, knowledge = True, getattr(guarantee, "knowledge", None)
        known |= set(quasi if knowledge is None or knowledge.attributes is None else knowledge.attributes)
    return [name for name in quasi if name in known or not any_given]


class ClassGuarantee(Guarantee):
    """A promise about every class of a released table."""

    direction: ClassVar[Direction] = "at_least"
    reference_url: ClassVar[str] = ""
    #: Whether it supposes that each record is another person, so that it says nothing where people have several.
    one_record_each: ClassVar[bool] = False

    @property
    def sensitive(self) -> str | None:
        """The sensitive attribute it is about, if any."""
        return getattr(self, "attribute", None)

    @property
    def says_nothing(self) -> bool:
        """Whether every table keeps it, so that it promises nothing; so it is where no value is protected."""
        return self.protects_no_value

    @property
    def about(self) -> str | None:
        """The sensitive attribute about which it says something, if any."""
        return None if self.says_nothing else self.sensitive

    @property
    def protects_no_value(self) -> bool:
        """Whether it names the protected values, and names none."""
        return getattr(self, "protected_values", None) == ()

    @property
    def key(self) -> str:
        """How certificates and results name it: `KAnonymity`, `TCloseness(disease)`."""
        return f"{self.name}({self.sensitive})" if self.sensitive else self.name

    @property
    def classes(self) -> str:
        """Which classes the promise is about: all, or those with a protected value, where the others are exempt."""
        protected = getattr(self, "protected_values", None)
        return "every class" if protected is None else f"every class with a protected value of '{self.sensitive}'"

    @property
    @abstractmethod
    def threshold(self) -> float:
        """The promised number."""

    @property
    def monotone(self) -> bool:
        """True when classes that keep the promise still keep it after they are merged."""
        return True

    @property
    def needs_population(self) -> bool:
        """True when it compares with a population table."""
        return False

    def kept_by(self, measured: float) -> bool:
        """Does this measured number keep the promise?"""
        if self.direction == "at_least":
            return measured >= self.threshold - TOLERANCE
        if self.direction == "below":
            return measured < self.threshold
        return measured <= self.threshold + TOLERANCE
