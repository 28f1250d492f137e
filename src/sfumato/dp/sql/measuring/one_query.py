"""One push-down query per question (and one per quantile's column): the exact integers per group, then the noise.

The engine is given one plan and returns one row of integers per group. Exact numbers stay in this module: what it
returns is noisy.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import SchemaError
from sfumato.core.randomness import Randomness
from sfumato.dp.algorithms.count_tree import CountTree, noisy_tree
from sfumato.dp.sql.measuring.long_expressions import LONG, in_parts
from sfumato.dp.sql.measuring.measurement import BRANCHING, QueryMeasurement
from sfumato.dp.sql.measuring.noise import UNITS, Noise, Price
from sfumato.dp.sql.question import Question
from sfumato.dp.sql.reading.catalogue import scanned_as
from sfumato.dp.sql.reading.grouping import Key
from sfumato.engines import expressions as e
from sfumato.engines import plan as p
from sfumato.engines.expressions import Value
from sfumato.engines.plan import validate
from sfumato.engines.sql.values import written_size
from sfumato.kernels.sampling.noise import discrete_gaussian, discrete_laplace

if TYPE_CHECKING:
    import pyarrow as pa


Group = tuple[Value, ...]

#: The engine's answer to a plan of a question.
Runner: TypeAlias = "Callable[[Question, p.Plan], pa.Table]"
#: In place of a salt, where nothing is drawn by it.
UNSALTED = "unsalted"


@dataclass(frozen=True)
class Measured:
    """Noisy measurements per group: whole numbers in steps, and trees."""

    groups: tuple[Group, ...]
    numbers: Mapping[str, list[int]] = field(repr=False)
    trees: Mapping[str, list[CountTree]] = field(repr=False)


def measure(question: Question, price: Price, source: Randomness, runner: Runner | None = None) -> Measured:
    """Run the question and add the noise; `runner` answers its plans, by default its engine."""
    flat, trees = split(question, price)
    exact: dict[Group, list[int]] = {}
    asked = runner or run
    if flat:
        exact = _grouped(question, asked(question, flat_plan(question, price, flat, source.bytes(16).hex())), len(flat))
    leaves = {m.name: _leaves(question, price, m, source, asked) for m in trees}
    counts = {m.name: _value_counts(question, price, m, source, asked) for m in distinct_values(question)}
    groups = _groups(question, exact)
    numbers: dict[str, list[int]] = {}
    for place, measurement in enumerate(flat):
        truth = [exact[group][place] if group in exact else 0 for group in groups]
        numbers[measurement.name] = _noisy(truth, price.noises[measurement.name], source)
    for name, values in counts.items():
        numbers[name] = _noisy([values.get(group, 0) for group in groups], price.noises[name], source)
    if price.threshold is not None and price.units is not None:
        shown = [place for place, units in enumerate(numbers[price.units]) if units >= price.threshold]
        groups = tuple(groups[place] for place in shown)
        numbers = {name: [values[place] for place in shown] for name, values in numbers.items()}
    grown = {m.name: _trees(m, price.noises[m.name], groups, leaves[m.name], source) for m in trees}
    return Measured(groups, numbers, grown)


def check_plans(question: Question, price: Price) -> None:
    """Refuse, before anything is charged, what no engine could carry out."""
    plans = plans_of(question, price, UNSALTED)
    for plan in plans:
        validate(plan)
    data = question.tables[question.primary].data
    if data is not None and hasattr(data.relation, "rehearse"):
        data.relation.rehearse(plans, _beside(question))


def plans_of(question: Question, price: Price, salt: str) -> list[p.Plan]:
    """All that is asked of the engine, in the order in which `measure` asks it."""
    flat, trees = split(question, price)
    plans: list[p.Plan] = [flat_plan(question, price, flat, salt)] if flat else []
    plans += [tree_plan(question, price, tree, salt) for tree in trees]
    return plans + [values_plan(question, price, each, salt) for each in distinct_values(question)]


def split(question: Question, price: Price) -> tuple[list[QueryMeasurement], list[QueryMeasurement]]:
    """What one grouped query measures, and what needs a tree each."""
    flat = [m for m in question.measurements if m.kind not in ("tree", "values")]
    if price.units == UNITS:
        flat.append(QueryMeasurement(UNITS, "units"))
    return flat, [m for m in question.measurements if m.kind == "tree"]


def distinct_values(question: Question) -> list[QueryMeasurement]:
    """The counts of distinct values, each of which needs a query of its own."""
    return [m for m in question.measurements if m.kind == "values"]


def flat_plan(question: Question, price: Price, measurements: Sequence[QueryMeasurement], salt: str | None) -> p.BoundedGroup:
    """The plan of counts and sums."""
    inputs: dict[str, e.Expression] = {}
    aggregates = []
    for number, measurement in enumerate(measurements):
        conditions = [] if measurement.where is None else [measurement.where]
        if measurement.kind == "rows" and measurement.expression is not None:
            conditions.append(e.Not(e.IsMissing(measurement.expression)))
        where: e.Expression | None = None
        if conditions:
            inputs[f"w{number}"] = conditions[0] if len(conditions) == 1 else e.And(tuple(conditions))
            where = e.Reference(f"w{number}")
        if measurement.kind == "sum" and measurement.expression is not None:
            inputs[f"x{number}"] = measurement.expression
            aggregates.append(p.AggregateColumn(measurement.name, "sum", e.Reference(f"x{number}"), where))
        elif measurement.kind == "units" and question.rows.unit is not None:
            aggregates.append(p.AggregateColumn(measurement.name, "count_distinct", e.Reference(question.rows.unit), where))
        else:
            aggregates.append(p.AggregateColumn(measurement.name, "count", None, where))
    units_alone = all(m.kind == "units" for m in measurements)
    return _bounded(question, price, inputs, (), aggregates, salt, rows=None if units_alone else price.bounds.rows)


def tree_plan(question: Question, price: Price, measurement: QueryMeasurement, salt: str | None) -> p.BoundedGroup:
    """The plan of the leaf counts of a quantile's column."""
    if measurement.expression is None:
        raise SchemaError("a tree needs an expression")
    leaf = measurement.expression
    if measurement.where is not None:
        leaf = e.Choose(((measurement.where, leaf),), e.Literal(None, "integer"))
    bounded = _bounded(
        question, price, {"leaf": leaf}, ("leaf",), [p.AggregateColumn("n", "count")], salt, rows=price.bounds.rows
    )
    kept = p.Filter(bounded.source, e.Not(e.IsMissing(e.Reference("leaf"))))
    return replace(bounded, source=kept)


