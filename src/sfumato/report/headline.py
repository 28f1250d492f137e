"""A verdict: one of four words, why, and what weakens it. The words are the same for a release, a table and an attack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sfumato.anonymity.pseudonyms import WARNING
from sfumato.core import registry
from sfumato.core.certificate import Certificate, Claim
from sfumato.core.declared import build
from sfumato.core.errors import GuaranteeNotMet, SfumatoError, notify
from sfumato.core.guarantees.base import ClassGuarantee, supposed_known
from sfumato.core.guarantees.loss import RECORD
from sfumato.core.plain_data import PlainDict
from sfumato.ledger.unit_changes import NOT_COVERED
from sfumato.report.wording import counted, listed

if TYPE_CHECKING:
    from sfumato.core.plain_data import Plain
    from sfumato.data.schema import Schema

Word = Literal["kept", "warning", "no promise", "not kept"]

#: How each word is coloured where somebody looks at a terminal; the word itself says it without colours.
COLOURS: dict[Word, str] = {"kept": "32", "warning": "33", "no promise": "33", "not kept": "31"}


@dataclass(frozen=True)
class Headline:
    """`kept`: every promise was measured and holds, and nothing weakens it. `warning`: the promises hold as far as they could be
    measured, and something weakens them. `no promise`: there is none. `not kept`: one of them does not hold.

    >>> Headline.of("kept", "1 promise holds", ["one more release is not compared"]).lines
    ['verdict   warning: 1 promise holds; 1 warning', 'warning   one more release is not compared']
    """

    word: Word
    reason: str
    warnings: tuple[str, ...] = ()
    #: Sensitive columns that nothing is promised about, of which one warning tells.
    unpromised: tuple[str, ...] = ()

    @classmethod
    def of(cls, word: Word, reason: str, warnings: list[str], about: Sequence[str] = ()) -> Headline:
        """The verdict with these warnings: what is kept and warned about is a warning. Nothing is promised of columns `about`."""
        several = tuple(dict.fromkeys(warnings))
        beside = f"; {counted(len(several), 'warning')}" if several else ""
        return cls("warning" if word == "kept" and several else word, f"{reason}{beside}", several, tuple(about))

    @property
    def lines(self) -> list[str]:
        """The headline, and one line for each warning."""
        return [f"verdict   {self.word}: {self.reason}", *(f"warning   {each}" for each in self.warnings)]

    def to_mapping(self) -> PlainDict:
        """Plain data, ready for JSON."""
        warned = {"warnings": list(self.warnings), "unpromised": list(self.unpromised)}
        return {"verdict": self.word, "reason": self.reason, **warned}


#: What weakens a draft, whatever it keeps.
DRAFT = "a draft, not a release: no ledger knows it, and it is not to be given away"
#: What weakens a release of which nobody said that its roles were read: every promise is about the columns that have them.
ROLES_UNREAD = (
    "the roles of the columns are those that `sfumato inspect` proposed, and nobody has confirmed them: read each in the schema, "
    'correct it where it is wrong, and delete the line roles = "proposed"'
)
#: What is said of a quasi-identifier that no promise supposes to be known.
OUTSIDE = "column '{}' may be known to others, and no promise supposes it: whoever knows it is outside of every promise"
TOGETHER = "whoever knows more of them than one promise supposes is outside of every promise"
#: What promises about people suppose where they count records.
ONE_RECORD_EACH = "supposes that each record is another person, which nobody declares"
#: How notices begin and end that weaken what a release promises. Others tell how it was made.
LEFT_AS_THEY_ARE = "quasi-identifiers that are published as they are, because the mask does not change them: "
NOT_CHARGED = "not charged to a ledger: what else is spent on the same data is not counted"
MISSING_COUNTED = "a missing value of '"
DEMONSTRATION = "made with a seed: a demonstration that anybody can repeat, not a private release"
NOT_COUNTED = "columns that are published as they are and were not counted: "
FINDS_THE_RECORD = ": whoever knows that value finds the record. Should it be a quasi-identifier?"
NOT_COVERED_TOGETHER = ". No promise covers it"
_WEAKENING_FROM = (LEFT_AS_THEY_ARE, NOT_CHARGED, NOT_COVERED, NOT_COUNTED, MISSING_COUNTED)
_WEAKENING_TO = (DEMONSTRATION, FINDS_THE_RECORD, NOT_COVERED_TOGETHER, WARNING)


def release_headline(certificate: Certificate, *, measured: bool, warned: Sequence[str] = ()) -> Headline:
    """The verdict on a release: `measured` says whether its risk was, and its owner was `warned` of something besides."""
    warnings = [*([DRAFT] if certificate.draft else []), *warned, *weakening(certificate)]
    about = () if any(claim.evidence == "process" for claim in certificate.claims) else tuple(unpromised(certificate))
    if not certificate.claims:
        rest = "how much risk is left was measured (risk), and nobody promises a limit" if measured else "no risk was measured"
        return Headline.of("no promise", f"nothing is guaranteed about this release; {rest}", warnings, about)
    if certificate.private and not certificate.holds:
        return Headline.of("not kept", "a promise does not hold", warnings, about)
    return Headline.of("kept", _kept(certificate.claims), warnings, about)


def refuse_all_but_kept(headline: Headline) -> None:
    """Raise where a verdict would be anything but `kept`, for somebody who is strict, before anything is written."""
    if headline.word != "kept":
        reasons = [*([headline.reason] if headline.word != "warning" else []), *headline.warnings]
        said = "".join(f"\n  {reason}" for reason in reasons)
        raise GuaranteeNotMet(f"strict: the verdict would be `{headline.word}`, so nothing was written or entered:{said}")


def _kept(claims: Sequence[Claim]) -> str:
    by_process = sum(claim.evidence == "process" for claim in claims)
    by_model = sum(claim.evidence == "output+model" for claim in claims)
    measured = len(claims) - by_process - by_model
    parts = [f"{counted(measured, 'promise')} measured on the rows that were written, and kept"] if measured else []
    parts += [f"{counted(by_process, 'promise')} kept by how the result was made"] if by_process else []
    parts += [f"{counted(by_model, 'promise')} by a model, which rows can contradict and not confirm"] if by_model else []
    return "; ".join(parts)


def weakening(certificate: Certificate) -> list[str]:
    """What weakens the promises that a certificate states: it says so itself, or it is not among them."""
    warnings = [
        f"{claim.guarantee} promises nothing: every table keeps it" for claim in certificate.claims if says_nothing(claim)
    ]
    warnings += supposed(
        [guarantee for claim in certificate.claims for guarantee in class_guarantees(claim)], certificate.schema.get("unit")
    )
    if not any(claim.evidence == "process" for claim in certificate.claims):
        warnings += unpromised_in_words(unpromised(certificate))
    warnings += outside_in_words(
        [guarantee for claim in certificate.claims for guarantee in class_guarantees(claim)], _quasi(certificate)
    )
    together = weakened_together(certificate)
    warnings += [] if together is None else [together]
    return warnings + [each for each in certificate.notices if each.endswith(_WEAKENING_TO) or each.startswith(_WEAKENING_FROM)]


def class_guarantees(claim: Claim) -> list[ClassGuarantee]:
    """The guarantee of classes that a claim states; none where it is of another kind, or a stranger's parameters make none."""
    name = claim.guarantee.split("(")[0]
    if not registry.has("guarantee", name):
        return []
    try:
        return [build(registry.find("guarantee", name), claim.parameters)]
    except (SfumatoError, TypeError, ValueError):
        return []


