"""Tables of cells, one per row: codes, value, perhaps how many contributors there are and the largest contributions.

Several tables become one cube. They are linked by the dimensions that they share: a table without a dimension shows its total.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from sfumato.core.errors import InputError, MissingColumn, all_at_once, as_name
from sfumato.core.texts import text_of
from sfumato.tables.cube import TableCube
from sfumato.tables.dimension import TOTAL, Dimension

if TYPE_CHECKING:
    import pyarrow as pa

#: What is known of a cell: its value, its contributors, and their largest contributions.
_Facts = tuple[float, int | None, tuple[float, ...]]


def cube_of_rows(
    tables: Sequence[pa.Table],
    by: Sequence[str],
    *,
    value: str | None = None,
    count: str | None = None,
    largest: Sequence[str] = (),
    decimals: int | None = None,
    dimensions: Mapping[str, Dimension | Mapping[str, str]] | None = None,
    total: str = TOTAL,
    rounding: int = 1,
    dataset: str = "unnamed",
) -> TableCube:
    """The cube of these tables, whose cells are named by the columns `by`.

    value: the column that is added up; without one the cells are counts, in the column `count`. largest: columns with the largest
    contributions, in falling order. dimensions: hierarchies of columns (a parent for each code); columns without one are lists of
    values. total: the code of the grand totals. rounding: by how many units of the last digit, per part, a total may be off.
    """
    shown = value if value is not None else count
    if shown is None:
        raise InputError("name the column with the values of the cells (value=) or with their counts (count=)")
    needed = [shown, *(each for each in (count,) if each is not None), *largest]
    for table in tables:
        absent = [name for name in needed if name not in table.column_names]
        all_at_once(MissingColumn, "cells", [f"there is no column {as_name(name)}" for name in absent])
    nowhere = [name for name in by if not any(name in table.column_names for table in tables)]
    all_at_once(MissingColumn, "cells", [f"no table has the column {as_name(name)}" for name in nowhere])
    codes = {name: _codes(tables, name) for name in by}
    axes = [_axis(name, codes[name], (dimensions or {}).get(name), total) for name in by]
    facts: dict[tuple[str, ...], _Facts] = {}
    frames = []
    for table in tables:
        frames.append(_shown_by(table, axes))
        _add(facts, table, axes, shown, count, largest)
    digits = _digits(facts) if decimals is None else decimals
    return TableCube.from_cells(
        {key: amount for key, (amount, _, _) in facts.items()},
        axes,
        value=value,
        decimals=digits,
        counts=None if value is None or count is None else {key: n for key, (_, n, _) in facts.items() if n is not None},
        largest={key: top for key, (_, _, top) in facts.items()} if largest and value is not None else None,
        tables=tuple(dict.fromkeys(frames)),
        rounding=rounding,
        dataset=dataset,
    )


def _codes(tables: Sequence[pa.Table], name: str) -> list[str]:
    listed: dict[str, None] = {}
    for table in tables:
        if name in table.column_names:
            listed.update(dict.fromkeys(_text(each) for each in table.column(name).unique().to_pylist()))
    return list(listed)


def _axis(name: str, codes: Sequence[str], declared: Dimension | Mapping[str, str] | None, total: str) -> Dimension:
    if isinstance(declared, Dimension):
        return declared
    if declared is not None:
        return Dimension.tree(name, declared, total=total)
    return Dimension.flat(name, sorted(code for code in codes if code != total), total)


def _shown_by(table: pa.Table, axes: Sequence[Dimension]) -> tuple[tuple[int, ...], ...]:
    """The codes that a table shows. Totals that it lists nowhere are shown too: they are the sums of what it lists."""
    shown: list[tuple[int, ...]] = []
    for each in axes:
        if each.name not in table.column_names:
            shown.append((each.total,))
            continue
        listed = {_text(code) for code in table.column(each.name).unique().to_pylist()}
        unknown = sorted(listed - set(each.codes))
        of = f"is no code of the dimension {as_name(each.name)}"
        all_at_once(InputError, "cells", [f"{as_name(code)} {of}" for code in unknown[:10]])
        places = {each.place[code] for code in listed}
        if not places & {parent for parent, _ in each.sums}:
            places = set(range(len(each.codes)))
        shown.append(tuple(sorted(places)))
    return tuple(shown)


def _add(
    facts: dict[tuple[str, ...], _Facts],
    table: pa.Table,
    axes: Sequence[Dimension],
    value: str,
    count: str | None,
    largest: Sequence[str],
) -> None:
    """The cells of a table; a cell that another table shows too must have the same value there."""
    grand = [each.codes[each.total] for each in axes]
    rows = table.to_pydict()
    faults: list[str] = []
    earlier = set(facts)
    for row in range(table.num_rows):
        key = tuple(_text(rows[each.name][row]) if each.name in rows else grand[i] for i, each in enumerate(axes))
        amount = _amount(rows[value][row])
        where = ", ".join(f"{each.name}={code}" for each, code in zip(axes, key, strict=True))
        if amount is None:
            faults.append(f"{where} has no value")
            continue
        if key in facts and (key not in earlier or abs(facts[key][0] - amount) > 1e-9 * max(abs(amount), 1.0)):
            again = "is listed twice" if key not in earlier else "has another value in another table"
            faults.append(f"{where} {again}")
        contributors = None if count is None else _amount(rows[count][row])
        top = tuple(_amount(rows[name][row]) or 0.0 for name in largest)
        facts[key] = (amount, None if contributors is None else max(int(-(-contributors // 1)), 0), top)
    more = [f"… and {len(faults) - 10:,} more"] if len(faults) > 10 else []
    all_at_once(InputError, "cells", [*faults[:10], *more])


def _digits(facts: Mapping[tuple[str, ...], _Facts]) -> int:
    """The most digits after the point that a value has, as far as floats keep them apart."""
    longest = max((len(f"{Decimal(repr(amount)).normalize():f}".partition(".")[2]) for amount, _, _ in facts.values()), default=0)
    longest = min(longest, 9)
    size = max((abs(amount) for amount, _, _ in facts.values()), default=1.0)
    while longest and size * 10**longest >= 2**52:
        longest -= 1
    return longest


def _amount(value: object) -> float | None:
    return None if value is None else float(str(value))


def _text(value: object) -> str:
    text = text_of(value)
    return "*" if text is None else text
