"""What the attacks on masked releases share: the people of a register beside the released rows, and what success means.

Distances and posteriors always point at somebody; whether at the right one only the truth tells, so that a register for these
attacks says which released row belongs to whom. It is used to count, never to attack.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa

from sfumato.attacks.adversary import TableAttack, is_masked
from sfumato.attacks.tables.linkage import Register
from sfumato.core import registry
from sfumato.core.errors import InputError, MissingColumn, Unsupported
from sfumato.core.plain_data import Plain
from sfumato.core.ranges import ColumnNames
from sfumato.core.texts import percent
from sfumato.core.view import AttackResult, Criterion, Detail, View
from sfumato.data.masked import Masked, TableView
from sfumato.data.microdata import ReleasedTable
from sfumato.data.schema import Schema
from sfumato.measures.risk.linkage.sides import Picked, Sides
from sfumato.measures.risk.linkage.transparency import published_steps, published_strata
from sfumato.measures.risk.success import mean_interval, share

#: In the truth about a register: nobody can tell which row is theirs, if any, so that they are looked up and not counted.
NOT_JUDGED = -2
_TABLES = (Masked, ReleasedTable, pa.Table)


class RegisterAttack(TableAttack[Register | pa.Table]):
    """An adversary who looks people of a register up in a masked table, where the truth is there to count what was right."""

    criterion: ClassVar[Criterion | None] = "linkability"
    needs: ClassVar[tuple[str, ...]] = ("register", "truth")
    helped_by: ClassVar[tuple[str, ...]] = ("owners",)
    identifies: ClassVar[bool] = True

    def fits(self, view: View[object, object]) -> bool:
        """A mask has changed the table."""
        return isinstance(view.schema, Schema) and isinstance(view.result, _TABLES) and is_masked(view)

    def knowledge_from(self, entries: Mapping[str, object]) -> Register:
        """The register and, where it is known, who is who and whose each row is."""
        return Register(entries["register"], truth=entries.get("truth"), owners=entries.get("owners"))


@dataclass(frozen=True)
class MaskPart:
    """One of the masks behind a table: what is published about it, and the columns that it `shares` with other masks, of
    which what is published is no longer true in the release."""

    facts: Mapping[str, Any]  # as a certificate publishes them
    shares: frozenset[str] = frozenset()

    @property
    def strata(self) -> tuple[str, ...]:
        """The columns within whose values it worked."""
        return published_strata(self.facts)

    def own(self, names: Iterable[str]) -> list[str]:
        """Those of the columns that no other mask has changed."""
        return [name for name in names if name not in self.shares]


class TransparencyAttack(RegisterAttack):
    """The same with what is published about the mask; of several masks, each is attacked in the columns of its own."""

    knows_the_method: ClassVar[bool] = True
    #: What a mask that this attack exploits publishes about itself, any of it.
    reads: ClassVar[tuple[str, ...]]

    @abstractmethod
    def exploits(self, part: MaskPart) -> bool:
        """Whether what is published about a mask, of columns that no other has changed, tells this adversary something."""

    @abstractmethod
    def refusal(self, view: TableView) -> InputError | None:
        """Why there is nothing to attack where no mask can be exploited; None where it goes on without."""

    @abstractmethod
    def attacked(self, sides: Sides, view: TableView, parts: Sequence[MaskPart]) -> AttackResult:
        """Pick everybody's record by what is published about these masks, within the same strata; there may be none."""

    def fits(self, view: View[object, object]) -> bool:
        """A mask tells about itself what this attack exploits."""
        return super().fits(view) and bool(self.parts(view))

    def run(self, view: TableView, knowledge: Register | pa.Table | None = None) -> AttackResult:
        """Attack the masks group by group, and report what is furthest above blind guessing. A group whose columns the register
        does not know is passed over, unless there is no other."""
        sides = sides_of(view, knowledge, type(self).__name__)
        parts = self.parts(view)
        if not parts and (refusal := self.refusal(view)) is not None:
            raise refusal
        results, refusals = [], []
        for group in self.together(parts) or [[]]:
            try:
                results.append(self.attacked(sides, view, group))
            except (MissingColumn, Unsupported) as refused:
                refusals.append(refused)
        if not results:
            raise refusals[0]
        return max(results, key=lambda result: result.success - result.baseline)

    def parts(self, view: View[object, object]) -> list[MaskPart]:
        """The masks that this attack exploits. Whatever worked within strata that another mask has changed is none of them."""
        steps = published_steps(transparency_of(view))
        changed = [_changed_by(step) for step in steps]
        parts = [
            MaskPart(step, frozenset[str]().union(*changed[:place], *changed[place + 1 :]))
            for place, step in enumerate(steps)
            if any(key in step for key in self.reads)
        ]
        return [part for part in parts if part.shares.isdisjoint(part.strata) and self.exploits(part)]

    def together(self, parts: Sequence[MaskPart]) -> list[list[MaskPart]]:
        """The masks whose facts can be put together: those that worked within the same strata."""
        by_strata: dict[tuple[str, ...], list[MaskPart]] = {}
        for part in parts:
            by_strata.setdefault(part.strata, []).append(part)
        return list(by_strata.values())

    def shared(self, view: TableView) -> Unsupported | None:
        """The refusal where a mask tells what this attack reads, and others have changed the same columns."""
        steps = published_steps(transparency_of(view))
        if len(steps) < 2 or not any(key in step for step in steps for key in self.reads):
            return None
        return Unsupported(
            f"{type(self).__name__}: every column, or a stratum, that this mask worked on was changed by another mask too, so "
            "that what is published about it is true of no column of the release"
        )


