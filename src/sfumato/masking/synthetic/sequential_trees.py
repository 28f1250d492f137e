"""Sequential trees: synthetic records made column by column, each from a decision tree on the columns made before.

The first column is resampled; every next cell takes the value of a random record in the same leaf. Reiter, "Using CART to
generate partially synthetic public use microdata", Journal of Official Statistics 21, 2005; Nowok, Raab, Dibben, "synthpop:
bespoke creation of synthetic data in R", Journal of Statistical Software 74, 2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from sfumato.core.errors import ParameterError
from sfumato.core.plain_data import Plain
from sfumato.core.ranges import Count
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, NumberColumn, Records
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept
from sfumato.masking.columns import DifferentColumns
from sfumato.masking.synthetic.fully_synthetic import FullySynthetic, check_values
from sfumato.masking.synthetic.leaf_donors import LeafSize, Trees
from sfumato.masking.transparency import Test


@dataclass(frozen=True)
class SequentialTrees(FullySynthetic):
    """Draw synthetic records from a chain of decision trees.

    `order` names the columns in the order they are made (default: as they stand in the table); columns that it leaves out
    follow. A leaf has at least `min_leaf` records and lies at most `max_depth` splits deep. Without `smooth` every cell is
    the cell of some record: rare numbers are published as they are; `smooth=True` adds noise to numbers that keeps mean and
    variance of each leaf. Missing cells are modelled: a missing category is a value, a missing number is drawn first.

    Fully synthetic is not the same as safe: a leaf of few records that agree gives them back as they are. Measure it.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(1_000), schema=sf.data.sample_schema())
    >>> made = sf.SequentialTrees(columns=("sex", "age", "income"), smooth=True).apply(people, seed=1)
    >>> made.result.table.column_names
    ['sex', 'age', 'income']
    """

    order: Annotated[DifferentColumns | None, "the columns in the order in which they are made"] = None
    min_leaf: LeafSize = 5
    max_depth: Annotated[Count | None, "the most splits in a row"] = None
    smooth: Annotated[bool, "whether numbers get noise, so that none is published as it is"] = False

    def check(self, records: Records, people: Microdata) -> None:
        """The order names masked columns; every column has values for a leaf at least."""
        unknown = [name for name in self.order or () if name not in records.names]
        if unknown:
            raise ParameterError(f"SequentialTrees: order names column '{unknown[0]}', which is not synthesised")
        check_values("SequentialTrees", records, self.min_leaf)

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Column by column, given the columns made before."""
        trees = Trees(self.min_leaf, self.max_depth, self.smooth)
        by_name = {column.name: column for column in records.columns}
        order = self._ordered(records.names)
        size = self.rows_of(context)
        original: list[NumberColumn | CategoryColumn] = []
        synthetic: list[NumberColumn | CategoryColumn] = []
        for position, name in enumerate(order):
            context.progress("synthesising", position, len(order))
            synthetic.append(trees.drawn(by_name[name], original, synthetic, size, draws))
            original.append(by_name[name])
        values = {column.name: column.values if isinstance(column, NumberColumn) else column.codes for column in synthetic}
        return Change(values, unrelated=True, published={**self.tells(records.names), "rows": size})

    def tells(self, names: tuple[str, ...]) -> Plain:
        """The model, the order of the columns, the smallest leaf, and how many records were made."""
        order = list(self._ordered(names))
        return {"model": "decision trees in sequence", "order": order, "min_leaf": self.min_leaf, "rows": Test(self.fits)}

    def _ordered(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*(self.order or ()), *names)))

    def keeps(self) -> tuple[Kept, ...]:
        """The marginals, approximately: each leaf gives its values back with their frequencies."""
        if self.smooth:
            return (Kept("mean"), Kept("variance"), Kept("frequencies", note="of categories"))
        return (Kept("mean"), Kept("variance"), Kept("frequencies"))
