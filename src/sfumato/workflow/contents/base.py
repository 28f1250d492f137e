"""What a kind of content supplies on its way out of the house, and when it comes back in a stranger's folder.

One class per kind is the whole declaration: how it is written and read back, who measures what is claimed about it, what a ledger
keeps of it, what its card shows, which files its folder holds. `publish`, `save` and `verify` know no kind by name; they find it
in the registry under the name that a certificate gives.
"""

from __future__ import annotations

import hashlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeVar

from sfumato.core import registry
from sfumato.core.certificate import Certificate, Claim, canonical
from sfumato.core.errors import RecipeError, Unsupported, VerificationFailed
from sfumato.core.guarantees.base import Guarantee
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.core.view import Score, View
from sfumato.data.schema import Schema
from sfumato.workflow.earlier.comparing import Together

if TYPE_CHECKING:
    from sfumato.core.outcome import Outcome
    from sfumato.core.progress import Progress
    from sfumato.data.microdata import Microdata
    from sfumato.ledger.chain import Entry
    from sfumato.ledger.ledger import Ledger
    from sfumato.report.content import Answer, ColumnDecision
    from sfumato.workflow.publishing.claims import References
    from sfumato.workflow.publishing.scoring import Checked, Checks
    from sfumato.workflow.release import Release
    from sfumato.workflow.verifying.untrusted import UntrustedFolder
    from sfumato.workflow.verifying.verification import Finding

Format = Literal["parquet", "csv"]
FORMATS: tuple[Format, ...] = ("parquet", "csv")
OTHER_SCORES = "the certificate shows scores on its page that its published content does not have"
OTHER_DETAILS = "the certificate shows details on its page that a result of its method does not have"
#: What a ledger keeps of the columns: hierarchies are added when a release is saved.
_OF_A_COLUMN_LATER = "hierarchy"
#: What a certificate says about a file: its digest, its length in bytes and, of a table, its rows.
Files = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Saved:
    """What a folder holds of the content: its files, what was measured on them, how they are described, what to notice."""

    files: Files
    claims: tuple[Claim, ...]
    schema: Schema
    notices: Sequence[str] = ()


@dataclass(frozen=True)
class Page:
    """What the card of a release shows of its content: details, figures as SVG, risks, and in which quasi-identifiers values are
    missing."""

    details: Mapping[str, Any]
    figures: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    risk: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class FolderAtHand:
    """What whoever verifies has besides copies of the files: the folder itself, for parts that are read one at a time, and the
    table of a database that holds the rows, where somebody named it."""

    public: UntrustedFolder = field(repr=False)
    rows: Microdata | None = field(default=None, repr=False)


