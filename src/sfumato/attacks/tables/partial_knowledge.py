"""Partial knowledge of sets: a few items of a person's set leave few records, and those show the rest of it.

All choices of up to m items that a published set allows are tried; the records of the same class that hold the chosen items
are the candidates. Terrovitis, Mamoulis, Kalnis, "Privacy-preserving anonymization of set-valued data", PVLDB 1(1), 2008.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain, combinations
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from sfumato.attacks.adversary import TableAttack, is_table, only, target_in, text
from sfumato.attacks.tables.candidates import target_classes
from sfumato.attacks.tables.classes import Ids, ReleasedClasses, classes_of, encoded, released_table, require_columns
from sfumato.core.declared import Declared, require
from sfumato.core.errors import InputError, Unsupported
from sfumato.core.ranges import ColumnName, Count, Whole
from sfumato.core.texts import percent
from sfumato.core.view import AttackResult, Criterion, Detail, View
from sfumato.data.masked import TableView
from sfumato.data.texts.values import split
from sfumato.measures.risk.success import share, wilson

#: Choices of items that are counted at most: more would not fit or not end.
MAX_CHOICES = 20_000_000

Items = frozenset[str]


@dataclass(frozen=True, eq=False)
class KnownSet(Declared):
    """What is known about one person: `items` of the set, as they are published (generalised where the release is), and
    raw quasi-identifiers (`target`) where there are any."""

    items: Annotated[frozenset[str], "items of the set, as they are published"] = field(repr=False)
    target: Annotated[Mapping[str, str | None], "raw quasi-identifiers of the person"] = field(
        default_factory=lambda: MappingProxyType({}), repr=False
    )


@dataclass(frozen=True)
class PartialKnowledge(TableAttack[KnownSet]):
    """The adversary knows up to `items` items of a target's set, and the class by the other quasi-identifiers.

    `column` names the set-valued column (by default the only one). Without knowledge everybody is attacked: `choice`
    "worst" knows the items that help most, "average" any `items` of the set (or all of a shorter one). With a `KnownSet`
    one person is. Success: the share of people whose record is picked among the candidates. Blind guessing picks any
    record: 1/n. `details` counts people left with fewer than `k` candidates, whose further items are learnt.
    """

    items: Annotated[int, Whole(at_least=0), "items of the set that are known, at the most"] = 2
    column: Annotated[ColumnName | None, "the set-valued column; the only one where left out"] = None
    choice: Annotated[Literal["worst", "average"], "which items are known"] = "worst"
    k: Annotated[Count, "candidates below which people are counted"] = 2

    criterion: ClassVar[Criterion | None] = "singling out"
    helped_by: ClassVar[tuple[str, ...]] = ("items", "target")
    unasked: ClassVar[bool] = False  # it supposes that items of everybody's set are known

    def fits(self, view: View[object, object]) -> bool:
        """The column with sets is shown, and no other could be meant."""
        return is_table(view) and (self.column in _set_columns(view) if self.column else len(_set_columns(view)) == 1)

    def knowledge_from(self, entries: Mapping[str, object]) -> KnownSet | None:
        """Some items of one person's set, and quasi-identifiers where they are known."""
        only(entries, *self.helped_by)
        target = target_in(entries)
        items: Any = entries.get("items", [])
        listed = isinstance(items, list) and None not in items
        require(listed, "knowledge: items must be a list of items as they are published")
        names = frozenset(str(text(item, "items")) for item in items)
        return KnownSet(names, target) if entries else None

    def run(self, view: TableView, knowledge: KnownSet | None = None) -> AttackResult:
        """Attack everybody, or the one person of a `KnownSet`."""
        if knowledge is not None and not isinstance(knowledge, KnownSet):
            raise InputError("partial knowledge of sets needs nothing, or a KnownSet about one person")
        name = self._column_of(view)
        if knowledge is not None:
            left = candidates(view, knowledge, name)
            target_details = {"candidates": int(left.size), "known_items": len(knowledge.items)}
            return self._result(view, name, 1 / left.size if left.size else 0.0, 1, target_details)
        classes, sets, of_row = _sets(view, name)
        klass, shown, people = _different(classes.of_row, of_row)
        sharing = self._sharing(klass, shown, people, sets)
        worst, average = np.empty(people.size), np.empty(people.size)
        for place, (k, s) in enumerate(zip(klass.tolist(), shown.tolist(), strict=True)):
            counts = [(len(choice), sharing[k, choice]) for choice in self._choices(sets[s])]
            most = max(size for size, _ in counts)
            full = [1 / count for size, count in counts if size == most]
            worst[place], average[place] = min(count for _, count in counts), sum(full) / len(full)
        expected = {"worst": float((people / worst).sum()), "average": float((people * average).sum())}
        details = {
            "below_k": int(people[worst < self.k].sum()),
            "k": self.k,
            "fewest_candidates": int(worst.min()) if worst.size else 0,
            "expected_correct_worst": expected["worst"],
            "expected_correct_average": expected["average"],
        }
        return self._result(view, name, expected[self.choice], int(people.sum()), details)

    def _result(self, view: TableView, name: str, expected: float, targets: int, details: Mapping[str, Detail]) -> AttackResult:
        records = released_table(view).table.num_rows
        subject = "These items" if "candidates" in details else f"Up to {self.items} known item{'s' * (self.items != 1)} of a set"
        return AttackResult(
            attack="PartialKnowledge",
            success=share(expected, targets),
            baseline=share(1, records),
            interval=wilson(expected, targets),
            targets=targets,
            finding=(
                f"{subject} in '{name}' pick the right record for {percent(share(expected, targets))} of {targets:,} "
                f"target{'s' * (targets != 1)}; a blind pick among {records:,} records is right for {percent(share(1, records))}."
            ),
            details={"attribute": name, "known_items": self.items, **details},
        )

    def _sharing(self, klass: Ids, shown: Ids, people: Ids, sets: list[Items]) -> dict[tuple[int, tuple[str, ...]], int]:
        """For each class and each choice of items the records that hold them."""
        number = sum(
            sum(math.comb(len(sets[s]), size) for size in range(min(self.items, len(sets[s])) + 1)) for s in shown.tolist()
        )
        if number > MAX_CHOICES:
            raise Unsupported(f"the sets have more than {MAX_CHOICES:,} combinations of up to {self.items} items; assume fewer")
        sharing: dict[tuple[int, tuple[str, ...]], int] = {}
        for k, s, count in zip(klass.tolist(), shown.tolist(), people.tolist(), strict=True):
            for choice in self._choices(sets[s]):
                sharing[k, choice] = sharing.get((k, choice), 0) + count
        return sharing

    def _choices(self, items: Items) -> chain[tuple[str, ...]]:
        ordered = sorted(items)
        return chain.from_iterable(combinations(ordered, size) for size in range(min(self.items, len(ordered)) + 1))

    def _column_of(self, view: TableView) -> str:
        table, named = released_table(view).table, _set_columns(view)
        if self.column is not None:
            require_columns(table, [self.column], view.name)
            if self.column not in named:
                raise Unsupported(f"column '{self.column}' holds no sets; give it the separator of its items in the schema")
            return self.column
        if len(named) != 1:
            raise Unsupported(f"this release has {len(named)} set-valued columns; name one with column=")
        return named[0]


