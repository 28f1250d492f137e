"""A second, plain evaluator of supported queries over lists of rows: loops and dictionaries, by the documented semantics.

It shares no code with the compiler or the engines (sqlglot parses the text, nothing else). Missing is None, and so is
NaN. Comparisons see values as they are; wherever a column enters arithmetic, an aggregate or a key it is first moved into
its declared bounds. Rows without a unit and rows outside the declared keys are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Any

import sqlglot
from sqlglot import exp

Value = Any
Group = tuple[Value, ...]


@dataclass(frozen=True)
class Described:
    """A declared column: kind, bounds, values."""

    kind: str
    low: int | float | None = None
    high: int | float | None = None
    values: tuple[Value, ...] | None = None


@dataclass(frozen=True)
class Table:
    """Rows with their declarations; `unit` names whose rows they are, None when each record is its own unit."""

    columns: Mapping[str, Described]
    rows: Sequence[Mapping[str, Value]]
    unit: str | None = None
    private: bool = True


@dataclass(frozen=True)
class Row:
    """Values by (alias, column), and whose row it is."""

    cells: Mapping[tuple[str, str], Value]
    unit: Value


@dataclass(frozen=True)
class Source:
    """Rows of FROM, JOIN and WHERE."""

    columns: Mapping[tuple[str, str], Described]
    rows: list[Row]
    units: frozenset[tuple[str, str]]
    private: bool
    records: bool
    tables: Mapping[str, Table] = field(default_factory=dict)  # that a sub-query of a condition may read

    def key(self, node: exp.Column) -> tuple[str, str]:
        found = [c for c in self.columns if c[1] == node.name and (not node.table or c[0] == node.table)]
        assert found, f"no column {node.sql()}"
        return found[0]


@dataclass
class Answer:
    """What the query is about: the rows kept, by group, before any bound on contributions."""

    source: Source
    keys: list[exp.Expression]
    values: list[tuple[Value, ...] | None]
    kept: list[tuple[Value, Group, Row]] = field(default_factory=list)

    @property
    def groups(self) -> list[Group]:
        """Declared groups, or those that occur where some key is undeclared."""
        if any(values is None for values in self.values):
            return list(dict.fromkeys(group for _, group, _ in self.kept))
        return list(product(*(values or () for values in self.values)))

    def pieces(self, group: Group, argument: exp.Expression | None, where: exp.Expression | None) -> list[tuple[Value, Value]]:
        """(unit, value) of the rows of a group that the aggregate looks at; value 1 where it counts rows."""
        found = []
        for unit, own, row in self.kept:
            if own == group and (where is None or look(where, row, self.source) is True):
                value = 1 if argument is None else held(argument, row, self.source)
                if value is not None:
                    found.append((unit, value))
        return found

    def contributions(self) -> dict[Value, dict[Group, int]]:
        """Rows of each unit in each of its groups."""
        found: dict[Value, dict[Group, int]] = {}
        for unit, group, _ in self.kept:
            found.setdefault(unit, {}).setdefault(group, 0)
            found[unit][group] += 1
        return found


def asked(tables: Mapping[str, Table], text: str) -> Answer:
    """Evaluate everything of a query that comes before bounding and aggregating."""
    select = sqlglot.parse_one(text, dialect="duckdb")
    assert isinstance(select, exp.Select)
    source = _source(select, tables)
    group = select.args.get("group")
    keys = [] if group is None else list(group.expressions)
    values = [key_values(key, source) for key in keys]
    answer = Answer(source, keys, values)
    for number, row in enumerate(source.rows):
        if not source.records and row.unit is None:
            continue
        own = tuple(held(key, row, source) for key in keys)
        if all(allowed is None or value in allowed for value, allowed in zip(own, values, strict=True)):
            answer.kept.append((number if source.records else row.unit, own, row))
    return answer


# Where rows come from ------------------------------------------------------------------------------------------------


def _origin(select: exp.Select, tables: Mapping[str, Table]) -> Source:
    source = _item(select.args["from_"].this, tables)
    for join in select.args.get("joins") or ():
        source = _joined(source, _item(join.this, tables), join)
    return replace(source, tables=tables)


def _source(select: exp.Select, tables: Mapping[str, Table]) -> Source:
    source = _origin(select, tables)
    where = select.args.get("where")
    if where is None:
        return source
    kept = [row for row in source.rows if look(where.this, row, source) is True]
    return replace(source, rows=kept)


def _matches(select: exp.Select, row: Row, source: Source) -> Iterator[tuple[Row, Source]]:
    """The rows of a sub-query of a condition for one row of the outer query: every pair of both is looked at."""
    inner = _origin(select, source.tables)
    columns = {**inner.columns, **{name: held for name, held in source.columns.items() if name not in inner.columns}}
    both = replace(source, columns=columns)
    for other in inner.rows:
        pair = Row({**row.cells, **other.cells}, row.unit)
        where = select.args.get("where")
        if where is None or look(where.this, pair, both) is True:
            yield pair, both


def _listed(select: exp.Select, row: Row, source: Source) -> list[Value]:
    """What IN compares with."""
    item = select.expressions[0]
    if select.args.get("group") is not None:
        grouped = _sub_query(select, _source(select, source.tables), "listed")
        return [next(iter(each.cells.values())) for each in grouped.rows]
    return [look(item, pair, both) for pair, both in _matches(select, row, source)]


def _item(node: exp.Expression, tables: Mapping[str, Table]) -> Source:
    if isinstance(node, exp.Table):
        table, alias = tables[node.name], node.alias_or_name
        columns = {(alias, name): described for name, described in table.columns.items()}
        rows = [
            Row({(alias, name): _clean(row[name]) for name in table.columns}, row[table.unit] if table.unit else None)
            for row in table.rows
        ]
        units = frozenset([(alias, table.unit)] if table.unit else [])
        return Source(columns, rows, units, table.private, table.private and table.unit is None)
    assert isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select)
    return _sub_query(node.this, _source(node.this, tables), node.alias)


def _joined(left: Source, right: Source, join: exp.Join) -> Source:
    pairs, further = [], []
    if join.args.get("using"):
        names = [identifier.name for identifier in join.args["using"]]
        pairs = [(left.key(exp.column(name)), right.key(exp.column(name))) for name in names]
    else:
        for part in join.args["on"].flatten() if isinstance(join.args["on"], exp.And) else [join.args["on"]]:
            sides = [part.this, part.expression]
            if not all(isinstance(side, exp.Column) for side in sides):
                further.append(part)
                continue
            if (sides[0].table, sides[0].name) not in left.columns:
                sides.reverse()
            pairs.append((left.key(sides[0]), right.key(sides[1])))
    outer = str(join.args.get("side") or "").upper() == "LEFT"
    rows = []
    merged = replace(left, columns={**right.columns, **left.columns})
    for one in left.rows:
        unit_of_both = one.unit
        found = [
            Row({**other.cells, **one.cells}, unit_of_both if left.private else other.unit)
            for other in right.rows
            if all(one.cells[a] is not None and one.cells[a] == other.cells[b] for a, b in pairs)
        ]
        found = [row for row in found if all(look(part, row, merged) is True for part in further)]
        if outer and not found:
            found = [Row({**dict.fromkeys(right.columns), **one.cells}, unit_of_both)]
        rows += found
    columns = {**right.columns, **left.columns}
    return Source(columns, rows, left.units | right.units, left.private or right.private, left.records or right.records)


def _sub_query(select: exp.Select, source: Source, alias: str) -> Source:
    items = [(item.alias_or_name, item.this if isinstance(item, exp.Alias) else item) for item in select.expressions]
    columns = {(alias, name): _output(node, source) for name, node in items}
    units = frozenset((alias, name) for name, node in items if isinstance(node, exp.Column) and source.key(node) in source.units)
    group = select.args.get("group")
    if group is None and not select.args.get("distinct"):
        rows = [Row({(alias, name): look(node, row, source) for name, node in items}, row.unit) for row in source.rows]
        return Source(columns, rows, units, source.private, source.records)
    keys = [node for _, node in items] if group is None else list(group.expressions)
    parts: dict[Group, list[Row]] = {}
    for row in source.rows:
        parts.setdefault(tuple(held(key, row, source) for key in keys), []).append(row)
    rows = []
    having = select.args.get("having")
    for members in parts.values():
        if having is None or look(_per_unit(having.this, members, source), members[0], source) is True:
            made = {(alias, name): held(_per_unit(node, members, source), members[0], source) for name, node in items}
            rows.append(Row(made, members[0].unit))
    return Source(columns, rows, units, source.private, source.records)


def _per_unit(node: exp.Expression, rows: list[Row], source: Source) -> exp.Expression:
    """The expression with its aggregates over these rows replaced by their values."""

    def value(part: exp.Expression) -> exp.Expression:
        if not isinstance(part, exp.AggFunc):
            return part
        known = [v for row in rows if (v := 1 if isinstance(part.this, exp.Star) else held(part.this, row, source)) is not None]
        if isinstance(part, exp.Count):
            return _constant(len(known))
        found = {exp.Sum: sum, exp.Min: min, exp.Max: max}[type(part)](known) if known else None  # type: ignore[operator]
        return _constant(found)

    return node.copy().transform(value)


def _constant(value: Value) -> exp.Expression:
    return exp.Null() if value is None else exp.Literal(this=repr(value), is_string=False)


def _output(node: exp.Expression, source: Source) -> Described:
    if isinstance(node, exp.Column):
        return source.columns[source.key(node)]
    if isinstance(node, (exp.Min, exp.Max)) and isinstance(node.this, exp.Column):
        inner = source.columns[source.key(node.this)]
        return Described(inner.kind, inner.low, inner.high)
    inner_kind = source.columns[source.key(node.this)].kind if isinstance(node, exp.Sum) else "integer"
    return Described("integer" if inner_kind == "integer" else "number")


def _clean(value: Value) -> Value:
    return None if isinstance(value, float) and math.isnan(value) else value


# Values --------------------------------------------------------------------------------------------------------------


def held(node: exp.Expression, row: Row, source: Source) -> Value:
    """The value as it enters arithmetic, aggregates and keys: a column is moved into its bounds."""
    value = look(node, row, source)
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Column) and value is not None:
        described = source.columns[source.key(node)]
        if described.low is not None and described.high is not None:
            return min(max(value, described.low), described.high)
    return value


def _unknown(compute: Callable[..., Value], *values: Value) -> Value:
    return None if any(value is None for value in values) else compute(*values)


_COMPARE: dict[type[exp.Expression], Callable[[Value, Value], bool]] = {
    exp.EQ: lambda a, b: a == b,
    exp.NEQ: lambda a, b: a != b,
    exp.LT: lambda a, b: a < b,
    exp.LTE: lambda a, b: a <= b,
    exp.GT: lambda a, b: a > b,
    exp.GTE: lambda a, b: a >= b,
}
_COMPUTE: dict[type[exp.Expression], Callable[[Value, Value], Value]] = {
    exp.Add: lambda a, b: a + b,
    exp.Sub: lambda a, b: a - b,
    exp.Mul: lambda a, b: a * b,
    exp.Div: lambda a, b: a / b if b != 0 else None,
    exp.Mod: lambda a, b: int(math.fmod(a, b)),
}


def look(node: exp.Expression, row: Row, source: Source) -> Value:
    """The value of an expression for one row, by SQL's three-valued logic."""

    def raw(part: exp.Expression) -> Value:
        return look(part, row, source)

    def inside(part: exp.Expression) -> Value:
        return held(part, row, source)

    kind = type(node)
    if kind in _COMPARE:
        return _unknown(_COMPARE[kind], raw(node.this), raw(node.expression))
    if kind in _COMPUTE:
        return _unknown(_COMPUTE[kind], inside(node.this), inside(node.expression))
    match node:
        case exp.Column():
            return row.cells[source.key(node)]
        case exp.Literal():
            return node.this if node.is_string else int(node.this) if re.fullmatch(r"-?\d+", node.this) else float(node.this)
        case exp.Boolean():
            return bool(node.this)
        case exp.Null():
            return None
        case exp.Paren():
            return raw(node.this)
        case exp.Neg():
            return _unknown(lambda a: -a, inside(node.this))
        case exp.Not():
            return _unknown(lambda a: not a, raw(node.this))
        case exp.And():
            sides = (raw(node.this), raw(node.expression))
            return False if False in sides else None if None in sides else True
        case exp.Or():
            sides = (raw(node.this), raw(node.expression))
            return True if True in sides else None if None in sides else False
        case exp.Is():
            return raw(node.this) is None
        case exp.Between():
            low, high = (raw(node.args[end]) for end in ("low", "high"))
            return _unknown(lambda a, b, c: b <= a <= c, raw(node.this), low, high)
        case exp.Exists():
            return any(True for _ in _matches(node.this, row, source))
        case exp.In() if node.args.get("query") is not None:
            value = raw(node.this)
            return value is not None and value in _listed(node.args["query"].this, row, source)
        case exp.In():
            return _unknown(lambda a: a in [raw(entry) for entry in node.expressions], raw(node.this))
        case exp.Like():
            pattern = "".join({"%": ".*", "_": "."}.get(c, re.escape(c)) for c in str(node.expression.this))
            return _unknown(lambda a: re.fullmatch(pattern, a, re.DOTALL) is not None, raw(node.this))
        case exp.Case():
            for branch in node.args["ifs"]:
                if raw(branch.this) is True:
                    return inside(branch.args["true"])
            return None if node.args.get("default") is None else inside(node.args["default"])
        case exp.Coalesce():
            return next((v for part in (node.this, *node.expressions) if (v := inside(part)) is not None), None)
        case exp.Least() | exp.Greatest():
            choose = min if isinstance(node, exp.Least) else max
            return _unknown(lambda *v: choose(v), *(inside(part) for part in (node.this, *node.expressions)))
        case exp.Sign():
            return _unknown(lambda a: (a > 0) - (a < 0), inside(node.this))
        case exp.DPipe():
            return _unknown(lambda a, b: f"{a}{b}", inside(node.this), inside(node.expression))
        case exp.Concat():
            return "".join("" if (value := inside(part)) is None else str(value) for part in node.expressions)
        case exp.Sqrt():
            return _unknown(lambda a: math.sqrt(a) if a >= 0 else None, inside(node.this))
        case exp.Exp():
            return _unknown(math.exp, inside(node.this))
        case exp.Ln():
            return _unknown(lambda a: _logarithm(a, math.e), inside(node.this))
        case exp.Log():
            argument = inside(node.this if node.expression is None else node.expression)
            return _unknown(lambda a: _logarithm(a, 10 if node.expression is None else raw(node.this)), argument)
        case exp.Floor():
            return _unknown(math.floor, inside(node.this))
        case exp.WidthBucket():
            low, high, count = (raw(node.args[name]) for name in ("min_value", "max_value", "num_buckets"))
            return _unknown(lambda a: _bucket(a, low, high, count), inside(node.this))
        case exp.Anonymous() if str(node.this).upper() == "CLAMP":
            return _unknown(lambda a, b, c: min(max(a, b), c), *(inside(part) for part in node.expressions))
    raise AssertionError(f"the brute force does not know {node.sql()}")


