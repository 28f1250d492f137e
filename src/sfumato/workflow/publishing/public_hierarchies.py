"""Which hierarchies go with a release: those that were declared, as parameters or files, so that texts can be
read and claims measured.

What was learnt from the data stays with the owner: a tree over the values that occurred would list the
values of suppressed people too. Where a claim cannot be measured without one, it covers the released values alone. Frequency
groups of a claim about a population are learnt from the population: its parameters are published, from which whoever has
the population learns the same tree, and the tree itself where the owner declares the population public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.data import hierarchy_builders
from sfumato.data.hierarchy import ROOT, Hierarchy, from_tree
from sfumato.data.relation import COUNT
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.data.values import texts

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.core.guarantees.base import ClassGuarantee
    from sfumato.workflow.publishing.claims import References

#: Descriptions that say nothing about the data, and may be published as they are.
_PARAMETERS = ("intervals", "mask", "dates")


def schema_with_hierarchies(
    public: Schema,
    owner: Schema,
    table: pa.Table,
    guarantees: Sequence[ClassGuarantee],
    trees: Mapping[str, Hierarchy],
    references: References,
    folder: Path,
) -> Schema:
    """The public schema with its hierarchies; trees are written into `folder` as files beside it."""
    with_population = any(guarantee.needs_population for guarantee in guarantees)
    measured = {g.sensitive for g in guarantees if getattr(g, "distance", None) == "hierarchical"}
    columns = dict(public.columns)
    written = 0
    for name, column in public.columns.items():
        described = owner.columns[name]
        spec = described.hierarchy
        tree = None
        if spec is not None and (spec.file is not None or spec.tree is not None):
            tree = _declared(name, spec, owner.folder)
        elif spec is not None and column.role == "quasi" and _by_parameters(spec):
            columns[name] = column.model_copy(update={"hierarchy": spec.model_copy(update={"missing": "refuse"})})
        elif name in measured and name in trees:
            tree = _of_released_values(trees[name], table, name)
        elif with_population and column.role == "quasi" and spec is not None and spec.frequency is not None:
            tree = _of_population(name, described, references)
            columns[name] = column.model_copy(update={"hierarchy": spec.model_copy(update={"missing": "refuse"})})
        if tree is not None and column.role in ("quasi", "sensitive"):
            written += 1
            file = f"hierarchy-{written}.csv"
            # as whoever reads the file has it, numbers in their order: `verify` reads it and writes it again
            Hierarchy.from_levels(tree.rows()).save(folder / file, mode=0o644)
            spec = HierarchySpec(file=file, separator=";", missing="root")
            columns[name] = column.model_copy(update={"hierarchy": spec})
    return public.replace(columns=columns)


def _declared(name: str, spec: HierarchySpec, folder: str | None) -> Hierarchy:
    """The tree as the owner wrote it, without any leaf that was added because it occurred in the data."""
    if spec.file is not None:
        path = Path(spec.file)
        return Hierarchy.load(path if folder is None else Path(folder) / path, separator=spec.separator)
    return from_tree(spec.tree or {}, name=name)


def _by_parameters(spec: HierarchySpec) -> bool:
    return any(getattr(spec, kind) is not None for kind in _PARAMETERS)


def _of_released_values(tree: Hierarchy, table: pa.Table, name: str) -> Hierarchy:
    shown = {text for text in texts(table.column(name).unique()) if text is not None}
    rows = [row for row in tree.rows() if row[0] in shown]
    return Hierarchy.from_levels(rows or [[ROOT] * (tree.height + 1)], ordered=tree.ordered)


def _of_population(name: str, column: Column, references: References) -> Hierarchy | None:
    """The frequency groups of a population that is public; None for one that is not."""
    if references.population is None or not references.population_public:
        return None
    counts: dict[str | None, int] = {}
    grouped = references.population.relation.group([name])
    for text, count in zip(texts(grouped.column(name)), grouped.column(COUNT).to_pylist(), strict=True):
        counts[text] = counts.get(text, 0) + int(count)
    return hierarchy_builders.build(name, column, list(counts), list(counts.values()))
