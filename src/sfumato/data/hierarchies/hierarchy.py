"""Domain generalisation hierarchies: a rooted tree of values per column, and how an owner writes one.

Leaves are the values of the data, inner nodes their generalisations. The tree is kept as a matrix of node ids, one
row per level and one column per leaf, which is what recoding needs; a branch that is shorter than the others
repeats its node upward, so unbalanced trees are ordinary. Samarati, "Protecting respondents' identities in
microdata release", IEEE TKDE 13(6), 2001.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import HierarchyError, all_at_once, forgetting
from sfumato.core.files import read_plain
from sfumato.core.platforms import set_mode
from sfumato.core.texts import counted
from sfumato.data.texts.values import as_numbers, text_of

ROOT = "*"
MAX_FILE_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A tree over `leaves`.

    `node_of[level, leaf]` is the node a leaf is generalised to; level 0 is the leaf itself. `labels[node]` is its
    text (None for a missing value), `sizes[node]` how many values of the domain lie below it. `ordered` says
    whether the leaves have a natural order (numbers, dates, a declared order), and then they are stored in it.
    """

    leaves: tuple[str | None, ...] = field(repr=False)
    node_of: NDArray[np.int32] = field(repr=False)
    labels: tuple[str | None, ...] = field(repr=False)
    sizes: NDArray[np.float64] = field(repr=False)
    total: float
    ordered: bool = False
    source: str = "declared"

    @classmethod
    def from_levels(
        cls,
        rows: Sequence[Sequence[str | None]],
        *,
        name: str = "hierarchy",
        sizes: Sequence[Sequence[float]] | None = None,
        ordered: bool | None = None,
        source: str = "declared",
    ) -> Hierarchy:
        """From one row per leaf: the leaf, then its generalisation at each level.

        `sizes` gives the domain size of each entry when the leaves listed are only part of the domain.
        """
        if not rows:
            raise HierarchyError(f"{name}: the hierarchy has no leaves")
        _check_rows(rows, name)
        leaves = [row[0] for row in rows]
        numbers = as_numbers(leaves)
        is_ordered = numbers is not None if ordered is None else ordered
        if ordered is None and numbers is not None:
            order = sorted(range(len(rows)), key=lambda i: (np.isnan(numbers[i]), numbers[i]))
            rows = [rows[i] for i in order]
            sizes = [sizes[i] for i in order] if sizes is not None else None
        return _assemble(rows, sizes, is_ordered, source)

    @classmethod
    @forgetting()
    def load(cls, path: str | Path, *, separator: str | None = None, verbatim: bool = False) -> Hierarchy:
        """Read a hierarchy file: one leaf per row, one level per column, `;` or `,` between them.

        Blanks around labels are left out; `verbatim` keeps them, for a file that `save` wrote.
        """
        file = Path(path)
        try:
            text = read_plain(file, HierarchyError, limit=MAX_FILE_BYTES, what="hierarchy file").decode(
                "utf-8" if verbatim else "utf-8-sig"
            )
        except FileNotFoundError:
            raise HierarchyError(f"there is no hierarchy file '{file}'") from None
        except UnicodeDecodeError:
            raise HierarchyError(f"hierarchy file '{file.name}' is not UTF-8 text") from None
        except OSError as error:
            raise HierarchyError(f"cannot read hierarchy file '{file.name}': {type(error).__name__}") from None
        first = text.splitlines()[0] if text.strip() else ""
        chosen = separator or (";" if first.count(";") >= first.count(",") and ";" in first else ",")
        try:
            lines = csv.reader(io.StringIO(text, newline=""), delimiter=chosen)
            rows = [[(entry if verbatim else entry.strip()) or None for entry in row] for row in lines if row]
        except TypeError:
            raise HierarchyError(
                "the separator of a hierarchy file is one character, and neither a quote nor a line break"
            ) from None
        except (csv.Error, ValueError):
            raise HierarchyError(f"hierarchy file '{file.name}' is not a table of text separated by '{chosen}'") from None
        return cls.from_levels(rows, name=f"hierarchy file '{file.name}'")

    @property
    def height(self) -> int:
        """The highest level."""
        return int(self.node_of.shape[0]) - 1

    @cached_property
    def index(self) -> dict[str | None, int]:
        """Leaf position by text."""
        return {leaf: position for position, leaf in enumerate(self.leaves)}

    @cached_property
    def loss(self) -> NDArray[np.float64]:
        """Loss metric of each node: (leaves below - 1) / (leaves of the tree - 1); 0 for a tree with one leaf."""
        if self.total <= 1:
            return np.zeros(len(self.labels))
        return (self.sizes - 1.0) / (self.total - 1.0)

    @cached_property
    def leaf_counts(self) -> NDArray[np.int64]:
        """How many of the listed leaves lie below each node."""
        below = np.zeros(len(self.labels), dtype=np.int64)
        for level in range(self.height + 1):
            counts = np.bincount(self.node_of[level], minlength=len(self.labels))
            below = np.maximum(below, counts)
        return below

    @cached_property
    def steps(self) -> NDArray[np.int32]:
        """`steps[level, leaf]`: how many tree edges lie between the leaf and its node at that level."""
        changed = np.diff(self.node_of, axis=0) != 0
        zero = np.zeros((1, len(self.leaves)), dtype=np.int32)
        return np.concatenate([zero, np.cumsum(changed, axis=0, dtype=np.int32)])

    @property
    def has_root(self) -> bool:
        """True when all leaves meet in one node at the highest level."""
        return bool(np.all(self.node_of[-1] == self.node_of[-1, 0]))

    def common_ancestor(self, positions: Iterable[int]) -> int:
        """The lowest node above all these leaves, never higher than needed."""
        chosen = np.fromiter(positions, dtype=np.int64)
        for level in range(self.height + 1):
            nodes = self.node_of[level, chosen]
            if np.all(nodes == nodes[0]):
                return int(nodes[0])
        raise HierarchyError("these leaves have no common ancestor: the hierarchy has no single root")

    def between(self, least: int, greatest: int) -> Hierarchy:
        """The same nodes on these levels alone, so that level 0 of the result is level `least` of this tree."""
        return replace(self, node_of=np.ascontiguousarray(self.node_of[least : greatest + 1]))

    def generalise(self, leaf: str | None, level: int) -> str | None:
        """The text a leaf is generalised to at a level."""
        return self.labels[int(self.node_of[level, self.index[leaf]])]

    def with_leaves(self, extra: Sequence[str | None]) -> Hierarchy:
        """Add leaves right below the root (missing values, or unknown ones when the schema says `missing = "root"`)."""
        new = [leaf for leaf in extra if leaf not in self.index]
        if not new:
            return self
        node_of, labels, sizes = self.node_of, list(self.labels), self.sizes.tolist()
        if not self.has_root or self.height == 0:
            node_of = np.vstack([node_of, np.full((1, len(self.leaves)), len(labels), dtype=np.int32)])
            labels.append(ROOT)
            sizes.append(self.total)
        elif np.any(node_of[:-1] == node_of[-1, 0]):
            # a group below that was the same as the root is so no longer: the new leaves are the root's alone
            labels.append(labels[int(node_of[-1, 0])])
            sizes.append(self.total)
            node_of = np.vstack([node_of[:-1], np.full((1, len(self.leaves)), len(labels) - 1, dtype=np.int32)])
        root = int(node_of[-1, 0])
        added = np.arange(len(labels), len(labels) + len(new), dtype=np.int32)
        columns = np.repeat(added[None, :], node_of.shape[0], axis=0)
        columns[-1] = root
        node_of = np.hstack([node_of, columns])
        total = self.total + len(new)
        sizes = [*sizes, *([1.0] * len(new))]
        sizes[root] = total
        return Hierarchy(
            leaves=(*self.leaves, *new),
            node_of=node_of,
            labels=_distinct_labels([*labels, *new], node_of),
            sizes=np.asarray(sizes),
            total=total,
            ordered=self.ordered,
            source=self.source,
        )

    def rows(self) -> list[list[str | None]]:
        """The tree in file form: one row per leaf, one entry per level."""
        return [[self.labels[int(node)] for node in self.node_of[:, i]] for i in range(len(self.leaves))]

    def save(self, path: str | Path, *, separator: str = ";", mode: int = 0o600) -> None:
        """Write the tree in file form; its values may be learnt from the data, so that it is its owner's unless `mode` says."""
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8", newline="") as out:
            set_mode(out.fileno(), mode)
            csv.writer(out, delimiter=separator, lineterminator="\n").writerows(self.rows())


