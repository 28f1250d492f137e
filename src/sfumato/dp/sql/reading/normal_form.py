"""One digest for rows and expressions that are the same on every database, however the query spells them.

Columns are traced to the stored ones they are computed from, so that names and aliases vanish; AND and OR become sets,
comparisons point one way, sums and products of two numbers have no order, IN lists no order and no repetitions. Only
rewrites that keep the value of every row are made, missing values included: docs/theory/the-same-question.md.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sfumato.core.errors import Unsupported
from sfumato.engines import expressions as e
from sfumato.engines import plan as p

#: Whole numbers below this size are the same in floating point, and no other whole number is rounded to one of them.
_WHOLE = 2**53
_TURNED = {">": "<", ">=": "<="}
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def form(*parts: object) -> str:
    """The digest of something made of texts, numbers and other forms."""
    return hashlib.sha256(json.dumps(parts, separators=(",", ":"), ensure_ascii=True).encode()).hexdigest()


class NormalRows:
    """Rows under a plan: what they are (`rows`), and each of their columns as what it is computed from.

    No two rows agree in all columns of these forms (`unique`), where something is known of that.
    """

    def __init__(
        self,
        rows: str,
        columns: Mapping[str, str],
        conditions: frozenset[str] = frozenset(),
        unique: frozenset[str] | None = None,
    ) -> None:
        self._source = rows
        self._columns = columns
        self._conditions = conditions
        self._unique = unique
        self._known: dict[int, tuple[e.Expression, str]] = {}

    @property
    def rows(self) -> str:
        """Which rows there are, whatever is shown of them."""
        return form("where", self._source, sorted(self._conditions)) if self._conditions else self._source

    def of(self, expression: e.Expression) -> str:
        """What an expression over these rows is."""
        remembered = self._known.get(id(expression))
        if remembered is None:
            # The expression is kept, so that no other one gets its id.
            remembered = self._known[id(expression)] = (expression, self._form(expression))
        return remembered[1]

    def kept(self, condition: e.Expression) -> NormalRows:
        """The rows for which a condition holds; conditions one after the other are one."""
        forms = {self.of(term) for term in _flat(e.And, (condition,))}
        return NormalRows(self._source, self._columns, self._conditions | forms, self._unique)

    def shown(self, columns: Iterable[p.Named]) -> NormalRows:
        """The same rows with other columns."""
        return NormalRows(self._source, {each.name: self.of(each.expression) for each in columns}, self._conditions, self._unique)

    def joined(self, right: NormalRows, plan: p.Join) -> NormalRows:
        """Rows of both sides."""
        pairs = sorted([self._columns[one], right._columns[other]] for one, other in plan.on)
        matched = {other for _, other in plan.on}
        if plan.kind == "left" and right._unique is not None and right._unique <= {right._columns[name] for name in matched}:
            # At most one match for each row: the rows stay what they are, whatever else is brought to them before or after.
            brought = {name: held for name, held in right._columns.items() if name not in matched}
            added = {name: form("brought", plan.nulls, right.rows, pairs, held) for name, held in brought.items()}
            return NormalRows(self._source, {**self._columns, **added}, self._conditions, self._unique)
        columns = {name: form("left", held) for name, held in self._columns.items()}
        columns |= {name: form("right", held) for name, held in right._columns.items() if name not in matched}
        return NormalRows(form("join", plan.kind, plan.nulls, self.rows, right.rows, pairs), columns)

    def per_unit(self, plan: p.PerUnitAggregate) -> NormalRows:
        """One row per unit and keys."""
        keys = {name: form("key", self._columns[name]) for name in (plan.unit, *plan.keys)}
        aggregates = {
            each.name: form(
                "aggregate",
                each.function,
                None if each.expression is None else self.of(each.expression),
                None if each.where is None else self.of(each.where),
            )
            for each in plan.aggregates
        }
        source = form("per unit", self.rows, keys[plan.unit], sorted(keys.values()))
        return NormalRows(source, {**keys, **aggregates}, unique=frozenset(keys.values()))

    def _form(self, expression: e.Expression) -> str:
        match expression:
            case e.Reference(name):
                return self._columns[name]
            case e.And(terms) | e.Or(terms):
                forms = sorted({self.of(term) for term in _flat(type(expression), terms)})
                return forms[0] if len(forms) == 1 else form(type(expression).__name__, forms)
            case e.Not(e.Not(term)):
                return self.of(term)
            case e.Not(e.Compare(operator, left, right)) if operator in _OPPOSITE:
                return self._compared(_OPPOSITE[operator], left, right)
            case e.Compare(operator, left, right):
                return self._compared(operator, left, right)
            case e.OneOfValues(term, values):
                return form("OneOfValues", self.of(term), sorted({_constant(value) for value in values}))
            case e.Arithmetic("+" | "*" as operator, left, right):
                return form("Arithmetic", operator, sorted((self.of(left), self.of(right))))
            case _:
                fields = dataclasses.fields(expression)
                return form(type(expression).__name__, [self._part(getattr(expression, field.name)) for field in fields])

    def _compared(self, operator: str, left: e.Expression, right: e.Expression) -> str:
        sides = [self._side(side) for side in (left, right)]
        if operator in _TURNED:
            operator, sides = _TURNED[operator], sides[::-1]
        return form("Compare", operator, sides if operator in ("<", "<=") else sorted(sides))

    def _side(self, side: e.Expression) -> str:
        if isinstance(side, e.Literal) and isinstance(side.value, (int, float)) and not isinstance(side.value, bool):
            return _constant(side.value)
        return self.of(side)

    def _part(self, value: Any) -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self.of(value)  # type: ignore[arg-type]
        if isinstance(value, tuple):
            return [self._part(each) for each in value]
        return repr(value)


def normal_rows(plan: p.Plan, table: Callable[[str], str]) -> NormalRows:
    """The rows of a plan; `table` says what a scanned table is, by the name that plans have for it."""
    match plan:
        case p.Scan(name, fields):
            source = form("table", table(name))
            singles = {field.name: ["single"] if field.by_text else [] for field in fields}
            return NormalRows(source, {field.name: form("column", repr(field), *singles[field.name]) for field in fields})
        case p.Filter(source, condition):
            return normal_rows(source, table).kept(condition)
        case p.Project(source, columns):
            return normal_rows(source, table).shown(columns)
        case p.Join(left, right):
            return normal_rows(left, table).joined(normal_rows(right, table), plan)
        case p.PerUnitAggregate(source):
            return normal_rows(source, table).per_unit(plan)
    raise Unsupported(f"rows under {type(plan).__name__} have no normal form")


def _flat(kind: type[e.And | e.Or], terms: tuple[e.Expression, ...]) -> list[e.Expression]:
    """The terms of nested ANDs, or nested ORs."""
    leaves: list[e.Expression] = []
    pending = list(terms)
    while pending:
        term = pending.pop()
        if isinstance(term, (e.And, e.Or)) and isinstance(term, kind):
            pending.extend(term.terms)
        else:
            leaves.append(term)
    return leaves


def _constant(value: e.Value) -> str:
    """A constant that is compared: 30 and 30.0 lie at the same place between all numbers."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE:
        value = int(value)
    return form("constant", type(value).__name__, repr(value))
