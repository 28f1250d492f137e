"""The guarantee of a published table: a frozen value measured on its classes.

A class is the set of records that share the released values of all quasi-identifiers. A guarantee names a number
that can be measured on the classes, the direction in which it protects, and whether merging classes keeps it
(`monotone`), so that searches know how to prune.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from sfumato.core.errors import ParameterError
from sfumato.core.params import require
from sfumato.core.texts import text_of

Evidence = Literal["output", "output+reference", "process"]
Direction = Literal["at_least", "at_most", "below"]
Reference = Literal["input", "released"]

#: Against whom most guarantees protect.
ANY_ADVERSARY = "knows the quasi-identifiers of a person and that the person is in the table, and has no other information"
#: Slack of every comparison with a real threshold: far above rounding, far below any count of records.
TOLERANCE = 1e-12


@dataclass(frozen=True)
class Knowledge:
    """What the adversary is assumed to know about a person: by default the values of all quasi-identifiers.

    `attributes` narrows it to some columns. With `items` above 0 a set-valued quasi-identifier is known in part
    only: up to so many items of each set, all of them different. Other shapes of data extend this (a degree, places
    visited).
    """

    attributes: tuple[str, ...] | None = None
    items: int = 0

    def __post_init__(self) -> None:
        require(
            self.attributes != (), "Knowledge: attributes names at least one column, or is left out for all quasi-identifiers"
        )
        whole = isinstance(self.items, int) and not isinstance(self.items, bool)
        require(whole and self.items >= 0, "Knowledge: items must be a whole number, 0 or above")


def protected_texts(values: Iterable[object] | None) -> tuple[str, ...] | None:
    """Protected values in the text form that tables are compared in; None protects every value."""
    if values is None:
        return None
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ParameterError("protected_values is a list of values, for instance protected_values=('HIV',)")
    found = [text_of(value) for value in values]
    if any(text is None for text in found):
        raise ParameterError("protected_values cannot contain a missing value")
    return tuple(str(text) for text in found)


def stated(number: float) -> str:
    """A threshold as promises write it: short where that is exact, otherwise in full, never rounded.

    >>> stated(0.2), stated(3), stated(2.99996)
    ('0.2', '3', '2.99996')
    """
    short = f"{number:.4g}"
    return short if float(short) == number else repr(float(number))


class ClassGuarantee(ABC):
    """A promise about every class of a released table."""

    direction: ClassVar[Direction] = "at_least"
    protects: ClassVar[str] = ""
    reference_url: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """The public name of the guarantee."""
        return type(self).__name__

    @property
    def sensitive(self) -> str | None:
        """The sensitive attribute it is about, if any."""
        return getattr(self, "attribute", None)

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
    def evidence(self) -> Evidence:
        """What somebody needs to re-check it: the released files, or a second file as well."""
        return "output"

    @property
    def needs_population(self) -> bool:
        """True when it compares with a population table."""
        return False

    @property
    def adversary(self) -> str:
        """Against whom it protects: what the attacker is assumed to know and not to know."""
        return ANY_ADVERSARY

    @abstractmethod
    def claim(self) -> str:
        """The promise in plain words."""

    def kept_by(self, measured: float) -> bool:
        """Does this measured number keep the promise?"""
        if self.direction == "at_least":
            return measured >= self.threshold - TOLERANCE
        if self.direction == "below":
            return measured < self.threshold
        return measured <= self.threshold + TOLERANCE
