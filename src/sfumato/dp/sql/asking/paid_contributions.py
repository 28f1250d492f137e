"""How many rows and groups one unit contributes, found privately and paid for, so that nobody has to guess a bound.

Each unit counts once, in a bucket between powers of two by how many rows (or groups) it has; the first bucket is taken up to
which a given share of the noisy numbers lies, all of them together. So about that share of the units keeps to the bound: about,
because the numbers are noisy. The choice is as private as any other answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from sfumato.core.declared import require
from sfumato.core.errors import ParameterError
from sfumato.dp.sql.parse import parse_expression

if TYPE_CHECKING:
    from sfumato.dp.sql.asking.answer import QueryAnswer
    from sfumato.dp.sql.reading.catalogue import KnownTable

#: Bounds are powers of two up to this exponent; units beyond are counted with it.
LARGEST = 20


@dataclass(frozen=True)
class PaidContributions:
    """Bounds found in the data with noise; None where too few units are there to stand out from it, or where it was not asked."""

    max_rows: int | None
    max_groups: int | None
    answers: tuple[QueryAnswer, ...] = field(repr=False)


def contribution_queries(table: KnownTable, by: str | Sequence[str]) -> list[exp.Select]:
    """What is asked about a table: how many rows units have and, where keys are named, in how many groups they are."""
    if table.unit is None:
        raise ParameterError("each record is a unit of its own here, so that there are no contributions to bound")
    keys = _grouping_keys(by, table)
    return [_contribution_query(table.name, table.unit, each) for each in ([[], keys] if keys else [[]])]


def _contribution_query(table: str, unit: str, keys: Sequence[exp.Expression] = ()) -> exp.Select:
    """Numbers of units by how many rows they have or, with keys, by in how many groups of all keys together they are."""
    source: exp.Expression = exp.Table(this=exp.to_identifier(table, quoted=True))
    person = exp.column(exp.to_identifier(unit, quoted=True))
    if keys:  # one row for each unit and group; a missing key is a group too
        named = [exp.alias_(key.copy(), f"key {place}", quoted=True) for place, key in enumerate(keys)]
        apart = exp.select(person.copy(), *named).from_(source).group_by(person.copy(), *(key.copy() for key in keys))
        source = apart.subquery("groups")
    counted = exp.alias_(exp.Count(this=exp.Star()), "how many", quoted=True)
    inner = exp.select(person.copy(), counted).from_(source).group_by(person.copy())
    number = exp.column(exp.to_identifier("how many", quoted=True))
    branches = [
        exp.If(this=exp.LTE(this=number.copy(), expression=exp.convert(2**power)), true=exp.Literal.number(power))
        for power in range(LARGEST)
    ]
    bucket = exp.Case(ifs=branches, default=exp.Literal.number(LARGEST))
    return (
        exp.select(exp.alias_(bucket, "power", quoted=True), exp.alias_(exp.Count(this=exp.Star()), "n", quoted=True))
        .from_(inner.subquery("each"))
        .group_by(bucket.copy())
    )


def _grouping_keys(by: str | Sequence[str], table: KnownTable) -> list[exp.Expression]:
    """Grouping keys as expressions; what is the name of a column is that column."""
    names = (by,) if isinstance(by, str) else tuple(by)
    require(all(isinstance(key, str) for key in names), "by takes grouping keys as texts")
    columns = [table.column(key) for key in names]
    return [
        parse_expression(key) if column is None else exp.column(exp.to_identifier(column.name, quoted=True))
        for key, column in zip(names, columns, strict=True)
    ]


def bound_of(answer: QueryAnswer, share: float) -> int | None:
    """The least power of two up to which about the share of the units lies; None where their number does not stand out."""
    counts = {int(power): int(n) for power, n in answer.answer.rows if power is not None}
    total, below = sum(counts.values()), 0
    # Three standard deviations of the noise in all numbers together. No single number is left out for being small: many small
    # ones are many units.
    if total <= 3 * answer.explanation.measurements[0].scale * math.sqrt(2 * len(counts)):
        return None
    for power in sorted(counts):
        below += counts[power]
        if below >= share * total:
            return int(2**power)
    return None


def paid_contributions(bounds: Sequence[int | None], answers: Sequence[QueryAnswer]) -> PaidContributions:
    """The bounds of one or two questions."""
    return PaidContributions(bounds[0], bounds[1] if len(bounds) > 1 else None, tuple(answers))
