"""Probabilistic record linkage: columns vote for or against a link by how rarely they agree by chance.

The weights are log₂(m/u) and log₂((1 − m)/(1 − u)) of the chances m (agreement of a right pair) and u (of a wrong pair) of every
column. The owner knows which pairs are right and counts both. An intruder estimates them by expectation-maximisation over the
counts of agreement patterns of all pairs, which takes correlated columns for right pairs and may find the wrong weights.
Fellegi, Sunter, "A theory for
record linkage", JASA 64(328), 1969; Jaro, "Advances in record-linkage methodology as applied to matching the 1985 census of
Tampa, Florida", JASA 84(406), 1989.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError
from sfumato.core.randomness import StreamRandomness
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, aligned, as_masked
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, NumberColumn, Records
from sfumato.kernels.linkage.agreement import TOLERANCE, agreement_counts, best_agreement
from sfumato.kernels.linkage.points import Metric, own_is_nearest
from sfumato.kernels.sampling.draws import Draws
from sfumato.measures.parameters import BinsOrGrids, ComparedColumns
from sfumato.measures.risk.linkage.linked import blind_pick, linked_score, owners_of, with_assumption, with_classes

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
#: Where the estimation starts: m between u and 1. The likeliest end of all starts counts.
_STARTS = (0.9, 0.5, 0.99)
#: Random pairings over which the floor is averaged.
_PAIRINGS = 16
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
    The weights are counted from the truth, or estimated as by an intruder who has no truth, whichever links more people.
    Chances are estimated in blocks of at most 10 columns; with more than 12 columns the best partner is sought in a k-d tree,
    in time that grows with columns × pairs of records at worst instead of doubling with every column. Parts: the
    share linked by either kind of weights, the standard error of the floor, and the weight of each column (agreement against
    disagreement). The floor is the same choice among grids and weights under random pairings, averaged over 16 of them; with more
    than 12 columns it is that of one grid, 1/(masked records).

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
        links = probabilistic_links(left, right, self.bins, owner)
        parts = links.parts | {f"weight {name}": float(cost) for name, cost in zip(left.names, links.model.costs, strict=True)}
        meaning = "share of people whom the masked record with the highest agreement weight gives away"
        if self.bins is None and left.numbers:
            meaning += ", numbers cut by the best of four grids"
        credit = with_classes(links.credit, masked, left.names)
        return linked_score(self.key, credit, owner, with_assumption(meaning, released), parts, links.floor)

    def per_record(self, original: Microdata, released: Compared) -> Real:
        """For each masked record the chance that it is linked to its person."""
        masked = as_masked(released, original)
        left, right = aligned(original, masked, self.columns)
        return with_classes(probabilistic_links(left, right, self.bins, owners_of(masked)).credit, masked, left.names)


@dataclass(frozen=True, eq=False)
class LinkedByVotes:
    """Per aligned record the chance of being linked correctly, the model behind the links, the share linked by weights counted
    from the truth and by estimated ones, and what chance gives, with its standard error."""

    credit: Real = field(repr=False)
    model: FellegiSunter = field(repr=False)
    counted: float
    estimated: float
    floor: float
    floor_error: float

    @property
    def parts(self) -> dict[str, float]:
        """What a score says about them."""
        return {
            "weights counted from the truth": self.counted,
            "weights estimated by the intruder": self.estimated,
            "standard error of the floor": self.floor_error,
        }


@dataclass(frozen=True, eq=False)
class _Way:
    """One grid with one model: the credits of the true pairing, and those of any other."""

    model: FellegiSunter
    credit: Real
    under: Callable[[Int], Real] | None


def probabilistic_links(original: Records, masked: Records, bins: int | None = None, owner: Int | None = None) -> LinkedByVotes:
    """Link by every grid, with weights of both kinds; the way that links most people counts.

    `owner` says whose a row is where somebody has several: any of them is a right link.
    """
    if not original.size or not masked.size:
        raise InputError("there are no records to link: the original or the released table is empty")
    grid = _GRID if bins is None else (bins,)
    if not original.numbers:
        grid = grid[:1]  # categories are not cut
    of_row = np.arange(masked.size) if owner is None else np.unique(owner, return_inverse=True)[1].reshape(-1)
    times = np.bincount(of_row)
    counted, codes = [], []
    for count in dict.fromkeys(grid):
        codes.append([agreement_codes(a, b, count) for a, b in zip(original.columns, masked.columns, strict=True)])
        counted.append(_linked(codes[-1], counted_model(codes[-1], of_row), of_row, owner))
    place = max(range(len(counted)), key=lambda grid: float(counted[grid].credit.sum()))
    left, right = zip(*codes[place], strict=True)
    estimated = _linked(codes[place], fitted(list(left), list(right), int(times @ times)), of_row, owner)
    best = max(counted[place], estimated, key=lambda way: float(way.credit.sum()))
    floor, error = _floor([*counted, estimated], blind_pick(masked.size, owner), of_row)
    return LinkedByVotes(
        best.credit, best.model, float(counted[place].credit.mean()), float(estimated.credit.mean()), floor, error
    )


def _floor(ways: list[_Way], blind: float, of_row: Int) -> tuple[float, float]:
    """The mean, and its standard error, of the best way's share over random pairings; a single way has `blind` exactly."""
    open_ways = [way.under for way in ways if way.under is not None]
    if len(open_ways) < len(ways):
        return blind, 0.0
    draws = Draws(StreamRandomness("pairings of a linkage"))
    shares = []
    for _ in range(_PAIRINGS):
        pairing = draws.permutation(of_row.size)
        shares.append(max(float(under(pairing).mean()) for under in open_ways))
    return max(float(np.mean(shares)), blind), float(np.std(shares, ddof=1) / np.sqrt(_PAIRINGS))


