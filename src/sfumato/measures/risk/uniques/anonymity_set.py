"""The anonymity set: among whom can the adversary not decide, and how many does that amount to?

From the adversary's posterior over the members, the effective size is exp of its entropy, and the degree
of anonymity the entropy as a share of the largest possible. Serjantov, Danezis, "Towards an information
theoretic metric for anonymity", PET 2002; Díaz et al., "Towards measuring anonymity", PET 2002.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated

from sfumato.core.declared import Declared, require
from sfumato.core.ranges import Each, Number


@dataclass(frozen=True)
class AnonymitySet(Declared):
    """The adversary's posterior: the probability that each member is the one looked for (`posterior`).

    >>> AnonymitySet((0.25, 0.25, 0.25, 0.25)).effective_size
    4.0
    """

    posterior: Annotated[tuple[float, ...], Each(Number(at_least=0), at_least=1), "the probability of each member"] = field(
        repr=False
    )

    def coherent(self) -> Iterable[str]:
        if abs(math.fsum(self.posterior) - 1) >= 1e-9:
            yield "the probabilities must add up to 1"

    @classmethod
    def uniform(cls, size: int) -> AnonymitySet:
        """Everybody in the set is equally likely: what a class of a k-anonymous table gives."""
        require(size >= 1, "AnonymitySet: the set has no members")
        return cls((1.0 / size,) * size)

    @property
    def size(self) -> int:
        """Members that are possible at all."""
        return sum(chance > 0 for chance in self.posterior)

    @property
    def entropy(self) -> float:
        """Entropy of the posterior, in nats."""
        return -math.fsum(chance * math.log(chance) for chance in self.posterior if chance > 0)

    @property
    def effective_size(self) -> float:
        """exp(entropy): the number of equally likely members that would be as uncertain."""
        chances = {chance for chance in self.posterior if chance > 0}
        return float(self.size) if len(chances) == 1 else math.exp(self.entropy)

    @property
    def degree(self) -> float:
        """Entropy as a share of that of the uniform posterior: 1 is best, 0 means identified."""
        return self.entropy / math.log(len(self.posterior)) if len(self.posterior) > 1 else 0.0

    @property
    def identified(self) -> bool:
        """True when one member has probability 1: identity disclosure, the opposite of anonymity."""
        return max(self.posterior) >= 1.0 - 1e-12
