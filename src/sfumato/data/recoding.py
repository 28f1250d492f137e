"""What a search decides: into which class every record goes, and which values that class shows.

`Recoding` speaks in codes of the class table; `RecodingTable` is the same decision in values, ready to be joined
with the rows by any engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

SUPPRESSED = -1


@dataclass(frozen=True, eq=False)
class Shown:
    """The values a quasi-identifier may show in the release: text, loss and, per class, which one (`of_class`).

    `labels[i]` is None for a missing value; `leaf[i]` is True when it is an original value; `sizes[i]` is the
    number of domain values it stands for and `bounds[i]` its numeric extent where it is a range made by a
    partitioning.
    """

    labels: tuple[str | None, ...]
    loss: NDArray[np.float64]
    sizes: NDArray[np.float64]
    leaf: NDArray[np.bool_]
    of_class: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Recoding:
    """Cells of the class table assigned to classes.

    A cell is a distinct combination of quasi-identifiers and sensitive values. Entry e assigns `count[e]` records
    of cell `cell[e]`, starting with its record number `first[e]`, to class `klass[e]` or to `SUPPRESSED`. A method
    that never separates equal records has exactly one entry per cell.
    """

    cell: NDArray[np.int64]
    first: NDArray[np.int64]
    count: NDArray[np.int64]
    klass: NDArray[np.int64]
    shown: tuple[Shown, ...] = field(repr=False)
    classes: int = 0

    @classmethod
    def whole_cells(
        cls, klass: NDArray[np.int64], cell_counts: NDArray[np.int64], shown: tuple[Shown, ...], classes: int
    ) -> Recoding:
        """One entry per cell."""
        cells = np.arange(klass.size, dtype=np.int64)
        return cls(
            cells, np.zeros(klass.size, dtype=np.int64), cell_counts.astype(np.int64), klass.astype(np.int64), shown, classes
        )

    @property
    def split(self) -> bool:
        """True when some cell's records go to different classes."""
        return bool(self.cell.size != np.unique(self.cell).size)

    @property
    def records(self) -> int:
        """All records, suppressed ones included."""
        return int(self.count.sum())

    @property
    def suppressed(self) -> int:
        """How many records are suppressed."""
        return int(self.count[self.klass == SUPPRESSED].sum())

    def class_sizes(self) -> NDArray[np.int64]:
        """Records per class."""
        return self._sizes

    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        kept = self.klass >= 0
        return np.bincount(self.klass[kept], weights=self.count[kept], minlength=self.classes).astype(np.int64)

    def loss(self, weights: NDArray[np.float64]) -> float:
        """Mean loss per record with these attribute weights (which sum to 1); a suppressed record costs 1."""
        if self.records == 0:
            return 0.0
        sizes = self.class_sizes().astype(np.float64)
        kept = sum(float(w) * float((sizes * s.loss[s.of_class]).sum()) for w, s in zip(weights, self.shown, strict=True))
        return (kept + self.suppressed) / self.records

    def loss_per_attribute(self) -> NDArray[np.float64]:
        """Mean loss of each attribute, suppressed records included with 1."""
        sizes = self.class_sizes().astype(np.float64)
        total = max(self.records, 1)
        return np.array([(float((sizes * s.loss[s.of_class]).sum()) + self.suppressed) / total for s in self.shown])


@dataclass(frozen=True, eq=False)
class RecodingTable:
    """A recoding in values: `keys` are the cells as `Relation.group` returned them, `classes` the released values
    per class.

    Entry e: records `first[e] … first[e] + count[e] - 1` of key `key[e]` show class `klass[e]`; those with
    `SUPPRESSED` are dropped. `quasi` names the columns that are replaced.
    """

    keys: pa.Table
    quasi: Sequence[str]
    key: NDArray[np.int64]
    first: NDArray[np.int64]
    count: NDArray[np.int64]
    klass: NDArray[np.int64]
    classes: pa.Table
    split: bool

    @classmethod
    def of(cls, recoding: Recoding, keys: pa.Table, quasi: Sequence[str]) -> RecodingTable:
        """The recoding of a class table with these cells, for an engine to join with the rows."""
        import pyarrow as pa

        shown = zip(quasi, recoding.shown, strict=True)
        return cls(
            keys=keys,
            quasi=quasi,
            key=recoding.cell,
            first=recoding.first,
            count=recoding.count,
            klass=recoding.klass,
            classes=pa.table({name: _shown_column(values, keys.schema.field(name).type) for name, values in shown}),
            split=recoding.split,
        )


def _shown_column(shown: Shown, original: pa.DataType) -> pa.Array:
    """The released column per class: the original type when only original values are shown, text otherwise."""
    import pyarrow as pa

    used = np.unique(shown.of_class)
    dictionary = pa.array([shown.labels[int(node)] for node in used], type=pa.string())
    value_type = original.value_type if pa.types.is_dictionary(original) else original
    if not pa.types.is_string(value_type) and bool(shown.leaf[used].all()):
        try:
            dictionary = dictionary.cast(value_type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
    return dictionary.take(pa.array(np.searchsorted(used, shown.of_class))).dictionary_encode()
