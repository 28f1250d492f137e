"""One digest for a list of things: the root of a hash tree over their descriptions.

Changing, adding, dropping or reordering a description changes the root, unless SHA-256 collides; one description is shown to
belong to the root with one digest per level. A leaf is SHA-256(0x00 ‖ description), an inner node SHA-256(0x01 ‖ left ‖ right),
so that none can be taken for the other. A list of n > 1 is divided after the first k, the largest power of two below n; one
description is its own tree, and the tree of none is SHA-256 of nothing. Laurie, Langley, Kasper, RFC 6962, section 2.1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

_LEAF, _INNER = b"\x00", b"\x01"


def tree_root(descriptions: Sequence[bytes]) -> bytes:
    """The root of the tree over these descriptions, in their order.

    >>> tree_root([b"one"]) == hashlib.sha256(b"\\x00one").digest()
    True
    """
    if not descriptions:
        return hashlib.sha256().digest()
    level = [hashlib.sha256(_LEAF + each).digest() for each in descriptions]
    # pairs from the left, the last alone goes up as it is: the same tree as dividing at powers of two
    while len(level) > 1:
        pairs = [hashlib.sha256(_INNER + level[i] + level[i + 1]).digest() for i in range(0, len(level) - 1, 2)]
        level = pairs + level[len(level) - len(level) % 2 :]
    return level[0]