def values_plan(question: Question, price: Price, measurement: QueryMeasurement, salt: str | None) -> p.Plan:
    """The plan of a count of distinct values: of those that each unit's kept values show.

    Where chance decides, each value of a unit is there once, so that many rows of one value do not crowd out the others; the
    first rows in an order are those of everything else.
    """
    if measurement.expression is None:
        raise SchemaError("a count of values needs an expression")
    value = measurement.expression
    if measurement.where is not None:
        kind = e.kind_of(value, p.columns(question.rows.plan))
        value = e.Choose(((measurement.where, value),), e.Literal(None, kind))
    bounded = _bounded(
        question, price, {"value": value}, ("value",), [p.AggregateColumn("n", "count")], salt, rows=price.bounds.rows
    )
    source: p.Plan = p.Filter(bounded.source, e.Not(e.IsMissing(e.Reference("value"))))
    if bounded.unit is not None and bounded.salt is not None:
        source = p.PerUnitAggregate(source, bounded.unit, (*bounded.keys, "value"), ())
    return p.Group(replace(bounded, source=source), bounded.keys, (p.AggregateColumn(measurement.name, "count"),))


def _value_counts(
    question: Question, price: Price, measurement: QueryMeasurement, source: Randomness, runner: Runner | None = None
) -> dict[Group, int]:
    plan = values_plan(question, price, measurement, source.bytes(16).hex())
    return {group: count for group, (count,) in _grouped(question, (runner or run)(question, plan), 1).items()}