def _check_rows(rows: Sequence[Sequence[str | None]], name: str) -> None:
    faults: list[str] = []
    width = len(rows[0])
    ragged = [i for i, row in enumerate(rows, 1) if len(row) != width]
    if ragged:
        listed = ", ".join(map(str, ragged[:10])) + (" …" if len(ragged) > 10 else "")
        which, levels = "row does" if len(ragged) == 1 else "rows do", "level" if width == 1 else "levels"
        faults.append(f"{len(ragged)} {which} not have {width} {levels} like the first (row{'s' * (len(ragged) > 1)} {listed})")
        all_at_once(HierarchyError, name, faults)
    listings: dict[str | None, int] = {}
    twice: dict[str | None, int] = {}
    for row in rows:
        listings[row[0]] = listings.get(row[0], 0) + 1
        if listings[row[0]] == 2:
            twice[row[0]] = 2
    if twice:
        listed = ", ".join(repr(leaf) for leaf in list(twice)[:10]) + (" …" if len(twice) > 10 else "")
        faults.append(f"{counted(len(twice), 'leaf is', 'leaves are')} listed more than once: {listed}")
    blank = [i for i, row in enumerate(rows, 1) if row[0] is not None and any(entry is None for entry in row[1:])]
    if blank:
        listed = ", ".join(map(str, blank[:10])) + (" …" if len(blank) > 10 else "")
        faults.append(
            f"{len(blank)} rows have an empty cell above their leaf (rows {listed}); a shorter branch repeats its value"
        )
    for level in range(1, width):
        parents: dict[str | None, str | None] = {}
        torn: list[str] = []
        for row in rows:
            below, above = row[level - 1], row[level]
            if parents.setdefault(below, above) != above and repr(below) not in torn:
                torn.append(repr(below))
        if torn and level > 1:
            faults.append(f"at level {level - 1} these values have two parents: {', '.join(torn[:10])}")
    all_at_once(HierarchyError, name, faults)