def _changed_by(step: Mapping[str, Any]) -> frozenset[str]:
    """The columns that a mask has changed; one that chooses records leaves their values as they are."""
    name = step.get("method", {}).get("name")
    selects = registry.has("mask", name) and registry.find("mask", name).selects
    return frozenset(() if selects else step.get("masked_columns", ()))


def released_table(view: TableView) -> pa.Table:
    """The rows of a view, whatever form its result has."""
    result = view.result
    if isinstance(result, (Masked, ReleasedTable)):
        return result.table
    if isinstance(result, _TABLES):
        return result
    raise InputError("this attack looks at a masked table: an Arrow table, a Masked or a ReleasedTable")


def transparency_of(view: View[object, object]) -> Plain:
    """What is published about the mask: in the certificate, or beside the masked table."""
    facts = view.certificate.get("transparency") if view.certificate else None
    if not facts and isinstance(view.result, Masked):
        facts = view.result.transparency
    return facts if isinstance(facts, Mapping) else {}


def sides_of(view: TableView, knowledge: Register | pa.Table | None, attack: str) -> Sides:
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
    if knowledge.owners is not None:
        owner = np.asarray(knowledge.owners)
        if owner.shape != (released.num_rows,) or owner.dtype.kind not in "iu":
            raise InputError(f"{attack}: owners has one whole number for each of the {released.num_rows:,} rows of the release")
    return Sides(knowledge.table, released, view.schema, np.maximum(truth, -1), shared, owner, judged=truth != NOT_JUDGED)


#: The columns that an attack with a register compares.
RegisterColumns = Annotated[
    ColumnNames | None, "the columns compared; of those the register knows, what was masked, where left out"
]


def masked_columns(view: TableView) -> frozenset[str]:
    """The columns that some mask has changed, as far as that is published."""
    masked = {name for step in published_steps(transparency_of(view)) for name in step.get("masked_columns", [])}
    return frozenset(masked | set(view.result.columns if isinstance(view.result, Masked) else ()))


def masked_and_known(sides: Sides, view: TableView, columns: tuple[str, ...] | None, attack: str) -> tuple[str, ...]:
    """The columns to compare: those named, otherwise those that were masked and the quasi-identifiers, masked or not, which help
    most where they are left as they were; of these the register's."""
    if columns is not None:
        missing = [name for name in columns if name not in sides.names]
        if missing:
            raise MissingColumn(f"{attack}: the register has no column for '{missing[0]}' of the release")
        return columns
    needed = masked_columns(view) | set(view.schema.quasi)
    return tuple(name for name in sides.names if name in needed) or tuple(sides.names)


