"""Plans to SQL: one rule per node, dialects distinguished where they differ.

Only the scans at the leaves spell a real column name; above them every column is called `c0`, `c1`, … and
the result is renamed in Arrow. So names with quotes, NUL, other cases or beyond an engine's length limit
never reach its parser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal as OneOf
from typing import TypeAlias

from sqlglot import exp

from sfumato.data.texts.number_codes import float_codes, plain_codes, whole_codes
from sfumato.engines import plan as p
from sfumato.engines.expressions import Dialect, Expression, Kind, RowFunction, kind_of, magnitude
from sfumato.engines.plan import validate
from sfumato.engines.postgres.conversions import from_decimal, is_decimal
from sfumato.engines.sql.bounding import expanded, together
from sfumato.engines.sql.from_text import from_text, required_from_text
from sfumato.engines.sql.single_numbers import shortest_number
from sfumato.engines.sql.values import ZERO, as_kind, compile_expression, identifier, literal, sql_type, text_literal, whole_sum

__all__ = ["CompiledQuery", "Dialect", "PhysicalTable", "compile_plan"]

Compiled: TypeAlias = tuple[exp.Select, dict[str, Kind]]


@dataclass(frozen=True)
class PhysicalTable:
    """Where a scanned table is: its quoted path or, with `function`, a table function over one file or several.

    `columns` translates names where the engine calls a column differently. `clean` says that the values are
    already in their one form (uploaded by us), so that no conversion is needed. `rows` are the rows themselves, as a query.
    `texts` rewrites the texts of columns into the forms that the engine casts, without those that are codes for no value;
    `codes` are what their values are then compared with.
    """

    path: tuple[str, ...]
    function: OneOf["read_parquet", "read_csv"] | None = None
    options: tuple[tuple[str, str | bool | int | tuple[str, ...]], ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    clean: bool = False
    rows: exp.Subquery | None = field(default=None, repr=False)
    texts: Mapping[str, Callable[[exp.Expression], exp.Expression]] = field(default_factory=dict, repr=False)
    codes: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def expression(self) -> exp.Expression:
        """The table as it stands after FROM."""
        if self.rows is not None:
            return self.rows.copy()
        if self.function is None:
            *outer, name = (identifier(part) for part in self.path)
            parts = dict(zip(("db", "catalog"), reversed(outer), strict=False))
            return exp.Table(this=name, **parts)
        named = [exp.EQ(this=exp.column(name), expression=_option(value)) for name, value in self.options]
        files = [text_literal(file) for file in self.path]
        read = files[0] if len(files) == 1 else exp.Array(expressions=files)
        call = exp.Anonymous(this=self.function, expressions=[read, *named])
        return exp.Table(this=call)


def _option(value: str | bool | int | tuple[str, ...]) -> exp.Expression:
    """What a table function is told; names are columns of text."""
    if not isinstance(value, tuple):
        return exp.convert(value)
    texts = [exp.PropertyEQ(this=identifier(name), expression=text_literal("VARCHAR")) for name in value]
    return exp.Struct(expressions=texts)


@dataclass(frozen=True)
class CompiledQuery:
    """A query in one dialect; its column i is the plan's column `names[i]`."""

    expression: exp.Select = field(repr=False)
    dialect: Dialect
    columns: Mapping[str, Kind]

    @cached_property
    def sql(self) -> str:
        """The text to send; writing it rearranges `expression`, so that one is not read afterwards."""
        return self.expression.sql(dialect=self.dialect, comments=False, copy=False)

    def physical_names(self) -> tuple[str, ...]:
        """What the query itself calls its columns, in order."""
        return tuple(select.alias_or_name for select in self.expression.selects)


def compile_plan(plan: p.Plan, dialect: Dialect, tables: Mapping[str, PhysicalTable]) -> CompiledQuery:
    """Validate a plan and write it in a dialect, `tables` saying where each scanned table is."""
    validate(plan)
    expression, kinds = _Compiler(dialect, tables).compile(plan)
    return CompiledQuery(expression, dialect, kinds)