def _assemble(
    rows: Sequence[Sequence[str | None]], sizes: Sequence[Sequence[float]] | None, ordered: bool, source: str
) -> Hierarchy:
    count, width = len(rows), len(rows[0])
    node_of = np.zeros((width, count), dtype=np.int32)
    labels: list[str | None] = []
    members: list[int] = []
    node_sizes: list[float] = []
    for level in range(width):
        groups: dict[str | None, int] = {}
        group_sizes: dict[str | None, int] = {}
        for i in range(count):
            label = rows[i][level]
            group_sizes[label] = group_sizes.get(label, 0) + 1
        for i in range(count):
            label = rows[i][level]
            node = groups.get(label)
            if node is None:
                below = int(node_of[level - 1, i]) if level else -1
                if level and labels[below] == label and members[below] == group_sizes[label]:
                    node = below  # the branch is shorter here: the node repeats
                else:
                    node = len(labels)
                    labels.append(label)
                    members.append(group_sizes[label])
                    node_sizes.append(float(sizes[i][level]) if sizes is not None else float(group_sizes[label]))
                groups[label] = node
            node_of[level, i] = node
    total = float(sizes[0][-1]) if sizes is not None and len(set(node_of[-1].tolist())) == 1 else float(count)
    if sizes is not None and total < count:
        total = float(count)
    return Hierarchy(
        leaves=tuple(row[0] for row in rows),
        node_of=node_of,
        labels=_distinct_labels(labels, node_of),
        sizes=np.asarray(node_sizes),
        total=total,
        ordered=ordered,
        source=source,
    )


def _distinct_labels(labels: Sequence[str | None], node_of: NDArray[np.int32]) -> tuple[str | None, ...]:
    """One text per node: a group that bears the name of another node gets its level added, so that a release can be read."""
    level_of = np.zeros(len(labels), dtype=np.int64)
    for level in range(node_of.shape[0] - 1, -1, -1):
        level_of[node_of[level]] = level
    used = {labels[int(node)] for node in node_of[0]}
    result = list(labels)
    for node in range(len(labels)):
        if level_of[node] == 0:
            continue
        text = labels[node]
        while text in used:
            text = f"{text} (level {level_of[node]})"
        used.add(text)
        result[node] = text
    return tuple(result)


def from_tree(tree: Mapping[str, object], *, name: str = "hierarchy") -> Hierarchy:
    """From nested mappings: `{"Government": ["State-gov", "Local-gov"], "Private": []}`; an empty list is a leaf."""
    rows: list[list[str | None]] = []

    def walk(node: Any, path: list[str]) -> None:
        if isinstance(node, Mapping) and node:
            for label, below in node.items():
                walk(below, [*path, str(label)])
        elif isinstance(node, (list, tuple)) and node:
            for entry in node:
                if isinstance(entry, Mapping):
                    walk(entry, path)
                else:
                    rows.append([str(text_of(entry)), *reversed(path)])
        else:
            rows.append(list(reversed(path)))

    if not tree:
        raise HierarchyError(f"{name}: the hierarchy has no leaves")
    walk(tree, [])
    depth = max(len(row) for row in rows) if rows else 0
    # a shorter branch repeats its leaf, so that all rows reach the root at the same level
    filled = [[row[0]] * (depth - len(row)) + row + [ROOT] for row in rows]
    return Hierarchy.from_levels(filled, name=name)


def mask_width(values: Iterable[str | None], declared: int | None) -> int:
    """How many characters a mask counts: as many as declared, whatever the values; otherwise those of the longest."""
    return declared or max((len(value) for value in values if value is not None), default=1)
