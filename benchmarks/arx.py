"""What ARX 3.9.2 found and needed on Adult with nine hierarchies: the numbers that our searches are held against.

CPU milliseconds of its calling thread on a quiet machine of the same kind, data and hierarchies in memory, encoding
and search, no output. With a sensitive attribute it is occupation, which then has no level.
"""

from __future__ import annotations

from typing import NamedTuple


class Optimum(NamedTuple):
    """The best node at one suppression limit."""

    suppression: float
    levels: tuple[int, ...]
    loss: float  # rounded to five digits
    classes: int
    suppressed: int
    cpu_ms: float


K_ANONYMITY = (
    Optimum(0.00, (0, 4, 1, 1, 3, 2, 2, 1, 0), 0.63554, 24, 0, 36),
    Optimum(0.05, (0, 3, 0, 0, 2, 1, 1, 2, 0), 0.26963, 397, 1_346, 897),
    Optimum(1.00, (0, 3, 0, 0, 2, 1, 1, 1, 0), 0.22770, 602, 2_553, 2_628),
)

WITH_SENSITIVE: dict[str, tuple[Optimum, Optimum, Optimum]] = {
    "distinct l=3": (
        Optimum(0.00, (0, 4, 1, 2, 3, 2, 0, 0), 0.62500, 26, 0, 28),
        Optimum(0.05, (0, 3, 0, 0, 2, 1, 1, 0), 0.17988, 387, 1_400, 401),
        Optimum(1.00, (0, 3, 0, 0, 2, 1, 0, 0), 0.17361, 492, 2_335, 633),
    ),
    "entropy l=3": (
        Optimum(0.00, (0, 4, 1, 1, 3, 2, 2, 0), 0.67915, 8, 0, 23),
        Optimum(0.05, (0, 3, 0, 1, 2, 1, 1, 0), 0.22573, 261, 1_180, 477),
        Optimum(1.00, (0, 3, 0, 0, 2, 1, 0, 0), 0.19718, 408, 3_129, 861),
    ),
    "recursive (4,3)": (
        Optimum(0.00, (0, 4, 1, 2, 3, 2, 0, 0), 0.62500, 26, 0, 23),
        Optimum(0.05, (0, 2, 0, 1, 2, 1, 1, 0), 0.21977, 378, 1_408, 429),
        Optimum(1.00, (0, 3, 0, 0, 2, 1, 1, 0), 0.18885, 368, 1_715, 811),
    ),
    "t=0.2 equal": (
        Optimum(0.00, (1, 4, 1, 1, 3, 2, 2, 1), 0.92915, 2, 0, 12),
        Optimum(0.05, (1, 4, 1, 1, 3, 1, 2, 1), 0.83969, 6, 235, 1_046),
        Optimum(1.00, (1, 2, 0, 0, 3, 0, 2, 1), 0.64349, 23, 8_156, 1_764),
    ),
    "t=0.2 hierarchical": (
        Optimum(0.00, (0, 4, 1, 1, 3, 2, 2, 1), 0.80415, 4, 0, 15),
        Optimum(0.05, (1, 4, 0, 0, 3, 1, 2, 1), 0.67495, 24, 1_384, 1_066),
        Optimum(1.00, (0, 3, 0, 0, 3, 0, 2, 1), 0.54387, 37, 7_271, 1_979),
    ),
}
