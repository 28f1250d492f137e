"""A query understood: its keys, what must be measured, and how the answer is put together from that.

The outer SELECT is taken apart: keys with their declared values, aggregates as statistics over measurements, and the
expressions around them, which are post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.aggregates import PLACEHOLDER, Asked, is_aggregate, taken_out
from sfumato.dp.sql.catalogue import MOST_GROUPS, Catalogue, KnownTable
from sfumato.dp.sql.functions import lower
from sfumato.dp.sql.measurement import Measurement, leaf_of, needs_bounds, on_grid
from sfumato.dp.sql.per_unit import group_nodes
from sfumato.dp.sql.rows import Lowering, Rows, source_rows
from sfumato.dp.sql.statistics import Statistic
from sfumato.dp.sql.term import Term, arithmetic, bounded, possible_values
from sfumato.engines import expressions as e
from sfumato.engines import plan as p
from sfumato.engines.expressions import Kind, Value

#: What the placeholder column of a key begins with in post-processing.
KEY = "\x00key "


@dataclass(frozen=True)
class Key:
    """A grouping key: the plan's column, its kind, and its declared values; None where they must be discovered."""

    name: str
    label: str
    kind: Kind
    expression: e.Expression
    values: tuple[Value, ...] | None


@dataclass(frozen=True)
class Shown:
    """A column of the answer: its name and the expression over placeholders of keys and aggregates."""

    name: str
    expression: exp.Expression


@dataclass(frozen=True)
class Ordering:
    """One term of ORDER BY, over placeholders."""

    expression: exp.Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Question:
    """What was asked, ready to be priced and run."""

    text: str
    rows: Rows
    keys: tuple[Key, ...]
    measurements: tuple[Measurement, ...]
    statistics: Mapping[str, Statistic]
    shown: tuple[Shown, ...]
    having: exp.Expression | None
    order: tuple[Ordering, ...]
    limit: int | None
    offset: int
    tables: Mapping[str, KnownTable] = field(repr=False)
    primary: str = ""

    @property
    def discovers(self) -> bool:
        """True when some key has no declared values."""
        return any(key.values is None for key in self.keys)

    @property
    def groups(self) -> int | None:
        """How many groups the answer has; None where they are discovered."""
        if self.discovers:
            return None
        count = 1
        for key in self.keys:
            count *= len(key.values or ())
        return count

    @property
    def unit(self) -> str:
        """Whose data is protected."""
        table = self.tables[self.primary]
        return table.unit or "record"


def understand(
    select: exp.Select,
    catalogue: Catalogue,
    keys: Mapping[str, tuple[Value, ...]] | None = None,
    order: tuple[str, ...] = (),
) -> Question:
    """Take a query apart; anything outside the supported shape is refused with the reason.

    `order` are further columns that truncation will need.
    """
    lowering = Lowering(catalogue, referenced=_referenced(select, order))
    if select.args.get("distinct"):
        raise Unsupported("SELECT DISTINCT on the outside is not supported; use GROUP BY with an aggregate such as COUNT(*)")
    rows = source_rows(select, lowering)
    if not rows.private or lowering.primary is None:
        raise Unsupported("the query reads public tables only; there is nothing to protect: compute it directly")
    grouping = _Grouping(select, rows, lowering, keys or {})
    found: dict[str, Asked] = {}
    shown = tuple(grouping.shown(item, found) for item in select.expressions)
    having_node = select.args.get("having")
    having = None if having_node is None else grouping.over_groups(having_node.this, found)
    sorted_by = select.args["order"].expressions if select.args.get("order") else ()
    ordering = tuple(grouping.ordering(entry, shown, found) for entry in sorted_by)
    if not found:
        raise Unsupported(
            "the query has no aggregate, and single rows are never shown: add COUNT(*), SUM(…), AVG(…), and GROUP BY where needed"
        )
    measuring = _Measuring(rows)
    statistics = {text: measuring.statistic(asked) for text, asked in found.items()}
    return Question(
        text=select.sql(),
        rows=rows,
        keys=tuple(grouping.keys),
        measurements=tuple(measuring.found.values()),
        statistics=statistics,
        shown=shown,
        having=having,
        order=ordering,
        limit=_count(select, "limit"),
        offset=_count(select, "offset") or 0,
        tables=dict(lowering.read),
        primary=lowering.primary,
    )