def written_alike(sides: Sides, name: str) -> bool:
    """Whether register and release write a column so that it can be compared."""
    try:
        sides.records((name,))
    except Unsupported:  # a number on one side and words on the other, or neither a number nor a category
        return False
    return True


def only_masked(sides: Sides, view: TableView, columns: tuple[str, ...] | None, attack: str) -> tuple[str, ...]:
    """The same without what was left as it was, for an attack on the method."""
    compared = masked_and_known(sides, view, columns, attack)
    masked = masked_columns(view)
    return compared if columns is not None else tuple(name for name in compared if name in masked) or compared


def agreeing(sides: Sides, view: TableView, strata: Sequence[str] = ()) -> Sides:
    """The sides with the quasi-identifiers that were published as they are and the register knows: there the own record agrees
    with the person. Where nothing is published about what was masked, nothing is supposed."""
    steps = published_steps(transparency_of(view))
    if not (masked_columns(view) or any("masked_columns" in step for step in steps)):
        return sides
    changed = frozenset[str]().union(*map(_changed_by, steps)) if steps else masked_columns(view)
    left = [name for name in view.schema.quasi if name in sides.names and name not in changed and name not in strata]
    return replace(sides, agreeing=tuple(name for name in left if written_alike(sides, name)))


def result_of(attack: str, sides: Sides, picked: Picked, how: str, details: Mapping[str, Detail]) -> AttackResult:
    """Success beside blind guessing among those who can be judged; `how` completes the sentence about who picks the record."""
    judged = np.ones(sides.truth.size, dtype=np.bool_) if sides.judged is None else sides.judged
    entries, people, present = int(judged.size), int(judged.sum()), int(np.count_nonzero(sides.truth >= 0))
    credit = picked.credit[judged]
    right = float(credit.sum())
    whose = np.unique(sides.owners, return_inverse=True)[1].reshape(-1)
    many = np.bincount(whose)[whose[sides.truth[sides.truth >= 0]]]  # somebody may have several rows
    blind = share(float(many.sum()), people) / max(sides.released.num_rows, 1)
    success = min(share(right, people), 1.0)
    mine = sides.mine[judged]
    # entries of one person rise and fall together
    who = np.where(mine >= 0, mine, mine.max(initial=0) + 1 + np.arange(mine.size))
    # where the column that names people repeats, this shows for how many people it was taken
    behind, rows = int(np.unique(sides.owners).size), sides.released.num_rows
    counted = "" if behind == rows else f" The {rows:,} released rows count as those of {behind:,} people."
    of_them = "" if people == entries else f", {people:,} can be judged, the others are not known to be in the release. Of those"
    return AttackResult(
        attack=attack,
        success=success,
        baseline=blind,
        interval=mean_interval(credit, who),
        targets=people,
        finding=(
            f"Of {entries:,} entries in the register{of_them}, {how} picks the right record for {percent(success)}; blind "
            f"guessing does for {percent(blind)}.{counted}"
        ),
        details={
            "expected_correct": right,
            "people_in_the_release": present,
            **({} if people == entries else {"not_judged": entries - people}),
            **({} if behind == rows else {"people_behind_rows": behind}),
            **details,
        },
    )


def _truth(register: Register, released: int, attack: str) -> Any:
    if register.truth is None:
        raise InputError(
            f"{attack} always points at somebody, and without the truth success cannot be counted: pass "
            "Register(table, truth=rows), where rows[i] is the row of the release that belongs to person i, -1 for somebody who "
            "is not in it, -2 where nobody can tell"
        )
    truth = np.asarray(register.truth)
    if truth.shape != (register.table.num_rows,) or truth.dtype.kind not in "iu":
        raise InputError(f"{attack}: truth has one whole number for each of the {register.table.num_rows:,} people")
    if truth.size and (truth.min() < NOT_JUDGED or truth.max() >= released):
        raise InputError(
            f"{attack}: truth names rows that the release does not have (rows count from 0; -1 is nobody, -2 unknown)"
        )
    return truth.astype(np.int64)
