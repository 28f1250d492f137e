"""`crosstab`: a table of counts or sums as people ask for it, protected unless they say otherwise.

Margins are where a blank is given away: the row total minus what is shown. So they are protected together with the cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sfumato.core.errors import InputError
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.microdata import Microdata
from sfumato.tables.counting import count_cube
from sfumato.tables.dimension import Dimension
from sfumato.tables.protection import ProtectedCube, protect_cube
from sfumato.tables.published import PublishedTable
from sfumato.tables.sensitivity import MinimumFrequency, PPercent, SensitivityRule

#: What protects counts and sums where nobody names rules.
COUNTS: tuple[SensitivityRule, ...] = (MinimumFrequency(3),)
SUMS: tuple[SensitivityRule, ...] = (MinimumFrequency(3), PPercent(10))


def crosstab(
    people: Microdata,
    rows: str | Sequence[str],
    columns: str | Sequence[str] = (),
    *,
    value: str | None = None,
    margins: bool = True,
    rules: Sequence[SensitivityRule] | None = None,
    holding: str | None = None,
    weight: str | None = None,
    decimals: int | None = None,
    dimensions: Mapping[str, Dimension | Hierarchy | Mapping[str, str]] | None = None,
    **options: object,
) -> PublishedTable:
    """People by `rows` and `columns`, counted or with `value` added up, safe to show.

    By default a cell needs three contributors, and of sums nobody may know a contribution within 10 %. Without `margins` no total
    is shown. `options` are those of `protect_cube`. What comes back holds no true value of a blank; `protect_cube(…)` gives the
    owner's side.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())
    >>> table = crosstab(people, "sex", "diagnosis")
    >>> table.columns
    ('sex', 'diagnosis', 'count', 'flag')
    """
    return protected_crosstab(
        people,
        rows,
        columns,
        value=value,
        margins=margins,
        rules=rules,
        holding=holding,
        weight=weight,
        decimals=decimals,
        dimensions=dimensions,
        **options,
    ).published


def protected_crosstab(
    people: Microdata,
    rows: str | Sequence[str],
    columns: str | Sequence[str] = (),
    *,
    value: str | None = None,
    margins: bool = True,
    rules: Sequence[SensitivityRule] | None = None,
    holding: str | None = None,
    weight: str | None = None,
    decimals: int | None = None,
    dimensions: Mapping[str, Dimension | Hierarchy | Mapping[str, str]] | None = None,
    **options: object,
) -> ProtectedCube:
    """The same with what its owner keeps: true values, why each cell is blank, the audit."""
    by = [*([rows] if isinstance(rows, str) else rows), *([columns] if isinstance(columns, str) else columns)]
    if not by:
        raise InputError("name at least one column by which the table is formed")
    cube = count_cube(
        people, by, value=value, holding=holding, weight=weight, decimals=decimals, dimensions=dimensions, margins=margins
    )
    return protect_cube(cube, rules or (COUNTS if value is None else SUMS), **options)  # type: ignore[arg-type]  # checked there
