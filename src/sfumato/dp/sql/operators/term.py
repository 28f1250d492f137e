"""A row-wise expression with what is known of its values before any row is seen: kind, bounds, possible values.

Bounds come from declarations and from arithmetic on them; an expression that may leave its bounds is clamped before
it is used in a sum, so that they hold whatever the data contains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.core.errors import Unsupported
from sfumato.engines import expressions as e
from sfumato.engines.expressions import Expression, Kind, Value
from sfumato.engines.functions import numbers as f

#: Whole numbers up to this size survive a passage through floating point, halves added.
EXACT = 2**51
#: Real operands are held inside this, so that no product of two overflows on any engine.
HUGE = 1e150
#: A grouped result may have this many declared groups.
MOST_GROUPS = 100_000
#: An expression that the engine would write out longer than this is refused.
LONGEST = 2_000
#: Why a number made of dates has no bounds.
ANY_DAYS = "the dates may be any days of the calendar"
ANY_MOMENTS = "the moments may lie on any days of the calendar"


@dataclass(frozen=True)
class Term:
    """An expression over rows.

    `sure` says that the expression itself keeps its bounds; otherwise they are a declaration that `bounded` enforces.
    `values` lists what it can be, where that is known; `hint` says why nothing is known.
    """

    expression: Expression
    kind: Kind
    low: Fraction | None = None
    high: Fraction | None = None
    values: tuple[Value, ...] | None = None
    sure: bool = True
    hint: str = ""

    @property
    def numeric(self) -> bool:
        """True for numbers of any kind."""
        return self.kind in e.NUMERIC

    @property
    def text(self) -> str | None:
        """The text, for a text constant."""
        held = self.expression
        return held.value if isinstance(held, e.Literal) and isinstance(held.value, str) else None

    @property
    def constant(self) -> Fraction | None:
        """The number, for a numeric constant."""
        held = self.expression
        if isinstance(held, e.Literal) and isinstance(held.value, (int, float)) and not isinstance(held.value, bool):
            return Fraction(held.value)
        return None

    @property
    def missing(self) -> bool:
        """True for the constant NULL."""
        return isinstance(self.expression, e.Literal) and self.expression.value is None


def constant(value: Value) -> Term:
    """A constant."""
    kind = e.kind_of_value(value)
    if kind == "wide":
        raise Unsupported("whole numbers in a query must fit 64 bits")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = Fraction(value)
        return Term(e.Literal(value), kind, number, number, (value,) if isinstance(value, int) else None)
    return Term(e.Literal(value), kind, values=(value,))


def null(kind: Kind = "string") -> Term:
    """The missing constant of a kind."""
    return Term(e.Literal(None, kind), kind, values=(None,))


def condition(expression: Expression) -> Term:
    """A truth value; a comparison with a missing value is itself missing."""
    return Term(expression, "boolean", values=(False, True))


def bounded(term: Term) -> Term:
    """The term held inside its bounds by the engine, where it has both."""
    if term.sure or term.low is None or term.high is None:
        return term
    low, high = (float(term.low), float(term.high)) if term.kind == "number" else _whole_bounds(term)
    clamped = f.Clamp(term.expression, low, high)
    return replace(term, expression=clamped, low=Fraction(low), high=Fraction(high), sure=True)


def _whole_bounds(term: Term) -> tuple[int, int]:
    """The bounds of a whole number, no farther out than its kind reaches."""
    least, largest = e.WHOLE[term.kind]
    low, high = max(int(term.low or 0), least), min(int(term.high or 0), largest)
    if low > high:
        raise Unsupported("the bounds of a whole number lie beyond 64 bits")
    return low, high


def clamped(term: Term, low: Fraction, high: Fraction) -> Term:
    """The term moved into [low, high]."""
    if not term.numeric:
        raise Unsupported(f"a {term.kind} cannot be clamped")
    if low > high:
        raise Unsupported("the lower bound of a clamp is above the upper bound")
    # A bound that the term keeps anyhow is not loosened.
    low = low if term.low is None else min(max(low, term.low), high)
    high = high if term.high is None else max(min(high, term.high), low)
    if term.kind != "number" and not (low.denominator == 1 and high.denominator == 1):
        term = as_number(term)
    return bounded(replace(term, low=low, high=high, sure=False, values=None))


def as_number(term: Term) -> Term:
    """The term as a real number."""
    if term.kind == "number":
        return term
    held = bounded(term)
    return replace(held, expression=e.Cast(held.expression, "number"), kind="number", values=None)


def arithmetic(operator: str, left: Term, right: Term) -> Term:
    """Sum, difference or product; exact on whole numbers of moderate size, else in floating point."""
    if not (left.numeric and right.numeric):
        raise Unsupported(f"'{operator}' needs two numbers, not a {left.kind} and a {right.kind}")
    left, right = bounded(left), bounded(right)
    low, high = (finite(end) for end in _ends(operator, left, right))
    whole = left.kind != "number" and right.kind != "number"
    fits = low is not None and high is not None and max(abs(low), abs(high)) < EXACT
    small = all(
        side.low is not None and side.high is not None and max(abs(side.low), abs(side.high)) < EXACT for side in (left, right)
    )
    if whole and fits and small:
        expression = e.Arithmetic(operator, left.expression, right.expression)  # type: ignore[arg-type]
        return Term(f.FixedPoint(expression, 1, float(EXACT)), "integer", low, high, _results(operator, left, right))
    sides = [_moderate(as_number(side)) for side in (left, right)]
    expression = e.Arithmetic(operator, sides[0].expression, sides[1].expression)  # type: ignore[arg-type]
    # Rounding may carry a result across its exact bound by the last digit.
    return Term(expression, "number", low, high, sure=False)


def _results(operator: str, left: Term, right: Term) -> tuple[Value, ...] | None:
    """What comes out when a term with few possible values meets a constant: FLOOR(age / 10) * 10."""
    if left.constant is None and right.constant is None:
        return None
    listed = [possible_values(side) for side in (left, right)]
    if listed[0] is None or listed[1] is None:
        return None
    pairs = [(a, b) for a in listed[0] for b in listed[1] if isinstance(a, int) and isinstance(b, int)]
    results = [a + b if operator == "+" else a - b if operator == "-" else a * b for a, b in pairs]
    return tuple(dict.fromkeys(results)) if len(pairs) == len(listed[0]) * len(listed[1]) else None


def _moderate(term: Term) -> Term:
    if term.low is not None and term.high is not None and max(abs(term.low), abs(term.high)) < Fraction(HUGE):
        return term
    return replace(term, expression=f.Clamp(term.expression, -HUGE, HUGE))


def _ends(operator: str, left: Term, right: Term) -> tuple[Fraction | None, Fraction | None]:
    if operator == "+":
        return _apart(left.low, right.low, 1), _apart(left.high, right.high, 1)
    if operator == "-":
        return _apart(left.low, right.high, -1), _apart(left.high, right.low, -1)
    ends = (left.low, left.high, right.low, right.high)
    if any(end is None for end in ends):
        if _not_negative(left) and _not_negative(right):
            return Fraction(0), None
        return None, None
    products = [a * b for a in (left.low, left.high) for b in (right.low, right.high) if a is not None and b is not None]
    return min(products), max(products)


def finite(end: Fraction | None) -> Fraction | None:
    """An end that a real number can hold; beyond it nothing is known."""
    return end if end is not None and abs(end) < Fraction(HUGE) ** 2 else None


def _apart(one: Fraction | None, other: Fraction | None, sign: int) -> Fraction | None:
    return None if one is None or other is None else one + sign * other


def _not_negative(term: Term) -> bool:
    return term.low is not None and term.low >= 0


def merged(terms: Sequence[Term], build: Callable[[list[Expression]], Expression]) -> Term:
    """A term that is one of several: CASE, COALESCE, LEAST; all of one kind, its bounds around all of theirs."""
    present = [term for term in terms if not term.missing]
    if not present:
        return null()
    kinds = {term.kind for term in present}
    if len(kinds) > 1 and not kinds <= e.NUMERIC:
        raise Unsupported(f"the branches of an expression have different kinds: {', '.join(sorted(kinds))}")
    numeric = kinds <= e.NUMERIC
    if numeric and len(kinds) > 1:
        known_terms = [term if term.missing else as_number(bounded(term)) for term in terms]
        kind: Kind = "number"
    else:
        known_terms, kind = [bounded(term) for term in terms], next(iter(kinds))
    parts = [e.Literal(None, kind) if term.missing else term.expression for term in known_terms]
    kept = [term for term in known_terms if not term.missing]
    low = min((t.low for t in kept), default=None) if all(t.low is not None for t in kept) else None  # type: ignore[type-var]
    high = max((t.high for t in kept), default=None) if all(t.high is not None for t in kept) else None  # type: ignore[type-var]
    values: tuple[Value, ...] | None = None
    if kind == terms[0].kind or not numeric:
        listed = [(None,) if t.missing else t.values for t in known_terms]
        if all(entry is not None for entry in listed):
            values = tuple(dict.fromkeys(v for entry in listed for v in (entry or ())))
    sure = all(term.sure for term in kept)
    return Term(build(parts), kind, low, high, values, sure)


def possible_values(term: Term) -> tuple[Value, ...] | None:
    """What a grouping key can be: the declared or computed values, or all whole numbers between its bounds."""
    if term.values is not None:
        return term.values
    if term.kind == "boolean":
        return (False, True)
    if term.kind == "integer" and term.low is not None and term.high is not None and term.high - term.low < MOST_GROUPS:
        return tuple(range(int(term.low), int(term.high) + 1))
    return None
