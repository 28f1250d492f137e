"""Draws computed by the engine that holds the rows: HMAC-SHA256 under a key of the run, and no engine's own chance.

The message is the digest of the row's content (`row_digest`) and the number of the row among those that are equal to it; what is
drawn, the purpose, stands before it. So a task that runs again, or twice, draws the same numbers, and rows that are equal in all
columns may change places without a trace. The key travels as an uploaded table, as that of `keyed_names` does.
docs/theory/keyed-draws.md says what law such draws have.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

import pyarrow as pa

from sfumato.engines.digests.keyed_names import beside_key, key_table, keyed_digest
from sfumato.engines.digests.row_text import LIMB_BITS, LIMBS, Limb, RowDigest
from sfumato.engines.expressions import Cast, Expression, Joined, Literal, Reference
from sfumato.engines.functions.numbers import Remainder
from sfumato.engines.plan import Named, Numbering, Plan, Project, column, columns

#: What a row of the source has from the first draw on: the digest of its content, and its number among equal rows.
ROW = "\x00row"
COPY = "\x00copy"
#: A draw is a whole number below 2 to the power of this.
DRAW_BITS = LIMB_BITS
#: Independent draws of one purpose.
DRAWS = LIMBS
#: Draws that become floating-point numbers have this many bits, so that none is rounded.
EXACT_BITS = 52


def with_numbers(plan: Plan) -> Plan:
    """The rows, each with the digest of all its columns and its number among the rows that are equal to it; any order among these
    gives the same rows."""
    kinds = columns(plan)
    content = RowDigest(tuple(Reference(name) for name in sorted(kinds)))
    return Numbering(Project(plan, (*map(column, kinds), Named(ROW, content))), COPY, (ROW,), ())


def with_draws(plan: Plan, purposes: Mapping[str, str], key: bytes, table: str) -> tuple[Plan, dict[str, pa.Table]]:
    """Rows that have numbers, with a column of draws for each purpose (column to purpose), and what is uploaded as `table`."""
    keys = key_table([_prefix(purpose) for purpose in purposes.values()], key)
    message = Joined((Reference(ROW), Literal(":"), Cast(Reference(COPY), "string")))
    drawn = (Named(name, keyed_digest(message, place)) for place, name in enumerate(purposes))
    return Project(beside_key(plan, table, keys), (*map(column, columns(plan)), *drawn)), {table: keys}


def draw(name: str, number: int = 0) -> Expression:
    """Draw `number` (0 to 3) of a column of draws: a whole number, uniform below 2^60."""
    return Limb(Reference(name), number)


def exact_draw(name: str, number: int = 0) -> Expression:
    """The same below 2^52, which is a floating-point number too."""
    return Remainder(draw(name, number), 1 << EXACT_BITS)


def drawn_here(content: str, copy: int, purpose: str, key: bytes) -> tuple[int, ...]:
    """The draws of a row with this digest and number, computed in this process: what every engine computes."""
    digest = hmac.digest(key, _prefix(purpose) + f"{content}:{copy}".encode(), hashlib.sha256).hex()
    width = DRAW_BITS // 4
    return tuple(int(digest[width * part : width * (part + 1)], 16) for part in range(DRAWS))


def _prefix(purpose: str) -> bytes:
    """What every message of a purpose begins with, so that no message of one purpose is one of another."""
    text = purpose.encode("utf-8", "surrogatepass")
    return b"sfumato draw\x00" + len(text).to_bytes(8, "big") + text