class Content(ABC):
    """What is published. The first half speaks for content of ours, the class methods for whatever a stranger's folder holds."""

    #: Whether certificates name the kind; rows and private results are known by their claims.
    named_in_certificates: ClassVar[bool] = True
    #: Whether its public page says that its owner measured how useful it is.
    says_scored: ClassVar[bool] = True
    #: Whether it can be made as a draft, which enters nothing: never what a privacy loss is charged for.
    has_drafts: ClassVar[bool] = False
    #: Whether its public folder may hold a folder of parts, `data`.
    has_parts: ClassVar[bool] = False
    #: Files that may be as large as data are.
    large_files: ClassVar[AbstractSet[str]] = frozenset()
    #: Whether its claims are about a list that its owner keeps.
    takes_a_list: ClassVar[bool] = False

    # On its way out

    @classmethod
    def submitted(
        cls, outcome: Outcome[object], *, dataset: str | None, ledger: Ledger | None, ledger_entry: str | None
    ) -> Submission[Self] | None:
        """What a room returned, as a submission; None where that is of another kind."""
        return None

    @property
    @abstractmethod
    def data(self) -> object:
        """The content as its users have it."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """What is published, described; nothing in it was learnt from the original."""

    @property
    def owner_schema(self) -> Schema:
        """The same as its owner has it."""
        return self.schema

    @property
    def references_for_claims(self) -> dict[str, Any]:  # arguments of `verify`
        """The second files that claims compare with, by their names in `verify`."""
        return {}

    @abstractmethod
    def written(self) -> tuple[Self, Files]:
        """The content as it is read back from its canonical form, and the files of that form."""

    @abstractmethod
    def claims(self, guarantees: Sequence[Guarantee]) -> tuple[Claim, ...]:
        """Measure what is promised, by code that shares nothing with the method; raises `VerificationFailed`."""

    @abstractmethod
    def save(self, folder: Path, format: Format, release: Release[Content]) -> Saved:
        """Write the files into the public folder, read them back and measure them."""

    def view(self, facts: Plain, name: str = "release") -> View[object, Schema]:
        """What an attacker looks at; `facts` are those of the certificate."""
        return View(self.data, self.schema, facts, name)

    def checked(self, checks: Checks, facts: Plain, progress: Progress) -> Checked:
        """Measure and attack what is about to be published."""
        from sfumato.workflow.publishing.scoring import run_checks

        return run_checks(checks, None, lambda measure: self.data, lambda: self.view(facts), progress)

    def entry(self, facts: Plain, files: Files) -> PlainDict:
        """What the ledger keeps: no part of the content itself, only its digest and what is claimed."""
        return {
            "content": type(self).__name__,
            "sha256": next(iter(files.values()))["sha256"],
            **{name: facts[name] for name in ("claims", "method", "schema", "fingerprint")},
        }

    def enter(self, ledger: Ledger, facts: Plain, files: Files) -> tuple[Entry, Together]:
        """Enter it in a ledger; the entry, and what it tells together with earlier releases of the same data set. Nobody has
        compared what has no comparison."""
        from sfumato.workflow.earlier.comparing import not_compared

        entry = entered(ledger, self.schema.dataset, self.entry(facts, files))
        return entry, not_compared(ledger, entry)

    def beside_earlier(self, ledger: Ledger, facts: Plain, files: Files) -> Together:
        """What a draft would tell together with earlier releases; nothing is entered. Kinds that have drafts say it."""
        raise Unsupported(f"there are no drafts of {type(self).__name__}")

    @property
    def home(self) -> Path | None:
        """The folder of a release that appeared with its rows; None where it is saved afterwards, as a rule."""
        return None

    @property
    def rows_elsewhere(self) -> dict[str, object]:
        """Where `verify` finds rows that are not in the folder: `data` and `table`; nothing as a rule."""
        return {}

    def page_details(self, release: Release[Content]) -> Plain:
        """How the work went, as far as everybody may know it and the public page shows it."""
        return {}

    def page_example(self, release: Release[Content]) -> Plain:
        """One invented row before and after, by column, for everybody; nothing where there are no columns of people."""
        return {}

    def page_decisions(self, release: Release[Content]) -> tuple[ColumnDecision, ...]:
        """What was decided about columns, and by whom, for the owner's card."""
        return ()

    def page_scores(self, release: Release[Content]) -> tuple[Score, ...]:
        """The scores on the public page: those that whoever has the published content computes again."""
        return ()

    def owner_details(self, release: Release[Content]) -> Mapping[str, object]:
        """How the work went, and what was computed from the original: the owner's."""
        return release.details

    def owner_files(self, release: Release[Content]) -> dict[str, bytes]:
        """What the owner keeps beside the card, by name of file."""
        return {}

    def owner_figures(self, release: Release[Content]) -> dict[str, str]:
        """Figures of the owner's card that were computed from the original."""
        return {}

    # In a stranger's folder

    @classmethod
    @abstractmethod
    def files(cls, certificate: Certificate, schema: Schema) -> tuple[AbstractSet[str], AbstractSet[str]]:
        """The files that a folder may hold besides certificate, signature and card, and those that it must."""

    @classmethod
    def refuse_other_facts(cls, certificate: Certificate, schema: Schema) -> None:
        """Raise where the certificate tells about how it was made what no release of this kind tells."""
        if certificate.transparency:
            raise VerificationFailed("the certificate tells things about how it was made that no release of its kind tells")
        if certificate.card.get("scores") or (certificate.card.get("scored") and not cls.says_scored):
            raise VerificationFailed(OTHER_SCORES)
        cls.refuse_other_details(certificate)

    @classmethod
    def refuse_other_details(cls, certificate: Certificate) -> None:
        """Raise where the page of a certificate shows details that content of this kind does not have: none as a rule."""
        if certificate.card.get("details"):
            raise VerificationFailed(OTHER_DETAILS)

    @classmethod
    @abstractmethod
    def read(cls, certificate: Certificate, schema: Schema, folder: Path, beside: FolderAtHand) -> tuple[object, list[Finding]]:
        """The data of the folder, whose files are those that were certified, and what was found in reading them. `folder` holds
        copies of the files that the certificate names; whoever needs more looks `beside`."""

    @classmethod
    def opened(cls, certificate: Certificate, schema: Schema, folder: Path, beside: FolderAtHand) -> object:
        """The data alone, for somebody who looks at them and judges nothing."""
        return cls.read(certificate, schema, folder, beside)[0]

    @classmethod
    @abstractmethod
    def check_claim(
        cls, claim: Claim, certificate: Certificate, schema: Schema, data: object, references: References
    ) -> list[Finding]:
        """State and measure a claim again whose evidence is in the files, or in a second one."""

    @classmethod
    def entry_facts(cls, certificate: Certificate) -> Mapping[str, Sequence[object]]:
        """What the entry in a ledger must hold, by its name there: any of the values."""
        facts = certificate.to_mapping()
        return {name: [facts[name]] for name in ("claims", "method", "schema", "fingerprint")}

    @classmethod
    def check_making(
        cls, certificate: Certificate, data: object, folder: Path, ledger: Ledger | str | Path | None
    ) -> Finding | None:
        """How it is said to have been made, as far as anybody can tell."""
        return None

    @classmethod
    def page(cls, certificate: Certificate, data: object) -> Page:
        """What the card shows, from the certificate and the published data alone."""
        return Page(dict(certificate.card.get("details", {})))


