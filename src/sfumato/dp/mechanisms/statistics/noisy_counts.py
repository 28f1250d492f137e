"""What histograms share: counts of records in cells fixed without the data, each with integer Laplace noise."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.core.exact import Number
from sfumato.core.guarantees.loss import PureDP
from sfumato.dp.mechanisms.base import V
from sfumato.dp.mechanisms.calibrated import Stated
from sfumato.dp.mechanisms.grid import plain_scale
from sfumato.dp.mechanisms.noise.errors import LaplaceError
from sfumato.dp.sensitivity.base import Sensitivity


class NoisyCounts(Stated[V, NDArray[np.int64]]):
    """A record lies in one cell, so that one unit changes the counts by its contributions in sum, replaced by twice that."""

    epsilon: Number
    contributions: int

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """1 if one record is added or removed, 2 if one is replaced, times the contributions."""
        from sfumato.dp.sensitivity.counts import bar_chart

        return bar_chart(self.contributions, self.neighbours, unit=self.unit)

    @cached_property
    def scale(self) -> Fraction:
        """The scale of the noise of one count."""
        return plain_scale(self.sensitivity.l1 / Fraction(self.epsilon))

    def loss(self) -> PureDP:
        return self._pure(self.epsilon)

    def error(self) -> LaplaceError:
        """Of one count."""
        return LaplaceError.of(float(self.scale), 1.0, rounded=False)
