"""The sentences of a card: plain words for guarantees, adversaries, evidence and limits, and how numbers are
written."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from sfumato.core.certificate import Certificate, Claim
from sfumato.core.markup import shorten
from sfumato.core.texts import counted as counted
from sfumato.core.texts import percent

EVIDENCE = {
    "output": "Anybody can measure it again on the released files.",
    "output+reference": "Anybody who also has a second file can measure it again.",
    "output+model": "Files can contradict it and cannot confirm it: it rests on a model and on a sampling fraction that the "
    "owner declares.",
    "process": "The files cannot show it; it follows from how they were made. A ledger shows what it was charged, if it was "
    "charged to one.",
}

#: In place of the evidence `output` where units were counted and the column that names them is not published.
UNITS_OF_THE_MAKER = (
    "Anybody can count the records of each class again on the released files. How many different units they are rests on the "
    "maker, because the column that names them is not published."
)

#: In place of a number against the original where records were suppressed.
NUMBER_WITHHELD = "kept; the number is not published, because it could reveal values of suppressed records"

RISK = {
    "average": "average risk of a record",
    "highest": "highest risk of a record",
    "journalist_highest": "highest risk if the adversary does not know who took part",
    "marketer": "share of records an adversary expects to identify by trying all",
    "prosecutor_average": "average risk if the adversary knows who took part",
    "prosecutor_highest": "highest risk if the adversary knows who took part",
    "uniques": "records that are alone in their class",
}

FIGURES = {
    "class_sizes": ("How many classes of which size the release has. A class is a group of records that look alike."),
    "distributions": "What each column looked like in the original, and what the release tells about it.",
    "ledger_budget": "How much of each grant is spent, and how it was spent over time.",
    "ledger_timeline": "Releases in the ledger; those about the same data set add up.",
    "loss_per_attribute": "How much detail each quasi-identifier gave up.",
    "risk_profile": ("How many records carry which risk of being picked out, one over the size of their class."),
    "tradeoff": "Every transformation that was looked at: risk against loss, the chosen one marked.",
}

_PLAIN_NAME = re.compile(r"\w[\w.-]{0,39}")
_LONGEST_NAME = 40

#: What no promise about classes protects from.
CLASS_LIMITS = (
    "An adversary who knows more than a promise supposes, for example some sensitive or plain values, is outside the promise.",
    "Another release about the same people can undo the protection of both.",
)
#: What no bound on a privacy loss protects from.
LOSS_LIMITS = (
    "What is true of many can still be learnt, and it may be told of somebody who is not in the data at all. "
    "The promise is that one unit's own data hardly changes what is published.",
    "The promise is made for one unit. Several that belong together, such as a family, or one person who is several "
    "units, are protected less the more they are.",
    "Losses add up: everything else that is answered or published about the same data weakens the promise. The ledger "
    "keeps the account.",
    "Bounds, domains and keys that the owner declared are taken to be known to everybody. They are not protected.",
)
#: What no release protects from.
ALL_LIMITS = (
    "No mechanism covers originals on an open share, a printout in the printer or a colleague who recognises a case: that takes "
    "rules, limited access and somebody responsible.",
)


def verdict_sentence(certificate: Certificate) -> tuple[str, str]:
    """What is guaranteed in one sentence, and its style: good, warn or bad."""
    if not certificate.claims:
        said = "A draft, not a release, and not to be given away. " if certificate.draft else ""
        return f"{said}Nothing is guaranteed about this release.", "warn"
    promised = "; ".join(_promise(claim) for claim in certificate.claims)
    if certificate.draft and certificate.holds:
        return f"A draft, not a release, and not to be given away. As a release it would promise: {promised}.", "warn"
    if not certificate.private and all(claim.evidence == "process" for claim in certificate.claims):
        return f"A demonstration, not a private release: its noise was seeded. With secret noise: {promised}.", "warn"
    broken = [claim for claim in certificate.claims if not claim.holds]
    if broken:
        named = " and ".join(claim.guarantee for claim in broken)
        return f"This release does not keep what it promises: {named} does not hold.", "bad"
    if not certificate.private:
        return f"A demonstration, not a private release (its randomness was seeded): {promised}.", "warn"
    return f"{sentence(promised)}", "good"


def _promise(claim: Claim) -> str:
    return claim.promise.rstrip(".")


def sentence(text: str) -> str:
    """The text with a capital at the start and a full stop at the end."""
    trimmed = text.strip()
    if not trimmed:
        return ""
    ended = trimmed if trimmed[-1] in ".!?…" else f"{trimmed}."
    return ended[0].upper() + ended[1:]


def named_column(name: str) -> str:
    """The name of a column in a sentence; one that could be read as a part of it stands in quotes.

    >>> named_column("age"), named_column("all is safe")
    ('age', '‘all is safe’')
    """
    return name if _PLAIN_NAME.fullmatch(name) else f"‘{shorten(name, _LONGEST_NAME)}’"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: `a`, `a and b`, `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def attack_in_words(success: float, baseline: float, targets: int, supposing: str = "") -> str:
    """What a certificate says of an attack: what follows from its numbers and its kind, and no other word."""
    condition = f" {supposing}" if supposing else ""
    over = f"{counted(targets, 'target')}{condition}"
    return f"Success {percent(success)} over {over}, beside {percent(baseline)} for blind guessing."


def plain_name(name: str) -> str:
    """`largest_gain` and `ProbabilisticInference` as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ")


def number(value: object) -> str:
    """A number for a reader: thousands separated, four significant digits."""
    if value is None:
        return "not measured"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int) or (math.isfinite(value) and value == int(value) and abs(value) < 1e15):
        return f"{int(value):,}"
    if not math.isfinite(value):
        return "infinite" if value > 0 else "not a number"
    return f"{value:.4g}"


def percentage(value: object) -> str:
    """A rate as a percentage."""
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return number(value)
    if value > 1:
        return f"{value * 100:.4g}\u00a0%"
    return percent(value).replace("less than", "<").replace("more than", ">").replace(" %", "\u00a0%")


def optimum_not_proven(search: str, details: Mapping[str, object]) -> str | None:
    """What a search says of how much less another recoding might lose; None where it proved that none does, or is no search."""
    if details.get("optimal", True):
        return None
    gap = details.get("gap")
    if not isinstance(gap, (int, float)):
        return f"not proven: {search} gives no bound of how much less another recoding might lose"
    verb, reached = ("cost", details["objective"]) if "objective" in details else ("lose", details.get("loss", 0.0))
    which = "other levels" if details.get("time_limit") else "another choice of levels and suppressed records"
    text = f"not proven: {which} might {verb} up to {gap:.4f} less than {float(str(reached)):.4f}"
    return f"{text}; a longer time_limit narrows this gap" if details.get("time_limit") else text


def known_values(number: float) -> str:
    """So many different known values of a class, in words: few."""
    return f"only {number:.0f} different known value{'' if number == 1 else 's'}" if number else "no known value at all"
