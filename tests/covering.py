"""Which combinations of parameters `make test` runs of a law that has several."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import pytest


def leave_to_stress(items: Iterable[pytest.Item]) -> None:
    """Of a law that is `covering`, run so many combinations of its parameters that each value of each is among them."""
    laws: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("covering"):
            laws.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for law in laws.values():
        sizes = [len(mark.args[1]) for mark in law[0].iter_markers("parametrize")]
        if math.prod(sizes) != len(law):  # some of them were asked for by name
            continue
        diagonal = {tuple(number % size for size in sizes) for number in range(max(sizes))}
        for item, places in zip(law, itertools.product(*map(range, sizes)), strict=True):
            if places not in diagonal:
                item.add_marker(pytest.mark.stress)
