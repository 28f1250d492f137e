"""Records drawn from a model, clique by clique, each given what it shares with the clique before.

Within every group of records that share those values, the new values are spread by systematic sampling over a shuffled
order: shares are met to less than one record, and which record gets which value is left to chance.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.randomness import Randomness, permutation
from sfumato.dp.synthesis.coded_columns import Codes, uniform
from sfumato.dp.synthesis.estimation import Fitted
from sfumato.dp.synthesis.graphical_model import Table
from sfumato.dp.synthesis.junction_tree import Columns, cells


def draw(fitted: Fitted, rows: int, source: Randomness) -> Codes:
    """That many records as codes; only the model is looked at."""
    tree, sizes = fitted.model.tree, fitted.model.sizes
    drawn = np.zeros((rows, len(sizes)), dtype=np.int64, order="F")
    if rows == 0:
        return drawn
    for clique, separator, table in zip(tree.cliques, tree.separators, fitted.beliefs.cliques, strict=True):
        new = tuple(column for column in clique if column not in separator)
        groups = np.zeros(rows, dtype=np.int64)
        for column in separator:
            groups = groups * sizes[column] + drawn[:, column]
        chosen = _spread(_conditional(table, clique, separator, new, sizes), groups, source)
        for column, values in zip(new, np.unravel_index(chosen, [sizes[column] for column in new]), strict=True):
            drawn[:, column] = values
    return drawn


def _conditional(table: Table, clique: Columns, separator: Columns, new: Columns, sizes: tuple[int, ...]) -> Table:
    """Cumulative shares of the new columns' values, one row per combination of the separator."""
    order = [clique.index(column) for column in (*separator, *new)]
    shares = np.transpose(table, order).reshape(cells(separator, sizes), cells(new, sizes))
    sums = shares.sum(axis=1, keepdims=True)
    shares = np.where(sums > 0, shares, 1.0)
    cumulative = np.cumsum(shares, axis=1)
    return np.asarray(cumulative / cumulative[:, -1:])


def _spread(cumulative: Table, parents: Codes, source: Randomness) -> Codes:
    """For each record a value, by its group's shares."""
    groups, values = cumulative.shape
    shuffled = permutation(source, parents.size)
    order = shuffled[np.argsort(parents[shuffled], kind="stable")]
    sorted_groups = parents[order]
    sizes = np.bincount(sorted_groups, minlength=groups)
    starts = np.cumsum(sizes) - sizes
    place = np.arange(parents.size) - starts[sorted_groups]
    point = (place + uniform(source, groups)[sorted_groups]) / sizes[sorted_groups]
    ladder = (cumulative + np.arange(groups)[:, None]).reshape(-1)
    drawn = np.searchsorted(ladder, sorted_groups + point, side="right") - sorted_groups * values
    chosen = np.empty(parents.size, dtype=np.int64)
    chosen[order] = np.clip(drawn, 0, values - 1)
    return chosen