class _Compiler:
    def __init__(self, dialect: Dialect, tables: Mapping[str, PhysicalTable]) -> None:
        self.dialect: Dialect = dialect
        self.tables = tables
        self.names: dict[str, str] = {}
        self.aliases = 0

    def compile(self, plan: p.Plan) -> Compiled:
        match plan:
            case p.Scan():
                return self.scan(plan)
            case p.Filter(source, condition):
                select, kinds, alias = self.over(source)
                return select.where(self.value(condition, kinds, alias), copy=False), kinds
            case p.Project(source, named):
                select, kinds, alias = self.over(source)
                shown = [self.named(entry.name, self.value(entry.expression, kinds, alias)) for entry in named]
                select = select.select(*shown, append=False, copy=False)
                once = any(isinstance(entry.expression, RowFunction) and entry.expression.once for entry in named)
                # PostgreSQL would write the column out wherever it is used, and compute it as often; an offset keeps it apart.
                return (select.offset(0, copy=False) if once and self.dialect == "postgres" else select), p.columns(plan)
            case p.Group():
                return self.group(plan)
            case p.PerUnitAggregate():
                return self.group(p.as_group(plan), kept_together=None if together(plan.source, plan.unit) else plan.unit)
            case p.BoundedGroup(bounds_nothing=True):
                return self.group(p.as_group(plan))
            case p.Numbering(source, name, partition, order, ties):
                select, kinds, alias = self.over(source)
                number = self.numbered(partition, order, kinds, alias, ties=ties)
                return select.select(self.named(name, number), copy=False), p.columns(plan)
            case p.Least(source, name, partition, held):
                select, _, alias = self.over(source)
                within = [self.column(each, alias) for each in partition]
                least = exp.Window(this=exp.Min(this=self.column(held, alias)), partition_by=within)
                return select.select(self.named(name, least), copy=False), p.columns(plan)
            case p.Bound():
                return self.bound(plan)
            case p.Join():
                return self.join(plan)
            case p.BoundedGroup():
                # Spark groups by more memory and time than it sorts by.
                return self.compile(expanded(plan, by_rows=self.dialect == "spark"))

    def over(self, source: p.Plan) -> tuple[exp.Select, dict[str, Kind], str]:
        """A selection of all columns of a source, to be narrowed or extended."""
        below, kinds = self.compile(source)
        alias = self.alias()
        return _selected(self.carried(kinds, alias), below, alias), kinds, alias

    def carried(self, names: Iterable[str], alias: str) -> list[exp.Expression]:
        """Columns as they are. Under a new name Spark takes a column for another one, and shuffles the rows by it again."""
        return [self.column(name, alias) for name in names]

    def alias(self) -> str:
        self.aliases += 1
        return f"t{self.aliases}"

    def physical(self, name: str) -> str:
        return self.names.setdefault(name, f"c{len(self.names)}")

    def column(self, name: str, alias: str) -> exp.Column:
        return exp.column(self.physical(name), table=alias)

    def named(self, name: str, value: exp.Expression) -> exp.Expression:
        return exp.Alias(this=value, alias=exp.to_identifier(self.physical(name)))

    def value(self, expression: Expression, kinds: Mapping[str, Kind], alias: str) -> exp.Expression:
        return compile_expression(expression, kinds, lambda name: self.column(name, alias), self.dialect)

    def scan(self, plan: p.Scan) -> Compiled:
        table = self.tables[plan.table]
        alias = self.alias()
        shown = []
        for entry in plan.columns:
            raw: exp.Expression = exp.column(identifier(table.columns.get(entry.name, entry.name)), table=alias)
            if entry.name in table.texts:
                raw = table.texts[entry.name](raw)
                entry = replace(entry, missing=table.codes.get(entry.name, ()))
            value = raw if table.clean else stored_value(raw, entry, self.dialect)
            shown.append(self.named(entry.name, value))
        source = exp.alias_(table.expression(), alias, table=True)
        return exp.select(*shown, copy=False).from_(source, copy=False), p.columns(plan)

    def group(self, plan: p.Group, kept_together: str | None = None) -> Compiled:
        below, kinds = self.compile(plan.source)
        if self.dialect == "spark" and kept_together is not None and len(plan.keys) > 1:
            # What is bounded per unit afterwards needs all rows of a unit in one place: one shuffle by the unit serves both.
            place = exp.Anonymous(this="REPARTITION", expressions=[exp.column(self.physical(kept_together))])
            below.set("hint", exp.Hint(expressions=[place]))
        alias = self.alias()
        keys = [self.column(key, alias) for key in plan.keys]
        shown = self.carried(plan.keys, alias)
        shown += [self.named(a.name, self.aggregate(a, kinds, alias)) for a in plan.aggregates]
        select = _selected(shown, below, alias)
        if plan.sets:
            sets = [exp.Tuple(expressions=[self.column(key, alias) for key in each]) for each in plan.sets]
            select.set("group", exp.Group(grouping_sets=[exp.GroupingSets(expressions=sets)]))
            return select, p.columns(plan)
        return (select.group_by(*keys, copy=False) if keys else select), p.columns(plan)

    def aggregate(self, aggregate: p.AggregateColumn, kinds: Mapping[str, Kind], alias: str) -> exp.Expression:
        result = p.aggregate_kind(aggregate, kinds)
        if aggregate.expression is None:
            value: exp.Expression = exp.Literal.number(1)
        else:
            value = self.value(aggregate.expression, kinds, alias)
        summed = aggregate.expression if aggregate.function == "sum" else None
        in_parts = self.dialect == "spark" and summed is not None and kind_of(summed, kinds) == "integer"
        if summed is not None and not in_parts:
            value = as_kind(value, result, self.dialect)
        if aggregate.where is not None:
            value = exp.Case(ifs=[exp.If(this=self.value(aggregate.where, kinds, alias), true=value)])
        match aggregate.function:
            case "count":
                whole = aggregate.expression is None and aggregate.where is None
                return exp.Count(this=exp.Star() if whole else value)
            case "count_distinct":
                return exp.Count(this=exp.Distinct(expressions=[value]))
            case "sum" if summed is not None and in_parts:
                return whole_sum(value, magnitude(summed, kinds), self.dialect)
            case "sum":
                return as_kind(exp.Sum(this=value), result, self.dialect)
            case "min":
                return exp.Min(this=value)
            case "max":
                return exp.Max(this=value)

    def numbered(
        self, partition: Sequence[str], order: Sequence[p.Order], kinds: Mapping[str, Kind], alias: str, *, ties: bool = False
    ) -> exp.Window:
        terms = [
            exp.Ordered(this=self.value(entry.expression, kinds, alias), desc=entry.descending, nulls_first=True)
            for entry in order
        ]
        # A window function must have an order on some engines, so that an empty one becomes a constant.
        constant = [exp.Ordered(this=exp.Subquery(this=exp.select("1")), nulls_first=True)]
        return exp.Window(
            this=exp.Anonymous(this="DENSE_RANK") if ties else exp.RowNumber(),
            partition_by=[self.column(name, alias) for name in partition],
            order=exp.Order(expressions=terms or constant),
        )

    def bound(self, plan: p.Bound) -> Compiled:
        numbered, kinds, alias = self.over(plan.source)
        number = self.numbered(plan.partition, plan.order, kinds, alias)
        place = f"n{self.aliases}"
        below = numbered.select(exp.alias_(number, place, copy=False), copy=False)
        alias = self.alias()
        columns = self.carried(kinds, alias)
        within = exp.LTE(this=exp.column(place, table=alias), expression=exp.Literal.number(plan.limit))
        return _selected(columns, below, alias).where(within, copy=False), kinds

    def join(self, plan: p.Join) -> Compiled:
        (left, left_kinds), (right, right_kinds) = self.compile(plan.left), self.compile(plan.right)
        one, other = self.alias(), self.alias()
        matched = {name for _, name in plan.on}
        shown = self.carried(left_kinds, one) + self.carried((n for n in right_kinds if n not in matched), other)
        pairs = [self.matched(self.column(a, one), self.column(b, other), left_kinds[a], plan) for a, b in plan.on]
        beside = right.subquery(other, copy=False)
        joined = _selected(shown, left, one).join(beside, on=exp.and_(*pairs, copy=False), join_type=plan.kind, copy=False)
        return joined, p.columns(plan)

    def matched(self, left: exp.Column, right: exp.Column, kind: Kind, plan: p.Join) -> exp.Expression:
        if plan.nulls == "drop":
            return exp.EQ(this=left, expression=right)
        return null_safe_equal(left, right, kind, self.dialect)


