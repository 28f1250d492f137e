"""What a question measures, as a digest: the same measurements are charged once, however a question names and shows them.

The digest covers which rows of which version, whose they are, the keys with their values, what is counted and summed on
which grid, how contributions are bounded, the noise, and the seed. Names, order, LIMIT, HAVING and arithmetic over groups
are post-processing and are not in it. docs/theory/the-same-question.md says why that is enough, and why less is not.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from sfumato.core.certificate import canonical, plain
from sfumato.core.declared import parameters
from sfumato.core.errors import Unsupported
from sfumato.dp.algorithms.count_tree import level_sizes
from sfumato.dp.sql.measuring.measurement import BRANCHING, QueryMeasurement
from sfumato.dp.sql.measuring.noise import Price
from sfumato.dp.sql.measuring.one_query import Group, distinct_values, order_column, split
from sfumato.dp.sql.operators.aggregates import PLACEHOLDER
from sfumato.dp.sql.operators.windows import WindowColumn
from sfumato.dp.sql.parse import sql_text
from sfumato.dp.sql.question import Question
from sfumato.dp.sql.reading.catalogue import KnownTable, scanned_as
from sfumato.dp.sql.reading.grouping import Key
from sfumato.dp.sql.reading.normal_form import NormalRows, form, normal_rows
from sfumato.engines import expressions as e
from sfumato.engines.class_queries import ROWS

if TYPE_CHECKING:
    import pyarrow as pa

#: Trees with more nodes than this in all groups together are not kept; the answer is, as it was shown.
MOST_NODES = 300_000


@dataclass(frozen=True)
class Identity:
    """Which measurements a question needs: of what (`context`), and each of them by its form.

    `keys` are the places of the question's keys in an order that does not depend on the query. Where `as_shown`, trees are
    too large to be kept: what is kept is the answer, for questions that also name and show it alike.
    """

    context: str
    forms: Mapping[str, str] = field(repr=False)
    keys: tuple[int, ...]
    question: str
    as_shown: bool = False

    def groups(self, question: Question) -> tuple[Group, ...]:
        """The declared groups, keys and values in an order that does not depend on the query."""
        return tuple(itertools.product(*(question.keys[place].ordered_values() for place in self.keys)))

    def arranged(self, group: Group) -> Group:
        """A group of the question with its keys in the common order."""
        return tuple(group[place] for place in self.keys)


def identify(question: Question, priced: Price, version: str, seed: int | str | None) -> Identity:
    """What the question measures on which version of the data, with which noise."""
    try:
        rows = normal_rows(question.rows.plan, _tables(question).__getitem__)
        return _identity(question, priced, rows, [version, None if seed is None else str(seed)])
    except RecursionError:
        raise Unsupported("the query is too deeply nested") from None


def _identity(question: Question, priced: Price, rows: NormalRows, opened: list[str | None]) -> Identity:
    keys = [form(rows.of(key.expression), key.kind, _listed(key)) for key in question.keys]
    order = tuple(sorted(range(len(keys)), key=lambda place: keys[place]))
    bites = question.rows.unit is not None and not question.rows.single
    bounding = [priced.bounds.method, *(rows.of(order_column(question, name)) for name in priced.bounds.order)]
    threshold = [priced.threshold, *_noise(priced, priced.units)] if priced.units is not None else None
    unit = None if question.rows.unit is None else rows.of(e.Reference(question.rows.unit))
    groups = priced.groups if bites and keys else None
    about = [unit, priced.loss.unit, priced.loss.neighbours]
    context = form(2, opened, about, rows.rows, sorted(keys), groups, bounding if bites else None, threshold)
    forms = _forms(question, priced, rows, keys, bites=bites)
    measured = form(sorted([held, *_noise(priced, name)] for name, held in forms.items()))
    if len(set(forms.values())) < len(forms):
        raise Unsupported("two measurements of the query are the same")  # the plan of statistics takes each once
    if too_large(question):
        loss = plain({"name": priced.loss.name, **parameters(priced.loss)})
        context = form("as shown", context, keys, list(forms.items()), _shown(question), loss)
        return Identity(context, forms, order, f"{context}:{measured}", as_shown=True)
    return Identity(context, forms, order, f"{context}:{measured}")


def _forms(question: Question, priced: Price, rows: NormalRows, keys: list[str], *, bites: bool) -> dict[str, str]:
    flat, trees = split(question, priced)
    # Rows that tie are kept by what else is read of them: then a measurement is the same only in the same company.
    company: list[Any] = []
    if bites and priced.bounds.method == "truncate":
        company = [keys, [_measurement(each, rows) for each in flat]]
    limit = None if not bites or all(each.kind == "units" for each in flat) else priced.bounds.rows
    forms = {each.name: form(_measurement(each, rows), limit, company) for each in flat}
    alone = [keys] if company else []
    apart = [*trees, *distinct_values(question)]
    return forms | {each.name: form(_measurement(each, rows), priced.bounds.rows if bites else None, alone) for each in apart}


def _measurement(each: QueryMeasurement, rows: NormalRows) -> list[Any]:
    parts = [None if part is None else rows.of(part) for part in (each.expression, each.where)]
    return [each.kind, *parts, each.change, str(each.step), each.leaves]


def _noise(priced: Price, name: str) -> list[str]:
    return [priced.noises[name].law, str(priced.noises[name].amount)]


def _listed(key: Key) -> list[str] | None:
    return None if key.values is None else [repr(value) for value in key.ordered_values()]


def too_large(question: Question) -> bool:
    """True where trees have too many nodes to be kept, as far as the question alone tells."""
    trees = [each for each in question.measurements if each.kind == "tree"]
    nodes = sum(sum(level_sizes(tree.leaves, BRANCHING)) for tree in trees)
    return bool(trees) and (question.groups is None or nodes * question.groups > MOST_NODES)


def _tables(question: Question) -> dict[str, str]:
    """What each scanned table is: a private one by its name and all its columns, a public one by its content."""
    contents = {}
    for name, table in question.tables.items():
        if table.rows is None:
            columns = sorted([column.name, column.field.kind] for column in table.columns.values())
            content = form("private", table.called or name, columns, *_missing_codes(table))
        else:
            content = form("public", table_digest(table.rows))
        contents[ROWS if name == question.primary else scanned_as(name)] = content
    return contents


def _missing_codes(table: KnownTable) -> list[Any]:
    """Declared codes of missing values that were taken out when the table was read; an engine that takes them out itself has
    them in its plan. Nothing where there are none, so that earlier answers stay the same question.
    """
    described = {} if table.data is None else table.data.schema.columns
    read = [name for name, column in table.columns.items() if name in described and not column.field.missing]
    codes = sorted([name, sorted(described[name].missing)] for name in read if described[name].missing)
    return [["missing", codes]] if codes else []


def _shown(question: Question) -> str:
    """The post-processing, aggregates by number so that it does not matter how the query spells them."""
    spelled = _placeholders(question)
    shown = [[column.name, spelled(column.expression)] for column in question.shown]
    order = [[spelled(each.expression), each.descending, each.nulls_first] for each in question.order]
    having = None if question.having is None else spelled(question.having)
    statistics = [repr(statistic) for statistic in question.statistics.values()]
    windows = [_window(each, spelled) for each in question.windows.values()]
    return form(statistics, shown, having, order, question.limit, question.offset, *([windows] if windows else []))


def _window(window: WindowColumn, spelled: Callable[[exp.Expression], str]) -> list[Any]:
    parts = [None if part is None else spelled(part) for part in (window.argument, window.default)]
    order = [[spelled(each.expression), each.descending, each.nulls_first] for each in window.order]
    return [window.function.name.lower(), *parts, [spelled(part) for part in window.partition], order, window.rows, window.offset]


def _placeholders(question: Question) -> Callable[[exp.Expression], str]:
    """Expressions over groups with aggregates by number, so that it does not matter how the query spelled them."""
    numbers = {PLACEHOLDER + text: f"#{number}" for number, text in enumerate(question.statistics)}

    def renamed(node: exp.Expression) -> exp.Expression:
        return exp.column(numbers[node.name], quoted=True) if isinstance(node, exp.Column) and node.name in numbers else node

    return lambda expression: sql_text(expression.transform(renamed))


def digest(value: object) -> str:
    """The digest of plain data."""
    return hashlib.sha256(canonical(plain(value))).hexdigest()


def table_digest(table: pa.Table) -> str:
    """The digest of a table's values; what is no number counts as missing, as it is when written."""
    hashed = hashlib.sha256()
    for name in table.column_names:
        cells = (None if isinstance(cell, float) and math.isnan(cell) else cell for cell in table.column(name).to_pylist())
        hashed.update(repr((name, list(cells))).encode())
    return hashed.hexdigest()


def result_digest(result: object) -> str:
    """The digest of an artefact."""
    if hasattr(result, "column_names"):
        return table_digest(result)
    return digest(result)
