"""A bound on the privacy loss in words that are read once: a factor, odds, and a chance of one in so many.

Every number is rounded to the side on which the sentence stays true. A loss that is stated otherwise than by ε and δ is restated
by them, for δ = 1 in 1,000,000.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core import registry
from sfumato.core.certificate import Claim
from sfumato.core.declared import build
from sfumato.core.exact import shown
from sfumato.core.guarantees.loss import RECORD, ApproxDP, LossGuarantee, PureDP
from sfumato.core.texts import percent, rounded_up
from sfumato.report.wording import named_column

#: The δ at which a loss is restated that is stated otherwise.
RESTATED_AT = Fraction(1, 10**6)
#: Factors above this say that nothing is bounded in practice.
_LARGEST = 10**9
_LONGEST = 6


@dataclass(frozen=True)
class LossInWords:
    """A loss as a reader has it: `sentence` bounds what one unit's data can do, `numbers` are ε and δ in short, `odds` what that
    means for a bet about the unit; `restated` says that the certificate states the loss in another way."""

    sentence: str
    numbers: str
    odds: str
    restated: bool


def loss_in_words(claim: Claim) -> LossInWords:
    """What a claim about a privacy loss says; of a loss that nobody knows here, its own words."""
    name = claim.guarantee.split("(")[0]
    if not registry.has("loss", name):
        return LossInWords(claim.promise.rstrip("."), "a loss that this version does not know", "", restated=False)
    guarantee = build(registry.find("loss", name), claim.parameters)
    loss = _as_epsilon(guarantee)
    epsilon, delta = Fraction(loss.epsilon), Fraction(loss.delta)
    factor = _factor(epsilon)
    # a δ is no chance that the bound fails: results whose odds rise further may be likelier than it, all events together are not
    what = "no set of results" if delta else "no result"
    times = "every result exactly as likely" if not (epsilon or delta) else f"{what} more than {factor} times as likely"
    besides = f", plus a chance of {_one_in(delta)}" if delta else ""
    whose = "one record" if guarantee.unit == RECORD else f"everything of one {named_column(guarantee.unit)}"
    change = "Replacing" if guarantee.neighbours == "replace" else "Adding or removing"
    by_another = " by another" if guarantee.neighbours == "replace" else ""
    verb = "makes" if epsilon or delta else "leaves"
    even = "" if delta or epsilon == 0 else f", so that even odds (1 to 1) become at most {factor} to 1"
    sentence = f"{change} {whose}{by_another} {verb} {times}{even}{besides}"
    numbers = f"ε {_amount(epsilon)}, δ = 0" if not delta else f"ε {_amount(epsilon)}, δ at most {_one_in(delta)}"
    return LossInWords(
        sentence, numbers, "" if delta else _odds(guarantee, epsilon), not isinstance(guarantee, (PureDP, ApproxDP))
    )


def _as_epsilon(guarantee: LossGuarantee) -> ApproxDP:
    from sfumato.dp.accounting.conversion import as_approx

    return as_approx(guarantee, RESTATED_AT)


def _odds(guarantee: LossGuarantee, epsilon: Fraction) -> str:
    of_one = "a given record" if guarantee.unit == RECORD else f"the data of a given {named_column(guarantee.unit)}"
    verb = "is" if guarantee.unit == RECORD else "are"
    question = f"{of_one} {verb} in it" if guarantee.neighbours == "add_remove" else f"{of_one} {verb} one thing or another"
    if epsilon == 0:
        return f"In odds: whether {question} stays as likely as it was, whatever is published here."
    chance = "" if epsilon > 20 else f", a chance of {_chance(epsilon)}"
    return (
        f"In odds: somebody to whom it is as likely as not (1 to 1) whether {question} can reach odds of {_factor(epsilon)} to 1 "
        f"at the most{chance}, by all that is published here."
    )


def _chance(epsilon: Fraction) -> str:
    odds = math.exp(float(epsilon))
    share = math.ceil(odds / (1 + odds) * 1000) / 1000
    return percent(share) if share < 1 else "more than 99.9 %"


def _factor(epsilon: Fraction) -> str:
    """e^ε, never below it."""
    if epsilon > math.log(_LARGEST):
        return f"10^{math.ceil(epsilon / Fraction(math.log(10)) * (1 + Fraction(1, 10**12)))} (hardly a bound at all)"
    factor = math.exp(float(epsilon)) * (1 + 1e-12)
    return "1" if epsilon == 0 else rounded_up(factor, 3 if factor >= 1.1 else 5)


def _amount(epsilon: Fraction) -> str:
    """ε in a few digits: as it is where these say it exactly, otherwise a little more."""
    text = shown(epsilon)
    if "/" not in text and "about" not in text and len(text) <= _LONGEST:
        return f"= {text}"
    return f"at most {rounded_up(float(epsilon) * (1 + 1e-12), 3)}"


def _one_in(delta: Fraction) -> str:
    """A chance as one in so many, never below it."""
    if delta > Fraction(1, 20):
        return percent(min(math.ceil(float(delta) * 1000) / 1000, 1.0))
    many = int(1 / delta)
    place = 10 ** max(len(str(many)) - 3, 0)
    return f"1 in {many // place * place:,}"
