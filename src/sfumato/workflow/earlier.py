"""Earlier releases of the same dataset: k-anonymity does not compose, so each new release is intersected with
the old ones.

The published rows of every release are kept beside the ledger, readable by the owner alone; the comparison
sees what an outsider who collected all releases would see. Ganta, Kasiviswanathan, Smith, "Composition
attacks and auxiliary information in data privacy", KDD 2008.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sfumato.core.errors import SfumatoError
from sfumato.core.view import View
from sfumato.data.released import ReleasedTable
from sfumato.data.schema import Schema

if TYPE_CHECKING:
    from sfumato.data.microdata import Microdata
    from sfumato.ledger.chain import Entry
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


def store_of(ledger: Ledger) -> Path | None:
    """The folder that keeps the published rows of the ledger's releases; None for a ledger that is no
    file.
    """
    place = Path(ledger.description)
    return Path(f"{place}.releases") if place.is_file() else None


def keep_for_later(ledger: Ledger, published: bytes, digest: str) -> None:
    """Keep the published file, readable by the owner alone; it appears whole under its digest."""
    store = store_of(ledger)
    if store is None or (store / f"{digest}.parquet").exists():
        return
    store.mkdir(mode=0o700, exist_ok=True)
    hidden = store / f".{digest}.{os.getpid()}"
    try:
        with open(os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(published)
        os.replace(hidden, store / f"{digest}.parquet")
    finally:
        hidden.unlink(missing_ok=True)


def compare_with_earlier(
    ledger: Ledger, view: View, entered: Entry, digest: str, original: Microdata | None = None
) -> dict[str, Any]:
    """What somebody learns who holds this release and the earlier ones of the same dataset.

    With the original at hand, the people in the combinations of classes are counted and not estimated.
    """
    payloads = [
        (entry.hash, entry.payload)
        for entry in ledger.releases(view.schema.dataset)
        if entry.hash != entered.hash and entry.sequence < entered.sequence
    ]
    # What was made with noise has no classes to intersect: its loss is in the accounts of the same ledger.
    others = {str(payload.get("sha256")): (name, payload) for name, payload in payloads if payload.get("evidence") != "process"}
    others.pop(digest, None)  # the same rows again tell nothing new
    if not others:
        return {"earlier_releases": 0, "finding": "no earlier release of this dataset is in the ledger"}
    views, absent = [], []
    for sha256, (name, payload) in others.items():
        earlier = _view(ledger, view, sha256, payload, name)
        if earlier is None:
            absent.append(name)
        else:
            views.append(earlier)
    found = _intersect(view, views, original) if views else {}
    return {"earlier_releases": len(others), "compared": len(views), "not_available": absent, **found} | {
        "finding": _in_words(len(others), len(absent), found)
    }


def _view(ledger: Ledger, now: View, digest: str, payload: Mapping[str, Any], name: str) -> View | None:
    from sfumato.data.readers import read_file

    store = store_of(ledger)
    if store is None or not digest.isalnum() or not (store / f"{digest}.parquet").is_file():
        return None
    try:
        schema = Schema.parse(payload["schema"])
        table = read_file(store / f"{digest}.parquet", schema).table
    except (SfumatoError, KeyError, OSError):
        return None
    # Hierarchies are public; those of today are taken to be those of then.
    known = now.result if isinstance(now.result, ReleasedTable) else None
    return View(table if known is None else replace(known, table=table, schema=schema), schema, {}, name)


def _intersect(view: View, earlier: list[View], original: Microdata | None) -> dict[str, Any]:
    from sfumato.attacks import Intersection, OtherReleases

    names = sorted({name for each in (view, *earlier) for name in each.schema.quasi})
    people = None
    if original is not None and set(names) <= set(original.column_names):
        people = pa.Table.from_batches(list(original.relation.batches(names)))
    try:
        result = Intersection().run(view, OtherReleases(tuple(earlier), people))
    except SfumatoError as error:
        return {"finding": f"they could not be laid over each other ({type(error).__name__})"}
    return {
        "attack": result.attack,
        "success": result.success,
        "baseline": result.baseline,
        "people": result.targets,
        "details": dict(result.details),
        "finding": result.finding,
    }


def _in_words(releases: int, absent: int, found: Mapping[str, Any]) -> str:
    told = f"{releases} earlier release{'s' if releases > 1 else ''} of this dataset"
    parts = [f"{told}: {found['finding']}" if found else told]
    if absent:
        parts.append(
            f"{absent} of them could not be compared because their published rows are not kept here; what they reveal "
            "together with this release is unknown"
        )
    return ". ".join(parts)
