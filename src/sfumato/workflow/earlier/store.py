"""What is kept beside a ledger of its releases, for the owner alone: their published rows, and how these are to be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.workflow.earlier.readings import keep

if TYPE_CHECKING:
    from sfumato.ledger.ledger import Ledger


def store_of(ledger: Ledger) -> Path | None:
    """The folder that keeps the published rows of the ledger's releases; None for a ledger that is no
    file.
    """
    place = Path(ledger.description)
    return Path(f"{place}.releases") if place.is_file() else None


@contextmanager
def keep_rows(ledger: Ledger, published: bytes, digest: str) -> Iterator[None]:
    """Keep the published file under its digest, for the owner alone; where what follows fails it is taken away again."""
    store = store_of(ledger)
    fresh = store is not None and not (store / f"{digest}.parquet").exists()
    if store is not None and fresh:
        keep(store, f"{digest}.parquet", published)
    try:
        yield
    except BaseException:
        if store is not None and fresh:
            (store / f"{digest}.parquet").unlink(missing_ok=True)
        raise


def keep_reading(ledger: Ledger, entered: str, reading: bytes) -> None:
    """Keep how a release is read under the hash of its entry. It is entered by now: where the disk fails nothing is raised, and
    later releases say that it could not be compared."""
    store = store_of(ledger)
    if store is not None and not (store / f"{entered}.json").exists():
        with suppress(OSError):
            keep(store, f"{entered}.json", reading)
