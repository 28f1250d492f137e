"""Redraw: repeat the Laplace mechanism until the answer lies inside the interval.

The answers that remain have exactly the law of the bounded Laplace mechanism, so the same scale is needed and the same
naive scale is refused; see docs/theory/bounded-laplace.md. The number of rounds depends on the value: a timing channel.
Holohan, Antonatos, Braghin, Mac Aonghusa, "The bounded Laplace mechanism in differential privacy", 2020.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.core.randomness import Randomness
from sfumato.dp.mechanisms.calibrated import source_of
from sfumato.dp.mechanisms.grid import Real
from sfumato.dp.mechanisms.noise.bounded_laplace import BoundedLaplace
from sfumato.kernels.sampling.noise import discrete_laplace_one


@dataclass(frozen=True)
class Redraw(BoundedLaplace):
    """Laplace noise, drawn again until the answer lies between `lower` and `upper`: the law of `BoundedLaplace`."""

    def answer(self, value: Real, randomness: Randomness | None = None) -> float:
        source, place = source_of(randomness), self._place(value)
        while True:
            k = place + discrete_laplace_one(self.units, source)
            if 0 <= k <= self._last:
                return self._real(k)