def _logarithm(value: Value, base: float) -> float | None:
    """Infinities and what is beyond 1e150 count as that, what is nearer to zero than 1e-150 as zero."""
    return math.log(min(value, 1e150)) / math.log(base) if value > 1e-150 else None


def _bucket(value: Value, low: Value, high: Value, count: int) -> int:
    if value < low:
        return 0
    return count + 1 if value >= high else math.floor((value - low) * count / (high - low)) + 1


def key_values(node: exp.Expression, source: Source) -> tuple[Value, ...] | None:
    """The declared values of a grouping key: its column's, or what the expression makes of its declared inputs."""
    if isinstance(node, (*_COMPARE, exp.Is, exp.Not, exp.And, exp.Or)):
        return (False, True)
    if isinstance(node, exp.Column):
        described = source.columns[source.key(node)]
        if described.values is not None or described.kind == "boolean":
            return described.values or (False, True)
        whole = described.kind == "integer" and described.low is not None and described.high is not None
        return tuple(range(int(described.low or 0), int(described.high or 0) + 1)) if whole else None
    if isinstance(node, exp.Case):
        made = [branch.args["true"] for branch in node.args["ifs"]]
        return tuple(dict.fromkeys([*(part.this for part in made), node.args["default"].this]))
    if isinstance(node, exp.WidthBucket):
        return tuple(range(int(node.args["num_buckets"].this) + 2))
    if isinstance(node, exp.Anonymous):
        return tuple(range(int(node.expressions[1].this), int(node.expressions[2].this) + 1))
    columns = list(node.find_all(exp.Column))
    inputs = [values for column in columns if (values := key_values(column, source)) is not None]
    if len(inputs) < len(columns):
        return None
    places = [source.key(column) for column in columns]
    rows = (Row(dict(zip(places, values, strict=True)), None) for values in product(*inputs))
    return tuple(dict.fromkeys(look(node, row, source) for row in rows))


# Aggregates over pieces ----------------------------------------------------------------------------------------------


def total(values: Iterable[Value]) -> Fraction:
    """The exact sum."""
    return sum((Fraction(value) for value in values), Fraction(0))


def mean(values: Sequence[Value]) -> Fraction:
    return total(values) / len(values)


def variance(values: Sequence[Value], *, sample: bool) -> Fraction:
    centre = mean(values)
    return sum(((Fraction(v) - centre) ** 2 for v in values), Fraction(0)) / (len(values) - sample)
