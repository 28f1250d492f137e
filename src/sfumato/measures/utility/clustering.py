"""Clustering agreement: do the masked records fall into the same groups as the original ones?

Both tables are clustered by k-means or fuzzy c-means and the partitions of the same records compared. Adjusted Rand index:
Hubert, Arabie, "Comparing partitions", Journal of Classification 2, 1985; variation of information: Meilă, "Comparing
clusterings", Journal of Multivariate Analysis 98, 2007; fuzzy c-means: Bezdek, "Pattern recognition with fuzzy objective
function algorithms", Plenum 1981; use for masked data: Torra, "Data privacy", Springer 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported
from sfumato.core.randomness import default
from sfumato.core.ranges import Number, Whole
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, compared
from sfumato.data.microdata import Microdata
from sfumato.kernels.sampling.draws import Draws
from sfumato.measures.parameters import ComparedColumns, DrawSeed
from sfumato.measures.utility.features import Encoding

Real = NDArray[np.float64]
Int = NDArray[np.int64]

_ROUNDS = 100
_STARTS = 5
_TOUCHING = 1e-200  # squared distance of a record on a centre, so that quotients stay finite


@dataclass(frozen=True)
class ClusteringAgreement(Measure[Microdata, Compared]):
    """How far the clusters of the masked records are from those of the original: 1 − adjusted Rand index, in [0, 1].

    `clusters` is their number, over the `columns`; another `seed`, other starts. `method` is "k_means", or "fuzzy" for fuzzy
    c-means with exponent `fuzziness`, whose loss is half the mean absolute difference of memberships after matching the
    clusters. Each masked row is compared with the record behind it; where no record stands behind a row, the original records
    are assigned to both sets of centres.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(500), schema=sf.data.sample_schema())
    >>> ClusteringAgreement(3, columns=("age", "income")).score(people, people).value
    0.0
    """

    clusters: Annotated[int, Whole(at_least=2), "how many clusters are formed"] = 5
    method: Annotated[Literal["k_means", "fuzzy"], "how clusters are formed"] = "k_means"
    columns: ComparedColumns = None
    fuzziness: Annotated[float, Number(above=1), "the exponent of fuzzy c-means"] = 2.0
    seed: DrawSeed = "clustering"
    key: ClassVar[str] = "clustering"
    masked: ClassVar[bool] = True

    def score(self, original: Microdata, released: Compared) -> Score:
        """The loss; adjusted Rand, Rand and Jaccard index and the variation of information (in bits) as parts."""
        left, right, masked = compared(original, released, self.columns)
        encoding = Encoding.of(left)
        points, shown = encoding.points(left), encoding.points(right)
        if np.unique(points, axis=0).shape[0] < self.clusters:
            raise Unsupported(f"the original has fewer than {self.clusters} different records; ask for fewer clusters")
        seed = Draws(default(self.seed)).seed()
        centres = k_means(points, self.clusters, seed)
        others = k_means(shown, min(self.clusters, np.unique(shown, axis=0).shape[0]), seed, near=centres)
        if self.method == "fuzzy":
            centres, others = (fuzzy_c_means(p, c, self.fuzziness) for p, c in ((points, centres), (shown, others)))
        if masked.rows is None:
            before, after = points, points
        else:
            before, after = points[masked.rows], shown
        agreement = Agreement.of(nearest_centre(before, centres), nearest_centre(after, others))
        parts = {
            "adjusted Rand": agreement.adjusted_rand,
            "Rand": agreement.rand,
            "Jaccard": agreement.jaccard,
            "variation of information": agreement.variation_of_information,
        }
        value = 1.0 - max(0.0, agreement.adjusted_rand)
        meaning = "how far the clusters of the masked records are from the original ones: 0 the same, 1 unrelated"
        if self.method == "fuzzy":
            value = parts["memberships"] = membership_difference(
                memberships(before, centres, self.fuzziness), memberships(after, others, self.fuzziness)
            )
            meaning = "share of the records' memberships in clusters that moved"
        return Score(self.key, value, "lower", meaning, MappingProxyType(parts))


@dataclass(frozen=True)
class Agreement:
    """Indices of how far two partitions of the same records agree, from the pairs of records each keeps together."""

    adjusted_rand: float
    rand: float
    jaccard: float
    variation_of_information: float

    @classmethod
    def of(cls, first: Int, second: Int) -> Agreement:
        """From the table of how many records are in each pair of clusters."""
        table = np.zeros((int(first.max()) + 1, int(second.max()) + 1))
        np.add.at(table, (first, second), 1.0)
        rows, columns, records = table.sum(axis=1), table.sum(axis=0), float(first.size)
        both, in_first, in_second, pairs = (_pairs(counts) for counts in (table, rows, columns, np.array([records])))
        expected = in_first * in_second / pairs if pairs else 0.0
        largest = (in_first + in_second) / 2
        either = in_first + in_second - both
        return cls(
            adjusted_rand=(both - expected) / (largest - expected) if largest > expected else 1.0,
            rand=(pairs + 2 * both - in_first - in_second) / pairs if pairs else 1.0,
            jaccard=both / either if either else 1.0,
            variation_of_information=max(0.0, 2 * _entropy(table) - _entropy(rows) - _entropy(columns)),
        )


def k_means(points: Real, clusters: int, seed: int, near: Real | None = None) -> Real:
    """Centres of the best of several starts; `near` is one more start, so that a clustering that still fits is found again."""
    from sklearn.cluster import KMeans

    best = KMeans(clusters, n_init=_STARTS, random_state=seed).fit(points)
    if near is not None and len(near) == clusters:
        again = KMeans(clusters, init=near, n_init=1, random_state=seed).fit(points)
        best = again if again.inertia_ <= best.inertia_ else best
    centres: Real = best.cluster_centers_.astype(np.float64)
    return centres


def fuzzy_c_means(points: Real, centres: Real, fuzziness: float) -> Real:
    """Centres of fuzzy c-means, from these starting centres."""
    for _ in range(_ROUNDS):
        weights = memberships(points, centres, fuzziness) ** fuzziness
        moved = (weights.T @ points) / np.maximum(weights.sum(axis=0), 1e-300)[:, None]
        settled = float(np.abs(moved - centres).max()) < 1e-6
        centres = moved
        if settled:
            break
    return centres


def memberships(points: Real, centres: Real, fuzziness: float) -> Real:
    """u_ic ∝ distance^(−2/(m − 1)), summing to 1 for each record; a record on a centre belongs to it alone."""
    squares = _squared_distances(points, centres)
    squares = np.maximum(squares, _TOUCHING)
    near = (squares / squares.min(axis=1, keepdims=True)) ** (-1.0 / (fuzziness - 1.0))
    shares: Real = near / near.sum(axis=1, keepdims=True)
    return shares


def membership_difference(first: Real, second: Real) -> float:
    """Half the mean absolute difference, clusters matched one to one so that it is least; in [0, 1]."""
    from scipy.optimize import linear_sum_assignment

    size = max(first.shape[1], second.shape[1])
    left, right = (np.pad(side, ((0, 0), (0, size - side.shape[1]))) for side in (first, second))
    costs = np.array([[np.abs(left[:, i] - right[:, j]).sum() for j in range(size)] for i in range(size)])
    chosen = linear_sum_assignment(costs)
    return float(costs[chosen].sum() / (2 * len(first)))


def nearest_centre(points: Real, centres: Real) -> Int:
    """The centre nearest to each record."""
    nearest: Int = np.argmin(_squared_distances(points, centres), axis=1).astype(np.int64)
    return nearest


def _squared_distances(points: Real, centres: Real) -> Real:
    squares = points @ (-2.0 * centres.T)
    squares += (points**2).sum(axis=1, keepdims=True) + (centres**2).sum(axis=1)
    return np.maximum(squares, 0.0)


def _pairs(counts: Real) -> float:
    return float((counts * (counts - 1) / 2).sum())


def _entropy(counts: Real) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())
