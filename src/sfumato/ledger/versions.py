"""Which data the sessions of a dataset were opened on: what the owner declared, and whether it still is the same.

Each opening that finds something new is an entry with a keyed digest of the table; no count and no value is in it. A stored
answer belongs to a version, so that data that changed under the same version are answered with the old numbers until the
owner declares a new one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

from sfumato.core.plain_data import PlainDict
from sfumato.ledger.chain import Entry

EVERY_ROW = "every row"
COUNTS = "counts and sums"
NOT_TAKEN = "not taken"

Alike = tuple[str, str, str, str | None]
State = Literal["first seen", "unchanged", "changed", "other columns", "not comparable", "not taken"]


@dataclass(frozen=True)
class Seen:
    """What a session found: the declared version, the table, how its digest was taken, the digest, and with which key."""

    version: str
    table: str
    how: str = NOT_TAKEN
    digest: str | None = None
    columns: str | None = None
    key: str | None = None

    @property
    def alike(self) -> Alike:
        """Digests are compared where all of these agree."""
        return self.version, self.table, self.how, self.key

    def to_mapping(self) -> PlainDict:
        """Plain data, as entries hold it."""
        return asdict(self)


@dataclass(frozen=True)
class DataVersion:
    """One line of a dataset's history: when a table was seen under which version, and how it compares with the time before."""

    time: str
    version: str
    table: str
    how: str
    state: State

    @property
    def worrying(self) -> bool:
        """True where a new version should have been declared."""
        return self.state in ("changed", "other columns")


def seen_in(entries: Iterable[Entry]) -> list[Seen]:
    """What the entries say was seen, oldest first."""
    return [Seen(**entry.payload) for entry in entries]


def outdated(lines: Iterable[DataVersion]) -> list[str]:
    """Versions under which a table was seen last and has ever changed: the owner should declare a new one.

    Nothing but another version ends that: an opening without a digest, or with another key, says nothing about the data.
    """
    listed = list(lines)
    last = {line.table: line.version for line in listed}
    return sorted({line.version for line in listed if line.worrying and last[line.table] == line.version})


def history(entries: Iterable[Entry]) -> list[DataVersion]:
    """The entries with what changed from one to the next, for every version and table."""
    last: dict[Alike, Seen] = {}
    states = []
    for entry in entries:
        now = Seen(**entry.payload)
        digested = any(each[:2] == now.alike[:2] for each, before in last.items() if before.digest is not None)
        states.append(DataVersion(entry.time, now.version, now.table, now.how, _state(last.get(now.alike), now, digested)))
        last[now.alike] = now
    return states


def _state(before: Seen | None, now: Seen, digested: bool) -> State:
    if now.digest is None:
        return "not taken"
    if before is None:
        return "not comparable" if digested else "first seen"
    if before.columns != now.columns:
        return "other columns"
    return "unchanged" if before.digest == now.digest else "changed"
