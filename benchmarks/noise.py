"""Exact noise: a million draws, a thousand draws, and one; OpenDP beside us where it is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

from benchmarks.harness import Case

MANY = 1_000_000
THOUSAND = 1_000
PEER_DRAWS = 50_000  # OpenDP's time per draw does not depend on how many there are
_LAPLACE_MS = MANY / 1_500  # 1.5 million draws a second
_GAUSSIAN_MS = MANY / 500


def cases() -> Iterator[Case]:
    """Draws with the operating system's randomness, as a session makes them."""
    from sfumato.core.randomness import SystemRandomness
    from sfumato.kernels.sampling import noise as sampling

    source = SystemRandomness()
    for scale in (Fraction(10), Fraction(1000), Fraction(10, 3), Fraction(12345, 7)):
        yield Case(
            f"noise, a million discrete Laplace draws, scale {scale}",
            lambda _, scale=scale: sampling.discrete_laplace(scale, MANY, source),
            limit=_LAPLACE_MS,
            peer=_opendp("make_laplace", float(scale)),
            peer_reports=True,
            check=_of_spread(2 * float(scale) ** 2),
            repeats=5,
            note=_PEER_NOTE,
        )
    for deviation in (10, 1000):
        yield Case(
            f"noise, a million discrete Gaussian draws, standard deviation {deviation}",
            lambda _, variance=Fraction(deviation**2): sampling.discrete_gaussian(variance, MANY, source),
            limit=_GAUSSIAN_MS,
            peer=_opendp("make_gaussian", float(deviation)),
            peer_reports=True,
            check=_of_spread(float(deviation**2)),
            repeats=5,
            note=_PEER_NOTE,
        )
    yield Case(
        "noise, a thousand discrete Laplace draws of a new scale",
        lambda scale: sampling.discrete_laplace(scale, THOUSAND, source),
        prepare=_NewScales(),
        limit=6,
    )
    for name, one in (
        ("Laplace, scale 1000", lambda: sampling.discrete_laplace_one(Fraction(1000), source)),
        ("Gaussian, standard deviation 1000", lambda: sampling.discrete_gaussian_one(Fraction(10**6), source)),
    ):
        yield Case(
            f"noise, a thousand times one draw: discrete {name}",
            lambda _, one=one: [one() for _ in range(THOUSAND)],
            limit=100,
        )


_PEER_NOTE = f"peer: OpenDP, {PEER_DRAWS:,} draws in one call, times {MANY // PEER_DRAWS}"


class _NewScales:
    """A scale that was not asked for before, so that its tables are made inside the measured time."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> Fraction:
        self.asked += 1
        return Fraction(1000) + Fraction(self.asked, 997)


def _of_spread(variance: float) -> Callable[[Any], str | None]:
    """Mean within a hundredth of a standard deviation, variance within three per cent: ten standard errors each."""

    def check(drawn: Any) -> str | None:
        if drawn.size != MANY:
            return "another number of draws"
        fits = abs(float(drawn.mean())) < variance**0.5 / 100 and abs(float(drawn.astype(float).var()) / variance - 1) < 0.03
        return None if fits else "another law"

    return check


def _opendp(make: str, scale: float) -> Callable[[], float] | None:
    """Milliseconds that OpenDP would take for a million draws; None where it is not installed."""
    if find_spec("opendp") is None:
        return None
    import time

    import opendp.prelude as dp

    dp.enable_features("contrib")
    metric = dp.l1_distance if make == "make_laplace" else dp.l2_distance
    measurement = getattr(dp.m, make)(dp.vector_domain(dp.atom_domain(T="i64")), metric(T="i64"), scale=scale)
    zeros = [0] * PEER_DRAWS

    def peer() -> float:
        before = time.process_time()
        measurement(zeros)
        return (time.process_time() - before) * 1000 * (MANY / PEER_DRAWS)

    return peer
