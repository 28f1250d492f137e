"""Set-valued columns: how a text becomes a set of items, how a set becomes a text, and how items generalise.

The schema names the separator; white space around items, empty items and repeated ones mean nothing. Wherever values are
counted or published a set is written in one way, sorted, so that equal sets are equal texts; the empty set is the empty text,
and a missing value stays missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sfumato.core.errors import HierarchyError
from sfumato.data import hierarchy_builders
from sfumato.data.hierarchy import Hierarchy
from sfumato.data.schema import Column, Schema

if TYPE_CHECKING:
    import pyarrow as pa


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


def split(text: str | None, separator: str) -> frozenset[str]:
    """The items of a text; a missing value has none."""
    if text is None:
        return frozenset()
    return frozenset(item for piece in text.split(separator) if (item := piece.strip()))


def sorted_set(text: str | None, separator: str) -> str | None:
    """The one text of a set, however it was written."""
    return None if text is None else separator.join(sorted(split(text, separator)))


def sorted_sets(table: pa.Table, schema: Schema, but: Collection[str] = ()) -> pa.Table:
    """The same rows with every set-valued column, `but` these, written in the one way; the table itself where it is already."""
    from sfumato.data.column_types import CodedText

    for name, column in schema.columns.items():
        if column.items is None or name not in table.column_names or name in but:
            continue
        coded = CodedText.of(table.column(name))
        given = coded.values.to_pylist()
        meant = [sorted_set(text, column.items) for text in given]
        if meant != given:
            written = coded.with_values(meant).to_arrow().cast(table.schema.field(name).type)
            table = table.set_column(table.column_names.index(name), table.schema.field(name), written)
    return table
