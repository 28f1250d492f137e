"""A query understood: its keys, what must be measured, and how the answer is put together from that.

The outer SELECT is taken apart: keys with their declared values, aggregates as statistics over measurements, and the
expressions around them, which are post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.measuring.measurement import QueryMeasurement, StatisticPlan
from sfumato.dp.sql.measuring.statistic import Statistic
from sfumato.dp.sql.operators.aggregates import PLACEHOLDER, Asked
from sfumato.dp.sql.operators.base import arguments
from sfumato.dp.sql.operators.dates import with_constant_dates
from sfumato.dp.sql.operators.language import check
from sfumato.dp.sql.operators.ordering import Ordering
from sfumato.dp.sql.operators.windows import WindowColumn
from sfumato.dp.sql.parse import sql_text
from sfumato.dp.sql.reading.catalogue import Catalogue, KnownTable, Lowering, QueryRows
from sfumato.dp.sql.reading.grouping import KEY, AnswerColumn, Grouping, Key, placeholder_kind
from sfumato.dp.sql.reading.public_constants import with_public_constants
from sfumato.dp.sql.reading.rows import source_rows
from sfumato.engines.expressions import Value


@dataclass(frozen=True)
class Question:
    """What was asked, ready to be priced and run."""

    text: str
    rows: QueryRows
    keys: tuple[Key, ...]
    measurements: tuple[QueryMeasurement, ...]
    statistics: Mapping[str, Statistic]
    shown: tuple[AnswerColumn, ...]
    having: exp.Expression | None
    order: tuple[Ordering, ...]
    limit: int | None
    offset: int
    tables: Mapping[str, KnownTable] = field(repr=False)
    primary: str = ""
    typed: bool = False  # it reads a private column, or protects a unit, of another type than text
    windows: Mapping[str, WindowColumn] = field(default_factory=dict)

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
    def counts_rows(self) -> bool:
        """True when more than the number of units is measured, so that it matters how many rows of one unit count."""
        return any(measurement.kind != "units" for measurement in self.measurements)

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
    text = sql_text(select)
    if select.find(exp.Subquery, exp.In) is not None:
        select = with_public_constants(select, catalogue)
    if select.find(exp.Interval) is not None:
        select = with_constant_dates(select)
    lowering = Lowering(catalogue, referenced=referenced(select, order))
    if select.args.get("distinct"):
        raise Unsupported("SELECT DISTINCT on the outside is not supported; use GROUP BY with an aggregate such as COUNT(*)")
    rows = source_rows(select, lowering)
    if not rows.private or lowering.primary is None:
        raise Unsupported("the query reads public tables only; there is nothing to protect: compute it directly")
    grouping = Grouping(select, rows, lowering, keys or {})
    aggregates: dict[str, Asked] = {}
    shown = tuple(grouping.shown(item, aggregates) for item in select.expressions)
    shown = _named_apart(shown, [isinstance(item, (exp.Alias, exp.Column)) for item in select.expressions])
    having_node = select.args.get("having")
    having = None if having_node is None else grouping.condition(having_node.this, aggregates)
    sorted_by = select.args["order"].expressions if select.args.get("order") else ()
    ordering = tuple(grouping.ordering(entry, shown, aggregates) for entry in sorted_by)
    if not aggregates:
        raise Unsupported(
            "the query has no aggregate, and single rows are never shown: add COUNT(*), SUM(…), AVG(…), and GROUP BY where needed"
        )
    measuring = StatisticPlan(rows, aggregates.values())
    statistics = {text: measuring.statistic(asked) for text, asked in aggregates.items()}
    return Question(
        text=text,
        rows=rows,
        keys=tuple(grouping.keys),
        measurements=tuple(measuring.measurements.values()),
        statistics=statistics,
        shown=_elements(shown),
        having=having,
        order=ordering,
        limit=_count(select, "limit"),
        offset=_count(select, "offset") or 0,
        tables=dict(lowering.read),
        primary=lowering.primary,
        typed=any(_reads_types(table, lowering.referenced) for table in lowering.read.values()),
        windows=grouping.windows,
    )


def column_kind(question: Question, node: exp.Expression) -> str:
    """What a column of the answer holds, from the query and the schema alone."""
    if isinstance(node, exp.Column):
        if node.name.startswith(KEY):
            return question.keys[int(node.name.removeprefix(KEY))].kind
        return "integer" if _is_whole_column(question, node) else "number"
    return check(node, lambda placeholder: placeholder_kind(question.keys, placeholder)) or "number"


def _is_whole_column(question: Question, node: exp.Column) -> bool:
    """True for a statistic that is a whole number, or a window over such."""
    text = node.name.removeprefix(PLACEHOLDER)
    window = question.windows.get(text)
    if window is None:
        return question.statistics[text].whole
    if window.function.makes == "mean":
        return False
    default = window.default is None or is_whole(question, window.default)
    return default and (window.argument is None or window.function.makes == "count" or is_whole(question, window.argument))


def is_whole(question: Question, node: exp.Expression) -> bool:
    """True for sums and products of whole numbers."""
    if isinstance(node, exp.Column) and node.name.removeprefix(PLACEHOLDER) in question.windows:
        return _is_whole_column(question, node)
    if isinstance(node, exp.Column):
        statistic = question.statistics.get(node.name.removeprefix(PLACEHOLDER))
        return statistic is not None and statistic.steady and statistic.whole
    if isinstance(node, exp.Literal):
        return not node.is_string and float(node.this).is_integer()
    return isinstance(node, (exp.Paren, exp.Add, exp.Sub, exp.Mul)) and all(is_whole(question, part) for part in arguments(node))


def _reads_types(table: KnownTable, referenced: frozenset[str]) -> bool:
    """Whether what is read of a private table is more than texts, so that a stored value may be none of its type."""
    columns = [column for name, column in table.columns.items() if name == table.unit or name.lower() in referenced]
    return table.private and any(column.field.kind != "string" for column in columns)


def _elements(shown: tuple[AnswerColumn, ...]) -> tuple[AnswerColumn, ...]:
    """The columns with those of lists one by one."""
    elements = tuple(element for column in shown for element in column.elements)
    if len({element.name for element in elements}) < len(elements):
        raise Unsupported("a column of the answer is called like an element of a list; name them apart with AS")
    return elements


def _named_apart(shown: tuple[AnswerColumn, ...], chosen: list[bool]) -> tuple[AnswerColumn, ...]:
    """Columns that nobody named are numbered where they are called alike; names that somebody chose must differ."""
    uses: dict[str, int] = {}
    pairs = []
    for column, by_hand in sorted(zip(shown, chosen, strict=True), key=lambda entry: not entry[1]):
        uses[column.name] = uses.get(column.name, 0) + 1
        if uses[column.name] > 1 and by_hand:
            raise Unsupported(f"two columns of the answer are called '{column.name[:60]}'; name them apart with AS")
        number = f" ({uses[column.name]})" if uses[column.name] > 1 else ""
        pairs.append((column, replace(column, name=column.name + number)))
    renamed = {id(before): after for before, after in pairs}
    return tuple(renamed[id(column)] for column in shown)


def referenced(select: exp.Select, order: tuple[str, ...]) -> frozenset[str]:
    """The names of all columns anywhere in a query; with a star, of all columns there are."""
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
    if not isinstance(value, exp.Literal) or value.is_string or not str(value.this).isdecimal() or len(str(value.this)) > 9:
        raise Unsupported(f"{clause.upper()} takes a whole number")
    return int(value.this)
