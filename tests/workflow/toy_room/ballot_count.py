"""The fewest votes behind an item of a ballot."""

from __future__ import annotations

from collections.abc import Mapping


def fewest_votes(ballot: Mapping[str, int]) -> int:
    """Counted item by item; a ballot without items has nobody to protect."""
    fewest = 0
    for count in ballot.values():
        fewest = count if not fewest else min(fewest, count)
    return fewest
