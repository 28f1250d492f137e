"""Publishing: written, read back, verified, measured, attacked, entered in the ledger, compared with earlier releases, certified.

The only place where a release is made, whatever its content. What reached the guarantees does not certify them: the content is
written in its canonical form, read back and measured by the plain verifier, and a violation leaves nothing behind.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from sfumato.core import registry
from sfumato.core.certificate import NOT_ENTERED, Certificate, Claim, plain
from sfumato.core.declared import parameters
from sfumato.core.errors import NoLedger, ParameterError, Unsupported, notify
from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.core.outcome import Outcome
from sfumato.core.plain_data import Plain
from sfumato.core.progress import Progress, ProgressLike, shown, silent
from sfumato.data.schema import Schema
from sfumato.report.headline import refuse_all_but_kept, release_headline
from sfumato.workflow.contents.base import DRAFT, Content, Files, Promise, Submission
from sfumato.workflow.earlier.comparing import Together
from sfumato.workflow.earlier.withdrawn import withdrawn_in_words
from sfumato.workflow.publishing.claims import missing_counted
from sfumato.workflow.publishing.saving import public_schema, versions
from sfumato.workflow.publishing.scoring import Checks
from sfumato.workflow.release import OwnerSide, Release, Scores

if TYPE_CHECKING:
    from sfumato.ledger.ledger import Ledger

C = TypeVar("C", bound=Content)


@overload
def publish(
    work: Submission[C],
    ledger: Ledger | str | Path | None = None,
    *,
    checks: Checks | None = None,
    progress: ProgressLike = silent,
) -> Release[C]: ...


@overload
def publish(
    work: Outcome[object],
    ledger: Ledger | str | Path | None = None,
    *,
    dataset: str | None = None,
    ledger_entry: str | None = None,
    checks: Checks | None = None,
    progress: ProgressLike = silent,
) -> Release[Content]: ...


def publish(
    work: Submission[Content] | Outcome[object],
    ledger: Ledger | str | Path | None = None,
    *,
    dataset: str | None = None,
    ledger_entry: str | None = None,
    checks: Checks | None = None,
    progress: ProgressLike = silent,
) -> Release[Content]:
    """Turn what a method returned, or a submission, into a release with a certificate; raises `VerificationFailed` and leaves
    nothing when it does not keep its promises.

    `session.release(…)` and `session.sql(…).outcome` are outcomes. `dataset` and `ledger_entry` are the outcome's own unless
    given here. With `ledger` the release is entered there, so that whoever looks finds what a budget was spent on; entering does
    not charge. `progress=True` shows a bar in a terminal or a notebook.
    """
    if isinstance(work, Submission):
        with shown(progress) as receiver:
            return _published(work, ledger, checks or Checks(), receiver)
    if not isinstance(work, Outcome):
        raise ParameterError(
            "publish takes what a private method returned: session.release(…), or session.sql(…).outcome for an answer"
        )
    with shown(progress) as receiver, opened(ledger) as book:
        return _published(_submitted(work, dataset, book, ledger_entry), book, checks or Checks(), receiver)


def _submitted(
    outcome: Outcome[object], dataset: str | None, ledger: Ledger | None, ledger_entry: str | None
) -> Submission[Content]:
    for kind in registry.every("content").values():
        submission: Submission[Content] | None = kind.submitted(
            outcome, dataset=dataset, ledger=ledger, ledger_entry=ledger_entry
        )
        if submission is not None:
            return submission
    raise ParameterError(
        "publish certifies outcomes that claim a privacy loss (PureDP, ApproxDP, …); tables with class guarantees are published "
        "by sf.protect"
    )


def _published(submission: Submission[C], ledger: Ledger | str | Path | None, checks: Checks, progress: Progress) -> Release[C]:
    if submission.draft and not submission.content.has_drafts:
        raise Unsupported(
            f"there are no drafts of {type(submission.content).__name__}: what is drawn for a look would be free noise"
        )
    progress("writing", 0, 1)
    content, files = submission.content.written()  # never on the disk: nobody has verified it yet
    progress("verifying", 0, 1)
    claims = _claims(submission, content)
    notices = (*((DRAFT,) if submission.draft else ()), *submission.notices, *missing_counted(claims))
    progress("verifying", 1, 1)
    facts = _facts(submission, content.schema, claims)
    # measured before anything is entered: what cannot be measured must not be published by then
    checked = content.checked(checks, facts, progress)
    paid = next((promise.ledger_entry for promise in submission.promises if promise.ledger_entry), None)
    made_with = versions()  # what can fail fails before anything is entered
    notify(notices)  # it fails where somebody wants notices to be errors

    def certified(entered: str, together: Together) -> Certificate:
        return Certificate(
            dataset=content.schema.dataset,
            created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            claims=claims,
            method=dict(submission.method),
            schema=facts["schema"],
            files=files,
            versions=made_with,
            fingerprint=submission.fingerprint,
            randomness=submission.randomness,
            private=submission.private,
            ledger=entered or paid or NOT_ENTERED,
            composition=together.outside,
            attacks=checked.stated_attacks,
            transparency=dict(submission.transparency),
            notices=tuple(dict.fromkeys((*notices, *([withdrawn_in_words(together.withdrawn)] if together.withdrawn else [])))),
            draft=submission.draft,
            withdrawn=together.withdrawn,
            content=type(content).__name__ if content.named_in_certificates else "",
        )

    if submission.strict:  # judged with what earlier releases add, which a look at the ledger says as well
        look = certified("", _beside_earlier(content, ledger, facts, files, progress))
        _refuse_all_but_kept(submission, look, measured=bool(checked.risks or look.attacks))
    if submission.draft:
        entered, together = "", _beside_earlier(content, ledger, facts, files, progress)
    else:
        entered, together = _entered(content, ledger, facts, files, progress)
    certificate = certified(entered, together)
    details = dict(submission.details)
    if checked.unmeasured:
        details["not measured"] = "; ".join(checked.unmeasured)
    if together.owner:
        details["composition"] = dict(together.owner)
    scores = Scores({score.measure: score.value for score in checked.scores})
    scores.unmeasured = checked.unmeasured
    return Release(
        content=content,
        published=certificate,
        guarantees=submission.guarantees,
        scores=MappingProxyType(scores),
        details=MappingProxyType(details),
        owner=OwnerSide(
            scores=checked.scores,
            risks=checked.risks,
            attacks=checked.attacks,
            computed=submission.computed,
            recipe=submission.recipe,
            answers=submission.answers,
            warned=submission.warned,
        ),
    )


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
    """The same for reading alone: no ledger is made, and where there is none it is None."""
    if not isinstance(ledger, (str, Path)):
        yield ledger
        return
    from sfumato.ledger.ledger import Ledger as Book

    try:
        book = Book.open(ledger, read_only=True)
    except NoLedger:
        yield None
        return
    with book:
        yield book


def _refuse_all_but_kept(submission: Submission[Content], certificate: Certificate, *, measured: bool) -> None:
    """For somebody who is strict: nothing is entered or written unless the verdict will be `kept`; a draft has its release's."""
    of_release = dataclasses.replace(certificate, draft=False)
    refuse_all_but_kept(release_headline(of_release, measured=measured, warned=submission.warned))