def _linked(both: list[tuple[Codes, Codes]], model: FellegiSunter, of_row: Int, owner: Int | None) -> _Way:
    rows, times = of_row.size, np.bincount(of_row)
    # what weighs no more than the tolerance decides nothing
    counted = model.costs > TOLERANCE * float(model.costs.sum())
    voting = [pair for pair, counts in zip(both, counted, strict=True) if counts]
    weights = model.costs[counted]
    if not voting:
        guess = times[of_row] / rows
        return _Way(model, guess, lambda pairing: guess)
    slack = TOLERANCE * float(weights.sum())
    if len(voting) > _MOST_BY_SETS:
        left, right = (
            np.column_stack([np.where(codes >= 0, codes, np.nan) for codes in side]) for side in zip(*voting, strict=True)
        )
        return _Way(model, own_is_nearest(left, right, Metric.unequal(weights), owner, slack), None)
    best, tied = best_agreement([a for a, _ in voting], [b for _, b in voting], weights)

    def under(pairing: Int | None) -> Real:
        own = np.zeros(rows)
        for (a, b), weight in zip(voting, weights, strict=True):
            shown = b if pairing is None else b[pairing]
            own += weight * ((a == shown) & (a >= 0))
        right = np.bincount(of_row, own >= best - slack)[of_row]
        return np.asarray(np.minimum(right / np.maximum(tied, 1), 1.0))

    return _Way(model, under(None), under)


def counted_model(both: list[tuple[Codes, Codes]], of_row: Int) -> FellegiSunter:
    """The model whose chances are counted: m over the right pairs, u over all others; `of_row` says whose each row is.

    Row j of a person with t rows is the masked half of t right pairs, all with the same original.
    """
    rows, times = of_row.size, np.bincount(of_row)[of_row].astype(np.float64)
    right_pairs = float(times.sum())
    m, u = [], []
    for a, b in both:
        agreeing = float(times @ ((a == b) & (a >= 0)))
        width = int(max(a.max(initial=-1), b.max(initial=-1))) + 1
        ours, theirs = (np.bincount(side[side >= 0], minlength=width).astype(np.float64) for side in (a, b))
        m.append(agreeing / right_pairs)
        u.append((float(ours @ theirs) - agreeing) / max(float(rows) ** 2 - right_pairs, 1.0))
    return FellegiSunter(np.clip(m, _EDGE, 1.0 - _EDGE), np.clip(u, _EDGE, 1.0 - _EDGE))


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
    """Chances m and u that make the counts of agreement patterns most likely, for a known share of right pairs: of several
    starts the one that ends at the greatest likelihood."""
    columns = int(counts.size).bit_length() - 1
    patterns = (np.arange(counts.size)[:, None] >> np.arange(columns)) & 1
    occurring = counts > 0
    weights, agree = counts[occurring].astype(np.float64), patterns[occurring].astype(np.float64)
    total = weights.sum()
    overall = np.clip(weights @ agree / total, _EDGE, 1.0 - _EDGE)
    if matches >= 1.0:  # one pair, and it is right
        return overall, overall
    ends = [_climbed(weights, agree, np.maximum(overall, start), overall, matches) for start in _STARTS]
    m, u, _ = max(ends, key=lambda end: end[2])
    return m, u


def _climbed(weights: Real, agree: Real, m: Real, u: Real, matches: float) -> tuple[Real, Real, float]:
    """Where the estimation ends from one start, and the log-likelihood there.

    Steps of expectation-maximisation shrink slowly, so each two of them are extended as far as their shrinking suggests, and
    that is kept where it is likelier than the two steps alone. Varadhan, Roland, "Simple and globally convergent methods for
    accelerating the convergence of any EM algorithm", Scandinavian Journal of Statistics 35, 2008.
    """
    columns, others = agree.shape[1], 1.0 - agree
    design = np.hstack([agree, others])
    prior, rest_prior = np.log(matches), np.log1p(-matches)

    def step(chances: Real) -> tuple[Real, float]:
        """The chances after one step, and the log-likelihood before it."""
        logarithms = np.log(np.concatenate([chances, 1.0 - chances]).reshape(2, 2, columns))
        right = prior + design @ logarithms[:, 0].ravel()
        wrong = rest_prior + design @ logarithms[:, 1].ravel()
        either = np.logaddexp(right, wrong)
        believed = weights * np.exp(right - either)
        unbelieved = weights - believed
        both = np.concatenate(
            [believed @ agree / max(believed.sum(), 1e-300), unbelieved @ agree / max(unbelieved.sum(), 1e-300)]
        )
        return np.minimum(np.maximum(both, _EDGE), 1.0 - _EDGE), float(weights @ either)

    chances = np.concatenate([m, u])
    after, likelihood = step(chances)
    for _ in range(_STEPS // 3):
        later, _ = step(after)
        first, second = after - chances, later - 2.0 * after + chances
        if np.abs(later - after).max() < _STILL:
            chances = later
            break
        bend = float(np.sqrt(second @ second))
        reach = max(1.0, float(np.sqrt(first @ first)) / bend) if bend > 0.0 else 1.0
        extended = np.minimum(np.maximum(chances + 2.0 * reach * first + reach * reach * second, _EDGE), 1.0 - _EDGE)
        beyond, reached = step(extended)
        if reached >= likelihood:
            chances, after, likelihood = extended, beyond, reached
        else:
            chances = later
            after, likelihood = step(later)
    _, likelihood = step(chances)
    return chances[:columns], chances[columns:], likelihood
