"""The order of rows does not matter: worked cases in which it once did."""

from __future__ import annotations

from itertools import permutations

import pyarrow as pa

import sfumato as sf

ROWS = [(20, 0, "m"), (21, 2, "m"), (22, 0, "m"), (0, 1, "m"), (1, 0, "f")]


def test_equal_gains_are_told_apart_by_the_attribute_and_not_by_rounding() -> None:
    """Two splits save exactly the same; sums of their gains in different orders differ in the last bit."""
    numbers = sf.Column(role="quasi", type="integer", hierarchy={"intervals": [10, 20, 40]})
    schema = sf.Schema(dataset="order", columns={"x": numbers, "y": numbers, "sex": sf.Column(role="quasi")})
    losses = set()
    for rows in permutations(ROWS):
        table = pa.table({name: [row[i] for row in rows] for i, name in enumerate(("x", "y", "sex"))})
        outcome = sf.LocalRecoding().run(sf.read(table, schema), [sf.KAnonymity(2)])
        losses.add(round(outcome.details["loss"], 9))
    assert losses == {0.6}
