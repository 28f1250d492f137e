"""Every node of a lattice, evaluated with dictionaries and the plain verifier: slow, and sharing nothing with the search."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.guarantees.k_anonymity import KAnonymity
from sfumato.core.guarantees.population import DeltaPresence
from sfumato.core.guarantees.risk import AverageRisk, UniquenessByModel
from sfumato.data.class_table import encode
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.texts.values import text_of
from sfumato.measures.guarantees.measure import measure
from tests.conformance.problems import People

Text = str | None


@dataclass(frozen=True)
class Node:
    """A level vector: how many records go, and the mean loss with them counted as 1; None when no suppression helps."""

    levels: tuple[int, ...]
    suppressed: int | None
    loss: float


def all_nodes(given: People, guarantees: Sequence[ClassGuarantee]) -> Iterator[Node]:
    """Every node of the lattice of a table."""
    coded = encode(given.microdata(), population=given.register())
    trees = dict(zip(coded.quasi, coded.hierarchies, strict=True))
    importance = {name: given.schema.columns[name].importance for name in trees}
    for levels in itertools.product(*(range(tree.height + 1) for tree in trees.values())):
        shown, losses = _generalised(given.table, trees, dict(zip(trees, levels, strict=True)), importance)
        kept = _kept_rows(given, shown, losses, guarantees)
        if kept is None:
            yield Node(levels, None, float("inf"))
            continue
        gone = given.table.num_rows - len(kept)
        yield Node(levels, gone, (sum(losses[row] for row in kept) + gone) / given.table.num_rows)


def best_loss(nodes: Sequence[Node], limit: int) -> float | None:
    """The smallest loss of the nodes that suppress at most `limit` records; None when there is none."""
    return min((node.loss for node in nodes if node.suppressed is not None and node.suppressed <= limit), default=None)


def _generalised(
    table: pa.Table, trees: dict[str, Hierarchy], levels: dict[str, int], importance: dict[str, float]
) -> tuple[pa.Table, list[float]]:
    losses = [0.0] * table.num_rows
    weight_sum = sum(importance.values())
    for name, tree in trees.items():
        rows = tree.rows()
        text_at = {row[0]: row[levels[name]] for row in rows}
        below: dict[Text, int] = {}
        for row in rows:
            below[row[levels[name]]] = below.get(row[levels[name]], 0) + 1
        texts = [text_of(value) for value in table.column(name).to_pylist()]
        for row, text in enumerate(texts):
            share = (below[text_at[text]] - 1) / (len(rows) - 1) if len(rows) > 1 else 0.0
            losses[row] += importance[name] / weight_sum * share
        position = table.column_names.index(name)
        table = table.set_column(position, name, pa.array([text_at[text] for text in texts], pa.string()))
    return table, losses


def _kept_rows(given: People, shown: pa.Table, losses: list[float], guarantees: Sequence[ClassGuarantee]) -> list[int] | None:
    """Rows of the classes that keep every promise; None when a failing class cannot be mended by suppression."""
    moving = [g for g in guarantees if getattr(g, "reference", "input") == "released"]
    together = [g for g in guarantees if isinstance(g, (AverageRisk, UniquenessByModel))]
    fixed = [g for g in guarantees if g not in moving and g not in together]
    if moving and together:  # then every class must have the size that is enough whatever the others are
        fixed.append(KAnonymity(max(2 if isinstance(g, UniquenessByModel) else math.ceil(1 / g.risk) for g in together)))
        together = []
    kept = list(range(shown.num_rows))
    # failing classes of the fixed promises go at once; the others are compared with what is left, again and again
    for asked in (fixed, moving):
        while kept:
            rest = shown.take(pa.array(kept, pa.int64()))
            found = [measure(rest, given.schema, g, original=given.table, population=given.population) for g in asked]
            failing = {kept[row] for measured in found for row in _failing_rows(rest, given, measured.failing.tolist())}
            unmended = any(not measured.holds for measured in found)
            if unmended and any(isinstance(g, DeltaPresence) and g.minimum > 0 for g in guarantees):
                return None
            if not failing:
                break
            kept = [row for row in kept if row not in failing]
    before = len(kept)
    kept = _kept_together(given, shown, kept, together, losses)
    if len(kept) < before and any(isinstance(g, DeltaPresence) and g.minimum > 0 for g in guarantees):
        return None
    if not kept and any(isinstance(g, DeltaPresence) and g.minimum > 0 for g in guarantees):
        return None
    return kept


def _kept_together(
    given: People, shown: pa.Table, kept: list[int], together: list[ClassGuarantee], losses: list[float]
) -> list[int]:
    """The smallest classes go one by one, of equally large ones those that lose most already, until all promises hold."""
    keys = list(zip(*(shown.column(name).to_pylist() for name in given.schema.quasi), strict=True))
    sizes, loss = Counter(keys[row] for row in kept), {keys[row]: losses[row] for row in kept}
    waiting = sorted(sizes, key=lambda key: (sizes[key], -loss[key]))
    while kept and not all(measure(shown.take(pa.array(kept, pa.int64())), given.schema, each).holds for each in together):
        first = waiting.pop(0)
        kept = [row for row in kept if keys[row] != first]
    return kept


def _failing_rows(rest: pa.Table, given: People, failing: list[int]) -> list[int]:
    """The rows of classes by number; classes are numbered in order of appearance."""
    columns = [rest.column(name).to_pylist() for name in given.schema.quasi]
    numbers: dict[tuple[Text, ...], int] = {}
    rows = []
    for row, key in enumerate(zip(*columns, strict=True)):
        if numbers.setdefault(key, len(numbers)) in failing:
            rows.append(row)
    return rows
