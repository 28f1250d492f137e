"""The distances that can be learnt for record linkage: weighted mean, OWA, Choquet integral, bilinear form.

Each is linear in its parameters θ, which lie in a convex set: the simplex for the first three (a 2-additive Choquet integral is a
weighted mean of differences and of minima and maxima of two of them; a general one of all their lattice polynomials), the
positive semidefinite matrices of trace 1 for the bilinear form. Abril, Navarro-Arribas, Torra, "Improving record linkage with
supervised learning for disclosure risk assessment", Information Fusion 13(4), 2012; Abril, Torra, Navarro-Arribas, "Supervised
learning using a symmetric bilinear form for record linkage", Information Fusion 26, 2015; Miranda, Combarro, Gil, "Extreme points
of some families of non-additive measures", European Journal of Operational Research 174(3), 2006.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported
from sfumato.core.randomness import StreamRandomness
from sfumato.kernels.linkage.learned_distance import ABSOLUTE, RELATIVE, Links, Terms, differences, links, terms_of
from sfumato.kernels.linkage.likely_records import nearest_own, own_rows
from sfumato.kernels.linkage.points import Metric, PointTree
from sfumato.kernels.linkage.tree import CATEGORY, SQUARED
from sfumato.kernels.sampling.draws import Draws
from sfumato.measures.risk.linkage.aligned_files import AlignedFiles

Real = NDArray[np.float64]
Int = NDArray[np.int64]

Named: TypeAlias = Literal["weighted mean", "owa", "choquet", "bilinear"]

#: Terms of pairs that are computed to count the links of a distance that no tree can search.
_MOST_STEPS = 4e9
#: Attributes up to which all monotone measures are within reach: 166 extreme points for four attributes, 7,579 for five.
LARGEST_FULL = 4


class Aggregation(ABC):
    """A family of distances θ·φ; `plain` is its member that weighs all attributes alike: the Euclidean distance."""

    size: int
    plain: Real
    #: Operations that comparing two records takes.
    steps: int

    @abstractmethod
    def features(self, files: AlignedFiles, rows: Int, others: Int) -> Real:
        """φ(seeking record, sought record) for the given pairs, one row each."""

    @abstractmethod
    def links(self, files: AlignedFiles, theta: Real, nearest: int) -> Links:
        """Whom each record finds under this distance, with the nearest wrong records."""

    @abstractmethod
    def shares(self, files: AlignedFiles, theta: Real) -> Real:
        """For each seeking record the chance that the nearest sought one, at random among equally near ones, is of the same
        person; for a sample of the seeking records where there are too many pairs to compare."""

    @abstractmethod
    def range(self, own: Real, other: Real) -> tuple[Real, Real]:
        """The least and the largest value of θ·(other - own) over all parameters, for rows of φ."""

    @abstractmethod
    def lowest(self, gradient: Real) -> Real:
        """The parameters with the least value of a linear function."""

    @abstractmethod
    def corners(self, theta: Real) -> Real:
        """Extreme parameters worth a step towards or away from, one row each."""

    @abstractmethod
    def repaired(self, theta: Real) -> Real:
        """The parameters allowed that are near these."""

    @abstractmethod
    def labels(self, names: Sequence[str]) -> list[str]:
        """What each parameter weighs, in words."""

    def starts(self, own: Real) -> list[Real]:
        """Parameters to begin with, given φ of every record with its partner: the plain distance first."""
        return [self.plain]

    def box(self) -> tuple[Real, Real, Real]:
        """Bounds of the parameters, and the coefficients whose sum with them is 1."""
        return np.zeros(self.size), np.ones(self.size), np.ones(self.size)

    def cuts(self, theta: Real) -> Real:
        """Rows c with c·θ < 0 although c·θ ≥ 0 for all allowed parameters; none where bounds and sum say everything."""
        return np.zeros((0, self.size))


class Weighted(Aggregation):
    """A weighted mean of terms: the parameters are weights of at least 0 that sum to 1."""

    def __init__(self, attributes: int, terms: Terms, chosen: Int, words: Sequence[tuple[str, tuple[int, ...]]]) -> None:
        self.terms, self.chosen, self.size, self._words = terms, chosen, int(chosen.size), words
        self.plain = np.zeros(self.size)
        self.plain[:attributes] = 1.0 / attributes
        self.steps = 2 * attributes**2 if terms.ordered else terms.size  # sorting takes many more

    @property
    def euclidean(self) -> bool:
        """Whether the distance is a Euclidean one in stretched coordinates."""
        return not self.terms.ordered and self.terms.size == self.size == self.terms.attributes

    def features(self, files: AlignedFiles, rows: Int, others: Int) -> Real:
        """Differences and what is computed from them."""
        gaps = differences(files.seeking[rows], files.sought[others], files.category)
        return np.ascontiguousarray(terms_of(gaps, self.terms)[:, self.chosen])

    def links(self, files: AlignedFiles, theta: Real, nearest: int) -> Links:
        """By comparing all pairs."""
        weights = self._weights(theta)
        return links(files.seeking, files.sought, files.category, files.partner, self.terms, weights, nearest)

    def shares(self, files: AlignedFiles, theta: Real) -> Real:
        """By a tree where the distance is a sum over attributes, otherwise by comparing all pairs."""
        mine, owner = files.people
        if self.euclidean:
            used = theta > 0
            kinds = np.where(files.category[used], CATEGORY, SQUARED).astype(np.int64)
            stretch = np.where(files.category, 1.0, np.sqrt(theta))[used]
            seeking, sought = files.seeking[:, used] * stretch, files.sought[:, used] * stretch
            tree = PointTree(sought, Metric(kinds, theta[used], np.zeros(kinds.size)))
            return nearest_own(tree, sought, seeking, owner, mine)[0]
        rows = sampled_rows(files.size, files.sought.shape[0], self.steps)
        seeking, weights = files.seeking[rows], self._weights(theta)
        own, partner = np.full(rows.size, np.inf), np.full(rows.size, -1, dtype=np.int64)
        distances = []
        for who, others in own_rows(owner, mine[rows]):
            far = terms_of(differences(seeking[who], files.sought[others], files.category), self.terms) @ weights
            distances.append((who, far))
            closer = far < own[who]
            own[who[closer]], partner[who[closer]] = far[closer], others[closer]
        there, equal = np.flatnonzero(partner >= 0), np.zeros(rows.size)
        for who, far in distances:
            equal[who] += far <= own[who] * (1.0 + RELATIVE) + ABSOLUTE
        credit = links(seeking[there], files.sought, files.category, partner[there], self.terms, weights, 0)
        shares = np.zeros(rows.size)
        # the partner is one of the own records that tie
        shares[there] = np.minimum(credit.share * equal[there], 1.0)
        return shares

    def _weights(self, theta: Real) -> Real:
        weights = np.zeros(self.terms.size)
        weights[self.chosen] = theta
        return weights

    def range(self, own: Real, other: Real) -> tuple[Real, Real]:
        """Extremes of a linear function on the simplex are at its corners."""
        gap = other - own
        return gap.min(axis=1), gap.max(axis=1)

    def lowest(self, gradient: Real) -> Real:
        """All weight on one term."""
        theta = np.zeros(self.size)
        theta[int(np.argmin(gradient))] = 1.0
        return theta

    def corners(self, theta: Real) -> Real:
        """Each term alone."""
        return np.eye(self.size)

    def repaired(self, theta: Real) -> Real:
        """Without what is negative, scaled to sum 1."""
        kept = np.where(theta < 1e-12, 0.0, theta)
        return np.asarray(kept / kept.sum()) if kept.sum() > 0 else self.plain

    def starts(self, own: Real) -> list[Real]:
        """Also weights inverse to how far records lie from their partners: the likeliest ones under normal noise."""
        if self.terms.ordered:
            half = np.linspace(2.0, 0.0, self.size)
            return [self.plain, half / half.sum(), half[::-1] / half.sum()]
        spread = own[:, : self.terms.attributes].mean(axis=0)
        least = max(float(spread.max()) * 1e-6, 1e-12)
        inverse = np.zeros(self.size)
        inverse[: spread.size] = 1.0 / np.maximum(spread, least)
        return [self.plain, inverse / inverse.sum()]

    def labels(self, names: Sequence[str]) -> list[str]:
        """As the literature speaks of them."""
        return [word.format(*(names[a] for a in members)) for word, members in self._words]


class Bilinear(Aggregation):
    """(x - y)ᵀ Q (x - y) with Q positive semidefinite of trace 1; the parameters are its upper triangle."""

    def __init__(self, attributes: int) -> None:
        self.attributes = attributes
        self._up = np.triu_indices(attributes)
        self._diagonal = (self._up[0] == self._up[1]).astype(np.float64)
        self.size = int(self._diagonal.size)
        self.plain = self._diagonal / attributes
        self.steps = attributes

    def matrix(self, theta: Real) -> Real:
        """Q."""
        full = np.zeros((self.attributes, self.attributes))
        full[self._up] = theta
        return full + np.triu(full, 1).T

    def features(self, files: AlignedFiles, rows: Int, others: Int) -> Real:
        """Products of two differences; each product off the diagonal counts twice."""
        gap = files.seeking[rows] - files.sought[others]
        return self._products(gap)

    def links(self, files: AlignedFiles, theta: Real, nearest: int) -> Links:
        """Euclidean in the coordinates turned and stretched by the root of Q."""
        seeking, sought = self._turned(files, theta)
        width = seeking.shape[1]
        nothing = np.zeros(width, dtype=np.bool_)
        return links(seeking, sought, nothing, files.partner, Terms.of(width), np.ones(width), nearest)

    def shares(self, files: AlignedFiles, theta: Real) -> Real:
        """By a tree of the same coordinates."""
        seeking, sought = self._turned(files, theta)
        mine, owner = files.people
        return nearest_own(PointTree(sought, Metric.euclidean(sought.shape[1])), sought, seeking, owner, mine)[0]

    def _turned(self, files: AlignedFiles, theta: Real) -> tuple[Real, Real]:
        values, vectors = np.linalg.eigh(self.matrix(theta))
        kept = values > 1e-12
        root = vectors[:, kept] * np.sqrt(values[kept])
        return files.seeking @ root, files.sought @ root

    def range(self, own: Real, other: Real) -> tuple[Real, Real]:
        """The extreme eigenvalues of vvᵀ - uuᵀ, for the differences u to the partner and v to the other record."""
        one, two, both = self._squared(own), self._squared(other), self._cross(own, other)
        half, root = (two - one) / 2, np.sqrt(np.maximum(((two - one) / 2) ** 2 + np.maximum(one * two - both, 0.0), 0.0))
        low, high = half - root, half + root
        # with a third direction, orthogonal to both, 0 is a value too
        return (np.minimum(low, 0.0), np.maximum(high, 0.0)) if self.attributes > 2 else (low, high)

    def lowest(self, gradient: Real) -> Real:
        """The projection on the eigenvector of the smallest eigenvalue."""
        full = self.matrix(np.where(self._diagonal > 0, gradient, gradient / 2))
        vector = np.linalg.eigh(full)[1][:, 0]
        return np.asarray(np.outer(vector, vector)[self._up])

    def corners(self, theta: Real) -> Real:
        """The axes, and the eigenvectors of Q."""
        vectors = np.hstack([np.eye(self.attributes), np.linalg.eigh(self.matrix(theta))[1]]).T
        return np.asarray(vectors[:, self._up[0]] * vectors[:, self._up[1]])

    def repaired(self, theta: Real) -> Real:
        """Without negative eigenvalues, scaled to trace 1."""
        values, vectors = np.linalg.eigh(self.matrix(theta))
        values = np.where(values < 1e-12, 0.0, values)
        if values.sum() <= 0:
            return self.plain
        values = values / values.sum()
        return np.asarray(((vectors * values) @ vectors.T)[self._up])

    def starts(self, own: Real) -> list[Real]:
        """Also the inverse covariance of differences to partners (Mahalanobis), alone and its diagonal."""
        spread = self.matrix(np.where(self._diagonal > 0, own.mean(axis=0), own.mean(axis=0) / 2))
        least = max(float(np.trace(spread)) * 1e-6, 1e-12)
        values, vectors = np.linalg.eigh(spread)
        inverse = (vectors / np.maximum(values, least)) @ vectors.T
        diagonal = np.diag(1.0 / np.maximum(np.diag(spread), least))
        return [self.plain, *(np.asarray(one[self._up] / np.trace(one)) for one in (diagonal, inverse))]

    def box(self) -> tuple[Real, Real, Real]:
        """No entry off the diagonal exceeds 1/2 when the trace is 1."""
        lower = np.where(self._diagonal > 0, 0.0, -0.5)
        return lower, np.where(self._diagonal > 0, 1.0, 0.5), self._diagonal

    def cuts(self, theta: Real) -> Real:
        """vᵀQv ≥ 0 for the eigenvectors with a negative eigenvalue."""
        values, vectors = np.linalg.eigh(self.matrix(theta))
        return self._products(vectors[:, values < -1e-9].T)

    def labels(self, names: Sequence[str]) -> list[str]:
        """Entries of Q."""
        pairs = zip(self._up[0].tolist(), self._up[1].tolist(), strict=True)
        return [f"form of {names[a]} and {names[b]}" if a != b else f"form of {names[a]}" for a, b in pairs]

    def _products(self, gap: Real) -> Real:
        return np.ascontiguousarray(gap[:, self._up[0]] * gap[:, self._up[1]] * np.where(self._diagonal > 0, 1.0, 2.0))

    def _squared(self, products: Real) -> Real:
        return np.asarray(products @ self._diagonal)

    def _cross(self, own: Real, other: Real) -> Real:
        """(u·v)² from the products of each: the sum over all pairs of attributes, those off the diagonal twice."""
        return np.asarray((own * other * np.where(self._diagonal > 0, 1.0, 0.5)).sum(axis=1))


def sampled_rows(seeking: int, sought: int, steps: int) -> Int:
    """The seeking records to compare with all sought ones: all of them, or as many by a fixed seed as the work allows."""
    most = max(int(_MOST_STEPS / max(sought * steps, 1)), 1)
    if seeking <= most:
        return np.arange(seeking, dtype=np.int64)
    return np.sort(Draws(StreamRandomness("records to count links of")).sample(seeking, most))


def aggregation(name: Named, files: AlignedFiles, additivity: Literal["2-additive", "full"]) -> Aggregation:
    """The family of that name for these files."""
    attributes = files.seeking.shape[1]
    single: list[tuple[str, tuple[int, ...]]] = [("weight of {0}", (a,)) for a in range(attributes)]
    if name == "bilinear":
        if files.category.any():
            raise Unsupported(
                "a bilinear form weighs products of differences of numbers; name columns of numbers with columns=(…)"
            )
        return Bilinear(attributes)
    if name == "owa":
        places: list[tuple[str, tuple[int, ...]]] = [
            (f"weight of difference {place} (1 is the largest)", ()) for place in range(1, attributes + 1)
        ]
        return Weighted(attributes, Terms.of(attributes, ordered=True), np.arange(attributes), places)
    if name == "weighted mean" or attributes == 1:
        return Weighted(attributes, Terms.of(attributes), np.arange(attributes), single)
    if additivity == "full":
        return _full_choquet(attributes)
    pairs = [(a, b) for a in range(attributes) for b in range(a + 1, attributes)]
    steps = [(a, b, largest) for largest in (0, 1) for a, b in pairs]
    words = [(f"weight of the {side} of {{0}} and {{1}}", pair) for side in ("smaller", "larger") for pair in pairs]
    terms = Terms.of(attributes, steps)
    return Weighted(attributes, terms, np.arange(terms.size), [*single, *words])


def _full_choquet(attributes: int) -> Weighted:
    """All extreme points: a measure with values 0 and 1 makes the Choquet integral a maximum of minima."""
    if attributes > LARGEST_FULL:
        raise Unsupported(
            f"a general Choquet integral has too many extreme points for {attributes} attributes (at most {LARGEST_FULL}); "
            'take additivity="2-additive"'
        )
    steps: list[tuple[int, int, int]] = []
    places: dict[tuple[int, int, int], int] = {}

    def term(left: int, right: int, largest: int) -> int:
        key = (min(left, right), max(left, right), largest)
        if left == right:
            return left
        if key not in places:
            places[key] = attributes + len(steps)
            steps.append(key)
        return places[key]

    chosen = []
    for sets in antichains(attributes):
        joined = -1
        for members in sets:
            inner = members[0]
            for attribute in members[1:]:
                inner = term(inner, attribute, 0)
            joined = inner if joined < 0 else term(joined, inner, 1)
        chosen.append((len(sets) + len(sets[0]) > 2, joined, sets))
    chosen.sort(key=lambda one: (one[0], one[1]))  # the attributes themselves first, as everywhere
    words = [
        ("weight of {0}", sets[0]) if not composed else (f"weight of lattice polynomial {place}", ())
        for place, (composed, _, sets) in enumerate(chosen, 1)
    ]
    positions = np.array([register for _, register, _ in chosen], dtype=np.int64)
    return Weighted(attributes, Terms.of(attributes, steps), positions, words)


def antichains(attributes: int) -> list[tuple[tuple[int, ...], ...]]:
    """All nonempty families of nonempty sets none of which holds another: the minimal winning sets of 0/1 measures."""
    sets = [tuple(a for a in range(attributes) if mask >> a & 1) for mask in range(1, 1 << attributes)]
    chains: list[tuple[tuple[int, ...], ...]] = []

    def extend(chosen: tuple[tuple[int, ...], ...], start: int) -> None:
        for position in range(start, len(sets)):
            one = set(sets[position])
            if all(not one <= set(other) and not set(other) <= one for other in chosen):
                chains.append((*chosen, sets[position]))
                extend((*chosen, sets[position]), position + 1)

    extend((), 0)
    return chains
