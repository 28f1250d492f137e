"""What every method that changes the cells of a table has in common: it takes a cube and gives a published table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import Declared, parameters
from sfumato.core.guarantees.base import Guarantee
from sfumato.core.outcome import Outcome
from sfumato.core.randomness import Randomness, default
from sfumato.tables.cube import TableCube
from sfumato.tables.published import PublishedTable


@dataclass(frozen=True)
class TableMethod(Declared, ABC):
    """A method that changes cells. `run` gives an outcome that `sf.publish` takes."""

    #: Whether totals are still the sums of their parts afterwards.
    keeps_sums: ClassVar[bool] = False
    #: Whether chance decides anything.
    draws: ClassVar[bool] = True

    @abstractmethod
    def changed(self, cube: TableCube, source: Randomness) -> NDArray[np.int64]:
        """The cells after the method, in units of the last digit."""

    def promises(self) -> tuple[Guarantee, ...]:
        """What anybody can check of the result; nothing as a rule."""
        return ()

    def run(self, cube: TableCube, *, seed: int | str | None = None) -> Outcome[PublishedTable]:
        """Change the cube. A `seed` repeats the draws, which marks a demonstration."""
        source = default(seed)
        shape, units = cube.shape, self.changed(cube, source)
        method = {"name": type(self).__name__, **parameters(self)}
        none = np.zeros(cube.size, dtype=np.bool_)
        table = PublishedTable(cube.grid, shape.value, shape.decimals, units, none, shape.dataset, method, self.keeps_sums)
        randomness = source.description if self.draws else default().description
        return Outcome(table, self.promises(), method, {"randomness": randomness})


def rounded_up(units: NDArray[np.int64], base: int, source: Randomness) -> NDArray[np.int64]:
    """Each value to a neighbouring multiple of `base`, upwards with the chance of its remainder over the base: exact draws."""
    from sfumato.core.randomness import below

    rests = (units % base).tolist()
    up = np.array([rest > 0 and below(source, base) < rest for rest in rests], dtype=np.int64)
    return np.asarray(units - units % base + base * up)