def _set_columns(view: TableView) -> list[str]:
    present = released_table(view).table.column_names
    return [name for name, column in view.schema.columns.items() if column.items and name in present]


def candidates(view: TableView, knowledge: KnownSet, column: str) -> Ids:
    """The released records that may be the person's: of a class that fits, holding all known items."""
    classes, sets, of_row = _sets(view, column)
    holding = np.array([knowledge.items <= items for items in sets], dtype=np.bool_)
    inside = np.zeros(len(classes.sizes), dtype=np.bool_)
    inside[target_classes(classes, knowledge.target) if knowledge.target else slice(None)] = True
    return np.flatnonzero(inside[classes.of_row] & holding[of_row]).astype(np.int64) if of_row.size else of_row


def _sets(view: TableView, column: str) -> tuple[ReleasedClasses, list[Items], Ids]:
    """The classes by the other quasi-identifiers, the different sets that occur, and the set of each row."""
    table = released_table(view).table
    require_columns(table, [column], view.name)
    quasi = [name for name in view.schema.quasi if name in table.column_names and name != column]
    separator = view.schema.columns[column].items or ""
    shown = encoded(table, column)
    numbers: dict[Items, int] = {}
    of_text = np.array([numbers.setdefault(split(text, separator), len(numbers)) for text in shown.values], dtype=np.int64)
    return classes_of(view, quasi), list(numbers), of_text[shown.codes] if shown.codes.size else shown.codes


def _different(klass: Ids, shown: Ids) -> tuple[Ids, Ids, Ids]:
    """The different pairs of class and set, and how many records have each."""
    pairs, people = np.unique(np.stack([klass, shown], axis=1), axis=0, return_counts=True)
    return pairs[:, 0], pairs[:, 1], people.astype(np.int64)
