"""Bounds of a number that nobody declared, found privately and paid for.

Count rows in buckets between powers of two, with noise, and take the outermost buckets that stand out from it. What
comes back is a suggestion to clamp with: rough (a power of two), and as private as any other answer.
Wilson et al., "Differentially private SQL with bounded user contribution", PoPETs 2020 (approximate bounds).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from sfumato.core.declared import require_confidence
from sfumato.dp.sql.parse import parse_expression

if TYPE_CHECKING:
    from sfumato.dp.sql.asking.answer import QueryAnswer

#: Powers of two that separate the buckets; numbers beyond are counted in the outermost ones.
SMALLEST, LARGEST = -10, 50


@dataclass(frozen=True)
class PaidBounds:
    """Bounds found in the data with noise; None where too few rows stand out from it."""

    low: float | None
    high: float | None
    answer: QueryAnswer = field(repr=False)


def edges() -> list[float]:
    """Where the buckets meet, ascending."""
    powers = [2.0**power for power in range(SMALLEST, LARGEST + 1)]
    return [*(-power for power in reversed(powers)), 0.0, *powers]


def bucket_query(column: str, table: str) -> exp.Select:
    """Counts per bucket of a column or expression."""
    value = parse_expression(column)
    ends = edges()
    branches = [
        exp.If(
            this=exp.LT(this=exp.Paren(this=value.copy()), expression=exp.convert(end)),
            true=exp.Literal.number(number),
        )
        for number, end in enumerate(ends)
    ]
    above = exp.If(
        this=exp.GTE(this=exp.Paren(this=value.copy()), expression=exp.convert(ends[-1])), true=exp.Literal.number(len(ends))
    )
    bucket = exp.Case(ifs=[*branches, above])
    return (
        exp.select(exp.alias_(bucket, "bucket", quoted=True), exp.alias_(exp.Count(this=exp.Star()), "n", quoted=True))
        .from_(exp.Table(this=exp.to_identifier(table, quoted=True)))
        .group_by(bucket.copy())
    )


def bounds_of(answer: QueryAnswer, scale: float, confidence: float) -> PaidBounds:
    """The outermost buckets whose noisy count is unlikely to be noise alone."""
    require_confidence(confidence)
    ends = edges()
    counts = {bucket: n for bucket, n in answer.answer.rows if bucket is not None}
    threshold = scale * math.log(len(counts) / (1 - confidence))
    standing = sorted(bucket for bucket, n in counts.items() if n >= threshold)
    if not standing:
        return PaidBounds(None, None, answer)
    first, last = standing[0], standing[-1]
    return PaidBounds(ends[max(first - 1, 0)], ends[min(last, len(ends) - 1)], answer)
