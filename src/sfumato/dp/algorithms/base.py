"""What every algorithm is that turns a table into one private artefact."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from sfumato.core.declared import Declared
from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.core.outcome import Outcome
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.core.progress import Progress, silent
from sfumato.core.randomness import Randomness
from sfumato.core.texts import with_article
from sfumato.data.microdata import Microdata


def counted_rows(rows: int | None, unit: str, what: str = "row") -> str | None:
    """The sentence about a bound on what one unit contributes."""
    if rows is None:
        return None
    counted = f"1 {what} of each {unit} is" if rows == 1 else f"{rows:,} {what}s of each {unit} are"
    beyond = f"{what}s beyond that are left out, and no margin speaks of them"
    return f"At most {counted} counted; {beyond}. Rows without {with_article(unit)} are left out"


class Algorithm(Declared, ABC):
    """A frozen value; `run` looks at the data once and returns an outcome made by `private_outcome`.

    Bounds and domains come from the schema's declarations (`source = "declared"`), never from the data. `run` refuses
    what it cannot do before it reads a row, and with a reason that depends on the schema alone; it reads rows by
    `declared_values.read`, once, which refuses columns whose type was found by looking at the values.
    """

    @property
    def name(self) -> str:
        """The public name of the algorithm."""
        return type(self).__name__

    @abstractmethod
    def loss(self) -> LossGuarantee:
        """What one run costs, known before it is run."""

    @abstractmethod
    def run(
        self, data: Microdata, *, randomness: Randomness | None = None, progress: Progress = silent
    ) -> Outcome[Any]:  # the artefact
        """The private artefact: an Arrow table or plain data (mappings, lists, numbers, texts)."""

    def contribution(self, unit: str) -> str | None:
        """How many rows of one unit count, in words; None where all do."""
        return counted_rows(getattr(self, "max_rows", None), unit)

    def left_out(self) -> str | None:
        """Which rows are left out because of their values, in words; None where none is."""
        return None

    def counted(self, unit: str | None) -> str | None:
        """What of a table counts, in words; `unit` is None where each record is one."""
        sentences = [None if unit is None else self.contribution(unit), self.left_out()]
        return ". ".join(each for each in sentences if each is not None) or None

    def tells(self) -> Plain:
        """What the public page says besides the parameters, as far as it follows from them."""
        return {}

    def parameters(self) -> PlainDict:
        """The stored parameters as plain data."""
        from sfumato.core.declared import parameters

        return parameters(self)


class RowBounded(Algorithm):
    """An algorithm of which a declared number of each unit's rows (`max_rows`) count."""

    max_rows: int | None

    @property
    def kept_rows(self) -> int:
        """How many rows of one unit count; a record that is a unit of its own has one."""
        return 1 if self.max_rows is None else self.max_rows
