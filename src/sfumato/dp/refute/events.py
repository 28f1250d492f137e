"""Search for an event that is much likelier on one neighbour than on the other.

Each aspect of the outputs is cut into bins; candidates are runs of neighbouring bins, and the bins with the largest
ratios taken together (Neyman, Pearson 1933). A score over all aspects at once catches losses that add up.
Ding, Wang, Wang, Zhang, Kifer, "Detecting violations of differential privacy", CCS 2018.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.dp.refute.aspects import Aspect, aspects
from sfumato.dp.refute.confidence import epsilon_bound
from sfumato.dp.refute.outputs import Outputs, Path

MOST_CANDIDATES = 16
_BINS = 96
_COARSE = 24
_KEYS = 4096
_LEAST = 5
_SHOWN = 5
_SHORTLIST = 12


@dataclass(frozen=True, eq=False)
class Cut:
    """An aspect cut into bins: between edges for numbers, one bin per frequent value for keys; -1 is none of them."""

    aspect: Aspect
    edges: NDArray[np.float64] | None = None
    keys: tuple[object, ...] = ()

    @property
    def size(self) -> int:
        """The number of bins."""
        return len(self.keys) if self.edges is None else max(len(self.edges) - 1, 0)

    def bins(self, outputs: Outputs) -> NDArray[np.int64]:
        """The bin of each output."""
        values = self.aspect.of(outputs)
        if self.edges is None:
            place = {key: i for i, key in enumerate(self.keys)}
            return np.array([place.get(value, -1) for value in values.tolist()], dtype=np.int64)
        places = np.searchsorted(self.edges, values, side="right") - 1
        places = np.where(np.isnan(values), -1, np.minimum(places, self.size - 1))  # infinity belongs to the last bin
        return places.astype(np.int64)

    def words(self, chosen: Sequence[int]) -> str:
        """A set of bins as a sentence."""
        if self.edges is None:
            shown = [_described(self.aspect, self.keys[i]) for i in chosen[:_SHOWN]]
            more = f" or {len(chosen) - _SHOWN} others" if len(chosen) > _SHOWN else ""
            return f"{self.aspect.words} is {' or '.join(shown)}{more}"
        runs = list(_runs(sorted(chosen)))
        shown = [_range(self.edges[low], self.edges[high + 1]) for low, high in runs[:_SHOWN]]
        more = f" or in {len(runs) - _SHOWN} other ranges" if len(runs) > _SHOWN else ""
        return f"{self.aspect.words} is {' or '.join(shown)}{more}"


@dataclass(frozen=True, eq=False)
class LossScore:
    """The sum over cuts of log ratios, learnt from the search half: a guess at the whole privacy loss of an output."""

    cuts: tuple[Cut, ...]
    gains: tuple[NDArray[np.float64], ...] = field(repr=False)

    def of(self, outputs: Outputs) -> NDArray[np.float64]:
        """The score of each output."""
        total = np.zeros(outputs.count)
        for cut, gain in zip(self.cuts, self.gains, strict=True):
            total += np.append(gain, 0.0)[cut.bins(outputs)]
        return total


@dataclass(frozen=True, eq=False)
class Candidate:
    """An event: the output falls into chosen bins of a cut, or its score reaches a threshold.

    `forward` says that it should be likelier on the first neighbour.
    """

    forward: bool
    promise: float
    cut: Cut | None = None
    chosen: tuple[int, ...] = ()
    score: LossScore | None = None
    threshold: float = 0.0

    def happened(self, outputs: Outputs) -> NDArray[np.bool_]:
        """On which of the outputs the event happened."""
        if self.cut is not None:
            inside = np.zeros(self.cut.size + 1, dtype=bool)
            inside[list(self.chosen)] = True
            return inside[self.cut.bins(outputs)]
        assert self.score is not None  # noqa: S101  (a candidate has one of the two)
        values = self.score.of(outputs)
        return values >= self.threshold if self.forward else values <= self.threshold

    @property
    def effort(self) -> int:
        """How much a reader has to think: a value, something about it, or a score over everything."""
        if self.cut is None:
            return 2
        return int(self.cut.aspect.kind not in ("number", "key") or self.cut.aspect.path[0] != "output")

    @property
    def words(self) -> str:
        """The event as a sentence."""
        if self.cut is not None:
            return self.cut.words(self.chosen)
        side = "at least" if self.forward else "at most"
        return f"the log ratios of all parts of the output add up to {side} {self.threshold:.4g}"


def search(first: Outputs, second: Outputs, epsilon: float, delta: float, alarm: float) -> list[Candidate]:
    """The most promising events, best first, judged on these two batches alone."""
    candidates: list[Candidate] = []
    learnt: dict[Path, tuple[Cut, NDArray[np.float64]]] = {}
    for aspect in aspects(first, second):
        for cut in _cuts(aspect, first, second):
            counts = [_counted(cut, batch) for batch in (first, second)]
            if aspect.kind in ("number", "key"):
                learnt[aspect.path] = (cut, _gain(counts[0], counts[1], first.count, second.count))
            for forward in (True, False):
                hits, others = counts if forward else counts[::-1]
                trials = (first.count, second.count) if forward else (second.count, first.count)
                sets = [*_best_runs(hits, others, trials, epsilon, delta)] if cut.edges is not None else []
                sets += _best_sets(hits, others, trials, epsilon, delta)
                if cut.edges is not None:
                    sets = [_bridged(chosen, hits + others) for chosen in sets]
                candidates += _promising(cut, forward, sets, hits, others, trials, alarm, delta)
    if len(learnt) > 1:
        cuts, gains = zip(*learnt.values(), strict=True)
        candidates += _scored(LossScore(cuts, gains), first, second, delta, alarm)
    candidates.sort(key=lambda candidate: (-round(candidate.promise, 1), candidate.effort, -candidate.promise))
    return candidates[:MOST_CANDIDATES]


def _cuts(aspect: Aspect, first: Outputs, second: Outputs) -> Iterator[Cut]:
    one, two = aspect.of(first), aspect.of(second)
    if not aspect.numeric:
        values, counts = np.unique(np.concatenate((one, two)), return_counts=True)
        frequent = [
            (count, value)
            for value, count in zip(values.tolist(), counts.tolist(), strict=True)
            if count >= _LEAST and value not in ("",) and value == value
        ]
        frequent.sort(key=lambda pair: -pair[0])
        if frequent:
            yield Cut(aspect, None, tuple(value for _, value in frequent[:_KEYS]))
        return
    pooled = np.concatenate((one, two))
    pooled = pooled[~np.isnan(pooled)]
    if pooled.size:
        for bins in (_BINS, _COARSE):
            yield Cut(aspect, _edges(pooled, bins))


def _edges(pooled: NDArray[np.float64], bins: int) -> NDArray[np.float64]:
    """Quantiles, each frequent value in a bin of its own, and everything beyond the ends."""
    ordered = np.sort(pooled)
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    sizes = np.diff(np.append(starts, ordered.size))
    heavy = np.flatnonzero(sizes >= max(_LEAST, ordered.size / (4 * bins)))
    if heavy.size > 4 * bins:
        heavy = heavy[np.argsort(sizes[heavy])[-4 * bins :]]
    alone = ordered[starts[heavy]]
    quantiles = ordered[np.linspace(0, ordered.size - 1, bins + 1).astype(np.int64)]
    return np.unique(np.concatenate(([-np.inf], quantiles, alone, np.nextafter(alone, np.inf), [np.inf])))


def _counted(cut: Cut, batch: Outputs) -> NDArray[np.float64]:
    bins = cut.bins(batch)
    return np.bincount(bins[bins >= 0], minlength=cut.size).astype(np.float64)


def _gain(first: NDArray[np.float64], second: NDArray[np.float64], trials: int, others: int) -> NDArray[np.float64]:
    return np.log((first + 1) / (trials + 2)) - np.log((second + 1) / (others + 2))


def _excess(
    hits: NDArray[np.float64], others: NDArray[np.float64], trials: tuple[int, int], epsilon: float, delta: float
) -> NDArray[np.float64]:
    """By how many standard deviations the claim looks broken."""
    growth = math.exp(min(epsilon, 300))
    p, q = hits / trials[0], others / trials[1]
    soft_p, soft_q = (hits + 1) / (trials[0] + 2), (others + 1) / (trials[1] + 2)
    variance = soft_p * (1 - soft_p) / trials[0] + growth**2 * soft_q * (1 - soft_q) / trials[1]
    return np.asarray((p - delta - growth * q) / np.sqrt(variance))


def _best_runs(
    hits: NDArray[np.float64], others: NDArray[np.float64], trials: tuple[int, int], epsilon: float, delta: float
) -> Iterator[tuple[int, ...]]:
    """Neighbouring bins: every run is tried when there are few bins, half-lines and short runs otherwise."""
    above, below = (np.concatenate(([0.0], np.cumsum(counts))) for counts in (hits, others))
    size = len(hits)
    starts, ends = np.triu_indices(size) if size <= 2 * _BINS else _some_runs(size)
    ends = ends + 1
    values = _excess(above[ends] - above[starts], below[ends] - below[starts], trials, epsilon, delta)
    for place in np.argsort(-values)[: _SHORTLIST // 2]:
        yield tuple(range(int(starts[place]), int(ends[place])))


def _some_runs(size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    places = np.arange(size)
    short = [(places[: size - width], places[width:]) for width in (0, 1, 2, 4, 8, 16, 32) if width < size]
    half = [(np.zeros(size, dtype=np.int64), places), (places, np.full(size, size - 1))]
    return np.concatenate([one for one, _ in short + half]), np.concatenate([two for _, two in short + half])


def _best_sets(
    hits: NDArray[np.float64], others: NDArray[np.float64], trials: tuple[int, int], epsilon: float, delta: float
) -> Iterator[tuple[int, ...]]:
    """The bins with the largest ratios, the best one alone, the best two together, and so on."""
    order = np.argsort(-_gain(hits, others, *trials), kind="stable")
    above, below = np.cumsum(hits[order]), np.cumsum(others[order])
    values = _excess(above, below, trials, epsilon, delta)
    for place in np.argsort(-values)[: _SHORTLIST // 3]:
        yield tuple(order[: place + 1].tolist())
    for place in np.argsort(-_excess(hits, others, trials, epsilon, delta))[: _SHORTLIST // 3]:
        yield (int(place),)


def _bridged(chosen: tuple[int, ...], counts: NDArray[np.float64]) -> tuple[int, ...]:
    """With the empty bins between two chosen ones, so that an event reads as a range."""
    inside = np.zeros(len(counts) + 2, dtype=bool)
    inside[[place + 1 for place in chosen]] = True
    empty = np.append(np.append(False, counts == 0), False)
    inside[1:-1] |= empty[1:-1] & inside[:-2] & inside[2:]
    return tuple((np.flatnonzero(inside) - 1).tolist())


def _promising(
    cut: Cut,
    forward: bool,
    sets: list[tuple[int, ...]],
    hits: NDArray[np.float64],
    others: NDArray[np.float64],
    trials: tuple[int, int],
    alarm: float,
    delta: float,
) -> list[Candidate]:
    """The best two of one cut and direction."""
    above = np.array([hits[list(chosen)].sum() for chosen in sets])
    below = np.array([others[list(chosen)].sum() for chosen in sets])
    promises = epsilon_bound(above, trials[0], below, trials[1], alarm, delta)
    best: dict[tuple[int, ...], float] = {}
    for place in np.argsort(-promises):
        best.setdefault(sets[place], float(promises[place]))
        if len(best) == 2:
            break
    return [Candidate(forward, promise, cut, chosen) for chosen, promise in best.items()]


def _scored(score: LossScore, first: Outputs, second: Outputs, delta: float, alarm: float) -> Iterator[Candidate]:
    one, two = score.of(first), score.of(second)
    thresholds = np.unique(np.quantile(np.concatenate((one, two)), np.linspace(0.005, 0.995, 100)))
    for forward in (True, False):
        mine, theirs = (one, two) if forward else (two, one)
        sign = 1.0 if forward else -1.0
        hits = np.array([(sign * mine >= sign * at).sum() for at in thresholds])
        others = np.array([(sign * theirs >= sign * at).sum() for at in thresholds])
        promises = epsilon_bound(hits, mine.size, others, theirs.size, alarm, delta)
        for place in np.argsort(-promises)[:2]:
            yield Candidate(forward, float(promises[place]), None, (), score, float(thresholds[place]))


def _runs(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = last = places[0]
    for place in places[1:]:
        if place != last + 1:
            yield start, last
            start = place
        last = place
    yield start, last


def _range(low: float, high: float) -> str:
    if math.isinf(low) and math.isinf(high):
        return "any number"
    before = float(np.nextafter(high, -np.inf))
    if low == before:
        return f"exactly {_digits(low)}"
    # A frequent value has a bin of its own that ends just above it: name the value, not its successor.
    end = f"at most {_digits(before)}" if len(_digits(before)) < len(_digits(high)) else f"below {high:.9g}"
    if math.isinf(low):
        return end
    return f"at least {low:.9g}" if math.isinf(high) else f"at least {low:.9g} and {end}"


def _digits(number: float) -> str:
    return repr(float(number)).removesuffix(".0")


def _described(aspect: Aspect, key: object) -> str:
    if aspect.kind == "bits" and isinstance(key, float):
        exponent = round(key / 8192)
        return f"({exponent}, {key - exponent * 8192:g})"
    return f"{key:g}" if isinstance(key, float) else str(key)
