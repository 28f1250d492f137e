"""A release in a few lines: what was done, how safe it is, how useful it is, and where to look."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.plain_data import PlainDict
from sfumato.measures.utility.ambiguity import ALL

#: Said where nothing is promised and nothing was measured.
NOT_KNOWN = ", and no risk was measured: how safe it is, is not known"

if TYPE_CHECKING:
    from sfumato.core.view import Score
    from sfumato.workflow.contents.base import Content
    from sfumato.workflow.release import Release


def summary(release: Release[Content], folder: str | Path | None = None) -> PlainDict:
    """Plain data for `--json`."""
    from sfumato.report.content import plain_details

    certificate = release.certificate
    return {
        "dataset": certificate.dataset,
        "rows": release.data.num_rows,
        "measured": certificate.to_mapping()["claims"],
        "scores": dict(release.scores),
        "details": plain_details(release.details),
        "method": dict(certificate.method),
        "composition": dict(certificate.composition),
        "attacks": [dict(result) for result in certificate.attacks],
        "notices": list(certificate.notices),
        "ledger": certificate.ledger,
        "private": certificate.private,
        "folder": None if folder is None else str(folder),
    }


def summary_lines(release: Release[Content], folder: str | Path | None = None) -> list[str]:
    """The same in words."""
    from sfumato.core.texts import percent
    from sfumato.report.wording import NUMBER_WITHHELD, counted

    certificate, details = release.certificate, release.details
    records, suppressed = int(details.get("records", len(release))), int(details.get("suppressed", 0))
    lines = [
        f"protected {counted(records, 'record')} of '{certificate.dataset}' with {_method(release)}",
        f"released  {counted(release.data.num_rows, 'record')}",
    ]
    if "classes" in details:
        left_out = percent(suppressed / max(records, 1))
        lines[-1] += f" in {counted(int(details['classes']), 'class')}; {suppressed:,} suppressed ({left_out})"
    if not certificate.claims:
        measured = bool(release.owner.risks or certificate.attacks)
        lines.append(f"safe      no guarantee{': how safe it is was measured (risk), not promised' if measured else NOT_KNOWN}")
    for claim in certificate.claims:
        label = "by model" if claim.evidence == "output+model" else "safe"
        withheld = claim.evidence == "output+reference" and claim.measured is None
        lines.append(f"{label:10}{claim.promise}; {NUMBER_WITHHELD if withheld else f'measured {_number(claim.measured)}'}")
    for result in certificate.attacks:
        lines.append(f"attacked  {result['attack']}: {result['finding']}")
    risks = release.owner.risks
    others = _listed(release, [name for name in release.scores if name != "loss" and name not in risks])
    useful = (
        [f"granularity {1 - release.scores['loss']:.4f} (1 keeps every detail of the quasi-identifiers)"]
        if "loss" in release.scores
        else []
    )
    lines.append(f"useful    {'; '.join([*useful, *([others] if others else [])]) or 'not measured'}")
    lines += [f"detail    {line}" for score in release.owner.scores for line in score.words]
    lines += _optimum(release)
    if risks:
        lines += [f"risk      {_risk_in_words(score)}" for score in release.owner.scores if score.measure in risks]
    if "not measured" in details:
        lines.append(f"notice    {details['not measured']}")
    if certificate.composition.get("earlier_releases") or certificate.composition.get("made_with_noise"):
        lines.append(f"earlier   {certificate.composition['finding']}")
    lines += [f"notice    {notice}" for notice in certificate.notices]
    return [*lines, *_places(release, folder)]


def _optimum(release: Release[Content]) -> list[str]:
    """One line where a search did not prove that its release loses least, with what it may lose too much."""
    from sfumato.report.wording import optimum_not_proven

    text = optimum_not_proven(str(release.certificate.method.get("name", "this search")), release.details)
    return [] if text is None else [f"optimum   {text}"]


def _places(release: Release[Content], folder: str | Path | None) -> list[str]:
    lines = [f"ledger    entry {release.certificate.ledger[:16]}…" if release.entered else "ledger    not entered"]
    if folder is not None:
        place = Path(folder)
        public = "of a draft: not to give away" if release.certificate.draft else "to give away"
        lines += [
            f"look      {place / 'owner' / 'card.html'} (yours), {place / 'public' / 'card.html'} ({public})",
            f"verify    sfumato verify {shlex.quote(str(place))}",
        ]
    return lines


def _risk_in_words(score: Score) -> str:
    """A risk with what chance gives, how far it is above that, and its interval."""
    beside = []
    if score.floor is not None:
        beside.append(f"chance gives {score.floor:.4g}")
    if score.gain is not None:
        beside.append(f"gain {score.gain:.4g}")
    if score.interval is not None and score.interval != (score.value, score.value):
        beside.append(f"95 % interval {score.interval[0]:.4g} to {score.interval[1]:.4g}")
    return f"{score.measure} {score.value:.4g}" + (f" ({'; '.join(beside)})" if beside else "")


def _listed(release: Release[Content], names: Sequence[str]) -> str:
    """Each number, with its scale where it is a count."""
    scores = {score.measure: score for score in release.owner.scores}
    return ", ".join(f"{name} {release.scores[name]:.4g}{_beside(scores.get(name))}" for name in names)


def _beside(score: Score | None) -> str:
    if score is None:
        return ""
    if ALL in score.parts:
        return (
            f" of {score.parts[ALL]:,.0f} combinations" if score.parts[ALL] < 1e9 else f" of {score.parts[ALL]:.2g} combinations"
        )
    return ""


def _method(release: Release[Content]) -> str:
    method = dict(release.certificate.method)
    name = method.pop("name", "a search")
    return f"{name}({', '.join(f'{key}={value}' for key, value in method.items())})" if method else str(name)


def _number(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.6g}"
