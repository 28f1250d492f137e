"""What mechanisms share that answer from records clamped between declared bounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from sfumato.dp.mechanisms.base import A
from sfumato.dp.mechanisms.calibrated import Stated
from sfumato.dp.mechanisms.statistics.records import Records
from sfumato.dp.ranges import Bound, Epsilon, apart


@dataclass(frozen=True)
class Clamped(Stated[Records, A]):
    """An answer from records clamped to [`lower`, `upper`], at the loss `epsilon`."""

    lower: Annotated[Bound, "the lower end of the values, declared by the owner"]
    upper: Annotated[Bound, "the upper end of the values, declared by the owner"]
    epsilon: Epsilon

    def coherent(self) -> Iterable[str]:
        yield from apart(self.lower, self.upper)
