"""What a published table promises, so that anybody can check it from the published files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sfumato.core.declared import Declared
from sfumato.core.guarantees.base import Guarantee
from sfumato.core.ranges import Whole

OUTSIDER = "has the published table, knows that no value is negative, and contributed to no cell"


@dataclass(frozen=True)
class BlanksStayOpen(Guarantee):
    """No blank cell can be computed from the others: for each, two witnesses agree with all that is published.

    How far each blank is open against contributors is the owner's: a published level would give the value away.
    """

    protects: ClassVar[str] = "from disclosure of a blank by adding and subtracting"
    limits: ClassVar[tuple[str, ...]] = ("How wide a blank is open, and for contributors too, is audited by the owner alone.",)

    @property
    def adversary(self) -> str:
        """Who reads the table and contributed to no cell."""
        return OUTSIDER

    def claim(self) -> str:
        """The promise in words."""
        return "every blank cell can have at least two values, whatever is added and subtracted"


@dataclass(frozen=True)
class MultiplesOf(Guarantee, Declared):
    """Every published value is a multiple of `base`, so that small counts do not appear."""

    base: Annotated[int, Whole(at_least=2), "the base, in units of the last digit"]

    protects: ClassVar[str] = "from reading an exact value off the table"
    limits: ClassVar[tuple[str, ...]] = ("Totals that were rounded by themselves may together narrow a value down.",)

    @property
    def adversary(self) -> str:
        """Who reads the table."""
        return OUTSIDER

    def claim(self) -> str:
        """The promise in words."""
        return f"every value is a multiple of {self.base:,} units of the last digit"
