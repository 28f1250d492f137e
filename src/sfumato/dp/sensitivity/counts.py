"""Sensitivities of counts: one count, several, histograms, and bar charts to which one unit adds several entries."""

from __future__ import annotations

from sfumato.core.declared import require
from sfumato.core.guarantees.loss import Neighbours
from sfumato.dp.sensitivity.base import Sensitivity


def count(neighbours: Neighbours = "add_remove", *, unit: str = "record") -> Sensitivity:
    """How many records satisfy a condition: 1 under either relation."""
    return Sensitivity.of(1, neighbours, unit=unit, why=f"one {unit} is counted once or not at all")


def several_counts(queries: int, neighbours: Neighbours = "add_remove", *, unit: str = "record") -> Sensitivity:
    """Several counts whose conditions may overlap: in the worst case one unit is counted in all of them."""
    require(isinstance(queries, int) and queries >= 1, "queries is a whole number of at least 1")
    return Sensitivity.of(1, neighbours, coordinates=queries, unit=unit, why=f"one {unit} may satisfy all {queries} conditions")


def histogram(neighbours: Neighbours = "add_remove", *, unit: str = "record") -> Sensitivity:
    """Counts in disjoint buckets: 1 if one record is added or removed, 2 if one is replaced."""
    return bar_chart(1, neighbours, unit=unit)


def bar_chart(most: int, neighbours: Neighbours = "add_remove", *, unit: str = "record") -> Sensitivity:
    """Counts in disjoint buckets to which one unit adds at most `most` entries, in one bucket or in several."""
    require(isinstance(most, int) and most >= 1, "the most entries of one unit is a whole number of at least 1")
    times = 1 if neighbours == "add_remove" else 2
    # All entries may lie in one bucket: that is the worst case of the L2 norm and of one coordinate.
    why = f"one {unit} adds at most {most} to the bars" + ("" if times == 1 else ", and replacing it also takes as many away")
    return Sensitivity.of(most, neighbours, coordinates=times, unit=unit, why=why)
