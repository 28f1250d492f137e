"""The ledger of a run: written where a release is entered, only read for a draft."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.ledger.ledger import Ledger


@contextmanager
def opened(ledger: Ledger | str | Path | None) -> Iterator[Ledger | None]:
    """The ledger at a path or URL, closed afterwards; one that is open already stays open."""
    if not isinstance(ledger, (str, Path)):
        yield ledger
        return
    from sfumato.ledger.ledger import Ledger as Book

    with Book.open(ledger) as book:
        yield book


@contextmanager
def opened_to_read(ledger: Ledger | str | Path | None) -> Iterator[Ledger | None]:
    """The same for reading alone: no ledger is made, and where there is no file there is none."""
    if not isinstance(ledger, (str, Path)):
        yield ledger
        return
    from sfumato.ledger.ledger import Ledger as Book

    if "://" not in str(ledger) and not Path(ledger).exists():
        yield None
        return
    with Book.open(ledger, read_only=True) as book:
        yield book