def _bounded(
    question: Question,
    price: Price,
    inputs: dict[str, e.Expression],
    within: tuple[str, ...],
    aggregates: Sequence[p.AggregateColumn],
    salt: str | None,
    *,
    rows: int | None,
) -> p.BoundedGroup:
    bounds = price.bounds
    order = []
    bites = question.rows.unit is not None and not question.rows.single
    for number, name in enumerate(bounds.order if bites else ()):
        inputs[f"o{number}"] = order_column(question, name)
        order.append(p.Order(e.Reference(f"o{number}")))
    return p.BoundedGroup(
        source_plan(question, inputs),
        question.rows.unit,
        tuple(key.name for key in question.keys),
        within,
        rows if bites else None,
        bounds.groups if question.keys and bites else None,
        tuple(aggregates),
        tuple(order),
        salt if bounds.method == "sample" and question.rows.unit is not None else None,
    )


def key_table(key: Key) -> str:
    """What plans call the table of a key's values."""
    return f"keys {key.name}"


def source_plan(question: Question, inputs: Mapping[str, e.Expression]) -> p.Plan:
    """The rows with unit, keys and the given inputs; rows outside the declared keys are left out before bounding."""
    plan = question.rows.plan
    conditions: list[e.Expression] = []
    for key in question.keys:
        if key.values is None or key.coded:
            continue
        allowed = _allowed(key)
        if None in key.values:
            allowed = e.Or((allowed, e.IsMissing(key.expression)))
        conditions.append(allowed)
    if conditions:
        plan = p.Filter(plan, conditions[0] if len(conditions) == 1 else e.And(tuple(conditions)))
    named = []
    for key in question.keys:
        if key.coded:
            plan = _joined_with_values(plan, key)
        named.append(p.Named(key.name, e.Reference(f"{key.name} code") if key.coded else key.expression))
    expressions = {**{each.name: each.expression for each in named}, **inputs}
    if any(written_size(expression) > LONG for expression in expressions.values()):
        plan, expressions = in_parts(plan, expressions)
    named = [p.Named(name, expression) for name, expression in expressions.items()]
    if question.rows.unit is not None:
        named.append(p.Named(question.rows.unit, e.Reference(question.rows.unit)))
    if not named:
        named = [p.Named("k", e.Literal(1))]
    return p.Project(plan, tuple(named))


def _joined_with_values(plan: p.Plan, key: Key) -> p.Plan:
    """The rows whose key is declared, with the number of its value."""
    held = key.expression.name if isinstance(key.expression, e.Reference) else f"{key.name} text"
    if not isinstance(key.expression, e.Reference):
        carried = tuple(p.Named(name, e.Reference(name)) for name in p.columns(plan))
        plan = p.Project(plan, (*carried, p.Named(held, key.expression)))
    value, code = p.Field(f"{key.name} value", "string"), p.Field(f"{key.name} code", "integer")
    return p.Join(plan, p.Scan(key_table(key), (value, code)), ((held, value.name),))


def _allowed(key: Key) -> e.Expression:
    """The key has one of its declared values; a run of whole numbers is written as a range."""
    present = tuple(value for value in key.values or () if value is not None)
    numbers = [value for value in present if isinstance(value, int) and not isinstance(value, bool)]
    if key.kind == "integer" and len(numbers) == len(present) > 2 and max(numbers) - min(numbers) + 1 == len(set(numbers)):
        low, high = e.Literal(min(numbers)), e.Literal(max(numbers))
        return e.And((e.Compare(">=", key.expression, low), e.Compare("<=", key.expression, high)))
    return e.OneOfValues(key.expression, present)


def order_column(question: Question, name: str) -> e.Expression:
    """The column that truncation orders by."""
    from sqlglot import exp

    return question.rows.resolve(exp.column(exp.to_identifier(name, quoted=True))).expression


