"""Try to disprove a claim of differential privacy for any function, by running it on two neighbouring databases.

Part of the draws chooses events that look likelier on one neighbour; fresh draws then bound their probabilities, so that
a refutation is wrong with at most the stated chance. Not being refuted proves nothing.
Ding, Wang, Wang, Zhang, Kifer, "Detecting violations of differential privacy", CCS 2018; Clopper, Pearson 1934.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.core.declared import require
from sfumato.core.errors import ParameterError
from sfumato.core.exact import Number, exact, rounded_to
from sfumato.core.plain_data import PlainDict
from sfumato.core.progress import Progress, ProgressLike, shown, silent
from sfumato.dp.refute.confidence import epsilon_bound, lower_bound, upper_bound
from sfumato.dp.refute.events import MOST_CANDIDATES, Candidate, search
from sfumato.dp.refute.outputs import Outputs, Raised, kept

SAMPLES = 100_000
VECTORISED_SAMPLES = 1_000_000
CONFIDENCE = 1 - 1e-6
_STAGES = (0.01, 0.1, 1.0)
_SMALLEST_STAGE = 1000
_FIRST = 8
_CHUNK = 200
_VECTOR_CHUNK = 250_000


@dataclass(frozen=True)
class Observed:
    """An event that was seen on fresh draws, in words, and how often on each neighbour.

    The words may show values of the databases that were given, so they are left out of the representation.
    """

    event: str = field(repr=False)
    direction: str
    probability: float
    interval: tuple[float, float]
    other_probability: float
    other_interval: tuple[float, float]

    def __str__(self) -> str:
        return (
            f"{self.event}: probability about {self.probability:.4g} ({self.interval[0]:.4g} to {self.interval[1]:.4g}) against "
            f"{self.other_probability:.4g} ({self.other_interval[0]:.4g} to {self.other_interval[1]:.4g}), {self.direction}"
        )


@dataclass(frozen=True)
class Refutation:
    """What the tester found.

    `refuted` says that the claim is disproved at the stated `confidence`; `epsilon` is a lower bound on every ε for which
    the function is (ε, δ)-private at the claimed δ, `delta` one on every δ at the claimed ε; `witness` is the event that
    shows the largest loss. `samples` counts the fresh draws per neighbour that the bounds rest on, `draws` all calls.
    """

    refuted: bool
    claimed_epsilon: float
    claimed_delta: float
    epsilon: float
    delta: float
    witness: Observed | None
    samples: int
    draws: int
    confidence: float
    seconds: float
    notes: tuple[str, ...] = ()

    def explain(self) -> str:
        """The finding in plain words."""
        claim = f"ε = {self.claimed_epsilon:.6g}" + (f", δ = {self.claimed_delta:.3g}" if self.claimed_delta else "")
        if self.refuted:
            shown = rounded_to(4, self.epsilon, up=False)
            sentence = f"Refuted: the claim {claim} is false, ε is at least {shown:.4g} for these neighbours"
            sentence += f" (confidence {_percent(self.confidence)}, {self.samples:,} draws on each).\nWitness: {self.witness}."
        else:
            sentence = f"Not refuted: no event contradicts {claim} in {self.samples:,} draws on each neighbour"
            sentence += (
                f" (largest ε shown: {rounded_to(4, max(self.epsilon, 0.0), up=False):.4g}). "
                "That is no proof: another pair of neighbours or more draws may."
            )
        return "\n".join([sentence, *(f"note: {note}" for note in self.notes)])

    def to_mapping(self) -> PlainDict:
        """Plain data."""
        witness = self.witness
        return {
            "refuted": self.refuted,
            "claimed": {"epsilon": self.claimed_epsilon, "delta": self.claimed_delta},
            "epsilon_at_least": max(self.epsilon, 0.0),
            "delta_at_least": max(self.delta, 0.0),
            "witness": None
            if witness is None
            else {
                "event": witness.event,
                "direction": witness.direction,
                "probability": witness.probability,
                "interval": list(witness.interval),
                "other_probability": witness.other_probability,
                "other_interval": list(witness.other_interval),
            },
            "samples": self.samples,
            "draws": self.draws,
            "confidence": self.confidence,
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
        }


def refute(
    mechanism: Callable[..., Any] | Any,  # anybody's code, or a mechanism
    neighbours: Sequence[Any],  # databases, as the mechanism takes them
    epsilon: Number = 1.0,
    delta: Number = 0.0,
    *,
    samples: int | None = None,
    seconds: float = 20.0,
    vectorised: bool = False,
    confidence: float = CONFIDENCE,
    progress: ProgressLike = silent,
) -> Refutation:
    """Try to disprove that a function is (ε, δ)-differentially private, on one pair of neighbouring databases.

    `mechanism(database)` is called again and again and must draw fresh randomness each time, leave the database as it is
    and remember nothing (a cached answer is no draw). Whatever it returns is looked at: numbers, texts, tuples, records,
    arrays; an exception counts as an output. With `vectorised`, `mechanism(database, count)` returns that many outputs
    at once. A `Mechanism` of this library is tested through its `answer`, the neighbours being the values it answers.

    At most `samples` draws on each neighbour are made and about `seconds` are spent. The claim is called refuted while it
    is true with a chance of at most 1 - `confidence`. Choose the neighbours: the worst pair you can think of.
    `progress=True` shows a bar.

    >>> refute(lambda rows: len(rows) + 10, neighbours=([1, 2, 3], [1, 2]), epsilon=1.0).refuted
    True
    """
    draw = getattr(mechanism, "answer", mechanism)
    require(callable(draw), "the mechanism is a function of a database, or has a method 'answer'")
    require(len(neighbours) == 2, "neighbours is a pair of databases")
    claimed, allowed = float(exact(epsilon, "epsilon")), float(exact(delta, "delta"))
    require(claimed >= 0 and 0 <= allowed < 1, "epsilon is at least 0, delta at least 0 and below 1")
    require(0.5 <= confidence < 1, "confidence lies between 0.5 and 1")
    require(samples is None or samples >= 100, "samples is at least 100 on each neighbour")
    require(seconds > 0, "seconds is above 0")
    limit = samples or (VECTORISED_SAMPLES if vectorised else SAMPLES)
    with shown(progress) as receiver:
        source = _Source(draw, (neighbours[0], neighbours[1]), vectorised, seconds, receiver)
        return _staged(source, limit, claimed, allowed, confidence)


def _staged(source: _Source, limit: int, epsilon: float, delta: float, confidence: float) -> Refutation:
    """Few draws first: a gross violation shows at once, a small one needs them all."""
    alarm = (1 - confidence) / len(_STAGES) / MOST_CANDIDATES
    source.draw(_FIRST)
    refutation: Refutation | None = None
    for share in _STAGES:
        size = source.affordable(min(max(round(limit * share), _SMALLEST_STAGE), limit), first=refutation is None)
        if size <= source.count and refutation is not None:
            continue
        source.draw(size // 2 - source.count)
        searched = Outputs.pair(*source.all())
        candidates = search(searched[0], searched[1], epsilon, delta, alarm)
        already = source.count
        source.draw(max(size - already, _FIRST))
        fresh = Outputs.pair(*source.all(since=already), like=searched[0])
        refutation = _tested(candidates, fresh[0], fresh[1], epsilon, delta, alarm, confidence, source)
        if refutation.refuted:
            return refutation
        if source.always_raised:
            raise ParameterError(
                f"the function raised {source.always_raised} every time on both databases, so nothing was tested. Call it once "
                "on each neighbour to see why."
            )
    assert refutation is not None  # noqa: S101  (the first stage always runs)
    return refutation


class _Source:
    """Draws on both neighbours, a few on the one and then on the other, within a time."""

    def __init__(
        self, mechanism: Callable[..., Any], pair: tuple[Any, Any], vectorised: bool, seconds: float, progress: Progress
    ) -> None:
        self._mechanism, self._pair, self._vectorised, self._progress = mechanism, pair, vectorised, progress
        self._seconds, self._started = seconds, time.monotonic()
        self._drawn: tuple[list[Any], list[Any]] = ([], [])
        self._drawing = 0.0
        self.count = 0
        self.cut_short = False

    @property
    def seconds(self) -> float:
        """Spent so far."""
        return time.monotonic() - self._started

    @property
    def always_raised(self) -> str:
        """The one error that every single call raised, or nothing."""
        kinds = {value.kind if isinstance(value, Raised) else "" for side in self._drawn for part in side for value in part[:200]}
        return kinds.pop() if len(kinds) == 1 else ""

    def affordable(self, size: int, *, first: bool) -> int:
        """At most as many draws as there is time for: the first stage may take a tenth of it."""
        left = self._seconds * 0.1 if first else (self._seconds - self.seconds) * 0.7
        each = self._drawing / max(self.count, 1)
        possible = self.count + int(max(left, 0) / max(each, 1e-9))
        if possible < size:
            self.cut_short = True
        return min(size, max(possible, 4 * _FIRST if first else 0))

    def draw(self, count: int) -> None:
        """That many more on each neighbour."""
        chunk = _VECTOR_CHUNK if self._vectorised else _CHUNK
        goal = self.count + max(count, 0)
        while self.count < goal:
            size = min(chunk, goal - self.count)
            parts, spent = [], []
            for database in self._pair:
                begun = time.monotonic()
                parts.append(self._some(database, size))
                spent.append(time.monotonic() - begun)
            # A call that loads a library is slow once; the quicker neighbour tells how long a draw takes.
            self._drawing += 2 * min(spent)
            for side, part in zip(self._drawn, parts, strict=True):
                side.append(part)
            self.count += size
            self._progress("drawing", self.count, 0)

    def all(self, since: int = 0) -> tuple[Any, Any]:
        """The draws on both neighbours, or those after the first `since`."""
        return _joined(self._drawn[0], since), _joined(self._drawn[1], since)

    def _some(self, database: Any, size: int) -> Any:
        if self._vectorised:
            outputs = self._mechanism(database, size)
            if len(outputs) != size:
                raise ParameterError("with vectorised, the function takes a database and a count and returns that many outputs")
            return outputs if isinstance(outputs, np.ndarray) else list(outputs)
        return [self._one(database) for _ in range(size)]

    def _one(self, database: Any) -> Any:
        try:
            return kept(self._mechanism(database))
        except MemoryError:
            raise ParameterError("the function ran out of memory") from None
        except (Exception, SystemExit) as error:  # what a caller would see is an output, too
            return Raised(type(error).__name__, str(error)[:200])


def _joined(parts: list[Any], since: int) -> Any:
    if parts and all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)[since:]
    return [value for part in parts for value in part][since:]


def _tested(
    candidates: list[Candidate],
    first: Outputs,
    second: Outputs,
    epsilon: float,
    delta: float,
    alarm: float,
    confidence: float,
    source: _Source,
) -> Refutation:
    """Bound the loss that each candidate shows on draws it was not chosen on."""
    growth = math.exp(min(epsilon, 700.0))
    seen: list[tuple[float, float, int, Observed]] = []
    for candidate in candidates:
        mine, theirs = (first, second) if candidate.forward else (second, first)
        hits, others = int(candidate.happened(mine).sum()), int(candidate.happened(theirs).sum())
        shown = float(epsilon_bound(hits, mine.count, others, theirs.count, alarm, delta))
        interval, other_interval = (
            (float(lower_bound(times, trials, alarm / 2)), float(upper_bound(times, trials, alarm / 2)))
            for times, trials in ((hits, mine.count), (others, theirs.count))
        )
        way = "first neighbour against second" if candidate.forward else "second neighbour against first"
        observed = Observed(candidate.words, way, hits / mine.count, interval, others / theirs.count, other_interval)
        seen.append((shown, interval[0] - growth * other_interval[1], candidate.effort, observed))
    largest = max((entry[0] for entry in seen), default=0.0)
    refuted = largest > epsilon
    # Among events that show about as much, the one that is easiest to read.
    near = [entry for entry in seen if entry[0] >= largest - 0.1 and (entry[0] > epsilon or not refuted)]
    best = min(near, key=lambda entry: (entry[2], -entry[0]), default=None)
    notes = ("the time allowed fewer draws than asked for; more seconds test more",) if source.cut_short else ()
    return Refutation(
        refuted,
        epsilon,
        delta,
        max(best[0], 0.0) if best else 0.0,
        max(best[1], 0.0) if best else 0.0,
        best[3] if best else None,
        first.count,
        2 * source.count,
        confidence,
        source.seconds,
        () if refuted else notes,
    )


def _percent(confidence: float) -> str:
    return f"{confidence * 100:.6g} %"
