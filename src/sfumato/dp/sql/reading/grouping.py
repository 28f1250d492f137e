"""The keys of a query and the expressions over its groups, with placeholders for what will be known after the noise."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.core.texts import with_article
from sfumato.dp.sql.operators.aggregates import PLACEHOLDER, THERE_ARE, Asked, QuantileList, is_aggregate, taken_out
from sfumato.dp.sql.operators.language import check, is_unknown, lower
from sfumato.dp.sql.operators.ordering import Ordering
from sfumato.dp.sql.operators.term import MOST_GROUPS, bounded, possible_values
from sfumato.dp.sql.operators.windows import WINDOW, WindowColumn, read_window
from sfumato.dp.sql.parse import function_name, group_nodes, sql_text, without_alias
from sfumato.dp.sql.reading.catalogue import Lowering, QueryRows, values_of_texts
from sfumato.dp.sql.reading.excluded_keys import Exclusions
from sfumato.engines import expressions as e
from sfumato.engines.expressions import Kind, Value
from sfumato.engines.plan import Filter

#: What the placeholder column of a key begins with in post-processing.
KEY = "\x00key "
_LIST = (
    "several quantiles in one call are a list, which stands in SELECT by itself; for expressions, HAVING and ORDER BY write one "
    "rank each: QUANTILE(x, 0.9) - QUANTILE(x, 0.1) costs no more"
)
#: From so many declared texts on, a key travels as a number, found by a join instead of a list.
CODED = 64


@dataclass(frozen=True)
class Key:
    """A grouping key: the plan's column, its kind, and its declared values; None where they must be discovered.

    Each value stands for one group that gets noise once: values that are equal are one.
    """

    name: str
    label: str
    kind: Kind
    expression: e.Expression
    values: tuple[Value, ...] | None

    def __post_init__(self) -> None:
        if self.values is not None:
            object.__setattr__(self, "values", tuple(dict.fromkeys(self.values)))

    @property
    def coded(self) -> bool:
        """True when the engine is given the values as a table and answers with their numbers."""
        return self.kind == "string" and self.values is not None and len(self.values) > CODED

    def ordered_values(self) -> list[Value]:
        """The declared values in an order of their own, a missing one first."""
        present: list[Any] = [value for value in self.values or () if value is not None]
        return [*(value for value in self.values or () if value is None), *sorted(present)]


@dataclass(frozen=True)
class AnswerColumn:
    """A column of the answer: its name and the expression over placeholders of keys and aggregates."""

    name: str
    expression: exp.Expression
    listed: str | None = None  # the list that it is an element of

    @property
    def elements(self) -> tuple[AnswerColumn, ...]:
        """Itself, or a column for each element where it is a list of quantiles."""
        if not isinstance(self.expression, QuantileList):
            return (self,)
        parts = enumerate(self.expression.expressions, 1)
        return tuple(AnswerColumn(f"{self.name}[{place}]", part, self.name) for place, part in parts)


def placeholder_kind(keys: Sequence[Key], placeholder: str) -> str:
    """What stands behind a placeholder in an expression over groups, where all numbers are alike."""
    if not placeholder.startswith(KEY):
        return "number"
    kind = keys[int(placeholder.removeprefix(KEY))].kind
    return "number" if kind == "integer" else kind


#: What a declared value of each kind of key is.
_VALUES: Mapping[Kind, type] = {"string": str, "integer": int, "boolean": bool, "date": datetime.date}


def _fitting(label: str, values: tuple[Value, ...], kind: Kind) -> tuple[Value, ...]:
    """Declared values of a key, or a refusal where they cannot be values of it. Texts are read as those of a schema are."""
    if kind != "string" and all(isinstance(value, str) for value in values):
        values = values_of_texts([str(value) for value in values], kind) or values
    for value in values:
        right = isinstance(value, _VALUES.get(kind, object)) and not isinstance(value, datetime.datetime)
        if isinstance(value, bool) and kind != "boolean":
            right = False
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            right = False
        if isinstance(value, str) and ("\x00" in value or not value.isprintable() and _broken(value)):
            right = False
        if not right and value is not None:
            raise Unsupported(f"keys: '{label[:60]}' holds {with_article(kind)}, and one of the values given for it is not")
    return values


def _broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


class Grouping:
    """The keys of the outer query, and expressions over groups."""

    def __init__(
        self, select: exp.Select, rows: QueryRows, lowering: Lowering, declared: Mapping[str, tuple[Value, ...]]
    ) -> None:
        self.rows = rows
        self.items = list(select.expressions)
        if any(isinstance(item, exp.Star) for item in self.items):
            raise Unsupported("SELECT * would show single rows, which never leave; ask for aggregates")
        self.keys: list[Key] = []
        self.nodes: list[str] = []
        #: The windows of the query, by the texts of their placeholders.
        self.windows: dict[str, WindowColumn] = {}
        count, exclusions = 1, Exclusions(rows) if isinstance(rows.plan, Filter) else None
        for node in group_nodes(select):
            plain, label = self._key_node(without_alias(node))
            term = bounded(lower(plain, rows.resolve if exclusions is None else exclusions.resolve))
            if exclusions is not None:
                term = exclusions.narrowed(term)
            if self._text(plain) in self.nodes:
                continue
            values = possible_values(term)
            if label in declared:
                values = _fitting(label, declared[label], term.kind)
            elif values == ():
                raise Unsupported(f"no declared value of the grouping key '{label[:60]}' meets WHERE: there is no group to show")
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
        item = next((i for i in self.items if without_alias(i) == node), None)
        return node, label or (item.alias if item is not None and item.alias else sql_text(node))

    def _text(self, node: exp.Expression) -> str:
        """One text for references to the same key, qualified or not."""

        def spelled(part: exp.Expression) -> exp.Expression:
            if isinstance(part, exp.Column):
                return exp.column(str(self.rows.find(part).term.expression))
            return part

        return sql_text(node.transform(spelled))

    def over_groups(self, node: exp.Expression, aggregates: dict[str, Asked]) -> exp.Expression:
        """An expression with keys and aggregates replaced by placeholders; nothing of single rows is left."""
        aliased = {item.alias: item.this for item in self.items if isinstance(item, exp.Alias)}
        columns = {column.name.lower() for column in self.rows.columns}

        def written_out(part: exp.Expression) -> exp.Expression:
            # A column of the rows comes before an alias of the same name.
            if isinstance(part, exp.Column) and not part.table and part.name in aliased and part.name.lower() not in columns:
                return exp.Paren(this=aliased[part.name].copy())
            return part

        return self._over_groups(node.transform(written_out), aggregates)

    def _over_groups(self, node: exp.Expression, aggregates: dict[str, Asked]) -> exp.Expression:
        return self._placed(taken_out(self._with_keys(self._windowed(node, aggregates)), aggregates))

    def _windowed(self, node: exp.Expression, aggregates: dict[str, Asked]) -> exp.Expression:
        """The expression with placeholders for its windows."""

        if node.find(exp.Window) is None:
            return node
        outside = [part for part in node.walk() if is_aggregate(part) and part.find_ancestor(exp.Window) is None]
        if any(part.find(exp.Window) is not None for part in outside):
            raise Unsupported("a window is computed over the groups of the outer query, not inside an aggregate")

        def placed(part: exp.Expression) -> exp.Expression:
            if part.find(exp.Window) is not None:
                raise Unsupported("a window inside a window is not supported; compute one of them from the answer")
            expression = self.over_groups(part, aggregates)
            check(expression, self._kind)
            return expression

        def ordered(entry: exp.Ordered) -> Ordering:
            return Ordering(placed(entry.this), bool(entry.args.get("desc")), bool(entry.args.get("nulls_first")))

        def replaced(part: exp.Expression) -> exp.Expression:
            if not isinstance(part, exp.Window):
                return part
            window = read_window(part, placed, ordered)
            if window.argument is not None and check(window.argument, self._kind) not in ("number", None):
                raise Unsupported("a window is computed over numbers: aggregates, and expressions of them")
            texts = {held.text: text for text, held in self.windows.items()}
            text = texts.get(window.text, f"{WINDOW}{len(self.windows)}")
            self.windows[text] = window
            return exp.column(exp.to_identifier(PLACEHOLDER + text, quoted=True))

        return node.transform(replaced)

    def condition(self, node: exp.Expression, aggregates: dict[str, Asked]) -> exp.Expression:
        """The condition of HAVING."""
        if node.find(exp.Window) is not None:
            raise Unsupported("HAVING is decided before windows are computed; choose from the answer instead")
        condition = self.over_groups(node, aggregates)
        if check(condition, self._kind) not in ("boolean", None):
            raise Unsupported("HAVING needs a condition")
        return condition

    def _kind(self, placeholder: str) -> str:
        return placeholder_kind(self.keys, placeholder)

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
        copied = node.copy()
        for name, value in list(copied.args.items()):
            if isinstance(value, exp.Expression):
                copied.set(name, self._with_keys(value))
            elif isinstance(value, list):
                copied.set(name, [self._with_keys(v) if isinstance(v, exp.Expression) else v for v in value])
        return copied

    def _placed(self, node: exp.Expression) -> exp.Expression:
        for part in node.walk():
            if isinstance(part, QuantileList) and part is not node:
                raise Unsupported(_LIST)
            if isinstance(part, exp.Column) and not part.name.startswith((KEY, PLACEHOLDER)):
                self.rows.find(part)
                if (call := part.find_ancestor(exp.Anonymous)) is not None and is_unknown(call):
                    raise Unsupported(f"{function_name(call)} is not supported; as aggregates {THERE_ARE}")
                raise Unsupported(
                    f"the column '{part.name[:60]}' must be in GROUP BY or inside an aggregate: single rows never leave"
                )
            if isinstance(part, (exp.Select, exp.Subquery)):
                raise Unsupported("a sub-query inside an expression is not supported, unless it reads public tables alone")
        return node

    def shown(self, item: exp.Expression, aggregates: dict[str, Asked]) -> AnswerColumn:
        """A column of the answer."""
        node = item.this if isinstance(item, exp.Alias) else item
        expression = self._over_groups(node, aggregates)
        for part in expression.expressions if isinstance(expression, QuantileList) else (expression,):
            check(part, self._kind)
        named = item.alias_or_name if isinstance(item, (exp.Alias, exp.Column)) else sql_text(node).lower()
        return AnswerColumn(named, expression)

    def ordering(self, entry: exp.Ordered, shown: tuple[AnswerColumn, ...], aggregates: dict[str, Asked]) -> Ordering:
        """A term of ORDER BY: an alias, a position, or an expression over groups."""
        node = entry.this
        if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdecimal():
            place = int(node.this)
            if not 1 <= place <= len(shown):
                raise Unsupported("ORDER BY names a position that SELECT does not have")
            expression = shown[place - 1].expression
        else:
            named = [column for column in shown if isinstance(node, exp.Column) and not node.table and column.name == node.name]
            expression = named[0].expression if named else self.over_groups(node, aggregates)
        if isinstance(expression, QuantileList):
            raise Unsupported(_LIST)
        check(expression, self._kind)
        return Ordering(expression, bool(entry.args.get("desc")), bool(entry.args.get("nulls_first")))