def run(question: Question, plan: p.Plan) -> pa.Table:
    """The engine's answer to a plan of the question."""
    primary = question.tables[question.primary]
    if primary.data is None:
        raise SchemaError("the private table has no data")
    relation: Any = primary.data.relation
    uploads = {scanned_as(name): table.rows for name, table in question.tables.items() if table.rows is not None}
    uploads |= {key_table(key): _values(key) for key in question.keys if key.coded}
    beside = _beside(question)
    table: pa.Table = relation.run(plan, uploads, beside) if beside else relation.run(plan, uploads)
    return table


def _beside(question: Question) -> dict[str, Any]:
    """The private tables besides the primary one, as plans call them."""
    return {
        scanned_as(name): table.data.relation
        for name, table in question.tables.items()
        if table.data is not None and name != question.primary
    }


def _grouped(question: Question, answer: pa.Table, numbers: int) -> dict[Group, list[int]]:
    keys = len(question.keys)
    columns = [column.to_pylist() for column in answer.columns]
    counts: dict[Group, list[int]] = {}
    named = _named(question)
    for row in zip(*columns, strict=True):
        counts[_group(named, row[:keys])] = [int(value or 0) for value in row[keys : keys + numbers]]
    return counts


def _values(key: Key) -> pa.Table:
    import pyarrow as pa

    # Truncation breaks ties by these numbers, which therefore do not depend on the order of the declaration.
    texts = pa.array(key.ordered_values(), pa.string())
    return pa.table({f"{key.name} value": texts, f"{key.name} code": pa.array(range(len(texts)), pa.int64())})


def _named(question: Question) -> list[list[Value] | None]:
    """The values by their numbers, of each key that an engine answers with numbers."""
    return [key.ordered_values() if key.coded else None for key in question.keys]


def _group(named: Sequence[Sequence[Value] | None], shown: Sequence[Any]) -> Group:
    """The group that an engine's row is about."""
    return tuple(value if values is None else values[value] for values, value in zip(named, shown, strict=True))


def _groups(question: Question, exact: Mapping[Group, object]) -> tuple[Group, ...]:
    """The declared combinations, or those in the data where some key is discovered, in a fixed order."""
    return in_order(exact) if question.discovers else declared_groups(question)


def declared_groups(question: Question) -> tuple[Group, ...]:
    """The combinations of declared keys, in the order of their declarations."""
    return tuple(itertools.product(*(key.values or () for key in question.keys)))


def in_order(groups: Iterable[Group]) -> tuple[Group, ...]:
    """Discovered groups in a fixed order."""
    return tuple(sorted(groups, key=lambda group: [(value is not None, str(value)) for value in group]))


def _noisy(truth: Sequence[int], noise: Noise, source: Randomness) -> list[int]:
    draw = discrete_laplace if noise.law == "laplace" else discrete_gaussian
    drawn = draw(noise.amount, len(truth), source).tolist()
    return [value + extra for value, extra in zip(truth, drawn, strict=True)]


def _leaves(
    question: Question, price: Price, measurement: QueryMeasurement, source: Randomness, runner: Runner | None = None
) -> dict[Group, NDArray[np.int64]]:
    answer = (runner or run)(question, tree_plan(question, price, measurement, source.bytes(16).hex()))
    keys, named = len(question.keys), _named(question)
    counts: dict[Group, NDArray[np.int64]] = {}
    for row in zip(*(column.to_pylist() for column in answer.columns), strict=True):
        group = _group(named, row[:keys])
        if group not in counts:
            counts[group] = np.zeros(measurement.leaves, dtype=np.int64)
        counts[group][row[keys]] += int(row[keys + 1] or 0)
    return counts


def _trees(
    measurement: QueryMeasurement,
    noise: Noise,
    groups: Sequence[Group],
    leaves: Mapping[Group, NDArray[np.int64]],
    source: Randomness,
) -> list[CountTree]:
    empty = np.zeros(measurement.leaves, dtype=np.int64)
    return [noisy_tree(leaves.get(group, empty), BRANCHING, noise.amount, noise.law, source) for group in groups]
