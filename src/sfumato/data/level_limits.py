"""Limits of generalisation: the levels of a hierarchy that a column may show."""

from __future__ import annotations

from dataclasses import dataclass, field

from sfumato.data.hierarchy import Hierarchy


@dataclass(frozen=True, eq=False)
class LevelLimits:
    """A column is shown on levels `least` to `greatest` of its `tree`; `capped` where values that meet only above stay apart."""

    least: int
    greatest: int
    tree: Hierarchy = field(repr=False)

    @property
    def capped(self) -> bool:
        """Whether the owner leaves out levels at the top."""
        return self.greatest < self.tree.height
