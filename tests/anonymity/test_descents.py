"""Good nodes of large lattices: what single steps miss is found by exchanging levels, and everything in the end."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.anonymity.search.descents import Descents
from tests.examples import examples

Levels = tuple[int, ...]


@dataclass(frozen=True)
class Seen:
    loss: float
    penalty: float


def lattice(parts: list[np.ndarray], penalties: dict[Levels, float]) -> Descents:
    def check(node: Levels) -> Seen:
        base = sum(float(part[level]) for part, level in zip(parts, node, strict=True))
        return Seen(base + penalties[node], penalties[node])

    return Descents(parts, check, lambda: False)


def test_levels_are_exchanged_where_no_single_step_helps() -> None:
    """From (1, 1) the way to (0, 3) leads over worse nodes only: one attribute a level lower, the other two levels higher."""
    parts = [np.array([0.0, 0.5]), np.array([0.0, 0.1, 0.2, 0.3])]
    penalties = dict.fromkeys(product(range(2), range(4)), 0.0)
    penalties |= {(0, 0): 2.0, (0, 1): 2.0, (0, 2): 2.0, (1, 0): 1.0}
    search = lattice(parts, penalties)
    search.best = (0.6, (1, 1))
    search._descend((1, 1))
    assert search.best == (0.6, (1, 1))
    assert search._exchanged() and search.best == (0.3, (0, 3))
    assert not search._exchanged()


@settings(max_examples=examples(20))
@given(st.data())
def test_a_search_without_end_finds_the_best_node(data: st.DataObject) -> None:
    """Penalties that fall upward, as suppression makes them; every node is seen when it ends."""
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    steps = [data.draw(st.lists(st.floats(0, 1), min_size=size - 1, max_size=size - 1)) for size in sizes]
    parts = [np.cumsum([0.0, *each]) for each in steps]
    nodes = list(product(*(range(size) for size in sizes)))
    drawn = {node: data.draw(st.floats(0, 1)) for node in nodes}
    penalties = {
        node: max(drawn[above] for above in nodes if all(x >= y for x, y in zip(above, node, strict=True))) for node in nodes
    }
    search = lattice(parts, penalties)
    search.start()
    search.evolve()
    best = min(search.check(node).loss for node in nodes)
    assert search.best[0] <= best + 1e-9
    assert abs(search.check(search.best[1]).loss - search.best[0]) <= 1e-12
