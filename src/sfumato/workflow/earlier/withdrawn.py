"""What a certificate says of releases that were withdrawn: their owner's words, which nobody can verify."""

from __future__ import annotations

from collections.abc import Sequence

#: How the notice begins that repeats the statement.
WITHDRAWN = "withdrawn: "
_MOST_NAMED = 3


def withdrawn_in_words(releases: Sequence[str]) -> str:
    """The notice about these releases, by their entries."""
    one, named = len(releases) == 1, ", ".join(f"{each[:16]}…" for each in releases[:_MOST_NAMED])
    more = f" and {len(releases) - _MOST_NAMED:,} more" if len(releases) > _MOST_NAMED else ""
    return (
        f"{WITHDRAWN}the owner states that {'1 other release' if one else f'{len(releases):,} other releases'} of this data set "
        f"({'entry' if one else 'entries'} {named}{more}) {'was' if one else 'were'} never given away, so that nothing is "
        f"compared with {'it' if one else 'them'}; nobody can verify that"
    )
