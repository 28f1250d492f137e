"""What a loss means for what somebody may come to believe: posterior odds, the best guess, the power of a test.

For any prior, one answer moves the odds between two neighbouring databases by at most e^ε; a guesser who starts from even
odds is right with probability at most e^ε/(1 + e^ε), plus what δ adds. Bounds are rounded so that they never promise more
than holds. Kasiviswanathan, Smith, "On the 'semantics' of differential privacy", Journal of Privacy and Confidentiality 2014;
Wasserman, Zhou, "A statistical framework for differential privacy", JASA 2010 (tests); Kairouz, Oh, Viswanath, ICML 2015.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.declared import require
from sfumato.core.exact import Number, exact
from sfumato.core.guarantees.loss import ApproxDP, ConcentratedDP, LossGuarantee, PureDP, RenyiDP
from sfumato.dp.accounting.conversion import as_approx, kind_of
from sfumato.dp.accounting.enclosure import Enclosure

_LEVEL = Fraction(1, 20)
_DELTAS = tuple(Fraction(1, 10**power) for power in range(1, 10))


def posterior_interval(prior: Number, epsilon: Number) -> tuple[Fraction, Fraction]:
    """Where the belief in a statement about one unit lies after an ε-private answer; rounded outwards.

    >>> low, high = posterior_interval("0.01", 1)
    >>> round(float(low), 6), round(float(high), 6)
    (0.003702, 0.026724)
    """
    belief, loss = exact(prior, "prior"), exact(epsilon, "epsilon")
    require(0 <= belief <= 1, "a prior belief lies between 0 and 1")
    require(loss >= 0, "epsilon must not be negative")
    if belief in (0, 1) or loss == 0:
        return belief, belief
    odds = belief / (1 - belief)
    lower, upper = ((1 / (Enclosure.of(sign * loss).exp() * odds) + 1) for sign in (-1, 1))
    return (1 / lower).down(), min((1 / upper).up(), Fraction(1))


def best_guess(loss: LossGuarantee) -> Fraction:
    """The largest probability, rounded up, of guessing right which of two neighbours an answer came from, at even odds.

    From (ε, δ): (e^ε + δ)/(1 + e^ε), which randomised response attains. From a Rényi or zCDP bound: half of one plus the
    total variation, which the divergence of order one bounds in two ways.
    """
    kind_of(loss)
    match loss:
        case PureDP(epsilon=epsilon):
            return _guess(Fraction(epsilon), Fraction(0))
        case ApproxDP(epsilon=epsilon, delta=delta):
            return _guess(Fraction(epsilon), Fraction(delta))
        case ConcentratedDP(rho=bound) | RenyiDP(epsilon=bound):
            divergence = Enclosure.of(Fraction(bound))
            pinsker = (divergence / 2).sqrt()
            bretagnolle_huber = (1 - (-divergence).exp()).sqrt()
            return min(((pinsker.least(bretagnolle_huber) + 1) / 2).up(), Fraction(1))
    raise AssertionError(loss)


def largest_power(loss: LossGuarantee, level: Number = _LEVEL) -> Fraction:
    """How often, at most, a test detects one unit's data if it raises a false alarm with probability `level`; rounded up."""
    alarm = exact(level, "level")
    require(0 <= alarm <= 1, "the level of a test lies between 0 and 1")
    statements = [as_approx(loss)] if kind_of(loss) in ("pure", "approx") else [as_approx(loss, delta) for delta in _DELTAS]
    return min(_power(Fraction(each.epsilon), Fraction(each.delta), alarm) for each in statements)


@dataclass(frozen=True)
class Meaning:
    """A loss in plain words: the best guess at even odds, the power of a test at 5 % false alarms, and sentences."""

    guess: Fraction
    power: Fraction
    sentences: tuple[str, ...]

    @property
    def advantage(self) -> Fraction:
        """How much better than a coin the best guesser is, from 0 (not at all) to 1 (always right)."""
        return 2 * self.guess - 1

    def __str__(self) -> str:
        return " ".join(self.sentences)


def meaning(loss: LossGuarantee) -> Meaning:
    """What a loss allows an adversary who knows everything except the drawn noise.

    >>> print(meaning(PureDP(1)).sentences[0])
    An adversary who guesses from the answer which of two databases it is about (one record added or removed), and who \
thought both equally likely before, is right at most 73.2 % of the time.
    """
    guess, power = best_guess(loss), largest_power(loss)
    sentences = [
        f"An adversary who guesses from the answer which of two databases it is about ({loss.compared}), and who thought both "
        f"equally likely before, is right at most {_percent(guess)} of the time.",
        f"A test that raises a false alarm in 5 % of cases detects the difference in at most {_percent(power)}.",
    ]
    if isinstance(loss, PureDP):
        low, high = posterior_interval(Fraction(1, 100), loss.epsilon)
        sentences.append(f"A belief of 1 % stays between {_percent(low, up=False)} and {_percent(high)}.")
    if isinstance(loss, ApproxDP) and Fraction(loss.delta) > 0:
        sentences.append(f"With probability {float(loss.delta):.3g} the bound on the odds may fail altogether.")
    if guess > Fraction(99, 100):
        sentences.append("This promises next to nothing: an adversary may become practically certain.")
    return Meaning(guess, power, tuple(sentences))


def _guess(epsilon: Fraction, delta: Fraction) -> Fraction:
    if epsilon > 1000:
        return Fraction(1)
    growth = Enclosure.of(epsilon).exp()
    return min(((growth + delta) / (growth + 1)).up(), Fraction(1))


def _power(epsilon: Fraction, delta: Fraction, level: Fraction) -> Fraction:
    if epsilon > 1000:
        return Fraction(1)
    steep = Enclosure.of(epsilon).exp() * level + delta
    flat = 1 - Enclosure.of(-epsilon).exp() * (1 - delta - level)
    return max(min(steep.up(), flat.up(), Fraction(1)), level)


def _percent(value: Fraction, *, up: bool = True) -> str:
    """Rounded up unless the lower end is meant, so never flattering; finer near certainty and impossibility."""
    steps = 10_000 if value < Fraction(1, 100) or value > Fraction(99, 100) else 1_000
    scaled = value * steps
    whole = -(-scaled.numerator // scaled.denominator) if up else scaled.numerator // scaled.denominator
    return f"{100 * whole / steps:g} %"
