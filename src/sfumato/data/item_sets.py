"""Set-valued columns: their separator, and how their items generalise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sfumato.core.errors import HierarchyError
from sfumato.data.hierarchies import hierarchy_builders
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.schema import Column
from sfumato.data.texts.values import split
from sfumato.kernels.classes.item_recoding import ItemTree


@dataclass(frozen=True, eq=False)
class ItemSets:
    """A set-valued column: its separator and, where the schema gives one, the taxonomy of its items."""

    separator: str
    taxonomy: Hierarchy | None = field(default=None, repr=False)

    @classmethod
    def of(cls, name: str, column: Column, texts: Iterable[str | None], folder: str | None = None) -> ItemSets:
        """Describe a column; every item that occurs must be in its taxonomy, and no label may hold the separator."""
        separator = column.items or ""
        if column.hierarchy is None:
            return cls(separator)
        items = sorted({item for text in texts for item in split(text, separator)})
        tree = hierarchy_builders.build(name, column.model_copy(update={"items": None}), items, None, folder)
        torn = sum(label is not None and separator in label for label in tree.labels)
        if torn:
            raise HierarchyError(
                f"{torn} labels in the hierarchy of column '{name}' hold the separator of its items, so a published set could "
                "not be read back. Rename them or choose another separator."
            )
        return cls(separator, tree)

    def split(self, text: str | None) -> frozenset[str]:
        """The items of a text."""
        return split(text, self.separator)

    def join(self, items: Iterable[str]) -> str:
        """The text of a set."""
        return self.separator.join(sorted(items))

    def tree(self, items: Iterable[str]) -> ItemTree:
        """The taxonomy as nodes to recode along, or the items alone where there is none."""
        tree = self.taxonomy
        if tree is None:
            names = sorted(items)
            return ItemTree(names, [0.0] * len(names), {name: i for i, name in enumerate(names)}, {})
        root = int(tree.node_of[-1, 0]) if tree.has_root else -1
        above: dict[int, int] = {}
        for path in tree.node_of.T.tolist():
            steps = list(dict.fromkeys(path))
            above.update((low, high) for low, high in zip(steps, steps[1:], strict=False) if high != root)
        leaf = {name: node for name, node in zip(tree.leaves, tree.node_of[0].tolist(), strict=True) if name is not None}
        return ItemTree([label or "" for label in tree.labels], tree.loss.tolist(), leaf, above)
