"""What `verify` found, and its verdict in one of a few fixed words.

A recipient acts on the verdict: a class guarantee can be measured again and is kept or not; a promise about a process rests on
its maker unless the ledger that paid for it is at hand; a release made with a seed protects nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sfumato.core.certificate import Certificate
from sfumato.core.markup import shorten
from sfumato.core.plain_data import PlainDict

Verdict = Literal[
    "keeps",
    "keeps what could be checked",
    "rests on its maker",
    "promises nothing",
    "not checked",
    "draft",
    "withdrawn",
    "demonstration",
    "does not keep",
]

#: Verdicts with which the command ends with 0; a demonstration is among them only where it was allowed.
ACCEPTED: tuple[Verdict, ...] = ("keeps", "keeps what could be checked", "rests on its maker")

#: The finding that says of the release itself that its owner withdrew it.
WITHDRAWAL = "withdrawal"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: `passed` is None where it could not be checked with what was given.

    `caveat` says of a part of the files that was not checked what whoever reads the verdict must know.
    """

    check: str
    passed: bool | None
    text: str
    claim: bool = False  # whether it is about a claim of the certificate
    caveat: str = ""


@dataclass(frozen=True, repr=False)
class Verification:
    """The verdict on a release folder; `allow_demonstration` says that a release made with a seed was expected."""

    folder: str
    findings: tuple[Finding, ...]
    certificate: Certificate | None = field(default=None, repr=False)
    allow_demonstration: bool = False

    def __repr__(self) -> str:
        failed = next((f": {shorten(finding.text, 200)}" for finding in self.findings if finding.passed is False), "")
        return f"Verification('{shorten(self.folder, 60)}', {self.verdict}{failed})"

    @property
    def verdict(self) -> Verdict:
        """The verdict in a fixed word."""
        certificate = self.certificate
        if certificate is None or any(finding.passed is False for finding in self.findings):
            return "does not keep"
        if self.draft:
            return "draft"
        if self.was_withdrawn:
            return "withdrawn"
        if self.demonstration and not self.allow_demonstration:
            return "demonstration"
        if self.promises_nothing:
            return "promises nothing"
        if self.demonstration:
            return "demonstration"
        if not self.not_checked:
            return "keeps what could be checked" if self.caveats else "keeps"
        evidence = {claim.evidence for claim in certificate.claims}
        about_nobody = any(file.get("rows") == 0 for file in certificate.files.values())
        if evidence <= {"process", "output+model"} and not ("output+model" in evidence and about_nobody):
            return "rests on its maker"
        return "keeps what could be checked" if self._checked else "not checked"

    @property
    def accepted(self) -> bool:
        """True when nothing was found wrong and what is promised holds or is of a kind that files cannot show; the command
        ends with 0.
        """
        return self.verdict in ACCEPTED or (self.verdict == "demonstration" and self.allow_demonstration)

    @property
    def holds(self) -> bool:
        """True when at least one claim was measured or looked up again, and nothing was found wrong."""
        return self.accepted and self._checked

    @property
    def demonstration(self) -> bool:
        """A release whose randomness was seeded: anybody can repeat it."""
        return self.certificate is not None and not self.certificate.private

    @property
    def draft(self) -> bool:
        """A draft, which no ledger knows: never accepted, whatever it keeps."""
        return self.certificate is not None and self.certificate.draft

    @property
    def was_withdrawn(self) -> bool:
        """Whether the ledger has its owner's statement that it was never given away: never accepted, whatever it keeps."""
        return any(finding.check == WITHDRAWAL for finding in self.findings)

    @property
    def promises_nothing(self) -> bool:
        """A masked table without a guarantee: its risk was measured by its owner, and nobody promises a limit."""
        return self.certificate is not None and not self.certificate.claims

    @property
    def not_checked(self) -> tuple[Finding, ...]:
        """The claims that could not be checked with what was given."""
        return tuple(finding for finding in self.findings if finding.claim and finding.passed is None)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What of the files was not checked and lowers the verdict, besides claims."""
        return tuple(finding.caveat for finding in self.findings if finding.caveat)

    @property
    def _checked(self) -> bool:
        return any(finding.claim and finding.passed for finding in self.findings)

    def __bool__(self) -> bool:
        return self.holds

    def explain(self) -> str:
        """The findings, one line each, and the verdict in a sentence."""
        marks = {True: "passed", False: "FAILED", None: "not checked"}
        said = [("WITHDRAWN" if each.check == WITHDRAWAL else marks[each.passed], each) for each in self.findings]
        lines = [f"{mark:<12}{finding.check}: {finding.text}" for mark, finding in said]
        return "\n".join([*lines, self.sentence])

    @property
    def sentence(self) -> str:
        """The verdict as a sentence."""
        missing = "; ".join(f"{finding.check} {finding.text}" for finding in self.not_checked)
        claims = f"{len(self.not_checked)} not checked: {missing}" if self.not_checked else ""
        unchecked = "; ".join(part for part in (claims, *self.caveats) if part)
        caveats = "".join(f"; {caveat}" for caveat in self.caveats)
        allowed = (
            "" if self.allow_demonstration else "; pass --allow-demonstration (allow_demonstration=True) if you expected one"
        )
        return {
            "keeps": "the release keeps what it claims",
            "keeps what could be checked": f"every claim that could be checked holds; {unchecked}",
            "rests on its maker": "the promise of these files rests on their maker: files cannot show how they were made. "
            + missing
            + caveats,
            "promises nothing": "the certificate promises no guarantee: there is nothing that could hold" + caveats,
            "not checked": f"no claim could be checked: {missing}{caveats}",
            "draft": "a draft, not a release: nothing wrong was found, but it is in no ledger, so no later release is compared "
            "with it. Make the release without --draft (draft=True) before you give anything away" + caveats,
            "withdrawn": "its owner withdrew this release: the ledger has the statement that it was never given away, so "
            "that later releases do not count it. Nothing wrong was found in the files. If somebody was given them, that "
            "statement is wrong" + caveats,
            "demonstration": "a demonstration, not a private release: it was made with a seed, and anybody can repeat it"
            + allowed,
            "does not keep": "the release does NOT keep what it claims",
        }[self.verdict]

    def to_mapping(self) -> PlainDict:
        """Plain data, ready for JSON; `verdict` is one of the fixed words."""
        return {
            "folder": self.folder,
            "verdict": self.verdict,
            "accepted": self.accepted,
            "holds": self.holds,
            "promises_nothing": self.promises_nothing,
            "demonstration": self.demonstration,
            "draft": self.draft,
            "withdrawn": list(self.certificate.withdrawn) if self.certificate else [],
            "findings": [finding.__dict__ for finding in self.findings],
            "sentence": self.sentence,
            "dataset": self.certificate.dataset if self.certificate else None,
        }
