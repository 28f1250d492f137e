"""Earlier releases of the same dataset: k-anonymity does not compose, so each new release is intersected with
the old ones.

The published rows of every release are kept beside the ledger, readable by the owner alone, with how their texts are to be
read; the comparison sees what an outsider who collected all releases would see. What cannot be compared for certain is said
not to be compared, and counts as if everything added up. Ganta, Kasiviswanathan, Smith, "Composition attacks and auxiliary
information in data privacy", KDD 2008.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.core import registry
from sfumato.core.errors import Cancelled, SfumatoError, Unsupported
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.core.view import ONE_RECORD, View
from sfumato.data.relation import COUNT
from sfumato.data.schema import Schema
from sfumato.data.texts.values import sorted_sets
from sfumato.workflow import named
from sfumato.workflow.earlier.readings import ColumnReading, ReleaseReading, Today, as_it_reads, as_they_are, store_of

if TYPE_CHECKING:
    from sfumato.data.microdata import Microdata, ReleasedTable
    from sfumato.ledger.chain import Entry
    from sfumato.ledger.ledger import Ledger


#: What has to be taken for true where nothing else is known.
ADDS_UP = "assume that everything the releases tell adds up"
NOTHING_EARLIER = "no earlier release of this dataset is in the ledger"
SAME_ROWS = "the same rows were released before"
#: Where the ledger has earlier releases, and their owner says that none of them was given away.
NONE_COUNTS = "every earlier release of this dataset in the ledger was withdrawn"
#: Why two releases are not combined.
_CHANGED_VALUES = "values that a mask changed need not be those of people, and have no classes to compare with those of others"
_OF_SOME_RECORDS = "one of them holds a drawn sample of the records, so that nobody can tell from both whose records are in both"
#: How an entry names content that stayed in an engine.
STORED_ROWS = "StoredRows"


@dataclass(frozen=True)
class Together:
    """What is known when a release is combined with earlier ones: by anyone who holds all of them, and by the owner; and which
    of them do not count, because they were withdrawn."""

    outside: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    owner: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    withdrawn: tuple[str, ...] = ()


def withdrawn_of(ledger: Ledger, dataset: str) -> tuple[str, ...]:
    """The entries of the releases of a dataset that were withdrawn so far, in the order of the withdrawals."""
    return tuple(each.release for each in ledger.withdrawals(dataset))


@dataclass(frozen=True, eq=False)
class Newest:
    """The release that is compared: what is published, what its entry holds, the digest of its file, how it is read, the
    fingerprint of the table behind it, and the hash of its entry, which a draft does not have."""

    view: View[ReleasedTable, Schema] = field(repr=False)
    payload: Plain = field(repr=False)
    digest: str
    reading: ReleaseReading = field(repr=False)
    fingerprint: str | None = None
    entry: str = ""


@dataclass(frozen=True, eq=False)
class _Earlier:
    """A release in the ledger that can be read (`view`), or why not."""

    name: str
    view: View[ReleasedTable, Schema] | None = field(default=None, repr=False)
    why_not: str = ""
    same_rows: bool = False
    gone: bool = False
    changed_table: bool | None = False  # None: the fingerprints have different keys or formats, and do not tell
    table: str | None = None  # the fingerprint of the table behind it
    reading: ReleaseReading | None = field(default=None, repr=False)  # None: how it shows its columns is not known
    seeded: bool = False


def compare_with_earlier(
    ledger: Ledger, new: Newest, original: Microdata | None, *, withdrawn: Collection[str] = (), counted: bool = False
) -> PlainDict:
    """What somebody learns who holds this release and the other ones of the same dataset, without those `withdrawn`.

    `counted`: the people in the combinations of classes are counted in the original, and not estimated. Otherwise the original
    only says which values a text may stand for. The release is entered already: a comparison that fails is said to have
    failed, and only who stops it sees an exception.
    """
    try:
        return _compared(ledger, new, original, withdrawn, counted=counted)
    except Cancelled:
        raise
    except Exception as error:
        why = f"the comparison failed ({type(error).__name__})"
        return {
            "earlier_releases": "not known",
            "compared": 0,
            "finding": f"Earlier releases of this dataset could not be compared: {why}; {ADDS_UP}",
        }


def compared_both_ways(ledger: Ledger, new: Newest, original: Microdata | None) -> Together:
    """What an outsider finds who holds the releases and not the original, for the certificate, which is public; and what the
    owner counts in the original."""
    withdrawn = withdrawn_of(ledger, new.view.schema.dataset)
    outside = compare_with_earlier(ledger, new, original, withdrawn=withdrawn)
    if not outside["earlier_releases"]:
        return Together(outside, withdrawn=withdrawn)
    exact = compare_with_earlier(ledger, new, original, withdrawn=withdrawn, counted=True)
    owner = {f"{whom} counted in the original": exact["finding"] for whom in ("people", "records") if whom in exact}
    return Together(outside, owner, withdrawn)


def not_compared(ledger: Ledger, new: Entry) -> Together:
    """What is said of content that nobody combines with earlier releases: how many there are, and what to assume."""
    withdrawn = withdrawn_of(ledger, new.dataset)
    listed = [entry.hash for entry in ledger.releases(new.dataset) if entry.hash != new.hash]
    others = [each for each in listed if each not in withdrawn]
    if not others:
        return Together({"earlier_releases": 0, "finding": NONE_COUNTS if listed else NOTHING_EARLIER}, withdrawn=withdrawn)
    earlier = f"{len(others)} earlier release{'s' * (len(others) > 1)} of this dataset"
    stated = {
        "earlier_releases": len(others),
        "compared": 0,
        "not_compared": dict.fromkeys(others, "there is no comparison of this kind of content"),
        "finding": f"{earlier}: {'it was' if len(others) == 1 else 'they were'} not compared with this one; {ADDS_UP}",
    }
    return Together(stated, withdrawn=withdrawn)


def _compared(
    ledger: Ledger, new: Newest, original: Microdata | None, withdrawn: Collection[str], *, counted: bool
) -> dict[str, Any]:
    listed = [entry for entry in ledger.releases(new.view.schema.dataset) if entry.hash != new.entry]
    entries = [entry for entry in listed if entry.hash not in withdrawn]
    # What was made with noise has no classes to intersect: its loss is in the accounts of the same ledger.
    noisy = [entry for entry in entries if entry.payload.get("evidence") == "process"]
    tables = [_earlier(ledger, new, entry, original) for entry in entries if entry.payload.get("evidence") != "process"]
    others = [each for each in tables if not each.same_rows]  # the same rows again tell nothing new, unless they were drawn
    views = [each for each in others if each.view is not None]
    combined = _intersect(new, views, original, counted) if views else {}
    if views and "attack" not in combined:  # all or nothing: what could not be combined was not compared
        others = [replace(each, view=None, why_not=str(combined["why"])) if each.view is not None else each for each in others]
        views, combined = [], {}
    uncompared = {each.name: each.why_not for each in others if each.view is None and not each.gone}
    comparison: dict[str, Any] = {"earlier_releases": len(others)}
    if others:
        comparison |= {"compared": len(views), "not_available": [each.name for each in others if each.gone]}
    if uncompared:
        comparison["not_compared"] = uncompared
    if noisy:
        comparison["made_with_noise"] = len(noisy)
    finding = _in_words(others, noisy, combined, repeated=len(tables) > len(others))
    finding = NONE_COUNTS if listed and not entries else finding
    try:
        masks, said = _repeated(new, others, noisy)
    except Cancelled:
        raise
    except Exception:  # what is kept may be in no known form
        masks, said = {}, f". What the masks of the releases give away together could not be told: {ADDS_UP}"
    if masks:
        comparison["repeated_masks"] = masks
    return {**comparison, **combined, "finding": finding + said}


def _earlier(ledger: Ledger, new: Newest, entry: Entry, original: Microdata | None) -> _Earlier:
    """The rows of then with what their texts stand for, or why they cannot be read."""
    from sfumato.workflow.earlier.stored_groups import kept_rows

    digest, payload = str(entry.payload.get("sha256")), entry.payload
    if payload.get("content") not in (None, STORED_ROWS):
        return _Earlier(entry.hash, why_not="it holds another kind of content")
    store = store_of(ledger)
    if store is None or not digest.isalnum() or not (store / f"{digest}.parquet").is_file():
        return _Earlier(entry.hash, gone=True)
    try:
        reading = ReleaseReading.from_json((store / f"{entry.hash}.json").read_bytes())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return _Earlier(entry.hash, why_not="how its texts are to be read was not kept")
    if digest == new.digest and reading == new.reading and not named.is_drawn(payload.get("method")):
        return _Earlier(entry.hash, same_rows=True)
    both = (reading, new.reading)
    if any(each.masked or each.of_some_records for each in both) or _was_mask(payload):
        chosen = not any(each.changes_values for each in both) and reading.masked >= _was_mask(payload)
        why = _OF_SOME_RECORDS if chosen else _CHANGED_VALUES
        source, seeded = payload.get("fingerprint"), bool(payload.get("seeded"))
        return _Earlier(entry.hash, why_not=why, table=source, reading=_certain(reading, payload), seeded=seeded)
    same = new.fingerprint is not None and payload.get("fingerprint") == new.fingerprint
    today = Today(new.reading, new.view.result.hierarchies, original, same)
    try:
        schema = Schema.parse(payload["schema"])
        table, counts = kept_rows(store / f"{digest}.parquet", schema, grouped="content" in payload)
        quasi = frozenset((*schema.quasi, *new.view.schema.quasi))
        released = replace(as_it_reads(table, schema, reading, quasi, today, store), counts=counts)
    except Unsupported as error:
        return _Earlier(entry.hash, why_not=str(error))
    except Cancelled:
        raise
    except (SfumatoError, KeyError, OSError):
        return _Earlier(entry.hash, gone=True)
    except Exception as error:
        return _Earlier(entry.hash, why_not=f"it could not be read ({type(error).__name__})")
    certificate = {"transparency": dict(reading.transparency)}
    telling = _same_kind(new.fingerprint, payload.get("fingerprint"))
    telling = telling and not (payload.get("seeded") or new.payload.get("seeded"))
    changed = None if not same and not telling else not same
    return _Earlier(entry.hash, View(released, schema, certificate, "an earlier release"), changed_table=changed, reading=reading)


def _intersect(new: Newest, earlier: Sequence[_Earlier], original: Microdata | None, counted: bool) -> dict[str, Any]:
    from sfumato.attacks import Intersection, OtherReleases
    from sfumato.attacks.several.intersection import as_stated
    from sfumato.attacks.tables.classes import hides_units

    views = [each.view for each in earlier if each.view is not None]
    names = sorted({name for each in (new.view, *views) for name in each.schema.quasi})
    odd = _written_otherwise([new.reading, *(each.reading for each in earlier if each.reading is not None)])
    if odd is not None:
        return {"why": f"the values of column '{odd}' had another type, or other codes for missing ones"}
    if untied := _not_tied([(new.reading, new.view), *((each.reading, each.view) for each in earlier)]):
        listed = ", ".join(f"'{name}'" for name in untied)
        stayed = "rows that stayed in an engine are known by their groups alone"
        return {"why": f"records could be tied together by {listed}, and {stayed}"}
    # the texts of a column that today's table lacks cannot be read over its values
    unread = frozenset(names) - set(new.view.result.hierarchies) - set(() if original is None else original.column_names)
    people, counts = None, None
    if counted and original is not None and set(names) <= set(original.column_names):
        grouped = original.relation.group(names)
        people = sorted_sets(grouped.select(names), original.schema)
        counts = grouped.column(COUNT).to_numpy().astype(np.int64)
    try:
        result = as_stated(
            Intersection().run(_read_by_all(new.view, names), OtherReleases(tuple(views), people, unread, counts=counts))
        )
    except Unsupported as error:
        return {"why": str(error)}
    except Cancelled:
        raise
    except Exception as error:
        return {"why": f"they could not be combined ({type(error).__name__})"}
    if not result.details["combinations"]:
        return {"why": "as they are written the releases have nothing in common, which proves nothing about people"}
    changed = ""
    if any(each.changed_table for each in earlier):
        changed = " The table, or the key of its fingerprint, was another one then: who changed since is not in these numbers."
    elif any(each.changed_table is None for each in earlier):
        changed = (
            " Whether the table changed since cannot be told: a release was made with a seed, or one stayed in an engine and "
            "another did not, so that their fingerprints are of different kinds."
        )
    whom = "records" if any(hides_units(each) for each in (new.view, *views)) else "people"
    return {
        "attack": result.attack,
        "success": result.success,
        "baseline": result.baseline,
        whom if people is not None else f"{whom}_estimated": result.targets,
        "details": dict(result.details),
        "finding": f"{result.finding}{changed}",
    }


def _same_kind(one: str | None, other: object) -> bool:
    """Whether two fingerprints are of one format, so that different ones are of different tables or keys."""
    return one is not None and str(other).split(":")[0] == one.split(":")[0]


def _not_tied(releases: Sequence[tuple[ReleaseReading | None, View[ReleasedTable, Schema] | None]]) -> list[str]:
    """Columns that several releases publish and not all of them are known by: rows that stayed in an engine are known by their
    groups alone."""
    read = [(reading, view.result.table.column_names) for reading, view in releases if reading is not None and view is not None]
    published = Counter(name for reading, _ in read for name in reading.columns)
    lacking = {name for reading, names in read for name in reading.columns if name not in names}
    return sorted(name for name in lacking if published[name] > 1)


def _written_otherwise(readings: Sequence[ReleaseReading]) -> str | None:
    """A column that some of the releases, be it without the new one, do not write as others do."""
    first: dict[str, ColumnReading] = {}
    for reading in readings:
        for name, column in reading.columns.items():
            if not first.setdefault(name, column).same_values(column):
                return name
    return None


def _was_mask(payload: Plain) -> bool:
    """Whether an entered release was made by a mask."""
    return registry.has("mask", (payload.get("method") or {}).get("name"))


def _certain(reading: ReleaseReading, payload: Plain) -> ReleaseReading | None:
    """The reading of a release, unless a mask made it that tells nothing about itself."""
    return reading if reading.masked or not _was_mask(payload) else None


def _repeated(new: Newest, others: Sequence[_Earlier], noisy: Sequence[Entry]) -> tuple[dict[str, str], str]:
    """What the masks of several releases give away together, by column and in words. Nothing is added up for a column that a
    release shows in a way that the sum does not cover."""
    from sfumato.attacks.several.repeated_masks import (
        AS_IT_IS,
        Repeated,
        can_be_combined,
        how_shown,
        in_words,
        over_other_tables,
        repeated_masks,
    )

    readings = [_certain(new.reading, new.payload), *(each.reading for each in others)]
    seeds = [bool(new.payload.get("seeded")), *(each.seeded for each in others)]
    sources = [new.fingerprint or new.entry, *(each.table or each.name for each in others)]
    masked = [
        (each.transparency, source) for each, source in zip(readings, sources, strict=True) if each is not None and each.masked
    ]
    if not masked:
        return {}, ""
    masks, tables = [mask for mask, _ in masked], [table for _, table in masked]
    repeats = repeated_masks(masks, tables)
    several = any(each is not None and each.transparency.get("unit", ONE_RECORD) != ONE_RECORD for each in readings)
    by_column: dict[str, str] = {}
    sums: list[Repeated] = []
    unchanged: list[str] = []
    unsummed: list[str] = []
    for column in sorted({each.column for each in repeats}):
        about = [each for each in repeats if each.column == column]
        showings = [
            None if each is None else how_shown(column, each.transparency)
            for each in readings
            if each is None or column in each.columns
        ]
        # releases under one seed have draws in common, which do not add up as those of independent ones do
        seeded = sum(seed for each, seed in zip(readings, seeds, strict=True) if each is None or column in each.columns)
        if plain := showings.count(AS_IT_IS):
            by_column[column] = f"'{column}' is published as it is in {plain} of the releases"
            unchanged.append(by_column[column])
        elif seeded > 1 or _outside_accounts(noisy) or not can_be_combined([each.kind for each in about], showings):
            by_column[column] = f"what the releases tell of '{column}' was not added up: {ADDS_UP}"
            unsummed.append(f"'{column}'")
        else:
            by_column[column] = "; ".join(each.sentence(several=several) for each in about)
            sums += about
    said = "; ".join([*in_words(sums, several=several), *unchanged])
    finding = f". Whoever can tell which records belong together learns more than from one release alone: {said}" if said else ""
    if unsummed:
        finding += f". What the releases tell of {', '.join(unsummed)} was not added up: {ADDS_UP}"
    if apart := over_other_tables(masks, tables):
        listed = ", ".join(f"'{column}'" for column in apart)
        finding += (
            f". Ranks and noise in {listed} were not put together where the table was another one, or its fingerprint does "
            f"not show that it was the same: {ADDS_UP}"
        )
    return by_column, finding


def _outside_accounts(noisy: Sequence[Entry]) -> int:
    """How many results made with noise no account covers."""
    return sum(entry.payload.get("charged") is None or entry.payload.get("private") is not True for entry in noisy)


def _read_by_all(view: View[ReleasedTable, Schema], quasi: Sequence[str]) -> View[ReleasedTable, Schema]:
    """The new release, where columns that it shows as they are may be quasi-identifiers of another."""
    table = view.result.table
    plain = [name for name in quasi if name in table.column_names and name not in view.schema.quasi]
    trees = {**view.result.hierarchies, **{name: as_they_are(table, name) for name in plain}}
    return replace(view, result=replace(view.result, hierarchies=trees))


def _in_words(others: Sequence[_Earlier], noisy: Sequence[Entry], combined: Mapping[str, Any], *, repeated: bool) -> str:
    parts = []
    if others:
        words = f"{len(others)} earlier release{'s' * (len(others) > 1)} of this dataset"
        used = sum(each.view is not None for each in others)
        verb = "was" if used == 1 else "were"
        which = f", {used} of which {verb} combined with this one" if combined and used < len(others) else ""
        parts.append(f"{words}{which}: {combined['finding'].rstrip('.')}" if combined else words)
    elif repeated:
        parts.append(SAME_ROWS)
    elif not noisy:
        return NOTHING_EARLIER
    reasons = Counter(each.why_not for each in others if each.view is None and not each.gone)
    if gone := sum(each.gone for each in others):
        reasons["the published rows are not kept here, so what they reveal together with this release is unknown"] = gone
    for why, times in reasons.items():
        could_not = (
            "it could not" if len(others) == 1 else "none of them could" if times == len(others) else f"{times} of them could not"
        )
        parts.append(f"{could_not} be compared: {why.rstrip('.')}; {ADDS_UP}")
    if noisy:
        free = _outside_accounts(noisy)
        words = (
            f"{len(noisy)} earlier result{'s' * (len(noisy) > 1)} of this dataset made with noise: what was charged adds up in"
        )
        were = "it was" if len(noisy) == 1 else f"{free} of them {'was' if free == 1 else 'were'}"
        rest = f"; {were} not charged or not private, so assume that everything they tell adds up" if free else ""
        parts.append(f"{words} the accounts of the ledger{rest}")
    return ". ".join(part[:1].upper() + part[1:] if place else part for place, part in enumerate(parts))
