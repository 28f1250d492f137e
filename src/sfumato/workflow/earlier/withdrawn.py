"""Releases that were withdrawn: their owner states that they were never given away, so that nothing is combined with them.

Every later certificate names them and repeats the statement as the owner's, in words that `verify` knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.ledger.ledger import Ledger

#: How the notice of a certificate begins that repeats the statement.
WITHDRAWN = "withdrawn: "
#: Found where the ledger has earlier releases and none of them counts.
NONE_COUNTS = "every earlier release of this dataset in the ledger was withdrawn"
_MOST_NAMED = 3


def withdrawn_of(ledger: Ledger, dataset: str) -> tuple[str, ...]:
    """The entries of the releases of a dataset that were withdrawn so far, in the order of the withdrawals."""
    return tuple(each.release for each in ledger.withdrawals(dataset))


def withdrawn_in_words(releases: Sequence[str]) -> str:
    """The notice that a certificate states of them; empty where there is none."""
    if not releases:
        return ""
    one, named = len(releases) == 1, ", ".join(f"{each[:16]}…" for each in releases[:_MOST_NAMED])
    more = f" and {len(releases) - _MOST_NAMED:,} more" if len(releases) > _MOST_NAMED else ""
    return (
        f"{WITHDRAWN}the owner states that {'1 other release' if one else f'{len(releases):,} other releases'} of this data set "
        f"({'entry' if one else 'entries'} {named}{more}) {'was' if one else 'were'} never given away, so that nothing is "
        f"compared with {'it' if one else 'them'}; nobody can verify that"
    )