def says_nothing(claim: Claim) -> bool:
    """Whether a claim is one that every table keeps."""
    return any(guarantee.says_nothing for guarantee in class_guarantees(claim))


def warn_before(schema: Schema, guarantees: Iterable[ClassGuarantee], *, strict: bool) -> None:
    """Warn of roles that nobody confirmed and of sensitive columns without a promise; where somebody is strict, refuse what is
    known to be warned about later."""
    said = [*unread(schema), *unpromised_before(schema, guarantees)]
    if strict:
        refuse_all_but_kept(Headline.of("kept", "", said))
    notify(said)


def unread(schema: Schema) -> list[str]:
    """A warning where `inspect` proposed the roles and nobody confirmed them."""
    return [ROLES_UNREAD] if schema.roles == "proposed" else []


def unpromised_before(schema: Schema, guarantees: Iterable[ClassGuarantee]) -> list[str]:
    """A warning about the sensitive columns that none of these guarantees is about, and one for each that says nothing."""
    stated = list(guarantees)
    promised = {each.about for each in stated}
    empty = [f"{each.key} promises nothing: every table keeps it" for each in stated if each.says_nothing]
    return [*empty, *unpromised_in_words([name for name in schema.sensitive if name not in promised])]


def supposed(guarantees: Iterable[ClassGuarantee], unit: object) -> list[str]:
    """What promises suppose that the schema does not declare as its `unit`: that each record is another person."""
    if unit == RECORD:
        return []
    names = [each.key for each in guarantees if each.one_record_each and not each.says_nothing]
    return [f'{name} {ONE_RECORD_EACH}: unit = "record" in the schema says so' for name in dict.fromkeys(names)]


