"""The guarantee of hidden knowledge: itemsets that nobody finds frequent, rules that nobody finds strong.

Knowledge is what an algorithm derives from the data at its thresholds. Baskets are published so that what is on the owner's list
is not derived from them. Atallah, Bertino, Elmagarmid, Ibrahim, Verykios, "Disclosure limitation of sensitive rules", KDEX 1999;
Verykios et al., "Association rule hiding", IEEE Transactions on Knowledge and Data Engineering 16(4), 2004.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, ClassVar

from sfumato.core.errors import ParameterError
from sfumato.core.guarantees.base import Evidence, Guarantee, stated
from sfumato.core.ranges import Either, Made, Number, Whole
from sfumato.core.texts import percent, text_of

Itemset = tuple[str, ...]
#: An antecedent and a consequent.
RuleSides = tuple[Itemset, Itemset]
#: Items of one itemset on a list: what is counted of it grows with all its subsets.
MOST_ITEMS = 20

#: From which share or number of baskets an itemset is frequent.
SUPPORT = Either(
    (Whole(at_least=1), Number(above=0, below=1)), "a number of baskets of at least 1, or a share of them above 0 and below 1"
)


def _itemset(value: object) -> Itemset:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ParameterError("not a list of items")
    try:
        items = [text_of(item) for item in value]
    except TypeError:
        raise ParameterError("not a list of single items") from None
    texts = sorted({str(item) for item in items})
    if None in items or not 0 < len(texts) <= MOST_ITEMS:
        raise ParameterError("an item is missing, or there are too many")
    return tuple(texts)


def _itemsets(value: object) -> tuple[Itemset, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ParameterError("not a list of itemsets")
    return tuple(dict.fromkeys(_itemset(each) for each in value))


def _rules(value: object) -> tuple[RuleSides, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ParameterError("not a list of rules")
    rules: dict[RuleSides, None] = {}
    for each in value:
        if isinstance(each, (str, bytes)) or not isinstance(each, Iterable):
            raise ParameterError("not a rule")
        sides = [_itemset(side) for side in each]
        if len(sides) != 2 or set(sides[0]) & set(sides[1]) or len({*sides[0], *sides[1]}) > MOST_ITEMS:
            raise ParameterError("a rule has two sides without a common item")
        rules[sides[0], sides[1]] = None
    return tuple(rules)


class ResultGuarantee(Guarantee):
    """A promise about what is derived from the published data, not about whose records they are."""


@dataclass(frozen=True)
class Hidden(ResultGuarantee):
    """What is on the owner's list is not derived from the published baskets: none of the `itemsets` is in `support` of them
    (a share below 1, or a number of baskets), and each of the `rules` (antecedent and consequent) is below that support or
    below the `confidence`.

    Protects from whoever mines the baskets at these thresholds or higher ones. The list stays with its owner: a certificate names
    a keyed digest of it.

    >>> promise = Hidden([["beer", "nappies"]], support=0.01)
    >>> promise.minimum(1_000)
    10
    """

    itemsets: Annotated[
        tuple[Itemset, ...], Made(_itemsets, f"a list of itemsets, each a list of 1 to {MOST_ITEMS} items"), "what is hidden"
    ] = field(repr=False)
    support: Annotated[float, SUPPORT, "from which support on an itemset is frequent"]
    confidence: Annotated[float | None, Number(above=0, at_most=1), "from which confidence on a rule is strong"] = None
    rules: Annotated[
        tuple[RuleSides, ...],
        Made(_rules, f"a list of rules, each a pair of lists without a common item, of at most {MOST_ITEMS} items together"),
        "rules that are hidden",
    ] = field(default=(), repr=False)

    protects: ClassVar[str] = "disclosure of knowledge"
    limits: ClassVar[tuple[str, ...]] = (
        "It says nothing about whose baskets these are, nor about lower thresholds: an itemset that is hidden is still in fewer "
        "baskets.",
        "Whoever knows threshold and method can guess what was hidden among the itemsets just below the threshold; the attack "
        "GuessHidden measures how often that is right.",
    )

    def coherent(self) -> Iterable[str]:
        if not self.itemsets and not self.rules:
            yield "itemsets and rules are both empty; name at least one that is to be hidden"
        if self.rules and self.confidence is None:
            yield "confidence is missing; rules are hidden below a confidence"

    @property
    def evidence(self) -> Evidence:
        return "output+reference"

    @property
    def adversary(self) -> str:
        return "mines the published baskets for frequent itemsets and strong rules at these thresholds or higher ones"

    @property
    def thresholds(self) -> dict[str, float]:
        """What everybody may know of it: the parameters without the list."""
        both = {"support": self.support, "confidence": self.confidence}
        return {name: value for name, value in both.items() if value is not None}

    def minimum(self, baskets: int) -> int:
        """The number of baskets from which on an itemset is frequent."""
        return least_count(self.support, baskets)

    def claim(self) -> str:
        return claim_of(self.support, self.confidence)


def claim_of(support: float, confidence: float | None) -> str:
    """The promise in plain words, which know the thresholds and nothing of the list."""
    frequent = f"{support:,} baskets" if isinstance(support, int) else f"{percent_of(support)} of the baskets"
    text = f"no itemset on the owner's list is in {frequent} or more"
    if confidence is None:
        return text
    return f"{text}, and no rule on it has both that support and a confidence of {stated(confidence)} or more"


def percent_of(share: float) -> str:
    """A share in per cent, with every digit that it has."""
    rounded = percent(share)
    return rounded if Fraction(repr(share)) * 100 == _number(rounded) else f"{stated(float(Fraction(repr(share)) * 100))} %"


def _number(text: str) -> Fraction | None:
    try:
        return Fraction(text.removesuffix("%").strip())
    except ValueError:
        return None


def least_count(support: float, baskets: int) -> int:
    """The number of baskets that a support comes to: a number as it is, a share of them rounded up, exactly."""
    if isinstance(support, int):
        return support
    return max(math.ceil(Fraction(repr(support)) * baskets), 1)
