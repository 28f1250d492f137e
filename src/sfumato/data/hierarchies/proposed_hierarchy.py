"""A hierarchy that was begun from the values of a column: placed by a kind of values, by a list of groups, by likeness, or not
yet.

Values that nothing places are listed with empty cells, which no reader of hierarchies accepts: their owner fills them in.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from sfumato.core.errors import HierarchyError, InputError
from sfumato.core.texts import counted
from sfumato.data.hierarchies.hierarchy import ROOT, Hierarchy
from sfumato.data.hierarchies.hierarchy_builders import build, cover
from sfumato.data.hierarchies.level_sizes import LevelSize, level_sizes
from sfumato.data.schema import Column, HierarchySpec
from sfumato.data.value_kinds.listing import Evidence
from sfumato.data.writers import atomic_path

#: As many values as a person may still look through in a table program.
MOST_VALUES = 100_000


@dataclass(frozen=True)
class ProposedHierarchy:
    """What was begun for a column; all of it describes the data and is their owner's.

    `made_by` says how values were placed: a kind of values, `groups`, `similar`, `tree`, or `template`. `placed` has what
    stands above a value, from fine to coarse and without the root; `levels` names these levels. `listed` are further values
    that the data do not have. `parameters` describe the tree where no list of values is needed. `nearest` proposes, for a value
    that nothing places, the one it may be a misspelling of; `respelt` were placed in another spelling. `evidence` weighs every
    kind of values, and `proposed_kind` is the one that may be proposed, if one is.
    """

    column: str
    made_by: str
    levels: tuple[str, ...]
    values: tuple[str, ...] = field(repr=False)
    counts: tuple[int, ...] = field(repr=False)
    placed: Mapping[str, tuple[str, ...]] = field(repr=False)
    missing: int = 0
    listed: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    parameters: HierarchySpec | None = None
    nearest: Mapping[str, str] = field(default_factory=dict, repr=False)
    respelt: tuple[str, ...] = field(default=(), repr=False)
    evidence: tuple[Evidence, ...] = field(default=(), repr=False)
    proposed_kind: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def unplaced(self) -> tuple[str, ...]:
        """The values that stand below no group yet, the most frequent first."""
        return tuple(value for value in self.values if value not in self.placed)

    @cached_property
    def records(self) -> int:
        """How many records have a value."""
        return sum(self.counts)

    @property
    def unplaced_records(self) -> int:
        """How many records have such a value."""
        return sum(count for value, count in zip(self.values, self.counts, strict=True) if value not in self.placed)

    @property
    def rows(self) -> list[list[str]]:
        """The file: one value per row, the most frequent first and those that nothing places at the end, with empty cells."""
        above = {**{value: self.placed[value] for value in self.values if value in self.placed}, **self.listed}
        rows = [[value, *groups, ROOT] for value, groups in above.items()]
        return rows + [[value, *[""] * len(self.levels), ROOT] for value in self.unplaced]

    def text(self) -> str:
        """The file as text, as hierarchies of the kind `file` are written."""
        blank = sum(value != value.strip() or not value for value in self.values)
        if blank:
            raise HierarchyError(
                f"column '{self.column}' has {counted(blank, 'value')} with blanks around or without a character, which a "
                "hierarchy file leaves out. Remove the blanks from the data, or declare such values as missing."
            )
        return _lines(self.rows)

    def save(self, path: str | Path, *, overwrite: bool = False) -> tuple[Path, ...]:
        """Write the hierarchy file, unless parameters describe the tree, and beside it the values with their counts
        (`NAME.values.csv`); both are for their owner's eyes and readable by nobody else. Existing files are kept unless
        `overwrite`."""
        target = Path(path)
        if target.suffix.lower() != ".csv":
            raise InputError(f"a hierarchy file is a CSV file, and '{target}' does not end with .csv. Name it so.")
        files = {target.with_suffix(".values.csv"): self.listing()}
        if self.parameters is None:
            files = {target: self.text(), **files}
        for file in files:
            if os.path.lexists(file) and not overwrite:
                raise InputError(f"'{file}' exists already. Name another file (--output), or pass --overwrite.")
        for file, text in files.items():
            with atomic_path(file, mode=0o600) as temporary:
                temporary.write_text(text, encoding="utf-8", newline="")
        return tuple(files)

    @property
    def separator(self) -> str | None:
        """What the schema has to say about the file, where its first line would be read with another separator."""
        first = self.text().partition("\n")[0]
        return ";" if first.count(",") > first.count(";") else None

    def listing(self) -> str:
        """All values with their counts, and what to know about each, as text for the owner's eyes."""
        respelt = set(self.respelt)
        rows = [["value", "records", "note"]]
        for value, count in zip(self.values, self.counts, strict=True):
            note = "spelt otherwise" if value in respelt else ""
            if value not in self.placed:
                note = f"not placed; nearest: {self.nearest[value]}" if value in self.nearest else "not placed"
            rows.append([value, str(count), note])
        return _lines(rows)

    def spec(self, file: str) -> HierarchySpec:
        """The description for the schema, with the name of the file where there is one."""
        if self.parameters is not None:
            return self.parameters
        return HierarchySpec(file=file, separator=self.separator, leaves="data")

    def tree(self) -> Hierarchy:
        """The tree as it stands: a value that nothing places is shown as it is, or as the root."""
        occurring: list[str | None] = [*self.values, *([None] if self.missing else [])]
        if self.parameters is None:
            rows = [[row[0], *(cell or row[0] for cell in row[1:])] for row in self.rows]
            tree = Hierarchy.from_levels(rows, name=f"hierarchy of '{self.column}'")
        else:
            tree = build(self.column, Column(hierarchy=self.parameters), [value for value in self.values if value in self.placed])
        return cover(tree, occurring, name=self.column, missing="root")

    def preview(self, k: int = 5) -> tuple[LevelSize, ...]:
        """What each level makes of the data: values left, loss, groups with fewer than k records."""
        occurring: list[str | None] = [*self.values, *([None] if self.missing else [])]
        counts = [*self.counts, *([self.missing] if self.missing else [])]
        return level_sizes(self.tree(), occurring, counts, k)


def _lines(rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=";", lineterminator="\n").writerows(rows)
    return out.getvalue()


def refuse_too_many(values: Sequence[str], column: str) -> None:
    """More values than anybody looks through are no list to edit."""
    if len(values) > MOST_VALUES:
        raise HierarchyError(
            f"column '{column}' has {len(values):,} different values, too many for a list to edit (at most {MOST_VALUES:,}). "
            'Describe it by parameters: intervals, cuts, mask, dates or frequency, such as { mask = "right", width = 5 }.'
        )
    if not values:
        raise HierarchyError(f"column '{column}' has no values, so there is nothing to group. Name another column.")