class _Grouping:
    """The keys of the outer query, and expressions over groups."""

    def __init__(self, select: exp.Select, rows: Rows, lowering: Lowering, declared: Mapping[str, tuple[Value, ...]]) -> None:
        self.rows = rows
        self.items = list(select.expressions)
        if any(isinstance(item, exp.Star) for item in self.items):
            raise Unsupported("SELECT * would show single rows, which never leave; ask for aggregates")
        self.keys: list[Key] = []
        self.nodes: list[str] = []
        count = 1
        for node in group_nodes(select):
            plain, label = self._key_node(node.unalias())
            term = bounded(lower(plain, rows.resolve))
            values = declared.get(label, possible_values(term) if term.values is None else term.values)
            if term.kind not in ("string", "integer", "boolean", "date"):
                raise Unsupported(
                    f"a {term.kind} cannot be a grouping key; group by WIDTH_BUCKET(x, low, high, n), FLOOR(x / 10), "
                    "DATE_TRUNC('month', d) or a CASE"
                )
            self.keys.append(Key(lowering.fresh("k"), label, term.kind, term.expression, values))
            self.nodes.append(self._text(plain))
            count *= len(values) if values is not None else 1
            if count > MOST_GROUPS:
                raise Unsupported(
                    f"the declared keys have more than {MOST_GROUPS:,} combinations; group by fewer or coarser keys"
                )

    def _key_node(self, node: exp.Expression) -> tuple[exp.Expression, str]:
        if is_aggregate(node) or any(is_aggregate(part) for part in node.walk()):
            raise Unsupported("an aggregate cannot be a grouping key")
        if isinstance(node, exp.Column) and not node.table:
            item = next((i for i in self.items if isinstance(i, exp.Alias) and i.alias == node.name), None)
            if item is not None and not any(c.name == node.name for c in self.rows.columns):
                return item.this, node.name
        label = node.name if isinstance(node, exp.Column) else ""
        item = next((i for i in self.items if i.unalias() == node), None)
        return node, label or (item.alias if item is not None and item.alias else node.sql())

    def _text(self, node: exp.Expression) -> str:
        """One text for references to the same key, qualified or not."""

        def spelled(part: exp.Expression) -> exp.Expression:
            if isinstance(part, exp.Column):
                return exp.column(str(self.rows.find(part).term.expression))
            return part

        return node.transform(spelled).sql()

    def over_groups(self, node: exp.Expression, found: dict[str, Asked]) -> exp.Expression:
        """An expression with keys and aggregates replaced by placeholders; nothing of single rows is left."""
        aliased = {item.alias: item.this for item in self.items if isinstance(item, exp.Alias)}
        if isinstance(node, exp.Column) and not node.table and node.name in aliased and not self._is_key(node):
            node = aliased[node.name]
        return self._placed(taken_out(self._with_keys(node), found))

    def _is_key(self, node: exp.Expression) -> bool:
        try:
            return self._text(node) in self.nodes
        except Unsupported:
            return False

    def _with_keys(self, node: exp.Expression) -> exp.Expression:
        if is_aggregate(node):
            return node
        if not isinstance(node, (exp.Literal, exp.Boolean, exp.Null)) and self._is_key(node):
            return exp.column(exp.to_identifier(KEY + str(self.nodes.index(self._text(node))), quoted=True))
        made = node.copy()
        for name, value in list(made.args.items()):
            if isinstance(value, exp.Expression):
                made.set(name, self._with_keys(value))
            elif isinstance(value, list):
                made.set(name, [self._with_keys(v) if isinstance(v, exp.Expression) else v for v in value])
        return made

    def _placed(self, node: exp.Expression) -> exp.Expression:
        for part in node.walk():
            if isinstance(part, exp.Column) and not part.name.startswith((KEY, PLACEHOLDER)):
                self.rows.find(part)
                raise Unsupported(
                    f"the column '{part.name[:60]}' must be in GROUP BY or inside an aggregate: single rows never leave"
                )
            if isinstance(part, (exp.Select, exp.Subquery, exp.Window)):
                raise Unsupported("a sub-query or window inside an expression is not supported")
        return node

    def shown(self, item: exp.Expression, found: dict[str, Asked]) -> Shown:
        """A column of the answer."""
        from sfumato.dp.sql.post import check

        node = item.this if isinstance(item, exp.Alias) else item
        made = self._placed(taken_out(self._with_keys(node), found))
        check(made)
        return Shown(item.alias_or_name or node.sql().lower(), made)

    def ordering(self, entry: exp.Ordered, shown: tuple[Shown, ...], found: dict[str, Asked]) -> Ordering:
        """A term of ORDER BY: an alias, a position, or an expression over groups."""
        from sfumato.dp.sql.post import check

        node = entry.this
        if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
            place = int(node.this)
            if not 1 <= place <= len(shown):
                raise Unsupported("ORDER BY names a position that SELECT does not have")
            made = shown[place - 1].expression
        else:
            named = [column for column in shown if isinstance(node, exp.Column) and not node.table and column.name == node.name]
            made = named[0].expression if named else self.over_groups(node, found)
        check(made)
        return Ordering(made, bool(entry.args.get("desc")), bool(entry.args.get("nulls_first")))