def entered(ledger: Ledger, dataset: str, payload: Plain, *, drawn: bool = False) -> Entry:
    """The entry of a release. The same release entered twice (a repeated run) is one: its token is the digest of what is
    entered. Rows that were `drawn` anew are another release, even if chance made them the same."""
    token = f"release-{hashlib.sha256(canonical({'dataset': dataset, 'entry': payload})).hexdigest()}"
    return ledger.enter_release(dataset, payload, token=f"{token}-{secrets.token_hex(8)}" if drawn else token)


def content_kind(certificate: Certificate) -> type[Content]:
    """The kind of content that a certificate is about."""
    try:
        kind: type[Content] = registry.find("content", certificate.kind_of_content)
    except RecipeError:
        raise VerificationFailed("the certificate is about a kind of content that this version does not know") from None
    if bool(certificate.content) is not kind.named_in_certificates:
        raise VerificationFailed("the certificate names its kind of content otherwise than releases of that kind do")
    return kind


def without_hierarchies_in(schema: object) -> object:
    """A schema as plain data without its hierarchies; anything else as it is."""
    if not isinstance(schema, Mapping) or not isinstance(schema.get("columns"), Mapping):
        return schema
    columns = {
        name: {key: each for key, each in column.items() if key != _OF_A_COLUMN_LATER} if isinstance(column, Mapping) else column
        for name, column in schema["columns"].items()
    }
    return {**schema, "columns": columns}


C = TypeVar("C", bound=Content, covariant=True)

#: What a certificate notices of a draft.
DRAFT = "a draft, to be looked at and not to be given away: no ledger has an entry of it, so no later release is compared with it"


@dataclass(frozen=True)
class Promise:
    """A guarantee and, where its evidence is a process, why it holds and the ledger's entry that paid for it."""

    guarantee: Guarantee
    argument: str = ""
    ledger_entry: str | None = None


@dataclass(frozen=True, eq=False)
class Submission(Generic[C]):
    """Content with its promises before anybody verified it, and what a certificate tells about how it was made.

    `details` says how the work went; `computed` is what was computed from the original and never leaves. `recipe` and `answers`
    are what the owner said and keeps with the release. A `draft` is published without an entry in any ledger. What its owner is
    `warned` of follows from the original and stays with the owner. Where somebody is `strict`, anything but a release that keeps
    its promises is refused.
    """

    content: C
    promises: tuple[Promise, ...]
    method: Mapping[str, Any]
    randomness: str
    private: bool
    draft: bool = False
    warned: tuple[str, ...] = ()
    strict: bool = False
    fingerprint: str | None = None
    transparency: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    notices: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    computed: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    recipe: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    answers: Mapping[str, Answer] = field(default_factory=lambda: MappingProxyType({}), repr=False)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """What is promised."""
        return tuple(promise.guarantee for promise in self.promises)
