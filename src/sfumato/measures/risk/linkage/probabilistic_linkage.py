"""Probabilistic record linkage: columns vote for or against a link by how rarely they agree by chance.

The chances m (agreement of a right pair) and u (of a wrong pair) of every column are found by expectation-maximisation over the
counts of agreement patterns of all pairs; the weights are log₂(m/u) and log₂((1 − m)/(1 − u)). Fellegi, Sunter, "A theory for
record linkage", JASA 64(328), 1969; Jaro, "Advances in record-linkage methodology as applied to matching the 1985 census of
Tampa, Florida", JASA 84(406), 1989.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, aligned, as_masked
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, NumberColumn, Records
from sfumato.kernels.linkage.agreement import TOLERANCE, agreement_counts, best_agreement
from sfumato.kernels.linkage.points import Metric, own_is_nearest
from sfumato.measures.parameters import BinsOrGrids, ComparedColumns
from sfumato.measures.risk.linkage.linked import linked_score, owners_of, with_assumption, with_classes

Real = NDArray[np.float64]
Int = NDArray[np.int64]
Codes = NDArray[np.int32]

#: Columns whose patterns are counted together; more columns are cut into blocks of equal size.
_BLOCK = 10
#: Voting columns up to which sets of columns are gone through to find the best partner; their number doubles with each.
_MOST_BY_SETS = 12
#: Numbers of intervals an intruder would try; the last one tells all values apart.
_GRID = (10, 30, 100, 1 << 62)
_STEPS = 1000
_STILL = 1e-10
#: Chances stay this far from 0 and 1, so that no weight is infinite.
_EDGE = 1e-6


@dataclass(frozen=True, eq=False)
class FellegiSunter:
    """The fitted model: chances of agreement in right (`m`) and wrong (`u`) pairs, by column."""

    m: Real = field(repr=False)
    u: Real = field(repr=False)

    @property
    def agreement(self) -> Real:
        """What an agreeing column adds."""
        return np.asarray(np.log2(self.m / self.u), dtype=np.float64)

    @property
    def disagreement(self) -> Real:
        """What a disagreeing column adds (negative where it speaks against a link)."""
        return np.asarray(np.log2((1.0 - self.m) / (1.0 - self.u)), dtype=np.float64)

    @property
    def costs(self) -> Real:
        """What a disagreement costs against an agreement; a column that agrees less often in right pairs has no vote."""
        return np.maximum(self.agreement - self.disagreement, 0.0)


@dataclass(frozen=True)
class ProbabilisticLinkage(Measure[Microdata, Compared]):
    """Share of masked records that the highest total weight gives back to their person, ties shared.

    Categories agree when equal, numbers when both lie in the same of `bins` intervals with equally many original values
    (columns with no more different values than that: when nearest to the same of them). By default 10, 30, 100 and as many as
    there are values are tried, and the best of these four grids counts: an intruder might know which. It is chosen by its right
    links, so the value is a little above what an intruder reaches who has to guess the grid. A missing value agrees with nothing.
    A record that was published several times is found when any of its rows is; a bare table is taken to stand in the order of
    the original. Against an intruder who holds the original values of the `columns` compared and does not know the method.
    Chances are estimated in blocks of at most 10 columns; with more than 12 columns the best partner is sought in a k-d tree,
    in time that grows with columns × pairs of records at worst instead of doubling with every column. Parts: the 95 % interval,
    the baseline of blind guessing, and the weight of each column (agreement against disagreement).

    >>> people = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())
    >>> ProbabilisticLinkage(columns=("age", "income")).score(people, people).better
    'lower'
    """

    bins: BinsOrGrids = None
    columns: ComparedColumns = None
    key: ClassVar[str] = "probabilistic_linkage"
    masked: ClassVar[bool] = True

    def score(self, original: Microdata, released: Compared) -> Score:
        """The share."""
        masked = as_masked(released, original)
        left, right = aligned(original, masked, self.columns)
        owner = owners_of(masked)
        credit, model = probabilistic_credit(left, right, self.bins, owner)
        parts = {f"weight {name}": float(cost) for name, cost in zip(left.names, model.costs, strict=True)}
        meaning = "share of people whom the masked record with the highest agreement weight gives away"
        if self.bins is None and left.numbers:
            meaning += ", numbers cut by the best of four grids"
        credit = with_classes(credit, masked, left.names)
        return linked_score(self.key, credit, owner, with_assumption(meaning, released), parts)

    def per_record(self, original: Microdata, released: Compared) -> Real:
        """For each masked record the chance that it is linked to its person."""
        masked = as_masked(released, original)
        left, right = aligned(original, masked, self.columns)
        return with_classes(probabilistic_credit(left, right, self.bins, owners_of(masked))[0], masked, left.names)


def probabilistic_credit(
    original: Records, masked: Records, bins: int | None = None, owner: Int | None = None
) -> tuple[Real, FellegiSunter]:
    """Per aligned record the chance of being linked correctly, and the model behind the links.

    `owner` says whose a row is where somebody has several: any of them is a right link.
    """
    if not original.size or not masked.size:
        raise InputError("there are no records to link: the original or the released table is empty")
    grid = _GRID if bins is None else (bins,)
    if not original.numbers:
        grid = grid[:1]  # categories are not cut
    tried = [_linked(original, masked, count, owner) for count in dict.fromkeys(grid)]
    return max(tried, key=lambda pair: float(pair[0].sum()))


def _linked(original: Records, masked: Records, bins: int, owner: Int | None) -> tuple[Real, FellegiSunter]:
    both = [agreement_codes(a, b, bins) for a, b in zip(original.columns, masked.columns, strict=True)]
    rows = masked.size
    of_row = np.arange(rows) if owner is None else np.unique(owner, return_inverse=True)[1].reshape(-1)
    times = np.bincount(of_row)
    model = fitted([a for a, _ in both], [b for _, b in both], int(times @ times))
    # what weighs no more than the tolerance decides nothing
    counted = model.costs > TOLERANCE * float(model.costs.sum())
    voting = [pair for pair, counts in zip(both, counted, strict=True) if counts]
    weights = model.costs[counted]
    if not voting:
        return times[of_row] / rows, model
    slack = TOLERANCE * float(weights.sum())
    if len(voting) > _MOST_BY_SETS:
        left, right = (
            np.column_stack([np.where(codes >= 0, codes, np.nan) for codes in side]) for side in zip(*voting, strict=True)
        )
        return own_is_nearest(left, right, Metric.unequal(weights), owner, slack), model
    best, tied = best_agreement([a for a, _ in voting], [b for _, b in voting], weights)
    own = np.zeros(rows)
    for (a, b), weight in zip(voting, weights, strict=True):
        own += np.where((a == b) & (a >= 0), weight, 0.0)
    right = np.bincount(of_row, own >= best - slack)[of_row]
    return np.minimum(right / np.maximum(tied, 1), 1.0), model


def agreement_codes(
    original: NumberColumn | CategoryColumn, masked: NumberColumn | CategoryColumn, bins: int
) -> tuple[Codes, Codes]:
    """Both columns as codes that are equal where the values agree; -1 is missing."""
    if isinstance(original, CategoryColumn) or isinstance(masked, CategoryColumn):
        return original.codes, masked.codes  # type: ignore[union-attr]
    values = np.unique(original.values[original.known])
    if values.size <= bins:
        edges = values[1:] / 2.0 + values[:-1] / 2.0
    else:
        # a quarter, so that no difference overflows
        edges = np.unique(4.0 * np.quantile(original.values[original.known] / 4.0, np.arange(1, bins) / bins))
    sides = []
    for column in (original, masked):
        codes = np.searchsorted(edges, column.values, side="right").astype(np.int32)
        sides.append(np.where(column.known, codes, np.int32(-1)))
    return sides[0], sides[1]


def fitted(left: list[Codes], right: list[Codes], right_pairs: int | None = None) -> FellegiSunter:
    """The model of two files whose columns are codes; by default every record of the first has one partner in the second."""
    pairs = left[0].size if right_pairs is None else right_pairs
    share = pairs / (left[0].size * right[0].size)
    blocks = ceil(len(left) / _BLOCK)
    m, u = [], []
    for block in range(blocks):
        chosen = range(len(left) * block // blocks, len(left) * (block + 1) // blocks)
        counts = agreement_counts([left[c] for c in chosen], [right[c] for c in chosen])
        agreeing, by_chance = expectation_maximisation(counts, share)
        m.append(agreeing)
        u.append(by_chance)
    return FellegiSunter(np.concatenate(m), np.concatenate(u))


def expectation_maximisation(counts: NDArray[np.int64], matches: float) -> tuple[Real, Real]:
    """Chances m and u that make the counts of agreement patterns most likely, for a known share of right pairs."""
    columns = int(counts.size).bit_length() - 1
    patterns = (np.arange(counts.size)[:, None] >> np.arange(columns)) & 1
    occurring = counts > 0
    weights, agree = counts[occurring].astype(np.float64), patterns[occurring].astype(np.float64)
    total = weights.sum()
    u = np.clip(weights @ agree / total, _EDGE, 1.0 - _EDGE)
    m = np.maximum(u, 0.9)
    if matches >= 1.0:  # one pair, and it is right
        return np.clip(weights @ agree / total, _EDGE, 1.0 - _EDGE), u
    for _ in range(_STEPS):
        right = np.log(matches) + agree @ np.log(m) + (1.0 - agree) @ np.log1p(-m)
        wrong = np.log1p(-matches) + agree @ np.log(u) + (1.0 - agree) @ np.log1p(-u)
        believed = weights / (1.0 + np.exp(np.clip(wrong - right, -700.0, 700.0)))
        rest = weights - believed
        before = np.concatenate([m, u])
        m = np.clip(believed @ agree / max(believed.sum(), 1e-300), _EDGE, 1.0 - _EDGE)
        u = np.clip(rest @ agree / max(rest.sum(), 1e-300), _EDGE, 1.0 - _EDGE)
        if np.abs(np.concatenate([m, u]) - before).max() < _STILL:
            break
    return m, u