def _selected(columns: Sequence[exp.Expression], below: exp.Select, alias: str) -> exp.Select:
    # The builders copy what they are given unless told otherwise; a deep query would be copied once per level.
    return exp.select(*columns, copy=False).from_(below.subquery(alias, copy=False), copy=False)


def null_safe_equal(left: exp.Column, right: exp.Column, kind: Kind, dialect: Dialect) -> exp.Expression:
    """Equality under which missing equals missing.

    PostgreSQL cannot hash IS NOT DISTINCT FROM and would compare every pair of rows, so there it is two
    plain equalities.
    """
    if dialect != "postgres":
        return exp.NullSafeEQ(this=left, expression=right)
    zero = as_kind(text_literal(ZERO[kind]), kind, dialect)
    values = exp.EQ(
        this=exp.Coalesce(this=left, expressions=[zero]),
        expression=exp.Coalesce(this=right.copy(), expressions=[zero.copy()]),
    )
    missing = [exp.Paren(this=exp.Is(this=side.copy(), expression=exp.Null())) for side in (left, right)]
    return exp.and_(values, exp.EQ(this=missing[0], expression=missing[1]))


_NUMBERS = frozenset({"integer", "number", "wide"})


def stored_value(raw: exp.Expression, entry: p.Field, dialect: Dialect) -> exp.Expression:
    """A stored column in the one form that all engines agree on: no NaN, no declared missing codes, one
    type per kind."""
    value = raw
    if entry.by_text and entry.kind == "number":
        by_way_of_text = exp.cast(exp.cast(raw, sql_type("string", dialect)), sql_type("number", dialect))
        value = raw = by_way_of_text if entry.exact is not None else shortest_number(raw, dialect)
    if entry.missing:
        numeric = (entry.stored or entry.kind) in _NUMBERS
        codes = dict.fromkeys((*entry.missing, *(plain_codes(entry.missing) if numeric else ())))
        text = exp.cast(raw.copy(), sql_type("string", dialect), copy=False)
        value = _without(raw, text, [text_literal(code) for code in codes])
    if entry.stored == "number" and entry.kind == "string":
        exact = _exact_text(value, dialect)
        return as_kind(_without(exact, exact, [text_literal(code) for code in plain_codes(entry.missing)]), "string", dialect)
    if entry.stored == "string":
        value = (from_text if entry.lenient else required_from_text)(value, entry.kind, dialect)
    elif dialect == "postgres" and is_decimal(entry):
        value = from_decimal(value, entry.kind)
    else:
        value = _readable(value, entry, dialect) if entry.lenient else as_kind(value, entry.kind, dialect)
    if entry.kind in _NUMBERS:
        # by value too, since engines write one number in several ways: -9 is also '-9.0' and '-9.00'
        numbers = float_codes(entry.missing) if entry.kind == "number" else whole_codes(entry.missing)
        value = _without(value, value, [literal(number, entry.kind, dialect) for number in numbers])
    return without_nan(value, dialect) if entry.kind == "number" else value


