"""The frame of fully synthetic data: every published column is drawn from a model, and no record stands behind a row.

Rubin, "Statistical disclosure limitation", Journal of Official Statistics 9, 1993.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sfumato.core.errors import Unsupported, all_at_once
from sfumato.core.ranges import Count
from sfumato.data.records import Kind, Records
from sfumato.masking.base import Context, Mask
from sfumato.masking.transparency import VisibleTable


@dataclass(frozen=True, kw_only=True)
class FullySynthetic(Mask):
    """Records drawn from a model of all masked columns; all other columns are dropped.

    `size` is the number of synthetic records (default: as many as there are records). With strata each stratum gets its
    share, rounded up.
    """

    size: Annotated[Count | None, "how many synthetic records are made; as many as there are if left out"] = None

    handles: ClassVar[frozenset[Kind]] = frozenset({"number", "ordered", "category"})
    synthetic: ClassVar[bool] = True

    def rows_of(self, context: Context) -> int:
        """How many synthetic records the current stratum gets."""
        mine = int(context.rows.size)
        return mine if self.size is None else -(-self.size * mine // int(context.table.num_rows))

    def fits(self, rows: object, visible: VisibleTable) -> bool:
        """Whether a stratum can have got so many records."""
        most = visible.rows
        return type(rows) is int and rows >= 0 and (most is None or rows == most or (bool(self.strata) and rows < most))


def check_values(method: str, records: Records, needed: int) -> None:
    """Refuse columns with so few values (in one stratum) that a model of them would only repeat them."""
    counts = {column.name: int(column.known.sum()) for column in records.columns}
    faults = [
        f"column '{name}' has {count} values (in one stratum), and at least {needed} are needed so that they are not "
        "repeated; leave it out of columns=(…) or use larger strata"
        for name, count in counts.items()
        if 0 < count < needed
    ]
    all_at_once(Unsupported, method, faults)
