"""Aggregate tables: which cells must be blank, proved or bounded, and how fast a pattern is audited.

The tables are generated in the shapes of the notes: counts of a lognormal, 3 % of the cells sensitive in two dimensions with
levels of 15 %, and a hierarchical table of 61 × 31 × 7 cells with 1,980 sensitive ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness import Case

if TYPE_CHECKING:
    from sfumato.tables import Suppression, SuppressionProblem

#: What GaussSuppression left blank of a table of that shape and as many sensitive cells, without levels, in 35.6 s.
_PEER_BLANKS = 3_711


def tree(branches: Sequence[int]) -> tuple[int, list[tuple[int, list[int]]], list[int]]:
    """A dimension: how many codes there are, each total with its parts, and the codes without parts."""
    count, totals, level = 1, [], [0]
    for branch in branches:
        below: list[int] = []
        for code in level:
            parts = list(range(count, count + branch))
            count += branch
            totals.append((code, parts))
            below += parts
        level = below
    return count, totals, level


@cache
def problem(dimensions: tuple[tuple[int, ...], ...], sensitive: int, *, smallest: bool, by_value: bool) -> SuppressionProblem:
    """A table of counts with all totals; the smallest counts are sensitive, or inner cells at random."""
    from sfumato.tables import LinearSystem, SuppressionProblem

    generator = np.random.Generator(np.random.PCG64(1))
    trees = [tree(branches) for branches in dimensions]
    shape = [count for count, _, _ in trees]
    cells = np.arange(int(np.prod(shape))).reshape(shape)
    inner = np.ix_(*(leaves for _, _, leaves in trees))
    values = np.zeros(shape, dtype=np.int64)
    values[inner] = np.floor(generator.lognormal(2.2, 1.3, [len(leaves) for _, _, leaves in trees]))
    equations: list[tuple[int, list[int]]] = []
    for axis, (_, totals, _) in enumerate(trees):
        along, numbers = np.moveaxis(values, axis, 0), np.moveaxis(cells, axis, 0)
        for total, parts in reversed(totals):
            along[total] = along[parts].sum(axis=0)
            columns = numbers[parts].reshape(len(parts), -1)
            equations += [(int(sum_), columns[:, place].tolist()) for place, sum_ in enumerate(numbers[total].ravel())]
    flat = values.ravel()
    primary = np.zeros(flat.size, dtype=np.bool_)
    if smallest:
        order = np.argsort(flat, kind="stable")
        primary[order[flat[order] > 0][:sensitive]] = True
    else:
        places = cells[inner].ravel()
        primary[generator.choice(places[flat[places] > 0], sensitive, replace=False)] = True
    levels = np.where(primary, np.minimum(np.maximum(np.ceil(0.15 * flat), 1), flat), 0)
    return SuppressionProblem.of(
        LinearSystem.of(equations, flat.size),
        flat,
        primary,
        weights=flat if by_value else None,
        known_high=(flat + np.maximum(10, flat)).astype(np.float64),
        lower=levels,
        upper=levels,
    )


def square(side: int, sensitive: int) -> SuppressionProblem:
    """A two-dimensional table with margins."""
    return problem(((side,), (side,)), sensitive, smallest=False, by_value=True)


def hierarchical() -> SuppressionProblem:
    """Three dimensions, two of them with groups: 13,237 cells."""
    return problem(((10, 5), (6, 4), (6,)), 1_980, smallest=True, by_value=False)


def _unsafe(answer: Suppression) -> str | None:
    return None if answer.audit.safe else f"{len(answer.audit.broken)} cells are not safe"


def _unproved(answer: Suppression) -> str | None:
    return _unsafe(answer) or (None if answer.proved else f"a gap of {answer.gap:.2%} is left")


def _far(answer: Suppression) -> str | None:
    ratio = answer.cost / answer.bound
    return _unsafe(answer) or (None if ratio <= 1.25 else f"{ratio:.2f} × the bound")


def _many(answer: Suppression) -> str | None:
    blanks = int(answer.suppressed.sum())
    return _unsafe(answer) or (None if blanks <= _PEER_BLANKS else f"{blanks} blanks")


def _told(answer: Suppression) -> str:
    blanks = int(answer.suppressed.sum())
    return f"{blanks:,} blanks, cost {answer.cost:,.0f}, at least {answer.bound:,.0f}, gap {answer.gap:.2%}"


def cases() -> Iterator[Case]:
    """What `make bench` measures of aggregate tables."""
    from sfumato.tables import suppress
    from sfumato.tables.audit.auditing import audit

    once: dict[str, Any] = {"unit": "s", "repeats": 1, "warm_run": False, "remark": _told}
    yield Case(
        "150 × 150 cells, 675 sensitive, proved optimal",
        lambda table: suppress(table),
        prepare=lambda: square(150, 675),
        limit=20.0,
        stretch=5.0,
        check=_unproved,
        **once,
    )
    yield Case(
        "300 × 300 cells, 2,700 sensitive, blanks chosen",
        lambda table: suppress(table),
        prepare=lambda: square(300, 2_700),
        limit=40.0,
        stretch=20.0,
        check=_far,
        **once,
    )
    yield Case(
        "hierarchical, 13,237 cells, 1,980 sensitive, with levels",
        lambda table: suppress(table),
        prepare=hierarchical,
        limit=35.0,
        peer=35.6,
        stretch=7.0,
        check=_many,
        note=f"peer: GaussSuppression as published in our notes, {_PEER_BLANKS:,} blanks of another table without levels",
        **once,
    )
    for side, sensitive, limit in ((300, 2_700, 2.0), (316, 2_996, 3.0)):
        yield Case(
            f"audit of {(side + 1) ** 2:,} cells, {sensitive:,} sensitive",
            lambda pair: audit(*pair, exact=False),
            prepare=lambda side=side, sensitive=sensitive: _protected(side, sensitive),
            unit="s",
            limit=limit,
            repeats=3,
            check=lambda answer: None if answer.safe else "not safe",
            remark=lambda answer: f"{answer.programmes:,} programmes",
        )
    yield Case(
        "40 × 40 cells by linear programmes, cost beside the optimum",
        lambda table: suppress(table, "lp").cost / suppress(table, "cuts").cost,
        prepare=lambda: square(40, 48),
        unit="s",
        limit=1.10,
        reports=True,
        repeats=1,
        warm_run=False,
        note="a ratio, not seconds",
    )


@cache
def _protected(side: int, sensitive: int) -> tuple[SuppressionProblem, Any]:
    from sfumato.tables import suppress

    table = square(side, sensitive)
    return table, suppress(table, "flow").suppressed