def _without(value: exp.Expression, compared: exp.Expression, codes: list[exp.Expression]) -> exp.Expression:
    """A value, or missing where what it is compared by is a code."""
    if not codes:
        return value
    listed = exp.In(this=compared.copy(), expressions=codes)
    return exp.Case(ifs=[exp.If(this=listed, true=exp.Null())], default=value.copy())


def _exact_text(value: exp.Expression, dialect: Dialect) -> exp.Expression:
    """A decimal as the text of its value, without zeros at its end: equal decimals have one text."""
    text: exp.Expression = exp.cast(value, sql_type("string", dialect))
    if dialect == "postgres":
        text = exp.Nullif(this=text, expression=text_literal("NaN"))
    if dialect == "duckdb":
        # A decimal that is all fraction is written without the zero before its point.
        text = exp.Anonymous(this="REGEXP_REPLACE", expressions=[text, text_literal("^(-?)[.]"), text_literal(r"\10.")])
    short = text.copy()
    for digit in ("0", "."):
        short = exp.Trim(this=short, expression=text_literal(digit), position="TRAILING")
    fraction = exp.Like(this=text.copy(), expression=text_literal("%.%"))
    exponent = exp.Like(this=text.copy(), expression=text_literal("%E%"))  # Spark writes tiny decimals with one
    return exp.Case(ifs=[exp.If(this=exp.And(this=fraction, expression=exp.Not(this=exponent)), true=short)], default=text)


#: The first and the last value of the years 1 to 9999: a day without a clock is its first moment, so that the last has one.
_CALENDAR: Mapping[Kind, tuple[str, str]] = {
    "date": ("0001-01-01", "9999-12-31"),
    "datetime": ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
    "instant": ("0001-01-01 00:00:00+00:00", "9999-12-31 23:59:59.999999+00:00"),
}


def _readable(value: exp.Expression, entry: p.Field, dialect: Dialect) -> exp.Expression:
    """A stored value where it can be read as its kind, else missing; dates of four-digit years alone."""
    if dialect != "postgres":
        value = exp.TryCast(this=value, to=sql_type(entry.kind, dialect), safe=True)
    read = as_kind(value, entry.kind, dialect)
    if entry.kind not in _CALENDAR:
        return read
    ends = [as_kind(text_literal(end), entry.kind, dialect) for end in _CALENDAR[entry.kind]]
    inside = exp.And(this=exp.GTE(this=read.copy(), expression=ends[0]), expression=exp.LTE(this=read.copy(), expression=ends[1]))
    return exp.Case(ifs=[exp.If(this=inside, true=read)])


def without_nan(value: exp.Expression, dialect: Dialect) -> exp.Expression:
    """A number, or missing where it is none.

    DuckDB folds `x = NaN` away where the statistics of a Parquet file, which leave NaN out, seem to exclude
    it.
    """
    if dialect == "postgres":
        nan = exp.cast(text_literal("NaN"), sql_type("number", dialect))
        return exp.Nullif(this=value, expression=nan)
    none = exp.If(this=exp.Anonymous(this="isnan", expressions=[value]), true=exp.Null())
    return exp.Case(ifs=[none], default=value.copy())
