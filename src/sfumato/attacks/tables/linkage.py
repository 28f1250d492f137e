"""Linkage: join the release with a register that has names, on the quasi-identifiers both share.

A released text matches a raw value of the register when it may stand for it. One matching record is an
identification. Sweeney, "k-anonymity: a model for protecting privacy", IJUFKS 10(5), 2002.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from sfumato.attacks.adversary import TableAttack, is_masked, is_table
from sfumato.attacks.several.coverage import covering
from sfumato.attacks.tables.candidates import matching
from sfumato.attacks.tables.classes import (
    Ids,
    ReleasedClasses,
    classes_of,
    encoded,
    grouped,
    hides_units,
    of_units,
    released_table,
    require_columns,
)
from sfumato.attacks.tables.meaning import meanings
from sfumato.core.declared import Declared
from sfumato.core.errors import InputError, MissingColumn
from sfumato.core.texts import percent
from sfumato.core.view import AttackResult, Criterion, View
from sfumato.data.masked import TableView
from sfumato.measures.risk.success import share, wilson

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Register(Declared):
    """A `table` of people with raw values. `columns` maps quasi-identifiers of the release to columns of the
    register; empty:
    those with the same names. `truth`, where it is known, gives the row of the release that belongs to each person
    (-1: not in it; -2: nobody can tell, so that the person does not count); attacks by distance count their success with it and
    never look at it otherwise. `owners` says whose each released row is, where somebody may have several."""

    table: Annotated["pa.Table", "people with raw values"] = field(repr=False)  # noqa: UP037 - the rest is read without Arrow
    columns: Annotated[Mapping[str, str], "the register's column for each quasi-identifier; the same names where empty"] = field(
        default_factory=lambda: MappingProxyType({})
    )
    truth: Annotated[Any, "the row of the release of each person, -1 for none, to score attacks"] = field(
        default=None, repr=False
    )
    owners: Annotated[Any, "whose each row of the release is; by default everybody has one"] = field(default=None, repr=False)


@dataclass(frozen=True)
class Linkage(TableAttack["Register | pa.Table"]):
    """The adversary knows who is in the register and looks each person up in the release.

    `knowledge`: a `Register` or an Arrow table. Success: the share of people of the register whose record
    would be picked correctly by choosing at random among the records that match, if they are in the release
    at all; somebody without any match is certainly not. Blind guessing picks any record: 1/n. People are
    counted instead of records where the release shows whose these are.
    """

    criterion: ClassVar[Criterion | None] = "linkability"
    needs: ClassVar[tuple[str, ...]] = ("register",)
    identifies: ClassVar[bool] = True
    of_groups: ClassVar[bool] = True
    supposing: ClassVar[str] = "if they took part"

    def fits(self, view: View[object, object]) -> bool:
        """Quasi-identifiers are shown that stand for raw values; those that a mask has changed are looked for by distance."""
        return (
            is_table(view)
            and not is_masked(view)
            and any(name in released_table(view).table.column_names for name in view.schema.quasi)
        )

    def knowledge_from(self, entries: Mapping[str, object]) -> Register:
        """The register."""
        return Register(entries["register"])

    def run(self, view: TableView, knowledge: Register | pa.Table | None = None) -> AttackResult:
        """Look every person of the register up in the release."""
        register = knowledge if isinstance(knowledge, Register) else _register(knowledge)
        named = register.columns or {n: n for n in view.schema.quasi if n in register.table.column_names}
        classes = classes_of(view)
        shared = [name for name in classes.quasi if name in named]
        if not shared:
            raise MissingColumn(_no_column_shared(classes.quasi, register.table.column_names))
        require_columns(register.table, [named[name] for name in shared], "the register")
        tuple_of_person, people, matched, person, klass = look_up(classes, register, shared, named)
        everybody = classes.records
        unit = view.schema.unit
        if unit is not None and unit in classes.table.column_names:
            owners = encoded(classes.table, unit)
            everybody, matched = len(owners.values), _different(classes, owners.codes, matched, person, klass)
        return _result(classes, tuple_of_person, people, matched, person, klass, shared, _counted(view), everybody)


def _no_column_shared(quasi: Sequence[str], columns: Sequence[str]) -> str:
    """What to do about a register without a quasi-identifier of the release; those in another case are named."""
    other_case = [name for name in quasi if name.lower() in {column.lower() for column in columns}]
    listed = ", ".join(f"'{name}'" for name in other_case or quasi)
    case = " (upper and lower case count)" if other_case else ""
    return (
        f"linkage: the register shares no quasi-identifier with the release{case}. On the command line: give its columns "
        f"the names that they have in the release, {listed}. In Python also: "
        "Register(table, columns={'column of the release': 'column of the register'})"
    )


def look_up(
    classes: ReleasedClasses, register: Register, shared: list[str], named: Mapping[str, str]
) -> tuple[Ids, Ids, Ids, Ids, Ids]:
    """Per distinct combination of raw values: its people, the records it matches, and the pairs (combination,
    class)."""
    columns = [encoded(register.table, named[name]) for name in shared]
    tuple_of_person, first = grouped([column.codes for column in columns], register.table.num_rows)
    people = np.bincount(tuple_of_person, minlength=first.size).astype(np.int64)
    positions = [classes.quasi.index(name) for name in shared]
    coverings = [
        covering(meanings(classes, position), column.values) for position, column in zip(positions, columns, strict=True)
    ]
    batches = list(matching([column.codes[first] for column in columns], coverings, [classes.shown[p] for p in positions]))
    person = np.concatenate([batch[0] for batch in batches]) if batches else np.zeros(0, dtype=np.int64)
    klass = np.concatenate([batch[1] for batch in batches]) if batches else np.zeros(0, dtype=np.int64)
    matched = np.bincount(person, weights=classes.units[klass], minlength=first.size).astype(np.int64)
    return tuple_of_person, people, matched, person, klass


def _different(classes: ReleasedClasses, owners: Ids, matched: Ids, person: Ids, klass: Ids) -> Ids:
    """The different units that each combination matches: one with records in several matching classes is one."""
    width = int(owners.max(initial=0)) + 1
    of_class, owner = np.divmod(np.unique(classes.of_row * width + owners), width)
    starts = np.searchsorted(of_class, np.arange(classes.sizes.size + 1))
    order = np.argsort(person, kind="stable")
    ends = np.searchsorted(person[order], np.arange(matched.size + 1))
    different = matched.copy()
    for combination in np.flatnonzero(np.diff(ends) > 1):
        chosen = klass[order[ends[combination] : ends[combination + 1]]]
        different[combination] = np.unique(np.concatenate([owner[starts[c] : starts[c + 1]] for c in chosen])).size
    return different


def _result(
    classes: ReleasedClasses,
    tuple_of_person: Ids,
    people: Ids,
    matched: Ids,
    person: Ids,
    klass: Ids,
    shared: list[str],
    counted: tuple[str, str],
    everybody: int,
) -> AttackResult:
    register = int(tuple_of_person.size)
    matching = matched > 0
    expected = float((people[matching] / matched[matching]).sum())
    alone = int(people[matched == 1].sum())
    by_class = np.bincount(klass, weights=people[person], minlength=classes.sizes.size)
    one_person = int(classes.sizes[by_class == 1].sum())
    smallest = int(matched[matching].min()) if matching.any() else 0
    everybody = max(everybody, 1)
    word, caveat = counted
    by = f"{len(shared)} shared attribute{'s' * (len(shared) != 1)}"
    return AttackResult(
        attack="Linkage",
        success=share(expected, register),
        baseline=1 / everybody if register else 0.0,
        interval=wilson(expected, register),
        targets=register,
        finding=(
            f"No entry of the register ({register:,} in all) matches a {word} of the release by {by}: this tells nothing about "
            "the people of the release."
            if not matching.any()
            else f"Of {register:,} entries in the register {alone:,} match exactly one {word} by {by}; picking among "
            f"the matching {word}s is right for {percent(share(expected, register))} of them {Linkage.supposing}, "
            f"blind guessing for {percent(1 / everybody)}.{caveat}"
        ),
        details={
            "identified": alone,
            "expected_correct": expected,
            "without_match": int(people[~matching].sum()),
            "smallest_candidate_group": smallest,
            "records_matching_one_person": one_person,
            "shared_attributes": len(shared),
        },
    )


def _counted(view: TableView) -> tuple[str, str]:
    """What a pick finds, and what that leaves out where the release does not show whose records are one person's."""
    if not hides_units(view):
        return ("unit" if of_units(view) else "record"), ""
    return "record", " Right is the very record: one person may stand behind several, and then more picks find the person."


def _register(knowledge: object) -> Register:
    import pyarrow as pa

    if isinstance(knowledge, pa.Table):
        return Register(knowledge)
    raise InputError("linkage needs a register as knowledge: an Arrow table of people, or Register(table, columns=…)")
