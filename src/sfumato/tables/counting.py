"""A cube of microdata, counted by the engine that holds the rows.

One plan: every row is joined with all codes that cover its values, contributions of a holding to a cell are added up, numbered by
size, and grouped by cell: value, contributors, the largest contributions. Values are whole numbers of the last digit that is
shown, so that every engine gives the same sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError, MissingColumn, Unsupported, all_at_once, as_name
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.microdata import Microdata
from sfumato.engines.expressions import Arithmetic, Compare, Expression, Literal, Reference
from sfumato.engines.functions.numbers import FixedPoint
from sfumato.engines.plan import (
    AggregateColumn,
    Field,
    Group,
    Join,
    Named,
    Numbering,
    Order,
    PerUnitAggregate,
    Plan,
    Project,
    Scan,
    column,
)
from sfumato.engines.plannable import Plannable, plannable
from sfumato.tables.contributions import Contributions
from sfumato.tables.cube import Shape, TableCube
from sfumato.tables.dimension import TOTAL, Dimension
from sfumato.tables.grid import TableGrid

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = "rows"
#: Contributions stay exact as floats: up to 2^52 units of the last digit.
_LARGEST = 2.0**52
_VALUE, _WEIGHTED, _UNIT, _PLACE = "\x00value", "\x00weighted", "\x00unit", "\x00place"


def count_cube(
    people: Microdata,
    by: Sequence[str],
    *,
    value: str | None = None,
    holding: str | None = None,
    weight: str | None = None,
    decimals: int | None = None,
    largest: int = 4,
    dimensions: Mapping[str, Dimension | Hierarchy | Mapping[str, str]] | None = None,
    tables: Sequence[Sequence[str]] = (),
    margins: bool = True,
) -> TableCube:
    """The cube of a table `by` some columns: its records counted, or `value` added up.

    holding: the column that says whose contributions count as one (by default the unit of the schema). weight: the column with
    sampling weights. dimensions: hierarchies of columns; without one, that of the schema, else the values that occur. tables: the
    columns of each of several linked tables; by default there is one of all columns. margins: whether totals are shown.
    """
    relation = plannable(people.relation)
    fields = relation.fields
    holding = holding or people.schema.unit
    weight = weight or people.schema.weight
    named = [*by, *(each for each in (value, holding, weight) if each is not None)]
    all_at_once(MissingColumn, "cube", [f"there is no column {as_name(name)}" for name in named if name not in fields])
    if len(set(by)) < len(by) or not by:
        raise InputError("name the columns of the cube once each, and at least one")
    if value is None:
        shape = Shape(None, 0 if weight is None else (decimals or 0), people.schema.dataset)
    else:
        whole = fields[value].kind in ("integer", "wide")
        shown = (0 if whole else 2) if decimals is None else decimals
        shape = Shape(value, shown, people.schema.dataset)
    _refuse_values(relation, [each for each in (value, weight) if each is not None], shape.decimals)
    codes: list[Dimension] = []
    uploads: dict[str, pa.Table] = {}
    for name in by:
        dimension, upload = _coded(people, relation, name, (dimensions or {}).get(name))
        codes.append(dimension)
        uploads[f"codes {name}"] = upload
    of_table = [tuple(tuple(range(len(d.codes))) if d.name in each else (d.total,) for d in codes) for each in tables]
    if not margins:
        of_table = [tuple(d.leaves for d in codes)]
    for each in tables:
        unknown = [name for name in each if name not in by]
        all_at_once(InputError, "tables", [f"{as_name(name)} is no dimension of the cube" for name in unknown])
    grid = TableGrid.of(codes, of_table)
    plan = cube_plan(fields, by, value=value, holding=holding, weight=weight, scale=10**shape.decimals, largest=largest)
    answer = relation.run(plan, uploads)
    return _filled(grid, shape, answer, by, largest, weight is not None, holding is not None)


def cube_plan(
    fields: Mapping[str, Field],
    by: Sequence[str],
    *,
    value: str | None,
    holding: str | None,
    weight: str | None,
    scale: int,
    largest: int,
) -> Plan:
    """What the engine is asked: one row per cell that has a contributor."""
    stored = [*by, *(each for each in (value, holding, weight) if each is not None)]
    source: Plan = Scan(ROWS, tuple(fields[name] for name in dict.fromkeys(stored)))
    amount: Expression = Literal(1) if value is None else Reference(value)
    own: Expression = Literal(scale) if value is None else FixedPoint(Reference(value), scale, _LARGEST / scale)
    whole = own if weight is None else FixedPoint(Arithmetic("*", _number(amount), Reference(weight)), scale, _LARGEST / scale)
    unit = () if holding is None else (Named(_UNIT, Reference(holding)),)
    source = Project(source, (*(column(name) for name in by), *unit, Named(_VALUE, own), Named(_WEIGHTED, whole)))
    for name in by:
        pairs = Scan(f"codes {name}", (Field(f"value {name}", fields[name].kind), Field(f"code {name}", "integer")))
        source = Join(source, pairs, ((name, f"value {name}"),), "inner", "match")
    keys = tuple(f"code {name}" for name in by)
    if holding is not None:
        sums = tuple(AggregateColumn(name, "sum", Reference(name)) for name in (_VALUE, _WEIGHTED))
        source = PerUnitAggregate(source, _UNIT, keys, sums)
    order = tuple(Order(Reference(name), descending=True) for name in (_VALUE, _WEIGHTED))
    numbered = Numbering(source, _PLACE, keys, order)
    aggregates = [AggregateColumn("contributors", "count"), AggregateColumn("total", "sum", Reference(_WEIGHTED))]
    for rank in range(1, largest + 1):
        there = Compare("=", Reference(_PLACE), Literal(rank))
        aggregates.append(AggregateColumn(f"largest {rank}", "max", Reference(_VALUE), there))
        aggregates.append(AggregateColumn(f"weighted {rank}", "max", Reference(_WEIGHTED), there))
    if holding is not None:
        aggregates.append(AggregateColumn("who", "min", Reference(_UNIT)))
    return Group(numbered, keys, tuple(aggregates))


def _number(amount: Expression) -> Expression:
    return Literal(1.0) if isinstance(amount, Literal) else amount


def _refuse_values(relation: Plannable, names: Sequence[str], decimals: int) -> None:
    """Contributions that are missing, negative or too large are refused before anything is counted."""
    faults = []
    for name in names:
        field = relation.fields[name]
        if field.kind not in ("integer", "number", "wide"):
            faults.append(f"the column {as_name(name)} holds {field.kind} values; only numbers are added up")
            continue
        held = Reference(name)
        answer = relation.run(
            Group(
                Scan(ROWS, (field,)),
                (),
                (
                    AggregateColumn("rows", "count"),
                    AggregateColumn("present", "count", held),
                    AggregateColumn("negative", "count", None, Compare("<", held, Literal(0))),
                    AggregateColumn("large", "count", None, Compare(">", held, Literal(int(_LARGEST / 10**decimals)))),
                ),
            )
        ).to_pylist()[0]
        missing = answer["rows"] - answer["present"]
        if missing:
            faults.append(f"{missing:,} records have no value of {as_name(name)}; fill them in or leave the records out")
        if answer["negative"]:
            faults.append(
                f"{answer['negative']:,} records have a negative {as_name(name)}; the rules suppose contributions of 0 or more"
            )
        if answer["large"]:
            faults.append(f"{answer['large']:,} values of {as_name(name)} are too large for {decimals} decimals; show fewer")
    all_at_once(InputError, "contributions", faults)


def _coded(
    people: Microdata, relation: Plannable, name: str, declared: Dimension | Hierarchy | Mapping[str, str] | None
) -> tuple[Dimension, pa.Table]:
    """A column as a dimension, and the table of its stored values with all codes that cover them."""
    import pyarrow as pa

    field = relation.fields[name]
    occurring = relation.run(Group(Scan(ROWS, (field,)), (name,), ())).column(name).combine_chunks()
    texts = [None if each is None else str(each) for each in occurring.to_pylist()]
    dimension = _dimension(people, name, declared, texts)
    covering: dict[int | None, list[int]] = {}
    for leaf, code in dimension.ancestors():
        covering.setdefault(leaf, []).append(code)
    rows: list[int] = []
    codes: list[int] = []
    unknown = 0
    for row, text in enumerate(texts):
        covers = covering.get(dimension.code_of(text))
        if covers is None:
            unknown += 1
            continue
        rows += [row] * len(covers)
        codes += covers
    if unknown:
        raise InputError(
            f"{unknown:,} values of the column {as_name(name)} are no leaves of its dimension. Add them to the hierarchy, "
            "or leave the records out."
        )
    return dimension, pa.table({f"value {name}": occurring.take(pa.array(rows, pa.int64())), f"code {name}": codes})


def _dimension(
    people: Microdata, name: str, declared: Dimension | Hierarchy | Mapping[str, str] | None, texts: Sequence[str | None]
) -> Dimension:
    if isinstance(declared, Dimension):
        if declared.name != name:
            raise InputError(f"the dimension for the column {as_name(name)} is called {as_name(declared.name)}; rename it")
        return declared
    if isinstance(declared, Hierarchy):
        return Dimension.of_hierarchy(name, declared)
    if isinstance(declared, Mapping):
        return Dimension.tree(name, declared)
    if declared is not None:
        raise Unsupported(f"a dimension is a Dimension, a Hierarchy or a mapping to parents, not {type(declared).__name__}")
    described = people.schema.columns.get(name)
    if described is not None and described.hierarchy is not None:
        from sfumato.data.hierarchies.hierarchy_builders import build

        return Dimension.of_hierarchy(name, build(name, described, texts, folder=people.schema.folder))
    distinct = sorted({"" if each is None else each for each in texts})
    return Dimension.flat(name, ["*" if each == "" else each for each in distinct], TOTAL)


def _filled(
    grid: TableGrid, shape: Shape, answer: pa.Table, by: Sequence[str], largest: int, weighted: bool, held: bool
) -> TableCube:
    columns = {name: answer.column(name).to_pylist() for name in answer.column_names}
    codes = np.stack([np.array(columns[f"code {name}"], dtype=np.int64) for name in by], axis=1)
    cells = grid.cell_of(codes) if len(codes) else np.zeros(0, dtype=np.int64)
    shown = cells >= 0
    units = np.zeros(grid.size, dtype=np.int64)
    units[cells[shown]] = np.array([int(each) for each in columns["total"]], dtype=np.int64)[shown]
    count = np.zeros(grid.size, dtype=np.int64)
    count[cells[shown]] = np.array(columns["contributors"], dtype=np.int64)[shown]
    top, weights = np.zeros((grid.size, largest)), np.ones((grid.size, largest))
    for rank in range(largest):
        amount, stands_for = (_numbers(columns[f"{what} {rank + 1}"])[shown] for what in ("largest", "weighted"))
        top[cells[shown], rank] = amount
        if weighted:
            weights[cells[shown], rank] = np.divide(stands_for, amount, out=np.ones_like(amount), where=amount > 0)
    contributions = Contributions(units.astype(np.float64), count, top, weights)
    return TableCube(grid, shape, units, contributions, _singles(cells, count, columns["who"] if held else None))


def _singles(cells: NDArray[np.int64], count: NDArray[np.int64], who: list[object] | None) -> tuple[NDArray[np.int64], ...]:
    """The cells of one contributor; those of one holding form a group."""
    alone = np.flatnonzero(count == 1)
    if who is None:
        return tuple(np.array([cell]) for cell in alone)
    holder = {int(cell): name for cell, name in zip(cells, who, strict=True)}
    groups: dict[object, list[int]] = {}
    for cell in alone.tolist():
        groups.setdefault(holder[cell], []).append(cell)
    return tuple(np.array(group) for group in groups.values())


def _numbers(values: Sequence[object]) -> NDArray[np.float64]:
    return np.array([0.0 if each is None else float(str(each)) for each in values])
