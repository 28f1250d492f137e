"""Auditing of exact sums: may one more sum be answered without giving somebody's value away?

Answered sums span a space; somebody's value follows exactly when their unit vector lies in it. The space is kept in
reduced row echelon form over the rationals, so each question costs one elimination. The decision looks at the questions
alone, never at the data. Chin, Özsoyoğlu, "Auditing and inference control in statistical databases", IEEE TSE 8(6), 1982.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias, TypeVar

from sfumato.core.declared import require
from sfumato.core.exact import Number, exact

K = TypeVar("K", bound=Hashable)

#: The people whose values are added up, or a weight per person.
Query: TypeAlias = Iterable[Hashable] | Mapping[Hashable, Number]
_Row: TypeAlias = dict[Hashable, Fraction]
_Combination: TypeAlias = dict[int, Fraction]


@dataclass(frozen=True)
class SumDisclosure:
    """How a value follows from sums: add the answers with these numbers (counted from 0) and factors."""

    person: Hashable = field(repr=False)
    combination: tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True)
class Decision:
    """Whether a sum may be answered, and whose values would follow if it were."""

    allowed: bool
    disclosures: tuple[SumDisclosure, ...] = field(default=(), repr=False)


class SumAuditor:
    """Decides online, sum by sum, what may be answered exactly.

    It guards against exact inference from the answered sums and nothing else: bounds on a value, guesses that are almost
    right, and values that an outsider knows already are not covered, which is why noise is the better way.

    >>> auditor = SumAuditor()
    >>> auditor.answer(["ada", "ben", "cem"]).allowed, auditor.answer(["ada", "ben"]).allowed
    (True, False)
    """

    def __init__(self, known: Iterable[Hashable] = ()) -> None:
        """`known` are people whose value the outsider has: their part of a sum protects nobody."""
        self._rows: dict[Hashable, tuple[_Row, _Combination]] = {}
        self._known = frozenset(known)
        self._answered = 0

    @property
    def answered(self) -> int:
        """How many sums were answered."""
        return self._answered

    @property
    def rank(self) -> int:
        """How many of them were independent."""
        return len(self._rows)

    def decide(self, query: Query) -> Decision:
        """Whether this sum may be answered after those before; nothing is recorded."""
        vector = self._vector(query)
        if all(person in self._known for person in vector):
            return Decision(True)
        return _decision(self._with(vector))

    def answer(self, query: Query) -> Decision:
        """Decide, and record the sum as answered when it is allowed."""
        decision = self.decide(query)
        if decision.allowed:
            self._rows = self._with(self._vector(query))
            self._answered += 1
        return decision

    def _vector(self, query: Query) -> _Row:
        if isinstance(query, Mapping):
            weights = {person: exact(weight, "weight") for person, weight in query.items()}
        else:
            people = list(query)
            require(len(set(people)) == len(people), "a person is counted once in a sum; give weights as a mapping")
            weights = dict.fromkeys(people, Fraction(1))
        weights = {person: weight for person, weight in weights.items() if weight}
        require(bool(weights), "a sum is over at least one person")
        return weights

    def _with(self, vector: _Row) -> dict[Hashable, tuple[_Row, _Combination]]:
        """The reduced rows after one more sum: each with its combination of answers, keyed by its pivot."""
        row = {person: weight for person, weight in vector.items() if person not in self._known}
        combination: _Combination = {self._answered: Fraction(1)}
        for pivot in [person for person in row if person in self._rows]:
            factor = row[pivot]
            _subtract(row, self._rows[pivot][0], factor)
            _subtract(combination, self._rows[pivot][1], factor)
        if not row:
            return self._rows
        pivot = next(iter(row))
        scale = row[pivot]
        row = {person: weight / scale for person, weight in row.items()}
        combination = {number: weight / scale for number, weight in combination.items()}
        rows: dict[Hashable, tuple[_Row, _Combination]] = {}
        for other, (held, factors) in self._rows.items():
            if pivot in held:
                factor, held, factors = held[pivot], dict(held), dict(factors)
                _subtract(held, row, factor)
                _subtract(factors, combination, factor)
            rows[other] = (held, factors)
        rows[pivot] = (row, combination)
        return rows


def audit(queries: Sequence[Query], known: Iterable[Hashable] = ()) -> Decision:
    """Offline: whether all these sums together may be answered, and whose values would follow."""
    auditor = SumAuditor(known)
    for query in queries:
        auditor._rows = auditor._with(auditor._vector(query))
        auditor._answered += 1
    return _decision(auditor._rows)


def _decision(rows: Mapping[Hashable, tuple[_Row, _Combination]]) -> Decision:
    """In reduced form a unit vector of the space is one of the rows."""
    disclosures = tuple(
        SumDisclosure(pivot, tuple(sorted(combination.items()))) for pivot, (row, combination) in rows.items() if len(row) == 1
    )
    return Decision(not disclosures, disclosures)


def _subtract(row: dict[K, Fraction], other: Mapping[K, Fraction], factor: Fraction) -> None:
    for person, weight in other.items():
        left = row.get(person, Fraction(0)) - factor * weight
        if left:
            row[person] = left
        else:
            row.pop(person, None)