class _Measuring:
    """The measurements behind the statistics, each taken once however many statistics use it."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.found: dict[tuple[object, ...], Measurement] = {}

    def statistic(self, asked: Asked) -> Statistic:
        """How one aggregate is computed."""
        where = None if asked.where is None else lower(asked.where, self.rows.resolve)
        if where is not None and where.kind != "boolean":
            raise Unsupported("FILTER (WHERE …) needs a condition")
        condition = None if where is None else where.expression
        if asked.function == "count_distinct":
            return self._units(asked, condition)
        if asked.argument is None:
            return Statistic("count", count=self._rows(None, condition), whole=True)
        term = lower(asked.argument, self.rows.resolve)
        if asked.function == "count":
            return Statistic("count", count=self._rows(term.expression, condition), whole=True)
        name = {"avg": "AVG", "sum": "SUM", "min": "MIN", "max": "MAX", "quantile": "QUANTILE"}.get(asked.function, "VAR")
        if not term.numeric:
            raise Unsupported(f"{name} needs a number, not a {term.kind}")
        term = bounded(term)
        if term.low is None or term.high is None:
            raise needs_bounds(name, term)
        if asked.function in ("min", "max", "quantile"):
            return self._quantile(asked, term, condition)
        if asked.function == "sum":
            grid = on_grid(term, centred=False)
            total = self._add(Measurement("", "sum", grid.expression, condition, grid.limit, grid.step))
            return Statistic("sum", total=total, step=grid.step, whole=grid.step == 1 and term.kind == "integer")
        return self._moments(asked, term, condition)

    def _moments(self, asked: Asked, term: Term, condition: e.Expression | None) -> Statistic:
        grid = on_grid(term, centred=True)
        total = self._add(Measurement("", "sum", grid.expression, condition, grid.limit, grid.step))
        made = Statistic(
            asked.function,
            count=self._rows(term.expression, condition),
            total=total,
            step=grid.step,
            centre=grid.centre,
            low=term.low,
            high=term.high,
        )
        if asked.function == "avg":
            return made
        around = bounded(arithmetic("-", term, _constant_term(grid.centre, term)))
        squared = arithmetic("*", around, around)
        squares = on_grid(replace(squared, low=max(squared.low or Fraction(0), Fraction(0))), centred=True)
        name = self._add(Measurement("", "sum", squares.expression, condition, squares.limit, squares.step))
        return replace(made, squares=name, square_step=squares.step, square_centre=squares.centre)

    def _units(self, asked: Asked, condition: e.Expression | None) -> Statistic:
        argument = asked.argument
        if isinstance(argument, exp.Column) and self.rows.find(argument).unit:
            return Statistic("count_distinct", count=self._add(Measurement("", "units", None, condition)), whole=True)
        raise Unsupported(
            "COUNT(DISTINCT …) is supported for the unit column only: how many values one unit adds to other columns cannot be "
            "bounded in a count of values. Group by the column and count units instead"
        )

    def _rows(self, expression: e.Expression | None, condition: e.Expression | None) -> str:
        return self._add(Measurement("", "rows", expression, condition))

    def _quantile(self, asked: Asked, term: Term, condition: e.Expression | None) -> Statistic:
        leaf, leaves, low, high = leaf_of(term)
        name = self._add(Measurement("", "tree", leaf, condition, leaves=leaves))
        rank = {"min": Fraction(0), "max": Fraction(1)}.get(asked.function, asked.rank)
        whole = term.kind == "integer" and leaves == high - low
        return Statistic(asked.function, tree=name, low=low, high=high, rank=rank, whole=whole)

    def _add(self, measurement: Measurement) -> str:
        identity = (measurement.kind, measurement.expression, measurement.where, measurement.step, measurement.leaves)
        if identity not in self.found:
            self.found[identity] = replace(measurement, name=f"m{len(self.found)}")
        return self.found[identity].name


def _constant_term(value: Fraction, like: Term) -> Term:
    from sfumato.dp.sql.term import constant

    return constant(int(value)) if like.kind == "integer" and value.denominator == 1 else constant(float(value))


def _referenced(select: exp.Select, order: tuple[str, ...]) -> frozenset[str]:
    """The names of all columns anywhere in the query; with a star, of all columns there are."""
    names = {part.name.lower() for part in select.walk() if isinstance(part, exp.Column)} | {name.lower() for name in order}
    names |= {
        identifier.name.lower()
        for part in select.walk()
        if isinstance(part, exp.Join)
        for identifier in part.args.get("using") or ()
    }
    if any(isinstance(part, exp.Star) and not isinstance(part.parent, exp.Count) for part in select.walk()):
        return _Everything()
    return frozenset(names)


class _Everything(frozenset[str]):
    """Contains every name."""

    def __contains__(self, name: object) -> bool:
        return True


def _count(select: exp.Select, clause: str) -> int | None:
    node = select.args.get(clause)
    if node is None:
        return None
    value = node.expression
    if not isinstance(value, exp.Literal) or value.is_string or not str(value.this).isdigit() or len(str(value.this)) > 9:
        raise Unsupported(f"{clause.upper()} takes a whole number")
    return int(value.this)


def source_plan(question: Question, inputs: Mapping[str, e.Expression]) -> p.Plan:
    """The rows with unit, keys and the given inputs; rows outside the declared keys are left out before bounding."""
    plan = question.rows.plan
    conditions: list[e.Expression] = []
    for key in question.keys:
        if key.values is None:
            continue
        allowed = _allowed(key)
        if None in key.values:
            allowed = e.Or((allowed, e.IsMissing(key.expression)))
        conditions.append(allowed)
    if conditions:
        plan = p.Filter(plan, conditions[0] if len(conditions) == 1 else e.And(tuple(conditions)))
    named = [p.Named(key.name, key.expression) for key in question.keys]
    named += [p.Named(name, expression) for name, expression in inputs.items()]
    if question.rows.unit is not None:
        named.append(p.Named(question.rows.unit, e.Column(question.rows.unit)))
    if not named:
        named = [p.Named("k", e.Literal(1))]
    return p.Project(plan, tuple(named))


def _allowed(key: Key) -> e.Expression:
    """The key has one of its declared values; a run of whole numbers is written as a range."""
    known = tuple(value for value in key.values or () if value is not None)
    numbers = [value for value in known if isinstance(value, int) and not isinstance(value, bool)]
    if key.kind == "integer" and len(numbers) == len(known) > 2 and max(numbers) - min(numbers) + 1 == len(set(numbers)):
        low, high = e.Literal(min(numbers)), e.Literal(max(numbers))
        return e.And((e.Compare(">=", key.expression, low), e.Compare("<=", key.expression, high)))
    return e.OneOfValues(key.expression, known)
