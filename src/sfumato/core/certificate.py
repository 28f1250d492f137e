"""The certificate of a release: what is claimed, what was measured, and on what evidence.

A certificate is plain data (`to_mapping` / `from_mapping`) in a canonical JSON form, so that anybody can read it,
re-check the claims whose evidence is in the files, and verify the owner's signature over exactly those bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sfumato.core.errors import InputError
from sfumato.core.guarantees.base import Evidence
from sfumato.core.markup import Child, shorten
from sfumato.core.plain_data import Plain, PlainDict

#: What is written now. The first format had no `card`: what its public page was made from is not known.
FORMAT = "sfumato-certificate-2"
#: What a certificate says instead of an entry's hash when there was no ledger.
NOT_ENTERED = "not entered"
#: How a certificate names the size of the smallest class in records where it promises different units.
RECORDS_PER_CLASS = "records per class"
#: How it names the fewest different values of a class without those that are missing, where a missing value makes a difference.
KNOWN_VALUES = "different known values"
FIRST_FORMAT = "sfumato-certificate-1"
FORMATS = (FIRST_FORMAT, FORMAT)


@dataclass(frozen=True)
class Claim:
    """One guarantee: what was promised, what was measured, whether it holds, and what one needs to check that
    again.

    `reference` names the digest of the second file where the evidence is `output+reference`; `argument` and
    `ledger_entry` stand in for files where the evidence is a process.
    """

    guarantee: str
    parameters: Mapping[str, Any]
    promised: str
    measured: float | None
    holds: bool
    evidence: Evidence
    protects: str
    also_measured: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    adversary: str = ""  # what the attacker is assumed to know
    unit: str = "record"  # whose presence is protected: a record, or the unit column's people
    neighbours: str | None = None  # the neighbour relation, where the guarantee has one
    reference: str | None = None
    argument: str | None = None
    ledger_entry: str | None = None

    @property
    def counts_units(self) -> bool:
        """Whether the promise counts different units, such as people, and not records."""
        return self.unit.startswith("different ")

    @property
    def rests_on_maker(self) -> bool:
        """Whether units were counted whose column is not published, so that files show their records alone."""
        return self.counts_units and RECORDS_PER_CLASS in self.also_measured

    @property
    def promise(self) -> str:
        """What was promised, with what it counts where that is not records."""
        if not self.counts_units:
            return self.promised
        shares = ", and shares in records" if "alpha" in self.parameters else ""  # of people with several, more may have a value
        return f"{self.promised}, counted in {self.unit}{shares}"

    @property
    def in_a_line(self) -> str:
        """The promise, whether it is kept, and the number that was measured, where it is published."""
        number = "" if self.measured is None else f", measured {self.measured:.6g}"
        return f"{self.promise}: {'kept' if self.holds else 'not kept'}{number}"


@dataclass(frozen=True)
class Certificate:
    """Everything the owner states about a release."""

    dataset: str
    created: str
    claims: tuple[Claim, ...]
    method: Mapping[str, Any]
    schema: Mapping[str, Any]
    files: Mapping[str, Mapping[str, Any]]  # plain file name -> {"sha256": …, "bytes": …, "rows": …}
    versions: Mapping[str, str]
    fingerprint: str | None  # keyed digest of the input: proves to the owner, tells others nothing
    randomness: str
    private: bool
    ledger: str  # entry hash, or "not entered"
    composition: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    attacks: tuple[Mapping[str, Any], ...] = ()
    transparency: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    notices: tuple[str, ...] = ()
    card: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))  # what the public page shows besides
    format: str = FORMAT
    content: str = ""  # the kind of content; rows and private results are known by their claims, and say nothing
    draft: bool = False  # made to be looked at: no ledger has an entry of it
    withdrawn: tuple[str, ...] = ()  # entries of releases that their owner says were never given away

    def __repr__(self) -> str:
        stated = [f"{name} = {value:.6g}" for name, value in self.measured.items() if value is not None]
        stated = stated or [claim.promised for claim in self.claims] or ["nothing promised"]
        words = [*stated, *([] if self.holds else ["not kept"]), *([] if self.private else ["a demonstration"])]
        words += ["a draft"] if self.draft else []
        return f"Certificate('{shorten(self.dataset, 60)}', {shorten(', '.join(words), 300)})"

    def _repr_html_(self) -> str:
        from sfumato.core.panel import panel

        return panel("Certificate", self.facts())

    def facts(self) -> list[tuple[str, Child]]:
        """What a notebook shows of it."""
        from sfumato.core.panel import lines

        promises = [claim.in_a_line for claim in self.claims] or ["nothing is promised"]
        method = dict(self.method)
        called = f"{method.pop('name', 'unknown')}({', '.join(f'{name}={value}' for name, value in method.items())})"
        facts: list[tuple[str, Child]] = [
            ("dataset", shorten(self.dataset, 200)),
            ("promises", lines(promises)),
            ("method", shorten(called, 200)),
            ("created", shorten(self.created, 60)),
            ("ledger", shorten(self.ledger, 16) if self.ledger != NOT_ENTERED else NOT_ENTERED),
        ]
        if self.draft:
            facts.append(("draft", "to be looked at, and not to be given away: no ledger has an entry of it"))
        if not self.private:
            facts.append(("demonstration", "its randomness was seeded: anybody with the seed can make it again"))
        return [*facts, *([("notices", lines(self.notices))] if self.notices else [])]

    @property
    def kind_of_content(self) -> str:
        """The name of the kind of content that the certificate is about."""
        return self.content or ("PrivateResult" if any(claim.evidence == "process" for claim in self.claims) else "Rows")

    @property
    def measured(self) -> dict[str, float | None]:
        """Measured number per guarantee: `{"KAnonymity": 5, "DistinctLDiversity(occupation)": 3}`."""
        return measured_numbers((claim.guarantee, claim.measured) for claim in self.claims)

    @property
    def holds(self) -> bool:
        """True when every claim was found to hold."""
        return all(claim.holds for claim in self.claims)

    def to_mapping(self) -> PlainDict:
        """Plain data, ready for JSON."""
        stated = {**self.__dict__, "claims": [claim.__dict__ for claim in self.claims]}
        if self.format == FIRST_FORMAT:
            del stated["card"]
        for name in ("content", "draft", "withdrawn"):  # stated where they say something
            if not stated[name]:
                del stated[name]
        return plain(stated)  # type: ignore[no-any-return]

    def canonical(self) -> bytes:
        """The bytes a signature covers: JSON, sorted keys, no spaces, UTF-8."""
        return canonical(self.to_mapping())

    @classmethod
    def from_mapping(cls, stated: Plain) -> Certificate:
        """Read a certificate back; refuses unknown formats and fields."""
        if stated.get("format") not in FORMATS:
            formats = " and ".join(FORMATS)
            raise InputError(f"this certificate has format {str(stated.get('format'))[:40]!r}; this version reads {formats}")
        try:
            claims = tuple(Claim(**claim) for claim in stated["claims"])
            rest = {name: value for name, value in stated.items() if name != "claims"}
            rest |= {name: tuple(rest.get(name, ())) for name in ("attacks", "notices", "withdrawn")}
            return cls(claims=claims, **rest)
        except (TypeError, KeyError, AttributeError):
            raise InputError("the certificate is incomplete or has unknown fields; it was not written by this version") from None


def measured_numbers(claims: Iterable[tuple[str, float | None]]) -> dict[str, float | None]:
    """Numbers by guarantee; the same guarantee with other parameters, such as another distance, gets a number of its own."""
    numbers: dict[str, float | None] = {}
    for guarantee, measured in claims:
        name, times = guarantee, 1
        while name in numbers:
            times += 1
            name = f"{guarantee} #{times}"
        numbers[name] = measured
    return numbers


def canonical(value: object) -> bytes:
    """Canonical JSON: sorted keys, no insignificant spaces, UTF-8, no NaN or infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def plain(value: object) -> Any:  # plain data
    """The value as JSON can hold it: mappings, lists, numbers and words; infinite numbers as a word, NaN as nothing."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "infinite" if value > 0 else "-infinite"
    if isinstance(value, float) and value != value:
        return None
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        return plain(value.item())
    return value
