"""What the attacks on masked releases share: the people of a register beside the released rows, and what success means.

Distances and posteriors always point at somebody; whether at the right one only the truth tells, so that a register for these
attacks says which released row belongs to whom. It is used to count, never to attack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from sfumato.attacks.linkage import Register
from sfumato.attacks.success import percent, share, wilson
from sfumato.core.errors import InputError, MissingColumn, Unsupported
from sfumato.core.ranges import ColumnNames
from sfumato.core.view import AttackResult, View
from sfumato.data.masked import Masked
from sfumato.data.released import ReleasedTable
from sfumato.measures.risk.sides import Picked, Sides
from sfumato.measures.risk.transparency import steps_told


def released_table(view: View) -> pa.Table:
    """The rows of a view, whatever form its result has."""
    result = view.result
    if isinstance(result, (Masked, ReleasedTable)):
        return result.table
    if isinstance(result, pa.Table):
        return result
    raise InputError("this attack looks at a masked table: an Arrow table, a Masked or a ReleasedTable")


def transparency_of(view: View) -> Mapping[str, Any]:
    """What is published about the mask: in the certificate, or beside the masked table."""
    told = view.certificate.get("transparency") if view.certificate else None
    if not told and isinstance(view.result, Masked):
        told = view.result.transparency
    return told if isinstance(told, Mapping) else {}


def sides_of(view: View, knowledge: Any, attack: str) -> Sides:
    """The register beside the release, over the columns both have."""
    if isinstance(knowledge, pa.Table):
        knowledge = Register(knowledge)
    if not isinstance(knowledge, Register):
        raise InputError(f"{attack} needs a register of people as knowledge: attacks.Register(table, truth=…)")
    released = released_table(view)
    truth = _truth(knowledge, released.num_rows, attack)
    held = set(knowledge.table.column_names)
    names = dict(knowledge.columns) or {name: name for name in released.column_names if name in held}
    gone = [ours for ours in names.values() if ours not in held]
    if gone:
        raise MissingColumn(f"{attack}: the register has no column '{gone[0]}'")
    hidden = set(view.schema.with_role("identifier"))
    shared = {name: ours for name, ours in names.items() if name in released.column_names and name not in hidden}
    if not shared:
        raise MissingColumn(
            f"{attack}: the register shares no column with the release; map them with "
            "Register(table, columns={'column of the release': 'column of the register'}, truth=…)"
        )
    if released.num_rows == 0 or knowledge.table.num_rows == 0:
        raise InputError(f"{attack}: the release or the register has no rows")
    owner = view.result.rows if isinstance(view.result, Masked) else None
    return Sides(knowledge.table, released, view.schema, truth, shared, owner)


#: The columns that an attack with a register compares.
RegisterColumns = Annotated[
    ColumnNames | None, "the columns compared; of those the register knows, what was masked, where left out"
]


def masked_columns(view: View) -> frozenset[str]:
    """The columns that some mask has changed, as far as it is told."""
    told = {name for step in steps_told(transparency_of(view)) for name in step.get("masked_columns", [])}
    return frozenset(told | set(view.result.columns if isinstance(view.result, Masked) else ()))


def masked_and_known(sides: Sides, view: View, columns: tuple[str, ...] | None, attack: str) -> tuple[str, ...]:
    """The columns to compare: those named, otherwise those that were masked and the quasi-identifiers, masked or not, which help
    most where they are left as they were; of these the register's."""
    if columns is not None:
        missing = [name for name in columns if name not in sides.names]
        if missing:
            raise MissingColumn(f"{attack}: the register has no column for '{missing[0]}' of the release")
        return columns
    wanted = masked_columns(view) | set(view.schema.quasi)
    return tuple(name for name in sides.names if name in wanted) or tuple(sides.names)


def only_masked(sides: Sides, view: View, columns: tuple[str, ...] | None, attack: str) -> tuple[str, ...]:
    """The same without what was left as it was, for an attack on the method."""
    compared = masked_and_known(sides, view, columns, attack)
    masked = masked_columns(view)
    return compared if columns is not None else tuple(name for name in compared if name in masked) or compared


def agreeing(sides: Sides, view: View, strata: Sequence[str] = ()) -> Sides:
    """The sides with the quasi-identifiers that were published as they are and the register knows: there the own record agrees
    with the person. Where nothing is told about what was masked, nothing is supposed."""
    masked = masked_columns(view)
    if not masked:
        return sides
    kept = []
    for name in view.schema.quasi:
        if name in sides.names and name not in masked and name not in strata:
            try:
                sides.records((name,))
            except Unsupported:  # the register writes it in another way, or it is neither a number nor a category
                continue
            kept.append(name)
    return replace(sides, agreeing=tuple(kept))


def result_of(attack: str, sides: Sides, picked: Picked, how: str, details: Mapping[str, Any]) -> AttackResult:
    """Success beside blind guessing; `how` completes the sentence about who picks the record."""
    people, present = int(sides.truth.size), int(np.count_nonzero(sides.truth >= 0))
    right = float(picked.credit.sum())
    whose = np.unique(sides.owners, return_inverse=True)[1].reshape(-1)
    many = np.bincount(whose)[whose[sides.truth[sides.truth >= 0]]]  # somebody may have several rows
    blind = share(float(many.sum()), people) / max(sides.released.num_rows, 1)
    success = min(share(right, people), 1.0)
    return AttackResult(
        attack=attack,
        success=success,
        baseline=blind,
        interval=wilson(right, people),
        targets=people,
        finding=(
            f"Of {people:,} entries in the register, {how} picks the right record for {percent(success)}; blind guessing does "
            f"for {percent(blind)}."
        ),
        details={"expected_correct": right, "people_in_the_release": present, **details},
    )


def _truth(register: Register, released: int, attack: str) -> Any:
    if register.truth is None:
        raise InputError(
            f"{attack} always points at somebody, and without the truth success cannot be counted: pass "
            "Register(table, truth=rows), where rows[i] is the row of the release that belongs to person i, -1 for somebody who "
            "is not in it"
        )
    truth = np.asarray(register.truth)
    if truth.shape != (register.table.num_rows,) or truth.dtype.kind not in "iu":
        raise InputError(f"{attack}: truth has one whole number for each of the {register.table.num_rows:,} people")
    if truth.size and (truth.min() < -1 or truth.max() >= released):
        raise InputError(f"{attack}: truth names rows that the release does not have (rows count from 0; -1 is nobody)")
    return truth.astype(np.int64)
