"""Baskets as a release: a line of items for each, sorted, without what their owner hides in them.

The certificate states the thresholds and a keyed digest of the list; the list, with the key, stays with its owner. Whoever is
given it can mine the published baskets again; anyone else can see that the files are those that were certified, and no more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from sfumato.core.certificate import Certificate, Claim
from sfumato.core.errors import InputError, ParameterError, SfumatoError, Unsupported, VerificationFailed
from sfumato.core.guarantees.base import Guarantee
from sfumato.core.guarantees.hidden import Hidden, claim_of
from sfumato.core.outcome import Outcome
from sfumato.core.plain_data import Plain
from sfumato.core.randomness import default
from sfumato.data.schema import Schema
from sfumato.data.transactions import Transactions
from sfumato.data.transactions_files import read_lines
from sfumato.data.transactions_lists import FORMAT, ItemsetList
from sfumato.measures.guarantees.mined_again import still_derived
from sfumato.report.headline import DEMONSTRATION
from sfumato.workflow.contents.base import Content, Files, FolderAtHand, Format, Page, Promise, Saved, Submission
from sfumato.workflow.publishing.appearing import write_bytes
from sfumato.workflow.publishing.saving import describe_bytes, plain_data, pretty
from sfumato.workflow.verifying.verification import Finding

if TYPE_CHECKING:
    from sfumato.ledger.ledger import Ledger
    from sfumato.workflow.publishing.claims import References
    from sfumato.workflow.release import Release

BASKETS = "baskets.dat"
#: The list and its key, beside the owner's card.
LIST = "itemsets.json"
#: Between the items of a line: no item holds it.
TAB = "\t"
_LARGEST = 256_000_000
_REFERENCE = re.compile(rf"itemsets {FORMAT}:[0-9a-f]{{64}}")
_EFFECTS = "side_effects"
#: What an outcome says about itself.
_ABOUT = frozenset({"randomness", "private", _EFFECTS})


@dataclass(frozen=True, eq=False)
class Baskets(Content):
    """Transactions in canonical order, and the list of what is hidden in them."""

    transactions: Transactions = field(repr=False)
    listed: ItemsetList = field(repr=False)
    dataset: str = "unnamed"

    says_scored: ClassVar[bool] = False
    large_files: ClassVar[AbstractSet[str]] = frozenset({BASKETS})
    takes_a_list: ClassVar[bool] = True

    @classmethod
    def submitted(
        cls, outcome: Outcome[object], *, dataset: str | None, ledger: Ledger | None, ledger_entry: str | None
    ) -> Submission[Self] | None:
        """Baskets in which something was hidden; the key of its digest is drawn here."""
        result = outcome.result
        hidden = [each for each in outcome.claimed if isinstance(each, Hidden)]
        if not isinstance(result, Transactions) or not hidden:
            return None
        if len(hidden) != len(outcome.claimed) or len(hidden) > 1:
            raise ParameterError("baskets are published with one promise, sf.Hidden, about everything that is hidden in them")
        if ledger_entry is not None:
            raise ParameterError("no ledger pays for what is hidden; leave ledger_entry= out")
        details = outcome.details
        private = details.get("private") is True
        listed = ItemsetList.of(hidden[0], default().bytes(32))
        return Submission(
            content=cls(result.in_canonical_order(), listed, dataset or "unnamed"),
            promises=(Promise(hidden[0]),),
            method=dict(outcome.method),
            randomness=str(details.get("randomness", default().description)),
            private=private,
            notices=() if private else (DEMONSTRATION,),
            details={name: value for name, value in details.items() if name not in _ABOUT},
            computed={_EFFECTS: details[_EFFECTS].to_mapping()} if _EFFECTS in details else {},
        )

    @property
    def data(self) -> Transactions:
        """The baskets."""
        return self.transactions

    @property
    def schema(self) -> Schema:
        """Baskets have no columns."""
        return Schema(dataset=self.dataset)

    @property
    def references_for_claims(self) -> dict[str, ItemsetList]:
        """The owner's list."""
        return {"itemsets": self.listed}

    def written(self) -> tuple[Self, Files]:
        """The baskets as they are read back from their lines."""
        stored = self._lines()
        return self._read_back(stored), {BASKETS: describe_bytes(stored)}

    def _lines(self) -> bytes:
        from sfumato.data.transactions_files import written_lines

        stored = written_lines(self.transactions.baskets(), self.transactions.items, TAB)
        if len(stored) > _LARGEST:
            raise Unsupported(f"the baskets take more than {_LARGEST:,} bytes, which is more than `verify` reads; publish a part")
        return stored

    def _read_back(self, stored: bytes) -> Self:
        baskets = [line.split(TAB) if line else [] for line in stored.decode().split("\n")[:-1]]
        back = Transactions.of(baskets)
        if not back.same_baskets(self.transactions):
            raise VerificationFailed("the baskets read back are not those that were made; nothing was released")
        return type(self)(back, self.listed, self.dataset)

    def claims(self, guarantees: Sequence[Guarantee]) -> tuple[Claim, ...]:
        """Mine what was read back again, by code that shares nothing with the method."""
        return tuple(self._claim(each) for each in guarantees)

    def _claim(self, guarantee: Guarantee) -> Claim:
        if not isinstance(guarantee, Hidden):
            raise Unsupported(f"{guarantee.name} is not a promise about baskets; publish them with sf.Hidden")
        derived = still_derived(self.transactions.baskets(), guarantee)
        if derived.failures:
            raise VerificationFailed(
                f"{derived.failures:,} of {derived.listed:,} itemsets and rules are still derived; nothing was released"
            )
        return Claim(
            guarantee=guarantee.key,
            parameters=guarantee.thresholds,
            promised=guarantee.claim(),
            measured=0,
            holds=True,
            evidence=guarantee.evidence,
            protects=guarantee.protects,
            adversary=guarantee.adversary,
            reference=f"itemsets {self.listed.digest}",
        )

    def save(self, folder: Path, format: Format, release: Release[Content]) -> Saved:
        """Write the lines, read them back and mine them again."""
        stored = self._lines()
        write_bytes(folder / BASKETS, stored)
        written = (folder / BASKETS).read_bytes()
        return Saved({BASKETS: describe_bytes(written)}, self._read_back(written).claims(release.guarantees), self.schema)

    def owner_details(self, release: Release[Content]) -> Mapping[str, object]:
        """How the work went, and what it cost."""
        return {**release.details, **plain_data(release.owner.computed)}

    def owner_files(self, release: Release[Content]) -> dict[str, bytes]:
        """The list with its key, and the side effects."""
        files = {LIST: self.listed.written()}
        effects = release.owner.computed.get(_EFFECTS)
        return files if effects is None else {**files, f"{_EFFECTS}.json": pretty(plain_data(effects))}

    @classmethod
    def files(cls, certificate: Certificate, schema: Schema) -> tuple[AbstractSet[str], AbstractSet[str]]:
        """One file of lines."""
        if certificate.files.get(BASKETS, {}).get("bytes", 0) > _LARGEST:
            raise VerificationFailed(f"{BASKETS} is said to be larger than {_LARGEST:,} bytes")
        return {BASKETS}, {BASKETS}

    @classmethod
    def refuse_other_facts(cls, certificate: Certificate, schema: Schema) -> None:
        """Baskets have no columns and no fingerprint, and nobody attacks them before they are published."""
        super().refuse_other_facts(certificate, schema)
        if schema.columns or certificate.fingerprint is not None or certificate.attacks:
            raise VerificationFailed("the certificate of baskets states what only a table of records has")

    @classmethod
    def read(cls, certificate: Certificate, schema: Schema, folder: Path, beside: FolderAtHand) -> tuple[object, list[Finding]]:
        """The baskets; written again, they must give the same bytes."""
        from sfumato.data.transactions_files import written_lines

        try:
            baskets = Transactions.coded(*read_lines(folder / BASKETS, TAB), "line")
            again = written_lines(sorted(baskets.baskets()), baskets.items, TAB)
        except SfumatoError as error:
            raise VerificationFailed(f"the baskets cannot be read: {error}") from None
        if again != (folder / BASKETS).read_bytes():
            raise VerificationFailed(f"{BASKETS} is not written as releases write it: items and baskets sorted, each item once")
        return baskets, [Finding("data", True, f"{len(baskets):,} baskets of {len(baskets.items):,} items")]

    @classmethod
    def check_claim(
        cls, claim: Claim, certificate: Certificate, schema: Schema, data: object, references: References
    ) -> list[Finding]:
        """State the promise again from its thresholds and, with the owner's list, mine the baskets again."""
        assert isinstance(data, Transactions)  # noqa: S101  (for the type checker: `read` made it)
        name, wrong = claim.guarantee[:80], _misstated(claim)
        if wrong:
            return [Finding(name, False, wrong)]
        listed = references.itemsets
        if listed is None:
            return [Finding(name, None, "is about the owner's list of itemsets; pass it (--itemsets) to check this claim")]
        if listed.digest is not None and f"itemsets {listed.digest}" != claim.reference:
            return [Finding(name, False, "the list that was passed is not the one that the certificate names by its digest")]
        try:
            guarantee = listed.promise(claim.parameters["support"], claim.parameters.get("confidence"))
        except InputError:
            return [Finding(name, False, "the list that was passed has rules, and the claim states no confidence")]
        derived = still_derived(data.baskets(), guarantee)
        about = f"{derived.failures:,} of {derived.listed:,} itemsets and rules are derived"
        if derived.failures:
            return [Finding(name, False, f"{claim_of(guarantee.support, guarantee.confidence)}; {about}, which breaks it")]
        trust = "" if listed.digest else " from the list that was passed; that it is the owner's, the key of its digest shows"
        return [Finding(name, True, f"{guarantee.claim()}; {about}{trust}")]

    @classmethod
    def page(cls, certificate: Certificate, data: object) -> Page:
        """How much is published."""
        assert isinstance(data, Transactions)  # noqa: S101  (for the type checker)
        return Page({"baskets": len(data), "items": len(data.items), "entries": int(data.codes.size)})

    def page_details(self, release: Release[Content]) -> Plain:
        """Nothing besides."""
        return {}


def _misstated(claim: Claim) -> str | None:
    """What the claim says otherwise than its thresholds do, in words; None where they agree."""
    try:
        stated = Hidden((("item",),), **claim.parameters)
    except (SfumatoError, TypeError):
        return "the claim's thresholds are none of a promise about hidden itemsets"
    meant = stated.key, stated.thresholds, stated.claim(), stated.evidence, stated.protects, stated.adversary, "record"
    parameters = dict(claim.parameters)
    said = claim.guarantee, parameters, claim.promised, claim.evidence, claim.protects, claim.adversary, claim.unit
    if said != meant or claim.also_measured or claim.measured != 0:
        return "the claim's words do not say what its parameters mean"
    if claim.holds is not True:
        return "the certificate itself says that the claim does not hold"
    if (claim.neighbours, claim.argument, claim.ledger_entry) != (None, None, None):
        return "the claim is about baskets, and states what only a claim about a process has"
    if not _REFERENCE.fullmatch(str(claim.reference)):
        return "the claim names no list by its digest"
    return None