def outside_in_words(guarantees: Iterable[ClassGuarantee], quasi: Sequence[str]) -> list[str]:
    """What to say of quasi-identifiers that no promise about classes supposes to be known, or none together."""
    stated = [each for each in guarantees if not each.says_nothing]
    covered = supposed_known(stated, quasi)
    if len(covered) < len(quasi):
        return [OUTSIDE.format(name) for name in quasi if name not in covered]
    if not stated or any(len(supposed_known([each], quasi)) == len(quasi) for each in stated):
        return []
    return [f"no promise supposes that {listed([repr(name) for name in quasi])} are known together: {TOGETHER}"]


def _quasi(certificate: Certificate) -> list[str]:
    columns: Mapping[str, Any] = certificate.schema.get("columns", {})
    described = columns.items() if isinstance(columns, Mapping) else ()
    return [str(name) for name, column in described if isinstance(column, Mapping) and column.get("role") == "quasi"]


def unpromised(certificate: Certificate) -> list[str]:
    """Sensitive columns that no promise is about, but such as say nothing."""
    about = {guarantee.about for claim in certificate.claims for guarantee in class_guarantees(claim)}
    columns: Mapping[str, Any] = certificate.schema.get("columns", {})
    described = columns.items() if isinstance(columns, Mapping) else ()
    return [
        str(name)
        for name, column in described
        if isinstance(column, Mapping) and column.get("role") == "sensitive" and name not in about
    ]


def unpromised_in_words(names: Sequence[str]) -> list[str]:
    """What to say of sensitive columns that nothing is promised about: one sentence, however many they are."""
    if not names:
        return []
    name = names[0]
    if len(names) > 1:
        listed = ", ".join(f"'{each}'" for each in names)
        return [
            f"nothing is promised about {len(names):,} sensitive columns ({listed}): people who share a class may share their "
            f"values as well. Promise something about each, such as --l '{name}=2' or --t '{name}=0.2' for the first"
        ]
    return [
        f"nothing is promised about '{name}', which is sensitive: people who share a class may share its value as well. Promise "
        f"something about it, such as --l '{name}=2' or --t '{name}=0.2'"
    ]


def weakened_together(certificate: Certificate) -> str | None:
    """What earlier releases take from the promises, where they do or where nobody can tell."""
    stated = certificate.composition
    if not stated.get("earlier_releases") and not stated.get("repeated_masks"):
        return None
    finding = str(stated.get("finding", ""))
    if breaks_together(stated, certificate.claims):
        return f"together with earlier releases the promise is broken: {finding}"
    earlier, compared = stated.get("earlier_releases"), stated.get("compared", 0)
    if stated.get("repeated_masks"):
        return f"together with earlier releases more is learnt: {finding}"
    if earlier != compared:
        return f"nobody can tell what earlier releases add to this one: {finding}"
    return None


def breaks_together(composition: Plain, claims: Sequence[Claim]) -> bool:
    """Whether somebody who combines a release with earlier ones gets below what it promises by itself: fewer records than its
    classes have, a smaller group by subtraction, or more people of whom one sensitive value is left."""
    details = composition.get("details")
    if not isinstance(details, Mapping) or not details.get("combinations"):
        return False
    sizes = [int(claim.parameters["k"]) for claim in claims if isinstance(claim.parameters.get("k"), int)]
    fewest = max([2, *sizes]) if claims else 2
    left, apart = int(details.get("worst_remaining_group", 0)), int(details.get("smallest_difference", 0))
    alone = float(details.get("singled_out_by_one_release_alone", 0))
    if details.get("people_are") == "estimated":  # which is stated with one digit
        alone = float(f"{alone:.1g}")
    more = float(details.get("singled_out", 0)) > alone
    return 0 < left < fewest or 0 < apart < fewest or more
