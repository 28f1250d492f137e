"""The language of queries: all its operators, and what follows from their rows.

Over rows an expression becomes a term, which has a value for every row, so that whether a query fails never depends on a record.
Over answers it is post-processing: checked first, then computed for each group here and never in the engine. Whatever has no row
in the table is refused with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from sfumato.core.errors import SfumatoError, Unsupported
from sfumato.dp.sql.operators import choices, conditions, dates, numbers, reals, texts
from sfumato.dp.sql.operators.base import Cell, Floats, Operator, OverAnswers
from sfumato.dp.sql.operators.term import LONGEST, Term
from sfumato.dp.sql.parse import function_name, refuse_clauses
from sfumato.engines.sql.values import written_size

#: Resolves a column reference of the query.
Resolve: TypeAlias = Callable[[exp.Column], Term]

_ALWAYS = frozenset({"this", "expression", "expressions"})
_ELSE = "only total functions that mean the same on every engine are allowed"
#: Nodes that stand inside others and are read by their parents.
_INSIDE = (exp.Column, exp.Identifier, exp.If, exp.DataType, exp.DataTypeParam)


class Language:
    """Operators by the nodes that the parser makes of them, or by name."""

    def __init__(self, operators: Iterable[Operator]) -> None:
        self.operators: list[Operator] = []
        self._by_node: dict[type[exp.Expression], Operator] = {}
        self._by_name: dict[str, Operator] = {}
        #: Those over answers, found at once because they are computed for every group.
        self.answers: dict[type[exp.Expression], OverAnswers] = {}
        for operator in operators:
            self.add(operator)

    def add(self, operator: Operator) -> None:
        """Take an operator in."""
        self.operators.append(operator)
        self._by_node.update(dict.fromkeys(operator.nodes, operator))
        if operator.answers is not None:
            self.answers.update(dict.fromkeys(operator.nodes, operator.answers))
        if not operator.nodes:
            self._by_name[operator.name] = operator

    def find(self, node: exp.Expression) -> Operator | None:
        """The operator of a node."""
        operator = self._by_node.get(type(node))
        if operator is None and isinstance(node, exp.Anonymous):
            return self._by_name.get(str(node.this).upper())
        return operator


#: Whatever can be written in a query besides aggregates.
LANGUAGE = Language(
    (
        *numbers.ROWS,
        *reals.ROWS,
        *conditions.ROWS,
        *choices.ROWS,
        *dates.ROWS,
        *texts.ROWS,
    )
)


def is_unknown(node: exp.Expression) -> bool:
    """True for a call of a function that is not in the language."""
    return isinstance(node, exp.Anonymous) and LANGUAGE.find(node) is None


def over_answers(node: exp.Expression) -> OverAnswers | None:
    """What the operator of a node does to answers."""
    operator = LANGUAGE.find(node)
    return None if operator is None else operator.answers


# Over rows -------------------------------------------------------------------------------------------------------------


def lower(node: exp.Expression, resolve: Resolve) -> Term:
    """The term that an SQL expression means."""
    return _Terms(resolve)(node)


@dataclass(frozen=True)
class _Terms:
    """Expressions as terms over rows."""

    resolve: Resolve

    def __call__(self, node: exp.Expression) -> Term:
        if isinstance(node, exp.Column):
            _refuse_extras(node, ("table",))
            return self.resolve(node)
        operator = LANGUAGE.find(node)
        if operator is None or isinstance(operator.rows, str):
            raise Unsupported(_refusal(node, operator))
        _refuse_extras(node, operator.reads)
        try:
            term = operator.rows(node, self)
        except SfumatoError:
            raise
        except (KeyError, AttributeError, TypeError, ValueError, OverflowError):
            raise Unsupported(f"{function_name(node)} is not written as expected; check its arguments") from None
        if written_size(term.expression) > LONGEST:
            raise Unsupported(
                "the expression is too long once it is written out: operations that need a value twice repeat it. Leave out what "
                "the noise hides anyhow, or compute parts of it in a sub-query."
            )
        return term


def _refuse_extras(node: exp.Expression, reads: tuple[str, ...]) -> None:
    extra = [name for name, value in node.args.items() if value and name not in _ALWAYS and name not in reads]
    if extra:
        raise Unsupported(f"{function_name(node)} with '{extra[0].strip('_').upper()}' is not supported")


def _refusal(node: exp.Expression, operator: Operator | None) -> str:
    if operator is None and isinstance(node, exp.AggFunc):
        return f"{function_name(node)} stands where a value of one row is needed; aggregates belong in SELECT or HAVING"
    reason = "" if operator is None else operator.rows
    return f"{function_name(node)} is not supported: {reason or _ELSE}"


# Over answers ----------------------------------------------------------------------------------------------------------


def check(node: exp.Expression, kind_of: Callable[[str], str]) -> str | None:
    """Refuse what cannot be computed over an answer; returns the kind of the result, None for a missing constant."""
    for part in node.walk():
        operator = LANGUAGE.find(part)
        if operator is not None and operator.answers is not None:
            refuse_clauses(part, _ALWAYS.union(operator.reads), function_name(part))
        elif not isinstance(part, _INSIDE):
            raise Unsupported(_not_over_answers(part))
    try:
        return _kind(node, kind_of)
    except (KeyError, AttributeError, TypeError):
        raise Unsupported("an expression over aggregates is not written as expected") from None


def _kind(node: exp.Expression, kind_of: Callable[[str], str]) -> str | None:
    if isinstance(node, exp.Column):
        return kind_of(node.name)
    operator = over_answers(node)
    if operator is None:
        raise Unsupported(_not_over_answers(node))
    return operator.kind(node, lambda part: _kind(part, kind_of))


def _not_over_answers(node: exp.Expression) -> str:
    return f"{function_name(node)} over aggregates is not supported; compute it from the answer"


class Row:
    """One group of an answer: keys and statistics by their placeholders, and from them the value of every expression."""

    __slots__ = ("_placed",)

    def __init__(self, placed: Mapping[str, Cell]) -> None:
        self._placed = placed

    def value(self, node: exp.Expression) -> Cell:
        """The value of an expression; missing where it has none."""
        operator = LANGUAGE.answers.get(type(node))
        if operator is None:
            if isinstance(node, exp.Column):
                return self._placed[node.name]
            operator = over_answers(node)
            if operator is None:
                return None
        try:
            return operator.cell(node, self.value)
        except (ArithmeticError, TypeError, ValueError):
            return None


def evaluate(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
    """The value of an expression for one group."""
    return row[node.name] if isinstance(node, exp.Column) else Row(row).value(node)


def computed(node: exp.Expression, columns: Mapping[str, Floats]) -> Floats | None:
    """The value of an expression without jumps, one row per group; None where one of its parts jumps."""
    if isinstance(node, exp.Column):
        return columns[node.name]
    operator = over_answers(node)
    if operator is None or operator.array is None:
        return None
    return operator.array(node, lambda part: computed(part, columns))