def _entered(
    content: Content, ledger: Ledger | str | Path | None, facts: Plain, files: Files, progress: Progress
) -> tuple[str, Together]:
    """The hash of the entry, and what the release tells together with earlier ones; nothing without a ledger."""
    with opened(ledger) as book:
        if book is None:
            return "", Together()
        progress("entering in the ledger", 0, 1)
        entry, together = content.enter(book, facts, files)
        progress("entering in the ledger", 1, 1)
        return entry.hash, together


def _beside_earlier(
    content: Content, ledger: Ledger | str | Path | None, facts: Plain, files: Files, progress: Progress
) -> Together:
    """What a draft would tell together with earlier releases: the ledger is read, and none is made."""
    with opened_to_read(ledger) as book:
        if book is None:
            return Together()
        progress("comparing with earlier releases", 0, 1)
        together = content.beside_earlier(book, facts, files)
        progress("comparing with earlier releases", 1, 1)
        return together


def _claims(submission: Submission[C], content: C) -> tuple[Claim, ...]:
    """What is measured on the content as it was read back, and what rests on how it was made."""
    measured = iter(content.claims([each for each in submission.guarantees if each.evidence != "process"]))
    return tuple(
        _stated(promise, submission.private) if promise.guarantee.evidence == "process" else next(measured)
        for promise in submission.promises
    )


def _stated(promise: Promise, private: bool) -> Claim:
    """Seeded noise protects nobody who can guess the seed, so a demonstration's claim does not hold."""
    guarantee = promise.guarantee
    if not isinstance(guarantee, LossGuarantee):
        raise ParameterError(f"{guarantee.name} rests on a process, and only a privacy loss is entered in a ledger")
    return Claim(
        guarantee=guarantee.key,
        parameters=parameters(guarantee),
        promised=guarantee.claim(),
        measured=None,
        holds=private,
        evidence="process",
        protects=guarantee.protects,
        adversary=guarantee.adversary,
        unit=guarantee.unit,
        neighbours=guarantee.compared,
        argument=promise.argument or None,
        ledger_entry=promise.ledger_entry,
    )


def _facts(submission: Submission[C], schema: Schema, claims: tuple[Claim, ...]) -> dict[str, Any]:
    """What attackers, measures and the ledger may know of the certificate, before there is one."""
    facts: dict[str, Any] = plain(
        {
            "claims": [claim.__dict__ for claim in claims],
            "method": submission.method,
            "schema": public_schema(schema),
            "fingerprint": submission.fingerprint,
            "private": submission.private,
            "transparency": submission.transparency,
        }
    )
    return facts
